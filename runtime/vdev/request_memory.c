/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request_memory.c - requests on device memory: allocate, free, copy, fill, ask.
 *
 * Copies go straight between the caller's buffer and the mapped memory, under a reference and
 * without a lock.  Host memory counts against the device's memory as well: there is only one
 * limit here.
 */
#include "runtime/vdev/request.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "runtime/base/file.h"
#include "runtime/vdev/memory.h"
#include "runtime/vdev/user_memory.h"
#include "vmlinux/neuron_args.h"

/* ---- allocation -------------------------------------------------------------------------- */

/* Allocates and tells the caller the handle; without a place to tell, nothing stays allocated. */
static int allocate(struct vdev_call *call, const struct vdev_memory_wish *wish, uint64_t handle_at,
	uint64_t *ret_address)
{
	_cleanup_memory_ struct vdev_memory *memory = NULL;
	int r = vdev_memory_alloc(call->device, call->tgid, wish, &memory);

	if (r < 0)
		return r;
	r = vdev_user_write(call->tid, handle_at, &memory->handle, sizeof(memory->handle));
	if (r < 0) {
		vdev_memory_free(call->device, call->tgid, memory->handle);
		return r;
	}
	*ret_address = memory->address;
	return 0;
}

static int mem_alloc(struct vdev_call *call, void *arg)
{
	const struct neuron_mem_alloc *a = arg;
	uint64_t address;

	return allocate(call,
		&(struct vdev_memory_wish){
			.size = a->size,
			.host = a->host_memory,
			.hbm = a->dram_channel,
			.owner = call->tgid,
		},
		a->mem_handle, &address);
}

/* V2, and the newer forms, which begin the same way. */
static struct vdev_memory_wish wish_of(const struct vdev_call *call, const void *arg)
{
	const struct neuron_mem_alloc_v2 *a = arg;

	return (struct vdev_memory_wish){
		.size = a->size,
		.align = a->align,
		.host = a->host_memory,
		.hbm = a->dram_channel,
		.owner = call->tgid,
	};
}
static_assert(offsetof(struct neuron_mem_alloc_v2, dram_channel) ==
		      offsetof(struct neuron_mem_alloc_v2mt, dram_channel),
	"common beginning");

static int mem_alloc_v2(struct vdev_call *call, void *arg)
{
	const struct neuron_mem_alloc_v2 *a = arg;
	struct vdev_memory_wish wish = wish_of(call, a);
	uint64_t address;

	return allocate(call, &wish, a->mem_handle, &address);
}

/* V2MT, V2MT64 and V2MT64_PA differ in length and in that the last says the address. */
static int mem_alloc_v2mt(struct vdev_call *call, void *arg)
{
	struct neuron_mem_alloc_v2mt *a = arg;
	struct vdev_memory_wish wish = wish_of(call, a);
	int r = allocate(call, &wish, a->mem_handle, &a->pa);

	call->write_back = r == 0 && call->row->cmd == NEURON_IOCTL_MEM_ALLOC_V2MT64_PA;
	return r;
}

static int mem_free(struct vdev_call *call, void *arg)
{
	const struct neuron_mem_free *a = arg;

	return vdev_memory_free(call->device, call->tgid, a->mem_handle);
}

/* ---- copies ------------------------------------------------------------------------------ */

static int copy_memory(struct vdev_call *call, uint64_t from, uint64_t from_offset, uint64_t to,
	uint64_t to_offset, uint64_t size)
{
	_cleanup_memory_ struct vdev_memory *src = vdev_memory_get(call->device, call->tgid, from);
	_cleanup_memory_ struct vdev_memory *dst = vdev_memory_get(call->device, call->tgid, to);
	const uint8_t *at;
	uint8_t *dst_at;

	if (!src || !dst)
		return -EINVAL;
	at = vdev_memory_at(src, from_offset, size);
	dst_at = vdev_memory_at(dst, to_offset, size);
	if (!at || !dst_at)
		return -EINVAL;
	memmove(dst_at, at, size);
	return 0;
}

static int mem_copy(struct vdev_call *call, void *arg)
{
	const struct neuron_mem_copy *a = arg;

	return copy_memory(
		call, a->src_mem_handle, a->src_offset, a->dst_mem_handle, a->dst_offset, a->size);
}

/* Both lengths: the old one has no sequence number (the buffer is zero-padded).  A sequence
 * number wants a completion entry, and there is no completion queue. */
static int mem_copy64(struct vdev_call *call, void *arg)
{
	const struct neuron_mem_copy64 *a = arg;

	if (a->sequence_num)
		return -EINVAL;
	return copy_memory(
		call, a->src_mem_handle, a->src_offset, a->dst_mem_handle, a->dst_offset, a->size);
}

static int copy_buffer(struct vdev_call *call, uint64_t handle, uint64_t offset, uint64_t buffer,
	uint64_t size, bool to_device)
{
	_cleanup_memory_ struct vdev_memory *memory =
		vdev_memory_get(call->device, call->tgid, handle);
	uint8_t *at = memory ? vdev_memory_at(memory, offset, size) : NULL;
	struct vdev_counters *counters = &call->vdev->counters;
	int r;

	if (!at)
		return -EINVAL;
	r = to_device ? vdev_user_read(call->tid, buffer, at, size)
		      : vdev_user_write(call->tid, buffer, at, size);
	if (r == 0)
		atomic_fetch_add(
			to_device ? &counters->bytes_to_device : &counters->bytes_from_device,
			size);
	return r;
}

static int mem_buf_copy(struct vdev_call *call, void *arg)
{
	const struct neuron_mem_buf_copy *a = arg;

	return copy_buffer(
		call, a->mem_handle, a->offset, a->buffer, a->size, a->copy_to_mem_handle);
}

