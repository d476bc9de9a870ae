/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rec_cut.c - copies the wanted part of a recording, in two passes.
 *
 * The first finds the spans that reach over an end of the wanted time, and which process each source
 * is.  The second copies frames in their order, each with the records that are wanted; of the blocks
 * that hold none, as the first has seen, it reads the heads only.  Records stay where they were, so a
 * cut has the order and the watermarks of its original.
 */
#include "runtime/record/rec_cut.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/file.h"
#include "runtime/record/clock_map.h"
#include "runtime/record/cut_blocks.h"
#include "runtime/record/cut_counters.h"
#include "runtime/record/cut_output.h"
#include "runtime/record/device_sum.h"
#include "runtime/record/footer.h"
#include "runtime/record/frame.h"
#include "runtime/record/header.h"
#include "runtime/record/ledger.h"
#include "runtime/record/records.h"
#include "runtime/record/span_set.h"

#define SOURCES (1u << 16)

struct cutter {
	const struct rec_cut_options *o;
	struct rec_cut_result *ret;
	struct rec_writer *w;
	struct cut_output out;
	struct rec_reader *reader;
	struct span_set spans; /* those that reach over an end of the time */
	uint32_t *pids;	       /* of sources; 0: unknown */
	struct footer newest;  /* counters */
	struct clock_map clock;
	uint8_t *records; /* of the frame that is made */
	size_t cap;
	struct rec_frame cpu; /* newest CPU sample before the time: intervals begin there */
	uint8_t *cpu_rows;
	uint64_t seen;			  /* records */
	uint64_t finished, finished_kept; /* runtime records, finished calls, DMA path */
	uint64_t calls;			  /* finished calls among those that are there */
	uint64_t dma;			  /* records of the DMA path among those */
	uint64_t last_ns;		  /* time of the last frame */
	struct cut_blocks blocks;
	uint32_t block; /* that is surveyed */
	uint32_t cpu_block;
	bool has_cpu; /* cpu_block has a sample from before the time */
	bool end_written;
};

/* ---- choices ------------------------------------------------------------------------------ */

static bool chosen(const uint32_t *choices, unsigned count, uint32_t value)
{
	for (unsigned i = 0; i < count; i++)
		if (choices[i] == value)
			return true;
	return count == 0;
}

static bool pid_wanted(const struct cutter *c, uint32_t pid)
{
	return chosen(c->o->pids, c->o->pid_count, pid);
}

static bool core_wanted(const struct cutter *c, uint32_t core)
{
	return core == TRACE_NC_UNKNOWN || chosen(c->o->cores, c->o->core_count, core);
}

static bool before_end(const struct cutter *c, uint64_t ns)
{
	return ns < c->ret->to_ns || c->ret->to_ns == UINT64_MAX;
}

static bool time_wanted(const struct cutter *c, uint64_t ns)
{
	return ns >= c->ret->from_ns && before_end(c, ns);
}

/* Of a source that has ended: it must not hold the others back. */
static bool watermark_wanted(const struct cutter *c, uint64_t ns)
{
	return ns == UINT64_MAX || time_wanted(c, ns);
}

static struct span_key runtime_key(uint16_t source, const struct trace_record *r)
{
	return (struct span_key){source, r->tracking_id};
}

static struct span_key call_key(const struct nev_ioctl *e)
{
	return (struct span_key){SPAN_KERNEL | e->tid, e->start_ns};
}

/* ---- first pass --------------------------------------------------------------------------- */

static void note_found(struct rec_cut_found *f, uint32_t value)
{
	if (f->count && f->values[f->newest] == value)
		return;
	for (unsigned i = 0; i < f->count; i++) {
		if (f->values[i] == value) {
			f->newest = i;
			return;
		}
	}
	f->more = f->count == CUT_MAX_CHOICES;
	if (f->more)
		return;
	f->newest = f->count++;
	f->values[f->newest] = value;
}

/* A record of the process from start to end. */
static void note_covered(struct cutter *c, uint32_t pid, uint64_t start, uint64_t end)
{
	if (c->ret->last_ns == 0 || start < c->ret->first_ns)
		c->ret->first_ns = start;
	if (end > c->ret->last_ns)
		c->ret->last_ns = end;
	if (pid)
		note_found(&c->ret->pids, pid);
}

