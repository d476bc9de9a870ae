/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime.h - what nrt_init has made, for those who are inside of the library (state.h says how one
 * gets in).
 */
#ifndef NTRACE_LIFECYCLE_RUNTIME_H
#define NTRACE_LIFECYCLE_RUNTIME_H

#include <stdint.h>

#include <nrt/nrt.h>

#include "runtime/device/device.h"
#include "runtime/lifecycle/config.h"
#include "runtime/lifecycle/state.h"

#define RUNTIME_OOM_DIRECTORY_BYTES 201u /* as env.def has it, with the terminator */
#define RUNTIME_PROFILE_BYTES 3968u	 /* as env.def has it, with the terminator */
#define RUNTIME_DUMP_BYTES 4096u	 /* as env.def has both, with the terminator */
#define RUNTIME_VERSION_BYTES 64u	 /* of a framework's version text, with the terminator */

struct runtime {
	uint32_t exec_timeout_s;
	/* Executions of a core that are not complete, at most: */
	uint32_t async_max_inflight;  /* that nrt_execute leaves behind; 0 = it waits for the end */
	uint32_t compute_queue_limit; /* that are scheduled */
	uint32_t trace_entries;	      /* records of nrt_trace_start that are kept */
	char oom_directory[RUNTIME_OOM_DIRECTORY_BYTES]; /* "" = none */
	/* Of core dumps: "" = none. */
	char local_dump_dir[RUNTIME_DUMP_BYTES], s3_dump_prefix[RUNTIME_DUMP_BYTES];
	uint32_t dump_seconds; /* a failing call waits no longer */
	bool dumps_asked_for;  /* one of the two variables is there, if only to be empty */
	struct config_profile profile;
	char profile_dir[RUNTIME_PROFILE_BYTES]; /* of the recorder, "" = none */
	uint32_t output_layout;			 /* enum inspect_layout */
	struct device_system *devices;
	/* Who uses the library, as it said to nrt_init; "" = it did not. */
	nrt_framework_type_t framework;
	char fw_version[RUNTIME_VERSION_BYTES], fal_version[RUNTIME_VERSION_BYTES];
	/* What a later nrt_init shows again. */
	char root_comm_id[64];
	uint32_t core_count;
	bool reset_cores;
};

/* Valid between api_enter and api_leave. */
const struct runtime *runtime_get(void);

/* Slot 0 of the logical core with this number, counted from 0 among the process's own; or NULL.  Between
 * api_enter and api_leave. */
struct device_core *runtime_core(int32_t vnc);

/* Says for a call that it was given no place for its answer; NRT_INVALID.  Any state. */
NRT_STATUS runtime_no_place(const char *call);

#endif
