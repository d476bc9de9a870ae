/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summary_units.c - how busy the engines, DMA queues and the TopSP of each core were, by what device profiles
 * tell.
 *
 * Which unit a span is of stands on its START, so that is kept until its STOP.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/output/summary.h"

#define WORK_UNIT 255u /* of summary_open; not one of summary_work.c */
#define OTHER_UNITS "others"

static uint32_t physical_of(const struct ntrace_event_view *e)
{
	uint64_t number;

	event_value_number(e, "device_core_idx", &number);
	return number < SUMMARY_OTHER_PHYSICAL ? (uint32_t)number : SUMMARY_OTHER_PHYSICAL;
}

static size_t place_of(const struct summary_core *c, struct pb_str name, uint32_t physical)
{
	size_t i = 0;

	while (i < c->unit_count &&
		(c->units[i].physical != physical || !event_text_is(name, c->units[i].name)))
		i++;
	return i;
}

/* The place of a unit, made when it is new. */
static int find_unit(struct summary_core *c, const struct ntrace_event_view *e, size_t *ret)
{
	struct pb_str name = event_value(e, "engine");
	uint32_t physical = physical_of(e);
	int rc;

	if (name.len >= SUMMARY_UNIT_NAME)
		name.len = SUMMARY_UNIT_NAME - 1;
	*ret = place_of(c, name, physical);
	if (*ret == c->unit_count && c->unit_count >= SUMMARY_MAX_UNITS) {
		name = (struct pb_str){OTHER_UNITS, sizeof(OTHER_UNITS) - 1};
		physical = SUMMARY_OTHER_PHYSICAL;
		*ret = place_of(c, name, physical);
	}
	if (*ret < c->unit_count)
		return 0;
	rc = summary_grow(&c->units, c->unit_count, sizeof(*c->units));
	if (rc < 0)
		return rc;
	memcpy(c->units[*ret].name, name.s, name.len);
	c->units[*ret].physical = physical;
	c->unit_count++;
	return 0;
}

static int start(struct summary *s, size_t core, const struct ntrace_event_view *e)
{
	struct summary_open o = {.core = core, .work = WORK_UNIT};
	int rc = find_unit(&s->cores[core], e, &o.physical);

	return rc < 0 ? rc : summary_open_span(s, s->cores[core].process, e->id, &o);
}

int summary_take_unit(struct summary *s, size_t core, const struct ntrace_event_view *e)
{
	struct summary_core *c = &s->cores[core];
	struct summary_unit *u;
	struct summary_open o;
	uint64_t ns;

	if (e->phase == PHASE_START)
		return start(s, core, e);
	if (event_value_number(e, "clock.bound_ns", &ns) && ns > c->unit_bound_ns)
		c->unit_bound_ns = ns;
	if (e->phase != PHASE_STOP || !summary_close_span(s, core, e->id, WORK_UNIT, &o))
		return 0;
	u = &c->units[o.physical];
	u->n++;
	return intervals_add(&u->ran,
		e->timestamp - (e->duration < e->timestamp ? e->duration : e->timestamp),
		e->timestamp);
}

static int compare(const void *a, const void *b)
{
	const struct summary_unit *x = a, *y = b;

	if (x->physical != y->physical)
		return x->physical < y->physical ? -1 : 1;
	return strcmp(x->name, y->name);
}

int summary_end_units(struct summary_core *c)
{
	int rc = 0;

	if (c->unit_count)
		qsort(c->units, c->unit_count, sizeof(*c->units), compare);
	for (size_t i = 0; rc == 0 && i < c->unit_count; i++) {
		struct summary_unit *u = &c->units[i];

		intervals_finish(&u->ran);
		u->busy_ns = intervals_total(&u->ran);
		for (size_t k = 0; rc == 0 && k < c->physical_count; k++) {
			if (c->physical[k].index != u->physical)
				continue;
			u->runs_ns = intervals_total(&c->physical[k].ran);
			rc = intervals_common(&u->ran, &c->physical[k].ran);
			u->in_runs_ns = intervals_total(&u->ran);
		}
	}
	return rc;
}
