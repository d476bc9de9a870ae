/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command.c - fork, gate, exec.  The child's exec error comes back through a close-on-exec pipe.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/collect/command.h"
#include "runtime/base/file.h"
#include "runtime/base/profile_dir.h"
#include "runtime/trace/announce.h"

static bool set_environment(const char *socket_name, const char *profile_dir)
{
	return setenv(ANNOUNCE_ENV, socket_name, 1) == 0 &&
	       (!profile_dir || setenv(ENV_DEVICE_PROFILE, profile_dir, 1) == 0);
}

static void child_run(char *const argv[], const char *socket_name, const char *profile_dir,
	const sigset_t *mask, const struct rlimit *nofile, int gate, int exec_fd)
{
	char go = 0;

	int error;
	ssize_t n;

	sigprocmask(SIG_SETMASK, mask, NULL);
	do {
		n = read(gate, &go, 1);
	} while (n < 0 && errno == EINTR);
	if (n != 1)
		_exit(125); /* the recorder gave up */
	if ((!nofile || setrlimit(RLIMIT_NOFILE, nofile) == 0) &&
		set_environment(socket_name, profile_dir))
		execvp(argv[0], argv);
	error = errno;
	if (write(exec_fd, &error, sizeof(error)) < 0)
		_exit(125);
	_exit(127);
}

int command_prepare(struct command *c, char *const argv[], const char *socket_name,
	const char *profile_dir, const sigset_t *mask, const struct rlimit *nofile)
{
	int gate[2], status[2];

	*c = COMMAND_NONE;
	if (pipe2(gate, O_CLOEXEC) < 0)
		return -errno;
	if (pipe2(status, O_CLOEXEC) < 0) {
		int error = errno;
		close(gate[0]);
		close(gate[1]);
		return -error;
	}
	pid_t pid = fork();
	if (pid == 0) {
		close(gate[1]);
		close(status[0]);
		child_run(argv, socket_name, profile_dir, mask, nofile, gate[0], status[1]);
	}
	int error = errno;
	close(gate[0]);
	close(status[1]);
	c->gate = gate[1];
	c->exec_fd = status[0];
	if (pid < 0) {
		command_close(c);
		return -error;
	}
	c->pid = pid;
	c->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (c->pidfd < 0) {
		error = errno;
		command_close(c);
		return -error;
	}
	return 0;
}

int command_go(struct command *c)
{
	int error = 0;
	ssize_t n = write(c->gate, "g", 1);

	if (n != 1)
		return n < 0 ? -errno : -EPIPE;
	cleanup_close(&c->gate);
	do {
		n = read(c->exec_fd, &error, sizeof(error));
	} while (n < 0 && errno == EINTR);
	cleanup_close(&c->exec_fd);
	if (n == (ssize_t)sizeof(error)) {
		command_reap(c);
		return error > 0 ? -error : -EIO;
	}
	return 0;
}

int command_reap(struct command *c)
{
	int status = -1;

	while (c->pid > 0 && waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
		;
	c->pid = 0;
	return status;
}

void command_close(struct command *c)
{
	bool waiting = c->gate >= 0;

	cleanup_close(&c->gate); /* end of file at the gate: the child leaves */
	cleanup_close(&c->exec_fd);
	cleanup_close(&c->pidfd);
	if (waiting && c->pid > 0)
		command_reap(c);
}
