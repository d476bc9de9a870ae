/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock_test.c - snapshots are brackets, and offsets come out of them exactly.
 */
#include <time.h>

#include "runtime/base/clock.h"
#include "tests/shim/shim.h"

static uint64_t now(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

TEST("clock: boot time is CLOCK_BOOTTIME in ns", "[base]")
{
	uint64_t before = now(CLOCK_BOOTTIME);
	struct boot_ns t = clock_boot();
	uint64_t after = now(CLOCK_BOOTTIME);

	CHECK(before <= t.ns);
	CHECK(t.ns <= after);
}

TEST("clock: a snapshot lies inside its bracket in every clock", "[base]")
{
	uint64_t boot = now(CLOCK_BOOTTIME), mono = now(CLOCK_MONOTONIC);
	uint64_t raw = now(CLOCK_MONOTONIC_RAW);
	struct clock_snapshot s = clock_snapshot_take();

	CHECK(boot <= s.boot_before);
	CHECK(s.boot_before <= s.boot_after);
	CHECK(s.boot_after <= now(CLOCK_BOOTTIME));
	CHECK(mono <= s.monotonic);
	CHECK(s.monotonic <= now(CLOCK_MONOTONIC));
	CHECK(raw <= s.monotonic_raw);
	CHECK(s.monotonic_raw <= now(CLOCK_MONOTONIC_RAW));
}

TEST("clock: the bracket is tight enough to be of use", "[base]")
{
	uint64_t best = UINT64_MAX;

	/* One snapshot may meet a preemption in each of its brackets; of a hundred, one does not.
	 */
	for (int i = 0; i < 100; i++) {
		struct clock_snapshot s = clock_snapshot_take();

		if (s.boot_after - s.boot_before < best)
			best = s.boot_after - s.boot_before;
	}
	CHECK(best < 1000000);
}

TEST("clock: boot time plus the snapshot's offset is the realtime", "[base]")
{
	struct clock_snapshot s = clock_snapshot_take();
	uint64_t middle = s.boot_before + (s.boot_after - s.boot_before) / 2;
	int64_t width = (int64_t)(s.boot_after - s.boot_before);
	/* The same difference by hand: a realtime reading between two of boot time. */
	uint64_t b0 = now(CLOCK_BOOTTIME), r = now(CLOCK_REALTIME), b1 = now(CLOCK_BOOTTIME);
	int64_t low = (int64_t)(r - b1), high = (int64_t)(r - b0);

	CHECK(middle + (uint64_t)clock_snapshot_offset(&s) == s.realtime);
	CHECK(clock_snapshot_offset(&s) >= low - width);
	CHECK(clock_snapshot_offset(&s) <= high + width);
}

TEST("clock: offset is realtime minus the middle of the bracket, negative too", "[base]")
{
	static const struct {
		struct clock_snapshot s;
		int64_t want;
	} rows[] = {
		{{.boot_before = 100, .boot_after = 110, .realtime = 1105}, 1000},
		{{.boot_before = 100, .boot_after = 111, .realtime = 1105}, 1000},
		{{.boot_before = 5000, .boot_after = 5000, .realtime = 2000}, -3000},
		{{.boot_before = 7, .boot_after = 7, .realtime = 1753000000000000007},
			1753000000000000000},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		CHECK_EQ(clock_snapshot_offset(&rows[i].s), rows[i].want);
}

TEST("clock: the time stamp counter advances where there is one", "[base]")
{
	uint64_t first = clock_snapshot_take().tsc, second = clock_snapshot_take().tsc;

#ifdef __x86_64__
	CHECK(first != 0);
	CHECK(second > first);
#else
	CHECK_EQ(first, 0);
	CHECK_EQ(second, 0);
#endif
}

TEST("clock: a time in some milliseconds is that much later, with the second carried", "[clock]")
{
	static const unsigned spans[] = {0, 1, 999, 1000, 1001, 2500};

	for (size_t i = 0; i < sizeof(spans) / sizeof(*spans); i++) {
		struct timespec before, after, t;
		long long ms = spans[i], got;

		clock_gettime(CLOCK_MONOTONIC, &before);
		t = clock_in_ms(CLOCK_MONOTONIC, spans[i]);
		clock_gettime(CLOCK_MONOTONIC, &after);
		CHECK(t.tv_nsec >= 0 && t.tv_nsec < 1000000000L);
		got = (t.tv_sec - before.tv_sec) * 1000000000LL + t.tv_nsec - before.tv_nsec;
		CHECK(got >= ms * 1000000);
		got = (t.tv_sec - after.tv_sec) * 1000000000LL + t.tv_nsec - after.tv_nsec;
		CHECK(got <= ms * 1000000);
	}
}
