/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ntff_dump_test.c - what is printed of a device profile: every line is JSON, each item is there once, and the
 * timeline is in order of the core's clock.
 */
#include <inttypes.h>
#include <jansson.h>

#include "agent/output/dump_ntff.h"
#include "tests/shim/shim.h"
#include "tests/unit/ntff_fixture.h"

#define RINGS 40u
#define PER_RING 50u

typedef int (*printer)(FILE *f, const struct ntff_profile *p);

/* To be freed; NULL when it could not be printed. */
static char *print(printer body, const struct nx *x)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);
	struct ntff_profile p;
	int rc = f ? ntff_profile_open(&p, x->bytes, x->size) : -1;

	if (rc == 0)
		rc = body(f, &p);
	if (f)
		fclose(f);
	ntff_profile_close(&p);
	if (rc == 0)
		return text;
	free(text);
	return NULL;
}

/* Rings of two cores, whose items begin anywhere. */
static void make(struct nx *x)
{
	uint64_t state = 1;

	nx_init(x);
	for (uint32_t i = 0; i < RINGS; i++) {
		struct nx_ring *r = nx_ring(x, NX_INSTRUCTION, NX_ON_NC, i % 5, 0, i / 20);
		uint64_t t = 1000000;

		for (unsigned k = 0; k < PER_RING; k++) {
			state = state * 6364136223846793005ull + 1442695040888963407ull;
			t += state >> 44;
			nx_ran(r, (uint16_t)k, 0, t, t + 100);
			t += 100;
		}
	}
	nx_build(x);
}

TEST("ntff dump: each line is JSON, and the total says how many there are", "[ntff][dump]")
{
	static struct nx x;
	unsigned instructions = 0;
	json_t *j = NULL;
	char *text, *save = NULL;

	make(&x);
	text = print(dump_ntff_json, &x);
	REQUIRE(text != NULL);
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		json_decref(j);
		j = json_loads(line, 0, NULL);
		test_info("%s", line);
		REQUIRE(json_is_object(j));
		instructions +=
			!strcmp(json_string_value(json_object_get(j, "what")), "instruction");
	}
	CHECK_STR(json_string_value(json_object_get(j, "what")), "total");
	CHECK_EQ(json_integer_value(json_object_get(j, "instruction")), RINGS * PER_RING);
	CHECK_EQ(instructions, RINGS * PER_RING);
	json_decref(j);
	free(text);
	nx_free(&x);
}

TEST("ntff dump: a timeline has the items of all rings of a core in order", "[ntff][dump]")
{
	static struct nx x;
	unsigned items = 0, cores = 0;
	double last = 0;
	char *text, *save = NULL;

	make(&x);
	text = print(dump_ntff_text, &x);
	REQUIRE(text != NULL);
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		double us = strtod(line, NULL);

		if (!strncmp(line, "# core", 6)) {
			cores++;
			last = 0;
		}
		if (*line == '#')
			continue;
		test_info("%s", line);
		CHECK(us >= last);
		last = us;
		items++;
	}
	CHECK_EQ(cores, 2);
	CHECK_EQ(items, RINGS * PER_RING);
	free(text);
	nx_free(&x);
}

TEST("ntff dump: a clock that begins anew begins its timeline anew", "[ntff][dump]")
{
	static struct nx x;
	struct nx_ring *r;
	char *text;

	nx_init(&x);
	r = nx_ring(&x, NX_INSTRUCTION, NX_ON_NC, 1, 0, 0);
	nx_ran(r, 1, 0, 3000000000000, 3000000000001);
	nx_ran(r, 2, 0, 1000000000000, 1000000000003);
	nx_sync(&x, 0, 0, 2000000000000, 10000000000, 5);
	nx_sync(&x, 0, 0, 3000000000001, 11000000000, 5);
	nx_sync(&x, 0, 0, 500000000000, 20000000000, 5);
	nx_sync(&x, 0, 0, 4000000000000, 23500000000, 5);
	nx_build(&x);
	text = print(dump_ntff_text, &x);
	REQUIRE(text != NULL);
	test_info("%s", text);
	CHECK(strstr(text, "        0.000000  act     instruction #1                 0.000001 us"));
	CHECK(strstr(text, "# the core's clock began anew\n"
			   "        0.000000  act     instruction #2                 0.000003 us "
			   "boot=20500000000"));
	free(text);
	nx_free(&x);
}

TEST("ntff dump: texts of a file cannot make lines of their own", "[ntff][dump]")
{
	static struct nx x;
	struct nx_graph *g;
	char *text;

	nx_init(&x);
	g = nx_graph(&x, 0, 0);
	nx_name(g, 1, NX_ON_NC, 0, "a\nb\x1b[31m", 0);
	nx_ran(nx_ring(&x, NX_INSTRUCTION, NX_ON_NC, 0, 0, 0), 1, 0, 1, 2);
	nx_lost(&x, &x.rings[0], 1, false);
	x.losses[0].why = (char *)"\nc";
	nx_build(&x);
	text = print(dump_ntff_text, &x);
	REQUIRE(text != NULL);
	CHECK(strstr(text, "a\\nb\\x1b[31m #1") != NULL);
	CHECK(strstr(text, "(\\nc)") != NULL);
	free(text);
	nx_free(&x);
}

TEST("ntff dump: places have the names of engines, queues and TopSP", "[ntff][dump]")
{
	static const struct {
		Ntff__BlockType block;
		uint32_t engine;
		enum ntff_what what;
		const char *name;
	} rows[] = {
		{NX_ON_NC, 0, NTFF_INSTRUCTION, "pe"},
		{NX_ON_NC, 1, NTFF_INSTRUCTION, "act"},
		{NX_ON_NC, 2, NTFF_SEMAPHORE, "pool"},
		{NX_ON_NC, 3, NTFF_INSTRUCTION, "dve"},
		{NX_ON_NC, 4, NTFF_INSTRUCTION, "sp"},
		{NX_ON_NC, 4, NTFF_RUN, "nc"},
		{NX_ON_NC, 0, NTFF_ERROR, "nc"},
		{NX_ON_NC, UINT32_MAX, NTFF_OTHER, "engine4294967295"},
		{NX_ON_DMA, 15, NTFF_TRANSFER, "dma15"},
		{NX_ON_TOPSP, 0, NTFF_COLLECTIVE, "topsp"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		Ntff__TraceInfo info = NTFF__TRACE_INFO__INIT;
		const struct ntff_stream s = {.info = &info};
		struct ntff_era era = {0};
		struct ntff_core core = {.eras = &era, .era_count = 1};
		const struct ntff_profile p = {.cores = &core, .core_count = 1};
		const struct ntff_cursor c = {.profile = &p, .core = &core, .stream = &s};
		const struct ntff_item item = {.what = rows[i].what, .engine = rows[i].engine};
		char buf[NTFF_UNIT_BYTES];

		info.block_type = rows[i].block;
		CHECK_STR(ntff_place(&c, &item, buf), rows[i].name);
	}
}
