/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event_codec_test.c - the hand-written codec of ntrace_event against bytes written out by hand,
 * against protobuf-c, and against protoc.  Damaged input is the business of event_parse_test.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/delimited.h"
#include "proto/event_codec.h"
#include "tests/shim/shim.h"
#include "tests/unit/event_samples.h"
#include "tests/unit/protoc.h"

#define STR(text)                      \
	{                              \
		text, sizeof(text) - 1 \
	}
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const struct {
	const char *what;
	struct ntrace_event_view e;
	struct pb_str bytes; /* prefix included */
} table[] = {
	{"nothing set", {0}, STR("\x00")},
	{"one field each, smallest tag",
		{.timestamp = 1,
			.data = 2,
			.nd_idx = 3,
			.nc_idx = 4,
			.event_type = 5,
			.hint = STR("h"),
			.duration = 7,
			.thread_id = 8,
			.id = 9,
			.parent_id = 10,
			.status = 11,
			.attr_count = 1,
			.attrs = {{STR("k"), STR("v")}},
			.phase = PHASE_INSTANT,
			.tracking_id = 14,
			.type = 15,
			.has_nrta_seq_id = true,
			.nrta_seq_id = 16},
		STR("\x28"
		    "\x08\x01\x10\x02\x18\x03\x20\x04\x28\x05\x32\x01h\x38\x07\x40\x08\x48\x09\x50"
		    "\x0a"
		    "\x58\x0b\x62\x06\x0a\x01k\x12\x01v\x68\x03\x70\x0e\x78\x0f\x80\x01\x10")},
	{"sequence 0 that is set is written, one that is not set is not",
		{.has_nrta_seq_id = true, .phase = PHASE_START}, STR("\x05\x68\x01\x80\x01\x00")},
	{"sequence without its flag", {.nrta_seq_id = 5}, STR("\x00")},
	{"empty key and empty value stand in the entry",
		{.attr_count = 2, .attrs = {{STR(""), STR("")}, {STR("k"), STR("")}}},
		STR("\x0d\x62\x04\x0a\x00\x12\x00\x62\x05\x0a\x01k\x12\x00")},
	{"equal keys are kept, in order",
		{.attr_count = 2, .attrs = {{STR("k"), STR("1")}, {STR("k"), STR("2")}}},
		STR("\x10\x62\x06\x0a\x01k\x12\x01"
		    "1\x62\x06\x0a\x01k\x12\x01"
		    "2")},
	{"text with a NUL", {.hint = STR("a\0b")},
		STR("\x05\x32\x03"
		    "a\0b")},
	{"largest numbers", {.timestamp = UINT64_MAX, .thread_id = UINT32_MAX},
		STR("\x11\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x40\xff\xff\xff\xff\x0f")},
	{"unknown fields follow behind the known", {.type = 1, .unknown = STR("\xc0\x3e\x07")},
		STR("\x05\x78\x01\xc0\x3e\x07")},
};

TEST("codec: events are written to the byte, and read back", "[proto]")
{
	for (size_t i = 0; i < COUNT(table); i++) {
		struct ntrace_event_view back;
		struct pb_buf b = {0};
		size_t at = 0;

		test_info("%s", table[i].what);
		REQUIRE_EQ(ntrace_event_append(&b, &table[i].e), 0);
		REQUIRE_EQ(b.len, table[i].bytes.len);
		CHECK(memcmp(b.data, table[i].bytes.s, b.len) == 0);
		REQUIRE_EQ(ntrace_event_parse(b.data + 1, b.len - 1, &back, &at), 0);
		if (table[i].e.has_nrta_seq_id || table[i].e.nrta_seq_id == 0)
			CHECK(sample_same_view(&table[i].e, &back));
		CHECK(sample_same_text(table[i].e.unknown, back.unknown));
		pb_buf_free(&b);
	}
}

