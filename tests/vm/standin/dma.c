// SPDX-License-Identifier: GPL-2.0-only
/*
 * dma.c - copies that the driver makes itself, on the h2t ring of a core.
 *
 * A transfer (ndma_memcpy_offset_move) takes the ring's lock and rings once per 2032 pairs of at most
 * 64 KiB, the last pair being a marker that the device copies into the word the driver waits at.  A
 * synchronous transfer waits for each doorbell.  An asynchronous one rings once and returns; it is waited
 * for by the next that names it, or by MEM_COPY_ASYNC_WAIT.  Each rung doorbell is waited for exactly once.
 */
#include <linux/delay.h>
#include <linux/io.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>

#include "tests/vm/standin/driver.h"
#include "vmlinux/neuron_args.h"

struct ndma_eng *ndma_h2t_engine(struct neuron_device *nd, u32 nc_id)
{
	return &nd->ndma_engine[H2T_ENGINE + nc_id / 2];
}

struct ndma_ring *ndma_h2t_ring(struct neuron_device *nd, u32 nc_id)
{
	return &ndma_h2t_engine(nd, nc_id)->queues[nc_id % 2].ring_info;
}

/* The core whose ring carries a copy: that of the device's side, else of the source. */
u32 ndma_mc_pair_to_nc(const struct mem_chunk *src_mc, const struct mem_chunk *dst_mc)
{
	return src_mc->mem_location == MEM_LOC_HOST && dst_mc->mem_location == MEM_LOC_DEVICE
		       ? dst_mc->nc_id
		       : src_mc->nc_id;
}

/* ---- one doorbell ------------------------------------------------------------------------- */

static dma_addr_t marker_address(const struct ndma_ring *ring, const void *ptr)
{
	return ring->h2t_completion.addr + ((const char *)ptr - (char *)ring->h2t_completion.ptr);
}

/* The marker: its first word is copied into its second. */
int KEPT ndma_memcpy_add_completion_desc(
	struct ndma_eng *eng, struct ndma_ring *ring, void *buffer BARRIER_PARAMETER)
{
	u32 *marker = buffer;
	dma_addr_t at = marker_address(ring, marker);

	marker[0] = DMA_MARKER;
	WRITE_ONCE(marker[1], 0);
	return udma_m2m_copy_prepare_one(&eng->udma, ring->qid, at, at + sizeof(u32), sizeof(u32),
		UDMA_M2M_BARRIER_NONE, false);
}

int KEPT ndma_memcpy_wait_for_completion(struct ndma_eng *eng, struct ndma_ring *ring, u32 count,
	void *ptr, bool async, bool is_intra_device_dma)
{
	struct neuron_device *nd = eng->nd;
	u64 end = get_jiffies_64() + msecs_to_jiffies(timeout_ms) + 1;
	u32 *marker = ptr;
	bool done;

	count_call(nd, FN_ndma_memcpy_wait_for_completion, 0);
	while (!(done = READ_ONCE(marker[1]) == DMA_MARKER) && time_before64(get_jiffies_64(), end))
		usleep_range(10, 30);
	if (!done)
		hw_cancel(nd, eng->eng_id, ring->qid);
	WRITE_ONCE(marker[1], 0);
	udma_cdesc_ack(&eng->udma, ring->qid, count);
	return count_result(nd, FN_ndma_memcpy_wait_for_completion, done ? 0 : WAIT_TIMED_OUT);
}

/* ---- one transfer ------------------------------------------------------------------------- */

/* Rings once for as much of the context as one doorbell takes. */
static int ndma_memcpy_chunks(struct ndma_eng *eng, struct ndma_ring *ring,
	struct ndma_h2t_dma_context *ctx) CLONE(ndma_memcpy_chunks, "isra.0");

static int KEPT ndma_memcpy_chunks(
	struct ndma_eng *eng, struct ndma_ring *ring, struct ndma_h2t_dma_context *ctx)
{
	u64 bytes = min_t(u64, ctx->remaining, (u64)DMA_MAX_PAIRS * DMA_SLICE);
	u32 pairs = DIV_ROUND_UP(bytes, DMA_SLICE);
	int r = 0;

	count_call(eng->nd, FN_ndma_memcpy_chunks, bytes);
	if (udma_available(&eng->udma, ring->qid) < pairs + 1)
		r = -ENOMEM;
	for (u64 done = 0; r == 0 && done < bytes; done += DMA_SLICE) {
		u64 at = ctx->offset + done;
		u32 size = min_t(u64, bytes - done, DMA_SLICE);
		bool last = done + size == bytes;

		r = udma_m2m_copy_prepare_one(&eng->udma, ring->qid,
			ctx->src + (ctx->smove ? at : 0), ctx->dst + (ctx->dmove ? at : 0), size,
			last ? UDMA_M2M_BARRIER_DMB : UDMA_M2M_BARRIER_NONE, false);
	}
	if (r == 0)
		r = ndma_memcpy_add_completion_desc(
			eng, ring, ctx->completion_ptr BARRIER_ARGUMENT);
	if (r == 0)
		r = udma_m2m_copy_start(&eng->udma, ring->qid, pairs + 1, pairs + 1);
	if (r == 0) {
		ctx->pending_transfers = pairs + 1;
		ctx->outstanding = bytes;
	}
	return count_result(eng->nd, FN_ndma_memcpy_chunks, r);
}

