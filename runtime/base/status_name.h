/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status_name.h - the name of a status of the runtime, in the runtime and in the agent.
 */
#ifndef NTRACE_BASE_STATUS_NAME_H
#define NTRACE_BASE_STATUS_NAME_H

#include <stdint.h>

/* "NRT_INVALID" of 2; "UNKNOWN" of a number that is no status.  Any value may be asked for. */
const char *status_name(int64_t status);

#endif
