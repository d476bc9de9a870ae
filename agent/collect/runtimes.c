/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtimes.c - accepts announcements of runtimes and follows their rings.
 *
 * A connection is a small state: it has said hello or not.  A process that closes and opens its
 * runtime again announces the same control file; it keeps its source and its reader, so that no
 * record is read twice.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/collect/runtimes.h"
#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/trace/announce.h"

#define MAX_STRANGERS 64
/* A writer reads the clock, then takes its place in the ring.  One that loses its CPU in between leaves a
 * record older than what was read meanwhile; this is how long that may be. */
#define SLACK_NS 20000000ull

struct followed {
	struct runtime_source source;
	struct ctl_reader *reader;
	dev_t dev;
	ino_t ino;
	int fd;	   /* connection, -1 when it ended */
	bool gone; /* the process is, and its rings were emptied since */
};

struct runtimes {
	int listen_fd;
	int epoll_fd;
	char name[64]; /* with the leading '@' */
	uint32_t ring_capacity;
	uint16_t first_source;
	struct runtimes_sink sink;
	uint64_t refused, failed;
	unsigned strangers; /* connections that have not said hello */
	unsigned count;
	struct followed *list[RUNTIMES_MAX];
};

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
	if (bind(fd, (struct sockaddr *)&addr, alen) < 0 || listen(fd, 128) < 0) {
		int error = errno;
		close(fd);
		return -error;
	}
	return fd;
}

int runtimes_open(uint32_t ring_capacity, uint16_t first_source, const struct runtimes_sink *sink,
	struct runtimes **ret)
{
	struct runtimes *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->ring_capacity = ring_capacity;
	r->first_source = first_source;
	r->sink = *sink;
	r->listen_fd = listen_abstract(r);
	if (r->listen_fd < 0) {
		int error = r->listen_fd;
		free(r);
		return error;
	}
	r->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event ev = {.events = EPOLLIN, .data.fd = r->listen_fd};
	if (r->epoll_fd < 0 || epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, r->listen_fd, &ev) < 0) {
		int error = errno;
		cleanup_close(&r->epoll_fd);
		cleanup_close(&r->listen_fd);
		free(r);
		return -error;
	}
	*ret = r;
	return 0;
}

void runtimes_close(struct runtimes *r)
{
	if (!r)
		return;
	for (unsigned i = 0; i < r->count; i++) {
		cleanup_close(&r->list[i]->fd);
		ctl_reader_close(r->list[i]->reader);
		free(r->list[i]);
	}
	cleanup_close(&r->epoll_fd);
	cleanup_close(&r->listen_fd);
	free(r);
}

const char *runtimes_socket_name(const struct runtimes *r)
{
	return r->name;
}

int runtimes_fd(const struct runtimes *r)
{
	return r->epoll_fd;
}

/* ---- announcements ------------------------------------------------------------------------ */

static int send_msg(int fd, enum announce_kind kind, uint32_t ring_capacity)
{
	struct announce_msg m = {
		.magic = ANNOUNCE_MAGIC, .kind = kind, .ring_capacity = ring_capacity};

	return send(fd, &m, sizeof(m), MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof(m) ? 0
											  : -EPIPE;
}

/* Receives a message and, with HELLO, its descriptor.  1 = message, 0 = nothing yet, -errno = end.
 */
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
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&mh); c; c = CMSG_NXTHDR(&mh, c))
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
			c->cmsg_len == CMSG_LEN(sizeof(int)))
			memcpy(ret_memfd, CMSG_DATA(c), sizeof(int));
	if (n == 0)
		return -EPIPE;
	if (n != (ssize_t)sizeof(*m) || m->magic != ANNOUNCE_MAGIC)
		return -EPROTO;
	return 1;
}

static void read_comm(pid_t pid, char comm[16])
{
	char path[64];

	memset(comm, 0, 16);
	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	(void)file_read_line(path, comm, 16);
}

static struct followed *find_file(struct runtimes *r, pid_t pid, const struct stat *st)
{
	for (unsigned i = 0; i < r->count; i++)
		if (r->list[i]->source.pid == pid && r->list[i]->dev == st->st_dev &&
			r->list[i]->ino == st->st_ino)
			return r->list[i];
	return NULL;
}

/* Takes fd and memfd in any case. */
static int welcome(struct runtimes *r, int fd, int memfd, const struct announce_msg *m)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);
	struct stat st;
	int rc;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0 || fstat(memfd, &st) < 0 ||
		!r->sink.wants(r->sink.ctx, cred.pid))
		goto refuse;
	struct followed *f = find_file(r, cred.pid, &st);
	if (f) {
		close(memfd);
		cleanup_close(&f->fd);
		f->fd = fd;
		send_msg(fd, ANNOUNCE_ENABLE, r->ring_capacity);
		return 0;
	}
	if (r->count == RUNTIMES_MAX)
		goto refuse;
	f = calloc(1, sizeof(*f));
	if (!f)
		goto refuse;
	if (ctl_reader_open(memfd, &f->reader) < 0) {
		free(f);
		goto refuse;
	}
	f->fd = fd;
	f->dev = st.st_dev;
	f->ino = st.st_ino;
	f->source.pid = cred.pid;
	f->source.is_virtual = m->flags & ANNOUNCE_F_VIRTUAL;
	f->source.source = (uint16_t)(r->first_source + r->count);
	read_comm(cred.pid, f->source.comm);
	r->list[r->count++] = f;
	rc = r->sink.on_process(r->sink.ctx, &f->source);
	send_msg(fd, ANNOUNCE_ENABLE, r->ring_capacity);
	return rc;
