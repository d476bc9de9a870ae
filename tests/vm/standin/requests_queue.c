// SPDX-License-Identifier: GPL-2.0-only
/* requests_queue.c - requests on DMA engines and on rings that a process manages; see requests.h. */
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "tests/vm/standin/requests.h"

typedef struct neuron_device device;
typedef const struct request request;

static long set_state(device *nd, request *q, void *arg, void __user *user)
{
	const struct neuron_dma_eng_set_state *a = arg;

	return ndmar_eng_set_state(nd, a->eng_id, a->state);
}

static struct ndma_queue *queue_at(device *nd, u32 eng_id, u32 qid)
{
	return eng_id < NUM_DMA_ENG_PER_DEVICE && qid < DMA_MAX_Q_MAX
		       ? &nd->ndma_engine[eng_id].queues[qid]
		       : NULL;
}

/* ---- life of a queue ---------------------------------------------------------------------- */

/* A handle of 0 is no memory. */
static long get_optional(device *nd, u64 handle, struct mem_chunk **ret)
{
	*ret = handle ? nmch_get(nd, handle) : NULL;
	return handle && !*ret ? -EINVAL : 0;
}

static long init_one(device *nd, const struct neuron_dma_queue_init *a)
{
	struct ndma_queue *queue = queue_at(nd, a->eng_id, a->qid);
	struct mem_chunk *tx = NULL, *rx = NULL, *rxc = NULL;
	pid_t tgid = task_tgid_nr(current);
	long r;

	if (!queue)
		return -EINVAL;
	/* The driver would let its own rings be taken away; ours stay. */
	if (queue->ring_info.h2t_completion_mc || (queue->owner && queue->owner != tgid))
		return -EBUSY;
	r = get_optional(nd, a->tx_handle, &tx);
	if (r == 0)
		r = get_optional(nd, a->rx_handle, &rx);
	if (r == 0)
		r = get_optional(nd, a->rxc_handle, &rxc);
	if (r == 0) {
		queue->owner = tgid; /* first: what the ring names is checked from now on */
		r = ndmar_queue_init(nd, a->eng_id, a->qid, a->tx_desc_count, a->rx_desc_count, tx,
			rx, rxc, PORT_ARGUMENT(a->axi_port) true);
	}
	mc_free(&tx);
	mc_free(&rx);
	mc_free(&rxc);
	return r;
}

static long queue_init(device *nd, request *q, void *arg, void __user *user)
{
	return init_one(nd, arg);
}

static long queue_init_batch(device *nd, request *q, void *arg, void __user *user)
{
	const struct neuron_dma_queue_init_batch *a = arg;
	long r = a->count > ARRAY_SIZE(a->entries) ? -EINVAL : 0;

	for (u32 i = 0; r == 0 && i < a->count; i++)
		r = init_one(nd, &a->entries[i]);
	return r;
}

static long queue_release(device *nd, request *q, void *arg, void __user *user)
{
	const struct neuron_dma_queue_release *a = arg;

	return ndmar_queue_release(nd, a->eng_id, a->qid);
}

/* ---- use ---------------------------------------------------------------------------------- */

static long copy_start(device *nd, request *q, void *arg, void __user *user)
{
	const struct neuron_dma_queue_copy_start *a = arg;
	struct ndma_queue *queue = queue_at(nd, a->eng_id, a->qid);

	if (queue && !queue->owner)
		return -EINVAL; /* nobody's, or a ring of the driver */
	return ndmar_queue_copy_start(nd, a->eng_id, a->qid, a->tx_desc_count, a->rx_desc_count);
}

static long ack_completed(device *nd, request *q, void *arg, void __user *user)
{
	const struct neuron_dma_ack_completed *a = arg;
	struct ndma_queue *queue = queue_at(nd, a->eng_id, a->qid);

	if (queue && !queue->owner)
		return -EINVAL;
	return ndmar_ack_completed(nd, a->eng_id, a->qid, a->count);
}

