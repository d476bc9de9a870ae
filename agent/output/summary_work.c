/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summary_work.c - events that tell more than a count: device runs, collectives, copies, models.
 *
 * What such a span is about stands on its START, how long it took on its STOP; between the two it is
 * kept in summary.open.  A span without an end takes no time here and is counted as open.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "agent/output/sum.h"
#include "agent/output/summary.h"
#include "runtime/trace/event_registry.h"

/* What a type is, for the summary. */
enum work {
	WORK_NONE,
	WORK_EXECUTE,
	WORK_RUN,
	WORK_COLLECTIVE,
	WORK_BARRIER,
	WORK_COPY_IN,
	WORK_COPY_OUT,
	WORK_COUNT
};

static const uint8_t works[TRACE_TYPE_COUNT] = {
	[TRACE_EXECUTE_API] = WORK_EXECUTE,
	[TRACE_DEVICE_EXEC] = WORK_RUN,
	[TRACE_CC_EXEC] = WORK_COLLECTIVE,
	[TRACE_CC_EXEC_BARRIER] = WORK_BARRIER,
	[TRACE_DMEM_BUF_COPYIN] = WORK_COPY_IN,
	[TRACE_DMEM_BUF_COPYOUT] = WORK_COPY_OUT,
	[TRACE_DMEM_BUF_BATCH_COPYIN] = WORK_COPY_IN,
	[TRACE_DMEM_BUF_BATCH_COPYOUT] = WORK_COPY_OUT,
};

static uint64_t start_of(const struct ntrace_event_view *e)
{
	return e->timestamp - (e->duration < e->timestamp ? e->duration : e->timestamp);
}

/* ---- spans that have started ---------------------------------------------------------------- */

int summary_open_span(
	struct summary *s, size_t process, uint64_t id, const struct summary_open *what)
{
	size_t place = s->first_free;
	int rc;

	if (place) {
		s->first_free = s->open[place - 1].next_free;
	} else {
		rc = summary_grow(&s->open, s->open_count, sizeof(*s->open));
		if (rc < 0)
			return rc;
		place = ++s->open_count;
	}
	s->open[place - 1] = *what;
	return map64_put(&s->processes[process].open, id, place);
}

/* Ids of files of others need not be sound. */
bool summary_close_span(
	struct summary *s, size_t core, uint64_t id, unsigned work, struct summary_open *ret)
{
	struct map64 *open = &s->processes[s->cores[core].process].open;
	const uint64_t *found = map64_find(open, id);
	struct summary_open *what = found ? &s->open[*found - 1] : NULL;

	*ret = (struct summary_open){.core = core};
	if (!what || what->core != core || what->work != work)
		return false;
	*ret = *what;
	what->next_free = s->first_free;
	s->first_free = *found;
	return map64_remove(open, id);
}

/* ---- models -------------------------------------------------------------------------------- */

static int add_model(struct summary *s, uint64_t key, const struct summary_model *like,
	struct pb_str name, size_t *ret)
{
	int rc = summary_grow(&s->models, s->model_count, sizeof(*s->models));

	if (rc < 0)
		return rc;
	*ret = s->model_count;
	s->models[*ret] = *like;
	s->models[*ret].name = strndup(name.s, name.len);
	if (!s->models[*ret].name)
		return -ENOMEM;
	s->model_count++;
	return map64_put(&s->model_index, key, *ret);
}

/* The name may only come with a later execution. */
static int name_model(struct summary_model *m, struct pb_str name)
{
	char *copy = name.len ? strndup(name.s, name.len) : NULL;

	if (!name.len || !copy)
		return name.len ? -ENOMEM : 0;
	free(m->name);
	m->name = copy;
	return 0;
}

