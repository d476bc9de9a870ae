/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ingest_device.c - records of hardware events: their times come from another clock, so they are judged
 * before they are believed.
 *
 * The runtime reckons host times for them from a sync point.  These are kept as recorded, with a bound on
 * their error, as long as the merge's own map of the core's clock (device_clock.h) says that they can
 * be sound; else they give way to the map's, which is said.  Then they are held against what must have
 * happened before and after.  A span is judged as a whole: its start
 * waits for its stop, which the runtime emits right behind it, but no longer than until the source's
 * mark passes it.
 *
 *	zero		  a time of 0, of the host's clock or of the device's
 *	backward	  the end before the start
 *	before_submit	  a device run that starts before its submit does, by more than the bound
 *	after_collection  a device run that ends after the wait for it had ended, by more than the bound
 *
 * Such an event becomes one instant at the place where it was collected: where the wait for it ended, or
 * else at the core's newest sync point.  A start that is before its submit by no more than the bound is
 * moved to it.  Only a wait says which submit is meant, so runs without one are not held against any.
 */
#include "runtime/record/ingest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/trace/event_registry.h"

#define NOWHERE 0xffu
#define MAX_SLACK_NS 1000000000u /* for a clock that is known worse nothing is held back longer */

/* What is known of a time of an event. */
struct times {
	uint64_t told, time; /* as recorded, as believed */
	uint64_t nc;	     /* 0: not known */
	uint64_t bound;	     /* of `time`; ITEM_BOUND_UNKNOWN */
	unsigned clock;	     /* of the core's clocks */
	bool zero, corrected;
};

struct verdict {
	unsigned kind;	 /* ITEM_START: it can be */
	uint64_t start;	 /* where it starts */
	uint64_t place;	 /* where it was collected; 0: not known */
	uint64_t submit; /* pair, 0: not known */
};

int ingest_device_init(struct ingest *in)
{
	in->layouts = malloc(TRACE_TYPE_COUNT * sizeof(*in->layouts));
	if (!in->layouts)
		return -ENOMEM;
	memset(in->layouts, NOWHERE, TRACE_TYPE_COUNT * sizeof(*in->layouts));
	for (uint32_t t = 0; t < TRACE_TYPE_COUNT; t++) {
		const struct trace_event_info *info = trace_event_info(t);

		for (uint32_t n = 0; n < info->field_count; n++)
			if (!strcmp(info->fields[n].key, "nc_timestamp_ns"))
				in->layouts[t].nc[info->fields[n].phase == TRACE_STOP] =
					info->fields[n].offset;
			else if (!strcmp(info->fields[n].key, "device_core_idx"))
				in->layouts[t].core = info->fields[n].offset;
	}
	return 0;
}

/* ---- clocks ------------------------------------------------------------------------------- */

/* A clock of the core when it has a point, or NULL.  One that was not said to be of a physical core is that of
 * all. */
static struct device_clock *clock_of(
	const struct ingest *in, const struct ingest_source *s, uint16_t core, unsigned clock)
{
	const uint32_t *places = &s->clocks[core * CORE_CLOCKS];
	struct session_clock *all = in->session->device_clocks;

	if (places[clock])
		return &all[places[clock] - 1].clock;
	return places[0] && !all[places[0] - 1].of_device ? &all[places[0] - 1].clock : NULL;
}

/* The physical core of an event, within its device; 0 when the event does not tell. */
static uint32_t device_core_of(const struct ingest *in, const struct item *i)
{
	uint32_t core = 0;

	if (i->type < TRACE_TYPE_COUNT && in->layouts[i->type].core != NOWHERE)
		memcpy(&core, i->data + in->layouts[i->type].core, sizeof(core));
	return core;
}

/* Which of its core's clocks an event is of: where the core has several, that of the physical core. */
static unsigned clock_of_item(const struct ingest *in, const struct item *i)
{
	return device_core_of(in, i) % CORE_CLOCKS;
}

