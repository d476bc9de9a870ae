/* SPDX-License-Identifier: Apache-2.0 */
/*
 * execute_run.c - one execution on a logical core, from the choice of the program to the acknowledgement.
 *
 * On the timeline, with the events of the device (execute_device.c) beside it:
 *
 *	kmgr_exec_core {
 *		kbl_exec_pre { nrt_model_switch when another model ran last }
 *		nrt_model_submit { binding table, queue starts }
 *		enc_barrier { until each core has begun; with several ranks }
 *		kbl_exec_wait { notifications, clocks; a timestamp_sync_point per physical core }
 *		kbl_exec_post {
 *			exec_consume_nc_status_notifications { acknowledgements }
 *			per physical core:
 *				notification_consume_errors { the status that the core reports }
 *				exec_consume_gpsimd_stdio { nothing: cores print nothing }
 *			exec_consume_cc_core_notifications { collectives }
 *		}
 *	}
 *
 * The cores of a logical core run side by side.  When the run of one of them was cut off the others may finish, but
 * not wait for a peer that does not come any more; then, and when the time limit is over, their queues are
 * released, which ends what they run.
 */
#include "runtime/exec/execute_run.h"

#include <string.h>
#include <time.h>

#include "runtime/lifecycle/runtime.h"
#include "runtime/log/log.h"
#include "runtime/trace/payload.h"

#define TAG "NMGR"
#define SPIN_NS 20000ull
#define POLL_NS 50000
#define GONE_NS 100000000ull /* how often a wait looks whether the device is still there */
#define GRACE_NS \
	1000000000ull /* what the others get beyond the length of their steps when a core failed */

static uint32_t core_count(const struct execution *e)
{
	return e->model->place.parts;
}

/* One of the spans of an execution on a core. */
static struct trace_span part_start(const struct execution *e, enum trace_type type)
{
	struct trace_exec payload = {.exec_id = e->id, .model_id = e->model->id};

	return trace_start(e->model->nc, type, &payload, sizeof(payload));
}

/* ---- status ------------------------------------------------------------------------------- */

/* The statuses that go before others when cores differ. */
static const struct {
	NRT_STATUS first, last;
	unsigned priority;
} priorities[] = {
	{NRT_SUCCESS, NRT_SUCCESS, 0},
	{NRT_HW_ERROR, NRT_HW_ERROR, 3},
	{NRT_EXEC_UNIT_UNRECOVERABLE, NRT_EXEC_UNIT_UNRECOVERABLE, 4},
	{NRT_EXEC_HW_ERR_COLLECTIVES, NRT_NETWORK_PROXY_FAILURE, 2},
};

static unsigned priority_of(NRT_STATUS status)
{
	for (size_t i = 0; i < sizeof(priorities) / sizeof(priorities[0]); i++)
		if (status >= priorities[i].first && status <= priorities[i].last)
			return priorities[i].priority;
	return 1;
}

static NRT_STATUS status_of(const struct execution *e)
{
	NRT_STATUS status = NRT_SUCCESS;

	for (uint32_t i = 0; i < core_count(e); i++)
		if (priority_of(e->runs[i].status) > priority_of(status))
			status = e->runs[i].status;
	return status;
}

/* ---- submit ------------------------------------------------------------------------------- */

/* Another model ran on the core last: its queues must be bound anew. */
static NRT_STATUS switch_model(struct nrt_model *m)
{
	struct trace_model_switch payload = {
		.device_core_idx = m->core->index, .model_id = m->id, .is_neuron_core_work = 1};
	struct trace_span span = trace_start(m->nc, TRACE_MODEL_SWITCH, &payload, sizeof(payload));
	NRT_STATUS status = model_bind(m);

	trace_stop(&span, status, NULL, 0);
	return status;
}

static bool is_bound(const struct nrt_model *m)
{
	for (uint32_t p = 0; p < m->place.parts; p++)
		if (m->core[p].bound != m->number)
			return false;
	return true;
}

static NRT_STATUS prepare(struct execution *e)
{
	struct trace_span span = part_start(e, TRACE_EXEC_PRE);
	NRT_STATUS status = is_bound(e->model) ? NRT_SUCCESS : switch_model(e->model);

	for (uint32_t i = 0; i < core_count(e); i++) {
		e->runs[i].core = e->model->core + i;
		device_forget(&e->runs[i]);
	}
	trace_stop(&span, status, NULL, 0);
	return status;
}

/* Behind the table: the run's number.  Ranks meet in runs of one number, so one that has given up a run meets the
 * others in the next. */
