/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.h - settings from the environment, read once per nrt_init.
 *
 * runtime/base/env.def is the table of all variables; here are those that the library uses.  Texts are
 * the environment's own: they are valid until the program changes the variable.
 *
 * The status of a malformed value is NRT_INVALID; that is inferred, it is not public.
 */
#ifndef NTRACE_LIFECYCLE_CONFIG_H
#define NTRACE_LIFECYCLE_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include <nrt/nrt_status.h>

struct config_cores {
	uint32_t first, count; /* 0 = no list */
};

/* Of profiles.  Sizes of rings by enum notification_size, in MB; 0 = ours. */
struct config_profile {
	uint32_t max_mb; /* what is kept of a logical core */
	uint32_t ring_mb[6];
};

struct config {
	bool allow_reset;		   /* resets and queue programming on a real device */
	struct config_cores visible_cores; /* logical ones; they go before core_count */
	uint32_t core_count;		   /* of NEURON_RT_NUM_CORES; 0 = all */
	uint32_t lnc_size; /* physical cores of a logical one; 0 = unset.  Not compared with the
			      device */
	const char *lnc_variable; /* which one it is from; NULL = unset */
	bool reset_cores;
	uint32_t exec_timeout_s;
	uint32_t async_max_inflight;
	uint32_t compute_queue_limit;
	uint32_t trace_entries;
	const char *oom_directory; /* for reports of full device memory; "" = none */
	const char *local_dump_dir, *s3_dump_prefix; /* of core dumps; "" = none */
	uint32_t dump_seconds;
	struct config_profile profile;
	const char *profile_dir;  /* NTRACE_DEVICE_PROFILE; "" = unset */
	uint32_t output_layout;	  /* NTRACE_OUTPUT_LAYOUT: enum inspect_layout */
	const char *root_comm_id; /* NEURON_RT_ROOT_COMM_ID; "" = unset */
};

#define CONFIG_INSPECT_CORES 256u

/* Of inspect sessions. */
struct config_inspect {
	bool enable, on_fail;
	bool system_profile, host_memory, cpu_util;
	uint32_t device_profile; /* nrt_inspect_device_profile_mode_t */
	uint32_t max_events_per_nc;
	const char *output_dir; /* "" = the default */
	const char *types;	/* NEURON_RT_INSPECT_EVENT_FILTER_TYPE; "" = all */
	bool chosen;		/* the cores are: */
	uint64_t cores[CONFIG_INSPECT_CORES / 64]; /* a bit each */
};

/* What must be known before the rest is read: discovery is an earlier step of nrt_init. */
struct config_discovery {
	const char *root; /* "" = the machine's own */
	bool allow_device;
	const char *fake_instance; /* "" = none */
};

/* NRT_INVALID when one of the three is malformed; then that has been said in the log. */
NRT_STATUS config_read_discovery(struct config_discovery *ret);

/* Says, as errors, which variables look like misspelt ones of those three: why a device was not found. */
void config_say_discovery_names(void);

/* Checks every variable of the table.  The highest status of what was wrong, each said in the log; *ret is
 * written on success only.  Warns of misspelt names, of removed variables, of values of which not all
 * is used, and of those that ask for output that there is none of here. */
NRT_STATUS config_read(struct config *ret);

/* The variables of inspect sessions alone, without warnings; for what is wrong see config_read. */
NRT_STATUS config_read_inspect(struct config_inspect *ret);

/* config_read without warnings, for calls that may come before nrt_init, and often. */
NRT_STATUS config_peek(struct config *ret);

#endif
