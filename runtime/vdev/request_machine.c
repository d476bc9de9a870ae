/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request_machine.c - requests about the place of a device in its machine, and of the machine
 * among others: PCI places, routing ids, the map of logical cores, pods.
 *
 * The machine is never part of an UltraServer, so pods are answered as the driver does on a
 * machine that is none.
 */
#include "runtime/vdev/request.h"

#include <errno.h>
#include <string.h>

#include "runtime/vdev/user_memory.h"
#include "vmlinux/neuron_args.h"

#define ENOTSUPP_DRIVER 524 /* the kernel's own ENOTSUPP; the driver lets it out */

/* PCI places that such machines do not use. */
static uint32_t bus_of(uint32_t index)
{
	return 0xa0u + index;
}

static int device_bdf(struct vdev_call *call, void *arg)
{
	struct neuron_device_bdf *a = arg;

	*a = (struct neuron_device_bdf){.bus_number = bus_of(call->device->index)};
	call->write_back = true;
	return 0;
}

static int device_bdf_ext(struct vdev_call *call, void *arg)
{
	struct neuron_device_bdf_ext *a = arg;

	if (a->nd_index >= call->vdev->config.devices)
		return -EINVAL;
	a->domain = 0;
	a->bus_number = bus_of(a->nd_index);
	a->slot = 0;
	a->func = 0;
	call->write_back = true;
	return 0;
}

static int host_device_id(struct vdev_call *call, void *arg)
{
	uint32_t *id = arg;

	*id = call->device->index;
	call->write_back = true;
	return 0;
}

static int host_device_id_to_rid_map(struct vdev_call *call, void *arg)
{
	const struct vdev_config *config = &call->vdev->config;
	struct neuron_host_device_id_to_rid_map *a = arg;

	memset(a, 0, sizeof(*a));
	a->count = config->devices;
	vdev_routing_ids(config->instance->family, config->devices, a->host_did_to_rid_map);
	call->write_back = true;
	return 0;
}

/* ---- logical cores ----------------------------------------------------------------------- */

/* As many entries as are asked for, whatever the machine has; so does the driver. */
static int logical_to_physical_nc_map(struct vdev_call *call, void *arg)
{
	const struct vdev_arch *arch = vdev_arch_of(call->vdev);
	const struct neuron_get_nc_map *a = arg;
	struct {
		uint32_t count;
		struct neuron_nc_map_entry entries[VDEV_NC_MAP_ENTRIES];
	} map = {.count = a->max_map_entries};
	/* The driver of V4 accepts version 0 only. */
	uint32_t newest = arch->number == 3 ? call->vdev->config.driver->newest_core_map : 0;

	if (!arch->has_core_map)
		return -ENOTSUPP_DRIVER;
	if (a->max_map_entries > VDEV_NC_MAP_ENTRIES || a->mapping_version > newest)
		return -EINVAL;
	for (unsigned i = 0; i < map.count; i++)
		vdev_physical_core(i, &map.entries[i].device_id, &map.entries[i].device_nc_idx);
	return vdev_user_write(
		call->tid, a->map, &map, sizeof(map.count) + map.count * sizeof(map.entries[0]));
}

/* ---- pods -------------------------------------------------------------------------------- */

static int pod_info(struct vdev_call *call, void *arg)
{
	struct neuron_pod_info *a = arg;

	if (a->sz != call->row->arg_size)
		return -EINVAL;
	*a = (struct neuron_pod_info){.sz = a->sz};
	call->write_back = true;
	return 0;
}

/* Both forms: a shorter one is a prefix. */
static int pod_status(struct vdev_call *call, void *arg)
{
	struct neuron_pod_status *a = arg;

	if (a->sz != call->row->arg_size)
		return -EINVAL;
	*a = (struct neuron_pod_status){
		.sz = a->sz, .state = NEURON_POD_SINGLE_NODE, .node_id = -1};
	call->write_back = true;
	return 0;
}

/* The driver of V2 says the state; those of V3 and V4 leave what the caller wrote there. */
static int pod_ctrl(struct vdev_call *call, void *arg)
{
	struct neuron_pod_ctrl *a = arg;

	if (a->sz != call->row->arg_size)
		return -EINVAL;
	if (vdev_arch_of(call->vdev)->number == 2)
		a->state = NEURON_POD_SINGLE_NODE;
	call->write_back = true;
	return 0;
}

const struct vdev_request vdev_requests_machine[] = {
	{NEURON_IOCTL_DEVICE_BDF, device_bdf},
	{NEURON_IOCTL_DEVICE_BDF_EXT, device_bdf_ext},
	{NEURON_IOCTL_HOST_DEVICE_ID, host_device_id},
	{NEURON_IOCTL_HOST_DEVICE_ID_TO_RID_MAP, host_device_id_to_rid_map},
	{NEURON_IOCTL_GET_LOGICAL_TO_PHYSICAL_NC_MAP, logical_to_physical_nc_map},
	{NEURON_IOCTL_POD_INFO, pod_info},
	{NEURON_IOCTL_POD_STATUS, pod_status},
	{NEURON_IOCTL_POD_STATUS_V2, pod_status},
	{NEURON_IOCTL_POD_CTRL, pod_ctrl},
	{NEURON_IOCTL_POD_CTRL_V2, pod_ctrl},
	{0, NULL},
};
