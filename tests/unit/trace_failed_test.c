/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_failed_test.c - the runtime's side of telling an agent that nrt_init failed.
 */
#include "runtime/trace/trace.h"

#include <fcntl.h>

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
	trace_service_failed(1204);
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
	trace_service_failed(2);
	setenv(ANNOUNCE_ENV, "", 1);
	trace_service_failed(2);
	setenv(ANNOUNCE_ENV, "@ntrace-nobody-listens-here", 1);
	trace_service_failed(2);
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
