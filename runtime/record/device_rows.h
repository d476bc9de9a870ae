/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_rows.h - the records of a recording's device profiles as rows of ntrace.pb, in order of time.
 *
 * The profiles lie as files beside the segments, whole before the merge begins.  Each ring in them is a
 * stream in the order in which its core wrote it; the streams are joined when the merge writes, in between
 * the events that it writes (merge.c), so nothing of them waits in memory.  The host's times are those that
 * the sync points of the file itself tell, in BOOTTIME: a step of the realtime clock moves nothing.
 *
 * The essay stands in device_rows.c.  One thread, that of the merge.
 */
#ifndef NTRACE_RECORD_DEVICE_ROWS_H
#define NTRACE_RECORD_DEVICE_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/record/device_files.h"
#include "runtime/record/item.h"
#include "runtime/record/map64.h"
#include "runtime/record/process.h"
#include "runtime/record/session.h"

struct timeline;
struct device_stream;
struct device_run;

struct device_rows {
	struct session *session;
	struct processes *processes;
	struct timeline *timeline;
	struct device_files files;
	struct device_stream *streams;
	struct device_stream **heap; /* those that have a row left, by its time */
	size_t stream_count, heap_count;
	struct device_run *runs; /* of all files */
	size_t run_count;
	struct map64 by_info; /* address of an execution_info -> place in runs */
	struct map64 by_id;   /* hash of pid, physical core, exec_id -> place in runs */
	/* Asked now and then: -errno ends device_rows_give with it.  May be NULL; set by the merge. */
	int (*stop)(void *ctx);
	void *ctx;
	uint64_t next; /* time of the next row, BOOTTIME ns; all ones: there is none */
};

/*
 * Finds the profiles that the recording names; those that are not whole are noted in the session.  processes
 * and timeline are used when rows are written.  0, -ENOMEM, or what reading the recording says;
 * device_rows_free in any case.
 */
int device_rows_open(struct device_rows *r, struct rec_reader *reader, struct session *session,
	struct processes *processes, struct timeline *timeline);
void device_rows_free(struct device_rows *r);

/* Writes the rows before a time (r->next < before).  0 or -errno. */
int device_rows_give(struct device_rows *r, uint64_t before);

/*
 * Takes the start of a device run on a physical core: rows of that execution link to it.  from: the
 * mark of its source, before which nothing knows of it, however the frames of sources lie between each
 * other.
 */
void device_rows_run(struct device_rows *r, const struct item *start, uint32_t exec_id,
	uint32_t device_core, uint64_t from);

/* When all is written: what was read, lost and left out, into the counts of the processes. */
void device_rows_end(struct device_rows *r);

#endif
