/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch_json.c - events per second of what nrt_sys_trace_fetch_events does behind the rings: queue, order of time,
 * JSON.
 *
 * Measured in turns within one run; the median of the rounds counts.  Peer: the same events with the same
 * keys through jansson, built and dumped compactly.  The same number of events as one fetch, as ten, and taken by
 * ten while all the others wait, shows that the cost per event does not grow.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/trace/event_json.h"
#include "runtime/trace/event_registry.h"
#include "runtime/trace/event_store.h"

#define EVENTS 100000u
#define ROUNDS 7
#define OFFSET 1700000000000000000
#define NAME "/var/cache/models/add_vectors.neff"

static struct trace_record records[EVENTS];

/* As executions leave them: of ten events, a device run lies before the two that were emitted before it. */
static void make_records(void)
{
	static const uint32_t types[] = {TRACE_EXECUTE_API, TRACE_EXEC_CORE, TRACE_MODEL_SUBMIT,
		TRACE_EXEC_WAIT, TRACE_DEVICE_EXEC};

	for (uint32_t i = 0; i < EVENTS; i++) {
		struct trace_record *r = &records[i];
		uint64_t model = 7;

		r->trace_type = types[i / 2 % 5];
		r->phase = i % 2 ? TRACE_STOP : TRACE_START;
		r->thread_id = 4711;
		r->id = r->nc_local_id = i + 1;
		r->tracking_id = i / 2 + 1;
		r->timestamp_ns = 1000ull * i - (i / 2 % 5 == 4 ? 2500 : 0);
		for (size_t at = 0; at < TRACE_PAYLOAD_BYTES; at += 8)
			memcpy(r->data + at, &model, 8);
	}
}

/* limit: of a fetch, 0 = all that is new. */
static size_t by_store(uint32_t portions, uint64_t limit)
{
	struct event_store *s = event_store_new(EVENTS);
	const struct event_json_source source = {
		.offset_ns = OFFSET, .name = event_store_name, .ctx = s};
	size_t bytes = 0;

	if (!s || event_store_add_name(s, 7, NAME, sizeof(NAME) - 1) < 0)
		abort();
	if (limit && event_store_add(s, 0, 0, records, EVENTS) < 0)
		abort();
	for (uint32_t p = 0; p < portions; p++) {
		uint32_t n = limit ? 0 : EVENTS / portions;
		struct event_json j;
		char *text;
		size_t len;

		if (event_store_add(s, 0, 0, &records[p * n], n) < 0 ||
			event_json_begin(&j, &source) < 0 ||
			event_store_write(s, TRACE_ALL_NC, limit, UINT64_MAX, &j) < 0)
			abort();
		event_json_end(&j, &text, &len);
		bytes += len;
		free(text);
	}
	event_store_free(s);
	return bytes;
}

static size_t once(void)
{
	return by_store(1, 0);
}

static size_t in_ten(void)
{
	return by_store(10, 0);
}

/* While all the others wait. */
static size_t by_ten(void)
{
	return by_store(EVENTS / 10, 10);
}

static json_t *data_of(const struct trace_record *r)
{
	const struct trace_event_info *info = trace_event_info(r->trace_type);
	json_t *data = json_object();

	for (uint32_t k = 0; k < info->field_count; k++) {
		const struct trace_field *f = &info->fields[k];

		if (f->phase != r->phase)
			continue;
		json_object_set_new_nocheck(
			data, f->key, json_integer((json_int_t)trace_field_value(f, r->data)));
		if (f->form == FORM_INTERNED)
			json_object_set_new_nocheck(data, "model_name", json_string_nocheck(NAME));
	}
	return data;
}

static json_t *event_of(const struct trace_record *r)
{
	json_t *e = json_object();

	json_object_set_new_nocheck(
		e, "event_type", json_string_nocheck(trace_event_info(r->trace_type)->name));
	json_object_set_new_nocheck(e, "phase", json_string_nocheck(r->phase ? "stop" : "start"));
	json_object_set_new_nocheck(e, "id", json_integer((json_int_t)r->id));
	json_object_set_new_nocheck(e, "nc_idx", json_integer(r->nc_idx));
	json_object_set_new_nocheck(e, "nc_local_id", json_integer((json_int_t)r->nc_local_id));
	json_object_set_new_nocheck(e, "tracking_id", json_integer((json_int_t)r->tracking_id));
	json_object_set_new_nocheck(e, "thread_id", json_integer((json_int_t)r->thread_id));
	json_object_set_new_nocheck(e, "worker_gid", json_integer(-1));
	json_object_set_new_nocheck(e, "data", data_of(r));
	json_object_set_new_nocheck(
		e, "timestamp_ns", json_integer((json_int_t)r->timestamp_ns + OFFSET));
	return e;
}

static size_t by_jansson(void)
{
	json_t *root = json_object(), *events = json_array();
	size_t bytes;
	char *text;

	json_object_set_new_nocheck(root, "events", events);
	for (uint32_t i = 0; i < EVENTS; i++)
		json_array_append_new(events, event_of(&records[i]));
	json_object_set_new_nocheck(root, "data_version", json_integer(2));
	text = json_dumps(root, JSON_COMPACT);
	if (!text)
		abort();
	bytes = strlen(text);
	free(text);
	json_decref(root);
	return bytes;
}

static const struct {
	const char *name;
	size_t (*run)(void);
} rows[] = {{"fetch", once}, {"fetch, in ten portions", in_ten}, {"fetch, by ten", by_ten},
	{"jansson", by_jansson}};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(void)
{
	static double ns[ROWS][ROUNDS];
	size_t bytes[ROWS];

	make_records();
	for (int round = 0; round < ROUNDS; round++)
		for (size_t i = 0; i < ROWS; i++) {
			uint64_t begin = clock_boot().ns;

			bytes[i] = rows[i].run();
			ns[i][round] = (double)(clock_boot().ns - begin) / EVENTS;
		}
	if (bytes[0] != bytes[ROWS - 1]) {
		printf("the texts differ: %zu and %zu bytes\n", bytes[0], bytes[ROWS - 1]);
		return 1;
	}
	for (size_t i = 0; i < ROWS; i++)
		qsort(ns[i], ROUNDS, sizeof(double), by_value);
	for (size_t i = 0; i < ROWS; i++)
		printf("%-24s %8.1f ns/event  (%.1f to %.1f)  %6.2f M events/s  %.1f x jansson\n",
			rows[i].name, ns[i][ROUNDS / 2], ns[i][0], ns[i][ROUNDS - 1],
			1000.0 / ns[i][ROUNDS / 2], ns[ROWS - 1][ROUNDS / 2] / ns[i][ROUNDS / 2]);
	return 0;
}
