/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff_threads.h - which thread of one trace is which of another.
 *
 * Threads that begin at the same time appear in an order that is chance.  A thread is paired with one
 * that does the same from its first event to its last; those left over with one whose first event is on
 * the same core; those left over then in order of appearance.
 */
#ifndef NTRACE_OUTPUT_DIFF_THREADS_H
#define NTRACE_OUTPUT_DIFF_THREADS_H

#include "agent/output/diff.h"
#include "runtime/record/map64.h"

/*
 * Reads both files.  *ret: id of a thread of B -> the number that its like in A gets in order of
 * appearance, from 1; a thread without a like has a number above those.  map64_free in any case.
 * 0, or as diff_traces.
 */
int diff_threads_pair(const struct diff_side side[2], struct map64 *ret, struct diff_fault *fault);

#endif
