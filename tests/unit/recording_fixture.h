/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recording_fixture.h - synthetic recordings for tests: a few lines per event, then the merge.
 *
 * Times are given in ns since FX_BOOT (a BOOTTIME); epoch time at output is FX_REAL later by
 * FX_OFFSET.  Records gather per call of fx_records and are written as one frame; calls as one
 * frame each.  Each frame is a block of its own, so that damage hits one frame.
 */
#ifndef NTRACE_TESTS_RECORDING_FIXTURE_H
#define NTRACE_TESTS_RECORDING_FIXTURE_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/neuron_event.h"
#include "runtime/base/sampler.h"
#include "runtime/record/header.h"
#include "runtime/record/merge.h"
#include "runtime/record/recording.h"
#include "runtime/trace/event_registry.h"
#include "tests/unit/scratch.h"
#include "tests/unit/trace_file.h"
#include "vmlinux/ioctl_table.h"

#define FX_BOOT 1000000000000ull
#define FX_OFFSET 1790000000000000000ll
#define FX_EPOCH (FX_BOOT + (uint64_t)FX_OFFSET) /* epoch time of relative time 0 */
#define FX_PID 4711u
#define FX_SOURCE REC_SOURCE_RUNTIME0

struct fixture {
	struct scratch dir;
	struct rec_writer *w;
	struct trace_record records[256];
	size_t count;
	uint64_t next_id[4]; /* sequence per core; the last is for events of no core */
	uint32_t next_seq;
	size_t held_bytes; /* limit for the merge; 0: the usual one */
	struct merge_result result;
	char *error;
	struct trace_file trace;
};

static inline struct scratch_path fx_path(const struct fixture *fx, const char *name)
{
	return scratch_path(&fx->dir, name);
}

static inline void fx_frame2(struct fixture *fx, enum rec_type type, uint16_t source,
	const void *head, size_t head_size, const void *body, size_t body_size)
{
	rec_writer_frame(fx->w, type, source, head, head_size, body, body_size);
	rec_writer_flush(fx->w);
}

static inline void fx_frame(
	struct fixture *fx, enum rec_type type, uint16_t source, const void *data, size_t size)
{
	fx_frame2(fx, type, source, data, size, NULL, 0);
}

/* A clock snapshot at a relative time with an offset that differs from FX_OFFSET by `step`. */
static inline void fx_clock(struct fixture *fx, uint64_t at, int64_t step)
{
	struct clock_snapshot s = {
		.boot_before = FX_BOOT + at - 50, .boot_after = FX_BOOT + at + 50};

	s.realtime = FX_EPOCH + at + (uint64_t)step;
	s.monotonic = s.monotonic_raw = FX_BOOT + at;
	fx_frame(fx, REC_CLOCK, REC_SOURCE_RECORDER, &s, sizeof(s));
}

static inline void fx_process(struct fixture *fx, uint16_t source, uint32_t pid)
{
	struct rec_process p = {.pid = pid, .comm = "work"};

	fx_frame(fx, REC_PROCESS, source, &p, sizeof(p));
}

static inline void fx_header(struct fixture *fx, const struct rec_header_info *info)
{
	char *text = NULL;

	if (rec_header_text(info, &text) == 0)
		fx_frame(fx, REC_HEADER, REC_SOURCE_RECORDER, text, strlen(text));
	free(text);
}

/* Only the directory and the writer. */
static inline bool fx_open_bare(struct fixture *fx)
{
	memset(fx, 0, sizeof(*fx));
	return scratch_make(&fx->dir) && rec_writer_open(fx_path(fx, REC_DIR).s, &fx->w) == 0;
}

