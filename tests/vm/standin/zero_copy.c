// SPDX-License-Identifier: GPL-2.0-only
/*
 * zero_copy.c - copies between a caller's own pages and device memory, in the shape of driver 2.24.
 *
 * One doorbell per 64 pages, a pair of descriptors per page and the marker; up to two doorbells are open
 * at once, and they complete in order.  Everything happens in the caller's thread.
 */
#include <linux/io.h>
#include <linux/mm.h>

#include "tests/vm/standin/driver.h"

#define ZC_PAGES 64

struct zc_context {
	struct page *pages[ZC_PAGES];
	int nr_pages;
	u32 count; /* descriptors of the open doorbell, 0 none */
	void *completion_ptr;
};

struct zc_request {
	struct ndma_eng *eng;
	struct ndma_ring *ring;
	unsigned long host; /* next byte of the caller */
	dma_addr_t device;  /* next byte of the device */
	u64 left;
	bool to_device;
};

static int ndma_build_n_issue_zc_descs(struct zc_request *q, struct zc_context *ctx, u64 bytes)
	CLONE(ndma_build_n_issue_zc_descs, "constprop.0");
static int ndma_zero_copy_wait_for_completion(struct zc_request *q, struct zc_context *ctx)
	CLONE(ndma_zero_copy_wait_for_completion, "constprop.0");
static int ndma_memcpy_zero_copy(struct zc_request *q) CLONE(ndma_memcpy_zero_copy, "isra.0");

static void unpin(struct zc_context *ctx, bool dirty)
{
	unpin_user_pages_dirty_lock(ctx->pages, ctx->nr_pages, dirty);
	ctx->nr_pages = 0;
}

static int KEPT ndma_build_n_issue_zc_descs(struct zc_request *q, struct zc_context *ctx, u64 bytes)
{
	u64 done = 0;
	int r = 0;

	count_call(q->eng->nd, FN_ndma_build_n_issue_zc_descs, bytes);
	for (int i = 0; r == 0 && done < bytes; i++) {
		u64 in_page = i ? 0 : offset_in_page(q->host);
		u64 size = min_t(u64, bytes - done, PAGE_SIZE - in_page);
		dma_addr_t host = (page_to_phys(ctx->pages[i]) + in_page) | HOST_BIT;
		dma_addr_t device = q->device + done;

		r = udma_m2m_copy_prepare_one(&q->eng->udma, q->ring->qid,
			q->to_device ? host : device, q->to_device ? device : host, size,
			UDMA_M2M_BARRIER_NONE, false);
		done += size;
	}
	if (r == 0)
		r = ndma_memcpy_add_completion_desc(q->eng, q->ring, ctx->completion_ptr);
	if (r == 0)
		r = udma_m2m_copy_start(
			&q->eng->udma, q->ring->qid, ctx->nr_pages + 1, ctx->nr_pages + 1);
	if (r == 0)
		ctx->count = ctx->nr_pages + 1;
	return count_result(q->eng->nd, FN_ndma_build_n_issue_zc_descs, r);
}

static int KEPT ndma_zero_copy_wait_for_completion(struct zc_request *q, struct zc_context *ctx)
{
	int r = ndma_memcpy_wait_for_completion(
		q->eng, q->ring, ctx->count, ctx->completion_ptr, true, false);

	ctx->count = 0;
	unpin(ctx, !q->to_device);
	return r;
}

/* Pins the next pages and rings for them. */
static int issue(struct zc_request *q, struct zc_context *ctx)
{
	u64 in_page = offset_in_page(q->host);
	u64 bytes = min_t(u64, q->left, ZC_PAGES * PAGE_SIZE - in_page);
	int pages = DIV_ROUND_UP(in_page + bytes, PAGE_SIZE), r;

	r = pin_user_pages_fast(
		q->host & PAGE_MASK, pages, q->to_device ? 0 : FOLL_WRITE, ctx->pages);
	if (r < 0)
		return r;
	ctx->nr_pages = r;
	r = r == pages ? ndma_build_n_issue_zc_descs(q, ctx, bytes) : -EFAULT;
	if (r) {
		unpin(ctx, false);
		return r;
	}
	q->host += bytes;
	q->device += bytes;
	q->left -= bytes;
	return 0;
}

static int KEPT ndma_memcpy_zero_copy(struct zc_request *q)
{
	struct zc_context ctx[2] = {};
	int r = 0, next = 0, later;

	for (int i = 0; i < 2; i++)
		ctx[i].completion_ptr = (u32 *)q->ring->h2t_completion.ptr + 2 * (ZC_MARKER + i);
	while (r == 0 && q->left) {
		if (ctx[next].count)
			r = ndma_zero_copy_wait_for_completion(q, &ctx[next]);
		if (r == 0)
			r = issue(q, &ctx[next]);
		next ^= 1;
	}
	/* `next` is now the older of those that are open. */
	for (int i = 0; i < 2; i++, next ^= 1)
		if (ctx[next].count) {
			later = ndma_zero_copy_wait_for_completion(q, &ctx[next]);
			r = r ? r : later;
		}
	return r;
}

int KEPT ndma_memcpy_zero_copy_mc(struct neuron_device *nd, void *host_addr, struct mem_chunk *mc,
	u64 dev_offset, u64 size, bool direction)
{
	struct ndma_eng *eng = ndma_h2t_engine(nd, mc->nc_id);
	struct zc_request q = {
		.eng = eng,
		.ring = ndma_h2t_ring(nd, mc->nc_id),
		.host = (unsigned long)host_addr,
		.device = ndma_mc_to_pa(mc) + dev_offset,
		.left = size,
		.to_device = direction,
	};
	int r = -ENODEV;

	count_call(nd, FN_ndma_memcpy_zero_copy_mc, size);
	mutex_lock(&eng->h2t_ring_lock);
	if (q.ring->h2t_completion_mc)
		r = ndma_memcpy_zero_copy(&q);
	mutex_unlock(&eng->h2t_ring_lock);
	return count_result(nd, FN_ndma_memcpy_zero_copy_mc, r);
}
