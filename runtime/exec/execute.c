/* SPDX-License-Identifier: Apache-2.0 */
/*
 * execute.c - executions of a model: the calls, and the tensors of an execution.
 *
 * nrt_execute { what execute_run.c does }, for each execution.
 */
#include "runtime/exec/execute.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/exec/execute_run.h"
#include "runtime/exec/schedule.h"
#include "runtime/lifecycle/core_dump.h"
#include "runtime/lifecycle/runtime.h"
#include "runtime/log/log.h"
#include "runtime/profile/profile.h"
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

static bool overlap(const struct tensor_view *a, const struct tensor_view *b)
{
	return a->storage == b->storage && a->size && b->size && a->offset < b->offset + b->size &&
	       b->offset < a->offset + a->size;
}

/* An output may be in the very bytes of another tensor, not in a part of them: then what a step reads
 * depends on which engine or physical core was first. */
static NRT_STATUS check_overlaps(const struct execution *e, uint32_t output)
{
	const struct model_desc *d = &e->model->desc;
	const struct tensor_view *v = &e->uses[output].view;

	for (uint32_t i = 0; i < d->tensor_count; i++) {
		const struct tensor_view *other = &e->uses[i].view;

		if (d->tensors[i].role == MODEL_TEMP || !overlap(v, other) ||
			(v->offset == other->offset && v->size == other->size))
			continue;
		log_error(TAG, "Model '%s': output '%s' overlaps '%s' without being the same bytes",
			e->model->desc.name, d->tensors[output].name, d->tensors[i].name);
		return NRT_EXEC_BAD_INPUT;
	}
	return NRT_SUCCESS;
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
	for (uint32_t i = 0; i < d->tensor_count && !status; i++)
		if (d->tensors[i].role == MODEL_OUTPUT)
			status = check_overlaps(e, i);
	return status;
}

/* Gives back what collect_tensors took; the outputs of an execution that went well are complete. */
static void release_tensors(struct execution *e, bool completed)
{
	const struct model_desc *d = &e->model->desc;

	for (uint32_t i = 0; i < d->tensor_count; i++) {
		tensor_use_end(&e->uses[i]);
		if (completed && d->tensors[i].role == MODEL_OUTPUT)
			tensor_completed(e->tensors[i]);
		tensor_put(e->tensors[i]);
		e->tensors[i] = NULL;
	}
}

/* ---- one execution ------------------------------------------------------------------------ */

struct execution *execution_new(
	struct nrt_model *m, struct tensor_set *input, struct tensor_set *output)
{
	struct execution *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->model = m;
	e->tensor_status = collect_tensors(e, input, output);
	return e;
}

/* Ranks wait for each other on the device. */
static bool meets(const struct nrt_model *m)
{
	return m->desc.collectives && m->place.ranks > 1;
}

static NRT_STATUS run_on_core(struct execution *e)
{
	pthread_mutex_t *lock = &e->model->core->lock;
	NRT_STATUS status;

	tensor_uses_run(e->uses, e->model->desc.tensor_count, meets(e->model));
	profile_before_run(e->model);
	pthread_mutex_lock(lock);
	e->id = atomic_fetch_add(&last_exec_id, 1) + 1;
	profile_run_begins(e->model);
	status = execution_run(e);
	profile_run_ended(e->model, status);
	pthread_mutex_unlock(lock);
	profile_after_run(e->model);
	return status;
}

/* When nobody waits for the core or the tensors any more: it may take long. */
static NRT_STATUS ended(const char *call, const struct nrt_model *m, NRT_STATUS status)
{
	char uuid[PROFILE_UUID_BYTES];

	if (!status)
		return status;
	profile_uuid(m, uuid);
	core_dump(&(struct core_dump_of){.location = call,
		.code = status,
		.neff_name = m->desc.name,
		.neff_uuid = uuid,
		.logical_core = m->nc,
		.has_core = true});
	return status;
}

NRT_STATUS execution_run_once(struct execution *e, const char *call, uint64_t nrta_seq)
{
	struct trace_model payload = {.model_id = e->model->id};
	struct trace_span span;
	NRT_STATUS status;

	trace_set_sequence(nrta_seq);
	span = trace_start(e->model->nc, TRACE_EXECUTE_API, &payload, sizeof(payload));
	status = e->tensor_status ? e->tensor_status : run_on_core(e);
	release_tensors(e, status == NRT_SUCCESS);
	trace_stop(&span, status, NULL, 0);
	trace_set_sequence(0);
	return ended(call, e->model, status);
}

void execution_free(struct execution *e)
{
	if (!e)
		return;
	release_tensors(e, false);
	for (uint32_t i = 0; i < CORES_MAX_SIZE; i++)
		device_drop_notes(&e->runs[i]);
	free(e);
}

/* It came to nothing, and that is on the timeline too. */
static NRT_STATUS refuse_without_memory(const char *call, const struct nrt_model *m)
{
	struct trace_model payload = {.model_id = m->id};
	struct trace_span span = trace_start(m->nc, TRACE_EXECUTE_API, &payload, sizeof(payload));

	trace_stop(&span, NRT_RESOURCE, NULL, 0);
	return ended(call, m, NRT_RESOURCE);
}

/* ---- nrt_execute -------------------------------------------------------------------------- */

static NRT_STATUS execute_now(
	const char *call, struct nrt_model *m, struct tensor_set *input, struct tensor_set *output)
{
	struct execution *e = execution_new(m, input, output);
	NRT_STATUS status = e ? execution_run_once(e, call, 0) : refuse_without_memory(call, m);

	execution_free(e);
	return status;
}

static NRT_STATUS execute_once(
	const char *call, struct nrt_model *m, struct tensor_set *input, struct tensor_set *output)
{
	return runtime_get()->async_max_inflight ? schedule_posted(m, input, output)
						 : execute_now(call, m, input, output);
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
		status = execute_once(call, (struct nrt_model *)m, (struct tensor_set *)input,
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
