/* SPDX-License-Identifier: Apache-2.0 */
/*
 * records_sink.h - a sink of runtimes.h for tests that look at the records alone.
 *
 * Header only.  Nobody who announces himself is wanted.
 */
#ifndef NTRACE_TESTS_RECORDS_SINK_H
#define NTRACE_TESTS_RECORDS_SINK_H

#include "agent/collect/runtimes.h"

static bool sink_wants_none(void *ctx, pid_t pid)
{
	(void)ctx;
	(void)pid;
	return false;
}

static int sink_process(void *ctx, const struct runtime_source *s)
{
	(void)ctx;
	(void)s;
	return 0;
}

static int sink_name(
	void *ctx, const struct runtime_source *s, uint64_t id, const char *text, uint32_t len)
{
	(void)id;
	(void)text;
	(void)len;
	return sink_process(ctx, s);
}

static int sink_threads(
	void *ctx, const struct runtime_source *s, const struct rec_thread *rows, size_t count)
{
	(void)rows;
	(void)count;
	return sink_process(ctx, s);
}

/* A row for struct runtimes_sink. */
#define RECORDS_SINK(on_records, ctx)                                                         \
	{                                                                                     \
		sink_wants_none, sink_process, on_records, sink_name, sink_threads, NULL, ctx \
	}

#endif
