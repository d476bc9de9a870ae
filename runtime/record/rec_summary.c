/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rec_summary.c - goes through all frames of a recording once, counts, and holds its footer against what
 * was found.
 */
#include "runtime/record/rec_summary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/file.h"
#include "runtime/record/clock_map.h"
#include "runtime/record/device_sum.h"
#include "runtime/record/footer.h"
#include "runtime/record/records.h"
#include "runtime/record/sequence.h"
#include "runtime/record/session.h"
#include "runtime/record/span_set.h"

struct summarizer {
	struct rec_summary *s;
	struct rec_reader *reader;
	struct footer found; /* what a footer should say */
	struct clock_map clock;
	size_t source_cap;
	struct span_set spans;
	struct sequence *cpus; /* of driver calls */
	uint64_t finished;     /* runtime records, finished calls, DMA path */
	uint64_t calls;	       /* finished calls among them */
	uint64_t dma;	       /* records of the DMA path among them */
	/* Of the block being read. */
	struct rec_place place;
	struct rec_index block;
	uint64_t block_bytes;
};

/* ---- sources ------------------------------------------------------------------------------ */

/* The row of a source; NULL when memory is short.  Valid until the next call. */
static struct summary_source *source_at(struct summarizer *z, uint16_t source)
{
	struct rec_summary *s = z->s;
	size_t i = s->source_count;

	while (i > 0 && s->sources[i - 1].source >= source)
		i--;
	if (i < s->source_count && s->sources[i].source == source)
		return &s->sources[i];
	if (s->source_count == z->source_cap) {
		size_t cap = z->source_cap ? 2 * z->source_cap : 16;
		struct summary_source *more = realloc(s->sources, cap * sizeof(*more));
		if (!more)
			return NULL;
		s->sources = more;
		z->source_cap = cap;
	}
	memmove(&s->sources[i + 1], &s->sources[i], (s->source_count - i) * sizeof(*s->sources));
	s->sources[i] = (struct summary_source){.source = source};
	s->source_count++;
	return &s->sources[i];
}

static void widen(uint64_t *first, uint64_t *last, uint64_t from, uint64_t to)
{
	if (*first == 0 || from < *first)
		*first = from;
	if (to > *last)
		*last = to;
}

static void note_record(
	struct summarizer *z, struct summary_source *src, uint64_t from, uint64_t to)
{
	src->records++;
	widen(&src->first_ns, &src->last_ns, from, to);
	widen(&z->s->first_ns, &z->s->last_ns, from, to);
}

/* ---- spans -------------------------------------------------------------------------------- */

/* One end of a span was seen; both together leave the set. */
static int note_span(struct summarizer *z, struct span_key key, bool start, bool stop)
{
	struct span *p = span_set_at(&z->spans, key);

	if (!p)
		return -ENOMEM;
	p->has_start |= start;
	p->has_stop |= stop;
	if (p->has_start && p->has_stop)
		span_set_remove(&z->spans, p);
	return 0;
}

static uint64_t count_open(const struct span_set *s)
{
	uint64_t open = 0;

	for (size_t i = 0; s->slots && i <= s->mask; i++)
		open += s->slots[i].used && !s->slots[i].has_stop;
	return open;
}

/* ---- one function per frame type ---------------------------------------------------------- */

typedef int taker(struct summarizer *z, const struct rec_frame *f, const uint8_t *payload);

static int take_header(struct summarizer *z, const struct rec_frame *f, const uint8_t *payload)
{
	int rc;

	if (z->s->has_header)
		return 0;
	rc = rec_header_parse((const char *)payload, f->size, &z->s->header);
	z->s->has_header = rc == 0;
	return rc == -ENOMEM ? rc : 0;
}

static int take_clock(struct summarizer *z, const struct rec_frame *f, const uint8_t *payload)
{
	if (clock_map_find_frame(&z->clock, f, payload))
		memcpy(&z->s->clock, payload, sizeof(z->s->clock));
	return 0;
}

static int take_process(struct summarizer *z, const struct rec_frame *f, const uint8_t *payload)
{
	struct summary_source *src = source_at(z, f->source);

	if (!src)
		return -ENOMEM;
	if (f->size >= sizeof(src->process) && !src->is_process) {
		memcpy(&src->process, payload, sizeof(src->process));
		src->is_process = true;
	}
	return 0;
}

