/* SPDX-License-Identifier: Apache-2.0 */
/*
 * message_json.h - any protobuf-c message as one JSON object, by its descriptor.
 *
 * Field names are those of the .proto; fields with their default value are left out, as are absent
 * ones; enums appear by name; maps as objects; unknown fields as "unknown_fields": number of them.
 */
#ifndef NTRACE_OUTPUT_MESSAGE_JSON_H
#define NTRACE_OUTPUT_MESSAGE_JSON_H

#include <protobuf-c/protobuf-c.h>

#include "agent/output/json_out.h"

/* Writes the members without the braces, so that the caller may add its own. */
void message_json_members(struct json_out *j, const ProtobufCMessage *m);
/* The same with the numbers that are 0. */
void message_json_all(struct json_out *j, const ProtobufCMessage *m);

#endif
