/* SPDX-License-Identifier: Apache-2.0 */
/* schedule.c - beginnings and ends of instructions; see schedule.h. */
#include "runtime/vdev/schedule.h"

bool vdev_is_collective(const struct vdev_instruction *instruction)
{
	static const uint8_t kinds[] = {
#define OP(id, name, words, where, kind) [VDEV_OP_##id] = (kind),
#include "runtime/vdev/ops.def"
#undef OP
	};

	return instruction->op < sizeof(kinds) && kinds[instruction->op] & VDEV_OP_MEETS;
}

/* The next instruction of a unit from `from` on. */
static uint32_t find_next(const struct vdev_schedule *s, unsigned unit, uint32_t from)
{
	while (from < s->count && s->list[from].unit != unit)
		from++;
	return from;
}

void vdev_schedule_init(
	struct vdev_schedule *s, const struct vdev_instruction *list, uint32_t count, bool serial)
{
	*s = (struct vdev_schedule){.list = list, .count = count, .serial = serial};
	for (unsigned u = 0; u < VDEV_UNITS; u++) {
		s->running[u] = VDEV_IDLE;
		s->next[u] = find_next(s, u, 0);
	}
}

static bool can_begin(const struct vdev_schedule *s, unsigned unit)
{
	const struct vdev_instruction *i;

	if (s->running[unit] != VDEV_IDLE || s->next[unit] == s->count)
		return false;
	if (s->serial && s->next[unit] != s->ended)
		return false;
	i = &s->list[s->next[unit]];
	return i->wait == VDEV_NO_SEMAPHORE || s->semaphores[i->wait] >= i->wait_value;
}

/* The unit whose instruction ends first, VDEV_UNITS when none runs. */
static unsigned first_to_end(const struct vdev_schedule *s)
{
	unsigned best = VDEV_UNITS;

	for (unsigned u = 0; u < VDEV_UNITS; u++) {
		if (s->running[u] == VDEV_IDLE)
			continue;
		if (best == VDEV_UNITS || s->end_ps[u] < s->end_ps[best] ||
			(s->end_ps[u] == s->end_ps[best] && s->running[u] < s->running[best]))
			best = u;
	}
	return best;
}

static unsigned first_to_begin(const struct vdev_schedule *s)
{
	unsigned best = VDEV_UNITS;

	for (unsigned u = 0; u < VDEV_UNITS; u++)
		if (can_begin(s, u) && (best == VDEV_UNITS || s->next[u] < s->next[best]))
			best = u;
	return best;
}

static struct vdev_event end(struct vdev_schedule *s, unsigned unit)
{
	uint32_t index = s->running[unit];
	const struct vdev_instruction *i = &s->list[index];
	struct vdev_event event = {VDEV_EVENT_END, index, s->end_ps[unit], 0};

	s->now_ps = s->end_ps[unit];
	s->running[unit] = VDEV_IDLE;
	s->ended++;
	if (i->post != VDEV_NO_SEMAPHORE)
		event.semaphore = s->semaphores[i->post] += i->post_value;
	return event;
}

static struct vdev_event begin(struct vdev_schedule *s, unsigned unit)
{
	uint32_t index = s->next[unit];

	s->running[unit] = index;
	s->next[unit] = find_next(s, unit, index + 1);
	s->end_ps[unit] = s->now_ps + s->list[index].duration_ps;
	return (struct vdev_event){VDEV_EVENT_BEGIN, index, s->now_ps, 0};
}

struct vdev_event vdev_schedule_next(struct vdev_schedule *s)
{
	unsigned ending = first_to_end(s), beginning;

	if (ending < VDEV_UNITS && s->end_ps[ending] <= s->now_ps)
		return end(s, ending);
	beginning = first_to_begin(s);
	if (beginning < VDEV_UNITS)
		return begin(s, beginning);
	if (ending < VDEV_UNITS)
		return end(s, ending);
	return (struct vdev_event){
		s->ended == s->count ? VDEV_EVENT_DONE : VDEV_EVENT_STUCK, s->count, s->now_ps, 0};
}

void vdev_schedule_release(struct vdev_schedule *s, uint64_t end_ps)
{
	s->end_ps[VDEV_TOP_SP] = end_ps > s->now_ps ? end_ps : s->now_ps;
}
