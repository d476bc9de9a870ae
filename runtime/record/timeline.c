/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timeline.c - what contains what: parents, and the driver's work inside each runtime span.
 *
 * Items come in order of time, and each thread has a stack of the spans that run.  A start goes onto
 * it.  When a span stops, whatever began before it and still runs contains it; the nearest such span
 * is its parent.  An instant's parent is the nearest running span.  This holds whatever was lost: a
 * span without a start is never on a stack, and no assumption is made that spans nest.
 *
 * A span whose stop is lost would contain everything after it.  That is right when the process was
 * killed inside it and wrong otherwise, so it leaves the stack as soon as the thread shows that it must
 * have ended: when a span that it began in stops; when another span of its type starts (the API does
 * not call itself); when another runtime writes on the thread (exec); a system call also when the
 * thread does anything else.  That the stop is lost is not known, for nobody looks ahead; but of most
 * spans it is known that the stop has come (ITEM_COMPLETE), and those are never thought lost.  One that
 * left the stack and stops after all is kept aside, so that its stop still says what it knows.
 *
 * Hardware events and spans of no single thread take no part.  Of the driver's DMA path whole copies,
 * which are functions that a thread is in, are on its stack as calls are; doorbells and asynchronous
 * copies go on by themselves, so they contain nothing, and have a parent when the thread that began them
 * sees their end.
 *
 * Driver work is added when a call stops, to each span on the stack below it: those are the ones that
 * began before the call and outlast it.  Calls of one thread do not overlap, so the union of copy
 * intervals is their sum; where they do (damaged recordings), the intervals that a later copy may still
 * overlap are kept until none can.
 */
#include "runtime/record/timeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/record/call_error.h"
#include "runtime/record/encode_dma.h"
#include "runtime/trace/event_registry.h"
#include "vmlinux/dma_kinds.h"

#define MAX_INTERVALS 1024u
#define MANY_THREADS 4096u

int timeline_init(struct timeline *t, const struct session *session, struct processes *processes,
	enum merge_kernel_events kernel_events)
{
	*t = (struct timeline){.session = session, .processes = processes};
	return encoder_init(&t->encoder, session, kernel_events);
}

void timeline_free(struct timeline *t)
{
	for (size_t i = 0; i < t->stack_count; i++) {
		for (uint32_t k = 0; k < t->stacks[i].depth; k++)
			free(t->stacks[i].frames[k].work.open);
		free(t->stacks[i].frames);
	}
	for (size_t i = 0; i < t->elsewhere_count; i++)
		free(t->elsewhere[i].work.open);
	free(t->stacks);
	free(t->elsewhere);
	free(t->free_frames);
	map64_free(&t->threads);
	map64_free(&t->displaced);
	encoder_free(&t->encoder);
	memset(t, 0, sizeof(*t));
}

/* ---- stacks ------------------------------------------------------------------------------- */

/* Stacks that are empty are forgotten when there are many: threads come and go. */
static int forget_threads(struct timeline *t)
{
	struct map64 kept = {.seed = t->threads.seed};
	size_t count = 0;

	for (size_t i = 0; t->threads.bits && i <= map64_mask(&t->threads); i++) {
		struct map64_entry *e = &t->threads.entries[i];

		if (e->key && t->stacks[e->value].depth && map64_put(&kept, e->key, e->value) < 0)
			return -ENOMEM;
	}
	/* Moved together, in the order of their places, which says nothing. */
	uint64_t *places = calloc(t->stack_count + 1, sizeof(*places));
	if (!places)
		return -ENOMEM;
	for (size_t i = 0; i < t->stack_count; i++) {
		if (!t->stacks[i].depth) {
			free(t->stacks[i].frames);
			continue;
		}
		places[i] = count;
		t->stacks[count++] = t->stacks[i];
	}
	for (size_t i = 0; kept.bits && i <= map64_mask(&kept); i++)
		if (kept.entries[i].key)
			kept.entries[i].value = places[kept.entries[i].value];
	free(places);
	map64_free(&t->threads);
	t->threads = kept;
	t->stack_count = count;
	return 0;
}

