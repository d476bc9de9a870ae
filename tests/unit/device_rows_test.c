/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_rows_test.c - records of device profiles as rows of ntrace.pb: what they say, where they stand, to
 * what they link, what is counted; and what a profile that is not whole costs.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/output/event_kind.h"
#include "runtime/record/item.h"
#include "tests/unit/device_rows_fixture.h"

TEST("device rows: an instruction is a span with the device's own times and a link to its run",
	"[device_rows]")
{
	struct rows r;
	const struct ntrace_event_view *start, *stop;

	REQUIRE(open_rows(&r));
	r.x.info.logical_nc = 4;
	add_points(&r.x);
	add_work(&r.x);
	finish(&r);
	REQUIRE(merge(&r, "out", true));
	start = row(&r, "pe.add", PHASE_START);
	stop = row(&r, "pe.add", PHASE_STOP);
	CHECK_EQ(start->timestamp, FX_EPOCH + 120 * US);
	CHECK_EQ(stop->timestamp, FX_EPOCH + 150 * US);
	CHECK_EQ(stop->duration, 30 * US);
	CHECK_EQ(start->event_type, 0);
	CHECK_EQ(start->thread_id, 0);
	CHECK_EQ(start->nd_idx, 0);
	CHECK_EQ(start->nc_idx, 3);
	CHECK_EQ(stop->parent_id, 0);
	CHECK(start->id == stop->id && start->id >> 60 == 1);
	CHECK(is(start, "engine", "pe"));
	CHECK(is(start, "device_core_idx", "1"));
	CHECK(is(start, "index", "1"));
	CHECK(is(start, "exec_id", "1"));
	CHECK_EQ(value(start, "device_ps"), CORE_PS(120 * US));
	CHECK_EQ(value(stop, "device_duration_ps"), 30 * US * PS + 123);
	CHECK(value(stop, "clock.bound_ns") >= 50 && value(stop, "clock.bound_ns") < 200);
	CHECK_EQ(value(stop, "link.id"), 21);
	CHECK(is(stop, "link.kind", "run"));
	CHECK(is(stop, "link", "exact"));
	CHECK_EQ(event_kind(start), EVENT_UNIT);
	CHECK_EQ(event_kind(stop), EVENT_UNIT);
	free_rows(&r);
}

TEST("device rows: transfers and collectives are spans, semaphores and errors instants",
	"[device_rows]")
{
	static const struct {
		const char *hint, *engine;
		uint64_t from, to; /* us */
	} spans[] = {{"dma3.copy", "dma3", 110, 120}, {"pe.add", "pe", 120, 150},
		{"topsp.all_reduce", "topsp", 150, 190}};
	struct rows r;
	const struct ntrace_event_view *e;

	REQUIRE(open_rows(&r));
	add_points(&r.x);
	add_work(&r.x);
	finish(&r);
	REQUIRE(merge(&r, "out", true));
	for (size_t i = 0; i < sizeof(spans) / sizeof(*spans); i++) {
		test_info("%s", spans[i].hint);
		e = row(&r, spans[i].hint, PHASE_START);
		CHECK_EQ(e->timestamp, FX_EPOCH + spans[i].from * US);
		CHECK(is(e, "engine", spans[i].engine));
		CHECK_EQ(e->nc_idx, 3); /* by the run that the runtime told */
		e = row(&r, spans[i].hint, PHASE_STOP);
		CHECK_EQ(e->timestamp, FX_EPOCH + spans[i].to * US);
		CHECK_EQ(value(e, "link.id"), 21);
	}
	e = row(&r, "pe.semaphore", PHASE_INSTANT);
	CHECK_EQ(e->timestamp, FX_EPOCH + 150 * US);
	CHECK(is(e, "semaphore", "4"));
	CHECK(is(e, "value16", "9"));
	CHECK(is(e, "index", "1"));
	e = row(&r, "error", PHASE_INSTANT);
	CHECK_EQ(e->status, 1003);
	CHECK(is(e, "fault", "5"));
	CHECK(is(e, "engine", "pe")); /* of the instruction that it names */
	CHECK_EQ(e->timestamp, FX_EPOCH + 151 * US);
	CHECK_EQ(r.fx.trace.count, 2u + 3 * 2 + 2);
	CHECK_EQ(r.fx.result.outputs[0].device_spans, 3);
	free_rows(&r);
}

