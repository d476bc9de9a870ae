/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensor_storage.c - what the bytes of tensors lie in: device memory, host memory of ours, memory of the
 * program; views of it; and executions that use them.
 */
#include "runtime/exec/tensor.h"

#include <stdlib.h>

#include "runtime/exec/work_queue.h"
#include "runtime/trace/payload.h"
#include "runtime/trace/trace.h"

/* ---- storage ------------------------------------------------------------------------------ */

static void storage_destroy(struct tensor_storage *s)
{
	memory_free(&s->memory);
	if (!s->attached)
		free(s->host);
	pthread_cond_destroy(&s->less_used);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

void tensor_storage_put(struct tensor_storage *s)
{
	if (s && atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) == 1)
		storage_destroy(s);
}

static struct tensor_storage *storage_new(nrt_tensor_placement_t placement, uint64_t size)
{
	struct tensor_storage *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	atomic_init(&s->refs, 1);
	s->placement = placement;
	s->size = size;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->less_used, NULL);
	return s;
}

/* Hands the storage out, or takes it back when it did not get its memory. */
static NRT_STATUS hand_out(struct tensor_storage *s, NRT_STATUS status, struct tensor_storage **ret)
{
	if (status)
		tensor_storage_put(s);
	else
		*ret = s;
	return status;
}

NRT_STATUS tensor_storage_device(const struct device_core *core, uint32_t nc, const char *name,
	uint64_t size, struct tensor_storage **ret)
{
	struct tensor_storage *s = storage_new(NRT_TENSOR_PLACEMENT_DEVICE, size);
	NRT_STATUS status;

	if (!s)
		return NRT_RESOURCE;
	status = memory_alloc(core, nc, MEMORY_TENSOR, size, &s->memory);
	if (!status)
		memory_name(&s->memory, name);
	return hand_out(s, status, ret);
}

NRT_STATUS tensor_storage_host(uint64_t size, struct tensor_storage **ret)
{
	struct tensor_storage *s = storage_new(NRT_TENSOR_PLACEMENT_HOST, size);

	if (!s)
		return NRT_RESOURCE;
	s->host = malloc(size);
	return hand_out(s, s->host ? NRT_SUCCESS : NRT_RESOURCE, ret);
}

NRT_STATUS tensor_storage_attach(void *host, uint64_t size, struct tensor_storage **ret)
{
	struct tensor_storage *s = storage_new(NRT_TENSOR_PLACEMENT_HOST, size);

	if (!s)
		return NRT_RESOURCE;
	s->host = host;
	s->attached = true;
	return hand_out(s, NRT_SUCCESS, ret);
}

/* ---- views -------------------------------------------------------------------------------- */

struct tensor_view tensor_view_get(struct nrt_tensor *t)
{
	struct tensor_view v;

	pthread_mutex_lock(&t->lock);
	v = t->view;
	if (v.storage)
		atomic_fetch_add_explicit(&v.storage->refs, 1, memory_order_relaxed);
	pthread_mutex_unlock(&t->lock);
	return v;
}

void tensor_view_put(struct tensor_view *v)
{
	tensor_storage_put(v->storage);
	v->storage = NULL;
}

uint8_t *tensor_view_host(const struct tensor_view *v)
{
	return v->storage && v->storage->host ? v->storage->host + v->offset : NULL;
}

/* ---- uses by executions ------------------------------------------------------------------- */

void tensor_use_begin(struct nrt_tensor *t, bool writes, struct tensor_use *use)
{
	struct tensor_storage *s;

	*use = (struct tensor_use){.view = tensor_view_get(t), .writes = writes};
	s = use->view.storage;
	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	use->next = s->uses;
	s->uses = use;
	pthread_mutex_unlock(&s->lock);
}

void tensor_use_runs(struct tensor_use *use)
{
	struct tensor_storage *s = use->view.storage;

	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	use->runs = true;
	pthread_mutex_unlock(&s->lock);
}

void tensor_use_end(struct tensor_use *use)
{
	struct tensor_storage *s = use->view.storage;
	struct tensor_use **link;

	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	for (link = &s->uses; *link != use;)
		link = &(*link)->next;
	*link = use->next;
	pthread_cond_broadcast(&s->less_used);
	pthread_mutex_unlock(&s->lock);
	tensor_view_put(&use->view);
}

/* Counts the uses that a transfer would disturb.  Under the storage's lock. */
static bool disturbs(const struct tensor_view *v, bool writes, struct trace_tensor_block *count)
{
	bool called_back = work_queue_tells();

	count->pending_reader_count = count->pending_writer_count = 0;
	for (const struct tensor_use *u = v->storage->uses; u; u = u->next) {
		if (u->view.offset >= v->offset + v->size ||
			v->offset >= u->view.offset + u->view.size || (called_back && !u->runs))
			continue;
		if (u->writes)
			count->pending_writer_count++;
		else if (writes)
			count->pending_reader_count++;
	}
	return count->pending_reader_count || count->pending_writer_count;
}

void tensor_wait_unused(const struct nrt_tensor *t, const struct tensor_view *v, bool writes)
{
	struct trace_tensor_block payload = {.tensor_id = t->id};
	struct tensor_storage *s = v->storage;
	struct trace_span span;

	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	if (disturbs(v, writes, &payload)) {
		span = trace_start(t->nc, TRACE_TENSOR_BLOCK_WHILE_EXEC, &payload, sizeof(payload));
		while (disturbs(v, writes, &payload))
			pthread_cond_wait(&s->less_used, &s->lock);
		trace_stop(&span, NRT_SUCCESS, NULL, 0);
	}
	pthread_mutex_unlock(&s->lock);
}
