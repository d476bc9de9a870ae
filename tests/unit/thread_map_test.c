/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread_map_test.c - which thread of the host had an id of another pid namespace at a time, held
 * against the rule itself: of the rows that hold, the one that was told last.
 */
#include "runtime/record/thread_map.h"

#include <stdlib.h>

#include "tests/shim/shim.h"

#define TID 7u
#define ROWS 200u

/* What the rule says of rows in the order in which they were told. */
static uint32_t by_rule(const struct rec_thread *rows, size_t count, uint64_t at)
{
	while (count-- > 0)
		if (rows[count].from_ns <= at)
			return rows[count].host_tid;
	return 0;
}

TEST("thread map: an id used again is the newest thread that had it by then, in any order of times",
	"[merge]")
{
	for (unsigned seed = 1; seed <= 50; seed++) {
		struct rec_thread told[ROWS];
		struct thread_map m = {0};

		srand(seed);
		for (unsigned i = 0; i < ROWS; i++) {
			uint64_t from = seed % 2 ? 10 * i + 5 : (uint64_t)rand() % 2000;

			told[i] = (struct rec_thread){
				.tid = TID, .host_tid = 1000 + i, .from_ns = from};
			CHECK_EQ(thread_map_add(&m, &told[i]), 1);
			CHECK_EQ(thread_map_add(&m, &told[i]), 0);
		}
		for (uint64_t at = 0; at < 2100; at++)
			REQUIRE(thread_map_host(&m, TID, at) == by_rule(told, ROWS, at));
		CHECK_EQ(thread_map_host(&m, TID, UINT64_MAX), by_rule(told, ROWS, UINT64_MAX));
		CHECK_EQ(thread_map_host(&m, TID + 1, 1), 0);
		CHECK(thread_map_knows(&m, TID));
		CHECK(!thread_map_knows(&m, TID + 1));
		thread_map_free(&m);
	}
}

TEST("thread map: rows that a later one hides take no room", "[merge]")
{
	struct thread_map m = {0};

	for (uint32_t i = 0; i < 100000; i++)
		CHECK_EQ(thread_map_add(&m,
				 &(struct rec_thread){
					 .tid = TID, .host_tid = 1 + i, .from_ns = 100000 - i}),
			1);
	REQUIRE(m.count == 1);
	CHECK_EQ(m.ids[0].count, 1);
	thread_map_free(&m);
}
