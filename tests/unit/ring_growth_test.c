/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring_growth_test.c - how much memory rings take, for whom, when it is there, and what happens to a thread that is
 * interrupted while its ring doubles.
 *
 * Time is an argument where it matters.  Tests of trace.h run in a child, as in ring_lanes_test.c.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/trace/control.h"
#include "runtime/trace/ring_reader_parts.h"
#include "runtime/trace/trace.h"
#include "tests/shim/shim.h"
#include "tests/unit/scratch.h"

#define WANT(x)                                                                       \
	do {                                                                          \
		if (!(x)) {                                                           \
			fprintf(stderr, "ring_growth_test.c:%d: %s\n", __LINE__, #x); \
			return __LINE__ % 251 + 1;                                    \
		}                                                                     \
	} while (0)

#define MS 1000000ull
#define LANES (CTL_MAX_LANES - 1) /* of one thread each */

static struct control control;

static void emit_as(struct ring_writer *w, uint32_t tid, uint64_t count, bool alone)
{
	struct ring_event e = {.thread_id = tid, .wanted = CTL_SUB_BIT(CTL_SUB_AGENT)};

	for (uint64_t i = 0; i < count; i++)
		(void)(alone ? ring_emit_alone(w, &e) : ring_emit(w, &e));
}

static uint64_t holds(uint32_t index, uint32_t lane)
{
	const struct ring_writer *w = &control.writers[index][lane];

	return w->head ? (uint64_t)w->capacity << (atomic_load(&w->head->head) >> RING_POS_BITS)
		       : 0;
}

static uint64_t holds_all(uint32_t index)
{
	uint64_t sum = 0;

	for (uint32_t lane = 0; lane < CTL_MAX_LANES; lane++)
		sum += holds(index, lane);
	return sum;
}

/* ---- how much ------------------------------------------------------------------------------ */

TEST("growth: one thread gets the whole wish, all threads of a core together twice the wish",
	"[ring]")
{
	static uint32_t wishes[TRACE_MAX_NC + 1];
	uint64_t now = 1;
	const uint32_t wish = 1u << 17;

	REQUIRE_EQ(control_create(&control), 0);
	wishes[0] = wishes[1] = wish;
	for (uint32_t core = 0; core < 2; core++)
		REQUIRE_EQ(control_add_ring(&control, core, RING_DEFAULT_CAPACITY), 0);
	for (uint32_t tid = 1; tid <= LANES; tid++)
		REQUIRE_EQ(control_own_lane(&control, 0, tid), 0);
	REQUIRE_EQ(control_own_lane(&control, 1, 1), 0);
	CHECK(holds_all(0) <= wish); /* before anything comes */
	for (int round = 0; round < 12; round++) {
		for (uint32_t tid = 1; tid <= LANES; tid++)
			emit_as(&control.writers[0][control_lane(tid)], tid, wish / 4, true);
		emit_as(&control.writers[1][control_lane(1)], 1, wish / 4, true);
		(void)control_tend(&control, wishes, now += MS);
	}
	CHECK_EQ(holds(1, control_lane(1)), wish);
	CHECK(holds_all(0) >= wish && holds_all(0) <= 2 * wish);
	CHECK(control.file_bytes < 5ull * wish * sizeof(struct ring_slot));
	control_destroy(&control);
}

static void instants(uint32_t nc, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		trace_instant(nc, TRACE_GENERIC, NULL, 0);
}

static uint64_t file_bytes(void)
{
	int fd = trace_control_fd();
	struct stat st = {0};

	(void)fstat(fd, &st);
	close(fd);
	return (uint64_t)st.st_size;
}

static int wish_of_one_core(void *arg)
{
	struct trace_filter first = {.types = UINT64_MAX, .cores = {1}};
	uint64_t before;

	(void)arg;
	trace_core_touch(0);
	trace_core_touch(1);
	WANT(trace_subscribe(CTL_SUB_AGENT, NULL, RING_MIN_CAPACITY) == 0);
	WANT(trace_subscribe(CTL_SUB_API, &first, 1u << 20) == 0);
	/* The lanes of a small wish are small; what they take is not what is asked here. */
	before = file_bytes();
	for (int i = 0; i < 20; i++) {
		instants(1, 4096);
		WANT(trace_tend() > 0);
	}
	WANT(file_bytes() - before <= LANES * ring_bytes(RING_MIN_CAPACITY));
	/* Once nobody wants core 0 any more nothing grows on its account either. */
	trace_unsubscribe(CTL_SUB_API);
	before = file_bytes();
	for (int i = 0; i < 20; i++) {
		instants(0, 4096);
		WANT(trace_tend() > 0);
	}
	WANT(file_bytes() - before <= LANES * ring_bytes(RING_MIN_CAPACITY));
	return 0;
}

TEST("growth: a wish counts for the cores that its subscriber wants, while it is subscribed",
	"[trace]")
{
	CHECK_EQ(scratch_child(wish_of_one_core, NULL), 0);
}

TEST("growth: a thread gets a lane for 100,000 events per second, however often one looks",
	"[ring]")
{
	static const uint32_t wishes[TRACE_MAX_NC + 1] = {RING_MIN_CAPACITY};
	uint32_t tid = (uint32_t)syscall(SYS_gettid);
	struct ring_writer *w;
	uint64_t now = 1;
	int looks = 0;

	REQUIRE_EQ(control_create(&control), 0);
	REQUIRE_EQ(control_add_ring(&control, 0, RING_MIN_CAPACITY), 0);
	w = &control.writers[0][0];
	for (int i = 0; i < 200; i++) { /* 90,000 */
		emit_as(w, tid, 90, false);
		(void)control_tend(&control, wishes, now += MS);
	}
	CHECK_EQ(holds(0, control_lane(tid)), 0);
	for (; looks < 100 && !holds(0, control_lane(tid)); looks++) { /* 200,000 */
		emit_as(w, tid, 200, false);
		(void)control_tend(&control, wishes, now += MS);
	}
	CHECK(looks > 1 && looks < 20);
	control_destroy(&control);
}

/* ---- when it is there ---------------------------------------------------------------------- */

static long faults_of_this_thread(void)
{
	struct rusage use;

	return getrusage(RUSAGE_THREAD, &use) == 0 ? use.ru_minflt : -1;
}

/* 1024 pages in the first ring, as many in its double.  The address sanitizer has some of its own. */
TEST("growth: the first lap of a ring finds its memory mapped in", "[ring]")
{
	const uint32_t capacity = 1u << 15;
	struct ring_writer *w;
	long before;

#ifdef __SANITIZE_THREAD__
	SKIP("a build without ThreadSanitizer, which has a page of its own for each quarter of "
	     "one");
#endif
	REQUIRE_EQ(control_create(&control), 0);
	REQUIRE_EQ(control_add_ring(&control, 0, capacity), 0);
	w = &control.writers[0][0];
	before = faults_of_this_thread();
	emit_as(w, 1, capacity, false);
	CHECK(faults_of_this_thread() - before < 400);
	REQUIRE_EQ(control_grow_ring(&control, 0, 0), 0);
	before = faults_of_this_thread();
	emit_as(w, 1, capacity, false);
	CHECK(faults_of_this_thread() - before < 400);
	control_destroy(&control);
}

/* Is the page of an address mapped in here?  -1: the kernel does not say. */
static int is_mapped_in(const void *at)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	uint64_t entry = 0;
	ssize_t n = pread(fd, &entry, sizeof(entry),
		(off_t)((uintptr_t)at / (uintptr_t)sysconf(_SC_PAGESIZE) * sizeof(entry)));

	if (fd >= 0)
		close(fd);
	return n == sizeof(entry) ? (int)(entry >> 63) : -1;
}

