/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed.h - the events of a trace for whoever shows them: summary, export.
 *
 * A path is a directory of merged files (`ntrace record -o`, `ntrace replay -o`), one ntrace.pb, or a
 * recording, which is then merged on the way without a file being written.  Either gives the same
 * calls with the same contents: per process the events in the file's order; processes may take turns.
 * Memory does not grow with the number of events.
 */
#ifndef NTRACE_OUTPUT_FEED_H
#define NTRACE_OUTPUT_FEED_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/event_codec.h"
#include "proto/neuron_trace.pb-c.h"

/* What is known of a process before its first event.  Valid as long as the feed. */
struct feed_process {
	uint32_t index;		    /* from 0, by first appearance in this feed */
	uint32_t pid;		    /* 0: a lone ntrace.pb without trace_info.pb */
	const char *name;	    /* directory of its files, or as it would be: i-0123_pid_4711 */
	int64_t realtime_offset_ns; /* of contract 3; 0 when has_offset is false */
	bool has_offset;
	bool damaged; /* before end: not all could be read of what there was */
	void *user;   /* the sink's own */
};

/* Every call returns 0, or -errno, which ends the feed.  A NULL member is not called. */
struct feed_sink {
	void *ctx;
	int (*process)(void *ctx, struct feed_process *p);
	/* Strings of the view are valid during the call. */
	int (*event)(void *ctx, struct feed_process *p, const struct ntrace_event_view *e);
	/* After all events of the process. */
	int (*cpu)(void *ctx, struct feed_process *p, const Ntff__CpuUtil *u);
	int (*mem)(void *ctx, struct feed_process *p, const Ntff__HostMemUsage *u);
	/* Last call of a process; trace_info.pb, valid during the call.  NULL: there is none, or it
	 * is damaged.  A feed that fails (but for -EBADMSG) leaves processes without this call. */
	int (*end)(void *ctx, struct feed_process *p, const Ntff__NtraceInfo *info);
};

struct feed_options {
	/* A session below the path that no file was made of yet, and which the feed is thus without; `in_work`: its program
	 * is still at it.  ctx is left_out_ctx.  May be NULL. */
	void (*left_out)(void *ctx, const char *dir, bool in_work);
	void *left_out_ctx;
	const volatile sig_atomic_t *cancel; /* non-zero: end with -ECANCELED; may be NULL */
	bool device; /* with the rows of device profiles; files that were merged without: -ENOTUNIQ */
};

/*
 * 0 or -errno, *ret_error then a text to be freed that names the path (NULL: no memory).  -EBADMSG:
 * damaged input, a recording whose recorder did not stop in order, or sessions left out; everything that can be read was
 * fed, so what is shown is true as far as it goes.  -ENOENT: no trace at that path.  -ECANCELED.
 */
int feed_trace(const char *path, const struct feed_options *options, const struct feed_sink *sink,
	char **ret_error);

#endif
