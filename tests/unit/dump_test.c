/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dump_test.c - a file is printed as it is read: in memory that does not grow with it, up to the place
 * where it is damaged.
 */
#include "agent/output/dump.h"
#include "runtime/base/file.h"
#include "tests/shim/shim.h"
#include "tests/unit/diff_fixture.h"

#define EVENTS_IN_FILE 40000u

/* A file of many events, the last of which says `last` of its bytes. */
static bool write_events(const char *path, size_t last)
{
	static struct ntrace_event_view e;
	struct pb_buf b = {0};
	size_t before = 0;
	FILE *f = fopen(path, "w");
	bool ok = f != NULL;

	e.hint = str("an event of some length, so that the file is larger than any window");
	e.unknown = str("");
	for (size_t i = 0; i < EVENTS_IN_FILE; i++) {
		before = b.len;
		e.timestamp = T0 + i;
		ok = ok && ntrace_event_append(&b, &e) == 0;
	}
	ok = ok && fwrite(b.data, 1, before + last, f) == before + last;
	pb_buf_free(&b);
	return f && fclose(f) == 0 && ok;
}

struct dumped {
	int rc;
	size_t lines, window;
	uint64_t at, size;
	enum dump_kind looks;
};

static struct dumped dump(const char *path, enum dump_format format)
{
	struct dumped d = {.rc = -1};
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	struct trace_read r;

	if (f && trace_read_open(&r, path) == 0) {
		if (dump_sniff_file(&r, &d.looks) == 0)
			d.rc = dump_file(f, DUMP_NTRACE, format, &r, &d.at);
		d.window = r.cap;
		trace_read_rest(&r, &d.size);
		trace_read_close(&r);
	}
	if (f)
		fclose(f);
	for (size_t i = 0; i < len; i++)
		d.lines += text[i] == '\n';
	free(text);
	return d;
}

TEST("dump: memory does not grow with the file", "[dump]")
{
	struct scratch s;

	REQUIRE(scratch_make(&s));
	struct scratch_path path = scratch_path(&s, "x");
	size_t part = 20; /* of an event, less than it has */
	REQUIRE(write_events(path.s, 0));
	struct dumped d = dump(path.s, DUMP_JSON);
	CHECK_EQ(d.rc, 0);
	CHECK_EQ(d.looks, DUMP_NTRACE);
	CHECK_EQ(d.lines, EVENTS_IN_FILE - 1);
	CHECK(d.size > 3u << 20);
	CHECK(d.window <= 512u << 10);
	CHECK_EQ(d.at, d.size);

	REQUIRE(write_events(path.s, part));
	struct dumped cut = dump(path.s, DUMP_TEXT);
	CHECK_EQ(cut.rc, -EBADMSG);
	CHECK_EQ(cut.lines, EVENTS_IN_FILE + 1); /* with two lines of heading */
	CHECK_EQ(cut.at, d.size);
	CHECK_EQ(cut.size, d.size + part);
	scratch_remove(&s);
}

TEST("dump: a message that cannot be read ends it at its place", "[dump]")
{
	static const char bytes[] = "\x02\x08\x01\x02\x08\x02\x01\x08\x02\x08\x03";
	struct scratch s;

	REQUIRE(scratch_make(&s));
	struct scratch_path path = scratch_path(&s, "x");
	FILE *f = fopen(path.s, "w");
	REQUIRE(f && fwrite(bytes, 1, sizeof(bytes) - 1, f) == sizeof(bytes) - 1 && fclose(f) == 0);
	struct dumped d = dump(path.s, DUMP_JSON);
	CHECK_EQ(d.rc, -EBADMSG);
	CHECK_EQ(d.lines, 2);
	CHECK_EQ(d.at, 6);
	CHECK_EQ(d.size, sizeof(bytes) - 1);
	scratch_remove(&s);
}
