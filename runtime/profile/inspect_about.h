/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_about.h - the header of a session's recording, from what the controller knows.
 */
#ifndef NTRACE_PROFILE_INSPECT_ABOUT_H
#define NTRACE_PROFILE_INSPECT_ABOUT_H

#include "runtime/profile/inspect_spool.h"

/* The text, to be freed; period_ms: in effect.  0 or -ENOMEM. */
int inspect_about_text(const struct inspect_spool_wish *wish, uint32_t period_ms, char **ret_text);

#endif
