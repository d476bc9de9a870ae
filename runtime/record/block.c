/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block.c - see block.h.
 */
#include "runtime/record/block.h"

#include <stdlib.h>

struct rec_block *rec_block_new(size_t cap)
{
	struct rec_block *b = malloc(sizeof(*b) + cap);

	if (b) {
		b->refs = 1;
		b->cap = cap;
	}
	return b;
}

struct rec_block *rec_block_ref(struct rec_block *b)
{
	b->refs++;
	return b;
}

void rec_block_unref(struct rec_block *b)
{
	if (b && --b->refs == 0)
		free(b);
}

size_t rec_block_bytes(const struct rec_block *b)
{
	return sizeof(*b) + b->cap;
}
