/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensor.c - the tensor calls of the public interface.
 *
 * A transfer is nrt_tensor_write { dmem_buf_copyin { one ioctl } }, and the same for reads: the
 * recorded timeline depends on that shape.
 */
#include "runtime/exec/tensor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/device/simulate.h"
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

	memory_free(&t->memory);
	free(t->host);
	free(t);
}

/* ---- allocate, free ----------------------------------------------------------------------- */

static NRT_STATUS give_memory(struct nrt_tensor *t, const struct device_core *core)
{
	if (t->placement == NRT_TENSOR_PLACEMENT_DEVICE)
		return memory_alloc(core, t->nc, MEMORY_TENSOR, t->size, &t->memory);
	t->host = malloc(t->size);
	return t->host ? NRT_SUCCESS : NRT_RESOURCE;
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
	const char *name, struct nrt_tensor **ret)
{
	const struct device_core *core = runtime_core(vnc);
	struct trace_tensor payload = {.size = size};
	struct trace_span span;
	struct nrt_tensor *t;
	NRT_STATUS status;

	status = check_new(placement, core, vnc, size);
	if (status)
		return status;
	if (placement == NRT_TENSOR_PLACEMENT_DEVICE &&
		simulate_lacks(runtime_get()->devices, SIMULATE_TENSOR))
		return NRT_INVALID;
	t = calloc(1, sizeof(*t));
	if (!t)
		return NRT_RESOURCE;
	t->id = payload.tensor_id = atomic_fetch_add(&last_id, 1) + 1;
	t->nc = (uint32_t)vnc;
	t->placement = placement;
	t->size = size;
	(void)snprintf(t->name, sizeof(t->name), "%s", name ? name : "");
	trace_core_touch(t->nc);
	span = trace_start(t->nc, TRACE_TENSOR_ALLOC, &payload, sizeof(payload));
	status = give_memory(t, core);
	trace_stop(&span, status, NULL, 0);
	if (status) {
		free(t);
		return status;
	}
	object_publish(&t->object, OBJECT_TENSOR, tensor_destroy);
	*ret = t;
	return NRT_SUCCESS;
}

NRT_STATUS nrt_tensor_allocate(nrt_tensor_placement_t placement, int vnc, size_t size,
	const char *name, nrt_tensor_t **tensor)
{
	NRT_STATUS status = api_enter(__func__);

	if (status)
		return status;
	if (tensor) {
		status = tensor_new(placement, vnc, size, name, tensor);
	} else {
		log_error(TAG, "No place for the tensor's handle (NULL)");
		status = NRT_INVALID;
	}
	api_leave();
	return status;
}

static void tensor_free(struct nrt_tensor *t)
{
	struct trace_tensor payload = {
		.tensor_id = t->id, .size = t->size, .ref_count = atomic_load(&t->object.refs)};
	struct trace_span span = trace_start(t->nc, TRACE_TENSOR_FREE, &payload, sizeof(payload));

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

/* ---- read, write -------------------------------------------------------------------------- */

static NRT_STATUS check_range(
	const struct nrt_tensor *t, const void *buf, size_t offset, size_t size)
{
	if (!buf) {
		log_error(TAG, "No buffer given (NULL)");
		return NRT_INVALID;
	}
	if (offset > t->size || size > t->size - offset) {
		log_error(TAG, "Bad transfer of %zu bytes at %zu: tensor '%s' has %llu bytes", size,
			offset, t->name, (unsigned long long)t->size);
		return NRT_INVALID;
	}
	return NRT_SUCCESS;
}

static NRT_STATUS copy_from_tensor(
	const struct nrt_tensor *t, void *buf, size_t offset, size_t size)
{
	if (size == 0)
		return NRT_SUCCESS;
	if (t->placement == NRT_TENSOR_PLACEMENT_DEVICE)
		return memory_copy_out(&t->memory, offset, buf, size);
	memcpy(buf, t->host + offset, size);
	return NRT_SUCCESS;
}

static NRT_STATUS copy_to_tensor(struct nrt_tensor *t, const void *buf, size_t offset, size_t size)
{
	if (size == 0)
		return NRT_SUCCESS;
	if (t->placement == NRT_TENSOR_PLACEMENT_DEVICE)
		return memory_copy_in(&t->memory, offset, buf, size);
	memcpy(t->host + offset, buf, size);
	return NRT_SUCCESS;
}

static struct trace_span transfer_start(
	const struct nrt_tensor *t, enum trace_type type, size_t size)
{
	struct trace_tensor payload = {.tensor_id = t->id, .size = size};

	return trace_start(t->nc, type, &payload, sizeof(payload));
}

NRT_STATUS nrt_tensor_read(const nrt_tensor_t *tensor, void *buf, size_t offset, size_t size)
{
	NRT_STATUS status = api_enter(__func__);
	struct object *o;

	if (status)
		return status;
	status = object_get(tensor, OBJECT_TENSOR, &o);
	if (!status) {
		const struct nrt_tensor *t = (const struct nrt_tensor *)o;
		struct trace_span span = transfer_start(t, TRACE_TENSOR_READ, size);

		status = check_range(t, buf, offset, size);
		if (!status)
			status = copy_from_tensor(t, buf, offset, size);
		trace_stop(&span, status, NULL, 0);
		object_put(o);
	}
	api_leave();
	return status;
}

NRT_STATUS nrt_tensor_write(nrt_tensor_t *tensor, const void *buf, size_t offset, size_t size)
{
	NRT_STATUS status = api_enter(__func__);
	struct object *o;

	if (status)
		return status;
	status = object_get(tensor, OBJECT_TENSOR, &o);
	if (!status) {
		struct nrt_tensor *t = (struct nrt_tensor *)o;
		struct trace_span span = transfer_start(t, TRACE_TENSOR_WRITE, size);

		status = check_range(t, buf, offset, size);
		if (!status)
			status = copy_to_tensor(t, buf, offset, size);
		trace_stop(&span, status, NULL, 0);
		object_put(o);
	}
	api_leave();
	return status;
}

size_t nrt_tensor_get_size(const nrt_tensor_t *tensor)
{
	struct object *o;
	size_t size = 0;

	if (api_enter(__func__))
		return 0;
	if (object_get(tensor, OBJECT_TENSOR, &o) == NRT_SUCCESS) {
		size = ((const struct nrt_tensor *)o)->size;
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
		va = ((const struct nrt_tensor *)o)->host; /* NULL for a device tensor */
		object_put(o);
	}
	api_leave();
	return va;
}

static NRT_STATUS describe_memory(
	const struct nrt_tensor *t, nrt_tensor_device_allocation_info_t *ret)
{
	if (t->placement != NRT_TENSOR_PLACEMENT_DEVICE) {
		log_error(TAG, "Tensor '%s' is not in device memory", t->name);
		return NRT_INVALID;
	}
	if (!t->memory.address) {
		log_error(TAG, "Tensor '%s': this driver does not say where memory lies", t->name);
		return NRT_FAILURE;
	}
	*ret = (nrt_tensor_device_allocation_info_t){
		.physical_address = t->memory.address,
		.size = t->memory.size,
		.hbm_index = (int)t->memory.core->hbm,
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
		status = describe_memory((const struct nrt_tensor *)o, alloc_info);
		object_put(o);
	}
	api_leave();
	return status;
}
