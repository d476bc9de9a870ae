/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock_map.h - from BOOTTIME, which everything captured carries, to epoch time at output.
 *
 * One offset serves a whole recording, that of its first snapshot, so order and durations in the
 * output are those of BOOTTIME.  Snapshots that show that the realtime clock was set become steps:
 * they are reported, never applied.
 */
#ifndef NTRACE_RECORD_CLOCK_MAP_H
#define NTRACE_RECORD_CLOCK_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/clock.h"

/* Slewing moves the clocks apart by less than this between two snapshots (500 ppm over a second,
 * twice). */
#define CLOCK_STEP_NS 1000000u

struct clock_step {
	uint64_t boot_ns; /* when it was seen */
	int64_t old_offset, new_offset;
};

struct clock_map {
	int64_t offset; /* REALTIME - BOOTTIME, used throughout */
	struct clock_step *steps;
	size_t step_count;
};

/* Builds the map from the snapshots in the order of the recording.  0; -ENODATA when there are
 * none; -ENOMEM. */
int clock_map_init(struct clock_map *m, const struct clock_snapshot *snapshots, size_t count);
void clock_map_free(struct clock_map *m);

/* Is this a time at all: not zero, and before the year 2100 in both clocks? */
bool clock_map_valid(const struct clock_map *m, uint64_t boot_ns);

static inline uint64_t clock_map_real(const struct clock_map *m, uint64_t boot_ns)
{
	return boot_ns + (uint64_t)m->offset;
}

#endif
