/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock_fail_test.c - a clock that cannot be read: nothing starts, and the clock is named.
 *
 * The runner's own clock_gettime stands before the C library's and refuses one clock when it is told to.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/collect/capture.h"
#include "nrt/nrt.h"
#include "runtime/base/clock.h"
#include "tests/shim/shim.h"
#include "tests/unit/scratch.h"

static _Atomic int refused = -1;

/* The system call costs more than the C library's way, and works at any moment of the program's life. */
int clock_gettime(clockid_t id, struct timespec *ts)
{
	if (id == atomic_load_explicit(&refused, memory_order_relaxed)) {
		errno = EINVAL;
		return -1;
	}
	return (int)syscall(SYS_clock_gettime, id, ts);
}

static const struct {
	clockid_t id;
	const char *name;
} clocks[] = {
	{CLOCK_BOOTTIME, "CLOCK_BOOTTIME"},
	{CLOCK_REALTIME, "CLOCK_REALTIME"},
	{CLOCK_MONOTONIC, "CLOCK_MONOTONIC"},
	{CLOCK_MONOTONIC_RAW, "CLOCK_MONOTONIC_RAW"},
};

#define CLOCKS (sizeof(clocks) / sizeof(*clocks))

TEST("clock: the check passes when all can be read and names the one that cannot", "[base]")
{
	const char *name = NULL;

	CHECK_EQ(clock_check(&name), 0);
	CHECK(name == NULL);
	for (size_t i = 0; i < CLOCKS; i++) {
		refused = clocks[i].id;
		int rc = clock_check(&name);
		refused = -1;
		CHECK_EQ(rc, -EINVAL);
		CHECK_STR(name, clocks[i].name);
	}
}

TEST("clock: a recording does not begin without its clocks, nothing is run and nothing is left",
	"[record]")
{
	for (size_t i = 0; i < CLOCKS; i++) {
		struct scratch dir;
		REQUIRE(scratch_make(&dir));
		struct scratch_path out = scratch_path(&dir, "out"),
				    ran = scratch_path(&dir, "ran");
		struct capture_options o = {.out_dir = out.s};
		struct capture_result r = {0};
		char *const argv[] = {"/usr/bin/touch", ran.s, NULL};

		refused = clocks[i].id;
		int rc = capture_run(&o, argv, &r);
		refused = -1;
		test_info("%s: %s", clocks[i].name, r.why);
		CHECK_EQ(rc, -EINVAL);
		CHECK_EQ(r.stage, CAPTURE_CLOCKS);
		CHECK(strstr(r.why, clocks[i].name) != NULL);
		CHECK(access(out.s, F_OK) < 0);
		CHECK(access(ran.s, F_OK) < 0);
		capture_result_free(&r);
		scratch_remove(&dir);
	}
}

/* nrt_init in a child of its own; its status, and what it said. */
static int init_without(clockid_t id, char *said, size_t size)
{
	int fds[2], status = -1;
	ssize_t n, used = 0;
	pid_t pid;

	if (pipe(fds) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		dup2(fds[1], 1);
		dup2(fds[1], 2);
		close(fds[0]);
		close(fds[1]);
		unsetenv("NEURON_RT_LOG_LEVEL");
		refused = id;
		NRT_STATUS s = nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "");
		refused = -1;
		_exit((int)s);
	}
	close(fds[1]);
	while ((n = read(fds[0], said + used, size - 1 - (size_t)used)) > 0)
		used += n;
	said[used] = 0;
	close(fds[0]);
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST("clock: nrt_init fails without its clocks and names the one", "[nrt]")
{
	for (size_t i = 0; i < CLOCKS; i++) {
		char said[4096];

		CHECK_EQ(init_without(clocks[i].id, said, sizeof(said)), NRT_FAILURE);
		test_info("%s: %s", clocks[i].name, said);
		CHECK(strstr(said, clocks[i].name) != NULL);
		CHECK(strstr(said, "status 1 in nrt_init(), step 'clocks'\n") != NULL);
	}
}
