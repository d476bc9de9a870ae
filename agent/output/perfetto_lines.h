/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfetto_lines.h - where slices stand: tracks on which they nest.
 *
 * A line is a thread, a NeuronCore, one of its physical cores or a unit of that.  It has lanes, each with a track of its
 * own, because slices of one track must lie within each other.  A thread has one lane; a core takes
 * another when what starts cannot lie in what runs.
 *
 * Where a slice starts must be decided before anything is known of its end.  So it happens that a span
 * ends while later ones on its lane are open: these are *cut*, their slices end there.  Most never end
 * (their stop was lost); should one end after all, its rest is drawn on a spare lane as a whole, when
 * its end is known.
 *
 * Nothing here writes; lines remember and decide.  What they hold until the end is a line for each
 * thread and core (about 200 bytes with its lane) and room for as many spans as were open there at once.
 */
#ifndef NTRACE_OUTPUT_PERFETTO_LINES_H
#define NTRACE_OUTPUT_PERFETTO_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/record/map64.h"

#define PFT_DEPTH 512u /* of slices within each other; more are cut */
#define PFT_LANES 8u   /* of a core */
#define PFT_CUTS 4096u /* cut spans that are remembered; of others only how many there were */

#define PFT_UNIT_BITS 8u

enum pft_line_kind {
	PFT_LINE_THREAD = 1,
	PFT_LINE_CORE,
	PFT_LINE_PHYSICAL,
	PFT_LINE_UNIT,
	PFT_LINE_QUEUE, /* of a device, where the driver rings doorbells */
};

/* Types of spans from here on are work that a driver call does. */
#define PFT_WORK 0xff00u
#define PFT_NO_QUEUE 0xffffu /* asynchronous copies of a device */

/* A span that has started. */
struct pft_span {
	uint64_t id;
	uint32_t name; /* iid; 0: it has none */
	uint16_t type;
	bool is_call;
	uint32_t call; /* the user's */
};

struct pft_lane {
	uint32_t track; /* 0: not made yet */
	uint32_t depth, room;
	struct pft_span *stack; /* room */
};

struct pft_line {
	enum pft_line_kind kind;
	uint32_t number; /* thread id, or core; of a queue: device << 16 | engine */
	uint32_t
		physical; /* of a unit: << PFT_UNIT_BITS | its number (pft_unit); of a queue: its number */
	uint32_t place; /* in the list of lines */
	uint32_t lane_count;
	struct pft_lane *lanes; /* of a thread one, of a core up to PFT_LANES */
};

struct pft_cut {
	struct pft_span span;
	uint64_t time;
};

/* Zero-initialise; pft_lines_free at the end. */
struct pft_lines {
	struct map64 by_key;  /* line's key -> place in lines + 1 */
	struct map64 by_span; /* id of an open span -> place << 8 | lane */
	struct map64 by_cut;  /* id of a cut span -> place in cuts */
	struct pft_line **lines;
	uint32_t count;
	struct pft_cut *cuts; /* a ring of PFT_CUTS */
	uint32_t cut_next;
	uint64_t cuts_forgotten;
	struct pft_line *newest; /* what was found last */
	uint64_t newest_key;
};

void pft_lines_free(struct pft_lines *l);

/* The line; made when it is new (then lane_count is 0).  NULL: no memory. */
struct pft_line *pft_line_get(
	struct pft_lines *l, enum pft_line_kind kind, uint32_t number, uint32_t physical);

/* The lane of a line with this number, made when it is new; valid until another is made.  NULL: no memory, or beyond PFT_LANES. */
struct pft_lane *pft_lane_get(struct pft_line *line, uint32_t lane);

/*
 * Where a span of a type shall start: returns the lane's number and in *ret_keep how many of the spans
 * that are open there stay so; the others are to be cut before.
 */
uint32_t pft_lines_place(
	const struct pft_line *line, uint16_t type, bool is_call, uint32_t *ret_keep);

/* Puts a span onto a lane, which is less than PFT_DEPTH deep.  0; -EEXIST: a span of its id is open; -ENOMEM. */
int pft_lines_open(
	struct pft_lines *l, struct pft_line *line, uint32_t lane, const struct pft_span *s);

/* Where the open span of an id is: its lane and its place in the stack there.  NULL: there is none. */
struct pft_lane *pft_lines_find(
	const struct pft_lines *l, uint64_t id, struct pft_line **ret_line, uint32_t *ret_place);

/* Takes the innermost span off a lane. */
struct pft_span pft_lines_close(struct pft_lines *l, struct pft_lane *lane);

/* Remembers a span that was taken off before its end.  0 or -ENOMEM. */
int pft_lines_cut(struct pft_lines *l, const struct pft_span *s, uint64_t time);

/* Gives back the cut span of an id and forgets it; false: there is none. */
bool pft_lines_cut_take(struct pft_lines *l, uint64_t id, struct pft_cut *ret);

/* Takes one of the cut spans that were forgotten; false: every cut one is remembered. */
bool pft_lines_cut_forgotten(struct pft_lines *l);

#endif
