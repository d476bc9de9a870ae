/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check_times.c - the times of a file: against the stamps, the truth, and the watermarks that were broken.
 */
#include "tests/model/check.h"

#include <inttypes.h>

#include "runtime/trace/event_registry.h"

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

static bool is_run(const struct want *w)
{
	return w->side == WANT_RUNTIME && w->type == TRACE_DEVICE_EXEC;
}

/* ---- bounds --------------------------------------------------------------------------------------- */

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* What a run's times may be said to be wrong by: the bracket of the reading, 100 ppm of the time since, and
 * rounding.  Another reading than that by which the run was stamped adds what the stamps are wrong by,
 * and its own error once more. */
static uint64_t largest_bound(const struct model_span *run, const struct model_span *sync)
{
	uint64_t far = distance(sync->from, run->from), to = distance(sync->from, run->to);
	uint64_t error = sync->bound + 2 + 2 + (far > to ? far : to) / 10000;

	return sync == run + 1 ? error : 2 * error + run->bound;
}

/* The bound that stands on a run's stop; `ret` is what its times are judged by. */
static bool check_bound(struct checker *c, const struct want *w, uint64_t *ret)
{
	const struct model_span *p = &c->m->spans[w->index], *sync;
	const char *text = event_attr(w->stop_event, "clock.bound_ns");
	uint64_t bound = strtoull(text, NULL, 10);

	sync = expect_sync(c->m, p, w->first);
	*ret = c->m->end;
	if (strcmp(text, sync ? "" : "unknown") == 0)
		return !sync || FAIL(c, w, "no bound");
	if (!sync || strcmp(text, "unknown") == 0 || bound > largest_bound(p, sync))
		return FAIL(c, w, "bound %s instead of %" PRIu64 " at most", text,
			sync ? largest_bound(p, sync) : 0);
	*ret = bound;
	return true;
}

/* ---- runtime records ------------------------------------------------------------------------------ */

/* A run of impossible times stands where it was collected: at the end of the wait for it, else at the newest
 * reading of its clock, but never before the watermark. */
static bool invalid_time(struct checker *c, struct want *w)
{
	const struct model_span *p = &c->m->spans[w->index];
	const struct model_span *sync = expect_sync(c->m, p, w->first);
	uint64_t written = w->start_event->timestamp - MODEL_EPOCH, place = 0;
	const struct want *wait = expect_wait(c->x, w);

	if (wait && wait->kind == WANT_SPAN)
		place = p->collected;
	else if (sync)
		place = sync->said_from;
	/* Where nothing else is known: at the recording's begin. */
	w->start = w->end = w->start_event->timestamp < MODEL_EPOCH ? 0 : written;
	if (check_number(w->start_event, "late_ns"))
		return FAIL(c, w, "late");
	return w->start == place || (w->start > place && w->start <= w->last->said) ||
	       FAIL(c, w,
		       "at %" PRIu64 " instead of where it was collected, %" PRIu64
		       ", watermark %" PRIu64,
		       written, place, w->last->said);
}

struct stamp {
	uint64_t told, truth, bound;
	uint64_t shift;	     /* moved by so much for causality */
	uint64_t not_before; /* a stop: its start as written */
};

/* The time as written, against the stamp, the truth and the watermark that was broken. */
static bool take_time(struct checker *c, struct want *w, const struct ntrace_event_view *e,
	const struct model_record *r, const struct stamp *s, uint64_t *ret)
{
	uint64_t written = e->timestamp - MODEL_EPOCH, late = check_number(e, "late_ns");
	uint64_t unmoved = s->told + s->shift;

	*ret = written;
	c->late += late > 0;
	c->late_ns += late;
	if (e->timestamp < MODEL_EPOCH || late > written)
		return FAIL(c, w, "impossible time");
	if (written - late != unmoved)
		return FAIL(c, w,
			"written at %" PRIu64 " (late by %" PRIu64 ") instead of %" PRIu64, written,
			late, unmoved);
	if (distance(s->told, s->truth) > s->bound)
		return FAIL(c, w, "off by %" PRId64 ", bound %" PRIu64,
			(int64_t)(s->told - s->truth), s->bound);
	if (late == 0 || written == s->not_before)
		return true;
	return (unmoved < r->said && written <= r->said && may_be_late(c, w)) ||
	       FAIL(c, w, "moved from %" PRIu64 " to %" PRIu64 ", watermark %" PRIu64, unmoved,
		       written, r->said);
}

