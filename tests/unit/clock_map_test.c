/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock_map_test.c - BOOTTIME to epoch time: steps of the realtime clock, sleep, brackets, edges.
 */
#include "runtime/record/clock_map.h"
#include "tests/shim/shim.h"

#define S 1000000000ull
#define OFFSET 1790000000000000000ull

/* At `at` with a bracket of `wide`; REALTIME is off by `step`, MONOTONIC is `slept` behind. */
static struct clock_snapshot snapshot(uint64_t at, uint64_t wide, int64_t step, uint64_t slept)
{
	return (struct clock_snapshot){.boot_before = at - wide / 2,
		.realtime = at + OFFSET + (uint64_t)step,
		.monotonic = at - slept,
		.monotonic_raw = at - slept,
		.boot_after = at - wide / 2 + wide};
}

TEST("clock map: the first snapshot that can be true gives the offset for good", "[clock]")
{
	struct clock_snapshot bad[] = {snapshot(5 * S, 100, 0, 0), snapshot(5 * S, 100, 0, 0),
		snapshot(5 * S, 100, 0, 0), snapshot(5 * S, 100, 0, 0), snapshot(5 * S, 100, 0, 0)};
	struct clock_snapshot good = snapshot(6 * S, 100, 0, 0),
			      later = snapshot(7 * S, 100, 5 * S, 0);
	struct clock_map m = {0};

	bad[0].realtime = 0; /* could not be read */
	bad[1].boot_before = 0;
	bad[2].boot_after = bad[2].boot_before - 1;
	bad[3].realtime = CLOCK_EPOCH_2100;
	bad[4].boot_after = UINT64_MAX;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		test_info("row %zu", i);
		CHECK(!clock_map_find(&m, &bad[i]));
		CHECK_EQ(clock_map_add(&m, &bad[i]), 0);
		CHECK(!m.known);
	}
	CHECK(clock_map_find(&m, &good));
	CHECK(!clock_map_find(&m, &later));
	CHECK_EQ(clock_map_real(&m, 9 * S), 9 * S + OFFSET);
	CHECK_EQ(m.begin, 6 * S - 50);
	clock_map_free(&m);
}

TEST("clock map: a step is a change beyond what brackets and slewing explain", "[clock]")
{
	static const struct {
		uint64_t wide;
		int64_t step;
		size_t steps;
	} rows[] = {
		{100, 0, 0},
		{100, CLOCK_STEP_NS, 0},
		{100, CLOCK_STEP_NS + 200, 0},
		{100, CLOCK_STEP_NS + 201, 1},
		{100, -(int64_t)CLOCK_STEP_NS - 200, 0},
		{100, -(int64_t)CLOCK_STEP_NS - 201, 1},
		{100, -2000000000, 1},
		{3000000, CLOCK_STEP_NS + 3000000, 0}, /* badly read */
		{100, 3600 * 1000000000ll, 1},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct clock_map m = {0};
		struct clock_snapshot a = snapshot(5 * S, rows[i].wide, 0, 0);
		struct clock_snapshot b = snapshot(6 * S, rows[i].wide, rows[i].step, 0);

		CHECK_EQ(clock_map_add(&m, &a), 0);
		CHECK_EQ(clock_map_add(&m, &b), 0);
		test_info("row %zu", i);
		CHECK_EQ(m.step_count, rows[i].steps);
		if (rows[i].steps && m.step_count) {
			CHECK_EQ(m.steps[0].boot_ns, 6 * S);
			CHECK_EQ(m.steps[0].new_offset - m.steps[0].old_offset, rows[i].step);
			CHECK_EQ(m.steps[0].suspended_ns, 0);
		}
		CHECK_EQ(m.offset, OFFSET);
		clock_map_free(&m);
	}
}

TEST("clock map: sleep is what MONOTONIC lacks, and no step", "[clock]")
{
	static const struct {
		uint64_t before, after; /* slept in all */
		int64_t step;
		size_t count;
		uint64_t want;
	} rows[] = {
		{0, 0, 0, 0, 0}, {0, 900000, 0, 0, 0},		  /* within error */
		{0, S / 2, 0, 1, S / 2}, {3 * S, 3 * S, 0, 0, 0}, /* before the recording */
		{3 * S, 3 * S + S / 4, 0, 1, S / 4},
		{0, S / 2, 2000000000, 2, S / 2}, /* and the clock was set when it woke */
		{S / 2, 0, 0, 0, 0},		  /* cannot be */
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct clock_map m = {0};
		struct clock_snapshot a = snapshot(5 * S, 100, 0, rows[i].before);
		struct clock_snapshot b = snapshot(6 * S, 100, rows[i].step, rows[i].after);

		CHECK_EQ(clock_map_add(&m, &a), 0);
		CHECK_EQ(clock_map_add(&m, &b), 0);
		test_info("row %zu", i);
		CHECK_EQ(m.step_count, rows[i].count);
		if (rows[i].want && m.step_count)
			CHECK_EQ(m.steps[0].suspended_ns, rows[i].want);
		clock_map_free(&m);
	}
}

TEST("clock map: times that are none are known, at every edge", "[clock]")
{
	static const struct {
		int64_t offset;
		uint64_t boot;
		bool valid;
	} rows[] = {
		{1790000000000000000, 0, false},
		{1790000000000000000, 1, true},
		{1790000000000000000, CLOCK_EPOCH_2100 - 1790000000000000000u - 1, true},
		{1790000000000000000, CLOCK_EPOCH_2100 - 1790000000000000000u, false},
		{0, CLOCK_EPOCH_2100 - 1, true},
		{0, CLOCK_EPOCH_2100, false},
		{1790000000000000000, (1ull << 63) - 1, false},
		{1790000000000000000, 1ull << 63, false},
		{1790000000000000000, UINT64_MAX, false},
		{-5, 5, true},
		{-5, 4, false}, /* before 1970 */
		{INT64_MIN, 1ull << 62, false},
		{INT64_MAX, 1, false},
		{INT64_MAX, UINT64_MAX, false},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct clock_map m = {.offset = rows[i].offset, .known = true};

		test_info("row %zu", i);
		CHECK_EQ(clock_map_valid(&m, rows[i].boot), rows[i].valid);
	}
}
