/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expect.c - the rules of docs/formats.md, each in the plainest way: every span is compared with every
 * other.
 */
#include "tests/model/expect.h"

#include <stdlib.h>

#include "runtime/trace/event_registry.h"
#include "vmlinux/ioctl_table.h"

/* ---- which spans there are -------------------------------------------------------------------- */

struct arrivals {
	const struct model_record *of[3][2 * MODEL_COPIES]; /* by kind: start, stop, instant */
	unsigned count[3];
};

static struct want *add_want(
	struct expect *x, enum want_side side, enum want_kind kind, uint32_t index)
{
	struct want *w = &x->wants[x->count++];

	*w = (struct want){.side = side,
		.kind = kind,
		.index = index,
		.start_at = WANT_NONE,
		.stop_at = WANT_NONE,
		.closed_at = WANT_NONE,
		.shown_at = WANT_NONE,
		.doubt_at = WANT_NONE};
	return w;
}

static void add_runtime(struct expect *x, enum want_kind kind, const struct model_record *first,
	const struct model_record *last)
{
	const struct model *m = x->m;
	const struct model_span *p = &m->spans[first->index];
	struct want *w = add_want(x, WANT_RUNTIME, kind, first->index);

	w->first = first;
	w->last = last;
	w->type = p->type;
	w->source = m->sources[p->source].number;
	w->place = p->nc + 1u;
	w->seq = first->seq;
	w->stop_seq = last ? last->seq : 0;
	if (!p->hardware && !(last && p->stop_tid != p->tid))
		w->tid = first->kind == RECORD_STOP ? p->stop_tid : p->tid;
	w->began = p->hardware ? 0 : first->kind == RECORD_STOP ? p->stop_tid : p->tid;
	x->runtime_spans += kind == WANT_SPAN;
	x->open_spans += kind == WANT_OPEN;
	x->lost += kind == WANT_LOST;
	x->device_runs += p->type == TRACE_DEVICE_EXEC && kind <= WANT_OPEN;
}

const struct model_span *expect_sync(
	const struct model *m, const struct model_span *run, const struct model_record *before)
{
	const struct model_span *newest = NULL;

	for (uint32_t i = 0; i < m->sequence_count; i++) {
		const struct model_record *r = &m->records[m->sequence[i]];
		const struct model_span *p = &m->spans[r->index];

		if (r == before)
			break;
		if (r->source < MODEL_SOURCES && r->read && !r->invalid &&
			p->type == TRACE_TIMESTAMP_SYNC && p->source == run->source &&
			p->nc == run->nc && (!newest || p->nc_from > newest->nc_from))
			newest = p;
	}
	return newest;
}

/* Times that cannot be, whatever else is known. */
static bool is_impossible(
	const struct model *m, const struct model_span *p, const struct model_record *start)
{
	return p->wrong == WRONG_ZERO || p->wrong == WRONG_BACKWARD ||
	       (p->wrong == WRONG_ZERO_NC && expect_sync(m, p, start));
}

void expect_invalid(struct expect *x, struct want *w)
{
	w->kind = WANT_INVALID;
	x->runtime_spans--;
	x->device_runs--;
}

/* The first start and the first stop are the span. */
static void pair(struct expect *x, const struct arrivals *a)
{
	const struct model_record *const *starts = a->of[0], *const *stops = a->of[1];

	if (a->count[0])
		add_runtime(x, a->count[1] ? WANT_SPAN : WANT_OPEN, starts[0],
			a->count[1] ? stops[0] : NULL);
	if (a->count[0] && is_impossible(x->m, &x->m->spans[starts[0]->index], starts[0]))
		expect_invalid(x, &x->wants[x->count - 1]);
	for (unsigned i = 1; i < a->count[0]; i++)
		add_runtime(x, WANT_DUPLICATE, starts[i], NULL);
	for (unsigned i = a->count[0] > 0; i < a->count[1]; i++)
		add_runtime(x, WANT_LOST, stops[i], NULL);
	for (unsigned i = 0; i < a->count[2]; i++)
		add_runtime(x, WANT_INSTANT, a->of[2][i], NULL);
}

