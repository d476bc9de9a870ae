/* SPDX-License-Identifier: Apache-2.0 */
/*
 * env_fuzz.c - values and names of environment variables.
 *
 * An input is NAME=VALUE.  Beyond not crashing: what is accepted keeps the limits of the row, and a name
 * is never taken for a variable that it is far from.
 */
#include <errno.h>
#include <string.h>

#include "runtime/base/env_table.h"
#include "tests/fuzz/fuzz.h"

static void check_lists(const struct env_row *row, const struct env_value *v)
{
	if (row->kind == ENV_CORES || row->kind == ENV_CORE_SET) {
		FUZZ_REQUIRE(v->count > 0 && v->count <= row->max + 1);
		FUZZ_REQUIRE(v->first <= row->max);
		FUZZ_REQUIRE(v->cores[v->first / 64] >> (v->first % 64) & 1);
	}
	if (row->kind == ENV_CORES)
		FUZZ_REQUIRE(v->first + v->count <= row->max + 1);
	if (row->kind == ENV_SIZES) {
		FUZZ_REQUIRE(v->count > 0 && v->count <= row->max);
		FUZZ_REQUIRE(v->ignored == 0 || v->count == row->max);
	}
}

static void check_numbers(const struct env_row *row, const struct env_value *v)
{
	if (row->kind >= ENV_FLAG && row->kind <= ENV_MULTIPLE)
		FUZZ_REQUIRE(v->number >= row->min && v->number <= row->max);
	if (row->kind == ENV_POWER)
		FUZZ_REQUIRE(__builtin_popcountll((unsigned long long)v->number) == 1);
	if (row->kind == ENV_MULTIPLE)
		FUZZ_REQUIRE(v->number % row->min == 0);
}

static void check_name(const char *name, size_t len)
{
	const struct env_row *meant = env_meant(name, len);

	/* Two letters, or a prefix of 7 or 10. */
	if (meant)
		FUZZ_REQUIRE(labs((long)strlen(meant->name) - (long)len) <= 3);
}

static void check_value(const struct env_row *row, const char *text)
{
	struct env_value v;
	int rc = env_parse(row, text, &v);

	FUZZ_REQUIRE(!env_meant(row->name, strlen(row->name)));
	FUZZ_REQUIRE(rc == 0 || rc == -EINVAL || (rc == -ERANGE && row->kind == ENV_CORES));
	if (rc < 0)
		return;
	check_numbers(row, &v);
	check_lists(row, &v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = strndup((const char *)data, size); /* to the first NUL */
	const struct env_row *row;
	size_t len;

	FUZZ_REQUIRE(text);
	len = strcspn(text, "=");
	row = env_find(text, len);
	if (!row)
		check_name(text, len);
	else if (text[len])
		check_value(row, text + len + 1);
	free(text);
	return 0;
}
