/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event_parse_test.c - the parser of ntrace_event on input that is foreign, cut or damaged.
 *
 * Inputs are copied to the end of allocations of exactly their size, so that under AddressSanitizer
 * a read too far is seen.  protobuf-c is the second opinion: what we accept, it accepts with the
 * same values.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/delimited.h"
#include "proto/event_codec.h"
#include "runtime/base/file.h"
#include "tests/shim/shim.h"
#include "tests/unit/event_opinion.h"
#include "tests/unit/event_samples.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define BYTES(text) text, sizeof(text) - 1

/* ---- tables --------------------------------------------------------------------------------- */

static const struct {
	const char *what, *bytes;
	size_t len, at;
} faults[] = {
	{"tag cut off", BYTES("\x08\x01\x80"), 2},
	{"varint cut off", BYTES("\x08\x80"), 0},
	{"varint of more than 64 bits", BYTES("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"), 0},
	{"field number 0", BYTES("\x08\x01\x00\x01"), 2},
	{"field number beyond 29 bits", BYTES("\x80\x80\x80\x80\x10\x01"), 0},
	{"text longer than the message", BYTES("\x32\x02x"), 0},
	{"text whose length wraps", BYTES("\x32\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01x"), 0},
	{"unknown text longer than the message", BYTES("\x68\x01\xc2\x3e\x05zzzz"), 2},
	{"unknown fixed64 cut off", BYTES("\xc1\x3e\x01\x02\x03\x04\x05\x06\x07"), 0},
	{"unknown fixed32 cut off", BYTES("\xc5\x3e\x01\x02\x03"), 0},
	{"start of a group", BYTES("\x78\x01\xc3\x3e\xc4\x3e"), 2},
	{"end of a group", BYTES("\xc4\x3e"), 0},
	{"wire type 6", BYTES("\xc6\x3e\x00\x00\x00\x00"), 0},
	{"wire type 7 on a known field", BYTES("\x0f\x00"), 0},
	{"number sent as text", BYTES("\x0a\x01x"), 0},
	{"number sent as fixed64", BYTES("\x09\x01\x02\x03\x04\x05\x06\x07\x08"), 0},
	{"hint sent as number", BYTES("\x68\x02\x30\x05"), 2},
	{"attributes sent as number", BYTES("\x60\x05"), 0},
	{"nrta_seq_id sent as fixed32", BYTES("\x85\x01\x01\x02\x03\x04"), 0},
	{"key of an attribute sent as number", BYTES("\x62\x02\x08\x05"), 0},
	{"value reaches beyond its entry", BYTES("\x62\x05\x0a\x01k\x12\x01v"), 0},
	{"entry ends in a tag", BYTES("\x62\x04\x0a\x01k\x92"), 0},
};

TEST("parse: damage is reported at the field that has it", "[proto]")
{
	for (size_t i = 0; i < COUNT(faults); i++) {
		_cleanup_free_ uint8_t *exact = malloc(faults[i].len);
		struct ntrace_event_view e;
		size_t at = 99;

		test_info("%s", faults[i].what);
		REQUIRE(exact != NULL);
		memcpy(exact, faults[i].bytes, faults[i].len);
		CHECK_EQ(ntrace_event_parse(exact, faults[i].len, &e, &at), -EBADMSG);
		CHECK_EQ(at, faults[i].at);
	}
}

static const struct {
	const char *what, *bytes;
	size_t len;
	const char *unknown;
	size_t unknown_len;
	uint32_t runs;
} unknowns[] = {
	{"none", BYTES("\x08\x01"), BYTES(""), 0},
	{"a number in front", BYTES("\xc0\x3e\x07\x08\x01"), BYTES("\xc0\x3e\x07"), 1},
	{"each wire type, side by side, is one run",
		BYTES("\x08\x01\xc0\x3e\x07\xc1\x3e"
		      "12345678\xc2\x3e\x02zz\xc5\x3e"
		      "1234"),
		BYTES("\xc0\x3e\x07\xc1\x3e"
		      "12345678\xc2\x3e\x02zz\xc5\x3e"
		      "1234"),
		1},
	{"two runs: the first is kept", BYTES("\xc0\x3e\x07\x08\x01\xc8\x3e\x08"),
		BYTES("\xc0\x3e\x07"), 2},
	{"field 17, the first that is free", BYTES("\x88\x01\x05"), BYTES("\x88\x01\x05"), 1},
	{"the largest field number", BYTES("\xf8\xff\xff\xff\x0f\x05"),
		BYTES("\xf8\xff\xff\xff\x0f\x05"), 1},
	{"a needlessly long tag of a known field is known", BYTES("\x88\x80\x00\x01"), BYTES(""),
		0},
	{"a field inside an entry is no field of the event", BYTES("\x62\x05\x18\x01\x0a\x01k"),
		BYTES(""), 0},
};

