/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtimes.c - follows the rings of runtimes that announced themselves (runtimes_announce.c).
 *
 * A process that closes and opens its runtime again announces the same control file; it keeps its
 * source and its reader, so that no record is read twice.  Once the process is gone and its rings
 * are empty, the source is retired: its memory is let go, its last counters stay.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/collect/runtimes_parts.h"
#include "agent/collect/time_shift.h"
#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/record/rec_put.h"

#define LAST_TRIES 3u /* of a poll that fails, when there will be no other */

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
	r->listen_fd = r->epoll_fd = r->spare_fd = -1;
	raise_limit(&r->old_limit);
	rc = announcements_open(r);
	if (rc < 0) {
		runtimes_close(r);
		return rc;
	}
	*ret = r;
	return 0;
}

static void followed_free(struct followed *f)
{
	cleanup_close(&f->fd);
	cleanup_close(&f->pidfd);
	cleanup_close(&f->maps);
	attach_unsubscribe(&f->page);
	attach_close(&f->page);
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

/* ---- processes ---------------------------------------------------------------------------- */

void runtimes_read_comm(pid_t pid, char comm[16])
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

struct followed *runtimes_find(struct runtimes *r, pid_t pid, const struct stat *st)
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

struct followed *runtimes_follow(struct runtimes *r, pid_t pid, int memfd, const struct stat *st)
{
	struct followed *f;
	pid_t holder;

	if (failed_before(r, pid, st) || !make_room(r) || attach_claim(memfd, &holder) < 0)
		return NULL;
	f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	if (time_shift_of(pid, &f->shift_ns) < 0 ||
		ctl_reader_open(memfd, CTL_SUB_AGENT, &f->reader) < 0) {
		free(f);
		return NULL;
	}
	f->fd = f->maps = -1;
	f->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	f->dev = st->st_dev;
	f->ino = st->st_ino;
	f->source.pid = pid;
	f->source.source = (uint16_t)(r->first_source + r->count);
	runtimes_read_comm(pid, f->source.comm);
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

int runtimes_tell(struct runtimes *r, struct followed *f)
{
	struct news_ctx n = {r, f};
	int rc = r->sink.on_process(r->sink.ctx, &f->source);

	return rc < 0 ? rc
		      : threads_open(&f->threads, f->source.pid, f->pidfd,
				ctl_reader_pid(f->reader), tell_threads, &n);
}

/* ---- rings -------------------------------------------------------------------------------- */

struct poll_ctx {
	struct runtimes *r;
	struct followed *f;
	int sink_error; /* what the sink returned, apart from what the reader says */
};

static int tell_records(struct poll_ctx *p, uint32_t nc_idx, uint32_t lane,
	const struct trace_record *records, size_t count)
{
	struct news_ctx n = {p->r, p->f};

	p->sink_error = threads_see(&p->f->threads, records, count, tell_threads, &n);
	if (p->sink_error == 0)
		p->sink_error = p->r->sink.on_records(
			p->r->sink.ctx, &p->f->source, nc_idx, lane, records, count);
	return p->sink_error;
}

static int poll_batch(
	void *ctx, uint32_t nc_idx, uint32_t lane, const struct trace_record *records, size_t count)
{
	struct poll_ctx *p = ctx;
	struct trace_record shifted[256];
	int rc = 0;

	if (!p->f->shift_ns)
		return tell_records(p, nc_idx, lane, records, count);
	for (size_t at = 0, n; at < count && rc >= 0; at += n) {
		n = count - at < 256 ? count - at : 256;
		memcpy(shifted, records + at, n * sizeof(*records));
		time_shift_records(shifted, n, p->f->shift_ns);
		rc = tell_records(p, nc_idx, lane, shifted, n);
	}
	return rc;
}

static int poll_name(void *ctx, uint64_t id, const char *text, uint32_t len)
{
	struct poll_ctx *p = ctx;

	return p->sink_error = p->r->sink.on_name(p->r->sink.ctx, &p->f->source, id, text, len);
}

/* Without a descriptor a later process of the same number only delays. */
bool runtimes_gone(const struct followed *f)
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
	f->final_sessions = ctl_reader_sessions(f->reader);
	attach_unsubscribe(&f->page);
	attach_close(&f->page);
	ctl_reader_close(f->reader); /* and the lock with it */
	f->reader = NULL;
	threads_close(&f->threads);
	cleanup_close(&f->pidfd);
	cleanup_close(&f->maps);
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
	bool gone = f->fd < 0 && (runtimes_gone(f) || runtimes_replaced(r, f));
	bool dead = ended || (p.f->fd < 0 && !p.f->attached);
	long n;

	if (rc < 0)
		return rc;
	/* Memory that is short may be there the next time; at the end the next time is now. */
	for (unsigned tries = ended ? LAST_TRIES : 1; tries; tries--) {
		n = ctl_reader_poll(
			f->reader, dead || gone, clock_boot().ns, poll_batch, poll_name, &p);
		if (n >= 0 || p.sink_error || ctl_reader_failed(f->reader))
			break;
	}
	if (p.sink_error)
		return p.sink_error;
	if (n < 0 && (ended || ctl_reader_failed(f->reader))) {
		f->source.failed = true;
		r->failed++;
	}
	if (f->source.failed || (gone && n == 0 && all_read(f->reader)))
		retire(f);
	return n < 0 ? 0 : n;
}

long runtimes_poll(struct runtimes *r, bool ended)
{
	unsigned kept = 0;
	long total = 0, n = announcements_expire(r, clock_boot().ns);

	if (r->paused)
		r->paused = announcements_watch(r) < 0;
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
		mark -= mark < REC_SLACK_NS ? mark : REC_SLACK_NS;
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

uint32_t runtimes_sessions(const struct runtimes *r, unsigned i)
{
	const struct followed *f = r->list[i];

	return f->reader ? ctl_reader_sessions(f->reader) : f->final_sessions;
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

uint64_t runtimes_replacements(const struct runtimes *r)
{
	return r->replaced;
}
