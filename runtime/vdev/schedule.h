/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schedule.h - when each instruction of a program begins and ends: a discrete-event simulation.
 *
 * Pure: it knows no clock, no memory and no device, and gives events one after another in the
 * order of their time, which is counted from the start of the run.  At one time ends come before
 * beginnings, and among either the instruction that stands first in the program.  So the order is
 * the same on every machine, and whoever computes an instruction at its end computes in that
 * order.
 *
 * A collective begins like any other instruction, but how long it takes is not known here: its
 * beginning must be answered by vdev_schedule_release before the next event is asked for.
 */
#ifndef NTRACE_VDEV_SCHEDULE_H
#define NTRACE_VDEV_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/vdev/vdev_abi.h"

enum vdev_event_kind {
	VDEV_EVENT_BEGIN, /* of instruction `index` */
	VDEV_EVENT_END,
	VDEV_EVENT_DONE,  /* all have ended */
	VDEV_EVENT_STUCK, /* some have not, and none ever will */
};

struct vdev_event {
	enum vdev_event_kind kind;
	uint32_t index;
	uint64_t time_ps;
	uint64_t semaphore; /* at an END that posts: its new value */
};

struct vdev_schedule {
	const struct vdev_instruction *list; /* the caller's; checked (program.h) */
	uint32_t count, ended;
	bool serial;
	uint64_t now_ps;
	uint32_t next[VDEV_UNITS];    /* its next instruction, or count */
	uint32_t running[VDEV_UNITS]; /* VDEV_IDLE: none */
	uint64_t end_ps[VDEV_UNITS];
	uint64_t semaphores[VDEV_MAX_SEMAPHORES];
};
#define VDEV_IDLE 0xffffffffu

bool vdev_is_collective(const struct vdev_instruction *instruction);

void vdev_schedule_init(struct vdev_schedule *schedule, const struct vdev_instruction *list,
	uint32_t count, bool serial);
/* The next event.  DONE and STUCK come again and again. */
struct vdev_event vdev_schedule_next(struct vdev_schedule *schedule);
/* The collective on TOP_SP, which has just begun, ends then, not before it began. */
void vdev_schedule_release(struct vdev_schedule *schedule, uint64_t end_ps);

#endif
