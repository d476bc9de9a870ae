/* SPDX-License-Identifier: Apache-2.0 */
/*
 * env_table_test.c - the table of environment variables: its rows, what is made of a value, and which
 * variable a misspelt name was meant to be.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/env_table.h"
#include "tests/shim/shim.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

TEST("env table: names are unique, and what is there without a value is allowed", "[config]")
{
	for (int i = 0; i < ENV_COUNT; i++) {
		const struct env_row *row = env_row((enum env_id)i);
		char allowed[ENV_ALLOWED_BYTES];
		struct env_value v;

		test_info("%s", row->name);
		CHECK(env_find(row->name, strlen(row->name)) == row);
		CHECK(env_find(row->name, strlen(row->name) - 1) != row);
		CHECK(strlen(env_allowed(row, allowed, sizeof(allowed))) < sizeof(allowed) - 1);
		CHECK(*row->text && *env_group_title(row->group) && *env_use_name(row->use));
		if (*row->initial)
			CHECK_EQ(env_parse(row, row->initial, &v), 0);
		CHECK(row->kind != ENV_SIZES || row->max <= ENV_MAX_SIZES);
		CHECK((row->kind != ENV_CORES && row->kind != ENV_CORE_SET) ||
			row->max < ENV_MAX_CORES);
	}
	CHECK(!env_find("NEURON_RT_", 10));
	CHECK(!env_find("PATH", 4));
}

static int parse(const char *name, const char *text, struct env_value *v)
{
	memset(v, 0, sizeof(*v));
	return env_parse(env_find(name, strlen(name)), text, v);
}

TEST("env table: lists of cores are sorted, without duplicates, and neighbours where they must be",
	"[config]")
{
	static const struct {
		const char *text;
		int rc;
		uint32_t first, count;
	} rows[] = {
		{"0", 0, 0, 1},
		{"3-5", 0, 3, 3},
		{"0-3,4", 0, 0, 5},
		{"5,4,3,4", 0, 3, 3},
		{"62-66", 0, 62, 5},
		{"510-511", 0, 510, 2},
		{"0-511", 0, 0, 512},
		{"0,2", -ERANGE, 0, 0},
		{"0-3,5", -ERANGE, 0, 0},
		{"511,0", -ERANGE, 0, 0},
		{"0,512", -EINVAL, 0, 0},
	};
	struct env_value v = {.number = 0};

	for (size_t i = 0; i < COUNT(rows); i++) {
		test_info("'%s'", rows[i].text);
		CHECK_EQ(parse("NEURON_RT_VISIBLE_CORES", rows[i].text, &v), rows[i].rc);
		CHECK_EQ(v.first, rows[i].first);
		CHECK_EQ(v.count, rows[i].count);
	}
	REQUIRE_EQ(parse("NEURON_RT_INSPECT_EVENT_FILTER_NC", "7,1-3,200,2", &v), 0);
	CHECK_EQ(v.count, 5);
	CHECK_EQ(v.first, 1);
	CHECK_EQ(v.cores[0], 0x8e);
	CHECK_EQ(v.cores[200 / 64], 1ull << (200 % 64));
}

TEST("env table: lists of sizes keep their order, and count what is too much", "[config]")
{
	struct env_value v = {.number = 0};

	REQUIRE_EQ(parse("NEURON_RT_DBG_CC_DMA_PACKET_SIZE", "512,4096,512,7-9", &v), 0);
	CHECK_EQ(v.count, 6);
	CHECK_EQ(v.sizes[0], 512);
	CHECK_EQ(v.sizes[1], 4096);
	CHECK_EQ(v.sizes[2], 512);
	CHECK_EQ(v.sizes[5], 9);
	CHECK_EQ(v.ignored, 0);
	REQUIRE_EQ(parse("NEURON_RT_DBG_CC_DMA_PACKET_SIZE", "1-16", &v), 0);
	CHECK_EQ(v.count, 16);
	CHECK_EQ(v.ignored, 0);
	REQUIRE_EQ(parse("NEURON_RT_DBG_CC_DMA_PACKET_SIZE", "1-17,3", &v), 0);
	CHECK_EQ(v.count, 16);
	CHECK_EQ(v.sizes[15], 16);
	CHECK_EQ(v.ignored, 2);
	REQUIRE_EQ(parse("NEURON_RT_DBG_DMA_PRIO_PKT_SIZE", "0-4294967295", &v), 0);
	CHECK_EQ(v.count, 5);
	CHECK_EQ(v.ignored, 4294967291);
}

TEST("env table: words stand for their numbers, in any case; a number outside is brought in",
	"[config]")
{
	static const struct {
		const char *name, *text;
		int64_t number;
	} rows[] = {
		{"NEURON_RT_ULTRASERVER_MODE", "x2v", 3},
		{"NEURON_RT_ULTRASERVER_MODE", "X1", 4},
		{"NEURON_RT_ULTRASERVER_MODE", "2", 2},
		{"NEURON_RT_NUMERICAL_ERRORS_VERBOSITY", "Verbose", 3},
		{"NEURON_RT_NUMERICAL_ERRORS_VERBOSITY", "none", 0},
		{"NEURON_RT_INSPECT_DEVICE_PROFILE", "model", 1},
		{"NEURON_RT_INSPECT_DEVICE_PROFILE", "session", 2},
		{"NEURON_RT_VALIDATE_HASH", "True", 1},
		{"NEURON_RT_VALIDATE_HASH", "FALSE", 0},
		{"NEURON_RT_INSPECT_SYS_TRACE_MAX_EVENTS_PER_NC", "5", 1024},
		{"NEURON_RT_INSPECT_SYS_TRACE_MAX_EVENTS_PER_NC", "2000000", 1048576},
		{"NEURON_RT_INSPECT_SYS_TRACE_MAX_EVENTS_PER_NC", "5000", 5000},
		{"NEURON_RT_ASYNC_EXEC_MAX_INFLIGHT_REQUESTS", "64", 63},
		{"NEURON_RT_DBG_DUMP_INPUTS_ON_ERR", "-5", -5},
	};
	struct env_value v = {.number = 0};

	for (size_t i = 0; i < COUNT(rows); i++) {
		test_info("%s=%s", rows[i].name, rows[i].text);
		CHECK_EQ(parse(rows[i].name, rows[i].text, &v), 0);
		CHECK_EQ(v.number, rows[i].number);
	}
}

TEST("env table: the word of a number, and none of another one", "[config]")
{
	const struct env_row *row = env_row(ENV_ID_NTRACE_OUTPUT_LAYOUT);
	char word[16] = "before";

	env_word(row, 2, word, sizeof(word));
	CHECK_STR(word, "seed");
	env_word(row, 0, word, sizeof(word));
	CHECK_STR(word, "flat");
	env_word(row, 3, word, sizeof(word));
	CHECK_STR(word, "");
	env_word(row, 1, word, 5);
	CHECK_STR(word, "time");
}

TEST("env table: a misspelt name is that of the nearest variable, another one is left alone",
	"[config]")
{
	static const struct {
		const char *name, *meant;
	} rows[] = {
		{"NEURON_RT_INSPEC_ENABLE", "NEURON_RT_INSPECT_ENABLE"},
		{"NEURON_RT_NUM_CORE", "NEURON_RT_NUM_CORES"},
		{"NEURON_RT_NUM_COERS", "NEURON_RT_NUM_CORES"},
		{"NEURON_TR_NUM_CORES", "NEURON_RT_NUM_CORES"},
		{"NEURON_RT_VISIBEL_CORE", "NEURON_RT_VISIBLE_CORES"},
		{"NEURON_VISIBLE_CORES", "NEURON_RT_VISIBLE_CORES"},
		{"NEURON_RT_LOGICAL_NC_CONFIG", "NEURON_LOGICAL_NC_CONFIG"},
		{"NEURON_RT_EXECTIMEOUT", "NEURON_RT_EXEC_TIMEOUT"},
		{"NEURON_RT_VALIDATE_HASHH", "NEURON_RT_VALIDATE_HASH"},
		{"NTRACE_ALLOW_DEVICES", "NTRACE_ALLOW_DEVICE"},
		{"NTRACE_DEVICEROOT", "NTRACE_DEVICE_ROOT"},
		{"NTRACE_SOKET", "NTRACE_SOCKET"},
		{"NEURON_RT_NUM_CORES", NULL}, /* right */
		{"NEURON_RT_NUM", NULL},
		{"NEURON_RT_", NULL},
		{"NEURON_", NULL},
		{"NEURON_RT_X", NULL},
		{"NEURON_RT_VISIBXXX_CORES", NULL}, /* three letters */
		{"NEURN_RT_NUM_CORES", NULL},	    /* nobody's prefix */
		{"RT_NUM_CORES", NULL},
		{"PATH", NULL},
		{"", NULL},
		/* variables of other programs for these devices */
		{"NEURON_CC_FLAGS", NULL},
		{"NEURON_COMPILE_CACHE_URL", NULL},
		{"NEURON_FRAMEWORK_DEBUG", NULL},
		{"NEURON_PROFILE", NULL},
		{"NEURON_EXTRACT_GRAPHS_ONLY", NULL},
		{"NEURON_FUSE_SOFTMAX", NULL},
		{"NEURON_GLOBAL_DEVICE_COUNT", NULL},
		{"NEURON_PJRT_PROCESS_INDEX", NULL},
		{"NEURON_NUM_RECENT_MODELS_TO_KEEP", NULL},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		const struct env_row *got = env_meant(rows[i].name, strlen(rows[i].name));

		test_info("%s", rows[i].name);
		CHECK_STR(got ? got->name : "", rows[i].meant ? rows[i].meant : "");
	}
}

