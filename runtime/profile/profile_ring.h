/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile_ring.h - one notification ring, emptied so fast as can be, with an exact account of what was lost.
 *
 * taken + lost = written + dropped by the device.  Where the device says how many records it has written and dropped, that
 * is exact: a record that it may have been writing over while it was copied is not taken and counts as lost.  Where it does
 * not say, losses are found by the records themselves (the one that was read last has gone, the overflow bit) and are
 * the least that fits; each is vague then.
 *
 * After an overrun the reader goes on half a ring behind the device: nearer it would lose more than it must, further away
 * it would be overrun again.
 *
 * The ring lies in memory that the device writes; nothing in it is trusted.  One thread at a time.
 */
#ifndef NTRACE_PROFILE_PROFILE_RING_H
#define NTRACE_PROFILE_PROFILE_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/device/notify.h"

struct profile_ring_device {
	/* Asks how many records the device has written to the ring and dropped, low 32 bits; 0 where it does not say.  0 or
	 * -errno. */
	int (*ask)(void *ctx, uint32_t *ret_written, uint32_t *ret_dropped);
	/* Tells it how many have been read. */
	int (*tell)(void *ctx, uint32_t read);
	void *ctx;
};

struct profile_ring {
	struct notify_ring ring;
	struct profile_ring_device device;
	uint64_t lost;	/* so far */
	uint64_t vague; /* how often no more than the least number was known */
	uint64_t
		doubts; /* how often records spoke of losses to a reader that has no word of the device */
	uint64_t gaps;	    /* records that said that some before them were dropped */
	uint64_t drops;	    /* how many were, as the device says */
	uint32_t drops_low; /* as it said last */
	bool heard;	    /* it has ever said how many it has written */
	bool placeless;	    /* the device's count is not known: it is told nothing */
	bool replaced;	    /* the device writes somewhere else: open another one */
};

/* Begins behind what is in the memory.  The device is told, unless the ring is fresh. */
void profile_ring_open(struct profile_ring *p, void *memory, uint64_t bytes,
	const struct profile_ring_device *device);

/* Is there something to take? */
bool profile_ring_has(const struct profile_ring *p);

/* Takes up to max records, in order, to `to` (NULL: passes over them); 0 when there are none now.  Tells the device by
 * quarters of the ring. */
uint32_t profile_ring_take(struct profile_ring *p, struct notification *to, uint32_t max);

/* What the device answered; read_before: p->ring.read of before it was asked.  Returns how many records are to be read in
 * all; those of them that cannot be had are for profile_ring_give_up. */
uint64_t profile_ring_hear(
	struct profile_ring *p, uint64_t read_before, uint32_t written, uint32_t dropped);

/* Passes over what is before the `end`-th record and is not to be had; it is lost. */
void profile_ring_give_up(struct profile_ring *p, uint64_t end);

#endif