TEST("codec: the prefix has the right length whatever the size", "[proto]")
{
	/* the hint's own overhead is 2, 3 or 4 bytes; sizes on both sides of each border */
	static const size_t hints[] = {1, 124, 125, 126, 127, 128, 16379, 16380, 16381, 16384,
		2097147, 2097148, 2097149, 3000000};
	char *text = malloc(3000000);
	struct pb_buf b = {0};

	REQUIRE(text != NULL);
	memset(text, 'x', 3000000);
	REQUIRE_EQ(pb_buf_append(&b, "before", 6), 0);
	for (size_t i = 0; i < COUNT(hints); i++) {
		struct ntrace_event_view e = {.hint = {text, (uint32_t)hints[i]}}, back;
		uint8_t prefix[PB_MAX_VARINT];
		const uint8_t *msg = NULL;
		size_t pos = 6, len = 0, at, want = 1 + pb_varint_size(hints[i]) + hints[i];

		test_info("hint of %zu bytes", hints[i]);
		b.len = 6;
		REQUIRE_EQ(ntrace_event_append(&b, &e), 0);
		REQUIRE_EQ(pb_delimited_next(b.data, b.len, &pos, &msg, &len), 1);
		CHECK_EQ(pos, b.len);
		REQUIRE_EQ(len, want);
		CHECK_EQ((size_t)(msg - b.data) - 6, pb_varint_put(prefix, want));
		REQUIRE_EQ(ntrace_event_parse(msg, len, &back, &at), 0);
		CHECK(sample_same_text(e.hint, back.hint));
		CHECK(memcmp(b.data, "before", 6) == 0);
	}
	pb_buf_free(&b);
	free(text);
}

TEST("codec: every width of every number is written as protobuf-c writes it", "[proto]")
{
	unsigned wrong = 0;

	for (unsigned bit = 0; bit <= 64; bit++) {
		for (int below = 0; below < 2; below++) {
			uint64_t v = (bit < 64 ? 1ull << bit : 0) - (uint64_t)below;
			Ntff__NtraceEvent pb = NTFF__NTRACE_EVENT__INIT;
			struct ntrace_event_view e = {.timestamp = v, .nc_idx = (uint32_t)v};
			struct pb_buf b = {0};
			uint8_t want[64];
			size_t size;

			pb.timestamp = v;
			pb.nc_idx = (uint32_t)v;
			size = ntff__ntrace_event__pack(&pb, want);
			REQUIRE_EQ(ntrace_event_append(&b, &e), 0);
			wrong += b.len != size + 1 || memcmp(b.data + 1, want, size) != 0;
			pb_buf_free(&b);
		}
	}
	CHECK_EQ(wrong, 0);
}

/* Does protobuf-c write the same bytes, and is what it wrote read back as the same event? */
static bool agrees_with_protobuf_c(const struct sample *s, struct pb_buf *b)
{
	size_t size = ntff__ntrace_event__get_packed_size(&s->pb), at, len = 0, pos = 0;
	_cleanup_free_ uint8_t *packed = malloc(size ? size : 1);
	struct ntrace_event_view back;
	const uint8_t *msg = NULL;

	b->len = 0;
	if (!packed || ntrace_event_append(b, &s->view))
		return false;
	ntff__ntrace_event__pack(&s->pb, packed);
	return pb_delimited_next(b->data, b->len, &pos, &msg, &len) == 1 && pos == b->len &&
	       len == size && memcmp(msg, packed, size) == 0 &&
	       ntrace_event_parse(packed, size, &back, &at) == 0 &&
	       sample_same_view(&s->view, &back) && back.unknown_runs == 0;
}

TEST("codec: pseudo-random events are the same bytes as protobuf-c's", "[proto]")
{
	struct sample *s = calloc(1, sizeof(*s));
	uint64_t state = 0x6e74726163650001;
	struct pb_buf b = {0};
	size_t largest = 0;

	REQUIRE(s != NULL);
	for (int i = 0; i < 5000; i++) {
		bool same;

		sample_make(s, &state);
		same = agrees_with_protobuf_c(s, &b);
		if (b.len > largest)
			largest = b.len;
		if (!same) {
			test_info("event %d", i);
			CHECK(same);
			break;
		}
	}
	CHECK(largest > 16384); /* all lengths of the prefix that occur in practice were met */
	pb_buf_free(&b);
	free(s);
}

TEST("codec: protobuf-c reads our bytes as the same event", "[proto]")
{
	struct sample *s = calloc(1, sizeof(*s));
	uint64_t state = 0x6e74726163650002;
	struct pb_buf b = {0};

	REQUIRE(s != NULL);
	for (int i = 0; i < 200; i++) {
		const uint8_t *msg = NULL;
		Ntff__NtraceEvent *pb;
		size_t pos = 0, len = 0;
		bool same = true;

		sample_make(s, &state);
		b.len = 0;
		REQUIRE_EQ(ntrace_event_append(&b, &s->view), 0);
		REQUIRE_EQ(pb_delimited_next(b.data, b.len, &pos, &msg, &len), 1);
		pb = ntff__ntrace_event__unpack(NULL, len, msg);
		REQUIRE(pb != NULL);
		CHECK(pb->timestamp == s->view.timestamp);
		CHECK_EQ(pb->phase, s->view.phase);
		CHECK(pb->tracking_id == s->view.tracking_id);
		CHECK_EQ(pb->nrta_seq_id_presence_case, s->view.has_nrta_seq_id ? 16 : 0);
		CHECK(strcmp(pb->hint, s->pb.hint) == 0);
		REQUIRE_EQ(pb->n_attributes, s->view.attr_count);
		for (size_t k = 0; k < pb->n_attributes; k++)
			same &= strcmp(pb->attributes[k]->key, s->entries[k].key) == 0 &&
				strcmp(pb->attributes[k]->value, s->entries[k].value) == 0;
		CHECK(same);
		ntff__ntrace_event__free_unpacked(pb, NULL);
	}
	pb_buf_free(&b);
	free(s);
}

