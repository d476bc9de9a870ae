/* SPDX-License-Identifier: Apache-2.0 */
/*
 * varint_fast.h - varints for the hot paths, without a loop per byte.
 *
 * Timestamps and ids take 8 and 9 bytes each; their groups are spread and joined by word operations.
 * Writing stores a whole word, so up to PB_WORD_SLACK bytes behind a varint are scribbled over; reading
 * never goes beyond the end that it is given.
 */
#ifndef NTRACE_PROTO_VARINT_FAST_H
#define NTRACE_PROTO_VARINT_FAST_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

#include "proto/delimited.h"

enum pb_wire { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_LEN = 2, WIRE_FIXED32 = 5 };

#define PB_WORD_SLACK 8

/* Moves the eight 7-bit groups of a 56-bit number into the low bits of eight bytes. */
static inline uint64_t pb_spread_groups(uint64_t v)
{
	v = (v & 0x000000000fffffffull) | (v & 0x00fffffff0000000ull) << 4;
	v = (v & 0x00003fff00003fffull) | (v & 0x0fffc0000fffc000ull) << 2;
	return (v & 0x007f007f007f007full) | (v & 0x3f803f803f803f80ull) << 1;
}

static inline void pb_store_word(uint8_t *p, uint64_t v)
{
	v = htole64(v);
	memcpy(p, &v, sizeof(v));
}

/* As pb_varint_put, but may scribble over the PB_WORD_SLACK bytes that follow. */
static inline uint8_t *pb_varint_put_fast(uint8_t *p, uint64_t v)
{
	const uint64_t more = 0x8080808080808080ull;
	size_t n;

	if (v < 0x80) {
		*p = (uint8_t)v;
		return p + 1;
	}
	if (v >> 56 == 0) {
		n = ((64 - (unsigned)__builtin_clzll(v)) * 9 + 64) / 64; /* 2..8 */
		pb_store_word(p, pb_spread_groups(v) | (more & ((1ull << (8 * (n - 1))) - 1)));
		return p + n;
	}
	pb_store_word(p, pb_spread_groups(v & 0x00ffffffffffffffull) | more);
	return p + 8 + pb_varint_put(p + 8, v >> 56);
}

/* Back again: the low seven bits of eight bytes as one number. */
static inline uint64_t pb_join_groups(uint64_t v)
{
	v = (v & 0x007f007f007f007full) | (v & 0x7f007f007f007f00ull) >> 1;
	v = (v & 0x00003fff00003fffull) | (v & 0x3fff00003fff0000ull) >> 2;
	return (v & 0x000000000fffffffull) | (v & 0x0fffffff00000000ull) >> 4;
}

/* As pb_varint_get, but returns what is behind the varint, NULL when it is damaged. */
static inline const uint8_t *pb_varint_get_fast(const uint8_t *p, const uint8_t *end, uint64_t *ret)
{
	uint64_t word, last;
	size_t n;

	if (p < end && *p < 0x80) {
		*ret = *p;
		return p + 1;
	}
	if (end - p >= 8) {
		memcpy(&word, p, sizeof(word));
		word = le64toh(word);
		last = ~word & 0x8080808080808080ull;
		if (last) {
			last &= -last; /* the lowest: up to it goes the number */
			*ret = pb_join_groups(word & (last - 1));
			return p + ((unsigned)__builtin_ctzll(last) + 1) / 8;
		}
		if (end - p > 8 && p[8] < 0x80) {
			*ret = pb_join_groups(word) | (uint64_t)p[8] << 56;
			return p + 9;
		}
	}
	n = pb_varint_get(p, end, ret);
	return n ? p + n : NULL;
}

#endif
