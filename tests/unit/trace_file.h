/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_file.h - reads an ntrace.pb for a test, and checks what must hold in every one.
 *
 * The checks are written from contract 1 of the format (docs/formats.md), not from the merge:
 * order, pairs, identity, nesting, durations.
 */
#ifndef NTRACE_TESTS_TRACE_FILE_H
#define NTRACE_TESTS_TRACE_FILE_H

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/delimited.h"
#include "proto/event_codec.h"
#include "runtime/base/file.h"
#include "runtime/record/map64.h"

struct trace_file {
	char *data;
	struct ntrace_event_view *events;
	size_t count;
	char leaf[1024]; /* directory of the file */
};

static inline void trace_file_free(struct trace_file *t)
{
	free(t->data);
	free(t->events);
	memset(t, 0, sizeof(*t));
}

/* Reads an ntrace.pb; false when it cannot be read or is a bad one. */
static inline bool trace_file_load(struct trace_file *t, const char *path)
{
	size_t size = 0, pos = 0, len = 0, at;
	const uint8_t *msg;

	memset(t, 0, sizeof(*t));
	if (file_read(path, 1u << 30, &t->data, &size) < 0)
		return false;
	snprintf(t->leaf, sizeof(t->leaf), "%s", path);
	*strrchr(t->leaf, '/') = 0;
	size_t cap = size / 8 + 1;
	t->events = calloc(cap < 1u << 20 ? cap : 1u << 20, sizeof(*t->events));
	int rc;
	while (t->events &&
		(rc = pb_delimited_next((const uint8_t *)t->data, size, &pos, &msg, &len)) == 1) {
		if (t->count == 1u << 20 ||
			ntrace_event_parse(msg, len, &t->events[t->count++], &at) < 0)
			return false;
	}
	return t->events && rc == 0;
}

/* Reads the only ntrace.pb below `out`; false when there is none, several, or a bad one. */
static inline bool trace_file_read(struct trace_file *t, const char *out)
{
	char pattern[1100];
	glob_t g;

	memset(t, 0, sizeof(*t));
	snprintf(pattern, sizeof(pattern), "%s/*_pid_*/ntrace.pb", out);
	if (glob(pattern, 0, NULL, &g) != 0)
		return false;
	bool ok = g.gl_pathc == 1 && trace_file_load(t, g.gl_pathv[0]);
	globfree(&g);
	return ok;
}

static inline bool pb_str_is(struct pb_str s, const char *text)
{
	return s.len == strlen(text) && !memcmp(s.s, text, s.len);
}

/* Value of an attribute as text, "" when it is not there; valid until the next four calls. */
static inline const char *event_attr(const struct ntrace_event_view *e, const char *key)
{
	static char buf[4][256];
	static unsigned next;
	char *out = buf[next++ % 4];

	out[0] = 0;
	for (uint32_t i = 0; i < e->attr_count; i++)
		if (pb_str_is(e->attrs[i].key, key))
			snprintf(out, sizeof(buf[0]), "%.*s", (int)e->attrs[i].value.len,
				e->attrs[i].value.s);
	return out;
}

static inline long long event_attr_number(const struct ntrace_event_view *e, const char *key)
{
	const char *text = event_attr(e, key);

	return *text ? strtoll(text, NULL, 0) : -1;
}

/* The record of this phase with this id, NULL when there is none. */
static inline const struct ntrace_event_view *trace_file_find(
	const struct trace_file *t, uint64_t id, uint32_t phase)
{
	for (size_t i = 0; i < t->count; i++)
		if (t->events[i].id == id && t->events[i].phase == phase)
			return &t->events[i];
	return NULL;
}

/* By id: number of the first record of a phase, from 1. */
static inline int index_phase(struct map64 *m, const struct trace_file *t, uint32_t phase)
{
	int rc = 0;

	for (size_t i = 0; i < t->count && rc == 0; i++)
		if (t->events[i].phase == phase && !map64_find(m, t->events[i].id))
			rc = map64_put(m, t->events[i].id, i + 1);
	return rc;
}

static inline const struct ntrace_event_view *indexed(
	const struct map64 *m, const struct trace_file *t, uint64_t id)
{
	const uint64_t *number = map64_find(m, id);

	return number ? &t->events[*number - 1] : NULL;
}

/* What is wrong with the i-th record, "" when nothing is. */
static inline const char *trace_record_fault(
	const struct trace_file *t, size_t i, const struct map64 *starts, const struct map64 *stops)
{
	const struct ntrace_event_view *e = &t->events[i], *start = e, *p, *q;

	if (i && e->timestamp < e[-1].timestamp)
		return "older than its predecessor";
	if (e->timestamp < 978307200000000000u || e->timestamp > 4102444800000000000u)
		return "not an epoch time";
	if (e->phase < PHASE_START || e->phase > PHASE_INSTANT)
		return "phase";
	if (e->phase != PHASE_INSTANT && (e->id == 0 || e->id != e->tracking_id))
		return "id and tracking_id";
	if (e->phase != PHASE_STOP && e->duration)
		return "a duration outside a stop";
	if (e->phase == PHASE_START && indexed(starts, t, e->id) != e)
		return "id used twice";
	if (e->phase == PHASE_STOP) {
		start = indexed(starts, t, e->id);
		if (!start || start > e)
			return "no start before the stop";
		if (e->duration != e->timestamp - start->timestamp)
			return "duration is not the interval";
	}
	if (!e->parent_id)
		return "";
	p = indexed(starts, t, e->parent_id);
	q = indexed(stops, t, e->parent_id);
	if (!p || p->timestamp > start->timestamp || p->thread_id != e->thread_id ||
		(q && q->timestamp < e->timestamp))
		return "outside its parent";
	return "";
}

/* What is wrong with a file, "" when all invariants hold; *ret_open: spans without a stop. */
static inline const char *trace_file_fault(const struct trace_file *t, size_t *ret_open)
{
	static char fault[200];
	struct map64 starts = {0}, stops = {0};
	size_t open = 0;

	fault[0] = 0;
	if (index_phase(&starts, t, PHASE_START) < 0 || index_phase(&stops, t, PHASE_STOP) < 0)
		snprintf(fault, sizeof(fault), "no memory");
	for (size_t i = 0; i < t->count && !*fault; i++) {
		const char *what = trace_record_fault(t, i, &starts, &stops);

		open += t->events[i].phase == PHASE_START;
		open -= t->events[i].phase == PHASE_STOP;
		if (*what)
			snprintf(fault, sizeof(fault), "record %zu: %s", i, what);
	}
	map64_free(&starts);
	map64_free(&stops);
	*ret_open = open;
	return fault;
}

#endif
