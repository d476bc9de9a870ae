// SPDX-License-Identifier: GPL-2.0-only
/*
 * queues.c - rings of DMA engines: the driver's own (h2t) and those that a process manages itself.
 *
 * A process gives the memory of its ring, writes descriptors into it, starts and acknowledges them; the
 * driver waits for nothing there.  When it ends, its queues are put on a ring of the driver's (64
 * descriptors each way) so that the device has nothing to follow.
 */
#include <linux/log2.h>

#include "tests/vm/standin/driver.h"
#include "tests/vm/standin/trace.h"

#define DUMMY_DESCRIPTORS 64

void ndmar_preinit(struct neuron_device *nd)
{
	for (u32 e = 0; e < NUM_DMA_ENG_PER_DEVICE; e++) {
		struct ndma_eng *eng = &nd->ndma_engine[e];

		eng->nd = nd;
		eng->eng_id = e;
		mutex_init(&eng->lock);
#ifndef STANDIN_230
		mutex_init(&eng->h2t_ring_lock);
#endif
		eng->used_for_h2t = e >= H2T_ENGINE;
		for (u32 q = 0; q < DMA_MAX_Q_MAX; q++) {
			eng->queues[q].eng_id = e;
			eng->queues[q].qid = eng->queues[q].ring_info.qid = q;
#ifdef STANDIN_230
			mutex_init(&eng->queues[q].ring_info.h2t_ring_lock);
#endif
		}
	}
}

static struct ndma_eng *engine_at(struct neuron_device *nd, u32 eng_id, u32 qid)
{
	return eng_id < NUM_DMA_ENG_PER_DEVICE && qid < DMA_MAX_Q_MAX ? &nd->ndma_engine[eng_id]
								      : NULL;
}

int KEPT ndmar_eng_init(struct neuron_device *nd, u32 eng_id)
{
	struct ndma_eng *eng = engine_at(nd, eng_id, 0);

	count_call(nd, FN_ndmar_eng_init, 0);
	if (!eng)
		return count_result(nd, FN_ndmar_eng_init, -EINVAL);
	trace_dma_engine_init(nd, eng_id);
	mutex_lock(&eng->lock);
	udma_init(&eng->udma, eng_id);
	mutex_unlock(&eng->lock);
	return 0;
}

int KEPT ndmar_eng_set_state(struct neuron_device *nd, u32 eng_id, u32 state)
{
	struct ndma_eng *eng = engine_at(nd, eng_id, 0);

	count_call(nd, FN_ndmar_eng_set_state, 0);
	if (!eng || state > UDMA_RESET)
		return count_result(nd, FN_ndmar_eng_set_state, -EINVAL);
	mutex_lock(&eng->lock);
	eng->udma.state_m2s = eng->udma.state_s2m = state;
	mutex_unlock(&eng->lock);
	return 0;
}

/* ---- making a queue ----------------------------------------------------------------------- */

/* The part of a chunk that a ring of so many descriptors takes, or an error if it has not so much. */
static int ring_of(struct mem_chunk *mc, u32 count, struct udma_ring_ptr *ret, u32 *ret_size)
{
	*ret = (struct udma_ring_ptr){0};
	*ret_size = 0;
	if (!mc)
		return 0;
	if (!count || count > (1u << 20))
		return -EINVAL;
	*ret_size = roundup_pow_of_two(count);
	if (*ret_size * (u64)sizeof(union udma_desc) > mc->size)
		return -EINVAL;
	ret->ptr = mc->va;
	ret->addr = ndma_mc_to_pa(mc);
	return 0;
}

/* A ring keeps its memory: the process may free its handle at any time. */
static void hold(struct mem_chunk **where, struct mem_chunk *mc)
{
	if (mc) {
		mutex_lock(&mc->mpset->lock);
		mc->ref_count++;
		mutex_unlock(&mc->mpset->lock);
	}
	mc_free(where);
	*where = mc;
}

static void install(
	struct ndma_eng *eng, u32 qid, const struct udma_ring_ptr ring[2], const u32 size[2])
{
	struct ndma_ring *r = &eng->queues[qid].ring_info;

