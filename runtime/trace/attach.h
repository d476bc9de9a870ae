/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attach.h - how an agent gets into touch with a runtime that has been running for a while.
 *
 * The place is the mailbox in the control page (ring.h), for it can be reached wherever the process lives: the
 * file is opened through /proc, also from outside of a container.  The agent writes a wish and a number, rings
 * the bell, a futex, and waits for the number to be answered; so a process that nobody traces has a
 * thread that sleeps, and nothing that looks at a clock.
 *
 * Who is the agent is not written anywhere: it holds a lock of fcntl on a byte of the control file.  The kernel
 * gives it to one process, tells everybody else who that is in the numbers of his own pid namespace, and takes it
 * away when the process ends in whatever way; the runtime looks whenever it looks at its rings.  A
 * pid and a start time in the page would say nothing to a runtime in another pid namespace.
 */
#ifndef NTRACE_TRACE_ATTACH_H
#define NTRACE_TRACE_ATTACH_H

#include <stdint.h>
#include <sys/types.h>

#include "runtime/trace/ring.h"

/* ---- both sides --------------------------------------------------------------------------- */

/* Adds 1 and wakes everybody who waits for the word. */
void attach_ring(_Atomic uint32_t *word);
/* Gives the word a value and wakes. */
void attach_set(_Atomic uint32_t *word, uint32_t value);
/* Sleeps until the word is not `seen` any more, it is rung, or ms have passed; -1: no limit.  May return early. */
void attach_sleep(const _Atomic uint32_t *word, uint32_t seen, int ms);

/* ---- the runtime's, in its service thread ---------------------------------------------------- */

/* Does what was asked for since the last time, and ends a subscription whose agent is gone. */
void attach_serve(struct ctl *ctl);
/* A socket's agent comes or goes: the word is not the mailbox's. */
void attach_forget(void);

/* ---- the agent's ---------------------------------------------------------------------------- */

/* Takes the lock, which is held until any descriptor of the file is closed in this process.  fd: open for writing.
 * -EBUSY: another process has it; *ret_holder is its pid, not positive: it is not seen from here. */
int attach_claim(int fd, pid_t *ret_holder);

/* A claimed control page, mapped for writing. */
struct attach_page {
	struct ctl *ctl; /* the first 4096 bytes of it */
	uint32_t request;
};

/* Maps the page and asks for all events, `records` per core (0 = default).  The page is not trusted.  0 or -errno;
 * -ENOTCONN: nobody serves there, nor does within ms (nrt_init is just making the thread).  In any case attach_close afterwards, before fd is closed. */
int attach_subscribe(struct attach_page *p, int fd, uint32_t records, int ms);
/* Asks for no more.  Harmless when nothing was asked for. */
void attach_unsubscribe(struct attach_page *p);
/* Waits at most ms for the answer to the last of these.  0, what the runtime met, or -ETIMEDOUT. */
int attach_answer(struct attach_page *p, int ms);
void attach_close(struct attach_page *p);

#endif
