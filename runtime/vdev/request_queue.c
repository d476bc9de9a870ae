/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request_queue.c - requests on notification rings and DMA queues, and through them on the cores.
 *
 * Queue `core` of engine VDEV_EXEC_ENGINE is the one that runs models (vdev_abi.h).  The other
 * engines keep the state that is set on them, but there are no descriptors behind it: starting
 * one is refused.
 */
#include "runtime/vdev/request.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "runtime/base/file.h"
#include "runtime/vdev/exec.h"
#include "runtime/vdev/memory.h"
#include "runtime/vdev/user_memory.h"
#include "runtime/vdev/vdev_abi.h"
#include "vmlinux/neuron_args.h"

/* ---- notification rings ------------------------------------------------------------------ */

struct ring_wish {
	uint32_t dev_type, dev_id, type, engine;
	uint32_t size;
	bool host, force;
};

/* Where the handle of such a ring is kept, or NULL. */
static uint64_t *ring_slot(struct vdev_device *device, const struct ring_wish *wish)
{
	if (wish->type >= VDEV_NQ_TYPES || wish->engine >= VDEV_NQ_ENGINES)
		return NULL;
	if (wish->dev_type == NEURON_NQ_DEV_CORE && wish->dev_id < device->vdev->config.cores)
		return &device->core_nq[wish->dev_id][wish->type][wish->engine];
	if (wish->dev_type == NEURON_NQ_DEV_TOP_SP && wish->dev_id < VDEV_MAX_TOP_SP)
		return &device->top_sp_nq[wish->dev_id][wish->type][wish->engine];
	return NULL;
}

/* The core writes its records into this ring from now on.  Each core has the TopSP of its number. */
static void bind_ring(
	struct vdev_device *device, const struct ring_wish *wish, struct vdev_memory *memory)
{
	struct vdev_core *core;

	if (wish->dev_id >= device->vdev->config.cores)
		return;
	core = &device->cores[wish->dev_id];
	pthread_mutex_lock(&core->lock);
	vdev_ring_bind(wish->dev_type == NEURON_NQ_DEV_TOP_SP
			       ? &core->rings.top_sp[wish->type][wish->engine]
			       : &core->rings.core[wish->type][wish->engine],
		memory);
	pthread_mutex_unlock(&core->lock);
}

/* A second init with the same key gives the same memory, whatever size it asks for, unless
 * forced. */
static struct vdev_memory *existing_ring(struct vdev_call *call, const struct ring_wish *wish)
{
	struct vdev_memory *memory = NULL;
	uint64_t *slot;

	pthread_mutex_lock(&call->device->lock);
	slot = ring_slot(call->device, wish);
	if (*slot && !wish->force)
		memory = vdev_memory_get_locked(call->device, call->tgid, *slot);
	pthread_mutex_unlock(&call->device->lock);
	return memory;
}

static struct vdev_memory *install_ring(
	struct vdev_call *call, const struct ring_wish *wish, struct vdev_memory *made)
{
	struct vdev_device *device = call->device;
	uint64_t *slot;

	pthread_mutex_lock(&device->lock);
	slot = ring_slot(device, wish);
	if (*slot && !wish->force) { /* another thread was first */
		vdev_memory_free_locked(device, made->handle);
		vdev_memory_put(made);
		made = vdev_memory_ref(device->memories[*slot - 1]);
	} else {
		if (*slot)
			vdev_memory_free_locked(device, *slot);
		*slot = made->handle;
		bind_ring(device, wish, made);
	}
	pthread_mutex_unlock(&device->lock);
	return made;
}

static int init_ring(struct vdev_call *call, const struct ring_wish *wish, uint64_t *ret_offset,
	uint64_t *ret_handle)
{
	_cleanup_memory_ struct vdev_memory *memory = NULL;
	int r;

	if (!ring_slot(call->device, wish) || wish->size < 2 * sizeof(struct notification) ||
		(wish->size & (wish->size - 1)))
		return -EINVAL;
	memory = existing_ring(call, wish);
	if (!memory) {
		r = vdev_memory_alloc(call->device, call->tgid,
			&(struct vdev_memory_wish){.size = wish->size, .host = wish->host},
			&memory);
		if (r < 0)
			return r;
		memory = install_ring(call, wish, memory);
	}
	*ret_offset = memory->host ? memory->address : UINT64_MAX;
	if (ret_handle)
		*ret_handle = memory->handle;
	call->write_back = true;
	return 0;
}