static int take_kernel(struct summarizer *z, const struct rec_frame *f, const uint8_t *payload)
{
	struct summary_source *src = source_at(z, f->source);
	struct nev_ioctl e;
	int rc = src ? 0 : -ENOMEM;

	for (size_t at = 0, n; rc == 0 && at < f->size; at += n) {
		n = records_call(payload, f->size, at, &e);
		if (n == 0) {
			z->s->invalid++;
			break;
		}
		bool done = e.hdr.type == NEV_IOCTL_DONE;
		struct span_key key = {SPAN_KERNEL | e.tid, e.start_ns};

		note_record(z, src, e.start_ns, records_call_end(&e));
		sequence_note(z->cpus, &e.hdr);
		z->finished += done;
		z->calls += done;
		if (!done || span_set_find(&z->spans, key))
			rc = note_span(z, key, !done, done);
	}
	return rc;
}

static int take_driver(struct summarizer *z, const struct rec_frame *f, const uint8_t *payload)
{
	struct summary_source *src = source_at(z, f->source);
	size_t at = 0, n;
	struct nev_dma d;
	int rc = src ? 0 : -ENOMEM;

	while (rc == 0 && (n = records_dma(payload, f->size, at, &d))) {
		struct records_dma_key key;

		at += n;
		z->finished++;
		z->dma++;
		sequence_note(z->cpus, &d.hdr);
		if (!records_dma_valid(&d)) {
			z->s->invalid++;
			continue;
		}
		note_record(z, src, d.hdr.time_ns, d.hdr.time_ns);
		if (records_dma_span(&d, &key))
			rc = note_span(z, (struct span_key){key.who, key.id},
				d.hdr.type == NEV_DMA_START, d.hdr.type == NEV_DMA_STOP);
	}
	z->s->invalid += at != f->size;
	return rc;
}

static int take_runtime(struct summarizer *z, const struct rec_frame *f, const uint8_t *payload)
{
	struct summary_source *src = source_at(z, f->source);
	size_t at = sizeof(struct rec_runtime), n;
	struct trace_record r;
	int rc = src ? 0 : -ENOMEM;

	while (rc == 0 && (n = records_runtime(payload, f->size, at, &r))) {
		at += n;
		z->finished++;
		note_record(z, src, r.timestamp_ns, r.timestamp_ns);
		if (r.phase == TRACE_START || r.phase == TRACE_STOP)
			rc = note_span(z, (struct span_key){f->source, r.tracking_id},
				r.phase == TRACE_START, r.phase == TRACE_STOP);
	}
	z->s->invalid += at != f->size;
	return rc;
}

static int take_watermark(struct summarizer *z, const struct rec_frame *f, const uint8_t *payload)
{
	struct summary_source *src = source_at(z, f->source);

	if (src && f->size >= sizeof(src->watermark))
		memcpy(&src->watermark, payload, sizeof(src->watermark));
	return src ? 0 : -ENOMEM;
}

static int take_counters(struct summarizer *z, const struct rec_frame *f, const uint8_t *payload)
{
	return footer_counters(&z->found, f->source, payload, f->size);
}

static int take_failure(struct summarizer *z, const struct rec_frame *f, const uint8_t *payload)
{
	struct rec_summary *s = z->s;
	int rc;

	if (f->size < sizeof(*s->failures)) {
		s->invalid++;
		return 0;
	}
	rc = session_grow(
		&s->failures, &s->failure_cap, s->failure_count + 1, sizeof(*s->failures));
	if (rc == 0)
		memcpy(&s->failures[s->failure_count++], payload, sizeof(*s->failures));
	return rc;
}

static int bad_is_invalid(struct rec_summary *s, int rc)
{
	s->invalid += rc == -EBADMSG;
	return rc == -EBADMSG ? 0 : rc;
}

static int take_module(struct summarizer *z, const struct rec_frame *f, const uint8_t *payload)
{
	return bad_is_invalid(z->s, modules_take(&z->s->modules, f->time_ns, payload, f->size));
}

static int take_hooks(struct summarizer *z, const struct rec_frame *f, const uint8_t *payload)
{
	return bad_is_invalid(z->s, modules_take_hooks(&z->s->modules, payload, f->size));
}

