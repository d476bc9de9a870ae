// SPDX-License-Identifier: GPL-2.0-only
/*
 * udma.c - queues of one DMA engine: writing descriptors, and the doorbell.
 *
 * A copy is a pair of descriptors, source on the tx ring and destination on the rx ring.  Ringing
 * announces rx first, then tx.  As in the driver rx queues do not know their engine (eng_id is 0).
 */
#include <linux/slab.h>

#include "tests/vm/standin/driver.h"

static struct ndma_eng *engine_of(struct udma *udma)
{
	return container_of(udma, struct ndma_eng, udma);
}

/* The driver's register access is `inline`, which in the kernel means that it cannot be traced. */
notrace void reg_write32(u32 *address, u32 value)
{
	WRITE_ONCE(*address, value);
}

notrace u32 reg_read32(const u32 *address)
{
	return READ_ONCE(*address);
}

void udma_init(struct udma *udma, u32 eng_id)
{
	snprintf(udma->name, sizeof(udma->name), "udma%u", eng_id);
	udma->num_of_queues = udma->num_of_queues_max = DMA_MAX_Q_MAX;
	udma->state_m2s = udma->state_s2m = UDMA_NORMAL;
	udma->rev_id = 4;
}

static void queue_init(struct udma_q *q, struct udma *udma, u32 qid, enum udma_type type, u32 size,
	const struct udma_ring_ptr *ring)
{
	*q = (struct udma_q){
		.desc_base_ptr = ring->ptr,
		.desc_phy_base = ring->addr,
		.udma = udma,
		.size = size,
		.size_mask = size ? size - 1 : 0,
		.qid = qid,
		.type = type,
		.status = ring->ptr ? UDMA_QUEUE_ENABLED : UDMA_QUEUE_DISABLED,
	};
}

int KEPT udma_m2m_init_queue(struct udma *udma, u32 qid, u32 eng_id, u32 m2s_size, u32 s2m_size,
	const struct udma_ring_ptr *m2s, const struct udma_ring_ptr *s2m)
{
	if (qid >= DMA_MAX_Q_MAX)
		return -EINVAL;
	queue_init(&udma->udma_q_m2s[qid], udma, qid, UDMA_TX, m2s_size, m2s);
	queue_init(&udma->udma_q_s2m[qid], udma, qid, UDMA_RX, s2m_size, s2m);
	udma->udma_q_m2s[qid].eng_id = eng_id;
	return 0;
}

/* Free descriptors of a queue: the smaller of both rings. */
u32 udma_available(const struct udma *udma, u32 qid)
{
	const struct udma_q *tx = &udma->udma_q_m2s[qid], *rx = &udma->udma_q_s2m[qid];
	u32 tx_free = tx->size - (tx->next_desc_idx - tx->next_cdesc_idx);
	u32 rx_free = rx->size - (rx->next_desc_idx - rx->next_cdesc_idx);

	return min(tx_free, rx_free);
}

static void put(struct udma_q *q, u32 word0, dma_addr_t address)
{
	union udma_desc *d = &q->desc_base_ptr[q->next_desc_idx++ & q->size_mask];

	d->word0 = word0;
	d->word1 = 0;
	d->address = address;
}

int KEPT udma_m2m_copy_prepare_one(struct udma *udma, u32 qid, dma_addr_t src, dma_addr_t dst,
	u32 size, int barrier, bool en_int)
{
	u32 flags = UDMA_DESC_FIRST | UDMA_DESC_LAST;
	struct udma_q *tx = &udma->udma_q_m2s[qid], *rx = &udma->udma_q_s2m[qid];

	count_call(engine_of(udma)->nd, FN_udma_m2m_copy_prepare_one, size ? size : DMA_SLICE);
	if (!udma_available(udma, qid))
		return count_result(engine_of(udma)->nd, FN_udma_m2m_copy_prepare_one, -ENOMEM);
	put(tx, (size & 0xffff) | flags | (barrier ? UDMA_DESC_DMB : 0), src);
	put(rx, (size & 0xffff) | (en_int ? UDMA_DESC_INT : 0), dst);
	return 0;
}

int KEPT udma_desc_action_add(struct udma_q *q, u32 num)
{
	struct ndma_eng *eng = engine_of(q->udma);

	count_call(eng->nd, FN_udma_desc_action_add, 0);
	hw_doorbell(eng->nd, eng->eng_id, q->qid, q->type, num);
	return 0;
}

int KEPT udma_m2m_copy_start(struct udma *udma, u32 qid, u32 m2s_count, u32 s2m_count)
{
	struct neuron_device *nd = engine_of(udma)->nd;
	int r = 0;

	count_call(nd, FN_udma_m2m_copy_start, 0);
	if (s2m_count)
		r = udma_desc_action_add(&udma->udma_q_s2m[qid], s2m_count);
	if (r == 0 && m2s_count)
		r = udma_desc_action_add(&udma->udma_q_m2s[qid], m2s_count);
	return count_result(nd, FN_udma_m2m_copy_start, r);
}

void udma_cdesc_ack(struct udma *udma, u32 qid, u32 count)
{
	udma->udma_q_m2s[qid].next_cdesc_idx += count;
	udma->udma_q_s2m[qid].next_cdesc_idx += count;
}
