/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summary_gather.c - the sink: counts and durations by name, and the list of processes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "agent/output/sum.h"
#include "agent/output/summary.h"

#define SUMMARY_NAME_KEY 16u /* a bit that keys of names have, and those of the rest do not */

int summary_grow(void *list, size_t n, size_t element)
{
	uint8_t **l = list;

	/* Full at every power of two. */
	if ((n & (n - 1)) == 0) {
		uint8_t *more = realloc(*l, (n ? n * 2 : 1) * element);

		if (!more)
			return -ENOMEM;
		*l = more;
	}
	memset(*l + n * element, 0, element);
	return 0;
}

/* ---- names --------------------------------------------------------------------------------- */

/* The kind that an event is counted as. */
static enum event_kind kind_of(const struct ntrace_event_view *e)
{
	enum event_kind kind = event_kind(e);

	return kind == EVENT_MARK ? EVENT_HOST : kind;
}

static int add_name(
	struct summary *s, uint64_t key, struct pb_str text, enum event_kind kind, size_t *ret)
{
	int rc = summary_grow(&s->names, s->name_count, sizeof(*s->names));

	if (rc < 0)
		return rc;
	*ret = s->name_count;
	s->names[*ret].name = malloc(text.len + (size_t)1);
	s->names[*ret].len = text.len;
	s->names[*ret].kind = kind;
	if (!s->names[*ret].name)
		return -ENOMEM;
	memcpy(s->names[*ret].name, text.s, text.len);
	s->names[*ret].name[text.len] = '\0';
	s->name_count++;
	return map64_put(&s->name_index, key, *ret);
}

/* The place of an event's name. */
static int find_name(struct summary *s, const struct ntrace_event_view *e, size_t *ret)
{
	enum event_kind kind = kind_of(e);
	char buf[EVENT_NAME];
	struct pb_str text = event_name(e, buf);
	uint64_t key = XXH3_64bits_withSeed(text.s, text.len, kind) | SUMMARY_NAME_KEY;
	const uint64_t *found = map64_find(&s->name_index, key);

	if (found) {
		*ret = *found;
		return 0;
	}
	if (s->name_count >= SUMMARY_MAX_NAMES) {
		text = (struct pb_str){SUMMARY_OTHER_NAMES, sizeof(SUMMARY_OTHER_NAMES) - 1};
		key = (uint64_t)kind + 1; /* one per kind */
		found = map64_find(&s->name_index, key);
		if (found) {
			*ret = *found;
			return 0;
		}
	}
	return add_name(s, key, text, kind, ret);
}

static bool has_error(const struct summary_name *n, struct pb_str text)
{
	for (size_t i = 0; i < n->error_count; i++)
		if (event_text_is(text, n->errors[i].name))
			return true;
	return false;
}

static int count_error(struct summary_name *n, struct pb_str text)
{
	struct summary_error *e = n->errors;
	int rc;

	n->failed++;
	text.len = (uint32_t)strnlen(text.s, text.len);
	if (n->error_count >= SUMMARY_MAX_ERRORS && !has_error(n, text))
		text = (struct pb_str){SUMMARY_OTHER_NAMES, sizeof(SUMMARY_OTHER_NAMES) - 1};
	for (size_t i = 0; i < n->error_count; i++, e++)
		if (event_text_is(text, e->name)) {
			e->n++;
			return 0;
		}
	rc = summary_grow(&n->errors, n->error_count, sizeof(*n->errors));
	if (rc < 0)
		return rc;
	e = &n->errors[n->error_count];
	e->name = strndup(text.s, text.len);
	e->n = 1;
	if (!e->name)
		return -ENOMEM;
	n->error_count++;
	return 0;
}

/* A span that failed, by errno or NRT_STATUS. */
static int count_failure(struct summary_name *n, const struct ntrace_event_view *e)
{
	struct pb_str error = event_value(e, "errno");
	char status[16];

	if (error.len)
		return count_error(n, error);
	if (e->status == 0)
		return 0;
	snprintf(status, sizeof(status), "%u", e->status);
	return count_error(n, (struct pb_str){status, (uint32_t)strlen(status)});
}