static int by_cost(const void *a, const void *b)
{
	const struct rec_hook_cost *p = a, *q = b;

	if (p->run_ns != q->run_ns)
		return p->run_ns < q->run_ns ? 1 : -1;
	return memcmp(p->program, q->program, sizeof(p->program));
}

static int take_hook_cost(struct summarizer *z, const struct rec_frame *f, const uint8_t *payload)
{
	size_t n = f->size / sizeof(struct rec_hook_cost);
	struct rec_hook_cost *rows = calloc(n + 1, sizeof(*rows));

	if (!rows)
		return -ENOMEM;
	memcpy(rows, payload, n * sizeof(*rows));
	qsort(rows, n, sizeof(*rows), by_cost);
	free(z->s->hook_cost);
	z->s->hook_cost = rows;
	z->s->hook_cost_count = n;
	z->s->invalid += f->size % sizeof(*rows) != 0;
	return 0;
}

static int take_end(struct summarizer *z, const struct rec_frame *f, const uint8_t *payload)
{
	if (f->size < sizeof(z->s->end))
		return 0;
	memcpy(&z->s->end, payload, sizeof(z->s->end));
	z->s->ended = rec_end_in_order(&z->s->end);
	return 0;
}

static int take_profile(struct summarizer *z, const struct rec_frame *f, const uint8_t *payload)
{
	struct rec_summary *s = z->s;
	struct summary_profile *p;
	int rc;

	if (f->size < sizeof(p->frame)) {
		s->invalid++;
		return 0;
	}
	rc = session_grow(&s->profiles, &s->profile_cap, s->profile_count + 1, sizeof(*p));
	if (rc < 0)
		return rc;
	p = &s->profiles[s->profile_count++];
	memcpy(&p->frame, payload, sizeof(p->frame));
	p->error = p->frame.index == REC_DEVICE_PROFILE_NONE
			   ? 0
			   : device_sum_verify(rec_reader_dir(z->reader), &p->frame);
	return 0;
}

const char *summary_profile_fault(const struct summary_profile *p)
{
	switch (p->error) {
	case 0:
		return NULL;
	case -ENOENT:
		return "missing";
	case -EMSGSIZE:
		return "damaged: it has another size than when it was recorded";
	case -EBADMSG:
		return "damaged: it has another checksum than when it was recorded";
	case -EINVAL:
		return "no regular file";
	default:
		return strerror(-p->error);
	}
}

static taker *const takers[SUMMARY_TYPES] = {
	[REC_HEADER] = take_header,
	[REC_CLOCK] = take_clock,
	[REC_PROCESS] = take_process,
	[REC_KERNEL] = take_kernel,
	[REC_DRIVER] = take_driver,
	[REC_HOOK_COST] = take_hook_cost,
	[REC_FAILURE] = take_failure,
	[REC_MODULE] = take_module,
	[REC_HOOKS] = take_hooks,
	[REC_RUNTIME] = take_runtime,
	[REC_WATERMARK] = take_watermark,
	[REC_COUNTERS] = take_counters,
	[REC_END] = take_end,
	[REC_DEVICE_PROFILE] = take_profile,
};

/* ---- the footer --------------------------------------------------------------------------- */

/* The block that was read is complete. */
static int end_block(struct summarizer *z)
{
	if (z->block.blocks == 0)
		return 0;
	z->s->blocks++;
	z->s->stored_bytes += z->place.bytes;
	int rc = footer_block(&z->found, &z->block, z->block_bytes);
	z->block.blocks = 0;
	return rc;
}

static int note_place(struct summarizer *z, const struct rec_reader *r, const struct rec_frame *f)
{
	struct rec_place p;
	int rc = 0;

	rec_reader_place(r, &p);
	z->s->version = p.version;
	if (p.version < 2)
		return 0;
	if (z->block.blocks == 0 || p.segment != z->place.segment || p.offset != z->place.offset) {
		rc = end_block(z);
		z->place = p;
		z->block = (struct rec_index){.segment = p.segment,
			.offset = p.offset,
			.blocks = 1,
			.types = p.types,
			.first_ns = f->time_ns};
		z->block_bytes = 0;
	}
	z->block.last_ns = f->time_ns;
	z->block.frames++;
	z->block_bytes += f->size;
	return rc;
}