/* Header, clock and one runtime process. */
static inline bool fx_open(struct fixture *fx)
{
	static const char *const hooks[] = {"tracepoint:syscalls:sys_enter_ioctl", NULL};
	struct rec_header_info info = {
		.producer = "ntrace test", .instance_id = "i-0123", .host = "h", .hooks = hooks};

	if (!fx_open_bare(fx))
		return false;
	fx_header(fx, &info);
	fx_clock(fx, 100, 0);
	fx_process(fx, FX_SOURCE, FX_PID);
	return true;
}

/* Adds a record to the batch; the caller may fill in more. */
static inline struct trace_record *fx_record(struct fixture *fx, enum trace_type type,
	enum trace_phase phase, uint64_t tracking_id, uint32_t tid, uint64_t at)
{
	struct trace_record *r = &fx->records[fx->count++];

	memset(r, 0, sizeof(*r));
	r->trace_type = type;
	r->phase = phase;
	r->tracking_id = tracking_id;
	r->thread_id = tid;
	r->timestamp_ns = FX_BOOT + at;
	r->id = ++fx->next_id[0];
	return r;
}

static inline void fx_records(struct fixture *fx, uint16_t source)
{
	struct rec_runtime head = {0};

	fx_frame2(fx, REC_RUNTIME, source, &head, sizeof(head), fx->records,
		fx->count * sizeof(fx->records[0]));
	fx->count = 0;
}

/* A span of the main runtime, as a batch of its own. */
static inline void fx_span(struct fixture *fx, enum trace_type type, uint64_t tracking_id,
	uint32_t tid, uint64_t from, uint64_t to)
{
	fx_record(fx, type, TRACE_START, tracking_id, tid, from);
	fx_record(fx, type, TRACE_STOP, tracking_id, tid, to);
	fx_records(fx, FX_SOURCE);
}

struct fx_call {
	uint32_t tgid, tid, request;
	uint64_t from, to;
	int32_t result;
	bool open; /* announced only */
	uint16_t cpu;
	uint16_t flags;
	uint8_t nargs;
	uint64_t args[NEV_MAX_ARGS];
};

static inline void fx_call_raw(struct fixture *fx, const struct fx_call *c, uint32_t seq)
{
	struct nev_ioctl e = {
		.hdr = {.time_ns = FX_BOOT + c->to,
			.seq = seq,
			.cpu = c->cpu,
			.type = c->open ? NEV_IOCTL_START : NEV_IOCTL_DONE,
			.nargs = c->nargs},
		.start_ns = FX_BOOT + c->from,
		.duration_ns = c->open ? 0 : c->to - c->from,
		.tgid = c->tgid ? c->tgid : FX_PID,
		.tid = c->tid,
		.request = c->request,
		.result = c->result,
		.device = 1,
		.flags = c->flags,
	};

	fx_frame2(fx, REC_KERNEL, REC_SOURCE_KERNEL, &e, sizeof(e), c->args,
		c->nargs * sizeof(c->args[0]));
}

static inline void fx_call(struct fixture *fx, const struct fx_call *c)
{
	fx_call_raw(fx, c, c->open ? 0 : fx->next_seq++);
}

/* A copy of `bytes` to the device. */
static inline void fx_copy(
	struct fixture *fx, uint32_t tid, uint64_t from, uint64_t to, uint64_t bytes)
{
	struct fx_call c = {.tid = tid,
		.request = NEURON_IOCTL_MEM_BUF_COPY64,
		.from = from,
		.to = to,
		.nargs = 4,
		.args = {77, bytes, 0, 1}};

	fx_call(fx, &c);
}

static inline void fx_counter(
	struct fixture *fx, uint16_t source, enum rec_counter_id id, uint32_t sub, uint64_t value)
{
	struct rec_counter c = {.id = id, .sub = sub, .value = value};

	fx_frame(fx, REC_COUNTERS, source, &c, sizeof(c));
}

static inline void fx_name(struct fixture *fx, uint64_t id, const char *text)
{
	struct rec_name head = {.id = id};

	fx_frame2(fx, REC_NAME, FX_SOURCE, &head, sizeof(head), text, strlen(text));
}