static void find_runtime(struct expect *x)
{
	static struct arrivals all[MODEL_SPANS];
	const struct model *m = x->m;

	memset(all, 0, sizeof(all));
	for (uint32_t i = 0; i < m->sequence_count; i++) {
		const struct model_record *r = &m->records[m->sequence[i]];

		if (!r->read || r->invalid || r->source >= MODEL_SOURCES ||
			m->sources[r->source].process != x->process)
			continue;
		struct arrivals *a = &all[r->index];
		a->of[r->kind][a->count[r->kind]++] = r;
		x->read++;
	}
	for (uint32_t i = 0; i < m->span_count; i++)
		pair(x, &all[i]);
}

static void find_call(struct expect *x, uint32_t index)
{
	const struct model *m = x->m;
	const struct model_call *c = &m->calls[index];
	const struct model_record *done = NULL, *told = NULL;
	unsigned told_count = 0;

	for (uint32_t i = 0; i < m->sequence_count; i++) {
		const struct model_record *r = &m->records[m->sequence[i]];

		if (!r->read || r->invalid || r->source < MODEL_SOURCES || r->index != index)
			continue;
		x->read++;
		if (r->kind == RECORD_DONE) {
			done = r;
		} else {
			told = told || done ? told : r;
			told_count++;
		}
	}
	if (!done && !told)
		return;
	/* An announcement that came first is the start. */
	struct want *w = add_want(x, WANT_KERNEL, done ? WANT_SPAN : WANT_OPEN, index);
	w->first = told ? told : done;
	w->last = done;
	w->tid = w->began = c->tid;
	w->place = c->cpu;
	w->seq = w->stop_seq = c->seq;
	x->announced += done ? told_count : told_count - 1;
	x->calls++;
	if (m->options.kernel_events != MERGE_KERNEL_OFF) {
		x->kernel_spans += done != NULL;
		x->open_spans += !done;
	}
}

static void find_steps(struct expect *x)
{
	const struct model *m = x->m;
	const struct model_clock *last = NULL;
	uint32_t n = 0;

	for (uint32_t i = 0; i < m->frame_count; i++) {
		const struct model_clock *c = &m->clocks[n];

		if (m->frames[i].type != REC_CLOCK)
			continue;
		n++;
		if (!m->frames[i].survives)
			continue;
		if (last && last->step != c->step) {
			struct want *w = add_want(x, WANT_MARKER, WANT_INSTANT, n - 1);

			w->start = w->end = c->at;
			w->old_step = last->step;
			w->new_step = c->step;
		}
		last = c;
	}
}

void expect_make(struct expect *x, struct model *m, uint32_t process)
{
	memset(x, 0, sizeof(*x));
	x->m = m;
	x->process = process;
	find_runtime(x);
	for (uint32_t i = 0; i < m->call_count; i++)
		if (m->calls[i].process == process)
			find_call(x, i);
	if (x->count)
		find_steps(x);
}

/* ---- order ------------------------------------------------------------------------------------- */

static unsigned rank_of(enum want_form f)
{
	return f == AT_STOP ? 0 : f == AT_START ? 1 : f == AT_INSTANT ? 3 : 2;
}

