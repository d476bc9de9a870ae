// SPDX-License-Identifier: GPL-2.0-only
/*
 * zero_copy_230.c - zero copy in the shape of driver 2.30: a queue of contexts per ring, and a thread that
 * completes what nobody waits for.
 *
 * A request is cut into contexts of at most 64 pages, each with a doorbell of its own, rung in the caller's
 * thread.  A synchronous one takes contexts from the queue, oldest first, until none is left; older
 * asynchronous ones that it meets get no completion entry, as in the driver.  An asynchronous one returns,
 * and the thread "neuron dma cmpltn" takes them, ring by ring, and writes an entry into the ring's completion
 * queue for the last context of a request and for one that failed.
 *
 * The queue holds 16 contexts here, and pages are pinned by the caller always.
 */
#include <linux/io.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "tests/vm/standin/driver.h"

#define ZC_PAGES 64
#define COMPLETIONS 1024

enum zc_state {
	ZC_INVALID = 0,
	ZC_UNPINNED,
	ZC_PINNED_UNSUBMITTED,
	ZC_SUBMITTED,
	ZC_COMPLETED, /* was finished before it was queued */
};

struct ndma_h2t_zcdma_context {
	struct ndma_eng *eng;
	struct ndma_ring *ring;
	void *host_addr;
	dma_addr_t dev_addr;
	u64 size;
	bool direction; /* to the device */
	bool last;
	u64 start_time; /* never set */
	int nr_pages;
	int nr_desc;
	struct page **page_list;
	enum zc_state state;
	pid_t pid; /* tgid of who asked */
	void *completion_ptr;
	u64 sequence_num;
	void *context;
	s64 compl_ret;
};

/* Shared with user space. */
struct completion_queue {
	u32 capacity;
	u32 head; /* user space's */
	u32 tail;
	u32 pad;
	struct {
		u64 sequence_num;
		s64 compl_ret;
		u64 context;
	} entries[COMPLETIONS];
};

static int ndma_build_n_issue_zc_descs(struct ndma_h2t_zcdma_context *ctx)
	CLONE(ndma_build_n_issue_zc_descs, "isra.0");
static void ndma_h2d_compl_queue_put(struct ndma_h2d_compl_queue *cq, u64 sequence_num,
	s64 compl_ret, void *context) CLONE(ndma_h2d_compl_queue_put, "isra.0");
static void ndma_zc_release_ctx(struct ndma_h2t_zcdma_context *ctx, u64 *nr_pinned)
	CLONE(ndma_zc_release_ctx, "constprop.0");

/* ---- the ring's queues -------------------------------------------------------------------- */

int ndma_zerocopy_ring_init(struct ndma_eng *eng, struct ndma_ring *ring)
{
	struct ndma_ctx_queue *q = &ring->dma_ctx_queue;
	struct ndma_h2d_compl_queue *cq = &ring->dma_compl_queue;
	struct completion_queue *shared;
	int r;

	if (cq->mc)
		return 0;
	r = mc_alloc_align(eng->nd, MC_LIFESPAN_DEVICE, sizeof(*shared), 0, MEM_LOC_HOST,
		HBM_ARGUMENTS(0, 0), 0, NEURON_MEMALLOC_TYPE_NCDEV_HOST, &cq->mc);
	if (r)
		return r;
	q->entries = kcalloc(ZC_SLOTS, sizeof(*q->entries), GFP_KERNEL);
	if (!q->entries)
		return -ENOMEM;
	for (int i = 0; i < ZC_SLOTS; i++) {
		q->entries[i].page_list = kcalloc(ZC_PAGES, sizeof(struct page *), GFP_KERNEL);
		if (!q->entries[i].page_list)
			return -ENOMEM;
		q->entries[i].completion_ptr =
			(u32 *)ring->h2t_completion_mc->va + 2 * (ZC_MARKER + i);
	}
	q->capacity_mask = ZC_SLOTS - 1;
	cq->capacity_mask = COMPLETIONS - 1;
	cq->compl_queue_shared = shared = cq->mc->va;
	shared->capacity = COMPLETIONS;
	ring->h2t_nc_id = (eng->eng_id - H2T_ENGINE) * 2 + ring->qid;
	ring->h2t_allocated = true;
	return 0;
}