/* The stack of a thread; NULL when there is none, or (make) memory is short. */
static struct thread_stack *stack_of(struct timeline *t, uint32_t process, uint32_t tid, bool make)
{
	uint64_t key = ((uint64_t)process << 32 | tid) + 1, *place = map64_find(&t->threads, key);
	size_t need = t->stack_count + 1;

	if (place)
		return &t->stacks[*place];
	if (!make)
		return NULL;
	if (t->stack_count == t->stack_cap && t->stack_count >= MANY_THREADS) {
		if (forget_threads(t) < 0)
			return NULL;
		if (t->stack_count > t->stack_cap / 2) /* else it would soon be looked at again */
			need = t->stack_cap + 1;
	}
	if (session_grow(&t->stacks, &t->stack_cap, need, sizeof(*t->stacks)) < 0 ||
		map64_put(&t->threads, key, t->stack_count) < 0)
		return NULL;
	t->stacks[t->stack_count] = (struct thread_stack){0};
	return &t->stacks[t->stack_count++];
}

static int push(struct thread_stack *s, const struct frame *f)
{
	if (s->depth == s->cap) {
		uint32_t cap = s->cap ? 2 * s->cap : 8;
		struct frame *more = realloc(s->frames, cap * sizeof(*more));

		if (!more)
			return -ENOMEM;
		s->frames = more;
		s->cap = cap;
	}
	s->calls += f->side == SIDE_KERNEL;
	s->frames[s->depth++] = *f;
	return 0;
}

/* A span that is on no stack any more, or never was, but may stop. */
static int displace(struct timeline *t, const struct frame *f)
{
	size_t place;

	if (t->free_count) {
		place = t->free_frames[--t->free_count];
	} else {
		if (session_grow(&t->elsewhere, &t->elsewhere_cap, t->elsewhere_count + 1,
			    sizeof(*t->elsewhere)) < 0 ||
			session_grow(&t->free_frames, &t->free_cap, t->elsewhere_count + 1,
				sizeof(*t->free_frames)) < 0)
			return -ENOMEM;
		place = t->elsewhere_count++;
	}
	t->elsewhere[place] = *f;
	return map64_put(&t->displaced, f->pair, place);
}

static bool take_displaced(struct timeline *t, uint64_t pair, struct frame *ret)
{
	uint64_t *place = map64_find(&t->displaced, pair);

	if (!place)
		return false;
	*ret = t->elsewhere[*place];
	t->elsewhere[*place].work.open = NULL;
	t->free_frames[t->free_count++] = (uint32_t)*place;
	map64_remove(&t->displaced, pair);
	return true;
}

/* Takes spans that have perhaps lost their stop off the stack, from a place upwards. */
static int drop_open(struct timeline *t, struct process *p, struct thread_stack *s, uint32_t from)
{
	uint32_t kept = from;

	for (uint32_t i = from; i < s->depth; i++) {
		struct frame *f = &s->frames[i];

		if (f->complete) {
			s->frames[kept++] = *f;
			continue;
		}
		if (f->side == SIDE_KERNEL) {
			s->calls--;
			f->missed = true;
			p->exit_missed++;
		}
		int rc = displace(t, f);
		if (rc < 0)
			return rc;
	}
	s->depth = kept;
	return 0;
}

/* Does a span of the driver go on while its thread does this?  A call, and a whole copy in it, while
 * its own work on the DMA path goes on. */
static bool goes_on(const struct frame *below, const struct item *now)
{
	if (!now || now->side != SIDE_DMA || below->told != now->dma.call)
		return false;
	return below->side == SIDE_KERNEL || below->type != now->dma.dma_kind;
}

