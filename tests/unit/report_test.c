/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_test.c - what the commands that record say of a merge at their end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/output/report.h"
#include "tests/shim/shim.h"

TEST("report: what another subscriber asked for is none of the events that there were", "[report]")
{
	struct merge_result m = {.ended = true, .counted = true};
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	REQUIRE(f != NULL);
	m.ledger[REC_C_RUNTIME_EMITTED].value = 5440;
	m.ledger[REC_C_RUNTIME_DELIVERED].value = 5056;
	m.ledger[REC_C_RUNTIME_FILTERED].value = 384;
	report_print(f, &m, NULL);
	fclose(f);
	test_info("%s", text);
	CHECK(strstr(text,
		"lost: nothing (kernel 0 of 0 calls, runtime 5056 of 5056 events recorded)\n"));
	free(text);
}

TEST("report: nothing is lost only of what the kernel counts", "[report]")
{
	struct merge_result m = {.ended = true, .counted = true};
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	REQUIRE(f != NULL);
	m.ledger[REC_C_KERNEL_UNCOUNTED].value = 33;
	report_print(f, &m, NULL);
	m.ledger[REC_C_KERNEL_RING_FULL].value = 7;
	report_print(f, &m, NULL);
	fclose(f);
	test_info("%s", text);
	CHECK(strstr(text, "lost: nothing that is counted (how often this kernel skipped 33 of the "
			   "hooks is not) "
			   "("));
	CHECK(strstr(text, "lost: 7 kernel ring_full"));
	free(text);
}
