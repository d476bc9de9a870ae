/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counter_frames.h - what the sources and the recorder count, as frames of the recording.
 *
 * Owner: the recorder's loop; one thread.  Nothing is kept between calls.
 */
#ifndef NTRACE_COLLECT_COUNTER_FRAMES_H
#define NTRACE_COLLECT_COUNTER_FRAMES_H

#include "agent/collect/ioctl_hooks.h"
#include "agent/collect/residents.h"
#include "agent/collect/runtimes.h"
#include "runtime/record/recording.h"

/* Where from and where to; none of it is owned. */
struct counter_frames {
	struct rec_writer *rec;
	const struct ioctl_hooks *hooks;
	const struct runtimes *runtimes;
	const struct residents *residents;
	bool attached; /* to processes that run on, as they are meant to */
};

/* The newest counters of the hooks and of each runtime.  0 or -errno. */
int counter_frames_put(const struct counter_frames *c);
/* What recording has cost, whom it refused, who ran on.  0 or -errno. */
int counter_frames_put_cost(const struct counter_frames *c);

#endif
