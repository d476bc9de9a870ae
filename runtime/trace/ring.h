/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring.h - event rings in shared memory: layout, writer, reader.
 *
 * One memfd named `ntrace-ctl` per process holds everything a reader needs: a control page and,
 * behind it, the rings and the name log, at offsets that the control page lists.  One descriptor,
 * handed over once, therefore outlives the process with all its rings, also those that
 * were made a microsecond before a SIGKILL.  The file only ever grows and is sealed against
 * shrinking, so a reader's mapping cannot fault.
 *
 * Each core has one or more lanes, which are rings of their own.  Lane 0 is for all threads; a thread that
 * emits much gets a lane that it alone writes to, where the steps below need no locked instruction.
 *
 * A ring has `capacity` slots (a power of two), and doubles by segments, each as large as all before it.  Its
 * epoch counts the doublings and stands in the same word as the head, so that each position belongs to
 * one epoch for everybody: the slot of p is p mod (capacity << epoch of p), counted through the segments.
 * A writer claims position p = head++ and stamps the slot of p: 2p+1 while it writes, 2p+2 when the record
 * is whole; 0 means never written.  It claims the slot by compare-exchange from the even stamp that it saw;
 * an odd stamp (a writer stalled one lap ago) means the event is dropped and counted slot_busy.  Old records
 * are overwritten.  Writers never lock, allocate, or call anything but clock_gettime and gettid's cache: the
 * path is async-signal-safe.
 *
 * A reader keeps its own cursor and never writes to shared memory.  It copies the slot, then
 * checks the stamp again.  It treats the memory as hostile: every index, offset and count that
 * it takes from there is bounded by what it measured itself at open.
 *
 * Identity per ring and subscriber:
 *   emitted = delivered + unread + overwritten + filtered + slot_busy + no_ring + abandoned.
 */
#ifndef NTRACE_TRACE_RING_H
#define NTRACE_TRACE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/trace/record.h"

#define CTL_NAME "ntrace-ctl"
#define CTL_MAGIC 0x3143544e /* "NTC1" */
#define CTL_VERSION 4u
#define CTL_PAGE_BYTES 65536u	     /* control area at offset 0 */
#define CTL_MAX_LANES 8u	     /* of a core; a power of two */
#define CTL_MAX_RINGS 2049u	     /* lanes of 256 cores, and one for events of no core */
#define CTL_NAMES_BYTES (1u << 20)   /* name log */
#define CTL_AGENT_BYTE 0	     /* of the file; whoever locks it is the agent */
#define RING_DEFAULT_CAPACITY 65536u /* records */
#define RING_MIN_CAPACITY 1024u
#define RING_MAX_CAPACITY (1u << 22)
#define RING_SEGMENTS 13u /* from the least to the largest capacity */
#define RING_POS_BITS 56u /* of a head; above them the epoch */
#define RING_POS_MASK ((1ull << RING_POS_BITS) - 1)

/* A new tracking id: the sequence number in its lane, from 1, the lane, the core (256: none).  Unique in the
 * process for 2^36 records of a lane. */
#define TRACK_CORE_SHIFT 50u
#define TRACK_LANE_SHIFT 36u

enum ctl_subscriber { CTL_SUB_API = 0, CTL_SUB_INSPECT = 1, CTL_SUB_AGENT = 2, CTL_SUB_MAX = 3 };

/* Who wants an event: bit 1 << enum ctl_subscriber. */
#define CTL_SUB_BIT(who) (1u << (who))

/* What a subscriber wants: bit t of types, bit c % 64 of cores[c / 64].  Events of no core always pass. */
struct trace_filter {
	uint64_t types;
	uint64_t cores[TRACE_MAX_NC / 64];
};

/* Where a ring lies in the file.  Published by storing `offset` last; 0 = no ring. */
struct ctl_ring {
	_Atomic uint64_t offset; /* of struct ring_head, page aligned */
	uint32_t nc_idx;	 /* core, or TRACE_NC_UNKNOWN */
	uint32_t lane;		 /* each (nc_idx, lane) once; 0 for TRACE_NC_UNKNOWN */
	uint32_t capacity;	 /* slots before it doubles, power of two, at most 2^22 */
	uint32_t pad;
};

/*
 * Where an agent that comes later says what it wishes (attach.h): it writes records and filter, then the request,
 * then rings.  One agent at a time: it holds a write lock (fcntl) on the file's byte CTL_AGENT_BYTE, also one that
 * was announced to over a socket.
 */
struct ctl_mailbox {
	_Atomic uint32_t
		bell; /* futex on which the service thread sleeps; anybody adds 1 and wakes */
	_Atomic uint32_t request;  /* number of the newest request; odd: subscribe, even: no more */
	_Atomic uint32_t answered; /* futex: the request that was last dealt with */
	_Atomic int32_t answer;	   /* to it: 0 or -errno */
	_Atomic uint32_t serving;  /* is there a service thread? */
	_Atomic uint32_t flags;	   /* of the process: ANNOUNCE_F_* */
	_Atomic uint32_t records;  /* wish per core, 0 = default */
	uint32_t pad;
	_Atomic uint64_t types, cores[TRACE_MAX_NC / 64]; /* as struct trace_filter */
};

