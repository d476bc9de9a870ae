/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pfcheck_fields.c - the checker's parser: fields of messages, with the types that they publicly have.
 *
 * Numbers that the table does not have belong to parts of the format that are not checked: they are
 * stepped over.  A field of another type than its own is reported and stepped over too.
 */
#include <string.h>

#include "agent/output/pfcheck.h"
#include "proto/varint_fast.h"
#include "runtime/base/utf8.h"

enum type {
	T_NONE,
	T_NUMBER,  /* varint */
	T_FIXED,   /* 8 bytes */
	T_TEXT,	   /* UTF-8 */
	T_BYTES,   /* or a message */
	T_NUMBERS, /* repeated, also packed */
	T_FIXEDS,
};

#define MAX_FIELD 91u

static const uint8_t types[PFV_MESSAGES][MAX_FIELD] = {
	[PFV_TRACE] = {[1] = T_BYTES},
	[PFV_PACKET] = {[6] = T_BYTES,
		[8] = T_NUMBER,
		[10] = T_NUMBER,
		[11] = T_BYTES,
		[12] = T_BYTES,
		[13] = T_NUMBER,
		[41] = T_NUMBER,
		[42] = T_NUMBER,
		[58] = T_NUMBER,
		[59] = T_BYTES,
		[60] = T_BYTES,
		[87] = T_NUMBER},
	[PFV_EVENT] = {[1] = T_NUMBER,
		[3] = T_NUMBERS,
		[4] = T_BYTES,
		[6] = T_BYTES,
		[9] = T_NUMBER,
		[10] = T_NUMBER,
		[11] = T_NUMBER,
		[12] = T_NUMBERS,
		[16] = T_NUMBER,
		[22] = T_TEXT,
		[23] = T_TEXT,
		[30] = T_NUMBER,
		[31] = T_NUMBERS,
		[36] = T_NUMBERS,
		[42] = T_NUMBERS,
		[44] = T_FIXED,
		[45] = T_NUMBERS,
		[46] = T_FIXEDS,
		[47] = T_FIXEDS,
		[48] = T_FIXEDS},
	[PFV_NOTE] = {[1] = T_NUMBER,
		[2] = T_NUMBER,
		[3] = T_NUMBER,
		[4] = T_NUMBER,
		[5] = T_FIXED,
		[6] = T_TEXT,
		[7] = T_NUMBER,
		[8] = T_BYTES,
		[9] = T_TEXT,
		[10] = T_TEXT,
		[17] = T_NUMBER},
	[PFV_INTERNED] = {[1] = T_BYTES, [2] = T_BYTES, [3] = T_BYTES, [29] = T_BYTES},
	[PFV_ENTRY] = {[1] = T_NUMBER, [2] = T_TEXT},
	[PFV_STRING] = {[1] = T_NUMBER, [2] = T_TEXT},
	[PFV_SNAPSHOT_MSG] = {[1] = T_BYTES, [2] = T_NUMBER},
	[PFV_CLOCK_MSG] = {[1] = T_NUMBER, [2] = T_NUMBER, [3] = T_NUMBER, [4] = T_NUMBER},
	[PFV_TRACK] = {[1] = T_NUMBER,
		[2] = T_TEXT,
		[3] = T_BYTES,
		[4] = T_BYTES,
		[5] = T_NUMBER,
		[8] = T_BYTES,
		[10] = T_TEXT},
	[PFV_PROCESS] = {[1] = T_NUMBER, [2] = T_TEXT, [6] = T_TEXT},
	[PFV_THREAD] = {[1] = T_NUMBER, [2] = T_NUMBER, [5] = T_TEXT},
	[PFV_COUNTER_MSG] = {[1] = T_NUMBER,
		[2] = T_TEXT,
		[3] = T_NUMBER,
		[4] = T_NUMBER,
		[5] = T_NUMBER,
		[6] = T_TEXT},
	[PFV_DEFAULTS] = {[11] = T_BYTES, [58] = T_NUMBER},
	[PFV_EVENT_DEFAULTS] = {[11] = T_NUMBER, [31] = T_NUMBERS, [45] = T_NUMBERS},
};

static const uint8_t wires[] = {
	[T_NUMBER] = WIRE_VARINT,
	[T_FIXED] = WIRE_FIXED64,
	[T_TEXT] = WIRE_LEN,
	[T_BYTES] = WIRE_LEN,
	[T_NUMBERS] = WIRE_VARINT,
	[T_FIXEDS] = WIRE_FIXED64,
};

