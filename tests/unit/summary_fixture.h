/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summary_fixture.h - a synthetic recording, and its summary by way of the feed.
 */
#ifndef NTRACE_TESTS_SUMMARY_FIXTURE_H
#define NTRACE_TESTS_SUMMARY_FIXTURE_H

#include "agent/output/summary.h"
#include "tests/unit/recording_fixture.h"

/* Feeds `path` of the fixture; the feed's result, or that of the computation. */
static inline int sum_path(struct fixture *fx, struct summary *s, const char *path)
{
	struct feed_sink sink = summary_sink(s);
	struct feed_options how = {NULL};
	char *error = NULL;
	int rc, computed;

	if (fx->w)
		fx_close_writer(fx);
	rc = feed_trace(fx_path(fx, path).s, &how, &sink, &error);
	free(error);
	computed = summary_compute(s);
	return computed < 0 ? computed : rc;
}

/* Ends the recording and sums it up. */
static inline int sum(struct fixture *fx, struct summary *s)
{
	*s = (struct summary){0};
	fx_end(fx);
	return sum_path(fx, s, REC_DIR);
}

/* The text or JSON of a summary; to be freed. */
static inline char *sum_print(
	const struct summary *s, void (*print)(FILE *, const struct summary *))
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	print(f, s);
	fclose(f);
	return text;
}

/* A line of the text that begins with `begin`, up to its end; "" when there is none. */
static inline bool sum_says(const struct summary *s, const char *what)
{
	char *text = sum_print(s, summary_print_text);
	bool says = text && strstr(text, what);

	if (!says)
		test_info("no \"%s\" in:\n%s", what, text ? text : "");
	free(text);
	return says;
}

static inline const struct summary_name *sum_name(const struct summary *s, const char *name)
{
	static const struct summary_name none;

	for (size_t i = 0; i < s->name_count; i++)
		if (!strcmp(s->names[i].name, name))
			return &s->names[i];
	return &none;
}

/* A device run on a physical core of logical core `nc`, recorded like any span. */
static inline void fx_run(
	struct fixture *fx, uint16_t nc, uint32_t physical, uint64_t id, uint64_t from, uint64_t to)
{
	uint32_t exec = (uint32_t)id;
	uint64_t model = 77;
	struct trace_record *r = fx_record(fx, TRACE_DEVICE_EXEC, TRACE_START, id, 5, from);

	memcpy(r->data, &physical, sizeof(physical));
	memcpy(r->data + 4, &exec, sizeof(exec));
	memcpy(r->data + 8, &from, sizeof(from));
	memcpy(r->data + 32, &model, sizeof(model));
	r->nc_idx = nc;
	r = fx_record(fx, TRACE_DEVICE_EXEC, TRACE_STOP, id, 5, to);
	memcpy(r->data, &to, sizeof(to));
	r->nc_idx = nc;
}

/* A span of the device or the host with a 64-bit first member of its payload, on core 0. */
static inline void fx_plain(struct fixture *fx, enum trace_type type, uint64_t id, uint64_t from,
	uint64_t to, uint64_t value)
{
	struct trace_record *r = fx_record(fx, type, TRACE_START, id, 5, from);

	memcpy(r->data, &value, sizeof(value));
	fx_record(fx, type, TRACE_STOP, id, 5, to);
}

#endif
