// SPDX-License-Identifier: GPL-2.0-only
/*
 * hardware.c - the device behind the stand-in: a thread that executes descriptors.
 *
 * A write to a tail register of a tx queue is a doorbell.  The thread takes doorbells in order, lets
 * `delay_us` pass and copies what the pairs of descriptors of tx and rx ring say.  With `never` set it takes
 * them and does nothing, as a device that hangs.  An address that is no memory of the device ends the
 * doorbell there, so its marker is never written.  None of this calls a function that tracers hook.
 *
 * Rings of the driver may name any page of the host (pages of callers, for zero copy); rings that a
 * process filled itself only chunks.
 */
#include <linux/delay.h>
#include <linux/io.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "tests/vm/standin/driver.h"

struct doorbell {
	struct list_head list;
	u64 due_ns;
	u32 eng_id, qid;
	u32 count; /* pairs */
};

static struct doorbell *take_doorbell(struct standin_hw *hw)
{
	struct doorbell *d;

	spin_lock(&hw->doorbell_lock);
	d = list_first_entry_or_null(&hw->doorbells, struct doorbell, list);
	if (d)
		list_del(&d->list);
	spin_unlock(&hw->doorbell_lock);
	return d;
}

static void *resolve(struct neuron_device *nd, u64 address, u64 size, bool any_host)
{
	struct mem_chunk *mc;
	u64 offset;

	if (any_host && address & HOST_BIT)
		return phys_to_virt(address & ~HOST_BIT);
	mc = mpset_search_mc(&nd->mpset, address);
	if (!mc)
		return NULL;
	offset = address - ndma_mc_to_pa(mc);
	return size <= mc->size - offset ? (char *)mc->va + offset : NULL;
}

static bool execute_pair(struct neuron_device *nd, struct ndma_queue *queue, struct udma *udma,
	const struct hw_queue *at)
{
	const struct udma_q *tx = &udma->udma_q_m2s[queue->qid];
	const struct udma_q *rx = &udma->udma_q_s2m[queue->qid];
	const union udma_desc *from, *to;
	void *src, *dst;
	u32 size;

	if (!tx->desc_base_ptr || !rx->desc_base_ptr)
		return false;
	from = &tx->desc_base_ptr[at->head[UDMA_TX] & tx->size_mask];
	to = &rx->desc_base_ptr[at->head[UDMA_RX] & rx->size_mask];
	size = from->word0 & 0xffff ? from->word0 & 0xffff : DMA_SLICE;
	mutex_lock(&nd->mpset.lock);
	src = resolve(nd, from->address, size, !queue->owner);
	dst = resolve(nd, to->address, size, !queue->owner);
	if (src && dst)
		memmove(dst, src, size);
	mutex_unlock(&nd->mpset.lock);
	if (src && dst)
		count_call(nd, FN_hardware, size);
	return src && dst;
}

static void execute(struct neuron_device *nd, const struct doorbell *d)
{
	struct ndma_eng *eng = &nd->ndma_engine[d->eng_id];
	struct hw_queue *q = &nd->hw->queue[d->eng_id][d->qid];
	bool works = !never;

	mutex_lock(&nd->hw->lock);
	for (u32 i = 0; i < d->count; i++) {
		/* A queue that was cancelled or made anew has nothing left. */
		if (q->head[UDMA_TX] == q->tail[UDMA_TX] || q->head[UDMA_RX] == q->tail[UDMA_RX])
			break;
		works = works && execute_pair(nd, &eng->queues[d->qid], &eng->udma, q);
		q->head[UDMA_TX]++;
		q->head[UDMA_RX]++;
	}
	mutex_unlock(&nd->hw->lock);
}

static int hw_thread(void *data)
{
	struct neuron_device *nd = data;
	struct standin_hw *hw = nd->hw;
	struct doorbell *d;
	u64 now;

	while (!kthread_should_stop()) {
		wait_event_interruptible(
			hw->wake, !list_empty_careful(&hw->doorbells) || kthread_should_stop());
		d = take_doorbell(hw);
		if (!d)
			continue;
		now = ktime_get_ns();
		if (d->due_ns > now)
			usleep_range((d->due_ns - now) / 1000, (d->due_ns - now) / 1000 + 20);
		execute(nd, d);
		kfree(d);
	}
	return 0;
}

void hw_doorbell(struct neuron_device *nd, u32 eng_id, u32 qid, enum udma_type type, u32 count)
{
	struct standin_hw *hw = nd->hw;
	struct doorbell *d = NULL;

	mutex_lock(&hw->lock);
	hw->queue[eng_id][qid].tail[type] += count;
	mutex_unlock(&hw->lock);
	if (type != UDMA_TX)
		return; /* the driver announces rx first */
	d = kzalloc(sizeof(*d), GFP_KERNEL | __GFP_NOFAIL);
	d->due_ns = ktime_get_ns() + delay_us * 1000ull;
	d->eng_id = eng_id;
	d->qid = qid;
	d->count = count;
	spin_lock(&hw->doorbell_lock);
	list_add_tail(&d->list, &hw->doorbells);
	spin_unlock(&hw->doorbell_lock);
	wake_up(&hw->wake);
}

void hw_cancel(struct neuron_device *nd, u32 eng_id, u32 qid)
{
	struct hw_queue *q = &nd->hw->queue[eng_id][qid];

	mutex_lock(&nd->hw->lock);
	memcpy(q->head, q->tail, sizeof(q->head));
	mutex_unlock(&nd->hw->lock);
}

void hw_queue_reset(struct neuron_device *nd, u32 eng_id, u32 qid)
{
	mutex_lock(&nd->hw->lock);
	memset(&nd->hw->queue[eng_id][qid], 0, sizeof(struct hw_queue));
	mutex_unlock(&nd->hw->lock);
}

u32 hw_head(struct neuron_device *nd, u32 eng_id, u32 qid, enum udma_type type)
{
	u32 head;

	mutex_lock(&nd->hw->lock);
	head = nd->hw->queue[eng_id][qid].head[type];
	mutex_unlock(&nd->hw->lock);
	return head;
}

int hw_start(struct neuron_device *nd)
{
	struct standin_hw *hw = vzalloc(sizeof(*hw));

	if (!hw)
		return -ENOMEM;
	init_waitqueue_head(&hw->wake);
	mutex_init(&hw->lock);
	spin_lock_init(&hw->doorbell_lock);
	INIT_LIST_HEAD(&hw->doorbells);
	nd->hw = hw;
	hw->thread = kthread_run(hw_thread, nd, "nd%d device", nd->device_index);
	if (IS_ERR(hw->thread)) {
		vfree(hw);
		nd->hw = NULL;
		return -ENOMEM;
	}
	return 0;
}

void hw_stop(struct neuron_device *nd)
{
	struct doorbell *d;

	if (!nd->hw)
		return;
	kthread_stop(nd->hw->thread);
	while ((d = take_doorbell(nd->hw)))
		kfree(d);
	vfree(nd->hw);
	nd->hw = NULL;
}
