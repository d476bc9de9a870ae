/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_device.h - the device profiles of an inspect session, and the model files beside them.
 *
 * Three kinds, which go together: of all that happens on a core (mode SESSION), of the first
 * execution of each model on each core (mode MODEL), and of executions that fail (on-fail).  Each
 * core has cursors of its own at the collector: what the program profiles itself, also with
 * nrt_profile_session_start on the same core, is as without them.  A core's rings are opened when
 * the first model is loaded on it, so what no program uses costs nothing.
 *
 *	profile_nc_<n>_session_<k>.ntff	  SESSION; k counts the core's, from 0 since nrt_init
 *	<hash>_instid_0_vnc_<n>.ntff	  MODEL and on-fail; then _2, _3, ...
 *	neff_<hash>.neff		  what nrt_load got, byte for byte, once per model
 *
 * The hash is that of the model's bytes, as a decimal number: two models of one name have two.  No
 * file is replaced.
 *
 * begin and end: one thread at a time, the controller's, which is inside of the library
 * (api_enter).  Hooks: any. Locks: that of the session's files, then a core's, then those of
 * profile.h and collector.h.  `added` is called with the first of them, so it must not take a lock
 * that is held around begin or end.
 */
#ifndef NTRACE_PROFILE_INSPECT_DEVICE_H
#define NTRACE_PROFILE_INSPECT_DEVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <nrt/nrt_profile.h>

#include "runtime/exec/model.h"

struct inspect_dir;

struct inspect_device_wish {
	nrt_inspect_device_profile_mode_t mode; /* counts when `enabled` */
	const bool *nc;		 /* TRACE_MAX_NC: which of the process's cores; NULL: all */
	struct inspect_dir *dir; /* until inspect_device_end; a null one: there are no profiles */
	bool on_fail; /* profiles of executions that fail are kept, at once (inspect_dir_keep) */
	bool enabled; /* false: those only */
	/* A file is in dir->path; type: "ntff" or "neff".  Its result is not looked at.  May be
	 * NULL. */
	int (*added)(void *ctx, const char *name, const char *type, uint64_t bytes);
	void *ctx;
};

/*
 * All or nothing.  The status is that of the first core that could not be profiled; said in the
 * log.  What cannot be, as MODEL in implicit async mode, is not asked for (inspect_facts.h).
 */
NRT_STATUS inspect_device_begin(const struct inspect_device_wish *wish);

/*
 * Writes what there is, and ends it.  Whatever goes wrong is said.  may_wait: false when the thread
 * that a signal has interrupted may hold any lock and the process is about to die: what is locked
 * is skipped and said, and nothing is given back; then the directory must stay, for another thread
 * may still write in it.  Without a session nothing.  false: not
 * all that the session was to leave is there.
 */
bool inspect_device_end(const char *call, bool may_wait);

/* Has an execution failed, on whatever core, in the on-fail session that there is or was last?
 * Any thread. */
bool inspect_device_has_failed(void);

/* Is mode MODEL or SESSION on?  Continuous profiling does not go with it. */
bool inspect_device_is_on(void);

/* For nrt_close, when the session has ended: frees what an end that might not wait has left, and
 * the numbers of SESSION begin with 0 again. */
void inspect_device_close(void);

/* ---- the executor's hooks: nothing but one load while there is no session
 * ---------------------- */

/* Some device profile is wanted; enum inspect_device_want. */
extern _Atomic uint32_t inspect_device_gate;

static inline bool inspect_device_wants_runs(void)
{
	return atomic_load_explicit(&inspect_device_gate, memory_order_relaxed) != 0;
}

/* Before a model is loaded on a logical core. */
void inspect_device_load(uint32_t nc);
/* Before an execution takes the core's lock. */
void inspect_device_before_run(struct nrt_model *m);
/* A run begins, or has ended, with the core's lock. */
void inspect_device_run_begins(struct nrt_model *m);
void inspect_device_run_ended(struct nrt_model *m, NRT_STATUS status);
/* Behind it, without the lock: writes what the run has left. */
void inspect_device_after_run(struct nrt_model *m);

#endif
