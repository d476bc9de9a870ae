/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event_codec.c - ntff.ntrace_event to bytes and back, without allocation per event.
 *
 * Encoding: the largest size that the event could take is reserved once; the body is then written
 * in one pass, two bytes behind the place of the length prefix, because most records are 128 bytes
 * to 16 KiB long.  A record outside that range is moved by the difference.  Varints are spread by
 * word operations instead of a loop per byte: timestamps and ids take 8 and 9 bytes each.
 *
 * Parsing: a table gives wire type and place of each field.  What every writer writes (tags of one byte,
 * entries of key and value with lengths of one byte) is taken on a short way; all else, and what looks
 * damaged there, on the long one.  Whatever the table does not know is
 * skipped by its wire type and remembered as a run of raw bytes.  Groups (wire types 3 and 4) are
 * not part of proto3 and count as damage.
 */
#include "proto/event_codec.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/delimited.h"
#include "proto/varint_fast.h"

#define TAG(number, wire) ((uint8_t)((number) << 3 | (wire)))

#define MAX_MESSAGE 0x7fffffffu /* protobuf's own limit: 2 GiB - 1 */
#define PREFIX_GUESS 2		/* bytes of length prefix that most records need */

/* Prefix, 6 x u64, 7 x u32, field 16 with its two-byte tag, tag and length of the hint. */
#define FIXED_BOUND (PB_MAX_VARINT + 6 * 11 + 7 * 6 + 12 + 6 + PB_WORD_SLACK)
/* Tag and length of the entry, of the key and of the value. */
#define ATTR_BOUND (6 + 6 + 6)

/* ---- buffer --------------------------------------------------------------------------------- */

void pb_buf_free(struct pb_buf *b)
{
	free(b->data);
	*b = (struct pb_buf){0};
}

int pb_buf_reserve(struct pb_buf *b, size_t n)
{
	size_t cap = b->cap ? b->cap : 4096;
	uint8_t *data;

	if (n <= b->cap - b->len)
		return 0;
	if (n > SIZE_MAX / 4 - b->len)
		return -ENOMEM;
	while (cap < b->len + n)
		cap *= 2;
	data = realloc(b->data, cap);
	if (!data)
		return -ENOMEM;
	b->data = data;
	b->cap = cap;
	return 0;
}

int pb_buf_append(struct pb_buf *b, const void *data, size_t n)
{
	int err = pb_buf_reserve(b, n);

	if (err)
		return err;
	if (n)
		memcpy(b->data + b->len, data, n);
	b->len += n;
	return 0;
}

/* ---- encoder -------------------------------------------------------------------------------- */

static inline uint8_t *put_scalar(uint8_t *p, unsigned number, uint64_t v)
{
	if (v == 0)
		return p;
	*p = TAG(number, WIRE_VARINT);
	return pb_varint_put_fast(p + 1, v);
}

static inline uint8_t *put_string(uint8_t *p, unsigned number, struct pb_str s)
{
	*p = TAG(number, WIRE_LEN);
	p = pb_varint_put_fast(p + 1, s.len);
	if (s.len)
		memcpy(p, s.s, s.len);
	return p + s.len;
}

/* Key and value are written even when empty, as protobuf's own libraries do for map entries. */
static uint8_t *put_attrs(uint8_t *p, const struct pb_attr *attrs, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct pb_attr *a = &attrs[i];
		uint64_t size = 2 + pb_varint_size(a->key.len) + a->key.len +
				pb_varint_size(a->value.len) + a->value.len;

		*p = TAG(12, WIRE_LEN);
		p = pb_varint_put_fast(p + 1, size);
		p = put_string(p, 1, a->key);
		p = put_string(p, 2, a->value);
	}
	return p;
}

static uint8_t *put_event(uint8_t *p, const struct ntrace_event_view *e)
{
	p = put_scalar(p, 1, e->timestamp);
	p = put_scalar(p, 2, e->data);
	p = put_scalar(p, 3, e->nd_idx);
	p = put_scalar(p, 4, e->nc_idx);
	p = put_scalar(p, 5, e->event_type);
	if (e->hint.len)
		p = put_string(p, 6, e->hint);
	p = put_scalar(p, 7, e->duration);
	p = put_scalar(p, 8, e->thread_id);
	p = put_scalar(p, 9, e->id);
	p = put_scalar(p, 10, e->parent_id);
	p = put_scalar(p, 11, e->status);
	p = put_attrs(p, e->attrs, e->attr_count);
	p = put_scalar(p, 13, e->phase);
	p = put_scalar(p, 14, e->tracking_id);
	p = put_scalar(p, 15, e->type);
	if (e->has_nrta_seq_id) {
		*p++ = 0x80; /* tag 16: two bytes */
		*p++ = 0x01;
		p = pb_varint_put_fast(p, e->nrta_seq_id);
	}
	if (e->unknown.len)
		memcpy(p, e->unknown.s, e->unknown.len);
	return p + e->unknown.len;
}

