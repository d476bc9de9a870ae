/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command_test.c - the traced command: the gate, the exec's error, descriptors and the signal mask.
 */
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "agent/collect/command.h"
#include "runtime/base/file.h"
#include "tests/shim/shim.h"
#include "tests/unit/programs.h"
#include "tests/unit/scratch.h"

static sigset_t empty_mask(void)
{
	sigset_t set;

	sigemptyset(&set);
	return set;
}

/* The lowest free descriptor: tells whether something was left open or closed too much. */
static int next_fd(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	close(fd);
	return fd;
}

TEST("command: nothing runs before the gate opens, and the socket's name is in its environment",
	"[agent]")
{
	struct scratch s;
	sigset_t mask = empty_mask();
	int before = next_fd();

	REQUIRE(scratch_make(&s));
	struct scratch_path out = scratch_path(&s, "out");
	char line[5000];
	snprintf(line, sizeof(line), "echo $NTRACE_SOCKET >%s", out.s);
	char *argv[] = {"sh", "-c", line, NULL};
	struct command c = COMMAND_NONE;
	REQUIRE_EQ(command_prepare(&c, argv, "@name", NULL, &mask, NULL), 0);
	CHECK(access(out.s, F_OK) < 0);
	CHECK_EQ(command_go(&c), 0);
	struct pollfd ended = {.fd = c.pidfd, .events = POLLIN};
	CHECK_EQ(poll(&ended, 1, 20000), 1);
	CHECK_EQ(command_reap(&c), 0);
	command_close(&c);
	_cleanup_free_ char *text = program_text(out.s);
	CHECK_STR(text, "@name\n");
	CHECK_EQ(next_fd(), before);
	scratch_remove(&s);
}

TEST("command: a failed exec says why, and its child is gone", "[agent]")
{
	char *argv[] = {"/no/such/program", NULL};
	struct command c = COMMAND_NONE;
	sigset_t mask = empty_mask();

	REQUIRE_EQ(command_prepare(&c, argv, "@name", NULL, &mask, NULL), 0);
	CHECK_EQ(command_go(&c), -ENOENT);
	CHECK_EQ(c.pid, 0);
	command_close(&c);
	CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
}

TEST("command: closed before the gate opened, the child leaves without running anything", "[agent]")
{
	struct scratch s;
	sigset_t mask = empty_mask();

	REQUIRE(scratch_make(&s));
	struct scratch_path out = scratch_path(&s, "out");
	char *argv[] = {"touch", out.s, NULL};
	struct command c = COMMAND_NONE;
	REQUIRE_EQ(command_prepare(&c, argv, "@name", NULL, &mask, NULL), 0);
	command_close(&c);
	CHECK(access(out.s, F_OK) < 0);
	command_close(&c); /* harmless again */
	scratch_remove(&s);
}

TEST("command: closing after the start neither waits nor closes what is not its own", "[agent]")
{
	char *argv[] = {"sleep", "100", NULL};
	struct command c = COMMAND_NONE;
	sigset_t mask = empty_mask();

	REQUIRE_EQ(command_prepare(&c, argv, "@name", NULL, &mask, NULL), 0);
	REQUIRE_EQ(command_go(&c), 0);
	pid_t pid = c.pid;
	int other = open("/dev/null", O_RDONLY | O_CLOEXEC); /* takes a number that was free */
	command_close(&c);
	CHECK(fcntl(other, F_GETFD) >= 0);
	CHECK_EQ(kill(pid, 0), 0);
	kill(pid, SIGKILL);
	CHECK_EQ(program_wait(pid), 128 + SIGKILL);
	close(other);
}

TEST("command: gets the caller's signal mask, not the recorder's", "[agent]")
{
	struct scratch s;
	sigset_t block, old;
	char line[5000];

	REQUIRE(scratch_make(&s));
	struct scratch_path out = scratch_path(&s, "out");
	snprintf(line, sizeof(line), "grep SigBlk /proc/self/status >%s", out.s);
	char *argv[] = {"sh", "-c", line, NULL};
	struct command c = COMMAND_NONE;
	sigemptyset(&block);
	sigaddset(&block, SIGINT);
	sigprocmask(SIG_BLOCK, &block, &old);
	REQUIRE_EQ(command_prepare(&c, argv, "@name", NULL, &old, NULL), 0);
	sigprocmask(SIG_SETMASK, &old, NULL);
	CHECK_EQ(command_go(&c), 0);
	CHECK_EQ(command_reap(&c), 0);
	command_close(&c);
	_cleanup_free_ char *text = program_text(out.s);
	CHECK_STR(text, "SigBlk:\t0000000000000000\n");
	scratch_remove(&s);
}

TEST("command: gets the caller's limit of descriptors, not the recorder's", "[agent]")
{
	struct scratch s;
	struct rlimit now;
	char line[5000];
	sigset_t mask = empty_mask();

	REQUIRE(scratch_make(&s));
	REQUIRE_EQ(getrlimit(RLIMIT_NOFILE, &now), 0);
	REQUIRE(now.rlim_cur != 77);
	struct scratch_path out = scratch_path(&s, "out");
	snprintf(line, sizeof(line), "ulimit -Sn >%s", out.s);
	char *argv[] = {"sh", "-c", line, NULL};
	struct command c = COMMAND_NONE;
	struct rlimit caller = {77, now.rlim_max};
	REQUIRE_EQ(command_prepare(&c, argv, "@name", NULL, &mask, &caller), 0);
	CHECK_EQ(command_go(&c), 0);
	CHECK_EQ(command_reap(&c), 0);
	command_close(&c);
	_cleanup_free_ char *text = program_text(out.s);
	CHECK_STR(text, "77\n");
	scratch_remove(&s);
}