/* Notes in `o` which model is executed, and on which core. */
static int find_model(struct summary *s, const struct ntrace_event_view *e, bool on_device,
	uint32_t device_core, struct summary_open *o)
{
	struct pb_str id = event_value(e, "model_id");
	uint64_t number = 0;
	bool known = event_number(id, &number);
	struct summary_model like = {
		.process = s->cores[o->core].process, .id = number, .on_device = on_device};
	uint64_t words[5] = {like.process, like.id, on_device, s->cores[o->core].nc, device_core};
	uint64_t key = XXH3_64bits(words, 3 * sizeof(words[0])) | 1, *found;
	size_t place;
	int rc = 0;

	if (!known)
		return 0;
	found = map64_find(&s->model_index, key);
	if (found)
		place = *found;
	else
		rc = add_model(s, key, &like, event_value(e, "model_name"), &place);
	if (rc == 0 && !*s->models[place].name)
		rc = name_model(&s->models[place], event_value(e, "model_name"));
	if (rc < 0)
		return rc;
	o->model = place + 1;
	o->on = XXH3_64bits(words, sizeof(words)) | 1;
	return 0;
}

static int add_first(struct summary *s, uint64_t key, const struct summary_first *first)
{
	int rc = summary_grow(&s->firsts, s->first_count, sizeof(*s->firsts));

	if (rc < 0)
		return rc;
	s->firsts[s->first_count] = *first;
	return map64_put(&s->executed, key, s->first_count++);
}

/* An execution that began earlier takes the place of the one that was first so far. */
static int executed(
	struct summary *s, const struct summary_open *o, const struct ntrace_event_view *e)
{
	struct summary_first this = {o->model - 1, start_of(e), e->duration}, *first;
	struct summary_model *m;
	const uint64_t *place;

	if (!o->model)
		return 0;
	m = &s->models[this.model];
	if (e->status) {
		m->failed++;
		m->failed_ns += e->duration;
		return 0;
	}
	place = map64_find(&s->executed, o->on);
	if (!place)
		return add_first(s, o->on, &this);
	first = &s->firsts[*place];
	if (this.start_ns < first->start_ns) {
		struct summary_first later = *first;

		*first = this;
		this = later;
	}
	return durations_add(&m->rest, this.duration_ns);
}

int summary_end_firsts(struct summary *s)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < s->first_count; i++) {
		struct summary_model *m = &s->models[s->firsts[i].model];
		bool apart = !s->processes[m->process].first_unknown;

		rc = durations_add(apart ? &m->first : &m->rest, s->firsts[i].duration_ns);
	}
	return rc;
}

/* ---- cores --------------------------------------------------------------------------------- */

static bool has_physical(const struct summary_core *c, uint32_t index)
{
	for (size_t i = 0; i < c->physical_count; i++)
		if (c->physical[i].index == index)
			return true;
	return false;
}

static int find_physical(struct summary_core *c, uint32_t index, size_t *ret)
{
	int rc;

	if (c->physical_count >= SUMMARY_MAX_PHYSICAL && !has_physical(c, index))
		index = SUMMARY_OTHER_PHYSICAL;
	for (*ret = 0; *ret < c->physical_count; (*ret)++)
		if (c->physical[*ret].index == index)
			return 0;
	rc = summary_grow(&c->physical, c->physical_count, sizeof(*c->physical));
	if (rc == 0)
		c->physical[c->physical_count++].index = index;
	return rc;
}

static int start_run(struct summary *s, const struct ntrace_event_view *e, struct summary_open *o)
{
	struct summary_core *c = &s->cores[o->core];
	uint64_t number = 0;
	uint32_t index;
	int rc;

	event_value_number(e, "device_core_idx", &number);
	index = number < SUMMARY_OTHER_PHYSICAL ? (uint32_t)number : SUMMARY_OTHER_PHYSICAL;
	rc = find_physical(c, index, &o->physical);
	c->open_runs++;
	return rc < 0 ? rc : find_model(s, e, true, index, o);
}

static int stop_run(
	struct summary *s, const struct ntrace_event_view *e, struct summary_open *o, bool started)
{
	struct summary_core *c = &s->cores[o->core];
	struct summary_physical *p;
	int rc = started ? 0 : find_physical(c, 0, &o->physical);