static size_t event_bound(const struct ntrace_event_view *e)
{
	size_t bound = FIXED_BOUND + (size_t)e->hint.len + e->unknown.len;

	for (uint32_t i = 0; i < e->attr_count; i++)
		bound += ATTR_BOUND + (size_t)e->attrs[i].key.len + e->attrs[i].value.len;
	return bound;
}

bool ntrace_event_attr(struct ntrace_event_view *e, struct pb_str key, struct pb_str value)
{
	if (e->attr_count >= NTRACE_EVENT_MAX_ATTRS)
		return false;
	e->attrs[e->attr_count++] = (struct pb_attr){key, value};
	return true;
}

int ntrace_event_append(struct pb_buf *b, const struct ntrace_event_view *e)
{
	size_t bound = event_bound(e);
	uint8_t *start, *body;
	size_t size, prefix;
	int err;

	assert(e->attr_count <= NTRACE_EVENT_MAX_ATTRS);
	if (bound > MAX_MESSAGE)
		return -EMSGSIZE;
	err = pb_buf_reserve(b, bound);
	if (err)
		return err;
	start = b->data + b->len;
	body = start + PREFIX_GUESS;
	size = (size_t)(put_event(body, e) - body);
	prefix = pb_varint_size(size);
	if (prefix != PREFIX_GUESS)
		memmove(start + prefix, body, size);
	b->len += pb_varint_put(start, size) + size;
	return 0;
}

/* ---- parser --------------------------------------------------------------------------------- */

/* One field as it stands in the input. */
struct raw_field {
	uint32_t number;
	enum pb_wire wire;
	uint64_t value;	      /* of a varint */
	struct pb_str string; /* content of a length-delimited field */
};

/* As pb_varint_get; most tags, lengths and small numbers are one byte. */
static inline size_t get_varint(const uint8_t *p, const uint8_t *end, uint64_t *ret)
{
	if (p < end && *p < 0x80) {
		*ret = *p;
		return 1;
	}
	return pb_varint_get(p, end, ret);
}

/* Reads the field at *pos; false when it is damaged or longer than what is left (*pos stays). */
static bool next_field(const uint8_t *buf, size_t len, size_t *pos, struct raw_field *f)
{
	const uint8_t *p = buf + *pos, *end = buf + len;
	uint64_t tag, size = 0;
	size_t n = get_varint(p, end, &tag);

	if (n == 0 || tag > UINT32_MAX || tag >> 3 == 0)
		return false;
	p += n;
	f->number = (uint32_t)(tag >> 3);
	f->wire = (enum pb_wire)(tag & 7);
	if (f->wire == WIRE_VARINT || f->wire == WIRE_LEN) {
		n = get_varint(p, end, &f->value);
		if (n == 0)
			return false;
		p += n;
		if (f->wire == WIRE_LEN)
			size = f->value;
	} else if (f->wire == WIRE_FIXED64) {
		size = 8;
	} else if (f->wire == WIRE_FIXED32) {
		size = 4;
	} else {
		return false;
	}
	if (size > (size_t)(end - p))
		return false;
	f->string = (struct pb_str){(const char *)p, (uint32_t)size};
	*pos = (size_t)(p - buf) + (size_t)size;
	return true;
}

/* One entry of the map: key and value, each the last of its number; other fields of the entry are
 * dropped, as protobuf's own libraries do. */
static bool parse_attr(struct pb_str entry, struct pb_attr *ret)
{
	const uint8_t *buf = (const uint8_t *)entry.s;
	struct raw_field f;
	size_t pos = 0;

	ret->key = ret->value = (struct pb_str){"", 0};
	while (pos < entry.len) {
		if (!next_field(buf, entry.len, &pos, &f))
			return false;
		if (f.number > 2)
			continue;
		if (f.wire != WIRE_LEN)
			return false;
		*(f.number == 1 ? &ret->key : &ret->value) = f.string;
	}
	return true;
}

enum place { PLACE_NONE, PLACE_U32, PLACE_U64, PLACE_STRING, PLACE_ATTR };

static const struct {
	uint8_t place; /* enum place; PLACE_NONE: no such field */
	uint8_t wire;
	uint16_t offset; /* into ntrace_event_view */
} fields[] = {
#define FIELD(number, place, wire, member) \
	[number] = {place, wire, (uint16_t)offsetof(struct ntrace_event_view, member)}
	FIELD(1, PLACE_U64, WIRE_VARINT, timestamp),
	FIELD(2, PLACE_U64, WIRE_VARINT, data),
	FIELD(3, PLACE_U32, WIRE_VARINT, nd_idx),
	FIELD(4, PLACE_U32, WIRE_VARINT, nc_idx),
	FIELD(5, PLACE_U32, WIRE_VARINT, event_type),
	FIELD(6, PLACE_STRING, WIRE_LEN, hint),
	FIELD(7, PLACE_U64, WIRE_VARINT, duration),
	FIELD(8, PLACE_U32, WIRE_VARINT, thread_id),
	FIELD(9, PLACE_U64, WIRE_VARINT, id),
	FIELD(10, PLACE_U64, WIRE_VARINT, parent_id),
	FIELD(11, PLACE_U32, WIRE_VARINT, status),
	FIELD(12, PLACE_ATTR, WIRE_LEN, attrs),
	FIELD(13, PLACE_U32, WIRE_VARINT, phase),
	FIELD(14, PLACE_U64, WIRE_VARINT, tracking_id),
	FIELD(15, PLACE_U32, WIRE_VARINT, type),
	FIELD(16, PLACE_U64, WIRE_VARINT, nrta_seq_id),
#undef FIELD
};

