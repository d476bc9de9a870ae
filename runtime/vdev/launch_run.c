/* SPDX-License-Identifier: Apache-2.0 */
/* launch_run.c - one launch on a core; see launch_run.h. */
#include "runtime/vdev/launch_run.h"

#include <errno.h>

#include <nrt/nrt_status.h>
#include "runtime/base/clock.h"
#include "runtime/vdev/exec.h"
#include "runtime/vdev/schedule.h"

struct run {
	struct vdev_core *core;
	struct vdev_launch *launch;
	struct vdev_schedule schedule;
	uint64_t start_ps, end_ps; /* device time */
	uint32_t collectives;	   /* that have begun */
	uint8_t injected;	   /* enum vdev_core_fault: of --fault, not yet happened */
	bool over, hangs;
};

static struct vdev_ring *core_ring(struct run *r, unsigned type, unsigned engine)
{
	return &r->core->rings.core[type][engine];
}

static bool wait_until(struct vdev_core *core, uint64_t device_ps)
{
	vdev_clock_let(&core->clock, device_ps);
	return vdev_core_wait_boot(
		core, (vdev_clock_to_boot_ps(&core->clock, device_ps) + 999) / 1000);
}

static int write_record(struct run *r, struct vdev_ring *ring, const struct notification *record)
{
	return vdev_ring_write(
		ring, *record, r->core->device->vdev->config.ring_full, &r->core->losses);
}

/* ---- faults ------------------------------------------------------------------------------ */

static void do_fault(struct run *r, uint32_t index, uint8_t number, uint64_t at_ps)
{
	const struct vdev_core_fault_row *row = vdev_core_fault_find(number);
	struct vdev_ring *errors = core_ring(r, VDEV_NQ_TYPE_ERROR, 0);
	const struct notification record = {
		.id = (uint16_t)index,
		.type_phase = row->record,
		.custom = number,
		.subtype = row->status,
		.timestamp_ps = at_ps,
	};

	if (!wait_until(r->core, at_ps))
		return;
	atomic_fetch_add(&r->core->device->vdev->counters.core_faults[number], 1);
	if (write_record(r, errors, &record) == -ENOBUFS) /* a fault cannot fail for a fault */
		vdev_ring_write(errors, record, VDEV_RING_FORCE, &r->core->losses);
	if (row->course != VDEV_FAULT_GOES_ON || !r->launch->status)
		r->launch->status = row->status;
	r->hangs = row->course == VDEV_FAULT_HANGS;
	r->over = row->course == VDEV_FAULT_ENDS;
	r->end_ps = at_ps;
	if (number == VDEV_CORE_FAULT_UNRECOVERABLE)
		r->core->dead = true;
}

/* ---- records ----------------------------------------------------------------------------- */

static bool goes_on(const struct run *r)
{
	return vdev_core_goes_on(r->core) && !r->over && !r->hangs;
}

/* Writes a record at its time, and ends the run where it cannot be written and may not be lost. */
static void note(struct run *r, struct vdev_ring *ring, uint32_t index, struct notification record)
{
	if (!ring->memory || !goes_on(r) || !wait_until(r->core, record.timestamp_ps))
		return;
	if (write_record(r, ring, &record) == -ENOBUFS)
		do_fault(r, index, VDEV_CORE_FAULT_OVERFLOW, record.timestamp_ps);
}

static void note_launch(struct run *r, uint16_t subtype, unsigned hint, uint64_t at_ps)
{
	note(r, vdev_run_ring(&r->core->rings), 0,
		(struct notification){
			.id = (uint16_t)r->launch->number,
			.hint = NOTE_HINT(hint),
			.type_phase = NOTE_TYPE_EXPLICIT_SP,
			.custom = hint ? 0 : r->launch->status,
			.subtype = subtype,
			.timestamp_ps = at_ps,
		});
}

/* Beginning or end of an instruction, in the ring of its unit. */
static void note_instruction(struct run *r, uint32_t index, bool begins, uint64_t at_ps)
{
	const struct vdev_instruction *i = &r->launch->list[index];
	struct notification record = {
		.id = (uint16_t)index,
		.custom = i->op,
		.subtype = begins ? NOTE_START : NOTE_END,
		.timestamp_ps = at_ps,
	};
	struct vdev_ring *ring;

	if (i->unit >= VDEV_DMA) {
		record.type_phase = NOTE_TYPE_DMA;
		ring = core_ring(r, VDEV_NQ_TYPE_TRACE_DMA, i->unit - VDEV_DMA);
	} else if (i->unit == VDEV_TOP_SP) {
		if (!vdev_is_collective(i))
			return;
		if (i->op != VDEV_OP_BARRIER)
			record.subtype = begins ? NOTE_CC_START : NOTE_CC_END;
		record.type_phase = NOTE_TYPE_EXPLICIT_SP;
		ring = &r->core->rings.top_sp[VDEV_NQ_TYPE_NOTIFY][0];
	} else {
		record.type_phase = (uint8_t)(begins ? NOTE_TYPE_INST_START(i->unit)
						     : NOTE_TYPE_INST_END(i->unit));
		ring = core_ring(r, VDEV_NQ_TYPE_TRACE, i->unit);
	}
	note(r, ring, index, record);
}

