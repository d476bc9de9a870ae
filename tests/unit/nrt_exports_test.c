/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_exports_test.c - library, export map, public headers, manual and our tests name the same calls, a
 * program can be built with each header alone, and the compiler is told every number.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/shim/shim.h"
#include "tests/unit/nrt_lib.h"

#define MAX_SYMBOLS 256
#define EXPORTS_2_31 145 /* of libnrt 2.31 */

static const char *const headers[] = {"nrt_version", "nrt", "nrt_experimental", "nrt_profile",
	"nrt_sys_trace", "ndebug_stream", "nrt_async_sendrecv", "nec", "nrt_async"};
#define HEADERS (sizeof(headers) / sizeof(headers[0]))

/* What the tests know. */
static const struct {
	const char *name;
	char node;
	const char *returns, *state;
} calls[] = {
#define NRT_CALL(name, node, returns, state) {#name, #node[0], #returns, #state},
#include "tests/unit/nrt_calls.def"
#undef NRT_CALL
};
#define CALLS (int)(sizeof(calls) / sizeof(calls[0]))

static const struct {
	const char *name, *why;
} additions[] = {
#define ADDITION(name, why) {#name, why},
#include "runtime/lifecycle/additions.def"
#undef ADDITION
};
#define ADDITIONS (int)(sizeof(additions) / sizeof(additions[0]))

/* ---- lists of "name", or "name@node" ------------------------------------------------------ */

struct symbols {
	char names[MAX_SYMBOLS][96];
	int count;
};

static int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void add_symbol(struct symbols *s, const char *from, size_t len, char node)
{
	if (s->count < MAX_SYMBOLS && len < sizeof(s->names[0]) - 2) {
		char *to = s->names[s->count++];

		memcpy(to, from, len);
		to[len] = '\0';
		if (node)
			snprintf(to + len, 3, "@%c", node);
	}
}

static size_t word_length(const char *s)
{
	return strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_");
}

static struct symbols *sorted(struct symbols *s)
{
	qsort(s->names, (size_t)s->count, sizeof(s->names[0]), by_name);
	return s;
}

/* Are the lists equal?  Says how not. */
static bool equal(const struct symbols *a, const struct symbols *b, const char *what)
{
	int i = 0;

	while (i < a->count && i < b->count && !strcmp(a->names[i], b->names[i]))
		i++;
	if (i == a->count && i == b->count)
		return true;
	test_info("%s: %d and %d names, '%s' and '%s'", what, a->count, b->count,
		i < a->count ? a->names[i] : "", i < b->count ? b->names[i] : "");
	return false;
}

/* Every "n..;" line of the map, with the version it stands under. */
static void symbols_of_map(struct symbols *s, const char *text)
{
	char node = '?';

	for (; text && *text; text = strchr(text, '\n'), text += text != NULL) {
		if (!strncmp(text, "NRT_", 4))
			node = text[4];
		if (!strncmp(text, "\t\tn", 3) && text[2 + word_length(text + 2)] == ';')
			add_symbol(s, text + 2, word_length(text + 2), node);
	}
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
		if (*start == 'n')
			add_symbol(s, start, (size_t)(end - start), 0);
		text = end;
	}
}

/* `nm -D`: address, T, name@@version.  *strangers: lines that are something else. */
static void symbols_of_library(struct symbols *s, int *strangers)
{
	char command[600], line[256], type[8] = "", name[200] = "";
	FILE *f;

	snprintf(command, sizeof(command), "nm -D --defined-only --with-symbol-versions '%s'",
		program_path("lib/libnrt.so.1").s);
	f = popen(command, "r");
	while (f && fgets(line, sizeof(line), f)) {
		const char *node = "";

		if (sscanf(line, "%*s %7s %199s", type, name) == 2)
			node = strstr(name, "@@NRT_");
		if (node && *node && !strcmp(type, "T") && !strcmp(node + 7, ".0.0"))
			add_symbol(s, name, word_length(name), node[6]);
		else if (strcmp(type, "A") != 0 || strncmp(name, "NRT_", 4) != 0)
			++*strangers, test_info("%s", line);
	}
	if (f)
		pclose(f);
}

/* ---- exports ------------------------------------------------------------------------------ */

static char *header_text(size_t i)
{
	char path[100];

	snprintf(path, sizeof(path), "runtime/include/nrt/%s.h", headers[i]);
	return program_text(path);
}

