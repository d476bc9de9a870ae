/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sort.h - a stable merge sort of small keyed entries.
 *
 * Records come in long runs that are already in order (one per source and batch), so the sort finds
 * the runs that there are and merges neighbours: one pass over the data for each doubling of the
 * number of runs.  Deterministic, and never worse than n log n whatever the input.
 */
#ifndef NTRACE_RECORD_SORT_H
#define NTRACE_RECORD_SORT_H

#include <stddef.h>
#include <stdint.h>

struct sort_entry {
	uint64_t key;
	uint32_t index; /* the caller's */
	uint32_t minor; /* the caller's */
};

/* Orders two entries of equal key: < 0, 0, > 0. */
typedef int (*sort_tie_fn)(const void *ctx, const struct sort_entry *a, const struct sort_entry *b);

/* 0 or -ENOMEM. */
int sort_entries(struct sort_entry *entries, size_t count, sort_tie_fn tie, const void *ctx);

#endif