static void note_semaphore(struct run *r, uint32_t index, uint64_t value, uint64_t at_ps)
{
	const struct vdev_instruction *i = &r->launch->list[index];

	if (i->post == VDEV_NO_SEMAPHORE || i->unit > VDEV_SP)
		return;
	note(r, core_ring(r, VDEV_NQ_TYPE_EVENT, i->unit), index,
		(struct notification){
			.id = (uint16_t)index,
			.type_phase = (uint8_t)NOTE_TYPE_SEMAPHORE(i->unit),
			.custom = i->post,
			.subtype = (uint16_t)value,
			.timestamp_ps = at_ps,
		});
}

/* ---- collectives ------------------------------------------------------------------------- */

/* The scale on which ranks compare their arrivals: CLOCK_BOOTTIME, or where clocks count steps the
 * time since the run's start. */
static uint64_t to_common_ps(const struct run *r, uint64_t since_start_ps)
{
	if (r->core->clock.steps)
		return since_start_ps;
	return vdev_clock_to_boot_ps(&r->core->clock, r->start_ps + since_start_ps);
}

static uint64_t from_common_ps(const struct run *r, uint64_t common_ps)
{
	uint64_t device_ps;

	if (r->core->clock.steps)
		return common_ps;
	device_ps = vdev_clock_from_boot_ps(&r->core->clock, common_ps);
	return device_ps > r->start_ps ? device_ps - r->start_ps : 0;
}

static void wake_core(void *context)
{
	struct vdev_core *core = context;

	pthread_mutex_lock(&core->lock);
	pthread_cond_broadcast(&core->wake);
	pthread_mutex_unlock(&core->lock);
}

/* Enters and waits.  False when the launch was cancelled meanwhile. */
static bool wait_in_meeting(struct vdev_core *core, struct vdev_member *member)
{
	struct vdev_meetings *meetings = &core->device->vdev->meetings;
	bool goes_on;

	pthread_mutex_unlock(&core->lock);
	vdev_meeting_arrive(meetings, member);
	pthread_mutex_lock(&core->lock);
	while (vdev_core_goes_on(core) && !atomic_load(&member->released))
		pthread_cond_wait(&core->wake, &core->lock);
	goes_on = vdev_core_goes_on(core);
	if (!goes_on) {
		pthread_mutex_unlock(&core->lock);
		vdev_meeting_leave(meetings, member);
		pthread_mutex_lock(&core->lock);
	}
	return goes_on;
}

static void meet(struct run *r, const struct vdev_event *event)
{
	const struct vdev_instruction *i = &r->launch->list[event->index];
	struct vdev_member member = {
		.header = &r->launch->header,
		.instruction = i,
		.bounds = r->launch->bounds,
		.program = r->launch->program,
		.ordinal = r->collectives++,
		.arrival_ps = to_common_ps(r, event->time_ps),
		.wake = wake_core,
		.context = r->core,
	};
	uint64_t released_ps;

	if (!goes_on(r) || !wait_until(r->core, r->start_ps + event->time_ps) ||
		!wait_in_meeting(r->core, &member))
		return;
	released_ps = from_common_ps(r, member.release_ps);
	if (released_ps < event->time_ps)
		released_ps = event->time_ps;
	if (!member.status) {
		vdev_schedule_release(&r->schedule, released_ps + i->duration_ps);
		return;
	}
	do_fault(r, event->index, VDEV_CORE_FAULT_COLLECTIVES, r->start_ps + released_ps);
	r->launch->status = member.status;
}

/* ---- the course of a run ----------------------------------------------------------------- */

static void begin(struct run *r, const struct vdev_event *event)
{
	note_instruction(r, event->index, true, r->start_ps + event->time_ps);
	if (vdev_is_collective(&r->launch->list[event->index]))
		meet(r, event);
}

static void take_injected(struct run *r, uint32_t index, uint64_t at_ps)
{
	uint8_t fault = r->injected;

	r->injected = VDEV_CORE_FAULT_NONE;
	if (fault && goes_on(r))
		do_fault(r, index, fault, at_ps);
}

