/* SPDX-License-Identifier: Apache-2.0 */
/*
 * delimited.h - streams of varint-delimited protobuf messages, as ntrace.pb, cpu_util.pb and
 * host_mem.pb are framed.
 */
#ifndef NTRACE_PROTO_DELIMITED_H
#define NTRACE_PROTO_DELIMITED_H

#include <stddef.h>
#include <stdint.h>

#define PB_MAX_VARINT 10

/* Writes v; returns its length (1..10). */
size_t pb_varint_put(uint8_t out[PB_MAX_VARINT], uint64_t v);
size_t pb_varint_size(uint64_t v);
/* Reads a varint of at most end - p bytes; returns its length, 0 when cut off or longer than 64
 * bits. */
size_t pb_varint_get(const uint8_t *p, const uint8_t *end, uint64_t *ret);

/*
 * Iterates over a stream in memory.  *pos is the caller's cursor, 0 at first.  Returns 1 and the
 * message; 0 at the end; -EBADMSG when the prefix at *pos is damaged or says more than is left
 * (*pos stays).
 */
int pb_delimited_next(
	const uint8_t *buf, size_t size, size_t *pos, const uint8_t **ret_msg, size_t *ret_len);

#endif
