/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rec_cut_survey.c - the first pass of a cut: which spans reach over an end of the wanted time, which process each
 * source is, and which blocks hold nothing that is wanted.
 */
#include "runtime/record/rec_cut_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

int cut_survey(struct cutter *c, struct rec_reader *r)
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

/* Times of one kind can be compared where they lie outside of what BOOTTIME can say, too. */
static bool backwards(const struct cutter *c)
{
	const struct cut_time *from = &c->o->from, *to = &c->o->to;

	if (from->kind == CUT_OPEN || to->kind == CUT_OPEN)
		return false;
	return from->kind == to->kind ? from->ns >= to->ns : c->ret->from_ns >= c->ret->to_ns;
}

int cut_find_time(struct cutter *c, struct rec_reader *r)
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
