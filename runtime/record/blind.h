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

/* The line that tells of device runs, of which each process has its own number; and the number in such a
 * line, 0 in any other. */
void blind_runs_line(uint64_t device_runs, char line[BLIND_BYTES]);
uint64_t blind_runs(const char *line);

#endif
