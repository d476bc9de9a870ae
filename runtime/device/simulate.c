/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simulate.c - a system without devices.
 */
#include "runtime/device/simulate.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/env.h"
#include "runtime/base/instance.h"
#include "runtime/device/identity.h"
#include "runtime/log/log.h"
#include "vmlinux/ioctl_table.h"
#include "vmlinux/neuron_args.h"

#define TAG "TDRV"

static bool is_given(const char *text)
{
	return text && text[0];
}

bool simulate_wanted(const struct device_place *place)
{
	return is_given(place->fake_instance) && !place->root[0];
}

void simulate_warn_ignored(const struct device_place *place)
{
	if (is_given(place->fake_instance) && place->root[0])
		log_warn(TAG,
			ENV_FAKE_INSTANCE "='%.64s' is not used: " ENV_DEVICE_ROOT
					  "='%.400s' names a device. Unset one of them",
			place->fake_instance, place->root);
}

NRT_STATUS simulate_topology(const char *type, struct device_topology *ret)
{
	struct device_topology t = {.is_virtual = true, .simulated = true};
	char known[512];

	if (identity_shape(type, &t.device_count, &t.cores_per_device, &t.arch) < 0) {
		instance_list_types(known, sizeof(known));
		log_error(TAG,
			ENV_FAKE_INSTANCE "='%.64s' is not an instance type that is known; "
					  "these are: %s",
			type, known);
		return NRT_INVALID;
	}
	t.present = t.device_count < 64 ? (1ull << t.device_count) - 1 : ~0ull;
	*ret = t;
	return NRT_SUCCESS;
}

void simulate_negotiate(struct device_system *s)
{
	s->arch = s->topology.arch;
	s->query = (struct device_file){.kept.fd = -1,
		.index = s->topology.first_index,
		.simulated = true,
		.owner = getpid()};
	log_warn(TAG,
		"SIMULATED %s without any device (" ENV_FAKE_INSTANCE "): %u devices of %u cores",
		s->fake_instance, s->topology.device_count, s->topology.cores_per_device);
}

/* Nobody else has cores of this machine: the first ones are free. */
static int mark(struct neuron_crwl_nc_map_ext *arg)
{
	uint32_t end = arg->start_nc_index + arg->nc_count;

	if (arg->nc_count == 0 || end > arg->end_nc_index + 1 || end > sizeof(arg->bitmap) * 8)
		return -EINVAL;
	memset(arg->bitmap, 0, sizeof(arg->bitmap));
	for (uint32_t i = arg->start_nc_index; i < end; i++)
		arg->bitmap[i / 64] |= 1ull << (i % 64);
	return 0;
}

int simulate_request(uint32_t cmd, void *arg)
{
	switch (cmd) {
	case NEURON_IOCTL_CRWL_NC_RANGE_MARK_EXT0:
		return mark(arg);
	case NEURON_IOCTL_CRWL_NC_RANGE_UNMARK_EXT0:
	case NEURON_IOCTL_DEVICE_INFO:
		return 0;
	default:
		return -ENODEV;
	}
}

bool simulate_lacks(struct device_system *s, enum simulate_work work)
{
	if (!s->topology.simulated)
		return false;
	if (!(atomic_fetch_or(&s->simulation_said, work) & work))
		log_warn("NRT",
			"%s in a simulation (" ENV_FAKE_INSTANCE "): there is no device. "
			"`ntrace-vdev -- CMD` runs CMD on a virtual device",
			work == SIMULATE_MODEL ? "No model can be loaded"
					       : "No device memory, only host tensors");
	return true;
}