void ndma_zerocopy_ring_free(struct ndma_ring *ring)
{
	struct ndma_ctx_queue *q = &ring->dma_ctx_queue;

	for (int i = 0; q->entries && i < ZC_SLOTS; i++)
		kfree(q->entries[i].page_list);
	kfree(q->entries);
	mc_free(&ring->dma_compl_queue.mc);
}

/* A new context at the end of the queue, which has room. */
static struct ndma_h2t_zcdma_context *push(struct ndma_eng *eng, struct ndma_ring *ring)
{
	struct ndma_ctx_queue *q = &ring->dma_ctx_queue;
	struct ndma_h2t_zcdma_context *ctx = &q->entries[q->tail++ & q->capacity_mask];

	ctx->eng = eng;
	ctx->ring = ring;
	ctx->nr_pages = 0;
	ctx->compl_ret = 0;
	return ctx;
}

static void KEPT ndma_h2d_compl_queue_put(
	struct ndma_h2d_compl_queue *cq, u64 sequence_num, s64 compl_ret, void *context)
{
	struct completion_queue *shared = cq->compl_queue_shared;
	u32 at = cq->tail++ & cq->capacity_mask;

	count_call(cq->mc->mpset->nd, FN_ndma_h2d_compl_queue_put, 0);
	shared->entries[at].compl_ret = compl_ret;
	shared->entries[at].context = (uintptr_t)context;
	shared->entries[at].sequence_num = sequence_num;
	smp_store_release(&shared->tail, cq->tail);
}

/* ---- one context -------------------------------------------------------------------------- */

static int pin_pages(struct ndma_h2t_zcdma_context *ctx, u64 *nr_pinned)
{
	unsigned long host = (unsigned long)ctx->host_addr;
	int pages = DIV_ROUND_UP(offset_in_page(host) + ctx->size, PAGE_SIZE), r;

	r = pin_user_pages_fast(
		host & PAGE_MASK, pages, ctx->direction ? 0 : FOLL_WRITE, ctx->page_list);
	ctx->nr_pages = max(r, 0);
	*nr_pinned += ctx->nr_pages;
	ctx->state = ZC_PINNED_UNSUBMITTED;
	return r == pages ? 0 : -EFAULT;
}

static void KEPT ndma_zc_release_ctx(struct ndma_h2t_zcdma_context *ctx, u64 *nr_pinned)
{
	unpin_user_pages_dirty_lock(ctx->page_list, ctx->nr_pages, !ctx->direction);
	*nr_pinned -= ctx->nr_pages;
	ctx->nr_pages = 0;
	ctx->state = ZC_INVALID;
}

static int KEPT ndma_build_n_issue_zc_descs(struct ndma_h2t_zcdma_context *ctx)
{
	u64 done = 0;
	int r = 0;

	count_call(ctx->eng->nd, FN_ndma_build_n_issue_zc_descs, ctx->size);
	for (int i = 0; r == 0 && done < ctx->size; i++) {
		u64 in_page = i ? 0 : offset_in_page(ctx->host_addr);
		u64 size = min_t(u64, ctx->size - done, PAGE_SIZE - in_page);
		dma_addr_t host = (page_to_phys(ctx->page_list[i]) + in_page) | HOST_BIT;
		dma_addr_t device = ctx->dev_addr + done;

		r = udma_m2m_copy_prepare_one(&ctx->eng->udma, ctx->ring->qid,
			ctx->direction ? host : device, ctx->direction ? device : host, size,
			UDMA_M2M_BARRIER_NONE, false);
		done += size;
	}
	if (r == 0)
		r = ndma_memcpy_add_completion_desc(
			ctx->eng, ctx->ring, ctx->completion_ptr BARRIER_ARGUMENT);
	ctx->nr_desc = ctx->nr_pages + 1;
	if (r == 0)
		r = udma_m2m_copy_start(
			&ctx->eng->udma, ctx->ring->qid, ctx->nr_desc, ctx->nr_desc);
	if (r == 0)
		ctx->state = ZC_SUBMITTED;
	return count_result(ctx->eng->nd, FN_ndma_build_n_issue_zc_descs, r);
}