/* A span that is all before, all after or all inside the time needs no entry. */
static int note_span(struct cutter *c, struct span_key key, bool is_start, uint64_t ns)
{
	struct span *p = span_set_at(&c->spans, key);

	if (!p)
		return -ENOMEM;
	if (is_start) {
		if (p->has_start)
			cut_blocks_want(&c->blocks, p->start_block);
		p->start = ns;
		p->start_block = c->block;
		p->has_start = true;
	} else {
		if (p->has_stop)
			cut_blocks_want(&c->blocks, p->stop_block);
		p->stop = ns;
		p->stop_block = c->block;
		p->has_stop = true;
	}
	bool reaches = before_end(c, p->start) && p->stop >= c->ret->from_ns &&
		       !(time_wanted(c, p->start) && time_wanted(c, p->stop));
	if (p->has_start && p->has_stop && !reaches)
		span_set_remove(&c->spans, p);
	return 0;
}

static int survey_runtime(struct cutter *c, const struct rec_frame *f, const uint8_t *payload)
{
	struct trace_record r;
	size_t at = sizeof(struct rec_runtime), n;
	int rc = 0;

	while (rc == 0 && (n = records_runtime(payload, f->size, at, &r))) {
		at += n;
		c->seen++;
		c->finished++;
		note_covered(c, c->pids[f->source], r.timestamp_ns, r.timestamp_ns);
		if (r.nc_idx != TRACE_NC_UNKNOWN)
			note_found(&c->ret->cores, r.nc_idx);
		if (time_wanted(c, r.timestamp_ns))
			cut_blocks_want(&c->blocks, c->block);
		if (r.phase == TRACE_START || r.phase == TRACE_STOP)
			rc = note_span(c, runtime_key(f->source, &r), r.phase == TRACE_START,
				r.timestamp_ns);
	}
	return rc;
}

/* Does any part of a finished call lie in the time? */
static bool call_overlaps(const struct cutter *c, const struct nev_ioctl *e)
{
	return before_end(c, e->start_ns) && records_call_end(e) >= c->ret->from_ns;
}

static int survey_kernel(struct cutter *c, const struct rec_frame *f, const uint8_t *payload)
{
	struct nev_ioctl e;
	int rc = 0;

	for (size_t at = 0, n; rc == 0 && (n = records_call(payload, f->size, at, &e)); at += n) {
		bool done = e.hdr.type == NEV_IOCTL_DONE;

		c->seen++;
		c->finished += done;
		c->calls += done;
		note_covered(c, e.tgid, e.start_ns, records_call_end(&e));
		if (done ? call_overlaps(c, &e) : time_wanted(c, e.start_ns))
			cut_blocks_want(&c->blocks, c->block);
		if (!done || span_set_find(&c->spans, call_key(&e)))
			rc = note_span(c, call_key(&e), !done, records_call_end(&e));
	}
	return rc;
}

static int survey_driver(struct cutter *c, const struct rec_frame *f, const uint8_t *payload)
{
	struct records_dma_key key;
	struct nev_dma d;
	int rc = 0;

	for (size_t at = 0, n; rc == 0 && (n = records_dma(payload, f->size, at, &d)); at += n) {
		c->seen++;
		c->finished++;
		c->dma++;
		if (!records_dma_valid(&d))
			continue;
		note_covered(c, d.tgid, d.hdr.time_ns, d.hdr.time_ns);
		if (time_wanted(c, d.hdr.time_ns))
			cut_blocks_want(&c->blocks, c->block);
		if (records_dma_span(&d, &key))
			rc = note_span(c, (struct span_key){key.who, key.id},
				d.hdr.type == NEV_DMA_START, d.hdr.time_ns);
	}
	return rc;
}

static void survey_process(struct cutter *c, const struct rec_frame *f, const uint8_t *payload)
{
	struct rec_process p;

	if (f->size < sizeof(p))
		return;
	memcpy(&p, payload, sizeof(p));
	if (c->pids[f->source] == 0)
		c->pids[f->source] = p.pid;
}

/* The last sample before one in the time is wanted, and those in it. */
static void survey_cpu(struct cutter *c, const struct rec_frame *f)
{
	if (f->time_ns < c->ret->from_ns) {
		c->cpu_block = c->block;
		c->has_cpu = true;
	} else if (time_wanted(c, f->time_ns)) {
		if (c->has_cpu)
			cut_blocks_want(&c->blocks, c->cpu_block);
		c->has_cpu = false;
		cut_blocks_want(&c->blocks, c->block);
	}
}

