/* SPDX-License-Identifier: Apache-2.0 */
/*
 * message.h - protobuf-c's unpack with the reason when it fails: it gives NULL for damaged bytes and
 * for a lack of memory alike, which are not the same to those who read the message about it.  And what it would
 * cost, which depends on who wrote the bytes.
 */
#ifndef NTRACE_PROTO_MESSAGE_H
#define NTRACE_PROTO_MESSAGE_H

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>
#include <stdint.h>

/* 0 and the message, to be freed with protobuf_c_message_free_unpacked(m, NULL); -EBADMSG; -ENOMEM. */
int pb_message_unpack(const ProtobufCMessageDescriptor *descriptor, const uint8_t *data, size_t len,
	ProtobufCMessage **ret);

/* One field of a message as it stands in the bytes. */
struct pb_field {
	uint32_t number, wire;
	const uint8_t *bytes; /* behind the length, of wire type 2; else NULL */
	uint64_t len;
};

/* Reads the field at p; the byte behind it, NULL when it is not whole or none. */
const uint8_t *pb_field_get(const uint8_t *p, const uint8_t *end, struct pb_field *ret);

/*
 * What unpacking would take of memory, roughly, before it is tried on bytes that nobody vouches for: a message
 * of many empty ones takes a hundred times its size.  -EBADMSG: the bytes are no such message, or have a
 * message twice where there can be one; protobuf-c would put the two together, and takes time that grows with
 * the square of their number.  Messages that hold themselves are followed 32 deep.
 */
int pb_message_measure(const ProtobufCMessageDescriptor *descriptor, const uint8_t *data,
	size_t len, uint64_t *ret_memory);

#endif