	hw_queue_reset(eng->nd, eng->eng_id, qid);
	r->tx = ring[UDMA_TX];
	r->rx = ring[UDMA_RX];
	r->size = size[UDMA_TX];
	udma_m2m_init_queue(&eng->udma, qid, eng->eng_id, size[UDMA_TX], size[UDMA_RX],
		&ring[UDMA_TX], &ring[UDMA_RX]);
}

int KEPT ndmar_queue_init(struct neuron_device *nd, u32 eng_id, u32 qid, u32 tx_desc_count,
	u32 rx_desc_count, struct mem_chunk *tx_mc, struct mem_chunk *rx_mc,
	struct mem_chunk *rxc_mc, PORT_PARAMETER bool allocatable)
{
	struct ndma_eng *eng = engine_at(nd, eng_id, qid);
	struct udma_ring_ptr ring[2];
	u32 size[2];
	int r;

	count_call(nd, FN_ndmar_queue_init, 0);
	trace_dma_queue_init(nd, eng_id, qid, tx_desc_count, rx_desc_count, tx_mc, rx_mc,
		rxc_mc PORT_TRACED(port));
	r = eng ? ring_of(tx_mc, tx_desc_count, &ring[UDMA_TX], &size[UDMA_TX]) : -EINVAL;
	if (r == 0)
		r = ring_of(rx_mc, rx_desc_count, &ring[UDMA_RX], &size[UDMA_RX]);
	if (r)
		return count_result(nd, FN_ndmar_queue_init, r);
	mutex_lock(&eng->lock);
	install(eng, qid, ring, size);
	hold(&eng->queues[qid].ring_info.tx_mc, tx_mc);
	hold(&eng->queues[qid].ring_info.rx_mc, rx_mc);
	hold(&eng->queues[qid].ring_info.rxc_mc, rxc_mc);
	mutex_unlock(&eng->lock);
	return 0;
}

/* ---- the driver's rings ------------------------------------------------------------------- */

static int h2t_memory(struct ndma_eng *eng, struct mem_chunk **where, u64 size)
{
	return *where ? 0
		      : mc_alloc_align(eng->nd, MC_LIFESPAN_DEVICE, size, 0, MEM_LOC_HOST,
				HBM_ARGUMENTS(0, 0), 0, NEURON_MEMALLOC_TYPE_DMA_RINGS_HOST, where);
}

int KEPT ndmar_h2t_ring_init(struct ndma_eng *eng, u32 qid)
{
	struct ndma_ring *ring = &eng->queues[qid].ring_info;
	struct mem_chunk *tx = NULL, *rx = NULL;
	const u64 bytes = H2T_DESCRIPTORS * sizeof(union udma_desc);
	int r;

	mutex_lock(h2t_lock(eng, ring));
	r = h2t_memory(eng, &tx, bytes);
	if (r == 0)
		r = h2t_memory(eng, &rx, bytes);
	if (r == 0)
		r = h2t_memory(eng, &ring->h2t_completion_mc, H2T_MARKERS * 2 * sizeof(u32));
	if (r == 0)
		r = ndmar_queue_init(eng->nd, eng->eng_id, qid, H2T_DESCRIPTORS, H2T_DESCRIPTORS,
			tx, rx, NULL, PORT_ARGUMENT(0) false);
#ifdef STANDIN_230
	if (r == 0)
		r = ndma_zerocopy_ring_init(eng, ring);
#endif
	if (r == 0) {
		ring->h2t_completion.ptr = ring->h2t_completion_mc->va;
		ring->h2t_completion.addr = ndma_mc_to_pa(ring->h2t_completion_mc);
		memset(ring->h2t_dma_ctx, 0, sizeof(ring->h2t_dma_ctx));
	}
	mc_free(&tx); /* the ring has its own reference */
	mc_free(&rx);
	mutex_unlock(h2t_lock(eng, ring));
	return r;
}

