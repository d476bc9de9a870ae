/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control.h - the writer's side of the control memfd: creation, rings, name log.
 *
 * Used by trace.c alone, under its mutex; only the published writers are read without it.  The file
 * lives as long as the process.  The program may close the descriptor behind our back: it is a kept one.
 */
#ifndef NTRACE_TRACE_CONTROL_H
#define NTRACE_TRACE_CONTROL_H

#include <stdint.h>

#include "runtime/base/kept_fd.h"
#include "runtime/trace/ring.h"

struct control {
	struct kept_fd file;
	uint64_t file_bytes;
	struct ctl *ctl;
	uint8_t *names;
	/* Index: core, or TRACE_MAX_NC for events of no core. */
	struct ring_writer writers[TRACE_MAX_NC + 1];
	_Atomic uint32_t ready[TRACE_MAX_NC + 1];
};

/* Creates and maps the file.  0 or -errno. */
int control_create(struct control *c);
/* Unmaps and closes everything; for tests and for creation that failed. */
void control_destroy(struct control *c);
/* Adds the ring with this index, its memory allocated and mapped in.  0 (also when it is there) or
 * -errno. */
int control_add_ring(struct control *c, uint32_t index, uint32_t capacity);
/* Appends a name.  0, or -ENOSPC (counted) when the log is full. */
int control_add_name(struct control *c, uint64_t id, const char *text, uint32_t len);

#endif