TEST("device rows: the bound of a span is that of its worse end", "[device_rows]")
{
	static const struct {
		uint64_t from, to;
		bool far;
	} rows[] = {{100 * MS, 1000 * MS, true}, {1010 * MS, 1020 * MS, false},
		{1100 * MS, 3000 * MS, true}};
	struct rows r;
	struct nx_ring *pe;
	size_t n = 0;

	REQUIRE(open_rows(&r));
	nx_sync(&r.x, 0, 1, CORE_PS(1000 * MS), FX_BOOT + 1000 * MS, 50);
	nx_sync(&r.x, 0, 1, CORE_PS(1100 * MS), FX_BOOT + 1100 * MS, 50);
	pe = nx_ring(&r.x, NX_INSTRUCTION, NX_ON_NC, 0, 0, 1);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		nx_ran(pe, 1, 2, CORE_PS(rows[i].from), CORE_PS(rows[i].to));
	finish(&r);
	REQUIRE(merge(&r, "out", true));
	for (size_t i = 0; i < r.fx.trace.count; i++) {
		const struct ntrace_event_view *e = &r.fx.trace.events[i];

		if (e->phase != PHASE_STOP || event_kind(e) != EVENT_UNIT)
			continue;
		test_info(
			"span %zu, bound %llu", n, (unsigned long long)value(e, "clock.bound_ns"));
		REQUIRE(n < sizeof(rows) / sizeof(*rows));
		CHECK((value(e, "clock.bound_ns") > 10 * US) == rows[n++].far);
	}
	CHECK_EQ(n, sizeof(rows) / sizeof(*rows));
	free_rows(&r);
}

TEST("device rows: every record is accounted for, and what the profile lost is lost",
	"[device_rows]")
{
	struct rows r;
	struct nx_ring *act;

	REQUIRE(open_rows(&r));
	add_points(&r.x);
	add_work(&r.x);
	act = nx_ring(&r.x, NX_INSTRUCTION, NX_ON_NC, 1, 0, 1);
	nx_ran(act, 8, 0, CORE_PS(130 * US), CORE_PS(140 * US));
	act->used--; /* its end is missing */
	nx_lost(&r.x, act, 3, true);
	nx_lost(&r.x, act, 1ull << 40, false); /* counts as 32 bits, and as at least so many */
	nx_ran(nx_ring(&r.x, NX_INSTRUCTION, NX_ON_NC, 1, 0, 2), 1, 0, 5,
		6); /* a core without points */
	finish(&r);
	REQUIRE(merge(&r, "out", true));
	CHECK_EQ(fx_ledger(&r.fx, REC_C_DEVICE_RECORDED), 10 + 1 + 2 + 3ull + UINT32_MAX);
	CHECK_EQ(fx_ledger(&r.fx, REC_C_DEVICE_WRITTEN), 8);
	CHECK_EQ(fx_ledger(&r.fx, REC_C_DEVICE_TOLD), 2);
	CHECK_EQ(fx_ledger(&r.fx, REC_C_DEVICE_UNPAIRED), 1);
	CHECK_EQ(fx_ledger(&r.fx, REC_C_DEVICE_TIMELESS), 2);
	CHECK_EQ(fx_ledger(&r.fx, REC_C_DEVICE_LOST), 3ull + UINT32_MAX);
	CHECK(r.fx.result.balanced);
	CHECK(blind_says(&r, "1 device profile lost beyond"));
	CHECK(!blind_says(&r, "no device profile (NTFF) was taken"));
	free_rows(&r);
}

