/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge_random.h - random numbers, and recordings of anything, for tests of the merge.
 */
#ifndef NTRACE_TESTS_MERGE_RANDOM_H
#define NTRACE_TESTS_MERGE_RANDOM_H

#include "tests/unit/recording_fixture.h"

#define TID 100u

struct random {
	uint64_t state;
};

static inline uint32_t next(struct random *r, uint32_t limit)
{
	r->state = r->state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(r->state >> 33) % limit;
}

/* Any records at few different times, with few ids: four of a runtime (at most 240) for each call.  No
 * watermarks. */
static inline void put_anything(
	struct fixture *fx, struct random *r, unsigned calls, unsigned times)
{
	for (unsigned i = 0; i < 4 * calls; i++) {
		struct trace_record *rec = fx_record(fx, (enum trace_type)next(r, 30),
			(enum trace_phase)next(r, 3), 1 + next(r, 8 * calls / 3), TID + next(r, 2),
			1000 + next(r, times));

		rec->nc_idx = next(r, 5) ? next(r, 3) : TRACE_NC_UNKNOWN;
		rec->id = next(r, 50);
	}
	fx_records(fx, FX_SOURCE);
	for (unsigned i = 0; i < calls; i++) {
		uint64_t from = 1000 + next(r, times);
		struct fx_call c = {.tid = TID + next(r, 2),
			.request = NEURON_IOCTL_MEM_BUF_COPY64,
			.from = from,
			.to = from + next(r, 8),
			.open = next(r, 3) == 0,
			.nargs = 4,
			.args = {1, 100, 0, 1}};

		fx_call(fx, &c);
	}
}

#endif
