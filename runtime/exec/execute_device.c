/* SPDX-License-Identifier: Apache-2.0 */
/*
 * execute_device.c - what a core wrote about a run, and the events that are made of it.
 *
 * The device stamps its records with the core's own clock.  A sync point of the same core and execution (both clocks
 * read at one moment, the error half the bracket) places them on the host's: host = sync_cpu + (nc - sync_nc).
 * All records of a run use the same point, so host intervals are exactly the device's.  A run that would then begin
 * before the host was about to start it tells that the point is late by as much, within its error.  Beyond that the
 * device's clock is faster than the host's, and a long run is drawn together to begin with its start.  One that
 * is slower cannot be told from one that stands still between runs; nothing is done about it here.
 *
 *	nc_model_switch		CUSTOM records before START: the core changes its program
 *	nc_exec_running		START to END; to where the host gave up when there is no END
 *	numerical_err		a record of the ring of errors that reports one
 *	hw_notify		any other record there; and that records of a ring are missing
 *	cc_running		CC_START to CC_END of the TopSP
 *	cc_exec_barrier		START to END of the TopSP; the cores of a logical core wait at the same
 *				barrier, so the first one speaks for all
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/exec/execute_run.h"
#include "runtime/log/log.h"
#include "runtime/profile/collector_tap.h"
#include "runtime/trace/payload.h"

#define TAG "NMGR"

/* ---- records of runs ---------------------------------------------------------------------- */

static void keep(struct core_notes *n, const struct notification *note)
{
	if (n->count == n->room) {
		uint32_t room = n->room ? 2 * n->room : 64;
		void *list = realloc(n->list, room * sizeof(n->list[0]));

		if (!list) {
			n->lost++;
			return;
		}
		n->list = list;
		n->room = room;
	}
	n->list[n->count++] = *note;
}

/* Tells the device before the ring is full, which a device may take for a failure. */
static void take_ring(struct core_run *r, enum device_ring which, struct core_notes *n)
{
	struct notify_ring *ring = &r->core->rings[which];
	struct notification note;
	uint32_t lost;

	while (notify_next(ring, &note)) {
		bool gap = (note.type_phase & NOTE_SW_OVERFLOW) != 0;

		keep(n, &note);
		collector_tap(r->core, which, &note);
		n->lost += gap; /* at least one */
		collector_tap_lost(r->core, which, gap, false);
	}
	if (device_ring_check(r->core, which, &lost) == 0) {
		n->lost += lost;
		collector_tap_lost(r->core, which, lost, true);
	}
	if (ring->read - ring->told >= ring->count / 2)
		(void)device_ring_read(r->core, which);
}

static void take_rings(struct core_run *r)
{
	take_ring(r, DEVICE_RING_ERRORS, &r->errors);
	take_ring(r, DEVICE_RING_COLLECTIVES, &r->collectives);
}

void device_drop_notes(struct core_run *r)
{
	free(r->errors.list);
	free(r->collectives.list);
	r->errors = r->collectives = (struct core_notes){0};
}

void device_forget(struct core_run *r)
{
	take_rings(r);
	device_drop_notes(r);
}

static void take_note(struct core_run *r, const struct notification *note)
{
	unsigned hint = note->hint >> 4;

	if (note->subtype == NOTE_START) {
		r->started = true;
		r->start_ps = note->timestamp_ps;
	} else if (note->subtype == NOTE_END) {
		r->ended = true;
		r->end_ps = note->timestamp_ps;
		r->status = (NRT_STATUS)note->custom;
	} else if (note->subtype == NOTE_CUSTOM &&
		   (hint == NOTE_HINT_SWITCH_BEGINS || hint == NOTE_HINT_SWITCH_ENDS)) {
		r->switch_ps[hint == NOTE_HINT_SWITCH_ENDS] = note->timestamp_ps;
	}
}

/* What belongs to an execution that was given up is passed over. */
void device_take_notes(const struct execution *e, struct core_run *r)
{
	struct notification note;

	while (!r->ended && notify_next(&r->core->rings[DEVICE_RING_RUNS], &note)) {
		r->ends += note.subtype == NOTE_END;
		collector_tap(r->core, DEVICE_RING_RUNS, &note);
		if (note.id == (uint16_t)e->id)
			take_note(r, &note);
	}
	take_rings(r); /* behind it: what was written before END is there with it */
}

/* ---- clocks ------------------------------------------------------------------------------- */

static uint64_t host_ns(const struct core_run *r, uint64_t ps)
{
	int64_t nc_ns = (int64_t)(ps / 1000 - r->sync.clock.ps / 1000);
	int64_t whole_ns = (int64_t)(r->sync.clock.ps / 1000 - r->begin.clock.ps / 1000);

	if (r->begin.host.ns && whole_ns > 0)
		nc_ns = (int64_t)((__int128)nc_ns * (int64_t)(r->sync.host.ns - r->begin.host.ns) /
				  whole_ns);
	return r->sync.host.ns + (uint64_t)nc_ns;
}

