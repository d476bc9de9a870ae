/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_clock_test.c - the map of a device's clock: what it says lies within what it states, whatever the
 * clock does and wherever the numbers stand.
 */
#include <string.h>

#include "runtime/record/device_clock.h"
#include "tests/shim/shim.h"

#define S 1000000000ull

/* The truth that the map must find: a device clock that drifts by ppb(t), which changes in between. */
struct truth {
	uint64_t host0, nc0;
	int64_t ppb[2]; /* before and after `turn` */
	uint64_t turn;	/* ns since the beginning */
};

static uint64_t device_at(const struct truth *t, uint64_t since)
{
	uint64_t first = since < t->turn ? since : t->turn;
	__extension__ __int128 gone = (__int128)first * t->ppb[0];

	gone += (__int128)(since - first) * t->ppb[1];
	return t->nc0 + since - (uint64_t)(int64_t)(gone / 1000000000);
}

static uint64_t next(uint64_t *r)
{
	*r = *r * 6364136223846793005ull + 1442695040888963407ull;
	return *r >> 33;
}

/* A reading of both clocks that is wrong by anything up to its bound. */
static void read_both(struct device_clock *c, const struct truth *t, uint64_t since, uint64_t bound,
	uint64_t *random)
{
	uint64_t wrong = next(random) % (2 * bound + 1);
	struct device_point p = {.nc = device_at(t, since),
		.host = t->host0 + since + wrong - bound,
		.bound = bound};

	device_clock_add(c, &p);
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* Is what the map says of this moment true? */
static bool is_true(const struct device_clock *c, const struct truth *t, uint64_t since)
{
	uint64_t nc = device_at(t, since), host = t->host0 + since, low, high;
	uint64_t said = device_clock_host(c, nc);

	device_clock_interval(c, nc, &low, &high);
	test_info("at %llu: host %llu, said %llu, between %llu and %llu", (unsigned long long)since,
		(unsigned long long)host, (unsigned long long)said, (unsigned long long)low,
		(unsigned long long)high);
	return low <= host && host <= high && low <= said && said <= high &&
	       distance(said, host) <= device_clock_bound(c, nc, said);
}

TEST("device clock: every time lies within its stated error: drift, turns, readings that are wrong",
	"[clock]")
{
	static const struct {
		struct truth truth;
		uint64_t every, bound;
	} rows[] = {
		{{S, 7 * S, {0, 0}, 0}, S, 100},
		{{S, 7 * S, {50000, 50000}, 0}, S, 300},
		{{S, 7 * S, {-50000, -50000}, 0}, S, 300},
		{{900 * S, 1000, {99000, -99000}, 60 * S}, S, 50},
		{{900 * S, 1000, {-99000, 99000}, 60 * S}, 7 * S, 5000},
		{{900 * S, 1000, {50000, 50000}, 0}, 60 * S, 1000}, /* rare anchors */
		{{(1ull << 63) - 60 * S, (1ull << 63) - 30 * S, {50000, 50000}, 0}, S, 100},
		{{UINT64_MAX - 200 * S, 5, {50000, 20000}, 40 * S}, S, 100},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct device_clock c = {0};
		uint64_t random = i, since = 0, largest = 0;

		for (; since <= 120 * S; since += rows[i].every) {
			read_both(&c, &rows[i].truth, since, rows[i].bound, &random);
			/* Until the next point, and back beyond the one before. */
			for (unsigned k = 0; k < 20; k++) {
				uint64_t at = since + next(&random) * 1000 % rows[i].every;
				uint64_t back = next(&random) * 1000 % (2 * rows[i].every);
				uint64_t nc = device_at(&rows[i].truth, at);
				uint64_t bound =
					device_clock_bound(&c, nc, device_clock_host(&c, nc));

				test_info("row %zu", i);
				REQUIRE(is_true(&c, &rows[i].truth, at));
				REQUIRE(is_true(
					&c, &rows[i].truth, back < since ? since - back : 0));
				largest = bound > largest ? bound : largest;
			}
		}
		/* The statement is of use: twice the drift that is allowed for, and the reading. */
		CHECK(largest <= rows[i].every / 5000 + 2 * rows[i].bound + 10);
		CHECK_EQ(c.resets, 0);
		CHECK_EQ(c.drift_limit, DEVICE_DRIFT_PPB);
		CHECK(c.residual <= rows[i].every / 5000 + 4 * rows[i].bound);
	}
}

TEST("device clock: between two points the map is linear and knows better than beyond them",
	"[clock]")
{
	struct device_clock c = {0};
	struct truth t = {.host0 = S, .nc0 = 7 * S, .ppb = {80000, 80000}};
	uint64_t nc = device_at(&t, 10 * S - 1000000);

	device_clock_add(&c, &(struct device_point){device_at(&t, 0), S, 10});
	uint64_t before = device_clock_bound(&c, nc, device_clock_host(&c, nc));
	device_clock_add(&c, &(struct device_point){device_at(&t, 10 * S), 11 * S, 10});
	uint64_t after = device_clock_bound(&c, nc, device_clock_host(&c, nc));
	CHECK(before >= 999800);
	CHECK(after <= 300);
	CHECK(distance(device_clock_host(&c, nc), 11 * S - 1000000) <= 1);
	CHECK_EQ(device_clock_drift(&c), 80006); /* per ns of the device's own */
}

TEST("device clock: drift that cannot be told from the readings' errors is 0", "[clock]")
{
	struct device_clock c = {0};

	device_clock_add(&c, &(struct device_point){1000, 5000, 40});
	CHECK_EQ(device_clock_drift(&c), 0);
	device_clock_add(&c, &(struct device_point){2000, 6050, 40});
	CHECK_EQ(device_clock_drift(&c), 0);
	device_clock_add(&c, &(struct device_point){1001000, 1005000 + 120, 20});
	CHECK_EQ(device_clock_drift(&c), 120000);
}

TEST("device clock: one that drifts more than is allowed for gets what it shows", "[clock]")
{
	struct device_clock c = {0};
	struct truth t = {.host0 = S, .nc0 = 7 * S, .ppb = {3000000, 3000000}};
	uint64_t random = 1;

	for (unsigned i = 0; i < 20; i++)
		read_both(&c, &t, i * S, 100, &random);
	CHECK_EQ(c.resets, 0);
	CHECK(c.drift_limit >= 3000000);
	CHECK(c.drift_limit < 3100000);
	for (unsigned i = 0; i < 20; i++)
		REQUIRE(is_true(&c, &t, 19 * S + i * S / 20));
}

TEST("device clock: after a reset or a stop the points before say nothing", "[clock]")
{
	static const struct device_point after[] = {
		{500, 20 * S, 50},	      /* began anew */
		{9 * S + 1000, 3600 * S, 50}, /* stood still while the machine slept */
		{3600 * S, 11 * S, 50},	      /* jumped */
	};

	for (size_t i = 0; i < sizeof(after) / sizeof(*after); i++) {
		struct device_clock c = {0};
		uint64_t low, high;

		for (uint64_t k = 0; k < 5; k++)
			device_clock_add(&c, &(struct device_point){5 * S + k * S, S + k * S, 50});
		device_clock_add(&c, &after[i]);
		test_info("row %zu", i);
		CHECK_EQ(c.resets, 1);
		CHECK_EQ(c.count, 1);
		CHECK_EQ(c.total, 6);
		CHECK_EQ(device_clock_host(&c, after[i].nc + 100), after[i].host + 100);
		device_clock_interval(&c, after[i].nc, &low, &high);
		CHECK_EQ(low, after[i].host - 52);
		CHECK_EQ(high, after[i].host + 52);
	}
}

TEST("device clock: a point that comes again, or is older and agrees, changes nothing", "[clock]")
{
	struct device_clock c = {0}, before;

	device_clock_add(&c, &(struct device_point){S, 5 * S, 50});
	device_clock_add(&c, &(struct device_point){2 * S, 6 * S, 50});
	before = c;
	device_clock_add(&c, &(struct device_point){2 * S, 6 * S, 50});
	device_clock_add(&c, &(struct device_point){S + S / 2, 5 * S + S / 2 + 30, 50});
	CHECK_EQ(memcmp(&c, &before, sizeof(c)), 0);
}

TEST("device clock: at the edges of 64 bits nothing wraps", "[clock]")
{
	static const struct {
		struct device_point point;
		uint64_t nc, host, low, high;
	} rows[] = {
		{{1000, 500, 10}, 400, 0, 0, 0},
		{{1000, 500, 10}, 500, 0, 0, 13},
		{{1000, UINT64_MAX - 5, 10}, 1002, UINT64_MAX - 3, UINT64_MAX - 16, UINT64_MAX},
		{{1000, UINT64_MAX - 5, 10}, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX},
		{{1ull << 63, 1ull << 63, 1}, (1ull << 63) - 1, (1ull << 63) - 1, (1ull << 63) - 5,
			(1ull << 63) + 3},
		{{UINT64_MAX, 1ull << 62, UINT64_MAX}, 0, 0, 0, 4613530692834758862},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct device_clock c = {0};
		uint64_t low, high;

		device_clock_add(&c, &rows[i].point);
		device_clock_interval(&c, rows[i].nc, &low, &high);
		test_info(
			"row %zu: %llu %llu", i, (unsigned long long)low, (unsigned long long)high);
		CHECK(device_clock_host(&c, rows[i].nc) == rows[i].host);
		CHECK(low == rows[i].low);
		CHECK(high == rows[i].high);
	}
}

TEST("device clock: whatever points come, the map answers within what it states", "[clock]")
{
	uint64_t random = 99;

	for (unsigned round = 0; round < 2000; round++) {
		struct device_clock c = {0};

		for (unsigned k = 0; k < 40; k++) {
			unsigned wide = (unsigned)next(&random) % 64;
			struct device_point p = {.nc = next(&random) << wide,
				.host = next(&random) << next(&random) % 64,
				.bound = next(&random) >> next(&random) % 32};
			uint64_t nc = next(&random) << next(&random) % 64, low, high, host;

			if (k % 3) { /* close to the one before */
				p.nc = c.points[c.count - 1].nc + (next(&random) >> 20);
				p.host = c.points[c.count - 1].host + (next(&random) >> 20);
			}
			device_clock_add(&c, &p);
			device_clock_interval(&c, nc, &low, &high);
			host = device_clock_host(&c, nc);
			test_info("round %u point %u", round, k);
			REQUIRE(low <= host && host <= high);
			REQUIRE(device_clock_bound(&c, nc, host) <= high - low);
			for (uint32_t i = 1; i < c.count; i++)
				REQUIRE(c.points[i - 1].nc < c.points[i].nc);
			(void)device_clock_drift(&c);
		}
	}
}
