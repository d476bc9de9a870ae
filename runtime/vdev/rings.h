/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rings.h - the notification rings of a core: where a record goes, and what happens when nobody
 * has read.
 *
 * A ring lies in device memory, has a power of two of records, and is written in the order of the
 * records with the phase bit of the lap.  The device knows what has been read only as far as the
 * reader has said (vdev_abi.h); a ring of which it was never said anything counts as read when the
 * device overwrites, so that there is no overflow bit, and as unread when it does not.  core->lock
 * is held for all of this.
 */
#ifndef NTRACE_VDEV_RINGS_H
#define NTRACE_VDEV_RINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/vdev/vdev_abi.h"

#define VDEV_NQ_TYPES 6u
#define VDEV_NQ_ENGINES 16u

#define VDEV_MAX_UNACKNOWLEDGED 256u

struct vdev_memory;

/* --ring-full */
enum vdev_ring_full {
	VDEV_RING_OVERWRITE, /* the oldest record; the new one has the hardware bit */
	VDEV_RING_DROP,	     /* the new record; the next that fits has the software bit */
	VDEV_RING_FAIL,	     /* the run that writes it */
	VDEV_RING_FORCE,     /* as overwrite: an ERROR, and the END of a run that failed so */
};

struct vdev_ring {
	struct vdev_memory *memory; /* a reference; NULL: none */
	uint64_t slots;
	uint64_t written;
	uint64_t read; /* as far as the reader has said */
	bool told;     /* it has */
	bool dropped;  /* since the last record */
	uint64_t drops;
};

struct vdev_rings {
	struct vdev_ring core[VDEV_NQ_TYPES][VDEV_NQ_ENGINES];
	struct vdev_ring top_sp[VDEV_NQ_TYPES][VDEV_NQ_ENGINES];
	/* Position in the ring of runs behind the END of the n-th run, for the last ones. */
	uint64_t end_of_run[VDEV_MAX_UNACKNOWLEDGED];
};

/* Which records were lost so far, of all rings. */
struct vdev_ring_losses {
	uint64_t overwritten, dropped;
};

/* Puts memory (a reference is taken) in place of a ring; NULL: removes it. */
void vdev_ring_bind(struct vdev_ring *ring, struct vdev_memory *memory);
/* Removes all rings. */
void vdev_rings_clear(struct vdev_rings *rings);

/* Writes a record: its type without the upper three bits, which are set here.  Nothing when there
 * is no ring.  -ENOBUFS when it is full and `full` is VDEV_RING_FAIL. */
int vdev_ring_write(struct vdev_ring *ring, struct notification record, enum vdev_ring_full full,
	struct vdev_ring_losses *losses);

/* The reader has read so many records, in 32 bits; a position that cannot be is ignored. */
void vdev_ring_read(struct vdev_ring *ring, uint32_t records);
/* The ring with a number of VDEV_RING_NUMBER, or NULL. */
struct vdev_ring *vdev_rings_find(struct vdev_rings *rings, uint64_t number);

/* The ring of runs. */
static inline struct vdev_ring *vdev_run_ring(struct vdev_rings *rings)
{
	return &rings->core[VDEV_NQ_TYPE_NOTIFY][VDEV_NQ_ENGINE_INDEX];
}
/* The END of the n-th completed run has been written; the first n runs, of which `completed` are
 * complete, have been acknowledged, so their records have been read.  An acknowledgement that
 * comes more than VDEV_MAX_UNACKNOWLEDGED runs late says nothing about the ring. */
void vdev_rings_run_ended(struct vdev_rings *rings, uint64_t n);
void vdev_rings_acknowledge(struct vdev_rings *rings, uint64_t n, uint64_t completed);

#endif