/* Control area.  Written by the traced process, except for the mailbox.  `enable` and `filters` only show what
 * subscribers want, to whoever looks at a process; nothing here obeys them, emission has its own copy. */
struct ctl {
	uint32_t magic;
	uint32_t version;
	uint32_t pid; /* as the process sees itself */
	_Atomic uint32_t
		sessions; /* inspect sessions that have begun, each with files of its own */
	_Atomic uint32_t enable[CTL_SUB_MAX]; /* 1 = this subscriber wants events */
	_Atomic uint32_t since
		[CTL_SUB_MAX]; /* number of its subscription: records of older ones are not its */
	_Atomic uint32_t ring_count; /* entries of rings[] in use */
	struct {
		_Atomic uint64_t types, cores[TRACE_MAX_NC / 64];
	} filters[CTL_SUB_MAX];		  /* as struct trace_filter */
	_Atomic uint64_t no_ring;	  /* events that found no ring */
	_Atomic uint64_t emitted_no_ring; /* = no_ring, counted at the entry of emission */
	uint64_t names_offset;
	_Atomic uint64_t names_used; /* bytes of the name log that are whole */
	_Atomic uint64_t names_lost; /* names that did not fit */
	struct ctl_mailbox mail;     /* on the first page */
	struct ctl_ring rings[CTL_MAX_RINGS];
};

/* Entry of the name log: id, length, text without NUL, padded to 8 bytes. */
struct ctl_name {
	uint64_t id;
	uint32_t len;
	uint32_t pad;
};

/* What epoch e >= 1 added, published before the head shows e. */
struct ring_segment {
	_Atomic uint64_t start;	 /* first position of the epoch */
	_Atomic uint64_t offset; /* in the file, page aligned: capacity << (e - 1) slots */
};

struct ring_head {
	_Atomic uint64_t head; /* epoch << RING_POS_BITS | positions claimed */
	uint64_t pad0[7];
	_Atomic uint64_t emitted; /* events whose emission began; counted apart from head */
	_Atomic uint64_t slot_busy;
	uint64_t pad1[6];
	struct ring_segment segments[RING_SEGMENTS]; /* [0] is not used */
	uint64_t pad2[6];
};

#define RING_WANTED_SHIFT 32u /* of the subscription's number */

struct ring_slot {
	_Atomic uint64_t stamp;
	/* CTL_SUB_BIT of those who want the record; above them, the number of the newest subscription when it
	 * began, of a stop when its start did: so whoever has the one has the other. */
	_Atomic uint64_t wanted;
	struct trace_record record;
};

static_assert(sizeof(struct ctl) <= CTL_PAGE_BYTES, "ctl");
static_assert(offsetof(struct ctl, mail) + sizeof(struct ctl_mailbox) <= 4096, "ctl.mail");
static_assert(sizeof(struct ring_head) == 384, "ring_head");
static_assert(sizeof(struct ring_slot) == 128, "ring_slot");
static_assert(sizeof(struct ctl_name) == 16, "ctl_name");

/* Bytes of file that a ring of this capacity takes, page aligned. */
uint64_t ring_bytes(uint32_t capacity);
/* Bytes of file that the segment of epoch >= 1 takes. */
uint64_t ring_segment_bytes(uint32_t capacity, uint32_t epoch);

/* The segment that holds the slot of an index, and the first index in it. */
static inline uint32_t ring_segment_of(uint64_t index, uint32_t capacity, uint64_t *ret_first)
{
	uint32_t s = 0;

	*ret_first = 0;
	if (index >= capacity) {
		s = (uint32_t)(__builtin_clzll(capacity) - __builtin_clzll(index)) + 1;
		*ret_first = (uint64_t)capacity << (s - 1);
	}
	return s;
}

/* ---- writer ------------------------------------------------------------------------------- */

struct ring_writer {
	struct ring_head *head;
	struct ring_slot *slots[RING_SEGMENTS]; /* of each segment */
	uint32_t capacity;
	uint64_t lane_bits; /* in ids: lane << TRACK_LANE_SHIFT */
	uint64_t core_bits; /* in tracking ids: core << TRACK_CORE_SHIFT */
	/* Epoch that the one thread of this lane is to begin, its segment being there; 0 = none. */
	_Atomic uint32_t next_epoch;
	_Atomic uint32_t epoch; /* that was begun last */
	_Atomic uint32_t
		highest; /* whose segment is there: what the head says beyond it is not believed */
};

/* What becomes a record.  Not a trace_record, for building one in memory and copying it costs more than
 * the rest: stores of 4 bytes that are loaded as 16 at once stall. */
struct ring_event {
	uint32_t type, status, phase, nc_idx;
	uint64_t thread_id, timestamp_ns;
	uint64_t tracking_id; /* 0: a new one */
	const void *payload;  /* size bytes, at most TRACE_PAYLOAD_BYTES; the rest is zero */
	size_t size;
	uint64_t nrta_seq_id;
	uint32_t has_nrta_seq_id;
	uint32_t wanted;       /* CTL_SUB_BIT of those who want it */
	uint32_t subscription; /* number of the newest when it began */
};

