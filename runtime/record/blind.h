/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blind.h - what the active hooks could not see.  A balanced ledger is not coverage.
 */
#ifndef NTRACE_RECORD_BLIND_H
#define NTRACE_RECORD_BLIND_H

#include <stdint.h>

#include "runtime/record/session.h"
#include "runtime/record/merge.h"

#define BLIND_LINES (sizeof(((struct merge_result *)0)->blind) / BLIND_BYTES)
#define BLIND_BYTES sizeof(((struct merge_result *)0)->blind[0])

/* Fills the lines; returns how many.  device_runs: executions on a device that were seen from
 * outside only. */
uint32_t blind_lines(
	const struct session *l, uint64_t device_runs, char lines[BLIND_LINES][BLIND_BYTES]);

/* How the line begins that says: there are device profiles, and nobody asked for them. */
#define BLIND_NOT_ASKED "inside of device runs: --device was not given"

/* What a line has in it when the ends of doorbells are not seen. */
#define BLIND_NO_COMPLETIONS "completions and timeouts of its copies"

/* Why the inside of device runs is not known. */
enum blind_why {
	BLIND_NO_PROFILE, /* none was taken */
	BLIND_NO_RECORDS, /* one was, and what it has does not tell of these runs */
	BLIND_CUT,	  /* a part of a recording, which has none */
	BLIND_NO_SESSION, /* a session of the program's own was told to take none */
	BLIND_WHYS,
};

/* The line that tells of device runs, of which each process has its own number; and the number and the reason in such a
 * line, 0 in any other. */
void blind_runs_line(uint64_t device_runs, enum blind_why why, char line[BLIND_BYTES]);
uint64_t blind_runs(const char *line, enum blind_why *ret_why);

#endif
