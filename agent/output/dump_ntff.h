/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dump_ntff.h - prints a device profile: what its message says, then the items of each ring, one line
 * each, as JSON; or a timeline of each core as text.
 *
 * nc_idx is the physical core within its device, vnc the logical core of the program, from 0.  JSON lines have `what` first.  In their order: profile, node, subgraph; for each core core, sync_point, execution and
 * the items of its rings; loss; total.  Times of items are the core's own in picoseconds (*_ps); boot_ns is
 * CLOCK_BOOTTIME of the start, right to bound_ns, and left out where no sync point says it.
 */
#ifndef NTRACE_OUTPUT_DUMP_NTFF_H
#define NTRACE_OUTPUT_DUMP_NTFF_H

#include <stdio.h>

#include "runtime/record/ntff_records.h"

/* 0 or -ENOMEM; whether the stream took it all is for the caller to see. */
int dump_ntff_json(FILE *f, const struct ntff_profile *p);
int dump_ntff_text(FILE *f, const struct ntff_profile *p);

/* Between the two: counted as they are printed. */
struct ntff_sums {
	uint64_t items[NTFF_WHATS], no_start, no_end, lost_marks;
};
void ntff_sums_add(struct ntff_sums *to, const struct ntff_cursor *c);

/* "pe", "dma3", "topsp": the unit that an item is of, "nc" for those of the whole core. */
const char *ntff_place(
	const struct ntff_cursor *c, const struct ntff_item *item, char buf[NTFF_UNIT_BYTES]);

/* What was lost of all rings, as the file says. */
struct ntff_lost {
	uint64_t records;
	bool at_least;
};
struct ntff_lost ntff_lost_sum(const struct ntff_profile *p);

#endif
