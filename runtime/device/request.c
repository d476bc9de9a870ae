/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request.c - the requests of the driver that the runtime sends, one function each.
 */
#include "runtime/device/device.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

#include "runtime/vdev/vdev_abi.h"
#include "vmlinux/ioctl_table.h"
#include "vmlinux/neuron_args.h"

#define NOTIFY_RING_BYTES 65536u
#define QUEUE_DESCRIPTORS 64u

int device_ioctl(const struct kept_fd *file, uint32_t cmd, void *arg)
{
	int rc;

	if (!kept_fd_valid(file))
		return -EBADF;
	rc = ioctl(file->fd, cmd, arg);
	if (rc < 0)
		return -errno;
	return rc > 0 ? -EFAULT : 0;
}

const char *device_strerror(int rc)
{
	/* The first two are what FUSE says of a device that ended. */
	if (rc == -ENOTCONN || rc == -ECONNABORTED || rc == -ENODEV)
		return "the device is gone";
	return strerror(-rc);
}

static uint64_t address_of(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

int device_mem_alloc(const struct device_core *core, uint64_t size, enum device_mem_type type,
	uint64_t *ret_handle, uint64_t *ret_address)
{
	uint64_t handle = 0;
	struct neuron_mem_alloc_v2mt arg = {
		.size = size,
		.dram_channel = core->hbm,
		.nc_id = core->index,
		.mem_type = type,
		.mem_handle = address_of(&handle),
	};
	int rc = device_ioctl(&core->device->file,
		core->device->says_address ? NEURON_IOCTL_MEM_ALLOC_V2MT64_PA
					   : NEURON_IOCTL_MEM_ALLOC_V2MT64,
		&arg);

	if (rc == 0) {
		*ret_handle = handle;
		*ret_address = arg.pa;
	}
	return rc;
}

int device_mem_free(const struct device *device, uint64_t handle)
{
	struct neuron_mem_free arg = {.mem_handle = handle};

	return device_ioctl(&device->file, NEURON_IOCTL_MEM_FREE, &arg);
}

static int buf_copy(const struct device *device, uint64_t handle, uint64_t offset, uint64_t buffer,
	uint64_t size, bool to_device)
{
	struct neuron_mem_buf_copy64 arg = {
		.mem_handle = handle,
		.buffer = buffer,
		.size = size,
		.offset = offset,
		.copy_to_mem_handle = to_device,
	};

	return device_ioctl(&device->file, NEURON_IOCTL_MEM_BUF_COPY64, &arg);
}

int device_copy_in(const struct device *device, uint64_t handle, uint64_t offset, const void *from,
	uint64_t size)
{
	return buf_copy(device, handle, offset, address_of(from), size, true);
}

int device_copy_out(
	const struct device *device, uint64_t handle, uint64_t offset, void *to, uint64_t size)
{
	return buf_copy(device, handle, offset, address_of(to), size, false);
}

int device_queue_init(const struct device_core *core, uint64_t program, uint64_t bindings)
{
	struct neuron_dma_queue_init arg = {
		.eng_id = VDEV_EXEC_ENGINE,
		.qid = core->index,
		.tx_desc_count = QUEUE_DESCRIPTORS,
		.rx_desc_count = QUEUE_DESCRIPTORS,
		.tx_handle = program,
		.rx_handle = bindings,
	};

	return device_ioctl(&core->device->file, NEURON_IOCTL_DMA_QUEUE_INIT, &arg);
}

int device_queue_start(const struct device_core *core, uint32_t launch)
{
	struct neuron_dma_queue_copy_start arg = {
		.eng_id = VDEV_EXEC_ENGINE,
		.qid = core->index,
		.tx_desc_count = launch,
	};

	return device_ioctl(&core->device->file, NEURON_IOCTL_DMA_QUEUE_COPY_START, &arg);
}

int device_queue_ack(const struct device_core *core, uint32_t count)
{
	struct neuron_dma_ack_completed arg = {
		.eng_id = VDEV_EXEC_ENGINE,
		.qid = core->index,
		.count = count,
	};

	return device_ioctl(&core->device->file, NEURON_IOCTL_DMA_ACK_COMPLETED, &arg);
}

int device_read_clock(const struct device_core *core, struct device_sync *ret)
{
	uint64_t addresses[2] = {VDEV_BAR_CLOCK(core->index), VDEV_BAR_CLOCK(core->index) + 4};
	uint32_t words[2] = {0, 0};
	struct neuron_bar_rw arg = {
		.bar = 0,
		.address = address_of(addresses),
		.data = address_of(words),
		.count = 2,
	};
	struct boot_ns before = clock_boot();
	int rc = device_ioctl(&core->device->file, NEURON_IOCTL_BAR_READ, &arg);
	struct boot_ns after = clock_boot();
	uint64_t half = (after.ns - before.ns) / 2;

	if (rc < 0)
		return rc;
	ret->clock.ps = words[0] | (uint64_t)words[1] << 32;
	ret->host.ns = before.ns + half;
	ret->bound_ns = after.ns - ret->host.ns;
	return 0;
}

int device_notify_open(const struct device_system *s, struct device_core *core)
{
	struct neuron_notifications_init_v2 arg = {
		.nq_dev_id = core->index,
		.nq_dev_type = VDEV_NQ_DEV_TYPE_CORE,
		.nq_type = VDEV_NQ_TYPE_NOTIFY,
		.engine_index = VDEV_NQ_ENGINE_INDEX,
		.size = NOTIFY_RING_BYTES,
		.on_host_memory = 1,
	};
	void *memory;
	int rc;

	if (core->notes.memory)
		return 0;
	rc = device_ioctl(&core->device->file, NEURON_IOCTL_NOTIFICATIONS_INIT_V2, &arg);
	if (rc == 0)
		rc = device_map(s, core->device, arg.mem_handle, arg.mmap_offset, NOTIFY_RING_BYTES,
			&memory);
	if (rc == 0)
		notify_attach(&core->notes, memory, NOTIFY_RING_BYTES);
	return rc;
}
