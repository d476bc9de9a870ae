/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schedule.c - the public calls for work that is done later, and what becomes of executions in the
 * background.
 *
 * On the timeline: on the thread of the caller async_post_request when an execution gets its place in the queue,
 * and before it nrt_async_sema_wait when an execution in the background had to wait for one; on the thread of
 * the queue nrt_execute, nrt_tensor_write and so on with what is inside of them.  All events of scheduled work have
 * its nrta_seq_id.  (Libnrt 2.31 has no type of event for nrta_execute_schedule; which thread shows what is ours.)
 */
#include "runtime/exec/schedule.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "runtime/exec/work_queue.h"
#include "runtime/lifecycle/runtime.h"
#include "runtime/log/log.h"
#include "runtime/trace/payload.h"
#include "runtime/trace/trace.h"

#define TAG "NRT"
#define CORE_IDS 32u	     /* execution unit ids of a core */
#define TENSOR_QUEUES 16u    /* ours, as the next */
#define TENSOR_LIMIT 256u    /* work that is not complete, per queue */
#define COMPUTE_FIRST_ID 16u /* of a core's ids */

/* ---- execution units ---------------------------------------------------------------------- */

static const struct unit {
	uint32_t first_id, queues;
} units[NRTA_XU_TYPE_NUM] = {
	[NRTA_XU_TENSOR_OP] = {0, TENSOR_QUEUES},
	[NRTA_XU_COMPUTE] = {COMPUTE_FIRST_ID, 1},
	[NRTA_XU_COLLECTIVES] = {0, 0}, /* there is no network */
};

static NRT_STATUS find_unit(
	const char *call, uint32_t vnc, nrta_xu_t type, int queue, uint16_t *ret_id)
{
	uint32_t cores = device_logical_count(runtime_get()->devices);

	if (vnc >= cores) {
		log_write(LOG_LEVEL_ERROR, TAG, call, "There is no core %d; this process has %u",
			(int)vnc, cores);
		return NRT_INVALID;
	}
	if ((uint32_t)type >= NRTA_XU_TYPE_NUM || queue < 0 ||
		(uint32_t)queue >= units[type].queues) {
		log_write(LOG_LEVEL_ERROR, TAG, call, "Execution unit %d has no queue %d",
			(int)type, queue);
		return NRT_INVALID;
	}
	*ret_id = (uint16_t)(vnc * CORE_IDS + units[type].first_id + (uint32_t)queue);
	return NRT_SUCCESS;
}

/* ---- the callback ------------------------------------------------------------------------- */

static struct {
	pthread_mutex_t lock;
	NRT_ASYNC_EXEC_STATUS_CALLBACK call;
	void *params;
} listener = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void set_listener(NRT_ASYNC_EXEC_STATUS_CALLBACK call, void *params)
{
	pthread_mutex_lock(&listener.lock);
	listener.call = call;
	listener.params = params;
	pthread_mutex_unlock(&listener.lock);
}

NRT_STATUS nrt_register_async_exec_callback(NRT_ASYNC_EXEC_STATUS_CALLBACK callback, void *params)
{
	NRT_STATUS status = api_enter(__func__);

	if (status)
		return status;
	set_listener(callback, params);
	api_leave();
	return NRT_SUCCESS;
}

/* ---- executions --------------------------------------------------------------------------- */

struct execution_work {
	struct work work;
	struct nrt_model *model;
	struct execution *execution;
	/* For the callback, when the model may be gone: */
	uint64_t number, model_id;
	uint32_t nc;
};

static void announce_execution(const struct work *w)
{
	const struct execution_work *e = (const struct execution_work *)w;
	struct trace_post_request payload = {
		.model_id = e->model_id,
		.request_id = (uint32_t)NRTA_SEQ_GET_SEQ_NUM(w->seq),
	};
	struct trace_span span;

	trace_set_sequence(w->kind == WORK_SCHEDULED ? w->seq : 0);
	span = trace_start(e->nc, TRACE_POST_REQUEST, &payload, sizeof(payload));
	trace_stop(&span, NRT_SUCCESS, NULL, 0);
	trace_set_sequence(0);
}

static NRT_STATUS run_execution(struct work *w)
{
	const struct execution_work *e = (const struct execution_work *)w;

	return w->kind == WORK_SCHEDULED
		       ? execution_run_once(e->execution, "nrta_execute_schedule", w->seq)
		       : execution_run_once(e->execution, "nrt_execute", 0);
}