static void survey_watermark(struct cutter *c, const struct rec_frame *f, const uint8_t *payload)
{
	uint64_t ns;

	if (f->size < sizeof(ns))
		return;
	memcpy(&ns, payload, sizeof(ns));
	if (watermark_wanted(c, ns))
		cut_blocks_want(&c->blocks, c->block);
}

static void survey_end(struct cutter *c, const struct rec_frame *f, const uint8_t *payload)
{
	struct rec_end end;

	if (f->size < sizeof(end))
		return;
	memcpy(&end, payload, sizeof(end));
	c->ret->ended = rec_end_in_order(&end);
}

static int survey_frame(struct cutter *c, const struct rec_frame *f, const uint8_t *payload)
{
	switch (f->type) {
	case REC_RUNTIME:
		return survey_runtime(c, f, payload);
	case REC_KERNEL:
		return survey_kernel(c, f, payload);
	case REC_DRIVER:
		return survey_driver(c, f, payload);
	case REC_COUNTERS:
		return footer_counters(&c->newest, f->source, payload, f->size);
	case REC_WATERMARK:
		survey_watermark(c, f, payload);
		return 0;
	case REC_CPU:
		survey_cpu(c, f);
		return 0;
	case REC_FOOTER:
		return 0;
	case REC_PROCESS:
		survey_process(c, f, payload);
		break;
	case REC_END:
		survey_end(c, f, payload);
		break;
	default:
		break;
	}
	cut_blocks_want(&c->blocks, c->block);
	return 0;
}

/* The blocks with the ends of the spans that are left over. */
static void want_spans(struct cutter *c)
{
	const struct span_set *s = &c->spans;

	for (size_t i = 0; s->slots && i <= s->mask; i++) {
		const struct span *p = &s->slots[i];

		if (p->used && p->has_start)
			cut_blocks_want(&c->blocks, p->start_block);
		if (p->used && p->has_stop)
			cut_blocks_want(&c->blocks, p->stop_block);
	}
}

static int survey(struct cutter *c, struct rec_reader *r)
{
	const struct rec_frame *f;
	const uint8_t *payload;
	struct rec_place at;
	int rc;

	rec_reader_rewind(r);
	while ((rc = rec_reader_next(r, &f, &payload)) > 0) {
		rec_reader_place(r, &at);
		rc = at.version == 1
			     ? 0
			     : cut_blocks_note(&c->blocks, at.segment, at.offset, &c->block);
		if (rc == 0)
			rc = survey_frame(c, f, payload);
		if (rc < 0)
			return rc;
		c->last_ns = f->time_ns;
	}
	want_spans(c);
	c->ret->damage = rec_reader_damage(r);
	return rc;
}

/* ---- the time ----------------------------------------------------------------------------- */

static uint64_t to_boot(const struct cutter *c, struct cut_time t, uint64_t otherwise)
{
	uint64_t epoch_of_0 = (uint64_t)c->clock.offset;

	switch (t.kind) {
	case CUT_RELATIVE:
		return t.ns > UINT64_MAX - c->clock.begin ? UINT64_MAX : c->clock.begin + t.ns;
	case CUT_EPOCH:
		return t.ns > epoch_of_0 ? t.ns - epoch_of_0 : 0;
	default:
		return otherwise;
	}
}

static bool has_times(const struct cutter *c)
{
	return c->o->from.kind != CUT_OPEN || c->o->to.kind != CUT_OPEN;
}

/* Times of one kind can be compared where they lie outside of what BOOTTIME can say, too. */
static bool backwards(const struct cutter *c)
{
	const struct cut_time *from = &c->o->from, *to = &c->o->to;

	if (from->kind == CUT_OPEN || to->kind == CUT_OPEN)
		return false;
	return from->kind == to->kind ? from->ns >= to->ns : c->ret->from_ns >= c->ret->to_ns;
}

