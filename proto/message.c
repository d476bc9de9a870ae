/* SPDX-License-Identifier: Apache-2.0 */
/*
 * message.c - see message.h.
 */
#include "proto/message.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "proto/delimited.h"

#define MAX_DEPTH 32u
#define PER_PIECE 32u /* of memory: what an allocation and the pointer to it take at least */

static void *note_failure(void *data, size_t size)
{
	bool *failed = data;
	void *p = malloc(size ? size : 1);

	*failed |= !p;
	return p;
}

static void give_back(void *data, void *p)
{
	(void)data;
	free(p);
}

int pb_message_unpack(const ProtobufCMessageDescriptor *descriptor, const uint8_t *data, size_t len,
	ProtobufCMessage **ret)
{
	bool failed = false;
	ProtobufCAllocator allocator = {note_failure, give_back, &failed};

	*ret = protobuf_c_message_unpack(descriptor, &allocator, len, data);
	return *ret ? 0 : failed ? -ENOMEM : -EBADMSG;
}

/* ---- what it would take ------------------------------------------------------------------- */

const uint8_t *pb_field_get(const uint8_t *p, const uint8_t *end, struct pb_field *ret)
{
	uint64_t tag, number;
	size_t n = pb_varint_get(p, end, &tag);

	if (n == 0 || tag >> 3 == 0 || tag >> 32 != 0)
		return NULL;
	*ret = (struct pb_field){.number = (uint32_t)(tag >> 3), .wire = tag & 7};
	p += n;
	switch (ret->wire) {
	case 0:
		n = pb_varint_get(p, end, &number);
		return n ? p + n : NULL;
	case 1:
		return end - p >= 8 ? p + 8 : NULL;
	case 5:
		return end - p >= 4 ? p + 4 : NULL;
	case 2:
		n = pb_varint_get(p, end, &ret->len);
		if (n == 0 || ret->len > (uint64_t)(end - p) - n)
			return NULL;
		ret->bytes = p + n;
		return ret->bytes + ret->len;
	default:
		return NULL;
	}
}

/* Of a field that is no message; a packed byte may become eight. */
static uint64_t cost(const ProtobufCFieldDescriptor *f, const struct pb_field *v)
{
	if (f && !v->bytes)
		return sizeof(uint64_t);
	return PER_PIECE + (f && f->label == PROTOBUF_C_LABEL_REPEATED ? 8 * v->len : v->len);
}

/* No message has more than 64 fields. */
static int measure(const ProtobufCMessageDescriptor *d, const uint8_t *p, const uint8_t *end,
	unsigned depth, uint64_t *memory)
{
	uint64_t seen = 0;
	struct pb_field v;

	*memory += d->sizeof_message + PER_PIECE;
	while (p < end) {
		const ProtobufCFieldDescriptor *f;
		uint64_t bit;
		int rc;

		p = pb_field_get(p, end, &v);
		if (!p)
			return -EBADMSG;
		f = protobuf_c_message_descriptor_get_field(d, v.number);
		if (!f || f->type != PROTOBUF_C_TYPE_MESSAGE || !v.bytes) {
			*memory += cost(f, &v);
			continue;
		}
		bit = 1ull << ((f - d->fields) & 63);
		if (depth == 0 || (f->label != PROTOBUF_C_LABEL_REPEATED && seen & bit))
			return -EBADMSG;
		seen |= bit;
		rc = measure(f->descriptor, v.bytes, p, depth - 1, memory);
		if (rc < 0)
			return rc;
	}
	return 0;
}

int pb_message_measure(const ProtobufCMessageDescriptor *descriptor, const uint8_t *data,
	size_t len, uint64_t *ret_memory)
{
	*ret_memory = 0;
	return measure(descriptor, data, data + len, MAX_DEPTH, ret_memory);
}
