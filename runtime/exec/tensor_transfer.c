/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensor_transfer.c - bytes into tensors and out of them.
 *
 * A transfer is nrt_tensor_write { dmem_buf_copyin { one ioctl } }, and the same for reads: the
 * recorded timeline depends on that shape.  A transfer that would disturb an execution waits for it, in
 * tensor_block_while_exec.  Copies between tensors and fillings have no type of their own; of a copy between
 * host and device there is the dmem_buf_copyin or -out (ours).
 */
#include <string.h>

#include "runtime/exec/tensor.h"
#include "runtime/lifecycle/runtime.h"
#include "runtime/log/log.h"
#include "runtime/trace/payload.h"
#include "runtime/trace/trace.h"

#define TAG "NRT"

/* ---- checks ------------------------------------------------------------------------------- */

NRT_STATUS tensor_part(const struct nrt_tensor *t, const struct tensor_view *v, uint64_t offset,
	uint64_t size, struct tensor_view *ret)
{
	if (offset > v->size || size > v->size - offset) {
		log_error(TAG, "Bad transfer of %llu bytes at %llu: tensor '%s' has %llu bytes",
			(unsigned long long)size, (unsigned long long)offset, t->name,
			(unsigned long long)v->size);
		return NRT_INVALID;
	}
	*ret = (struct tensor_view){v->storage, v->offset + offset, size};
	return NRT_SUCCESS;
}

static NRT_STATUS check_buffer(const void *buf)
{
	if (buf)
		return NRT_SUCCESS;
	log_error(TAG, "No buffer given (NULL)");
	return NRT_INVALID;
}

/* ---- read, write -------------------------------------------------------------------------- */

void tensor_put_copy(const struct nrt_tensor *t, const struct tensor_view *v,
	enum exec_trace_type type, NRT_STATUS status)
{
	const struct device_core *core = v->storage->memory.core;
	const struct exec_trace_event e = {.type = type,
		.data = v->size,
		.nd = core->device->index,
		.nc = core->index,
		.status = status,
		.hint = t->name};

	exec_trace_put(&e);
}

/* Out of the device when there is a `to`, else into it. */
static NRT_STATUS copy_device(
	const struct nrt_tensor *t, const struct tensor_view *v, void *to, const void *from)
{
	const struct device_memory *m = &v->storage->memory;
	NRT_STATUS status;

	tensor_put_copy(t, v, EXEC_TRACE_IO_COPY_START, NRT_SUCCESS);
	status = to ? memory_copy_out(m, v->offset, to, v->size)
		    : memory_copy_in(m, v->offset, from, v->size);
	tensor_put_copy(t, v, EXEC_TRACE_IO_COPY_END, status);
	return status;
}

static NRT_STATUS copy_out(const struct nrt_tensor *t, const struct tensor_view *v, void *buf)
{
	if (tensor_view_on_device(v))
		return copy_device(t, v, buf, NULL);
	memmove(buf, tensor_view_host(v), v->size); /* both may be the program's */
	return NRT_SUCCESS;
}

static NRT_STATUS copy_in(const struct nrt_tensor *t, const struct tensor_view *v, const void *buf)
{
	if (tensor_view_on_device(v))
		return copy_device(t, v, NULL, buf);
	memmove(tensor_view_host(v), buf, v->size);
	return NRT_SUCCESS;
}

static struct trace_span transfer_start(
	const struct nrt_tensor *t, enum trace_type type, uint64_t size)
{
	struct trace_tensor payload = {.tensor_id = t->id, .size = size};

	return trace_start(t->nc, type, &payload, sizeof(payload));
}

/* Out of the tensor when there is a `to`, else into it; the other one is NULL. */
static NRT_STATUS do_transfer(struct nrt_tensor *t, enum trace_type type, void *to,
	const void *from, uint64_t offset, uint64_t size)
{
	struct trace_span span = transfer_start(t, type, size);
	struct tensor_view view = tensor_view_get(t), part;
	NRT_STATUS status = check_buffer(to ? to : from);
	struct tensor_use use;

	if (!status)
		status = tensor_part(t, &view, offset, size, &part);
	if (!status && size) {
		tensor_transfer_begin(t, &part, !to, &use);
		status = to ? copy_out(t, &part, to) : copy_in(t, &part, from);
		tensor_use_end(&use);
	}
	tensor_view_put(&view);
	trace_stop(&span, status, NULL, 0);
	return status;
}

NRT_STATUS tensor_do_read(struct nrt_tensor *t, void *buf, uint64_t offset, uint64_t size)
{
	return do_transfer(t, TRACE_TENSOR_READ, buf, NULL, offset, size);
}

NRT_STATUS tensor_do_write(struct nrt_tensor *t, const void *buf, uint64_t offset, uint64_t size)
{
	return do_transfer(t, TRACE_TENSOR_WRITE, NULL, buf, offset, size);
}