/* Finds the first clock snapshot that can be, as the merge does, and with it the time that is wanted. */
static int find_time(struct cutter *c, struct rec_reader *r)
{
	const struct rec_frame *f;
	const uint8_t *payload;
	int rc = 0;

	while (!c->clock.known && (rc = rec_reader_next(r, &f, &payload)) > 0)
		clock_map_find_frame(&c->clock, f, payload);
	if (!c->clock.known && (rc < 0 || has_times(c)))
		return rc < 0 ? rc : -ENODATA;
	c->ret->begin_ns = c->clock.known ? c->clock.begin : 0;
	c->ret->from_ns = to_boot(c, c->o->from, 0);
	c->ret->to_ns = to_boot(c, c->o->to, UINT64_MAX);
	return backwards(c) ? -ERANGE : 0;
}

/* ---- second pass -------------------------------------------------------------------------- */

static int copy(struct cutter *c, const struct rec_frame *f, const void *payload, size_t size)
{
	return rec_writer_frame_at(
		c->w, (enum rec_type)f->type, f->source, f->time_ns, payload, size, NULL, 0);
}

/* Room for the records of a frame. */
static int reserve(struct cutter *c, size_t size)
{
	if (size <= c->cap)
		return 0;
	uint8_t *more = realloc(c->records, size);
	if (!more)
		return -ENOMEM;
	c->records = more;
	c->cap = size;
	return 0;
}

/* An end of a span outside of the time.  Of a span whose other end is unknown, the start counts to the end of the
 * recording, and the stop stands alone. */
static bool span_end_wanted(
	const struct cutter *c, const struct span *p, bool is_start, uint64_t ns)
{
	if (!p)
		return false;
	return (p->has_start && p->has_stop) || (is_start && before_end(c, ns));
}

static bool record_wanted(const struct cutter *c, uint16_t source, const struct trace_record *r)
{
	if (!pid_wanted(c, c->pids[source]) || !core_wanted(c, r->nc_idx))
		return false;
	if (time_wanted(c, r->timestamp_ns))
		return true;
	return r->phase <= TRACE_STOP &&
	       span_end_wanted(c, span_set_find(&c->spans, runtime_key(source, r)),
		       r->phase == TRACE_START, r->timestamp_ns);
}

static int cut_runtime(struct cutter *c, const struct rec_frame *f, const uint8_t *payload)
{
	size_t at = sizeof(struct rec_runtime), used = at, n;
	struct trace_record r;
	int rc = reserve(c, f->size);

	if (rc < 0 || f->size < at)
		return rc;
	memcpy(c->records, payload, at);
	for (; (n = records_runtime(payload, f->size, at, &r)); at += n) {
		if (!record_wanted(c, f->source, &r))
			continue;
		memcpy(c->records + used, payload + at, n);
		used += n;
		c->ret->kept++;
		c->finished_kept++;
	}
	return used > sizeof(struct rec_runtime) ? copy(c, f, c->records, used) : 0;
}

static bool call_wanted(const struct cutter *c, const struct nev_ioctl *e)
{
	if (!pid_wanted(c, e->tgid))
		return false;
	if (e->hdr.type == NEV_IOCTL_DONE)
		return call_overlaps(c, e);
	return time_wanted(c, e->start_ns) ||
	       (before_end(c, e->start_ns) && span_set_find(&c->spans, call_key(e)));
}

static int cut_kernel(struct cutter *c, const struct rec_frame *f, const uint8_t *payload)
{
	size_t used = 0;
	struct nev_ioctl e;
	int rc = reserve(c, f->size);

	if (rc < 0)
		return rc;
	for (size_t at = 0, n; (n = records_call(payload, f->size, at, &e)); at += n) {
		if (!call_wanted(c, &e))
			continue;
		memcpy(c->records + used, payload + at, n);
		used += n;
		c->ret->kept++;
		c->finished_kept += e.hdr.type == NEV_IOCTL_DONE;
	}
	return used ? copy(c, f, c->records, used) : 0;
}

static bool dma_wanted(const struct cutter *c, const struct nev_dma *d)
{
	struct records_dma_key key;
	const struct span *p;

	if (!records_dma_valid(d) || !pid_wanted(c, d->tgid))
		return false;
	if (time_wanted(c, d->hdr.time_ns))
		return true;
	p = records_dma_span(d, &key) ? span_set_find(&c->spans, (struct span_key){key.who, key.id})
				      : NULL;
	return span_end_wanted(c, p, d->hdr.type == NEV_DMA_START, d->hdr.time_ns);
}

