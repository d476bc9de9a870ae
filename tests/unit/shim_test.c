/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shim_test.c - the runner itself: that it can pass, fail and skip.
 *
 * The tests with a tag that begins with a dot are hidden from the normal run; tests/cli/shim runs them and looks at
 * what the runner says.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/shim/shim.h"

TEST("shim: checks that hold pass", "[shim]")
{
	CHECK(1 + 1 == 2);
	CHECK_EQ(3, 3);
	CHECK_STR("a", "a");
}

static int steps;

TEST("shim: CHECK fails and goes on, REQUIRE fails and leaves", "[.fails]")
{
	test_info("steps so far: %d", steps);
	CHECK(steps == 1);
	steps++;
	REQUIRE(steps == 0);
	steps = 100; /* not reached: the next test sees 1 */
}

TEST("shim: the failing test left at REQUIRE", "[.fails]")
{
	CHECK_EQ(steps, 100);
}

TEST("shim: a skipped test is counted as skipped", "[.skips]")
{
	SKIP("a reason");
}

TEST("shim: a test that waits for a child for ever", "[.hangs]")
{
	int status = 0;
	pid_t child = fork();

	if (child == 0)
		for (;;)
			pause();
	REQUIRE(waitpid(child, &status, 0) == child);
	CHECK_EQ(status, 0);
}

/* Each needs that the other runs at the same time.  In the directory in which the runner was started. */
static bool meet(const char *own, const char *other)
{
	int fd = open(own, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	if (fd < 0 || close(fd) < 0)
		return false;
	for (int i = 0; i < 6000 && access(other, F_OK) < 0; i++)
		(void)usleep(10000);
	return access(other, F_OK) == 0;
}

TEST("shim: one of two at once", "[.beside]")
{
	CHECK(meet("one", "two"));
}

TEST("shim: the other of two at once", "[.beside]")
{
	CHECK(meet("two", "one"));
}

TEST("shim: a test that ends the runner", "[.dies]")
{
	CHECK(steps == 0);
	_exit(7);
}

TEST("shim: a test that kills the runner", "[.dies]")
{
	CHECK(steps == 0);
	abort();
}
