/* SPDX-License-Identifier: Apache-2.0 */
/*
 * interrupt.h - SIGINT, SIGTERM and SIGHUP during a merge: it stops and removes what it wrote.
 */
#ifndef NTRACE_AGENT_INTERRUPT_H
#define NTRACE_AGENT_INTERRUPT_H

#include <signal.h>

/* From now on the first of these signals sets the flag that is returned and lets a call that waits end with
 * EINTR; the second ends the process. */
const volatile sig_atomic_t *interrupt_arm(void);
/* When one came: ends the process by it, as it would have ended without interrupt_arm, so that a
 * shell or supervisor sees what it asked for.  Otherwise returns. */
void interrupt_end(void);

#endif
