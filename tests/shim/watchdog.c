/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watchdog.c - ends a test that hangs: a process beside the runner that is told which test begins.
 *
 * A test has LIMIT_S seconds, or NTRACE_TEST_LIMIT.  Then the watchdog says what each thread of the runner and of what it started
 * waits for, and kills what was started, so that a test that waits for it fails and the next one runs; if
 * that does not help, it aborts the runner.
 */
#include "tests/shim/watchdog.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/file.h"

#define LIMIT_S 900
#define GRACE_S 30

static int told = -1; /* the runner's end: a test's name, cut or filled up to NAME bytes */
enum { NAME = 128 };

/* Calls `each` for the process and for all that it and its children started, the youngest first. */
static void for_tree(pid_t root, pid_t pid, void (*each)(pid_t root, pid_t pid))
{
	char path[64], line[4096];
	struct dirent *e;
	DIR *d;

	(void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	d = opendir(path);
	while (d && (e = readdir(d))) {
		char children[512], *rest = line, *word;

		(void)snprintf(children, sizeof(children), "%s/%s/children", path, e->d_name);
		if (e->d_name[0] == '.' || file_read_line(children, line, sizeof(line)) < 0)
			continue;
		while ((word = strtok_r(rest, " ", &rest)))
			for_tree(root, atoi(word), each);
	}
	if (d)
		closedir(d);
	each(root, pid);
}

static void show(pid_t root, pid_t pid)
{
	char path[64], name[64] = "", wait[128] = "";
	struct dirent *e;
	DIR *d;

	(void)root;
	(void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	d = opendir(path);
	while (d && (e = readdir(d))) {
		char file[512];

		if (e->d_name[0] == '.')
			continue;
		(void)snprintf(file, sizeof(file), "%s/%s/comm", path, e->d_name);
		(void)file_read_line(file, name, sizeof(name));
		(void)snprintf(file, sizeof(file), "%s/%s/wchan", path, e->d_name);
		(void)file_read_line(file, wait, sizeof(wait));
		printf("  process %d thread %s (%s) waits in %s\n", (int)pid, e->d_name, name,
			wait);
	}
	if (d)
		closedir(d);
}

static void kill_below(pid_t root, pid_t pid)
{
	if (pid != root)
		(void)kill(pid, SIGKILL);
}

static void watch(int fd, int runner_fd, pid_t runner)
{
	struct pollfd p[] = {{.fd = fd, .events = POLLIN}, {.fd = runner_fd, .events = POLLIN}};
	char name[NAME + 1] = "(none)";
	const char *wish = getenv("NTRACE_TEST_LIMIT");
	const int limit = wish ? atoi(wish) : LIMIT_S;
	bool late = false;

	for (;;) {
		int n = poll(p, 2, (late ? GRACE_S : limit) * 1000);

		if (p[1].revents || (n > 0 && read(fd, name, NAME) <= 0))
			_exit(0);
		if (n > 0) {
			late = false;
		} else if (late) {
			(void)kill(runner, SIGABRT);
		} else {
			printf("watchdog: not ended after %d s: %s\n", limit, name);
			for_tree(runner, runner, show);
			for_tree(runner, runner, kill_below);
			(void)fflush(stdout);
			late = true;
		}
	}
}

void watchdog_start(void)
{
	pid_t runner = getpid(), between;
	int ends[2], runner_fd;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return;
	runner_fd = (int)syscall(SYS_pidfd_open, runner, 0);
	between = runner_fd < 0 ? -1 : fork();
	if (between == 0) { /* no child of the runner: tests count and wait for theirs */
		(void)close(ends[1]);
		if (fork() == 0)
			watch(ends[0], runner_fd, runner);
		_exit(0);
	}
	if (between > 0)
		(void)waitpid(between, NULL, 0);
	if (runner_fd >= 0)
		(void)close(runner_fd);
	(void)close(ends[0]);
	told = ends[1];
}

void watchdog_test(const char *name)
{
	char text[NAME] = "";

	(void)snprintf(text, sizeof(text), "%s", name);
	if (told >= 0 && write(told, text, sizeof(text)) < 0)
		told = -1;
}
