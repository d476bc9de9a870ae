/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cut_blocks.h - which blocks of a recording hold anything that a cut keeps.
 *
 * The first pass over a recording notes each block and marks those that are wanted; the second asks for
 * each in the same order and reads no others.  (The index of the footer has the times of frames, which
 * say when records were drained, not when they happened; so it cannot tell.)
 */
#ifndef NTRACE_RECORD_CUT_BLOCKS_H
#define NTRACE_RECORD_CUT_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cut_block {
	uint64_t offset; /* of its head in the segment */
	uint32_t segment;
	bool wanted;
};

struct cut_blocks {
	struct cut_block *list; /* in the order of the recording */
	size_t count, cap;
	size_t next; /* to be asked for */
};

/* Notes that the block at this place is being read; *ret_block: its number here.  0 or -ENOMEM. */
int cut_blocks_note(struct cut_blocks *b, uint32_t segment, uint64_t offset, uint32_t *ret_block);

static inline void cut_blocks_want(struct cut_blocks *b, uint32_t block)
{
	if (block < b->count)
		b->list[block].wanted = true;
}

/* A rec_reader_filter: is the block wanted?  One that was not noted has been written since: it is not. */
bool cut_blocks_wanted(void *blocks, uint32_t segment, uint64_t offset);
void cut_blocks_free(struct cut_blocks *b);

#endif