NRT_STATUS nrt_tensor_read(const nrt_tensor_t *tensor, void *buf, size_t offset, size_t size)
{
	NRT_STATUS status = api_enter(__func__);
	struct object *o;

	if (status)
		return status;
	status = object_get(tensor, OBJECT_TENSOR, &o);
	if (!status) {
		status = tensor_do_read((struct nrt_tensor *)o, buf, offset, size);
		tensor_failed(__func__, (struct nrt_tensor *)o, status);
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
		status = tensor_do_write((struct nrt_tensor *)o, buf, offset, size);
		tensor_failed(__func__, (struct nrt_tensor *)o, status);
		object_put(o);
	}
	api_leave();
	return status;
}

/* ---- copy between tensors ----------------------------------------------------------------- */

static NRT_STATUS copy_bytes(const struct nrt_tensor *from, const struct tensor_view *src,
	const struct nrt_tensor *to, const struct tensor_view *dst)
{
	bool from_device = tensor_view_on_device(src), to_device = tensor_view_on_device(dst);

	if (from_device && to_device)
		return memory_copy(&src->storage->memory, src->offset, &dst->storage->memory,
			dst->offset, src->size);
	if (from_device)
		return copy_out(from, src, tensor_view_host(dst));
	if (to_device)
		return copy_in(to, dst, tensor_view_host(src));
	memmove(tensor_view_host(dst), tensor_view_host(src), src->size);
	return NRT_SUCCESS;
}

static NRT_STATUS check_cores(const struct tensor_view *src, const struct tensor_view *dst)
{
	if (!tensor_view_on_device(src) || !tensor_view_on_device(dst) ||
		src->storage->memory.nc == dst->storage->memory.nc)
		return NRT_SUCCESS;
	log_error(TAG, "Cannot copy from a device tensor of nc %u to one of nc %u",
		src->storage->memory.nc, dst->storage->memory.nc);
	return NRT_INVALID;
}

NRT_STATUS tensor_do_copy(struct nrt_tensor *src, uint64_t src_offset, struct nrt_tensor *dst,
	uint64_t dst_offset, uint64_t size)
{
	struct tensor_view from = tensor_view_get(src), to = tensor_view_get(dst);
	struct tensor_view src_part, dst_part;
	NRT_STATUS status = tensor_part(src, &from, src_offset, size, &src_part);
	struct tensor_use uses[2];

	if (!status)
		status = tensor_part(dst, &to, dst_offset, size, &dst_part);
	if (!status)
		status = check_cores(&src_part, &dst_part);
	if (!status && size) {
		tensor_copy_begin(src, &src_part, dst, &dst_part, uses);
		status = copy_bytes(src, &src_part, dst, &dst_part);
		tensor_use_end(&uses[1]);
		tensor_use_end(&uses[0]);
	}
	tensor_view_put(&to);
	tensor_view_put(&from);
	return status;
}

NRT_STATUS nrt_tensor_copy(const nrt_tensor_t *src, size_t src_offset, nrt_tensor_t *dst,
	size_t dst_offset, size_t size)
{
	NRT_STATUS status = api_enter(__func__);
	struct object *from = NULL, *to = NULL;

	if (status)
		return status;
	status = object_get(src, OBJECT_TENSOR, &from);
	if (!status)
		status = object_get(dst, OBJECT_TENSOR, &to);
	if (!status) {
		status = tensor_do_copy((struct nrt_tensor *)from, src_offset,
			(struct nrt_tensor *)to, dst_offset, size);
		tensor_failed(__func__, (struct nrt_tensor *)from, status);
	}
	object_put(to);
	object_put(from);
	api_leave();
	return status;
}

/* ---- memset ------------------------------------------------------------------------------- */

static NRT_STATUS fill(struct nrt_tensor *t, uint64_t offset, uint8_t byte, uint64_t size)
{
	struct tensor_view view = tensor_view_get(t), part;
	NRT_STATUS status = tensor_part(t, &view, offset, size, &part);
	struct tensor_use use;

	if (!status && size) {
		tensor_transfer_begin(t, &part, true, &use);
		if (tensor_view_on_device(&part))
			status = memory_fill(&part.storage->memory, part.offset, size, byte);
		else
			memset(tensor_view_host(&part), byte, size);
		tensor_use_end(&use);
	}
	tensor_view_put(&view);
	return status;
}

NRT_STATUS nrt_tensor_memset(nrt_tensor_t *tensor, uint64_t offset, int value, size_t size)
{
	NRT_STATUS status = api_enter(__func__);
	struct object *o;

	if (status)
		return status;
	status = object_get(tensor, OBJECT_TENSOR, &o);
	if (!status) {
		status = fill((struct nrt_tensor *)o, offset, (uint8_t)value, size);
		tensor_failed(__func__, (struct nrt_tensor *)o, status);
		object_put(o);
	}
	api_leave();
	return status;
}
