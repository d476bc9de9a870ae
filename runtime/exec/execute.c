/* SPDX-License-Identifier: Apache-2.0 */
/*
 * execute.c - one execution of a model.
 *
 * On the timeline:
 *
 *	nrt_execute {
 *		kmgr_exec_core {
 *			kbl_exec_pre { nrt_model_switch when another model ran last }
 *			nrt_model_submit { binding table, queue start }
 *			kbl_exec_wait { notifications, clock; timestamp_sync_point }
 *			kbl_exec_post {
 *				exec_consume_nc_status_notifications { acknowledgement }
 *				notification_consume_errors { the status that the device reports }
 *			}
 *		}
 *	}
 *	nc_exec_running            on the device's own time
 *
 * The device stamps start and end with its own clock.  A sync point of the same execution (both
 * clocks read at one moment, the error half the bracket) places them on the host's: host = sync_cpu + (nc
 * - sync_nc).  Both ends use the same point, so the host interval is exactly the device interval.
 */
#include "runtime/exec/execute.h"

#include <string.h>
#include <time.h>

#include "runtime/exec/schedule.h"
#include "runtime/lifecycle/runtime.h"
#include "runtime/log/log.h"
#include "runtime/trace/payload.h"
#include "runtime/trace/trace.h"

#define TAG "NMGR"
#define SPIN_NS 20000ull
#define POLL_NS 50000
#define GONE_NS 100000000ull /* how often a wait looks whether the device is still there */
#define GOOD_BOUND_NS 50000u /* a clock reading that took longer was interrupted */

static _Atomic uint32_t last_exec_id;

struct execution {
	struct nrt_model *model;
	uint32_t id;
	struct nrt_tensor
		*tensors[VDEV_MAX_BINDINGS];	   /* with references; NULL for temporary ones */
	struct tensor_use uses[VDEV_MAX_BINDINGS]; /* of these tensors */
	/* from the notifications: */
	bool started, ended;
	uint64_t start_ps, end_ps;
	NRT_STATUS device_status;
	uint32_t notes;
};

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

static NRT_STATUS write_bindings(const struct execution *e)
{
	const struct nrt_model *m = e->model;
	struct vdev_binding table[VDEV_MAX_BINDINGS];
	uint32_t n = m->desc.tensor_count;

	for (uint32_t i = 0; i < n; i++) {
		const struct tensor_view *v = &e->uses[i].view;

		table[i] = (struct vdev_binding){
			.mem_handle = v->storage ? v->storage->memory.handle : m->temps[i].handle,
			.offset = v->offset,
			.size = m->desc.tensors[i].bytes,
		};
	}
	return n ? memory_copy_in(&m->bindings, 0, table, n * sizeof(table[0])) : NRT_SUCCESS;
}

/* ---- submit ------------------------------------------------------------------------------- */

/* Another model ran on the core last: its queue must be bound anew. */
static NRT_STATUS switch_model(struct nrt_model *m)
{
	struct trace_model_switch payload = {
		.device_core_idx = m->core->index, .model_id = m->id, .is_neuron_core_work = 1};
	struct trace_span span = trace_start(m->nc, TRACE_MODEL_SWITCH, &payload, sizeof(payload));
	NRT_STATUS status = model_bind(m);

	trace_stop(&span, status, NULL, 0);
	return status;
}

/* One of the spans of an execution on a core. */
static struct trace_span part_start(const struct execution *e, enum trace_type type)
{
	struct trace_exec payload = {.exec_id = e->id, .model_id = e->model->id};

	return trace_start(e->model->nc, type, &payload, sizeof(payload));
}

static NRT_STATUS prepare(struct execution *e)
{
	struct nrt_model *m = e->model;
	struct trace_span span = part_start(e, TRACE_EXEC_PRE);
	NRT_STATUS status = m->core->bound == m->number ? NRT_SUCCESS : switch_model(m);

	trace_stop(&span, status, NULL, 0);
	return status;
}

