/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event_json_test.c - the JSON of events: each type and phase against a line of golden/event_json.txt, and
 * what is special about texts, names and the whole.
 *
 * The golden lines were written from the documents by another program, not by the code under test.  All
 * payloads are the ten words 1, 2, ... 10, of which each type shows its own.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/trace/event_json.h"
#include "runtime/trace/event_registry.h"
#include "tests/shim/shim.h"

#define GOLDEN "tests/unit/golden/event_json.txt"
#define OFFSET 1700000000000000000
#define WORD_PAIR(k) ((uint64_t)(k) | ((uint64_t)(k) + 1) << 32)

/* What the source knows. */
static const struct {
	uint64_t id;
	const char *text;
} names[] = {{WORD_PAIR(1), "add \"two\"\n"}, {WORD_PAIR(9), "m\\1"}, {0, EVENT_JSON_NO_NAME}};
static const int32_t gids[] = {7, -1};

static const char *name_of(void *ctx, uint64_t id, size_t *ret_len)
{
	(void)ctx;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].id == id) {
			*ret_len = strlen(names[i].text);
			return names[i].text;
		}
	return NULL;
}

static const struct event_json_source source = {
	.offset_ns = OFFSET, .name = name_of, .gids = gids, .gid_count = 2};

static struct trace_record record_of(uint32_t type, uint32_t phase)
{
	struct trace_record r = {.trace_type = type,
		.thread_id = 4000 + type,
		.id = type * 3 + phase + 1,
		.nc_local_id = type * 3 + phase + 1,
		.tracking_id = (uint64_t)(type % 3) << 50 | (type + 1),
		.timestamp_ns = 1000 * type + phase,
		.phase = phase,
		.nc_idx = type % 3};

	for (uint32_t word = 1; word <= TRACE_PAYLOAD_BYTES / 4; word++)
		memcpy(&r.data[4 * (word - 1)], &word, 4);
	if (phase == TRACE_START && type % 5 == 0) {
		r.has_nrta_seq_id = 1;
		r.nrta_seq_id = (uint64_t)type << 32 | 1;
	}
	return r;
}

/* The text of some records, from malloc. */
static char *text_of(const struct event_json_source *from, const struct trace_record *records,
	size_t count, size_t *ret_len)
{
	struct event_json j;
	char *text;
	int rc = event_json_begin(&j, from);

	for (size_t i = 0; i < count && rc == 0; i++)
		rc = event_json_add(&j, &records[i]);
	CHECK_EQ(rc, 0);
	event_json_end(&j, &text, ret_len);
	CHECK_EQ(strlen(text), *ret_len);
	return text;
}

/* Is the text {"events":[<line>],"data_version":2} ? */
static void check_line(uint32_t type, uint32_t phase, const char *line)
{
	struct trace_record r = record_of(type, phase);
	size_t len, want_len = strlen(line) + 64;
	char *text = text_of(&source, &r, 1, &len), *want = malloc(want_len);

	test_info("type %u phase %u", type, phase);
	REQUIRE(want != NULL);
	(void)snprintf(want, want_len, "{\"events\":[%s],\"data_version\":2}", line);
	CHECK_STR(text, want);
	free(want);
	free(text);
}

TEST("json: each type and phase is the golden line, byte for byte", "[json]")
{
	FILE *f = fopen(GOLDEN, "re");
	char *line = NULL;
	size_t room = 0, lines = 0;
	ssize_t n;

	if (!f)
		SKIP(GOLDEN);
	for (; (n = getline(&line, &room, f)) > 0; lines++) {
		line[n - 1] = '\0';
		check_line((uint32_t)lines / 3, (uint32_t)lines % 3, line);
	}
	CHECK_EQ(lines, 3 * TRACE_TYPE_COUNT);
	free(line);
	(void)fclose(f);
}

TEST("json: no events are an empty list", "[json]")
{
	size_t len;
	char *text = text_of(&source, NULL, 0, &len);

	CHECK_STR(text, "{\"events\":[],\"data_version\":2}");
	free(text);
}

