/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command.h - the traced command: forked first, so that its pid can be put into the hooks' filter,
 * and let go only when everything is armed.
 *
 * The child keeps the terminal, the process group, the working directory and the environment, plus
 * NTRACE_SOCKET and, where device profiles are wanted, NTRACE_DEVICE_PROFILE.  When the recorder dies, the command runs on.
 */
#ifndef NTRACE_COLLECT_COMMAND_H
#define NTRACE_COLLECT_COMMAND_H

#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

struct command {
	pid_t pid;
	int pidfd;   /* readable when the command has ended; close-on-exec */
	int gate;    /* write end: one byte lets the child go */
	int exec_fd; /* read end: errno of a failed exec, or end of file */
};

#define COMMAND_NONE ((struct command){.pidfd = -1, .gate = -1, .exec_fd = -1})

/* Forks.  The child waits at the gate and gets this signal mask and this limit of descriptors (NULL:
 * the recorder's).  profile_dir: where device profiles are to go, NULL: none are wanted.  0 or -errno. */
int command_prepare(struct command *c, char *const argv[], const char *socket_name,
	const char *profile_dir, const sigset_t *mask, const struct rlimit *nofile);

/* Opens the gate and waits for the exec.  0, or -errno of the exec (the child is reaped). */
int command_go(struct command *c);

/* Reaps it.  Returns the wait status.  Call when pidfd is readable. */
int command_reap(struct command *c);

/* Ends a child that was never let go, and closes all descriptors.  Harmless on COMMAND_NONE. */
void command_close(struct command *c);

#endif
