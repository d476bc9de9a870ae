/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue.c - a core's queue and its notification rings: the requests that start programs and tell the device how
 * far its records have been read.
 */
#include <errno.h>
#include <sys/mman.h>

#include "runtime/device/device.h"
#include "vmlinux/ioctl_table.h"
#include "vmlinux/neuron_args.h"

#define RING_BYTES 65536u
#define QUEUE_DESCRIPTORS 64u

/* ---- queue -------------------------------------------------------------------------------- */

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

int device_queue_release(const struct device_core *core)
{
	struct neuron_dma_queue_release arg = {.eng_id = VDEV_EXEC_ENGINE, .qid = core->index};

	return device_ioctl(&core->device->file, NEURON_IOCTL_DMA_QUEUE_RELEASE, &arg);
}

/* ---- rings -------------------------------------------------------------------------------- */

static const struct {
	uint32_t device, type, engine;
} rings[DEVICE_RING_COUNT] = {
	[DEVICE_RING_RUNS] = {VDEV_NQ_DEV_TYPE_CORE, VDEV_NQ_TYPE_NOTIFY, VDEV_NQ_ENGINE_INDEX},
	[DEVICE_RING_ERRORS] = {VDEV_NQ_DEV_TYPE_CORE, VDEV_NQ_TYPE_ERROR, 0},
	[DEVICE_RING_COLLECTIVES] = {VDEV_NQ_DEV_TYPE_TOP_SP, VDEV_NQ_TYPE_NOTIFY, 0},
};

/* Reads or writes (`request`) the register of a ring. */
static int ring_register(
	const struct device_core *core, enum device_ring which, uint32_t request, uint32_t *word)
{
	uint64_t number = VDEV_RING_NUMBER(rings[which].device == VDEV_NQ_DEV_TYPE_TOP_SP,
		rings[which].type, rings[which].engine);
	uint64_t address = VDEV_BAR_RING_READ(core->index, number);
	struct neuron_bar_rw arg = {
		.bar = 0,
		.address = (uint64_t)(uintptr_t)&address,
		.data = (uint64_t)(uintptr_t)word,
		.count = 1,
	};

	return device_ioctl(&core->device->file, request, &arg);
}

/* A ring that others have read before: our place in it is the device's, and the device hears so. */
static int take_over(struct device_core *core, enum device_ring which)
{
	struct notify_ring *r = &core->rings[which];
	uint32_t written;
	int rc = ring_register(core, which, NEURON_IOCTL_BAR_READ, &written);

	if (rc < 0)
		return rc;
	notify_place(r, written);
	r->told = r->read;
	return ring_register(core, which, NEURON_IOCTL_BAR_WRITE, &written);
}

static void close_ring(struct notify_ring *r)
{
	if (r->memory)
		(void)munmap(r->memory, r->bytes);
	*r = (struct notify_ring){0};
}

static int open_ring(
	const struct device_system *s, struct device_core *core, enum device_ring which)
{
	struct neuron_notifications_init_v2 arg = {
		.nq_dev_id = core->index,
		.nq_dev_type = rings[which].device,
		.nq_type = rings[which].type,
		.engine_index = rings[which].engine,
		.size = RING_BYTES,
		.on_host_memory = 1,
	};
	void *memory;
	int rc = device_ioctl(&core->device->file, NEURON_IOCTL_NOTIFICATIONS_INIT_V2, &arg);

	if (rc == 0)
		rc = device_map(
			s, core->device, arg.mem_handle, arg.mmap_offset, RING_BYTES, &memory);
	if (rc < 0)
		return rc;
	notify_attach(&core->rings[which], memory, RING_BYTES);
	if (!core->rings[which].from_start)
		rc = take_over(core, which);
	if (rc < 0)
		close_ring(&core->rings[which]);
	return rc;
}

int device_rings_open(const struct device_system *s, struct device_core *core)
{
	int rc = 0;

	for (unsigned i = 0; i < DEVICE_RING_COUNT && rc == 0; i++)
		if (!core->rings[i].memory)
			rc = open_ring(s, core, i);
	return rc;
}

void device_rings_close(struct device_core *core)
{
	for (unsigned i = 0; i < DEVICE_RING_COUNT; i++)
		close_ring(&core->rings[i]);
}

int device_ring_read(struct device_core *core, enum device_ring which)
{
	struct notify_ring *r = &core->rings[which];
	uint32_t count = (uint32_t)r->read;
	int rc;

	if (r->told == r->read)
		return 0;
	rc = ring_register(core, which, NEURON_IOCTL_BAR_WRITE, &count);
	if (rc == 0)
		r->told = r->read;
	return rc;
}

int device_ring_check(struct device_core *core, enum device_ring which, uint32_t *ret_lost)
{
	struct notify_ring *r = &core->rings[which];
	uint32_t written, behind;
	int rc;

	*ret_lost = 0;
	if (!r->doubt)
		return 0;
	rc = ring_register(core, which, NEURON_IOCTL_BAR_READ, &written);
	if (rc < 0)
		return rc;
	r->doubt = false;
	behind = written - (uint32_t)r->read;
	if (behind <= r->count)
		return 0;
	notify_place(r, r->read + behind);
	*ret_lost = behind;
	return 0;
}
