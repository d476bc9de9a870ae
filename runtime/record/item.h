/* SPDX-License-Identifier: Apache-2.0 */
/*
 * item.h - what the merge holds, orders and writes: one item per event of ntrace.pb.
 *
 * An item is made from a raw record when that is read (ingest.c) and stands for itself from then on: it
 * points nowhere, so it can wait in memory or in a file (held.h), and what is known of its span by
 * then has been copied into it.  128 bytes, two cache lines.
 */
#ifndef NTRACE_RECORD_ITEM_H
#define NTRACE_RECORD_ITEM_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "bpf/neuron_event.h"
#include "runtime/trace/record.h"

/* Bits of ids in ntrace.pb that the merge itself gives out. */
#define ID_KERNEL (1ull << 63)
#define ID_MARKER (1ull << 62)
#define ID_DEVICE (1ull << 60)	/* of a device profile; bits 61 to 63 are 0 then */
#define ID_RENEWED (1ull << 61) /* of the second and later runtimes under one pid */

/* A runtime's tracking id: sequence below, core above. */
#define TRACKING_CORE_SHIFT 50
#define TRACKING_SEQ_BITS 39
#define TRACKING_CORE_BITS 9

/* In a thread id: it is one of the process's own pid namespace, so the host's thread of that number is
 * another.  The kernel's own ids are positive ints. */
#define TID_FOREIGN (1u << 31)

#define ITEM_MAX_RUNTIME 8191u /* runtimes under one pid, less one */

enum item_side { SIDE_RUNTIME, SIDE_KERNEL, SIDE_DMA };

enum item_kind {
	ITEM_STOP,
	ITEM_START,
	ITEM_INSTANT,
	ITEM_LOST,	/* a stop whose start was lost; written as an instant */
	ITEM_DUPLICATE, /* a start with the id of another; written as an instant */
	/* Events of a device with times that cannot be; written as instants where they were collected. */
	ITEM_INVALID_ZERO,	    /* the device's clock or the host's at 0 */
	ITEM_INVALID_BACKWARD,	    /* the end before the start */
	ITEM_INVALID_BEFORE_SUBMIT, /* the start before its submit by more than the bound */
	ITEM_INVALID_AFTER,	    /* the end after it was collected by more than the bound */
	ITEM_KINDS,
};

#define ITEM_INVALID_KINDS (ITEM_KINDS - ITEM_INVALID_ZERO)

enum item_flags {
	ITEM_ZERO = 1,	     /* start and stop of a span without extent */
	ITEM_COMPLETE = 2,   /* start: its stop was known in time, so nothing need be guessed */
	ITEM_MOVED = 4,	     /* started on one thread, stopped on another; `other` is the first */
	ITEM_HARDWARE = 8,   /* of no thread */
	ITEM_ANNOUNCED = 16, /* a call that was announced while it was open */
	ITEM_LINK = 32,	     /* `other` is the id of the span that submitted this device run */
	ITEM_EXACT = 64,     /* that link is exact */
	ITEM_NRTA = 128,     /* has nrta_seq_id */
	ITEM_BOUND = 256,    /* of a device: its host times have a bound, see item_bound() */
	ITEM_BOTH = 512,     /* invalid: start and stop in one */
	ITEM_ENDED = 1024,   /* invalid: the payload is that of a stop */
	ITEM_CORRECTED =
		2048, /* of a device: not at the recorded host time, see item_corrected() */
};

