/* SPDX-License-Identifier: Apache-2.0 */
/*
 * footer.h - what a writer notes while it writes, for the footer of the recording.
 *
 * The index has a fixed number of places: when they are full, neighbours are joined, so that a
 * footer stays small however long a recording becomes.
 */
#ifndef NTRACE_RECORD_FOOTER_H
#define NTRACE_RECORD_FOOTER_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/record/recording.h"

#define FOOTER_MAX_ENTRIES 65536u  /* even; 2.5 MiB */
#define FOOTER_MAX_COUNTERS 65536u /* 1.5 MiB; more are not noted */

struct footer {
	struct rec_footer head;
	struct rec_footer_counter *counters; /* sorted by source, id, sub */
	struct rec_index *entries;
	size_t counter_cap, entry_cap;
	uint32_t per_entry; /* blocks that an entry takes */
};

/* Notes a COUNTERS frame.  0 or -ENOMEM. */
int footer_counters(struct footer *f, uint16_t source, const uint8_t *rows, size_t size);

/* Notes a block (entry->blocks is 1).  0 or -ENOMEM. */
int footer_block(struct footer *f, const struct rec_index *entry, uint64_t payload_bytes);

/* The payload of the FOOTER frame, to be freed; NULL when memory is short. */
uint8_t *footer_build(const struct footer *f, size_t *ret_size);

void footer_free(struct footer *f);

#endif
