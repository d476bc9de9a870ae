/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block.h - memory with counted references, in which the reader of a recording keeps payloads.
 *
 * Those who hold references use rec_block_ref and rec_block_unref of recording.h; only the reader
 * sees the inside.  Not for several threads.
 */
#ifndef NTRACE_RECORD_BLOCK_H
#define NTRACE_RECORD_BLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/record/recording.h"

struct rec_block {
	size_t refs;
	size_t cap; /* of data */
	_Alignas(16) uint8_t data[];
};

/* A block with one reference, or NULL. */
struct rec_block *rec_block_new(size_t cap);

#endif
