/* SPDX-License-Identifier: Apache-2.0 */
/* meeting.c - collectives; see meeting.h. */
#include "runtime/vdev/meeting.h"

#include <stdlib.h>
#include <string.h>

#include <nrt/nrt_status.h>

#include "runtime/vdev/arithmetic.h"
#include "runtime/vdev/memory.h"
#include "runtime/vdev/program.h"

/* So many failed meetings wait for the rest of their ranks; for one more the oldest is forgotten. */
#define MAX_FAILED 64u

struct vdev_meeting {
	struct vdev_meeting *next;
	uint64_t group, run;
	uint32_t part, ordinal;
	uint32_t ranks;
	uint64_t came; /* bit per rank */
	bool failed, computing;
	uint16_t status;				    /* of who comes when it has failed */
	struct vdev_member *members[VDEV_MAX_RANKS];	    /* by rank; all NULL when failed */
	const struct vdev_memory *programs[VDEV_MAX_RANKS]; /* of those that came */
};

void vdev_meetings_init(struct vdev_meetings *meetings)
{
	*meetings = (struct vdev_meetings){0};
	pthread_mutex_init(&meetings->lock, NULL);
	pthread_cond_init(&meetings->computed, NULL);
}

/* Off the list; the caller frees it. */
static void unlink_meeting(struct vdev_meetings *meetings, const struct vdev_meeting *meeting)
{
	struct vdev_meeting **at = &meetings->first;

	while (*at != meeting)
		at = &(*at)->next;
	*at = meeting->next;
	meetings->failed -= meeting->failed;
}

static void drop(struct vdev_meetings *meetings, struct vdev_meeting *meeting)
{
	unlink_meeting(meetings, meeting);
	free(meeting);
}

void vdev_meetings_destroy(struct vdev_meetings *meetings)
{
	while (meetings->first)
		drop(meetings, meetings->first);
	pthread_cond_destroy(&meetings->computed);
	pthread_mutex_destroy(&meetings->lock);
}

/* ---- what is computed -------------------------------------------------------------------- */

static uint8_t *operand(const struct vdev_member *m, uint32_t binding, uint64_t element)
{
	return m->bounds[binding].data +
	       (m->instruction->first + element) * vdev_dtype_bytes(m->instruction->dtype);
}

static void gather(struct vdev_member *const *members, uint32_t ranks)
{
	const struct vdev_instruction *one = members[0]->instruction;
	size_t size = one->count * vdev_dtype_bytes(one->dtype);

	for (uint32_t to = 0; to < ranks; to++) {
		const struct vdev_instruction *i = members[to]->instruction;

		for (uint32_t from = 0; from < ranks; from++)
			memmove(operand(members[to], i->dst, i->whole * from),
				operand(members[from], members[from]->instruction->src0, 0), size);
	}
}

/* By pieces, each of them summed before it is written, so that src0 and dst may be the same. */
static void reduce(struct vdev_member *const *members, uint32_t ranks)
{
	const struct vdev_instruction *one = members[0]->instruction;
	size_t element = vdev_dtype_bytes(one->dtype);
	uint8_t sum[16384];

	for (uint64_t at = 0, n; at < one->count; at += n) {
		n = one->count - at < sizeof(sum) / element ? one->count - at
							    : sizeof(sum) / element;
		memcpy(sum, operand(members[0], one->src0, at), n * element);
		for (uint32_t r = 1; r < ranks; r++)
			vdev_add(one->dtype, sum, sum,
				operand(members[r], members[r]->instruction->src0, at), n);
		for (uint32_t r = 0; r < ranks; r++)
			memcpy(operand(members[r], members[r]->instruction->dst, at), sum,
				n * element);
	}
}

static void compute(const struct vdev_meeting *meeting)
{
	uint8_t op = meeting->members[0]->instruction->op;

	if (op == VDEV_OP_ALL_GATHER)
		gather(meeting->members, meeting->ranks);
	else if (op == VDEV_OP_ALL_REDUCE)
		reduce(meeting->members, meeting->ranks);
}

