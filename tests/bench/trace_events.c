/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_events.c - what an event costs the thread that emits it: `make bench-trace`.
 *
 * Times are CPU times of the emitting threads per event, so that other programs on the machine disturb
 * little; the last rows of a group say what a second thread costs the first.  All rows run in turns within one
 * process and the median of the rounds counts.  Peers: one clock reading (no stamped event can be cheaper)
 * and the obvious ring, a mutex around an array; tests/bench/trace_peers.sh adds LTTng-UST and
 * crossbeam's queue with the same 48 bytes, a clock reading and 40 of payload.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/trace/payload.h"
#include "runtime/trace/trace.h"

#define EVENTS 400000u
#define ROUNDS 7
#define MAX_THREADS 8
#define WARM_NS 25000000

/* ---- what is measured ------------------------------------------------------------------------ */

struct slot48 {
	uint64_t timestamp_ns;
	uint8_t data[TRACE_PAYLOAD_BYTES];
};

static struct {
	pthread_mutex_t lock;
	uint64_t next;
	struct slot48 slots[RING_DEFAULT_CAPACITY];
} mutex_ring = {.lock = PTHREAD_MUTEX_INITIALIZER};

static volatile uint64_t sink;

static void event_clock(uint32_t nc, const uint8_t payload[TRACE_PAYLOAD_BYTES])
{
	sink = clock_boot().ns + nc + payload[0];
}

static void event_mutex(uint32_t nc, const uint8_t payload[TRACE_PAYLOAD_BYTES])
{
	struct slot48 s = {.timestamp_ns = clock_boot().ns + nc};

	memcpy(s.data, payload, sizeof(s.data));
	pthread_mutex_lock(&mutex_ring.lock);
	mutex_ring.slots[mutex_ring.next++ % RING_DEFAULT_CAPACITY] = s;
	pthread_mutex_unlock(&mutex_ring.lock);
}

static void event_trace(uint32_t nc, const uint8_t payload[TRACE_PAYLOAD_BYTES])
{
	trace_instant(nc, TRACE_GENERIC, payload, TRACE_PAYLOAD_BYTES);
}

/* Without the clock, which waits for everything before it to end: here events overlap. */
static void event_stamped(uint32_t nc, const uint8_t payload[TRACE_PAYLOAD_BYTES])
{
	(void)trace_event_at((struct boot_ns){1}, nc, TRACE_GENERIC, TRACE_INSTANT, 0, 0, payload,
		TRACE_PAYLOAD_BYTES);
}

/* A span whose type nobody wants: the inline check, twice. */
static void event_unwanted(uint32_t nc, const uint8_t payload[TRACE_PAYLOAD_BYTES])
{
	struct trace_span span = trace_start(nc, TRACE_TENSOR_READ, payload, TRACE_PAYLOAD_BYTES);

	trace_stop(&span, 0, NULL, 0);
	__asm__ volatile("" ::: "memory");
}

static void event_nothing(uint32_t nc, const uint8_t payload[TRACE_PAYLOAD_BYTES])
{
	(void)nc;
	(void)payload;
	__asm__ volatile("" ::: "memory");
}

static void event_pair(uint32_t nc, const uint8_t payload[TRACE_PAYLOAD_BYTES])
{
	struct trace_span span = trace_start(nc, TRACE_EXEC_WAIT, payload, 16);

	trace_stop(&span, 0, NULL, 0);
}

/* ---- measuring ------------------------------------------------------------------------------- */

static uint64_t thread_cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

/* A loop of its own for each kind, so that what is inline stays inline. */
#define LOOP(fn)                                            \
	static void loop_##fn(uint32_t nc, uint32_t count)  \
	{                                                   \
		uint8_t payload[TRACE_PAYLOAD_BYTES] = {1}; \
                                                            \
		for (uint32_t i = 0; i < count; i++) {      \
			memcpy(payload, &i, sizeof(i));     \
			fn(nc, payload);                    \
		}                                           \
	}
LOOP(event_clock)
LOOP(event_mutex)
LOOP(event_trace)
LOOP(event_stamped)
LOOP(event_unwanted)
LOOP(event_nothing)
LOOP(event_pair)

