/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock_map.h - from BOOTTIME, which everything captured carries, to epoch time at output.
 *
 * One offset serves a whole recording, that of its first snapshot, so order and durations in the
 * output are those of BOOTTIME.  Snapshots that show that the realtime clock was set become steps:
 * they are reported, never applied.
 *
 * The merge finds the first snapshot before anything else (clock_map_find), then gives all of them as
 * they come (clock_map_add), and converts when a record is written.
 */
#ifndef NTRACE_RECORD_CLOCK_MAP_H
#define NTRACE_RECORD_CLOCK_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/clock.h"
#include "runtime/record/recording.h"

/* Slewing moves the clocks apart by less than this between two snapshots (500 ppm over a second,
 * twice). */
#define CLOCK_STEP_NS 1000000u

struct clock_step {
	uint64_t boot_ns; /* when it was seen */
	int64_t old_offset, new_offset;
	uint64_t suspended_ns; /* not 0: no step, the machine slept for so long before */
};

/* Zero-initialise; clock_map_free at the end. */
struct clock_map {
	int64_t offset; /* REALTIME - BOOTTIME, used throughout */
	bool known;	/* the offset is */
	uint64_t begin; /* BOOTTIME of the first snapshot */
	struct clock_step *steps;
	size_t step_count, step_cap;
	struct clock_snapshot last; /* that was added */
	bool has_last;
};

/* Takes the offset from a snapshot; false when that one cannot be true or the offset is known. */
bool clock_map_find(struct clock_map *m, const struct clock_snapshot *s);
/* The same of a frame of a recording, if it is a CLOCK frame. */
bool clock_map_find_frame(struct clock_map *m, const struct rec_frame *f, const uint8_t *payload);
/* Adds a snapshot, in the order of the recording; one that cannot be true is passed over.  0 or
 * -ENOMEM. */
int clock_map_add(struct clock_map *m, const struct clock_snapshot *s);
void clock_map_free(struct clock_map *m);

static inline uint64_t clock_map_real(const struct clock_map *m, uint64_t boot_ns)
{
	return boot_ns + (uint64_t)m->offset;
}

#define CLOCK_EPOCH_2100 4102444800000000000ull

/* Is this a time at all: not zero, and before the year 2100 in both clocks? */
static inline bool clock_map_valid(const struct clock_map *m, uint64_t boot_ns)
{
	return boot_ns - 1 < CLOCK_EPOCH_2100 - 1 && clock_map_real(m, boot_ns) < CLOCK_EPOCH_2100;
}

#endif
