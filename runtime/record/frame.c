/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frame.c - the checksums of a recording.  A frame's is that of 16 bytes of the frame (type, source,
 * size, time_ns) followed by the payload, of which the low 32 bits count.
 */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <string.h>

#include "runtime/record/frame.h"

static_assert(
	__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "frames are written as they lie in memory");

uint32_t rec_frame_check(const struct rec_frame *f, const void *head, size_t head_size,
	const void *body, size_t body_size)
{
	uint8_t fields[16];
	XXH3_state_t state;

	memcpy(fields, &f->type, 2);
	memcpy(fields + 2, &f->source, 2);
	memcpy(fields + 4, &f->size, 4);
	memcpy(fields + 8, &f->time_ns, 8);
	XXH3_64bits_reset(&state);
	XXH3_64bits_update(&state, fields, sizeof(fields));
	if (head_size)
		XXH3_64bits_update(&state, head, head_size);
	if (body_size)
		XXH3_64bits_update(&state, body, body_size);
	return (uint32_t)XXH3_64bits_digest(&state);
}

uint64_t rec_check(const void *data, size_t size)
{
	return XXH3_64bits(data, size);
}
