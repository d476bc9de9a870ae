/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collector_tap.h - what an execution tells the collector, for the executor alone.
 *
 * The rings of runs, errors and collectives have one reader, the executor: it hands on what it takes.  Each call does
 * nothing when nobody makes a profile of the core; collector_wants is what that costs, one load.  Any thread.
 */
#ifndef NTRACE_PROFILE_COLLECTOR_TAP_H
#define NTRACE_PROFILE_COLLECTOR_TAP_H

#include <stdatomic.h>

#include "runtime/device/device.h"
#include "runtime/profile/collector.h"

static inline bool collector_wants(const struct device_core *core)
{
	return atomic_load_explicit(&core->profiled, memory_order_relaxed);
}

/* A record that was taken from that ring. */
void collector_tap(
	const struct device_core *core, enum device_ring ring, const struct notification *note);
/* So many of that ring could not be read; exact: that is all. */
void collector_tap_lost(
	const struct device_core *core, enum device_ring ring, uint64_t lost, bool exact);

/* A run has ended, or was given up.  Where it ran is filled in. */
void collector_tap_run(const struct device_core *core, struct collector_run *run);

/* A reading of both clocks. */
void collector_tap_sync(
	const struct device_core *core, uint32_t exec_id, const struct device_sync *sync);

#endif