/* A run that was moved: to the start of what truly submitted it, and not further. */
static bool check_clamp(struct checker *c, const struct want *w, uint64_t clamped)
{
	const struct model_span *p = &c->m->spans[w->index];
	uint64_t start = p->said_from + clamped;

	if (clamped == 0)
		return true;
	c->clamped++;
	c->clamped_ns += clamped;
	if (clamped > c->clamped_max)
		c->clamped_max = clamped;
	return (is_run(w) && (start == c->m->spans[p->submit].from ||
				     start == c->m->spans[p->execute].from)) ||
	       FAIL(c, w, "moved by %" PRIu64 ", not to its submit", clamped);
}

static bool runtime_times(struct checker *c, struct want *w)
{
	const struct model_span *p = &c->m->spans[w->index];
	bool stop_only = w->kind == WANT_LOST, stops = w->kind == WANT_SPAN;
	struct stamp s = {.told = stop_only ? p->said_to : p->said_from,
		.truth = stop_only ? p->to : p->from,
		.bound = p->bound,
		.shift = check_number(w->start_event, "clamped_ns")};

	if (w->kind == WANT_INVALID)
		return invalid_time(c, w);
	if (is_run(w) && stops && !check_bound(c, w, &s.bound))
		return false;
	if (!check_clamp(c, w, s.shift) ||
		!take_time(c, w, w->start_event, w->first, &s, &w->start))
		return false;
	w->end = w->start;
	if (!stops)
		return true;
	if (check_number(w->stop_event, "clamped_ns") != s.shift)
		return FAIL(c, w, "clamped_ns differs");
	/* What ends before its submit moves with its start. */
	if (s.shift)
		s.shift = s.told + s.shift > p->said_to ? s.told + s.shift - p->said_to : 0;
	s.told = p->said_to;
	s.truth = p->to;
	s.not_before = w->start;
	return take_time(c, w, w->stop_event, w->last, &s, &w->end);
}

/* ---- driver calls --------------------------------------------------------------------------------- */

/* Not before its source's watermark. */
static uint64_t moved(uint64_t time, const struct model_record *r)
{
	return time < r->said ? r->said : time;
}

static bool check_call_time(struct checker *c, const struct want *w,
	const struct ntrace_event_view *e, uint64_t time, uint64_t told)
{
	if (e->timestamp == MODEL_EPOCH + time && check_number(e, "late_ns") == time - told)
		return true;
	return FAIL(c, w, "written at %" PRIu64 " (late by %s) instead of %" PRIu64,
		(uint64_t)(e->timestamp - MODEL_EPOCH), event_attr(e, "late_ns"), time);
}

/* Nothing holds the marks of the hooks, so all is known. */
static bool call_times(struct checker *c, struct want *w)
{
	const struct model_call *k = &c->m->calls[w->index];
	bool ends = w->kind == WANT_SPAN;

	w->start = w->end = moved(k->from, w->first);
	if (ends) {
		w->end = moved(k->to, w->last);
		w->end = w->end < w->start ? w->start : w->end;
	}
	c->late += w->start > k->from;
	c->late_ns += w->start - k->from;
	/* Of a call that was announced the end is a record of its own. */
	if (ends && w->first != w->last) {
		c->late += w->end > k->to;
		c->late_ns += w->end - k->to;
	}
	if (!check_is_written(c, w))
		return true;
	return check_call_time(c, w, w->start_event, w->start, k->from) &&
	       (!ends || check_call_time(c, w, w->stop_event, w->end, k->to));
}

bool check_times(struct checker *c, struct want *w)
{
	if (w->side == WANT_MARKER)
		return true;
	return w->side == WANT_KERNEL ? call_times(c, w) : runtime_times(c, w);
}