/* From a relative time on, thread `tid` of the main runtime's namespace is the host's `host_tid`. */
static inline void fx_thread(struct fixture *fx, uint32_t tid, uint32_t host_tid, uint64_t from)
{
	struct rec_thread t = {.tid = tid, .host_tid = host_tid, .from_ns = FX_BOOT + from};

	fx_frame(fx, REC_THREAD, FX_SOURCE, &t, sizeof(t));
}

/* Nothing older than this will come from the source. */
static inline void fx_watermark(struct fixture *fx, uint16_t source, uint64_t at)
{
	uint64_t mark = FX_BOOT + at;

	fx_frame(fx, REC_WATERMARK, source, &mark, sizeof(mark));
}

static inline void fx_end_with(struct fixture *fx, enum rec_end_reason reason)
{
	struct rec_end end = {.wait_status = 0, .reason = reason};

	fx_frame(fx, REC_END, REC_SOURCE_RECORDER, &end, sizeof(end));
}

static inline void fx_end(struct fixture *fx)
{
	fx_end_with(fx, REC_END_COMMAND);
}

static inline int fx_close_writer(struct fixture *fx)
{
	int rc = rec_writer_close(fx->w);

	fx->w = NULL;
	return rc;
}

/* Merges into directory `out` of the fixture. */
static inline int fx_merge(struct fixture *fx, const char *out, enum merge_kernel_events events)
{
	struct merge_options o = {.kernel_events = events, .held_bytes = fx->held_bytes};

	if (fx->w)
		fx_close_writer(fx);
	merge_result_free(&fx->result);
	free(fx->error);
	return merge_recording(
		fx_path(fx, REC_DIR).s, fx_path(fx, out).s, &o, &fx->result, &fx->error);
}

/* Merges with the default options and reads the one ntrace.pb. */
static inline bool fx_merge_one(struct fixture *fx)
{
	trace_file_free(&fx->trace);
	return fx_merge(fx, "out", MERGE_KERNEL_HINT) == 0 &&
	       trace_file_read(&fx->trace, fx_path(fx, "out").s);
}

/* The same: the file is there, sound, and has so many open spans. */
static inline bool fx_merged(struct fixture *fx, size_t open)
{
	size_t found = 0;

	if (!fx_merge_one(fx)) {
		test_info("merge: %s", fx->error ? fx->error : "?");
		return false;
	}
	const char *fault = trace_file_fault(&fx->trace, &found);
	test_info("fault: %s, open %zu", fault, found);
	return !*fault && found == open;
}

/* The event of this hint and phase behind `skip` others; an empty one when there is none. */
static inline const struct ntrace_event_view *fx_by_hint(
	const struct fixture *fx, const char *hint, uint32_t phase, unsigned skip)
{
	static const struct ntrace_event_view none;

	for (size_t i = 0; i < fx->trace.count; i++)
		if (fx->trace.events[i].phase == phase &&
			pb_str_is(fx->trace.events[i].hint, hint) && skip-- == 0)
			return &fx->trace.events[i];
	return &none;
}

static inline void fx_free(struct fixture *fx)
{
	if (fx->w)
		fx_close_writer(fx);
	merge_result_free(&fx->result);
	free(fx->error);
	trace_file_free(&fx->trace);
	scratch_remove(&fx->dir);
}

/* The parent id on the STOP or INSTANT of a span. */
static inline uint64_t fx_parent(const struct fixture *fx, uint64_t id)
{
	const struct ntrace_event_view *e = trace_file_find(&fx->trace, id, PHASE_STOP);

	if (!e)
		e = trace_file_find(&fx->trace, id, PHASE_INSTANT);
	return e ? e->parent_id : UINT64_MAX;
}

static inline uint64_t fx_ledger(const struct fixture *fx, enum rec_counter_id id)
{
	return fx->result.ledger[id].value;
}

#endif
