/* SPDX-License-Identifier: Apache-2.0 */
/*
 * canon.h - what an event says, without what differs between two captures of the same: times become
 * times since the first event, threads and ids are numbered in order of appearance.
 *
 * Two traces mean the same when their canonical events are equal.  Numbering is a one-to-one map, so
 * it hides a renaming and nothing else: two ids that one trace tells apart and the other does not
 * still differ.  It remembers the last CANON_MEMORY ids of each kind; an older one that comes back is
 * numbered anew, in both traces alike.
 *
 * A lane is what has an order of its own: a thread, or a core's side (in a comparison of structure also
 * for hardware events that name the thread that collected them).
 */
#ifndef NTRACE_OUTPUT_CANON_H
#define NTRACE_OUTPUT_CANON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/event_codec.h"
#include "runtime/record/map64.h"

#define CANON_MEMORY (1u << 20)
#define CANON_FIELDS (16 + NTRACE_EVENT_MAX_ATTRS)
#define CANON_TEXT 48 /* enough for every number's text */

enum canon_form {
	CANON_NUMBER, /* lo */
	CANON_SIGNED, /* lo, with a sign shown */
	CANON_ID,     /* hi: what it is numbered in (0: no id), lo: its number there */
	CANON_STRING,
	CANON_BYTES, /* unknown fields, raw */
};

struct canon_field {
	struct pb_str key;
	uint8_t form; /* enum canon_form */
	uint64_t hi, lo;
	struct pb_str text; /* points into the event */
};

struct canon_event {
	uint64_t lane; /* the same in both traces, see canon_lane_text */
	uint32_t count;
	struct canon_field fields[CANON_FIELDS];
};

/* Numbers of one kind of id. */
struct canon_ids {
	struct map64 numbers; /* hash of the id -> place: its lane (24 bits) and number (40 bits) */
	uint64_t *recent;     /* keys of `numbers` in order of appearance, a ring of CANON_MEMORY */
	size_t cap;	      /* of recent; grows up to CANON_MEMORY, a power of two */
	uint64_t seen;
};

enum canon_kind {
	CANON_SPAN,
	CANON_MODEL,
	CANON_TENSOR,
	CANON_HANDLE,
	CANON_ADDRESS,
	CANON_PID,
	CANON_KINDS
};

struct canon {
	bool structure; /* leave out times; ids are numbered per lane */
	bool any;
	uint64_t first_ns;    /* timestamp of the first event */
	struct map64 clocks;  /* hash of a clock's name and core -> its first value */
	struct map64 threads; /* thread id -> number */
	struct map64 lanes;   /* lane -> place in lane_keys */
	uint64_t *lane_keys;
	size_t lane_count, lane_cap;
	struct map64 next; /* hash of (kind, lane) -> how many ids were numbered there */
	struct canon_ids ids[CANON_KINDS];
};

void canon_init(struct canon *c, bool structure);
void canon_free(struct canon *c);

/* Gives threads (id -> number) their numbers before the first event; others follow on.  0 or -ENOMEM. */
int canon_name_threads(struct canon *c, const struct map64 *numbers);

/* Is this event a reading of a clock, or a call that makes one?  Those have no part in a comparison
 * without times. */
bool canon_is_clock(const struct ntrace_event_view *e);

/* A hardware event carries the thread that collected it; it happened on the core's own time. */
bool canon_is_hardware(const struct ntrace_event_view *e);

const char *canon_phase(uint32_t phase);

/* Fills the canonical event, whose texts point into e.  0 or -ENOMEM. */
int canon_make(struct canon *c, const struct ntrace_event_view *e, struct canon_event *ret);

/* "1" for a thread, "nd0.nc1" for a core's side, "marks" for what the merge itself notes. */
void canon_lane_text(uint64_t lane, char buf[CANON_TEXT]);

/* A hash of everything in it. */
uint64_t canon_digest(const struct canon_event *e);
bool canon_same_field(const struct canon_field *a, const struct canon_field *b);

/* The value as text: its own text or one written into buf. */
struct pb_str canon_text(const struct canon_field *f, char buf[CANON_TEXT]);

#endif