/* ---- who is there ------------------------------------------------------------------------ */

/* Whom to wake once the lock is dropped. */
struct wakes {
	unsigned count;
	struct {
		void (*wake)(void *context);
		void *context;
	} who[VDEV_MAX_RANKS + 1];
};

static void wake_all(const struct wakes *wakes)
{
	for (unsigned i = 0; i < wakes->count; i++)
		wakes->who[i].wake(wakes->who[i].context);
}

static void release(
	struct vdev_member *m, uint16_t status, uint64_t release_ps, struct wakes *wakes)
{
	m->status = status;
	m->release_ps = release_ps;
	m->meeting = NULL;
	wakes->who[wakes->count].wake = m->wake;
	wakes->who[wakes->count++].context = m->context;
	atomic_store(&m->released, true); /* from here on it may be gone */
}

static uint64_t last_arrival(const struct vdev_meeting *meeting)
{
	uint64_t last = 0;

	for (uint32_t r = 0; r < VDEV_MAX_RANKS; r++)
		if (meeting->members[r] && meeting->members[r]->arrival_ps > last)
			last = meeting->members[r]->arrival_ps;
	return last;
}

static void release_all(struct vdev_meeting *meeting, uint16_t status, struct wakes *wakes)
{
	uint64_t at = last_arrival(meeting);

	for (uint32_t r = 0; r < VDEV_MAX_RANKS; r++)
		if (meeting->members[r])
			release(meeting->members[r], status, at, wakes);
	memset(meeting->members, 0, sizeof(meeting->members));
}

static struct vdev_meeting *find(
	const struct vdev_meetings *meetings, const struct vdev_member *member)
{
	struct vdev_meeting *m = meetings->first;

	while (m && (m->group != member->header->group || m->part != member->header->part ||
			    m->run != member->header->run || m->ordinal != member->ordinal))
		m = m->next;
	return m;
}

static struct vdev_meeting *open_meeting(
	struct vdev_meetings *meetings, const struct vdev_member *member)
{
	struct vdev_meeting *made = calloc(1, sizeof(*made));

	if (!made)
		return NULL;
	made->group = member->header->group;
	made->run = member->header->run;
	made->part = member->header->part;
	made->ordinal = member->ordinal;
	made->ranks = member->header->ranks;
	made->next = meetings->first;
	meetings->first = made;
	return made;
}

static bool agrees(const struct vdev_meeting *meeting, const struct vdev_member *member)
{
	const struct vdev_instruction *a = member->instruction, *b = NULL;

	for (uint32_t r = 0; r < VDEV_MAX_RANKS && !b; r++)
		if (meeting->members[r])
			b = meeting->members[r]->instruction;
	return member->header->ranks == meeting->ranks &&
	       (!b || (a->op == b->op && (a->op == VDEV_OP_BARRIER ||
						 (a->dtype == b->dtype && a->count == b->count))));
}

static bool all_came(const struct vdev_meeting *meeting)
{
	return meeting->came == UINT64_MAX >> (VDEV_MAX_RANKS - meeting->ranks);
}

static void forget_oldest_failed(struct vdev_meetings *meetings)
{
	struct vdev_meeting *oldest = NULL;

	for (struct vdev_meeting *m = meetings->first; m; m = m->next)
		if (m->failed)
			oldest = m;
	drop(meetings, oldest);
}

/* `status`: of the members, and of those to come; that of the first failure stays. */
static void fail(struct vdev_meetings *meetings, struct vdev_meeting *meeting, uint16_t status,
	struct wakes *wakes)
{
	if (!meeting->failed) {
		if (meetings->failed == MAX_FAILED)
			forget_oldest_failed(meetings);
		meeting->failed = true;
		meeting->status = status;
		meetings->failed++;
	}
	release_all(meeting, meeting->status, wakes);
	if (all_came(meeting))
		drop(meetings, meeting);
}

