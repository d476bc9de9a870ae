// SPDX-License-Identifier: GPL-2.0-only
/* requests_230.c - the requests on memory that driver 2.30 has and 2.24 has not; see requests.h. */
#include <linux/uaccess.h>

#include "tests/vm/standin/requests.h"
#include "tests/vm/standin/trace.h"

typedef struct neuron_device device;
typedef const struct request request;

/* As its older forms, and writes back where the memory lies. */
static long mem_alloc_pa(device *nd, request *q, void *arg, void __user *user)
{
	struct neuron_mem_alloc_v2mt *a = arg;
	struct mem_chunk *mc;
	u64 handle;
	long r = mem_allocate(nd, a);

	if (r == 0)
		r = copy_from_user(&handle, (void __user *)a->mem_handle, sizeof(handle));
	if (r)
		return r;
	mc = nmch_get(nd, handle);
	if (!mc)
		return -EINVAL;
	a->pa = ndma_mc_to_pa(mc);
	mc_free(&mc);
	return put_back(q, a, user);
}

/* With a sequence number the copy is made all the same, and an entry appears in the completion queue. */
static long mem_copy64(device *nd, request *q, void *arg, void __user *user)
{
	const struct neuron_mem_copy64 *a = arg;
	struct mem_chunk *src = nmch_get(nd, a->src_mem_handle);
	struct mem_chunk *dst = nmch_get(nd, a->dst_mem_handle);
	long r = -EINVAL;

	if (src && dst && mem_within(src, a->src_offset, a->size) &&
		mem_within(dst, a->dst_offset, a->size)) {
		r = ndma_memcpy_mc(nd, src, dst, a->src_offset, a->dst_offset, a->size);
		if (r == 0 && a->sequence_num)
			r = ndma_zerocopy_submit_completed(nd, ndma_mc_pair_to_nc(src, dst), -1,
				a->sequence_num, 0, (void *)a->context);
		if (r == 0)
			trace_ioctl_mem_copy(nd, src, dst);
	}
	mc_free(&src);
	mc_free(&dst);
	return r;
}

static long zero_copy(device *nd, request *q, void *arg, void __user *user)
{
	const struct neuron_mem_buf_zerocopy64 *a = arg;
	const nrt_tensor_batch_op_t op = {a->offset, a->size, (void *)a->buffer};
	struct mem_chunk *mc = nmch_get(nd, a->mem_handle);
	long r = -EINVAL;

	if (mc && mem_within(mc, a->offset, a->size))
		r = ndma_zerocopy_submit(nd, mc->nc_id, &op, 1, ndma_mc_to_pa(mc), a->h2t_qid,
			a->is_copy_to_device, a->sequence_num, (void *)a->context);
	mc_free(&mc);
	return r;
}

/* Of the core's default ring; others do not exist here. */
static long completion_queues(device *nd, request *q, void *arg, void __user *user)
{
	struct neuron_h2t_compl_queues *a = arg;
	struct ndma_ring *ring;

	if (a->nc_id >= MAX_NC_PER_DEVICE)
		return -EINVAL;
	ring = ndma_h2t_ring(nd, a->nc_id);
	if (a->qid_bitmap != 1u << ring->qid || !ring->dma_compl_queue.mc)
		return -EINVAL;
	a->queues[ring->qid].mmap_offset = ndma_mc_to_pa(ring->dma_compl_queue.mc);
	a->queues[ring->qid].mmap_size = ring->dma_compl_queue.mc->size;
	return put_back(q, a, user);
}

const struct request requests_230[] = {
	REQUEST(MEM_ALLOC_V2MT64_PA, mem_alloc_pa),
	REQUEST(MEM_COPY64, mem_copy64),
	REQUEST(MEM_BUF_ZEROCOPY64, zero_copy),
	REQUEST(GET_ASYNC_H2T_DMA_COMPL_QUEUES, completion_queues),
	{},
};