/* ---- against protoc ------------------------------------------------------------------------- */

static void put(struct pb_buf *b, const char *text)
{
	pb_buf_append(b, text, strlen(text));
}

static void put_number(struct pb_buf *b, const char *name, uint64_t v)
{
	char line[64];

	snprintf(line, sizeof(line), "  %s: %llu\n", name, (unsigned long long)v);
	if (v)
		put(b, line);
}

/* A quoted text as protobuf's text format escapes it. */
static void put_quoted(struct pb_buf *b, const char *name, struct pb_str s)
{
	put(b, name);
	put(b, ": \"");
	for (uint32_t i = 0; i < s.len; i++) {
		if (strchr("\"'\\", s.s[i]))
			put(b, "\\");
		pb_buf_append(b, &s.s[i], 1);
	}
	put(b, "\"\n");
}

/* The event as `protoc --decode` prints it in a field `event`. */
static void put_text(struct pb_buf *b, const struct ntrace_event_view *e)
{
	static const char *const phases[] = {"", "  phase: NTRACE_EVENT_PHASE_START\n",
		"  phase: NTRACE_EVENT_PHASE_STOP\n", "  phase: NTRACE_EVENT_PHASE_INSTANT\n"};
	char line[64];

	put(b, "event {\n");
	put_number(b, "timestamp", e->timestamp);
	put_number(b, "data", e->data);
	put_number(b, "nd_idx", e->nd_idx);
	put_number(b, "nc_idx", e->nc_idx);
	put_number(b, "event_type", e->event_type);
	if (e->hint.len)
		put_quoted(b, "  hint", e->hint);
	put_number(b, "duration", e->duration);
	put_number(b, "thread_id", e->thread_id);
	put_number(b, "id", e->id);
	put_number(b, "parent_id", e->parent_id);
	put_number(b, "status", e->status);
	for (uint32_t i = 0; i < e->attr_count; i++) {
		put(b, "  attributes {\n");
		put_quoted(b, "    key", e->attrs[i].key);
		put_quoted(b, "    value", e->attrs[i].value);
		put(b, "  }\n");
	}
	put(b, phases[e->phase]);
	put_number(b, "tracking_id", e->tracking_id);
	put_number(b, "type", e->type);
	snprintf(line, sizeof(line), "  nrta_seq_id: %llu\n", (unsigned long long)e->nrta_seq_id);
	if (e->has_nrta_seq_id)
		put(b, line);
	put(b, "}\n");
}

/* The stream and the text of `count` pseudo-random events.  0 or -errno. */
static int make_stream(
	uint64_t seed, int count, struct sample *s, struct pb_buf *stream, struct pb_buf *text)
{
	uint64_t state = seed;
	int err = 0;

	for (int i = 0; i < count && !err; i++) {
		sample_make(s, &state);
		err = ntrace_event_append(stream, &s->view);
		put_text(text, &s->view);
	}
	return err ? err : pb_buf_append(text, "", 1);
}

TEST("codec: protoc decodes a stream of our records to what was put in", "[proto]")
{
	const char *missing = protoc_missing();
	struct sample *s = calloc(1, sizeof(*s));
	struct pb_buf stream = {0}, wrapped = {0}, want = {0};
	_cleanup_free_ char *text = NULL;
	size_t size = 0;

	if (missing) {
		free(s);
		SKIP(missing);
	}
	REQUIRE(s != NULL);
	REQUIRE_EQ(make_stream(0x6e74726163650003, 300, s, &stream, &want), 0);
	REQUIRE_EQ(protoc_wrap(stream.data, stream.len, &wrapped), 0);
	REQUIRE_EQ(
		protoc_run("decode", "ntff_test.stream", wrapped.data, wrapped.len, &text, &size),
		0);
	CHECK_EQ(size, want.len - 1);
	CHECK(strcmp(text, (char *)want.data) == 0);
	pb_buf_free(&stream);
	pb_buf_free(&wrapped);
	pb_buf_free(&want);
	free(s);
}