/* What is missing of a program and of the tree that it is used on; NULL: nothing. */
static const char *lacks(const char *program)
{
	char command[64];

	snprintf(command, sizeof(command), "command -v %s >/dev/null", program);
	if (system(command) != 0)
		return program;
	return access("runtime/libnrt.map", R_OK) < 0 ? "the source tree" : NULL;
}

#define NEED(program)                         \
	do {                                  \
		if (lacks(program))           \
			SKIP(lacks(program)); \
	} while (0)

TEST("nrt: the library exports what the map and the public headers say", "[nrt]")
{
	static struct symbols map, header, library, known, known_names;
	char *text = program_text("runtime/libnrt.map");
	int strangers = 0;

	REQUIRE_LIBRARY();
	NEED("nm");
	symbols_of_map(&map, text);
	free(text);
	for (size_t i = 0; i < HEADERS; i++) {
		text = header_text(i);
		symbols_of_header(&header, text);
		free(text);
	}
	symbols_of_library(&library, &strangers);
	for (int i = 0; i < CALLS; i++) {
		add_symbol(&known, calls[i].name, strlen(calls[i].name), calls[i].node);
		add_symbol(&known_names, calls[i].name, strlen(calls[i].name), 0);
	}
	REQUIRE(equal(sorted(&library), sorted(&map), "library and map"));
	CHECK(equal(&library, sorted(&known), "library and tests"));
	CHECK(equal(sorted(&header), sorted(&known_names), "headers and tests"));
	CHECK_EQ(strangers, 0);
	CHECK_EQ(library.count, EXPORTS_2_31 + ADDITIONS);
}

TEST("nrt: 137 calls have version NRT_2.0.0 and 8 NRT_3.0.0, without the additions", "[nrt]")
{
	int per_node[2] = {0, 0}, added = 0;

	for (int i = 0; i < CALLS; i++) {
		REQUIRE(calls[i].node == '2' || calls[i].node == '3');
		per_node[calls[i].node - '2']++;
		CHECK_EQ(calls[i].node == '3', !strncmp(calls[i].name, "nrta_", 5));
		for (int k = 0; k < ADDITIONS; k++)
			added += !strcmp(additions[k].name, calls[i].name);
	}
	CHECK_EQ(added, ADDITIONS);
	CHECK_EQ(per_node[0] - ADDITIONS, 137);
	CHECK_EQ(per_node[1], 8);
	for (int k = 0; k < ADDITIONS; k++)
		CHECK(strlen(additions[k].why) > 20); /* a reason */
}

TEST("nrt: the library's name is libnrt.so.1", "[nrt]")
{
	char command[600], line[256];
	bool found = false;
	FILE *f;

	REQUIRE_LIBRARY();
	NEED("readelf");
	snprintf(command, sizeof(command), "readelf -d '%s'", program_path("lib/libnrt.so.1").s);
	f = popen(command, "r");
	REQUIRE(f != NULL);
	while (fgets(line, sizeof(line), f))
		found = found || (strstr(line, "(SONAME)") && strstr(line, "[libnrt.so.1]"));
	pclose(f);
	CHECK(found);
}

/* ---- clients ------------------------------------------------------------------------------ */

/* A program that includes one header and names all its calls. */
static void write_client(const char *path, size_t header)
{
	static struct symbols s;
	char *text = header_text(header);
	FILE *f = fopen(path, "w");

	s.count = 0;
	symbols_of_header(&s, text);
	free(text);
	REQUIRE(f != NULL);
	REQUIRE(s.count > 0);
	fprintf(f, "#include <nrt/%s.h>\ntypedef void (*call)(void);\ncall calls[] = {\n",
		headers[header]);
	for (int i = 0; i < s.count; i++)
		fprintf(f, "\t(call)%s,\n", s.names[i]);
	fprintf(f, "};\nint main(void)\n{\n\treturn calls[0] ? 0 : 1;\n}\n");
	fclose(f);
}

