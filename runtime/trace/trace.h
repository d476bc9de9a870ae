/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace.h - how the runtime says what it does: spans and instants into the rings.
 *
 * One state per process, made by trace_open and kept until the process ends.  An event that no
 * subscriber wants costs the check of trace_wanted().  With one, an event costs a clock reading, the steps of
 * ring.c and the stores of the record in its slot; nothing on that path locks, allocates or logs, so events may
 * also be emitted from signal handlers.  The child of a fork emits nothing.
 *
 * nc is the logical core the event belongs to, TRACE_NC_UNKNOWN when there is none: such events have
 * a ring of their own.  Tracking ids are the sequence number within the lane, from 1, with the lane in bits
 * 36 to 38 and the core in bits 50 and up (256 for no core): never 0 and unique in the process.
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

/*
 * Which subscribers (CTL_SUB_BIT) want a type, and which a core; both together are exact.  The process's own
 * memory, made from the filters at each change.  The child of a fork finds zeros here, by whatever call it was
 * made (MADV_WIPEONFORK, hence pages of its own): nobody wants anything.
 */
#define TRACE_GATE_BYTES 4096

struct trace_gate {
	_Atomic uint8_t any; /* subscribers there are */
	_Atomic uint8_t types[64];
	_Atomic uint8_t cores[TRACE_MAX_NC + 1]; /* the last: of no core */
	_Atomic uint8_t ours;			 /* 1: this is the process that has the rings */
	_Atomic uint32_t subscription;		 /* number of the newest */
} __attribute__((aligned(TRACE_GATE_BYTES)));
extern struct trace_gate trace_gate;

/* Is anybody subscribed to anything? */
static inline bool trace_on(void)
{
	return atomic_load_explicit(&trace_gate.any, memory_order_relaxed) != 0;
}

/* Who wants an event of this type and core: CTL_SUB_BIT of each. */
static inline uint32_t trace_wanted(uint32_t nc, uint32_t type)
{
	uint32_t at = nc < TRACE_MAX_NC ? nc : TRACE_MAX_NC;

	return atomic_load_explicit(&trace_gate.types[type % 64], memory_order_relaxed) &
	       (uint32_t)atomic_load_explicit(&trace_gate.cores[at], memory_order_relaxed);
}

/* A span between its start and its stop; lives on the caller's stack.  tracking 0: there is no start. */
struct trace_span {
	uint64_t tracking;
	uint32_t subscription; /* the newest at the start: nobody who came later gets the stop */
	uint16_t ring;	       /* index of its core */
	uint8_t type;
	uint8_t wanted; /* who wanted the start: nobody else gets the stop */
};
static_assert(sizeof(struct trace_span) == 16, "returned in registers");

/* ---- events ------------------------------------------------------------------------------- */

struct trace_span trace_start_event(
	uint32_t nc, enum trace_type type, const void *payload, size_t size);
void trace_stop_event(
	const struct trace_span *span, uint32_t status, const void *payload, size_t size);

/* Opens a span.  payload: structure of payload.h, size bytes, at most 40; or NULL, 0. */
static inline struct trace_span trace_start(
	uint32_t nc, enum trace_type type, const void *payload, size_t size)
{
	if (!trace_wanted(nc, type))
		return (struct trace_span){0};
	return trace_start_event(nc, type, payload, size);
}

/* Closes it; status is the NRT_STATUS of what was done.  Nothing when the start was dropped: nobody has it. */
static inline void trace_stop(
	const struct trace_span *span, uint32_t status, const void *payload, size_t size)
{
	if (span->tracking)
		trace_stop_event(span, status, payload, size);
}

void trace_instant(uint32_t nc, enum trace_type type, const void *payload, size_t size);

/* The same for the device's side, at times of the caller's choice.  A span whose tracking is 0 was dropped or is
 * wanted by nobody. */
struct trace_span trace_start_at(
	struct boot_ns when, uint32_t nc, enum trace_type type, const void *payload, size_t size);
void trace_stop_at(struct boot_ns when, const struct trace_span *span, uint32_t status,
	const void *payload, size_t size);

/*
 * One event at a time of the caller's choice.  tracking: 0 makes a new id.
 * Returns the tracking id, 0 when the event was dropped or nobody wants it.
 */