	if (rc < 0)
		return rc;
	c->open_runs -= started;
	p = &c->physical[o->physical];
	p->runs++;
	sum_add(&p->run_ns, e->duration);
	rc = intervals_add(&p->ran, start_of(e), e->timestamp);
	return rc < 0 ? rc : executed(s, o, e);
}

/* How much a device's times may be wrong. */
static void take_bound(struct summary_core *c, const struct ntrace_event_view *e)
{
	struct pb_str bound = event_value(e, "clock.bound_ns");
	uint64_t ns;

	if (!bound.len)
		return;
	if (!event_number(bound, &ns)) {
		c->bound_unknown++;
		return;
	}
	c->bound_known++;
	c->bound_ns = ns > c->bound_ns ? ns : c->bound_ns;
}

/* ---- copies -------------------------------------------------------------------------------- */

/* Only what succeeded counts. */
static int copied(
	struct summary_copies *c, const struct ntrace_event_view *e, bool sized, uint64_t bytes)
{
	if (e->status)
		return 0;
	c->n++;
	c->unsized += !sized;
	sum_add(&c->bytes, bytes);
	return intervals_add(&c->ran, start_of(e), e->timestamp);
}

int summary_take_driver(struct summary *s, const struct ntrace_event_view *e)
{
	struct event_copy copy;

	if (e->phase != PHASE_STOP || !event_driver_copy(e, &copy))
		return 0;
	return copied(&s->copies[SUMMARY_BY_DRIVER][copy.direction], e, copy.sized, copy.bytes);
}

/* ---- events of the runtime ------------------------------------------------------------------ */

static int start(struct summary *s, size_t core, const struct ntrace_event_view *e, enum work work)
{
	struct summary_open o = {.core = core, .work = work};
	int rc = 0;

	if (work == WORK_EXECUTE)
		rc = find_model(s, e, false, 0, &o);
	else if (work == WORK_RUN)
		rc = start_run(s, e, &o);
	else if (work != WORK_COPY_IN && work != WORK_COPY_OUT)
		return 0;
	o.sized = event_value_number(e, "size", &o.bytes) ||
		  event_value_number(e, "total_size", &o.bytes);
	return rc < 0 || !e->id ? rc : summary_open_span(s, s->cores[core].process, e->id, &o);
}

static int stop(struct summary *s, size_t core, const struct ntrace_event_view *e, enum work work)
{
	struct summary_core *c = &s->cores[core];
	struct summary_open o;
	bool started = summary_close_span(s, core, e->id, work, &o);

	switch (work) {
	case WORK_EXECUTE:
		return executed(s, &o, e);
	case WORK_RUN:
		return stop_run(s, e, &o, started);
	case WORK_COLLECTIVE:
		c->collectives++;
		return intervals_add(&c->collective, start_of(e), e->timestamp);
	case WORK_BARRIER:
		c->barriers++;
		return intervals_add(&c->barrier, start_of(e), e->timestamp);
	case WORK_COPY_IN:
		return copied(&s->copies[SUMMARY_BY_RUNTIME][EVENT_TO_DEVICE], e, o.sized, o.bytes);
	case WORK_COPY_OUT:
		return copied(&s->copies[SUMMARY_BY_RUNTIME][EVENT_TO_HOST], e, o.sized, o.bytes);
	default:
		return 0;
	}
}

int summary_take_runtime(struct summary *s, size_t core, const struct ntrace_event_view *e)
{
	enum work work =
		e->event_type < TRACE_TYPE_COUNT ? (enum work)works[e->event_type] : WORK_NONE;

	if (e->attr_count && e->phase != PHASE_START)
		take_bound(&s->cores[core], e);
	if (work == WORK_NONE)
		return 0;
	if (e->phase == PHASE_START)
		return start(s, core, e, work);
	return e->phase == PHASE_STOP ? stop(s, core, e, work) : 0;
}
