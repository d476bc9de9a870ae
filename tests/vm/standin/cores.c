// SPDX-License-Identifier: GPL-2.0-only
/*
 * cores.c - what belongs to cores: marks, resets, notification queues, metrics of the firmware.
 *
 * The thread "ndN reset" brings the device up when the module is loaded and resets cores later; it is
 * the one thread of the driver that makes queues outside of a process.
 */
#include <linux/bitmap.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "tests/vm/standin/driver.h"
#include "tests/vm/standin/trace.h"
#include "vmlinux/neuron_args.h"

#define BRING_UP 0xffffffffu /* the request that comes from the driver itself */

/* ---- marks -------------------------------------------------------------------------------- */

static pid_t ncrwl_range_pids[MAX_NEURON_DEVICE_COUNT * MAX_NC_PER_DEVICE]; /* tgid by core */
static DEFINE_MUTEX(ncrwl_lock);

/* First core of a device's own, and how many cores there are from there on. */
static u32 first_core(const struct neuron_device *nd)
{
	return nd->device_index * MAX_NC_PER_DEVICE;
}
static u32 cores_from(const struct neuron_device *nd)
{
	return (total_neuron_devices - nd->device_index) * MAX_NC_PER_DEVICE;
}

/* Start of the first run of `count` free cores in [start, end], or -1; the longest run there is. */
static int find_free(u32 base, u32 count, u32 start, u32 end, u32 *longest)
{
	u32 run = 0;

	*longest = 0;
	for (u32 c = start; c <= end; c++) {
		run = ncrwl_range_pids[base + c] ? 0 : run + 1;
		*longest = max(*longest, run);
		if (run == count)
			return c + 1 - count;
	}
	return -1;
}

int KEPT ncrwl_nc_range_mark(
	struct neuron_device *nd, u32 nc_count, u32 start, u32 end, u32 *max_available, u64 *bitmap)
{
	u32 base = first_core(nd), longest;
	int first, r = 0;

	count_call(nd, FN_ncrwl_nc_range_mark, 0);
	if (!nc_count || start > end || end >= cores_from(nd) || nc_count > end - start + 1)
		return count_result(nd, FN_ncrwl_nc_range_mark, -EINVAL);
	mutex_lock(&ncrwl_lock);
	first = find_free(base, nc_count, start, end, &longest);
	if (first < 0) {
		*max_available = longest;
		r = -EBUSY;
	}
	for (u32 c = first; r == 0 && c < first + nc_count; c++) {
		ncrwl_range_pids[base + c] = task_tgid_nr(current);
		bitmap[c / 64] |= 1ull << c % 64;
	}
	mutex_unlock(&ncrwl_lock);
	return count_result(nd, FN_ncrwl_nc_range_mark, r);
}

void KEPT ncrwl_nc_range_unmark(struct neuron_device *nd, const u64 *bitmap)
{
	u32 base = first_core(nd);

	count_call(nd, FN_ncrwl_nc_range_unmark, 0);
	mutex_lock(&ncrwl_lock);
	for (u32 c = 0; c < cores_from(nd); c++)
		if (bitmap[c / 64] & (1ull << c % 64) &&
			ncrwl_range_pids[base + c] == task_tgid_nr(current))
			ncrwl_range_pids[base + c] = 0;
	mutex_unlock(&ncrwl_lock);
}

void ncrwl_release_all(pid_t pid)
{
	mutex_lock(&ncrwl_lock);
	for (u32 c = 0; c < ARRAY_SIZE(ncrwl_range_pids); c++)
		if (ncrwl_range_pids[c] == pid)
			ncrwl_range_pids[c] = 0;
	mutex_unlock(&ncrwl_lock);
}

/* ---- resets ------------------------------------------------------------------------------- */

static struct neuron_reset_request *find_request(struct neuron_device *nd, u32 id, bool open)
{
	struct neuron_reset_request *q;

