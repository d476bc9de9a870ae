/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_events.c - what an event costs the thread that emits it: `make bench-trace`.
 *
 * Each row is measured in windows of a few milliseconds, the rows in turns within one process, so that whatever
 * the machine does meanwhile meets them all.  What a row shows is the median over the rounds; a ratio is the
 * median of the rounds' ratios.  Times are CPU times of the emitting threads per event.  Threads that are to run at once are
 * each on a processor of its own, with a real-time priority where that is allowed, and start together; a window in which one of
 * them did not run nearly all the time is measured again, and the last column says what was reached.
 *
 * Peers: one clock reading (no stamped event can be cheaper) and the obvious ring, a mutex around an array; more are
 * shared objects with a function `peer_loop`, given as NAME=FILE: tests/bench/trace_peers.sh makes LTTng-UST's and
 * crossbeam's, with the same 48 bytes, a clock reading and 40 of payload.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/trace/payload.h"
#include "runtime/trace/trace.h"

#define ROUNDS 15
#define MAX_THREADS 8
#define MAX_PEERS 4
#define WINDOW_NS 5000000u
#define LONG_WINDOW_NS 60000000u /* in which a reader comes six times */
#define CHUNK 1000u		 /* events between two looks at the clock */
#define RECORDS_READ 200000u	 /* in a long window: three full rings */
#define WARM 70000u		 /* events: a ring is full */
#define LANE_PATIENCE_NS 300000000u
#define TRIES 8
#define RAN_ENOUGH 0.95 /* of a window */

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

/* ---- rows ------------------------------------------------------------------------------------ */

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

enum row_flag {
	SPREAD = 1,    /* each thread on a core of its own */
	LANES = 2,     /* threads wait until they have lanes of their own */
	READ = 4,      /* another process reads every 10 ms */
	LONG = 8,      /* long windows */
	NO_LANES = 16, /* while all threads share one */
};

struct row {
	const char *name;
	void (*loop)(uint32_t nc, uint32_t count);
	int threads;
	unsigned flags;
	int base; /* row that it is compared with; -1 = none */
	/* Of each round, over all threads: CPU ns per event, events per ns, the least that one ran. */
	double ns[ROUNDS], rate[ROUNDS], ran[ROUNDS];
};

enum {
	CLOCK,
	NOTHING,
	UNWANTED,
	ONE,
	LONGER,
	READER,
	TWO,
	FOUR,
	EIGHT,
	TWO_CORES,
	FOUR_CORES,
	EIGHT_CORES,
	NO_LANE,
	NO_LANE2,
	PAIR,
	GIVEN,
	FIRST_LAP,
	MUTEX,
	MUTEX2,
	OWN_ROWS
};

static struct row rows[OWN_ROWS + 2 * MAX_PEERS] = {
	[CLOCK] = {"clock reading", loop_event_clock, 1, 0, -1},
	[NOTHING] = {"loop around nothing", loop_event_nothing, 1, 0, -1},
	[UNWANTED] = {"type nobody wants, start and stop", loop_event_unwanted, 1, 0, NOTHING},
	[ONE] = {"event", loop_event_trace, 1, LANES, CLOCK},
	[LONGER] = {"event, long window", loop_event_trace, 1, LANES | LONG, ONE},
	[READER] = {"the same, reader every 10 ms", loop_event_trace, 1, LANES | READ | LONG,
		LONGER},
	[TWO] = {"event, 2 threads, one core", loop_event_trace, 2, LANES, ONE},
	[FOUR] = {"event, 4 threads, one core", loop_event_trace, 4, LANES, ONE},
	[EIGHT] = {"event, 8 threads, one core", loop_event_trace, 8, LANES, ONE},
	[TWO_CORES] = {"event, 2 threads, two cores", loop_event_trace, 2, LANES | SPREAD, ONE},
	[FOUR_CORES] = {"event, 4 threads, four cores", loop_event_trace, 4, LANES | SPREAD, ONE},
	[EIGHT_CORES] = {"event, 8 threads, eight cores", loop_event_trace, 8, LANES | SPREAD, ONE},
	[NO_LANE] = {"event, no lane yet", loop_event_trace, 1, NO_LANES, ONE},
	[NO_LANE2] = {"event, no lane yet, 2 threads", loop_event_trace, 2, NO_LANES, ONE},
	[PAIR] = {"start and stop", loop_event_pair, 1, LANES, ONE},
	[GIVEN] = {"event, its time is given", loop_event_stamped, 1, LANES, ONE},
	[FIRST_LAP] = {"event, first lap of a ring", NULL, 1, 0, ONE},
	[MUTEX] = {"mutex ring", loop_event_mutex, 1, 0, CLOCK},
	[MUTEX2] = {"mutex ring, 2 threads", loop_event_mutex, 2, 0, MUTEX},
};
static int row_count = OWN_ROWS;

