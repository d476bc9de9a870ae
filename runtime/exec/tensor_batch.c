/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensor_batch.c - many reads, or writes, in one call.
 *
 * On the timeline, nrt_tensor_write_batch { dmem_buf_batch_copyin { one ioctl per transfer } }: one inner
 * span for neighbouring batches whose tensors are in device memory of the same core.  That they are put
 * together like this is ours; public traces show the inner type, not its place.  Everything is checked before
 * the first byte moves.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/base/file.h"
#include "runtime/exec/tensor.h"
#include "runtime/lifecycle/runtime.h"
#include "runtime/log/log.h"
#include "runtime/trace/payload.h"
#include "runtime/trace/trace.h"

#define TAG "NRT"

/* A batch with what its handle stands for. */
struct batch {
	const nrt_tensor_batch_t *asked;
	struct nrt_tensor *tensor; /* with a reference */
	struct tensor_view view;
};

struct batches {
	const char *call;
	bool writes, unsafe;
	struct batch *rows;
	uint64_t count;
};

/* ---- checks ------------------------------------------------------------------------------- */

static NRT_STATUS say(const struct batches *b, uint64_t i, const char *what)
{
	log_write(LOG_LEVEL_ERROR, TAG, b->call, "Batch %llu of %llu: no %s given (NULL)",
		(unsigned long long)i, (unsigned long long)b->count, what);
	return NRT_INVALID;
}

static NRT_STATUS check_ops(const struct batches *b, uint64_t i)
{
	const struct batch *row = &b->rows[i];
	struct tensor_view part;
	NRT_STATUS status = NRT_SUCCESS;

	if (!row->asked->ops && row->asked->num_ops)
		return say(b, i, "transfers");
	for (uint32_t k = 0; k < row->asked->num_ops && !status; k++) {
		const nrt_tensor_batch_op_t *op = &row->asked->ops[k];

		status = op->buffer
				 ? tensor_part(row->tensor, &row->view, op->offset, op->size, &part)
				 : say(b, i, "buffer");
	}
	return status;
}

/* Looks up batch i and checks its transfers. */
static NRT_STATUS collect(struct batches *b, const nrt_tensor_batch_t *asked, uint64_t i)
{
	struct batch *row = &b->rows[i];
	struct object *o;
	NRT_STATUS status = object_get_for(b->call, asked[i].tensor, OBJECT_TENSOR, &o);

	if (status)
		return status;
	row->asked = &asked[i];
	row->tensor = (struct nrt_tensor *)o;
	row->view = tensor_view_get(row->tensor);
	return check_ops(b, i);
}

/* ---- transfers ---------------------------------------------------------------------------- */

static NRT_STATUS move_device(const struct batches *b, const struct nrt_tensor *t,
	const struct tensor_view *part, void *host)
{
	NRT_STATUS status;

	tensor_put_copy(t, part, EXEC_TRACE_IO_COPY_START, NRT_SUCCESS);
	status = memory_copy_of_batch(
		&part->storage->memory, b->writes, part->offset, host, part->size);
	tensor_put_copy(t, part, EXEC_TRACE_IO_COPY_END, status);
	return status;
}

static NRT_STATUS move(
	const struct batches *b, const struct batch *row, const nrt_tensor_batch_op_t *op)
{
	struct tensor_view part = {row->view.storage, row->view.offset + op->offset, op->size};
	struct tensor_use use = {0};
	NRT_STATUS status = NRT_SUCCESS;

	if (op->size == 0)
		return NRT_SUCCESS;
	if (!b->unsafe)
		tensor_transfer_begin(row->tensor, &part, b->writes, &use);
	if (tensor_view_on_device(&part))
		status = move_device(b, row->tensor, &part, op->buffer);
	else if (b->writes) /* both sides may be the program's */
		memmove(tensor_view_host(&part), op->buffer, op->size);
	else
		memmove(op->buffer, tensor_view_host(&part), op->size);
	tensor_use_end(&use);
	return status;
}

static NRT_STATUS move_rows(const struct batches *b, uint64_t first, uint64_t end)
{
	NRT_STATUS status = NRT_SUCCESS;

	for (uint64_t i = first; i < end; i++)
		for (uint32_t k = 0; k < b->rows[i].asked->num_ops && !status; k++)
			status = move(b, &b->rows[i], &b->rows[i].asked->ops[k]);
	return status;
}