refuse:
	r->refused++;
	send_msg(fd, ANNOUNCE_REFUSE, 0);
	close(memfd);
	close(fd);
	return 0;
}

static struct followed *find_connection(struct runtimes *r, int fd)
{
	for (unsigned i = 0; i < r->count; i++)
		if (r->list[i]->fd == fd)
			return r->list[i];
	return NULL;
}

static int serve_connection(struct runtimes *r, int fd)
{
	struct announce_msg m;
	int memfd, rc = receive_msg(fd, &m, &memfd);
	struct followed *f = find_connection(r, fd);

	if (rc == 0)
		return 0;
	if (!f)
		r->strangers--;
	if (rc == 1 && !f && m.kind == ANNOUNCE_HELLO && memfd >= 0)
		return welcome(r, fd, memfd, &m);
	/* The end, or something that makes no sense: let it go. */
	cleanup_close(&memfd);
	if (f)
		f->fd = -1;
	close(fd);
	return 0;
}

static void accept_all(struct runtimes *r)
{
	for (;;) {
		int fd = accept4(r->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		struct epoll_event ev = {.events = EPOLLIN, .data.fd = fd};

		if (fd < 0)
			return;
		if (r->strangers == MAX_STRANGERS ||
			epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0) {
			r->refused++;
			close(fd);
			continue;
		}
		r->strangers++;
	}
}

int runtimes_serve(struct runtimes *r)
{
	struct epoll_event ev[32];
	int n = epoll_wait(r->epoll_fd, ev, 32, 0);

	for (int i = 0; i < n; i++) {
		if (ev[i].data.fd == r->listen_fd) {
			accept_all(r);
			continue;
		}
		int rc = serve_connection(r, ev[i].data.fd);
		if (rc < 0)
			return rc;
	}
	return 0;
}

void runtimes_disable(struct runtimes *r)
{
	for (unsigned i = 0; i < r->count; i++)
		if (r->list[i]->fd >= 0)
			send_msg(r->list[i]->fd, ANNOUNCE_DISABLE, 0);
}

/* ---- rings -------------------------------------------------------------------------------- */

struct poll_ctx {
	struct runtimes *r;
	struct followed *f;
	int sink_error; /* what the sink returned, apart from what the reader says */
};

static int poll_batch(
	void *ctx, uint32_t nc_idx, uint32_t lane, const struct trace_record *records, size_t count)
{
	struct poll_ctx *p = ctx;

	return p->sink_error = p->r->sink.on_records(
		       p->r->sink.ctx, &p->f->source, nc_idx, lane, records, count);
}

static int poll_name(void *ctx, uint64_t id, const char *text, uint32_t len)
{
	struct poll_ctx *p = ctx;

	return p->sink_error = p->r->sink.on_name(p->r->sink.ctx, &p->f->source, id, text, len);
}

long runtimes_poll(struct runtimes *r, bool ended)
{
	long total = 0;

	for (unsigned i = 0; i < r->count; i++) {
		struct poll_ctx p = {r, r->list[i], 0};
		if (p.f->source.failed)
			continue;
		/* A closed connection means that the process closed its runtime or died. */
		bool dead = ended || p.f->fd < 0;
		bool gone = p.f->fd < 0 && kill(p.f->source.pid, 0) < 0 && errno == ESRCH;
		long n = ctl_reader_poll(
			p.f->reader, dead, clock_boot().ns, poll_batch, poll_name, &p);
		if (p.sink_error)
			return p.sink_error;
		if (n < 0) {
			p.f->source.failed = true;
			r->failed++;
			cleanup_close(&p.f->fd);
			continue;
		}
		p.f->gone = gone;
		total += n;
	}
	return total;
}

bool runtimes_get(
	const struct runtimes *r, unsigned i, struct runtime_source *ret, uint64_t *ret_watermark)
{
	if (i >= r->count)
		return false;
	*ret = r->list[i]->source;
	*ret_watermark = ctl_reader_watermark(r->list[i]->reader, clock_boot().ns);
	if (r->list[i]->gone)
		*ret_watermark = UINT64_MAX;
	else
		*ret_watermark -= *ret_watermark < SLACK_NS ? *ret_watermark : SLACK_NS;
	return true;
}

const struct ctl_reader *runtimes_reader(const struct runtimes *r, unsigned i)
{
	return i < r->count ? r->list[i]->reader : NULL;
}

uint64_t runtimes_refused(const struct runtimes *r)
{
	return r->refused;
}

uint64_t runtimes_failed(const struct runtimes *r)
{
	return r->failed;
}
