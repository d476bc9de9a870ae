/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link.c - what contains what: parents, and the driver's work inside each runtime span.
 *
 * The sequence is walked once with a stack of running spans per thread.  A start goes onto the
 * stack.  When a span stops, whatever began before it and still runs contains it; the nearest such
 * span is its parent.  An instant's parent is the nearest running span.  This holds whatever was
 * lost: a span without a start is never on a stack, and no assumption is made that spans nest.
 *
 * A span that never stops would contain everything after it.  That is right when the process was
 * killed inside it and wrong when only its stop was lost, so it leaves the stack as soon as the
 * thread shows that it must have ended: when a span that it began in stops; when another span of
 * its type starts (the API does not call itself); a system call also when the thread does anything
 * else.
 *
 * Hardware events and spans of no single thread take no part.
 *
 * Driver work is added when the call starts, to each span on the stack that ends no earlier.
 * Calls come in the order of their starts, so the union of copy intervals is the sum of what each
 * adds beyond the end of those before it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/file.h"
#include "runtime/record/link_device.h"
#include "runtime/record/load_internal.h"
#include "runtime/record/timeline.h"
#include "vmlinux/ioctl_table.h"

/* Deeper spans contain nothing.  Real stacks have fewer than ten; hostile ones must not cost
 * n^2. */
#define MAX_DEPTH 256u

struct stack {
	uint32_t *items;
	uint32_t depth, cap;
};

static int push(struct stack *s, uint32_t item)
{
	if (s->depth == MAX_DEPTH)
		return 0;
	if (s->depth == s->cap) {
		uint32_t cap = s->cap ? 2 * s->cap : 16;
		uint32_t *more = realloc(s->items, cap * sizeof(*more));

		if (!more)
			return -ENOMEM;
		s->items = more;
		s->cap = cap;
	}
	s->items[s->depth++] = item;
	return 0;
}

/* Takes spans that never stop off the stack, from place `from` upwards. */
static void drop_open(const struct timeline *t, struct stack *s, uint32_t from)
{
	uint32_t kept = from;

	for (uint32_t i = from; i < s->depth; i++)
		if (t->items[s->items[i]].kind != ITEM_OPEN)
			s->items[kept++] = s->items[i];
	s->depth = kept;
}

/* The thread does something: spans that cannot be running any more leave the stack. */
static void drop_ended(const struct timeline *t, struct stack *s, const struct item *starting)
{
	for (uint32_t i = 0; i < s->depth; i++) {
		const struct item *below = &t->items[s->items[i]];

		if (below->kind != ITEM_OPEN)
			continue;
		if (below->side == SIDE_KERNEL || (starting && starting->side == SIDE_RUNTIME &&
							  below->type == starting->type)) {
			drop_open(t, s, i);
			return;
		}
	}
}

/* The nearest span that may be a parent, below place `depth`. */
static uint32_t parent_at(const struct timeline *t, const struct stack *s, uint32_t depth)
{
	while (depth-- > 0) {
		const struct item *i = &t->items[s->items[depth]];

		if (i->side != SIDE_KERNEL || t->kernel_events != MERGE_KERNEL_OFF)
			return s->items[depth];
	}
	return NO_ITEM;
}

/* ---- driver work -------------------------------------------------------------------------- */

static int work_of(struct timeline *t, struct item *i, struct work **ret)
{
	if (i->work == NO_ITEM) {
		int rc = load_grow(&t->work, &t->work_cap, t->work_count + 1, sizeof(*t->work));
		if (rc < 0)
			return rc;
		i->work = (uint32_t)t->work_count++;
		memset(&t->work[i->work], 0, sizeof(*t->work));
	}
	*ret = &t->work[i->work];
	return 0;
}

