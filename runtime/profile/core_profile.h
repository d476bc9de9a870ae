/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core_profile.h - all that happens on a core, from some moment on: what the recorder's profiles
 * (recorded.h) and those of an inspect session (inspect_device.h) have in common.
 *
 * Zero-initialise.  One thread at a time per object, which keeps nrt_close out.
 */
#ifndef NTRACE_PROFILE_CORE_PROFILE_H
#define NTRACE_PROFILE_CORE_PROFILE_H

#include "runtime/profile/ntff_build.h"

struct core_profile {
	bool tried; /* it has been begun, or could not be */
	struct collector_cursor *cursor;
	struct profile_harvest harvest;
};

/* Begins, the first time only.  The status of the collector, said in the log. */
NRT_STATUS core_profile_begin(struct core_profile *c, uint32_t nc);

/* What there is since, for profile_store and profile_free; NULL when nothing ran, or it was not
 * begun.  id: of the session.  NRT_RESOURCE, said in the name of `call`: it is kept for another
 * try. */
NRT_STATUS core_profile_take(
	const char *call, struct core_profile *c, uint32_t nc, uint64_t id, struct profile **ret);

/* Ends it, and makes it as new; what was not taken is gone. */
void core_profile_drop(struct core_profile *c, uint32_t nc);

#endif
