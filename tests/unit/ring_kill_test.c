/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring_kill_test.c - a process is killed while all its threads emit, and its rings are read afterwards.
 *
 * After each call that returned, the thread notes it in memory that it shares with the test, which so
 * knows without the rings what must be in them.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/trace/trace.h"
#include "tests/shim/shim.h"

#define THREADS 8u
#define CORES 3u
#define KILLS 100u
#define PATIENCE_NS 20000000000ull

/* Shared between the test and the process that it kills.  A thread's counts are its own line. */
struct notes {
	_Atomic int control_fd; /* number in the process, from 1 */
	struct {
		_Atomic uint64_t returned[CORES];
		uint64_t pad[8 - CORES];
	} thread[THREADS];
};

static uint64_t returned(const struct notes *n, uint32_t nc)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < THREADS; i++)
		sum += atomic_load(&n->thread[i].returned[nc]);
	return sum;
}

/* ---- the process ----------------------------------------------------------------------------- */

static struct notes *notes;

static void *emit_for_ever(void *arg)
{
	uint64_t me = (uint64_t)(uintptr_t)arg;

	for (uint64_t n = 0;; n++) {
		uint64_t words[5] = {n, n, n, n, n};
		uint32_t nc = (uint32_t)((n >> 8) + me) % CORES;

		trace_instant(nc, TRACE_GENERIC, words, sizeof(words));
		atomic_fetch_add_explicit(&notes->thread[me].returned[nc], 1, memory_order_relaxed);
	}
	return NULL;
}

static void run_until_killed(uint32_t wish, uint32_t threads)
{
	pthread_t thread;

	for (uint32_t nc = 0; nc < CORES; nc++)
		trace_core_touch(nc);
	if (trace_subscribe(CTL_SUB_AGENT, NULL, wish) < 0)
		_exit(1);
	for (uintptr_t i = 0; i < threads; i++)
		if (pthread_create(&thread, NULL, emit_for_ever, (void *)i))
			_exit(2);
	atomic_store(&notes->control_fd, trace_control_fd());
	for (;;)
		pause();
}

/* ---- what is found --------------------------------------------------------------------------- */

struct found {
	uint64_t records, torn, disordered, last_id[CORES][CTL_MAX_LANES];
};

static int on_batch(
	void *ctx, uint32_t nc, uint32_t lane, const struct trace_record *records, size_t count)
{
	struct found *f = ctx;

	for (size_t i = 0; i < count; i++) {
		uint64_t words[5];

		memcpy(words, records[i].data, sizeof(words));
		for (int w = 1; w < 5; w++)
			f->torn += words[w] != words[0];
		f->torn += records[i].nc_idx != nc || records[i].trace_type != TRACE_GENERIC;
		f->disordered += records[i].id <= f->last_id[nc][lane];
		f->last_id[nc][lane] = records[i].id;
		f->records++;
	}
	return 0;
}

/* The rings of a process that is dead. */
static void check_rings(
	struct ctl_reader *r, const struct notes *n, uint32_t capacity, uint32_t threads)
{
	uint64_t emitted[CORES] = {0}, abandoned = 0;
	struct found f = {0};

	while (ctl_reader_poll(r, true, clock_boot().ns, on_batch, NULL, &f) > 0)
		continue;
	CHECK(!ctl_reader_failed(r));
	CHECK_EQ(f.torn + f.disordered, 0);
	for (uint32_t i = 0; i < ctl_reader_rings(r); i++) {
		struct ring_counters c;
		uint32_t nc, lane, holds = capacity;
		uint64_t kept;

		ctl_reader_counters(r, i, &nc, &lane, &c);
		CHECK_EQ(c.emitted, c.delivered + c.overwritten + c.slot_busy + c.abandoned);
		CHECK_EQ(c.unread + c.filtered + c.no_ring, 0);
		if (nc == TRACE_NC_UNKNOWN)
			continue;
		/* Lanes of a thread begin smaller.  A slot whose writer slept for a lap refuses one record
		 * per lap. */
		if (lane && capacity > RING_MIN_CAPACITY)
			holds = capacity / CTL_MAX_LANES;
		kept = c.emitted < holds ? c.emitted : holds;
		CHECK(c.delivered + threads + c.slot_busy >= kept);
		abandoned += c.abandoned;
		emitted[nc] += c.emitted;
	}
	CHECK(abandoned <= threads); /* at most the event that each was at */
	for (uint32_t nc = 0; nc < CORES; nc++) {
		CHECK(emitted[nc] >= returned(n, nc));
		CHECK(emitted[nc] <= returned(n, nc) + threads);
	}
}

/* Kills the process after about so many events.  Its rings outlive it. */
static bool kill_one(uint64_t after, uint32_t wish, uint32_t capacity, uint32_t threads)
{
	uint64_t end = clock_boot().ns + PATIENCE_NS;
	struct ctl_reader *r = NULL;
	bool opened = false;
	char path[64];
	pid_t pid;

	memset(notes, 0, sizeof(*notes));
	pid = fork();
	if (pid == 0)
		run_until_killed(wish, threads);
	while (pid > 0 && clock_boot().ns < end &&
		(atomic_load(&notes->control_fd) == 0 ||
			returned(notes, 0) + returned(notes, 1) + returned(notes, 2) < after))
		(void)sched_yield();
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, atomic_load(&notes->control_fd));
	opened = ctl_reader_open(open(path, O_RDONLY | O_CLOEXEC), CTL_SUB_AGENT, &r) == 0;
	if (pid > 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	if (opened)
		check_rings(r, notes, capacity, threads);
	ctl_reader_close(r);
	return opened;
}

/* Repeatable: which moment it is, the scheduler makes random enough. */
static uint64_t moment(uint32_t n)
{
	return (n * 2654435761u >> 8) % 60000;
}

TEST("kill: at a hundred moments the last records are all there, less one per thread", "[ring]")
{
	notes = mmap(
		NULL, sizeof(*notes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	REQUIRE(notes != MAP_FAILED);
	for (uint32_t n = 0; n < KILLS; n++) {
		test_info("kill %u", n);
		REQUIRE(kill_one(moment(n), RING_MIN_CAPACITY, RING_MIN_CAPACITY, THREADS));
	}
	munmap(notes, sizeof(*notes));
}

TEST("kill: while rings double, what was written before and after is there", "[ring]")
{
	notes = mmap(
		NULL, sizeof(*notes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	REQUIRE(notes != MAP_FAILED);
	for (uint32_t n = 0; n < 8; n++) /* the first capacity is what must be kept, more may be */
		REQUIRE(kill_one(
			70000 + 40000 * n, 4 * RING_DEFAULT_CAPACITY, RING_DEFAULT_CAPACITY, 2));
	munmap(notes, sizeof(*notes));
}
