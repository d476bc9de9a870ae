/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sys_trace_doc_test.c - the table of event types in docs/sys-trace.md is that of event_registry.def.
 *
 * Rows are made from the table here, and looked for there as they are.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/trace/event_registry.h"
#include "tests/shim/shim.h"
#include "tests/unit/programs.h"

#define MANUAL "docs/sys-trace.md"

/* What a key has behind it. */
#define MARK_AS_FORM ""
#define MARK_ABSENT "*"
#define MARK_MEM_TYPE ""
#define MARK_ALGORITHM ""

enum { START = TRACE_START, STOP = TRACE_STOP };

static const struct {
	int type; /* -1: a field of the row above */
	const char *name, *text, *category;
	int phase;
} rows[] = {
#define CONFIRMED ""
#define INFERRED " [inferred]"
#define EVENT(number, id, name, source, category) {number, name, source, #category, 0},
#define FIELD_JSON(id, phase, offset, type, key, form, json) \
	{-1, key, "`" key "`" MARK_##json, NULL, phase},
#define FIELD(id, phase, offset, type, key, form) \
	FIELD_JSON(id, phase, offset, type, key, form, AS_FORM)
#include "runtime/trace/event_registry.def"
#undef EVENT
#undef FIELD
#undef CONFIRMED
#undef INFERRED
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

struct line {
	char s[400];
};

/* The keys of a phase behind row i. */
static struct line keys_of(size_t i, int phase)
{
	struct line keys = {""};

	for (i++; i < ROWS && rows[i].type < 0; i++) {
		size_t used = strlen(keys.s);

		if (rows[i].phase == phase)
			(void)snprintf(keys.s + used, sizeof(keys.s) - used, "%s%s",
				used ? ", " : "", rows[i].text);
	}
	return keys;
}

TEST("sys_trace: the manual's table of event types is the registry's", "[sys_trace]")
{
	char *text = program_text(MANUAL);

	if (access(MANUAL, R_OK) < 0) {
		free(text);
		SKIP("the source tree");
	}
	for (size_t i = 0; i < ROWS; i++) {
		struct line start = keys_of(i, START), stop = keys_of(i, STOP);
		char row[1024];

		if (rows[i].type < 0)
			continue;
		(void)snprintf(row, sizeof(row), "\n| %d | `%s`%s | %s | %s | %s |\n", rows[i].type,
			rows[i].name, rows[i].text,
			strcmp(rows[i].category, "HARDWARE") == 0 ? "hardware" : "software",
			start.s, stop.s);
		test_info("%s", row);
		CHECK(strstr(text, row) != NULL);
	}
	free(text);
}