/* ---- events -------------------------------------------------------------------------------- */

static void count_phase(struct summary_events *c, const struct ntrace_event_view *e)
{
	c->total++;
	c->starts += e->phase == PHASE_START;
	c->stops += e->phase == PHASE_STOP;
	c->instants += e->phase == PHASE_INSTANT;
	if (e->phase == PHASE_INSTANT && e->attr_count)
		c->start_lost += event_text_is(event_value(e, "start"), "lost");
}

/*
 * Starts and stops of the same id and name are a span; the others stay open, or are an end without its
 * start.  Without an id, which files of others may lack, any two of a name are one.
 */
static int match(struct summary *s, struct summary_process *p, size_t name,
	const struct ntrace_event_view *e)
{
	struct summary_events *of = &s->names[name].events;
	const uint64_t *begun = map64_find(&p->begun, e->id);
	bool closes;

	if (e->phase == PHASE_START) {
		of->open_idless += !e->id;
		return e->id ? map64_put(&p->begun, e->id, name) : 0;
	}
	if (e->phase != PHASE_STOP)
		return 0;
	closes = e->id ? begun && *begun == name : of->open_idless > 0;
	if (closes && e->id)
		map64_remove(&p->begun, e->id);
	else if (closes)
		of->open_idless--;
	of->closed += closes;
	p->events.closed += closes;
	return 0;
}

static int find_core(struct summary *s, size_t process, uint32_t nc, size_t *ret)
{
	uint64_t key = (uint64_t)(process + 1) << 32 | nc;
	const uint64_t *found = map64_find(&s->core_index, key);
	int rc;

	if (found) {
		*ret = *found;
		return 0;
	}
	rc = summary_grow(&s->cores, s->core_count, sizeof(*s->cores));
	if (rc < 0)
		return rc;
	*ret = s->core_count++;
	s->cores[*ret].process = process;
	s->cores[*ret].nc = nc;
	return map64_put(&s->core_index, key, *ret);
}

static int core_of(
	struct summary *s, size_t process, const struct ntrace_event_view *e, size_t *ret)
{
	struct pb_str nc = event_value(e, "nc");
	bool none = nc.len == 7 && !memcmp(nc.s, "unknown", 7);

	return find_core(s, process, none ? SUMMARY_NO_CORE : e->nc_idx, ret);
}

/* An event of a unit of a core. */
static int take_unit(struct summary *s, size_t process, const struct ntrace_event_view *e)
{
	size_t core;
	int rc = core_of(s, process, e, &core);

	return rc < 0 ? rc : summary_take_unit(s, core, e);
}

/* An event of the runtime: of its core, and whatever more it tells. */
static int take_runtime(struct summary *s, size_t process, const struct ntrace_event_view *e)
{
	size_t core;
	int rc = core_of(s, process, e, &core);

	if (rc < 0)
		return rc;
	summary_widen(&s->cores[core].window, e->timestamp, e->timestamp);
	return summary_take_runtime(s, core, e);
}

/* Units: by the core's own clock, which is exact, as device runs are. */
static uint64_t length_of(const struct summary_name *n, const struct ntrace_event_view *e)
{
	uint64_t ps;

	if (n->kind == EVENT_UNIT && event_value_number(e, "device_duration_ps", &ps))
		return ps / 1000;
	return e->duration;
}

