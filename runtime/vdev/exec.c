/* SPDX-License-Identifier: Apache-2.0 */
/* exec.c - the NeuronCores; see exec.h. */
#include "runtime/vdev/exec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include <nrt/nrt_status.h>
#include "runtime/base/clock.h"
#include "runtime/vdev/arithmetic.h"
#include "runtime/vdev/memory.h"

/* ---- notification ring ------------------------------------------------------------------- */

void vdev_ring_write(struct vdev_ring *ring, struct vdev_notification record)
{
	uint64_t lap, head;
	uint8_t *slot;

	if (!ring->memory)
		return;
	lap = ring->written / ring->slots;
	slot = ring->memory->map + ring->written % ring->slots * sizeof(record);
	ring->written++;
	record.type_phase = VDEV_NOTE_TYPE_EXPLICIT_SP | (lap & 1 ? 0 : VDEV_NOTE_PHASE);
	/* The reader waits for the phase bit, so the word that holds it comes last. */
	memcpy(slot + 8, &record.timestamp_ps, sizeof(record.timestamp_ps));
	memcpy(&head, &record, sizeof(head));
	__atomic_store_n((uint64_t *)(void *)slot, head, __ATOMIC_RELEASE);
}

static void note(struct vdev_core *core, const struct vdev_launch *launch, uint16_t subtype,
	uint64_t timestamp_ps)
{
	vdev_ring_write(&core->ring, (struct vdev_notification){
					     .id = (uint16_t)launch->number,
					     .custom = launch->status,
					     .subtype = subtype,
					     .timestamp_ps = timestamp_ps,
				     });
}

/* ---- launches ---------------------------------------------------------------------------- */

static int operand_check(
	uint32_t index, uint64_t bytes, const struct vdev_bound *bounds, uint32_t count)
{
	return index < count && bounds[index].data && bytes <= bounds[index].size ? 0 : -EINVAL;
}

int vdev_instruction_check(
	const struct vdev_instruction *step, const struct vdev_bound *bounds, uint32_t count)
{
	uint64_t bytes;

	if (step->unit > VDEV_SP || step->op > VDEV_OP_ADD)
		return -EINVAL;
	if (step->op == VDEV_OP_NOP)
		return 0;
	if (!vdev_dtype_bytes(step->dtype) ||
		__builtin_mul_overflow(step->count, vdev_dtype_bytes(step->dtype), &bytes) ||
		operand_check(step->src0, bytes, bounds, count) < 0 ||
		operand_check(step->dst, bytes, bounds, count) < 0)
		return -EINVAL;
	if (step->op == VDEV_OP_ADD &&
		(!vdev_can_add(step->dtype) || operand_check(step->src1, bytes, bounds, count) < 0))
		return -EINVAL;
	return 0;
}

void vdev_instruction_run(const struct vdev_instruction *step, const struct vdev_bound *bounds)
{
	if (step->op == VDEV_OP_COPY)
		memmove(bounds[step->dst].data, bounds[step->src0].data,
			step->count * vdev_dtype_bytes(step->dtype));
	else if (step->op == VDEV_OP_ADD)
		vdev_add(step->dtype, bounds[step->dst].data, bounds[step->src0].data,
			bounds[step->src1].data, step->count);
}

/* A binding of zeros is an unused one. */
static int bind_one(struct vdev_device *device, pid_t owner, const struct vdev_binding *binding,
	struct vdev_bound *bound)
{
	if (!binding->mem_handle && !binding->size)
		return 0;
	bound->memory = vdev_memory_get_locked(device, owner, binding->mem_handle);
	if (!bound->memory)
		return -EINVAL;
	bound->data = vdev_memory_at(bound->memory, binding->offset, binding->size);
	bound->size = binding->size;
	return bound->data ? 0 : -EINVAL;
}