static NRT_STATUS submit(struct execution *e)
{
	struct nrt_model *m = e->model;
	struct trace_model payload = {.model_id = m->id};
	struct trace_span span = trace_start(m->nc, TRACE_MODEL_SUBMIT, &payload, sizeof(payload));
	NRT_STATUS status = write_bindings(e);

	if (!status) {
		int rc = device_queue_start(m->core, e->id);

		if (rc < 0)
			log_error(TAG, "Start on nc %u: %s", m->nc, device_strerror(rc));
		status = status_from_errno(rc);
	}
	trace_stop(&span, status, NULL, 0);
	return status;
}

/* ---- wait --------------------------------------------------------------------------------- */

/* Takes what the device has written; what belongs to an execution that was given up is passed over. */
static void drain_notes(struct execution *e)
{
	struct vdev_notification note;

	while (!e->ended && notify_next(&e->model->core->notes, &note)) {
		e->notes++;
		if (note.id != (uint16_t)e->id)
			continue;
		if (note.subtype == VDEV_NOTE_START) {
			e->started = true;
			e->start_ps = note.timestamp_ps;
		} else if (note.subtype == VDEV_NOTE_END) {
			e->ended = true;
			e->end_ps = note.timestamp_ps;
			e->device_status = (NRT_STATUS)note.custom;
		}
	}
}

static NRT_STATUS device_went(struct execution *e)
{
	drain_notes(e); /* it may have ended just before */
	if (e->ended)
		return NRT_SUCCESS;
	log_error(
		TAG, "Model '%s' on nc %u: the device is gone", e->model->desc.name, e->model->nc);
	return NRT_HW_ERROR;
}

static NRT_STATUS await_end(struct execution *e)
{
	uint64_t begin = clock_boot().ns;
	uint64_t limit_ns = runtime_get()->exec_timeout_s * 1000000000ull;
	uint64_t look_ns = GONE_NS;

	for (;;) {
		uint64_t waited;

		drain_notes(e);
		if (e->ended)
			return NRT_SUCCESS;
		waited = clock_boot().ns - begin;
		if (waited > limit_ns) {
			log_error(TAG, "Model '%s' on nc %u: no end within %u s",
				e->model->desc.name, e->model->nc, runtime_get()->exec_timeout_s);
			return NRT_TIMEOUT;
		}
		if (waited > look_ns) {
			if (device_is_gone(runtime_get()->devices))
				return device_went(e);
			look_ns = waited + GONE_NS;
		}
		if (waited > SPIN_NS)
			(void)nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
	}
}

/* Reads both clocks; once more, twice at most, when the reading was interrupted. */
static int read_clocks(struct device_core *core, struct device_sync *ret)
{
	int rc = device_read_clock(core, ret);

	for (int i = 0; rc == 0 && i < 2 && ret->bound_ns > GOOD_BOUND_NS; i++) {
		struct device_sync again;

		rc = device_read_clock(core, &again);
		if (rc == 0 && again.bound_ns < ret->bound_ns)
			*ret = again;
	}
	return rc;
}

/* Reads both clocks and says so.  False, and nothing in *ret, when nobody wants to know or the clock
 * cannot be read. */
static bool take_sync_point(const struct execution *e, struct device_sync *ret)
{
	struct trace_timestamp_sync payload;
	int rc;

	if (!trace_on())
		return false;
	rc = read_clocks(e->model->core, ret);
	if (rc < 0) {
		log_warn(TAG, "Clock of nc %u: %s", e->model->nc, device_strerror(rc));
		return false;
	}
	payload = (struct trace_timestamp_sync){
		.exec_id = e->id,
		.sync = {.nc_timestamp_ns = ret->clock.ps / 1000, .cpu_timestamp_ns = ret->host.ns},
		.sync_bound_ns = ret->bound_ns,
	};
	trace_instant(e->model->nc, TRACE_TIMESTAMP_SYNC, &payload, sizeof(payload));
	return true;
}

static struct boot_ns host_time(const struct device_sync *sync, uint64_t nc_ns)
{
	return (struct boot_ns){sync->host.ns + (nc_ns - sync->clock.ps / 1000)};
}

