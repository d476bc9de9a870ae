/* SPDX-License-Identifier: Apache-2.0 */
/* mem_sock.c - hands out device memory; see mem_sock.h. */
#include "runtime/vdev/mem_sock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "runtime/vdev/datastore.h"
#include "runtime/vdev/memory.h"
#include "runtime/vdev/vdev_abi.h"

/* epoll data of the two descriptors that are no client */
#define TAG_LISTEN UINT32_MAX
#define TAG_STOP (UINT32_MAX - 1)

static void close_client(struct vdev_sock_client *client)
{
	close(client->fd);
	client->fd = -1;
}

/* ---- one request ------------------------------------------------------------------------- */

static int send_answer(int fd, const struct vdev_mem_answer *answer, int memory_fd)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct iovec iov = {(void *)(uintptr_t)answer, sizeof(*answer)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	if (memory_fd >= 0) {
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.header), &memory_fd, sizeof(int));
		msg.msg_control = control.space;
		msg.msg_controllen = sizeof(control.space);
	}
	return sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* A descriptor through which the memory can only be read; -errno. */
static int read_only(const struct vdev_memory *memory)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", memory->fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* What a process may have of a device: its own memory, rings, its own datastore, and the
 * datastore of another to read (*ret_other).  NULL: nothing of that name. */
static struct vdev_memory *find_memory(
	struct vdev_device *device, pid_t tgid, uint64_t name, bool *ret_other)
{
	struct vdev_memory *memory = vdev_memory_get(device, tgid, name);
	bool own = true;

	if (!memory)
		memory = vdev_datastore_get(device, tgid, name, &own);
	*ret_other = !own;
	return memory;
}

static int answer_request(
	struct vdev *vdev, pid_t tgid, int fd, const struct vdev_mem_request *request)
{
	_cleanup_memory_ struct vdev_memory *memory = NULL;
	_cleanup_close_ int copy = -1;
	struct vdev_mem_answer answer = {0};
	struct vdev_device *device;
	bool other;

	if (request->device >= vdev->config.devices)
		return send_answer(fd, &(struct vdev_mem_answer){.status = -ENODEV}, -1);
	device = &vdev->devices[request->device];
	if (!vdev_attached(device, tgid))
		return send_answer(fd, &(struct vdev_mem_answer){.status = -EACCES}, -1);
	memory = find_memory(device, tgid, request->mem_handle, &other);
	if (!memory)
		return send_answer(fd, &(struct vdev_mem_answer){.status = -EINVAL}, -1);
	if (other) {
		copy = read_only(memory);
		if (copy < 0)
			return send_answer(fd, &(struct vdev_mem_answer){.status = copy}, -1);
	}
	answer.size = memory->size;
	return send_answer(fd, &answer, other ? copy : memory->fd);
}

/* One message per wake-up, so that nobody keeps the thread for itself. */
static void serve_client(struct vdev_sock *sock, struct vdev_sock_client *client)
{
	struct vdev_mem_request request;
	ssize_t n = recv(client->fd, &request, sizeof(request), MSG_DONTWAIT | MSG_TRUNC);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n != sizeof(request) ||
		answer_request(sock->vdev, client->tgid, client->fd, &request) < 0)
		close_client(client);
}

/* ---- connections ------------------------------------------------------------------------- */

static struct vdev_sock_client *place_for(struct vdev_sock *sock, pid_t tgid)
{
	struct vdev_sock_client *place = NULL;
	unsigned same = 0;

	for (unsigned i = 0; i < VDEV_SOCK_MAX_CLIENTS; i++) {
		struct vdev_sock_client *client = &sock->clients[i];

		if (client->fd < 0)
			place = place ? place : client;
		else if (client->tgid == tgid)
			same++;
	}
	return same < VDEV_SOCK_MAX_PER_PROCESS ? place : NULL;
}

static void accept_client(struct vdev_sock *sock)
{
	_cleanup_close_ int fd = accept4(sock->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct vdev_sock_client *client;
	struct epoll_event event = {.events = EPOLLIN};
	struct ucred peer;
	socklen_t size = sizeof(peer);

	if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 || peer.pid <= 0)
		return;
	client = place_for(sock, peer.pid);
	if (!client)
		return;
	event.data.u32 = (uint32_t)(client - sock->clients);
	if (epoll_ctl(sock->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
		return;
	client->fd = fd;
	client->tgid = peer.pid;
	fd = -1;
}

static void *serve(void *arg)
{
	struct vdev_sock *sock = arg;

	for (;;) {
		struct epoll_event events[32];
		int n = epoll_wait(sock->epoll_fd, events, 32, -1);

		for (int i = 0; i < n; i++) {
			uint32_t tag = events[i].data.u32;

			if (tag == TAG_STOP)
				return NULL;
			if (tag == TAG_LISTEN)
				accept_client(sock);
			else if (sock->clients[tag].fd >= 0)
				serve_client(sock, &sock->clients[tag]);
		}
	}
}

/* ---- life -------------------------------------------------------------------------------- */

/* A socket address holds 108 bytes, a path may be longer: go through the directory's descriptor. */
static int bind_in(int fd, int dir_fd, const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s", dir_fd, name);
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	/* Whoever can reach the directory may connect; who may have memory is decided per
	 * request. */
	return fchmodat(dir_fd, name, 0666, 0) < 0 ? -errno : 0;
}

static int watch(int epoll_fd, int fd, uint32_t tag)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = tag};

	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

static int open_all(struct vdev_sock *sock, int dir_fd, const char *name)
{
	int r;

	sock->clients = calloc(VDEV_SOCK_MAX_CLIENTS, sizeof(*sock->clients));
	if (!sock->clients)
		return -ENOMEM;
	for (unsigned i = 0; i < VDEV_SOCK_MAX_CLIENTS; i++)
		sock->clients[i].fd = -1;
	sock->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	sock->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	sock->stop_fd = eventfd(0, EFD_CLOEXEC);
	if (sock->listen_fd < 0 || sock->epoll_fd < 0 || sock->stop_fd < 0)
		return -errno;
	r = bind_in(sock->listen_fd, dir_fd, name);
	if (r < 0)
		return r;
	if (listen(sock->listen_fd, 128) < 0 ||
		watch(sock->epoll_fd, sock->listen_fd, TAG_LISTEN) < 0 ||
		watch(sock->epoll_fd, sock->stop_fd, TAG_STOP) < 0)
		return -errno;
	return 0;
}

static void close_all(struct vdev_sock *sock)
{
	for (unsigned i = 0; sock->clients && i < VDEV_SOCK_MAX_CLIENTS; i++)
		if (sock->clients[i].fd >= 0)
			close_client(&sock->clients[i]);
	free(sock->clients);
	cleanup_close(&sock->listen_fd);
	cleanup_close(&sock->epoll_fd);
	cleanup_close(&sock->stop_fd);
}

int vdev_sock_start(struct vdev_sock *sock, struct vdev *vdev, int dir_fd, const char *name)
{
	int r;

	*sock = (struct vdev_sock){.vdev = vdev, .listen_fd = -1, .epoll_fd = -1, .stop_fd = -1};
	r = open_all(sock, dir_fd, name);
	if (r == 0)
		r = -pthread_create(&sock->thread, NULL, serve, sock);
	if (r < 0)
		close_all(sock);
	return r;
}

void vdev_sock_stop(struct vdev_sock *sock)
{
	eventfd_write(sock->stop_fd, 1);
	pthread_join(sock->thread, NULL);
	close_all(sock);
}
