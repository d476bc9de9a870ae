/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads_test.c - the collector's look at threads of another pid namespace, on a process that lives in
 * one.
 */
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/collect/threads.h"
#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "tests/shim/shim.h"

struct told {
	unsigned calls;
	size_t rows;
	struct rec_thread last;
	int answer;
};

static int on_threads(void *ctx, const struct rec_thread *rows, size_t count)
{
	struct told *told = ctx;

	told->calls++;
	told->rows += count;
	if (count)
		told->last = rows[count - 1];
	return told->answer;
}

/* A process that is number 1 of its own namespace and waits for its end. */
static pid_t start_foreign(void)
{
	pid_t pid = (pid_t)syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, NULL, NULL, NULL, NULL);

	if (pid == 0)
		for (;;)
			pause();
	return pid;
}

static void stop_foreign(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

TEST("threads: a process of the recorder's own namespace is left alone", "[threads]")
{
	struct trace_record r = {.thread_id = 12345678};
	struct told told = {0};
	struct threads t;

	CHECK_EQ(threads_open(&t, getpid(), -1, (uint32_t)getpid(), on_threads, &told), 0);
	CHECK(!t.foreign);
	CHECK_EQ(threads_see(&t, &r, 1, on_threads, &told), 0);
	CHECK_EQ(threads_refresh(&t, UINT64_MAX, on_threads, &told), 0);
	CHECK_EQ(told.calls, 0);
	CHECK_EQ(t.gone_count, 0);
	threads_close(&t);
}

TEST("threads: of a process in another namespace both ids are told, from its start on", "[threads]")
{
	uint64_t before = clock_boot().ns;
	pid_t pid = start_foreign();
	struct told told = {0};
	struct threads t;

	if (pid < 0)
		SKIP("making a pid namespace is not permitted");
	_cleanup_close_ int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	CHECK_EQ(threads_open(&t, pid, pidfd, 1, on_threads, &told), 0);
	CHECK(t.foreign);
	CHECK_EQ(told.calls, 1);
	CHECK_EQ(told.rows, 1);
	CHECK_EQ(told.last.tid, 1);
	CHECK_EQ(told.last.host_tid, pid);
	CHECK(told.last.from_ns + 20000000u > before); /* a tick is 10 ms */
	CHECK(told.last.from_ns <= clock_boot().ns);

	/* It is looked at again after a second, and there is nothing new. */
	uint64_t looked = t.scanned_ns;
	CHECK_EQ(threads_refresh(&t, looked + 900000000u, on_threads, &told), 0);
	CHECK_EQ(t.scanned_ns, looked);
	CHECK_EQ(threads_refresh(&t, looked + 1000000000u, on_threads, &told), 0);
	CHECK_EQ(t.scanned_ns, looked + 1000000000u);
	CHECK_EQ(told.calls, 1);
	threads_close(&t);
	stop_foreign(pid);
}

TEST("threads: one that is not there is counted once and not looked for again", "[threads]")
{
	struct trace_record r[3] = {{.thread_id = 77}, {.thread_id = 1}, {.thread_id = 77}};
	pid_t pid = start_foreign();
	struct told told = {0};
	struct threads t;

	if (pid < 0)
		SKIP("making a pid namespace is not permitted");
	CHECK_EQ(threads_open(&t, pid, -1, 1, on_threads, &told), 0);
	CHECK_EQ(threads_see(&t, r, 3, on_threads, &told), 0);
	CHECK_EQ(t.gone_count, 1);
	t.scanned_ns = 0;
	CHECK_EQ(threads_see(&t, r, 3, on_threads, &told), 0);
	CHECK_EQ(t.scanned_ns, 0);
	CHECK_EQ(t.gone_count, 1);
	CHECK_EQ(told.rows, 1);
	threads_close(&t);
	stop_foreign(pid);
}

TEST("threads: of a process that is gone only the namespace is known, by what it said", "[threads]")
{
	pid_t pid = start_foreign();
	struct told told = {0};
	struct threads t;

	if (pid < 0)
		SKIP("making a pid namespace is not permitted");
	_cleanup_close_ int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	stop_foreign(pid);
	CHECK_EQ(threads_open(&t, pid, pidfd, 1, on_threads, &told), 0);
	CHECK(t.foreign);
	CHECK_EQ(told.calls, 1);
	CHECK_EQ(told.rows, 0);
	threads_close(&t);
	CHECK_EQ(threads_open(&t, pid, pidfd, (uint32_t)pid, on_threads, &told), 0);
	CHECK(!t.foreign);
	threads_close(&t);
}

TEST("threads: what the receiver of news says ends the call", "[threads]")
{
	pid_t pid = start_foreign();
	struct told told = {.answer = -ENOSPC};
	struct threads t;

	if (pid < 0)
		SKIP("making a pid namespace is not permitted");
	CHECK_EQ(threads_open(&t, pid, -1, 1, on_threads, &told), -ENOSPC);
	threads_close(&t);
	stop_foreign(pid);
}
