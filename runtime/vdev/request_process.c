/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request_process.c - requests about processes: who is attached to a device, who has marked a
 * core, and the datastore of a process.
 */
#include "runtime/vdev/request.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>

#include "runtime/vdev/datastore.h"
#include "runtime/vdev/memory.h"
#include "runtime/vdev/user_memory.h"
#include "vmlinux/neuron_args.h"

/* ---- who is attached --------------------------------------------------------------------- */

static int device_app_pid(struct vdev_call *call, void *arg)
{
	int32_t *pid = arg;

	pthread_mutex_lock(&call->device->lock);
	*pid = call->device->processes[0].tgid;
	pthread_mutex_unlock(&call->device->lock);
	call->write_back = true;
	return 0;
}

/* Locks of cores are not kept here, so nobody holds one. */
static void describe(struct vdev_device *device, const struct vdev_process *process, uint16_t flags,
	struct neuron_app_info *info)
{
	*info = (struct neuron_app_info){.pid = process->tgid};
	if (flags & NEURON_APPS_MEMORY)
		vdev_memory_used_locked(
			device, process->tgid, &info->host_mem_size, &info->device_mem_size);
}

static int device_get_all_apps_info(struct vdev_call *call, void *arg)
{
	struct neuron_apps_info *a = arg;
	struct neuron_app_info apps[VDEV_MAX_PROCESSES];

	a->size = 0;
	pthread_mutex_lock(&call->device->lock);
	for (unsigned i = 0; i < VDEV_MAX_PROCESSES && a->size < a->capacity; i++)
		if (call->device->processes[i].tgid)
			describe(call->device, &call->device->processes[i], a->flags,
				&apps[a->size++]);
	pthread_mutex_unlock(&call->device->lock);
	call->write_back = true;
	return vdev_user_write(
		call->tid, call->address + sizeof(*a), apps, a->size * sizeof(apps[0]));
}

/* ---- who has marked ---------------------------------------------------------------------- */

/* What the driver puts into the kernel log goes to stderr. */
static int nc_pid_state_dump(struct vdev_call *call, void *arg)
{
	const struct neuron_nc_pid_state_dump *a = arg;
	pid_t owner;

	if (a->nc_id >= VDEV_MARKS_MAX)
		return -ENOENT;
	owner = vdev_marks_owner(&call->vdev->marks, a->nc_id);
	if (owner)
		fprintf(stderr, "ntrace-vdev: core %u is marked by process %d, which %s\n",
			a->nc_id, (int)owner,
			kill(owner, 0) == 0 || errno == EPERM ? "runs" : "has ended");
	return 0;
}

/* ---- datastore --------------------------------------------------------------------------- */

static int acquire_neuron_ds(struct vdev_call *call, void *arg)
{
	struct neuron_ds_info *a = arg;
	int r = vdev_datastore_acquire(call->device, call->tgid, a->pid, &a->mmap_offset);

	a->size = NEURON_DS_BYTES;
	call->write_back = r == 0;
	return r;
}

static int release_neuron_ds(struct vdev_call *call, void *arg)
{
	const struct neuron_ds_info *a = arg;

	vdev_datastore_release(call->device, call->tgid, a->pid);
	return 0;
}

const struct vdev_request vdev_requests_process[] = {
	{NEURON_IOCTL_DEVICE_APP_PID, device_app_pid},
	{NEURON_IOCTL_DEVICE_GET_ALL_APPS_INFO, device_get_all_apps_info},
	{NEURON_IOCTL_ACQUIRE_NEURON_DS, acquire_neuron_ds},
	{NEURON_IOCTL_RELEASE_NEURON_DS, release_neuron_ds},
	{NEURON_IOCTL_NC_PID_STATE_DUMP, nc_pid_state_dump},
	{0, NULL},
};
