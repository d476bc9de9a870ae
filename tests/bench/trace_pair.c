/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_pair.c - what a sys_trace start/stop pair costs the traced program.
 *
 * Measured in turns within one run, so that all meet the same machine; the median of the rounds
 * counts.  Peers: two clock readings (no pair of time stamps can be cheaper) and the obvious ring, a
 * mutex around an array.  Then the same with four threads on one core's ring, and the cost of a
 * pair while nobody subscribes.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/trace/payload.h"
#include "runtime/trace/trace.h"

#define PAIRS 200000
#define ROUNDS 9
#define THREADS 4

/* ---- peers -------------------------------------------------------------------------------- */

static struct {
	pthread_mutex_t lock;
	uint64_t next;
	struct trace_record records[RING_DEFAULT_CAPACITY];
} mutex_ring = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void mutex_emit(enum trace_phase phase, uint64_t tracking, const struct trace_exec *payload)
{
	struct trace_record r = {.trace_type = TRACE_EXEC_WAIT,
		.thread_id = 1,
		.tracking_id = tracking,
		.timestamp_ns = clock_boot().ns,
		.phase = phase};

	if (payload)
		memcpy(r.data, payload, sizeof(*payload));
	pthread_mutex_lock(&mutex_ring.lock);
	r.id = ++mutex_ring.next;
	mutex_ring.records[r.id % RING_DEFAULT_CAPACITY] = r;
	pthread_mutex_unlock(&mutex_ring.lock);
}

static volatile uint64_t sink;

static void pair_clock(const struct trace_exec *payload)
{
	sink = clock_boot().ns + payload->exec_id;
	sink = clock_boot().ns;
}

static void pair_mutex(const struct trace_exec *payload)
{
	mutex_emit(TRACE_START, payload->exec_id, payload);
	mutex_emit(TRACE_STOP, payload->exec_id, NULL);
}

static void pair_trace(const struct trace_exec *payload)
{
	struct trace_span span = trace_start(0, TRACE_EXEC_WAIT, payload, sizeof(*payload));

	trace_stop(&span, 0, NULL, 0);
}

/* ---- measuring ---------------------------------------------------------------------------- */

typedef void (*pair_fn)(const struct trace_exec *payload);

static void *run_pairs(void *fn)
{
	pair_fn pair = *(pair_fn *)fn;
	struct trace_exec payload = {.model_id = 7};

	for (uint64_t i = 0; i < PAIRS; i++) {
		payload.exec_id = i;
		pair(&payload);
	}
	return NULL;
}

/* ns per pair and thread. */
static double measure(pair_fn pair, int threads)
{
	pthread_t ids[THREADS];
	uint64_t begin = clock_boot().ns;

	if (threads == 1) {
		(void)run_pairs(&pair);
	} else {
		for (int i = 0; i < threads; i++)
			if (pthread_create(&ids[i], NULL, run_pairs, &pair))
				abort();
		for (int i = 0; i < threads; i++)
			pthread_join(ids[i], NULL);
	}
	return (double)(clock_boot().ns - begin) / PAIRS / threads;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static const struct {
	const char *name;
	pair_fn pair;
	int threads;
	bool traced;
} rows[] = {
	{"two clock readings", pair_clock, 1, true},
	{"mutex ring", pair_mutex, 1, true},
	{"sys_trace pair", pair_trace, 1, true},
	{"mutex ring, 4 threads", pair_mutex, THREADS, true},
	{"sys_trace pair, 4 threads", pair_trace, THREADS, true},
	{"sys_trace pair, nobody subscribes", pair_trace, 1, false},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

int main(void)
{
	static double ns[ROWS][ROUNDS];

	trace_core_touch(0);
	for (int round = 0; round < ROUNDS; round++)
		for (size_t i = 0; i < ROWS; i++) {
			if (!rows[i].traced)
				trace_unsubscribe(CTL_SUB_AGENT);
			else if (trace_subscribe(CTL_SUB_AGENT, NULL, 0) < 0)
				return 77;
			ns[i][round] = measure(rows[i].pair, rows[i].threads);
		}
	for (size_t i = 0; i < ROWS; i++) {
		qsort(ns[i], ROUNDS, sizeof(double), by_value);
		printf("%-36s %8.1f ns/pair  (%.1f to %.1f)  %.2f x two clock readings\n",
			rows[i].name, ns[i][ROUNDS / 2], ns[i][0], ns[i][ROUNDS - 1],
			ns[i][ROUNDS / 2] / ns[0][ROUNDS / 2]);
	}
	return 0;
}