static const struct row {
	const char *name;
	void (*loop)(uint32_t nc, uint32_t count);
	int threads;
	bool spread; /* each thread on a core of its own */
	bool read;   /* by a reader that polls every 10 ms */
	int base;    /* row that the ratio refers to; -1 = none */
} rows[] = {
	{"clock reading", loop_event_clock, 1, false, false, -1},
	{"loop around nothing", loop_event_nothing, 1, false, false, -1},
	{"type nobody wants, start and stop", loop_event_unwanted, 1, false, false, 1},
	{"mutex ring", loop_event_mutex, 1, false, false, 0},
	{"mutex ring, 2 threads", loop_event_mutex, 2, false, false, 3},
	{"event", loop_event_trace, 1, false, false, 0},
	{"event, reader every 10 ms", loop_event_trace, 1, false, true, 5},
	{"event, 2 threads, one core", loop_event_trace, 2, false, false, 5},
	{"event, 4 threads, one core", loop_event_trace, 4, false, false, 5},
	{"event, 8 threads, one core", loop_event_trace, 8, false, false, 5},
	{"event, 2 threads, two cores", loop_event_trace, 2, true, false, 5},
	{"event, 4 threads, four cores", loop_event_trace, 4, true, false, 5},
	{"event, 8 threads, eight cores", loop_event_trace, 8, true, false, 5},
	{"start and stop", loop_event_pair, 1, false, false, 0},
	{"start and stop, 2 threads, one core", loop_event_pair, 2, false, false, 13},
	{"event, its time is given", loop_event_stamped, 1, false, false, -1},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

struct worker {
	pthread_t thread;
	const struct row *row;
	uint32_t nc;
	uint64_t cpu_ns;
	pthread_barrier_t *start;
};

static void *work(void *arg)
{
	struct worker *w = arg;

	/* Until the thread has what it will have: the service thread looks every 10 ms. */
	uint64_t warm = thread_cpu_ns() + WARM_NS;
	while (thread_cpu_ns() < warm)
		w->row->loop(w->nc, 1000);
	pthread_barrier_wait(w->start);
	uint64_t begin = thread_cpu_ns();
	w->row->loop(w->nc, EVENTS);
	w->cpu_ns = thread_cpu_ns() - begin;
	return NULL;
}

static _Atomic bool reading;

static void *follow(void *arg)
{
	struct timespec ten_ms = {.tv_nsec = 10000000};

	while (reading) {
		(void)ctl_reader_poll(arg, false, clock_boot().ns, NULL, NULL, NULL);
		nanosleep(&ten_ms, NULL);
	}
	return NULL;
}

static double measure(const struct row *row)
{
	struct worker workers[MAX_THREADS];
	struct ctl_reader *reader = NULL;
	pthread_barrier_t start;
	pthread_t reader_thread;
	uint64_t cpu_ns = 0;

	reading = row->read;
	if (row->read && (ctl_reader_open(trace_control_fd(), CTL_SUB_AGENT, &reader) < 0 ||
				 pthread_create(&reader_thread, NULL, follow, reader)))
		abort();
	pthread_barrier_init(&start, NULL, (unsigned)row->threads);
	for (int i = 0; i < row->threads; i++) {
		workers[i] = (struct worker){
			.row = row, .nc = row->spread ? (uint32_t)i : 0, .start = &start};
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			abort();
	}
	for (int i = 0; i < row->threads; i++) {
		pthread_join(workers[i].thread, NULL);
		cpu_ns += workers[i].cpu_ns;
	}
	pthread_barrier_destroy(&start);
	if (reader) {
		reading = false;
		pthread_join(reader_thread, NULL);
		ctl_reader_close(reader);
	}
	return (double)cpu_ns / EVENTS / row->threads;
}

/* ns per event while a ring fills for the first time: of a core that had none. */
static double first_lap(uint32_t nc)
{
	uint8_t payload[TRACE_PAYLOAD_BYTES] = {1};

	trace_core_touch(nc);
	uint64_t begin = thread_cpu_ns();
	for (uint32_t i = 0; i < RING_DEFAULT_CAPACITY; i++)
		event_trace(nc, payload);
	return (double)(thread_cpu_ns() - begin) / RING_DEFAULT_CAPACITY;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void print(const char *name, double ns[ROUNDS], double base)
{
	printf("%-38s %7.1f ns  (%.1f to %.1f)", name, ns[ROUNDS / 2], ns[0], ns[ROUNDS - 1]);
	if (base > 0)
		printf("  %.2f x, %+.1f ns", ns[ROUNDS / 2] / base, ns[ROUNDS / 2] - base);
	printf("\n");
}

int main(void)
{
	struct trace_filter filter = {.types = ~(1ull << TRACE_TENSOR_READ), .cores = {UINT64_MAX}};
	static double ns[ROWS][ROUNDS], first[ROUNDS];

	for (uint32_t nc = 0; nc < MAX_THREADS; nc++)
		trace_core_touch(nc);
	if (trace_subscribe(CTL_SUB_AGENT, &filter, 0) < 0)
		return 77;
	for (int round = 0; round < ROUNDS; round++) {
		for (size_t i = 0; i < ROWS; i++)
			ns[i][round] = measure(&rows[i]);
		first[round] = first_lap(MAX_THREADS + (uint32_t)round);
	}
	printf("CPU time of the emitting threads, each times its events; median of %d rounds "
	       "(range)\n",
		ROUNDS);
	for (size_t i = 0; i < ROWS; i++)
		qsort(ns[i], ROUNDS, sizeof(double), by_value);
	for (size_t i = 0; i < ROWS; i++)
		print(rows[i].name, ns[i], rows[i].base < 0 ? 0 : ns[rows[i].base][ROUNDS / 2]);
	qsort(first, ROUNDS, sizeof(double), by_value);
	print("event, first lap of a ring", first, ns[5][ROUNDS / 2]);
	return 0;
}