static int notifications_init_v1(struct vdev_call *call, void *arg)
{
	struct neuron_notifications_init_v1 *a = arg;

	return init_ring(call,
		&(struct ring_wish){
			.dev_type = NEURON_NQ_DEV_CORE,
			.dev_id = a->nc_id,
			.type = a->nq_type,
			.engine = a->engine_index,
			.size = a->size,
			.host = true,
		},
		&a->mmap_offset, NULL);
}

/* V2, and the form with realloc, which begins the same way. */
static struct ring_wish wish_of(const void *arg)
{
	const struct neuron_notifications_init_v2 *a = arg;

	return (struct ring_wish){
		.dev_type = a->nq_dev_type,
		.dev_id = a->nq_dev_id,
		.type = a->nq_type,
		.engine = a->engine_index,
		.size = a->size,
		.host = a->on_host_memory,
	};
}
static_assert(offsetof(struct neuron_notifications_init_v2, on_host_memory) ==
		      offsetof(struct neuron_notifications_init_with_realloc_v2, on_host_memory),
	"common beginning");

static int notifications_init_v2(struct vdev_call *call, void *arg)
{
	struct neuron_notifications_init_v2 *a = arg;
	struct ring_wish wish = wish_of(a);

	return init_ring(call, &wish, &a->mmap_offset, &a->mem_handle);
}

static int notifications_init_with_realloc_v2(struct vdev_call *call, void *arg)
{
	struct neuron_notifications_init_with_realloc_v2 *a = arg;
	struct ring_wish wish = wish_of(a);

	wish.force = a->force_alloc_mem;
	return init_ring(call, &wish, &a->mmap_offset, &a->mem_handle);
}

static int notifications_queue_info(struct vdev_call *call, void *arg)
{
	(void)call;
	(void)arg;
	return -EPERM;
}

/* ---- queues ------------------------------------------------------------------------------ */

static struct vdev_queue *find_queue(struct vdev_device *device, uint32_t engine, uint32_t queue)
{
	if (engine == VDEV_EXEC_ENGINE)
		return queue < device->vdev->config.cores ? &device->exec_queues[queue] : NULL;
	if (engine < vdev_arch_of(device->vdev)->engines && queue < VDEV_QUEUES_PER_ENGINE)
		return &device->queues[engine][queue];
	return NULL;
}

/* device->lock held.  Handle 0 is no memory. */
static int take_memory(struct vdev_call *call, uint64_t handle, struct vdev_memory **ret)
{
	if (!handle)
		return 0;
	*ret = vdev_memory_get_locked(call->device, call->tgid, handle);
	return *ret ? 0 : -EINVAL;
}

/* What the owner of a queue has on its core ends when the queue is released or bound anew. */
static void end_launches(struct vdev_call *call, uint32_t engine, uint32_t queue)
{
	if (engine == VDEV_EXEC_ENGINE)
		vdev_core_cancel(&call->device->cores[queue], call->tgid);
}

/* When the request returns, what it ended does not write any more. */
static void await_launches(struct vdev_call *call, uint32_t engine, uint32_t queue)
{
	if (engine == VDEV_EXEC_ENGINE)
		vdev_core_await_cancelled(&call->device->cores[queue]);
}

