/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfetto_limits_test.c - traces that fill the exporter's tables, lanes and numbers, or come from several
 * boots and captures: nothing is left out, and nothing is called lost that was not.
 */
#include "proto/delimited.h"
#include "tests/unit/perfetto_fixture.h"

#define CALL_ID (1ull << 63)
#define MANY 4300u

TEST("perfetto: what one sequence interns is told there, also when another begins meanwhile",
	"[perfetto]")
{
	static const struct row rows[] = {
		START_(TRACE_DEVICE_EXEC, 1, 10, "device_core_idx=0"),
		START_(TRACE_CC_EXEC, 2, 20, "device_core_idx=0"),
		STOP_(TRACE_DEVICE_EXEC, 1, 30, ""),
		STOP_(TRACE_CC_EXEC, 2, 40, "fresh=1"),
		START_(TRACE_TENSOR_READ, 3, 50, "fresh=2"),
		STOP_(TRACE_TENSOR_READ, 3, 60, ""),
	};
	struct exported *x = EXPORT(rows);

	REQUIRE(x);
	CHECK_STR(named(x, "cc_running", 1)->notes, "continued=b1 ");
	CHECK_STR(named(x, "nrt_tensor_read", 0)->notes, "fresh=u2 nc=u0 ");
	exported_free(x);
}

/* Driver calls with as many names, or annotation names, as make a table full, then `rows`. */
static struct exported *export_behind(bool names, const struct row *rows, size_t count)
{
	struct row *all = calloc(MANY + count, sizeof(*all));
	char(*texts)[24] = calloc(MANY, sizeof(*texts));
	struct exported *x = NULL;

	for (unsigned i = 0; all && texts && i < MANY; i++) {
		snprintf(texts[i], sizeof(texts[i]), names ? "name%u" : "key%u=1", i);
		all[i] = (struct row){.phase = PHASE_INSTANT,
			.id = CALL_ID | (1000 + i),
			.thread = 9,
			.attrs = names ? "" : texts[i],
			.hint = names ? texts[i] : "one"};
	}
	if (all && texts) {
		memcpy(all + MANY, rows, count * sizeof(*rows));
		x = export_rows(all, MANY + count);
	}
	free(all);
	free(texts);
	return x;
}

TEST("perfetto: behind more names than have numbers each event still has its own", "[perfetto]")
{
	static char longer[400];
	const struct row rows[] = {
		START_(TRACE_EXECUTE_API, 1, 10, ""),
		START_(0, CALL_ID | 1, 20, "nc=unknown", "MEM_BUF_COPY64"),
		STOP_(0, CALL_ID | 1, 30, "bytes=96 direction=host_to_device", "MEM_BUF_COPY64"),
		START_(0, CALL_ID | 2, 40, "nc=unknown", longer),
		STOP_(TRACE_EXECUTE_API, 1, 50, ""),
		STOP_(0, CALL_ID | 2, 60, "", longer),
	};
	struct exported *x;

	memset(longer, 'y', sizeof(longer) - 1);
	x = export_behind(true, rows, sizeof(rows) / sizeof(*rows));
	REQUIRE(x);
	CHECK_STR(named(x, "name4299", 0)->name, "name4299");
	CHECK_EQ(named(x, "nrt_execute", 0)->time, 10);
	CHECK_EQ(named(x, "MEM_BUF_COPY64", 0)->time, 20);
	CHECK_EQ(named(x, longer, 0)->time, 40);
	CHECK_EQ(named(x, longer, 1)->time, 50);
	CHECK_STR(named(x, longer, 1)->notes, "continued=b1 ");
	CHECK_STR(story(x, "copies host_to_device bytes"), "0=96 ");
	exported_free(x);
}

TEST("perfetto: behind more annotation names than have numbers those that mean something still do",
	"[perfetto]")
{
	static const struct row rows[] = {
		START_(TRACE_MODEL_SUBMIT, 1, 10, ""),
		{.phase = PHASE_STOP,
			.type = TRACE_MODEL_SUBMIT,
			.id = 1,
			.time = 12,
			.thread = 10,
			.attrs = "extra=5 @status=4 @seq=77"},
		START_(TRACE_DEVICE_EXEC, 2, 20, "device_core_idx=0"),
		STOP_(TRACE_DEVICE_EXEC, 2, 26, "link.id=1 link.kind=submit link=exact"),
		START_(0, CALL_ID | 1, 30, "nc=unknown", "MEM_BUF_COPY64"),
		STOP_(0, CALL_ID | 1, 40, "bytes=96 direction=host_to_device", "MEM_BUF_COPY64"),
	};
	struct exported *x = export_behind(false, rows, sizeof(rows) / sizeof(*rows));

	REQUIRE(x);
	CHECK_STR(x->seen[MANY + 1].notes, "extra=u5 status=u4 nrta_seq_id=u77 ");
	CHECK_EQ(x->seen[MANY + 3].end_flow, x->seen[MANY].flow);
	CHECK_STR(x->seen[MANY + 4].notes, "nd=u0 ");
	CHECK_STR(story(x, "copies host_to_device bytes"), "0=96 ");
	exported_free(x);
}

