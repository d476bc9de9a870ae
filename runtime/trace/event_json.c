/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event_json.c - records to JSON: one pass, no format strings.
 *
 * What does not depend on the record is put together by the preprocessor: the head of an event up to its id, and
 * each key with its quotes.  Room for the longest event is made once per event, so that the writers
 * below look at no bound.
 *
 * Ours, for no source says: mem_type "host" and "device", else its number as a text; algorithm as the number
 * in a text, left out when it is 0; usage_type out of range as its number in a text.
 */
#include "runtime/trace/event_json.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/put_number.h"
#include "runtime/base/utf8.h"
#include "runtime/trace/event_registry.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define FIRST_ROOM 4096u
#define NAMES_PER_EVENT 1u /* no phase of a type has two interned fields; a test counts them */
/* Head, eight numbers with their keys, six fields, one name of which each byte becomes six. */
#define MAX_EVENT (1024u + NAMES_PER_EVENT * 6u * TRACE_NAME_BYTES)
#define TAIL "],\"data_version\":2}"

enum json_form { JSON_AS_FORM, JSON_ABSENT, JSON_MEM_TYPE, JSON_ALGORITHM };

struct json_text {
	const char *text;
	size_t len;
};
#define TEXT(literal)                           \
	{                                       \
		(literal), sizeof(literal) - 1, \
	}

struct json_field {
	struct trace_field field;
	uint8_t json;	      /* enum json_form */
	struct json_text key; /* "key": */
};

/* As in event_registry.c: one array of fields per event, which the next EVENT row closes. */
/* clang-format off */
static const struct json_field fields_begin[] __attribute__((unused)) = {{{0, 0, 0, 0, NULL}, 0, {NULL, 0}}
#define EVENT(number, id, name, source, category)                                                  \
	};                                                                                         \
	static const struct json_field fields_##id[] = {{{0, 0, 0, 0, NULL}, 0, {NULL, 0}}