/* All are there: computes without the lock.  Off the list, so that the next run opens a new one. */
static void hold(struct vdev_meetings *meetings, struct vdev_meeting *meeting, struct wakes *wakes)
{
	unlink_meeting(meetings, meeting);
	meeting->computing = true;
	pthread_mutex_unlock(&meetings->lock);
	compute(meeting);
	pthread_mutex_lock(&meetings->lock);
	release_all(meeting, 0, wakes);
	free(meeting);
	pthread_cond_broadcast(&meetings->computed);
}

/* meetings->lock held */
static void enter(struct vdev_meetings *meetings, struct vdev_member *member, struct wakes *wakes)
{
	struct vdev_meeting *meeting = find(meetings, member);
	uint64_t bit = 1ull << member->header->rank;
	bool agreed;

	if (meeting && meeting->failed && meeting->came & bit) {
		drop(meetings, meeting);
		meeting = NULL;
	}
	if (!meeting)
		meeting = open_meeting(meetings, member);
	if (!meeting || meeting->came & bit) {
		release(member, NRT_EXEC_HW_ERR_COLLECTIVES, member->arrival_ps, wakes);
		return;
	}
	agreed = !meeting->failed && agrees(meeting, member);
	meeting->came |= bit;
	meeting->members[member->header->rank] = member;
	meeting->programs[member->header->rank] = member->program;
	if (!agreed) {
		fail(meetings, meeting, NRT_EXEC_HW_ERR_COLLECTIVES, wakes);
		return;
	}
	member->meeting = meeting;
	if (all_came(meeting))
		hold(meetings, meeting, wakes);
}

void vdev_meeting_arrive(struct vdev_meetings *meetings, struct vdev_member *member)
{
	struct wakes wakes = {0};

	pthread_mutex_lock(&meetings->lock);
	enter(meetings, member, &wakes);
	pthread_mutex_unlock(&meetings->lock);
	wake_all(&wakes);
}

static void forget_rank(struct vdev_meetings *meetings, struct vdev_meeting *meeting, uint32_t rank)
{
	meeting->members[rank] = NULL;
	meeting->programs[rank] = NULL;
	meeting->came &= ~(1ull << rank);
	if (!meeting->came)
		drop(meetings, meeting);
}

/* meetings->lock held */
static void leave(struct vdev_meetings *meetings, struct vdev_member *member, struct wakes *wakes)
{
	struct vdev_meeting *meeting = member->meeting;
	uint32_t rank = member->header->rank;

	member->meeting = NULL;
	if (!member->header->run || (member->program && atomic_load(&member->program->freed))) {
		forget_rank(meetings, meeting, rank);
		return;
	}
	meeting->members[rank] = NULL;
	fail(meetings, meeting, NRT_TIMEOUT, wakes);
}

void vdev_meeting_leave(struct vdev_meetings *meetings, struct vdev_member *member)
{
	struct wakes wakes = {0};

	pthread_mutex_lock(&meetings->lock);
	while (member->meeting && member->meeting->computing)
		pthread_cond_wait(&meetings->computed, &meetings->lock);
	if (member->meeting)
		leave(meetings, member, &wakes);
	pthread_mutex_unlock(&meetings->lock);
	wake_all(&wakes);
}

static bool was_there(
	const struct vdev_meeting *meeting, const struct vdev_memory *program, uint32_t *ret_rank)
{
	for (*ret_rank = 0; *ret_rank < VDEV_MAX_RANKS; ++*ret_rank)
		if (meeting->programs[*ret_rank] == program)
			return true;
	return false;
}

void vdev_meetings_forget(struct vdev_meetings *meetings, const struct vdev_memory *program)
{
	struct vdev_meeting *m, *next;
	uint32_t rank;

	if (!atomic_load(&meetings->failed))
		return;
	pthread_mutex_lock(&meetings->lock);
	for (m = meetings->first; m; m = next) {
		next = m->next;
		if (m->failed && was_there(m, program, &rank))
			forget_rank(meetings, m, rank);
	}
	pthread_mutex_unlock(&meetings->lock);
}
