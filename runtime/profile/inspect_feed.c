/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_feed.c - sources in, frames out.
 *
 * There is no descriptor for time here: one that a program closes and opens again cannot be told from another timer's.  The
 * caller has the ticks; that the clock was set shows in the difference of the two clocks, which is looked at
 * with each tick.
 */
#include "runtime/profile/inspect_feed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "runtime/record/rec_put.h"
#include "runtime/trace/sys_trace_config.h"
#include "runtime/trace/trace.h"

#define SOURCE REC_SOURCE_RUNTIME0
#define TICKS_PER_FLUSH 10u /* 100 ms */
#define SECOND_NS 1000000000ull
#define CLOCK_STEP_NS 200000 /* NTP moves a clock by a fortieth of that between two ticks */
#define ROWS_OF_RING 8u
#define RINGS_AHEAD 64u	   /* that may be new in a flush */
#define COUNTERS_AHEAD 16u /* others */
#define FLUSH_ROUNDS 8u	   /* of 2^20 places in the rings */
#define SETTLE_MS 50u	   /* for a thread that was held up in the middle of an event */

struct inspect_feed {
	struct rec_writer *rec;
	struct ctl_reader *reader; /* NULL: no events */
	char *path;
	bool subscribed;
	bool cpu_util, host_memory;
	uint32_t pid;
	uint64_t period_ns;
	uint64_t sampled_ns, second_ns; /* when it was last due, when it was last done */
	uint64_t ticks;
	int64_t offset_ns; /* realtime - boottime at the last tick */
	uint64_t unmarked; /* records since the last watermark */
	uint64_t cpu_ns;   /* of the thread, when it began */
	uint32_t rings_reserved;
	int error;
	int trouble;				      /* of the last look at the rings */
	struct ring_counters last[CTL_MAX_RINGS + 1]; /* as they were written */
	struct sampler_cpu rows[SAMPLER_MAX_CPUS];
};

/* ---- events ------------------------------------------------------------------------------- */

static int on_records(
	void *ctx, uint32_t nc_idx, uint32_t lane, const struct trace_record *records, size_t count)
{
	struct inspect_feed *f = ctx;

	return rec_put_records(f->rec, SOURCE, nc_idx, lane, records, count);
}

static int on_name(void *ctx, uint64_t id, const char *text, uint32_t len)
{
	struct inspect_feed *f = ctx;

	return rec_put_name(f->rec, SOURCE, id, text, len);
}

/* One look at the rings.  0 or an error of the writer. */
static int drain(struct inspect_feed *f, bool last, bool *ret_more)
{
	long n;

	*ret_more = false;
	if (!f->reader)
		return 0;
	n = ctl_reader_poll(f->reader, last, clock_boot().ns, on_records, on_name, f);
	if (n > 0)
		f->unmarked += (uint64_t)n;
	f->trouble = n < 0 ? (int)n : 0;
	*ret_more = n >= 0 && ctl_reader_more(f->reader);
	return rec_writer_error(f->rec);
}

static int put_mark(struct inspect_feed *f)
{
	uint64_t now = clock_boot().ns, mark = now;

	if (f->reader)
		mark = ctl_reader_watermark(f->reader, now);
	f->unmarked = 0;
	return rec_put_watermark(
		f->rec, SOURCE, mark - (mark < REC_SLACK_NS ? mark : REC_SLACK_NS));
}

/* Those of the first `most` rings that have changed. */
static int put_counters(struct inspect_feed *f, uint32_t most)
{
	uint32_t count = f->reader ? ctl_reader_rings(f->reader) : 0;
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < count && i < most; i++) {
		struct ring_counters v;
		uint32_t nc, lane;

		ctl_reader_counters(f->reader, i, &nc, &lane, &v);
		if (!memcmp(&v, &f->last[i], sizeof(v)))
			continue;
		f->last[i] = v;
		rc = rec_put_ring_counters(
			f->rec, SOURCE, nc, lane, &v, ctl_reader_failed(f->reader));
	}
	return rc;
}

