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

struct config {
	const char *device_root; /* NTRACE_DEVICE_ROOT; "" = the machine's own */
	bool allow_device;	 /* NTRACE_ALLOW_DEVICE=1 */
	bool explicit_cores;	 /* NEURON_RT_VISIBLE_CORES is set */
	uint32_t first_core;	 /* of NEURON_RT_VISIBLE_CORES */
	uint32_t core_count;	 /* of either variable; 0 = all */
	bool reset_cores;	 /* NEURON_RT_RESET_CORES, default on */
	uint32_t exec_timeout_s; /* NEURON_RT_EXEC_TIMEOUT, default 30 */
};

/* Reads all of them.  The highest status of what was wrong, each said in the log. */
NRT_STATUS config_read(struct config *ret);

/* Parses "0-3,5": sorted, without duplicates, contiguous.  0; -EINVAL malformed or out of range;
 * -ERANGE not contiguous. */
int config_parse_cores(const char *text, uint32_t *ret_first, uint32_t *ret_count);

#endif