uint64_t trace_event_at(struct boot_ns when, uint32_t nc, enum trace_type type,
	enum trace_phase phase, uint64_t tracking, uint32_t status, const void *payload,
	size_t size);

/* The sequence number (nrt_async.h) of the work that this thread does from now on: its events carry it.  0 =
 * none. */
void trace_set_sequence(uint64_t seq);

/* ---- set-up; takes a mutex, not for signal handlers ----------------------------------------- */

/* Makes the control file, once.  0 or -errno; without it the runtime works, untraced. */
int trace_open(void);

/* Something is loaded or allocated on this core: it gets its ring now if anybody subscribes, else
 * when somebody does. */
void trace_core_touch(uint32_t nc);

/* Id of a name; readers learn the text.  Names longer than TRACE_NAME_BYTES are cut for readers. */
uint64_t trace_intern(const char *text);

/*
 * Makes rings, then sets the subscriber's word.  filter: NULL = everything; copied.  records_per_core: how many
 * it wishes to be kept, 0 = default; rounded up to a power of two and limited to 1024..2^22.  A ring begins
 * with up to RING_DEFAULT_CAPACITY records and grows, by the service thread, up to the largest wish of those
 * who want its core.  Again with the same subscriber: the new filter and wish replace the old ones.  0 or
 * -errno, and then all is as it was.
 */
int trace_subscribe(
	enum ctl_subscriber who, const struct trace_filter *filter, uint32_t records_per_core);
void trace_unsubscribe(enum ctl_subscriber who);

/* The control page, where a service thread and agents meet; NULL before trace_open. */
struct ctl *trace_ctl(void);

/* An inspect session has begun whose files have a directory of their own: recorders take another name. */
void trace_count_session(void);

/* Does a process hold the agent's lock on the control file?  1, 0; -EBADF: the program has closed our descriptor, and
 * it cannot be had again. */
int trace_agent_lives(void);

/* What to add to the text of an error of the control file and its readers, for the user: a cause and what it
 * means; or "". */
const char *trace_hint(int error);

/* Another descriptor of the control file, to read, close-on-exec, the caller's to close; or -errno. */
int trace_control_fd(void);
/* The reader of what this process writes, for a subscriber in it; the caller's to close.  0 or -errno. */
int trace_reader_open(enum ctl_subscriber who, struct ctl_reader **ret);

/* ---- agent and service thread (service.c) ---------------------------------------------------- */

/*
 * Announces the process at $NTRACE_SOCKET and starts the service thread, which watches the
 * connection, does what agents ask for in the mailbox, and tends the rings.  The connection outlives
 * trace_service_stop and is taken up by the next start.  flags: ANNOUNCE_F_*.
 * 1 = an agent listens, 0 = no socket in the environment, or the agent does not want us; -errno = it
 * could not be reached or did not answer in time, or there is no thread.
 */
int trace_service_start(uint32_t flags);

/* Tells the agent at $NTRACE_SOCKET that nrt_init failed with this status.  Needs nothing of the rest to be open.
 * 0, also when nobody is to be told; -errno: somebody was, and could not be. */
int trace_service_failed(uint32_t status);

/* Sees to it that the thread runs and looks at the rings.  When it cannot be made the rings stay as they are. */
void trace_service_need(void);

/* For the thread: trace_subscribe without trace_service_need. */
int trace_set_subscriber(
	enum ctl_subscriber who, const struct trace_filter *filter, uint32_t records_per_core);
/* For the thread, one look at the rings: grows them, adds lanes.  Ms until the next, 0 = nobody subscribes. */
int trace_tend(void);

/* What the thread does for others. */
struct trace_hooks {
	/* After each look at the rings while anybody subscribes.  Ms until it wants to be called again at the
	 * latest, 0 = at any time. */
	int (*look)(void);
	/* Rings do not grow any more, -errno; once. */
	void (*cannot_grow)(int error);
};
void trace_set_hooks(const struct trace_hooks *h);

/* Ends and joins the thread; the enable word stays as it is. */
void trace_service_stop(void);

/* Called in the child of a fork by trace.c: closes what the agent's connection consists of. */
void trace_service_forget(void);

#endif