/* Memory for what a flush may need until the next time. */
static int reserve(struct inspect_feed *f)
{
	uint32_t rings = (f->reader ? ctl_reader_rings(f->reader) : 0) + RINGS_AHEAD;
	int rc = rec_writer_reserve(f->rec, (size_t)RINGS_AHEAD * ROWS_OF_RING + COUNTERS_AHEAD);

	if (rc == 0)
		f->rings_reserved = rings;
	return rc;
}

/* ---- the host ----------------------------------------------------------------------------- */

static uint64_t thread_cpu_ns(void)
{
	struct timespec t = {0, 0};

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_nsec;
}

static int put_cost(struct inspect_feed *f)
{
	const struct rec_counter cost[] = {
		{REC_C_AGENT_CPU_NS, 0, thread_cpu_ns() - f->cpu_ns},
		{REC_C_AGENT_BYTES, 0, rec_writer_bytes(f->rec)},
		{REC_C_AGENT_FAILED, 0, f->trouble || (f->reader && ctl_reader_failed(f->reader))},
	};
	const uint64_t names_lost = f->reader ? ctl_reader_names_lost(f->reader) : 0;
	const struct rec_counter names = {REC_C_NAMES_LOST, 0, names_lost};
	int rc = rec_writer_frame(
		f->rec, REC_COUNTERS, REC_SOURCE_RECORDER, cost, sizeof(cost), NULL, 0);

	return rc < 0 ? rc
		      : rec_writer_frame(
				f->rec, REC_COUNTERS, SOURCE, &names, sizeof(names), NULL, 0);
}

static int put_samples(struct inspect_feed *f)
{
	int rc = f->cpu_util ? rec_put_cpus(f->rec, f->rows) : 0;

	if (rc == 0 && f->host_memory)
		rc = rec_put_memory(f->rec, f->pid);
	return rc < 0 ? rc : 0;
}

/* Periods are counted from the begin: a tick that came late makes none of the next ones later. */
static bool sample_is_due(struct inspect_feed *f, uint64_t now)
{
	uint64_t periods = (now - f->sampled_ns) / f->period_ns;

	f->sampled_ns += periods * f->period_ns;
	return periods && (f->cpu_util || f->host_memory);
}

/* Was the clock set since the last tick?  The agent is told by the kernel (TFD_TIMER_CANCEL_ON_SET);
 * a thread that looks every 10 ms anyway needs no timer for it in somebody else's program. */
