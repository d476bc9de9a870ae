/* SPDX-License-Identifier: Apache-2.0 */
/*
 * message.h - protobuf-c's unpack with the reason when it fails: it gives NULL for damaged bytes and
 * for a lack of memory alike, which are not the same to those who read the message about it.
 */
#ifndef NTRACE_PROTO_MESSAGE_H
#define NTRACE_PROTO_MESSAGE_H

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>
#include <stdint.h>

/* 0 and the message, to be freed with protobuf_c_message_free_unpacked(m, NULL); -EBADMSG; -ENOMEM. */
int pb_message_unpack(const ProtobufCMessageDescriptor *descriptor, const uint8_t *data, size_t len,
	ProtobufCMessage **ret);

#endif