static void count_copy(struct work *w, const struct load_call *c, uint64_t bytes)
{
	uint64_t from = c->start > w->dma_until ? c->start : w->dma_until;

	w->copies++;
	w->dma_bytes += bytes;
	if (c->end > from) {
		w->dma_ns += c->end - from;
		w->dma_until = c->end;
	}
}

/* Is this a copy that was made, and of how many bytes? */
static bool is_copy(const struct load_call *c, uint64_t *ret_bytes)
{
	const struct ioctl_row *row = ioctl_row_find(c->request);

	*ret_bytes = 0;
	if (!row || !(row->flags & IOCTL_F_COPY) || load_call_error(c) ||
		c->flags & NEV_F_ARG_FAULT)
		return false;
	for (unsigned i = 0; i < c->nargs && i < ioctl_row_fields(row); i++)
		if (row->fields[i].role == IOCTL_ROLE_SIZE)
			*ret_bytes = c->args[i];
	return true;
}

static int count_call(struct timeline *t, const struct stack *s, const struct item *call)
{
	const struct load_call *c = item_call(t, call);
	uint64_t bytes;
	bool copy = is_copy(c, &bytes);

	for (uint32_t i = 0; i < s->depth; i++) {
		struct item *span = &t->items[s->items[i]];
		struct work *w;
		int rc;

		if (span->side != SIDE_RUNTIME || span->kind != ITEM_SPAN || span->end < call->end)
			continue;
		rc = work_of(t, span, &w);
		if (rc < 0)
			return rc;
		w->ioctls++;
		w->ioctl_ns += c->end - c->start;
		if (load_call_error(c)) {
			w->errors++;
			w->last_error = load_call_error(c);
		}
		if (copy)
			count_copy(w, c, bytes);
	}
	return 0;
}

/* ---- the walk ----------------------------------------------------------------------------- */

static int at_start(struct timeline *t, struct stack *s, uint32_t index)
{
	struct item *i = &t->items[index];

	drop_ended(t, s, i);
	i->parent = parent_at(t, s, s->depth);
	if (i->side == SIDE_KERNEL && i->kind == ITEM_SPAN) {
		int rc = count_call(t, s, i);
		if (rc < 0)
			return rc;
	}
	return push(s, index);
}

static void at_stop(struct timeline *t, struct stack *s, uint32_t index)
{
	struct item *i = &t->items[index];
	uint32_t place = s->depth;

	while (place > 0 && s->items[place - 1] != index)
		place--;
	if (place == 0) { /* it found no room */
		i->parent = NO_ITEM;
		return;
	}
	place--;
	drop_open(t, s, place);
	memmove(&s->items[place], &s->items[place + 1], (s->depth - place - 1) * sizeof(*s->items));
	s->depth--;
	i->parent = parent_at(t, s, place);
}

static int walk(struct timeline *t, struct stack *stacks)
{
	int rc = 0;

	for (size_t k = 0; rc == 0 && k < t->sequence_count; k++) {
		const struct sort_entry *e = &t->sequence[k];
		struct item *i = &t->items[e->index];
		struct stack *s;

		if (i->thread == NO_ITEM)
			continue;
		s = &stacks[i->thread];
		switch ((enum step)e->minor) {
		case STEP_START:
		case STEP_ZERO_START:
			rc = at_start(t, s, e->index);
			break;
		case STEP_STOP:
		case STEP_ZERO_STOP:
			at_stop(t, s, e->index);
			break;
		case STEP_INSTANT:
			drop_ended(t, s, NULL);
			i->parent = parent_at(t, s, s->depth);
			break;
		}
	}
	return rc;
}

int timeline_link(struct timeline *t)
{
	struct stack *stacks = calloc(t->thread_count + 1, sizeof(*stacks));
	int rc;

	if (!stacks)
		return -ENOMEM;
	rc = walk(t, stacks);
	for (size_t i = 0; i < t->thread_count; i++)
		free(stacks[i].items);
	free(stacks);
	return rc < 0 ? rc : link_device_runs(t);
}
