/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notify.h - reading a notification ring in memory that the device writes.
 *
 * A record is there when its phase bit is that of the current lap.  The ring keeps its contents while
 * processes come and go, so the reader first finds where the device will write next.  A device that goes round
 * while nobody reads leaves no new record for the reader, or one of a later lap: the reader has a doubt then, and
 * who can ask the device for its place puts it there (notify_place).
 *
 * Many records at once are copied (notify_copy) and then taken (notify_accept).  As long as the record before them, the
 * last one that was taken, still stands in the ring after the copying, the device has not begun to write over any of
 * them: it writes in order.  One thread at a time.
 */
#ifndef NTRACE_DEVICE_NOTIFY_H
#define NTRACE_DEVICE_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/vdev/vdev_abi.h"

struct notify_ring {
	void *memory; /* NULL = not open */
	uint64_t bytes;
	uint32_t count;	     /* records, power of two */
	uint32_t at;	     /* next record to read */
	bool phase;	     /* phase bit it will have */
	bool from_start;     /* nothing had been written yet when this reader came */
	bool doubt;	     /* the device may have gone round */
	uint64_t last_ps;    /* time of the record before `at` */
	uint64_t last_head;  /* and its first word */
	uint64_t read, told; /* records read, and how many of them the device has been told of */
};

/* Starts reading memory of `bytes` bytes behind what has been written so far.  Of a ring that nothing was written to, only the
 * first and the last record are looked at. */
void notify_attach(struct notify_ring *r, void *memory, uint64_t bytes);

/* The next record is the one after `written` of them; those before it count as read. */
void notify_place(struct notify_ring *r, uint64_t written);

/* Takes the next record; false when there is none yet. */
bool notify_next(struct notify_ring *r, struct notification *ret);

/* What notify_copy found. */
struct notify_batch {
	uint32_t count; /* records that were copied */
	uint32_t gaps;	/* those of them that have NOTE_SW_OVERFLOW */
	uint32_t overs; /* and NOTE_HW_OVERFLOW */
	bool overrun;	/* the record before them is not there any more: they may be damaged */
	uint64_t last[2];
};

/* Is there a record to take, or an overrun? */
bool notify_has(const struct notify_ring *r);

/* Copies up to max records that are there to `to` (NULL: only looks at them), and takes none. */
void notify_copy(const struct notify_ring *r, struct notification *to, uint32_t max,
	struct notify_batch *ret);
/* Takes what was copied. */
void notify_accept(struct notify_ring *r, const struct notify_batch *b);

/* How many records the device has written, for lack of its word: the least number from `least` on that the phases in the
 * ring allow. */
uint64_t notify_guess(const struct notify_ring *r, uint64_t least);

#endif
