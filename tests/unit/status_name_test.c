/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status_name_test.c - the names of statuses are those of the public header, all of them.
 */
#include "runtime/base/status_name.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tests/shim/shim.h"

TEST("status name: every status of the header has its name, and no other number has one",
	"[status]")
{
	FILE *f = fopen("runtime/include/nrt/nrt_status.h", "re");
	char line[256], name[128];
	int number, found = 0, named = 0;

	if (!f)
		SKIP("the source tree as the working directory");
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, " %127[A-Z0-9_] = %d", name, &number) != 2)
			continue;
		found++;
		CHECK_STR(status_name(number), name);
	}
	fclose(f);
	CHECK(found > 25);
	for (int i = 0; i < 2000; i++)
		named += strcmp(status_name(i), "UNKNOWN") != 0;
	CHECK_EQ(named, found);
	CHECK_STR(status_name(-1), "UNKNOWN");
	CHECK_STR(status_name(INT64_MAX), "UNKNOWN");
}
