/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtimes.c - accepts announcements of runtimes and follows their rings.
 *
 * A connection is a small state: it has said hello or not; who has not is a stranger, and must soon.
 * A process that closes and opens its runtime again announces the same control file; it keeps its
 * source and its reader, so that no record is read twice.  Once the process is gone and its rings
 * are empty, the source is retired: its memory is let go, its last counters stay.
 *
 * At the limit of descriptors a spare one is given up for a moment, so that callers can be refused
 * instead of waiting in the queue, where they would wake the recorder for ever.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/collect/runtimes.h"
#include "agent/collect/threads.h"
#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/trace/announce.h"

#define MAX_STRANGERS 64u
#define STRANGER_NS (ANNOUNCE_TIMEOUT_MS * 1000000ull)
#define BACKLOG 128
/* A writer reads the clock, then takes its place in the ring.  One that loses its CPU in between leaves a
 * record older than what was read meanwhile; this is how long that may be. */
#define SLACK_NS 20000000ull

/* What stays of a ring when its memory is let go. */
struct final_ring {
	uint32_t nc_idx, lane;
	struct ring_counters counters;
};

struct followed {
	struct runtime_source source;
	struct ctl_reader *reader; /* NULL once retired; then the final numbers hold */
	struct threads threads;
	dev_t dev;
	ino_t ino;
	int fd;	   /* connection, -1 when it ended */
	int pidfd; /* -1: there was no descriptor for it */
	uint32_t final_count;
	struct final_ring *final;
	uint64_t final_names_lost;
};

/* A connection that has not said hello. */
struct stranger {
	int fd;
	uint64_t since_ns; /* BOOTTIME */
};

struct runtimes {
	int listen_fd;
	int epoll_fd;
	int spare_fd;
	bool paused;   /* not listening until the next poll */
	char name[64]; /* with the leading '@' */
	uint32_t ring_capacity;
	uint16_t first_source;
	struct runtimes_sink sink;
	struct rlimit old_limit;
	uint64_t refused, failed;
	unsigned stranger_count;
	struct stranger strangers[MAX_STRANGERS]; /* oldest first */
	unsigned live_count;
	struct followed *live[RUNTIMES_MAX]; /* those of the list that have a reader */
	unsigned count, room;
	struct followed **list; /* all, by source */
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
	if (bind(fd, (struct sockaddr *)&addr, alen) < 0 || listen(fd, BACKLOG) < 0) {
		int error = errno;
		close(fd);
		return -error;
	}
	return fd;
}

/* Each runtime takes three descriptors: the usual soft limit is soon used up. */
static void raise_limit(struct rlimit *old)
{
	struct rlimit all;

	if (getrlimit(RLIMIT_NOFILE, old) < 0) {
		*old = (struct rlimit){0, 0};
		return;
	}
	all = (struct rlimit){old->rlim_max, old->rlim_max};
	if (setrlimit(RLIMIT_NOFILE, &all) < 0)
		return; /* then it stays as it is */
}

static int open_spare(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static int listen_watch(struct runtimes *r)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.fd = r->listen_fd};

	return epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, r->listen_fd, &ev) < 0 ? -errno : 0;
}

int runtimes_open(uint32_t ring_capacity, uint16_t first_source, const struct runtimes_sink *sink,
	struct runtimes **ret)
{
	struct runtimes *r = calloc(1, sizeof(*r));
	int rc;

	if (!r)
		return -ENOMEM;
	r->ring_capacity = ring_capacity;
	r->first_source = first_source;
	r->sink = *sink;
	r->epoll_fd = r->spare_fd = -1;
	raise_limit(&r->old_limit);
	rc = r->listen_fd = listen_abstract(r);
	if (rc < 0) {
		r->listen_fd = -1;
		goto fail;
	}
	r->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	r->spare_fd = open_spare();
	rc = r->epoll_fd < 0 || r->spare_fd < 0 ? -errno : listen_watch(r);
	if (rc < 0)
		goto fail;
	*ret = r;
	return 0;
fail:
	runtimes_close(r);
	return rc;
}

static void followed_free(struct followed *f)
{
	cleanup_close(&f->fd);
	cleanup_close(&f->pidfd);
	ctl_reader_close(f->reader);
	threads_close(&f->threads);
	free(f->final);
	free(f);
}

void runtimes_close(struct runtimes *r)
{
	if (!r)
		return;
	for (unsigned i = 0; i < r->count; i++)
		followed_free(r->list[i]);
	for (unsigned i = 0; i < r->stranger_count; i++)
		close(r->strangers[i].fd);
	free(r->list);
	cleanup_close(&r->spare_fd);
	cleanup_close(&r->epoll_fd);
	cleanup_close(&r->listen_fd);
	if (r->old_limit.rlim_max && setrlimit(RLIMIT_NOFILE, &r->old_limit) < 0)
		errno = 0; /* lowering to what was allowed before cannot fail */
	free(r);
}

