/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expect_links.c - what a device run must point to: by its times, or by its name when its times cannot be.
 */
#include "tests/model/expect.h"

#include "runtime/trace/event_registry.h"

/* The outermost nrt_execute around a span. */
static const struct want *execute_around(const struct expect *x, const struct want *w)
{
	const struct want *best = NULL;

	for (uint32_t i = 0; i < x->count; i++) {
		const struct want *o = &x->wants[i];

		if (o->side == WANT_RUNTIME && o->type == TRACE_EXECUTE_API &&
			expect_contains(x, o, w) && (!best || o->start_at < best->start_at))
			best = o;
	}
	return best;
}

static bool is_span(const struct want *w, uint32_t type, uint32_t source)
{
	return w->side == WANT_RUNTIME && w->kind <= WANT_OPEN && w->type == type &&
	       w->source == source;
}

/* The wait for a run: that which was going on when the run began, or else the next. */
static const struct want *find_wait(const struct expect *x, const struct want *run)
{
	const struct want *during = NULL, *after = NULL;

	for (uint32_t i = 0; i < x->count; i++) {
		const struct want *w = &x->wants[i];

		if (!is_span(w, TRACE_EXEC_WAIT, run->source) || w->place != run->place ||
			x->m->spans[w->index].exec_id != x->m->spans[run->index].exec_id)
			continue;
		if (w->start > run->start)
			after = !after || w->start < after->start ? w : after;
		else
			during = !during || w->start > during->start ? w : during;
	}
	if (during && (during->kind == WANT_OPEN || during->end >= run->start))
		return during;
	return after;
}

/* The last submit to the run's core that begins at or before a time; in an nrt_execute, if given. */
static uint32_t last_submit(
	const struct expect *x, const struct want *run, const struct want *execute, uint64_t before)
{
	uint32_t best = WANT_NONE;

	for (uint32_t i = 0; i < x->count; i++) {
		const struct want *w = &x->wants[i];

		if (!is_span(w, TRACE_MODEL_SUBMIT, run->source) || w->place != run->place ||
			w->start > before || (execute && execute_around(x, w) != execute))
			continue;
		if (best == WANT_NONE || w->start_at > x->wants[best].start_at)
			best = i;
	}
	return best;
}

static bool was_read(const struct model *m, const struct model_span *p, uint64_t seq)
{
	for (uint32_t i = 0; i < m->record_count; i++) {
		const struct model_record *r = &m->records[i];

		if (r->source == p->source && r->seq == seq && r->read && !r->invalid &&
			m->spans[r->index].nc == p->nc)
			return true;
	}
	return false;
}

/* Is a record of the ring missing between the starts of two spans? */
static bool has_gap(const struct expect *x, const struct want *a, const struct want *b)
{
	for (uint64_t seq = a->first->seq; seq < b->first->seq; seq++)
		if (!was_read(x->m, &x->m->spans[a->index], seq))
			return true;
	return false;
}

/* What a wait tells of the run that it was for. */
static uint32_t link_of(const struct expect *x, const struct want *run, const struct want *wait,
	const struct want *execute, bool *ret_exact)
{
	uint32_t link = WANT_NONE;

	*ret_exact = execute != NULL;
	if (execute) {
		link = last_submit(x, run, execute, wait->start);
		if (link == WANT_NONE)
			link = (uint32_t)(execute - x->wants);
		*ret_exact = !has_gap(x, &x->wants[link], wait);
	}
	return link;
}

uint32_t expect_link(const struct expect *x, uint32_t index, bool *ret_exact)
{
	const struct want *run = &x->wants[index], *wait = find_wait(x, run);
	const struct want *execute = wait ? execute_around(x, wait) : NULL;

	if (execute && execute->start > run->end)
		execute = NULL;
	return link_of(x, run, wait, execute, ret_exact);
}

const struct want *expect_wait(const struct expect *x, const struct want *run)
{
	const struct model_span *p = &x->m->spans[run->index];

	for (uint32_t i = 0; i < x->count; i++) {
		const struct want *w = &x->wants[i];

		if (is_span(w, TRACE_EXEC_WAIT, run->source) && w->place == run->place &&
			x->m->spans[w->index].exec_id == p->exec_id)
			return w;
	}
	return NULL;
}

uint32_t expect_cause(const struct expect *x, uint32_t index, bool *ret_exact)
{
	const struct want *run = &x->wants[index], *wait = expect_wait(x, run);

	return link_of(x, run, wait, wait ? execute_around(x, wait) : NULL, ret_exact);
}

bool expect_may_infer(const struct expect *x, uint32_t index, uint32_t link)
{
	const struct want *run = &x->wants[index];
	const struct model_span *p = &x->m->spans[run->index];
	/* Its end is known to a bound, and may have been moved for being late. */
	uint64_t low = (p->said_to < run->end ? p->said_to : run->end) - p->bound;
	uint64_t high = (p->said_to > run->end ? p->said_to : run->end) + p->bound;

	/* A run that says it goes on: what is submitted later has not been read. */
	if (p->wrong && p->collected < low)
		low = p->collected;
	uint32_t last = last_submit(x, run, NULL, low);

	if (link == last)
		return true;
	if (link == WANT_NONE || !is_span(&x->wants[link], TRACE_MODEL_SUBMIT, run->source) ||
		x->wants[link].place != run->place || x->wants[link].start > high)
		return false;
	return last == WANT_NONE || x->wants[link].start >= x->wants[last].start;
}