/* Makes a mistake of a kind at a place of text (with room for a letter more); false: none can be made there. */
static bool mistake(char *text, size_t at, int kind)
{
	size_t len = strlen(text);
	char letter = text[at];

	switch (kind) {
	case 0: /* another letter */
		text[at] = '#';
		return true;
	case 1: /* one too few */
		memmove(text + at, text + at + 1, len - at);
		return true;
	case 2: /* one too many */
		memmove(text + at + 1, text + at, len - at + 1);
		text[at] = '#';
		return true;
	default: /* two exchanged */
		if (!letter || !text[at + 1] || letter == text[at + 1])
			return false;
		text[at] = text[at + 1];
		text[at + 1] = letter;
		return true;
	}
}

TEST("env table: one or two mistakes anywhere in the own part of a name are found", "[config]")
{
	unsigned missed = 0, tried = 0;

	for (int i = 0; i < ENV_COUNT; i++) {
		const char *name = env_row((enum env_id)i)->name;
		size_t len = strlen(name), own = strncmp(name, "NEURON_RT_", 10) ? 7 : 10;

		/* Ten letters: a quarter of what is left of them is two. */
		for (size_t at = own; len - own >= 10 && at < len; at++)
			for (int kinds_of_two = 0; kinds_of_two < 20; kinds_of_two++) {
				int first = kinds_of_two % 4, second = kinds_of_two / 4;
				size_t other = own + (at * 7 + (size_t)i) % (len - own - 1);
				char text[80];

				/* Mistakes in each other count more than once. */
				if (second < 4 && (other > at ? other - at : at - other) < 4)
					continue;
				(void)snprintf(text, sizeof(text), "%s", name);
				if (!mistake(text, at, first) ||
					(second < 4 && !mistake(text, other, second)))
					continue;
				tried++;
				if (!env_meant(text, strlen(text)) &&
					!env_find(text, strlen(text)) && ++missed)
					test_info("%s", text);
			}
	}
	CHECK(tried > 10000);
	CHECK_EQ(missed, 0);
}