static NRT_STATUS write_bindings(const struct execution *e)
{
	struct nrt_model *m = e->model;
	struct vdev_binding table[VDEV_MAX_BINDINGS + 1];
	uint32_t n = m->desc.tensor_count;
	size_t bytes = model_bindings_bytes(m);

	for (uint32_t i = 0; i < n; i++) {
		const struct tensor_view *v = &e->uses[i].view;

		table[i] = (struct vdev_binding){
			.mem_handle = v->storage ? v->storage->memory.handle : m->temps[i].handle,
			.offset = v->offset,
			.size = m->desc.tensors[i].bytes,
		};
	}
	m->runs++;
	memcpy(&table[n], &m->runs, sizeof(m->runs));
	return bytes ? memory_copy_in(&m->bindings, 0, table, bytes) : NRT_SUCCESS;
}

/* Starts the cores.  When one cannot be started those before it are ended again. */
static NRT_STATUS start_cores(struct execution *e)
{
	uint32_t i = 0;
	int rc = 0;

	for (; i < core_count(e) && rc == 0; i++)
		rc = device_queue_start(e->runs[i].core, e->id);
	if (rc == 0)
		return NRT_SUCCESS;
	log_error(TAG, "Start on nc %u: %s", e->model->nc, device_strerror(rc));
	while (--i > 0)
		(void)model_cancel(e->model, i - 1);
	return status_from_errno(rc);
}

static NRT_STATUS submit(struct execution *e)
{
	struct trace_model payload = {.model_id = e->model->id};
	struct trace_span span =
		trace_start(e->model->nc, TRACE_MODEL_SUBMIT, &payload, sizeof(payload));
	NRT_STATUS status = write_bindings(e);

	e->starting_ns = clock_boot().ns;
	if (!status)
		status = start_cores(e);
	e->submitted_ns = clock_boot().ns;
	trace_stop(&span, status, NULL, 0);
	return status;
}

/* ---- wait --------------------------------------------------------------------------------- */

static bool all_begun(struct execution *e)
{
	bool all = true;

	for (uint32_t i = 0; i < core_count(e); i++) {
		device_take_notes(e, &e->runs[i]);
		all &= e->runs[i].started || e->runs[i].ended;
	}
	return all;
}

static bool all_ended(struct execution *e)
{
	bool all = true;

	for (uint32_t i = 0; i < core_count(e); i++) {
		device_take_notes(e, &e->runs[i]);
		all &= e->runs[i].ended;
	}
	return all;
}

/* Those that have not ended will not be waited for. */
static void give_up(struct execution *e, NRT_STATUS status)
{
	for (uint32_t i = 0; i < core_count(e); i++)
		if (!e->runs[i].ended) {
			e->runs[i].given_up = true;
			e->runs[i].status = status;
		}
}

static bool any_given_up(const struct execution *e)
{
	for (uint32_t i = 0; i < core_count(e); i++)
		if (e->runs[i].given_up)
			return true;
	return false;
}

/* Did the run end before its end? */
static bool was_cut_off(const struct core_run *r)
{
	return r->ended && r->status && r->status != NRT_EXEC_COMPLETED_WITH_NUM_ERR &&
	       r->status != NRT_EXEC_COMPLETED_WITH_ERR;
}

/* The time from the submit on, after which nobody is waited for. */
static uint64_t limit_of(const struct execution *e, uint64_t waited_ns, uint64_t *ret_failed_ns)
{
	uint64_t limit = runtime_get()->exec_timeout_s * 1000000000ull;

	for (uint32_t i = 0; i < core_count(e) && *ret_failed_ns == UINT64_MAX; i++)
		if (was_cut_off(&e->runs[i]))
			*ret_failed_ns = waited_ns + 2 * e->model->duration_ns + GRACE_NS;
	return limit < *ret_failed_ns ? limit : *ret_failed_ns;
}

static void say_no_end(const struct execution *e, bool failed)
{
	if (failed)
		log_error(TAG, "Model '%s' on nc %u: a core failed and another one does not end",
			e->model->desc.name, e->model->nc);
	else
		log_error(TAG, "Model '%s' on nc %u: no end within %u s", e->model->desc.name,
			e->model->nc, runtime_get()->exec_timeout_s);
}

static void device_went(struct execution *e)
{
	if (all_ended(e)) /* just before */
		return;
	log_error(
		TAG, "Model '%s' on nc %u: the device is gone", e->model->desc.name, e->model->nc);
	give_up(e, NRT_HW_ERROR);
}

/* Until `done` is true, or nobody is waited for any more. */
static void await(struct execution *e, bool (*done)(struct execution *e))
{
	uint64_t failed_ns = UINT64_MAX, look_ns = GONE_NS;

	while (!any_given_up(e) && !done(e)) {
		uint64_t waited = clock_boot().ns - e->submitted_ns;

		if (waited > limit_of(e, waited, &failed_ns)) {
			say_no_end(e, failed_ns != UINT64_MAX);
			give_up(e, failed_ns != UINT64_MAX ? NRT_SUCCESS : NRT_TIMEOUT);
			return;
		}
		if (waited > look_ns) {
			if (device_is_gone(runtime_get()->devices)) {
				device_went(e);
				return;
			}
			look_ns = waited + GONE_NS;
		}
		if (waited > SPIN_NS)
			(void)nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
	}
}

