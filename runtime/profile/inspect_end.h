/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_end.h - an inspect session when the program ends without stopping it: by SIGINT, SIGTERM
 * or exit.
 *
 * A handler can save nothing itself: the thread that it interrupted may hold any lock, also
 * malloc's.  So it asks the session's own thread and waits for the answer, at most
 * INSPECT_END_GRACE_MS, and then goes on to the action that the program had for the signal.  There
 * are two things to ask for:
 *
 *	FLUSH	what was captured is on its way to the disk: last drain, counters, flush.  Done
 *		without an allocation and without a lock that the interrupted thread may hold.  That
 *		is all when the program has a handler of its own: it is called then, and the session
 *		goes on.
 *	FINISH	FLUSH, and then the session is ended and its files are made, as far as locks are
 *		free.  For an end of the process: the signal's default action, or exit in a handler
 *		that interrupted one of our calls.  When it takes longer than the grace the process
 *		ends all the same, and the recording is complete for `ntrace salvage`.
 *
 * A thread that begins or stops a session itself could wait for ever for its own lock: it stands in
 * hold..release, where a signal that ends the process waits for the release, as long as for an
 * answer, a second Ctrl-C excepted.  Signals of other threads meanwhile wait for the release in the
 * same way.
 *
 * The handlers stay for the life of the process (to take them away while somebody may have saved
 * them cannot be done right) and do nothing but the program's action when no session is armed, and
 * in a child.  What the program installs after us is its own affair: no other handler is ever
 * replaced twice.  There is none for SIGSEGV and its like: what they interrupt is broken, and the
 * recording is on the disk up to the last 100 ms anyway.
 *
 * The order for callers: open; hold; lock; begin; arm; unlock; release ... hold; lock; disarm;
 * stop; unlock; release.
 *
 * Source: seed 001 section 5, facts of libnrt 2.31 section 7.5 (SIGINT and SIGTERM since 2.29, and
 * the message); what makes it safe is ours.
 */
#ifndef NTRACE_PROFILE_INSPECT_END_H
#define NTRACE_PROFILE_INSPECT_END_H

#include <stdbool.h>

#define INSPECT_END_GRACE_MS 5000u
#define INSPECT_END_AGAIN_MS \
	200u /* a SIGINT so long after the first one is the user's second Ctrl-C */

enum inspect_end_ask { INSPECT_END_NONE, INSPECT_END_FLUSH, INSPECT_END_FINISH };

/* ---- for the controller ------------------------------------------------------------------ */

/* At each begin, before hold: makes what a process needs once, and installs the handlers where the
 * program has not ignored the signal.  0, or -errno: signals then end the session as SIGKILL
 * does. */
int inspect_end_open(void);

/* A session of this process records (its thread answers), or no longer does. */
void inspect_end_arm(int pid);
void inspect_end_disarm(void);

/* Around begin and stop, in the thread that does it, outside of its lock.  release may not return:
 * it delivers the signal that waited.  Not nested.  Not for who ends the session in its own thread,
 * when that is asked to. */
void inspect_end_hold(void);
void inspect_end_release(void);

/* ---- for the session's thread ---------------------------------------------------------------- */

/* An eventfd, readable when there is something to ask for, for its poll; -1 without open.  It need
 * not be looked at: a thread that calls inspect_end_asked on every tick hears of it with the
 * tick. */
int inspect_end_ask_fd(void);

/* What is asked for now, most often NONE; takes back the eventfd's readiness.  Whoever gets FLUSH
 * or FINISH does phase 1 and answers FLUSH; after FINISH it then does phase 2 and answers FINISH,
 * whatever came of it.  Neither allocates nor locks. */
enum inspect_end_ask inspect_end_asked(void);
void inspect_end_answer(enum inspect_end_ask done);

/* The thread begins, or has done all that it will do.  For exit in a handler that has interrupted a
 * begin or stop. */
void inspect_end_thread(bool works);

#endif
