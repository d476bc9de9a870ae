/* SPDX-License-Identifier: Apache-2.0 */
/*
 * execute.c - executions of a model: the calls, and the tensors of an execution.
 *
 * nrt_execute { what execute_run.c does }, for each execution.
 */
#include "runtime/exec/execute.h"

#include <string.h>

#include "runtime/exec/execute_run.h"
#include "runtime/exec/schedule.h"
#include "runtime/lifecycle/runtime.h"
#include "runtime/log/log.h"
#include "runtime/trace/payload.h"

#define TAG "NMGR"

static _Atomic uint32_t last_exec_id;

/* ---- tensors ------------------------------------------------------------------------------ */

static NRT_STATUS check_tensor(
	const struct nrt_model *m, const struct model_tensor *want, const struct tensor_view *v)
{
	if (v->size != want->bytes) {
		log_error(TAG, "Model '%s': tensor '%s' has %llu bytes, not %llu", m->desc.name,
			want->name, (unsigned long long)v->size, (unsigned long long)want->bytes);
		return NRT_EXEC_BAD_INPUT;
	}
	if (!tensor_view_on_device(v) || v->storage->memory.core->device != m->core->device) {
		log_error(TAG, "Model '%s': tensor '%s' is not on the model's device", m->desc.name,
			want->name);
		return NRT_EXEC_BAD_INPUT;
	}
	return NRT_SUCCESS;
}

/* Finds the tensor of row i and takes hold of its bytes. */
static NRT_STATUS collect_tensor(struct execution *e, uint32_t i, struct tensor_set *set)
{
	const struct model_tensor *want = &e->model->desc.tensors[i];

	e->tensors[i] = tensor_set_find(set, want->name);
	if (!e->tensors[i]) {
		log_error(TAG, "Model '%s': no tensor '%s' in the %s set", e->model->desc.name,
			want->name, want->role == MODEL_INPUT ? "input" : "output");
		return NRT_EXEC_BAD_INPUT;
	}
	tensor_use_begin(e->tensors[i], want->role == MODEL_OUTPUT, &e->uses[i]);
	return check_tensor(e->model, want, &e->uses[i].view);
}

static NRT_STATUS collect_tensors(
	struct execution *e, struct tensor_set *input, struct tensor_set *output)
{
	const struct model_desc *d = &e->model->desc;
	NRT_STATUS status = NRT_SUCCESS;

	for (uint32_t i = 0; i < d->tensor_count && !status; i++) {
		enum model_role role = d->tensors[i].role;

		if (role != MODEL_TEMP)
			status = collect_tensor(e, i, role == MODEL_INPUT ? input : output);
	}
	return status;
}

/* Gives back what collect_tensors took; the outputs of an execution that went well are complete. */
static void release_tensors(struct execution *e, NRT_STATUS status)
{
	const struct model_desc *d = &e->model->desc;

	for (uint32_t i = 0; i < d->tensor_count; i++) {
		tensor_use_end(&e->uses[i]);
		if (!status && d->tensors[i].role == MODEL_OUTPUT)
			tensor_completed(e->tensors[i]);
		tensor_put(e->tensors[i]);
	}
}

/* ---- nrt_execute -------------------------------------------------------------------------- */

NRT_STATUS execute_model(
	struct nrt_model *m, struct tensor_set *input, struct tensor_set *output, uint64_t nrta_seq)
{
	struct trace_model payload = {.model_id = m->id};
	struct execution e = {.model = m};
	struct trace_span span;
	NRT_STATUS status;

	trace_set_sequence(nrta_seq);
	span = trace_start(m->nc, TRACE_EXECUTE_API, &payload, sizeof(payload));
	status = collect_tensors(&e, input, output);
	if (!status) {
		pthread_mutex_lock(&m->core->lock);
		e.id = atomic_fetch_add(&last_exec_id, 1) + 1;
		status = execution_run(&e);
		pthread_mutex_unlock(&m->core->lock);
	}
	release_tensors(&e, status);
	trace_stop(&span, status, NULL, 0);
	trace_set_sequence(0);
	return status;
}

static NRT_STATUS execute_once(
	struct nrt_model *m, struct tensor_set *input, struct tensor_set *output)
{
	return runtime_get()->async_max_inflight ? schedule_posted(m, input, output)
						 : execute_model(m, input, output, 0);
}

/* Executions one after another, up to the first that fails. */
static NRT_STATUS execute_times(const char *call, nrt_model_t *model,
	const nrt_tensor_set_t *input_set, nrt_tensor_set_t *output_set, int times)
{
	NRT_STATUS status = api_enter(call);
	struct object *m = NULL, *input = NULL, *output = NULL;

	if (status)
		return status;
	if (times < 1) {
		log_write(LOG_LEVEL_ERROR, TAG, call, "%d executions are none to wait for", times);
		status = NRT_INVALID;
	}
	if (!status)
		status = object_get_for(call, model, OBJECT_MODEL, &m);
	if (!status)
		status = object_get_for(call, input_set, OBJECT_SET, &input);
	if (!status)
		status = object_get_for(call, output_set, OBJECT_SET, &output);
	for (int i = 0; i < times && !status; i++)
		status = execute_once((struct nrt_model *)m, (struct tensor_set *)input,
			(struct tensor_set *)output);
	object_put(output);
	object_put(input);
	object_put(m);
	api_leave();
	return status;
}

NRT_STATUS nrt_execute(
	nrt_model_t *model, const nrt_tensor_set_t *input_set, nrt_tensor_set_t *output_set)
{
	return execute_times(__func__, model, input_set, output_set, 1);
}

NRT_STATUS nrt_execute_repeat(nrt_model_t *model, const nrt_tensor_set_t *input_set,
	nrt_tensor_set_t *output_set, int repeat_count)
{
	return execute_times(__func__, model, input_set, output_set, repeat_count);
}