static int cut_driver(struct cutter *c, const struct rec_frame *f, const uint8_t *payload)
{
	size_t used = 0;
	struct nev_dma d;
	int rc = reserve(c, f->size);

	if (rc < 0)
		return rc;
	for (size_t at = 0, n; (n = records_dma(payload, f->size, at, &d)); at += n) {
		if (!dma_wanted(c, &d))
			continue;
		memcpy(c->records + used, payload + at, n);
		used += n;
		c->ret->kept++;
		c->finished_kept++;
	}
	return used ? copy(c, f, c->records, used) : 0;
}

/* The header says what was done, and has the version of the format that is written now. */
static int cut_header(struct cutter *c, const struct rec_frame *f, const uint8_t *payload)
{
	_cleanup_free_ char *text = NULL;
	int rc = rec_header_cut((const char *)payload, f->size, &text);

	if (rc == -ENOMEM)
		return rc;
	if (text && strlen(text) > REC_MAX_PAYLOAD)
		return -EFBIG;
	return text ? copy(c, f, text, strlen(text)) : copy(c, f, payload, f->size);
}

static int cut_of_pid(struct cutter *c, const struct rec_frame *f, const uint8_t *payload)
{
	bool wanted = f->source < REC_SOURCE_RUNTIME0 || pid_wanted(c, c->pids[f->source]);

	return wanted ? copy(c, f, payload, f->size) : 0;
}

static int cut_mem(struct cutter *c, const struct rec_frame *f, const uint8_t *payload)
{
	struct rec_mem m;

	if (f->size < sizeof(m) || !time_wanted(c, f->time_ns))
		return 0;
	memcpy(&m, payload, sizeof(m));
	return pid_wanted(c, m.pid) ? copy(c, f, payload, f->size) : 0;
}

static int cut_cpu(struct cutter *c, const struct rec_frame *f, const uint8_t *payload)
{
	int rc = 0;

	if (f->time_ns < c->ret->from_ns) {
		uint8_t *rows = realloc(c->cpu_rows, f->size + 1u);
		if (!rows)
			return -ENOMEM;
		c->cpu_rows = rows;
		c->cpu = *f;
		memcpy(rows, payload, f->size);
		return 0;
	}
	if (!time_wanted(c, f->time_ns))
		return 0;
	if (c->cpu_rows)
		rc = copy(c, &c->cpu, c->cpu_rows, c->cpu.size);
	free(c->cpu_rows);
	c->cpu_rows = NULL;
	return rc < 0 ? rc : copy(c, f, payload, f->size);
}

static int cut_watermark(struct cutter *c, const struct rec_frame *f, const uint8_t *payload)
{
	uint64_t ns;

	if (f->size < sizeof(ns))
		return 0;
	memcpy(&ns, payload, sizeof(ns));
	return watermark_wanted(c, ns) ? copy(c, f, payload, f->size) : 0;
}

/* The newest counters of all sources, and what this cut leaves out. */
static int put_counters(struct cutter *c, uint64_t time_ns)
{
	struct ledger_found found = {.records = c->finished,
		.calls = c->calls,
		.dma = c->dma,
		.ended = c->ret->ended,
		.damaged = rec_damaged(&c->ret->damage)};

	return cut_counters_write(c->w, &c->newest, &found, c->finished_kept, time_ns);
}

static int cut_end(struct cutter *c, const struct rec_frame *f, const uint8_t *payload)
{
	int rc = c->end_written ? 0 : put_counters(c, f->time_ns);

	c->end_written = true;
	return rc < 0 ? rc : copy(c, f, payload, f->size);
}

static int cut_whole(struct cutter *c, const struct rec_frame *f, const uint8_t *payload)
{
	return copy(c, f, payload, f->size);
}

static int cut_failure(struct cutter *c, const struct rec_frame *f, const uint8_t *payload)
{
	struct rec_failure failure;

	if (f->size < sizeof(failure))
		return 0;
	memcpy(&failure, payload, sizeof(failure));
	return pid_wanted(c, failure.pid) ? copy(c, f, payload, f->size) : 0;
}