static void emit_device_run(const struct execution *e, const struct device_sync *sync)
{
	const struct nrt_model *m = e->model;
	uint64_t start_ns = e->start_ps / 1000, end_ns = e->end_ps / 1000;
	struct trace_device_exec start = {
		.device_core_idx = m->core->index,
		.exec_id = e->id,
		.sync = {start_ns, host_time(sync, start_ns).ns},
		.model_id = m->id,
	};
	struct trace_device_exec_stop stop = {.sync = {end_ns, host_time(sync, end_ns).ns}};
	uint64_t tracking = trace_event_at(host_time(sync, start_ns), m->nc, TRACE_DEVICE_EXEC,
		TRACE_START, 0, 0, &start, sizeof(start));

	if (!tracking) /* nobody has the start */
		return;
	(void)trace_event_at(host_time(sync, end_ns), m->nc, TRACE_DEVICE_EXEC, TRACE_STOP,
		tracking, e->device_status, &stop, sizeof(stop));
}

static NRT_STATUS wait_for(struct execution *e)
{
	struct trace_span span = part_start(e, TRACE_EXEC_WAIT);
	NRT_STATUS status = await_end(e);
	struct device_sync sync;
	bool synced = false;

	if (!status) {
		synced = take_sync_point(e, &sync);
		status = e->device_status;
	}
	trace_stop(&span, status, NULL, 0);
	if (synced && e->started)
		emit_device_run(e, &sync);
	return status;
}

/* ---- afterwards --------------------------------------------------------------------------- */

static void acknowledge(const struct execution *e)
{
	struct trace_span span = part_start(e, TRACE_CONSUME_TPB_STATUS_NOTIFICATIONS);
	int rc = e->notes ? device_queue_ack(e->model->core, e->notes) : 0;

	if (rc < 0)
		log_warn(TAG, "Acknowledgement on nc %u: %s", e->model->nc, device_strerror(rc));
	trace_stop(&span, status_from_errno(rc), NULL, 0);
}

static void say_errors(const struct execution *e)
{
	struct trace_span span = part_start(e, TRACE_CONSUME_ERROR_NOTIFICATIONS);

	if (e->device_status)
		log_error(TAG, "Model '%s' on nc %u: the device reports status %d",
			e->model->desc.name, e->model->nc, (int)e->device_status);
	trace_stop(&span, e->device_status, NULL, 0);
}

/* Whatever became of the execution: its notifications must go. */
static void finish(const struct execution *e, NRT_STATUS status)
{
	struct trace_span span = part_start(e, TRACE_EXEC_POST);

	acknowledge(e);
	say_errors(e);
	trace_stop(&span, status, NULL, 0);
}

static NRT_STATUS run_on_core(struct execution *e)
{
	struct trace_span span = part_start(e, TRACE_EXEC_CORE);
	NRT_STATUS status = prepare(e);

	if (!status)
		status = submit(e);
	if (!status) {
		status = wait_for(e);
		finish(e, status);
	}
	trace_stop(&span, status, NULL, 0);
	return status;
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
		status = run_on_core(&e);
		pthread_mutex_unlock(&m->core->lock);
	}
	for (uint32_t i = 0; i < m->desc.tensor_count; i++) {
		tensor_use_end(&e.uses[i]);
		tensor_put(e.tensors[i]);
	}
	trace_stop(&span, status, NULL, 0);
	trace_set_sequence(0);
	return status;
}

NRT_STATUS nrt_execute(
	nrt_model_t *model, const nrt_tensor_set_t *input_set, nrt_tensor_set_t *output_set)
{
	NRT_STATUS status = api_enter(__func__);
	struct object *m = NULL, *input = NULL, *output = NULL;

	if (status)
		return status;
	status = object_get(model, OBJECT_MODEL, &m);
	if (!status)
		status = object_get(input_set, OBJECT_SET, &input);
	if (!status)
		status = object_get(output_set, OBJECT_SET, &output);
	if (!status && runtime_get()->async_max_inflight)
		status = schedule_posted((struct nrt_model *)m, (struct tensor_set *)input,
			(struct tensor_set *)output);
	else if (!status)
		status = execute_model((struct nrt_model *)m, (struct tensor_set *)input,
			(struct tensor_set *)output, 0);
	object_put(output);
	object_put(input);
	object_put(m);
	api_leave();
	return status;
}
