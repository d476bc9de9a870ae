/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock_map.c - the offset between BOOTTIME and REALTIME, and its steps.
 */
#include "runtime/record/clock_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Most that the snapshot's offset can be wrong by. */
static uint64_t bracket(const struct clock_snapshot *s)
{
	return s->boot_after - s->boot_before;
}

static uint64_t distance(int64_t a, int64_t b)
{
	return a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a;
}

/* A clock that shows 0 was not read. */
static bool plausible(const struct clock_snapshot *s)
{
	return s->boot_before != 0 && s->realtime != 0 && s->boot_before <= s->boot_after &&
	       s->boot_after < CLOCK_EPOCH_2100 && s->realtime < CLOCK_EPOCH_2100;
}

bool clock_map_find(struct clock_map *m, const struct clock_snapshot *s)
{
	if (m->known || !plausible(s))
		return false;
	m->offset = clock_snapshot_offset(s);
	m->begin = s->boot_before;
	m->known = true;
	return true;
}

bool clock_map_find_frame(struct clock_map *m, const struct rec_frame *f, const uint8_t *payload)
{
	struct clock_snapshot s;

	if (f->type != REC_CLOCK || f->size < sizeof(s))
		return false;
	memcpy(&s, payload, sizeof(s));
	return clock_map_find(m, &s);
}

static uint64_t middle(const struct clock_snapshot *s)
{
	return s->boot_before + bracket(s) / 2;
}

static int add_step(struct clock_map *m, const struct clock_step *s)
{
	if (m->step_count == m->step_cap) {
		size_t cap = m->step_cap ? 2 * m->step_cap : 16;
		struct clock_step *more = realloc(m->steps, cap * sizeof(*more));

		if (!more)
			return -ENOMEM;
		m->steps = more;
		m->step_cap = cap;
	}
	m->steps[m->step_count++] = *s;
	return 0;
}

/* MONOTONIC stands still while the machine sleeps, BOOTTIME goes on.  0 when it did not sleep. */
static uint64_t slept(const struct clock_snapshot *a, const struct clock_snapshot *b)
{
	uint64_t boot = middle(b) - middle(a), awake = b->monotonic - a->monotonic;
	uint64_t error = bracket(a) + bracket(b) + CLOCK_STEP_NS;

	if (!a->monotonic || b->monotonic < a->monotonic || middle(b) < middle(a))
		return 0;
	return boot > awake && boot - awake > error ? boot - awake : 0;
}

/* What happened between two snapshots. */
static int add_steps(
	struct clock_map *m, const struct clock_snapshot *last, const struct clock_snapshot *s)
{
	struct clock_step step = {.boot_ns = middle(s), .suspended_ns = slept(last, s)};
	int rc = step.suspended_ns ? add_step(m, &step) : 0;

	step = (struct clock_step){.boot_ns = middle(s),
		.old_offset = clock_snapshot_offset(last),
		.new_offset = clock_snapshot_offset(s)};
	if (rc == 0 && distance(step.new_offset, step.old_offset) >
			       bracket(last) + bracket(s) + CLOCK_STEP_NS)
		rc = add_step(m, &step);
	return rc;
}

int clock_map_add(struct clock_map *m, const struct clock_snapshot *s)
{
	int rc = 0;

	if (!plausible(s))
		return 0;
	clock_map_find(m, s);
	if (m->has_last)
		rc = add_steps(m, &m->last, s);
	m->last = *s;
	m->has_last = true;
	return rc;
}

void clock_map_free(struct clock_map *m)
{
	free(m->steps);
	memset(m, 0, sizeof(*m));
}