void pfv_walk(
	struct pfv_walk *w, struct pfv_check *c, enum pfv_message message, struct pfv_bytes bytes)
{
	*w = (struct pfv_walk){.check = c, .message = message, .left = bytes};
}

static void step(struct pfv_bytes *b, size_t n)
{
	b->data += n;
	b->len -= n;
	b->at += n;
}

static bool take_varint(struct pfv_bytes *b, uint64_t *ret)
{
	size_t n = pb_varint_get(b->data, b->data + b->len, ret);

	step(b, n);
	return n != 0;
}

static bool take_fixed(struct pfv_bytes *b, size_t n, uint64_t *ret)
{
	*ret = 0;
	if (b->len < n)
		return false;
	for (size_t i = 0; i < n; i++)
		*ret |= (uint64_t)b->data[i] << (8 * i);
	step(b, n);
	return true;
}

static bool take_bytes(struct pfv_bytes *b, struct pfv_bytes *ret)
{
	uint64_t n;

	if (!take_varint(b, &n) || n > b->len)
		return false;
	*ret = (struct pfv_bytes){b->data, (size_t)n, b->at};
	step(b, (size_t)n);
	return true;
}

/* One field whatever it is; false when the bytes are none. */
static bool take_field(struct pfv_bytes *b, struct pfv_field *f, unsigned *ret_wire)
{
	uint64_t tag;

	if (!take_varint(b, &tag) || tag > UINT32_MAX || tag >> 3 == 0)
		return false;
	f->number = (uint32_t)(tag >> 3);
	f->bytes = (struct pfv_bytes){.at = b->at};
	*ret_wire = tag & 7;
	switch (*ret_wire) {
	case WIRE_VARINT:
		return take_varint(b, &f->value);
	case WIRE_FIXED64:
		return take_fixed(b, 8, &f->value);
	case WIRE_FIXED32:
		return take_fixed(b, 4, &f->value);
	case WIRE_LEN:
		return take_bytes(b, &f->bytes);
	default:
		return false;
	}
}

static bool is_text(struct pfv_bytes b)
{
	for (size_t i = 0, n; i < b.len; i += n) {
		n = utf8_length(b.data + i, b.len - i);
		if (!n)
			return false;
	}
	return true;
}

/* The next number of a packed field; false when there is none. */
static bool next_packed(struct pfv_walk *w, struct pfv_field *f)
{
	bool ok;

	if (!w->packed.len || w->damaged)
		return false;
	f->number = w->packed_number;
	f->bytes = (struct pfv_bytes){.at = w->packed.at};
	ok = w->packed_wire == WIRE_VARINT ? take_varint(&w->packed, &f->value)
					   : take_fixed(&w->packed, 8, &f->value);
	if (!ok) {
		pfv_say(w->check, PFV_MALFORMED, f->bytes.at, "packed field %u", f->number);
		w->damaged = true;
	}
	return ok;
}

/* Is the field as its type says?  A packed one is opened. */
static bool accept(struct pfv_walk *w, const struct pfv_field *f, enum type type, unsigned wire)
{
	if ((type == T_NUMBERS || type == T_FIXEDS) && wire == WIRE_LEN) {
		w->packed = f->bytes;
		w->packed_number = f->number;
		w->packed_wire = wires[type];
		return true;
	}
	if (wire != wires[type]) {
		w->refused = true;
		pfv_say(w->check, PFV_WIRE_TYPE, f->bytes.at, "field %u has wire type %u, not %u",
			f->number, wire, wires[type]);
		return false;
	}
	if (type == T_TEXT && !is_text(f->bytes)) {
		w->refused = true;
		pfv_say(w->check, PFV_NOT_UTF8, f->bytes.at, "field %u", f->number);
		return false;
	}
	return true;
}

bool pfv_next(struct pfv_walk *w, struct pfv_field *ret)
{
	for (;;) {
		unsigned wire;
		enum type type;

		if (next_packed(w, ret))
			return true;
		if (!w->left.len || w->damaged)
			return false;
		uint64_t at = w->left.at;
		if (!take_field(&w->left, ret, &wire)) {
			pfv_say(w->check, PFV_MALFORMED, at, "no field of a message stands here");
			w->damaged = true;
			return false;
		}
		type = ret->number < MAX_FIELD ? (enum type)types[w->message][ret->number] : T_NONE;
		if (type != T_NONE && accept(w, ret, type, wire) && !w->packed.len)
			return true;
	}
}