	list_for_each_entry (q, &nd->nr.requests, list)
		if (open ? !q->done : q->request_id == id)
			return q;
	return NULL;
}

static struct neuron_reset_request *next_request(struct neuron_device *nd)
{
	struct neuron_reset_request *q;

	mutex_lock(&nd->nr.nr_lock);
	q = find_request(nd, 0, true);
	mutex_unlock(&nd->nr.nr_lock);
	return q;
}

static void reset(struct neuron_device *nd, struct neuron_reset_request *q)
{
	int r;

	msleep(reset_ms);
	r = ndmar_init_ncs(nd, q->nc_map);
	if (q->nc_map == NEURON_NC_MAP_DEVICE)
		WRITE_ONCE(nd->device_state,
			r ? NEURON_DEVICE_STATE_INVALID : NEURON_DEVICE_STATE_READY);
	mutex_lock(&nd->nr.nr_lock);
	q->ret = r;
	q->done = true;
	if (q->request_id == BRING_UP) {
		list_del(&q->list);
		kfree(q);
	}
	mutex_unlock(&nd->nr.nr_lock);
	wake_up_all(&nd->nr.wait_queue);
}

static int nr_thread_fn(void *data)
{
	struct neuron_device *nd = data;
	struct neuron_reset_request *q;

	while (!kthread_should_stop()) {
		wait_event_interruptible(
			nd->nr.wait_queue, next_request(nd) || kthread_should_stop());
		q = next_request(nd);
		if (q && !kthread_should_stop())
			reset(nd, q);
	}
	return 0;
}

int KEPT nr_start_ncs(struct neuron_device *nd, u32 nc_map, u32 request_id)
{
	struct neuron_reset_request *q = kzalloc(sizeof(*q), GFP_KERNEL);

	count_call(nd, FN_nr_start_ncs, 0);
	if (!q)
		return count_result(nd, FN_nr_start_ncs, -ENOMEM);
	q->nc_map = nc_map;
	q->request_id = request_id;
	mutex_lock(&nd->nr.nr_lock);
	list_add_tail(&q->list, &nd->nr.requests);
	mutex_unlock(&nd->nr.nr_lock);
	wake_up_all(&nd->nr.wait_queue);
	return 0;
}

/* Result of a request, which is forgotten then: 0 done, 1 failed, or an error. */
int KEPT nr_wait(struct neuron_device *nd, u32 request_id, bool check)
{
	struct neuron_reset_request *q;
	int r;

	count_call(nd, FN_nr_wait, 0);
	mutex_lock(&nd->nr.nr_lock);
	q = find_request(nd, request_id, false);
	mutex_unlock(&nd->nr.nr_lock);
	if (!q)
		return count_result(nd, FN_nr_wait, -EINVAL);
	r = wait_event_killable(nd->nr.wait_queue, READ_ONCE(q->done));
	if (r)
		return count_result(nd, FN_nr_wait, -EINTR);
	r = q->ret && check ? 1 : 0;
	mutex_lock(&nd->nr.nr_lock);
	list_del(&q->list);
	mutex_unlock(&nd->nr.nr_lock);
	kfree(q);
	return count_result(nd, FN_nr_wait, r);
}

int nr_create(struct neuron_device *nd)
{
	struct neuron_reset *nr = &nd->nr;

	mutex_init(&nr->nr_lock);
	init_waitqueue_head(&nr->wait_queue);
	INIT_LIST_HEAD(&nr->requests);
	nr->thread = kthread_run(nr_thread_fn, nd, "nd%d reset", nd->device_index);
	if (IS_ERR(nr->thread)) {
		nr->thread = NULL;
		return -ENOMEM;
	}
	return nr_start_ncs(nd, NEURON_NC_MAP_DEVICE, BRING_UP);
}