/* device->lock held */
static int set_queue(struct vdev_call *call, const struct neuron_dma_queue_init *a)
{
	struct vdev_queue *queue = find_queue(call->device, a->eng_id, a->qid);
	bool exec = a->eng_id == VDEV_EXEC_ENGINE;
	struct vdev_queue fresh = {
		.ready = true,
		.owner = call->tgid,
		.tx_count = a->tx_desc_count,
		.rx_count = a->rx_desc_count,
	};

	if (!queue || (exec && (!a->tx_handle || !a->rx_handle)))
		return -EINVAL;
	if (!vdev_attached_locked(call->device, call->tgid))
		return -EACCES;
	if (exec && queue->ready && queue->owner != call->tgid)
		return -EBUSY;
	if (take_memory(call, a->tx_handle, &fresh.tx) < 0 ||
		take_memory(call, a->rx_handle, &fresh.rx) < 0 ||
		take_memory(call, a->rxc_handle, &fresh.rxc) < 0) {
		vdev_queue_clear(&fresh);
		return -EINVAL;
	}
	if (queue->ready)
		end_launches(call, a->eng_id, a->qid);
	fresh.ran = queue->ran;
	queue->ran = NULL;
	vdev_queue_clear(queue);
	*queue = fresh;
	return 0;
}

static int dma_queue_init(struct vdev_call *call, void *arg)
{
	const struct neuron_dma_queue_init *a = arg;
	int r;

	pthread_mutex_lock(&call->device->lock);
	r = set_queue(call, arg);
	pthread_mutex_unlock(&call->device->lock);
	if (r == 0)
		await_launches(call, a->eng_id, a->qid);
	return r;
}

/* device->lock held.  The caller's own initialised queue, or NULL. */
static struct vdev_queue *own_queue(struct vdev_call *call, uint32_t engine, uint32_t qid)
{
	struct vdev_queue *queue = find_queue(call->device, engine, qid);

	return queue && queue->ready && queue->owner == call->tgid ? queue : NULL;
}

static int dma_queue_release(struct vdev_call *call, void *arg)
{
	const struct neuron_dma_queue_release *a = arg;
	struct vdev_queue *queue;

	pthread_mutex_lock(&call->device->lock);
	queue = own_queue(call, a->eng_id, a->qid);
	if (queue) {
		end_launches(call, a->eng_id, a->qid);
		vdev_queue_clear(queue);
	}
	pthread_mutex_unlock(&call->device->lock);
	if (queue)
		await_launches(call, a->eng_id, a->qid);
	return queue ? 0 : -EINVAL;
}

/* Under device->lock from the check of the owner to the queue of the core, so that a detach
 * finds either no launch or this one. */
static int launch(struct vdev_call *call, const struct neuron_dma_queue_copy_start *a)
{
	struct vdev_queue *queue = own_queue(call, a->eng_id, a->qid);
	struct vdev_launch *made;
	int r;

	if (!queue || a->eng_id != VDEV_EXEC_ENGINE)
		return -EINVAL;
	made = vdev_launch_read(call->device, call->tgid, queue->tx, queue->rx);
	if (!made)
		return -ENOMEM;
	made->number = a->tx_desc_count;
	made->switched = queue->ran && queue->ran != queue->tx;
	r = vdev_core_submit(&call->device->cores[a->qid], made);
	if (r < 0) {
		vdev_launch_free(made);
		return r;
	}
	vdev_memory_put(queue->ran);
	queue->ran = vdev_memory_ref(queue->tx);
	return 0;
}

static int dma_queue_copy_start(struct vdev_call *call, void *arg)
{
	int r;

	pthread_mutex_lock(&call->device->lock);
	r = launch(call, arg);
	pthread_mutex_unlock(&call->device->lock);
	return r;
}

/* Acknowledging more than has completed is cut off, not an error: the driver only moves a
 * pointer. */
static void acknowledge(struct vdev_core *core, uint32_t count)
{
	uint64_t open;

	pthread_mutex_lock(&core->lock);
	open = core->completed - core->acknowledged;
	core->acknowledged += count < open ? count : open;
	vdev_rings_acknowledge(&core->rings, core->acknowledged, core->completed);
	pthread_mutex_unlock(&core->lock);
}

static int dma_ack_completed(struct vdev_call *call, void *arg)
{
	const struct neuron_dma_ack_completed *a = arg;
	bool own;

	pthread_mutex_lock(&call->device->lock);
	own = own_queue(call, a->eng_id, a->qid);
	if (own && a->eng_id == VDEV_EXEC_ENGINE)
		acknowledge(&call->device->cores[a->qid], a->count);
	pthread_mutex_unlock(&call->device->lock);
	return own ? 0 : -EINVAL;
}