static int compare_u64(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static uint64_t seq_of(const struct want *w, enum want_form f)
{
	return f == AT_ZERO_STOP && w->stop_seq > w->seq ? w->stop_seq : w->seq;
}

/* Announcements are made by the reader, which counts as the last CPU. */
static uint32_t place_of(const struct want *w, enum want_form f)
{
	return f != AT_STOP && f != AT_ZERO_STOP && w->side == WANT_KERNEL &&
			       w->first->kind == RECORD_ANNOUNCE
		       ? 0xffff
		       : w->place;
}

static int compare_ties(
	const struct want *a, enum want_form f, const struct want *b, enum want_form g)
{
	int c = compare_u64(a->side, b->side);

	if (c == 0)
		c = compare_u64(a->source, b->source);
	if (c == 0)
		c = compare_u64(place_of(a, f), place_of(b, g));
	return c ? c : compare_u64(seq_of(a, f), seq_of(b, g));
}

static int compare_steps(const void *p, const void *q, void *ctx)
{
	const struct want_step *a = p, *b = q;
	const struct expect *x = ctx;
	const struct want *v = &x->wants[a->want], *w = &x->wants[b->want];
	int c = compare_u64(a->time, b->time);

	if (c == 0)
		c = compare_u64(rank_of(a->form), rank_of(b->form));
	if (c == 0 && a->form == AT_STOP)
		c = compare_u64(w->start, v->start);
	if (c)
		return c;
	c = compare_ties(v, a->form, w, b->form);
	if (c == 0)
		c = compare_u64(a->want, b->want);
	if (c == 0)
		c = compare_u64(a->form, b->form);
	return a->form == AT_STOP ? -c : c;
}

static void add_step(struct expect *x, uint32_t want, enum want_form form, uint64_t time)
{
	x->steps[x->step_count++] = (struct want_step){time, want, form};
}

static void find_places(struct expect *x)
{
	for (uint32_t i = 0; i < x->step_count; i++) {
		struct want *w = &x->wants[x->steps[i].want];

		if (x->steps[i].form == AT_STOP || x->steps[i].form == AT_ZERO_STOP)
			w->stop_at = i;
		else
			w->start_at = i;
	}
}

/* Does the start of w show that o, of the same thread, has ended or lost its stop? */
static bool ends(const struct want *w, const struct want *o)
{
	/* A driver call ends when the thread does anything. */
	if (o->side == WANT_KERNEL)
		return true;
	/* Another of its type starts, or another runtime has the thread. */
	return w->side == WANT_RUNTIME && w->kind <= WANT_OPEN &&
	       (w->type == o->type || w->source != o->source);
}

/* Where has a span certainly ended whose stop was lost?  `any`: also by what spans show that went on to
 * another thread, which nobody knows while they run. */
static uint32_t ended_by(const struct expect *x, const struct want *o, bool any, bool starts_only)
{
	uint32_t at = WANT_NONE;

	for (uint32_t i = 0; i < x->count; i++) {
		const struct want *w = &x->wants[i];

		if (w == o || (any ? w->began : w->tid) != o->began || w->side == WANT_MARKER)
			continue;
		if (w->start_at > o->start_at && w->start_at < at && ends(w, o))
			at = w->start_at;
		/* The span around it stops. */
		if (!starts_only && w->kind == WANT_SPAN && w->start_at < o->start_at &&
			w->stop_at > o->start_at && w->stop_at < at)
			at = w->stop_at;
	}
	return at;
}

/* What began inside an open span has ended when that has. */
static void close_inner(struct expect *x)
{
	bool changed = true;

	while (changed) {
		changed = false;
		for (uint32_t i = 0; i < x->count; i++)
			for (uint32_t k = 0; k < x->count; k++) {
				struct want *o = &x->wants[i];
				const struct want *p = &x->wants[k];

				if (o->kind != WANT_OPEN || p->kind != WANT_OPEN || !o->tid ||
					o->tid != p->tid || p->start_at >= o->start_at ||
					p->closed_at <= o->start_at || p->closed_at >= o->closed_at)
					continue;
				o->closed_at = p->closed_at;
				changed = true;
			}
	}
}

/* Where could a span be taken for one whose stop was lost: when it shows itself to have ended, or one
 * around it does.  A span that goes on to another thread shows it too, unless that is known. */
static void doubt(struct expect *x, struct want *o)
{
	o->doubt_at = ended_by(x, o, true, false);
	for (uint32_t i = 0; i < x->count; i++) {
		const struct want *p = &x->wants[i];

		if (p->kind > WANT_OPEN || p->began != o->began || p->start_at >= o->start_at ||
			p->shown_at <= o->start_at || p->stop_at <= o->start_at)
			continue;
		for (uint32_t k = 0; k < x->count; k++) {
			const struct want *w = &x->wants[k];

			if (w->began == o->began && w->start_at > o->start_at &&
				w->start_at < o->doubt_at && w->start_at <= p->shown_at &&
				w->start_at < p->stop_at && w->side != WANT_MARKER && ends(w, p))
				o->doubt_at = w->start_at;
		}
	}
}

static void close_open(struct expect *x)
{
	for (uint32_t i = 0; i < x->count; i++) {
		struct want *w = &x->wants[i];

		if (w->kind > WANT_OPEN || !w->began)
			continue;
		if (w->kind == WANT_OPEN)
			w->closed_at = ended_by(x, w, false, false);
		w->shown_at = ended_by(x, w, false, true);
	}
	close_inner(x);
	for (uint32_t i = 0; i < x->count; i++)
		if (x->wants[i].kind <= WANT_OPEN && x->wants[i].began)
			doubt(x, &x->wants[i]);
}

void expect_order(struct expect *x)
{
	for (uint32_t i = 0; i < x->count; i++) {
		const struct want *w = &x->wants[i];
		bool zero = w->kind == WANT_SPAN && w->start == w->end;

		if (w->kind >= WANT_INSTANT) {
			add_step(x, i, AT_INSTANT, w->start);
			continue;
		}
		add_step(x, i, zero ? AT_ZERO_START : AT_START, w->start);
		if (w->kind == WANT_SPAN)
			add_step(x, i, zero ? AT_ZERO_STOP : AT_STOP, w->end);
	}
	qsort_r(x->steps, x->step_count, sizeof(*x->steps), compare_steps, x);
	find_places(x);
	close_open(x);
}

/* ---- containment -------------------------------------------------------------------------------- */

bool expect_contains(const struct expect *x, const struct want *o, const struct want *w)
{
	uint32_t at = w->kind == WANT_SPAN ? w->stop_at : w->start_at;

	(void)x;
	if (o == w || !w->tid || o->tid != w->tid || o->kind > WANT_OPEN ||
		o->side == WANT_MARKER || w->side == WANT_MARKER || o->start_at > w->start_at)
		return false;
	return o->kind == WANT_SPAN ? o->stop_at > at : o->closed_at > at;
}

uint32_t expect_parent(const struct expect *x, uint32_t want, uint32_t before)
{
	uint32_t best = WANT_NONE;

	for (uint32_t i = 0; i < x->count; i++) {
		const struct want *o = &x->wants[i];

		if (o->side == WANT_KERNEL && x->m->options.kernel_events == MERGE_KERNEL_OFF)
			continue;
		if (o->start_at < before && expect_contains(x, o, &x->wants[want]) &&
			(best == WANT_NONE || o->start_at > x->wants[best].start_at))
			best = i;
	}
	return best;
}

/* ---- driver work -------------------------------------------------------------------------------- */

/* Time in which at least one of the copies was under way. */
static uint64_t union_of(const struct want *const *copies, unsigned count)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < count; i++) {
		uint64_t from = copies[i]->start, to = copies[i]->end;

		/* What those that began earlier have not covered. */
		for (unsigned k = 0; k < count; k++)
			if (copies[k]->start_at < copies[i]->start_at && copies[k]->end > from)
				from = copies[k]->end;
		sum += to > from ? to - from : 0;
	}
	return sum;
}

