// SPDX-License-Identifier: GPL-2.0-only
/*
 * memory.c - chunks of host and device memory, and the handles that processes know them by.
 *
 * Host memory is physically contiguous pages, so its address is the real one; device memory is ordinary
 * kernel memory under an address in one of four HBMs.  A chunk is freed with its last reference: a
 * copy holds one, so nobody can take memory away from under it.
 */
#include <linux/gfp.h>
#include <linux/io.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "tests/vm/standin/driver.h"

#define MC_MAGIC 0x6d63686bu
#define DEVICE_HANDLES (1 << 20)   /* first handle of what lives as long as the device */
#define HBM_RESERVED (16ull << 20) /* at the beginning of each */

static const u64 hbm_base[4] = {0, 0x4000000000ull, 0x800000000000ull, 0x804000000000ull};

void mpset_init(struct neuron_device *nd)
{
	nd->mpset.nd = nd;
	mutex_init(&nd->mpset.lock);
	INIT_LIST_HEAD(&nd->mpset.chunks);
	for (int i = 0; i < 4; i++)
		nd->mpset.next_pa[i] = hbm_base[i] + HBM_RESERVED;
	mutex_init(&nd->nmch.lock);
	idr_init_base(&nd->nmch.handles, 1);
}

dma_addr_t ndma_mc_to_pa(const struct mem_chunk *mc)
{
	return mc->mem_location == MEM_LOC_HOST ? mc->pa | HOST_BIT : mc->pa;
}

/* ---- accounting --------------------------------------------------------------------------- */

/* The sums of the device and of the owner, when it is attached.  With mpset.lock held. */
static void account(struct mempool_set *mpset, const struct mem_chunk *mc, s64 bytes)
{
	bool device = mc->mem_location == MEM_LOC_DEVICE;

	*(device ? &mpset->device_mem_size : &mpset->host_mem_size) += bytes;
	for (int i = 0; i < NEURON_MAX_PROCESS_PER_DEVICE; i++) {
		struct neuron_attached_process *p = &mpset->nd->attached_processes[i];

		if (p->open_count && p->pid == mc->pid)
			p->memory_used[device] += bytes;
	}
}

/* ---- chunks ------------------------------------------------------------------------------- */

static int host_pages(struct mem_chunk *mc)
{
	mc->va = alloc_pages_exact(PAGE_ALIGN(mc->size), GFP_KERNEL | __GFP_ZERO | __GFP_NOWARN);
	if (!mc->va)
		return -ENOMEM;
	mc->pa = virt_to_phys(mc->va);
	return 0;
}

static int device_pages(struct mempool_set *mpset, struct mem_chunk *mc, u64 align)
{
#ifdef STANDIN_230
	u64 *next = &mpset->next_pa[mc->hbm_index];
#else
	u64 *next = &mpset->next_pa[mc->dram_channel];
#endif

	if (mpset->device_mem_size + mc->size > (u64)hbm_mb << 20)
		return -ENOMEM;
	mc->va = vmalloc_user(PAGE_ALIGN(mc->size));
	if (!mc->va)
		return -ENOMEM;
	mc->pa = ALIGN(*next, align);
	*next = mc->pa + PAGE_ALIGN(mc->size);
	return 0;
}

static int make_chunk(struct mempool_set *mpset, struct mem_chunk *mc, u64 align)
{
	int r;

	mutex_lock(&mpset->lock);
	r = mc->mem_location == MEM_LOC_HOST ? host_pages(mc) : device_pages(mpset, mc, align);
	if (r == 0) {
		account(mpset, mc, mc->size);
		list_add_tail(&mc->lifespan_list, &mpset->chunks);
	}
	mutex_unlock(&mpset->lock);
	return r;
}

int KEPT mc_alloc_align(struct neuron_device *nd, enum mc_lifespan lifespan, u64 size, u64 align,
	enum mem_location location, HBM_PARAMETERS, u32 nc_id, mem_alloc_category_t mem_type,
	struct mem_chunk **result)
{
#ifdef STANDIN_230
	u32 channel = hbm_index;
#endif
	struct mem_chunk *mc;
	int r = -EINVAL;

	count_call(nd, FN_mc_alloc_align, size);
	*result = NULL;
	if (!size || size > (u64)hbm_mb << 20 || channel >= 4 || nc_id >= MAX_NC_PER_DEVICE ||
		(align && !is_power_of_2(align)))
		return count_result(nd, FN_mc_alloc_align, r);
	mc = kzalloc(sizeof(*mc), GFP_KERNEL);
	if (!mc)
		return count_result(nd, FN_mc_alloc_align, -ENOMEM);
	mc->magic = MC_MAGIC;
	mc->size = size;
	mc->mpset = &nd->mpset;
#ifdef STANDIN_230
	mc->hbm_index = channel;
#else
	mc->dram_channel = channel;
	mc->dram_region = region;
#endif
	mc->nc_id = nc_id;
	mc->alloc_type = mem_type;
	mc->mem_location = location;
	mc->pid = lifespan == MC_LIFESPAN_DEVICE ? 0 : task_tgid_nr(current);
	mc->ref_count = 1;
	mc->lifespan = lifespan;
	r = make_chunk(&nd->mpset, mc, max_t(u64, align, PAGE_SIZE));
	if (r)
		kfree(mc);
	else
		*result = mc;
	return count_result(nd, FN_mc_alloc_align, r);
}

static void destroy(struct mem_chunk *mc)
{
	mc->magic = 0;
	if (mc->mem_location == MEM_LOC_HOST)
		free_pages_exact(mc->va, PAGE_ALIGN(mc->size));
	else
		vfree(mc->va);
	kfree(mc);
}

