/* SPDX-License-Identifier: Apache-2.0 */
/*
 * time_shift_test.c - processes whose boot clock a time namespace sets off.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/collect/time_shift.h"
#include "runtime/trace/event_registry.h"
#include "runtime/trace/payload.h"
#include "tests/shim/shim.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif

#define SECONDS 100000ll

/* In a namespace of its own from the fork on: tells that it is there, and waits for the end of its input. */
static void live(int said, int until)
{
	char byte;

	if (write(said, "x", 1) == 1)
		(void)!read(until, &byte, 1);
	_exit(0);
}

/* Makes the namespace for its children and has one. */
static void parent_of_shifted(int said, int until)
{
	static const char offset[] = "boottime 100000 5\n";
	int fd = unshare(CLONE_NEWTIME) < 0
			 ? -1
			 : open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
	char byte;
	int born[2];
	pid_t pid;

	if (fd < 0 || write(fd, offset, strlen(offset)) < 0 || pipe(born) < 0)
		_exit(77);
	pid = fork();
	if (pid == 0)
		live(born[1], until);
	(void)!read(born[0], &byte, 1);
	(void)!write(said, &pid, sizeof(pid));
	(void)!read(until, &byte, 1);
	(void)waitpid(pid, NULL, 0);
	_exit(0);
}

TEST("time shift: a process of another time namespace is known by its offset", "[collect]")
{
	int said[2], until[2], status;
	int64_t shift = 1;
	pid_t parent, child = 0;

	CHECK_EQ(time_shift_of(getpid(), &shift), 0);
	CHECK_EQ(shift, 0);
	CHECK_EQ(time_shift_own(&shift), 0);
	CHECK_EQ(shift, 0);
	REQUIRE(pipe(said) == 0 && pipe(until) == 0);
	parent = fork();
	if (parent == 0) {
		close(until[1]);
		parent_of_shifted(said[1], until[0]);
	}
	close(said[1]);
	if (read(said[0], &child, sizeof(child)) == sizeof(child)) {
		CHECK_EQ(time_shift_of(child, &shift), 0);
		CHECK_EQ(shift, -(SECONDS * 1000000000ll + 5));
		/* Who made it is not in it. */
		CHECK_EQ(time_shift_of(parent, &shift), 0);
		CHECK_EQ(shift, 0);
	}
	close(until[0]);
	close(until[1]);
	close(said[0]);
	REQUIRE(waitpid(parent, &status, 0) == parent);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		SKIP("time namespaces");
	CHECK(child > 0);
	CHECK(time_shift_of(parent, &shift) < 0); /* gone */
}

TEST("time shift: the times of a record, and those it shows of its payload, are moved", "[collect]")
{
	struct trace_timestamp_sync sync = {.exec_id = 7, .sync = {11, 5000}, .sync_bound_ns = 13};
	struct trace_record r[2] = {
		{.trace_type = TRACE_TIMESTAMP_SYNC, .phase = TRACE_INSTANT, .timestamp_ns = 6000},
		{.trace_type = TRACE_EXEC_CORE, .phase = TRACE_START, .timestamp_ns = 7000},
	};
	struct trace_record same = r[1];

	memcpy(r[0].data, &sync, sizeof(sync));
	time_shift_records(r, 2, -1000);
	memcpy(&sync, r[0].data, sizeof(sync));
	CHECK_EQ(r[0].timestamp_ns, 5000);
	CHECK_EQ(sync.exec_id, 7);
	CHECK_EQ(sync.sync.nc_timestamp_ns, 11);
	CHECK_EQ(sync.sync.cpu_timestamp_ns, 4000);
	CHECK_EQ(sync.sync_bound_ns, 13);
	same.timestamp_ns = 6000;
	CHECK(memcmp(&r[1], &same, sizeof(same)) == 0);
}