/* Waits for the doorbell of a context that is open. */
static int finish(struct ndma_h2t_dma_context *ctx, bool async)
{
	int r = ndma_memcpy_wait_for_completion(
		ctx->eng, ctx->ring, ctx->pending_transfers, ctx->completion_ptr, async, false);

	ctx->offset += ctx->outstanding;
	ctx->remaining -= ctx->outstanding;
	ctx->outstanding = 0;
	ctx->pending_transfers = 0;
	return r;
}

static void begin(
	struct ndma_h2t_dma_context *ctx, struct ndma_eng *eng, struct ndma_ring *ring, int handle)
{
	*ctx = (struct ndma_h2t_dma_context){
		.inuse = true,
		.eng = eng,
		.ring = ring,
		.start_time = ktime_get_ns(),
		.completion_ptr = (u32 *)ring->h2t_completion.ptr + 2 * handle,
	};
}

static bool is_async(int handle)
{
	return handle == NEURON_WAIT_ASYNC1 || handle == NEURON_WAIT_ASYNC2;
}

static int run_async(struct ndma_h2t_dma_context *ctx, struct ndma_h2t_dma_context *previous)
{
	int r = ndma_memcpy_chunks(ctx->eng, ctx->ring, ctx);

	if (r)
		ctx->inuse = false;
	if (previous && previous->inuse && previous != ctx) {
		int earlier = finish(previous, true);

		previous->inuse = false;
		r = r ? r : earlier;
	}
	return r;
}

static int run_sync(struct ndma_h2t_dma_context *ctx)
{
	int r = 0;

	while (r == 0 && ctx->remaining) {
		r = ndma_memcpy_chunks(ctx->eng, ctx->ring, ctx);
		if (r == 0)
			r = finish(ctx, false);
	}
	ctx->inuse = false;
	return r;
}

static int ndma_memcpy_offset_move(struct neuron_device *nd, u32 nc_id, dma_addr_t src,
	dma_addr_t dst, u64 size, bool smove, bool dmove, u64 prefetch_addr, int pwait_handle,
	int wait_handle) CLONE(ndma_memcpy_offset_move, "constprop.0");

static int KEPT ndma_memcpy_offset_move(struct neuron_device *nd, u32 nc_id, dma_addr_t src,
	dma_addr_t dst, u64 size, bool smove, bool dmove, u64 prefetch_addr, int pwait_handle,
	int wait_handle)
{
	struct ndma_eng *eng = ndma_h2t_engine(nd, nc_id);
	struct ndma_ring *ring = ndma_h2t_ring(nd, nc_id);
	struct ndma_h2t_dma_context *ctx = &ring->h2t_dma_ctx[wait_handle], *previous = NULL;
	int r;

	count_call(nd, FN_ndma_memcpy_offset_move, size);
	if (is_async(pwait_handle))
		previous = &ring->h2t_dma_ctx[pwait_handle];
	mutex_lock(h2t_lock(eng, ring));
	if (!ring->h2t_completion_mc || ctx->inuse) {
		r = ring->h2t_completion_mc ? -EBUSY : -ENODEV;
	} else {
		begin(ctx, eng, ring, wait_handle);
		ctx->src = src;
		ctx->dst = dst;
		ctx->smove = smove;
		ctx->dmove = dmove;
		ctx->size = ctx->remaining = size;
		r = is_async(wait_handle) ? run_async(ctx, previous) : run_sync(ctx);
	}
	mutex_unlock(h2t_lock(eng, ring));
	return count_result(nd, FN_ndma_memcpy_offset_move, r);
}

static int move_all(struct neuron_device *nd, u32 nc_id, dma_addr_t src, dma_addr_t dst, u64 size)
{
	return ndma_memcpy_offset_move(
		nd, nc_id, src, dst, size, true, true, 0, NEURON_WAIT_NONE, NEURON_WAIT_SYNC);
}

/* ---- what requests ask for ---------------------------------------------------------------- */

int KEPT ndma_memcpy(struct neuron_device *nd, u32 nc_id, dma_addr_t src, dma_addr_t dst, u64 size)
{
	count_call(nd, FN_ndma_memcpy, size);
	return count_result(nd, FN_ndma_memcpy, move_all(nd, nc_id, src, dst, size));
}

int KEPT ndma_memcpy_mc(struct neuron_device *nd, struct mem_chunk *src_mc,
	struct mem_chunk *dst_mc, u64 src_offset, u64 dst_offset, u64 size)
{
	count_call(nd, FN_ndma_memcpy_mc, size);
	return count_result(nd, FN_ndma_memcpy_mc,
		move_all(nd, ndma_mc_pair_to_nc(src_mc, dst_mc), ndma_mc_to_pa(src_mc) + src_offset,
			ndma_mc_to_pa(dst_mc) + dst_offset, size));
}

