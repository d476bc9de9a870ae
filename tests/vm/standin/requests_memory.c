// SPDX-License-Identifier: GPL-2.0-only
/*
 * requests_memory.c - requests that allocate, free, copy, fill and ask for memory; see requests.h.
 *
 * Copies between a caller's buffer and device memory go through a buffer of the driver in slices of
 * 64 KiB, one transfer each; with host memory they are plain copies without DMA.
 */
#include <linux/io.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "tests/vm/standin/requests.h"
#include "tests/vm/standin/trace.h"

typedef struct neuron_device device;
typedef const struct request request;

bool mem_within(const struct mem_chunk *mc, u64 offset, u64 size)
{
	return offset <= mc->size && size <= mc->size - offset;
}

/* ---- allocating --------------------------------------------------------------------------- */

/* Allocates and tells the caller the handle; without a place to tell, nothing stays allocated. */
long mem_allocate(device *nd, const struct neuron_mem_alloc_v2mt *wish)
{
	struct mem_chunk *mc = NULL;
	u64 handle = 0;
	long r;

	if (!npid_of_caller(nd))
		return -EACCES; /* a child on an inherited handle */
	r = mc_alloc_align(nd, MC_LIFESPAN_CUR_PROCESS, wish->size, wish->align,
		wish->host_memory ? MEM_LOC_HOST : MEM_LOC_DEVICE,
		HBM_ARGUMENTS(wish->dram_channel, wish->dram_region), wish->nc_id, wish->mem_type,
		&mc);
	if (r)
		return r;
	r = nmch_handle_alloc(nd, mc, &handle);
	trace_ioctl_mem_alloc(nd, mc);
	if (r == 0)
		r = copy_to_user((void __user *)wish->mem_handle, &handle, sizeof(handle));
	if (r == 0)
		return 0;
	if (handle)
		nmch_take(nd, handle);
	mc_free(&mc);
	return r;
}

static long mem_alloc(device *nd, request *q, void *arg, void __user *user)
{
	const struct neuron_mem_alloc *a = arg;
	struct neuron_mem_alloc_v2mt wish = {
		.size = a->size,
		.host_memory = a->host_memory,
		.dram_channel = a->dram_channel,
		.dram_region = a->dram_region,
		.nc_id = a->nc_id,
		.mem_handle = a->mem_handle,
	};

	return mem_allocate(nd, &wish);
}

static long mem_alloc_v2(device *nd, request *q, void *arg, void __user *user)
{
	const struct neuron_mem_alloc_v2 *a = arg;
	struct neuron_mem_alloc_v2mt wish = {
		.size = a->size,
		.align = a->align,
		.host_memory = a->host_memory,
		.dram_channel = a->dram_channel,
		.dram_region = a->dram_region,
		.nc_id = a->nc_id,
		.mem_handle = a->mem_handle,
	};

	return mem_allocate(nd, &wish);
}

/* Both forms with a memory type. */
static long mem_alloc_v2mt(device *nd, request *q, void *arg, void __user *user)
{
	return mem_allocate(nd, arg);
}

/* The driver reports an allocation here, too. */
static long mem_free(device *nd, request *q, void *arg, void __user *user)
{
	const struct neuron_mem_free *a = arg;
	struct mem_chunk *mc = nmch_get(nd, a->mem_handle), *taken;
	bool device_wide = mc && mc->lifespan == MC_LIFESPAN_DEVICE;

	mc_free(&mc);
	if (device_wide)
		return -EINVAL; /* a notification queue */
	taken = nmch_take(nd, a->mem_handle);
	if (!taken)
		return -EINVAL;
	trace_ioctl_mem_alloc(nd, taken);
	mc_free(&taken);
	return 0;
}

/* ---- copies between chunks ---------------------------------------------------------------- */

struct pair {
	struct mem_chunk *src, *dst;
};

static bool get_pair(device *nd, u64 src, u64 dst, struct pair *ret)
{
	ret->src = nmch_get(nd, src);
	ret->dst = nmch_get(nd, dst);
	return ret->src && ret->dst;
}

