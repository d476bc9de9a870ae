/* SPDX-License-Identifier: Apache-2.0 */
/* device.c - devices, processes, resets, statistics; see device.h. */
#include "runtime/vdev/device.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/base/clock.h"
#include "runtime/vdev/exec.h"
#include "runtime/vdev/memory.h"
#include "vmlinux/ioctl_table.h"
#include "vmlinux/neuron_args.h"

/* ---- life -------------------------------------------------------------------------------- */

static void core_create(
	struct vdev_core *core, struct vdev_device *device, unsigned index, uint64_t now_ns)
{
	pthread_condattr_t attr;

	core->device = device;
	core->index = index;
	vdev_clock_init(&core->clock, &device->vdev->config.timing, vdev_core_number(core), now_ns);
	core->last = &core->first;
	core->cinit = NEURON_CINIT_INVALID;
	pthread_mutex_init(&core->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&core->wake, &attr);
	pthread_condattr_destroy(&attr);
}

int vdev_create(struct vdev *vdev, const struct vdev_config *config)
{
	uint64_t now_ns = clock_boot().ns;

	memset(vdev, 0, sizeof(*vdev));
	vdev->config = *config;
	vdev_meetings_init(&vdev->meetings);
	vdev->marks.cores = config->devices * config->cores;
	pthread_mutex_init(&vdev->marks.lock, NULL);
	vdev->devices = calloc(config->devices, sizeof(*vdev->devices));
	if (!vdev->devices)
		return -ENOMEM;
	for (unsigned i = 0; i < config->devices; i++) {
		struct vdev_device *device = &vdev->devices[i];

		device->vdev = vdev;
		device->index = i;
		pthread_mutex_init(&device->lock, NULL);
		for (unsigned c = 0; c < config->cores; c++)
			core_create(&device->cores[c], device, c, now_ns);
	}
	return 0;
}

void vdev_stop(struct vdev *vdev)
{
	atomic_store(&vdev->stopping, true);
	for (unsigned i = 0; i < vdev->config.devices; i++)
		for (unsigned c = 0; c < vdev->config.cores; c++)
			vdev_core_stop(&vdev->devices[i].cores[c]);
}

static void device_destroy(struct vdev_device *device)
{
	for (unsigned e = 0; e < VDEV_MAX_ENGINES; e++)
		for (unsigned q = 0; q < VDEV_QUEUES_PER_ENGINE; q++)
			vdev_queue_clear(&device->queues[e][q]);
	for (unsigned c = 0; c < device->vdev->config.cores; c++) {
		struct vdev_core *core = &device->cores[c];

		vdev_queue_clear(&device->exec_queues[c]);
		vdev_rings_clear(&core->rings);
		pthread_cond_destroy(&core->wake);
		pthread_mutex_destroy(&core->lock);
	}
	for (unsigned i = 0; i < VDEV_MAX_PROCESSES; i++)
		vdev_memory_put(device->processes[i].datastore);
	for (size_t i = 0; i < device->memory_slots; i++)
		if (device->memories[i])
			vdev_memory_free_locked(device, i + 1);
	free(device->memories);
	pthread_mutex_destroy(&device->lock);
}

void vdev_destroy(struct vdev *vdev)
{
	vdev_stop(vdev);
	for (unsigned i = 0; i < vdev->config.devices; i++)
		device_destroy(&vdev->devices[i]);
	free(vdev->devices);
	vdev_meetings_destroy(&vdev->meetings);
	pthread_mutex_destroy(&vdev->marks.lock);
}

uint64_t vdev_core_clock_ps(struct vdev_core *core)
{
	uint64_t now_ps;

	pthread_mutex_lock(&core->lock);
	now_ps = vdev_clock_at(&core->clock, clock_boot().ns);
	pthread_mutex_unlock(&core->lock);
	return now_ps;
}

/* ---- processes --------------------------------------------------------------------------- */

struct vdev_process *vdev_find_process_locked(struct vdev_device *device, pid_t tgid)
{
	for (unsigned i = 0; i < VDEV_MAX_PROCESSES; i++)
		if (device->processes[i].tgid == tgid)
			return &device->processes[i];
	return NULL;
}

bool vdev_attached_locked(const struct vdev_device *device, pid_t tgid)
{
	return tgid > 0 && vdev_find_process_locked((struct vdev_device *)(uintptr_t)device, tgid);
}

