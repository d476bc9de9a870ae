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

/* What is wrong with a file, "" when all invariants hold; *ret_open: spans without a stop. */
static inline const char *trace_file_fault(const struct trace_file *t, size_t *ret_open)
{
	static char fault[200];
	size_t starts = 0, stops = 0;

	fault[0] = 0;
#define FAULT(...) (snprintf(fault, sizeof(fault), __VA_ARGS__), fault)
	for (size_t i = 0; i < t->count; i++) {
		const struct ntrace_event_view *e = &t->events[i];
		if (i && e->timestamp < e[-1].timestamp)
			return FAULT("record %zu is older than its predecessor", i);
		if (e->timestamp < 978307200000000000u || e->timestamp > 4102444800000000000u)
			return FAULT("record %zu: not an epoch time", i);
		if (e->phase < PHASE_START || e->phase > PHASE_INSTANT)
			return FAULT("record %zu: phase %u", i, e->phase);
		if (e->phase != PHASE_INSTANT && (e->id == 0 || e->id != e->tracking_id))
			return FAULT("record %zu: id and tracking_id", i);
		if (e->phase != PHASE_STOP && e->duration)
			return FAULT("record %zu: a duration outside a stop", i);
		starts += e->phase == PHASE_START;
		stops += e->phase == PHASE_STOP;
		if (e->phase == PHASE_START) {
			const struct ntrace_event_view *first =
				trace_file_find(t, e->id, PHASE_START);
			if (first != e)
				return FAULT("record %zu: id used twice", i);
		}
		const struct ntrace_event_view *start = e;
		if (e->phase == PHASE_STOP) {
			start = trace_file_find(t, e->id, PHASE_START);
			if (!start || start > e)
				return FAULT("record %zu: no start before the stop", i);
			if (e->duration != e->timestamp - start->timestamp)
				return FAULT("record %zu: duration is not the interval", i);
		}
		if (e->parent_id) {
			const struct ntrace_event_view *p =
				trace_file_find(t, e->parent_id, PHASE_START);
			const struct ntrace_event_view *q =
				trace_file_find(t, e->parent_id, PHASE_STOP);
			if (!p || p->timestamp > start->timestamp || p->thread_id != e->thread_id ||
				(q && q->timestamp < e->timestamp))
				return FAULT("record %zu: outside its parent", i);
		}
	}
#undef FAULT
	*ret_open = starts - stops;
	return fault;
}

#endif