/* ---- processors ------------------------------------------------------------------------------ */

static cpu_set_t allowed;

/* The n-th of the processors that we may use. */
static void pin(int n)
{
	int left = n % CPU_COUNT(&allowed), cpu = 0;
	cpu_set_t one;

	while (!CPU_ISSET(cpu, &allowed) || left-- > 0)
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	(void)sched_setaffinity(0, sizeof(one), &one);
}

/* From here on nobody takes the processor away, if we may ask for it. */
static void take_processor(void)
{
	const struct sched_param priority = {.sched_priority = 1};

	(void)sched_setscheduler(0, SCHED_FIFO, &priority);
}

static uint64_t clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

/* ---- a window -------------------------------------------------------------------------------- */

static _Atomic uint64_t *records_read; /* by the reader, which is another process */

struct worker {
	pthread_t thread;
	const struct row *row;
	int number;
	bool alone; /* has a processor to itself */
	_Atomic int *waiting;
	uint64_t events, cpu_ns, wall_ns, read;
	bool wrong; /* about lanes */
};

static uint32_t core_of(const struct worker *w)
{
	return w->row->flags & SPREAD ? (uint32_t)w->number : 0;
}

/* Does the thread write to a lane of its own?  It stands in the tracking id. */
static bool has_lane(const struct worker *w)
{
	uint64_t id = trace_event_at(
		(struct boot_ns){1}, core_of(w), TRACE_GENERIC, TRACE_INSTANT, 0, 0, NULL, 0);

	return (id >> TRACK_LANE_SHIFT) % CTL_MAX_LANES != 0;
}

/* The service thread gives lanes to threads that emit much. */
static void wait_for_lane(const struct worker *w)
{
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + LANE_PATIENCE_NS;

	while (!has_lane(w) && clock_ns(CLOCK_MONOTONIC) < end)
		w->row->loop(core_of(w), CHUNK);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	uint64_t window = w->row->flags & LONG ? LONG_WINDOW_NS : WINDOW_NS, begin, now, cpu;

	if (w->alone)
		pin(w->number);
	if (w->row->flags & LANES)
		wait_for_lane(w);
	w->row->loop(core_of(w), w->row->flags & NO_LANES ? CHUNK : WARM);
	if (w->alone)
		take_processor();
	(*w->waiting)--;
	while (*w->waiting > 0)
		if (!w->alone)
			sched_yield();
	w->read = *records_read;
	cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	begin = now = clock_ns(CLOCK_MONOTONIC);
	for (; now - begin < window; now = clock_ns(CLOCK_MONOTONIC)) {
		w->row->loop(core_of(w), CHUNK);
		w->events += CHUNK;
	}
	w->wall_ns = now - begin;
	w->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
	w->read = *records_read - w->read;
	if (w->row->flags & (LANES | NO_LANES))
		w->wrong = has_lane(w) != ((w->row->flags & LANES) != 0);
	return NULL;
}

