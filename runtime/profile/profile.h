/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile.h - device profiles inside the runtime: which cores are profiled, which models ran on
 * them, and the hooks of the executor.
 *
 * Three key spaces share the collector's one drain (collector.h): sessions of cores (session.c),
 * models by file name (model_profile.c), and continuous profiling (continuous.c).  Each holds a
 * cursor and, through profile_hold, a core.  While a core is held, a node is kept of every model
 * that runs on it: what a profile says of a model must outlive nrt_unload.  A model that is loaded
 * again has the same node, so a profile has each only once.
 *
 * Any thread.  The lock of profile.c is never held while a device is asked.  Those of the key
 * spaces are, so a call may wait for another one of its core, and serialize and drop, which look
 * for a number, for those of the cores before; none is held while a file is written.
 */
#ifndef NTRACE_PROFILE_PROFILE_H
#define NTRACE_PROFILE_PROFILE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "runtime/base/clock.h"
#include "runtime/exec/model.h"
#include "runtime/lifecycle/runtime.h"

#define PROFILE_UUID_BYTES 37u
#define PROFILE_MAX_CORES CORES_MAX /* logical ones */

/* What a profile says of a model: its program, as it runs on the physical cores of one logical
 * core. */
struct collector_cursor;
struct model_text;

struct profile_node {
	_Atomic uint32_t refs;
	char name[NRT_TENSOR_NAME_MAX];
	char uuid[PROFILE_UUID_BYTES]; /* of the model's text */
	uint64_t model_id;	       /* as in events */
	struct model_text *text;       /* what was loaded */
	uint32_t nc;
	uint32_t step_count;
	uint32_t collectives;	  /* steps that need other ranks */
	struct model_place place; /* part is not used */
	uint32_t *lines;	  /* of the steps, in the text */
	struct {
		uint32_t nd_idx, nc_idx; /* core within the device */
		struct vdev_program *image;
	} parts[CORES_MAX_SIZE];
};

static inline const struct vdev_instruction *profile_steps(
	const struct profile_node *n, uint32_t part)
{
	return (const struct vdev_instruction *)(const void *)(n->parts[part].image + 1);
}

/* The core's models are remembered from now on, the one that runs included.  Counted. */
void profile_hold(uint32_t nc);
void profile_release(uint32_t nc);
/* Subscribes to a core's collector and holds the core; and the reverse.  *ret is NULL when it
 * fails. */
NRT_STATUS profile_subscribe(uint32_t nc, struct collector_cursor **ret);
void profile_unsubscribe(uint32_t nc, struct collector_cursor **cursor);

/* Can what profile_build needs of the core be had until then?  lock_within.h. */
bool profile_core_is_free(uint32_t nc, struct boot_ns until);

/* What stands for the uuid of a NEFF: the digest of the model's text. */
void profile_uuid(const struct nrt_model *m, char ret[PROFILE_UUID_BYTES]);

/* The node of a model, also of one that has not run yet, with a reference; NULL: no memory. */
struct profile_node *profile_node_of(struct nrt_model *m);
/* The node of a load (nrt_model.number) that ran on a core while that was held, with a
 * reference; or NULL. */
struct profile_node *profile_node_find(uint32_t nc, uint64_t number);
void profile_node_put(struct profile_node *n);

/* ---- the executor's hooks ------------------------------------------------------------------ */

/* Before an execution takes the core's lock. */
void profile_before_run(struct nrt_model *m);
/* A run of the model begins, or has ended; with the core's lock. */
void profile_run_begins(struct nrt_model *m);
void profile_run_ended(struct nrt_model *m, NRT_STATUS status);
/* Behind it, without the lock. */
void profile_after_run(struct nrt_model *m);

/* ---- nrt_init and nrt_close ---------------------------------------------------------------- */

NRT_STATUS profile_open(uint32_t logical_cores);
/* Waits for the calls of profiles that are in, and lets no more in; then ends all profiles.  What
 * nobody has written is gone. */
void profile_close(void);

/* ---- for the key spaces ---------------------------------------------------------------------- */

/* As api_enter and api_leave (state.h), for the calls of profiles: no call is in once nrt_close
 * has come to them. */
NRT_STATUS profile_enter(const char *call);
void profile_leave(void);
/* The same for an execution that is about to begin; says nothing. */
bool profile_try_enter(void);
void profile_leave_run(void);

/* Refuses a core that the process has not, and one without a device behind it; says so. */
NRT_STATUS profile_check_core(const char *call, int64_t vnc);
/* Profiles of models do not go with executions that nrt_execute only posts; says so. */
NRT_STATUS profile_check_synchronous(const char *call, const char *what);

/* session.c */
void session_open(uint32_t logical_cores);
void session_close(void);
/* model_profile.c */
void model_profile_close(void);
/* continuous.c */
void continuous_before_run(const struct nrt_model *m);
void continuous_run_begins(const struct nrt_model *m);
void continuous_run_ended(const struct nrt_model *m);
void continuous_close(void);
bool continuous_is_enabled(void);

#endif
