/* SPDX-License-Identifier: Apache-2.0 */
/*
 * message.c - see message.h.
 */
#include "proto/message.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

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
