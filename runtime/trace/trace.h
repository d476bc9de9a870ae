/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace.h - how the runtime says what it does: spans and instants into the rings.
 *
 * One state per process, made by trace_open and kept until the process ends.  While no
 * subscriber is there, a call costs the check of trace_on().  With one, an event costs two clock-free
 * atomic additions, a clock reading and a copy of 112 bytes; nothing on that path locks, allocates or logs,
 * so events may also be emitted from signal handlers.  The child of a fork emits nothing.
 *
 * nc is the logical core the event belongs to, TRACE_NC_UNKNOWN when there is none: such events have
 * a ring of their own.  Tracking ids are the sequence number within the core, from 1, with the core in
 * bits 50 and up (256 for no core): never 0 and unique in the process.
 */
#ifndef NTRACE_TRACE_TRACE_H
#define NTRACE_TRACE_TRACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/clock.h"
#include "runtime/trace/event_registry.h"
#include "runtime/trace/ring.h"

/* The enable words of the control file; in the child of a fork and before trace_open, three zeros. */
struct trace_gate {
	const _Atomic uint32_t *_Atomic enable;
};
extern struct trace_gate trace_gate;

static inline bool trace_on(void)
{
	const _Atomic uint32_t *e = atomic_load_explicit(&trace_gate.enable, memory_order_relaxed);

	return (atomic_load_explicit(&e[CTL_SUB_API], memory_order_relaxed) |
		       atomic_load_explicit(&e[CTL_SUB_INSPECT], memory_order_relaxed) |
		       atomic_load_explicit(&e[CTL_SUB_AGENT], memory_order_relaxed)) != 0;
}

/* A span between its start and its stop; lives on the caller's stack. */
struct trace_span {
	uint64_t tracking;
	uint32_t nc;
	uint16_t type;
	bool on; /* the start was emitted (perhaps dropped); else the stop is silent */
};

/* ---- events ------------------------------------------------------------------------------- */

struct trace_span trace_start_event(
	uint32_t nc, enum trace_type type, const void *payload, size_t size);
void trace_stop_event(
	const struct trace_span *span, uint32_t status, const void *payload, size_t size);

/* Opens a span.  payload: structure of payload.h, size bytes, at most 40; or NULL, 0. */
static inline struct trace_span trace_start(
	uint32_t nc, enum trace_type type, const void *payload, size_t size)
{
	if (!trace_on())
		return (struct trace_span){0};
	return trace_start_event(nc, type, payload, size);
}

/* Closes it; status is the NRT_STATUS of what was done. */
static inline void trace_stop(
	const struct trace_span *span, uint32_t status, const void *payload, size_t size)
{
	if (span->on)
		trace_stop_event(span, status, payload, size);
}

void trace_instant(uint32_t nc, enum trace_type type, const void *payload, size_t size);

/*
 * An event of the device's side, at a time of the caller's choice.  tracking: 0 makes a new id.
 * Returns the tracking id, 0 when the event was dropped or nobody wants it.
 */
uint64_t trace_event_at(struct boot_ns when, uint32_t nc, enum trace_type type,
	enum trace_phase phase, uint64_t tracking, uint32_t status, const void *payload,
	size_t size);

/* ---- set-up; takes a mutex, not for signal handlers ----------------------------------------- */

/* Makes the control file, once.  0 or -errno; without it the runtime works, untraced. */
int trace_open(void);

/* Something is loaded or allocated on this core: it gets its ring now if anybody subscribes, else
 * when somebody does. */
void trace_core_touch(uint32_t nc);

/* Id of a name; readers learn the text.  Names longer than 255 bytes are cut for readers. */
uint64_t trace_intern(const char *text);

/* Makes rings, then sets the subscriber's word.  capacity: records per ring made from now on, 0 =
 * default; rounded up to a power of two and limited to 1024..2^20.  0 or -errno. */
int trace_subscribe(enum ctl_subscriber who, uint32_t capacity);
void trace_unsubscribe(enum ctl_subscriber who);

/* A duplicate of the control file's descriptor, close-on-exec, the caller's to close; or -errno. */
int trace_control_fd(void);

/* ---- agent (service.c) -------------------------------------------------------------------- */

/*
 * Announces the process at $NTRACE_SOCKET and starts the service thread, which watches the
 * connection.  The connection outlives trace_service_stop and is taken up by the next start.
 * 1 = an agent listens, 0 = no socket in the environment, or the agent does not want us; -errno = it
 * could not be reached or did not answer in time.
 */
int trace_service_start(uint32_t flags);

/* Ends and joins the thread; the enable word stays as it is. */
void trace_service_stop(void);

/* Called in the child of a fork by trace.c: closes what the agent's connection consists of. */
void trace_service_forget(void);

#endif