TEST("growth: a reader gives back the pages that it has read, of each segment", "[ring]")
{
	const uint32_t capacity = 1u << 13;
	const struct ring_view *v;
	struct ctl_reader *r;

	REQUIRE_EQ(control_create(&control), 0);
	REQUIRE_EQ(control_add_ring(&control, 0, capacity), 0);
	REQUIRE_EQ(control_grow_ring(&control, 0, 0), 0);
	REQUIRE_EQ(
		ctl_reader_open(fcntl(control.file.fd, F_DUPFD_CLOEXEC, 0), CTL_SUB_AGENT, &r), 0);
	emit_as(&control.writers[0][0], 1, 2 * capacity, false);
	REQUIRE_EQ(ctl_reader_poll(r, false, 1, NULL, NULL, NULL), 2 * capacity);
	v = &r->rings[0];
	REQUIRE_EQ(v->epochs, 2);
	if (is_mapped_in(&v) < 0)
		SKIP("a readable /proc/self/pagemap");
	CHECK_EQ(is_mapped_in(&v), 1);
	CHECK_EQ(is_mapped_in(&v->slots[0][capacity / 2]), 0);
	CHECK_EQ(is_mapped_in(&v->slots[1][capacity / 2]), 0);
	ctl_reader_close(r);
	control_destroy(&control);
}

