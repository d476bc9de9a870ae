/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event_store_test.c - what stands between the rings and a fetch: order, limits, what is left, names.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/trace/event_store.h"
#include "tests/shim/shim.h"

static const struct event_json_source nothing_known = {0};

static void put(struct event_store *s, uint32_t nc, uint64_t id, uint64_t when)
{
	struct trace_record r = {.nc_idx = nc, .id = id, .timestamp_ns = when};

	CHECK_EQ(event_store_add(s, nc, 0, &r, 1), 0);
}

/* The events of a write as "core:id core:id ", in static memory. */
static const char *written(struct event_store *s, int32_t nc, uint64_t limit)
{
	static char out[4096];
	struct event_json j;
	char *text = NULL;
	size_t len, used = 0;

	out[0] = '\0';
	if (event_json_begin(&j, &nothing_known) < 0 ||
		event_store_write(s, nc, limit, UINT64_MAX, &j) < 0)
		return "failed";
	event_json_end(&j, &text, &len);
	for (char *at = text; (at = strstr(at, "\"id\":")) != NULL; at++) {
		unsigned long long id = 0, core = 0;

		(void)sscanf(at, "\"id\":%llu,\"nc_idx\":%llu", &id, &core);
		used += (size_t)snprintf(
			out + used, sizeof(out) - used, "%s%llu:%llu", used ? " " : "", core, id);
	}
	free(text);
	return out;
}

TEST("event store: events of all cores come in the order of time, each once", "[event_store]")
{
	struct event_store *s = event_store_new(100);

	REQUIRE(s != NULL);
	put(s, 1, 1, 50);
	put(s, 0, 1, 10);
	put(s, 0, 2, 60);
	put(s, 0, 3, 40); /* a device's, emitted behind its time */
	put(s, 1, 2, 40);
	CHECK_STR(written(s, TRACE_ALL_NC, 0), "0:1 0:3 1:2 1:1 0:2");
	CHECK_STR(written(s, TRACE_ALL_NC, 0), "");
	event_store_free(s);
}

TEST("event store: events of one time keep the order of their numbers", "[event_store]")
{
	struct event_store *s = event_store_new(100);

	REQUIRE(s != NULL);
	put(s, 0, 1, 20);
	for (uint64_t id = 2; id < 12; id++)
		put(s, 0, id, 10);
	CHECK_STR(written(s, 0, 0), "0:2 0:3 0:4 0:5 0:6 0:7 0:8 0:9 0:10 0:11 0:1");
	event_store_free(s);
}

TEST("event store: a limit takes the oldest of each core, the rest waits", "[event_store]")
{
	struct event_store *s = event_store_new(100);

	REQUIRE(s != NULL);
	for (uint64_t id = 1; id <= 3; id++) {
		put(s, 0, id, id);
		put(s, 7, id, 10 + id);
	}
	put(s, TRACE_NC_UNKNOWN, 1, 2);
	CHECK_STR(written(s, 7, 1), "7:1");
	CHECK_STR(written(s, 3, 0), "");
	CHECK_STR(written(s, TRACE_ALL_NC, 2), "0:1 0:2 4294967295:1 7:2 7:3");
	put(s, 7, 4, 1);
	CHECK_STR(written(s, TRACE_ALL_NC, 0), "7:4 0:3");
	event_store_free(s);
}

TEST("event store: a full queue loses its oldest events and counts them", "[event_store]")
{
	struct event_store *s = event_store_new(3);

	REQUIRE(s != NULL);
	for (uint64_t id = 1; id <= 1000; id++)
		put(s, 0, id, id);
	put(s, 1, 1, 5);
	put(s, 0, 1001, 999); /* of another ring of that core */
	put(s, 0, 1002, 1);
	CHECK_STR(written(s, 1, 0), "1:1");
	CHECK_EQ(event_store_dropped(s), 999);
	CHECK_STR(written(s, TRACE_ALL_NC, 0), "0:999 0:1001 0:1000");
	event_store_free(s);
}

TEST("event store: a queue that is emptied in portions keeps its order", "[event_store]")
{
	struct event_store *s = event_store_new(10000);
	uint64_t next = 1, expect = 1;
	char want[32];

	REQUIRE(s != NULL);
	for (int round = 0; round < 3000; round++) {
		put(s, 0, next, next);
		next++;
		if (round % 2 == 0) {
			put(s, 0, next, next);
			next++;
		}
		(void)snprintf(want, sizeof(want), "0:%llu", (unsigned long long)expect++);
		CHECK_STR(written(s, 0, 1), want);
	}
	event_store_free(s);
}

/* Adds so many records of a core at a time: in order, but each tenth is older than the five before it. */
static void put_many(struct event_store *s, uint64_t first, uint32_t count)
{
	static struct trace_record r[512];

	for (uint32_t i = 0; i < count; i++) {
		uint64_t id = first + i;

		r[i] = (struct trace_record){
			.id = id, .timestamp_ns = 10 * id - (id % 10 ? 0 : 55)};
	}
	CHECK_EQ(event_store_add(s, 0, 0, r, count), 0);
}

