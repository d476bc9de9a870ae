/* SPDX-License-Identifier: Apache-2.0 */
/*
 * init.h - the steps of nrt_init and nrt_close.
 *
 * Called by runtime.c between state_change_begin and state_change_end.  A step that fails has said why;
 * what the steps before it have made is taken away again, last first.
 */
#ifndef NTRACE_LIFECYCLE_INIT_H
#define NTRACE_LIFECYCLE_INIT_H

#include <stddef.h>

#include "runtime/lifecycle/runtime.h"

struct init_caller {
	nrt_framework_type_t framework;
	const char *fw_version, *fal_version;
};

/* Runs all steps.  *ret is whole on success and has nothing to be freed on failure.  say_in is called
 * once the settings are known. */
NRT_STATUS init_run(const struct init_caller *caller, struct runtime *ret,
	void (*say_in)(const struct runtime *));

/* Ends what produces work, before the state is CLOSED; then, when no call is in any more, the rest. */
void init_close_producers(struct runtime *r);
void init_close(struct runtime *r);

/* The name of a step, NULL past the last. */
const char *init_step_name(size_t index);

/* For tests: asked before each step; other than NRT_SUCCESS fails the step with that status.  NULL: nobody.
 * Not while nrt_init runs. */
typedef NRT_STATUS init_probe(const char *step);
void init_set_probe(init_probe *probe);

/* For tests: told after each step of nrt_init that was done, and after each of nrt_close, what there is now.
 * As init_set_probe otherwise. */
typedef void init_watch(const char *step, const struct runtime *r);
void init_set_watch(init_watch *watch);

#endif
