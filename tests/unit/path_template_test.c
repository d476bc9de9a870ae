/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path_template_test.c - names of core dumps: every token, what is none, and the bound at every length.
 */
#include "runtime/lifecycle/path_template.h"

#include <stdlib.h>
#include <string.h>

#include "tests/shim/shim.h"

static const struct path_variables vars = {
	"4711", "4712", "12", "00000000deadbeef", "20250917-194443", "i-0123456789abcdef0"};

TEST("path template: each token stands for its variable", "[core-dump]")
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{"%p", "4711"},
		{"%t", "4712"},
		{"%l", "12"},
		{"%c", "00000000deadbeef"},
		{"%d", "20250917-194443"},
		{"%i", "i-0123456789abcdef0"},
		{"/tmp/neuron-core-dump/dt-%d-cid-%c",
			"/tmp/neuron-core-dump/dt-20250917-194443-cid-00000000deadbeef"},
		{"%i-nrt-pid-%p.log", "i-0123456789abcdef0-nrt-pid-4711.log"},
		{"%p%p%t%l", "47114711471212"},
		{"", ""},
		{NULL, ""},
	};
	char got[256];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CHECK_EQ(
			path_template(got, sizeof(got), rows[i].text, &vars), strlen(rows[i].want));
		CHECK_STR(got, rows[i].want);
	}
}

TEST("path template: a % before anything else stands for itself", "[core-dump]")
{
	static const char letters[] = "ptlcdi";
	char text[] = "a%?b", got[64];

	for (int c = 1; c < 256; c++) {
		text[2] = (char)c;
		(void)path_template(got, sizeof(got), text, &vars);
		if (strchr(letters, c))
			CHECK(strcmp(got, text) != 0);
		else
			CHECK_STR(got, text);
	}
	(void)path_template(got, sizeof(got), "%%p%", &vars);
	CHECK_STR(got, "%4711%");
	(void)path_template(got, sizeof(got), "%", &vars);
	CHECK_STR(got, "%");
}

/* A text whose expansion is longer than any bound, and its expansion. */
static void long_text(char *text, char *all)
{
	for (int i = 0; i < 120; i++) {
		text += strlen(strcpy(text, "/%p-%t-%l-%c-%d-%i%x"));
		all += strlen(strcpy(all, "/4711-4712-12-00000000deadbeef-20250917-194443-"
					  "i-0123456789abcdef0%x"));
	}
}

TEST("path template: at each bound from 0 to 4096 what fits is there, ended, and nothing beyond",
	"[core-dump]")
{
	static char text[8192], all[16384];

	long_text(text, all);
	REQUIRE(strlen(all) > PATH_TEMPLATE_DIR_BYTES);
	for (size_t size = 0; size <= PATH_TEMPLATE_DIR_BYTES; size++) {
		char *got = malloc(size + 8); /* so that a sanitizer sees a byte too far */
		size_t len = size ? size - 1 : 0;
		bool right;

		REQUIRE(got != NULL);
		memset(got, 'z', size + 8);
		right = path_template(got, size, text, &vars) == len &&
			memcmp(got, all, len) == 0 && (!size || got[len] == '\0') &&
			memcmp(got + size, "zzzzzzzz", 8) == 0;
		free(got);
		test_info("bound %zu", size);
		REQUIRE(right);
	}
}

TEST("path template: a variable that fills its field is taken whole, and no further", "[core-dump]")
{
	struct path_variables full;
	char got[64];

	memset(&full, 'y', sizeof(full)); /* not even ended */
	CHECK_EQ(path_template(got, sizeof(got), "%p", &full), sizeof(full.pid));
	CHECK_EQ(path_template(got, sizeof(got), "%i", &full), sizeof(full.instance_id));
}
