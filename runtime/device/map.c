/* SPDX-License-Identifier: Apache-2.0 */
/*
 * map.c - memory that host and device both see: the only file that knows how it is mapped.
 *
 * A real device file is mapped at the offset that the driver gives.  A shared mapping through FUSE loses
 * writes, so the virtual device hands out its memory as a memfd over <root>/mem.sock.
 */
#include "runtime/device/device.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "runtime/vdev/vdev_abi.h"

static int map_fd(int fd, uint64_t offset, uint64_t size, void **ret_addr)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);

	if (p == MAP_FAILED)
		return -errno;
	*ret_addr = p;
	return 0;
}

/* Through a descriptor of the directory, for a path may be longer than a socket's address. */
static int connect_low(const char *root)
{
	_cleanup_close_ int dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd;

	if (dir < 0)
		return -errno;
	(void)snprintf(
		addr.sun_path, sizeof(addr.sun_path), "/proc/thread-self/fd/%d/mem.sock", dir);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0) {
		int rc = -errno;

		(void)close(fd);
		return rc;
	}
	return fd;
}

/* The descriptor is above 2. */
static int connect_memory(const char *root)
{
	struct standard_fds standard;
	int fd = standard_fds_hold(&standard);

	if (fd < 0)
		return fd;
	fd = connect_low(root);
	standard_fds_release(&standard);
	return fd;
}

/* Receives the answer; the memfd, or -errno. */
static int receive_memory(int sock, struct vdev_mem_answer *answer)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {answer, sizeof(*answer)};
	struct msghdr hdr = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes)};
	struct cmsghdr *cmsg;
	ssize_t n;
	int fd = -1;

	do
		n = recvmsg(sock, &hdr, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	cmsg = CMSG_FIRSTHDR(&hdr);
	if (cmsg && cmsg->cmsg_level == SOL_SOCKET && cmsg->cmsg_type == SCM_RIGHTS &&
		cmsg->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&fd, CMSG_DATA(cmsg), sizeof(int));
	if (n != (ssize_t)sizeof(*answer) || answer->status != 0 || fd < 0) {
		if (fd >= 0)
			(void)close(fd);
		return n == (ssize_t)sizeof(*answer) && answer->status < 0 ? answer->status
									   : -EPROTO;
	}
	return fd;
}

static int map_virtual(
	const char *root, uint32_t device, uint64_t handle, uint64_t size, void **ret_addr)
{
	struct vdev_mem_request request = {.device = device, .mem_handle = handle};
	_cleanup_close_ int sock = connect_memory(root);
	_cleanup_close_ int memory = -1;
	struct vdev_mem_answer answer;
	struct standard_fds standard;
	struct stat st;

	if (sock < 0)
		return sock;
	if (send(sock, &request, sizeof(request), MSG_NOSIGNAL) < 0)
		return -errno;
	memory = standard_fds_hold(&standard);
	if (memory == 0) {
		memory = receive_memory(sock, &answer);
		standard_fds_release(&standard);
	}
	if (memory < 0)
		return memory;
	/* A mapping beyond the end of the file would be a SIGBUS later. */
	if (fstat(memory, &st) < 0)
		return -errno;
	if (answer.size < size || (uint64_t)st.st_size < size)
		return -EPROTO;
	return map_fd(memory, 0, size, ret_addr);
}

int device_map(const struct device_system *s, const struct device *device, uint64_t handle,
	uint64_t mmap_offset, uint64_t size, void **ret_addr)
{
	if (s->is_virtual)
		return map_virtual(s->root, device->index, handle, size, ret_addr);
	if (!kept_fd_valid(&device->file.kept))
		return -EBADF;
	return map_fd(device->file.kept.fd, mmap_offset, size, ret_addr);
}

void device_link(struct device_system *s)
{
	int fd = s->is_virtual ? connect_memory(s->root) : -ENODEV;

	if (fd >= 0)
		(void)kept_fd_adopt(&s->link, fd);
}

bool device_is_gone(const struct device_system *s)
{
	struct pollfd p = {.fd = s->link.fd, .events = POLLRDHUP};

	return kept_fd_valid(&s->link) && poll(&p, 1, 0) == 1 &&
	       (p.revents & (POLLHUP | POLLRDHUP | POLLERR));
}
