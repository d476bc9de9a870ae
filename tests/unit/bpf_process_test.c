/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bpf_process_test.c - the programs around the calls, driven on the host: who is followed, when a process is
 * forgotten, and the walk over the calls that are open.
 */
#include "tests/unit/bpf_fixture.h"

#define FD BPF_TEST_FD
#define TGID BPF_TEST_TGID
#define ADDRESS 0x7ffc00001000ull

/* ---- process filter ----------------------------------------------------------------------- */

static int fork_of(void *parent, uint32_t tgid, uint32_t tid)
{
	unsigned long long ctx[2] = {(uintptr_t)parent, (uintptr_t)bpf_host_task_new(tgid, tid, 1)};

	return follow_fork(ctx);
}

TEST("bpf: children of a followed process are followed, its threads need nothing, others are not",
	"[bpf][bpf-host]")
{
	uint32_t child = 7000;

	REQUIRE(bpf_test_open(65536, 16));
	CHECK_EQ(fork_of(bpf_host.task, TGID, 6999), 0);
	CHECK_EQ(bpf_host_count("tracked"), 1);
	CHECK_EQ(fork_of(bpf_host.task, child, child), 0);
	CHECK(bpf_host_lookup("tracked", &child) != NULL);
	CHECK_EQ(fork_of(bpf_host_task_new(8000, 8000, 1), 8001, 8001), 0);
	CHECK_EQ(bpf_host_count("tracked"), 2);
	CHECK_EQ(bpf_test_counter(NEV_C_UNTRACKED), 0);
	bpf_test_close();
}

TEST("bpf: children that the filter has no room for are counted", "[bpf][bpf-host]")
{
	REQUIRE(bpf_test_open(65536, 16));
	bpf_host_fail("tracked", BPF_HOST_UPDATE, -E2BIG, 2, 3);
	for (uint32_t i = 0; i < 5; i++)
		CHECK_EQ(fork_of(bpf_host.task, 7000 + i, 7000 + i), 0);
	CHECK_EQ(bpf_test_counter(NEV_C_UNTRACKED), 3);
	CHECK_EQ(bpf_host_count("tracked"), 3);
	bpf_test_close();
}

TEST("bpf: a process is forgotten when it is freed after its last thread, so that its files are "
     "closed as its own",
	"[bpf][bpf-host]")
{
	unsigned long long thread[1], last[1], stranger[1];
	const uint32_t *state;
	uint32_t tgid = TGID;
	void *task;

	REQUIRE(bpf_test_open(65536, 16));
	task = bpf_host_task_new(TGID, 6882, 1);
	thread[0] = (uintptr_t)task;
	last[0] = (uintptr_t)bpf_host.task;
	stranger[0] = (uintptr_t)bpf_host_task_new(4000, 4000, 1);
	bpf_host_task_live(task, 1);
	CHECK_EQ(follow_exit(thread), 0);
	CHECK(bpf_host_lookup("tracked", &tgid) != NULL);
	bpf_host_task_live((void *)(uintptr_t)stranger[0], 0);
	CHECK_EQ(follow_exit(stranger), 0);
	CHECK_EQ(follow_free(stranger), 0);
	CHECK_EQ(bpf_host_count("tracked"), 1);
	bpf_host_task_live(bpf_host.task, 0);
	CHECK_EQ(follow_free(last), 0);
	CHECK_EQ(bpf_host_count("tracked"), 1); /* not one that lives: it has the number since */
	CHECK_EQ(follow_exit(last), 0);
	state = bpf_host_lookup("tracked", &tgid);
	CHECK(state && *state == NEV_TRACKED_ENDS);
	CHECK_EQ(follow_free(thread), 0);
	CHECK_EQ(bpf_host_count("tracked"), 1);
	/* What it did while it closed its files goes with it; a call that is open is of another. */
	bpf_test_enter(FD, NEURON_IOCTL_DEVICE_INFO, ADDRESS);
	CHECK_EQ(follow_free(thread), 0);
	CHECK_EQ(follow_free(last), 0);
	CHECK_EQ(bpf_host_count("inflight"), 1);
	bpf_test_exit(0);
	CHECK_EQ(follow_free(last), 0);
	CHECK_EQ(bpf_host_count("inflight"), 0);
	CHECK_EQ(bpf_host_count("tracked"), 0);
	bpf_test_close();
}

/* ---- ceiling ------------------------------------------------------------------------------ */

static unsigned calls_of(uint32_t tgid, unsigned count)
{
	unsigned recorded = 0;

	bpf_host.tgid = tgid;
	bpf_test_become(tgid);
	for (unsigned i = 0; i < count; i++) {
		bpf_test_enter(FD, NEURON_IOCTL_DEVICE_INFO, ADDRESS);
		bpf_test_exit(0);
		recorded += bpf_test_take() != NULL;
	}
	return recorded;
}

