/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_records.h - what the runtime records of a program's calls, read as an agent reads it; for tests.
 *
 * Header only.  record() runs some work in a child of a test, under an agent, and leaves its records in `got`.
 */
#ifndef NTRACE_TESTS_NRT_RECORDS_H
#define NTRACE_TESTS_NRT_RECORDS_H

#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/trace/event_registry.h"
#include "runtime/trace/payload.h"
#include "runtime/trace/ring.h"
#include "tests/unit/fake_agent.h"
#include "tests/unit/nrt_lib.h"

#define MAX_RECORDS 8192

static struct {
	struct trace_record records[MAX_RECORDS];
	size_t count;
	char names[256];
} got;

static inline int on_batch(
	void *ctx, uint32_t nc, uint32_t lane, const struct trace_record *records, size_t count)
{
	(void)ctx;
	(void)nc;
	(void)lane;
	for (size_t i = 0; i < count && got.count < MAX_RECORDS; i++)
		got.records[got.count++] = records[i];
	return 0;
}

static inline int on_name(void *ctx, uint64_t id, const char *text, uint32_t len)
{
	size_t used = strlen(got.names);

	(void)ctx;
	snprintf(got.names + used, sizeof(got.names) - used, "%llu=%.*s;", (unsigned long long)id,
		(int)len, text);
	return 0;
}

/* The k-th record of a type and phase, or NULL. */
static inline const struct trace_record *find(enum trace_type type, enum trace_phase phase, int k)
{
	for (size_t i = 0; i < got.count; i++)
		if (got.records[i].trace_type == type && got.records[i].phase == phase && k-- == 0)
			return &got.records[i];
	return NULL;
}

static inline const struct trace_record *stop_of(const struct trace_record *start)
{
	for (size_t i = 0; start && i < got.count; i++)
		if (got.records[i].tracking_id == start->tracking_id &&
			got.records[i].phase == TRACE_STOP)
			return &got.records[i];
	return NULL;
}

static inline int count_of(enum trace_type type, enum trace_phase phase)
{
	int n = 0;

	while (find(type, phase, n))
		n++;
	return n;
}

/* Does span number `in` of `inner` lie within the k-th of `outer`, on one thread and core? */
static inline bool nested_at(enum trace_type outer, int k, enum trace_type inner, int in)
{
	const struct trace_record *o = find(outer, TRACE_START, k);
	const struct trace_record *i = find(inner, TRACE_START, in);
	const struct trace_record *o_end = stop_of(o), *i_end = stop_of(i);

	return o && i && o_end && i_end && o->thread_id == i->thread_id && o->nc_idx == i->nc_idx &&
	       o->timestamp_ns <= i->timestamp_ns && i_end->timestamp_ns <= o_end->timestamp_ns;
}

static inline bool nested(enum trace_type outer, enum trace_type inner, int k)
{
	return nested_at(outer, k, inner, k);
}

/* Runs `work` under an agent and reads the records. */
static inline int record(const struct place *p, int (*work)(void))
{
	struct ctl_reader *reader = NULL;
	struct agent a;

	WANT(enter(p) == 0);
	WANT(agent_listen(&a, ANNOUNCE_ENABLE) == 0);
	WANT_STATUS(init(), 0);
	WANT(pthread_join(a.thread, NULL) == 0);
	WANT(a.hello.flags == ANNOUNCE_F_VIRTUAL);
	WANT(work() == 0);
	lib.nrt_close();
	WANT(ctl_reader_open(a.control_fd, CTL_SUB_AGENT, &reader) == 0);
	WANT(ctl_reader_poll(reader, false, clock_boot().ns, on_batch, on_name, NULL) > 0);
	for (uint32_t i = 0; i < ctl_reader_rings(reader); i++) {
		struct ring_counters c;
		uint32_t nc, lane;

		ctl_reader_counters(reader, i, &nc, &lane, &c);
		WANT(c.emitted == c.delivered); /* nothing was lost */
	}
	ctl_reader_close(reader);
	return 0;
}

/* Has every start its stop, and every stop its start? */
static inline int all_closed(void)
{
	size_t starts = 0, stops = 0;

	for (size_t i = 0; i < got.count; i++) {
		starts += got.records[i].phase == TRACE_START;
		stops += got.records[i].phase == TRACE_STOP;
		WANT(got.records[i].phase != TRACE_START || stop_of(&got.records[i]));
	}
	WANT(starts == stops && starts > 0);
	return 0;
}

#endif
