/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capture.h - runs a command, or attaches to processes, and writes what all sources yield into a recording.
 *
 * Order: hooks attached, recording created, command forked and put into the filter, then released; or the
 * processes put into the filter, then their runtimes asked for events.
 * From there a single-threaded loop: sources are drained every 10 ms, the recording is flushed
 * every 100 ms, clocks, host samples and counters are taken every second and whenever the realtime
 * clock is set.  Nothing is merged here.
 */
#ifndef NTRACE_COLLECT_CAPTURE_H
#define NTRACE_COLLECT_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/collect/attach.h"

struct capture_options {
	const char *out_dir;	 /* the recording goes to <out_dir>/recording */
	const char *device_root; /* value of NTRACE_DEVICE_ROOT, or NULL for /dev */
	bool device_profiles;	 /* have the command's runtimes profile their cores */
	const char *hooks;	 /* level of hooks; NULL: the best there is */
	const char *hooks_off; /* families of hooks inside of the driver to leave out; NULL: none */
	uint32_t rate;	       /* calls per second of a process that are recorded; 0: all */
	bool all_processes;    /* kernel hooks: not only the command and its children */
	uint32_t kernel_ring_bytes; /* 0 = default */
	uint32_t ring_capacity;	    /* records per core of a runtime; 0 = default */
	/* Called before the command runs when there is no device file yet; may be NULL. */
	void (*on_no_device)(const char *device_root);
	/* Called when the recording ends early while the command runs on; may be NULL.  `why` is as
	 * in capture_result. */
	void (*on_stopped)(const char *why);

	/* Instead of a command: what attach_find found, the caller's to close; 0: there is a command. */
	struct attach_target *targets;
	unsigned target_count;
	uint64_t duration_ns; /* the capture ends by itself; 0: it does not */
	/* Called when all of them are attached to; may be NULL. */
	void (*on_attached)(void);
	/* Called when only rings are recorded, for there can be no hooks; may be NULL. */
	void (*on_no_hooks)(const char *why);
};

/* Where it failed; decides the exit code. */
enum capture_stage {
	CAPTURE_CLOCKS,	 /* a clock cannot be read; nothing was created */
	CAPTURE_HOOKS,	 /* nothing was created */
	CAPTURE_DEVICES, /* no place where devices could be; nothing was created */
	CAPTURE_OUTPUT,	 /* output directory or recording cannot be created; nothing is left */
	CAPTURE_ATTACH,	 /* a process could not be attached to; nothing is left */
	CAPTURE_EXEC,	 /* the command could not be executed; nothing is left */
	CAPTURE_RUN,	 /* the recording ends early; what is in it is whole */
	CAPTURE_DONE,
};

struct capture_result {
	enum capture_stage stage;
	int error;	 /* -errno of the stage */
	int wait_status; /* of the command, -1 if unknown */
	char *rec_path;	 /* to be freed */
	uint64_t rec_bytes;
	unsigned profiles_failed; /* device profiles that could not be taken into the recording */
	int profile_error;	  /* why the last of them: -errno */
	char why[512];		  /* a line for the user when error < 0 */
};

/* argv: NULL with targets.  0 or -errno, the same as ret->error. */
int capture_run(const struct capture_options *o, char *const argv[], struct capture_result *ret);
void capture_result_free(struct capture_result *r);

#endif
