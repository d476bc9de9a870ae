/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cut_blocks.c - a list of blocks in the order of the recording, and a place in it.
 */
#include "runtime/record/cut_blocks.h"

#include <stdlib.h>

#include "runtime/record/session.h"

int cut_blocks_note(struct cut_blocks *b, uint32_t segment, uint64_t offset, uint32_t *ret_block)
{
	const struct cut_block *last = b->count ? &b->list[b->count - 1] : NULL;

	if (!last || last->segment != segment || last->offset != offset) {
		int rc = session_grow(&b->list, &b->cap, b->count + 1, sizeof(*b->list));

		if (rc < 0)
			return rc;
		b->list[b->count++] = (struct cut_block){offset, segment, false};
	}
	*ret_block = (uint32_t)(b->count - 1);
	return 0;
}

bool cut_blocks_wanted(void *blocks, uint32_t segment, uint64_t offset)
{
	struct cut_blocks *b = blocks;

	for (; b->next < b->count; b->next++) {
		const struct cut_block *at = &b->list[b->next];

		if (at->segment == segment && at->offset == offset)
			return at->wanted;
		if (at->segment > segment || (at->segment == segment && at->offset > offset))
			break;
	}
	return false;
}

void cut_blocks_free(struct cut_blocks *b)
{
	free(b->list);
	*b = (struct cut_blocks){0};
}
