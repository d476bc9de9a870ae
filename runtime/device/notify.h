/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notify.h - reading a notification ring in memory that the device writes.
 *
 * A record is there when its phase bit is that of the current lap.  The ring keeps its contents while
 * processes come and go, so the reader first finds where the device will write next.  One thread at
 * a time.
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
	uint64_t read, told; /* records read, and how many of them the device has been told of */
};

/* Starts reading memory of `bytes` bytes behind what has been written so far. */
void notify_attach(struct notify_ring *r, void *memory, uint64_t bytes);

/* Takes the next record; false when there is none yet. */
bool notify_next(struct notify_ring *r, struct vdev_notification *ret);

#endif