static struct trace_sync_info at(const struct core_run *r, uint64_t ps)
{
	return (struct trace_sync_info){ps / 1000, host_ns(r, ps)};
}

/* A run does not begin before it is started: so the reading was wrong, or, by more than that, the clock is fast. */
static void correct(const struct execution *e, struct core_run *r)
{
	uint64_t first = r->switch_ps[0] ? r->switch_ps[0] : r->start_ps;
	int64_t early_ns = (int64_t)(e->starting_ns - host_ns(r, first));

	if (!r->started || early_ns <= 0)
		return;
	if ((uint64_t)early_ns <= r->sync.bound_ns)
		r->sync.host.ns += (uint64_t)early_ns;
	else
		r->begin = (struct device_sync){.clock.ps = first, .host.ns = e->starting_ns};
}

/* The events that have times of the device. */
static bool somebody_wants_times(uint32_t nc)
{
	static const enum trace_type types[] = {TRACE_TIMESTAMP_SYNC, TRACE_DEVICE_EXEC,
		TRACE_NC_MODEL_SWITCH, TRACE_CC_EXEC, TRACE_CC_EXEC_BARRIER, TRACE_NUM_ERR,
		TRACE_HW_NOTIFY};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (trace_wanted(nc, types[i]))
			return true;
	return exec_trace_on();
}

void device_take_sync(const struct execution *e, struct core_run *r)
{
	struct trace_timestamp_sync payload;
	int rc;

	if (!somebody_wants_times(e->model->nc) && !collector_wants(r->core))
		return;
	rc = device_read_clock_well(r->core, &r->sync);
	if (rc < 0) {
		log_warn(TAG, "Clock of nc %u: %s", e->model->nc, device_strerror(rc));
		return;
	}
	r->synced = true;
	collector_tap_sync(r->core, e->id, &r->sync);
	correct(e, r);
	record_sync(r);
	payload = (struct trace_timestamp_sync){
		.exec_id = e->id,
		.sync = {.nc_timestamp_ns = r->sync.clock.ps / 1000,
			.cpu_timestamp_ns = r->sync.host.ns},
		.sync_bound_ns = r->sync.bound_ns,
		.device_core_idx = r->core->index,
		.core_clocks = e->model->place.parts,
	};
	trace_instant(e->model->nc, TRACE_TIMESTAMP_SYNC, &payload, sizeof(payload));
}

/* ---- events ------------------------------------------------------------------------------- */

static void say_span(const struct execution *e, enum trace_type type, const void *payload,
	size_t size, struct trace_sync_info start, struct trace_sync_info end, NRT_STATUS status)
{
	struct trace_device_stop stop = {end};
	struct trace_span span = trace_start_at(
		(struct boot_ns){start.cpu_timestamp_ns}, e->model->nc, type, payload, size);

	if (span.tracking) /* else nobody has the start */
		trace_stop_at(
			(struct boot_ns){end.cpu_timestamp_ns}, &span, status, &stop, sizeof(stop));
}

static void say_switch(const struct execution *e, const struct core_run *r)
{
	struct trace_nc_model_switch start = {.device_core_idx = r->core->index,
		.model_id = e->model->id,
		.exec_id = e->id,
		.sync = at(r, r->switch_ps[0])};

	if (r->switch_ps[0] && r->switch_ps[1])
		say_span(e, TRACE_NC_MODEL_SWITCH, &start, sizeof(start), start.sync,
			at(r, r->switch_ps[1]), 0);
}

void device_say_run(const struct execution *e, const struct core_run *r)
{
	struct trace_device_exec start = {
		.device_core_idx = r->core->index,
		.exec_id = e->id,
		.sync = at(r, r->start_ps),
		.model_id = e->model->id,
	};

	if (!r->synced)
		return;
	say_switch(e, r);
	if (r->started) {
		record_run(e, r, start.sync.cpu_timestamp_ns, host_ns(r, r->end_ps));
		say_span(e, TRACE_DEVICE_EXEC, &start, sizeof(start), start.sync, at(r, r->end_ps),
			r->status);
	}
}

void device_profile_run(const struct execution *e, const struct core_run *r)
{
	struct collector_run run = {
		.exec_id = e->id,
		.model_id = e->model->id,
		.model_number = e->model->number,
		.start_ps = r->start_ps,
		.end_ps = r->end_ps,
		.started = r->started,
		.ended = r->ended,
		.status = r->status,
		.host_start_ns = e->starting_ns,
	};

	if (!collector_wants(r->core))
		return;
	run.host_end_ns = clock_boot().ns;
	(void)snprintf(run.model_name, sizeof(run.model_name), "%s", e->model->desc.name);
	collector_tap_run(r->core, &run);
}

