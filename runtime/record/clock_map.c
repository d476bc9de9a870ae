/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock_map.c - the offset between BOOTTIME and REALTIME, and its steps.
 */
#include "runtime/record/clock_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define EPOCH_2100 4102444800000000000ull

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
	return s->boot_before <= s->boot_after && s->boot_after < EPOCH_2100 &&
	       s->realtime < EPOCH_2100;
}

int clock_map_init(struct clock_map *m, const struct clock_snapshot *snapshots, size_t count)
{
	const struct clock_snapshot *last = NULL;

	memset(m, 0, sizeof(*m));
	m->steps = count ? calloc(count, sizeof(*m->steps)) : NULL;
	if (count && !m->steps)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		const struct clock_snapshot *s = &snapshots[i];
		int64_t offset = clock_snapshot_offset(s);

		if (!plausible(s))
			continue;
		if (!last) {
			m->offset = offset;
		} else if (distance(offset, clock_snapshot_offset(last)) >
			   bracket(last) + bracket(s) + CLOCK_STEP_NS) {
			m->steps[m->step_count++] = (struct clock_step){
				.boot_ns = s->boot_before + bracket(s) / 2,
				.old_offset = clock_snapshot_offset(last),
				.new_offset = offset,
			};
		}
		last = s;
	}
	return last ? 0 : -ENODATA;
}

void clock_map_free(struct clock_map *m)
{
	free(m->steps);
	memset(m, 0, sizeof(*m));
}

bool clock_map_valid(const struct clock_map *m, uint64_t boot_ns)
{
	uint64_t real = clock_map_real(m, boot_ns);

	return boot_ns != 0 && boot_ns < EPOCH_2100 && real < EPOCH_2100;
}
