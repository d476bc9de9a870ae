/* SPDX-License-Identifier: Apache-2.0 */
/*
 * identity.h - which kind of EC2 instance this is, by instances.def.
 *
 * The type is DMI's product_name below the root directory.  A virtual device without one is taken for the
 * type of its generation that has as many devices (ours).  Simulation has the type that was asked for.
 */
#ifndef NTRACE_DEVICE_IDENTITY_H
#define NTRACE_DEVICE_IDENTITY_H

#include <stddef.h>
#include <stdint.h>

#define IDENTITY_FAMILY_UNKNOWN 0u
#define IDENTITY_FAMILY_INF1 1u
#define IDENTITY_FAMILY_TRN1 2u
#define IDENTITY_FAMILY_TRN1N 3u
#define IDENTITY_FAMILY_INF2 4u
#define IDENTITY_FAMILY_TRN2 5u
#define IDENTITY_FAMILY_INF2E 7u
#define IDENTITY_FAMILY_TRN3 14u
#define IDENTITY_SIZE_2XL 1u
#define IDENTITY_SIZE_UNKNOWN 9u

struct device_system;

struct identity {
	char type[64];	       /* "trn2.48xlarge"; "" = unknown */
	uint32_t family, size; /* numbers of instances.def */
	char arch_name[16];
	char revision[8];
};

/* Family and size of a type, each unknown when its word is. */
void identity_parse(const char *type, uint32_t *ret_family, uint32_t *ret_size);

/* Letter of a board's revision; inferred but for "pre", an early V4. */
void identity_revision(uint32_t arch, uint32_t revision, char ret[8]);

/* All of it, of a system whose driver has answered. */
void identity_read(const struct device_system *s, struct identity *ret);

/* Devices, cores of each and architecture of a type that instances.def has; -ENOENT. */
int identity_shape(
	const char *type, uint32_t *ret_devices, uint32_t *ret_cores, uint32_t *ret_arch);

/* Routing id of each device, where the driver does not say it: the order in which machines of the family
 * are wired.  How many there are; 0 when the family has no such order. */
uint32_t identity_routing(uint32_t family, uint32_t ret[64]);

#endif