/* What is wrong with a footer, or NULL. */
static const char *compare_footer(const struct summarizer *z, const uint8_t *payload, size_t size)
{
	const struct rec_footer_counter *counters;
	const struct rec_index *entries;
	struct rec_footer h;

	if (rec_footer_parse(payload, size, &h, &counters, &entries) < 0)
		return "it is too short";
	if (z->s->damage.unknown_frames == 0 &&
		(h.frames != z->found.head.frames ||
			h.payload_bytes != z->found.head.payload_bytes))
		return "it counts other frames";
	if (h.blocks != z->found.head.blocks)
		return "it counts other blocks";
	if (h.counters != footer_written(&z->found) ||
		(h.counters && memcmp(counters, z->found.counters, h.counters * sizeof(*counters))))
		return "its counters are not the newest";
	if (z->s->damage.unknown_frames == 0 &&
		(h.entries != z->found.head.entries ||
			(h.entries &&
				memcmp(entries, z->found.entries, h.entries * sizeof(*entries)))))
		return "its index is not that of the blocks";
	return NULL;
}

static int check_footer(struct summarizer *z, struct rec_reader *r)
{
	struct rec_block *block;
	const uint8_t *payload;
	size_t size;
	int rc = rec_reader_footer(r, &block, &payload, &size);

	footer_sort(&z->found);
	if (rc == -EBADMSG && !rec_damaged(&z->s->damage))
		z->s->footer_fault = "what stands at the end does not lead to one";
	if (rc < 0)
		return rc == -ENODATA || rc == -EBADMSG ? 0 : rc;
	z->s->has_footer = true;
	if (!rec_damaged(&z->s->damage)) /* else it cannot agree */
		z->s->footer_fault = compare_footer(z, payload, size);
	rec_block_unref(block);
	return 0;
}

/* ---- all frames --------------------------------------------------------------------------- */

static int read_frames(struct summarizer *z, struct rec_reader *r)
{
	const struct rec_frame *f;
	const uint8_t *payload;
	int rc;

	while ((rc = rec_reader_next(r, &f, &payload)) > 0) {
		z->s->behind_end += z->s->ended && f->type != REC_FOOTER;
		if (f->type == REC_FOOTER) /* describes what is before it */
			rc = end_block(z);
		else
			rc = note_place(z, r, f);
		if (f->type < SUMMARY_TYPES) {
			z->s->types[f->type].frames++;
			z->s->types[f->type].bytes += f->size;
		}
		if (rc == 0 && f->type < SUMMARY_TYPES && takers[f->type])
			rc = takers[f->type](z, f, payload);
		if (rc < 0)
			return rc;
	}
	z->s->damage = rec_reader_damage(r);
	return rc < 0 ? rc : end_block(z);
}

static void sum_counters(struct summarizer *z)
{
	struct rec_summary *s = z->s;
	struct ledger_found found = {.records = z->finished,
		.calls = z->calls,
		.dma = z->dma,
		.ended = s->ended,
		.damaged = rec_damaged(&s->damage)};

	for (uint32_t i = 0; i < z->found.head.counters; i++) {
		const struct rec_footer_counter *c = &z->found.counters[i];

		ledger_add(&s->ledger, &found, c->id, c->value);
	}
	ledger_compare(&s->ledger, &found);
}

int rec_summary_make(const char *path, struct rec_summary *ret)
{
	_cleanup_free_ struct sequence *cpus = calloc(SEQUENCE_CPUS, sizeof(*cpus));
	struct summarizer z = {.s = ret, .cpus = cpus};
	struct rec_reader *r = NULL;
	int rc;

	memset(ret, 0, sizeof(*ret));
	rc = cpus ? rec_reader_open(path, &r) : -ENOMEM;
	if (rc == 0) {
		ret->in_work = rec_reader_in_work(r);
		z.reader = r;
		rc = read_frames(&z, r);
	}
	if (rc == 0)
		rc = check_footer(&z, r);
	sum_counters(&z);
	if (cpus)
		ret->seq_gaps = sequence_gaps(cpus);
	ret->open_spans = count_open(&z.spans);
	span_set_free(&z.spans);
	footer_free(&z.found);
	rec_reader_close(r);
	return rc;
}

void rec_summary_free(struct rec_summary *s)
{
	rec_header_free(&s->header);
	free(s->sources);
	free(s->profiles);
	free(s->hook_cost);
	free(s->failures);
	modules_free(&s->modules);
	memset(s, 0, sizeof(*s));
}
