/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quiet_signal.h - a call that fails by a signal, in somebody else's program: there it shall only return an error.
 *
 * A write to a pipe that nobody reads raises SIGPIPE, a file that grows beyond RLIMIT_FSIZE raises SIGXFSZ; both
 * end a program that does not expect them.  They are raised in the calling thread, so they can be kept
 * from being delivered and then taken back.
 */
#ifndef NTRACE_BASE_QUIET_SIGNAL_H
#define NTRACE_BASE_QUIET_SIGNAL_H

#include <signal.h>
#include <stdbool.h>

struct quiet_signal {
	sigset_t set, before;
	bool pended; /* of somebody else: not taken back */
};

/* Blocks the signal in this thread.  Several may be nested.  errno stays. */
void quiet_signal_begin(struct quiet_signal *q, int number);
/* Takes back what the call raised (raised: it says so), and restores the mask.  errno stays. */
void quiet_signal_end(const struct quiet_signal *q, bool raised);

#endif