#define FIELD_COUNT (sizeof(fields) / sizeof(fields[0]))

/* Puts a known field into the view: 1 done, 0 no room or not known, -EBADMSG. */
static int take_field(struct ntrace_event_view *e, const struct raw_field *f)
{
	uint32_t low = (uint32_t)f->value; /* longer varints are cut, as proto3 says */
	uint8_t *at;

	if (f->number >= FIELD_COUNT || fields[f->number].place == PLACE_NONE)
		return 0;
	if (f->wire != fields[f->number].wire)
		return -EBADMSG;
	at = (uint8_t *)e + fields[f->number].offset;
	switch ((enum place)fields[f->number].place) {
	case PLACE_U32:
		memcpy(at, &low, sizeof(low));
		return 1;
	case PLACE_U64:
		memcpy(at, &f->value, sizeof(f->value));
		e->has_nrta_seq_id |= f->number == 16;
		return 1;
	case PLACE_STRING:
		memcpy(at, &f->string, sizeof(f->string));
		return 1;
	case PLACE_ATTR: {
		struct pb_attr attr;

		if (!parse_attr(f->string, &attr))
			return -EBADMSG;
		return ntrace_event_attr(e, attr.key, attr.value);
	}
	case PLACE_NONE:
		break;
	}
	return 0;
}

/* The entry [key, value] at p of which all lengths are one byte; false: anything else. */
static inline bool take_attr(struct ntrace_event_view *e, const uint8_t *p, size_t size)
{
	size_t key = size > 2 ? p[1] : 0x80, value;

	if (key >= 0x80 || key + 4 > size || p[0] != TAG(1, WIRE_LEN) ||
		p[2 + key] != TAG(2, WIRE_LEN) || e->attr_count >= NTRACE_EVENT_MAX_ATTRS)
		return false;
	value = p[3 + key];
	if (value >= 0x80 || 4 + key + value != size)
		return false;
	e->attrs[e->attr_count++] = (struct pb_attr){
		{(const char *)p + 2, (uint32_t)key}, {(const char *)p + 4 + key, (uint32_t)value}};
	return true;
}

/* The short way for the field at p; NULL: the long way shall decide. */
static inline const uint8_t *take_usual(
	struct ntrace_event_view *e, const uint8_t *p, const uint8_t *end)
{
	unsigned number = *p >> 3;
	uint64_t value;
	uint32_t low;

	/* Also bounds the number: a tag of one byte has 0 to 15. */
	if (*p >= 0x80 || (*p & 7) != fields[number].wire)
		return NULL;
	if (fields[number].place == PLACE_ATTR) {
		if (end - p < 2 || p[1] >= 0x80 || end - p - 2 < p[1] || !take_attr(e, p + 2, p[1]))
			return NULL;
		return p + 2 + p[1];
	}
	if (fields[number].place != PLACE_U32 && fields[number].place != PLACE_U64)
		return NULL;
	p = pb_varint_get_fast(p + 1, end, &value);
	if (!p)
		return NULL;
	low = (uint32_t)value;
	if (fields[number].place == PLACE_U32)
		memcpy((uint8_t *)e + fields[number].offset, &low, sizeof(low));
	else
		memcpy((uint8_t *)e + fields[number].offset, &value, sizeof(value));
	return p;
}

int ntrace_event_parse(const uint8_t *buf, size_t len, struct ntrace_event_view *e, size_t *ret_at)
{
	size_t pos = 0, run_end = 0;

	/* The attributes are 1.5 KiB, of which attr_count says how much counts: not cleared. */
	memset(e, 0, offsetof(struct ntrace_event_view, attrs));
	e->hint = e->unknown = (struct pb_str){"", 0};
	e->unknown_runs = 0;
	*ret_at = 0;
	if (len > MAX_MESSAGE)
		return -EBADMSG;
	while (pos < len) {
		const uint8_t *next = take_usual(e, buf + pos, buf + len);
		size_t at = pos;
		struct raw_field f;

		if (next) {
			pos = (size_t)(next - buf);
			continue;
		}
		int taken = next_field(buf, len, &pos, &f) ? take_field(e, &f) : -EBADMSG;

		if (taken < 0) {
			*ret_at = at;
			return taken;
		}
		if (taken)
			continue;
		if (e->unknown_runs == 0 || run_end != at)
			e->unknown_runs++;
		if (e->unknown_runs == 1) {
			if (e->unknown.len == 0)
				e->unknown.s = (const char *)buf + at;
			e->unknown.len += (uint32_t)(pos - at);
		}
		run_end = pos;
	}
	return 0;
}
