/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile_rings.c - notification rings that exist for a profile alone: opened when somebody wants one, ended after.
 *
 * A ring is asked for by force, so that it is fresh and of this size.  A driver that does not know that gives the one
 * that there is, whose memory must be large enough.
 */
#include <errno.h>
#include <sys/mman.h>

#include "runtime/device/device.h"
#include "vmlinux/ioctl_table.h"
#include "vmlinux/neuron_args.h"

static uint64_t number_of(const struct device_ring_key *key)
{
	return VDEV_RING_NUMBER(key->device == VDEV_NQ_DEV_TYPE_TOP_SP, key->type, key->engine);
}

static int write_register(const struct device_core *core, uint64_t address, uint32_t word)
{
	struct neuron_bar_rw arg = {
		.bar = 0,
		.address = (uint64_t)(uintptr_t)&address,
		.data = (uint64_t)(uintptr_t)&word,
		.count = 1,
	};

	return device_ioctl(&core->device->file, NEURON_IOCTL_BAR_WRITE, &arg);
}

/* The ring that there is, or a new one. */
static int find_ring(const struct device_core *core, const struct device_ring_key *key,
	uint32_t bytes, uint64_t *ret_handle, uint64_t *ret_offset)
{
	struct neuron_notifications_init_v2 arg = {
		.nq_dev_id = core->index,
		.nq_dev_type = key->device,
		.nq_type = key->type,
		.engine_index = key->engine,
		.size = bytes,
		.on_host_memory = 1,
	};
	int rc = device_ioctl(&core->device->file, NEURON_IOCTL_NOTIFICATIONS_INIT_V2, &arg);

	*ret_handle = arg.mem_handle;
	*ret_offset = arg.mmap_offset;
	return rc;
}

static int make_ring(const struct device_core *core, const struct device_ring_key *key,
	uint32_t bytes, uint64_t *ret_handle, uint64_t *ret_offset)
{
	struct neuron_notifications_init_with_realloc_v2 arg = {
		.nq_dev_id = core->index,
		.nq_dev_type = key->device,
		.nq_type = key->type,
		.engine_index = key->engine,
		.size = bytes,
		.on_host_memory = 1,
		.force_alloc_mem = 1,
	};
	int rc = device_ioctl(
		&core->device->file, NEURON_IOCTL_NOTIFICATIONS_INIT_WITH_REALLOC_V2, &arg);

	*ret_handle = arg.mem_handle;
	*ret_offset = arg.mmap_offset;
	if (rc == -EINVAL || rc == -ENOTTY)
		rc = find_ring(core, key, bytes, ret_handle, ret_offset);
	return rc;
}

int device_profile_ring_open(const struct device_system *s, const struct device_core *core,
	const struct device_ring_key *key, uint32_t bytes, void **ret_memory)
{
	uint64_t handle, offset;
	int rc = make_ring(core, key, bytes, &handle, &offset);

	if (rc < 0)
		return rc;
	rc = device_map(s, core->device, handle, offset, bytes, ret_memory);
	if (rc < 0)
		device_profile_rings_end(core, key, 1);
	return rc;
}

void device_profile_rings_end(
	const struct device_core *core, const struct device_ring_key *keys, uint32_t count)
{
	uint64_t addresses[DEVICE_ASK_MAX];
	const uint32_t words[DEVICE_ASK_MAX] = {0};
	struct neuron_bar_rw arg = {
		.bar = 0,
		.address = (uint64_t)(uintptr_t)addresses,
		.data = (uint64_t)(uintptr_t)words,
		.count = count,
	};

	if (count == 0 || count > DEVICE_ASK_MAX)
		return;
	for (uint32_t i = 0; i < count; i++)
		addresses[i] = VDEV_BAR_RING_END(core->index, number_of(&keys[i]));
	(void)device_ioctl(&core->device->file, NEURON_IOCTL_BAR_WRITE, &arg);
}

int device_profile_ring_tell(
	const struct device_core *core, const struct device_ring_key *key, uint32_t read)
{
	return write_register(core, VDEV_BAR_RING_READ(core->index, number_of(key)), read);
}

int device_profile_rings_ask(const struct device_core *core, const struct device_ring_key *keys,
	uint32_t count, struct device_ring_count *ret)
{
	uint64_t addresses[2 * DEVICE_ASK_MAX];
	struct neuron_bar_rw arg = {
		.bar = 0,
		.address = (uint64_t)(uintptr_t)addresses,
		.data = (uint64_t)(uintptr_t)ret,
		.count = 2 * count,
	};

	if (count > DEVICE_ASK_MAX)
		return -EINVAL;
	for (uint32_t i = 0; i < count; i++) {
		addresses[2 * i] = VDEV_BAR_RING_READ(core->index, number_of(&keys[i]));
		addresses[2 * i + 1] = VDEV_BAR_RING_DROPPED(core->index, number_of(&keys[i]));
	}
	return count ? device_ioctl(&core->device->file, NEURON_IOCTL_BAR_READ, &arg) : 0;
}