int KEPT ndma_memcpy_mc_async(struct neuron_device *nd, struct mem_chunk *src_mc,
	struct mem_chunk *dst_mc, u64 src_offset, u64 dst_offset, u64 size, u64 prefetch_addr,
	int pwait_handle, int *wait_handle)
{
	u32 nc_id = ndma_mc_pair_to_nc(src_mc, dst_mc);
	struct ndma_ring *ring = ndma_h2t_ring(nd, nc_id);
	int r = -EINVAL;

	count_call(nd, FN_ndma_memcpy_mc_async, size);
	*wait_handle = ring->h2t_dma_ctx[NEURON_WAIT_ASYNC1].inuse ? NEURON_WAIT_ASYNC2
								   : NEURON_WAIT_ASYNC1;
	if (size <= (u64)DMA_MAX_PAIRS * DMA_SLICE)
		r = ndma_memcpy_offset_move(nd, nc_id, ndma_mc_to_pa(src_mc) + src_offset,
			ndma_mc_to_pa(dst_mc) + dst_offset, size, true, true, prefetch_addr,
			pwait_handle, *wait_handle);
	return count_result(nd, FN_ndma_memcpy_mc_async, r);
}

int KEPT ndma_memcpy_mc_wait(
	struct neuron_device *nd, struct mem_chunk *src_mc, struct mem_chunk *dst_mc, int handle)
{
	u32 nc_id = ndma_mc_pair_to_nc(src_mc, dst_mc);
	struct ndma_eng *eng = ndma_h2t_engine(nd, nc_id);
	struct ndma_ring *ring = ndma_h2t_ring(nd, nc_id);
	struct ndma_h2t_dma_context *ctx;
	int r = -EINVAL;

	count_call(nd, FN_ndma_memcpy_mc_wait, 0);
	if (is_async(handle)) {
		mutex_lock(h2t_lock(eng, ring));
		ctx = &ring->h2t_dma_ctx[handle];
		if (ctx->inuse) {
			r = finish(ctx, true);
			ctx->inuse = false;
		}
		mutex_unlock(h2t_lock(eng, ring));
	}
	return count_result(nd, FN_ndma_memcpy_mc_wait, r);
}

static dma_addr_t buffer_address(const void *buffer)
{
	return virt_to_phys((void *)buffer) | HOST_BIT;
}

int KEPT ndma_memcpy_buf_to_mc(struct neuron_device *nd, void *buffer, u64 buffer_offset,
	struct mem_chunk *dst_mc, u64 dst_offset, u64 size)
{
	count_call(nd, FN_ndma_memcpy_buf_to_mc, size);
	return count_result(nd, FN_ndma_memcpy_buf_to_mc,
		move_all(nd, dst_mc->nc_id, buffer_address(buffer) + buffer_offset,
			ndma_mc_to_pa(dst_mc) + dst_offset, size));
}

int KEPT ndma_memcpy_buf_from_mc(struct neuron_device *nd, void *buffer, u64 buffer_offset,
	struct mem_chunk *src_mc, u64 src_offset, u64 size)
{
	count_call(nd, FN_ndma_memcpy_buf_from_mc, size);
	return count_result(nd, FN_ndma_memcpy_buf_from_mc,
		move_all(nd, src_mc->nc_id, ndma_mc_to_pa(src_mc) + src_offset,
			buffer_address(buffer) + buffer_offset, size));
}

/* The first 64 KiB come from a buffer of the host, the rest from those 64 KiB. */
int KEPT ndma_memset(
	struct neuron_device *nd, struct mem_chunk *mc, u64 offset, u32 value, u64 size)
{
	dma_addr_t at = ndma_mc_to_pa(mc) + offset;
	u64 first = min_t(u64, size, DMA_SLICE);
	int r;

	count_call(nd, FN_ndma_memset, size);
	mutex_lock(&nd->memset_lock);
	memset(nd->memset_mc->va, (int)value, first);
	r = move_all(nd, mc->nc_id, ndma_mc_to_pa(nd->memset_mc), at, first);
	if (r == 0 && size > first)
		r = ndma_memcpy_offset_move(nd, mc->nc_id, at, at + first, size - first, false,
			true, 0, NEURON_WAIT_NONE, NEURON_WAIT_SYNC);
	mutex_unlock(&nd->memset_lock);
	return count_result(nd, FN_ndma_memset, r);
}

/* Descriptors that a process wrote, into the memory of its ring. */
int KEPT ndma_memcpy_dma_copy_descriptors(struct neuron_device *nd, void *buffer, u64 buffer_offset,
	struct mem_chunk *dst_mc, u64 dst_offset, u64 size, u32 queue_type)
{
	int r = 0;

	count_call(nd, FN_ndma_memcpy_dma_copy_descriptors, size);
	if (dst_mc->mem_location == MEM_LOC_HOST)
		memcpy((char *)dst_mc->va + dst_offset, (char *)buffer + buffer_offset, size);
	else
		r = ndma_memcpy_buf_to_mc(nd, buffer, buffer_offset, dst_mc, dst_offset, size);
	return count_result(nd, FN_ndma_memcpy_dma_copy_descriptors, r);
}
