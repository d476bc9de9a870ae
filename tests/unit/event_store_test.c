/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event_store_test.c - what stands between the rings and a fetch: order, limits, what is left, names.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
	if (event_json_begin(&j, &nothing_known) < 0 || event_store_write(s, nc, limit, &j) < 0)
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
	CHECK_STR(written(s, EVENT_STORE_ALL_NC, 0), "0:1 0:3 1:2 1:1 0:2");
	CHECK_STR(written(s, EVENT_STORE_ALL_NC, 0), "");
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
	CHECK_STR(written(s, EVENT_STORE_ALL_NC, 2), "0:1 0:2 4294967295:1 7:2 7:3");
	put(s, 7, 4, 1);
	CHECK_STR(written(s, EVENT_STORE_ALL_NC, 0), "7:4 0:3");
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
	CHECK_STR(written(s, EVENT_STORE_ALL_NC, 0), "0:999 0:1001 0:1000");
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
