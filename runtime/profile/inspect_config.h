/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_config.h - what an inspection, or continuous profiling, is to do: the objects behind the opaque
 * types of nrt_profile.h.
 *
 * An object belongs to its caller; one thread at a time.
 */
#ifndef NTRACE_PROFILE_INSPECT_CONFIG_H
#define NTRACE_PROFILE_INSPECT_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include <nrt/nrt_profile.h>

#include "runtime/trace/sys_trace_config.h"

#define INSPECT_DEFAULT_DIR "./output"
#define INSPECT_LEFT_OUT_BYTES 128u

/* Bits of inspect_config.activities. */
enum inspect_activity {
	INSPECT_SYSTEM_PROFILE = 1,
	INSPECT_DEVICE_PROFILE = 2,
	INSPECT_HOST_MEMORY = 4,
	INSPECT_CPU_UTIL = 8,
	INSPECT_ALL = 255,
};

/* The public name of an activity's bit; NULL: none. */
const char *inspect_activity_name(uint32_t bit);

struct nrt_inspect_config {
	int session_id;
	char *output_dir; /* NULL = INSPECT_DEFAULT_DIR */
	uint32_t activities;
	struct nrt_sys_trace_config sys_trace;
	bool enable_inspect;
	bool enable_inspect_on_fail;
	nrt_inspect_device_profile_mode_t device_profile_mode;
	bool nc[TRACE_MAX_NC]; /* for device profiles; events have their own */
	/* What the environment names and there is not, for trace_info.pb; "": nothing. */
	char cores_left_out[INSPECT_LEFT_OUT_BYTES];
	char types_left_out[INSPECT_LEFT_OUT_BYTES];
};

struct nrt_profile_continuous_options {
	char *output_dir; /* NULL = INSPECT_DEFAULT_DIR */
};

#endif
