/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sys_trace_reader.h - events that nrt_sys_trace_fetch_events gave, read by jansson, for tests.
 *
 * Header only.  strict() refuses what careful readers of such traces refuse, and pairs starts with stops by
 * tracking_id alone, over all cores.
 */
#ifndef NTRACE_TESTS_SYS_TRACE_READER_H
#define NTRACE_TESTS_SYS_TRACE_READER_H

#include <jansson.h>

#include "tests/unit/nrt_lib.h"

static inline json_int_t number(const json_t *event, const char *key)
{
	return json_integer_value(json_object_get(event, key));
}

static inline const char *text(const json_t *event, const char *key)
{
	const char *s = json_string_value(json_object_get(event, key));

	return s ? s : "";
}

static inline bool is(const json_t *event, const char *type, const char *phase)
{
	return !strcmp(text(event, "event_type"), type) && !strcmp(text(event, "phase"), phase);
}

/* The events of a fetch, NULL when it is not as it must be.  options are freed. */
static inline json_t *fetch_with(nrt_sys_trace_fetch_options_t *options)
{
	char *buffer = NULL;
	size_t size = 12345;
	json_t *root, *events = NULL;
	NRT_STATUS status = lib.nrt_sys_trace_fetch_events(&buffer, &size, options);

	if (options)
		lib.nrt_sys_trace_fetch_options_free(options);
	if (status || !buffer || strlen(buffer) != size)
		return NULL;
	root = json_loads(buffer, 0, NULL);
	lib.nrt_sys_trace_buffer_free(buffer);
	if (number(root, "data_version") == 2)
		events = json_incref(json_object_get(root, "events"));
	json_decref(root);
	return events;
}

static inline json_t *fetch(void)
{
	return fetch_with(NULL);
}

static inline json_t *fetch_some(uint64_t nc, uint64_t limit)
{
	nrt_sys_trace_fetch_options_t *options = NULL;

	if (lib.nrt_sys_trace_fetch_options_allocate(&options))
		return NULL;
	lib.nrt_sys_trace_fetch_options_set_nc_idx(options, nc);
	lib.nrt_sys_trace_fetch_options_set_max_events_per_nc(options, limit);
	return fetch_with(options);
}
#define ALL UINT64_MAX

static inline size_t count_of(const json_t *events, const char *type, const char *phase)
{
	size_t n = 0, i;
	json_t *e;

	json_array_foreach(events, i, e) n += is(e, type, phase);
	return n;
}

static inline size_t count_on(const json_t *events, json_int_t nc)
{
	size_t n = 0, i;
	json_t *e;

	json_array_foreach(events, i, e) n += number(e, "nc_idx") == nc;
	return n;
}

/* The k-th start of a type. */
static inline const json_t *start_of(const json_t *events, const char *type, size_t k)
{
	size_t i;
	json_t *e;

	json_array_foreach(events, i, e)
	{
		if (is(e, type, "start") && k-- == 0)
			return e;
	}
	return NULL;
}

/* The stop behind a start, found by its tracking_id alone. */
static inline const json_t *stop_of(const json_t *events, const json_t *start)
{
	size_t i;
	json_t *e;
	bool behind = false;

	json_array_foreach(events, i, e)
	{
		behind |= e == start;
		if (behind && !strcmp(text(e, "phase"), "stop") &&
			number(e, "tracking_id") == number(start, "tracking_id"))
			return e;
	}
	return NULL;
}

static inline bool on_device(const json_t *start)
{
	return is(start, "nc_exec_running", "start");
}

static inline int strict_span(const json_t *events, const json_t *start)
{
	const json_t *stop = stop_of(events, start), *from, *to;

	WANT(stop != NULL);
	WANT(!strcmp(text(start, "event_type"), text(stop, "event_type")));
	WANT(number(start, "nc_idx") == number(stop, "nc_idx"));
	WANT(number(start, "timestamp_ns") <= number(stop, "timestamp_ns"));
	if (!on_device(start))
		return 0;
	from = json_object_get(start, "data");
	to = json_object_get(stop, "data");
	WANT(number(from, "exec_id") > 0);
	WANT(json_object_get(from, "device_core_idx") != NULL);
	WANT(number(to, "nc_timestamp_ns") > number(from, "nc_timestamp_ns"));
	WANT(number(to, "nc_timestamp_ns") - number(from, "nc_timestamp_ns") ==
		number(stop, "timestamp_ns") - number(start, "timestamp_ns"));
	return 0;
}

/* Epoch times that never go back, ids once each, no span open, none empty on the device. */
static inline int strict(const json_t *events)
{
	json_int_t last = (json_int_t)1600000000 * 1000000000;
	size_t i, k, stops = 0, starts = 0;
	json_t *e, *before;

	WANT(events != NULL);
	json_array_foreach(events, i, e)
	{
		WANT(number(e, "tracking_id") != 0);
		WANT(number(e, "timestamp_ns") >= last);
		last = number(e, "timestamp_ns");
		WANT(json_is_object(json_object_get(e, "data")));
		stops += !strcmp(text(e, "phase"), "stop");
		if (strcmp(text(e, "phase"), "start") != 0)
			continue;
		starts++;
		json_array_foreach(events, k, before)
		{
			if (k == i)
				break;
			WANT(number(before, "tracking_id") != number(e, "tracking_id"));
		}
		WANT(strict_span(events, e) == 0);
	}
	WANT(starts == stops);
	return 0;
}

/* Does the i-th span of `inner` lie in the k-th of `outer`, on its thread and core? */
static inline bool nested_at(
	const json_t *events, const char *outer, size_t k, const char *inner, size_t i)
{
	const json_t *o = start_of(events, outer, k), *in = start_of(events, inner, i);
	const json_t *o_end = stop_of(events, o), *in_end = stop_of(events, in);

	return o && in && o_end && in_end && number(o, "thread_id") == number(in, "thread_id") &&
	       number(o, "nc_idx") == number(in, "nc_idx") &&
	       number(o, "timestamp_ns") <= number(in, "timestamp_ns") &&
	       number(in_end, "timestamp_ns") <= number(o_end, "timestamp_ns");
}

/* The same for the k-th of both. */
static inline bool nested(const json_t *events, const char *outer, const char *inner, size_t k)
{
	return nested_at(events, outer, k, inner, k);
}

#endif
