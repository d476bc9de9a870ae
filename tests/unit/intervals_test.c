/* SPDX-License-Identifier: Apache-2.0 */
/*
 * intervals_test.c - unions and intersections against one byte per moment.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/output/intervals.h"
#include "tests/shim/shim.h"

#define MOMENTS 400

static uint64_t seed = 7;

static uint64_t pick(uint64_t below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (seed >> 33) % below;
}

/* Fills both; in the order of ends, or in any. */
static bool fill(struct intervals *s, char *moments, unsigned n, bool ordered)
{
	uint64_t ends[20];

	memset(moments, 0, MOMENTS);
	for (unsigned i = 0; i < n; i++) {
		ends[i] = 1 + pick(MOMENTS - 1);
		for (unsigned k = i; ordered && k > 0 && ends[k] < ends[k - 1]; k--) {
			uint64_t t = ends[k];
			ends[k] = ends[k - 1];
			ends[k - 1] = t;
		}
	}
	for (unsigned i = 0; i < n; i++) {
		uint64_t length = pick(40), from = ends[i] > length ? ends[i] - length : 0;

		memset(moments + from, 1, ends[i] - from);
		if (intervals_add(s, from, ends[i]) < 0)
			return false;
	}
	if (!ordered)
		intervals_finish(s);
	return true;
}

static bool matches(const struct intervals *s, const char *moments)
{
	char got[MOMENTS] = {0};

	for (size_t i = 0; i < s->n; i++) {
		if (s->list[i].from >= s->list[i].to)
			return false;
		if (i && s->list[i - 1].to >= s->list[i].from)
			return false; /* not joined, or not in order */
		memset(got + s->list[i].from, 1, s->list[i].to - s->list[i].from);
	}
	return !memcmp(got, moments, MOMENTS);
}

TEST("intervals: unions and intersections are those of single moments", "[summary]")
{
	for (unsigned round = 0; round < 2000; round++) {
		struct intervals a = {0}, b = {0}, both = {0};
		char in_a[MOMENTS], in_b[MOMENTS], joined[MOMENTS], common[MOMENTS];
		uint64_t total = 0;

		REQUIRE(fill(&a, in_a, (unsigned)pick(20), round % 2));
		REQUIRE(fill(&b, in_b, (unsigned)pick(20), round % 4 < 2));
		REQUIRE(matches(&a, in_a) && matches(&b, in_b));
		for (unsigned i = 0; i < MOMENTS; i++) {
			joined[i] = in_a[i] | in_b[i];
			common[i] = in_a[i] & in_b[i];
			total += (uint64_t)in_a[i];
		}
		CHECK(intervals_total(&a) == total);
		REQUIRE(intervals_join(&both, &a) == 0 && intervals_join(&both, &b) == 0);
		REQUIRE(matches(&both, joined));
		REQUIRE(intervals_common(&a, &b) == 0);
		REQUIRE(matches(&a, common));
		intervals_free(&a);
		intervals_free(&b);
		intervals_free(&both);
	}
}

TEST("intervals: spans that overlap take the memory of one", "[summary]")
{
	struct intervals s = {0};

	for (uint64_t i = 0; i < 100000; i++)
		REQUIRE(intervals_add(&s, i * 10, i * 10 + 15) == 0);
	CHECK(s.n == 1);
	CHECK(s.cap <= 16);
	CHECK(intervals_total(&s) == 1000005);
	intervals_free(&s);
}
