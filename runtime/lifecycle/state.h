/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state.h - the state of the library, and the doors that public calls go through.
 *
 *	START --nrt_init--> INIT --nrt_close begins--> CLOSED --ends--> START
 *	any state --fork, in the child--> CHILD, for good
 *
 * A fork counts once nrt_init has succeeded for the first time, or while nrt_init or nrt_close runs in
 * another thread; before that the child is as fresh as its parent.
 *
 * Two doors.  A call gets in through api_enter and holds the library open until api_leave.  nrt_init
 * and nrt_close get in through state_change_begin, one at a time; the teardown also waits for the calls that
 * are in.  Neither door can be left locked by a thread that a fork has not copied, and a thread that
 * already stands in a door (a signal handler's) is refused instead of waiting for itself.  From a door
 * on, and until it is out of it, a thread cannot be cancelled.
 * The doors also tell the log which call a thread is in (log_api_begin).
 *
 * The states and their texts: facts of libnrt 2.31, `NRT_INIT_STATE`.
 */
#ifndef NTRACE_LIFECYCLE_STATE_H
#define NTRACE_LIFECYCLE_STATE_H

#include <stdbool.h>

#include <nrt/nrt_status.h>

enum lib_state { STATE_START = 0, STATE_INIT = 1, STATE_CHILD = 2, STATE_CLOSED = 3 };

enum lib_state state_now(void);
/* "NRT_STATE_START" and so on. */
const char *state_name(enum lib_state state);
/* Between state_change_begin and state_change_end only. */
void state_set(enum lib_state state);

/* The status for a call that a state other than INIT refuses; says so in the log, in the call's name. */
NRT_STATUS state_refuse(enum lib_state state, const char *call);

/* NRT_SUCCESS: the caller is in and must call api_leave.  Otherwise the status to return; it is in the
 * log, with the name of the call. */
NRT_STATUS api_enter(const char *call);
void api_leave(void);
/* The same without a word when it is refused. */
bool state_try_enter(void);

/* Is this thread inside of the library: in a call that a signal handler has interrupted, or as one
 * of the library's own? */
bool state_is_inside(void);

/* This thread is one of the library's own, for good: it cannot be cancelled, and nrt_init and nrt_close refuse
 * it (as from a program's callback), for nrt_close waits for it. */
void state_thread_belongs(void);

/* NRT_SUCCESS: nobody else changes the state until state_change_end.  NRT_FAILURE, said in the log: this
 * is a child that was forked while a change was under way (it is CHILD from now on), or the thread is
 * inside of the library already. */
NRT_STATUS state_change_begin(const char *call);
void state_change_end(void);

/* Waits until the last call has left.  The state must be other than INIT, which keeps all others out. */
void state_calls_drain(void);

/* Has the child of every later fork in CHILD, by whatever call it was made.  Once per process, then 0; else the
 * error number of pthread_atfork. */
int state_watch_forks(void);

#endif
