/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host.h - who and where: the identity that goes into a recording's header.
 */
#ifndef NTRACE_COLLECT_HOST_H
#define NTRACE_COLLECT_HOST_H

#include <sys/utsname.h>

#include "runtime/base/instance.h"

struct host {
	struct utsname uts;
	char instance_id[INSTANCE_ID_BYTES];
	char driver[65]; /* "" = unknown */
};

/* N of a device's file name "neuronN", N below 65536; -1 for any other name. */
int host_device_number(const char *name);

/* How many files dev/neuronN there are below a root (NULL: /), for N up to 63. */
unsigned host_device_count(const char *root);

/*
 * Reads it all.  device_root: root of a virtual device, NULL for the real one; sys_root: where
 * /sys lies, NULL for /sys (tests use another).
 */
void host_read(struct host *h, const char *device_root, const char *sys_root);

#endif
