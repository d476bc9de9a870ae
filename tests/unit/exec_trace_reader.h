/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec_trace_reader.h - reads the file of nrt_trace_stop for tests, by protobuf-c.
 *
 * Header only, on top of nrt_lib.h.
 */
#ifndef NTRACE_TESTS_EXEC_TRACE_READER_H
#define NTRACE_TESTS_EXEC_TRACE_READER_H

#include "agent/output/dump.h"
#include "proto/neuron_trace.pb-c.h"
#include "runtime/base/file.h"
#include "tests/unit/nrt_lib.h"

#define TRACE_MAX_BYTES ((size_t)64 << 20)

/* A file of the place's directory; NULL when there is none, or `ntrace dump` would not take it
 * for one. */
static inline Ntff__NtraceInfo *trace_load(const struct place *p, const char *name)
{
	char *bytes = NULL;
	size_t size = 0;
	Ntff__NtraceInfo *m = NULL;

	if (file_read(scratch_path(&p->scratch, name).s, TRACE_MAX_BYTES, &bytes, &size) == 0 &&
		dump_sniff_content((const uint8_t *)bytes, size) == DUMP_TRACE_INFO)
		m = ntff__ntrace_info__unpack(NULL, size, (const uint8_t *)bytes);
	free(bytes);
	return m;
}

static inline NRT_STATUS trace_stop_to(const struct place *p, const char *name)
{
	return lib.nrt_trace_stop(scratch_path(&p->scratch, name).s);
}

static inline const char *trace_name(const Ntff__NtraceEvent *e)
{
	return e->n_attributes == 1 && !strcmp(e->attributes[0]->key, "name")
		       ? e->attributes[0]->value
		       : "";
}

/* The n-th record of this name, from 0; NULL when there are less. */
static inline const Ntff__NtraceEvent *trace_at(
	const Ntff__NtraceInfo *m, const char *name, size_t n)
{
	for (size_t i = 0; i < m->n_events; i++)
		if (!strcmp(trace_name(m->events[i]), name) && n-- == 0)
			return m->events[i];
	return NULL;
}

static inline size_t trace_count(const Ntff__NtraceInfo *m, const char *name)
{
	size_t n = 0;

	while (trace_at(m, name, n))
		n++;
	return n;
}

/* UINT64_MAX: there is no such counter. */
static inline uint64_t trace_counter(const Ntff__NtraceInfo *m, const char *counter)
{
	for (size_t i = 0; i < m->n_ledger; i++)
		if (!strcmp(m->ledger[i]->stage, "exec_trace") &&
			!strcmp(m->ledger[i]->counter, counter))
			return m->ledger[i]->value;
	return UINT64_MAX;
}

/* Is every record accounted for, and are they in order of time? */
static inline int trace_is_whole(const Ntff__NtraceInfo *m)
{
	WANT(trace_counter(m, "written") == m->n_events);
	WANT(trace_counter(m, "records") == m->n_events + trace_counter(m, "overwritten") +
						    trace_counter(m, "no_memory") +
						    trace_counter(m, "stopping"));
	for (size_t i = 1; i < m->n_events; i++)
		WANT(m->events[i - 1]->timestamp <= m->events[i]->timestamp);
	return 0;
}

#endif
