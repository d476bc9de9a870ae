/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guards.h - which requests may go to which device.
 *
 * A real device may be used by others, and a wrong request can bring the kernel down.  So the library sends it
 * only what guards.def allows: information, versions, marks of cores, notification queues; the rest
 * with NTRACE_ALLOW_RESET=1; some never.  A virtual device gets everything that a process may send.  Pure
 * functions, no state.
 */
#ifndef NTRACE_DEVICE_GUARDS_H
#define NTRACE_DEVICE_GUARDS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "runtime/device/device.h"

enum guard_who { GUARD_ALWAYS, GUARD_ALLOWED, GUARD_NEVER };

struct guard_rule {
	const char *request; /* its name */
	enum guard_who who;
	const char *does; /* what it does, for people */
	bool again;	  /* may be sent again after EINTR */
};

/* The rule of a request; false when it has none. */
bool guard_rule(uint32_t cmd, struct guard_rule *ret);

/* What about a request is never good for a real device, for people; NULL = nothing. */
const char *guard_hazard(uint32_t cmd, const void *arg);

enum guard_answer {
	GUARD_PASS,
	GUARD_NEEDS_RESET, /* NTRACE_ALLOW_RESET=1 would let it pass */
	GUARD_HAZARD,	   /* never on a real device */
	GUARD_CHILD,	   /* the file was opened by another process, of which this is a child */
};

/* May process `caller` send this? */
enum guard_answer guard_check(
	const struct device_file *file, pid_t caller, uint32_t cmd, const void *arg);

#endif