/* Ranks wait for each other on the device; the host waits until its cores have begun to. */
static void meet(struct execution *e)
{
	struct trace_enc_barrier payload = {.peer_id = -1,
		.exec_id = e->id,
		.nec_dev_id = (int32_t)e->model->core->device->index};
	struct trace_span span;

	if (!e->model->desc.collectives || e->model->place.ranks < 2)
		return;
	span = trace_start(e->model->nc, TRACE_ENC_BARRIER, &payload, sizeof(payload));
	await(e, all_begun);
	trace_stop(&span, status_of(e), NULL, 0);
}

/* Ends what was given up, so that the next execution finds the core free. */
static void end_given_up(struct execution *e)
{
	for (uint32_t i = 0; i < core_count(e); i++) {
		struct core_run *r = &e->runs[i];

		if (r->given_up && r->status != NRT_HW_ERROR)
			(void)model_cancel(e->model, i);
	}
}

static NRT_STATUS wait_for(struct execution *e)
{
	struct trace_span span = part_start(e, TRACE_EXEC_WAIT);
	NRT_STATUS status;

	await(e, all_ended);
	end_given_up(e);
	status = status_of(e);
	for (uint32_t i = 0; i < core_count(e); i++) {
		struct core_run *r = &e->runs[i];

		if (status != NRT_HW_ERROR || !r->given_up)
			device_take_sync(e, r);
		if (!r->ended) { /* for its events */
			r->status = status;
			r->end_ps = r->synced && r->sync.clock.ps > r->start_ps ? r->sync.clock.ps
										: r->start_ps;
		}
	}
	trace_stop(&span, status, NULL, 0);
	for (uint32_t i = 0; i < core_count(e); i++) {
		device_say_run(e, &e->runs[i]);
		device_profile_run(e, &e->runs[i]);
	}
	return status;
}

/* ---- afterwards --------------------------------------------------------------------------- */

static void acknowledge(const struct execution *e)
{
	struct trace_span span = part_start(e, TRACE_CONSUME_TPB_STATUS_NOTIFICATIONS);
	int rc = 0;

	for (uint32_t i = 0; i < core_count(e); i++) {
		const struct core_run *r = &e->runs[i];
		int one = r->ends ? device_queue_ack(r->core, r->ends) : 0;

		rc = one < 0 ? one : rc;
	}
	if (rc < 0)
		log_warn(TAG, "Acknowledgement on nc %u: %s", e->model->nc, device_strerror(rc));
	trace_stop(&span, status_from_errno(rc), NULL, 0);
}

static void consume_errors(const struct execution *e, struct core_run *r)
{
	struct trace_span span = part_start(e, TRACE_CONSUME_ERROR_NOTIFICATIONS);

	device_say_errors(e, r);
	trace_stop(&span, r->status, NULL, 0);
}

static void consume_output(const struct execution *e)
{
	struct trace_span span = part_start(e, TRACE_CONSUME_POOL_STDIO);

	trace_stop(&span, NRT_SUCCESS, NULL, 0);
}

static void consume_collectives(struct execution *e)
{
	struct trace_span span = part_start(e, TRACE_CONSUME_TOPSP_CC_NOTIFICATIONS);

	for (uint32_t i = 0; i < core_count(e); i++)
		device_say_collectives(e, &e->runs[i]);
	trace_stop(&span, NRT_SUCCESS, NULL, 0);
}

/* Whatever became of the execution: its notifications must go. */
static void finish(struct execution *e, NRT_STATUS status)
{
	struct trace_span span = part_start(e, TRACE_EXEC_POST);

	acknowledge(e);
	for (uint32_t i = 0; i < core_count(e); i++) {
		consume_errors(e, &e->runs[i]);
		consume_output(e);
	}
	consume_collectives(e);
	execution_say_failure(e, status);
	trace_stop(&span, status, NULL, 0);
}

NRT_STATUS execution_run(struct execution *e)
{
	struct trace_span span = part_start(e, TRACE_EXEC_CORE);
	NRT_STATUS status;

	record_execution(e, EXEC_TRACE_EXEC_START, NRT_SUCCESS);
	status = prepare(e);
	if (!status)
		status = submit(e);
	if (!status) {
		meet(e);
		status = wait_for(e);
		finish(e, status);
	}
	record_execution(e, EXEC_TRACE_EXEC_END, status);
	trace_stop(&span, status, NULL, 0);
	return status;
}
