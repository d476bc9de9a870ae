/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block.c - a pool of buffers with counted references.
 */
#include "runtime/record/block.h"

#include <stdbool.h>
#include <stdlib.h>

#include "runtime/record/frame.h"

/* All blocks of the usual size are alike, so that any can be used again. */
#define USUAL_BYTES (REC_BLOCK_PAYLOAD + (64u << 10))
#define MAX_FREE 256u /* 80 MiB */

struct block_pool {
	struct rec_block *free;
	unsigned free_count;
	size_t in_use;
	bool released;
};

struct block_pool *block_pool_new(void)
{
	return calloc(1, sizeof(struct block_pool));
}

static void drop_if_unused(struct block_pool *p)
{
	if (!p->released)
		return;
	while (p->free) {
		struct rec_block *b = p->free;

		p->free = b->next;
		free(b);
	}
	p->free_count = 0;
	if (p->in_use == 0)
		free(p);
}

void block_pool_release(struct block_pool *p)
{
	if (!p)
		return;
	p->released = true;
	drop_if_unused(p);
}

struct rec_block *block_new(struct block_pool *p, size_t cap)
{
	struct rec_block *b = cap <= USUAL_BYTES ? p->free : NULL;

	if (b) {
		p->free = b->next;
		p->free_count--;
	} else {
		if (cap < USUAL_BYTES)
			cap = USUAL_BYTES;
		b = malloc(sizeof(*b) + cap);
		if (!b)
			return NULL;
		b->cap = cap;
		b->pool = p;
	}
	b->refs = 1;
	p->in_use++;
	return b;
}

struct rec_block *rec_block_ref(struct rec_block *b)
{
	b->refs++;
	return b;
}

void rec_block_unref(struct rec_block *b)
{
	if (!b || --b->refs)
		return;
	struct block_pool *p = b->pool;

	p->in_use--;
	if (b->cap == USUAL_BYTES && p->free_count < MAX_FREE && !p->released) {
		b->next = p->free;
		p->free = b;
		p->free_count++;
		return;
	}
	free(b);
	drop_if_unused(p);
}

size_t rec_block_bytes(const struct rec_block *b)
{
	return sizeof(*b) + b->cap;
}
