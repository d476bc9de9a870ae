// SPDX-License-Identifier: GPL-2.0-only
/* requests_core.c - requests on cores: marks, resets, state, semaphores, notifications; see requests.h. */
#include "tests/vm/standin/requests.h"

typedef struct neuron_device device;
typedef const struct request request;

/* ---- marks -------------------------------------------------------------------------------- */

static long mark(device *nd, request *q, void *arg, void __user *user)
{
	struct neuron_crwl_nc_map_ext map = {}; /* begins as the shorter form */
	long r, left;

	memcpy(&map, arg, q->size);
	memset(map.bitmap, 0, sizeof(map.bitmap));
	map.max_nc_available = 0;
	r = ncrwl_nc_range_mark(nd, map.nc_count, map.start_nc_index, map.end_nc_index,
		&map.max_nc_available, map.bitmap);
	left = put_back(q, &map, user);
	return r ? r : left;
}

static long unmark(device *nd, request *q, void *arg, void __user *user)
{
	struct neuron_crwl_nc_map_ext map = {};

	memcpy(&map, arg, q->size);
	ncrwl_nc_range_unmark(nd, map.bitmap);
	return 0;
}

/* ---- resets ------------------------------------------------------------------------------- */

static long nc_reset(device *nd, request *q, void *arg, void __user *user)
{
	struct neuron_device_reset *a = arg;
	long r;

	mutex_lock(&nd->nr.nr_lock);
	a->request_id = ++nd->nr.next_id;
	mutex_unlock(&nd->nr.nr_lock);
	r = nr_start_ncs(nd, a->nc_map, a->request_id);
	return r ? r : put_back(q, a, user);
}

static long nc_reset_ready(device *nd, request *q, void *arg, void __user *user)
{
	struct neuron_device_ready *a = arg;
	long r = nr_wait(nd, a->request_id, true);

	if (r < 0)
		return r;
	a->result = r;
	return put_back(q, a, user);
}

/* ---- state -------------------------------------------------------------------------------- */

static long cinit(device *nd, request *q, void *arg, void __user *user)
{
	struct neuron_cinit_set *a = arg;

	if (a->nc_id >= MAX_NC_PER_DEVICE)
		return -EINVAL;
	nd->cinit_state[a->nc_id] = a->new_state = a->state;
	return put_back(q, a, user);
}

struct started_count {
	u32 nc_id;
	u64 started_count;
};

static long model_started_count(device *nd, request *q, void *arg, void __user *user)
{
	struct started_count *a = arg;

	BUILD_BUG_ON(sizeof(*a) != ARG_NC_MODEL_STARTED_COUNT);
	if (a->nc_id >= MAX_NC_PER_DEVICE)
		return -EINVAL;
	a->started_count = nd->nc_model_started_count[a->nc_id];
	return put_back(q, a, user);
}

static u32 *word_at(u32 words[MAX_NC_PER_DEVICE][256], const struct neuron_semaphore *a)
{
	return a->nc_id < MAX_NC_PER_DEVICE && a->index < 256 ? &words[a->nc_id][a->index] : NULL;
}

static long semaphore(device *nd, request *q, void *arg, void __user *user)
{
	struct neuron_semaphore *a = arg;
	u32 *word = word_at(nd->semaphores, a);

	if (!word)
		return -EINVAL;
	switch (q->cmd) {
	case NEURON_IOCTL_SEMAPHORE_INCREMENT:
		*word += a->value;
		return 0;
	case NEURON_IOCTL_SEMAPHORE_DECREMENT:
		*word -= a->value;
		return 0;
	case NEURON_IOCTL_SEMAPHORE_WRITE:
		*word = a->value;
		return 0;
	}
	a->value = *word;
	return put_back(q, a, user);
}

static long event(device *nd, request *q, void *arg, void __user *user)
{
	struct neuron_semaphore *a = arg;
	u32 *word = word_at(nd->events, a);

	if (!word)
		return -EINVAL;
	if (q->cmd == NEURON_IOCTL_EVENT_SET) {
		*word = a->value;
		return 0;
	}
	a->value = *word;
	return put_back(q, a, user);
}

