/* SPDX-License-Identifier: Apache-2.0 */
/*
 * instance.h - the id of this machine, which names output directories, in the runtime and in the agent;
 * and the instance types that are known.
 *
 * The id is the EC2 id that DMI has (board_asset_tag), that of a virtual device first, else the node name.
 * An EC2 id is "i-" and at least 8 hexadecimal digits, what every one of them has been so far.
 * The instance metadata service is never asked: neither a recorder nor a library in somebody's program
 * does network traffic of its own.
 */
#ifndef NTRACE_BASE_INSTANCE_H
#define NTRACE_BASE_INSTANCE_H

#include <stdbool.h>
#include <stddef.h>

#define INSTANCE_ID_BYTES 65u
#define INSTANCE_ID_FORM "i- and at least 8 hexadecimal digits"

/* The N of the neuronN that have routing ids 0, 1, ... in the torus of a Trn1 of 16 devices. */
#define INSTANCE_TRN1_TORUS                                          \
	{                                                            \
		0, 4, 1, 5, 3, 7, 2, 6, 12, 8, 13, 9, 15, 11, 14, 10 \
	}

/* Only letters, digits, '-' and '.', never empty, fit for a directory's name.  device_root: root of a
 * virtual device, NULL or "" = none; sys: where /sys lies, NULL for /sys (tests use another). */
void instance_read_id(const char *device_root, const char *sys, char ret[INSTANCE_ID_BYTES]);

/* Is it of INSTANCE_ID_FORM? */
bool instance_is_id(const char *text);

/* The rows of instances.def: whether it has the type; all of them, "a, b, c", into size bytes. */
bool instance_type_known(const char *type);
void instance_list_types(char *ret, size_t size);

#endif