/* Engines and h2t rings of these cores. */
int KEPT ndmar_init_ncs(struct neuron_device *nd, u32 nc_map)
{
	u32 per_core = H2T_ENGINE / MAX_NC_PER_DEVICE;
	int r = 0;

	count_call(nd, FN_ndmar_init_ncs, 0);
	for (u32 nc = 0; r == 0 && nc < MAX_NC_PER_DEVICE; nc++) {
		struct ndma_eng *h2t = ndma_h2t_engine(nd, nc);

		if (!(nc_map & (1u << nc)))
			continue;
		for (u32 e = nc * per_core; r == 0 && e < (nc + 1) * per_core; e++)
			r = ndmar_eng_init(nd, e);
		/* Two cores share an h2t engine; its other queue stays as it is. */
		if (r == 0 && (nc % 2 == 0 || !(nc_map & (1u << (nc - 1)))))
			r = ndmar_eng_init(nd, h2t->eng_id);
		if (r == 0)
			r = ndmar_h2t_ring_init(h2t, nc % 2);
	}
	return count_result(nd, FN_ndmar_init_ncs, r);
}

/* ---- rings of processes ------------------------------------------------------------------- */

int KEPT ndmar_queue_copy_start(
	struct neuron_device *nd, u32 eng_id, u32 qid, u32 tx_desc_count, u32 rx_desc_count)
{
	struct ndma_eng *eng = engine_at(nd, eng_id, qid);
	int r = -EINVAL;

	count_call(nd, FN_ndmar_queue_copy_start, 0);
	if (eng) {
		trace_dma_queue_copy_start(nd, eng_id, qid, tx_desc_count, rx_desc_count);
		mutex_lock(&eng->lock);
		if (eng->queues[qid].ring_info.tx_mc && eng->queues[qid].ring_info.rx_mc)
			r = udma_m2m_copy_start(&eng->udma, qid, tx_desc_count, rx_desc_count);
		mutex_unlock(&eng->lock);
	}
	return count_result(nd, FN_ndmar_queue_copy_start, r);
}

int KEPT ndmar_ack_completed(struct neuron_device *nd, u32 eng_id, u32 qid, u32 count)
{
	struct ndma_eng *eng = engine_at(nd, eng_id, qid);

	count_call(nd, FN_ndmar_ack_completed, 0);
	if (!eng)
		return count_result(nd, FN_ndmar_ack_completed, -EINVAL);
	trace_dma_ack_completed(nd, eng_id, qid, count);
	mutex_lock(&eng->lock);
	udma_cdesc_ack(&eng->udma, qid, count);
	mutex_unlock(&eng->lock);
	return 0;
}

/* Nothing is released: the queue stays until it is made anew. */
int KEPT ndmar_queue_release(struct neuron_device *nd, u32 eng_id, u32 qid)
{
	count_call(nd, FN_ndmar_queue_release, 0);
	trace_dma_queue_release(nd, eng_id, qid);
	return count_result(nd, FN_ndmar_queue_release, engine_at(nd, eng_id, qid) ? 0 : -EINVAL);
}

void KEPT ndmar_handle_process_exit(struct neuron_device *nd, pid_t pid)
{
	count_call(nd, FN_ndmar_handle_process_exit, 0);
	for (u32 e = 0; e < NUM_DMA_ENG_PER_DEVICE; e++)
		for (u32 q = 0; q < DMA_MAX_Q_MAX; q++) {
			struct ndma_queue *queue = &nd->ndma_engine[e].queues[q];

			if (queue->owner != pid)
				continue;
			ndmar_queue_init(nd, e, q, DUMMY_DESCRIPTORS, DUMMY_DESCRIPTORS,
				nd->ndma_q_dummy_mc, nd->ndma_q_dummy_mc, NULL,
				PORT_ARGUMENT(0) false);
			queue->owner = 0;
		}
}

/* Takes the memory away from all rings. */
void ndmar_close(struct neuron_device *nd)
{
	for (u32 e = 0; e < NUM_DMA_ENG_PER_DEVICE; e++)
		for (u32 q = 0; q < DMA_MAX_Q_MAX; q++) {
			struct ndma_ring *ring = &nd->ndma_engine[e].queues[q].ring_info;

			mc_free(&ring->tx_mc);
			mc_free(&ring->rx_mc);
			mc_free(&ring->rxc_mc);
			mc_free(&ring->h2t_completion_mc);
#ifdef STANDIN_230
			ndma_zerocopy_ring_free(ring);
#endif
		}
}
