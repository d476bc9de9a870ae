/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.h - what record, replay and salvage print about a merge: one line per file with counts,
 * one with losses, one with what was blind.
 */
#ifndef NTRACE_OUTPUT_REPORT_H
#define NTRACE_OUTPUT_REPORT_H

#include <stdio.h>

#include "runtime/record/merge.h"

/* rec_path: where the recording lies, NULL to leave its line out. */
void report_print(FILE *f, const struct merge_result *m, const char *rec_path);

/* The line that says that no real device was traced, if so. */
void report_device(FILE *f, bool is_virtual, bool is_simulated);

/* What failed; then, for each of them, an error of the driver before it.  NULL: there was none. */
void report_failed(FILE *f, const char *what);
void report_driver_error(FILE *f, const char *error);

/* Is something missing from the trace when this counter (enum rec_counter_id) is not zero? */
bool report_is_loss(uint32_t id);
/* How much is missing from the trace for whatever cause: losses, gaps, names, runtimes that were not
 * followed. */
uint64_t report_missing(const struct merge_result *m);

/* What would have kept a loss from happening, in a session or for a recorder; NULL: nothing that one could set. */
const char *report_remedy(uint32_t id, bool session);
/* "nothing", with what is not known of it: the kernel does not count what it skipped of so many hooks. */
void report_nothing_lost(FILE *f, uint64_t uncounted);

/* Why a recording, of a session or a recorder, is not complete, from its REC_END or, without one, from zeros. */
const char *report_end(const struct rec_end *end, bool session);

/* Reads hint, extended or off; -EINVAL for anything else. */
int report_kernel_events(const char *text, enum merge_kernel_events *ret);

/* Why a recording could not be opened, for the codes of rec_reader_open; else strerror's text. */
const char *report_reason(int error);

#endif
