/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check_times.c - the times of a file: against the stamps, the truth, and the watermarks that were broken.
 */
#include "tests/model/check.h"

#include <inttypes.h>

/* ---- times --------------------------------------------------------------------------------------- */

/* May a record be moved for being late? */
static bool may_be_late(const struct checker *c, const struct want *w)
{
	const uint32_t harmed =
		1u << WITH_OVERWRITTEN | 1u << WITH_INVALID | 1u << WITH_DAMAGE | 1u << WITH_UNREAD;

	/* The merge waits for a run as long as its execution is known to go on. */
	return w->side != WANT_RUNTIME || w->type != TRACE_DEVICE_EXEC || w->kind > WANT_OPEN ||
	       c->m->features & harmed;
}

/* What the file says a device's times may be wrong by; if it says nothing, what the runtime's stamps may.
 * A device whose clock was never read in time has no bound that could be stated. */
static uint64_t stated_bound(const struct checker *c, const struct want *w)
{
	const struct ntrace_event_view *e = w->stop_event ? w->stop_event : w->start_event;
	const char *text = event_attr(e, "clock.bound_ns");
	uint64_t own = w->side == WANT_RUNTIME ? c->m->spans[w->index].bound : 0;

	if (own == 0)
		return 0;
	/* The start of a run that goes on says no bound: that of a clock read long ago. */
	if (!*text)
		return w->kind == WANT_OPEN ? 2 * own + c->m->end / 10000 : own;
	return strcmp(text, "unknown") == 0 ? c->m->end : strtoull(text, NULL, 10);
}

/* The time as written, against the stamp, the truth and the watermark that was broken. */
static bool take_time(struct checker *c, struct want *w, const struct ntrace_event_view *e,
	const struct model_record *r, uint64_t stamp, uint64_t truth, uint64_t not_before,
	uint64_t *ret)
{
	uint64_t written = e->timestamp - MODEL_EPOCH, late = check_number(e, "late_ns");
	uint64_t own = w->side == WANT_RUNTIME ? c->m->spans[w->index].bound : 0;
	uint64_t bound = stated_bound(c, w);
	uint64_t unmoved = written - late;

	*ret = written;
	c->late += late > 0;
	c->late_ns += late;
	if (e->timestamp < MODEL_EPOCH || late > written)
		return FAIL(c, w, "impossible time");
	if (bound == 0 && unmoved != stamp && !(w->side == WANT_KERNEL && !late))
		return FAIL(c, w,
			"written at %" PRIu64 " (late by %" PRIu64 ") instead of %" PRIu64, written,
			late, stamp);
	if (unmoved + bound < truth || unmoved > truth + bound) {
		if (w->side != WANT_KERNEL || written < truth)
			return FAIL(c, w, "off by %" PRId64 ", bound %" PRIu64,
				(int64_t)(unmoved - truth), bound);
	}
	if (written <= stamp + own + bound || written == not_before)
		return true;
	if (stamp >= r->said || written > r->said || !may_be_late(c, w))
		return FAIL(c, w, "moved from %" PRIu64 " to %" PRIu64 ", watermark %" PRIu64,
			stamp, written, r->said);
	return true;
}

/* What is not written has its times from the recording, moved as the rules say. */
static uint64_t moved(uint64_t time, const struct model_record *r)
{
	return time < r->said ? r->said : time;
}

bool check_times(struct checker *c, struct want *w)
{
	const struct model_span *p = &c->m->spans[w->index];
	const struct model_call *k = &c->m->calls[w->index];
	bool stop_only = w->kind == WANT_LOST, ok;

	if (w->side == WANT_MARKER)
		return true;
	if (!check_is_written(c, w)) {
		w->start = w->end = moved(k->from, w->first);
		if (w->kind == WANT_SPAN) {
			w->end = moved(k->to, w->last);
			w->end = w->end < w->start ? w->start : w->end;
		}
		return true;
	}
	if (w->side == WANT_KERNEL) {
		ok = take_time(c, w, w->start_event, w->first, k->from, k->from, 0, &w->start);
		w->end = w->start;
		if (ok && w->kind == WANT_SPAN)
			ok = take_time(
				c, w, w->stop_event, w->last, k->to, k->to, w->start, &w->end);
		return ok;
	}
	ok = take_time(c, w, w->start_event, w->first, stop_only ? p->said_to : p->said_from,
		stop_only ? p->to : p->from, 0, &w->start);
	w->end = w->start;
	if (ok && w->kind == WANT_SPAN)
		ok = take_time(c, w, w->stop_event, w->last, p->said_to, p->to, w->start, &w->end);
	return ok;
}