static bool same_file(const struct rows *r, const char *a, const char *b, const char *file)
{
	char x[128], y[128];
	_cleanup_free_ char *p = NULL, *q = NULL;
	size_t n = 0, m = 0;

	snprintf(x, sizeof(x), "%s/i-0123_pid_%u/%s", a, FX_PID, file);
	snprintf(y, sizeof(y), "%s/i-0123_pid_%u/%s", b, FX_PID, file);
	return file_read(fx_path(&r->fx, x).s, 1u << 24, &p, &n) == 0 &&
	       file_read(fx_path(&r->fx, y).s, 1u << 24, &q, &m) == 0 && n == m && !memcmp(p, q, n);
}

TEST("device rows: the same bytes each time, whatever memory the merge has; none unless asked for",
	"[device_rows]")
{
	struct rows r;

	REQUIRE(open_rows(&r));
	add_points(&r.x);
	add_work(&r.x);
	for (uint64_t i = 0; i < 500; i++)
		fx_span(&r.fx, TRACE_EXECUTE_API, 1000 + i, 100, 100 * US + i * 97,
			100 * US + i * 97 + 50);
	finish(&r);
	REQUIRE(merge(&r, "a", true));
	r.fx.held_bytes = 1;
	REQUIRE(merge(&r, "b", true));
	CHECK(same_file(&r, "a", "b", "ntrace.pb"));
	CHECK(same_file(&r, "a", "b", "trace_info.pb"));
	REQUIRE(merge(&r, "c", false));
	CHECK_EQ(r.fx.trace.count, 2u + 2 * 500);
	CHECK_EQ(fx_ledger(&r.fx, REC_C_DEVICE_RECORDED), 0);
	CHECK(blind_says(&r, "--device was not given"));
	free_rows(&r);
}

TEST("device rows: a profile that is missing, damaged or cut costs its rows alone", "[device_rows]")
{
	static const struct {
		const char *what, *says;
	} rows[] = {{"missing", "missing"}, {"flipped", "another checksum"},
		{"cut", "another size"}, {"directory", "no regular file"}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		char name[64];
		struct rows r;
		int fd;

		test_info("%s", rows[i].what);
		REQUIRE(open_rows(&r));
		add_points(&r.x);
		add_work(&r.x);
		finish(&r);
		snprintf(name, sizeof(name), REC_DIR "/" REC_DEVICE_PROFILE_FORMAT, 0u);
		fd = open(fx_path(&r.fx, name).s, O_RDWR);
		switch (i) {
		case 0:
			unlink(fx_path(&r.fx, name).s);
			break;
		case 1:
			CHECK_EQ(pwrite(fd, "x", 1, (off_t)r.x.size - 1), 1);
			break;
		case 2:
			CHECK_EQ(ftruncate(fd, (off_t)r.x.size / 2), 0);
			break;
		default:
			unlink(fx_path(&r.fx, name).s);
			mkdir(fx_path(&r.fx, name).s, 0755);
		}
		close(fd);
		REQUIRE(merge(&r, "out", true));
		CHECK_EQ(r.fx.trace.count, 2);
		CHECK_EQ(r.fx.result.damage.bad_frames, 1);
		CHECK(blind_says(&r, rows[i].says));
		CHECK(blind_says(&r, "inside of 1 device run: the device profiles (NTFF) have no"));
		CHECK(r.fx.result.balanced);
		free_rows(&r);
	}
}

/* A frame for a file of an inspect session. */
static void add_file(struct fixture *fx, const char *type, const char *name, uint64_t bytes)
{
	uint8_t frame[sizeof(struct rec_file) + 300];
	struct rec_file head = {.bytes = bytes};

	memcpy(head.type, type, strlen(type));
	memcpy(frame, &head, sizeof(head));
	memcpy(frame + sizeof(head), name, strlen(name));
	fx_frame(fx, REC_FILE, REC_SOURCE_RECORDER, frame, sizeof(head) + strlen(name));
}

