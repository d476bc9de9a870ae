/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_turn.h - the threads of a process write to the console in turns, so that a message whose write is made of several
 * parts (a block for a pipe is) has no other one in it.
 *
 * Inside of this room.  It is a lock that hangs nobody: the child of a fork takes it from a thread that it has not, a
 * handler goes on without it when its own thread has it, and a turn that lasts longer than a second is taken away.
 */
#ifndef NTRACE_LOG_LOG_TURN_H
#define NTRACE_LOG_LOG_TURN_H

#include <stdbool.h>

struct log_turn {
	bool has;	   /* false: the thread had it already */
	int cancel_before; /* a thread that has it cannot be cancelled */
};

/* Async-signal-safe; errno stays. */
void log_turn_begin(struct log_turn *t);
void log_turn_end(const struct log_turn *t);

#endif
