/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order.c - the sequence in which records are written, and the ids that the merge gives out.
 *
 * Order is by time.  At one time t the order is such that spans behave like half-open intervals
 * [start, end):
 *
 *	stops of spans that began before t	the one that began last first: inner before outer
 *	starts of spans that end after t	runtime before kernel, then by ring and sequence
 *	spans that begin and end at t		the same, start before stop
 *	instants				the same
 *
 * so what happens exactly when one span ends and the next begins is inside neither, and a span that
 * ends with its parent ends first.  Among records of one kind the tie is broken by side, source,
 * core (unknown first: calls of no core contain those of a core), sequence within the core or CPU,
 * and at last by place in the recording.  Every pair of records is therefore ordered, and the same
 * recording gives the same sequence anywhere.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/file.h"
#include "runtime/record/timeline.h"

/* Rank of a step among those of the same time. */
static const uint8_t rank[] = {
	[STEP_STOP] = 0,
	[STEP_START] = 1,
	[STEP_ZERO_START] = 2,
	[STEP_ZERO_STOP] = 2,
	[STEP_INSTANT] = 3,
};

struct tie {
	uint32_t side, source, place;
	uint64_t sequence;
};

/* Place and sequence of an item's record; of its stop where `stop` and both lie in one ring. */
static struct tie tie_of(const struct timeline *t, const struct item *i, bool stop)
{
	struct tie k = {.side = i->side};

	if (i->side == SIDE_KERNEL) {
		k.place = item_call(t, i)->cpu;
		k.sequence = item_call(t, i)->seq;
	} else if (i->side == SIDE_RUNTIME) {
		const struct trace_record *r = item_record(t, i);

		k.source = t->l->records[i->first].source;
		k.place = r->nc_idx + 1u; /* unknown becomes 0 */
		k.sequence = r->id;
		if (stop && i->last != NO_ITEM) {
			const struct trace_record *s = &t->l->records[i->last].r;
			if (s->nc_idx == r->nc_idx && s->id > r->id)
				k.sequence = s->id;
		}
	}
	return k;
}

static int compare_ties(const struct tie *a, const struct tie *b)
{
	if (a->side != b->side)
		return a->side < b->side ? -1 : 1;
	if (a->source != b->source)
		return a->source < b->source ? -1 : 1;
	if (a->place != b->place)
		return a->place < b->place ? -1 : 1;
	return a->sequence < b->sequence ? -1 : a->sequence > b->sequence;
}

static int compare_steps(const void *ctx, const struct sort_entry *a, const struct sort_entry *b)
{
	const struct timeline *t = ctx;
	const struct item *x = &t->items[a->index], *y = &t->items[b->index];
	bool stops = a->minor == STEP_STOP;
	struct tie p, q;
	int c;

	if (rank[a->minor] != rank[b->minor])
		return rank[a->minor] < rank[b->minor] ? -1 : 1;
	if (stops && x->start != y->start)
		return x->start > y->start ? -1 : 1;
	p = tie_of(t, x, a->minor == STEP_ZERO_STOP);
	q = tie_of(t, y, b->minor == STEP_ZERO_STOP);
	c = compare_ties(&p, &q);
	if (c == 0 && a->index != b->index)
		c = a->index < b->index ? -1 : 1;
	if (c == 0)
		c = a->minor < b->minor ? -1 : a->minor > b->minor;
	return stops ? -c : c;
}

static void add_step(struct timeline *t, uint64_t time, uint32_t item, enum step step)
{
	t->sequence[t->sequence_count++] = (struct sort_entry){time, item, step};
}

static void add_steps(struct timeline *t, uint32_t index)
{
	const struct item *i = &t->items[index];
	bool zero = i->kind == ITEM_SPAN && i->start == i->end;

	if (i->kind >= ITEM_INSTANT) {
		add_step(t, i->start, index, STEP_INSTANT);
		return;
	}
	add_step(t, i->start, index, zero ? STEP_ZERO_START : STEP_START);
	if (i->kind == ITEM_SPAN)
		add_step(t, i->end, index, zero ? STEP_ZERO_STOP : STEP_STOP);
}

/* ---- ids ---------------------------------------------------------------------------------- */

/* New ids for a file of several runtimes: bits 40..61 the ordinal of (source, core) by first
 * appearance, low 40 bits a count within it. */
#define ORDINAL_SHIFT 40
#define MAX_CORES (TRACE_MAX_NC + 1)

struct core_ids {
	uint32_t ordinal; /* 0: not seen */
	uint64_t count;
};

struct renumber {
	uint32_t *sources; /* of this process */
	size_t source_count, last;
	struct core_ids *cores; /* [place of the source][core] */
	uint32_t next_ordinal;
};

static struct core_ids *core_of(const struct timeline *t, struct renumber *n, const struct item *i)
{
	uint32_t source = t->l->records[i->first].source, nc = item_record(t, i)->nc_idx;

	if (n->last >= n->source_count || n->sources[n->last] != source) {
		for (n->last = 0; n->last < n->source_count; n->last++)
			if (n->sources[n->last] == source)
				break;
		if (n->last == n->source_count)
			n->sources[n->source_count++] = source;
	}
	return &n->cores[n->last * MAX_CORES + (nc == TRACE_NC_UNKNOWN ? TRACE_MAX_NC : nc)];
}

static uint64_t new_id(const struct timeline *t, struct renumber *n, const struct item *i)
{
	struct core_ids *c = core_of(t, n, i);

	if (!c->ordinal)
		c->ordinal = ++n->next_ordinal;
	return (uint64_t)c->ordinal << ORDINAL_SHIFT | ++c->count;
}

static int number(struct timeline *t)
{
	size_t sources = t->p->source_count;
	_cleanup_free_ uint32_t *list = calloc(sources + 1, sizeof(*list));
	_cleanup_free_ struct core_ids *cores =
		calloc(sources > 1 ? sources * MAX_CORES : 1, sizeof(*cores));
	struct renumber n = {.sources = list, .cores = cores};
	uint64_t kernel = 0, markers = 0;

	if (!list || !cores)
		return -ENOMEM;
	for (size_t k = 0; k < t->sequence_count; k++) {
		const struct sort_entry *e = &t->sequence[k];
		struct item *i = &t->items[e->index];

		if (e->minor == STEP_STOP || e->minor == STEP_ZERO_STOP)
			continue;
		if (i->side == SIDE_KERNEL)
			i->id = ID_KERNEL | ++kernel;
		else if (i->side == SIDE_MARKER)
			i->id = ID_MARKER | ++markers;
		else if (sources > 1)
			i->id = new_id(t, &n, i);
	}
	return 0;
}

int timeline_order(struct timeline *t)
{
	int rc;

	t->sequence = malloc((2 * t->item_count + 1) * sizeof(*t->sequence));
	if (!t->sequence)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->item_count; i++)
		add_steps(t, i);
	rc = sort_entries(t->sequence, t->sequence_count, compare_steps, t);
	return rc < 0 ? rc : number(t);
}