/* A profile cannot be cut; whole, it would be of more than was asked for. */
static int cut_profile(struct cutter *c, const struct rec_frame *f, const uint8_t *payload)
{
	bool limited = has_times(c) || c->o->core_count;
	struct rec_device_profile p;
	int rc = 0;

	if (f->size < sizeof(p))
		return 0;
	memcpy(&p, payload, sizeof(p));
	if (!pid_wanted(c, p.pid) || (limited && p.index == REC_DEVICE_PROFILE_NONE))
		return 0;
	c->ret->profiles_left_out += limited;
	if (limited)
		return 0;
	if (p.index != REC_DEVICE_PROFILE_NONE) {
		rc = cut_output_profile(&c->out, rec_reader_dir(c->reader), &p);
		c->ret->profiles_bad += device_sum_damaged(rc);
		c->ret->profiles_kept += rc == 0;
	}
	if (device_sum_damaged(rc))
		return 0;
	return rc < 0 ? rc : copy(c, f, &p, sizeof(p));
}

static int (*const cutters[])(struct cutter *, const struct rec_frame *, const uint8_t *) = {
	[REC_HEADER] = cut_header,
	[REC_CLOCK] = cut_whole,
	[REC_DEVICE] = cut_whole,
	[REC_PROCESS] = cut_of_pid,
	[REC_KERNEL] = cut_kernel,
	[REC_DRIVER] = cut_driver,
	[REC_RUNTIME] = cut_runtime,
	[REC_WATERMARK] = cut_watermark,
	[REC_COUNTERS] = NULL, /* the newest come at the end */
	[REC_CPU] = cut_cpu,
	[REC_MEM] = cut_mem,
	[REC_NAME] = cut_of_pid,
	[REC_END] = cut_end,
	[REC_FOOTER] = NULL, /* the writer makes its own */
	[REC_THREAD] = cut_of_pid,
	[REC_DEVICE_PROFILE] = cut_profile,
	[REC_MODULE] = cut_whole,
	[REC_FAILURE] = cut_failure,
	[REC_FILE] = NULL, /* it lies where the session was, and is whole */
};

static int copy_frames(struct cutter *c, struct rec_reader *r)
{
	const struct rec_frame *f;
	const uint8_t *payload;
	int rc;

	rec_reader_rewind(r);
	rec_reader_set_filter(r, cut_blocks_wanted, &c->blocks);
	while ((rc = rec_reader_next(r, &f, &payload)) > 0) {
		if (f->type < sizeof(cutters) / sizeof(*cutters) && cutters[f->type])
			rc = cutters[f->type](c, f, payload);
		if (rc < 0)
			return rc;
	}
	return rc < 0 || c->end_written ? rc : put_counters(c, c->last_ns);
}

/* ---- the whole ---------------------------------------------------------------------------- */

static bool chooses(const struct cutter *c)
{
	return has_times(c) || c->o->pid_count || c->o->core_count;
}

static int write_cut(struct cutter *c, struct rec_reader *r, const char *out_path)
{
	int rc = cut_output_open(&c->out, out_path);

	if (rc < 0)
		return rc;
	c->w = c->out.writer;
	c->reader = r;
	rc = copy_frames(c, r);
	c->ret->left_out = c->seen - c->ret->kept;
	if (rc == 0 && c->ret->kept == 0 && c->seen && chooses(c))
		rc = -ENOMSG;
	if (rc == 0)
		rc = rec_writer_flush(c->w);
	c->ret->bytes = rec_writer_bytes(c->w);
	return cut_output_close(&c->out, rc);
}

int rec_cut(const char *path, const char *out_path, const struct rec_cut_options *options,
	struct rec_cut_result *ret)
{
	_cleanup_free_ uint32_t *pids = calloc(SOURCES, sizeof(*pids));
	struct cutter c = {.o = options, .ret = ret, .pids = pids};
	struct rec_reader *r = NULL;
	int rc;

	memset(ret, 0, sizeof(*ret));
	rc = pids ? rec_reader_open(path, &r) : -ENOMEM;
	if (rc == 0) {
		ret->in_work = rec_reader_in_work(r);
		rc = find_time(&c, r);
	}
	if (rc == 0)
		rc = survey(&c, r);
	if (rc == 0)
		rc = write_cut(&c, r, out_path);
	rec_reader_close(r);
	span_set_free(&c.spans);
	footer_free(&c.newest);
	cut_blocks_free(&c.blocks);
	free(c.records);
	free(c.cpu_rows);
	return rc;
}
