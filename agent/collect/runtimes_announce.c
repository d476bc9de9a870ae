/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtimes_announce.c - accepts announcements of runtimes.
 *
 * A connection is a small state: it has said hello or not; who has not is a stranger, and must soon.
 *
 * At the limit of descriptors a spare one is given up for a moment, so that callers can be refused
 * instead of waiting in the queue, where they would wake the recorder for ever.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/collect/runtimes_parts.h"
#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/trace/announce.h"

#define STRANGER_NS (ANNOUNCE_TIMEOUT_MS * 1000000ull)
#define BACKLOG 128

static int listen_abstract(struct runtimes *r)
{
	unsigned char rnd[16];
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	if (getrandom(rnd, sizeof(rnd), 0) != (ssize_t)sizeof(rnd)) {
		close(fd);
		return -EIO;
	}
	size_t len = (size_t)snprintf(r->name, sizeof(r->name), "@ntrace-%d-", (int)getpid());
	for (size_t i = 0; i < sizeof(rnd); i++)
		len += (size_t)snprintf(r->name + len, sizeof(r->name) - len, "%02x", rnd[i]);
	memcpy(addr.sun_path + 1, r->name + 1, len - 1);
	socklen_t alen = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
	if (bind(fd, (struct sockaddr *)&addr, alen) < 0 || listen(fd, BACKLOG) < 0) {
		int error = errno;
		close(fd);
		return -error;
	}
	return fd;
}

static int open_spare(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

int announcements_watch(struct runtimes *r)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.fd = r->listen_fd};

	return epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, r->listen_fd, &ev) < 0 ? -errno : 0;
}

int announcements_open(struct runtimes *r)
{
	int rc = r->listen_fd = listen_abstract(r);

	if (rc < 0) {
		r->listen_fd = -1;
		return rc;
	}
	r->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	r->spare_fd = open_spare();
	return r->epoll_fd < 0 || r->spare_fd < 0 ? -errno : announcements_watch(r);
}

/* ---- announcements ------------------------------------------------------------------------ */

static int send_msg(int fd, enum announce_kind kind, uint32_t ring_capacity)
{
	struct announce_msg m = {
		.magic = ANNOUNCE_MAGIC, .kind = kind, .ring_capacity = ring_capacity};

	return send(fd, &m, sizeof(m), MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof(m) ? 0
											  : -EPIPE;
}

/* Keeps a descriptor only when it is the one that was sent. */
static int take_descriptor(struct msghdr *mh)
{
	int kept = -1, seen = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(mh); c; c = CMSG_NXTHDR(mh, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = 0; CMSG_LEN(at + sizeof(int)) <= c->cmsg_len; at += sizeof(int)) {
			cleanup_close(&kept);
			memcpy(&kept, CMSG_DATA(c) + at, sizeof(int));
			seen++;
		}
	}
	if (seen > 1 || (mh->msg_flags & MSG_CTRUNC))
		cleanup_close(&kept);
	return kept;
}

/* Receives a message and, with HELLO, its descriptor, -1 if there was none or no room for it.
 * 1 = message, 0 = nothing yet, -errno = end. */
static int receive_msg(int fd, struct announce_msg *m, int *ret_memfd)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = {.iov_base = m, .iov_len = sizeof(*m)};
	struct msghdr mh = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.buf,
		.msg_controllen = sizeof(control.buf)};

	*ret_memfd = -1;
	ssize_t n = recvmsg(fd, &mh, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	*ret_memfd = take_descriptor(&mh);
	if (n == 0)
		return -EPIPE;
	if (n != (ssize_t)sizeof(*m) || m->magic != ANNOUNCE_MAGIC)
		return -EPROTO;
	return 1;
}

/* Takes fd. */
static void refuse(struct runtimes *r, int fd)
{
	r->refused++;
	send_msg(fd, ANNOUNCE_REFUSE, 0);
	close(fd);
}

/* A runtime hands its memory over to be read.  Who is to be its one agent locks it, and needs it open to write.
 * Takes memfd; -1: it is not a memfd, or of another user. */
static int open_writing(int memfd)
{
	char path[32];
	int fd = -1;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", memfd);
	/* Nothing else is opened: a device may mind. */
	if (fcntl(memfd, F_GET_SEALS) >= 0)
		fd = open(path, O_RDWR | O_CLOEXEC);
	close(memfd);
	return fd;
}

/* Takes fd and memfd in any case. */
static int welcome(struct runtimes *r, int fd, int memfd, const struct announce_msg *m)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);
	struct followed *f = NULL;
	struct stat st;
	int rc = 0;

	memfd = open_writing(memfd);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 && fstat(memfd, &st) == 0 &&
		cred.pid > 0 && r->sink.wants(r->sink.ctx, cred.pid)) {
		f = runtimes_find(r, cred.pid, &st);
		if (f) {
			runtimes_close_copy(f, memfd);
			cleanup_close(&f->fd);
			f->fd = fd;
			send_msg(fd, ANNOUNCE_ENABLE, r->ring_capacity);
			return 0;
		}
		f = runtimes_follow(r, cred.pid, memfd, &st);
	}
	if (!f) {
		cleanup_close(&memfd);
		refuse(r, fd);
		return 0;
	}
	f->fd = fd;
	f->source.is_virtual = m->flags & ANNOUNCE_F_VIRTUAL;
	f->source.is_simulated = m->flags & ANNOUNCE_F_SIMULATED;
	rc = runtimes_tell(r, f);
	send_msg(fd, ANNOUNCE_ENABLE, r->ring_capacity);
	return rc;
}

