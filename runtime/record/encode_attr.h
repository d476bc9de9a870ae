/* SPDX-License-Identifier: Apache-2.0 */
/*
 * encode_attr.h - attributes as bytes: keys encoded beforehand, numbers by table.
 *
 * An attribute is a map entry: tag, length, key, value.  All but the two lengths and the value is known
 * from the key, so it is kept as one piece and copied at once; the lengths are filled in behind it.
 * Whoever calls has room for ATTR_ROOM bytes and a text.
 */
#ifndef NTRACE_RECORD_ENCODE_ATTR_H
#define NTRACE_RECORD_ENCODE_ATTR_H

#include <stdint.h>
#include <string.h>

#include "proto/varint_fast.h"
#include "runtime/base/put_number.h"

#define ATTR_KEY_BYTES 48u
#define ATTR_ROOM 96u /* a key and a number */
#define ATTR_TAG 0x62 /* field 12, a message */

struct attr_key {
	uint8_t bytes[ATTR_KEY_BYTES]; /* tag, length, tag 1, length, key, tag 2, length */
	uint32_t len;
};

/* A key of at most ATTR_KEY_BYTES - 6 bytes. */
#define ATTR_KEY(key) attr_key(key, sizeof(key) - 1)

static inline struct attr_key attr_key(const char *key, size_t len)
{
	struct attr_key k = {.len = (uint32_t)len + 6};

	k.bytes[0] = ATTR_TAG;
	k.bytes[2] = 0x0a;
	k.bytes[3] = (uint8_t)len;
	memcpy(&k.bytes[4], key, len < ATTR_KEY_BYTES - 6 ? len : ATTR_KEY_BYTES - 6);
	k.bytes[4 + len] = 0x12;
	return k;
}

/* Where the value goes. */
static inline uint8_t *attr_begin(uint8_t *p, const struct attr_key *k)
{
	memcpy(p, k->bytes, ATTR_KEY_BYTES);
	return p + k->len;
}

/* The value ends at `end`, within 64 bytes; returns it. */
static inline uint8_t *attr_end(uint8_t *p, const struct attr_key *k, uint8_t *end)
{
	size_t total = (size_t)(end - p);

	p[1] = (uint8_t)(total - 2);
	p[k->len - 1] = (uint8_t)(total - k->len);
	return end;
}

static inline uint8_t *attr_decimal(uint8_t *p, const struct attr_key *k, uint64_t v)
{
	return attr_end(p, k, put_decimal(attr_begin(p, k), v));
}

static inline uint8_t *attr_signed(uint8_t *p, const struct attr_key *k, int64_t v)
{
	return attr_end(p, k, put_signed(attr_begin(p, k), v));
}

static inline uint8_t *attr_hex(uint8_t *p, const struct attr_key *k, uint64_t v, unsigned least)
{
	return attr_end(p, k, put_hex(attr_begin(p, k), v, least));
}

/* A text of any length, for which there is room. */
static inline uint8_t *attr_text(uint8_t *p, const struct attr_key *k, const char *text, size_t len)
{
	size_t key = k->len - 6, entry = 2 + key + 1 + pb_varint_size(len) + len;

	if (len <= 64) {
		uint8_t *value = attr_begin(p, k);

		memcpy(value, text, len);
		return attr_end(p, k, value + len);
	}
	*p++ = ATTR_TAG;
	p += pb_varint_put(p, entry);
	memcpy(p, &k->bytes[2], key + 3);
	p += key + 3;
	p += pb_varint_put(p, len);
	memcpy(p, text, len);
	return p + len;
}

#endif