TEST("device rows: the files of a session lie beside its recording; those that are missing or "
     "changed are named",
	"[device_rows]")
{
	static const char name[] = "profile_nc_3_session_0.ntff";
	static const struct {
		const char *named, *says; /* NULL: all is well */
		int64_t more;
	} rows[] = {{name, NULL, 0},
		{name, "(profile_nc_3_session_0.ntff): damaged: it has another size", 1},
		{"gone.ntff", "(gone.ntff): missing", 0}, {"..", "(..): no regular file", 0}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct rows r;

		test_info("%s %" PRId64, rows[i].named, rows[i].more);
		REQUIRE(open_rows(&r));
		add_points(&r.x);
		add_work(&r.x);
		nx_build(&r.x);
		add_run(&r.fx, 21, 1, 100 * US, 200 * US);
		put_file(&r.fx, name, &r.x);
		for (unsigned twice = 0; twice < 2; twice++)
			add_file(&r.fx, "ntff", rows[i].named, r.x.size + (uint64_t)rows[i].more);
		add_file(&r.fx, "neff", name, 5);
		add_file(&r.fx, "ntff",
			REC_DIR "/"
				"segment-000000.ntrec",
			5);
		fx_end(&r.fx);
		fx_close_writer(&r.fx);
		REQUIRE(merge(&r, "out", true));
		if (rows[i].says) {
			CHECK_EQ(r.fx.trace.count, 2);
			CHECK_EQ(r.fx.result.damage.bad_frames, 1);
			CHECK(blind_says(&r, rows[i].says));
		} else {
			CHECK_EQ(r.fx.result.outputs[0].device_spans, 3);
			CHECK_EQ(value(row(&r, "pe.add", PHASE_STOP), "link.id"), 21);
			CHECK(!r.fx.result.damage.bad_frames);
		}
		free_rows(&r);
	}
}

TEST("device rows: of a profile in which one ring is damaged the others have their rows",
	"[device_rows]")
{
	struct rows r;

	REQUIRE(open_rows(&r));
	add_points(&r.x);
	add_work(&r.x);
	nx_layout(&r.x);
	r.x.rings[0].info.offset += 1u << 20; /* lies outside: that of pe */
	nx_pack(&r.x);
	add_run(&r.fx, 21, 1, 100 * US, 200 * US);
	add_profile(&r.fx, &r.x, 0, FX_PID);
	fx_end(&r.fx);
	fx_close_writer(&r.fx);
	REQUIRE(merge(&r, "out", true));
	CHECK_EQ(r.fx.result.outputs[0].device_spans, 2);
	CHECK_EQ(row(&r, "pe.add", PHASE_START)->phase, 0);
	CHECK_EQ(r.fx.result.damage.bad_frames, 1);
	CHECK(blind_says(&r, "device profile of pid 4711 (device-000000.ntff)"));
	CHECK(r.fx.result.balanced);
	free_rows(&r);
}

/* ---- times -------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	int64_t ppm;  /* by how much the core's clock is fast */
	int64_t step; /* of the realtime clock in the middle, ns */
} drifts[] = {{"right", 0, 0}, {"fast", 100, 0}, {"slow", -100, 0},
	{"fast, and a step", 100, 3600000000000}, {"slow, and a step back", -100, -7000000000}};

#define SECOND 1000000000ull

static uint64_t drifted_ps(uint64_t at, int64_t ppm)
{
	return (uint64_t)((__int128)CORE_PS(0) + (__int128)at * PS +
			  (__int128)at * PS / 1000000 * ppm);
}

