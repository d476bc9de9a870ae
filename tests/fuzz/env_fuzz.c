/* SPDX-License-Identifier: Apache-2.0 */
/*
 * env_fuzz.c - values and names of environment variables.
 *
 * The first byte chooses the variable, the rest is its value and then a name.  Beyond not crashing: what
 * is accepted keeps the limits of the row, and a name is never taken for a variable that it is far from.
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct env_value v;
	const struct env_row *row, *meant;
	char *text;
	int rc;

	if (size == 0 || memchr(data + 1, 0, size - 1))
		return 0;
	row = env_row((enum env_id)(data[0] % ENV_COUNT));
	text = strndup((const char *)data + 1, size - 1);
	FUZZ_REQUIRE(text);
	rc = env_parse(row, text, &v);
	FUZZ_REQUIRE(rc == 0 || rc == -EINVAL || (rc == -ERANGE && row->kind == ENV_CORES));
	if (rc == 0) {
		check_numbers(row, &v);
		check_lists(row, &v);
	}
	meant = env_meant(text, size - 1);
	if (meant) {
		FUZZ_REQUIRE(!env_find(text, size - 1));
		FUZZ_REQUIRE(
			strlen(meant->name) + 5 >= size - 1 && strlen(meant->name) <= size - 1 + 5);
	}
	free(text);
	return 0;
}
