/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cores.h - NeuronCores in numbers: physical and logical ones, and which a process may take.
 *
 * A logical core is `size` neighbouring physical ones (the LNC size, 1 or 2) and never crosses a device:
 * logical = physical / size, physical = logical * size and the following.  The first of them, slot
 * 0, owns what belongs to the logical core.  Cores are counted from 0 over all devices of the
 * machine.
 *
 * Pure arithmetic: no state, no requests, no messages; any thread.
 */
#ifndef NTRACE_DEVICE_CORES_H
#define NTRACE_DEVICE_CORES_H

#include <stdbool.h>
#include <stdint.h>

#define CORES_MAX 256u	      /* physical cores that a process can have */
#define CORES_MAX_DEVICES 32u /* devices that a process can use: the first ones of the machine */
#define CORES_MAX_SIZE 2u     /* physical cores of a logical one */
#define CORES_MAX_PER_DEVICE 8u

/* ---- maps --------------------------------------------------------------------------------- */

/* A set of physical cores: bit i is core i. */
struct core_map {
	uint64_t words[CORES_MAX / 64];
};

/* The cores of words[0..count-1]; what lies beyond either side is not looked at. */
struct core_map core_map_from_words(const uint64_t *words, uint32_t count);
/* Cores first to first + count - 1, as far as they are below CORES_MAX. */
struct core_map core_map_range(uint32_t first, uint32_t count);
/* Lowest core, CORES_MAX when there is none. */
uint32_t core_map_first(const struct core_map *map);
bool core_map_equal(const struct core_map *a, const struct core_map *b);

/* ---- logical cores ------------------------------------------------------------------------ */

/* What can be wrong with a size or a request. */
enum cores_fault {
	CORES_OK,
	CORES_SIZE_NOT_POWER,	/* 0, or not a power of two */
	CORES_SIZE_TOO_LARGE,	/* above CORES_MAX_SIZE */
	CORES_SIZE_NOT_DIVISOR, /* of the cores of a device */
	CORES_NO_DEVICE,	/* a requested core is not on this machine */
	CORES_NOT_WHOLE,	/* neither one logical core nor whole devices */
	CORES_TOO_MANY,
	CORES_TOO_MANY_DEVICES,
};

/* The size without a setting: 2; 1 where a device has one core, and on V2. */
uint32_t cores_default_size(uint32_t arch, uint32_t per_device);
enum cores_fault cores_check_size(uint32_t size, uint32_t per_device);

static inline uint32_t cores_logical(uint32_t physical, uint32_t size)
{
	return physical / size;
}

/* Slot 0 of a logical core. */
static inline uint32_t cores_physical(uint32_t logical, uint32_t size)
{
	return logical * size;
}

/* ---- selection ---------------------------------------------------------------------------- */

struct cores_machine {
	uint32_t arch; /* enum device_arch */
	uint32_t devices;
	uint32_t per_device; /* physical cores */
	uint32_t size;	     /* valid for per_device */
};

/* In logical cores. */
struct cores_request {
	bool is_range;	/* first and count are given */
	uint32_t first; /* of a range */
	uint32_t count; /* 0, not of a range: all */
};

/* The windows of `count` physical cores that satisfy a request, in the order in which they are tried:
 * they begin at first, first + step, ... up to last.  None when last < first. */
struct cores_windows {
	uint32_t count;
	int64_t first, last;
	uint32_t step;
	uint32_t reach; /* cores of the machine that can be had at all */
};

/* The windows for a request.  *ret is filled also with a fault, as far as it has a meaning: for
 * CORES_TOO_MANY and CORES_TOO_MANY_DEVICES count, for CORES_NO_DEVICE first and last (of the one
 * window, wherever it is). */
enum cores_fault cores_choose(const struct cores_machine *machine,
	const struct cores_request *request, struct cores_windows *ret);

/* Physical cores of the machine, and logical ones. */
uint32_t cores_total(const struct cores_machine *machine);
uint32_t cores_total_logical(const struct cores_machine *machine);

#endif
