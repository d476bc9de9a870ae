/* SPDX-License-Identifier: Apache-2.0 */
/*
 * utf8.h - what is UTF-8 and what is not, in texts that come from elsewhere.
 */
#ifndef NTRACE_BASE_UTF8_H
#define NTRACE_BASE_UTF8_H

#include <stddef.h>

/* Bytes of the UTF-8 sequence that begins at text, 1 to 4 and at most `left`; 0 when none does
 * (overlong forms, surrogates and what is beyond U+10FFFF are none, or left is 0).  NUL is a sequence of
 * one.  Reads at most `left` bytes. */
size_t utf8_length(const void *text, size_t left);

/* How much of a text of len bytes to take for at most `most`, without cutting a sequence. */
size_t utf8_cut(const void *text, size_t len, size_t most);

#endif
