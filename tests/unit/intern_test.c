/* SPDX-License-Identifier: Apache-2.0 */
/*
 * intern_test.c - name ids against vectors of another implementation.
 *
 * The hashes are those of CPython 3.11 (whose hash() of bytes is SipHash-1-3, with a zero key under
 * PYTHONHASHSEED=0) over the text and one byte 0xFF.
 */
#include <string.h>

#include "runtime/trace/intern.h"
#include "tests/shim/shim.h"

static const struct {
	const char *text;
	uint64_t hash, id;
} vectors[] = {
	{"", 0x30406ea523c53defu, 121655548788208u},
	{"a", 0x719b50b9a4f0e9f3u, 933183196555764u},
	{"add_vectors", 0x4a1ef3e462726e6eu, 831112183180911u},
	{"0123456", 0x73aba660808c83e2u, 1027358333895651u}, /* 7 bytes and the end mark: a word */
	{"01234567", 0x5afa6202e1213f4du, 670714459930446u}, /* a word, then the end mark */
	{"The quick brown fox jumps over the lazy dog", 0x8dd2037fb281e249u, 566796944007754u},
};

TEST("intern: hashes and ids agree with an independent implementation", "[intern]")
{
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		size_t len = strlen(vectors[i].text);

		test_info("text '%s'", vectors[i].text);
		CHECK_EQ(intern_hash(vectors[i].text, len), vectors[i].hash);
		CHECK_EQ(intern_id(vectors[i].text, len), vectors[i].id);
	}
}

TEST("intern: an id is from 1 to 2^50", "[intern]")
{
	char text[8] = "name000";

	for (int i = 0; i < 1000; i++) {
		uint64_t id;

		text[4] = (char)('0' + i / 100);
		text[5] = (char)('0' + i / 10 % 10);
		text[6] = (char)('0' + i % 10);
		id = intern_id(text, 7);
		CHECK(id >= 1 && id <= 1ull << INTERN_ID_BITS);
	}
}
