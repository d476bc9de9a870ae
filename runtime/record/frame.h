/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frame.h - what writer and reader of a recording share: blocks, checksums, padding, limits.
 */
#ifndef NTRACE_RECORD_FRAME_H
#define NTRACE_RECORD_FRAME_H

#include <stddef.h>

#include "runtime/record/recording.h"

#define REC_SEGMENT_BYTES (64u << 20) /* a writer begins a new segment beyond this */
#define REC_MAX_SEGMENTS 1000000u     /* what REC_SEGMENT_FORMAT has digits for */

/* A writer closes a block when this much has come in, and splits batches to it: what a damaged spot
 * costs at most, and what a reader that keeps a payload keeps. */
#define REC_BLOCK_PAYLOAD (256u << 10)
/* The most that a block's frames may take, as they lie in the block and restored. */
#define REC_MAX_BLOCK (REC_MAX_PAYLOAD + (1u << 20))

/*
 * So that a small file cannot be made to stand for endless frames, what blocks restore is bounded by
 * what they take on disk, all blocks up to one together.  Recordings of inference restore 20 times
 * their size; a writer that would come to more leaves blocks as they are.
 */
#define REC_FREE_PAYLOAD (1u << 20) /* in any recording */
#define REC_MAX_RATIO 200u	    /* and so much for each byte of blocks */

struct rec_ratio {
	uint64_t payload, bytes; /* restored, with padding; of blocks with their heads */
};

/* May blocks of so many bytes more restore to so much more? */
static inline bool rec_ratio_allows(const struct rec_ratio *r, uint64_t payload, uint64_t bytes)
{
	return r->payload + payload <= REC_FREE_PAYLOAD + REC_MAX_RATIO * (r->bytes + bytes);
}

#define REC_BLOCK_MAGIC 0x4b42544eu /* "NTBK" */
#define REC_TAIL_MAGIC 0x4c54544eu  /* "NTTL" */
#define REC_CODED_MAGIC 0x4346544eu /* "NTFC": a frame whose payload is coded (columns.h) */

enum rec_compression { REC_STORED, REC_ZSTD };

/* Head of a block; `stored` bytes follow. */
struct rec_block_head {
	uint32_t magic;
	uint32_t compression; /* enum rec_compression */
	uint32_t number;      /* of the block in the recording, from 0 */
	uint32_t frames;
	uint32_t stored; /* bytes behind this head */
	uint32_t size;	 /* of those, decompressed */
	uint32_t types;	 /* bit t: a frame of type t is inside; bit 0: of a type above 31 */
	uint32_t zero;
	uint64_t first_ns, last_ns; /* times of the first and the last frame */
	uint64_t data_check;	    /* XXH3-64 of the stored bytes */
	uint64_t head_check;	    /* XXH3-64 of this head up to here */
};

/* The last bytes of a recording that ended in order. */
struct rec_tail {
	uint32_t magic;
	uint32_t segment; /* where the block with the footer is */
	uint64_t offset;  /* of its head in that segment */
	uint64_t zero;
	uint64_t check; /* XXH3-64 of the bytes before */
};

_Static_assert(sizeof(struct rec_block_head) == 64, "rec_block_head");
_Static_assert(sizeof(struct rec_tail) == 32, "rec_tail");

/* Bytes of padding behind a payload of this size. */
static inline size_t rec_padding(size_t size)
{
	return (8 - size % 8) % 8;
}

static inline uint32_t rec_type_bit(uint16_t type)
{
	return type < 32 ? 1u << type : 1u;
}

/* The frame's checksum over its own fields and a payload in two pieces. */
uint32_t rec_frame_check(const struct rec_frame *f, const void *head, size_t head_size,
	const void *body, size_t body_size);

/* XXH3-64 */
uint64_t rec_check(const void *data, size_t size);

#endif
