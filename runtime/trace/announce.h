/* SPDX-License-Identifier: Apache-2.0 */
/*
 * announce.h - how a runtime tells an agent that it is there.
 *
 * $NTRACE_SOCKET names a SOCK_SEQPACKET unix socket; a leading '@' means the abstract name
 * space.  At nrt_init the runtime connects and sends ANNOUNCE_HELLO with its control memfd
 * attached (SCM_RIGHTS).  The agent answers with ANNOUNCE_ENABLE or ANNOUNCE_REFUSE; nrt_init
 * waits for it, so that no event after nrt_init is missed.  Connecting, hello and answer together
 * take at most ANNOUNCE_TIMEOUT_MS.  The
 * connection stays open: when the agent goes, the runtime clears the agent's enable word.
 * Identity of the peer comes from SO_PEERCRED, never from the message.
 *
 * An nrt_init that fails, in whatever step, says ANNOUNCE_FAILED in place of the hello, on a connection of its own.  It
 * waits as long for the agent to close that: until then the process is there to be asked who it is.
 */
#ifndef NTRACE_TRACE_ANNOUNCE_H
#define NTRACE_TRACE_ANNOUNCE_H

#include <stdint.h>

#include "runtime/base/env.h"

#define ANNOUNCE_ENV ENV_SOCKET
#define ANNOUNCE_MAGIC 0x3141544e /* "NTA1" */
#define ANNOUNCE_TIMEOUT_MS 1000

enum announce_kind {
	ANNOUNCE_HELLO = 1,   /* runtime -> agent, with the memfd */
	ANNOUNCE_ENABLE = 2,  /* agent -> runtime: set enable[CTL_SUB_AGENT] */
	ANNOUNCE_DISABLE = 3, /* agent -> runtime: clear it */
	ANNOUNCE_REFUSE = 4,  /* agent -> runtime: not wanted, close */
	ANNOUNCE_FAILED = 5,  /* runtime -> agent: nrt_init failed */
};

struct announce_msg {
	uint32_t magic;
	uint32_t kind;
	uint32_t ring_capacity; /* in ENABLE: records per ring the agent wishes, 0 = default */
	uint32_t flags;		/* in HELLO: ANNOUNCE_F_*; in FAILED: the NRT_STATUS */
};

#define ANNOUNCE_F_VIRTUAL 1u	/* no real device */
#define ANNOUNCE_F_SIMULATED 2u /* none at all; with the former */

#endif