/* The thread does something: spans that cannot be running any more leave the stack. */
static int drop_ended(
	struct timeline *t, struct process *p, struct thread_stack *s, const struct item *starting)
{
	for (uint32_t i = 0; i < s->depth; i++) {
		const struct frame *below = &s->frames[i];

		if (below->complete)
			continue;
		if ((below->side != SIDE_RUNTIME && !goes_on(below, starting)) ||
			(starting && starting->side == SIDE_RUNTIME &&
				(below->type == starting->type ||
					below->source != starting->source)))
			return drop_open(t, p, s, i);
	}
	return 0;
}

/* The nearest span that may be a parent, below place `depth`; its id, or 0. */
static uint64_t parent_at(const struct timeline *t, const struct thread_stack *s, uint32_t depth)
{
	while (depth-- > 0)
		if (s->frames[depth].side == SIDE_RUNTIME ||
			t->encoder.kernel_events != MERGE_KERNEL_OFF)
			return s->frames[depth].id;
	return 0;
}

/* ---- driver work -------------------------------------------------------------------------- */

/* Counts the intervals of a span's copies as they are now. */
static void settle_copies(struct work *w)
{
	for (uint32_t i = 0; i < w->open_count; i++)
		w->dma_ns += w->open[i].to - w->open[i].from;
	w->open_count = 0;
}

/* A copy that ends no earlier than all before it.  alone: no later copy can overlap it. */
static int add_copy(struct work *w, uint64_t from, uint64_t to, bool alone)
{
	if (alone && w->open_count == 0) {
		w->dma_ns += to - from;
		return 0;
	}
	while (w->open_count && w->open[w->open_count - 1].to >= from) {
		w->open_count--;
		if (w->open[w->open_count].from < from)
			from = w->open[w->open_count].from;
	}
	if (w->open_count == MAX_INTERVALS)
		settle_copies(w);
	if (w->open_count == w->open_cap) {
		uint32_t cap = w->open_cap ? 2 * w->open_cap : 8;
		struct interval *more = realloc(w->open, cap * sizeof(*more));

		if (!more)
			return -ENOMEM;
		w->open = more;
		w->open_cap = cap;
	}
	w->open[w->open_count++] = (struct interval){from, to};
	if (alone)
		settle_copies(w);
	return 0;
}

/* Is this a copy that was made, and of how many bytes? */
static bool is_copy(struct timeline *t, const struct item *i, uint64_t *ret_bytes)
{
	const struct ioctl_row *row = encode_row(&t->encoder, i->request);

	*ret_bytes = 0;
	if (!row || !(row->flags & IOCTL_F_COPY) || i->result || i->call_flags & NEV_F_ARG_FAULT)
		return false;
	for (unsigned n = 0; n < i->nargs && n < t->encoder.fields; n++)
		if (row->fields[n].role == IOCTL_ROLE_SIZE)
			*ret_bytes = i->args[n];
	return true;
}

