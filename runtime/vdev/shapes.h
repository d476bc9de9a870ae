/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shapes.h - which machines there are to be: generations, instance types, driver versions, and
 * what of a device follows from its place among the others.
 *
 * Three tables of constants (shapes.c), and pure functions over them.  Numbers are the driver's
 * unless a row says that they are inferred.
 */
#ifndef NTRACE_VDEV_SHAPES_H
#define NTRACE_VDEV_SHAPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VDEV_MAX_NEIGHBOURS 4u
#define VDEV_NC_MAP_ENTRIES 128u /* of GET_LOGICAL_TO_PHYSICAL_NC_MAP */

/* What differs between generations of the hardware. */
struct vdev_arch {
	const char *option; /* --arch */
	uint32_t number;
	uint32_t default_cores;
	uint32_t engines;
	uint32_t compat_min, compat_max; /* COMPATIBLE_VERSION */
	const char *nc_arch_type;
	bool has_core_map; /* answers GET_LOGICAL_TO_PHYSICAL_NC_MAP */
	unsigned hbm_count;
	uint64_t hbm_base[4];
	uint64_t host_bit;
	uint64_t bar_bytes[2]; /* registers, device memory */
};

enum vdev_links { VDEV_LINKS_TORUS_NWSE, VDEV_LINKS_TORUS_NEWS, VDEV_LINKS_CHAIN };

/* What differs between products of one generation: texts of sysfs, how devices are wired. */
struct vdev_family {
	const struct vdev_arch *arch;
	const char *arch_type, *instance_type, *device_name;
	enum vdev_links links;
	const uint8_t *routing; /* device of each of 16 routing ids; NULL: the same number */
};

struct vdev_instance {
	const char *type; /* --instance, and DMI's product_name */
	const struct vdev_family *family;
	unsigned devices;
};

struct vdev_driver {
	const char *name;    /* --driver; as in the drivers column of ioctl_table.def */
	const char *version; /* what sysfs shows */
	uint32_t newest_arch;
	uint32_t newest_core_map; /* mapping version, on V3 */
	bool hides_core_count;	  /* shows it to root alone */
};

/* NULL when there is none of that name. */
const struct vdev_arch *vdev_arch_find(const char *option);
const struct vdev_instance *vdev_instance_find(const char *type);
const struct vdev_driver *vdev_driver_find(const char *name);

/* "one of trn1.2xlarge, ..." of all, cut at the size of the buffer. */
void vdev_instance_names(char *buffer, size_t size);

/* The instance type of a generation that has so many devices, or else its first one.  Of V2 that
 * is a Trn1. */
const struct vdev_instance *vdev_instance_for(const struct vdev_arch *arch, unsigned devices);

/* Numbers of the connected devices, in the driver's order; how many, 0 when the machine is none
 * of the sizes that the driver knows. */
unsigned vdev_neighbours(const struct vdev_family *family, unsigned devices, unsigned index,
	uint32_t neighbours[VDEV_MAX_NEIGHBOURS]);

/* Routing id of each device.  As the driver's for 1 and for 16 devices; a machine of another size
 * than those has its own numbers (ours). */
void vdev_routing_ids(const struct vdev_family *family, unsigned devices, uint32_t *ids);

/* Device and core that a logical core is, by the driver's map for Trn2; entry < 128. */
void vdev_physical_core(unsigned entry, uint32_t *ret_device, uint32_t *ret_core);

#endif