/* nrt_init failed in a process that may have told us nothing else.  Takes fd, whose end is the answer. */
static int hear_failure(struct runtimes *r, int fd, const struct announce_msg *m)
{
	struct rec_failure failure = {.status = m->flags};
	struct ucred cred;
	socklen_t len = sizeof(cred);
	int rc = 0;

	if (failure.status && r->sink.on_failure &&
		getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 && cred.pid > 0 &&
		r->sink.wants(r->sink.ctx, cred.pid)) {
		failure.pid = (uint32_t)cred.pid;
		runtimes_read_comm(cred.pid, failure.comm);
		rc = r->sink.on_failure(r->sink.ctx, &failure);
	}
	close(fd);
	return rc;
}

/* ---- connections -------------------------------------------------------------------------- */

static struct followed *find_connection(struct runtimes *r, int fd)
{
	for (unsigned i = 0; i < r->live_count; i++)
		if (r->live[i]->fd == fd)
			return r->live[i];
	return NULL;
}

/* No longer a stranger; the descriptor stays open.  False: it was none. */
static bool stranger_forget(struct runtimes *r, int fd)
{
	for (unsigned i = 0; i < r->stranger_count; i++) {
		if (r->strangers[i].fd != fd)
			continue;
		r->stranger_count--;
		memmove(&r->strangers[i], &r->strangers[i + 1],
			(r->stranger_count - i) * sizeof(r->strangers[0]));
		return true;
	}
	return false;
}

static int serve_connection(struct runtimes *r, int fd)
{
	struct announce_msg m;
	struct followed *f = find_connection(r, fd);
	int memfd, rc = receive_msg(fd, &m, &memfd);

	if (rc == 0)
		return 0;
	/* Neither: the connection was closed after its event had been fetched. */
	if (!f && !stranger_forget(r, fd)) {
		cleanup_close(&memfd);
		return 0;
	}
	if (rc == 1 && !f && m.kind == ANNOUNCE_HELLO) {
		if (memfd >= 0)
			return welcome(r, fd, memfd, &m);
		refuse(r, fd);
		return 0;
	}
	if (rc == 1 && !f && m.kind == ANNOUNCE_FAILED) {
		cleanup_close(&memfd);
		return hear_failure(r, fd, &m);
	}
	/* The end, or something that makes no sense: let it go. */
	cleanup_close(&memfd);
	if (f)
		f->fd = -1;
	close(fd);
	return 0;
}

/* Sends the oldest stranger away, unless its hello has come by now. */
static int stranger_settle(struct runtimes *r)
{
	int fd = r->strangers[0].fd;
	int rc = serve_connection(r, fd);

	if (rc == 0 && r->stranger_count && r->strangers[0].fd == fd) {
		stranger_forget(r, fd);
		refuse(r, fd);
	}
	return rc;
}

int announcements_expire(struct runtimes *r, uint64_t now_ns)
{
	int rc = 0;

	while (rc == 0 && r->stranger_count && now_ns - r->strangers[0].since_ns > STRANGER_NS)
		rc = stranger_settle(r);
	return rc;
}

/* No descriptor is left for a caller: it is told so, at the cost of the spare one.  1, 0 when there
 * is no caller, or -errno when not even that is possible. */
static int refuse_with_spare(struct runtimes *r)
{
	char hello[sizeof(struct announce_msg)];
	int rc = 1;

	cleanup_close(&r->spare_fd);
	int fd = accept4(r->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0)
		rc = errno == EAGAIN ? 0 : -errno;
	else {
		/* Unread bytes would reach the caller as a reset, before the answer. */
		(void)!recv(fd, hello, sizeof(hello), MSG_DONTWAIT);
		refuse(r, fd);
	}
	r->spare_fd = open_spare();
	return rc;
}

static int admit(struct runtimes *r, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.fd = fd};
	int rc = 0;

	if (r->stranger_count == MAX_STRANGERS)
		rc = stranger_settle(r);
	if (rc < 0 || epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0) {
		refuse(r, fd);
		return rc;
	}
	r->strangers[r->stranger_count++] = (struct stranger){fd, clock_boot().ns};
	return 0;
}

static int accept_all(struct runtimes *r)
{
	int rc = 0;

	for (int i = 0; rc == 0 && i < BACKLOG; i++) {
		int fd = accept4(r->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd >= 0) {
			rc = admit(r, fd);
			continue;
		}
		if (errno == EAGAIN)
			break;
		if (errno == EINTR || errno == ECONNABORTED)
			continue;
		int refused = refuse_with_spare(r);
		if (refused > 0)
			continue;
		if (refused == 0)
			break;
		/* The queue stays readable: look at it again with the next poll, not at once. */
		r->paused = epoll_ctl(r->epoll_fd, EPOLL_CTL_DEL, r->listen_fd, NULL) == 0;
		break;
	}
	return rc;
}

int runtimes_serve(struct runtimes *r)
{
	struct epoll_event ev[32];
	int n = epoll_wait(r->epoll_fd, ev, 32, 0);

	for (int i = 0; i < n; i++) {
		int fd = ev[i].data.fd;
		int rc = fd == r->listen_fd ? accept_all(r) : serve_connection(r, fd);
		if (rc < 0)
			return rc;
	}
	return announcements_expire(r, clock_boot().ns);
}

void runtimes_disable(struct runtimes *r)
{
	runtimes_detach(r);
	for (unsigned i = 0; i < r->live_count; i++)
		if (r->live[i]->fd >= 0)
			send_msg(r->live[i]->fd, ANNOUNCE_DISABLE, 0);
}
