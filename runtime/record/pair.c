/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pair.c - starts and stops become spans.
 *
 * Runtime: a start and a stop with the same source and tracking id.  They may lie in rings of
 * different cores and come in any order, so pairing goes by id, not by time.  A stop alone is a
 * span whose start was lost; a start alone stays open; of several starts with one id, which only a
 * damaged or hostile ring can hold, the first is the span.
 *
 * Kernel: one record per finished call.  A call that was announced while it was open and has
 * finished since gives two, with the same thread and start; the announcement then says nothing new.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/file.h"
#include "runtime/record/load_internal.h"
#include "runtime/record/timeline.h"
#include "runtime/trace/event_registry.h"

void timeline_init(struct timeline *t, const struct load *l, const struct load_process *p,
	enum merge_kernel_events kernel_events)
{
	memset(t, 0, sizeof(*t));
	t->l = l;
	t->p = p;
	t->kernel_events = kernel_events;
}

void timeline_free(struct timeline *t)
{
	free(t->items);
	free(t->sequence);
	free(t->work);
	free(t->tids);
	memset(t, 0, sizeof(*t));
}

/* ---- threads ------------------------------------------------------------------------------ */

static int compare_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static int note_tid(struct timeline *t, size_t *cap, uint32_t tid)
{
	int rc;

	if (t->thread_count && t->tids[t->thread_count - 1] == tid)
		return 0;
	rc = load_grow(&t->tids, cap, t->thread_count + 1, sizeof(*t->tids));
	if (rc == 0)
		t->tids[t->thread_count++] = tid;
	return rc;
}

/* All thread ids of the process, sorted. */
static int list_threads(struct timeline *t)
{
	size_t cap = 0, kept = 0;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < t->p->record_count; i++)
		rc = note_tid(t, &cap, (uint32_t)t->l->records[t->p->records[i]].r.thread_id);
	for (size_t i = 0; rc == 0 && i < t->p->call_count; i++)
		rc = note_tid(t, &cap, t->l->calls[t->p->calls[i]].tid);
	if (rc < 0 || t->thread_count == 0)
		return rc;
	qsort(t->tids, t->thread_count, sizeof(*t->tids), compare_u32);
	for (size_t i = 0; i < t->thread_count; i++)
		if (!kept || t->tids[kept - 1] != t->tids[i])
			t->tids[kept++] = t->tids[i];
	t->thread_count = kept;
	return 0;
}

/* 0 is no thread: the device's side wrote the record. */
static uint32_t find_thread(const struct timeline *t, uint64_t tid)
{
	size_t lo = 0, hi = t->thread_count;

	if (tid == 0)
		return NO_ITEM;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (t->tids[mid] < tid)
			lo = mid + 1;
		else
			hi = mid;
	}
	return (uint32_t)lo;
}

/* ---- items -------------------------------------------------------------------------------- */

static int add_item(struct timeline *t, enum item_side side, enum item_kind kind, uint32_t first,
	struct item **ret)
{
	struct item *i;
	int rc = load_grow(&t->items, &t->item_cap, t->item_count + 1, sizeof(*t->items));

	if (rc < 0)
		return rc;
	i = &t->items[t->item_count++];
	*i = (struct item){
		.first = first,
		.last = NO_ITEM,
		.thread = NO_ITEM,
		.parent = NO_ITEM,
		.link = NO_ITEM,
		.work = NO_ITEM,
		.side = (uint8_t)side,
		.kind = (uint8_t)kind,
	};
	*ret = i;
	return 0;
}

/* stop: the stop's record, or NO_ITEM. */
static int add_runtime(struct timeline *t, enum item_kind kind, uint32_t first, uint32_t stop)
{
	const struct trace_record *r = &t->l->records[first].r;
	const struct trace_event_info *info = trace_event_info(r->trace_type);
	struct item *i;
	int rc = add_item(t, SIDE_RUNTIME, kind, first, &i);

	if (rc < 0)
		return rc;
	i->type = r->trace_type;
	i->hardware = info && info->category == TRACE_HARDWARE;
	i->id = r->tracking_id;
	i->start = i->end = r->timestamp_ns;
	i->thread = i->hardware ? NO_ITEM : find_thread(t, r->thread_id);
	i->last = stop;
	if (stop != NO_ITEM) {
		const struct trace_record *s = &t->l->records[stop].r;

		i->end = s->timestamp_ns;
		if (i->end < i->start) {
			i->clamped_ns = i->start - i->end;
			i->end = i->start;
			t->clamped++;
			t->clamped_ns += i->clamped_ns;
		}
		if (s->thread_id != r->thread_id)
			i->thread = NO_ITEM; /* moved from thread to thread: inside of none */
	}
	t->spans += kind == ITEM_SPAN;
	t->open_spans += kind == ITEM_OPEN;
	t->start_lost += kind == ITEM_LOST;
	t->device_runs += i->type == TRACE_DEVICE_EXEC && kind <= ITEM_OPEN;
	return 0;
}