static void release_execution(struct work *w)
{
	struct execution_work *e = (struct execution_work *)w;

	execution_free(e->execution);
	object_put(&e->model->object);
}

/* The call that posted it has said that it is well. */
static void nobody_hears(const struct execution_work *e, NRT_STATUS status)
{
	static atomic_bool said;

	if (e->work.kind == WORK_POSTED && status && !atomic_exchange(&said, true))
		log_error(TAG,
			"An execution in the background on nc %u ended with status %d, and the "
			"program "
			"does not hear of it: nrt_register_async_exec_callback was not called.  "
			"Said "
			"once",
			e->nc, (int)status);
}

static void tell_execution(const struct work *w, NRT_STATUS status)
{
	const struct execution_work *e = (const struct execution_work *)w;
	NRT_ASYNC_EXEC_STATUS_CALLBACK call;
	void *params;

	pthread_mutex_lock(&listener.lock);
	call = listener.call;
	params = listener.params;
	pthread_mutex_unlock(&listener.lock);
	if (call)
		call(params, (uint32_t)e->number, e->nc, w->seq, status);
	else
		nobody_hears(e, status);
}

static const struct work_ops execution_ops = {
	announce_execution, run_execution, release_execution, tell_execution};

/* With a reference of its own; NULL when there is no memory. */
static struct execution_work *work_new(
	struct nrt_model *m, struct tensor_set *input, struct tensor_set *output)
{
	struct execution_work *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	object_ref(&m->object);
	*e = (struct execution_work){
		.work = {.ops = &execution_ops},
		.model = m,
		.execution = execution_new(m, input, output),
		.number = m->number,
		.model_id = m->id,
		.nc = m->nc,
	};
	if (e->execution)
		return e;
	release_execution(&e->work);
	free(e);
	return NULL;
}

/* Puts it into the core's queue; who could not, frees it. */
static NRT_STATUS schedule_execution(
	const char *call, struct execution_work *e, int queue, nrta_seq_t *ret_seq)
{
	struct work_queue *q;
	NRT_STATUS status;
	uint16_t id;

	status = find_unit(call, e->nc, NRTA_XU_COMPUTE, queue, &id);
	if (!status)
		status = work_queue_get(id, &q);
	if (!status)
		status = work_queue_put(q, &e->work, runtime_get()->compute_queue_limit, ret_seq);
	if (status == NRT_QUEUE_FULL)
		log_write(LOG_LEVEL_DEBUG, TAG, call, "The queue of core %u is full", e->nc);
	if (status) {
		release_execution(&e->work);
		free(e);
	}
	return status;
}

/* Where the status and the number go; exec_ret is written when the work is done. */
static NRT_STATUS check_places(const char *call, const NRT_STATUS *exec_ret, const nrta_seq_t *seq)
{
	return exec_ret && seq ? NRT_SUCCESS : runtime_no_place(call);
}

NRT_STATUS nrta_execute_schedule(nrt_model_t *model, const nrt_tensor_set_t *input,
	nrt_tensor_set_t *output, int queue, NRT_STATUS *exec_ret, nrta_seq_t *req_sequence)
{
	NRT_STATUS status = api_enter(__func__);
	struct object *m = NULL, *in = NULL, *out = NULL;
	struct execution_work *e;

	if (status)
		return status;
	status = check_places(__func__, exec_ret, req_sequence);
	if (!status)
		status = object_get(model, OBJECT_MODEL, &m);
	if (!status)
		status = object_get(input, OBJECT_SET, &in);
	if (!status)
		status = object_get(output, OBJECT_SET, &out);
	if (!status) {
		e = work_new(
			(struct nrt_model *)m, (struct tensor_set *)in, (struct tensor_set *)out);
		status = e ? NRT_SUCCESS : NRT_RESOURCE;
	}
	if (!status) {
		e->work.ret = exec_ret;
		status = schedule_execution(__func__, e, queue, req_sequence);
	}
	object_put(out);
	object_put(in);
	object_put(m);
	api_leave();
	return status;
}

/* ---- executions in the background --------------------------------------------------------- */

