/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summary_text.h - between the files that print the summary for people.
 */
#ifndef NTRACE_OUTPUT_SUMMARY_TEXT_H
#define NTRACE_OUTPUT_SUMMARY_TEXT_H

#include "agent/output/summary.h"

#define SUMMARY_TEXT 24
#define SUMMARY_CORE_NAME 128

/* "1.234 ms": three places and the largest unit below which it is not less than 1. */
const char *summary_ns_text(uint64_t ns, char buf[SUMMARY_TEXT]);
/* The ending of a counted noun. */
const char *summary_ending(uint64_t n);
/* "nc0", with the process when there are several; buf, for a terminal. */
const char *summary_core_name(
	const struct summary *s, const struct summary_core *c, char buf[SUMMARY_CORE_NAME]);

/* All that stands before the tables. */
void summary_print_head(FILE *f, const struct summary *s);
/* The line of what the merge did to events, in words; nothing when it did nothing. */
void summary_print_notes(FILE *f, const struct summary *s);

#endif