static int read_bindings(struct vdev_launch *launch, struct vdev_device *device, uint32_t count,
	const struct vdev_memory *table)
{
	const uint8_t *at;

	if (count > VDEV_MAX_BINDINGS)
		return -EINVAL;
	at = vdev_memory_at(table, 0, count * sizeof(struct vdev_binding));
	if (!at)
		return -EINVAL;
	launch->bound_count = count;
	for (uint32_t i = 0; i < count; i++) {
		struct vdev_binding binding;

		memcpy(&binding, at + i * sizeof(binding), sizeof(binding));
		if (bind_one(device, launch->owner, &binding, &launch->bounds[i]) < 0)
			return -EINVAL;
	}
	return 0;
}

static int read_steps(struct vdev_launch *launch, uint32_t count, const struct vdev_memory *program)
{
	const uint8_t *at;

	if (count > VDEV_MAX_INSTRUCTIONS)
		return -EINVAL;
	at = vdev_memory_at(
		program, sizeof(struct vdev_program), count * sizeof(struct vdev_instruction));
	if (!at)
		return -EINVAL;
	launch->steps = calloc(count ? count : 1, sizeof(struct vdev_instruction));
	if (!launch->steps)
		return -ENOMEM;
	memcpy(launch->steps, at, count * sizeof(struct vdev_instruction));
	launch->step_count = count;
	for (uint32_t i = 0; i < count; i++) {
		if (vdev_instruction_check(&launch->steps[i], launch->bounds, launch->bound_count) <
			0)
			return -EINVAL;
		if (launch->steps[i].duration_ps > VDEV_EXEC_MAX_PS - launch->duration_ps)
			return -EINVAL;
		launch->duration_ps += launch->steps[i].duration_ps;
	}
	return 0;
}

static int read_program(struct vdev_launch *launch, struct vdev_device *device,
	const struct vdev_memory *program, const struct vdev_memory *bindings)
{
	const uint8_t *at = vdev_memory_at(program, 0, sizeof(struct vdev_program));
	struct vdev_program header;
	int r;

	if (!at)
		return -EINVAL;
	memcpy(&header, at, sizeof(header));
	if (header.magic != VDEV_PROGRAM_MAGIC)
		return -EINVAL;
	r = read_bindings(launch, device, header.binding_count, bindings);
	return r < 0 ? r : read_steps(launch, header.instruction_count, program);
}

struct vdev_launch *vdev_launch_read(struct vdev_device *device, pid_t owner,
	const struct vdev_memory *program, const struct vdev_memory *bindings)
{
	struct vdev_launch *launch = calloc(1, sizeof(*launch));
	int r;

	if (!launch)
		return NULL;
	launch->owner = owner;
	r = read_program(launch, device, program, bindings);
	if (r == -ENOMEM) {
		vdev_launch_free(launch);
		return NULL;
	}
	if (r < 0) {
		launch->status = NRT_EXEC_BAD_INPUT;
		launch->step_count = 0;
		launch->duration_ps = 0;
	}
	return launch;
}

void vdev_launch_free(struct vdev_launch *launch)
{
	if (!launch)
		return;
	for (uint32_t i = 0; i < launch->bound_count; i++)
		vdev_memory_put(launch->bounds[i].memory);
	free(launch->steps);
	free(launch);
}

/* ---- the core's thread ------------------------------------------------------------------- */

/* CLOCK_MONOTONIC, the condition variable's clock, `ns` from now. */
static struct timespec monotonic_in(uint64_t ns)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	ns += (uint64_t)t.tv_nsec;
	t.tv_sec += (time_t)(ns / 1000000000u);
	t.tv_nsec = (long)(ns % 1000000000u);
	return t;
}

/* Waits until the core's clock shows `until_ps`, or the launch is cancelled or the core stopped. */
static void wait_until(struct vdev_core *core, uint64_t until_ps)
{
	while (!core->stop && !core->cancelled) {
		uint64_t now_ps = vdev_core_clock_ps(core);
		struct timespec t;

		if (now_ps >= until_ps)
			return;
		t = monotonic_in((until_ps - now_ps + 999) / 1000);
		pthread_cond_timedwait(&core->wake, &core->lock, &t);
	}
}

