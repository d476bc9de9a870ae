/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec.h - the NeuronCores: their launches, one after another.
 *
 * Each core has one thread, started at its first launch, which runs launches in order
 * (launch_run.h says how one goes).  A launch may be cancelled at any time, waiting or running; it
 * then has no END record.
 */
#ifndef NTRACE_VDEV_EXEC_H
#define NTRACE_VDEV_EXEC_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/vdev/device.h"
#include "runtime/vdev/program.h"

#define VDEV_EXEC_MAX_PENDING 64u

/* Queues a launch and takes it over on success.  -EINVAL without a ring, -EBUSY with 64 pending,
 * -EAGAIN when no thread can be had. */
int vdev_core_submit(struct vdev_core *core, struct vdev_launch *launch);
/* Drops waiting launches of owner (0: all) and ends a running one without its END record. */
void vdev_core_cancel(struct vdev_core *core, pid_t owner);
/* Waits until a running launch that was cancelled has let go of its memory; not with device->lock. */
void vdev_core_await_cancelled(struct vdev_core *core);
/* Ends the core's thread. */
void vdev_core_stop(struct vdev_core *core);

/* For the core's thread, core->lock held: whether the running launch goes on; and a wait, with the
 * lock dropped, until CLOCK_BOOTTIME or until it does not. */
bool vdev_core_goes_on(const struct vdev_core *core);
bool vdev_core_wait_boot(struct vdev_core *core, uint64_t until_ns);

#endif