TEST("parse: unknown fields are kept as they stand", "[proto]")
{
	for (size_t i = 0; i < COUNT(unknowns); i++) {
		struct ntrace_event_view e;
		size_t at;

		test_info("%s", unknowns[i].what);
		REQUIRE_EQ(ntrace_event_parse(
				   (const uint8_t *)unknowns[i].bytes, unknowns[i].len, &e, &at),
			0);
		CHECK_EQ(e.unknown_runs, unknowns[i].runs);
		CHECK_EQ(e.unknown.len, unknowns[i].unknown_len);
		CHECK(memcmp(e.unknown.s, unknowns[i].unknown, e.unknown.len) == 0);
	}
}

TEST("parse: the last of a repeated number counts, long ones are cut to 32 bits", "[proto]")
{
	static const uint8_t in[] =
		"\x08\x01\x32\x01"
		"a\x08\x02\x32\x01"
		"b\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x20\x85\x80\x80\x80\x10";
	struct ntrace_event_view e;
	size_t at;

	REQUIRE_EQ(ntrace_event_parse(in, sizeof(in) - 1, &e, &at), 0);
	CHECK_EQ(e.timestamp, 2);
	CHECK(sample_same_text(e.hint, (struct pb_str){"b", 1}));
	CHECK_EQ(e.nd_idx, UINT32_MAX);
	CHECK_EQ(e.nc_idx, 5);
}

TEST("parse: entries may lack a part, repeat one, or turn them round", "[proto]")
{
	static const uint8_t in[] = "\x62\x00"
				    "\x62\x03\x0a\x01k"
				    "\x62\x03\x12\x01v"
				    "\x62\x06\x12\x01v\x0a\x01k"
				    "\x62\x09\x0a\x01x\x0a\x01k\x12\x01v";
	static const char *const want[][2] = {
		{"", ""}, {"k", ""}, {"", "v"}, {"k", "v"}, {"k", "v"}};
	struct ntrace_event_view e;
	size_t at;

	REQUIRE_EQ(ntrace_event_parse(in, sizeof(in) - 1, &e, &at), 0);
	REQUIRE_EQ(e.attr_count, COUNT(want));
	for (size_t i = 0; i < COUNT(want); i++) {
		CHECK_EQ(e.attrs[i].key.len, strlen(want[i][0]));
		CHECK(memcmp(e.attrs[i].key.s, want[i][0], e.attrs[i].key.len) == 0);
		CHECK_EQ(e.attrs[i].value.len, strlen(want[i][1]));
		CHECK(memcmp(e.attrs[i].value.s, want[i][1], e.attrs[i].value.len) == 0);
	}
}

TEST("parse: attributes beyond the view's are kept as unknown, and nothing is lost", "[proto]")
{
	static const char entry[] = "\x62\x06\x0a\x01k\x12\x01v";
	struct pb_buf in = {0}, out = {0};
	struct ntrace_event_view e;
	size_t at, pos = 0, len = 0;
	const uint8_t *msg = NULL;

	for (int i = 0; i < 50; i++)
		REQUIRE_EQ(pb_buf_append(&in, entry, 8), 0);
	REQUIRE_EQ(ntrace_event_parse(in.data, in.len, &e, &at), 0);
	CHECK_EQ(e.attr_count, NTRACE_EVENT_MAX_ATTRS);
	CHECK_EQ(e.unknown_runs, 1);
	CHECK_EQ(e.unknown.len, 16);
	REQUIRE_EQ(ntrace_event_append(&out, &e), 0);
	REQUIRE_EQ(pb_delimited_next(out.data, out.len, &pos, &msg, &len), 1);
	CHECK(len == in.len && memcmp(msg, in.data, len) == 0);
	pb_buf_free(&in);
	pb_buf_free(&out);
}

TEST("parse: a view that was used before keeps nothing of it", "[proto]")
{
	static const uint8_t full[] =
		"\x08\x01\x32\x01h\x62\x06\x0a\x01k\x12\x01v\x80\x01\x05\xc0\x3e\x07";
	struct ntrace_event_view e;
	size_t at;

	memset(&e, 0xff, sizeof(e));
	REQUIRE_EQ(ntrace_event_parse(full, sizeof(full) - 1, &e, &at), 0);
	CHECK_EQ(e.attr_count, 1);
	CHECK_EQ(e.unknown_runs, 1);
	REQUIRE_EQ(ntrace_event_parse(full, 0, &e, &at), 0);
	CHECK_EQ(e.timestamp, 0);
	CHECK_EQ(e.hint.len, 0);
	CHECK_EQ(e.attr_count, 0);
	CHECK(!e.has_nrta_seq_id);
	CHECK_EQ(e.nrta_seq_id, 0);
	CHECK_EQ(e.unknown.len, 0);
	CHECK_EQ(e.unknown_runs, 0);
}

/* ---- sweeps --------------------------------------------------------------------------------- */

