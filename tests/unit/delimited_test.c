/* SPDX-License-Identifier: Apache-2.0 */
/*
 * delimited_test.c - varints at the borders of their lengths, and streams that are cut or lie.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/varint_fast.h"
#include "tests/shim/shim.h"

static const struct {
	uint64_t v;
	size_t size;
	uint8_t bytes[PB_MAX_VARINT];
} varints[] = {
	{0, 1, {0x00}},
	{1, 1, {0x01}},
	{0x7f, 1, {0x7f}},
	{0x80, 2, {0x80, 0x01}},
	{300, 2, {0xac, 0x02}},
	{0x3fff, 2, {0xff, 0x7f}},
	{0x4000, 3, {0x80, 0x80, 0x01}},
	{0x1fffff, 3, {0xff, 0xff, 0x7f}},
	{0x200000, 4, {0x80, 0x80, 0x80, 0x01}},
	{UINT32_MAX, 5, {0xff, 0xff, 0xff, 0xff, 0x0f}},
	{1ull << 35, 6, {0x80, 0x80, 0x80, 0x80, 0x80, 0x01}},
	{(1ull << 56) - 1, 8, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}},
	{1ull << 56, 9, {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01}},
	{INT64_MAX, 9, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}},
	{1ull << 63, 10, {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01}},
	{UINT64_MAX, 10, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}},
};

TEST("varint: bytes and size at every border, and back", "[proto]")
{
	for (size_t i = 0; i < sizeof(varints) / sizeof(varints[0]); i++) {
		uint8_t out[PB_MAX_VARINT] = {0};
		uint64_t back = ~varints[i].v;

		test_info("value %#llx", (unsigned long long)varints[i].v);
		CHECK_EQ(pb_varint_size(varints[i].v), varints[i].size);
		CHECK_EQ(pb_varint_put(out, varints[i].v), varints[i].size);
		CHECK(memcmp(out, varints[i].bytes, sizeof(out)) == 0);
		CHECK_EQ(pb_varint_get(out, out + varints[i].size, &back), varints[i].size);
		CHECK(back == varints[i].v);
	}
}

/* The fast reader must say the same as the plain one of any bytes, in a buffer that ends right behind. */
static bool readers_agree(const uint8_t *bytes, size_t size)
{
	uint64_t a = 0, b = 0;
	uint8_t *exact = malloc(size ? size : 1);
	const uint8_t *behind;
	size_t n;

	if (!exact)
		return false;
	memcpy(exact, bytes, size);
	n = pb_varint_get(exact, exact + size, &a);
	behind = pb_varint_get_fast(exact, exact + size, &b);
	bool same = n == 0 ? behind == NULL : behind == exact + n && a == b;
	free(exact);
	return same;
}

TEST("varint: the fast reader agrees with the plain one", "[proto]")
{
	uint64_t state = 88172645463325252ull;

	for (size_t i = 0; i < sizeof(varints) / sizeof(varints[0]); i++)
		for (size_t size = 0; size <= sizeof(varints[i].bytes); size++)
			CHECK(readers_agree(varints[i].bytes, size));
	for (unsigned round = 0; round < 20000; round++) {
		uint8_t bytes[16];

		for (unsigned i = 0; i < sizeof(bytes); i++) {
			state ^= state << 13;
			state ^= state >> 7;
			state ^= state << 17;
			bytes[i] = (uint8_t)(state >> 32 | (state & 7 ? 0x80 : 0));
		}
		for (size_t size = 0; size <= sizeof(bytes); size++)
			if (!readers_agree(bytes, size)) {
				test_info("round %u, %zu bytes", round, size);
				CHECK(false);
			}
	}
}

TEST("varint: size agrees with the encoder for every bit length", "[proto]")
{
	uint8_t out[PB_MAX_VARINT];

	for (unsigned bits = 0; bits < 64; bits++) {
		CHECK_EQ(pb_varint_size(1ull << bits), pb_varint_put(out, 1ull << bits));
		CHECK_EQ(
			pb_varint_size((1ull << bits) - 1), pb_varint_put(out, (1ull << bits) - 1));
	}
}

