/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_failed_test.c - the runtime's side of telling an agent that nrt_init failed.
 */
#include "runtime/trace/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>

#include "tests/shim/shim.h"
#include "tests/unit/fake_agent.h"
#include "tests/unit/nrt_init_fixture.h"

static int tells(void *arg)
{
	struct agent a;
	int before, after;

	(void)arg;
	WANT(agent_listen(&a, ANNOUNCE_REFUSE) == 0);
	before = scratch_entries("/proc/self/fd");
	WANT(trace_service_failed(1204) == 0);
	pthread_join(a.thread, NULL);
	close(a.peer);
	after = scratch_entries("/proc/self/fd");
	WANT(a.hello.magic == ANNOUNCE_MAGIC && a.hello.kind == ANNOUNCE_FAILED);
	WANT(a.hello.flags == 1204 && a.control_fd < 0);
	WANT(before == after);
	return 0;
}

TEST("trace failed: the agent hears the status; no descriptor is left", "[trace]")
{
	CHECK_EQ(scratch_child(tells, NULL), 0);
}

static int without_agent(void *arg)
{
	int before = scratch_entries("/proc/self/fd");

	(void)arg;
	unsetenv(ANNOUNCE_ENV);
	WANT(trace_service_failed(2) == 0);
	setenv(ANNOUNCE_ENV, "", 1);
	WANT(trace_service_failed(2) == 0);
	setenv(ANNOUNCE_ENV, "@ntrace-nobody-listens-here", 1);
	WANT(trace_service_failed(2) == 0);
	WANT(before == scratch_entries("/proc/self/fd"));
	return 0;
}

TEST("trace failed: without an agent nothing happens", "[trace]")
{
	CHECK_EQ(scratch_child(without_agent, NULL), 0);
}

/* The descriptor that it takes must not become the program's standard error. */
static int with_closed_standard(void *arg)
{
	struct agent a;

	(void)arg;
	WANT(agent_listen(&a, ANNOUNCE_REFUSE) == 0);
	complaint_fd = fcntl(2, F_DUPFD_CLOEXEC, 100);
	close(2);
	trace_service_failed(2);
	pthread_join(a.thread, NULL);
	/* The agent of this test is a thread, and may have got the number. */
	WANT(a.hello.kind == ANNOUNCE_FAILED && (a.peer == 2 || fcntl(2, F_GETFD) < 0));
	return 0;
}

TEST("trace failed: standard descriptors that are closed stay so", "[trace]")
{
	CHECK_EQ(scratch_child(with_closed_standard, NULL), 0);
}

/* Whoever listens; nobody answers. */
static int without_descriptors(void *arg)
{
	struct rlimit few = {0, 0}, was;
	struct agent a;

	WANT(agent_listen(&a, ANNOUNCE_REFUSE) == 0);
	WANT(enter_linked(arg, NULL) == 0);
	WANT(getrlimit(RLIMIT_NOFILE, &was) == 0);
	few.rlim_max = was.rlim_max;
	WANT(setrlimit(RLIMIT_NOFILE, &few) == 0);
	WANT(trace_service_failed(2) == -EMFILE);
	WANT(init() != NRT_SUCCESS);
	WANT(setrlimit(RLIMIT_NOFILE, &was) == 0);
	WANT(said(arg, "The recorder could not be told of this failure: Too many open files"));
	return 0;
}

TEST("trace failed: without a descriptor the agent is not told, and the log says so",
	"[trace][nrt]")
{
	struct place p;

	REQUIRE(place_open(&p));
	CHECK_EQ(scratch_child(without_descriptors, &p), 0);
	place_close(&p);
}

/* All that are left, when the devices have theirs. */
static NRT_STATUS take_all(const char *step)
{
	if (strcmp(step, "framework") != 0)
		return NRT_SUCCESS;
	while (dup(0) >= 0)
		;
	return errno == EMFILE ? NRT_RESOURCE : NRT_FAILURE;
}

static int runs_out(void *arg)
{
	struct rlimit some;

	WANT(enter_linked(arg, NULL) == 0);
	WANT(getrlimit(RLIMIT_NOFILE, &some) == 0);
	some.rlim_cur = 1024;
	WANT(setrlimit(RLIMIT_NOFILE, &some) == 0);
	init_set_probe(take_all);
	WANT_STATUS(init(), NRT_RESOURCE);
	return 0;
}

/* The agent has a process of its own, with descriptors. */
static int told_at_the_end(void *arg)
{
	struct agent a;

	WANT(agent_listen(&a, ANNOUNCE_REFUSE) == 0);
	WANT(scratch_child(runs_out, arg) == 0);
	pthread_join(a.thread, NULL);
	WANT(a.hello.kind == ANNOUNCE_FAILED && a.hello.flags == NRT_RESOURCE);
	return 0;
}

TEST("trace failed: where nrt_init itself has the last descriptors the agent is told behind it",
	"[trace][nrt][vdev]")
{
	if (device_lacks())
		SKIP(device_lacks());
	with_device(told_at_the_end, fixture_device);
}
