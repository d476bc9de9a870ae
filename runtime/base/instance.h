/* SPDX-License-Identifier: Apache-2.0 */
/*
 * instance.h - the id of this machine: it names output directories, in the runtime and in the agent.
 *
 * It is the EC2 id that DMI has (board_asset_tag), that of a virtual device first, else the node name.
 * The instance metadata service is never asked: neither a recorder nor a library in somebody's program
 * does network traffic of its own.
 */
#ifndef NTRACE_BASE_INSTANCE_H
#define NTRACE_BASE_INSTANCE_H

#define INSTANCE_ID_BYTES 65u

/* Only letters, digits, '-' and '.', never empty, fit for a directory's name.  device_root: root of a
 * virtual device, NULL or "" = none; sys: where /sys lies, NULL for /sys (tests use another). */
void instance_read_id(const char *device_root, const char *sys, char ret[INSTANCE_ID_BYTES]);

#endif
