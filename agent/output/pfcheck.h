/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pfcheck.h - state of the checker behind perfetto_verify.h, for pfcheck_*.c; each group of functions says
 * in which of them it is.
 *
 * What is held grows with what the file describes, not with its events: about 200 bytes for each
 * sequence and 100 for each track, tables of interned numbers, and 16 to 32 bytes for each flow.
 */
#ifndef NTRACE_OUTPUT_PFCHECK_H
#define NTRACE_OUTPUT_PFCHECK_H

#include <stddef.h>

#include "agent/output/perfetto_verify.h"
#include "runtime/record/map64.h"

/* Messages whose fields are known. */
enum pfv_message {
	PFV_TRACE,
	PFV_PACKET,
	PFV_EVENT,
	PFV_NOTE,
	PFV_INTERNED,
	PFV_ENTRY,  /* of a table of texts */
	PFV_STRING, /* of a table of bytes */
	PFV_SNAPSHOT_MSG,
	PFV_CLOCK_MSG,
	PFV_TRACK,
	PFV_PROCESS,
	PFV_THREAD,
	PFV_COUNTER_MSG,
	PFV_DEFAULTS,
	PFV_EVENT_DEFAULTS,
	PFV_MESSAGES,
};

struct pfv_bytes {
	const uint8_t *data;
	size_t len;
	uint64_t at; /* offset in the file */
};

struct pfv_field {
	uint32_t number;
	uint64_t value;		/* of a varint or fixed number; one by one when packed */
	struct pfv_bytes bytes; /* of others; bytes.at: of the field's content */
};

struct pfv_check;

/* Goes through a message's known fields, in their order in the file. */
struct pfv_walk {
	struct pfv_check *check;
	enum pfv_message message;
	struct pfv_bytes left;
	struct pfv_bytes packed; /* rest of a packed field */
	uint32_t packed_number;
	uint8_t packed_wire;
	bool damaged;
	bool refused; /* a field was stepped over for its type or its text */
};

/* pfcheck_fields.c */
void pfv_walk(
	struct pfv_walk *w, struct pfv_check *c, enum pfv_message message, struct pfv_bytes bytes);
/* The next field; false at the end, or where what follows is no message (which was reported). */
bool pfv_next(struct pfv_walk *w, struct pfv_field *ret);

enum { PFV_CATEGORIES, PFV_NAMES, PFV_KEYS, PFV_VALUES, PFV_TABLES };

struct pfv_clock {
	uint64_t id;
	bool known, incremental;
	uint64_t unit;
	uint64_t value, boot; /* the same moment in both; value goes on when incremental */
};

struct pfv_sequence {
	uint32_t id;
	bool begun;			/* a packet was seen */
	bool valid;			/* incremental state has begun */
	uint32_t generation;		/* of that state */
	uint64_t clock, track;		/* defaults; 0: none */
	uint64_t last;			/* time of the newest event */
	uint64_t late_clock, late_last; /* the same by a clock that is not explained yet; 0: none */
	struct map64 tables[PFV_TABLES]; /* iid -> generation << 32 | hash */
	struct pfv_clock *own;		 /* its clocks, 64 to 127 */
	uint32_t own_count;
};

struct pfv_track {
	uint64_t uuid, parent, at;
	uint64_t sum; /* of what describes it */
	bool is_counter, mixed;
	enum pfv_message kind; /* PFV_PROCESS, PFV_THREAD, PFV_COUNTER_MSG, else PFV_TRACK */
	uint32_t writer;       /* sequence of its slices */
	uint64_t begun, ended, bad_ends, bad_at;
	uint8_t seen; /* for the search of loops */
};

/* A flow that an event names. */
struct pfv_flow {
	uint64_t id, at;
	bool terminates;
};

struct pfv_check {
	void (*report)(void *ctx, const struct pfv_finding *f);
	void *ctx;
	struct pfv_result *result;
	int error; /* no memory; sticky */

	struct map64 sequence_by_id;	/* place + 1 */
	struct pfv_sequence *sequences; /* room: a power of two */
	struct map64 track_by_uuid;	/* place */
	struct pfv_track *tracks;	/* the first is the implicit one, of uuid 0 */
	size_t track_count;
	struct map64 owner_by_task; /* process or thread -> place of its track */
	struct map64 flows;	    /* id -> 0, or once it was terminated its time << 1 | 1 */
	struct map64 unbegun;	    /* flows terminated but not passed on yet -> offset */
	struct map64 late_clocks;   /* ids not resolved yet -> offset of the first use + 1 */
	struct map64 clock_by_id;   /* place + 1 */
	struct pfv_clock *clocks;
	size_t clock_count;
	uint64_t snapshot_boot;

	/* Of the packet at hand. */
	uint64_t at;
	struct pfv_sequence *seq; /* NULL: none named */
	bool uses_state;
	struct pfv_flow *event_flows; /* of the event at hand */
	size_t flow_count, flow_room;
};

/* perfetto_verify.c */
void pfv_say(struct pfv_check *c, enum pfv_kind kind, uint64_t at, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* pfcheck_state.c: the sequence of an id, made when it is new (NULL: no memory). */
struct pfv_sequence *pfv_sequence(struct pfv_check *c, uint32_t id);
void pfv_sequences_free(struct pfv_check *c);
/* Interned entries of a packet, and the use of a number. */
void pfv_interned(struct pfv_check *c, struct pfv_bytes bytes);
void pfv_use(struct pfv_check *c, unsigned table, uint64_t iid, uint64_t at);

/* pfcheck_clock.c: a snapshot; boot time of a packet's timestamp (false: not known). */
void pfv_snapshot(struct pfv_check *c, struct pfv_bytes bytes);
bool pfv_time(struct pfv_check *c, uint64_t clock, uint64_t timestamp, uint64_t *ret_boot);
void pfv_clocks_end(struct pfv_check *c);

/* pfcheck_track.c.  At first there is the implicit track. */
void pfv_tracks_begin(struct pfv_check *c);
void pfv_descriptor(struct pfv_check *c, struct pfv_bytes bytes);
/* The track of a uuid; NULL: it was not described. */
struct pfv_track *pfv_track_find(struct pfv_check *c, uint64_t uuid);
void pfv_tracks_end(struct pfv_check *c);

/* pfcheck_event.c; has_time: time, boot ns, is known. */
void pfv_event(struct pfv_check *c, struct pfv_bytes bytes, bool has_time, uint64_t time);

/* pfcheck_flow.c: a flow that the event at hand passes on or terminates; all of them were named. */
void pfv_flow(struct pfv_check *c, uint64_t id, bool terminates, uint64_t at);
void pfv_flows_named(struct pfv_check *c, bool has_time, uint64_t time);
void pfv_flows_end(struct pfv_check *c);

#endif
