/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frames_input.h - recordings from a fuzzer's bytes.
 *
 * Checksums would keep a fuzzer out of everything behind them.  So its bytes are not a recording but
 * what one is made of: a head, then rows, each of which becomes a frame.  Checksums, block heads and
 * the tail are made here.  Any bytes are a valid input; what is beyond the end reads as 0.
 */
#ifndef NTRACE_TESTS_FRAMES_INPUT_H
#define NTRACE_TESTS_FRAMES_INPUT_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/event_codec.h"

enum frames_flag {
	FRAMES_RAW = 1,	 /* what follows the head is segment 0; checksums in it are put right */
	FRAMES_ZSTD = 2, /* blocks are compressed */
	FRAMES_V1 = 4,	 /* format version 1 */
	FRAMES_TAIL = 8, /* a tail that names the last block */
	FRAMES_EXTENDED = 16, /* merge with --kernel-events=extended */
	FRAMES_SPILL = 32,    /* merge again with little memory */
	FRAMES_CUT = 64,
	FRAMES_SUMMARY = 128,
};

struct frames_head {
	uint8_t flags;		 /* enum frames_flag */
	uint8_t core;		 /* for the cut: core + 1, 0 = all */
	uint16_t pid;		 /* low bits of it; 0 = all */
	uint16_t from_ms, to_ms; /* 0: no limit */
};

enum frames_op {
	FRAMES_TYPE = 0x1f, /* bits of the frame's type; FRAMES_SEGMENT: begins a segment instead */
	FRAMES_SEGMENT = 0x1f,
	FRAMES_BLOCK = 0x20, /* begins a block */
	FRAMES_CODED = 0x40, /* the payload is in coded form */
	FRAMES_WRONG = 0x80, /* the frame's checksum is wrong */
};

/* `size` bytes of payload follow. */
struct frames_row {
	uint8_t op; /* enum frames_op */
	uint8_t source;
	uint16_t size;
	uint32_t time_us; /* since FRAMES_BOOT_NS */
};

#define FRAMES_BOOT_NS 1000000000ull

static_assert(sizeof(struct frames_head) == 8, "frames_head");
static_assert(sizeof(struct frames_row) == 8, "frames_row");

#define FRAMES_MAX_SEGMENTS 3u

struct frames_made {
	struct pb_buf segments[FRAMES_MAX_SEGMENTS];
	unsigned count;
};

/* The head of an input. */
struct frames_head frames_head(const uint8_t *data, size_t size);

/* The row at *pos, its size cut to what is left; false at the end.  *pos moves behind it. */
int frames_row_next(const uint8_t *data, size_t size, size_t *pos, struct frames_row *ret,
	const uint8_t **ret_payload);

/* The segments of a recording; frames_free in any case. */
void frames_make(const uint8_t *data, size_t size, struct frames_made *ret);
void frames_free(struct frames_made *m);

#endif