static void say_error(
	const struct execution *e, const struct core_run *r, const struct notification *note)
{
	struct trace_device_exec numerical = {.device_core_idx = r->core->index,
		.exec_id = e->id,
		.sync = at(r, note->timestamp_ps),
		.model_id = e->model->id};
	struct trace_hw_notify other = {.device_core_idx = r->core->index,
		.hint = note->hint >> 4,
		.custom_data = note->custom,
		.exec_id = e->id,
		.sync = numerical.sync};
	bool is_numerical = note->custom == VDEV_CORE_FAULT_NUMERICAL;

	record_error(e, r, numerical.sync.cpu_timestamp_ns, note->custom, note->subtype);
	(void)trace_event_at((struct boot_ns){numerical.sync.cpu_timestamp_ns}, e->model->nc,
		is_numerical ? TRACE_NUM_ERR : TRACE_HW_NOTIFY, TRACE_INSTANT, 0, note->subtype,
		is_numerical ? (const void *)&numerical : (const void *)&other, sizeof(numerical));
}

/* Records are missing: said in the log and, where there is one, on the timeline. */
static void say_lost(
	const struct execution *e, const struct core_run *r, const char *what, uint64_t lost)
{
	const struct notification note = {.custom = VDEV_CORE_FAULT_OVERFLOW,
		.subtype = NRT_EXEC_SW_NQ_OVERFLOW,
		.timestamp_ps = r->end_ps};

	if (!lost)
		return;
	log_warn(TAG,
		"Model '%s' on nc %u: core %u of nd%u: its ring was full, %llu or more "
		"notifications of %s are lost",
		e->model->desc.name, e->model->nc, r->core->index, r->core->device->index,
		(unsigned long long)lost, what);
	if (r->synced)
		say_error(e, r, &note);
}

void device_say_errors(const struct execution *e, struct core_run *r)
{
	take_ring(r, DEVICE_RING_ERRORS, &r->errors);
	if (r->errors.count) {
		r->fault = r->errors.list[0].custom;
		r->fault_step = r->errors.list[0].id;
	}
	for (uint32_t i = 0; i < r->errors.count && r->synced; i++)
		say_error(e, r, &r->errors.list[i]);
	say_lost(e, r, "errors", r->errors.lost);
	(void)device_ring_read(r->core, DEVICE_RING_ERRORS);
}

static void say_collective(const struct execution *e, const struct core_run *r,
	const struct notification *note, uint64_t end_ps, NRT_STATUS status)
{
	struct trace_cc_exec cc = {.gid = (uint32_t)e->model->place.group,
		.op_id = note->id,
		.exec_id = e->id,
		.sync = at(r, note->timestamp_ps),
		.device_core_idx = r->core->index};
	struct trace_cc_barrier barrier = {.model_id = e->model->id,
		.exec_id = e->id,
		.device_core_idx = r->core->index,
		.sync = cc.sync};

	if (note->subtype == NOTE_CC_START) {
		record_collective(
			e, r, note->id, cc.sync.cpu_timestamp_ns, host_ns(r, end_ps), status);
		say_span(e, TRACE_CC_EXEC, &cc, sizeof(cc), cc.sync, at(r, end_ps), status);
	} else if (r == &e->runs[0]) {
		say_span(e, TRACE_CC_EXEC_BARRIER, &barrier, sizeof(barrier), barrier.sync,
			at(r, end_ps), status);
	}
}

/* A TopSP does one thing after another; what has no end was cut off by the end of the run. */
void device_say_collectives(const struct execution *e, struct core_run *r)
{
	struct notification open = {0};

	take_ring(r, DEVICE_RING_COLLECTIVES, &r->collectives);
	for (uint32_t i = 0; i < r->collectives.count; i++) {
		const struct notification note = r->collectives.list[i];

		if (note.subtype == NOTE_CC_START || note.subtype == NOTE_START)
			open = note;
		else if (open.subtype && r->synced)
			say_collective(e, r, &open, note.timestamp_ps, 0);
		if (note.subtype == NOTE_CC_END || note.subtype == NOTE_END)
			open.subtype = 0;
	}
	if (open.subtype && r->synced)
		say_collective(e, r, &open,
			r->end_ps > open.timestamp_ps ? r->end_ps : open.timestamp_ps, r->status);
	say_lost(e, r, "collectives", r->collectives.lost);
	(void)device_ring_read(r->core, DEVICE_RING_COLLECTIVES);
}