/* Host times of points are off by up to their bound, to either side. */
static void add_drifting_points(struct nx *x, int64_t ppm, uint64_t bound)
{
	static const int sign[] = {1, -1, -1, 1, 0};

	for (uint64_t i = 0; i < 5; i++) {
		uint64_t at = i * SECOND / 2;

		nx_sync(x, 0, 1, drifted_ps(at, ppm),
			FX_BOOT + at + (uint64_t)(sign[i] * (int64_t)bound), bound);
	}
}

TEST("device rows: under drift and a step of realtime host times are right within the bound they "
     "state",
	"[device_rows]")
{
	for (size_t d = 0; d < sizeof(drifts) / sizeof(*drifts); d++) {
		struct rows r;
		struct nx_ring *pe;
		unsigned n = 0;

		test_info("%s", drifts[d].name);
		REQUIRE(open_rows(&r));
		fx_clock(&r.fx, SECOND, drifts[d].step);
		add_drifting_points(&r.x, drifts[d].ppm, 300);
		pe = nx_ring(&r.x, NX_INSTRUCTION, NX_ON_NC, 0, 0, 1);
		/* Also before the first and behind the last point. */
		for (uint64_t at = 10 * MS; at < 3 * SECOND; at += 37 * MS)
			nx_ran(pe, 1, 2, drifted_ps(at, drifts[d].ppm),
				drifted_ps(at + 5 * MS, drifts[d].ppm));
		finish(&r);
		REQUIRE(merge(&r, "out", true));
		for (size_t i = 0; i < r.fx.trace.count; i++) {
			const struct ntrace_event_view *e = &r.fx.trace.events[i];
			uint64_t at = 10 * MS + n * 37 * MS + 5 * MS, bound, off;

			if (e->phase != PHASE_STOP || event_kind(e) != EVENT_UNIT)
				continue;
			bound = value(e, "clock.bound_ns");
			off = e->timestamp > FX_EPOCH + at ? e->timestamp - FX_EPOCH - at
							   : FX_EPOCH + at - e->timestamp;
			if (off > bound || bound > 200 * US) {
				test_info("row %u is off by %llu, bound %llu", n,
					(unsigned long long)off, (unsigned long long)bound);
				REQUIRE(false);
			}
			n++;
		}
		CHECK(n == 81);
		free_rows(&r);
	}
}

/* ---- disorder ----------------------------------------------------------------------------- */

TEST("device rows: what a ring tells out of order stands behind what it told before, and says so",
	"[device_rows]")
{
	struct rows r;
	struct nx_ring *pe;
	const struct ntrace_event_view *e;

	REQUIRE(open_rows(&r));
	add_points(&r.x);
	pe = nx_ring(&r.x, NX_INSTRUCTION, NX_ON_NC, 0, 0, 1);
	nx_ran(pe, 1, 11, CORE_PS(150 * US), CORE_PS(160 * US));
	nx_ran(pe, 2, 12, CORE_PS(120 * US), CORE_PS(130 * US));
	nx_ran(pe, 3, 13, CORE_PS(170 * US), CORE_PS(180 * US));
	finish(&r);
	REQUIRE(merge(&r, "out", true)); /* in order of time, and paired */
	e = row(&r, "pe.op12", PHASE_START);
	CHECK_EQ(e->timestamp, FX_EPOCH + 160 * US);
	CHECK_EQ(value(e, "late_ns"), 40 * US);
	e = row(&r, "pe.op12", PHASE_STOP);
	CHECK_EQ(e->duration, 0);
	CHECK_EQ(value(e, "device_duration_ps"), 10 * US * PS);
	CHECK_EQ(row(&r, "pe.op13", PHASE_START)->timestamp, FX_EPOCH + 170 * US);
	CHECK_EQ(value(row(&r, "pe.op13", PHASE_START), "late_ns"), UINT64_MAX);
	free_rows(&r);
}