struct driver_sums expect_sums(const struct expect *x, uint32_t want)
{
	const struct want *s = &x->wants[want], *copies[MODEL_CALLS];
	struct driver_sums sum = {0};
	unsigned count = 0;
	uint32_t last = 0, last_stop = 0;

	if (s->side != WANT_RUNTIME || s->kind != WANT_SPAN || !s->tid)
		return sum;
	for (uint32_t i = 0; i < x->count; i++) {
		const struct want *w = &x->wants[i];

		if (w->side != WANT_KERNEL || w->kind != WANT_SPAN || !expect_contains(x, s, w))
			continue;
		const struct model_call *c = &x->m->calls[w->index];
		sum.ioctls++;
		sum.missed |= w->doubt_at < w->stop_at;
		sum.ioctl_ns += w->end - w->start;
		if (c->result < 0) {
			sum.errors++;
			if (w->start_at >= last)
				sum.last_error = c->result;
			if (w->stop_at >= last_stop)
				sum.other_error = c->result;
			last = w->start_at > last ? w->start_at : last;
			last_stop = w->stop_at > last_stop ? w->stop_at : last_stop;
		} else if (c->request == NEURON_IOCTL_MEM_BUF_COPY64) {
			sum.dma_bytes += c->bytes;
			sum.dma_most += w->end - w->start;
			copies[count++] = w;
		}
	}
	sum.copies = count;
	sum.dma_ns = union_of(copies, count);
	return sum;
}