void KEPT mc_free(struct mem_chunk **mcp)
{
	struct mem_chunk *mc = *mcp;
	struct mempool_set *mpset;
	bool last;

	*mcp = NULL;
	if (!mc || WARN_ON(mc->magic != MC_MAGIC))
		return;
	mpset = mc->mpset;
	count_call(mpset->nd, FN_mc_free, 0);
	mutex_lock(&mpset->lock);
	last = --mc->ref_count == 0;
	if (last) {
		account(mpset, mc, -(s64)mc->size);
		list_del(&mc->lifespan_list);
	}
	mutex_unlock(&mpset->lock);
	if (last)
		destroy(mc);
}

struct mem_chunk *mpset_search_mc(struct mempool_set *mpset, dma_addr_t address)
{
	struct mem_chunk *mc = NULL;

	list_for_each_entry (mc, &mpset->chunks, lifespan_list) {
		dma_addr_t begin = ndma_mc_to_pa(mc);

		if (address >= begin && address - begin < mc->size)
			return mc;
	}
	return NULL;
}

/* ---- handles ------------------------------------------------------------------------------ */

int nmch_handle_alloc(struct neuron_device *nd, struct mem_chunk *mc, neuron_mc_handle_t *handle)
{
	int first = mc->lifespan == MC_LIFESPAN_DEVICE ? DEVICE_HANDLES : 1, id;

	mutex_lock(&nd->nmch.lock);
	id = idr_alloc(&nd->nmch.handles, mc, first, 0, GFP_KERNEL);
	if (id > 0)
		mc->mc_handle = *handle = id;
	mutex_unlock(&nd->nmch.lock);
	return id > 0 ? 0 : -ENOMEM;
}

struct mem_chunk *nmch_get(struct neuron_device *nd, neuron_mc_handle_t handle)
{
	struct mem_chunk *mc;

	mutex_lock(&nd->nmch.lock);
	mc = handle <= INT_MAX ? idr_find(&nd->nmch.handles, handle) : NULL;
	if (mc) {
		mutex_lock(&nd->mpset.lock);
		mc->ref_count++;
		mutex_unlock(&nd->mpset.lock);
	}
	mutex_unlock(&nd->nmch.lock);
	return mc;
}

struct mem_chunk *nmch_take(struct neuron_device *nd, neuron_mc_handle_t handle)
{
	struct mem_chunk *mc;

	mutex_lock(&nd->nmch.lock);
	mc = handle <= INT_MAX ? idr_remove(&nd->nmch.handles, handle) : NULL;
	if (mc)
		mc->mc_handle = 0;
	mutex_unlock(&nd->nmch.lock);
	return mc;
}

/* ---- ends --------------------------------------------------------------------------------- */

static struct mem_chunk *next_of_process(struct neuron_device *nd, pid_t pid)
{
	struct mem_chunk *mc, *found = NULL;
	int id;

	mutex_lock(&nd->nmch.lock);
	idr_for_each_entry (&nd->nmch.handles, mc, id)
		if (mc->lifespan == MC_LIFESPAN_CUR_PROCESS && (mc->pid == pid || !pid)) {
			idr_remove(&nd->nmch.handles, id);
			mc->mc_handle = 0;
			found = mc;
			break;
		}
	mutex_unlock(&nd->nmch.lock);
	return found;
}

void mpset_free_expired_mc(struct mempool_set *mpset, pid_t pid)
{
	struct mem_chunk *mc;

	while ((mc = next_of_process(mpset->nd, pid)))
		mc_free(&mc);
}

void mpset_destroy(struct neuron_device *nd)
{
	struct mem_chunk *mc;

	while (!list_empty(&nd->mpset.chunks)) {
		mc = list_first_entry(&nd->mpset.chunks, struct mem_chunk, lifespan_list);
		list_del(&mc->lifespan_list);
		destroy(mc);
	}
	idr_destroy(&nd->nmch.handles);
}

/* ---- mmap --------------------------------------------------------------------------------- */

static int map_chunk(struct mem_chunk *mc, struct vm_area_struct *vma)
{
	u64 length = vma->vm_end - vma->vm_start;

	if (length != PAGE_ALIGN(mc->size))
		return -EINVAL;
	if (mc->mem_location == MEM_LOC_HOST)
		return remap_pfn_range(
			vma, vma->vm_start, mc->pa >> PAGE_SHIFT, length, vma->vm_page_prot);
	return remap_vmalloc_range(vma, mc->va, 0);
}

/* The offset is a chunk's device address and the length its size; nothing else can be mapped.  The
 * chunk's reference that a mapping would need is not taken: pages of device memory have their own,
 * and host chunks that are mapped (notification queues) live as long as the device. */
int KEPT nmmap_mem(struct neuron_device *nd, struct vm_area_struct *vma)
{
	dma_addr_t address = (dma_addr_t)vma->vm_pgoff << PAGE_SHIFT;
	struct mem_chunk *mc;
	int r = -EPERM;

	count_call(nd, FN_nmmap_mem, vma->vm_end - vma->vm_start);
	mutex_lock(&nd->mpset.lock);
	mc = mpset_search_mc(&nd->mpset, address);
	if (mc && ndma_mc_to_pa(mc) == address &&
		(mc->mem_location == MEM_LOC_DEVICE || mc->lifespan == MC_LIFESPAN_DEVICE))
		r = map_chunk(mc, vma);
	mutex_unlock(&nd->mpset.lock);
	return count_result(nd, FN_nmmap_mem, r);
}