TEST("device rows: they interleave with the runtime's events by time, behind those of the same",
	"[device_rows]")
{
	struct rows r;
	struct nx_ring *pe;
	size_t i = 0;

	REQUIRE(open_rows(&r));
	add_points(&r.x);
	pe = nx_ring(&r.x, NX_INSTRUCTION, NX_ON_NC, 0, 0, 1);
	nx_ran(pe, 1, 1, CORE_PS(100 * US), CORE_PS(110 * US));
	nx_ran(pe, 1, 1, CORE_PS(200 * US), CORE_PS(200 * US));
	finish(&r);
	REQUIRE(merge(&r, "out", true));
	REQUIRE_EQ(r.fx.trace.count, 6);
	for (; i < 6; i++) {
		static const uint64_t at[] = {100, 100, 110, 200, 200, 200};
		static const bool unit[] = {false, true, true, false, true, true};

		test_info("%zu", i);
		CHECK_EQ(r.fx.trace.events[i].timestamp, FX_EPOCH + at[i] * US);
		CHECK_EQ(event_kind(&r.fx.trace.events[i]) == EVENT_UNIT, unit[i]);
	}
	free_rows(&r);
}

TEST("device rows: a run of another time or core with the same number is not linked",
	"[device_rows]")
{
	static const struct {
		const char *what;
		uint64_t from;	  /* of the runtime's run */
		uint32_t logical; /* that the file says, + 1 */
		bool linked;
	} rows[] = {{"its own", 100 * US, 4, true}, {"core not said", 100 * US, 0, true},
		{"another core", 100 * US, 9, false}, {"another time", 5000 * MS, 4, false}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct rows r;

		test_info("%s", rows[i].what);
		REQUIRE(open_rows(&r));
		r.x.info.logical_nc = rows[i].logical;
		add_points(&r.x);
		add_work(&r.x);
		nx_build(&r.x);
		add_run(&r.fx, 21, 1, rows[i].from, rows[i].from + 100 * US);
		add_profile(&r.fx, &r.x, 0, FX_PID);
		fx_end(&r.fx);
		fx_close_writer(&r.fx);
		REQUIRE(merge(&r, "out", true));
		CHECK_EQ(value(row(&r, "pe.add", PHASE_STOP), "link.id") == 21, rows[i].linked);
		CHECK_EQ(row(&r, "pe.add", PHASE_START)->nc_idx,
			rows[i].logical ? rows[i].logical - 1 : 3);
		free_rows(&r);
	}
}

TEST("device rows: of several processes each has its own, and one that has nothing else has a file",
	"[device_rows]")
{
	struct rows r;
	struct merge_options o = {.device = true};
	struct trace_file t;

	REQUIRE(open_rows(&r));
	add_points(&r.x);
	add_work(&r.x);
	nx_build(&r.x);
	add_run(&r.fx, 21, 1, 100 * US, 200 * US);
	add_profile(&r.fx, &r.x, 1, 5000);
	add_profile(&r.fx, &r.x, 0, FX_PID);
	fx_end(&r.fx);
	fx_close_writer(&r.fx);
	REQUIRE_EQ(merge_recording(fx_path(&r.fx, REC_DIR).s, fx_path(&r.fx, "out").s, &o,
			   &r.fx.result, &r.fx.error),
		0);
	REQUIRE_EQ(r.fx.result.output_count, 2);
	CHECK_EQ(r.fx.result.outputs[0].device_spans, 3);
	CHECK_EQ(r.fx.result.outputs[1].pid, 5000);
	CHECK_EQ(r.fx.result.outputs[1].device_spans, 3);
	REQUIRE(trace_file_load(&t, fx_path(&r.fx, "out/i-0123_pid_5000/ntrace.pb").s));
	CHECK_EQ(t.count, 8);
	CHECK(event_text_is(event_value(&t.events[0], "nc"), "unknown")); /* no run tells */
	CHECK_EQ(t.events[0].id, 1ull << 60 | 1);
	trace_file_free(&t);
	free_rows(&r);
}