static void put_pair(struct pair *p)
{
	mc_free(&p->src);
	mc_free(&p->dst);
}

/* All three forms as one. */
static struct neuron_mem_copy_async64 wide(const void *arg, bool is_wide)
{
	const struct neuron_mem_copy *a = arg;

	if (is_wide)
		return *(const struct neuron_mem_copy_async64 *)arg;
	return (struct neuron_mem_copy_async64){
		.src_mem_handle = a->src_mem_handle,
		.dst_mem_handle = a->dst_mem_handle,
		.size = a->size,
		.src_offset = a->src_offset,
		.dst_offset = a->dst_offset,
	};
}

/* With a place for a wait handle the copy is asynchronous. */
static long copy(device *nd, const struct neuron_mem_copy_async64 *a, int *wait_handle)
{
	struct pair p;
	long r = -EINVAL;

	if (get_pair(nd, a->src_mem_handle, a->dst_mem_handle, &p) &&
		mem_within(p.src, a->src_offset, a->size) &&
		mem_within(p.dst, a->dst_offset, a->size)) {
		if (wait_handle)
			r = ndma_memcpy_mc_async(nd, p.src, p.dst, a->src_offset, a->dst_offset,
				a->size, a->host_prefetch_addr, a->pwait_handle, wait_handle);
		else
			r = ndma_memcpy_mc(nd, p.src, p.dst, a->src_offset, a->dst_offset, a->size);
		if (r == 0)
			trace_ioctl_mem_copy(nd, p.src, p.dst);
	}
	put_pair(&p);
	return r;
}

static long mem_copy(device *nd, request *q, void *arg, void __user *user)
{
	struct neuron_mem_copy_async64 a = {};

	if (q->cmd == NEURON_IOCTL_MEM_COPY)
		a = wide(arg, false);
	else
		memcpy(&a, arg, q->size);
	return copy(nd, &a, NULL);
}

static long mem_copy_async(device *nd, request *q, void *arg, void __user *user)
{
	struct neuron_mem_copy_async64 *long_form = arg;
	struct neuron_mem_copy_async *short_form = arg;
	bool is_long = q->cmd == NEURON_IOCTL_MEM_COPY_ASYNC64;
	struct neuron_mem_copy_async64 a = wide(arg, is_long);
	int handle = 0;
	long r;

	if (!is_long) {
		a.host_prefetch_addr = short_form->host_prefetch_addr;
		a.pwait_handle = short_form->pwait_handle;
	}
	r = copy(nd, &a, &handle);
	if (r)
		return r;
	if (is_long)
		long_form->wait_handle = handle;
	else
		short_form->wait_handle = handle;
	return put_back(q, arg, user);
}

static long mem_copy_async_wait(device *nd, request *q, void *arg, void __user *user)
{
	const struct neuron_mem_copy_async_wait *a = arg;
	struct pair p;
	long r = -EINVAL;

	if (get_pair(nd, a->src_mem_handle, a->dst_mem_handle, &p))
		r = ndma_memcpy_mc_wait(nd, p.src, p.dst, a->pwait_handle);
	put_pair(&p);
	return r;
}

/* ---- copies between a chunk and a caller's buffer ----------------------------------------- */

static long copy_host(struct mem_chunk *mc, const struct neuron_mem_buf_copy64 *a)
{
	void __user *user = (void __user *)a->buffer;
	void *at = (char *)mc->va + a->offset;

	return a->copy_to_mem_handle ? copy_from_user(at, user, a->size)
				     : copy_to_user(user, at, a->size);
}

static long copy_slice(device *nd, struct mem_chunk *mc, void *bounce, u64 offset,
	void __user *user, u64 size, bool to_device)
{
	long r;

	if (to_device) {
		r = copy_from_user(bounce, user, size);
		return r ? r : ndma_memcpy_buf_to_mc(nd, bounce, 0, mc, offset, size);
	}
	r = ndma_memcpy_buf_from_mc(nd, bounce, 0, mc, offset, size);
	return r ? r : copy_to_user(user, bounce, size);
}

