/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control.h - the writer's side of the control memfd: creation, rings, name log.
 *
 * Used by trace.c alone, under its mutex; only published writers are used without it.  The file
 * lives as long as the process.  The program may close the descriptor behind our back: it is a kept one.
 *
 * Others have the memory too.  They get it to read (control_open_reading), and cannot open it to write unless
 * they are of the same user or root; yet no address here depends on what stands in it.
 */
#ifndef NTRACE_TRACE_CONTROL_H
#define NTRACE_TRACE_CONTROL_H

#include <stdint.h>

#include "runtime/base/kept_fd.h"
#include "runtime/trace/ring.h"

/* What control_tend remembers of a ring. */
struct control_watch {
	uint64_t head;	    /* at the last look */
	uint64_t rate_head; /* since when events are counted for their rate */
	uint64_t rate_ns;   /* and since which time */
	void *segment;	    /* mapped, but writers were too quick to begin with it; and where */
	uint64_t segment_offset;
};

struct control {
	struct kept_fd file;
	uint64_t file_bytes;
	struct ctl *ctl;
	uint8_t *names;
	uint64_t names_used; /* as in *ctl */
	uint32_t ring_count; /* the same */
	int grow_error;	     /* why rings do not grow any more; 0: they do */
	/* Index: core, or TRACE_MAX_NC for events of no core; lane. */
	struct ring_writer writers[TRACE_MAX_NC + 1][CTL_MAX_LANES];
	struct control_watch watch[TRACE_MAX_NC + 1][CTL_MAX_LANES];
	uint64_t records[TRACE_MAX_NC + 1];	  /* that there is memory for, in all lanes */
	_Atomic uint32_t ready[TRACE_MAX_NC + 1]; /* is lane 0 there? */
	/*
	 * Who alone writes to the lane, which is control_lane of it: control_self of a thread, 0 = none, or the
	 * kernel's id alone: the lane is offered to that thread.
	 */
	_Atomic uint64_t owner[TRACE_MAX_NC + 1][CTL_MAX_LANES];
};

/*
 * What a thread is known by as an owner.  The kernel's id comes again when the thread is gone, and the new
 * thread must not find itself the owner of a lane that is just being given to another: serial, from 1, is of
 * this thread alone.
 */
static inline uint64_t control_self(uint32_t tid, uint32_t serial)
{
	return (uint64_t)serial << 32 | tid;
}

/* Creates and maps the file.  0 or -errno. */
int control_create(struct control *c);
/* Unmaps and closes everything; for tests and for creation that failed. */
void control_destroy(struct control *c);
/* Adds the first lane of this index, its memory allocated and mapped in.  0 (also when it is there) or
 * -errno. */
int control_add_ring(struct control *c, uint32_t index, uint32_t capacity);
/* Which lane a thread can have to itself. */
static inline uint32_t control_lane(uint32_t tid)
{
	return 1 + tid % (CTL_MAX_LANES - 1);
}
/* Offers the thread its lane, which begins with an eighth of what the first one began with, but at least
 * RING_MIN_CAPACITY.  -EBUSY: another one that lives has it.  -ERANGE: of no core, which has no lanes. */
int control_own_lane(struct control *c, uint32_t index, uint32_t tid);
/* Takes an offer, for the thread `self`.  False: there is none, or no more. */
static inline bool control_take_lane(struct control *c, uint32_t index, uint64_t self)
{
	uint64_t offer = (uint32_t)self;

	return atomic_compare_exchange_strong_explicit(
		&c->owner[index][control_lane((uint32_t)self)], &offer, self, memory_order_acq_rel,
		memory_order_relaxed);
}
/* Another descriptor of the file, to read, close-on-exec, the caller's to close; or -errno. */
int control_open_reading(const struct control *c);
/* Doubles a ring; one of a single thread when it emits next. */
int control_grow_ring(struct control *c, uint32_t index, uint32_t lane);
/*
 * Looks at every ring: those that are half full double; threads that write much to lane 0 get their own.
 * wishes: records to be kept of each index, 0 = none.  A lane grows up to the wish, and all lanes of an index
 * together up to twice the wish.  now_ns: BOOTTIME.  A ring
 * that cannot grow (c->grow_error) is the last that was tried.  Returns the ms until the next look.
 */
int control_tend(struct control *c, const uint32_t wishes[TRACE_MAX_NC + 1], uint64_t now_ns);
/* Does another process hold the agent's lock on the file?  1, 0, -EBADF: the descriptor is closed, other -errno. */
int control_agent_lives(const struct control *c);
/* Opens the file anew when the program has closed the descriptor, through its mapping, which the kernel allows root
 * alone.  0 (also when it is open) or -EBADF. */
int control_reopen(struct control *c);
/* Appends a name.  0, or -ENOSPC (counted) when the log is full. */
int control_add_name(struct control *c, uint64_t id, const char *text, uint32_t len);

#endif
