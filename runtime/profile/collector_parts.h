/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collector_parts.h - a logical core that is collected, as the files of the collector share it: collector.c (who
 * subscribes, the thread), collector_core.c (its rings), collector_read.c (what subscribers get).
 *
 * A ring's lock is for all of that ring: whoever wants records of it empties it, the thread or a subscriber.
 */
#ifndef NTRACE_PROFILE_COLLECTOR_PARTS_H
#define NTRACE_PROFILE_COLLECTOR_PARTS_H

#include <pthread.h>

#include "runtime/exec/memory_table.h"
#include "runtime/lifecycle/config.h"
#include "runtime/profile/collector.h"
#include "runtime/profile/collector_pieces.h"
#include "runtime/profile/profile_ring.h"

struct collector_ring {
	const struct notification_type *type;
	const struct device_core *core;
	struct device_ring_key key;
	pthread_mutex_t lock;
	/* under lock: */
	struct pieces records;
	struct profile_ring reader; /* reader.ring.memory NULL: the executor reads it */
	uint32_t bytes;
	uint32_t opened;	    /* how often there was another memory */
	uint64_t lost, vague;	    /* beyond the reader's */
	uint64_t gone;		    /* of the lost ones, in rings that were replaced */
	uint64_t replaced, unasked; /* how often */
	uint64_t given;		    /* how often it was given back while records may have come */
	uint64_t dropped;	    /* read, not kept */
};

struct collector_part {
	struct device_core *core;
	uint32_t index;
	struct collector_ring rings[NOTIFICATION_RINGS];
};

struct collector_core {
	uint32_t vnc, part_count;
	uint32_t cursors; /* the life lock of collector.c */
	const struct device_system *system;
	struct memory_entry memory; /* of all rings; size 0: not in the table */
	struct collector_part parts[CORES_MAX_SIZE];
	pthread_mutex_t lock;
	/* under lock: */
	struct pieces runs, syncs;
	uint64_t runs_dropped;
};

/* Opens all rings of the logical core of first; NRT_RESOURCE, or what the device said; then nothing is left. */
NRT_STATUS collector_core_open(const struct device_system *s, struct device_core *first,
	uint32_t vnc, const struct config_profile *config, struct pieces_account *account,
	struct collector_core **ret);
/* Ends them; records that somebody holds stay. */
void collector_core_close(struct collector_core *c);
void collector_core_free(struct collector_core *c);

/* Gives half of its rings' memory back to the device, those of the least size wholly, and says so in the log; the thread is
 * kept out.  Returns the bytes. */
uint64_t collector_core_shrink(struct collector_core *c);

/* Takes what is in the rings now; false: nothing.  Bounded. */
bool collector_core_drain(struct collector_core *c);
/* The same until all is read that the device has written, and asks it what was lost.  When it does not answer: what is
 * there, and -errno. */
int collector_core_settle(struct collector_core *c);
/* Reads the clocks of all its cores. */
void collector_core_sync(struct collector_core *c);
void collector_core_add_sync(
	struct collector_core *c, uint32_t part, uint32_t exec_id, const struct device_sync *sync);

/* collector_read.c */
struct collector_cursor *collector_cursor_new(struct collector_core *c);
struct collector_core *collector_cursor_free(struct collector_cursor *cursor);

#endif