const struct rlimit *runtimes_old_limit(const struct runtimes *r)
{
	return r->old_limit.rlim_max ? &r->old_limit : NULL;
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

static void read_comm(pid_t pid, char comm[16])
{
	char path[64];

	memset(comm, 0, 16);
	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	(void)file_read_line(path, comm, 16);
}

static bool same_file(const struct followed *f, pid_t pid, const struct stat *st)
{
	return f->source.pid == pid && f->dev == st->st_dev && f->ino == st->st_ino;
}

static struct followed *find_file(struct runtimes *r, pid_t pid, const struct stat *st)
{
	for (unsigned i = 0; i < r->live_count; i++)
		if (same_file(r->live[i], pid, st))
			return r->live[i];
	return NULL;
}

static bool failed_before(const struct runtimes *r, pid_t pid, const struct stat *st)
{
	for (unsigned i = 0; i < r->count; i++)
		if (r->list[i]->source.failed && same_file(r->list[i], pid, st))
			return true;
	return false;
}

/* Room for one more, also in the numbers of sources. */
static bool make_room(struct runtimes *r)
{
	if (r->live_count == RUNTIMES_MAX || r->count > (unsigned)UINT16_MAX - r->first_source)
		return false;
	if (r->count < r->room)
		return true;
	unsigned room = r->room ? 2 * r->room : 16;
	struct followed **list = realloc(r->list, room * sizeof(struct followed *));
	if (!list)
		return false;
	r->list = list;
	r->room = room;
	return true;
}

/* Takes memfd when it succeeds, fd never. */
static struct followed *follow(struct runtimes *r, pid_t pid, int memfd, const struct stat *st)
{
	struct followed *f;

	if (failed_before(r, pid, st) || !make_room(r))
		return NULL;
	f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	if (ctl_reader_open(memfd, &f->reader) < 0) {
		free(f);
		return NULL;
	}
	f->fd = -1;
	f->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	f->dev = st->st_dev;
	f->ino = st->st_ino;
	f->source.pid = pid;
	f->source.source = (uint16_t)(r->first_source + r->count);
	read_comm(pid, f->source.comm);
	r->list[r->count++] = f;
	r->live[r->live_count++] = f;
	return f;
}

struct news_ctx {
	struct runtimes *r;
	struct followed *f;
};

static int tell_threads(void *ctx, const struct rec_thread *rows, size_t count)
{
	struct news_ctx *n = ctx;

	return n->r->sink.on_threads(n->r->sink.ctx, &n->f->source, rows, count);
}

static int tell_process(struct runtimes *r, struct followed *f)
{
	struct news_ctx n = {r, f};
	int rc = r->sink.on_process(r->sink.ctx, &f->source);

	return rc < 0 ? rc
		      : threads_open(&f->threads, f->source.pid, f->pidfd,
				ctl_reader_pid(f->reader), tell_threads, &n);
}

/* Takes fd and memfd in any case. */
static int welcome(struct runtimes *r, int fd, int memfd, const struct announce_msg *m)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);
	struct followed *f = NULL;
	struct stat st;
	int rc = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 && fstat(memfd, &st) == 0 &&
		cred.pid > 0 && r->sink.wants(r->sink.ctx, cred.pid)) {
		f = find_file(r, cred.pid, &st);
		if (f) {
			close(memfd);
			cleanup_close(&f->fd);
			f->fd = fd;
			send_msg(fd, ANNOUNCE_ENABLE, r->ring_capacity);
			return 0;
		}
		f = follow(r, cred.pid, memfd, &st);
	}
	if (!f) {
		cleanup_close(&memfd);
		refuse(r, fd);
		return 0;
	}
	f->fd = fd;
	f->source.is_virtual = m->flags & ANNOUNCE_F_VIRTUAL;
	rc = tell_process(r, f);
	send_msg(fd, ANNOUNCE_ENABLE, r->ring_capacity);
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

static int strangers_expire(struct runtimes *r, uint64_t now_ns)
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
	return strangers_expire(r, clock_boot().ns);
}

void runtimes_disable(struct runtimes *r)
{
	for (unsigned i = 0; i < r->live_count; i++)
		if (r->live[i]->fd >= 0)
			send_msg(r->live[i]->fd, ANNOUNCE_DISABLE, 0);
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
	struct news_ctx n = {p->r, p->f};

	p->sink_error = threads_see(&p->f->threads, records, count, tell_threads, &n);
	if (p->sink_error == 0)
		p->sink_error = p->r->sink.on_records(
			p->r->sink.ctx, &p->f->source, nc_idx, lane, records, count);
	return p->sink_error;
}

static int poll_name(void *ctx, uint64_t id, const char *text, uint32_t len)
{
	struct poll_ctx *p = ctx;

	return p->sink_error = p->r->sink.on_name(p->r->sink.ctx, &p->f->source, id, text, len);
}

/* Zombies are gone too.  Without a descriptor a later process of the same number only delays. */
static bool process_gone(const struct followed *f)
{
	struct pollfd ended = {.fd = f->pidfd, .events = POLLIN};

	if (f->pidfd >= 0)
		return poll(&ended, 1, 0) == 1;
	return kill(f->source.pid, 0) < 0 && errno == ESRCH;
}