/* ---- notification queues ------------------------------------------------------------------ */

/* A queue and the handle of its memory, which is made once. */
static long make_queue(device *nd, const struct neuron_notifications_init_v2 *a, bool force,
	u64 *mmap_offset, u64 *mem_handle)
{
	bool ts = a->nq_dev_type == NEURON_NQ_DEV_TOP_SP;
	struct mem_chunk *mc = NULL;
	long r;

	if (a->nq_dev_id > 255 || a->engine_index > 255)
		return -EINVAL;
	r = (ts ? ts_nq_init : nnq_init)(nd, a->nq_dev_id, a->engine_index, a->nq_type, a->size,
		a->on_host_memory, HBM_ARGUMENTS(a->dram_channel, a->dram_region), force, &mc,
		mmap_offset);
	if (r)
		return r;
	*mem_handle = mc->mc_handle;
	return mc->mc_handle ? 0 : nmch_handle_alloc(nd, mc, mem_handle);
}

static long notifications_v1(device *nd, request *q, void *arg, void __user *user)
{
	struct neuron_notifications_init_v1 *a = arg;
	struct neuron_notifications_init_v2 wish = {
		.nq_dev_id = a->nc_id,
		.nq_type = a->nq_type,
		.engine_index = a->engine_index,
		.size = a->size,
		.on_host_memory = 1,
	};
	u64 handle;
	long r = make_queue(nd, &wish, false, &a->mmap_offset, &handle);

	return r ? r : put_back(q, a, user);
}

static long notifications_v2(device *nd, request *q, void *arg, void __user *user)
{
	struct neuron_notifications_init_v2 *a = arg;
	long r = make_queue(nd, a, false, &a->mmap_offset, &a->mem_handle);

	return r ? r : put_back(q, a, user);
}

static long notifications_realloc(device *nd, request *q, void *arg, void __user *user)
{
	struct neuron_notifications_init_with_realloc_v2 *a = arg;
	struct neuron_notifications_init_v2 wish;
	long r;

	memcpy(&wish, a, offsetof(struct neuron_notifications_init_v2, mmap_offset));
	r = make_queue(nd, &wish, a->force_alloc_mem, &a->mmap_offset, &a->mem_handle);
	return r ? r : put_back(q, a, user);
}

static long queue_info(device *nd, request *q, void *arg, void __user *user)
{
	return -EPERM;
}

const struct request requests_core[] = {
	REQUEST(CRWL_NC_RANGE_MARK, mark),
	REQUEST(CRWL_NC_RANGE_MARK_EXT0, mark),
	REQUEST(CRWL_NC_RANGE_UNMARK, unmark),
	REQUEST(CRWL_NC_RANGE_UNMARK_EXT0, unmark),
	REQUEST(NC_RESET, nc_reset),
	REQUEST(NC_RESET_READY, nc_reset_ready),
	REQUEST(CINIT_SET_STATE, cinit),
	REQUEST(NC_MODEL_STARTED_COUNT, model_started_count),
	REQUEST(SEMAPHORE_INCREMENT, semaphore),
	REQUEST(SEMAPHORE_DECREMENT, semaphore),
	REQUEST(SEMAPHORE_READ, semaphore),
	REQUEST(SEMAPHORE_WRITE, semaphore),
	REQUEST(EVENT_SET, event),
	REQUEST(EVENT_GET, event),
	REQUEST(NOTIFICATIONS_INIT_V1, notifications_v1),
	REQUEST(NOTIFICATIONS_DESTROY_V1, answer_nothing),
	REQUEST(NOTIFICATIONS_INIT_V2, notifications_v2),
	REQUEST(NOTIFICATIONS_INIT_WITH_REALLOC_V2, notifications_realloc),
	REQUEST(NOTIFICATIONS_QUEUE_INFO, queue_info),
	{},
};