static void build_clients(const char *compiler, const char *suffix)
{
	struct scratch scratch;
	char command[1500];

	REQUIRE(scratch_make(&scratch));
	for (size_t i = 0; i < HEADERS; i++) {
		struct scratch_path source = scratch_path(&scratch, suffix);

		test_info("%s", headers[i]);
		write_client(source.s, i);
		snprintf(command, sizeof(command),
			"%s -Wall -Wextra -Wpedantic -Wno-cast-function-type -Werror "
			"-Iruntime/include '%s' "
			"'%s' -Wl,--allow-shlib-undefined -o '%s/client'",
			compiler, source.s, program_path("lib/libnrt.so.1").s, scratch.dir);
		CHECK_EQ(system(command), 0);
	}
	scratch_remove(&scratch);
}

TEST("nrt: a C program builds with each public header alone", "[nrt]")
{
	REQUIRE_LIBRARY();
	NEED("cc");
	build_clients("cc -std=c99", "client.c");
}

TEST("nrt: a C++ program builds with each public header alone", "[nrt]")
{
	REQUIRE_LIBRARY();
	NEED("c++");
	build_clients("c++ -std=c++11", "client.cc");
}

/* ---- numbers ------------------------------------------------------------------------------ */

/* The name of the enumerator that a line defines; false: none. */
static bool enumerator_of(const char *line, char name[96])
{
	int end = 0;

	return sscanf(line, "\t%95[A-Z0-9_] = %n", name, &end) == 1 && end > 0;
}

TEST("nrt: every enumerator of the public headers is compared with its number", "[nrt]")
{
	char *asserts = program_text("runtime/lifecycle/abi_layout.c");
	int enumerators = 0;

	if (access("runtime/lifecycle/abi_layout.c", R_OK) < 0) {
		free(asserts);
		SKIP("the source tree");
	}
	for (size_t i = 0; i < HEADERS; i++) {
		char *text = header_text(i), name[96], assertion[128];

		for (const char *at = text; (at = strchr(at, '\n')) != NULL;) {
			if (!enumerator_of(++at, name))
				continue;
			enumerators++;
			test_info("%s.h: %s", headers[i], name);
			snprintf(assertion, sizeof(assertion), "\nIS(%s, ", name);
			CHECK(strstr(asserts, assertion) != NULL);
		}
		free(text);
	}
	free(asserts);
	CHECK(enumerators >= 28 + 6 + 16 + 11); /* statuses, frameworks, families, sizes, ... */
}

/* ---- the manual --------------------------------------------------------------------------- */

/* What the manual must begin a call's last column with; NULL: nothing in particular. */
static const char *said_of(const char *name)
{
	static const struct {
		const char *name, *text;
	} rows[] = {
#define CALL(returned, name, parameters, result, why) {#name, "unsupported: " why},
#define CALL_VOID(name, parameters, why) {#name, "unsupported: " why},
#define CALL_BY_HAND(name, why) {#name, "unsupported: " why},
#include "runtime/lifecycle/unsupported.def"
#undef CALL
#undef CALL_VOID
#undef CALL_BY_HAND
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (!strcmp(rows[i].name, name))
			return rows[i].text;
	return NULL;
}

static const char *before_init(const char *returns, const char *state)
{
	static const char *const words[][2] = {{"STATUS", "13"}, {"NOTHING", "nothing"},
		{"INT", "-1"}, {"SIZE", "0"}, {"BOOL", "false"}, {"POINTER", "NULL"}};

	if (!strcmp(state, "ANYTIME"))
		return "works";
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(words[i][0], returns))
			return words[i][1];
	return "?";
}

TEST("nrt: the manual has a row for every export that says what it does", "[nrt]")
{
	char *text = program_text("docs/abi.md");
	int rows = 0;

	if (access("docs/abi.md", R_OK) < 0) {
		free(text);
		SKIP("the source tree");
	}
	for (const char *at = text; (at = strstr(at, "\n| `n")) != NULL; at++)
		rows++;
	CHECK_EQ(rows, CALLS);
	for (int i = 0; i < CALLS; i++) {
		const char *said = said_of(calls[i].name), *row;
		char begin[200];

		snprintf(begin, sizeof(begin), "\n| `%s` | %s | %s", calls[i].name,
			before_init(calls[i].returns, calls[i].state), said ? said : "");
		row = strstr(text, begin);
		test_info("%s", begin + 1);
		CHECK(row != NULL);
		if (row && !said)
			CHECK(strncmp(row + strlen(begin), "unsupported", 11) != 0 &&
				strncmp(row + strlen(begin), "missing", 7) != 0);
	}
	free(text);
}