/* The newest point of a core; NULL: none. */
static const struct device_point *newest_point(
	const struct ingest *in, const struct ingest_source *s, uint16_t core)
{
	const struct device_point *newest = NULL;

	for (unsigned k = 0; k < CORE_CLOCKS; k++) {
		const struct device_clock *c = clock_of(in, s, core, k);

		if (c && (!newest || c->points[c->count - 1].host > newest->host))
			newest = &c->points[c->count - 1];
	}
	return newest;
}

static int add_point(struct ingest *in, struct ingest_source *s, uint16_t core, unsigned clock,
	uint16_t of_device, const struct device_point *p)
{
	struct session *session = in->session;
	uint32_t *place = &s->clocks[core * CORE_CLOCKS + clock];

	if (!*place) {
		if (session_grow(&session->device_clocks, &session->device_clock_cap,
			    session->device_clock_count + 1, sizeof(*session->device_clocks)) < 0)
			return -ENOMEM;
		session->device_clocks[session->device_clock_count++] = (struct session_clock){
			.source = s->number, .core = core, .of_device = of_device};
		*place = (uint32_t)session->device_clock_count;
	}
	device_clock_add(&session->device_clocks[*place - 1].clock, p);
	return 0;
}

/* A sync point: exec_id, device's time, host's time, bound; whose clock, how many the core has. */
static int take_sync_point(struct ingest *in, struct ingest_source *s, const struct item *i)
{
	struct device_point p;
	uint32_t of_device, clocks;
	bool several;

	memcpy(&p.nc, i->data + 8, sizeof(p.nc));
	memcpy(&p.host, i->data + 16, sizeof(p.host));
	memcpy(&p.bound, i->data + 24, sizeof(p.bound));
	memcpy(&of_device, i->data + 32, sizeof(of_device));
	memcpy(&clocks, i->data + 36, sizeof(clocks));
	if (p.nc == 0 || !clock_map_valid(&in->session->clock, p.host))
		return 0;
	several = clocks == CORE_CLOCKS && of_device < UINT16_MAX;
	return add_point(in, s, i->core, several ? of_device % CORE_CLOCKS : 0,
		several ? (uint16_t)(of_device + 1) : 0, &p);
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* How far from the map a host time may be that was reckoned well: from the newest point, or from one like
 * it that has not come. */
static uint64_t sound(const struct device_clock *c, uint64_t nc)
{
	uint64_t radius = device_clock_radius(c, nc);
	uint64_t bound = c->points[c->count - 1].bound;

	return radius + bound < radius ? UINT64_MAX : radius + bound;
}

static struct times times_of(const struct ingest *in, const struct ingest_source *s,
	const struct item *i, uint64_t told, unsigned phase, unsigned clock)
{
	const struct device_clock *c = clock_of(in, s, i->core, clock);
	unsigned at = i->type < TRACE_TYPE_COUNT ? in->layouts[i->type].nc[phase] : NOWHERE;
	struct times t = {.told = told,
		.time = told,
		.bound = ITEM_BOUND_UNKNOWN,
		.clock = clock,
		.zero = told == 0};

	if (at != NOWHERE)
		memcpy(&t.nc, i->data + at, sizeof(t.nc));
	if (!c)
		return t;
	t.zero |= at != NOWHERE && t.nc == 0;
	t.bound = t.nc ? device_clock_bound(c, t.nc, told) : device_clock_radius_at(c, told);
	t.corrected = t.nc && distance(device_clock_host(c, t.nc), told) > sound(c, t.nc);
	return t;
}

/* A recorded time that is further from the map than a sound one can be gives way to the map's. */
static void correct(const struct ingest *in, const struct ingest_source *s, const struct item *i,
	struct times *t)
{
	const struct device_clock *c = clock_of(in, s, i->core, t->clock);

	t->corrected = c && t->nc && !t->zero;
	if (!t->corrected)
		return;
	t->time = device_clock_host(c, t->nc);
	t->bound = device_clock_bound(c, t->nc, t->time);
}

/* Both ends of a span are reckoned in one way, so that its duration is that of the device's clock. */
static void correct_span(const struct ingest *in, const struct ingest_source *s,
	const struct item *start, struct times *begin, const struct item *stop, struct times *end)
{
	if (!begin->corrected && !end->corrected)
		return;
	correct(in, s, start, begin);
	correct(in, s, stop, end);
	if (end->time < begin->time && end->nc >= begin->nc)
		end->time = begin->time;
}

/* Notes the largest bound that is stated. */
static uint64_t state_bound(const struct ingest *in, const struct ingest_source *s, uint16_t core,
	unsigned clock, uint64_t bound)
{
	struct device_clock *c = clock_of(in, s, core, clock);

	if (c && bound != ITEM_BOUND_UNKNOWN && bound > c->bound)
		c->bound = bound;
	return bound;
}

struct slack_ctx {
	const struct ingest *in;
	const struct ingest_source *s;
};

/* How much earlier than its submit a run of a core may seem to start. */
static uint64_t slack_of(const void *ctx, uint32_t core, uint64_t time)
{
	const struct slack_ctx *x = ctx;
	uint64_t slack = 0;

	for (unsigned k = 0; k < CORE_CLOCKS; k++) {
		const struct device_clock *c = clock_of(x->in, x->s, (uint16_t)core, k);
		uint64_t radius = c ? device_clock_radius_at(c, time) : 0;

		slack = radius > slack ? radius : slack;
	}
	if (slack < DEVICE_ERROR_NS)
		slack = DEVICE_ERROR_NS;
	return slack < MAX_SLACK_NS ? slack : MAX_SLACK_NS;
}

uint64_t ingest_device_hold(const struct ingest *in, const struct ingest_source *s)
{
	struct slack_ctx x = {in, s};

	return submits_hold(s->submits, slack_of, &x);
}

/* ---- judgement ---------------------------------------------------------------------------- */

static bool can_be(const struct ingest *in, const struct times *t)
{
	return clock_map_valid(&in->session->clock, t->told) &&
	       clock_map_valid(&in->session->clock, t->time);
}

static unsigned judge_times(
	const struct ingest *in, const struct times *start, const struct times *end)
{
	if (start->zero || (end && end->zero))
		return ITEM_INVALID_ZERO;
	if (!can_be(in, start) || (end && !can_be(in, end)))
		return ITEM_INVALID_AFTER; /* beyond the year 2100 */
	if (end && (end->time < start->time || (end->nc && end->nc < start->nc)))
		return ITEM_INVALID_BACKWARD;
	return ITEM_START;
}

static uint64_t allowance(const struct times *t)
{
	return t->bound == ITEM_BOUND_UNKNOWN ? DEVICE_ERROR_NS : t->bound;
}

/* What came before a device run and after it. */
static void judge_cause(const struct submits_cause *c, const struct times *start,
	const struct times *end, struct verdict *v)
{
	if (!end)
		end = start;
	v->place = c->collected;
	v->submit = c->pair;
	if (v->kind != ITEM_START)
		return;
	if (c->pair && start->time < c->start) {
		if (c->start - start->time > allowance(start))
			v->kind = ITEM_INVALID_BEFORE_SUBMIT;
		else
			v->start = c->start;
	}
	if (c->collected && end->time > c->collected && end->time - c->collected > allowance(end))
		v->kind = ITEM_INVALID_AFTER;
}

static uint32_t exec_id_of(const struct item *i)
{
	uint32_t exec_id;

	memcpy(&exec_id, i->data + 4, sizeof(exec_id));
	return exec_id;
}

/* A span, of which the stop may be missing. */
static struct verdict judge(struct ingest *in, struct ingest_source *s, const struct item *i,
	const struct times *start, const struct times *end)
{
	struct verdict v = {.kind = judge_times(in, start, end), .start = start->time};
	struct submits_cause cause;

	if (i->type == TRACE_DEVICE_EXEC) {
		struct submits_run run = {.core = i->core,
			.exec_id = exec_id_of(i),
			.start = start->time,
			.end = end ? end->time : start->time};

		if (submits_cause(s->submits, &run, v.kind == ITEM_START, &cause))
			judge_cause(&cause, start, end, &v);
	}
	return v;
}

/* ---- quarantine --------------------------------------------------------------------------- */

/* Where an event was collected, as far as is known; never before the source's mark. */
static uint64_t collected_at(
	const struct ingest *in, const struct ingest_source *s, uint16_t core, uint64_t place)
{
	const struct device_point *newest = place ? NULL : newest_point(in, s, core);

	if (newest)
		place = newest->host;
	if (place < s->mark)
		place = s->mark;
	return place < in->session->clock.begin ? in->session->clock.begin : place;
}

static int quarantine(
	struct ingest *in, struct ingest_source *s, struct item *i, unsigned kind, uint64_t place)
{
	i->kind = (uint8_t)kind;
	i->time = collected_at(in, s, i->core, place);
	i->late_ns = 0;
	in->processes->list[i->process].invalid[kind - ITEM_INVALID_ZERO]++;
	return held_put(in->held, i);
}

/* The start of a span with impossible times, and its stop when that has come. */
static int quarantine_span(struct ingest *in, struct ingest_source *s, struct item *i,
	uint64_t told, struct item *stop, uint64_t told_end, const struct verdict *v)
{
	i->start = told;
	if (v->submit) {
		i->other = v->submit;
		i->flags |= ITEM_LINK | ITEM_EXACT;
	}
	if (stop) {
		i->clamped_ns = told_end;
		i->flags |= ITEM_BOTH;
		i->status = stop->status;
		held_release_item(in->held, stop);
	}
	return quarantine(in, s, i, v->kind, v->place);
}

static int quarantine_stop(struct ingest *in, struct ingest_source *s, struct item *i,
	uint64_t told, unsigned kind, uint64_t place)
{
	i->start = 0;
	i->clamped_ns = told;
	i->flags |= ITEM_ENDED;
	return quarantine(in, s, i, kind, place);
}

/* ---- records ------------------------------------------------------------------------------ */

static void count_clamp(struct process *p, uint64_t ns)
{
	p->causality += ns > 0;
	p->causality_ns += ns;
	if (ns > p->causality_max)
		p->causality_max = ns;
}

static void note_correction(struct process *p, struct item *i, const struct times *t)
{
	if (!t->corrected)
		return;
	p->corrected++;
	item_set_corrected(i, (int64_t)(t->time - t->told));
}

/* Puts a start that can be, where it belongs. */
static int put_start(struct ingest *in, struct ingest_source *s, struct item *i,
	struct open_span *o, const struct times *t, const struct verdict *v)
{
	struct process *p = &in->processes->list[i->process];

	note_correction(p, i, t);
	i->clamped_ns = v->start - t->time;
	count_clamp(p, i->clamped_ns);
	ingest_place(in, s, i, v->start);
	i->start = o->start = i->time;
	o->before = t->time;
	o->bound = t->bound;
	o->told = v->start;
	o->link = v->submit;
	o->judged = ITEM_START;
	o->corrected = t->corrected;
	o->item = i;
	o->generation = in->held->generation; /* before the put, which may send it away at once */
	if (in->run && i->type == TRACE_DEVICE_EXEC)
		in->run(in->run_ctx, i, exec_id_of(i), device_core_of(in, i), s->mark);
	return held_put(in->held, i);
}

int ingest_device_start(struct ingest *in, struct ingest_source *s, struct item *i)
{
	struct open_span *o = &in->open_spans[*map64_find(&in->pairs, i->pair)];
	struct times start = times_of(in, s, i, o->told, 0, o->clock);
	struct verdict v;

	if (start.corrected)
		correct(in, s, i, &start);
	v = judge(in, s, i, &start, NULL);
	if (v.kind == ITEM_START)
		return put_start(in, s, i, o, &start, &v);
	o->judged = (uint8_t)v.kind;
	return quarantine_span(in, s, i, o->told, NULL, 0, &v);
}

/* The stop of a device's span of which the start was put. */
static int put_stop(struct ingest *in, struct ingest_source *s, struct item *i,
	const struct open_span *o, const struct times *end)
{
	struct process *p = &in->processes->list[i->process];
	uint64_t clamped = o->told - o->before;

	i->kind = ITEM_STOP;
	i->clamped_ns = clamped;
	if (i->flags & ITEM_HARDWARE) {
		note_correction(p, i, end);
		item_set_bound(i, state_bound(in, s, i->core, o->clock,
					  end->bound > o->bound ? end->bound : o->bound));
	}
	/* What ends before its submit moves with its start. */
	ingest_place(in, s, i, clamped && end->time < o->told ? o->told : end->time);
	return ingest_put_stop(in, s, i, o);
}

/* Both ends of a span are there, the start was not put. */
static int take_span(struct ingest *in, struct ingest_source *s, struct item *start,
	struct open_span *o, struct item *stop, uint64_t told)
{
	struct times begin = times_of(in, s, start, o->told, 0, o->clock),
		     end = times_of(in, s, stop, told, 1, o->clock);
	struct verdict v;
	int rc;

	correct_span(in, s, start, &begin, stop, &end);
	v = judge(in, s, start, &begin, &end);
	if (v.kind != ITEM_START)
		return quarantine_span(in, s, start, o->told, stop, told, &v);
	rc = put_start(in, s, start, o, &begin, &v);
	return rc < 0 ? rc : put_stop(in, s, stop, o, &end);
}

static int take_start(struct ingest *in, struct ingest_source *s, struct item *i, uint64_t told)
{
	uint64_t *known = map64_find(&in->pairs, i->pair), index = known ? *known : UINT64_MAX;
	bool valid = clock_map_valid(&in->session->clock, told);
	int used = ingest_use_id(in, i->pair);
	struct open_span o = {.start = told,
		.told = told,
		.seq = i->seq,
		.tid = i->tid,
		.place = i->place,
		.type = i->type,
		.hardware = true,
		.judged = ITEM_KINDS,
		.clock = (uint8_t)clock_of_item(in, i)};

	if (used < 0)
		return used;
	if (used && !valid) {
		i->start = told;
		return quarantine(in, s, i, told ? ITEM_INVALID_AFTER : ITEM_INVALID_ZERO, 0);
	}
	if (used) {
		i->kind = ITEM_DUPLICATE;
		ingest_place(in, s, i, told);
		return held_put(in->held, i);
	}
	i->kind = ITEM_START;
	o.exec_id = i->type == TRACE_DEVICE_EXEC ? exec_id_of(i) : 0;
	if (known) { /* the stop came first */
		struct item *stop = ingest_wake(in, s, index);

		ingest_give_span(in, index);
		map64_remove(&in->pairs, i->pair);
		return stop ? take_span(in, s, i, &o, stop, stop->time - stop->late_ns) : -ENOMEM;
	}
	/* Until it is judged it waits where it says, or with what comes next. */
	i->time = valid ? told : collected_at(in, s, i->core, 0);
	return ingest_wait_span(in, s, i, WAIT_STOP, &o);
}

/* The stop of a span of which the start was put, or quarantined, before. */
static int take_late_stop(struct ingest *in, struct ingest_source *s, struct item *i,
	struct open_span *o, uint64_t told)
{
	struct times end = times_of(in, s, i, told, 1, o->clock),
		     start = {.told = o->before, .time = o->before};
	struct verdict v;
	struct submits_cause cause;

	if (o->judged != ITEM_START)
		return quarantine_stop(in, s, i, told, o->judged, 0);
	if (o->corrected || end.corrected)
		correct(in, s, i, &end);
	v = (struct verdict){.kind = judge_times(in, &start, &end)};
	struct submits_run run = {.core = i->core,
		.exec_id = (uint32_t)o->exec_id,
		.start = o->before,
		.end = end.time};
	if (o->type == TRACE_DEVICE_EXEC &&
		submits_cause(s->submits, &run, v.kind == ITEM_START, &cause)) {
		cause.pair = 0; /* the start was judged */
		judge_cause(&cause, &start, &end, &v);
	}
	if (v.kind != ITEM_START)
		return quarantine_stop(in, s, i, told, v.kind, v.place);
	return put_stop(in, s, i, o, &end);
}

/* The stop of a span that is of no device. */
static int take_other_stop(struct ingest *in, struct ingest_source *s, struct item *i,
	const struct open_span *o, uint64_t told)
{
	if (!clock_map_valid(&in->session->clock, told))
		return quarantine_stop(
			in, s, i, told, told ? ITEM_INVALID_AFTER : ITEM_INVALID_ZERO, 0);
	i->kind = ITEM_STOP;
	ingest_place(in, s, i, told);
	return ingest_put_stop(in, s, i, o);
}

int ingest_device_stop(struct ingest *in, struct ingest_source *s, struct item *i, uint64_t told)
{
	uint64_t *known = map64_find(&in->pairs, i->pair), index;
	bool valid = clock_map_valid(&in->session->clock, told);
	struct open_span o;

	if (!known || in->open_spans[*known].orphan) {
		if (!valid)
			return quarantine_stop(
				in, s, i, told, told ? ITEM_INVALID_AFTER : ITEM_INVALID_ZERO, 0);
		i->kind = known ? ITEM_LOST : ITEM_STOP;
		ingest_place(in, s, i, told);
		if (known) /* the first one has the better claim to the start */
			return held_put(in->held, i);
		return ingest_wait_span(in, s, i, WAIT_START, &(struct open_span){.orphan = true});
	}
	index = *known;
	o = in->open_spans[index];
	if (o.hardware && o.judged == ITEM_KINDS && !(o.item = ingest_wake(in, s, index)))
		return -ENOMEM;
	ingest_give_span(in, index);
	map64_remove(&in->pairs, i->pair);
	if (!o.hardware)
		return take_other_stop(in, s, i, &o, told);
	if (o.judged != ITEM_KINDS)
		return take_late_stop(in, s, i, &o, told);
	return take_span(in, s, o.item, &o, i, told);
}

static int take_instant(struct ingest *in, struct ingest_source *s, struct item *i, uint64_t told)
{
	struct times t;
	unsigned kind;
	int rc = i->type == TRACE_TIMESTAMP_SYNC ? take_sync_point(in, s, i) : 0;

	if (rc < 0)
		return rc;
	t = times_of(in, s, i, told, 0, clock_of_item(in, i));
	i->kind = ITEM_INSTANT;
	t.zero = told == 0; /* not every instant has a time of the device */
	if (i->type == TRACE_TIMESTAMP_SYNC)
		t.corrected = false; /* it is what the map is made of */
	else if (t.corrected)
		correct(in, s, i, &t);
	kind = judge_times(in, &t, NULL);
	if (kind != ITEM_START) {
		i->start = told;
		return quarantine(in, s, i, kind, 0);
	}
	ingest_place(in, s, i, t.time);
	if (i->type != TRACE_TIMESTAMP_SYNC && t.nc)
		item_set_bound(i, state_bound(in, s, i->core, t.clock, t.bound));
	note_correction(&in->processes->list[i->process], i, &t);
	return held_put(in->held, i);
}

int ingest_device(
	struct ingest *in, struct ingest_source *s, struct item *i, const struct trace_record *r)
{
	if (r->phase == TRACE_START)
		return take_start(in, s, i, r->timestamp_ns);
	if (r->phase == TRACE_STOP)
		return ingest_device_stop(in, s, i, r->timestamp_ns);
	return take_instant(in, s, i, r->timestamp_ns);
}