/* Stores a record.  Returns its tracking id, 0 when the event was dropped (counted). */
uint64_t ring_emit(struct ring_writer *w, const struct ring_event *e);
/* The same in a lane that no other thread writes to.  Signal handlers of the thread may interrupt it. */
uint64_t ring_emit_alone(struct ring_writer *w, const struct ring_event *e);

/*
 * Begins the next epoch, whose segment (of ring_segment_bytes) the caller has mapped at `slots` and which lies in
 * the file at `offset`.  Writers may be at work.  -EBUSY: they were quicker each time; try later.
 */
int ring_double(struct ring_writer *w, struct ring_slot *slots, uint64_t offset);

/* The same in a lane of one thread, which begins the epoch at its next event. */
void ring_double_later(struct ring_writer *w, struct ring_slot *slots, uint64_t offset);

/* Thread of the record n positions (from 1) before the newest; 0 = there is none.  A guess while writers write. */
uint32_t ring_recent_thread(const struct ring_writer *w, uint64_t n);

/* ---- reader ------------------------------------------------------------------------------- */

struct ring_counters {
	uint64_t emitted, delivered, unread, overwritten, filtered, slot_busy, no_ring, abandoned;
};

struct ctl_reader; /* one process's control file, mapped read-only; one thread at a time */

/*
 * Opens a control file for a subscriber: records that it did not want, or an earlier one of its kind, are not
 * delivered but counted `filtered`.  Takes ownership of fd on success; it stays where it is, and is not
 * used when another file has come to its number.  -EPROTO: not such a file, other version, or not sealed against
 * shrinking; -errno otherwise.
 */
int ctl_reader_open(int fd, enum ctl_subscriber who, struct ctl_reader **ret_reader);
void ctl_reader_close(struct ctl_reader *r);
/* The descriptor that it was opened with; stays its own. */
int ctl_reader_fd(const struct ctl_reader *r);

/* Passes over all that has been written so far: from now on the counters count as if it began here.  Names are
 * delivered nevertheless.  Before the first poll.  0 or -errno. */
int ctl_reader_skip(struct ctl_reader *r);

/* Process id as the process itself sees it (not to be trusted for identity). */
uint32_t ctl_reader_pid(const struct ctl_reader *r);

#define RING_BATCH_RECORDS 512u

/* Called for each run of whole records of one ring, oldest first, at most RING_BATCH_RECORDS.  A negative
 * return ends the poll and is passed on, and these records count as not read: the next poll brings them
 * again. */
typedef int (*ring_batch_fn)(void *ctx, uint32_t nc_idx, uint32_t lane,
	const struct trace_record *records, size_t count);

/* Called for each new name.  The same. */
typedef int (*ring_name_fn)(void *ctx, uint64_t id, const char *text, uint32_t len);

/*
 * Delivers all records and names that are whole and new.  dead = true after the process is
 * gone: slots that are still being written are then counted abandoned and passed over.
 * A live writer that holds up its ring for more than 200 ms is passed over the same way.
 * now_ns: BOOTTIME, as it was before the call.  Returns the number of records delivered, or the negative number
 * that a callback returned.
 *
 * One call passes at most 2^20 positions of all rings; the rest is `unread` and the next call's.
 * -EPROTO, from then on always: the memory or its counters are not what a writer leaves.  -EBADF: the descriptor
 * was closed, and there are rings that it was needed for.  -ENOMEM and others: try again later.
 */
long ctl_reader_poll(struct ctl_reader *r, bool dead, uint64_t now_ns, ring_batch_fn on_batch,
	ring_name_fn on_name, void *ctx);

/* Did the last poll stop at that number? */
bool ctl_reader_more(const struct ctl_reader *r);

/*
 * A time before which no further record of this process will be written, were all writers prompt:
 * now, held back by positions claimed but not whole.  Step 1 of a watermark; hardware events may
 * be older, the merge allows for that.
 */
uint64_t ctl_reader_watermark(const struct ctl_reader *r, uint64_t now_ns);

/* Did a poll find the process's memory broken? */
bool ctl_reader_failed(const struct ctl_reader *r);

/* Number of rows of counters: one per ring seen; the row of TRACE_NC_UNKNOWN always exists, also
 * before its ring does, and carries the events that found no ring.  All numbers are those of the last
 * poll and satisfy the identity.  Of a reader that failed: what it delivered, nothing else. */
uint32_t ctl_reader_rings(const struct ctl_reader *r);
/* Names that found no room in the name log. */
uint64_t ctl_reader_names_lost(const struct ctl_reader *r);
/* Inspect sessions that the process has begun. */
uint32_t ctl_reader_sessions(const struct ctl_reader *r);
void ctl_reader_counters(const struct ctl_reader *r, uint32_t i, uint32_t *ret_nc_idx,
	uint32_t *ret_lane, struct ring_counters *ret);

#endif
