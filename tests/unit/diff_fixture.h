/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff_fixture.h - a small trace with something of everything, written in memory, and what a comparison
 * of two of them finds.
 */
#ifndef NTRACE_TESTS_DIFF_FIXTURE_H
#define NTRACE_TESTS_DIFF_FIXTURE_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/output/diff.h"
#include "proto/event_codec.h"
#include "runtime/trace/event_registry.h"
#include "tests/unit/scratch.h"

#define EVENTS 16
#define T0 1700000000000000000u

/* Room for texts that variations write. */
struct trace {
	struct ntrace_event_view e[EVENTS * 2];
	size_t count;
	char text[64][24];
	size_t texts;
};

static inline struct pb_str str(const char *s)
{
	return (struct pb_str){s, (uint32_t)strlen(s)};
}

static inline struct ntrace_event_view *put(
	struct trace *t, uint64_t at, uint32_t thread, uint32_t type, uint32_t phase, uint64_t id)
{
	struct ntrace_event_view *e = &t->e[t->count++];

	memset(e, 0, sizeof(*e));
	e->hint = e->unknown = (struct pb_str){"", 0};
	e->timestamp = T0 + at;
	e->thread_id = thread;
	e->event_type = type;
	e->phase = phase;
	e->id = e->tracking_id = id;
	return e;
}

static inline void attr(
	struct trace *t, struct ntrace_event_view *e, const char *key, const char *value)
{
	char *copy = t->text[t->texts++];

	snprintf(copy, sizeof(t->text[0]), "%s", value);
	ntrace_event_attr(e, str(key), str(copy));
}

/* Places of events that the tests name. */
enum { COPY_STOP = 3, EXECUTE_STOP = 4, RUN_STOP = 9, SYNC = 10, LAST = 13 };

/* Two threads, a copy inside an execute with its driver call, a device run with its link, a reading of
 * the device's clock, an open span. */
static inline void make_trace(struct trace *t)
{
	struct ntrace_event_view *e;

	memset(t, 0, sizeof(*t));
	e = put(t, 0, 100, TRACE_EXECUTE_API, PHASE_START, 11);
	attr(t, e, "model_id", "900");
	attr(t, e, "model_name", "net");
	e = put(t, 10, 100, TRACE_DMEM_BUF_COPYIN, PHASE_START, 12);
	attr(t, e, "mem_handle", "5");
	attr(t, e, "size", "72");
	e = put(t, 20, 100, 0, PHASE_START, 1ull << 63 | 1);
	e->hint = str("MEM_BUF_COPY64");
	e = put(t, 35, 100, 0, PHASE_STOP, 1ull << 63 | 1);
	e->hint = str("MEM_BUF_COPY64");
	e->duration = 15;
	e->parent_id = 12;
	attr(t, e, "handle", "5");
	attr(t, e, "address", "0x1000");
	attr(t, e, "result", "-5");
	e = put(t, 40, 100, TRACE_EXECUTE_API, PHASE_STOP, 11);
	e->duration = 40;
	attr(t, e, "driver.ioctl_ns", "15");
	e = put(t, 50, 200, TRACE_TENSOR_READ, PHASE_START, 13);
	attr(t, e, "tensor_id", "3");
	e = put(t, 60, 100, TRACE_DMEM_BUF_COPYIN, PHASE_STOP, 12);
	e->duration = 50;
	e->status = 2;
	e = put(t, 70, 200, TRACE_TENSOR_READ, PHASE_STOP, 13);
	e->duration = 20;
	e = put(t, 80, 100, TRACE_DEVICE_EXEC, PHASE_START, 14);
	attr(t, e, "nc_timestamp_ns", "5000");
	e = put(t, 90, 100, TRACE_DEVICE_EXEC, PHASE_STOP, 14);
	e->duration = 10;
	attr(t, e, "link.id", "11");
	attr(t, e, "nc_timestamp_ns", "5010");
	e = put(t, 95, 100, TRACE_TIMESTAMP_SYNC, PHASE_INSTANT, 15);
	attr(t, e, "cpu_timestamp_ns", "1700000000000000094");
	e = put(t, 100, 200, TRACE_TENSOR_WRITE, PHASE_START, 16);
	attr(t, e, "tensor_id", "4");
	e->has_nrta_seq_id = true;
	e->nrta_seq_id = 7;
	put(t, 110, 100, TRACE_EXECUTE_API, PHASE_START, 17);
	put(t, 120, 100, TRACE_EXECUTE_API, PHASE_STOP, 17)->duration = 10;
}

static inline bool write_file(const char *path, const void *data, size_t size)
{
	FILE *f = fopen(path, "wb");
	bool ok = f && (size == 0 || fwrite(data, 1, size, f) == size);

	return f && fclose(f) == 0 && ok;
}

static inline bool write_trace(const struct trace *t, const char *path)
{
	struct pb_buf b = {0};
	bool ok = true;

	for (size_t i = 0; i < t->count; i++)
		ok = ok && ntrace_event_append(&b, &t->e[i]) == 0;
	ok = ok && write_file(path, b.data, b.len);
	pb_buf_free(&b);
	return ok;
}

/* What a comparison found, in a form that checks like. */
struct answer {
	int rc;
	bool same;
	struct diff d;
	uint64_t fault_at;
	char fields[200]; /* names of the fields of the first difference that differ, in order */
};

static inline void list_fields(struct answer *a)
{
	const struct diff_event *x = &a->d.first[0], *y = &a->d.first[1];

	if (!x->present || !y->present)
		return;
	for (unsigned turn = 0; turn < 2; turn++) {
		for (size_t i = 0; i < x->count; i++) {
			const char *other = NULL;

			for (size_t k = 0; k < y->count; k++)
				if (!strcmp(x->values[i].key, y->values[k].key))
					other = y->values[k].value;
			if (turn ? !other : !other || strcmp(other, x->values[i].value) != 0) {
				size_t at = strlen(a->fields);
				snprintf(a->fields + at, sizeof(a->fields) - at, "%s%s",
					at ? " " : "", x->values[i].key);
			}
		}
		x = &a->d.first[1];
		y = &a->d.first[0];
	}
}

static inline struct answer compare_paths(
	const char *a, const char *b, bool alone, const struct diff_options *options)
{
	struct diff_side side[2] = {{a, alone}, {b, alone}};
	struct diff_fault fault;
	struct answer r = {0};

	r.rc = diff_traces(side, options, &r.d, &fault);
	r.same = r.rc == 0 && diff_same(&r.d, options);
	r.fault_at = fault.offset;
	free(fault.path);
	list_fields(&r);
	return r;
}

static inline struct answer compare_traces(
	const struct trace *a, const struct trace *b, const struct diff_options *options)
{
	struct answer r = {.rc = -EIO};
	struct scratch s = {{0}};

	if (!scratch_make(&s))
		return r;
	if (write_trace(a, scratch_path(&s, "a").s) && write_trace(b, scratch_path(&s, "b").s))
		r = compare_paths(scratch_path(&s, "a").s, scratch_path(&s, "b").s, true, options);
	scratch_remove(&s);
	return r;
}

static const struct diff_options exact = {false, 0}, structure = {true, 0};

static inline void set_attr(struct ntrace_event_view *e, const char *key, const char *value)
{
	for (uint32_t i = 0; i < e->attr_count; i++)
		if (e->attrs[i].key.len == strlen(key) && !strcmp(e->attrs[i].key.s, key))
			e->attrs[i].value = str(value);
}

#endif