/* ---- interrupted --------------------------------------------------------------------------- */

/* A writer that lost its CPU between its two steps for more than a lap. */
TEST("ring: a writer that was lapped leaves the newer record alone, and is counted", "[ring]")
{
	const uint32_t capacity = RING_MIN_CAPACITY;
	struct ring_event e = {.thread_id = 7, .wanted = CTL_SUB_BIT(CTL_SUB_AGENT)};
	struct ring_writer *w;
	struct ring_slot *slot;

	REQUIRE_EQ(control_create(&control), 0);
	REQUIRE_EQ(control_add_ring(&control, 0, capacity), 0);
	w = &control.writers[0][0];
	emit_as(w, 1, capacity + 1, false);
	slot = &w->slots[0][0];
	CHECK_EQ(atomic_load(&slot->stamp), 2 * (uint64_t)capacity + 2);
	/* It goes on with the position that it had: 0. */
	atomic_store(&w->head->head, 0);
	CHECK_EQ(ring_emit(w, &e), 0);
	CHECK_EQ(atomic_load(&slot->stamp), 2 * (uint64_t)capacity + 2);
	CHECK_EQ(slot->record.thread_id, 1);
	CHECK_EQ(atomic_load(&w->head->slot_busy), 1);
	control_destroy(&control);
}

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#define TRAP_FLAG "0x100"

static struct {
	struct ring_writer *writer;
	long at, step; /* the handler emits at this step */
} trap;

/* After each instruction.  Emits as a handler of any signal may. */
static void on_trap(int sig)
{
	(void)sig;
	if (++trap.step == trap.at)
		emit_as(trap.writer, 2, 1, true);
}

/* Noinline: what is between the two is what is stepped through. */
static __attribute__((noinline)) void emit_step_by_step(struct ring_writer *w)
{
	__asm__ volatile("pushfq; orq $" TRAP_FLAG ", (%%rsp); popfq" ::: "memory", "cc");
	emit_as(w, 1, 1, true);
	__asm__ volatile("pushfq; andq $~" TRAP_FLAG ", (%%rsp); popfq" ::: "memory", "cc");
}

static int numbers(
	void *ctx, uint32_t nc, uint32_t lane, const struct trace_record *records, size_t count)
{
	uint64_t *sum = ctx;

	(void)nc;
	(void)lane;
	for (size_t i = 0; i < count; i++)
		*sum += records[i].thread_id;
	return 0;
}

/* The event that begins a lane's next epoch, with a signal after its first, second, ... last instruction. */
static int step_through(long at)
{
	uint32_t tid = 1, lane = control_lane(tid);
	uint64_t thread_ids = 0;
	struct ctl_reader *r;

	WANT(control_create(&control) == 0);
	WANT(control_add_ring(&control, 0, 8) == 0);
	WANT(control_own_lane(&control, 0, tid) == 0);
	trap.writer = &control.writers[0][lane];
	WANT(control_grow_ring(&control, 0, lane) == 0);
	trap.at = at;
	trap.step = 0;
	emit_step_by_step(trap.writer);
	if (trap.step >= at) {
		WANT(holds(0, lane) == 16);
		WANT(trap.writer->next_epoch == 0);
		WANT(ctl_reader_open(
			     fcntl(control.file.fd, F_DUPFD_CLOEXEC, 0), CTL_SUB_AGENT, &r) == 0);
		WANT(ctl_reader_poll(r, false, 1, numbers, NULL, &thread_ids) == 2);
		WANT(thread_ids == 1 + 2);
		WANT(control_grow_ring(&control, 0, lane) == 0); /* and it can go on */
		emit_as(trap.writer, 1, 1, true);
		WANT(holds(0, lane) == 32);
		ctl_reader_close(r);
	}
	control_destroy(&control);
	return 0;
}

TEST("ring: a signal at any instruction of a lane's doubling finds it in order", "[ring]")
{
	struct sigaction act = {.sa_handler = on_trap}, old;
	long at = 0;

	REQUIRE_EQ(sigaction(SIGTRAP, &act, &old), 0);
	do
		CHECK_EQ(step_through(++at), 0);
	while (trap.step >= at && at < 100000);
	sigaction(SIGTRAP, &old, NULL);
	if (at == 1)
		SKIP("a processor that traps");
	test_info("%ld instructions", at);
	CHECK(at > 50 && at < 100000);
}
#endif
