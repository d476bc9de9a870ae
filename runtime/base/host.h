/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host.h - who and where: the identity of this machine, for a recording's header, `ntrace check` and the support
 * bundle of the runtime.
 *
 * Whoever tells a person one of these facts takes it from here, so that all tell the same.
 */
#ifndef NTRACE_BASE_HOST_H
#define NTRACE_BASE_HOST_H

#include <sys/utsname.h>

#include "runtime/base/instance.h"

struct host {
	struct utsname uts;
	char kernel[3 * sizeof(((struct utsname *)0)->release)]; /* "Linux 6.1.0 x86_64" */
	char instance_id[INSTANCE_ID_BYTES];
	char driver[65]; /* "" = unknown */
};

/* In the order in which a support bundle has them. */
enum host_fact { HOST_INSTANCE, HOST_KERNEL, HOST_NODE, HOST_DRIVER, HOST_FACTS };

/* N of a device's file name "neuronN", N below 65536; -1 for any other name. */
int host_device_number(const char *name);

/* How many files dev/neuronN there are below a root (NULL: /), for N up to 63. */
unsigned host_device_count(const char *root);

/*
 * Reads it all.  device_root: root of a virtual device, NULL and "" for the real one; sys_root: where
 * /sys lies, NULL for /sys (tests use another).
 */
void host_read(struct host *h, const char *device_root, const char *sys_root);

/* "Instance ID" and so on. */
const char *host_fact_name(enum host_fact which);
/* What it is, "unknown" when nobody says; valid as long as *h.  What others have named may be in it. */
const char *host_fact(const struct host *h, enum host_fact which);

#endif
