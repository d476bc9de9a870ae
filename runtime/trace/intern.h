/* SPDX-License-Identifier: Apache-2.0 */
/*
 * intern.h - numbers for names: model ids in records are hashes of the model's name.
 *
 * The id is SipHash-1-3 with a zero key over the text and one byte 0xFF, cut to 50 bits, plus 1; it
 * needs no table to be computed and is the same in every process.  Id 0 means "no name".  Pure
 * functions, any thread.  Who wants readers to know the text calls trace_intern (trace.h).
 */
#ifndef NTRACE_TRACE_INTERN_H
#define NTRACE_TRACE_INTERN_H

#include <stddef.h>
#include <stdint.h>

#define INTERN_ID_BITS 50u

/* SipHash-1-3, zero key, of len bytes of text followed by 0xFF. */
uint64_t intern_hash(const char *text, size_t len);

/* The id of a text: 1 .. 2^50. */
uint64_t intern_id(const char *text, size_t len);

#endif