#define FIELD_JSON(id, phase, offset, type, key, form, json)                                       \
	, {{(offset), FIELD_##type, FORM_##form, TRACE_##phase, (key)}, JSON_##json, TEXT("\"" key "\":")}
#define FIELD(id, phase, offset, type, key, form)                                                  \
	FIELD_JSON(id, phase, offset, type, key, form, AS_FORM)
#include "runtime/trace/event_registry.def"
#undef EVENT
#undef FIELD
};

static const struct {
	struct json_text head;
	const struct json_field *fields;
	uint32_t field_count;
} events[TRACE_TYPE_COUNT + 1] = {
#define EVENT(number, id, name, source, category)                                                  \
	[number] = {TEXT("{\"event_type\":\"" name "\",\"phase\":\""), fields_##id + 1,            \
		ARRAY_SIZE(fields_##id) - 1},
#define FIELD(id, phase, offset, type, key, form)
#include "runtime/trace/event_registry.def"
#undef EVENT
#undef FIELD
	[TRACE_TYPE_COUNT] = {TEXT("{\"event_type\":\"unknown\",\"phase\":\""), NULL, 0},
};
/* clang-format on */

/* With the key behind it. */
static const struct json_text phases[] = {
	[TRACE_START] = TEXT("start\",\"id\":"),
	[TRACE_STOP] = TEXT("stop\",\"id\":"),
	[TRACE_INSTANT] = TEXT("instant\",\"id\":"),
	TEXT("unknown\",\"id\":"),
};

static const char *const mem_types[] = {[1] = "host", [2] = "device"};

/* ---- pieces ------------------------------------------------------------------------------- */

static inline uint8_t *put(uint8_t *p, struct json_text t)
{
	memcpy(p, t.text, t.len);
	return p + t.len;
}

#define PUT(p, literal) ((uint8_t *)memcpy(p, literal, sizeof(literal) - 1) + sizeof(literal) - 1)

static inline uint8_t *put_key_number(uint8_t *p, const char *key, size_t key_len, uint64_t value)
{
	memcpy(p, key, key_len);
	return put_decimal(p + key_len, value);
}
#define PUT_NUMBER(p, key, value) put_key_number(p, key, sizeof(key) - 1, value)

/* One byte below 0x80, at most six bytes of text. */
static uint8_t *put_escaped(uint8_t *p, uint8_t c)
{
	static const char shorts[] = {
		['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};

	if (c == '"' || c == '\\') {
		*p++ = '\\';
		*p++ = c;
	} else if (c >= 0x20) {
		*p++ = c;
	} else if (c < sizeof(shorts) && shorts[c]) {
		*p++ = '\\';
		*p++ = (uint8_t)shorts[c];
	} else {
		p = PUT(p, "\\u00");
		*p++ = (uint8_t)('0' + (c >> 4));
		*p++ = (uint8_t) "0123456789abcdef"[c & 15];
	}
	return p;
}

/* What is no UTF-8 becomes U+FFFD, byte by byte. */
static uint8_t *put_string(uint8_t *p, const char *text, size_t len)
{
	*p++ = '"';
	for (size_t i = 0; i < len;) {
		size_t n = utf8_length(text + i, len - i);

		if (n == 1) {
			p = put_escaped(p, (uint8_t)text[i]);
		} else if (n == 0) {
			p = PUT(p, "\xef\xbf\xbd");
			n = 1;
		} else {
			memcpy(p, text + i, n);
			p += n;
		}
		i += n;
	}
	*p++ = '"';
	return p;
}

static uint8_t *put_quoted_number(uint8_t *p, uint64_t value)
{
	*p++ = '"';
	p = put_decimal(p, value);
	*p++ = '"';
	return p;
}

/* A text, or the number in quotes where there is none. */
static uint8_t *put_named(uint8_t *p, const char *name, uint64_t value)
{
	return name ? put_string(p, name, strlen(name)) : put_quoted_number(p, value);
}

static uint8_t *put_model_name(uint8_t *p, const struct event_json *j, uint64_t id)
{
	size_t len;
	const char *name = j->source->name ? j->source->name(j->source->ctx, id, &len) : NULL;

	if (!name)
		return p;
	return put_string(PUT(p, ",\"model_name\":"), name, utf8_cut(name, len, TRACE_NAME_BYTES));
}

/* ---- data --------------------------------------------------------------------------------- */

static uint8_t *put_value(
	uint8_t *p, const struct event_json *j, const struct json_field *f, uint64_t value)
{
	if (f->json == JSON_MEM_TYPE)
		return put_named(p, value < ARRAY_SIZE(mem_types) ? mem_types[value] : NULL, value);
	if (f->json == JSON_ALGORITHM)
		return put_quoted_number(p, value);
	switch ((enum trace_form)f->field.form) {
	case FORM_HEX:
	case FORM_ADDRESS:
		*p++ = '"';
		p = put_hex(p, value, 1);
		*p++ = '"';
		return p;
	case FORM_BOOL:
		return value ? PUT(p, "true") : PUT(p, "false");
	case FORM_USAGE:
		return put_named(p, trace_usage_name(value), value);
	case FORM_INTERNED:
		return put_model_name(put_decimal(p, value), j, value);
	case FORM_HOST_NS:
		return put_decimal(p, value + (uint64_t)j->source->offset_ns);
	case FORM_DEC:
		break;
	}
	return f->field.width == FIELD_I32 ? put_signed(p, (int64_t)value) : put_decimal(p, value);
}

static uint8_t *put_data(uint8_t *p, const struct event_json *j, const struct trace_record *r)
{
	uint32_t type = r->trace_type < TRACE_TYPE_COUNT ? r->trace_type : TRACE_TYPE_COUNT;
	uint32_t phase = r->phase == TRACE_INSTANT ? TRACE_START : r->phase;
	bool first = true;

	*p++ = '{';
	for (uint32_t i = 0; i < events[type].field_count; i++) {
		const struct json_field *f = &events[type].fields[i];
		uint64_t value;

		if (f->field.phase != phase || f->json == JSON_ABSENT)
			continue;
		value = trace_field_value(&f->field, r->data);
		if (f->json == JSON_ALGORITHM && !value)
			continue;
		if (!first)
			*p++ = ',';
		first = false;
		p = put_value(put(p, f->key), j, f, value);
	}
	*p++ = '}';
	return p;
}

/* ---- the text ----------------------------------------------------------------------------- */

static int make_room(struct event_json *j, size_t more)
{
	size_t room = j->room ? j->room : FIRST_ROOM;
	char *grown;

	if (j->room - j->len >= more)
		return 0;
	while (room - j->len < more)
		room *= 2;
	grown = realloc(j->text, room);
	if (!grown)
		return -ENOMEM;
	j->text = grown;
	j->room = room;
	return 0;
}

int event_json_begin(struct event_json *j, const struct event_json_source *source)
{
	int rc;

	*j = (struct event_json){.source = source};
	rc = make_room(j, MAX_EVENT);
	if (rc < 0)
		return rc;
	j->len = (size_t)((char *)PUT((uint8_t *)j->text, "{\"events\":[") - j->text);
	return 0;
}

static int32_t worker_gid(const struct event_json_source *s, uint32_t nc)
{
	return nc < s->gid_count ? s->gids[nc] : -1;
}

int event_json_add(struct event_json *j, const struct trace_record *r)
{
	int rc = make_room(j, MAX_EVENT + sizeof(TAIL));
	uint8_t *p;

	if (rc < 0)
		return rc;
	p = (uint8_t *)j->text + j->len;
	if (j->count++)
		*p++ = ',';
	p = put(p,
		events[r->trace_type < TRACE_TYPE_COUNT ? r->trace_type : TRACE_TYPE_COUNT].head);
	p = put(p, phases[r->phase < ARRAY_SIZE(phases) ? r->phase : ARRAY_SIZE(phases) - 1]);
	p = put_decimal(p, r->id);
	p = PUT_NUMBER(p, ",\"nc_idx\":", r->nc_idx);
	p = PUT_NUMBER(p, ",\"nc_local_id\":", r->nc_local_id);
	p = PUT_NUMBER(p, ",\"tracking_id\":", r->tracking_id);
	p = PUT_NUMBER(p, ",\"thread_id\":", r->thread_id);
	p = put_signed(PUT(p, ",\"worker_gid\":"), worker_gid(j->source, r->nc_idx));
	p = put_data(PUT(p, ",\"data\":"), j, r);
	p = PUT_NUMBER(p, ",\"timestamp_ns\":", r->timestamp_ns + (uint64_t)j->source->offset_ns);
	if (r->has_nrta_seq_id)
		p = PUT_NUMBER(p, ",\"nrta_seq_id\":", r->nrta_seq_id);
	*p++ = '}';
	j->len = (size_t)((char *)p - j->text);
	return 0;
}

void event_json_end(struct event_json *j, char **ret_text, size_t *ret_len)
{
	/* event_json_begin and _add left room for it. */
	memcpy(j->text + j->len, TAIL, sizeof(TAIL));
	*ret_text = j->text;
	*ret_len = j->len + sizeof(TAIL) - 1;
	*j = (struct event_json){0};
}

void event_json_drop(struct event_json *j)
{
	free(j->text);
	*j = (struct event_json){0};
}