static int by_key(const void *a, const void *b)
{
	const struct pb_attr *x = a, *y = b;

	return memcmp(x->key.s, y->key.s, x->key.len < y->key.len ? x->key.len : y->key.len);
}

TEST("codec: records that protoc wrote are read as what was put in", "[proto]")
{
	const char *missing = protoc_missing();
	struct sample *s = calloc(1, sizeof(*s));
	struct pb_buf stream = {0}, want = {0}, back = {0};
	_cleanup_free_ char *bytes = NULL;
	struct ntrace_event_view e;
	size_t size = 0, pos = 0, len, at;
	const uint8_t *msg;
	int count = 0;

	if (missing) {
		free(s);
		SKIP(missing);
	}
	REQUIRE(s != NULL);
	REQUIRE_EQ(make_stream(0x6e74726163650004, 300, s, &stream, &want), 0);
	REQUIRE_EQ(protoc_run("encode", "ntff_test.stream", want.data, want.len - 1, &bytes, &size),
		0);
	CHECK_EQ(size, stream.len + 300); /* the same length: each field 1 costs its tag more */
	while (pos < size) {
		REQUIRE_EQ(bytes[pos], 0x0a);
		pos++;
		REQUIRE_EQ(pb_delimited_next((uint8_t *)bytes, size, &pos, &msg, &len), 1);
		REQUIRE_EQ(ntrace_event_parse(msg, len, &e, &at), 0);
		/* protoc writes a map in any order */
		qsort(e.attrs, e.attr_count, sizeof(e.attrs[0]), by_key);
		put_text(&back, &e);
		count++;
	}
	CHECK_EQ(count, 300);
	CHECK(back.len == want.len - 1 && memcmp(back.data, want.data, back.len) == 0);
	pb_buf_free(&stream);
	pb_buf_free(&want);
	pb_buf_free(&back);
	free(s);
}

/* ---- buffer and view ------------------------------------------------------------------------ */

TEST("codec: a full view takes no more attributes, and all 48 are written", "[proto]")
{
	struct ntrace_event_view *e = calloc(1, sizeof(*e)), *back = calloc(1, sizeof(*back));
	struct pb_buf b = {0};
	size_t at;

	REQUIRE(e && back);
	for (int i = 0; i < NTRACE_EVENT_MAX_ATTRS; i++)
		CHECK(ntrace_event_attr(e, (struct pb_str)STR("key"), (struct pb_str)STR("value")));
	CHECK(!ntrace_event_attr(e, (struct pb_str)STR("one"), (struct pb_str)STR("more")));
	REQUIRE_EQ(ntrace_event_append(&b, e), 0);
	REQUIRE_EQ(b.len, 2 + 48 * (2 + 5 + 7));
	REQUIRE_EQ(ntrace_event_parse(b.data + 2, b.len - 2, back, &at), 0);
	CHECK_EQ(back->attr_count, 48);
	CHECK(sample_same_view(e, back));
	pb_buf_free(&b);
	free(e);
	free(back);
}

TEST("codec: what cannot be a message is refused and the buffer stays", "[proto]")
{
	struct ntrace_event_view e = {.hint = {"x", 0x7fffffff}};
	struct pb_buf b = {0};

	REQUIRE_EQ(pb_buf_append(&b, "abc", 3), 0);
	CHECK_EQ(ntrace_event_append(&b, &e), -EMSGSIZE);
	CHECK_EQ(pb_buf_reserve(&b, SIZE_MAX), -ENOMEM);
	CHECK_EQ(b.len, 3);
	CHECK(memcmp(b.data, "abc", 3) == 0);
	pb_buf_free(&b);
	CHECK(b.data == NULL);
	CHECK_EQ(b.cap, 0);
}

TEST("buffer: grows by need and keeps its content", "[proto]")
{
	struct pb_buf b = {0};
	unsigned wrong = 0;

	for (unsigned i = 0; i < 100000; i++) {
		uint8_t byte = (uint8_t)(i * 7);

		REQUIRE_EQ(pb_buf_append(&b, &byte, 1), 0);
	}
	CHECK_EQ(b.len, 100000);
	REQUIRE_EQ(pb_buf_reserve(&b, 1000000), 0);
	CHECK(b.cap - b.len >= 1000000);
	for (unsigned i = 0; i < 100000; i++)
		wrong += b.data[i] != (uint8_t)(i * 7);
	CHECK_EQ(wrong, 0);
	pb_buf_free(&b);
}