static int mem_buf_copy64(struct vdev_call *call, void *arg)
{
	const struct neuron_mem_buf_copy64 *a = arg;

	return copy_buffer(
		call, a->mem_handle, a->offset, a->buffer, a->size, a->copy_to_mem_handle);
}

static int fill_memory(
	struct vdev_call *call, uint64_t handle, uint64_t offset, uint64_t size, uint32_t value)
{
	_cleanup_memory_ struct vdev_memory *memory =
		vdev_memory_get(call->device, call->tgid, handle);
	uint8_t *at = memory ? vdev_memory_at(memory, offset, size) : NULL;

	if (!at)
		return -EINVAL;
	memset(at, (int)value, size);
	return 0;
}

static int mem_set(struct vdev_call *call, void *arg)
{
	const struct neuron_memset *a = arg;

	return fill_memory(call, a->mem_handle, a->offset, a->size, a->value);
}

static int mem_set64(struct vdev_call *call, void *arg)
{
	const struct neuron_memset64 *a = arg;

	return fill_memory(call, a->mem_handle, a->offset, a->size, a->value);
}

/* ---- scrub: done when START returns ------------------------------------------------------ */

/* The driver says -1 for an HBM that is not there, and for a wait without a start.  It allocates
 * for the caller, without a look whether that is attached (and runs into a BUG). */
static int hbm_scrub_start(struct vdev_call *call, void *arg)
{
	const struct neuron_hbm_scrub_start *a = arg;

	if (a->hbm_index >= vdev_arch_of(call->vdev)->hbm_count)
		return -EPERM;
	if (!vdev_attached(call->device, call->tgid))
		return -EACCES;
	vdev_memory_scrub(call->device, a->hbm_index, a->init_val);
	pthread_mutex_lock(&call->device->lock);
	call->device->scrubbed[a->hbm_index] = true;
	pthread_mutex_unlock(&call->device->lock);
	return 0;
}

static int hbm_scrub_wait(struct vdev_call *call, void *arg)
{
	const struct neuron_hbm_scrub_wait *a = arg;
	bool scrubbed;

	if (a->hbm_index >= vdev_arch_of(call->vdev)->hbm_count)
		return -EPERM;
	pthread_mutex_lock(&call->device->lock);
	scrubbed = call->device->scrubbed[a->hbm_index];
	call->device->scrubbed[a->hbm_index] = false;
	pthread_mutex_unlock(&call->device->lock);
	return scrubbed ? 0 : -EPERM;
}

/* ---- questions --------------------------------------------------------------------------- */

static int mem_get_pa(struct vdev_call *call, void *arg)
{
	const struct neuron_mem_get_pa *a = arg;
	_cleanup_memory_ struct vdev_memory *memory =
		vdev_memory_get(call->device, call->tgid, a->mem_handle);

	if (!memory)
		return -EINVAL;
	return vdev_user_write(call->tid, a->pa, &memory->address, sizeof(memory->address));
}

/* The offset for mmap is the device address; here memory is mapped through mem.sock instead. */
static int mem_get_info(struct vdev_call *call, void *arg)
{
	const struct neuron_mem_get_info *a = arg;
	_cleanup_memory_ struct vdev_memory *memory =
		vdev_memory_get(call->device, call->tgid, a->mem_handle);
	int r;

	if (!memory)
		return -EINVAL;
	r = vdev_user_write(call->tid, a->mmap_offset, &memory->address, sizeof(memory->address));
	if (r < 0)
		return r;
	return vdev_user_write(call->tid, a->pa, &memory->address, sizeof(memory->address));
}

static int mem_get_extended_info(struct vdev_call *call, void *arg)
{
	struct neuron_mem_get_extended_info *a = arg;
	_cleanup_memory_ struct vdev_memory *memory =
		vdev_memory_get(call->device, call->tgid, a->mem_handle);

	if (!memory)
		return EINVAL; /* positive: so does the driver */
	a->host_memory = memory->host;
	a->mmap_offset = memory->address;
	a->pa = memory->address;
	a->pid = (uint64_t)memory->owner;
	a->size = memory->size;
	call->write_back = true;
	return 0;
}

const struct vdev_request vdev_requests_memory[] = {
	{NEURON_IOCTL_MEM_ALLOC, mem_alloc},
	{NEURON_IOCTL_MEM_ALLOC_V2, mem_alloc_v2},
	{NEURON_IOCTL_MEM_ALLOC_V2MT, mem_alloc_v2mt},
	{NEURON_IOCTL_MEM_ALLOC_V2MT64, mem_alloc_v2mt},
	{NEURON_IOCTL_MEM_ALLOC_V2MT64_PA, mem_alloc_v2mt},
	{NEURON_IOCTL_MEM_FREE, mem_free},
	{NEURON_IOCTL_MEM_COPY, mem_copy},
	{NEURON_IOCTL_MEM_COPY64, mem_copy64},
	{NEURON_IOCTL_MEM_COPY64_DEPRECATED, mem_copy64},
	{NEURON_IOCTL_MEM_BUF_COPY, mem_buf_copy},
	{NEURON_IOCTL_MEM_BUF_COPY64, mem_buf_copy64},
	{NEURON_IOCTL_MEMSET, mem_set},
	{NEURON_IOCTL_MEMSET64, mem_set64},
	{NEURON_IOCTL_HBM_SCRUB_START, hbm_scrub_start},
	{NEURON_IOCTL_HBM_SCRUB_WAIT, hbm_scrub_wait},
	{NEURON_IOCTL_MEM_GET_PA, mem_get_pa},
	{NEURON_IOCTL_MEM_GET_INFO, mem_get_info},
	{NEURON_IOCTL_MEM_GET_EXTENDED_INFO, mem_get_extended_info},
	{0, NULL},
};
