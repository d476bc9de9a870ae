/* SPDX-License-Identifier: Apache-2.0 */
/*
 * footer.h - what a writer notes while it writes, for the footer of the recording.
 *
 * The index has a fixed number of places: when they are full, neighbours are joined, so that a
 * footer stays small however long a recording becomes.  Of the counters all are kept, but a footer has
 * the first FOOTER_MAX_COUNTERS of them only: whoever needs more reads the frames.
 */
#ifndef NTRACE_RECORD_FOOTER_H
#define NTRACE_RECORD_FOOTER_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/record/map64.h"
#include "runtime/record/recording.h"

#define FOOTER_MAX_ENTRIES 65536u  /* even; 2.5 MiB */
#define FOOTER_MAX_COUNTERS 65536u /* 1.5 MiB; in a footer */

struct footer {
	struct rec_footer head;
	struct rec_footer_counter *counters; /* head.counters of them; see footer_sort */
	struct map64 index;		     /* hash of source, id, sub -> place */
	struct rec_index *entries;
	size_t counter_cap, entry_cap;
	uint32_t per_entry; /* blocks that an entry takes */
};

/* Notes a COUNTERS frame.  0 or -ENOMEM. */
int footer_counters(struct footer *f, uint16_t source, const uint8_t *rows, size_t size);

/* Notes a block (entry->blocks is 1).  0 or -ENOMEM. */
int footer_block(struct footer *f, const struct rec_index *entry, uint64_t payload_bytes);

/* Memory for so many counters and entries more: noting them cannot fail then.  0 or -ENOMEM. */
int footer_reserve(struct footer *f, size_t counters, size_t entries);

/* Sorts the counters by source, id and sub, when all have been noted. */
void footer_sort(struct footer *f);

/* How many of the counters a footer has. */
uint32_t footer_written(const struct footer *f);

/* The payload of the FOOTER frame, to be freed; NULL when memory is short.  Sorts the counters. */
uint8_t *footer_build(struct footer *f, size_t *ret_size);

void footer_free(struct footer *f);

#endif
