/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_clock.h - the clock of one core against BOOTTIME, from moments at which both were read.
 *
 * Between two such points the map is linear, beyond the newest it goes on as the points so far say.
 * What it says is never certain: a point is known to half its bracket, and between points the device
 * drifts.  So each time has an interval in which the host's time must lie, and a host time that
 * somebody else reckoned has a bound by which it may be wrong.  Only points that came before count: the
 * map is asked while the recording is read, and does not look ahead.
 *
 * Drift is taken to stay within DEVICE_DRIFT_PPB unless the points themselves show more, from then on
 * within what they show.  A device clock that is further off than DEVICE_RESET_PPB did not drift: it was
 * reset, or stood still while the machine slept, and the points before say nothing any more.
 *
 * Device times are ns; integers throughout, 128 bits wide inside.
 */
#ifndef NTRACE_RECORD_DEVICE_CLOCK_H
#define NTRACE_RECORD_DEVICE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#define DEVICE_DRIFT_PPB 100000u   /* 100 ppm: what two crystals may differ by */
#define DEVICE_RESET_PPB 10000000u /* 1 % */
#define DEVICE_ERROR_NS 1000000u   /* allowed for while no point has come */
#define DEVICE_POINTS 16u	   /* kept: the newest */

/* The device clock showed `nc` between host - bound and host + bound. */
struct device_point {
	uint64_t nc, host, bound;
};

/* Zero-initialise.  No resources. */
struct device_clock {
	struct device_point points[DEVICE_POINTS]; /* by nc; points[count - 1] is the newest */
	struct device_point first;		   /* since the last reset */
	uint32_t count;
	uint32_t drift_limit; /* ppb; 0 before the first point */
	uint64_t total;	      /* points ever taken */
	uint64_t resets;
	uint64_t residual; /* most that a new point lay from where the map had it, ns */
	uint64_t bound;	   /* largest that was ever stated, ns; set by whoever states it */
};

void device_clock_add(struct device_clock *c, const struct device_point *p);
/* Is the clock further off at b, the later one, than it drifts: has it been reset, or stood still, or gone by leaps? */
bool device_clock_breaks(const struct device_point *a, const struct device_point *b);

/* The functions below need a point at least (count > 0). */

/* The host's time, BOOTTIME ns; 0 and all ones where it would be less or more. */
uint64_t device_clock_host(const struct device_clock *c, uint64_t nc);
/* Between which host times the device showed `nc`. */
void device_clock_interval(
	const struct device_clock *c, uint64_t nc, uint64_t *ret_low, uint64_t *ret_high);
/* By how much a host time that was reckoned for `nc` may be wrong. */
uint64_t device_clock_bound(const struct device_clock *c, uint64_t nc, uint64_t host);
/* The same for one that was reckoned well, from the newest point alone. */
uint64_t device_clock_radius(const struct device_clock *c, uint64_t nc);
/* The same when only the host time is known. */
uint64_t device_clock_radius_at(const struct device_clock *c, uint64_t host);
/* By how much the device's clock is slower than the host's, ppb, over all points since the last reset; 0
 * when it cannot be told from their errors. */
int64_t device_clock_drift(const struct device_clock *c);

#endif
