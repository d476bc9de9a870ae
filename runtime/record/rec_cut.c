/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rec_cut.c - copies the wanted part of a recording, in two passes.
 *
 * The first (rec_cut_survey.c) finds the spans that reach over an end of the wanted time, and which process each source
 * is.  The second copies frames in their order, each with the records that are wanted; of the blocks
 * that hold none, as the first has seen, it reads the heads only.  Records stay where they were, so a
 * cut has the order and the watermarks of its original.
 */
#include "runtime/record/rec_cut_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/file.h"
#include "runtime/record/cut_counters.h"
#include "runtime/record/device_sum.h"
#include "runtime/record/header.h"
#include "runtime/record/ledger.h"

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
	[REC_HOOKS] = cut_whole,
	[REC_HOOK_COST] = cut_whole,
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
		rc = cut_find_time(&c, r);
	}
	if (rc == 0)
		rc = cut_survey(&c, r);
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
