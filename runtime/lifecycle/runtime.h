/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime.h - the state of the library, and the door that every public call goes through.
 *
 *	START --nrt_init--> INIT --nrt_close begins--> CLOSED --ends--> START
 *	any state --fork, in the child--> CHILD, for good (once nrt_init has succeeded in the parent)
 *
 * A call that got in through api_enter holds the library open until api_leave: nrt_close waits
 * for it.
 */
#ifndef NTRACE_LIFECYCLE_RUNTIME_H
#define NTRACE_LIFECYCLE_RUNTIME_H

#include <stdint.h>

#include <nrt/nrt.h>

#include "runtime/device/device.h"
#include "runtime/lifecycle/config.h"

struct runtime {
	uint32_t exec_timeout_s;
	struct device_system *devices;
};

/* NRT_SUCCESS: the caller is in and must call api_leave.  Otherwise the status to return; it is in the
 * log, with the name of the call. */
NRT_STATUS api_enter(const char *call);
void api_leave(void);

/* Valid between api_enter and api_leave. */
const struct runtime *runtime_get(void);

/* Slot 0 of the logical core with this number, counted from 0 among the process's own; or NULL.  Between api_enter and api_leave. */
struct device_core *runtime_core(int32_t vnc);

#endif
