/* SPDX-License-Identifier: Apache-2.0 */
/*
 * infodump.h - the support bundle: one block in the log with what people who help need to know.
 *
 * A process writes it at most once per severity, and only when the severity has become worse: as INFO when nrt_init
 * has succeeded, as ERROR with the first nrt_init that fails.  Lines and order are libnrt 2.31's (docs/conformance.md
 * has what differs).  Any thread; takes no lock of its own, so the child of a fork may write it too.  Reads uname, /sys and the
 * environment, never the network.
 */
#ifndef NTRACE_LIFECYCLE_INFODUMP_H
#define NTRACE_LIFECYCLE_INFODUMP_H

#include <nrt/nrt_status.h>

#include "runtime/log/log.h"

struct device_system;

/* lnc: the logical core that it is about, -1 = none; status: why call, such as "nrt_init", failed, or NRT_SUCCESS;
 * devices: what is known of them, NULL = nothing. */
void infodump(enum log_level level, int lnc, NRT_STATUS status, const char *call,
	const struct device_system *devices);

#endif