bool vdev_attached(struct vdev_device *device, pid_t tgid)
{
	bool attached;

	pthread_mutex_lock(&device->lock);
	attached = vdev_attached_locked(device, tgid);
	pthread_mutex_unlock(&device->lock);
	return attached;
}

int vdev_attach(struct vdev_device *device, pid_t tgid)
{
	struct vdev_process *process;

	pthread_mutex_lock(&device->lock);
	process = vdev_find_process_locked(device, tgid);
	if (!process)
		process = vdev_find_process_locked(device, 0);
	if (process) {
		process->tgid = tgid;
		process->open_count++;
	}
	pthread_mutex_unlock(&device->lock);
	return process ? 0 : -EBUSY;
}

void vdev_queue_clear(struct vdev_queue *queue)
{
	vdev_memory_put(queue->tx);
	vdev_memory_put(queue->rx);
	vdev_memory_put(queue->rxc);
	vdev_memory_put(queue->ran);
	*queue = (struct vdev_queue){0};
}

/* A holder that leaves without COMPLETED would block the next one for ever. */
static void release_cinit(struct vdev_core *core, pid_t tgid)
{
	pthread_mutex_lock(&core->lock);
	if (core->cinit == NEURON_CINIT_STARTED && core->cinit_tgid == tgid) {
		core->cinit = NEURON_CINIT_INVALID;
		pthread_cond_broadcast(&core->wake);
	}
	pthread_mutex_unlock(&core->lock);
}

static void release_process(struct vdev_device *device, pid_t tgid)
{
	for (unsigned e = 0; e < VDEV_MAX_ENGINES; e++)
		for (unsigned q = 0; q < VDEV_QUEUES_PER_ENGINE; q++)
			if (device->queues[e][q].owner == tgid)
				vdev_queue_clear(&device->queues[e][q]);
	for (unsigned c = 0; c < device->vdev->config.cores; c++) {
		if (device->exec_queues[c].owner == tgid)
			vdev_queue_clear(&device->exec_queues[c]);
		vdev_core_cancel(&device->cores[c], tgid);
		release_cinit(&device->cores[c], tgid);
	}
	vdev_memory_free_owner_locked(device, tgid);
}

void vdev_detach(struct vdev_device *device, pid_t tgid)
{
	struct vdev_process *process;

	pthread_mutex_lock(&device->lock);
	process = tgid > 0 ? vdev_find_process_locked(device, tgid) : NULL;
	if (process && --process->open_count == 0) {
		release_process(device, tgid);
		vdev_memory_put(process->datastore);
		*process = (struct vdev_process){0};
	}
	pthread_mutex_unlock(&device->lock);
}

/* ---- rings ------------------------------------------------------------------------------- */

void vdev_end_ring(struct vdev_device *device, unsigned core, uint64_t number)
{
	struct vdev_core *c = &device->cores[core];
	struct vdev_ring *ring = vdev_rings_find(&c->rings, number);
	uint64_t type = number % 128 / 16, engine = number % 16, *handle;

	if (!ring || type >= VDEV_NQ_TYPES)
		return;
	pthread_mutex_lock(&device->lock);
	handle = number >= 128 ? &device->top_sp_nq[core][type][engine]
			       : &device->core_nq[core][type][engine];
	pthread_mutex_lock(&c->lock);
	vdev_ring_bind(ring, NULL);
	pthread_mutex_unlock(&c->lock);
	if (*handle)
		vdev_memory_free_locked(device, *handle);
	*handle = 0;
	pthread_mutex_unlock(&device->lock);
}

/* ---- reset ------------------------------------------------------------------------------- */

/* Frees the rings of one core or TopSP. */
static void free_rings(struct vdev_device *device, uint64_t handles[VDEV_NQ_TYPES][VDEV_NQ_ENGINES])
{
	for (unsigned t = 0; t < VDEV_NQ_TYPES; t++) {
		for (unsigned e = 0; e < VDEV_NQ_ENGINES; e++) {
			if (handles[t][e])
				vdev_memory_free_locked(device, handles[t][e]);
			handles[t][e] = 0;
		}
	}
}

static void reset_core(struct vdev_device *device, unsigned index)
{
	struct vdev_core *core = &device->cores[index];

	vdev_queue_clear(&device->exec_queues[index]);
	vdev_core_cancel(core, 0);
	pthread_mutex_lock(&core->lock);
	vdev_rings_clear(&core->rings);
	core->dead = false;
	core->submitted = core->completed = core->acknowledged = 0;
	core->cinit = NEURON_CINIT_INVALID;
	pthread_cond_broadcast(&core->wake);
	pthread_mutex_unlock(&core->lock);
	free_rings(device, device->core_nq[index]);
	free_rings(device, device->top_sp_nq[index]);
}

