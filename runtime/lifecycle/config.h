/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.h - settings from the environment, read once per nrt_init.
 */
#ifndef NTRACE_LIFECYCLE_CONFIG_H
#define NTRACE_LIFECYCLE_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include <nrt/nrt_status.h>

#define CONFIG_MAX_CORES 512u

struct config_cores {
	uint32_t first, count; /* 0 = no list */
};

/* The fields of env.def, which says what each is. */
struct config {
	const char *device_root; /* "" = the machine's own */
	bool allow_device;
	struct config_cores visible_cores;
	uint32_t core_count;   /* of NEURON_RT_NUM_CORES; 0 = all */
	uint32_t lnc_size;     /* physical cores of a logical one; 0 = not set */
	uint32_t virtual_size; /* the same by its older name, in lnc_size when that is not set */
	bool reset_cores;
	uint32_t exec_timeout_s;
};

/* Reads all of them.  The highest status of what was wrong, each said in the log. */
NRT_STATUS config_read(struct config *ret);

/* Parses "0-3,5": sorted, without duplicates, contiguous.  0; -EINVAL malformed or out of range;
 * -ERANGE not contiguous. */
int config_parse_cores(const char *text, uint32_t *ret_first, uint32_t *ret_count);

#endif
