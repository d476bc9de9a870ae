/* SPDX-License-Identifier: Apache-2.0 */
/*
 * message_json.c - walks protobuf-c descriptors.  The switch is over protobuf's own scalar types.
 */
#include <string.h>

#include "agent/output/message_json.h"

static void value_json(
	struct json_out *j, const ProtobufCFieldDescriptor *f, const void *v, bool zeros);
static void members_json(struct json_out *j, const ProtobufCMessage *m, bool zeros);

static bool is_map(const ProtobufCFieldDescriptor *f)
{
	if (f->type != PROTOBUF_C_TYPE_MESSAGE || f->label != PROTOBUF_C_LABEL_REPEATED)
		return false;
	const ProtobufCMessageDescriptor *d = f->descriptor;
	size_t len = strlen(d->short_name);
	return d->n_fields == 2 && len > 5 && !strcmp(d->short_name + len - 5, "Entry") &&
	       !strcmp(d->fields[0].name, "key") && !strcmp(d->fields[1].name, "value");
}

static void map_json(
	struct json_out *j, const ProtobufCFieldDescriptor *f, void *const *entries, size_t n)
{
	const ProtobufCMessageDescriptor *d = f->descriptor;

	jout_begin(j, '{');
	for (size_t i = 0; i < n; i++) {
		const char *base = entries[i];
		char number[24];
		const char *key = number;
		if (d->fields[0].type == PROTOBUF_C_TYPE_STRING)
			memcpy(&key, base + d->fields[0].offset, sizeof(key));
		else
			snprintf(number, sizeof(number), "%llu",
				*(const unsigned long long *)(const void *)(base +
									    d->fields[0].offset));
		jout_key(j, key);
		value_json(j, &d->fields[1], base + d->fields[1].offset, false);
	}
	jout_end(j, '}');
}

static size_t element_size(ProtobufCType type)
{
	switch (type) {
	case PROTOBUF_C_TYPE_INT32:
	case PROTOBUF_C_TYPE_SINT32:
	case PROTOBUF_C_TYPE_SFIXED32:
	case PROTOBUF_C_TYPE_UINT32:
	case PROTOBUF_C_TYPE_FIXED32:
	case PROTOBUF_C_TYPE_FLOAT:
	case PROTOBUF_C_TYPE_ENUM:
		return 4;
	case PROTOBUF_C_TYPE_BOOL:
		return sizeof(protobuf_c_boolean);
	case PROTOBUF_C_TYPE_BYTES:
		return sizeof(ProtobufCBinaryData);
	default:
		return 8;
	}
}

static void value_json(
	struct json_out *j, const ProtobufCFieldDescriptor *f, const void *v, bool zeros)
{
	switch (f->type) {
	case PROTOBUF_C_TYPE_INT32:
	case PROTOBUF_C_TYPE_SINT32:
	case PROTOBUF_C_TYPE_SFIXED32:
		jout_signed(j, *(const int32_t *)v);
		break;
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_SINT64:
	case PROTOBUF_C_TYPE_SFIXED64:
		jout_signed(j, *(const int64_t *)v);
		break;
	case PROTOBUF_C_TYPE_UINT32:
	case PROTOBUF_C_TYPE_FIXED32:
		jout_unsigned(j, *(const uint32_t *)v);
		break;
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_FIXED64:
		jout_unsigned(j, *(const uint64_t *)v);
		break;
	case PROTOBUF_C_TYPE_FLOAT:
		jout_double(j, (double)*(const float *)v);
		break;
	case PROTOBUF_C_TYPE_DOUBLE:
		jout_double(j, *(const double *)v);
		break;
	case PROTOBUF_C_TYPE_BOOL:
		jout_bool(j, *(const protobuf_c_boolean *)v);
		break;
	case PROTOBUF_C_TYPE_ENUM: {
		const ProtobufCEnumValue *e =
			protobuf_c_enum_descriptor_get_value(f->descriptor, *(const int *)v);
		if (e)
			jout_string(j, e->name, strlen(e->name));
		else
			jout_signed(j, *(const int *)v);
		break;
	}
	case PROTOBUF_C_TYPE_STRING: {
		const char *s = *(const char *const *)v;
		jout_string(j, s ? s : "", s ? strlen(s) : 0);
		break;
	}
	case PROTOBUF_C_TYPE_BYTES: {
		const ProtobufCBinaryData *b = v;
		jout_string(j, (const char *)b->data, b->len);
		break;
	}
	case PROTOBUF_C_TYPE_MESSAGE:
		jout_begin(j, '{');
		members_json(j, *(ProtobufCMessage *const *)v, zeros);
		jout_end(j, '}');
		break;
	}
}

static bool is_present(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f, const void *v)
{
	static const char zero[sizeof(ProtobufCBinaryData)];

	if (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) {
		uint32_t which;
		memcpy(&which, (const char *)m + f->quantifier_offset, sizeof(which));
		return which == f->id;
	}
	if (f->type == PROTOBUF_C_TYPE_STRING)
		return *(const char *const *)v && **(const char *const *)v;
	return memcmp(v, zero, element_size(f->type)) != 0;
}

static void repeated_json(struct json_out *j, const ProtobufCMessage *m,
	const ProtobufCFieldDescriptor *f, bool zeros)
{
	size_t n;
	const char *array;

	memcpy(&n, (const char *)m + f->quantifier_offset, sizeof(n));
	memcpy(&array, (const char *)m + f->offset, sizeof(array));
	if (n == 0)
		return;
	jout_key(j, f->name);
	if (is_map(f)) {
		map_json(j, f, (void *const *)(const void *)array, n);
		return;
	}
	jout_begin(j, '[');
	for (size_t i = 0; i < n; i++)
		value_json(j, f, array + i * element_size(f->type), zeros);
	jout_end(j, ']');
}

/* Text, bytes and messages that are not there say nothing; a number is 0. */
static bool is_number(const ProtobufCFieldDescriptor *f)
{
	return !(f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) && f->type != PROTOBUF_C_TYPE_STRING &&
	       f->type != PROTOBUF_C_TYPE_BYTES && f->type != PROTOBUF_C_TYPE_MESSAGE;
}

static void members_json(struct json_out *j, const ProtobufCMessage *m, bool zeros)
{
	for (unsigned i = 0; i < m->descriptor->n_fields; i++) {
		const ProtobufCFieldDescriptor *f = &m->descriptor->fields[i];
		const void *v = (const char *)m + f->offset;

		if (f->label == PROTOBUF_C_LABEL_REPEATED) {
			repeated_json(j, m, f, zeros);
		} else if (is_present(m, f, v) || (zeros && is_number(f))) {
			jout_key(j, f->name);
			value_json(j, f, v, zeros);
		}
	}
	if (m->n_unknown_fields) {
		jout_key(j, "unknown_fields");
		jout_unsigned(j, m->n_unknown_fields);
	}
}

void message_json_members(struct json_out *j, const ProtobufCMessage *m)
{
	members_json(j, m, false);
}

void message_json_all(struct json_out *j, const ProtobufCMessage *m)
{
	members_json(j, m, true);
}