TEST("varint: one that is cut off is refused at every cut", "[proto]")
{
	for (size_t i = 0; i < sizeof(varints) / sizeof(varints[0]); i++) {
		for (size_t cut = 0; cut < varints[i].size; cut++) {
			/* exactly as large as the input, so that a sanitizer sees a read too far */
			uint8_t *exact = malloc(cut ? cut : 1);
			uint64_t v = 42;

			REQUIRE(exact != NULL);
			memcpy(exact, varints[i].bytes, cut);
			CHECK_EQ(pb_varint_get(exact, exact + cut, &v), 0);
			CHECK_EQ(v, 42);
			free(exact);
		}
	}
}

TEST("varint: more than 64 bits are refused, needless zeros are not", "[proto]")
{
	static const struct {
		const char *bytes;
		size_t len, want;
	} rows[] = {
		{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10, 0},
		{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 10, 0},
		{"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 11, 0},
		{"\x85\x80\x80\x00", 4, 4},
		{"\x85\x80\x80\x80\x80\x80\x80\x80\x80\x00", 10, 10},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const uint8_t *p = (const uint8_t *)rows[i].bytes;
		uint64_t v = 0;

		test_info("row %zu", i);
		CHECK_EQ(pb_varint_get(p, p + rows[i].len, &v), rows[i].want);
		CHECK_EQ(v, rows[i].want ? 5 : 0);
	}
}

TEST("delimited: messages come in order with their lengths, empty ones too", "[proto]")
{
	static const uint8_t stream[] = {3, 'a', 'b', 'c', 0, 1, 'z'};
	const uint8_t *msg = NULL;
	size_t pos = 0, len = 99;

	REQUIRE_EQ(pb_delimited_next(stream, sizeof(stream), &pos, &msg, &len), 1);
	CHECK_EQ(len, 3);
	CHECK(msg == stream + 1);
	REQUIRE_EQ(pb_delimited_next(stream, sizeof(stream), &pos, &msg, &len), 1);
	CHECK_EQ(len, 0);
	REQUIRE_EQ(pb_delimited_next(stream, sizeof(stream), &pos, &msg, &len), 1);
	CHECK_EQ(len, 1);
	CHECK_EQ(*msg, 'z');
	CHECK_EQ(pb_delimited_next(stream, sizeof(stream), &pos, &msg, &len), 0);
	CHECK_EQ(pos, sizeof(stream));
	CHECK_EQ(pb_delimited_next(stream, sizeof(stream), &pos, &msg, &len), 0);
}

TEST("delimited: an empty stream ends at once", "[proto]")
{
	const uint8_t *msg;
	size_t pos = 0, len;

	CHECK_EQ(pb_delimited_next((const uint8_t *)"", 0, &pos, &msg, &len), 0);
	CHECK_EQ(pos, 0);
}

TEST("delimited: a damaged prefix is reported and the cursor stays on it", "[proto]")
{
	static const struct {
		const char *what, *bytes;
		size_t len;
	} rows[] = {
		{"one byte short", "\x01x\x03yz", 5},
		{"nothing behind the length", "\x01x\x01", 3},
		{"length cut off", "\x01x\x80", 3},
		{"length of 64 ones: start + length wraps",
			"\x01x\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01y", 13},
		{"length beyond 64 bits", "\x01x\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7fy", 13},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t *exact = malloc(rows[i].len);
		const uint8_t *msg = NULL;
		size_t pos = 0, len = 0;

		test_info("%s", rows[i].what);
		REQUIRE(exact != NULL);
		memcpy(exact, rows[i].bytes, rows[i].len);
		CHECK_EQ(pb_delimited_next(exact, rows[i].len, &pos, &msg, &len), 1);
		CHECK_EQ(pb_delimited_next(exact, rows[i].len, &pos, &msg, &len), -EBADMSG);
		CHECK_EQ(pos, 2);
		CHECK_EQ(pb_delimited_next(exact, rows[i].len, &pos, &msg, &len), -EBADMSG);
		free(exact);
	}
}