/* Spans within each other, of types in turn, all of which end. */
static struct exported *export_nested(unsigned depth, unsigned types)
{
	struct row *rows = calloc(2 * depth, sizeof(*rows));
	struct exported *x = NULL;

	for (unsigned i = 0; rows && i < depth; i++) {
		struct row row = {.phase = PHASE_START,
			.type = 100 + i % types,
			.id = i + 1,
			.time = i,
			.thread = 10};

		rows[i] = row;
		row.phase = PHASE_STOP;
		row.time = 2 * depth - i;
		row.duration = 2 * depth - 2 * i;
		rows[2 * depth - 1 - i] = row;
	}
	if (rows)
		x = export_rows(rows, 2 * depth);
	free(rows);
	return x;
}

TEST("perfetto: spans that nest deeply are one slice each", "[perfetto]")
{
	struct exported *x = export_nested(200, 200);

	REQUIRE(x);
	CHECK_EQ(x->verified.slices, 200);
	CHECK_EQ(x->verified.open, 0);
	CHECK_STR(story(x, "records lost or broken"), "");
	exported_free(x);
}

TEST("perfetto: spans that were cut and whose rests find no room are not counted as lost",
	"[perfetto]")
{
	struct exported *x = export_nested(2000, 2);

	REQUIRE(x);
	CHECK_STR(story(x, "records lost or broken"), "");
	CHECK_EQ(x->verified.open, 0);
	exported_free(x);
	x = export_nested(6000, 2); /* more than are remembered */
	REQUIRE(x);
	CHECK_STR(story(x, "records lost or broken"), "");
	exported_free(x);
}

TEST("perfetto: the rest of a slice that was cut has the span's status", "[perfetto]")
{
	static const struct row rows[] = {
		START_(TRACE_EXECUTE_API, 1, 10, ""),
		START_(TRACE_TENSOR_READ, 2, 20, ""),
		STOP_(TRACE_EXECUTE_API, 1, 30, ""),
		{.phase = PHASE_STOP,
			.type = TRACE_TENSOR_READ,
			.id = 2,
			.time = 50,
			.thread = 10,
			.attrs = "a=1 @status=3 @seq=77"},
	};
	struct exported *x = EXPORT(rows);

	REQUIRE(x);
	CHECK_EQ(x->seen[5].time, 50);
	CHECK_STR(x->seen[5].notes, "a=u1 status=u3 nrta_seq_id=u77 ");
	exported_free(x);
}

TEST("perfetto: numbers that are too large are as large as can be, or none", "[perfetto]")
{
	static const struct row rows[] = {
		START_(TRACE_MODEL_SUBMIT, UINT64_MAX, 1, ""),
		START_(0, CALL_ID | 1, 2, "", "MEM_BUF_COPY64"),
		STOP_(0, CALL_ID | 1, 3, "bytes=99999999999999999999 direction=host_to_device",
			"MEM_BUF_COPY64"),
		START_(0, CALL_ID | 2, 4, "", "MEM_BUF_COPY64"),
		STOP_(0, CALL_ID | 2, 5, "bytes=18446744073709551615 direction=host_to_device",
			"MEM_BUF_COPY64"),
		START_(TRACE_DEVICE_EXEC, 5, 6, "device_core_idx=0"),
		STOP_(TRACE_DEVICE_EXEC, 5, 7, "link.id=99999999999999999999 link=exact"),
		{PHASE_INSTANT, 0, 1ull << 62, 20, 0, "new_offset_ns=-9223372036854775808",
			"clock_step", 0, 0},
		{PHASE_INSTANT, 0, 1ull << 62, 21, 0, "new_offset_ns=9223372036854775807",
			"clock_step", 0, 0},
		{PHASE_INSTANT, 0, 1ull << 62, 22, 0, "new_offset_ns=99999999999999999999",
			"clock_step", 0, 0},
	};
	struct exported *x = EXPORT(rows);

	REQUIRE(x);
	CHECK_STR(story(x, "copies host_to_device bytes"), "0=9223372036854775807 ");
	CHECK_STR(story(x, "copies host_to_device B/s"), "0=9223372036854775800 10000000=0 ");
	CHECK_EQ(x->snapshots, 1);
	CHECK_EQ(x->seen[6].end_flow, 0);
	exported_free(x);
}

