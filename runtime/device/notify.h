/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notify.h - reading a notification ring in memory that the device writes.
 *
 * A record is there when its phase bit is that of the current lap.  The ring keeps its contents while
 * processes come and go, so the reader first finds where the device will write next.  A device that goes round
 * while nobody reads leaves no new record for the reader, or one of a later lap: the reader has a doubt then, and
 * who can ask the device for its place puts it there (notify_place).  One thread at a time.
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
	uint64_t read, told; /* records read, and how many of them the device has been told of */
};

/* Starts reading memory of `bytes` bytes behind what has been written so far. */
void notify_attach(struct notify_ring *r, void *memory, uint64_t bytes);

/* The next record is the one after `written` of them; those before it count as read. */
void notify_place(struct notify_ring *r, uint64_t written);

/* Takes the next record; false when there is none yet. */
bool notify_next(struct notify_ring *r, struct notification *ret);

#endif