/* ---- runtime ------------------------------------------------------------------------------ */

static int compare_ids(const void *ctx, const struct sort_entry *a, const struct sort_entry *b)
{
	const struct load *l = ctx;
	uint32_t x = l->records[a->index].source, y = l->records[b->index].source;

	if (x != y)
		return x < y ? -1 : 1;
	if (a->minor != b->minor)
		return a->minor < b->minor ? -1 : 1;
	return a->index < b->index ? -1 : a->index > b->index;
}

/* One source's records with one id: starts, then stops. */
static int pair_group(struct timeline *t, const struct sort_entry *g, size_t count)
{
	size_t starts = 0, i;
	int rc = 0;

	while (starts < count && g[starts].minor == TRACE_START)
		starts++;
	if (starts)
		rc = add_runtime(t, starts < count ? ITEM_SPAN : ITEM_OPEN, g[0].index,
			starts < count ? g[starts].index : NO_ITEM);
	for (i = 1; rc == 0 && i < starts; i++)
		rc = add_runtime(t, ITEM_DUPLICATE, g[i].index, NO_ITEM);
	for (i = starts ? starts + 1 : 0; rc == 0 && i < count; i++)
		rc = add_runtime(t, ITEM_LOST, g[i].index, NO_ITEM);
	return rc;
}

static int pair_runtime(struct timeline *t)
{
	const struct load *l = t->l;
	_cleanup_free_ struct sort_entry *e = malloc((t->p->record_count + 1) * sizeof(*e));
	size_t count = 0, next;
	int rc = 0;

	if (!e)
		return -ENOMEM;
	for (size_t i = 0; rc == 0 && i < t->p->record_count; i++) {
		uint32_t index = t->p->records[i];
		const struct trace_record *r = &l->records[index].r;

		if (r->phase == TRACE_INSTANT)
			rc = add_runtime(t, ITEM_INSTANT, index, NO_ITEM);
		else
			e[count++] = (struct sort_entry){r->tracking_id, index, r->phase};
	}
	if (rc == 0)
		rc = sort_entries(e, count, compare_ids, l);
	for (size_t i = 0; rc == 0 && i < count; i = next) {
		for (next = i + 1;
			next < count && e[next].key == e[i].key &&
			l->records[e[next].index].source == l->records[e[i].index].source;
			next++)
			;
		rc = pair_group(t, &e[i], next - i);
	}
	return rc;
}

/* ---- kernel ------------------------------------------------------------------------------- */

static int compare_calls(const void *ctx, const struct sort_entry *a, const struct sort_entry *b)
{
	const struct load_call *x = &((const struct load *)ctx)->calls[a->index];
	const struct load_call *y = &((const struct load *)ctx)->calls[b->index];

	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	if (x->done != y->done)
		return x->done ? -1 : 1;
	return a->index < b->index ? -1 : a->index > b->index;
}

static int add_call(struct timeline *t, uint32_t index)
{
	const struct load_call *c = &t->l->calls[index];
	struct item *i;
	int rc = add_item(t, SIDE_KERNEL, c->done ? ITEM_SPAN : ITEM_OPEN, index, &i);

	if (rc < 0)
		return rc;
	i->start = c->start;
	i->end = c->end;
	i->thread = find_thread(t, c->tid);
	if (t->kernel_events == MERGE_KERNEL_OFF) {
		t->not_wanted++;
	} else {
		t->kernel_spans += c->done;
		t->open_spans += !c->done;
	}
	return 0;
}

static int pair_kernel(struct timeline *t)
{
	const struct load *l = t->l;
	size_t count = t->p->call_count;
	_cleanup_free_ struct sort_entry *e = malloc((count + 1) * sizeof(*e));
	int rc;

	if (!e)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		e[i] = (struct sort_entry){l->calls[t->p->calls[i]].start, t->p->calls[i], 0};
	rc = sort_entries(e, count, compare_calls, l);
	for (size_t i = 0; rc == 0 && i < count; i++) {
		const struct load_call *c = &l->calls[e[i].index];

		/* Of one call, the finished record stands first, then its announcements. */
		if (!c->done && i && e[i - 1].key == e[i].key &&
			l->calls[e[i - 1].index].tid == c->tid)
			t->announced++;
		else
			rc = add_call(t, e[i].index);
	}
	return rc;
}

static int add_clock_steps(struct timeline *t)
{
	for (uint32_t n = 0; n < t->l->clock.step_count; n++) {
		struct item *i;
		int rc = add_item(t, SIDE_MARKER, ITEM_INSTANT, n, &i);

		if (rc < 0)
			return rc;
		i->start = i->end = t->l->clock.steps[n].boot_ns;
	}
	return 0;
}

int timeline_pair(struct timeline *t)
{
	int rc = list_threads(t);

	if (rc == 0)
		rc = pair_runtime(t);
	if (rc == 0)
		rc = pair_kernel(t);
	return rc < 0 ? rc : add_clock_steps(t);
}
