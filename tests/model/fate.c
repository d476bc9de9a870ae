/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fate.c - what becomes of the records: which are lost and why, which come late, twice or spoiled.
 */
#include <string.h>

#include "runtime/trace/event_registry.h"
#include "tests/model/model.h"

enum { RNG_FATE = 2, RNG_LATE };

/* Orders records as their rings do. */
static int compare_emission(const struct model_record *a, const struct model_record *b)
{
	if (a->emit != b->emit)
		return a->emit < b->emit ? -1 : 1;
	if (a->order != b->order)
		return a->order < b->order ? -1 : 1;
	return a->copy - b->copy;
}

static void sort_records(struct model *m)
{
	for (uint32_t gap = m->record_count / 2; gap > 0; gap /= 2)
		for (uint32_t i = gap; i < m->record_count; i++) {
			struct model_record r = m->records[i];
			uint32_t k = i;

			for (; k >= gap && compare_emission(&m->records[k - gap], &r) > 0; k -= gap)
				m->records[k] = m->records[k - gap];
			m->records[k] = r;
		}
}

static bool is_runtime(const struct model_record *r)
{
	return r->source < MODEL_SOURCES;
}

/* Does order of emission decide about this record's links? */
static bool matters_for_links(const struct model_span *p)
{
	return p->type == TRACE_DEVICE_EXEC || p->type == TRACE_EXECUTE_API ||
	       p->type == TRACE_MODEL_SUBMIT || p->type == TRACE_EXEC_WAIT;
}

/* A run with impossible times is looked at whole. */
static bool is_spared(const struct model *m, const struct model_record *r)
{
	return is_runtime(r) && m->spans[r->index].wrong;
}

static void lose_calls(struct model *m, struct rng *r)
{
	uint32_t seq[MODEL_CPUS] = {0};

	for (uint32_t i = 0; i < m->record_count; i++) {
		struct model_record *rec = &m->records[i];
		struct model_call *c = &m->calls[rec->index];

		if (rec->kind != RECORD_DONE)
			continue;
		if (model_has(m, WITH_RING_FULL) && rng_one_in(r, 6)) {
			static const enum model_fate fates[] = {
				CALL_RING_FULL, CALL_RING_FULL, CALL_INFLIGHT_FULL, CALL_EXIT_LOST};

			c->fate = fates[rng_below(r, 4)];
			/* A call that is not in the table of open calls cannot be announced. */
			if (c->fate == CALL_INFLIGHT_FULL && c->announcements)
				c->fate = CALL_RING_FULL;
		}
		/* A number is taken when a record is due. */
		if (c->fate == CALL_RECORDED || c->fate == CALL_RING_FULL)
			c->seq = seq[c->cpu]++;
		rec->seq = c->seq;
		if (c->fate == CALL_RING_FULL)
			rec->lost = REC_C_KERNEL_RING_FULL;
		else if (c->fate == CALL_INFLIGHT_FULL)
			rec->lost = REC_C_KERNEL_INFLIGHT_FULL;
		else if (c->fate == CALL_EXIT_LOST)
			rec->lost = REC_C_KERNEL_EXIT_LOST;
	}
}

static uint32_t core_place(const struct model *m, const struct model_record *r)
{
	uint32_t nc = m->spans[r->index].nc;

	return nc == TRACE_NC_UNKNOWN ? MODEL_CORES : nc;
}

/* Runs of records overwritten, single ones lost in other ways. */
static void lose_records(struct model *m, struct rng *r)
{
	uint32_t run[MODEL_SOURCES][MODEL_CORES + 1] = {{0}};

	for (uint32_t i = 0; i < m->record_count; i++) {
		struct model_record *rec = &m->records[i];
		uint32_t *left;

		if (!is_runtime(rec) || is_spared(m, rec))
			continue;
		left = &run[rec->source][core_place(m, rec)];
		if (*left == 0 && rng_one_in(r, 25))
			*left = 1 + rng_below(r, 6);
		if (*left) {
			--*left;
			rec->lost = REC_C_RUNTIME_OVERWRITTEN;
		} else if (rng_one_in(r, 40)) {
			rec->lost = rng_one_in(r, 2) ? REC_C_RUNTIME_SLOT_BUSY
						     : REC_C_RUNTIME_ABANDONED;
		}
	}
}

/* The other record of a span, NULL: there is none. */
static struct model_record *partner(struct model *m, const struct model_record *r)
{
	for (uint32_t i = 0; i < m->record_count; i++) {
		struct model_record *p = &m->records[i];

		if (p != r && is_runtime(p) == is_runtime(r) && p->index == r->index &&
			p->kind != r->kind)
			return p;
	}
	return NULL;
}

/* Holds a few records back, so that their source's watermark passes them by.  A start that comes when
 * the watermark has passed its stop, and executions, whose links depend on the order of emission,
 * are left alone. */
static void make_late(struct model *m, struct rng *r)
{
	uint64_t tick = m->ticks[1] - m->ticks[0];

	for (unsigned n = 2 + rng_below(r, 6); n > 0; n--) {
		struct model_record *rec = &m->records[rng_below(r, m->record_count)];
		uint64_t emit = rec->emit + (1 + rng_below(r, 5)) * tick;

		if (rec->lost || rec->copy || rec->late || rec->kind == RECORD_ANNOUNCE)
			continue;
		if (is_runtime(rec) && matters_for_links(&m->spans[rec->index]))
			continue;
		if (rec->kind == RECORD_START) {
			const struct model_record *stop = partner(m, rec);

			if (!stop || stop->emit < emit)
				continue;
		}
		rec->late = true;
		rec->emit = emit;
		rec->order = m->record_count + n;
	}
}

static void make_twice(struct model *m, struct rng *r)
{
	uint32_t count = m->record_count;

	for (uint32_t i = 0; i < count && m->record_count + 1 < MODEL_RECORDS; i++) {
		struct model_record *rec = &m->records[i];

		if (is_runtime(rec) && !rec->lost && !rec->late && !is_spared(m, rec) &&
			rng_one_in(r, 25)) {
			struct model_record *copy = &m->records[m->record_count++];

			*copy = *rec;
			copy->copy = true;
		}
	}
}

static void make_invalid(struct model *m, struct rng *r)
{
	for (uint32_t i = 0; i < m->record_count; i++) {
		struct model_record *rec = &m->records[i];

		rec->invalid = rec->kind != RECORD_ANNOUNCE && !rec->copy && !rec->lost &&
			       !rec->late && !is_spared(m, rec) && rng_one_in(r, 40);
	}
}

static void number_records(struct model *m)
{
	for (uint32_t i = 0; i < m->record_count; i++) {
		struct model_record *rec = &m->records[i];

		if (!is_runtime(rec))
			continue;
		uint64_t *next = &m->sources[rec->source].next_seq[core_place(m, rec)];
		/* A copy is the same record: it follows at once, see compare_emission. */
		rec->seq = rec->copy ? *next : ++*next;
	}
}

void model_fates(struct model *m)
{
	struct rng fate = rng_for(m->seed, RNG_FATE), late = rng_for(m->seed, RNG_LATE);

	sort_records(m);
	lose_calls(m, &fate);
	if (model_has(m, WITH_LATE))
		make_late(m, &late);
	sort_records(m);
	if (model_has(m, WITH_OVERWRITTEN))
		lose_records(m, &fate);
	if (model_has(m, WITH_TWICE))
		make_twice(m, &fate);
	sort_records(m);
	number_records(m);
	if (model_has(m, WITH_INVALID))
		make_invalid(m, &fate);
}
