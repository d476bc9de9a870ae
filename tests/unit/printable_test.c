/* SPDX-License-Identifier: Apache-2.0 */
/*
 * printable_test.c - no text from a file makes a terminal do anything but show it.
 */
#include "agent/output/dump.h"
#include "runtime/base/printable.h"
#include "tests/shim/shim.h"
#include "tests/unit/foreign_fixture.h"

TEST("printable: controls and bytes that are not UTF-8 are shown, all else stays", "[printable]")
{
	static const struct {
		const char *text;
		size_t len;
		const char *shown;
	} rows[] = {
		{"nc_exec_running", 15, "nc_exec_running"},
		{"\033[31mred", 8, "\\x1b[31mred"},
		{"two\nrows\t\r", 10, "two\\nrows\\t\\x0d"},
		{"a\0b", 3, "a\\x00b"},
		{"na\303\257ve \346\274\242", 10, "na\303\257ve \346\274\242"},
		{"\302\233"
		 "31m",
			5, "\\u009b31m"}, /* CSI as one character */
		{"\233"
		 "31m\303",
			5, "\\x9b31m\\xc3"},
		{"\342\200\256"
		 "dlrow",
			8, "\\u202edlrow"}, /* turns the direction */
		{"", 0, ""},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		char buf[PRINTABLE_BYTES], *text = NULL;
		size_t size = 0;
		FILE *f = open_memstream(&text, &size);

		REQUIRE(f != NULL);
		printable_put(f, rows[i].text, rows[i].len);
		fclose(f);
		CHECK_STR(text, rows[i].shown);
		CHECK_STR(printable(rows[i].text, rows[i].len, buf), rows[i].shown);
		free(text);
	}
}

TEST("printable: what is too long ends in dots and fits", "[printable]")
{
	char text[4 * PRINTABLE_BYTES], buf[PRINTABLE_BYTES];

	for (size_t len = PRINTABLE_BYTES - 9; len < sizeof(text); len += 3) {
		memset(text, len % 2 ? '\033' : 'x', len);
		printable(text, len, buf);
		REQUIRE(strlen(buf) < sizeof(buf));
		CHECK(strlen(buf) == len || !strcmp(buf + strlen(buf) - 3, "..."));
	}
}

static bool has_control(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text >= 0x7f || ((unsigned char)*text < 0x20 && *text != '\n'))
			return true;
	return false;
}

TEST("printable: a summary of hostile names has no control character and no row too many",
	"[printable]")
{
	static const char *const hostile = "\033]0;x\a\nblind: nothing\233";
	struct foreign f;
	char *text;

	REQUIRE(foreign_open(&f));
	for (uint64_t i = 1; i <= 2; i++) {
		f.e.hint = (struct pb_str){i == 1 ? "a\0b" : "a\0c", 3};
		foreign_put(&f, 0, PHASE_START, 1ull << 63 | (10 + i), 1000);
		f.e.hint = foreign_text(hostile);
		foreign_put(&f, 0, PHASE_START, 1ull << 63 | i, 1000);
		f.e.hint = foreign_text(hostile);
		foreign_attr(&f, "errno", hostile);
		foreign_put(&f, 0, PHASE_STOP, 1ull << 63 | i, 1001);
		f.e.hint = foreign_text(hostile);
		foreign_put(&f, 0, PHASE_INSTANT, 1ull << 62 | i, 1001);
		foreign_attr(&f, "model_id", "5");
		foreign_attr(&f, "model_name", hostile);
		foreign_put(&f, TRACE_EXECUTE_API, PHASE_START, i, 1002);
		foreign_put(&f, TRACE_EXECUTE_API, PHASE_STOP, i, 1003);
	}
	REQUIRE_EQ(foreign_sum(&f), 0);
	text = sum_print(&f.s, summary_print_text);
	REQUIRE(text != NULL);
	CHECK(!has_control(text));
	CHECK(!strstr(text, "\nblind: nothing"));
	CHECK(strstr(text, "\\x1b]0;x\\x07\\nblind: nothing\\x9b") != NULL);
	CHECK(strstr(text, "a\\x00b ") && strstr(text, "a\\x00c "));
	free(text);
	foreign_free(&f);
}

TEST("printable: a timeline of hostile attributes has one row per event", "[printable]")
{
	struct foreign f;
	char *text = NULL;
	size_t size = 0, at, lines = 0;

	REQUIRE(foreign_open(&f));
	f.e.hint = foreign_text("na\033me\n");
	foreign_attr(&f, "k\ney", "v\033[2Jalue\n");
	foreign_put(&f, 0, PHASE_START, 1ull << 63 | 1, 1000);
	FILE *to = open_memstream(&text, &size);
	REQUIRE(to != NULL);
	CHECK_EQ(dump_print(to, DUMP_NTRACE, DUMP_TEXT, f.bytes.data, f.bytes.len, &at), 0);
	fclose(to);
	CHECK(!has_control(text));
	CHECK(strstr(text, " k\\ney=v\\x1b[2Jalue\\n\n") != NULL);
	for (size_t i = 0; i < size; i++)
		lines += text[i] == '\n';
	CHECK_EQ(lines, 3); /* two of the head */
	free(text);
	foreign_free(&f);
}

TEST("printable: a long process name leaves the core and the pid readable", "[printable]")
{
	struct foreign f;
	struct feed_process p[2] = {{.index = 0, .name = "short"}, {.index = 1}};
	char name[300];
	char *text;

	REQUIRE(foreign_open(&f));
	memset(name, 'x', sizeof(name));
	snprintf(name + 250, sizeof(name) - 250, "_pid_4711");
	p[1].name = name;
	struct feed_sink sink = summary_sink(&f.s);
	for (unsigned i = 0; i < 2; i++) {
		struct ntrace_event_view e = {.timestamp = 1000,
			.phase = PHASE_STOP,
			.event_type = TRACE_DEVICE_EXEC,
			.nc_idx = 17,
			.id = 5,
			.duration = 10};

		REQUIRE_EQ(sink.process(sink.ctx, &p[i]), 0);
		REQUIRE_EQ(sink.event(sink.ctx, &p[i], &e), 0);
		REQUIRE_EQ(sink.end(sink.ctx, &p[i], NULL), 0);
	}
	REQUIRE_EQ(summary_compute(&f.s), 0);
	text = sum_print(&f.s, summary_print_text);
	REQUIRE(text != NULL);
	CHECK(strstr(text, "short nc17 ") != NULL);
	CHECK(strstr(text, "x...x") && strstr(text, "_pid_4711 nc17 "));
	free(text);
	foreign_free(&f);
}
