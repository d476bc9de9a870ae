/* SPDX-License-Identifier: Apache-2.0 */
/* utf8_test.c - sequences at the edges of each form, and every code point there and back. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/utf8.h"
#include "tests/shim/shim.h"

TEST("utf8: what is a sequence and what is none", "[utf8]")
{
	static const struct {
		const char *text;
		size_t left, length;
	} rows[] = {
		{"", 0, 0},
		{"", 1, 1}, /* NUL */
		{"a", 1, 1},
		{"\x7f", 1, 1},
		{"\x80", 1, 0},
		{"\xbf\x80", 2, 0},
		{"\xc1\xbf", 2, 0}, /* overlong */
		{"\xc2\x80", 2, 2},
		{"\xc2\x80", 1, 0}, /* cut */
		{"\xc2x", 2, 0},
		{"\xdf\xbfz", 3, 2},
		{"\xe0\x9f\xbf", 3, 0}, /* overlong */
		{"\xe0\xa0\x80", 3, 3},
		{"\xe2\x82\xac", 3, 3},
		{"\xe2\x82\xac", 2, 0},
		{"\xed\x9f\xbf", 3, 3},
		{"\xed\xa0\x80", 3, 0}, /* surrogates */
		{"\xed\xbf\xbf", 3, 0},
		{"\xee\x80\x80", 3, 3},
		{"\xf0\x8f\xbf\xbf", 4, 0}, /* overlong */
		{"\xf0\x90\x80\x80", 4, 4},
		{"\xf4\x8f\xbf\xbf", 4, 4},
		{"\xf4\x90\x80\x80", 4, 0}, /* beyond U+10FFFF */
		{"\xf8\x88\x80\x80\x80", 5, 0},
		{"\xff\xff", 2, 0},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		/* A copy of exactly that size: reading on would be noticed by a sanitizer. */
		char *copy = malloc(rows[i].left + (rows[i].left == 0));

		test_info("row %zu", i);
		REQUIRE(copy != NULL);
		memcpy(copy, rows[i].text, rows[i].left);
		CHECK_EQ(utf8_length(copy, rows[i].left), rows[i].length);
		free(copy);
	}
}

/* Sequences of n bytes that utf8_length takes as a whole, out of all that begin with `lead`. */
static size_t count_whole(unsigned lead, size_t n)
{
	size_t whole = 0;

	for (uint32_t rest = 0; rest < 1u << 6 * (n - 1); rest++) {
		uint8_t s[4] = {(uint8_t)lead};

		for (size_t i = 1; i < n; i++)
			s[i] = (uint8_t)(0x80 | (rest >> 6 * (n - 1 - i) & 0x3f));
		whole += utf8_length(s, n) == n;
	}
	return whole;
}

TEST("utf8: a cut keeps sequences whole, and what is none is cut anywhere", "[utf8]")
{
	static const struct {
		const char *text;
		size_t most, cut;
	} rows[] = {
		{"", 0, 0}, {"abc", 5, 3}, {"abc", 3, 3}, {"abc", 2, 2}, {"abc", 0, 0},
		{"a\xc3\xa4z", 2, 1}, {"a\xc3\xa4z", 3, 3}, {"\xe2\x82\xac", 1, 0},
		{"\xe2\x82\xac", 2, 0}, {"x\xf0\x9f\x98\x80", 4, 1}, {"x\xf0\x9f\x98\x80", 5, 5},
		{"\x80\x80\x80\x80\x80", 3, 3}, {"ab\xe2\x82", 3, 3}, /* was cut before */
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		test_info("row %zu", i);
		CHECK_EQ(utf8_cut(rows[i].text, strlen(rows[i].text), rows[i].most), rows[i].cut);
	}
}

TEST("utf8: each code point has one form, and nothing else has one", "[utf8]")
{
	static const size_t want[] = {0x80, 0x800 - 0x80, 0x10000 - 0x800 - 0x800, 0x100000};

	for (size_t n = 1; n <= 4; n++) {
		size_t whole = 0;

		test_info("%zu bytes", n);
		for (unsigned lead = 0; lead < 256; lead++)
			whole += count_whole(lead, n);
		CHECK_EQ(whole, want[n - 1]);
	}
}
