/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec.h - the NeuronCores: launches, device time, notification records.
 *
 * A launch is read from device memory once, when it is submitted: program, binding table and
 * references to the memories in it.  After that nothing that the client does to its memory
 * changes what runs, and nothing it wrote is trusted without a check.  Each core has one thread,
 * started at its first launch, which runs launches in order.  Device time of a run is exactly the
 * sum of its steps, however long the host needed; the END record is written when that time has
 * passed on the core's clock.
 */
#ifndef NTRACE_VDEV_EXEC_H
#define NTRACE_VDEV_EXEC_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/vdev/device.h"
#include "runtime/vdev/vdev_abi.h"

#define VDEV_EXEC_MAX_PENDING 64u
/* A run longer than an hour of device time is a mistake. */
#define VDEV_EXEC_MAX_PS (3600ull * 1000000000000ull)

struct vdev_bound {
	struct vdev_memory *memory; /* a reference; NULL: unused binding */
	uint8_t *data;
	uint64_t size;
};

struct vdev_launch {
	struct vdev_launch *next;
	uint32_t number;
	pid_t owner;
	uint16_t status; /* 0, or why nothing is computed */
	uint64_t duration_ps;
	uint32_t step_count;
	struct vdev_instruction *steps;
	uint32_t bound_count;
	struct vdev_bound bounds[VDEV_MAX_BINDINGS];
};

/* Checks one step against the bindings: 0 or -EINVAL. */
int vdev_instruction_check(
	const struct vdev_instruction *step, const struct vdev_bound *bounds, uint32_t count);
/* Computes a checked step. */
void vdev_instruction_run(const struct vdev_instruction *step, const struct vdev_bound *bounds);

/* Reads program and bindings; device->lock held.  A launch with a bad program is a launch with a
 * status. NULL: no memory. */
struct vdev_launch *vdev_launch_read(struct vdev_device *device, pid_t owner,
	const struct vdev_memory *program, const struct vdev_memory *bindings);
void vdev_launch_free(struct vdev_launch *launch);

/* Queues a launch and takes it over on success.  -EINVAL without a ring, -EBUSY with 64 pending,
 * -EAGAIN when no thread can be had. */
int vdev_core_submit(struct vdev_core *core, struct vdev_launch *launch);
/* Drops waiting launches of owner (0: all) and ends a running one without its END record. */
void vdev_core_cancel(struct vdev_core *core, pid_t owner);
/* Ends the core's thread. */
void vdev_core_stop(struct vdev_core *core);

/* Writes the next record, overwriting the oldest; core->lock held.  Sets the phase bit. */
void vdev_ring_write(struct vdev_ring *ring, struct vdev_notification record);

#endif
