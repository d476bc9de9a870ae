/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control.h - the writer's side of the control memfd: creation, rings, name log.
 *
 * Used by trace.c alone, under its mutex; only published writers are used without it.  The file
 * lives as long as the process.  The program may close the descriptor behind our back: it is a kept one.
 */
#ifndef NTRACE_TRACE_CONTROL_H
#define NTRACE_TRACE_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/kept_fd.h"
#include "runtime/trace/ring.h"

/* What control_tend remembers of a ring. */
struct control_watch {
	uint64_t head; /* at the last look */
	bool crowded;  /* was contended then */
	void *segment; /* mapped, but writers were too quick to begin with it; and where */
	uint64_t segment_offset;
};

struct control {
	struct kept_fd file;
	uint64_t file_bytes;
	struct ctl *ctl;
	uint8_t *names;
	/* Index: core, or TRACE_MAX_NC for events of no core; lane. */
	struct ring_writer writers[TRACE_MAX_NC + 1][CTL_MAX_LANES];
	struct control_watch watch[TRACE_MAX_NC + 1][CTL_MAX_LANES];
	/* 0 or a power of two; the event's thread says which lane it takes. */
	_Atomic uint32_t lanes[TRACE_MAX_NC + 1];
};

/* Creates and maps the file.  0 or -errno. */
int control_create(struct control *c);
/* Unmaps and closes everything; for tests and for creation that failed. */
void control_destroy(struct control *c);
/* Adds the first lane of this index, its memory allocated and mapped in.  0 (also when it is there) or
 * -errno. */
int control_add_ring(struct control *c, uint32_t index, uint32_t capacity);
/* Doubles the lanes.  -ERANGE: there are as many as there may be. */
int control_add_lanes(struct control *c, uint32_t index);
/* Doubles a ring. */
int control_grow_ring(struct control *c, uint32_t index, uint32_t lane);
/*
 * Looks at every ring: those that are half full double, up to `most` records; cores on whose ring threads take
 * turns get more lanes.  Returns the ms until the next look.
 */
int control_tend(struct control *c, uint32_t most);
/* Appends a name.  0, or -ENOSPC (counted) when the log is full. */
int control_add_name(struct control *c, uint64_t id, const char *text, uint32_t len);

#endif