TEST("event store: late events come into order whatever waits and is added", "[event_store]")
{
	struct event_store *s = event_store_new(100000);
	uint64_t next = 1, seen = 0, before = 0, id;
	char *text, *at;
	size_t len;

	REQUIRE(s != NULL);
	for (uint32_t round = 0; round < 400; round++) {
		struct event_json j;
		uint32_t n = 1 + round * 37 % 100;

		put_many(s, next, n);
		next += n;
		REQUIRE_EQ(event_json_begin(&j, &nothing_known), 0);
		REQUIRE_EQ(event_store_write(
				   s, 0, round < 399 ? 1 + round * 11 % 60 : 0, UINT64_MAX, &j),
			0);
		event_json_end(&j, &text, &len);
		for (at = text; (at = strstr(at, "\"id\":")) != NULL; at++, seen++) {
			uint64_t key;

			id = strtoull(at + 5, NULL, 10);
			key = 10 * id - (id % 10 ? 0 : 55);
			/* Not one that came too late for an earlier fetch. */
			CHECK(key >= before || id + 6 > next - n);
			before = key;
		}
		free(text);
	}
	CHECK_EQ(seen, next - 1);
	event_store_free(s);
}

/* Kilobytes of this process that were touched since the marks of the kernel were cleared; 0 = not known. */
static unsigned long touched_kb(void)
{
	FILE *f = fopen("/proc/self/smaps_rollup", "re");
	unsigned long kb = 0;
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Referenced: %lu", &kb) == 1)
			break;
	if (f)
		fclose(f);
	return kb;
}

static bool clear_touched(void)
{
	int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
	bool done = fd >= 0 && write(fd, "1", 1) == 1;

	if (fd >= 0)
		close(fd);
	return done;
}

/* What a fetch costs shows in the memory that it looks at: 400,000 records are 44 MB. */
TEST("event store: a fetch of a few does not look at the many that wait", "[event_store]")
{
	struct event_store *s = event_store_new(1000000);
	uint64_t next = 1;
	unsigned long kb;

	REQUIRE(s != NULL);
	for (; next < 400000; next += 400)
		put_many(s, next, 400);
	(void)written(s, 0, 1);
	if (!clear_touched() || touched_kb() > 4000)
		SKIP("a kernel that says which memory was touched");
	for (uint32_t round = 0; round < 10; round++) {
		put_many(s, next, 100); /* with late ones */
		next += 100;
		(void)written(s, 0, 50);
	}
	kb = touched_kb();
	test_info("touched: %lu kB", kb);
	CHECK(kb > 0 && kb < 22000);
	event_store_free(s);
}

TEST("event store: names are found by their ids, the last one counts", "[event_store]")
{
	struct event_store *s = event_store_new(1);
	size_t len = 0;
	char text[32];

	REQUIRE(s != NULL);
	CHECK(event_store_name(s, 1, &len) == NULL);
	for (unsigned i = 1; i <= 500; i++) {
		int n = snprintf(text, sizeof(text), "model %u", i);

		CHECK_EQ(event_store_add_name(s, i, text, (uint32_t)n), 0);
	}
	CHECK_EQ(event_store_add_name(s, 77, "other", 5), 0);
	CHECK_EQ(event_store_add_name(s, 0, "nobody", 6), 0);
	CHECK(!memcmp(event_store_name(s, 500, &len), "model 500", 9) && len == 9);
	CHECK(!memcmp(event_store_name(s, 77, &len), "other", 5) && len == 5);
	CHECK(!memcmp(event_store_name(s, 0, &len), EVENT_JSON_NO_NAME, len));
	event_store_free(s);
}

TEST("event store: what another store has is moved with its names, once", "[event_store]")
{
	struct event_store *s = event_store_new(4), *from = event_store_new(4);
	size_t len = 0;

	REQUIRE(s != NULL && from != NULL);
	for (int round = 0; round < 3; round++) {
		put(from, 1, 1, 10);
		put(from, 1, 2, 30);
		if (round) /* else the queue changes its owner */
			put(s, 1, 3, 20);
		CHECK_EQ(event_store_add_name(from, 7 + (uint64_t)round, "seven", 5), 0);
		CHECK_EQ(event_store_move(s, from), 0);
		CHECK_EQ(event_store_move(s, from), 0);
		CHECK_EQ(event_store_waiting(from), 0);
		CHECK_STR(written(s, 1, 0), round ? "1:1 1:3 1:2" : "1:1 1:2");
		for (int name = 0; name <= round; name++) {
			const char *text = event_store_name(s, 7 + (uint64_t)name, &len);

			CHECK(text && len == 5 && memcmp(text, "seven", 5) == 0);
		}
		CHECK(event_store_name(from, 7 + (uint64_t)round, &len) == NULL);
	}
	for (uint64_t id = 1; id <= 4; id++) {
		put(s, 0, id, id);
		put(from, 0, id + 4, id + 4);
	}
	CHECK_EQ(event_store_move(s, from), 0);
	CHECK_STR(written(s, 0, 0), "0:5 0:6 0:7 0:8");
	CHECK_EQ(event_store_dropped(s), 4);
	event_store_free(s);
	event_store_free(from);
}
