/* SPDX-License-Identifier: Apache-2.0 */
/*
 * map64_test.c - the small hash table against a plain list.
 */
#include "runtime/record/map64.h"

#include "tests/shim/shim.h"
#include "tests/unit/merge_random.h"

TEST("map64: it finds what was put, also after removals, as a plain list does", "[merge]")
{
	struct map64 m = {0};
	uint64_t plain[64] = {0};
	struct random r = {11};

	for (unsigned i = 0; i < 20000; i++) {
		/* Keys that collide: their hashes share the high bits. */
		unsigned k = next(&r, 64);
		uint64_t key = ((uint64_t)k << 58 | k) + 1;

		if (next(&r, 2)) {
			plain[k] = next(&r, 1000) + 1;
			REQUIRE_EQ(map64_put(&m, key, plain[k]), 0);
		} else {
			CHECK_EQ(map64_remove(&m, key), plain[k] != 0);
			plain[k] = 0;
		}
		k = next(&r, 64);
		const uint64_t *found = map64_find(&m, ((uint64_t)k << 58 | k) + 1);
		CHECK_EQ(found ? *found : 0, plain[k]);
	}
	map64_free(&m);
	CHECK(map64_find(&m, 1) == NULL);
}

TEST("map64: key 0, which marks what is free, is neither found nor removed nor put", "[merge]")
{
	struct map64 m = {0};

	CHECK(!map64_find(&m, 0));
	for (uint64_t key = 1; key <= 5; key++)
		REQUIRE_EQ(map64_put(&m, key, 10 * key), 0);
	CHECK(!map64_find(&m, 0));
	CHECK(!map64_remove(&m, 0));
	CHECK_EQ(map64_put(&m, 0, 1), -EINVAL);
	CHECK_EQ(m.count, 5);
	for (uint64_t key = 1; key <= 5; key++)
		CHECK(map64_find(&m, key) && *map64_find(&m, key) == 10 * key);
	map64_free(&m);
}