/* core->lock held; dropped while the host computes. */
static void run_launch(struct vdev_core *core, struct vdev_launch *launch)
{
	uint64_t latency_ps = core->device->vdev->config.latency_us * 1000000u;
	uint64_t start_ps;

	if (latency_ps)
		wait_until(core, vdev_core_clock_ps(core) + latency_ps);
	if (core->stop || core->cancelled)
		return;
	start_ps = vdev_core_clock_ps(core);
	note(core, launch, VDEV_NOTE_START, start_ps);
	pthread_mutex_unlock(&core->lock);
	for (uint32_t i = 0; i < launch->step_count; i++)
		vdev_instruction_run(&launch->steps[i], launch->bounds);
	pthread_mutex_lock(&core->lock);
	wait_until(core, start_ps + launch->duration_ps);
	if (core->stop || core->cancelled)
		return;
	/* Before the record: who sees END may acknowledge at once, or submit the 64th again. */
	core->completed++;
	core->pending--;
	core->running = NULL;
	note(core, launch, VDEV_NOTE_END, start_ps + launch->duration_ps);
}

static void *core_main(void *arg)
{
	struct vdev_core *core = arg;

	/* The default 50 us of timer slack would stand on every run. */
	prctl(PR_SET_TIMERSLACK, 1ul, 0, 0, 0);
	pthread_mutex_lock(&core->lock);
	while (!core->stop) {
		struct vdev_launch *launch = core->first;

		if (!launch) {
			pthread_cond_wait(&core->wake, &core->lock);
			continue;
		}
		core->first = launch->next;
		if (!core->first)
			core->last = &core->first;
		core->running = launch;
		core->cancelled = false;
		run_launch(core, launch);
		if (core->running) { /* ended early */
			core->running = NULL;
			core->pending--;
		}
		vdev_launch_free(launch);
	}
	pthread_mutex_unlock(&core->lock);
	return NULL;
}

static int submit_locked(struct vdev_core *core, struct vdev_launch *launch)
{
	if (!core->ring.memory)
		return -EINVAL;
	if (core->stop || core->pending >= VDEV_EXEC_MAX_PENDING)
		return -EBUSY;
	if (!core->started && pthread_create(&core->thread, NULL, core_main, core) != 0)
		return -EAGAIN;
	core->started = true;
	launch->next = NULL;
	*core->last = launch;
	core->last = &launch->next;
	core->pending++;
	core->submitted++;
	atomic_fetch_add(&core->device->vdev->counters.launches, 1);
	pthread_cond_broadcast(&core->wake);
	return 0;
}

int vdev_core_submit(struct vdev_core *core, struct vdev_launch *launch)
{
	int r;

	pthread_mutex_lock(&core->lock);
	r = submit_locked(core, launch);
	pthread_mutex_unlock(&core->lock);
	return r;
}

static void cancel_locked(struct vdev_core *core, pid_t owner)
{
	for (struct vdev_launch **at = &core->first; *at;) {
		struct vdev_launch *launch = *at;

		if (owner && launch->owner != owner) {
			at = &launch->next;
			continue;
		}
		*at = launch->next;
		core->pending--;
		vdev_launch_free(launch);
	}
	core->last = &core->first;
	while (*core->last)
		core->last = &(*core->last)->next;
	if (core->running && (!owner || core->running->owner == owner)) {
		core->cancelled = true;
		pthread_cond_broadcast(&core->wake);
	}
}

void vdev_core_cancel(struct vdev_core *core, pid_t owner)
{
	pthread_mutex_lock(&core->lock);
	cancel_locked(core, owner);
	pthread_mutex_unlock(&core->lock);
}

void vdev_core_stop(struct vdev_core *core)
{
	bool started;

	pthread_mutex_lock(&core->lock);
	core->stop = true;
	started = core->started;
	cancel_locked(core, 0);
	pthread_cond_broadcast(&core->wake);
	pthread_mutex_unlock(&core->lock);
	if (started)
		pthread_join(core->thread, NULL);
	core->started = false;
}
