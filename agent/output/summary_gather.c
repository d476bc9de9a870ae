/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summary_gather.c - the sink: counts and durations by name, and the list of processes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "agent/output/canon.h"
#include "agent/output/summary.h"
#include "runtime/trace/event_registry.h"

#define MARK_BIT 62 /* of ids of what the merge itself notes */

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

struct pb_str summary_attr(const struct ntrace_event_view *e, const char *key)
{
	size_t len = strlen(key);

	for (uint32_t i = 0; i < e->attr_count; i++)
		if (e->attrs[i].key.len == len && !memcmp(e->attrs[i].key.s, key, len))
			return e->attrs[i].value;
	return (struct pb_str){"", 0};
}

uint64_t summary_number(struct pb_str s)
{
	bool hex = s.len > 2 && s.s[0] == '0' && s.s[1] == 'x';
	uint64_t v = 0;

	for (uint32_t i = hex ? 2 : 0; i < s.len; i++) {
		unsigned c = (unsigned char)s.s[i];
		unsigned digit = c >= '0' && c <= '9'	       ? c - '0'
				 : hex && c >= 'a' && c <= 'f' ? c - 'a' + 10
							       : 16;
		if (digit >= (hex ? 16u : 10u))
			return 0;
		v = v * (hex ? 16 : 10) + digit;
	}
	return v;
}

/* ---- names --------------------------------------------------------------------------------- */

static enum summary_kind kind_of(const struct ntrace_event_view *e)
{
	const struct trace_event_info *info = trace_event_info(e->event_type);

	if (e->hint.len)
		return e->id >> MARK_BIT == 1 ? SUMMARY_CALL : SUMMARY_DRIVER;
	return info && info->category == TRACE_HARDWARE ? SUMMARY_DEVICE : SUMMARY_CALL;
}

static int add_name(
	struct summary *s, uint64_t key, struct pb_str text, enum summary_kind kind, size_t *ret)
{
	int rc = summary_grow(&s->names, s->name_count, sizeof(*s->names));

	if (rc < 0)
		return rc;
	*ret = s->name_count;
	s->names[*ret].name = strndup(text.s, text.len);
	s->names[*ret].kind = kind;
	if (!s->names[*ret].name)
		return -ENOMEM;
	s->name_count++;
	return map64_put(&s->name_index, key, *ret);
}

/* The place of an event's name. */
static int find_name(struct summary *s, const struct ntrace_event_view *e, size_t *ret)
{
	enum summary_kind kind = kind_of(e);
	uint64_t key = e->hint.len ? XXH3_64bits_withSeed(e->hint.s, e->hint.len, kind) | 1u << 1
				   : ((uint64_t)e->event_type + 1) << 2;
	const uint64_t *found = map64_find(&s->name_index, key);
	char buf[CANON_TEXT];
	struct pb_str text;

	if (found) {
		*ret = *found;
		return 0;
	}
	text = canon_name(e, buf);
	if (s->name_count >= SUMMARY_MAX_NAMES) {
		text = (struct pb_str){SUMMARY_OTHER_NAMES, sizeof(SUMMARY_OTHER_NAMES) - 1};
		kind = SUMMARY_CALL;
		key = 1;
		found = map64_find(&s->name_index, key);
		if (found) {
			*ret = *found;
			return 0;
		}
	}
	return add_name(s, key, text, kind, ret);
}

static int count_error(struct summary_name *n, struct pb_str text)
{
	struct summary_error *e = n->errors;
	int rc;

	n->failed++;
	for (size_t i = 0; i < n->error_count; i++, e++)
		if (strlen(e->name) == text.len && !memcmp(e->name, text.s, text.len)) {
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
	struct pb_str error = summary_attr(e, "errno");
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
		c->start_lost += summary_attr(e, "start").len != 0;
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

/* An event of the runtime: of its core, and whatever more it tells. */
static int take_runtime(struct summary *s, size_t process, const struct ntrace_event_view *e)
{
	struct pb_str nc = summary_attr(e, "nc");
	bool none = nc.len == 7 && !memcmp(nc.s, "unknown", 7);
	size_t core;
	int rc = find_core(s, process, none ? SUMMARY_NO_CORE : e->nc_idx, &core);

	if (rc < 0)
		return rc;
	summary_widen(&s->cores[core].window, e->timestamp, e->timestamp);
	return summary_take_runtime(s, core, e);
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
	if (e->phase == PHASE_STOP) {
		rc = durations_add(&n->durations, e->duration);
		if (rc == 0 && (e->status || e->hint.len))
			rc = count_failure(n, e);
		n->total_ns += e->duration;
	}
	if (rc == 0 && n->kind == SUMMARY_DRIVER && e->phase == PHASE_STOP)
		rc = summary_take_driver(s, e);
	else if (rc == 0 && !e->hint.len)
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
	return summary_take_info(ctx, p->index, info);
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
	}
	free(s->processes);
	free_names(s);
	free_cores(s);
	for (size_t i = 0; i < SUMMARY_SOURCES; i++)
		for (size_t d = 0; d < SUMMARY_DIRECTIONS; d++)
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
	for (size_t i = 0; i < s->blind_count; i++)
		free(s->blind[i]);
	free(s->blind);
	map64_free(&s->name_index);
	map64_free(&s->core_index);
	map64_free(&s->model_index);
	map64_free(&s->executed);
	free(s->open);
	*s = (struct summary){0};
}