/* A process that reads as an agent does, on the last processor. */
static pid_t start_reader(void)
{
	struct timespec ten_ms = {.tv_nsec = 10000000};
	struct ctl_reader *reader;
	int fd = trace_control_fd();
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (ctl_reader_open(fd, CTL_SUB_AGENT, &reader) < 0)
			_exit(1);
		pin(CPU_COUNT(&allowed) - 1);
		take_processor();
		for (long n = 0; n >= 0; nanosleep(&ten_ms, NULL)) {
			n = ctl_reader_poll(reader, false, clock_boot().ns, NULL, NULL, NULL);
			*records_read += (uint64_t)(n > 0 ? n : 0);
		}
		_exit(1);
	}
	close(fd);
	return pid;
}

static void end_reader(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	if (waitpid(pid, &status, 0) != pid || WIFEXITED(status)) {
		fputs("the reader failed\n", stderr);
		abort();
	}
}

/* One window.  Returns the least part of it that one of the threads ran. */
static double measure(const struct row *row, double *ret_ns, double *ret_rate)
{
	struct worker workers[MAX_THREADS] = {{0}};
	_Atomic int waiting = row->threads;
	double ran = 1, rate = 0;
	uint64_t cpu_ns = 0, events = 0;
	pid_t reader = row->flags & READ ? start_reader() : 0;

	for (int i = 0; i < row->threads; i++) {
		workers[i] = (struct worker){.row = row,
			.number = i,
			.waiting = &waiting,
			.alone = row->threads <= CPU_COUNT(&allowed)};
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			abort();
	}
	for (int i = 0; i < row->threads; i++) {
		const struct worker *w = &workers[i];

		pthread_join(w->thread, NULL);
		cpu_ns += w->cpu_ns;
		events += w->events;
		rate += (double)w->events / (double)w->wall_ns;
		if ((double)w->cpu_ns < ran * (double)w->wall_ns)
			ran = (double)w->cpu_ns / (double)w->wall_ns;
		if (w->wrong)
			ran = 0.001;
	}
	if (reader) {
		end_reader(reader);
		if (workers[0].read < RECORDS_READ)
			ran = 0.001;
	}
	*ret_ns = (double)cpu_ns / (double)events;
	*ret_rate = rate;
	return ran;
}

/* The best of a few windows: threads that have no processor for themselves get one. */
static void measure_row(struct row *row, int round)
{
	double ns, rate, ran;

	for (int try = 0; try < TRIES && row->ran[round] < RAN_ENOUGH; try++) {
		ran = measure(row, &ns, &rate);
		if (ran > row->ran[round]) {
			row->ran[round] = ran;
			row->ns[round] = ns;
			row->rate[round] = rate;
		}
		if (row->threads > CPU_COUNT(&allowed))
			break;
	}
}

/* While a ring fills for the first time: of a core that had none. */
static void measure_first_lap(struct row *row, int round)
{
	uint32_t nc = MAX_THREADS + (uint32_t)round;
	uint64_t cpu;

	trace_core_touch(nc);
	cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	loop_event_trace(nc, RING_DEFAULT_CAPACITY);
	row->ns[round] = (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu) / RING_DEFAULT_CAPACITY;
	row->rate[round] = 1 / row->ns[round];
}

/* ---- what is printed ------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(const double values[ROUNDS])
{
	double sorted[ROUNDS];

	memcpy(sorted, values, sizeof(sorted));
	qsort(sorted, ROUNDS, sizeof(double), by_value);
	return sorted[ROUNDS / 2];
}

/* Medians of the rounds' ratios and differences. */
static double ratio(const double a[ROUNDS], const double b[ROUNDS])
{
	double each[ROUNDS];

	for (int i = 0; i < ROUNDS; i++)
		each[i] = a[i] / b[i];
	return median(each);
}

static double difference(const double a[ROUNDS], const double b[ROUNDS])
{
	double each[ROUNDS];

	for (int i = 0; i < ROUNDS; i++)
		each[i] = a[i] - b[i];
	return median(each);
}

