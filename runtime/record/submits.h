/* SPDX-License-Identifier: Apache-2.0 */
/*
 * submits.h - which submit a device run belongs to, and how far back such runs may still come.
 *
 * One per source.  It is told the executions, submits and waits of the source's threads in the order in
 * which the runtime emitted them, which is not the order of time: a device run is emitted when its
 * execution is over, with the times of the device.  So when a run comes, everything that it can be
 * linked to has been seen, though nothing of it need have been written.
 */
#ifndef NTRACE_RECORD_SUBMITS_H
#define NTRACE_RECORD_SUBMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/record/map64.h"
#include "runtime/trace/record.h"

#define SUBMITS_CORES (TRACE_MAX_NC + 1) /* the first one is "unknown" */

struct submits;

/* seed: of map64.  NULL when memory is short. */
struct submits *submits_new(uint64_t seed);
void submits_free(struct submits *s);

/* A start and a stop of the types that matter (submits_wanted), by their pair.  core: + 1, 0 unknown.
 * time: as written; told: as recorded.  0 or -ENOMEM. */
bool submits_wanted(uint32_t type);
int submits_start(struct submits *s, uint32_t type, uint32_t core, uint32_t tid, uint64_t pair,
	uint64_t time, uint64_t told, uint32_t exec_id);
void submits_stop(struct submits *s, uint32_t type, uint32_t tid, uint64_t pair, uint64_t time,
	uint64_t told);

/* Records of this core were lost, stops perhaps among them: what is awaited may never come. */
void submits_gap(struct submits *s, uint32_t core);

struct submits_run {
	uint32_t core, exec_id;
	uint64_t start, end;
};

/* The span that submitted a run, by its (core, exec_id); false when no wait tells. */
bool submits_exact(struct submits *s, const struct submits_run *run, uint64_t *ret_pair);
/* What must have happened before a run and after it; times as recorded. */
struct submits_cause {
	uint64_t pair, start; /* of its submit; pair 0: not known */
	uint64_t collected;   /* end of the wait for it; 0: not known */
};

/* The cause of a run that has come now, by its (core, exec_id); false when no wait tells.  Its times
 * need not be possible; when they are known not to be (possible false), they choose nothing. */
bool submits_cause(
	struct submits *s, const struct submits_run *run, bool possible, struct submits_cause *ret);
/* The last submit to the core that began before the run ended. */
bool submits_inferred(const struct submits *s, const struct submits_run *run, uint64_t *ret_pair);

/* By how much a run of a core may seem to start before its submit, which was at a time. */
typedef uint64_t (*submits_slack_fn)(const void *ctx, uint32_t core, uint64_t time);
/* The oldest time that a run which is awaited may have; all ones: none is. */
uint64_t submits_hold(const struct submits *s, submits_slack_fn slack, const void *ctx);
/* Nothing before this time will come: threads whose executions had ended by then may be forgotten. */
void submits_passed(struct submits *s, uint64_t mark);
/* Threads that are remembered. */
size_t submits_threads(const struct submits *s);

#endif
