/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notifications.c - what it costs to take notifications from a ring, beside memcpy of the same bytes.
 *
 * 10 M records go through a ring of 8 MiB in rounds: a quarter of the ring is written, which is not timed, then the same
 * bytes are taken as the collector does and copied as memcpy does, in turns which of them is first.  The target is at
 * most twice the time of memcpy: both have to bring each byte from memory and to write it.
 *
 * Usage: notifications [RECORDS]
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/profile/profile_ring.h"

#define RING_BYTES (8u << 20)
#define SLOTS (RING_BYTES / (uint32_t)sizeof(struct notification))
#define ROUND (SLOTS / 4)
#define BATCH 4096u
#define TARGET 2.0

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int ask(void *ctx, uint32_t *ret_written, uint32_t *ret_dropped)
{
	*ret_written = (uint32_t) * (uint64_t *)ctx;
	*ret_dropped = 0;
	return 0;
}

static int tell(void *ctx, uint32_t read)
{
	(void)ctx;
	(void)read;
	return 0;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Of the rounds, in ns per record. */
static double median(uint64_t *ns, uint32_t rounds)
{
	qsort(ns, rounds, sizeof(*ns), by_value);
	return (double)ns[rounds / 2] / ROUND;
}

static void write_round(struct notification *ring, uint64_t *written)
{
	for (uint32_t i = 0; i < ROUND; i++, ++*written)
		ring[*written % SLOTS] = (struct notification){.id = (uint16_t)*written,
			.type_phase = (uint8_t)(NOTE_TYPE_INST_START(0) |
						(*written / SLOTS % 2 ? 0 : NOTE_PHASE)),
			.subtype = NOTE_START,
			.timestamp_ps = *written + 1};
}

static uint64_t time_take(struct profile_ring *p, struct notification *to)
{
	uint64_t begun = now_ns();

	while (profile_ring_take(p, to, BATCH))
		;
	return now_ns() - begun;
}

static uint64_t time_copy(const struct notification *from, struct notification *to)
{
	uint64_t begun = now_ns();

	for (uint32_t i = 0; i < ROUND; i += BATCH) {
		memcpy(to, from + i, BATCH * sizeof(*to));
		__asm__ volatile("" ::"r"(to) : "memory");
	}
	return now_ns() - begun;
}

int main(int argc, char **argv)
{
	uint64_t records = argc > 1 ? strtoull(argv[1], NULL, 10) : 10000000, written = 0;
	uint32_t rounds = (uint32_t)((records + ROUND - 1) / ROUND);
	struct notification *ring = aligned_alloc(4096, RING_BYTES);
	struct notification *to = aligned_alloc(4096, BATCH * sizeof(*to));
	uint64_t *ns[2] = {calloc(rounds, sizeof(uint64_t)), calloc(rounds, sizeof(uint64_t))};
	const struct profile_ring_device device = {ask, tell, &written};
	struct profile_ring p;
	double take, copy;

	if (!ring || !to || !ns[0] || !ns[1] || !rounds)
		return 1;
	memset(ring, 0, RING_BYTES);
	profile_ring_open(&p, ring, RING_BYTES, &device);
	for (uint32_t i = 0; i < rounds; i++) {
		const struct notification *from = ring + written % SLOTS;

		write_round(ring, &written);
		if (i % 2)
			ns[1][i] = time_copy(from, to);
		ns[0][i] = time_take(&p, to);
		if (i % 2 == 0)
			ns[1][i] = time_copy(from, to);
	}
	take = median(ns[0], rounds);
	copy = median(ns[1], rounds);
	printf("%" PRIu64 " records, lost %" PRIu64 "; medians of %" PRIu32 " rounds\n",
		p.ring.read, p.lost, rounds);
	printf("take    %6.2f ns per record, %.0f M records/s\n", take, 1e3 / take);
	printf("memcpy  %6.2f ns per record\n", copy);
	printf("ratio   %6.2f (target: at most %.1f)\n", take / copy, TARGET);
	free(ring);
	free(to);
	free(ns[0]);
	free(ns[1]);
	return p.ring.read == written && p.lost == 0 ? 0 : 1;
}