static long copy_slices(device *nd, struct mem_chunk *mc, const struct neuron_mem_buf_copy64 *a)
{
	void *bounce = kmalloc(DMA_SLICE, GFP_KERNEL);
	long r = bounce ? 0 : -ENOMEM;

	for (u64 done = 0; r == 0 && done < a->size; done += DMA_SLICE)
		r = copy_slice(nd, mc, bounce, a->offset + done, (char __user *)a->buffer + done,
			min_t(u64, a->size - done, DMA_SLICE), a->copy_to_mem_handle);
	kfree(bounce);
	return r;
}

static long copy_buffer(device *nd, const struct neuron_mem_buf_copy64 *a)
{
	struct mem_chunk *mc = nmch_get(nd, a->mem_handle);
	long r = -EINVAL;

	if (mc && mem_within(mc, a->offset, a->size)) {
		r = mc->mem_location == MEM_LOC_HOST ? copy_host(mc, a) : copy_slices(nd, mc, a);
		if (r == 0 && a->copy_to_mem_handle)
			trace_ioctl_mem_copyin(nd, mc, (void *)a->buffer, a->offset, a->size);
		else if (r == 0)
			trace_ioctl_mem_copyout(nd, mc, (void *)a->buffer, a->offset, a->size);
	}
	mc_free(&mc);
	return r;
}

static long mem_buf_copy(device *nd, request *q, void *arg, void __user *user)
{
	const struct neuron_mem_buf_copy *a = arg;
	struct neuron_mem_buf_copy64 w = {
		.mem_handle = a->mem_handle,
		.buffer = a->buffer,
		.size = a->size,
		.offset = a->offset,
		.copy_to_mem_handle = a->copy_to_mem_handle,
	};

	return copy_buffer(nd, &w);
}

static long mem_buf_copy64(device *nd, request *q, void *arg, void __user *user)
{
	return copy_buffer(nd, arg);
}

#ifndef STANDIN_230
static long zero_copy(device *nd, request *q, void *arg, void __user *user)
{
	const struct neuron_mem_buf_copy64 *a = arg;
	struct mem_chunk *mc = nmch_get(nd, a->mem_handle);
	long r = -EINVAL;

	if (mc && mem_within(mc, a->offset, a->size))
		r = ndma_memcpy_zero_copy_mc(
			nd, (void *)a->buffer, mc, a->offset, a->size, a->copy_to_mem_handle);
	mc_free(&mc);
	return r;
}

#endif

/* ---- filling, programs -------------------------------------------------------------------- */

static long fill(device *nd, u64 handle, u64 offset, u32 value, u64 size)
{
	struct mem_chunk *mc = nmch_get(nd, handle);
	long r = -EINVAL;

	if (mc && mem_within(mc, offset, size))
		r = ndma_memset(nd, mc, offset, value, size);
	mc_free(&mc);
	return r;
}

static long mem_set(device *nd, request *q, void *arg, void __user *user)
{
	const struct neuron_memset *a = arg;

	return fill(nd, a->mem_handle, a->offset, a->value, a->size);
}

static long mem_set64(device *nd, request *q, void *arg, void __user *user)
{
	const struct neuron_memset64 *a = arg;

	return fill(nd, a->mem_handle, a->offset, a->value, a->size);
}

static long program(device *nd, u32 nc_id, u64 dst, u64 buffer, u64 size)
{
	void *bounce;
	long r;

	if (nc_id >= MAX_NC_PER_DEVICE || !size || size > KMALLOC_MAX_SIZE)
		return -EINVAL;
	bounce = kmalloc(size, GFP_KERNEL | __GFP_NOWARN);
	if (!bounce)
		return -ENOMEM;
	r = copy_from_user(bounce, (void __user *)buffer, size);
	if (r == 0)
		r = ndma_memcpy(nd, nc_id, virt_to_phys(bounce) | HOST_BIT, dst, size);
	kfree(bounce);
	return r;
}