TEST("json: numbers and phases beyond what is known are said to be unknown", "[json]")
{
	struct trace_record r = {.trace_type = 99, .phase = 7, .nc_idx = TRACE_NC_UNKNOWN};
	size_t len;
	char *text = text_of(&source, &r, 1, &len);

	CHECK_STR(text, "{\"events\":[{\"event_type\":\"unknown\",\"phase\":\"unknown\",\"id\":0,"
			"\"nc_idx\":4294967295,\"nc_local_id\":0,\"tracking_id\":0,\"thread_id\":0,"
			"\"worker_gid\":-1,\"data\":{},\"timestamp_ns\":1700000000000000000}],"
			"\"data_version\":2}");
	free(text);
}

static const char *given_name(void *ctx, uint64_t id, size_t *ret_len)
{
	(void)id;
	*ret_len = strlen(ctx);
	return ctx;
}

TEST("json: texts are escaped as serde_json does, and are always UTF-8", "[json]")
{
	static const struct {
		const char *name, *json;
	} rows[] = {
		{"plain/model-1.neff", "plain/model-1.neff"},
		{"\"\\\b\f\n\r\t", "\\\"\\\\\\b\\f\\n\\r\\t"},
		{"\x01\x0b\x1f\x7f", "\\u0001\\u000b\\u001f\x7f"},
		{"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"},
		{"a\xff\xc3", "a\xef\xbf\xbd\xef\xbf\xbd"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct event_json_source from = {.name = given_name, .ctx = (void *)rows[i].name};
		struct trace_record r = record_of(TRACE_EXECUTE_API, TRACE_START);
		char want[128];
		size_t len;
		char *text = text_of(&from, &r, 1, &len);

		(void)snprintf(want, sizeof(want), "\"model_name\":\"%s\"}", rows[i].json);
		test_info("want %s in %s", want, text);
		CHECK(strstr(text, want) != NULL);
		free(text);
	}
}

TEST("json: the longest names of escapes fit", "[json]")
{
	char name[1000];
	struct event_json_source from = {.name = given_name, .ctx = name};
	struct trace_record r[300];
	size_t len;
	char *text;
	json_t *root;

	memset(name, 1, sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	for (size_t i = 0; i < 300; i++)
		r[i] = record_of(TRACE_DEVICE_EXEC, TRACE_START);
	text = text_of(&from, r, 300, &len);
	root = json_loads(text, 0, NULL);
	CHECK(root != NULL);
	CHECK_EQ(json_array_size(json_object_get(root, "events")), 300);
	json_decref(root);
	free(text);
}

TEST("json: id 0 is an invalid name, and a model without a known name has none", "[json]")
{
	struct trace_record r = record_of(TRACE_EXECUTE_API, TRACE_START);
	size_t len;
	char *text;

	memset(r.data, 0, sizeof(r.data));
	text = text_of(&source, &r, 1, &len);
	CHECK(strstr(text, "{\"model_id\":0,\"model_name\":\"Invalid interned string\"}") != NULL);
	free(text);
	r.data[0] = 5;
	text = text_of(&source, &r, 1, &len);
	CHECK(strstr(text, "\"data\":{\"model_id\":5}") != NULL);
	free(text);
}

TEST("json: values without a name are numbers in quotes, algorithm 0 is left out", "[json]")
{
	struct trace_record r = record_of(TRACE_DMA_MEM_ALLOC, TRACE_START);
	size_t len;
	char *text;

	r.data[4] = 99;
	text = text_of(&source, &r, 1, &len);
	CHECK(strstr(text, "\"usage_type\":\"99\"") != NULL);
	free(text);
	r = record_of(TRACE_DMEM_BUF_COPYIN, TRACE_START);
	r.data[0] = 9;
	text = text_of(&source, &r, 1, &len);
	CHECK(strstr(text, "\"mem_type\":\"9\"") != NULL);
	free(text);
	r = record_of(TRACE_CC_EXEC, TRACE_START);
	r.data[32] = 0;
	text = text_of(&source, &r, 1, &len);
	CHECK(strstr(text, "algorithm") == NULL);
	free(text);
}
