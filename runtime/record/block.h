/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block.h - memory with counted references, in which the reader of a recording keeps payloads.
 *
 * Those who hold references use rec_block_ref and rec_block_unref of recording.h; only the reader
 * sees the inside.  Blocks come from a pool and return to it: fresh memory would cost a page fault
 * for each 4 KiB, as much time as restoring the records in it.  The pool lives until its owner and
 * all of its blocks are gone.  Not for several threads.
 */
#ifndef NTRACE_RECORD_BLOCK_H
#define NTRACE_RECORD_BLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/record/recording.h"

struct block_pool;

struct rec_block {
	size_t refs;
	size_t cap; /* of data */
	struct block_pool *pool;
	struct rec_block *next; /* in the pool */
	_Alignas(16) uint8_t data[];
};

struct block_pool *block_pool_new(void);
/* The owner's end; blocks may live on. */
void block_pool_release(struct block_pool *p);

/* A block with one reference, or NULL. */
struct rec_block *block_new(struct block_pool *p, size_t cap);

#endif
