/* SPDX-License-Identifier: Apache-2.0 */
/*
 * durations.h - durations of spans, all of them kept (8 bytes each), so that percentiles are exact.
 */
#ifndef NTRACE_OUTPUT_DURATIONS_H
#define NTRACE_OUTPUT_DURATIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/output/json_out.h"

/* Zero-initialise; durations_free at the end. */
struct durations {
	uint64_t *ns;
	size_t n, cap;
};

/* 0 or -ENOMEM. */
int durations_add(struct durations *d, uint64_t ns);
void durations_sort(struct durations *d);
void durations_free(struct durations *d);

uint64_t durations_total(const struct durations *d);

/* Percentiles by nearest rank; one that n is too small for (n < 1 / (1 - p)) is missing. */
enum { STAT_MIN, STAT_P50, STAT_P90, STAT_P99, STAT_MAX, STAT_COUNT };
struct duration_stats {
	uint64_t n;
	bool has[STAT_COUNT];
	uint64_t ns[STAT_COUNT];
};
/* Of sorted durations. */
struct duration_stats duration_stats(const struct durations *d);
const char *duration_stat_name(int stat);

/* "n" and those that are not missing, as keys of the object that is open. */
void durations_json(struct json_out *j, const struct durations *d);

#endif
