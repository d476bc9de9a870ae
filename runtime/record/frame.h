/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frame.h - what writer and reader of a recording share: checksum, padding, limits.
 */
#ifndef NTRACE_RECORD_FRAME_H
#define NTRACE_RECORD_FRAME_H

#include <stddef.h>

#include "runtime/record/recording.h"

#define REC_SEGMENT_BYTES (64u << 20) /* a writer begins a new segment beyond this */
#define REC_MAX_SEGMENTS 1000000u     /* what REC_SEGMENT_FORMAT has digits for */

/* Bytes of padding behind a payload of this size. */
static inline size_t rec_padding(size_t size)
{
	return (8 - size % 8) % 8;
}

/* The frame's checksum over its own fields and a payload in two pieces. */
uint32_t rec_frame_check(const struct rec_frame *f, const void *head, size_t head_size,
	const void *body, size_t body_size);

#endif