static void print_row(const struct row *row)
{
	const struct row *base = row->base < 0 ? NULL : &rows[row->base];

	printf("%-36s %7.1f %9.1f", row->name, median(row->ns), 1000 * median(row->rate));
	if (median(row->ran) > 0)
		printf(" %4.0f%%", 100 * median(row->ran));
	else
		printf("     -");
	if (base)
		printf("  %+6.1f ns, %5.2f x  %s", difference(row->ns, base->ns),
			ratio(row->ns, base->ns), base->name);
	printf("\n");
}

static void print_marks(void)
{
	printf("\n%-44s wanted      is\n", "");
	printf("%-44s <= 16   %6.1f ns\n", "an event, less the clock reading",
		difference(rows[ONE].ns, rows[CLOCK].ns));
	printf("%-44s <= 1    %6.1f ns\n", "a check of a type that nobody wants",
		difference(rows[UNWANTED].ns, rows[NOTHING].ns) / 2);
	printf("%-44s <= 1.05 %7.2f\n", "with a reader every 10 ms : without",
		ratio(rows[READER].ns, rows[LONGER].ns));
	printf("%-44s <= 1.3  %7.2f\n", "2 threads on one core : 1 thread",
		ratio(rows[TWO].ns, rows[ONE].ns));
	printf("%-44s >= 1.8  %7.2f\n", "events of 2 threads on two cores : of 1",
		ratio(rows[TWO_CORES].rate, rows[ONE].rate));
	for (int i = OWN_ROWS; i < row_count; i++) {
		char text[64];

		snprintf(text, sizeof(text), "event : %s", rows[i].name);
		printf("%-44s         %7.2f\n", text,
			ratio(rows[rows[i].threads == 1 ? ONE : TWO].ns, rows[i].ns));
	}
}

/* ---- main ------------------------------------------------------------------------------------ */

/* name=file; a row with one thread and one with two. */
static bool add_peer(char *arg)
{
	char *file = strchr(arg, '='), *two;
	void *object, *loop;

	if (!file || row_count + 2 > OWN_ROWS + 2 * MAX_PEERS)
		return false;
	*file++ = '\0';
	object = dlopen(file, RTLD_NOW);
	loop = object ? dlsym(object, "peer_loop") : NULL;
	if (!loop || asprintf(&two, "%s, 2 threads", arg) < 0) {
		fprintf(stderr, "trace_events: %s\n", dlerror());
		return false;
	}
	rows[row_count] = (struct row){.name = arg, .threads = 1, .base = CLOCK};
	rows[row_count + 1] = (struct row){.name = two, .threads = 2, .base = row_count};
	memcpy(&rows[row_count].loop, &loop, sizeof(loop));
	rows[row_count + 1].loop = rows[row_count].loop;
	row_count += 2;
	return true;
}

int main(int argc, char **argv)
{
	struct trace_filter filter = {.types = ~(1ull << TRACE_TENSOR_READ), .cores = {UINT64_MAX}};

	for (int i = 1; i < argc; i++)
		if (!add_peer(argv[i]))
			return 2;
	records_read = mmap(NULL, sizeof(*records_read), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (records_read == MAP_FAILED)
		return 77;
	if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
		return 77;
	for (uint32_t nc = 0; nc < MAX_THREADS; nc++)
		trace_core_touch(nc);
	if (trace_subscribe(CTL_SUB_AGENT, &filter, 0) < 0)
		return 77;
	for (int round = 0; round < ROUNDS; round++)
		for (int i = 0; i < row_count; i++)
			(rows[i].loop ? measure_row : measure_first_lap)(&rows[i], round);
	printf("%d processors.  CPU ns per event, events per us of all threads, how much of the "
	       "time "
	       "they ran,\ncompared with another row; medians of %d rounds\n",
		CPU_COUNT(&allowed), ROUNDS);
	for (int i = 0; i < row_count; i++)
		print_row(&rows[i]);
	print_marks();
	return 0;
}