TEST("bpf: a process that floods is held to the ceiling of each window, and no other with it",
	"[bpf][bpf-host]")
{
	REQUIRE(bpf_test_open(65536, 16));
	REQUIRE(bpf_test_track(4000));
	bpf_host_rate_ceiling = 10;
	bpf_host.boot_ns = 7 * NEV_RATE_WINDOW_NS;
	CHECK_EQ(calls_of(TGID, 100), 10);
	CHECK_EQ(bpf_test_counter(NEV_C_LOST_RATE), 90);
	CHECK_EQ(calls_of(4000, 5), 5);
	CHECK(bpf_test_balanced());
	bpf_host.boot_ns = 8 * NEV_RATE_WINDOW_NS;
	CHECK_EQ(calls_of(TGID, 9), 9);
	/* A thread whose call began before and which comes to count it only now: it begins no window again. */
	bpf_host.boot_ns = 8 * NEV_RATE_WINDOW_NS - 1;
	CHECK_EQ(calls_of(TGID, 1), 1);
	bpf_host.boot_ns = 8 * NEV_RATE_WINDOW_NS;
	CHECK_EQ(calls_of(TGID, 1), 0);
	CHECK_EQ(bpf_test_counter(NEV_C_LOST_RATE), 91);
	CHECK(bpf_test_balanced());
	/* A return that was not seen is counted all the same when the next call is beyond the ceiling. */
	bpf_host.boot_ns = 9 * NEV_RATE_WINDOW_NS;
	CHECK_EQ(calls_of(TGID, 9), 9);
	bpf_test_enter(FD, NEURON_IOCTL_DEVICE_INFO, ADDRESS);
	bpf_test_enter(FD, NEURON_IOCTL_DEVICE_INFO, ADDRESS);
	CHECK_EQ(bpf_test_counter(NEV_C_LOST_EXIT), 1);
	CHECK_EQ(bpf_test_open_calls(), 0);
	CHECK(bpf_test_balanced());
	bpf_test_close();
}

TEST("bpf: without a ceiling no process is counted", "[bpf][bpf-host]")
{
	REQUIRE(bpf_test_open(65536, 16));
	CHECK_EQ(calls_of(TGID, 1000), 1000);
	CHECK_EQ(bpf_host_count("rates"), 0);
	bpf_test_close();
}

/* ---- walk over the open calls ------------------------------------------------------------- */

static struct nev_walk *walk_before(uint64_t ns)
{
	uint32_t zero = 0;
	struct nev_walk *w = bpf_host_lookup("walk", &zero);

	w->before_ns = ns;
	return walk_inflight(NULL) ? NULL : w;
}

TEST("bpf: the walk tells long open calls once, and the start of the oldest that is not told",
	"[bpf][bpf-host]")
{
	const struct nev_walk *w;
	uint64_t third = 0;

	REQUIRE(bpf_test_open(65536, 16));
	w = walk_before(UINT64_MAX);
	REQUIRE(w != NULL);
	CHECK_EQ(w->open, 0);
	CHECK_EQ(w->oldest_ns, UINT64_MAX);
	for (uint32_t tid = 1; tid <= 4; tid++) {
		if (tid == 3)
			third = bpf_host.boot_ns;
		bpf_test_become(tid);
		bpf_test_enter(FD, NEURON_IOCTL_DEVICE_INFO, ADDRESS);
	}
	w = walk_before(third);
	REQUIRE(w != NULL);
	CHECK_EQ(w->open, 4);
	CHECK_EQ(w->found_count, 2);
	CHECK_EQ(w->found[0].tid + w->found[1].tid, 3);
	CHECK_EQ(w->found[0].request, NEURON_IOCTL_DEVICE_INFO);
	CHECK_EQ(w->oldest_ns, third);
	w = walk_before(UINT64_MAX);
	REQUIRE(w != NULL);
	CHECK_EQ(w->open, 4);
	CHECK_EQ(w->found_count, 2);
	CHECK_EQ(w->found[0].tid + w->found[1].tid, 7);
	CHECK_EQ(w->oldest_ns, UINT64_MAX);
	bpf_test_close();
}

TEST("bpf: more long open calls than an answer holds come with the next walk", "[bpf][bpf-host]")
{
	const struct nev_walk *w;
	uint64_t first;

	REQUIRE(bpf_test_open(65536, 256));
	first = bpf_host.boot_ns;
	for (uint32_t tid = 1; tid <= NEV_WALK_MAX + 6; tid++) {
		bpf_test_become(tid);
		bpf_test_enter(FD, NEURON_IOCTL_DEVICE_INFO, ADDRESS);
	}
	w = walk_before(UINT64_MAX);
	REQUIRE(w != NULL);
	CHECK_EQ(w->open, NEV_WALK_MAX + 6);
	CHECK_EQ(w->found_count, NEV_WALK_MAX);
	CHECK(w->oldest_ns >= first && w->oldest_ns != UINT64_MAX);
	w = walk_before(UINT64_MAX);
	REQUIRE(w != NULL);
	CHECK_EQ(w->found_count, 6);
	bpf_test_close();
}

TEST("bpf: a walk that cannot be made says so", "[bpf][bpf-host]")
{
	REQUIRE(bpf_test_open(65536, 16));
	bpf_test_enter(FD, NEURON_IOCTL_DEVICE_INFO, ADDRESS);
	bpf_host_fail("walk", BPF_HOST_LOOKUP, 0, 1, 1);
	CHECK_EQ(walk_inflight(NULL), -1);
	bpf_host_fail("walk", BPF_HOST_LOOKUP, 0, 2, 1); /* the one of the visit */
	CHECK_EQ(walk_inflight(NULL), 0);
	bpf_host_fail("inflight", BPF_HOST_WALK, -EINVAL, 1, 1);
	CHECK_EQ(walk_inflight(NULL), -1);
	bpf_test_close();
}