/* Gives up between pieces: when a cancelled run has ended it writes nothing any more. */
static void compute(struct run *r, const struct vdev_instruction *i)
{
	uint64_t done = 0;
	bool more = true;

	while (more && vdev_core_goes_on(r->core)) {
		pthread_mutex_unlock(&r->core->lock);
		more = vdev_instruction_run(i, r->launch->bounds, &done);
		pthread_mutex_lock(&r->core->lock);
	}
}

static void end(struct run *r, const struct vdev_event *event)
{
	const struct vdev_instruction *i = &r->launch->list[event->index];
	uint64_t at_ps = r->start_ps + event->time_ps;

	compute(r, i);
	note_instruction(r, event->index, false, at_ps);
	note_semaphore(r, event->index, event->semaphore, at_ps);
	if (i->op == VDEV_OP_FAULT && goes_on(r))
		do_fault(r, event->index, i->fault, at_ps);
	take_injected(r, event->index, at_ps);
}

static void run_program(struct run *r)
{
	while (goes_on(r)) {
		struct vdev_event event = vdev_schedule_next(&r->schedule);

		r->end_ps = r->start_ps + event.time_ps;
		if (event.kind == VDEV_EVENT_BEGIN) {
			begin(r, &event);
		} else if (event.kind == VDEV_EVENT_END) {
			end(r, &event);
		} else if (event.kind == VDEV_EVENT_STUCK) {
			r->hangs = true;
		} else {
			take_injected(r, 0, r->end_ps);
			r->over = true;
		}
	}
}

/* Everything that is known of the run before it starts. */
static void prepare(struct run *r)
{
	struct vdev_core *core = r->core;
	const struct vdev_config *config = &core->device->vdev->config;
	struct vdev_launch *launch = r->launch;
	unsigned number = vdev_core_number(core);
	uint64_t nth = ++core->begun;

	if (core->dead)
		launch->status = NRT_EXEC_UNIT_UNRECOVERABLE;
	if (!launch->status)
		r->injected = vdev_core_faults_of(&config->core_faults, number, nth);
	for (uint32_t i = 0; launch->list && i < launch->header.instruction_count; i++)
		launch->list[i].duration_ps =
			vdev_jitter(&config->timing, number, nth, i, launch->list[i].duration_ps);
	vdev_schedule_init(&r->schedule, launch->list,
		launch->status ? 0 : launch->header.instruction_count,
		launch->header.flags & VDEV_PROGRAM_SERIAL);
}

static void start(struct run *r)
{
	uint64_t switch_ps = r->core->device->vdev->config.switch_us * 1000000u;
	uint64_t now_ps = vdev_clock_go(&r->core->clock, clock_boot().ns);

	r->start_ps = r->launch->switched ? now_ps + switch_ps : now_ps;
	if (r->launch->switched) {
		note_launch(r, NOTE_CUSTOM, NOTE_HINT_SWITCH_BEGINS, now_ps);
		note_launch(r, NOTE_CUSTOM, NOTE_HINT_SWITCH_ENDS, r->start_ps);
	}
	note_launch(r, NOTE_START, 0, r->start_ps);
}

/* The END record and what it says.  Counted before it is there: who sees END may acknowledge at
 * once, or submit the 64th again. */
static void finish(struct run *r)
{
	struct vdev_core *core = r->core;
	struct vdev_ring *ring = vdev_run_ring(&core->rings);
	struct notification record = {
		.id = (uint16_t)r->launch->number,
		.type_phase = NOTE_TYPE_EXPLICIT_SP,
		.subtype = NOTE_END,
		.timestamp_ps = r->end_ps,
	};

	core->completed++;
	core->pending--;
	core->running = NULL;
	vdev_clock_stand(&core->clock, r->end_ps);
	record.custom = r->launch->status;
	if (write_record(r, ring, &record) == -ENOBUFS) {
		if (r->launch->status != NRT_EXEC_SW_NQ_OVERFLOW)
			do_fault(r, 0, VDEV_CORE_FAULT_OVERFLOW, r->end_ps);
		record.custom = NRT_EXEC_SW_NQ_OVERFLOW;
		vdev_ring_write(ring, record, VDEV_RING_FORCE, &core->losses);
	}
	vdev_rings_run_ended(&core->rings, core->completed);
}

void vdev_launch_run(struct vdev_core *core, struct vdev_launch *launch)
{
	uint64_t latency_ns = core->device->vdev->config.latency_us * 1000u;
	struct run r = {.core = core, .launch = launch};

	if (latency_ns && !vdev_core_wait_boot(core, clock_boot().ns + latency_ns))
		return;
	prepare(&r);
	start(&r);
	run_program(&r);
	while (r.hangs && vdev_core_goes_on(core))
		pthread_cond_wait(&core->wake, &core->lock);
	if (r.over && wait_until(core, r.end_ps))
		finish(&r);
	else
		vdev_clock_stand(&core->clock, vdev_clock_at(&core->clock, clock_boot().ns));
}