void nr_destroy(struct neuron_device *nd)
{
	struct neuron_reset_request *q;

	if (!nd->nr.thread)
		return;
	kthread_stop(nd->nr.thread);
	while (!list_empty(&nd->nr.requests)) {
		q = list_first_entry(&nd->nr.requests, struct neuron_reset_request, list);
		list_del(&q->list);
		kfree(q);
	}
}

/* ---- notification queues ------------------------------------------------------------------ */

/* One chunk per (core or TopSP, type, engine); a second request gets the same one, whatever size it
 * asks for, unless it insists.  The old one may be mapped: it stays until the module goes. */
static int nq_chunk(struct neuron_device *nd, struct mem_chunk **slot, u8 nc_id, u32 size,
	u32 on_host, HBM_PARAMETERS, bool force, struct mem_chunk **nq_mc, u64 *mmap_offset)
{
	enum mem_location location = on_host ? MEM_LOC_HOST : MEM_LOC_DEVICE;
	struct mem_chunk *fresh = NULL;
	int r = 0;

	mutex_lock(&nd->nq_lock);
	if (!*slot || force) {
		r = mc_alloc_align(nd, MC_LIFESPAN_DEVICE, size, 0, location, HBM_GIVEN, nc_id,
			on_host ? NEURON_MEMALLOC_TYPE_NOTIFICATION_HOST
				: NEURON_MEMALLOC_TYPE_NOTIFICATION_DEVICE,
			&fresh);
		if (r == 0 && *slot && (*slot)->mc_handle)
			nmch_take(nd, (*slot)->mc_handle);
		if (r == 0)
			*slot = fresh;
	}
	if (r == 0) {
		*nq_mc = *slot;
		*mmap_offset = (*slot)->mem_location == MEM_LOC_HOST ? ndma_mc_to_pa(*slot) : ~0ull;
	}
	mutex_unlock(&nd->nq_lock);
	return r;
}

int KEPT nnq_init(struct neuron_device *nd, u8 nc_id, u8 eng_index, u32 nq_type, u32 size,
	u32 on_host, HBM_PARAMETERS, bool force_alloc_mem, struct mem_chunk **nq_mc,
	u64 *mmap_offset)
{
	int r = -EINVAL;

	count_call(nd, FN_nnq_init, size);
	if (nc_id < MAX_NC_PER_DEVICE && eng_index < 16 && nq_type < 6 && is_power_of_2(size))
		r = nq_chunk(nd, &nd->nq_mc[nc_id][nq_type * 16 + eng_index], nc_id, size, on_host,
			HBM_GIVEN, force_alloc_mem, nq_mc, mmap_offset);
	return count_result(nd, FN_nnq_init, r);
}

int KEPT ts_nq_init(struct neuron_device *nd, u8 ts_id, u8 eng_index, u32 nq_type, u32 size,
	u32 on_host, HBM_PARAMETERS, bool force_alloc_mem, struct mem_chunk **nq_mc,
	u64 *mmap_offset)
{
	if (ts_id >= 16 || eng_index >= 16 || nq_type >= 6 || !is_power_of_2(size))
		return -EINVAL;
	return nq_chunk(nd, &nd->ts_nq_mc[ts_id][nq_type * 16 + eng_index], 0, size, on_host,
		HBM_GIVEN, force_alloc_mem, nq_mc, mmap_offset);
}

void nnq_destroy_all(struct neuron_device *nd)
{
	for (int i = 0; i < NQ_PER_NC; i++) {
		for (int nc = 0; nc < MAX_NC_PER_DEVICE; nc++)
			mc_free(&nd->nq_mc[nc][i]);
		for (int ts = 0; ts < 16; ts++)
			mc_free(&nd->ts_nq_mc[ts][i]);
	}
}

/* ---- firmware ----------------------------------------------------------------------------- */

int KEPT fw_io_post_metric(struct neuron_device *nd, const u32 *data, u32 size)
{
	count_call(nd, FN_fw_io_post_metric, size);
	if (nmetric_log_posts & 2)
		trace_metrics_post(0, size, (const u8 *)data);
	return 0;
}
