/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_exports_test.c - library, export map, public headers and our tests name the same calls.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/shim/shim.h"
#include "tests/unit/nrt_lib.h"

#define MAX_SYMBOLS 256

struct symbols {
	char names[MAX_SYMBOLS][96];
	int count;
};

static int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void add_symbol(struct symbols *s, const char *from, size_t len)
{
	if (s->count < MAX_SYMBOLS && len < sizeof(s->names[0])) {
		memcpy(s->names[s->count], from, len);
		s->names[s->count++][len] = '\0';
	}
}

static size_t word_length(const char *s)
{
	return strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_");
}

/* Every "nrt..;" line of the map. */
static void symbols_of_map(struct symbols *s, const char *text)
{
	for (; (text = strstr(text, "\t\tn")) != NULL; text += 3)
		if (text[2 + word_length(text + 2)] == ';')
			add_symbol(s, text + 2, word_length(text + 2));
}

/* Every word before the '(' that follows NRT_API. */
static void symbols_of_header(struct symbols *s, const char *text)
{
	while ((text = strstr(text, "NRT_API ")) != NULL) {
		const char *end = strchr(text, '('), *start = end;

		if (!end)
			return;
		while (start > text && word_length(start - 1))
			start--;
		if (!strncmp(start, "nr", 2))
			add_symbol(s, start, (size_t)(end - start));
		text = end;
	}
}

/* `nm -D`: address, T, name@@version. */
static void symbols_of_library(struct symbols *s, bool *versioned)
{
	char command[600], line[256], name[200];
	FILE *f;

	snprintf(command, sizeof(command), "nm -D --defined-only '%s'",
		program_path("lib/libnrt.so.1").s);
	f = popen(command, "r");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%*s T %199s", name) == 1) {
			add_symbol(s, name, word_length(name));
			*versioned = *versioned && strstr(name, "@@NRT_") != NULL;
		}
	if (f)
		pclose(f);
}

TEST("nrt: the library exports what the map and the public headers say", "[nrt]")
{
	static struct symbols map, header, library, tested;
	static const char *const headers[] = {
		"runtime/include/nrt/nrt.h", "runtime/include/nrt/nrt_version.h"};
	char *text = program_text("runtime/libnrt.map");
	bool versioned = true;

	REQUIRE_LIBRARY();
	if (access("runtime/libnrt.map", R_OK) < 0 || system("command -v nm >/dev/null") != 0)
		SKIP("the source tree, or nm");
	symbols_of_map(&map, text);
	free(text);
	for (size_t i = 0; i < 2; i++) {
		text = program_text(headers[i]);
		symbols_of_header(&header, text);
		free(text);
	}
	symbols_of_library(&library, &versioned);
#define X(name) add_symbol(&tested, #name, strlen(#name));
	CALLS(X)
#undef X
	qsort(map.names, (size_t)map.count, sizeof(map.names[0]), by_name);
	qsort(header.names, (size_t)header.count, sizeof(header.names[0]), by_name);
	qsort(library.names, (size_t)library.count, sizeof(library.names[0]), by_name);
	qsort(tested.names, (size_t)tested.count, sizeof(tested.names[0]), by_name);
	CHECK(versioned);
	REQUIRE(map.count >= 23);
	REQUIRE_EQ(header.count, map.count);
	REQUIRE_EQ(library.count, map.count);
	REQUIRE_EQ(tested.count, map.count); /* and this file knows them all */
	for (int i = 0; i < map.count; i++) {
		CHECK_STR(map.names[i], header.names[i]);
		CHECK_STR(map.names[i], library.names[i]);
		CHECK_STR(map.names[i], tested.names[i]);
	}
}
