/* SPDX-License-Identifier: Apache-2.0 */
/* datastore.c - datastores of processes; see datastore.h. */
#include "runtime/vdev/datastore.h"

#include <errno.h>

#include "runtime/vdev/memory.h"
#include "vmlinux/neuron_args.h"

static uint64_t address_of(const struct vdev_device *device, const struct vdev_process *process)
{
	uint64_t slot = (uint64_t)(process - device->processes);

	return vdev_arch_of(device->vdev)->host_bit + slot * NEURON_DS_BYTES;
}

/* device->lock held */
static int own(struct vdev_process *process)
{
	if (!process)
		return -EACCES;
	if (!process->datastore)
		process->datastore = vdev_memory_new(NEURON_DS_BYTES);
	return process->datastore ? 0 : -ENOMEM;
}

int vdev_datastore_acquire(
	struct vdev_device *device, pid_t caller, pid_t pid, uint64_t *ret_address)
{
	struct vdev_process *process;
	int r;

	pthread_mutex_lock(&device->lock);
	process = vdev_find_process_locked(device, pid ? pid : caller);
	if (pid)
		r = process && process->datastore ? 0 : -ENOENT;
	else
		r = own(process);
	if (r == 0)
		*ret_address = address_of(device, process);
	pthread_mutex_unlock(&device->lock);
	return r;
}

void vdev_datastore_release(struct vdev_device *device, pid_t caller, pid_t pid)
{
	struct vdev_process *process;

	if (pid && pid != caller)
		return;
	pthread_mutex_lock(&device->lock);
	process = vdev_find_process_locked(device, caller);
	if (process) {
		vdev_memory_put(process->datastore);
		process->datastore = NULL;
	}
	pthread_mutex_unlock(&device->lock);
}

struct vdev_memory *vdev_datastore_get(
	struct vdev_device *device, pid_t caller, uint64_t address, bool *ret_own)
{
	struct vdev_memory *found = NULL;

	pthread_mutex_lock(&device->lock);
	for (unsigned i = 0; i < VDEV_MAX_PROCESSES; i++) {
		struct vdev_process *process = &device->processes[i];

		if (!process->datastore || address_of(device, process) != address)
			continue;
		found = vdev_memory_ref(process->datastore);
		*ret_own = process->tgid == caller;
	}
	pthread_mutex_unlock(&device->lock);
	return found;
}
