/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensor.c - tensors: allocating and freeing them, slices, the program's memory, questions.
 *
 * Slices and empty tensors make no event: none of the types is for them (ours).
 */
#include "runtime/exec/tensor.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "runtime/device/simulate.h"
#include "runtime/lifecycle/core_dump.h"
#include "runtime/lifecycle/runtime.h"
#include "runtime/log/log.h"
#include "runtime/trace/payload.h"
#include "runtime/trace/trace.h"

#define TAG "NRT"

static _Atomic uint64_t last_id;

void tensor_put(struct nrt_tensor *t)
{
	if (t)
		object_put(&t->object);
}

static void tensor_destroy(struct object *o)
{
	struct nrt_tensor *t = (struct nrt_tensor *)o;

	tensor_view_put(&t->view);
	pthread_cond_destroy(&t->counted);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

static void failed_on(const char *call, uint32_t nc, NRT_STATUS status)
{
	if (status)
		core_dump(&(struct core_dump_of){.location = call,
			.code = status,
			.logical_core = nc,
			.has_core = nc != TRACE_NC_UNKNOWN});
}

void tensor_failed(const char *call, const struct nrt_tensor *t, NRT_STATUS status)
{
	failed_on(call, t ? t->nc : TRACE_NC_UNKNOWN, status);
}

/* ---- allocating --------------------------------------------------------------------------- */

/* A handle without memory, not yet published; NULL: no memory. */
static struct nrt_tensor *handle_new(uint32_t nc, const char *name)
{
	struct nrt_tensor *t = calloc(1, sizeof(*t));
	pthread_condattr_t monotonic;

	if (!t)
		return NULL;
	t->id = atomic_fetch_add(&last_id, 1) + 1;
	t->nc = nc;
	(void)snprintf(t->name, sizeof(t->name), "%s", name ? name : "");
	pthread_mutex_init(&t->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&t->counted, &monotonic);
	pthread_condattr_destroy(&monotonic);
	return t;
}

/* The whole storage becomes the tensor's. */
static struct tensor_view view_of(struct tensor_storage *s)
{
	return (struct tensor_view){.storage = s, .size = s->size};
}

static void publish(struct nrt_tensor *t, nrt_tensor_t **ret)
{
	*ret = object_publish(&t->object, OBJECT_TENSOR, tensor_destroy);
}

static NRT_STATUS no_handle_place(const char *call)
{
	log_write(LOG_LEVEL_ERROR, TAG, call, "No place for the tensor's handle (NULL)");
	return NRT_INVALID;
}

static NRT_STATUS check_new(
	nrt_tensor_placement_t placement, const struct device_core *core, int vnc, size_t size)
{
	if (placement == NRT_TENSOR_PLACEMENT_VIRTUAL)
		log_error(TAG, "Cannot allocate a tensor: placement VIRTUAL (%d) is not supported",
			(int)placement);
	else if (placement != NRT_TENSOR_PLACEMENT_DEVICE && placement != NRT_TENSOR_PLACEMENT_HOST)
		log_error(
			TAG, "Cannot allocate a tensor: there is no placement %d", (int)placement);
	else if (!core)
		log_error(TAG,
			"Cannot allocate a tensor: there is no core %d; this process has %u, from "
			"0",
			vnc, device_logical_count(runtime_get()->devices));
	else if (size == 0)
		log_error(TAG, "Cannot allocate a tensor of 0 bytes");
	else
		return NRT_SUCCESS;
	return NRT_INVALID;
}

static NRT_STATUS tensor_new(nrt_tensor_placement_t placement, int vnc, size_t size,
	const char *name, nrt_tensor_t **ret)
{
	const struct device_core *core = runtime_core(vnc);
	struct trace_tensor payload = {.size = size};
	struct trace_span span;
	struct tensor_storage *storage;
	struct nrt_tensor *t;
	NRT_STATUS status;

	status = check_new(placement, core, vnc, size);
	if (status)
		return status;
	if (placement == NRT_TENSOR_PLACEMENT_DEVICE &&
		simulate_lacks(runtime_get()->devices, SIMULATE_TENSOR))
		return NRT_INVALID;
	t = handle_new((uint32_t)vnc, name);
	if (!t)
		return NRT_RESOURCE;
	payload.tensor_id = t->id;
	trace_core_touch(t->nc);
	span = trace_start(t->nc, TRACE_TENSOR_ALLOC, &payload, sizeof(payload));
	if (placement == NRT_TENSOR_PLACEMENT_DEVICE)
		status = tensor_storage_device(core, t->nc, name, size, &storage);
	else
		status = tensor_storage_host(size, &storage);
	trace_stop(&span, status, NULL, 0);
	if (status) {
		tensor_destroy(&t->object);
		return status;
	}
	t->view = view_of(storage);
	publish(t, ret);
	return NRT_SUCCESS;
}

NRT_STATUS nrt_tensor_allocate(nrt_tensor_placement_t placement, int vnc, size_t size,
	const char *name, nrt_tensor_t **tensor)
{
	NRT_STATUS status = api_enter(__func__);

	if (status)
		return status;
	status =
		tensor ? tensor_new(placement, vnc, size, name, tensor) : no_handle_place(__func__);
	failed_on(__func__, runtime_core(vnc) ? (uint32_t)vnc : TRACE_NC_UNKNOWN, status);
	api_leave();
	return status;
}

/* ---- slices ------------------------------------------------------------------------------- */

static NRT_STATUS slice_new(struct nrt_tensor *source, uint64_t offset, uint64_t size,
	const char *name, nrt_tensor_t **ret)
{
	struct tensor_view view = tensor_view_get(source), part;
	NRT_STATUS status = tensor_part(source, &view, offset, size, &part);
	struct nrt_tensor *t;

	if (!status && size == 0) {
		log_error(TAG, "Cannot make a slice of 0 bytes");
		status = NRT_INVALID;
	}
	if (status) {
		tensor_view_put(&view);
		return status;
	}
	t = handle_new(source->nc, name);
	if (!t) {
		tensor_view_put(&view);
		return NRT_RESOURCE;
	}
	t->view = part; /* with the reference of view */
	publish(t, ret);
	return NRT_SUCCESS;
}

NRT_STATUS nrt_tensor_allocate_slice(const nrt_tensor_t *tensor_source, size_t offset, size_t size,
	const char *name, nrt_tensor_t **tensor_slice)
{
	NRT_STATUS status = api_enter(__func__);
	struct object *o;

	if (status)
		return status;
	status = tensor_slice ? object_get(tensor_source, OBJECT_TENSOR, &o)
			      : no_handle_place(__func__);
	if (!status) {
		status = slice_new((struct nrt_tensor *)o, offset, size, name, tensor_slice);
		object_put(o);
	}
	api_leave();
	return status;
}

/* ---- the program's memory ----------------------------------------------------------------- */

NRT_STATUS nrt_tensor_allocate_empty(const char *name, nrt_tensor_t **tensor)
{
	NRT_STATUS status = api_enter(__func__);

	if (status)
		return status;
	if (!tensor) {
		status = no_handle_place(__func__);
	} else {
		struct nrt_tensor *t = handle_new(TRACE_NC_UNKNOWN, name);

		status = t ? NRT_SUCCESS : NRT_RESOURCE;
		if (t)
			publish(t, tensor);
	}
	api_leave();
	return status;
}

static NRT_STATUS attach(struct nrt_tensor *t, void *buffer, uint64_t size)
{
	struct tensor_storage *storage;
	struct tensor_view old;
	NRT_STATUS status;

	if (!buffer || size == 0) {
		log_error(TAG, "Cannot attach %s", buffer ? "0 bytes" : "no buffer (NULL)");
		return NRT_INVALID;
	}
	status = tensor_storage_attach(buffer, size, &storage);
	if (status)
		return status;
	pthread_mutex_lock(&t->lock);
	old = t->view;
	t->view = view_of(storage);
	pthread_mutex_unlock(&t->lock);
	tensor_view_put(&old);
	return NRT_SUCCESS;
}

NRT_STATUS nrt_tensor_attach_buffer(nrt_tensor_t *tensor, void *buffer, size_t size)
{
	NRT_STATUS status = api_enter(__func__);
	struct object *o;

	if (status)
		return status;
	status = object_get(tensor, OBJECT_TENSOR, &o);
	if (!status) {
		status = attach((struct nrt_tensor *)o, buffer, size);
		object_put(o);
	}
	api_leave();
	return status;
}

/* ---- freeing ------------------------------------------------------------------------------ */

static void tensor_free(struct nrt_tensor *t)
{
	struct tensor_view view = tensor_view_get(t);
	struct trace_tensor payload = {
		.tensor_id = t->id, .size = view.size, .ref_count = atomic_load(&t->object.refs)};
	struct trace_span span = trace_start(t->nc, TRACE_TENSOR_FREE, &payload, sizeof(payload));

	tensor_view_put(&view); /* the last reference, and the request, are inside of the span */
	tensor_put(t);
	trace_stop(&span, NRT_SUCCESS, NULL, 0);
}

void nrt_tensor_free(nrt_tensor_t **tensor)
{
	struct object *o;

	if (!tensor || !*tensor || api_enter(__func__))
		return;
	if (object_retire(*tensor, OBJECT_TENSOR, &o) == NRT_SUCCESS)
		tensor_free((struct nrt_tensor *)o);
	*tensor = NULL;
	api_leave();
}

/* ---- questions ---------------------------------------------------------------------------- */

size_t nrt_tensor_get_size(const nrt_tensor_t *tensor)
{
	struct object *o;
	size_t size = 0;

	if (api_enter(__func__))
		return 0;
	if (object_get(tensor, OBJECT_TENSOR, &o) == NRT_SUCCESS) {
		struct tensor_view view = tensor_view_get((struct nrt_tensor *)o);

		size = view.size;
		tensor_view_put(&view);
		object_put(o);
	}
	api_leave();
	return size;
}

void *nrt_tensor_get_va(const nrt_tensor_t *tensor)
{
	struct object *o;
	void *va = NULL;

	if (api_enter(__func__))
		return NULL;
	if (object_get(tensor, OBJECT_TENSOR, &o) == NRT_SUCCESS) {
		struct tensor_view view = tensor_view_get((struct nrt_tensor *)o);

		va = tensor_view_host(&view);
		tensor_view_put(&view);
		object_put(o);
	}
	api_leave();
	return va;
}

static NRT_STATUS describe_memory(const struct nrt_tensor *t, const struct tensor_view *v,
	nrt_tensor_device_allocation_info_t *ret)
{
	const struct device_memory *m;

	if (!tensor_view_on_device(v)) {
		log_error(TAG, "Tensor '%s' is not in device memory", t->name);
		return NRT_INVALID;
	}
	m = &v->storage->memory;
	if (!m->address) {
		log_error(TAG, "Tensor '%s': this driver does not say where memory lies", t->name);
		return NRT_FAILURE;
	}
	*ret = (nrt_tensor_device_allocation_info_t){
		.physical_address = m->address + v->offset,
		.size = v->size,
		.hbm_index = (int)m->core->hbm,
	};
	return NRT_SUCCESS;
}

NRT_STATUS nrt_tensor_get_device_allocation_info(
	const nrt_tensor_t *tensor, nrt_tensor_device_allocation_info_t *alloc_info)
{
	NRT_STATUS status = api_enter(__func__);
	struct object *o;

	if (status)
		return status;
	if (!alloc_info) {
		log_error(TAG, "No place for the answer (NULL)");
		status = NRT_INVALID;
	}
	if (!status)
		status = object_get(tensor, OBJECT_TENSOR, &o);
	if (!status) {
		struct tensor_view view = tensor_view_get((struct nrt_tensor *)o);

		status = describe_memory((const struct nrt_tensor *)o, &view, alloc_info);
		tensor_view_put(&view);
		object_put(o);
	}
	api_leave();
	return status;
}
