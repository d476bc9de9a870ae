/* SPDX-License-Identifier: Apache-2.0 */
/*
 * delimited.c - varints, and the walk over a stream of varint-delimited messages.
 *
 * The input may be a foreign or damaged file: every length is compared with what is left before it
 * is believed.
 */
#include "proto/delimited.h"

#include <errno.h>

size_t pb_varint_put(uint8_t out[PB_MAX_VARINT], uint64_t v)
{
	size_t n = 0;

	while (v >= 0x80) {
		out[n++] = (uint8_t)(v | 0x80);
		v >>= 7;
	}
	out[n++] = (uint8_t)v;
	return n;
}

size_t pb_varint_size(uint64_t v)
{
	/* ceil(bits / 7) for bits = 1..64, without a division */
	unsigned bits = 64 - (unsigned)__builtin_clzll(v | 1);

	return (bits * 9 + 64) / 64;
}

size_t pb_varint_get(const uint8_t *p, const uint8_t *end, uint64_t *ret)
{
	size_t left = (size_t)(end - p);
	uint64_t v = 0;

	for (size_t n = 0; n < left && n < PB_MAX_VARINT; n++) {
		v |= (uint64_t)(p[n] & 0x7f) << (7 * n);
		if (p[n] & 0x80)
			continue;
		if (n == PB_MAX_VARINT - 1 && p[n] > 1)
			return 0; /* bits 64 and up */
		*ret = v;
		return n + 1;
	}
	return 0;
}

int pb_delimited_next(
	const uint8_t *buf, size_t size, size_t *pos, const uint8_t **ret_msg, size_t *ret_len)
{
	uint64_t len;
	size_t n;

	if (*pos >= size)
		return 0;
	n = pb_varint_get(buf + *pos, buf + size, &len);
	if (n == 0 || len > size - *pos - n)
		return -EBADMSG;
	*ret_msg = buf + *pos + n;
	*ret_len = (size_t)len;
	*pos += n + (size_t)len;
	return 1;
}