/* All slots are taken. */
static bool await_slot(struct work_queue *q, uint32_t nc, uint64_t slots)
{
	struct trace_sema_wait payload = {.available_request_slots = 0, .has_work = 1};
	struct trace_span span = trace_start(nc, TRACE_ASYNC_SEMA_WAIT, &payload, sizeof(payload));
	bool waited = work_queue_await_room(q, WORK_POSTED, slots);

	trace_stop(&span, waited ? NRT_SUCCESS : NRT_QUEUE_FULL, NULL, 0);
	return waited;
}

static NRT_STATUS post_execution(struct execution_work *e)
{
	uint64_t slots = runtime_get()->async_max_inflight;
	uint16_t id;
	struct work_queue *q;
	nrta_seq_t seq;
	NRT_STATUS status = find_unit(__func__, e->nc, NRTA_XU_COMPUTE, 0, &id);

	if (!status)
		status = work_queue_get(id, &q);
	if (status)
		return status;
	e->work.kind = WORK_POSTED;
	do
		status = work_queue_put(q, &e->work, slots, &seq);
	while (status == NRT_QUEUE_FULL && await_slot(q, e->nc, slots));
	return status;
}

NRT_STATUS schedule_posted(struct nrt_model *m, struct tensor_set *input, struct tensor_set *output)
{
	struct execution_work *e = work_new(m, input, output);
	NRT_STATUS status;

	if (!e)
		return NRT_RESOURCE;
	status = post_execution(e);
	if (status) {
		release_execution(&e->work);
		free(e);
	}
	return status;
}

NRT_STATUS nrt_async_drain_queued_execs(int32_t vnc_idx)
{
	NRT_STATUS status = api_enter(__func__);
	struct work_queue *q;
	uint16_t id;

	if (status)
		return status;
	status = find_unit(__func__, (uint32_t)vnc_idx, NRTA_XU_COMPUTE, 0, &id);
	q = status ? NULL : work_queue_find(id);
	if (q && !work_queue_drain(q)) {
		log_error(TAG, "A callback cannot wait for the queues: it is part of one");
		status = NRT_FAILURE;
	}
	api_leave();
	return status;
}

/* ---- tensors ------------------------------------------------------------------------------ */

struct transfer {
	struct work work;
	NRT_STATUS (*move)(const struct transfer *t);
	struct nrt_tensor *from, *to; /* NULL = memory of the program's: */
	const void *bytes;
	void *into;
	uint64_t from_offset, to_offset, size;
	const char *call;
};

static NRT_STATUS move_write(const struct transfer *t)
{
	return tensor_do_write(t->to, t->bytes, t->to_offset, t->size);
}

static NRT_STATUS move_read(const struct transfer *t)
{
	return tensor_do_read(t->from, t->into, t->from_offset, t->size);
}

static NRT_STATUS move_copy(const struct transfer *t)
{
	return tensor_do_copy(t->from, t->from_offset, t->to, t->to_offset, t->size);
}

static NRT_STATUS run_transfer(struct work *w)
{
	const struct transfer *t = (const struct transfer *)w;
	NRT_STATUS status;

	trace_set_sequence(w->seq);
	status = t->move(t);
	trace_set_sequence(0);
	tensor_failed(t->call, t->from ? t->from : t->to, status);
	return status;
}

static void release_transfer(struct work *w)
{
	struct transfer *t = (struct transfer *)w;

	tensor_put(t->to);
	tensor_put(t->from);
}

static const struct work_ops transfer_ops = {.run = run_transfer, .release = release_transfer};

/* Which queue it goes to, and where the answers go. */
struct place {
	const char *call;
	int vnc, queue;
	NRT_STATUS *exec_ret;
	nrta_seq_t *seq;
};

/* Takes the references over when it succeeds. */
static NRT_STATUS put_transfer(const struct transfer *what, const struct place *p)
{
	struct transfer *t;
	struct work_queue *q;
	NRT_STATUS status;
	uint16_t id;

	status = find_unit(p->call, (uint32_t)p->vnc, NRTA_XU_TENSOR_OP, p->queue, &id);
	if (!status)
		status = work_queue_get(id, &q);
	if (status)
		return status;
	t = malloc(sizeof(*t));
	if (!t)
		return NRT_RESOURCE;
	*t = *what;
	t->call = p->call;
	t->work = (struct work){.ops = &transfer_ops, .ret = p->exec_ret};
	status = work_queue_put(q, &t->work, TENSOR_LIMIT, p->seq);
	if (status) {
		log_write(LOG_LEVEL_DEBUG, TAG, p->call, "Queue %d of core %d is full", p->queue,
			p->vnc);
		free(t);
	}
	return status;
}

