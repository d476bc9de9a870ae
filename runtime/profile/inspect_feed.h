/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_feed.h - what goes into the recording of an inspect session: events out of the rings,
 * samples of the host, clocks, counters.
 *
 * One thread at a time, the session's but for open and drop.  inspect_feed_flush neither allocates
 * nor takes a lock: it can be called while a signal handler has stopped another thread in the
 * middle of anything.  The first error ends the recording in order; from then on nothing happens
 * any more, and every call returns it.
 */
#ifndef NTRACE_PROFILE_INSPECT_FEED_H
#define NTRACE_PROFILE_INSPECT_FEED_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/record/recording.h"

struct inspect_feed;
struct nrt_sys_trace_config;

#define INSPECT_FEED_TICK_MS 10u

struct inspect_feed_wish {
	const char *path;			   /* of the recording, which is made; absolute */
	const char *header;			   /* text of its header */
	const struct nrt_sys_trace_config *events; /* NULL: none */
	bool cpu_util, host_memory;
	uint32_t period_ms;
	const struct rec_device *devices;
	uint32_t device_count;
	uint32_t is_virtual; /* as in struct rec_process */
};

/* Makes the recording, subscribes, and flushes what it begins with; or all is as it was.  0 or
 * -errno. */
int inspect_feed_open(const struct inspect_feed_wish *wish, struct inspect_feed **ret);

/* Once, in the thread that ticks, whose cost counts from here on. */
void inspect_feed_begin(struct inspect_feed *f);

/* To be called every INSPECT_FEED_TICK_MS: reads the rings; every 100 ms flushes; samples when it
 * is time.  0 or the error that has ended it. */
int inspect_feed_tick(struct inspect_feed *f);

/* Why rings cannot be read just now, -errno; 0: they can. */
int inspect_feed_trouble(const struct inspect_feed *f);

/* Reads the rings and hands all to the kernel.  0 or -errno; an error is dealt with by the next
 * tick. */
int inspect_feed_flush(struct inspect_feed *f);

/* A file of the session; name without directory, at most 255 bytes.  Does not allocate either. */
int inspect_feed_file(struct inspect_feed *f, const char *name, const char *type, uint64_t bytes);

/* Unsubscribes, reads what is left, ends the recording and frees f.  *ret_lock: the recording's,
 * see rec_writer_end; the caller's.  *ret_lost: events that are missing, by all causes.  0 or the
 * first error. */
int inspect_feed_end(struct inspect_feed *f, enum rec_end_reason reason, struct kept_fd *ret_lock,
	uint64_t *ret_lost);

/* The same, and removes the recording.  NULL is fine. */
void inspect_feed_drop(struct inspect_feed *f);

/* In the child of a fork: gives up the descriptors.  Async-signal-safe. */
void inspect_feed_forget(struct inspect_feed *f);

#endif
