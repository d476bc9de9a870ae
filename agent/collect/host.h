/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host.h - who and where: the identity that goes into a recording's header.
 *
 * The instance id is the EC2 id from DMI (board_asset_tag) where there is one, else the node name.
 * The instance metadata service is not asked: a recorder does no network traffic.
 */
#ifndef NTRACE_COLLECT_HOST_H
#define NTRACE_COLLECT_HOST_H

#include <sys/utsname.h>

struct host {
	struct utsname uts;
	char instance_id[65];
	char driver[65]; /* "" = unknown */
};

/* N of a device's file name "neuronN", N below 65536; -1 for any other name. */
int host_device_number(const char *name);

/*
 * Reads it all.  device_root: root of a virtual device, NULL for the real one; sys_root: where
 * /sys lies, NULL for /sys (tests use another).
 */
void host_read(struct host *h, const char *device_root, const char *sys_root);

#endif