static NRT_STATUS get_tensor(const char *call, const nrt_tensor_t *tensor, struct nrt_tensor **ret)
{
	struct object *o;
	NRT_STATUS status = object_get_for(call, tensor, OBJECT_TENSOR, &o);

	if (!status)
		*ret = (struct nrt_tensor *)o;
	return status;
}

/* from, to: handles of the sides that are tensors. */
static NRT_STATUS schedule_transfer(
	struct transfer *t, const nrt_tensor_t *from, const nrt_tensor_t *to, const struct place *p)
{
	NRT_STATUS status = api_enter(p->call);

	if (status)
		return status;
	status = check_places(p->call, p->exec_ret, p->seq);
	if (!status && t->move != move_copy && !t->bytes && !t->into) {
		log_write(LOG_LEVEL_ERROR, TAG, p->call, "No buffer given (NULL)");
		status = NRT_INVALID;
	}
	if (!status && t->move != move_write)
		status = get_tensor(p->call, from, &t->from);
	if (!status && t->move != move_read)
		status = get_tensor(p->call, to, &t->to);
	if (!status)
		status = put_transfer(t, p);
	if (status)
		release_transfer(&t->work);
	api_leave();
	return status;
}

NRT_STATUS nrta_tensor_write(nrt_tensor_t *tensor, const void *buf, uint64_t offset, uint64_t size,
	int lnc_idx, int queue, NRT_STATUS *exec_ret, nrta_seq_t *req_sequence)
{
	const struct place p = {__func__, lnc_idx, queue, exec_ret, req_sequence};
	struct transfer t = {.move = move_write, .bytes = buf, .to_offset = offset, .size = size};

	return schedule_transfer(&t, NULL, tensor, &p);
}

NRT_STATUS nrta_tensor_read(void *buf, nrt_tensor_t *tensor, uint64_t offset, uint64_t size,
	int lnc_idx, int queue, NRT_STATUS *exec_ret, nrta_seq_t *req_sequence)
{
	const struct place p = {__func__, lnc_idx, queue, exec_ret, req_sequence};
	struct transfer t = {.move = move_read, .into = buf, .from_offset = offset, .size = size};

	return schedule_transfer(&t, tensor, NULL, &p);
}

NRT_STATUS nrta_tensor_copy(nrt_tensor_t *src, uint64_t src_offset, nrt_tensor_t *dst,
	uint64_t dst_offset, uint64_t size, int lnc_idx, int queue, NRT_STATUS *exec_ret,
	nrta_seq_t *req_sequence)
{
	const struct place p = {__func__, lnc_idx, queue, exec_ret, req_sequence};
	struct transfer t = {.move = move_copy,
		.from_offset = src_offset,
		.to_offset = dst_offset,
		.size = size};

	return schedule_transfer(&t, src, dst, &p);
}

/* ---- questions ---------------------------------------------------------------------------- */

NRT_STATUS nrta_is_completed(nrta_seq_t seq, bool *is_completed)
{
	NRT_STATUS status = api_enter(__func__);
	uint64_t number = NRTA_SEQ_GET_SEQ_NUM(seq);
	const struct work_queue *q;

	if (status)
		return status;
	q = work_queue_find((uint16_t)NRTA_SEQ_GET_XU_ID(seq));
	if (!is_completed) {
		status = runtime_no_place(__func__);
	} else if (!q || number == 0 || number > work_queue_last(q)) {
		log_error(TAG, "There is no sequence number %#llx", (unsigned long long)seq);
		status = NRT_INVALID;
	} else {
		*is_completed = number <= work_queue_done(q);
	}
	api_leave();
	return status;
}

NRT_STATUS nrta_get_sequence(uint32_t lnc_idx, nrta_xu_t xu_type, int queue, nrta_seq_t *seq)
{
	NRT_STATUS status = api_enter(__func__);
	const struct work_queue *q;
	uint16_t id;

	if (status)
		return status;
	status = seq ? find_unit(__func__, lnc_idx, xu_type, queue, &id)
		     : runtime_no_place(__func__);
	if (!status) {
		q = work_queue_find(id);
		*seq = (uint64_t)id << 48 | (q ? work_queue_done(q) : 0);
	}
	api_leave();
	return status;
}

/* ---- the end ------------------------------------------------------------------------------ */

void schedule_close(void)
{
	work_queues_close();
	set_listener(NULL, NULL);
}
