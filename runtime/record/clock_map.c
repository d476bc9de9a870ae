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

static bool plausible(const struct clock_snapshot *s)
{
	return s->boot_before <= s->boot_after && s->boot_after < CLOCK_EPOCH_2100 &&
	       s->realtime < CLOCK_EPOCH_2100;
}

bool clock_map_find(struct clock_map *m, const struct clock_snapshot *s)
{
	if (m->known || !plausible(s))
		return false;
	m->offset = clock_snapshot_offset(s);
	m->known = true;
	return true;
}

static int add_step(struct clock_map *m, const struct clock_snapshot *s)
{
	if (m->step_count == m->step_cap) {
		size_t cap = m->step_cap ? 2 * m->step_cap : 16;
		struct clock_step *more = realloc(m->steps, cap * sizeof(*more));

		if (!more)
			return -ENOMEM;
		m->steps = more;
		m->step_cap = cap;
	}
	m->steps[m->step_count++] = (struct clock_step){
		.boot_ns = s->boot_before + bracket(s) / 2,
		.old_offset = clock_snapshot_offset(&m->last),
		.new_offset = clock_snapshot_offset(s),
	};
	return 0;
}

int clock_map_add(struct clock_map *m, const struct clock_snapshot *s)
{
	int rc = 0;

	if (!plausible(s))
		return 0;
	clock_map_find(m, s);
	if (m->has_last && distance(clock_snapshot_offset(s), clock_snapshot_offset(&m->last)) >
				   bracket(&m->last) + bracket(s) + CLOCK_STEP_NS)
		rc = add_step(m, s);
	m->last = *s;
	m->has_last = true;
	return rc;
}

void clock_map_free(struct clock_map *m)
{
	free(m->steps);
	memset(m, 0, sizeof(*m));
}