/* Where the run of batches ends that are in the same memory as the first. */
static uint64_t run_end(const struct batches *b, uint64_t first)
{
	const struct tensor_view *v = &b->rows[first].view;
	uint64_t end = first + 1;

	while (end < b->count && tensor_view_on_device(&b->rows[end].view) &&
		tensor_view_on_device(v) &&
		b->rows[end].view.storage->memory.nc == v->storage->memory.nc)
		end++;
	return end;
}

static struct trace_span run_start(const struct batches *b, uint64_t first, uint64_t end)
{
	struct trace_dmem_batch payload = {
		.mem_type = MEMORY_LOCATION_DEVICE, .num_batches = (uint32_t)(end - first)};

	for (uint64_t i = first; i < end; i++) {
		payload.total_num_ops += b->rows[i].asked->num_ops;
		for (uint32_t k = 0; k < b->rows[i].asked->num_ops; k++)
			payload.total_size += b->rows[i].asked->ops[k].size;
	}
	return trace_start(b->rows[first].view.storage->memory.nc,
		b->writes ? TRACE_DMEM_BUF_BATCH_COPYIN : TRACE_DMEM_BUF_BATCH_COPYOUT, &payload,
		sizeof(payload));
}

static NRT_STATUS move_all(const struct batches *b)
{
	NRT_STATUS status = NRT_SUCCESS;

	for (uint64_t i = 0, end; i < b->count && !status; i = end) {
		struct trace_span span = {0};

		end = run_end(b, i);
		if (tensor_view_on_device(&b->rows[i].view))
			span = run_start(b, i, end);
		status = move_rows(b, i, end);
		trace_stop(&span, status, NULL, 0);
	}
	return status;
}

/* ---- the calls ---------------------------------------------------------------------------- */

static NRT_STATUS run(struct batches *b, const nrt_tensor_batch_t *asked)
{
	struct trace_tensor_batch payload = {.num_batches = (uint32_t)b->count};
	struct trace_span span;
	uint32_t nc = TRACE_NC_UNKNOWN; /* the event is with the core of the first tensor (ours) */
	NRT_STATUS status = NRT_SUCCESS;

	for (uint64_t i = 0; i < b->count && !status; i++)
		status = collect(b, asked, i);
	if (b->count && b->rows[0].tensor)
		nc = b->rows[0].tensor->nc;
	span = trace_start(nc, b->writes ? TRACE_TENSOR_WRITE_BATCH : TRACE_TENSOR_READ_BATCH,
		&payload, sizeof(payload));
	if (!status)
		status = move_all(b);
	trace_stop(&span, status, NULL, 0);
	if (b->count && b->rows[0].tensor)
		tensor_failed(b->call, b->rows[0].tensor, status);
	for (uint64_t i = 0; i < b->count; i++) {
		tensor_view_put(&b->rows[i].view);
		tensor_put(b->rows[i].tensor);
	}
	return status;
}

static NRT_STATUS transfer(struct batches *b, const nrt_tensor_batch_t *asked)
{
	NRT_STATUS status = api_enter(b->call);

	if (status)
		return status;
	if (!asked && b->count) {
		log_write(LOG_LEVEL_ERROR, TAG, b->call, "No batches given (NULL)");
		status = NRT_INVALID;
	} else {
		_cleanup_free_ struct batch *rows = calloc(b->count ? b->count : 1, sizeof(*rows));

		b->rows = rows;
		status = rows ? run(b, asked) : NRT_RESOURCE;
	}
	api_leave();
	return status;
}

NRT_STATUS nrt_tensor_read_batch(
	const nrt_tensor_batch_t *batches, uint64_t num_batches, bool unsafe)
{
	struct batches b = {.call = __func__, .unsafe = unsafe, .count = num_batches};

	return transfer(&b, batches);
}

NRT_STATUS nrt_tensor_write_batch(
	const nrt_tensor_batch_t *batches, uint64_t num_batches, bool unsafe)
{
	struct batches b = {
		.call = __func__, .writes = true, .unsafe = unsafe, .count = num_batches};

	return transfer(&b, batches);
}
