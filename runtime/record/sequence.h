/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sequence.h - which records of the hooks are missing, by the numbers that each CPU gives them.
 *
 * A CPU counts from 0, also those that found no room in the ring buffer.  Records come nearly in the
 * order of their numbers.
 */
#ifndef NTRACE_RECORD_SEQUENCE_H
#define NTRACE_RECORD_SEQUENCE_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/neuron_event.h"

#define SEQUENCE_CPUS (1u << 16)

/* Zero-initialise SEQUENCE_CPUS of them. */
struct sequence {
	uint64_t count;
	uint64_t expected; /* numbers up to the highest seen */
};

/* 32 bits wrap; neighbours are never 2^31 apart. */
static inline void sequence_note(struct sequence *cpus, const struct nev_hdr *h)
{
	struct sequence *s = &cpus[h->cpu];
	int32_t ahead;

	if (h->cpu == NEV_CPU_READER)
		return;
	ahead = (int32_t)(h->seq - (uint32_t)s->expected);
	s->count++;
	if (ahead >= 0)
		s->expected += (uint64_t)ahead + 1;
}

/* Numbers that are missing below the highest of each CPU. */
static inline uint64_t sequence_gaps(const struct sequence *cpus)
{
	uint64_t gaps = 0;

	for (size_t i = 0; i < SEQUENCE_CPUS; i++)
		if (cpus[i].expected > cpus[i].count)
			gaps += cpus[i].expected - cpus[i].count;
	return gaps;
}

#endif