static long program_engine(device *nd, request *q, void *arg, void __user *user)
{
	const struct neuron_program_engine *a = arg;

	return program(nd, 0, a->dst + a->offset, a->buffer, a->size);
}

static long program_engine_nc(device *nd, request *q, void *arg, void __user *user)
{
	const struct neuron_program_engine_nc *a = arg;

	return program(nd, a->nc_id, a->dst + a->offset, a->buffer, a->size);
}

static long program_engine_nc64(device *nd, request *q, void *arg, void __user *user)
{
	const struct neuron_program_engine_nc64 *a = arg;

	return program(nd, a->nc_id, a->dst + a->offset, a->buffer, a->size);
}

/* ---- questions ---------------------------------------------------------------------------- */

static long tell(u64 at, u64 value)
{
	return copy_to_user((void __user *)at, &value, sizeof(value));
}

static long mem_get_pa(device *nd, request *q, void *arg, void __user *user)
{
	const struct neuron_mem_get_pa *a = arg;
	struct mem_chunk *mc = nmch_get(nd, a->mem_handle);
	long r = mc ? tell(a->pa, ndma_mc_to_pa(mc)) : -EINVAL;

	mc_free(&mc);
	return r;
}

static long mem_get_info(device *nd, request *q, void *arg, void __user *user)
{
	const struct neuron_mem_get_info *a = arg;
	struct mem_chunk *mc = nmch_get(nd, a->mem_handle);
	long r = mc ? tell(a->mmap_offset, ndma_mc_to_pa(mc)) : -EINVAL;

	if (r == 0)
		r = tell(a->pa, ndma_mc_to_pa(mc));
	mc_free(&mc);
	return r;
}

static long mem_get_extended_info(device *nd, request *q, void *arg, void __user *user)
{
	struct neuron_mem_get_extended_info *a = arg;
	struct mem_chunk *mc = nmch_get(nd, a->mem_handle);

	if (!mc)
		return EINVAL; /* positive, as in the driver */
	a->host_memory = mc->mem_location == MEM_LOC_HOST;
	a->mmap_offset = a->pa = ndma_mc_to_pa(mc);
	a->pid = mc->pid;
	a->size = mc->size;
	mc_free(&mc);
	return put_back(q, a, user);
}

const struct request requests_memory[] = {
	REQUEST(MEM_ALLOC, mem_alloc),
	REQUEST(MEM_ALLOC_V2, mem_alloc_v2),
	REQUEST(MEM_ALLOC_V2MT, mem_alloc_v2mt),
	REQUEST(MEM_ALLOC_V2MT64, mem_alloc_v2mt),
	REQUEST(MEM_FREE, mem_free),
	REQUEST(MEM_COPY, mem_copy),
	REQUEST(MEM_COPY64_DEPRECATED, mem_copy), /* 40 bytes: what 2.24 calls MEM_COPY64 */
	REQUEST(MEM_COPY_ASYNC, mem_copy_async),
	REQUEST(MEM_COPY_ASYNC64, mem_copy_async),
	REQUEST(MEM_COPY_ASYNC_WAIT, mem_copy_async_wait),
	REQUEST(MEM_BUF_COPY, mem_buf_copy),
	REQUEST(MEM_BUF_COPY64, mem_buf_copy64),
#ifndef STANDIN_230
	REQUEST(MEM_BUF_ZEROCOPY64_V40, zero_copy),
#endif
	REQUEST(MEMSET, mem_set),
	REQUEST(MEMSET64, mem_set64),
	REQUEST(PROGRAM_ENGINE, program_engine),
	REQUEST(PROGRAM_ENGINE_NC, program_engine_nc),
	REQUEST(PROGRAM_ENGINE_NC64, program_engine_nc64),
	REQUEST(MEM_GET_PA, mem_get_pa),
	REQUEST(MEM_GET_INFO, mem_get_info),
	REQUEST(MEM_GET_EXTENDED_INFO, mem_get_extended_info),
	{},
};
