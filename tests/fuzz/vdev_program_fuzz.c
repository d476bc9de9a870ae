/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vdev_program_fuzz.c - program images and binding tables, as a client of the virtual device may
 * write them.
 *
 * Input: four sizes of memories (a byte each), a binding table of four, the image.  What is
 * accepted is computed, on memories that end where the allocator's guard begins; collectives by up
 * to four ranks with the same operands.  Whatever it says, it comes to an end or gets stuck.
 */
#include <string.h>

#include "runtime/vdev/meeting.h"
#include "runtime/vdev/memory.h"
#include "runtime/vdev/program.h"
#include "runtime/vdev/schedule.h"
#include "tests/fuzz/fuzz.h"

#define MEMORIES 4u
#define OWNER 1
#define TABLE (MEMORIES * sizeof(struct vdev_binding))

static void memory_make(struct vdev_memory *memory, const uint8_t *data, size_t size)
{
	*memory = (struct vdev_memory){.size = size, .owner = OWNER};
	atomic_init(&memory->refs, 1);
	memory->map = malloc(size ? size : 1);
	FUZZ_REQUIRE(memory->map);
	if (data)
		memcpy(memory->map, data, size);
	else
		memset(memory->map, 0x41, size);
}

static void no_wake(void *context)
{
	(void)context;
}

static void meet(const struct vdev_launch *launch, const struct vdev_instruction *instruction)
{
	struct vdev_program headers[4];
	struct vdev_member members[4];
	struct vdev_meetings meetings;

	if (launch->header.ranks > 4)
		return;
	vdev_meetings_init(&meetings);
	for (uint32_t r = 0; r < launch->header.ranks; r++) {
		headers[r] = launch->header;
		headers[r].rank = r;
		members[r] = (struct vdev_member){.header = &headers[r],
			.instruction = instruction,
			.bounds = launch->bounds,
			.wake = no_wake};
		vdev_meeting_arrive(&meetings, &members[r]);
	}
	for (uint32_t r = 0; r < launch->header.ranks; r++)
		FUZZ_REQUIRE(atomic_load(&members[r].released) && !members[r].status);
	vdev_meetings_destroy(&meetings);
}

static void run(const struct vdev_launch *launch)
{
	struct vdev_schedule schedule;
	struct vdev_event event = {0};
	uint64_t last = 0, done;

	vdev_schedule_init(&schedule, launch->list, launch->header.instruction_count,
		launch->header.flags & VDEV_PROGRAM_SERIAL);
	for (uint32_t n = 0; n <= 2 * launch->header.instruction_count; n++) {
		event = vdev_schedule_next(&schedule);
		if (event.kind != VDEV_EVENT_BEGIN && event.kind != VDEV_EVENT_END)
			break;
		FUZZ_REQUIRE(event.time_ps >= last && event.time_ps <= VDEV_EXEC_MAX_PS);
		last = event.time_ps;
		done = 0;
		if (event.kind == VDEV_EVENT_END)
			while (vdev_instruction_run(
				&launch->list[event.index], launch->bounds, &done))
				;
		else if (vdev_is_collective(&launch->list[event.index]))
			meet(launch, &launch->list[event.index]);
	}
	FUZZ_REQUIRE(event.kind == VDEV_EVENT_DONE || event.kind == VDEV_EVENT_STUCK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct vdev_device device = {.processes[0].tgid = OWNER};
	struct vdev_memory memories[MEMORIES], table, image, *list[MEMORIES];
	struct vdev_launch *launch;

	if (size < MEMORIES + TABLE)
		return 0;
	for (unsigned i = 0; i < MEMORIES; i++) {
		memory_make(&memories[i], NULL, data[i]);
		list[i] = &memories[i];
	}
	memory_make(&table, data + MEMORIES, TABLE);
	memory_make(&image, data + MEMORIES + TABLE, size - MEMORIES - TABLE);
	device.memories = list;
	device.memory_slots = MEMORIES;
	launch = vdev_launch_read(&device, OWNER, &image, &table);
	FUZZ_REQUIRE(launch);
	if (!launch->status)
		run(launch);
	vdev_launch_free(launch);
	for (unsigned i = 0; i < MEMORIES; i++) {
		FUZZ_REQUIRE(atomic_load(&memories[i].refs) == 1);
		free(memories[i].map);
	}
	free(table.map);
	free(image.map);
	return 0;
}