TEST("perfetto: a process of an older boot is placed by realtime, before the others", "[perfetto]")
{
	static const struct row rows[] = {
		START_(TRACE_TENSOR_READ, 1, 1000, ""),
		STOP_(TRACE_TENSOR_READ, 1, 2000, ""),
	};
	struct scratch s;
	struct exported *x;

	REQUIRE(scratch_make(&s));
	/* The first one's machine booted after the second one's events. */
	CHECK(put_trace_at(&s, "i-1_pid_7", 7, OFFSET + BOOT + 1500, rows, 2));
	CHECK(put_trace_at(&s, "i-2_pid_8", 8, OFFSET, rows, 2));
	x = export_path(s.dir);
	scratch_remove(&s);
	REQUIRE(x);
	CHECK_STR(
		story(x, "thread 10"), "<1000:nrt_tensor_read >2000 <1000:nrt_tensor_read >2000 ");
	exported_free(x);
}

TEST("perfetto: what a process without events has lost stands at the newest time", "[perfetto]")
{
	static const struct row rows[] = {
		START_(TRACE_TENSOR_READ, 1, 10, ""),
		STOP_(TRACE_TENSOR_READ, 1, 20, ""),
	};
	struct scratch s;
	struct exported *x;

	REQUIRE(scratch_make(&s));
	CHECK(put_trace(&s, "i-1_pid_7", 7, rows, 0) && put_trace(&s, "i-1_pid_8", 8, rows, 2));
	x = export_path(s.dir);
	scratch_remove(&s);
	REQUIRE(x);
	CHECK_STR(story(x, "losses"), "!20:lost: kernel/ring_full !20:blind "
				      "!20:lost: kernel/ring_full !20:blind ");
	exported_free(x);
}

/* Writes cpu_util.pb with samples of CPU 0 at these times after BOOT. */
static bool put_cpu(
	struct scratch *s, const char *name, float util, const uint64_t *times, size_t n)
{
	struct scratch_path dir = scratch_path(s, name);
	uint8_t buf[512];
	size_t len = 0;

	for (size_t i = 0; i < n; i++) {
		Ntff__CpuUtil u = NTFF__CPU_UTIL__INIT;

		u.timestamp = BOOT + OFFSET + times[i];
		u.util = util;
		len += pb_varint_put(buf + len, ntff__cpu_util__get_packed_size(&u));
		len += ntff__cpu_util__pack(&u, buf + len);
	}
	return put_file(dir.s, "cpu_util.pb", buf, len);
}

TEST("perfetto: samples of CPUs are shown once each, of every capture of a host", "[perfetto]")
{
	static const struct row rows[] = {
		START_(TRACE_TENSOR_READ, 1, 10, ""),
		STOP_(TRACE_TENSOR_READ, 1, 20, ""),
	};
	static const uint64_t newer[] = {1000, 2000, 3000}, older[] = {100, 200};
	static const uint64_t later[] = {2000, 3000, 4000};
	struct scratch s;
	struct exported *x;

	REQUIRE(scratch_make(&s));
	CHECK(put_trace(&s, "i-1_pid_7", 7, rows, 2) && put_cpu(&s, "i-1_pid_7", 50, newer, 3));
	CHECK(put_trace(&s, "i-1_pid_8", 8, rows, 2) && put_cpu(&s, "i-1_pid_8", 50, later, 3));
	CHECK(put_trace(&s, "ntrace-i-1-9", 9, rows, 2) &&
		put_cpu(&s, "ntrace-i-1-9", 70, older, 2));
	x = export_path(s.dir);
	scratch_remove(&s);
	REQUIRE(x);
	CHECK_STR(story(x, "CPU 0 %"), "1000=0 2000=0 3000=0 4000=0 100=0 200=0 ");
	CHECK_STR(story(x, "CPU mean %"), "1000=0 2000=0 3000=0 4000=0 100=0 200=0 ");
	exported_free(x);
}

TEST("perfetto: a link's kind of 32 bytes is in the name of its step", "[perfetto]")
{
	static const struct row rows[] = {
		START_(TRACE_MODEL_SUBMIT, 1, 10, ""),
		STOP_(TRACE_MODEL_SUBMIT, 1, 12, ""),
		START_(TRACE_DEVICE_EXEC, 2, 20, "device_core_idx=4"),
		STOP_(TRACE_DEVICE_EXEC, 2, 26,
			"link.id=1 link.kind=abcdefghijklmnopqrstuvwxyz012345 link=inferred"),
	};
	struct exported *x = EXPORT(rows);

	REQUIRE(x);
	CHECK_EQ(named(x, "abcdefghijklmnopqrstuvwxyz012345 (inferred)", 0)->time, 26);
	exported_free(x);
}
