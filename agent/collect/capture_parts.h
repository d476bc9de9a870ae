/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capture_parts.h - what the recorder's loop (capture.c) and its beginning (capture_start.c) share.
 */
#ifndef NTRACE_COLLECT_CAPTURE_PARTS_H
#define NTRACE_COLLECT_CAPTURE_PARTS_H

#include <signal.h>

#include "agent/collect/capture.h"
#include "agent/collect/command.h"
#include "agent/collect/counter_frames.h"
#include "agent/collect/ioctl_hooks.h"
#include "agent/collect/profiles.h"
#include "agent/collect/residents.h"
#include "agent/collect/runtimes.h"
#include "runtime/record/recording.h"

struct capture {
	const struct capture_options *o;
	struct capture_result *ret;
	struct rec_writer *rec;
	struct ioctl_hooks *hooks;
	struct runtimes *runtimes;
	struct counter_frames counters;
	struct command command;
	unsigned attached; /* processes that are attached to and live */
	int epoll_fd, tick_fd, set_fd, signal_fd, end_fd;
	unsigned ticks;
	unsigned sigints;
	uint32_t end_reason;
	bool ended;
	bool masked;
	sigset_t old_mask; /* what the caller had, if masked */
	unsigned made;	   /* components of the output directory that we made */
	uint64_t kernel_watermark;
	int device_count; /* known when the recording begins */
	int announced_devices;
	uint64_t drained; /* records of the last drain */
	struct residents residents;
	struct profiles profiles;
};

/* ---- capture.c ---------------------------------------------------------------------------- */

/* A frame of the recorder's. */
int capture_put(
	struct capture *c, enum rec_type type, uint16_t source, const void *data, size_t size);
/* A reading of the clocks, and one of the CPUs. */
int capture_put_cpus(struct capture *c);
/* Tells of the devices that are new. */
int capture_follow_devices(struct capture *c);
/* Has the loop look at this descriptor. */
int capture_watch(struct capture *c, int fd);

/* ---- capture_start.c: 0, or -errno with stage and text in c->ret ----------------------------- */

/* Notes where and why it failed; what: NULL, the text is there already.  Returns error. */
int capture_fail(struct capture *c, enum capture_stage stage, int error, const char *what);
int capture_check_clocks(struct capture *c);
int capture_open_hooks(struct capture *c);
int capture_open_output(struct capture *c);
/* Begins the recording and lets the command go.  After an error nothing is left. */
int capture_open_command(struct capture *c, char *const argv[]);
/* The same with the processes to attach to. */
int capture_open_attached(struct capture *c);

#endif
