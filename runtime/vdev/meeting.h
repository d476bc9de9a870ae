/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meeting.h - collectives: where the ranks of a group wait for each other.
 *
 * Ranks meet at the n-th collective of their runs.  They may belong to several processes and
 * devices; one daemon has all of them.  Each comes with the time of its arrival, by one scale for
 * all; when the last one is there it computes for all, and everybody is released at the time of
 * the last arrival.  So nobody computes or goes on before all have come, and what is read and
 * written does not depend on who was first.
 *
 * Who disagrees with the others about operation, type, number of elements or number of ranks makes
 * the meeting fail: for all that are there and for the ranks that are still to come.  A rank that
 * is there already fails alone.  A member may leave as long as it has not been released.  When the
 * program counts its runs (vdev_program.run) that gives the run up: the others, and who comes later,
 * get NRT_TIMEOUT; so nobody goes on a run ahead of the others.  When it does not count, or its
 * program is gone from the device, the others wait on.
 *
 * Locks: the meetings' own lock, under which no other one is taken.  Members are woken, and memory
 * is computed, without any; a member that leaves meanwhile waits for the end of that, so its
 * memory stays.
 */
#ifndef NTRACE_VDEV_MEETING_H
#define NTRACE_VDEV_MEETING_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/vdev/vdev_abi.h"

struct vdev_bound;  /* program.h */
struct vdev_memory; /* memory.h */
struct vdev_meeting;

struct vdev_meetings {
	pthread_mutex_t lock;
	pthread_cond_t computed;
	struct vdev_meeting *first;
	atomic_uint failed; /* that still wait for ranks */
};

/* One rank at one collective; its owner's memory, until released or left. */
struct vdev_member {
	const struct vdev_program *header;
	const struct vdev_instruction *instruction; /* checked against bounds */
	const struct vdev_bound *bounds;
	const struct vdev_memory *program; /* only compared, and looked at whether it was freed */
	uint32_t ordinal;		   /* the n-th collective of the run */
	uint64_t arrival_ps;
	void (*wake)(void *context); /* called after `released` was set, with no lock held */
	void *context;

	struct vdev_meeting *meeting;
	atomic_bool released; /* then the rest is there: */
	uint16_t status;      /* 0 or an NRT_STATUS */
	uint64_t release_ps;
};

void vdev_meetings_init(struct vdev_meetings *meetings);
/* Nobody may be in a meeting any more. */
void vdev_meetings_destroy(struct vdev_meetings *meetings);

/* Enters the meeting of header and ordinal.  May compute, and release the caller and others. */
void vdev_meeting_arrive(struct vdev_meetings *meetings, struct vdev_member *member);
/* The program has been freed (`freed` is set): it will not come again. */
void vdev_meetings_forget(struct vdev_meetings *meetings, const struct vdev_memory *program);
/* Leaves, unless released already.  From then on the member is not touched any more. */
void vdev_meeting_leave(struct vdev_meetings *meetings, struct vdev_member *member);

#endif
