/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_runs.h - profiles of single executions on one core, for an inspect session: the first one
 * of each model (mode MODEL), and each one that fails (on-fail).
 *
 * A run is harvested when it ends, under the core's lock, and written behind that by the thread
 * that executed.  An execution that is not wanted is not harvested: nothing of it is built or
 * written.
 *
 * Who calls has the lock of the object; run_begins and run_ended come with that of the executor
 * besides, so runs do not overlap.
 */
#ifndef NTRACE_PROFILE_INSPECT_RUNS_H
#define NTRACE_PROFILE_INSPECT_RUNS_H

#include "runtime/profile/inspect_files.h"

/* What is wanted; bits of inspect_device_gate. */
enum inspect_device_want {
	INSPECT_WANT_ALL = 1,	 /* all that happens: core_profile.h */
	INSPECT_WANT_FIRST = 2,	 /* the first execution of each model */
	INSPECT_WANT_FAILED = 4, /* executions that fail */
};

/* A run that is to be written. */
struct inspect_taken {
	struct inspect_taken *next;
	struct profile_harvest harvest;
	struct profile_wish wish; /* with a reference to the node */
	struct profile *profile;  /* that was built of it; NULL: none yet */
	char name[INSPECT_FILE_BYTES];
};

/* A model, by its digest, and what has become of its profile. */
struct inspect_model;

struct inspect_runs {
	bool refused; /* the core cannot be subscribed; said */
	bool armed,
		is_first; /* the run that is going on is wanted; as the first one of its model */
	struct collector_cursor *cursor;
	struct inspect_model *models;
	struct inspect_taken *taken, *last;
};

/* wants: of this core. */
void inspect_runs_load(struct inspect_runs *r, uint32_t nc, uint32_t wants);
void inspect_runs_before(struct inspect_runs *r, const struct nrt_model *m, uint32_t wants);
void inspect_runs_begin(struct inspect_runs *r, const struct nrt_model *m, uint32_t wants);
void inspect_runs_end(
	struct inspect_runs *r, struct nrt_model *m, NRT_STATUS status, uint32_t wants);

/* All that is to be written, which is the caller's now. */
struct inspect_taken *inspect_runs_take(struct inspect_runs *r);
/* Frees it and gives the next one. */
struct inspect_taken *inspect_taken_free(struct inspect_taken *t);

/* Ends it, and makes it as new. */
void inspect_runs_drop(struct inspect_runs *r, uint32_t nc);

#endif