static int take_event(void *ctx, struct feed_process *p, const struct ntrace_event_view *e)
{
	struct summary *s = ctx;
	struct summary_name *n;
	size_t place;
	int rc = find_name(s, e, &place);

	if (rc < 0)
		return rc;
	n = &s->names[place];
	count_phase(&n->events, e);
	count_phase(&s->processes[p->index].events, e);
	summary_widen(&s->processes[p->index].window, e->timestamp, e->timestamp);
	rc = match(s, &s->processes[p->index], place, e);
	if (rc == 0 && e->phase == PHASE_STOP) {
		uint64_t length = length_of(n, e);

		rc = durations_add(&n->durations, length);
		if (rc == 0 && (e->status || n->kind == EVENT_DRIVER || n->kind == EVENT_DMA))
			rc = count_failure(n, e);
		sum_add(&n->total_ns, length);
	}
	if (rc == 0 && n->kind == EVENT_DRIVER)
		rc = summary_take_driver(s, e);
	else if (n->kind == EVENT_DMA)
		; /* names and lengths are all */
	else if (rc == 0 && n->kind == EVENT_UNIT)
		rc = take_unit(s, p->index, e);
	else if (rc == 0 && (e->event_type || !e->hint.len)) /* not seen from outside, no mark */
		rc = take_runtime(s, p->index, e);
	return rc;
}

static int take_process(void *ctx, struct feed_process *p)
{
	struct summary *s = ctx;
	int rc = summary_grow(&s->processes, s->process_count, sizeof(*s->processes));

	if (rc < 0)
		return rc;
	s->processes[s->process_count].pid = p->pid;
	s->processes[s->process_count].name = strdup(p->name);
	return s->processes[s->process_count++].name ? 0 : -ENOMEM;
}

static int take_end(void *ctx, struct feed_process *p, const Ntff__NtraceInfo *info)
{
	struct summary *s = ctx;

	s->damaged += p->damaged;
	return summary_take_info(s, p->index, info);
}

struct feed_sink summary_sink(struct summary *s)
{
	return (struct feed_sink){
		.ctx = s, .process = take_process, .event = take_event, .end = take_end};
}

/* ---- the end ------------------------------------------------------------------------------- */

static void free_names(struct summary *s)
{
	for (size_t i = 0; i < s->name_count; i++) {
		struct summary_name *n = &s->names[i];

		for (size_t k = 0; k < n->error_count; k++)
			free(n->errors[k].name);
		free(n->errors);
		free(n->name);
		durations_free(&n->durations);
	}
	free(s->names);
}

static void free_cores(struct summary *s)
{
	for (size_t i = 0; i < s->core_count; i++) {
		struct summary_core *c = &s->cores[i];

		for (size_t k = 0; k < c->physical_count; k++)
			intervals_free(&c->physical[k].ran);
		free(c->physical);
		for (size_t k = 0; k < c->unit_count; k++)
			intervals_free(&c->units[k].ran);
		free(c->units);
		intervals_free(&c->collective);
		intervals_free(&c->barrier);
	}
	free(s->cores);
}

static void free_rows(struct summary_row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(rows[i].stage);
		free(rows[i].counter);
	}
	free(rows);
}

void summary_free(struct summary *s)
{
	for (size_t i = 0; i < s->process_count; i++) {
		free(s->processes[i].name);
		map64_free(&s->processes[i].open);
		map64_free(&s->processes[i].begun);
	}
	free(s->processes);
	free_names(s);
	free_cores(s);
	for (size_t i = 0; i < SUMMARY_SOURCES; i++)
		for (size_t d = 0; d < EVENT_DIRECTIONS; d++)
			intervals_free(&s->copies[i][d].ran);
	for (size_t i = 0; i < s->model_count; i++) {
		free(s->models[i].name);
		durations_free(&s->models[i].first);
		durations_free(&s->models[i].rest);
	}
	free(s->models);
	free(s->firsts);
	free_rows(s->lost, s->lost_count);
	free_rows(s->noted, s->noted_count);
	free(s->captures);
	for (size_t i = 0; i < s->failure_count; i++) {
		free(s->failures[i].what);
		for (size_t k = 0; k < s->failures[i].error_count; k++)
			free(s->failures[i].errors[k]);
		free(s->failures[i].errors);
	}
	free(s->failures);
	for (size_t i = 0; i < s->blind_count; i++)
		free(s->blind[i]);
	free(s->blind);
	map64_free(&s->row_index);
	map64_free(&s->blind_index);
	map64_free(&s->name_index);
	map64_free(&s->core_index);
	map64_free(&s->model_index);
	map64_free(&s->executed);
	free(s->open);
	*s = (struct summary){0};
}
