/* SPDX-License-Identifier: Apache-2.0 */
/* shapes.c - generations, instance types, drivers and topology; see shapes.h. */
#include "runtime/vdev/shapes.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/instance.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

/* ---- generations ------------------------------------------------------------------------- */

enum { V2, V3, V4 };

#define LIKE_V3                                                                 \
	.default_cores = 8, .engines = 132, .compat_min = 10, .compat_max = 11, \
	.has_core_map = true, .hbm_count = 4,                                   \
	.hbm_base = {0, 0x4000000000ull, 0x800000000000ull, 0x804000000000ull}, \
	.host_bit = 0x400000000000ull, .bar_bytes = {4ull << 30, 256ull << 30}

/* V4 is what its driver takes over from V3.  Inferred: the compatibility range (inherited, never
 * seen on a device) and the texts "NDv4", "NCv4", "Trn3", "Trainium3" (by the pattern of the
 * others). */
static const struct vdev_arch archs[] = {
	[V2] =
		{
			.option = "v2",
			.number = 2,
			.default_cores = 2,
			.engines = 34,
			.compat_min = 5,
			.compat_max = 7,
			.nc_arch_type = "NCv2",
			.hbm_count = 2,
			.hbm_base = {0, 0x1000000000ull},
			.host_bit = 0x100000000000ull,
			.bar_bytes = {1ull << 30, 32ull << 30},
		},
	[V3] =
		{
			.option = "v3",
			.number = 3,
			.nc_arch_type = "NCv3",
			LIKE_V3,
		},
	[V4] =
		{
			.option = "v4",
			.number = 4,
			.nc_arch_type = "NCv4",
			LIKE_V3,
		},
};

/* ---- products ---------------------------------------------------------------------------- */

static const uint8_t routing_trn1[16] = INSTANCE_TRN1_TORUS;
static const uint8_t routing_trn2[16] = {0, 3, 4, 7, 12, 15, 8, 11, 1, 2, 5, 6, 13, 14, 9, 10};

enum { TRN1, INF2, TRN2, TRN3 };

/* The driver does call the devices of an Inf2 "NDv3", and their cores "NCv2".  The order of
 * neighbours on Trn2 is known of one device only. */
static const struct vdev_family families[] = {
	[TRN1] = {&archs[V2], "NDv2", "Trn1", "Trainium1", VDEV_LINKS_TORUS_NWSE, routing_trn1},
	[INF2] = {&archs[V2], "NDv3", "Inf2", "Inferentia2", VDEV_LINKS_CHAIN, NULL},
	[TRN2] = {&archs[V3], "NDv3", "Trn2", "Trainium2", VDEV_LINKS_TORUS_NEWS, routing_trn2},
	[TRN3] = {&archs[V4], "NDv4", "Trn3", "Trainium3", VDEV_LINKS_TORUS_NEWS, routing_trn2},
};

static const struct vdev_instance instances[] = {
#define INSTANCE_FAMILY(word, number, arch, arch_name)
#define INSTANCE_SIZE(word, number)
#define INSTANCE(type, devices, cores, product) {type, &families[product], devices},
#include "runtime/base/instances.def"
#undef INSTANCE_FAMILY
#undef INSTANCE_SIZE
#undef INSTANCE
};

/* ---- drivers ----------------------------------------------------------------------------- */

static const struct vdev_driver drivers[] = {
	{"2.24", "2.24.7.0", 3, 0, true},
	{"2.30", "2.30.2.0", 4, 1, false},
};

/* ---- look-ups ---------------------------------------------------------------------------- */

const struct vdev_arch *vdev_arch_find(const char *option)
{
	for (size_t i = 0; i < COUNT(archs); i++)
		if (strcmp(archs[i].option, option) == 0)
			return &archs[i];
	return NULL;
}

const struct vdev_instance *vdev_instance_find(const char *type)
{
	for (size_t i = 0; i < COUNT(instances); i++)
		if (strcmp(instances[i].type, type) == 0)
			return &instances[i];
	return NULL;
}

const struct vdev_driver *vdev_driver_find(const char *name)
{
	for (size_t i = 0; i < COUNT(drivers); i++)
		if (strcmp(drivers[i].name, name) == 0)
			return &drivers[i];
	return NULL;
}

void vdev_instance_names(char *buffer, size_t size)
{
	size_t used = (size_t)snprintf(buffer, size, "one of ");

	for (size_t i = 0; i < COUNT(instances) && used < size; i++)
		used += (size_t)snprintf(
			buffer + used, size - used, "%s%s", i ? ", " : "", instances[i].type);
}

const struct vdev_instance *vdev_instance_for(const struct vdev_arch *arch, unsigned devices)
{
	const struct vdev_instance *first = NULL;

	for (size_t i = 0; i < COUNT(instances); i++) {
		const struct vdev_instance *instance = &instances[i];

		if (instance->family->arch != arch)
			continue;
		first = first ? first : instance;
		if (instance->family == first->family && instance->devices == devices)
			return instance;
	}
	return first;
}

/* ---- topology ---------------------------------------------------------------------------- */

/* A ring of 12, a line of 6. */
static unsigned chain_neighbours(unsigned devices, unsigned index, uint32_t *neighbours)
{
	unsigned n = 0;

	if (devices != 6 && devices != 12)
		return 0;
	if (index > 0 || devices == 12)
		neighbours[n++] = (index + devices - 1) % devices;
	if (index < devices - 1 || devices == 12)
		neighbours[n++] = (index + 1) % devices;
	return n;
}

/* 4 x 4 each. */
static unsigned torus_neighbours(
	enum vdev_links links, unsigned devices, unsigned index, uint32_t *neighbours)
{
	unsigned first = index & ~15u, row = index / 4 % 4, column = index % 4;
	unsigned north = first + (row + 3) % 4 * 4 + column;
	unsigned south = first + (row + 1) % 4 * 4 + column;
	unsigned west = first + row * 4 + (column + 3) % 4;
	unsigned east = first + row * 4 + (column + 1) % 4;

	if (devices % 16)
		return 0;
	neighbours[0] = north;
	neighbours[1] = links == VDEV_LINKS_TORUS_NWSE ? west : east;
	neighbours[2] = links == VDEV_LINKS_TORUS_NWSE ? south : west;
	neighbours[3] = links == VDEV_LINKS_TORUS_NWSE ? east : south;
	return 4;
}

unsigned vdev_neighbours(const struct vdev_family *family, unsigned devices, unsigned index,
	uint32_t neighbours[VDEV_MAX_NEIGHBOURS])
{
	if (family->links == VDEV_LINKS_CHAIN)
		return chain_neighbours(devices, index, neighbours);
	return torus_neighbours(family->links, devices, index, neighbours);
}

void vdev_routing_ids(const struct vdev_family *family, unsigned devices, uint32_t *ids)
{
	for (unsigned i = 0; i < devices; i++)
		ids[devices == 16 && family->routing ? family->routing[i] : i] = i;
}

/* Cores go by pairs; the order of the pairs is one of four, by the device's place on the torus. */
void vdev_physical_core(unsigned entry, uint32_t *ret_device, uint32_t *ret_core)
{
	static const uint8_t pairs[4][4] = {{2, 3, 1, 0}, {1, 0, 2, 3}, {0, 1, 3, 2}, {3, 2, 0, 1}};
	unsigned device = entry / 8, core = entry % 8;

	*ret_device = device;
	*ret_core = 2u * pairs[(device & 1) | (device >> 1 & 2)][core / 2] + core % 2;
}
