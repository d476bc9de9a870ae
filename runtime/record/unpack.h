/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack.h - the frames of one block: decompressed at once, restored one by one.
 *
 * Restoring waits until a frame is asked for, so that its records are in the cache when they are
 * used.  All payloads of a block lie in one rec_block.
 */
#ifndef NTRACE_RECORD_UNPACK_H
#define NTRACE_RECORD_UNPACK_H

#include <zstd.h>

#include "runtime/record/block.h"
#include "runtime/record/frame.h"

struct unpack {
	ZSTD_DCtx *zstd;
	uint8_t *frames; /* decompressed, with room for REC_COLUMNS_SLACK behind */
	size_t cap, size, at;
	struct rec_block *payloads;
	size_t used; /* of payloads */
};

/* Takes a block whose checks are right.  so_far: of the blocks before, to which it is added; NULL: it
 * does not matter.  -EBADMSG when its contents are not what they should be, or more than the ratio
 * allows; -ENOMEM. */
int unpack_block(struct unpack *u, struct block_pool *pool, const struct rec_block_head *head,
	const uint8_t *data, struct rec_ratio *so_far);
/* The next frame: 1, 0 at the end, -EBADMSG for a frame that is damaged (the next call goes on). */
int unpack_next(struct unpack *u, struct rec_frame *ret_frame, const uint8_t **ret_payload);
void unpack_reset(struct unpack *u); /* no block */
void unpack_free(struct unpack *u);

#endif