/* Adds a call, and its error, to the spans below a place. */
static int count_call(struct timeline *t, struct thread_stack *s, uint32_t depth,
	const struct item *i, int64_t error)
{
	uint64_t bytes;
	bool copy;

	if (NEV_IS_OP(i->request))
		return 0;
	copy = is_copy(t, i, &bytes);
	for (uint32_t k = 0; k < depth; k++) {
		struct work *w = &s->frames[k].work;
		int rc;

		if (s->frames[k].side != SIDE_RUNTIME)
			continue;
		w->ioctls++;
		w->ioctl_ns += i->time - i->start;
		if (error) {
			w->errors++;
			w->last_error = error;
		}
		if (!copy)
			continue;
		w->copies++;
		w->dma_bytes += bytes;
		rc = add_copy(w, i->start, i->time, s->calls == 0);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* ---- items -------------------------------------------------------------------------------- */

static bool on_thread(const struct item *i)
{
	return i->tid && !(i->flags & (ITEM_HARDWARE | ITEM_MOVED));
}

static void note_seen(struct process *p, uint64_t time)
{
	if (p->first_seen == 0 || time < p->first_seen)
		p->first_seen = time;
	if (time > p->last_seen)
		p->last_seen = time;
}

/* Writes a record, unless it is not wanted; either way so many raw records are done with. */
static int write_event(struct timeline *t, struct process *p, const struct item *i,
	const struct event_out *out, uint64_t records)
{
	note_seen(p, i->time);
	if (i->side != SIDE_RUNTIME && t->encoder.kernel_events == MERGE_KERNEL_OFF) {
		p->not_wanted += records;
		return 0;
	}
	p->written += records;
	p->last_time = i->time;
	return encode_item(&t->encoder, p, i, out);
}

static uint64_t written_id(const struct timeline *t, const struct item *i)
{
	return item_written_id(i->pair, t->session->sources[i->source].ordinal);
}

static int at_start(struct timeline *t, struct process *p, const struct item *i)
{
	bool kernel = i->side == SIDE_KERNEL;
	struct frame f = {
		.pair = i->pair,
		.start = i->time,
		.order = ++t->order,
		.type = i->type,
		.source = i->source,
		.side = i->side,
		.told = i->time - i->late_ns,
		.complete = (i->flags & ITEM_COMPLETE) != 0,
	};
	struct event_out out = {.phase = PHASE_START};
	int rc = 0;

	out.id = f.id = kernel ? ID_KERNEL | ++p->calls : written_id(t, i);
	p->open_spans += !kernel || t->encoder.kernel_events != MERGE_KERNEL_OFF;
	p->device_runs += i->type == TRACE_DEVICE_EXEC && !kernel;
	if (on_thread(i)) {
		struct thread_stack *s = stack_of(t, i->process, i->tid, true);

		rc = s ? drop_ended(t, p, s, i) : -ENOMEM;
		if (rc == 0)
			rc = s->depth < TIMELINE_MAX_DEPTH ? push(s, &f) : displace(t, &f);
	} else if (kernel) {
		rc = displace(t, &f);
	}
	/* Of a finished call the one raw record is counted at its stop. */
	return rc < 0 ? rc : write_event(t, p, i, &out, !kernel || i->flags & ITEM_ANNOUNCED);
}

/* Finds the span of a stop on its stack; its place, or the depth when it is not there. */
static uint32_t place_of(const struct thread_stack *s, uint64_t pair)
{
	for (uint32_t place = s->depth; place-- > 0;)
		if (s->frames[place].pair == pair)
			return place;
	return s->depth;
}

/* Takes a span off its stack.  Sets its parent in `out`. */
static int pop(struct timeline *t, struct process *p, struct thread_stack *s, uint32_t place,
	struct frame *f, struct event_out *out)
{
	int rc;

	*f = s->frames[place];
	s->calls -= f->side == SIDE_KERNEL;
	rc = place + 1 < s->depth ? drop_open(t, p, s, place + 1) : 0;
	if (rc < 0)
		return rc;
	memmove(&s->frames[place], &s->frames[place + 1],
		(s->depth - place - 1) * sizeof(*s->frames));
	s->depth--;
	out->parent = parent_at(t, s, place);
	return 0;
}

/* A span that had left its stack stops.  *ret_place: how many spans of the stack began before it, of
 * which the nearest is its parent.  What began inside it and has perhaps lost its stop ends with it, as
 * it would have had the span not left. */
static int end_displaced(struct timeline *t, struct process *p, struct thread_stack *s,
	const struct frame *f, uint32_t *ret_place, struct event_out *out)
{
	uint32_t depth = s->depth;

	while (depth > 0 && s->frames[depth - 1].order > f->order)
		depth--;
	out->parent = parent_at(t, s, depth);
	*ret_place = depth;
	return drop_open(t, p, s, depth);
}

static int at_stop(struct timeline *t, struct process *p, const struct item *i)
{
	bool kernel = i->side == SIDE_KERNEL, moved = i->flags & ITEM_MOVED;
	uint32_t tid = moved ? (uint32_t)i->other : i->tid;
	struct thread_stack *s = NULL;
	struct event_out out = {.phase = PHASE_STOP};
	struct frame f = {.id = kernel ? 0 : written_id(t, i)};
	uint32_t place = 0;
	int rc = 0;

	if (tid && !(i->flags & ITEM_HARDWARE))
		s = stack_of(t, i->process, tid, false);
	if (s && (place = place_of(s, i->pair)) < s->depth) {
		rc = pop(t, p, s, place, &f, &out);
	} else if (take_displaced(t, i->pair, &f)) {
		p->exit_missed -= f.missed; /* it was seen after all */
		place = 0;
		if (s)
			rc = end_displaced(t, p, s, &f, &place, &out);
	} else {
		place = 0;
	}
	if (moved)
		out.parent = 0;
	if (kernel)
		out.error = call_error(i->request, i->result, f.dma_error);
	if (kernel && f.dma_error)
		failures_explain(&p->failures, i->tid, f.told, f.dma_error);
	if (rc == 0 && kernel && s)
		rc = count_call(t, s, place, i, out.error);
	settle_copies(&f.work);
	out.id = f.id;
	out.work = kernel || moved ? NULL : &f.work;
	if (!kernel || t->encoder.kernel_events != MERGE_KERNEL_OFF) {
		p->open_spans--;
		*(kernel ? &p->kernel_spans : &p->spans) += 1;
	}
	p->announced += (i->flags & ITEM_ANNOUNCED) != 0;
	/* The announcement was counted when it was written; the record of the end takes its place. */
	if (rc == 0)
		rc = write_event(t, p, i, &out, !(i->flags & ITEM_ANNOUNCED));
	free(f.work.open);
	return rc;
}

/* ---- the DMA path ------------------------------------------------------------------------- */

/* The call that a record belongs to: its id; 0: it is not known.  It learns what failed in it. */
static uint64_t call_of(const struct timeline *t, struct thread_stack *s, const struct item *i)
{
	for (uint32_t k = s && i->dma.call ? s->depth : 0; k-- > 0;) {
		struct frame *f = &s->frames[k];

		if (f->side != SIDE_KERNEL || f->told != i->dma.call)
			continue;
		if (i->kind != ITEM_START && encode_dma_error(&t->encoder, i) > 0)
			f->dma_error = (int32_t)encode_dma_error(&t->encoder, i);
		return f->id;
	}
	return 0;
}

static int dma_start(struct timeline *t, struct process *p, const struct item *i)
{
	bool written = t->encoder.kernel_events != MERGE_KERNEL_OFF;
	bool within = dma_kind_row(i->dma.dma_kind)->span == DMA_OF_THREAD && i->tid;
	struct thread_stack *s = i->tid ? stack_of(t, i->process, i->tid, within) : NULL;
	struct event_out out = {.phase = PHASE_START, .id = ID_KERNEL | ++p->calls};
	struct frame f = {.pair = i->pair,
		.id = out.id,
		.start = i->time,
		.order = ++t->order,
		.told = i->dma.call,
		.type = i->dma.dma_kind,
		.side = SIDE_DMA,
		.complete = (i->flags & ITEM_COMPLETE) != 0};
	int rc = within && !s ? -ENOMEM : 0;

	if (rc == 0 && s)
		rc = drop_ended(t, p, s, i);
	if (rc < 0)
		return rc;
	p->open_spans += written;
	out.call = call_of(t, s, i);
	rc = within && s->depth < TIMELINE_MAX_DEPTH ? push(s, &f) : displace(t, &f);
	return rc < 0 ? rc : write_event(t, p, i, &out, 1);
}

static int dma_stop(struct timeline *t, struct process *p, const struct item *i)
{
	struct thread_stack *s = i->tid ? stack_of(t, i->process, i->tid, false) : NULL;
	uint32_t place = s ? place_of(s, i->pair) : 0;
	struct event_out out = {.phase = PHASE_STOP, .call = call_of(t, s, i)};
	struct frame f = {0};
	int rc = 0;

	if (s && place < s->depth) {
		rc = pop(t, p, s, place, &f, &out);
	} else if (take_displaced(t, i->pair, &f) && s && !(i->flags & ITEM_MOVED)) {
		for (place = s->depth; place > 0; place--)
			if (s->frames[place - 1].order < f.order)
				break;
		out.parent = parent_at(t, s, place);
	}
	out.id = f.id;
	if (t->encoder.kernel_events != MERGE_KERNEL_OFF) {
		p->open_spans--;
		p->kernel_spans++;
	}
	return rc < 0 ? rc : write_event(t, p, i, &out, 1);
}

static int dma_instant(struct timeline *t, struct process *p, const struct item *i)
{
	struct thread_stack *s = i->tid ? stack_of(t, i->process, i->tid, false) : NULL;
	struct event_out out = {.phase = PHASE_INSTANT, .id = ID_KERNEL | ++p->calls};
	int rc = s ? drop_ended(t, p, s, i) : 0;

	if (rc < 0)
		return rc;
	p->start_lost += i->kind == ITEM_LOST;
	out.call = call_of(t, s, i);
	out.parent = s ? parent_at(t, s, s->depth) : 0;
	return write_event(t, p, i, &out, 1);
}

static int dma_item(struct timeline *t, struct process *p, const struct item *i)
{
	if (i->kind == ITEM_START)
		return dma_start(t, p, i);
	return i->kind == ITEM_STOP ? dma_stop(t, p, i) : dma_instant(t, p, i);
}

/* ---- other items -------------------------------------------------------------------------- */

static int at_instant(struct timeline *t, struct process *p, const struct item *i)
{
	struct event_out out = {.phase = PHASE_INSTANT, .id = written_id(t, i)};

	p->start_lost += i->kind == ITEM_LOST;
	if (on_thread(i)) {
		struct thread_stack *s = stack_of(t, i->process, i->tid, false);
		int rc = s ? drop_ended(t, p, s, NULL) : 0;

		if (rc < 0)
			return rc;
		out.parent = s ? parent_at(t, s, s->depth) : 0;
	}
	return write_event(t, p, i, &out, i->flags & ITEM_BOTH ? 2 : 1);
}

/* Clock steps and changes of the driver before a time, in order. */
static int write_marks(struct timeline *t, struct process *p, uint64_t before)
{
	const struct clock_map *c = &t->session->clock;
	const struct modules *m = &t->session->modules;
	int rc = 0;

	while (rc == 0) {
		uint64_t step =
			p->next_step < c->step_count ? c->steps[p->next_step].boot_ns : UINT64_MAX;
		uint64_t module =
			p->next_module < m->count ? m->changes[p->next_module].boot_ns : UINT64_MAX;

		if (step >= before && module >= before)
			break;
		p->markers++;
		rc = step <= module ? encode_step(&t->encoder, p, &c->steps[p->next_step++],
					      ID_MARKER | p->markers)
				    : encode_module(&t->encoder, p, &m->changes[p->next_module++],
					      ID_MARKER | p->markers);
	}
	return rc;
}

/* The process's file is there, and what comes before a time is in it. */
static inline int begin_record(struct timeline *t, struct process *p, uint64_t time)
{
	int rc = p->files ? 0 : t->open(t->ctx, p);

	if (rc == 0 && (p->next_step < t->session->clock.step_count ||
			       p->next_module < t->session->modules.count))
		rc = write_marks(t, p, time);
	return rc;
}

int timeline_reach(struct timeline *t, struct process *p, uint64_t time)
{
	int rc = begin_record(t, p, time);

	note_seen(p, time);
	p->last_time = time;
	return rc;
}

int timeline_item(void *ctx, const struct item *i)
{
	struct timeline *t = ctx;
	struct process *p = &t->processes->list[i->process];
	int rc = begin_record(t, p, i->time);

	if (rc < 0)
		return rc;
	if (i->side == SIDE_DMA)
		return dma_item(t, p, i);
	if (i->kind == ITEM_START)
		return at_start(t, p, i);
	return i->kind == ITEM_STOP ? at_stop(t, p, i) : at_instant(t, p, i);
}

int timeline_end(struct timeline *t, struct process *p)
{
	return write_marks(t, p, UINT64_MAX);
}