/* The message (without prefix) of the n-th small sample, in an allocation of its exact size. */
static uint8_t *small_message(struct sample *s, uint64_t *state, size_t *ret_len)
{
	struct pb_buf b = {0};
	const uint8_t *msg = NULL;
	uint8_t *copy = NULL;
	size_t pos = 0;

	do {
		b.len = 0;
		sample_make(s, state);
	} while (ntrace_event_append(&b, &s->view) == 0 && b.len > 400);
	if (b.len && pb_delimited_next(b.data, b.len, &pos, &msg, ret_len) == 1 && *ret_len)
		copy = malloc(*ret_len);
	if (copy)
		memcpy(copy, msg, *ret_len);
	pb_buf_free(&b);
	return copy;
}

/* Cuts msg at `cut`: what is accepted must be a beginning of the same fields, to the byte. */
static bool survives_cut(const uint8_t *msg, size_t cut, bool *ret_accepted)
{
	_cleanup_free_ uint8_t *exact = malloc(cut ? cut : 1);
	struct ntrace_event_view e;
	struct pb_buf b = {0};
	const uint8_t *out = NULL;
	size_t at = 0, pos = 0, len = 0;
	bool ok;
	int err;

	if (!exact)
		return false;
	memcpy(exact, msg, cut);
	err = ntrace_event_parse(exact, cut, &e, &at);
	ok = opinion_in_bounds(err, &e, at, exact, cut);
	*ret_accepted = err == 0;
	if (!err)
		ok = ok && ntrace_event_append(&b, &e) == 0 &&
		     pb_delimited_next(b.data, b.len, &pos, &out, &len) == 1 && len == cut &&
		     memcmp(out, msg, cut) == 0;
	pb_buf_free(&b);
	return ok;
}

/* How many fields the event has at its top level. */
static unsigned field_count(const struct ntrace_event_view *e)
{
	return !!e->timestamp + !!e->data + !!e->nd_idx + !!e->nc_idx + !!e->event_type +
	       !!e->hint.len + !!e->duration + !!e->thread_id + !!e->id + !!e->parent_id +
	       !!e->status + e->attr_count + !!e->phase + !!e->tracking_id + !!e->type +
	       e->has_nrta_seq_id;
}

TEST("parse: cut at every byte, only the borders of fields are accepted", "[proto]")
{
	struct sample *s = calloc(1, sizeof(*s));
	uint64_t state = 0x6e74726163650005;

	REQUIRE(s != NULL);
	for (int i = 0; i < 100; i++) {
		unsigned accepted = 0, bad = 0;
		size_t len = 0;
		_cleanup_free_ uint8_t *msg = small_message(s, &state, &len);

		REQUIRE(msg != NULL);
		for (size_t cut = 0; cut <= len; cut++) {
			bool taken = false;

			bad += !survives_cut(msg, cut, &taken);
			accepted += taken;
		}
		test_info("event %d of %zu bytes", i, len);
		CHECK_EQ(bad, 0);
		CHECK_EQ(accepted, field_count(&s->view) + 1);
	}
	free(s);
}

TEST("parse: with any one bit flipped, results stay in bounds and protobuf-c agrees", "[proto]")
{
	struct sample *s = calloc(1, sizeof(*s));
	uint64_t state = 0x6e74726163650006;
	unsigned accepted = 0, refused = 0;

	REQUIRE(s != NULL);
	for (int i = 0; i < 40; i++) {
		size_t len = 0, bad = SIZE_MAX;
		_cleanup_free_ uint8_t *msg = small_message(s, &state, &len);

		REQUIRE(msg != NULL);
		for (size_t bit = 0; bit < len * 8; bit++) {
			struct ntrace_event_view e;
			size_t at = 0;
			int err;

			msg[bit / 8] ^= (uint8_t)(1u << bit % 8);
			err = ntrace_event_parse(msg, len, &e, &at);
			if (!opinion_in_bounds(err, &e, at, msg, len) ||
				(!err && !opinion_protobuf_c(msg, len, &e)))
				bad = bit;
			*(err ? &refused : &accepted) += 1;
			msg[bit / 8] ^= (uint8_t)(1u << bit % 8);
		}
		test_info("event %d, bit %zu", i, bad);
		CHECK(bad == SIZE_MAX);
	}
	CHECK(accepted > 1000); /* both kinds of answer were met often */
	CHECK(refused > 1000);
	free(s);
}

TEST("parse: pseudo-random bytes never lead out of bounds", "[proto]")
{
	uint64_t state = 0x6e74726163650007;
	unsigned accepted = 0, bad = 0;

	for (int i = 0; i < 50000; i++) {
		size_t len = 1 + sample_random(&state) % 40, at = 0;
		_cleanup_free_ uint8_t *buf = malloc(len);
		struct ntrace_event_view e;
		int err;

		REQUIRE(buf != NULL);
		/* every other byte small: tags and lengths that lead further in */
		for (size_t k = 0; k < len; k++)
			buf[k] = (uint8_t)(sample_random(&state) & (k % 2 ? 0x0f : 0x7f));
		err = ntrace_event_parse(buf, len, &e, &at);
		bad += !opinion_in_bounds(err, &e, at, buf, len) ||
		       (!err && !opinion_protobuf_c(buf, len, &e));
		accepted += err == 0;
	}
	CHECK_EQ(bad, 0);
	CHECK(accepted > 100);
}