/* Waits for the oldest context and takes it from the queue; with `post` its entry is written. */
static int complete_oldest(struct ndma_ring *ring, bool post)
{
	struct ndma_ctx_queue *q = &ring->dma_ctx_queue;
	struct ndma_h2t_zcdma_context *ctx = &q->entries[q->head & q->capacity_mask];
	s64 r = ctx->compl_ret;

	if (ctx->state == ZC_SUBMITTED)
		r = ndma_memcpy_wait_for_completion(
			ctx->eng, ring, ctx->nr_desc, ctx->completion_ptr, true, false);
	if (post && (r || ctx->last))
		ndma_h2d_compl_queue_put(
			&ring->dma_compl_queue, ctx->sequence_num, r, ctx->context);
	ndma_zc_release_ctx(ctx, &q->nr_pinned_pages);
	q->head++;
	return r;
}

static bool has_open(const struct ndma_ring *ring)
{
	return ring->dma_ctx_queue.head != ring->dma_ctx_queue.tail;
}

/* ---- the thread --------------------------------------------------------------------------- */

static void complete_ring(struct neuron_device *nd, int bit)
{
	struct ndma_eng *eng = &nd->ndma_engine[H2T_ENGINE + bit / DMA_MAX_Q_MAX];
	struct ndma_ring *ring = &eng->queues[bit % DMA_MAX_Q_MAX].ring_info;

	mutex_lock(h2t_lock(eng, ring));
	while (has_open(ring))
		complete_oldest(ring, true);
	mutex_unlock(h2t_lock(eng, ring));
}

static int KEPT ndma_h2d_cmpltn_thread_fn(void *data)
{
	struct neuron_device *nd = data;
	struct ndma_h2d_dma_cmpltn_thread *t = &nd->dma_cmpltn_thread;
	u64 rings;

	while (!kthread_should_stop()) {
		wait_event_interruptible(t->wait_queue,
			atomic64_read(&t->nonempty_ctxq_bitmap) || kthread_should_stop());
		rings = atomic64_xchg(&t->nonempty_ctxq_bitmap, 0);
		for (; rings; rings &= rings - 1)
			complete_ring(nd, __ffs64(rings));
	}
	return 0;
}

static DEFINE_MUTEX(create_lock);

void ndma_h2d_init_cmpltn_thread(struct neuron_device *nd)
{
	init_waitqueue_head(&nd->dma_cmpltn_thread.wait_queue);
}

int KEPT ndma_h2d_create_cmpltn_thread(struct neuron_device *nd)
{
	struct ndma_h2d_dma_cmpltn_thread *t = &nd->dma_cmpltn_thread;
	struct task_struct *thread;
	int r = 0;

	mutex_lock(&create_lock);
	if (!t->thread) {
		thread = kthread_run(ndma_h2d_cmpltn_thread_fn, nd, "neuron dma cmpltn");
		if (IS_ERR(thread))
			r = PTR_ERR(thread);
		else
			t->thread = thread;
	}
	mutex_unlock(&create_lock);
	return r;
}

void KEPT ndma_h2d_stop_cmpltn_thread(struct neuron_device *nd)
{
	if (nd->dma_cmpltn_thread.thread)
		kthread_stop(nd->dma_cmpltn_thread.thread);
	nd->dma_cmpltn_thread.thread = NULL;
}

static void hand_over(struct neuron_device *nd, struct ndma_eng *eng, struct ndma_ring *ring)
{
	struct ndma_h2d_dma_cmpltn_thread *t = &nd->dma_cmpltn_thread;
	int bit = (eng->eng_id - H2T_ENGINE) * DMA_MAX_Q_MAX + ring->qid;

	atomic64_or(1ull << bit, &t->nonempty_ctxq_bitmap);
	wake_up(&t->wait_queue);
}

/* ---- requests ----------------------------------------------------------------------------- */

struct zc_request {
	u64 sequence_num;
	void *context;
	bool direction;
	int error; /* the first one */
};

/* Makes room for one context, if waiting is allowed. */
static int make_room(struct ndma_ring *ring, struct zc_request *z)
{
	struct ndma_ctx_queue *q = &ring->dma_ctx_queue;
	int r;

	if (q->tail - q->head <= q->capacity_mask)
		return 0;
	if (z->sequence_num)
		return -EBUSY;
	r = complete_oldest(ring, false);
	z->error = z->error ? z->error : r;
	return 0;
}