/* device->lock held */
static void queue_state(struct vdev_call *call, const struct neuron_dma_queue_get_state *a,
	const struct vdev_queue *queue, struct neuron_dma_queue_state *tx,
	struct neuron_dma_queue_state *rx)
{
	*tx = (struct neuron_dma_queue_state){.length = queue->tx_count};
	*rx = (struct neuron_dma_queue_state){.length = queue->rx_count};
	tx->base_addr = queue->tx ? queue->tx->address : 0;
	rx->base_addr = queue->rx ? queue->rx->address : 0;
	rx->completion_base_addr = queue->rxc ? queue->rxc->address : 0;
	if (a->eng_id == VDEV_EXEC_ENGINE) {
		struct vdev_core *core = &call->device->cores[a->qid];

		pthread_mutex_lock(&core->lock);
		tx->tail_pointer = rx->tail_pointer = (uint32_t)core->submitted;
		tx->head_pointer = rx->head_pointer = (uint32_t)core->completed;
		rx->completion_head = (uint32_t)core->acknowledged;
		pthread_mutex_unlock(&core->lock);
	}
}

static int dma_queue_get_state(struct vdev_call *call, void *arg)
{
	const struct neuron_dma_queue_get_state *a = arg;
	struct neuron_dma_queue_state tx, rx;
	struct vdev_queue *queue;
	int r;

	pthread_mutex_lock(&call->device->lock);
	queue = find_queue(call->device, a->eng_id, a->qid);
	if (queue)
		queue_state(call, a, queue, &tx, &rx);
	pthread_mutex_unlock(&call->device->lock);
	if (!queue)
		return -EINVAL;
	r = vdev_user_write(call->tid, a->tx, &tx, sizeof(tx));
	return r < 0 ? r : vdev_user_write(call->tid, a->rx, &rx, sizeof(rx));
}

/* DMA_ENG_INIT, DMA_ENG_SET_STATE: the number of the engine is the first word of both. */
static int check_engine(struct vdev_call *call, void *arg)
{
	const struct neuron_dma_eng_init *a = arg;

	return find_queue(call->device, a->eng_id, 0) ? 0 : -EINVAL;
}

/* The driver says -ENOIOCTLCMD, which the kernel turns into this. */
static int dma_quiesce_queues(struct vdev_call *call, void *arg)
{
	(void)call;
	(void)arg;
	return -ENOTTY;
}

const struct vdev_request vdev_requests_queue[] = {
	{NEURON_IOCTL_NOTIFICATIONS_INIT_V1, notifications_init_v1},
	{NEURON_IOCTL_NOTIFICATIONS_INIT_V2, notifications_init_v2},
	{NEURON_IOCTL_NOTIFICATIONS_INIT_WITH_REALLOC_V2, notifications_init_with_realloc_v2},
	{NEURON_IOCTL_NOTIFICATIONS_DESTROY_V1, vdev_answer_nothing},
	{NEURON_IOCTL_NOTIFICATIONS_QUEUE_INFO, notifications_queue_info},
	{NEURON_IOCTL_THROTTLING_NOTIFICATIONS, vdev_answer_nothing},
	{NEURON_IOCTL_DMA_ENG_INIT, check_engine},
	{NEURON_IOCTL_DMA_ENG_SET_STATE, check_engine},
	{NEURON_IOCTL_DMA_QUEUE_INIT, dma_queue_init},
	{NEURON_IOCTL_DMA_QUEUE_RELEASE, dma_queue_release},
	{NEURON_IOCTL_DMA_QUEUE_COPY_START, dma_queue_copy_start},
	{NEURON_IOCTL_DMA_ACK_COMPLETED, dma_ack_completed},
	{NEURON_IOCTL_DMA_QUEUE_GET_STATE, dma_queue_get_state},
	{NEURON_IOCTL_DMA_QUIESCE_QUEUES, dma_quiesce_queues},
	{0, NULL},
};
