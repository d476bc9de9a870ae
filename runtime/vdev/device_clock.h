/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_clock.h - the clock of one NeuronCore: where it starts, how fast it runs, and when it
 * stands still.
 *
 * A clock runs from the start of the device, faster or slower than CLOCK_BOOTTIME by its drift.
 * One that counts steps runs in runs alone: it stands still between them, and a run begins at a
 * fixed gap after the last one, so that what it shows does not depend on when the host asked.
 * Plain data and integer arithmetic; who shares one has a lock.
 */
#ifndef NTRACE_VDEV_DEVICE_CLOCK_H
#define NTRACE_VDEV_DEVICE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#define VDEV_MAX_DRIFT_PPM 100000
#define VDEV_STEP_GAP_PS 1000000ull /* between two runs of a clock that counts steps */

/* What a daemon's clocks are to be. */
struct vdev_timing {
	uint64_t offset_ns;
	int64_t drift_ppm;
	uint64_t seed;
	uint64_t jitter_ppm; /* of an instruction's duration */
	bool steps;	     /* see above */
};

struct vdev_clock {
	uint64_t zero_ns; /* CLOCK_BOOTTIME when it showed start_ps; of steps: when the run began */
	uint64_t start_ps; /* device time then; of a clock that stands still: now */
	int64_t rate_ppb;  /* faster than CLOCK_BOOTTIME by */
	uint64_t limit_ps; /* of steps: what it must not pass yet */
	bool steps, still;
};

/* Of the core-th core of the machine: one second later for each core, so that clocks are not
 * mistaken for each other; offset and drift are up to a quarter more, by core and seed. */
void vdev_clock_init(struct vdev_clock *clock, const struct vdev_timing *timing, unsigned core,
	uint64_t boot_ns);

/* Device time at a CLOCK_BOOTTIME. */
uint64_t vdev_clock_at(const struct vdev_clock *clock, uint64_t boot_ns);
/* CLOCK_BOOTTIME, in picoseconds, rounded up, of a device time since the clock runs; and back. */
uint64_t vdev_clock_to_boot_ps(const struct vdev_clock *clock, uint64_t device_ps);
uint64_t vdev_clock_from_boot_ps(const struct vdev_clock *clock, uint64_t boot_ps);

/* A run begins, or has ended at a device time; nothing for a clock that does not count steps.  The
 * first one gives the device time at which the run begins. */
uint64_t vdev_clock_go(struct vdev_clock *clock, uint64_t boot_ns);
/* The run goes on up to a device time: one that counts steps shows no more until it is told so. */
void vdev_clock_let(struct vdev_clock *clock, uint64_t device_ps);
void vdev_clock_stand(struct vdev_clock *clock, uint64_t device_ps);

/* The duration of an instruction with the jitter of its place: core of the machine, n-th launch of
 * that core, index in the program. */
uint64_t vdev_jitter(const struct vdev_timing *timing, unsigned core, uint64_t launch,
	uint32_t instruction, uint64_t duration_ps);

#endif