static bool clock_was_set(struct inspect_feed *f, uint64_t boot_ns)
{
	struct timespec t;
	int64_t before = f->offset_ns, by;

	clock_gettime(CLOCK_REALTIME, &t);
	f->offset_ns = (int64_t)((uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_nsec - boot_ns);
	by = f->offset_ns - before;
	return by > CLOCK_STEP_NS || by < -CLOCK_STEP_NS;
}

/* What is due once in a second, or when the clock was set. */
static int put_second(struct inspect_feed *f, uint64_t now)
{
	bool due = now - f->second_ns >= SECOND_NS;
	int rc = 0;

	if (clock_was_set(f, now) || due)
		rc = rec_put_clock(f->rec);
	if (!due || rc < 0)
		return rc;
	f->second_ns = now;
	rc = put_cost(f);
	return rc < 0 ? rc : put_mark(f);
}

/* ---- the ticks ---------------------------------------------------------------------------- */

static void unsubscribe(struct inspect_feed *f)
{
	if (f->subscribed)
		trace_unsubscribe(CTL_SUB_INSPECT);
	f->subscribed = false;
}

/* What is recorded is kept; nothing more comes. */
static int give_up(struct inspect_feed *f, int error)
{
	if (f->error)
		return f->error;
	f->error = error;
	unsubscribe(f);
	(void)rec_writer_stop(f->rec, -1);
	return error;
}

static int tick(struct inspect_feed *f)
{
	uint64_t now = clock_boot().ns;
	bool more;
	int rc = drain(f, false, &more);

	if (rc == 0)
		rc = put_second(f, now);
	if (rc == 0 && sample_is_due(f, now))
		rc = put_samples(f);
	/* Behind the data that they close off. */
	if (rc == 0 && f->unmarked)
		rc = put_mark(f);
	if (rc < 0 || ++f->ticks % TICKS_PER_FLUSH)
		return rc;
	rc = put_counters(f, UINT32_MAX); /* no older than the records that are flushed with them */
	if (rc == 0)
		rc = rec_writer_flush(f->rec);
	return rc < 0 ? rc : reserve(f);
}

int inspect_feed_tick(struct inspect_feed *f)
{
	int rc = f->error ? f->error : tick(f);

	return rc < 0 ? give_up(f, rc) : 0;
}

int inspect_feed_trouble(const struct inspect_feed *f)
{
	/* Memory may be there the next time. */
	return f->error || f->trouble == -ENOMEM ? 0 : f->trouble;
}

int inspect_feed_flush(struct inspect_feed *f)
{
	unsigned rounds = FLUSH_ROUNDS;
	bool more = true;
	int rc = f->error;

	while (rc == 0 && more && rounds--)
		rc = drain(f, false, &more);
	if (rc == 0)
		rc = put_mark(f);
	if (rc == 0)
		rc = put_counters(f, f->rings_reserved);
	return rc < 0 ? rc : rec_writer_flush(f->rec);
}

int inspect_feed_file(struct inspect_feed *f, const char *name, const char *type, uint64_t bytes)
{
	struct rec_file head = {.bytes = bytes};

	if (f->error)
		return f->error;
	memcpy(head.type, type, strnlen(type, sizeof(head.type)));
	return rec_writer_frame(f->rec, REC_FILE, REC_SOURCE_RECORDER, &head, sizeof(head), name,
		strnlen(name, 255));
}

/* ---- begin -------------------------------------------------------------------------------- */

static int put_start(struct inspect_feed *f, const struct inspect_feed_wish *w)
{
	struct rec_process p = {.pid = f->pid, .is_virtual = w->is_virtual};
	uint64_t now = clock_boot().ns;
	int rc = rec_writer_frame(
		f->rec, REC_HEADER, REC_SOURCE_RECORDER, w->header, strlen(w->header), NULL, 0);

	(void)file_read_line("/proc/self/comm", p.comm, sizeof(p.comm));
	(void)clock_was_set(f, now);
	f->second_ns = now;
	if (rc == 0)
		rc = rec_put_clock(f->rec);
	for (uint32_t i = 0; rc == 0 && i < w->device_count; i++)
		rc = rec_writer_frame(f->rec, REC_DEVICE, REC_SOURCE_RECORDER, &w->devices[i],
			sizeof(*w->devices), NULL, 0);
	if (rc == 0)
		rc = rec_writer_frame(f->rec, REC_PROCESS, SOURCE, &p, sizeof(p), NULL, 0);
	if (rc == 0)
		rc = put_samples(f);
	f->sampled_ns = now;
	if (rc == 0)
		rc = rec_writer_flush(f->rec);
	return rc < 0 ? rc : reserve(f);
}

/* From here on no event is missed. */
static int subscribe(struct inspect_feed *f, const struct nrt_sys_trace_config *events)
{
	uint64_t max = events->max_events_per_nc;
	struct trace_filter filter = sys_trace_filter(events);
	int rc = trace_reader_open(CTL_SUB_INSPECT, &f->reader);

	if (rc == 0)
		rc = ctl_reader_skip(f->reader); /* what others have captured */
	if (rc == 0)
		rc = trace_subscribe(
			CTL_SUB_INSPECT, &filter, max > UINT32_MAX ? UINT32_MAX : (uint32_t)max);
	f->subscribed = rc == 0;
	return rc;
}

static void feed_free(struct inspect_feed *f)
{
	unsubscribe(f);
	ctl_reader_close(f->reader);
	free(f->path);
	free(f);
}

int inspect_feed_open(const struct inspect_feed_wish *w, struct inspect_feed **ret)
{
	struct inspect_feed *f = calloc(1, sizeof(*f));
	int rc;

	if (!f)
		return -ENOMEM;
	f->path = strdup(w->path);
	f->pid = (uint32_t)getpid();
	f->cpu_util = w->cpu_util;
	f->host_memory = w->host_memory;
	f->period_ns = w->period_ms * 1000000ull;
	rc = f->path ? rec_writer_open(w->path, &f->rec) : -ENOMEM;
	if (rc < 0) {
		feed_free(f);
		return rc;
	}
	rc = put_start(f, w);
	if (rc == 0 && w->events)
		rc = subscribe(f, w->events);
	if (rc < 0)
		inspect_feed_drop(f);
	else
		*ret = f;
	return rc;
}

void inspect_feed_begin(struct inspect_feed *f)
{
	f->cpu_ns = thread_cpu_ns();
}

/* ---- end ---------------------------------------------------------------------------------- */

/* Nothing new comes.  A thread that is in the middle of an event gets the time to end it. */
static int drain_rest(struct inspect_feed *f)
{
	const struct timespec nap = {.tv_nsec = 1000000};
	uint64_t begin = clock_boot().ns;
	bool more;
	int rc = drain(f, false, &more);

	for (unsigned ms = 0; rc == 0 && f->reader; ms++) {
		if (!more && ctl_reader_watermark(f->reader, begin) >= begin)
			break;
		if (!more && ms >= SETTLE_MS)
			break;
		if (!more)
			(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
		rc = drain(f, false, &more);
	}
	do
		rc = rc < 0 ? rc : drain(f, true, &more);
	while (rc == 0 && more);
	return rc;
}

static int end(struct inspect_feed *f, enum rec_end_reason reason)
{
	int rc = drain_rest(f);

	/* What rings still have is missing for good. */
	if (f->trouble)
		reason = REC_END_FAILED;
	if (rc == 0)
		rc = rec_put_clock(f->rec);
	if (rc == 0)
		rc = put_samples(f);
	if (rc == 0)
		rc = put_counters(f, UINT32_MAX);
	if (rc == 0)
		rc = rec_writer_flush(f->rec); /* its bytes are counted */
	if (rc == 0)
		rc = put_cost(f);
	if (rc == 0)
		rc = rec_put_watermark(f->rec, SOURCE, UINT64_MAX);
	return rc < 0 ? rc : rec_put_end(f->rec, -1, reason);
}

static uint64_t count_lost(const struct inspect_feed *f)
{
	uint64_t lost = 0;

	for (uint32_t i = 0; f->reader && i < ctl_reader_rings(f->reader); i++) {
		struct ring_counters v;
		uint32_t nc, lane;

		ctl_reader_counters(f->reader, i, &nc, &lane, &v);
		lost += v.overwritten + v.slot_busy + v.no_ring + v.abandoned;
	}
	return lost;
}

int inspect_feed_end(struct inspect_feed *f, enum rec_end_reason reason, struct kept_fd *ret_lock,
	uint64_t *ret_lost)
{
	int rc = f->error, trouble, closed;

	unsubscribe(f);
	if (rc == 0) {
		rc = end(f, reason);
		if (rc < 0)
			rc = give_up(f, rc);
	}
	*ret_lost = count_lost(f);
	trouble = f->trouble;
	closed = rec_writer_end(f->rec, ret_lock);
	feed_free(f);
	return rc < 0 ? rc : trouble ? trouble : closed;
}

void inspect_feed_drop(struct inspect_feed *f)
{
	if (!f)
		return;
	unsubscribe(f);
	(void)rec_writer_close(f->rec);
	(void)rec_remove(f->path);
	feed_free(f);
}

void inspect_feed_forget(struct inspect_feed *f)
{
	rec_writer_forget(f->rec);
}