uint32_t vdev_reset_cores(struct vdev_device *device, uint32_t core_map)
{
	uint32_t number;

	pthread_mutex_lock(&device->lock);
	for (unsigned c = 0; c < device->vdev->config.cores; c++)
		if (core_map >> c & 1)
			reset_core(device, c);
	number = ++device->resets;
	pthread_mutex_unlock(&device->lock);
	return number;
}

/* ---- what it looks like ------------------------------------------------------------------ */

/* Who has marked what: the device's own bitmap. */
static void print_marks(FILE *f, struct vdev_marks *marks)
{
	unsigned marked = 0;

	pthread_mutex_lock(&marks->lock);
	for (unsigned i = 0; i < marks->cores; i++)
		marked += marks->owner[i] != 0;
	fprintf(f, "marked_cores %u\n", marked);
	for (unsigned i = 0; i < marks->cores; i++)
		if (marks->owner[i])
			fprintf(f, "mark.%u %d\n", i, (int)marks->owner[i]);
	pthread_mutex_unlock(&marks->lock);
}

static void print_cores(FILE *f, struct vdev *vdev)
{
	struct vdev_ring_losses sum = {0};

	for (unsigned i = 0; i < vdev->config.devices; i++) {
		for (unsigned c = 0; c < vdev->config.cores; c++) {
			struct vdev_core *core = &vdev->devices[i].cores[c];

			pthread_mutex_lock(&core->lock);
			sum.overwritten += core->losses.overwritten;
			sum.dropped += core->losses.dropped;
			pthread_mutex_unlock(&core->lock);
		}
	}
	fprintf(f, "ring_overwrites %" PRIu64 "\n", sum.overwritten);
	fprintf(f, "ring_drops %" PRIu64 "\n", sum.dropped);
	for (uint32_t i = 0; i < VDEV_CORE_FAULT_NUMBERS; i++) {
		const struct vdev_core_fault_row *row = vdev_core_fault_find(i);
		uint_fast64_t n = atomic_load(&vdev->counters.core_faults[i]);

		if (row && n)
			fprintf(f, "fault.%s %" PRIuFAST64 "\n", row->name, n);
	}
}

char *vdev_stats_text(struct vdev *vdev, size_t *ret_size)
{
	struct vdev_counters *c = &vdev->counters;
	char *text = NULL;
	FILE *f = open_memstream(&text, ret_size);

	if (!f)
		return NULL;
	fprintf(f, "ioctls_total %" PRIuFAST64 "\n", atomic_load(&c->ioctls));
	fprintf(f, "ioctl_errors %" PRIuFAST64 "\n", atomic_load(&c->ioctl_errors));
	fprintf(f, "bytes_to_device %" PRIuFAST64 "\n", atomic_load(&c->bytes_to_device));
	fprintf(f, "bytes_from_device %" PRIuFAST64 "\n", atomic_load(&c->bytes_from_device));
	fprintf(f, "launches %" PRIuFAST64 "\n", atomic_load(&c->launches));
	fprintf(f, "opens %" PRIuFAST64 "\n", atomic_load(&c->by_request[VDEV_ROW_OPEN]));
	fprintf(f, "query_opens %" PRIuFAST64 "\n",
		atomic_load(&c->by_request[VDEV_ROW_OPEN_QUERY]));
	fprintf(f, "open_handles %" PRIdFAST64 "\n", atomic_load(&c->open_handles));
	fprintf(f, "allocations %" PRIdFAST64 "\n", atomic_load(&c->allocations));
	fprintf(f, "allocated_bytes %" PRIdFAST64 "\n", atomic_load(&c->allocated_bytes));
	print_marks(f, &vdev->marks);
	print_cores(f, vdev);
	for (size_t i = 0; i < ioctl_row_count; i++) {
		uint_fast64_t n = atomic_load(&c->by_request[i]);

		if (n)
			fprintf(f, "ioctl.%s %" PRIuFAST64 "\n", ioctl_rows[i].name, n);
	}
	if (atomic_load(&c->unknown_ioctls))
		fprintf(f, "ioctl.UNKNOWN %" PRIuFAST64 "\n", atomic_load(&c->unknown_ioctls));
	bool lost = ferror(f);
	if (fclose(f) != 0 || lost) {
		free(text);
		return NULL;
	}
	return text;
}
