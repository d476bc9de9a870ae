/* SPDX-License-Identifier: Apache-2.0 */
/*
 * datastore.h - the page run of counters that a process shares with whoever monitors it.
 *
 * A process has at most one per device, in its slot of the table of attached processes, from
 * ACQUIRE_NEURON_DS to RELEASE_NEURON_DS or its last close.  It has no handle: its device address
 * (the offset for mmap in the driver) names it on mem.sock.  The addresses lie in the 16 MiB that
 * allocations never get.  The driver adds the counters up when a process leaves; here nobody
 * reads them.
 */
#ifndef NTRACE_VDEV_DATASTORE_H
#define NTRACE_VDEV_DATASTORE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/vdev/device.h"

/* Address of the datastore of `pid`, or of the caller's own (pid 0), which is made if it is not
 * there.  0; -ENOENT when that process has none, -EACCES when the caller of an own one is not
 * attached (ours), -ENOMEM. */
int vdev_datastore_acquire(
	struct vdev_device *device, pid_t caller, pid_t pid, uint64_t *ret_address);
/* Gives up the caller's own; pid may be 0.  That of another process stays. */
void vdev_datastore_release(struct vdev_device *device, pid_t caller, pid_t pid);
/* Reference to what has this address, NULL when nothing has; *ret_own: it is the caller's. */
struct vdev_memory *vdev_datastore_get(
	struct vdev_device *device, pid_t caller, uint64_t address, bool *ret_own);

#endif
