/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_out.h - writes JSON to a stream as it goes.
 *
 * A writer of its own because ids use all 64 bits (bit 63 marks kernel spans) and must appear as
 * plain numbers, which jansson's signed integers cannot hold; it also needs no memory per record.
 * Strings that are not UTF-8 get U+FFFD for each bad byte.
 */
#ifndef NTRACE_OUTPUT_JSON_OUT_H
#define NTRACE_OUTPUT_JSON_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct json_out {
	FILE *f;
	bool comma; /* something stands before in this object or array */
};

void jout_begin(struct json_out *j, char bracket); /* '{' or '[' */
void jout_end(struct json_out *j, char bracket);   /* '}' or ']' */
void jout_key(struct json_out *j, const char *key);
void jout_string(struct json_out *j, const char *s, size_t len);
void jout_unsigned(struct json_out *j, uint64_t v);
void jout_signed(struct json_out *j, int64_t v);
void jout_double(struct json_out *j, double v);
void jout_bool(struct json_out *j, bool v);

/* A key and its value. */
void jout_key_text(struct json_out *j, const char *key, const char *v);
void jout_key_unsigned(struct json_out *j, const char *key, uint64_t v);
void jout_key_bool(struct json_out *j, const char *key, bool v);

#endif
