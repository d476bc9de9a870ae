/* SPDX-License-Identifier: Apache-2.0 */
/*
 * errno_name_test.c - our table of error names has the numbers of this machine's headers, and any
 * number may be asked for.
 */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "runtime/base/errno_name.h"
#include "tests/shim/shim.h"
#include "tests/unit/recording_fixture.h"

TEST("errno names: each number is that of the headers, and none is missing", "[base]")
{
	unsigned count = 0;

#define ERRNO_NAME(number, name)              \
	CHECK_EQ(number, name);               \
	CHECK_STR(errno_name(number), #name); \
	count++;
#include "runtime/base/errno_names.def"
#undef ERRNO_NAME
	for (int n = 1; n < 4096; n++)
		count -= strerrorname_np(n) != NULL;
	CHECK_EQ(count, 0);
}

TEST("errno names: what is no error has no name", "[base]")
{
	static const int64_t none[] = {
		0, -1, 41, 134, 524, INT32_MAX, -(int64_t)INT32_MIN, INT64_MIN, INT64_MAX};

	for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++)
		CHECK(errno_name(none[i]) == NULL);
}

TEST("errno names: a driver call may return anything, and it is written as a name or a number",
	"[merge]")
{
	static const struct {
		int32_t result;
		const char *text;
	} cases[] = {{-22, "EINVAL"}, {-95, "EOPNOTSUPP"}, {-524, "524"}, {8, "EFAULT"},
		{INT32_MIN, "2147483648"}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct fx_call c = {.tid = 7, .from = 1000, .to = 2000, .result = cases[i].result};
		struct fixture fx;

		REQUIRE(fx_open(&fx));
		fx_call(&fx, &c);
		REQUIRE(fx_merge_one(&fx));
		REQUIRE_EQ(fx.trace.count, 2);
		CHECK_STR(event_attr(&fx.trace.events[1], "errno"), cases[i].text);
		fx_free(&fx);
	}
}