/* head: how far the device has come; completion_head: how far that was acknowledged. */
static struct neuron_dma_queue_state state_of(device *nd, const struct udma_q *q, u32 eng_id)
{
	return (struct neuron_dma_queue_state){
		.sw_status = q->status,
		.base_addr = q->desc_phy_base,
		.length = q->size,
		.head_pointer = hw_head(nd, eng_id, q->qid, q->type),
		.tail_pointer = q->next_desc_idx,
		.completion_head = q->next_cdesc_idx,
	};
}

static long queue_get_state(device *nd, request *q, void *arg, void __user *user)
{
	const struct neuron_dma_queue_get_state *a = arg;
	struct neuron_dma_queue_state state;
	struct udma *udma;
	long r;

	if (!queue_at(nd, a->eng_id, a->qid) || !queue_at(nd, a->eng_id, a->qid)->ring_info.tx_mc)
		return -EINVAL;
	udma = &nd->ndma_engine[a->eng_id].udma;
	state = state_of(nd, &udma->udma_q_m2s[a->qid], a->eng_id);
	r = copy_to_user((void __user *)a->tx, &state, sizeof(state));
	if (r)
		return r;
	state = state_of(nd, &udma->udma_q_s2m[a->qid], a->eng_id);
	return copy_to_user((void __user *)a->rx, &state, sizeof(state));
}

static long copy_descriptors(
	device *nd, u64 handle, u64 buffer, u32 num_descs, u64 offset, u32 queue_type)
{
	u64 bytes = num_descs * (u64)sizeof(union udma_desc);
	struct mem_chunk *mc = nmch_get(nd, handle);
	void *bounce = NULL;
	long r = -EINVAL;

	if (mc && num_descs && bytes <= DMA_SLICE && offset <= mc->size &&
		bytes <= mc->size - offset) {
		bounce = kmalloc(bytes, GFP_KERNEL);
		r = bounce ? copy_from_user(bounce, (void __user *)buffer, bytes) : -ENOMEM;
		if (r == 0)
			r = ndma_memcpy_dma_copy_descriptors(
				nd, bounce, 0, mc, offset, bytes, queue_type);
	}
	kfree(bounce);
	mc_free(&mc);
	return r;
}

static long descriptors(device *nd, request *q, void *arg, void __user *user)
{
	const struct neuron_dma_copy_descriptors *a = arg;

	return copy_descriptors(
		nd, a->mem_handle, a->buffer, a->num_descs, a->offset, a->queue_type);
}

static long descriptors64(device *nd, request *q, void *arg, void __user *user)
{
	const struct neuron_dma_copy_descriptors64 *a = arg;

	return copy_descriptors(
		nd, a->mem_handle, a->buffer, a->num_descs, a->offset, a->queue_type);
}

/* ioctl(2) makes -ENOTTY of this. */
static long quiesce(device *nd, request *q, void *arg, void __user *user)
{
	return -ENOIOCTLCMD;
}

const struct request requests_queue[] = {
	REQUEST(DMA_ENG_INIT, answer_nothing),
	REQUEST(DMA_ENG_SET_STATE, set_state),
	REQUEST(DMA_QUEUE_INIT, queue_init),
	REQUEST(DMA_QUEUE_INIT_BATCH, queue_init_batch),
	REQUEST(DMA_QUEUE_RELEASE, queue_release),
	REQUEST(DMA_QUEUE_COPY_START, copy_start),
	REQUEST(DMA_ACK_COMPLETED, ack_completed),
	REQUEST(DMA_QUEUE_GET_STATE, queue_get_state),
	REQUEST(DMA_COPY_DESCRIPTORS, descriptors),
	REQUEST(DMA_COPY_DESCRIPTORS64, descriptors64),
	REQUEST(DMA_QUIESCE_QUEUES, quiesce),
	{},
};