struct item {
	uint64_t time;	  /* as written; BOOTTIME ns */
	uint64_t start;	  /* of the span, as written; STOP and START.  Invalid: as told */
	uint64_t pair;	  /* what start and stop of a span share, see item_pair() */
	uint64_t seq;	  /* order within the place; a stop that ends a span has its start's */
	uint64_t late_ns; /* by how much time was moved on */
	uint32_t process;
	uint32_t tid;
	uint16_t source;
	uint16_t place; /* runtime: core of the start + 1, 0 unknown; else: CPU */
	uint16_t core;	/* the record's own core + 1, 0 unknown */
	uint16_t type;	/* event type of a runtime's item */
	uint8_t kind;	/* enum item_kind */
	uint8_t side;	/* enum item_side */
	uint16_t flags; /* enum item_flags */
	uint32_t status;
	union {
		struct {
			uint8_t data[TRACE_PAYLOAD_BYTES];
			uint64_t nrta_seq_id;
			/* Stop: so much earlier than the start.  Start of a device run: so much
			 * earlier than its submit.  Invalid: the end as told. */
			uint64_t clamped_ns;
			uint64_t other;
		};
		struct {
			uint64_t args[NEV_MAX_ARGS];
			uint32_t request;
			int32_t result;
			uint16_t device;
			uint16_t call_flags; /* enum nev_flags */
			uint8_t nargs;
		};
		struct {
			uint64_t call; /* start of the call it belongs to, as told; 0: none */
			uint64_t bytes;
			uint32_t sequence, tx, rx;
			int32_t outcome;
			uint16_t nd, engine, queue;
			uint8_t dma_kind, dma_flags; /* enum nev_dma_kind, nev_dma_flags */
		} dma;
	};
};

static_assert(sizeof(struct item) == 128, "item");

/* The bound of a device's host times, all ones: not known.  It stands where nothing else does: stops of
 * devices have 16 bytes of payload, instants no start. */
#define ITEM_BOUND_UNKNOWN UINT64_MAX
#define ITEM_BOUND_OFFSET 32u

static inline uint64_t item_bound(const struct item *i)
{
	uint64_t bound = i->start;

	if (i->kind == ITEM_STOP)
		memcpy(&bound, i->data + ITEM_BOUND_OFFSET, sizeof(bound));
	return bound;
}

static inline void item_set_bound(struct item *i, uint64_t bound)
{
	if (i->kind == ITEM_STOP)
		memcpy(i->data + ITEM_BOUND_OFFSET, &bound, sizeof(bound));
	else
		i->start = bound;
	i->flags |= ITEM_BOUND;
}

/* How much later than recorded a device's time is; stands where nothing else does, as the bound. */
#define ITEM_CORRECTED_OFFSET 24u

static inline int64_t item_corrected(const struct item *i)
{
	int64_t ns = (int64_t)i->other;

	if (i->kind == ITEM_STOP)
		memcpy(&ns, i->data + ITEM_CORRECTED_OFFSET, sizeof(ns));
	return ns;
}

static inline void item_set_corrected(struct item *i, int64_t ns)
{
	if (i->kind == ITEM_STOP)
		memcpy(i->data + ITEM_CORRECTED_OFFSET, &ns, sizeof(ns));
	else
		i->other = (uint64_t)ns;
	i->flags |= ITEM_CORRECTED;
}

/* Key of a runtime's span: unique over all sources.  Only for ids that item_id_valid accepts.  The
 * merge's own numbers of driver calls have a source of 0. */
static inline uint64_t item_pair(uint16_t source, uint64_t tracking_id)
{
	return (uint64_t)source << 48 | tracking_id >> TRACKING_CORE_SHIFT << TRACKING_SEQ_BITS |
	       (tracking_id & ((1ull << TRACKING_SEQ_BITS) - 1));
}

static inline bool item_id_valid(uint64_t tracking_id)
{
	uint64_t seq = tracking_id & ((1ull << TRACKING_CORE_SHIFT) - 1);

	return tracking_id != 0 && seq >> TRACKING_SEQ_BITS == 0 &&
	       tracking_id >> TRACKING_CORE_SHIFT >> TRACKING_CORE_BITS == 0;
}

/* The id as written: the runtime's own, or for the n-th runtime under a pid (from 0) one that no other
 * has: bit 61, n, core, sequence. */
static inline uint64_t item_written_id(uint64_t pair, unsigned runtime)
{
	uint64_t low = pair & ((1ull << 48) - 1);

	if (runtime)
		return ID_RENEWED | (uint64_t)runtime << 48 | low;
	return low >> TRACKING_SEQ_BITS << TRACKING_CORE_SHIFT |
	       (low & ((1ull << TRACKING_SEQ_BITS) - 1));
}

#endif