static int issue(struct ndma_eng *eng, struct ndma_ring *ring, struct zc_request *z, void *host,
	dma_addr_t device, u64 size, bool last)
{
	struct ndma_ctx_queue *q = &ring->dma_ctx_queue;
	struct ndma_h2t_zcdma_context *ctx;
	int r = make_room(ring, z);

	if (r)
		return r;
	ctx = push(eng, ring);
	ctx->host_addr = host;
	ctx->dev_addr = device;
	ctx->size = size;
	ctx->direction = z->direction;
	ctx->last = last;
	ctx->pid = task_tgid_nr(current);
	ctx->sequence_num = z->sequence_num;
	ctx->context = z->context;
	r = pin_pages(ctx, &q->nr_pinned_pages);
	if (r == 0)
		r = ndma_build_n_issue_zc_descs(ctx);
	if (r) {
		ndma_zc_release_ctx(ctx, &q->nr_pinned_pages);
		q->tail--;
	}
	return r;
}

static int issue_op(struct ndma_eng *eng, struct ndma_ring *ring, struct zc_request *z,
	const nrt_tensor_batch_op_t *op, dma_addr_t dev_base, bool last_op)
{
	u64 done = 0;
	int r = 0;

	while (r == 0 && z->error == 0 && done < op->size) {
		char *host = (char *)op->buffer + done;
		u64 most = ZC_PAGES * PAGE_SIZE - offset_in_page(host);
		u64 size = min_t(u64, op->size - done, most);

		r = issue(eng, ring, z, host, dev_base + op->offset + done, size,
			last_op && done + size == op->size);
		done += size;
	}
	return r;
}

int KEPT ndma_zerocopy_submit(struct neuron_device *nd, u32 nc_id, const nrt_tensor_batch_op_t *ops,
	u32 num_ops, dma_addr_t dev_base, int qid, bool direction, u64 sequence_num, void *context)
{
	struct ndma_eng *eng = ndma_h2t_engine(nd, nc_id);
	struct ndma_ring *ring = ndma_h2t_ring(nd, nc_id);
	struct zc_request z = {
		.sequence_num = sequence_num, .context = context, .direction = direction};
	int r = qid >= 0 && qid != ring->qid ? -EINVAL : 0, later;
	u64 bytes = 0;

	for (u32 i = 0; i < num_ops; i++)
		bytes += ops[i].size;
	count_call(nd, FN_ndma_zerocopy_submit, bytes);
	if (r == 0 && sequence_num)
		r = ndma_h2d_create_cmpltn_thread(nd);
	if (r)
		return count_result(nd, FN_ndma_zerocopy_submit, r);
	mutex_lock(h2t_lock(eng, ring));
	for (u32 i = 0; r == 0 && i < num_ops; i++)
		r = issue_op(eng, ring, &z, &ops[i], dev_base, i == num_ops - 1);
	while (!sequence_num && has_open(ring)) {
		later = complete_oldest(ring, false);
		z.error = z.error ? z.error : later;
	}
	if (sequence_num && has_open(ring))
		hand_over(nd, eng, ring);
	mutex_unlock(h2t_lock(eng, ring));
	return count_result(nd, FN_ndma_zerocopy_submit, r ? r : z.error);
}

int KEPT ndma_zerocopy_submit_completed(struct neuron_device *nd, u32 nc_id, int qid,
	u64 sequence_num, s64 compl_ret, void *context)
{
	struct ndma_eng *eng = ndma_h2t_engine(nd, nc_id);
	struct ndma_ring *ring = ndma_h2t_ring(nd, nc_id);
	struct zc_request z = {.sequence_num = sequence_num};
	struct ndma_h2t_zcdma_context *ctx;
	int r = ndma_h2d_create_cmpltn_thread(nd);

	count_call(nd, FN_ndma_zerocopy_submit_completed, 0);
	mutex_lock(h2t_lock(eng, ring));
	if (r == 0)
		r = make_room(ring, &z);
	if (r == 0) {
		ctx = push(eng, ring); /* keeps addresses, size and pid of the slot's last user */
		ctx->state = ZC_COMPLETED;
		ctx->last = true;
		ctx->sequence_num = sequence_num;
		ctx->context = context;
		ctx->compl_ret = compl_ret;
		hand_over(nd, eng, ring);
	}
	mutex_unlock(h2t_lock(eng, ring));
	return count_result(nd, FN_ndma_zerocopy_submit_completed, r);
}
