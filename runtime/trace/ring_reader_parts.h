/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring_reader_parts.h - what ring_reader.c and ring_map.c share: a reader's state.
 */
#ifndef NTRACE_TRACE_RING_READER_PARTS_H
#define NTRACE_TRACE_RING_READER_PARTS_H

#include "runtime/base/kept_fd.h"
#include "runtime/trace/ring.h"

struct ring_view {
	const struct ring_head *head;
	const struct ring_slot *slots[RING_SEGMENTS];
	uint64_t offset[RING_SEGMENTS], map_bytes[RING_SEGMENTS]; /* [0]: the head and its slots */
	uint64_t start[RING_SEGMENTS];				  /* first position of each epoch */
	uint32_t nc_idx, lane, capacity, epochs;		  /* segments that are mapped */
	uint32_t epoch;						  /* of the cursor */
	uint64_t cursor;					  /* next position to read */
	uint64_t given_back;			     /* cursor when pages were last given back */
	uint64_t head_seen, busy_seen, emitted_seen; /* the writer's counters at the last poll */
	uint64_t base, busy_base;		     /* what of head and busy was there before us */
	uint64_t delivered;			     /* records handed out */
	uint64_t filtered;			     /* whole ones that others wanted */
	uint64_t abandoned;			     /* positions given up */
	uint64_t busy_taken; /* drops of the writer that are accounted for */
	uint64_t hold_pos;   /* position that the last poll stopped at */
	uint64_t hold_since; /* when it first did; 0 = it did not */
	uint64_t goal;	     /* the head at some poll; another one when the cursor is there */
	uint64_t goal_ns;    /* when that poll was */
	uint64_t clear_ns;   /* last time of which nothing is left behind */
};

/* A part of the file that is mapped. */
struct ring_place {
	uint64_t offset, end;
};

struct ctl_reader {
	struct kept_fd file;
	const struct ctl *ctl;
	const uint8_t *names; /* CTL_NAMES_BYTES */
	uint64_t names_read;
	uint64_t no_ring, emitted_no_ring, names_lost; /* as at the last poll */
	uint32_t sessions;			       /* the same */
	uint64_t no_ring_base;			       /* of the former two */
	uint64_t polled_ns;
	enum ctl_subscriber who;
	uint32_t since;	    /* of its subscription, as at the last poll */
	uint32_t next_ring; /* where the next poll begins */
	bool dead;
	bool more; /* the last poll stopped at its limit */
	int error; /* sticky */
	uint32_t ring_count;
	struct ring_view rings[CTL_MAX_RINGS];
	uint32_t place_count;
	struct ring_place
		places[CTL_MAX_RINGS * RING_SEGMENTS + 1]; /* and that of the names; in order */
	struct trace_record batch[RING_BATCH_RECORDS];
};

/* Maps rings that are new.  0 or -errno; -EPROTO: no writer leaves such a file. */
int ring_map_new(struct ctl_reader *r);

/* Maps what the ring has grown by, up to this epoch, which it shows at position pos.  The same. */
int ring_map_epochs(struct ctl_reader *r, struct ring_view *v, uint64_t epoch, uint64_t pos);

/* Gives the pages of the ring back; they are mapped again when they are next read. */
void ring_map_release(const struct ring_view *v);

#endif