/* Lets its memory go and keeps the numbers.  When there is no room for them, nothing happens. */
static void retire(struct followed *f)
{
	uint32_t count = ctl_reader_rings(f->reader);

	f->final = calloc(count, sizeof(*f->final));
	if (!f->final)
		return;
	f->final_count = count;
	for (uint32_t i = 0; i < count; i++) {
		struct final_ring *l = &f->final[i];
		ctl_reader_counters(f->reader, i, &l->nc_idx, &l->lane, &l->counters);
	}
	f->final_names_lost = ctl_reader_names_lost(f->reader);
	ctl_reader_close(f->reader);
	f->reader = NULL;
	threads_close(&f->threads);
	cleanup_close(&f->pidfd);
	cleanup_close(&f->fd);
}

/* A poll of a bounded part may deliver nothing although there is more. */
static bool all_read(const struct ctl_reader *reader)
{
	struct ring_counters c;
	uint32_t nc, lane;

	for (uint32_t i = 0; i < ctl_reader_rings(reader); i++) {
		ctl_reader_counters(reader, i, &nc, &lane, &c);
		if (c.unread)
			return false;
	}
	return true;
}

static long poll_one(struct runtimes *r, struct followed *f, bool ended)
{
	struct poll_ctx p = {r, f, 0};
	struct news_ctx news = {r, f};
	int rc = threads_refresh(&f->threads, clock_boot().ns, tell_threads, &news);
	/* A closed connection means that the process closed its runtime or died; it may come back with
	 * the same file unless it died.  Asked before the rings are read: nothing comes after. */
	bool gone = f->fd < 0 && process_gone(f);
	bool dead = ended || p.f->fd < 0;
	if (rc < 0)
		return rc;
	long n = ctl_reader_poll(
		p.f->reader, dead || gone, clock_boot().ns, poll_batch, poll_name, &p);

	if (p.sink_error)
		return p.sink_error;
	if (n < 0) {
		f->source.failed = true;
		r->failed++;
		n = 0;
	}
	if (f->source.failed || (gone && n == 0 && all_read(f->reader)))
		retire(f);
	return n;
}

long runtimes_poll(struct runtimes *r, bool ended)
{
	unsigned kept = 0;
	long total = 0, n = strangers_expire(r, clock_boot().ns);

	if (r->paused)
		r->paused = listen_watch(r) < 0;
	for (unsigned i = 0; n >= 0 && i < r->live_count; i++) {
		if (r->live[i]->source.failed)
			retire(r->live[i]); /* there was no room before */
		else
			n = poll_one(r, r->live[i], ended);
		total += n;
	}
	for (unsigned i = 0; i < r->live_count; i++)
		if (r->live[i]->reader)
			r->live[kept++] = r->live[i];
	r->live_count = kept;
	return n < 0 ? n : total;
}

/* ---- what is known ------------------------------------------------------------------------ */

bool runtimes_get(
	const struct runtimes *r, unsigned i, struct runtime_source *ret, uint64_t *ret_watermark)
{
	if (i >= r->count)
		return false;
	const struct followed *f = r->list[i];
	uint64_t mark = f->reader ? ctl_reader_watermark(f->reader, clock_boot().ns) : UINT64_MAX;

	*ret = f->source;
	if (f->reader)
		mark -= mark < SLACK_NS ? mark : SLACK_NS;
	*ret_watermark = mark; /* nothing more comes from one that was let go */
	return true;
}

const struct ctl_reader *runtimes_reader(const struct runtimes *r, unsigned i)
{
	return i < r->count ? r->list[i]->reader : NULL;
}

uint32_t runtimes_ring_count(const struct runtimes *r, unsigned i)
{
	const struct followed *f = r->list[i];

	return f->reader ? ctl_reader_rings(f->reader) : f->final_count;
}

void runtimes_ring(const struct runtimes *r, unsigned i, uint32_t n, uint32_t *ret_nc_idx,
	uint32_t *ret_lane, struct ring_counters *ret)
{
	const struct followed *f = r->list[i];

	if (f->reader) {
		ctl_reader_counters(f->reader, n, ret_nc_idx, ret_lane, ret);
		return;
	}
	*ret_nc_idx = f->final[n].nc_idx;
	*ret_lane = f->final[n].lane;
	*ret = f->final[n].counters;
}

uint64_t runtimes_names_lost(const struct runtimes *r, unsigned i)
{
	const struct followed *f = r->list[i];

	return f->reader ? ctl_reader_names_lost(f->reader) : f->final_names_lost;
}

uint64_t runtimes_threads_gone(const struct runtimes *r, unsigned i)
{
	return r->list[i]->threads.gone_count;
}

uint64_t runtimes_refused(const struct runtimes *r)
{
	return r->refused;
}

uint64_t runtimes_failed(const struct runtimes *r)
{
	return r->failed;
}
