/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect.h - the inspect session: when there is one, and what belongs to it.
 *
 * One per process at a time.  It has a directory (inspect_dir.h), a spool whose thread writes what
 * the runtime and the host tell (inspect_spool.h), and perhaps device profiles (inspect_device.h);
 * inspect_end.h sees to signals and exits.  This is the controller: it makes them in this order,
 * takes back what it has made when one of them fails, and ends them in one go: device profiles
 * first, then the .pb files.
 *
 * Begin, stop and close are one at a time, under one lock.  Order of locks: the door of the call
 * (state.h), the controller's, those of device profiles (inspect_device.h, profile.h, collector.h).
 * The spool's own are innermost.  An execution takes none of the controller's: it reads one word
 * (inspect_device.h).  The session's thread only tries the controller's lock, for who holds it may
 * be waiting for that thread, or be interrupted by the signal that it is to serve.
 *
 * The child of a fork has no session: it is refused at the door, and its parent's goes on.
 */
#ifndef NTRACE_PROFILE_INSPECT_H
#define NTRACE_PROFILE_INSPECT_H

#include <stdbool.h>

#include "runtime/lifecycle/runtime.h"
#include "runtime/record/recording.h"

struct nrt_inspect_config;

/* ---- nrt_init and nrt_close ---------------------------------------------------------------- */

/* Step 19 of nrt_init, before any call is in and when all else is up: begins a session when
 * NEURON_RT_INSPECT_ENABLE or NEURON_RT_INSPECT_ON_FAIL says so.  One that cannot be begun is said
 * in the log, and nrt_init goes on. */
void inspect_init(void);

/* Ends the session if there is one; no other begins until inspect_init.  While calls are still let
 * in. */
void inspect_close(void);

/* ---- for who ends a session otherwise -------------------------------------------------------- */

/* Is there one?  Any thread, also from a signal handler. */
bool inspect_is_active(void);

/*
 * Ends the session if there is one.  The caller is inside of the library (state.h), or the
 * session's thread.  may_wait: false takes no lock that is held, for the thread that holds it may
 * be the one that is interrupted: device profiles that cannot be had are skipped and said.  false:
 * a session is there still, for somebody else begins or ends it just now.
 */
bool inspect_finish(enum rec_end_reason reason, bool may_wait);

/* ---- the environment (inspect_env.c) --------------------------------------------------------- */

/*
 * Sets up a config, which has its defaults, as the NEURON_RT_INSPECT_ variables say.
 * logical_cores: how many the process has; what NEURON_RT_INSPECT_EVENT_FILTER_NC names beyond is
 * warned of and left out.  NRT_INVALID for a malformed value, NRT_RESOURCE; both are in the log.
 */
NRT_STATUS inspect_config_read(
	const char *call, uint32_t logical_cores, struct nrt_inspect_config *config);

/* The variables that are set and that a session goes by, "NAME=value", ended by NULL; for inspect_env_free, which takes
 * NULL.  by_environment: also those that the calls' own config stands for.  NULL: no memory. */
char **inspect_env_list(bool by_environment);
void inspect_env_free(char **list);

#endif
