/* SPDX-License-Identifier: Apache-2.0 */
/*
 * helper.h - runs a program from inside of somebody else's program, which does not notice.
 *
 * The helper gets the environment, the program's standard output and error, nothing to read and no other descriptor;
 * no signal is blocked or ignored in it, and it has a session and a process group of its own, so no terminal stops it.
 * The calling program gets no SIGCHLD for it, and none of its waits, for any child, finds it; nor is
 * a child of the program ever reaped here.  Nothing is left of it afterwards, whatever the program does with
 * SIGCHLD.  Any thread.
 *
 * When its time is over, or who waits for it has been killed, its process group is killed.  Not reached are
 * processes of its own that have left the group, and those that it has left behind when it ended by itself.  They become
 * children of init, or where the program or who started it is a subreaper (PR_SET_CHILD_SUBREAPER) of that: then
 * the program's waits find them.
 */
#ifndef NTRACE_LIFECYCLE_HELPER_H
#define NTRACE_LIFECYCLE_HELPER_H

#include <stdint.h>

enum helper_how {
	HELPER_EXITED,	/* value: its status */
	HELPER_DIED,	/* value: the signal */
	HELPER_NOT_RUN, /* value: errno */
	HELPER_KILLED,	/* it did not end in time: it and its process group were killed */
	HELPER_UNKNOWN, /* who waited for it was killed by somebody, and so was the helper */
};

struct helper_end {
	enum helper_how how;
	int value;
};

/* Runs argv[0] (no PATH is searched) and waits, at most about so many milliseconds, and where a killed process does not
 * go at once up to HELPER_GRACE_MS more.  Signals of the calling thread are handled meanwhile. */
#define HELPER_GRACE_MS 4000u
struct helper_end helper_run(char *const argv[], uint64_t limit_ms);

#endif
