/* SPDX-License-Identifier: Apache-2.0 */
/* request_core.c - requests about NeuronCores as a whole: reset, initialisation state, marks. */
#include "runtime/vdev/request.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "runtime/base/clock.h"
#include "vmlinux/neuron_args.h"

/* ---- reset: done when the request returns ------------------------------------------------ */

static int nc_reset(struct vdev_call *call, void *arg)
{
	struct neuron_device_reset *a = arg;
	uint32_t all = (uint32_t)((1ull << call->vdev->config.cores) - 1);
	uint32_t map = a->nc_map == NEURON_NC_MAP_DEVICE ? all : a->nc_map;

	if (map == 0 || map & ~all)
		return -EINVAL;
	a->request_id = vdev_reset_cores(call->device, map);
	call->write_back = true;
	return 0;
}

static int nc_reset_ready(struct vdev_call *call, void *arg)
{
	struct neuron_device_ready *a = arg;

	pthread_mutex_lock(&call->device->lock);
	a->result = call->vdev->config.reset_fails || a->request_id == 0 ||
		    a->request_id > call->device->resets;
	pthread_mutex_unlock(&call->device->lock);
	call->write_back = true;
	return 0;
}

static int device_reset(struct vdev_call *call, void *arg)
{
	(void)arg;
	vdev_reset_cores(call->device, NEURON_NC_MAP_DEVICE);
	return 0;
}

/* DEVICE_READY, DEVICE_RESET_STATUS */
static int always_ready(struct vdev_call *call, void *arg)
{
	uint8_t *ready = arg;

	*ready = 1;
	call->write_back = true;
	return 0;
}

/* ---- initialisation: one thread at a time ------------------------------------------------ */

static void wait_a_little(struct vdev_core *core)
{
	struct timespec t = clock_in_ms(CLOCK_MONOTONIC, 20);

	pthread_cond_timedwait(&core->wake, &core->lock, &t);
}

/* core->lock held.  While another thread holds STARTED its end is awaited, in short steps so that a
 * signal to the caller and the end of the device are seen. */
static int cinit_start(struct vdev_call *call, struct vdev_core *core)
{
	while (core->cinit == NEURON_CINIT_STARTED && core->cinit_tid != call->tid) {
		if (atomic_load(&call->vdev->stopping) ||
			(call->interrupted && call->interrupted(call->context)))
			return -EINTR;
		wait_a_little(core);
	}
	if (core->cinit == NEURON_CINIT_INVALID) {
		core->cinit = NEURON_CINIT_STARTED;
		core->cinit_tid = call->tid;
		core->cinit_tgid = call->tgid;
	}
	return 0;
}

static int cinit_complete(struct vdev_core *core)
{
	if (core->cinit == NEURON_CINIT_STARTED) {
		core->cinit = NEURON_CINIT_COMPLETED;
		pthread_cond_broadcast(&core->wake);
	}
	return 0;
}

static int cinit_set_state(struct vdev_call *call, void *arg)
{
	struct neuron_cinit_set *a = arg;
	struct vdev_core *core;
	int r = -EINVAL;

	if (a->nc_id >= call->vdev->config.cores)
		return -EINVAL;
	if (!vdev_attached(call->device, call->tgid)) /* its end would not be seen */
		return -EACCES;
	core = &call->device->cores[a->nc_id];
	pthread_mutex_lock(&core->lock);
	if (a->state == NEURON_CINIT_STARTED)
		r = cinit_start(call, core);
	else if (a->state == NEURON_CINIT_COMPLETED)
		r = cinit_complete(core);
	a->new_state = core->cinit;
	pthread_mutex_unlock(&core->lock);
	call->write_back = r == 0;
	return r;
}

/* ---- marks ------------------------------------------------------------------------------- */

static unsigned first_core(const struct vdev_call *call)
{
	return call->device->index * call->vdev->config.cores;
}

static int range_mark(struct vdev_call *call, void *arg)
{
	struct neuron_crwl_nc_map *a = arg;
	int r = vdev_marks_take(&call->vdev->marks, call->tgid, first_core(call), a->start_nc_index,
		a->end_nc_index, a->nc_count, &a->bitmap, 64, &a->max_nc_available);

	call->write_back = r == 0 || r == -EBUSY;
	return r;
}

static int range_mark_ext0(struct vdev_call *call, void *arg)
{
	struct neuron_crwl_nc_map_ext *a = arg;
	int r = vdev_marks_take(&call->vdev->marks, call->tgid, first_core(call), a->start_nc_index,
		a->end_nc_index, a->nc_count, a->bitmap, VDEV_MARKS_MAX, &a->max_nc_available);

	call->write_back = r == 0 || r == -EBUSY;
	return r;
}

static int range_unmark(struct vdev_call *call, void *arg)
{
	const struct neuron_crwl_nc_map *a = arg;

	vdev_marks_give(&call->vdev->marks, call->tgid, first_core(call), &a->bitmap, 64);
	return 0;
}

static int range_unmark_ext0(struct vdev_call *call, void *arg)
{
	const struct neuron_crwl_nc_map_ext *a = arg;

	vdev_marks_give(
		&call->vdev->marks, call->tgid, first_core(call), a->bitmap, VDEV_MARKS_MAX);
	return 0;
}

const struct vdev_request vdev_requests_core[] = {
	{NEURON_IOCTL_NC_RESET, nc_reset},
	{NEURON_IOCTL_NC_RESET_READY, nc_reset_ready},
	{NEURON_IOCTL_DEVICE_RESET, device_reset},
	{NEURON_IOCTL_DEVICE_READY, always_ready},
	{NEURON_IOCTL_DEVICE_RESET_STATUS, always_ready},
	{NEURON_IOCTL_CINIT_SET_STATE, cinit_set_state},
	{NEURON_IOCTL_CRWL_NC_RANGE_MARK, range_mark},
	{NEURON_IOCTL_CRWL_NC_RANGE_MARK_EXT0, range_mark_ext0},
	{NEURON_IOCTL_CRWL_NC_RANGE_UNMARK, range_unmark},
	{NEURON_IOCTL_CRWL_NC_RANGE_UNMARK_EXT0, range_unmark_ext0},
	{0, NULL},
};
