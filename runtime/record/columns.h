/* SPDX-License-Identifier: Apache-2.0 */
/*
 * columns.h - a reversible, compact form of batches of driver calls and of runtime records.
 *
 * Neighbouring records differ in few bytes.  The coded form stores, field by field, only how each
 * record differs from a prediction; zstd then has an eighth of the bytes to look at, which makes
 * writing and above all reading several times as fast.  docs/recording-format.md describes the
 * bytes; nothing but speed and size depends on this module, and any batch that is not made of whole
 * records simply stays as it is.
 */
#ifndef NTRACE_RECORD_COLUMNS_H
#define NTRACE_RECORD_COLUMNS_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/record/recording.h"

/* Bytes behind a coded payload that rec_columns_decode may read (never uses). */
#define REC_COLUMNS_SLACK 1024u

/* Bytes that a payload of this type begins with before its records: sizeof(struct rec_runtime) or
 * 0.  The functions below take this head and the records apart. */
size_t rec_columns_head(enum rec_type type);

/* The longest prefix that is made of whole records and, unless the first alone is longer, has at
 * most `max` bytes; 0: there is none, or the type has no coded form. */
size_t rec_columns_prefix(
	enum rec_type type, const uint8_t *records, size_t size, size_t max, size_t *ret_count);

/* Room that the coded form of so many records may need, at most. */
size_t rec_columns_bound(size_t count);

/* Codes `count` whole records of together `size` bytes into out (rec_columns_bound).  Returns the
 * coded size. */
size_t rec_columns_encode(enum rec_type type, const void *head, const uint8_t *records, size_t size,
	size_t count, uint8_t *out);

/* The size of the payload that a coded one stands for.  0 or -EBADMSG. */
int rec_columns_size(const uint8_t *coded, size_t size, uint32_t *ret_size);

/* Restores the payload: exactly out_size (of rec_columns_size) bytes.  0 or -EBADMSG; never reads
 * or writes elsewhere, whatever the bytes. */
int rec_columns_decode(
	enum rec_type type, const uint8_t *coded, size_t size, uint8_t *out, size_t out_size);

#endif
