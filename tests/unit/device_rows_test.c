/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_rows_test.c - records of device profiles as rows of ntrace.pb: what they say, where they stand, to
 * what they link, what is counted; and what a profile that is not whole costs.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "agent/output/event_kind.h"
#include "agent/output/summary.h"
#include "runtime/record/item.h"
#include "runtime/trace/payload.h"
#include "tests/shim/shim.h"
#include "tests/unit/ntff_fixture.h"
#include "tests/unit/summary_fixture.h"

#define US 1000ull
#define MS 1000000ull
#define PS 1000ull /* per ns */

/* A recording with a run of exec_id 1 on physical core 1 of device 0 and, in its profile, what it did. */
struct rows {
	struct fixture fx;
	struct nx x;
};

/* The device's clock, when it is right, shows this at a relative time of the fixture. */
#define CORE_NS(at) (7000000000ull + (at))
#define CORE_PS(at) (CORE_NS(at) * PS)

static void add_profile(struct fixture *fx, const struct nx *x, uint32_t index, uint32_t pid)
{
	struct rec_device_profile frame = {.index = index,
		.pid = pid,
		.bytes = x->size,
		.check = XXH3_64bits(x->bytes, x->size)};
	char name[64];
	int fd;

	snprintf(name, sizeof(name), REC_DIR "/" REC_DEVICE_PROFILE_FORMAT, index);
	fd = open(fx_path(fx, name).s, O_WRONLY | O_CREAT | O_EXCL, 0644);
	if (fd < 0 || write(fd, x->bytes, x->size) != (ssize_t)x->size)
		abort();
	close(fd);
	fx_frame(fx, REC_DEVICE_PROFILE, REC_SOURCE_RECORDER, &frame, sizeof(frame));
}

static void add_run(struct fixture *fx, uint64_t id, uint32_t exec_id, uint64_t from, uint64_t to)
{
	struct trace_device_exec start = {.device_core_idx = 1,
		.exec_id = exec_id,
		.sync = {.nc_timestamp_ns = CORE_NS(from), .cpu_timestamp_ns = FX_BOOT + from}};
	uint64_t end = CORE_NS(to);
	struct trace_record *r = fx_record(fx, TRACE_DEVICE_EXEC, TRACE_START, id, 100, from);

	r->nc_idx = 3;
	memcpy(r->data, &start, sizeof(start));
	r = fx_record(fx, TRACE_DEVICE_EXEC, TRACE_STOP, id, 100, to);
	r->nc_idx = 3;
	memcpy(r->data, &end, sizeof(end));
	fx_records(fx, FX_SOURCE);
}

/* Both clocks at two moments around all. */
static void add_points(struct nx *x)
{
	nx_sync(x, 0, 1, CORE_PS(0), FX_BOOT, 50);
	nx_sync(x, 0, 1, CORE_PS(MS), FX_BOOT + MS, 50);
}

/* One instruction, one transfer, a collective, a semaphore and an error in a run of 100 us. */
static void add_work(struct nx *x)
{
	struct nx_ring *pe = nx_ring(x, NX_INSTRUCTION, NX_ON_NC, 0, 0, 1);
	struct nx_ring *run = nx_ring(x, NX_INSTRUCTION, NX_ON_NC, 4, 0, 1);
	struct nx_ring *dma = nx_ring(x, NX_DMA, NX_ON_DMA, 3, 0, 1);
	struct nx_ring *event = nx_ring(x, NX_EVENT, NX_ON_NC, 0, 0, 1);
	struct nx_ring *error = nx_ring(x, NX_ERROR, NX_ON_NC, 0, 0, 1);
	struct nx_ring *top = nx_ring(x, NX_EXPLICIT, NX_ON_TOPSP, 0, 0, 1);
	struct nx_graph *g = nx_graph(x, 0, 1);

	nx_name(g, 0, NX_ON_DMA, 3, "copy", 2);
	nx_name(g, 1, NX_ON_NC, 0, "add", 5);
	nx_name(g, 2, NX_ON_TOPSP, 0, "all_reduce", 3);
	nx_run(x, 0, 1, 1, CORE_PS(100 * US), CORE_PS(200 * US));
	nx_did(run, NOTE_TYPE_EXPLICIT_SP, 1, NOTE_START, CORE_PS(100 * US), CORE_PS(200 * US));
	nx_did(dma, NOTE_TYPE_DMA, 0, NOTE_START, CORE_PS(110 * US), CORE_PS(120 * US) + 7);
	nx_ran(pe, 1, 2, CORE_PS(120 * US), CORE_PS(150 * US) + 123);
	nx_did(top, NOTE_TYPE_EXPLICIT_SP, 2, NOTE_CC_START, CORE_PS(150 * US), CORE_PS(190 * US));
	nx_note(event, (struct notification){.id = 1,
			       .type_phase = (uint8_t)NOTE_TYPE_SEMAPHORE(0u),
			       .custom = 4,
			       .subtype = 9,
			       .timestamp_ps = CORE_PS(150 * US)});
	nx_note(error, (struct notification){.id = 1,
			       .type_phase = NOTE_TYPE_TPB_ERROR,
			       .custom = 5,
			       .subtype = 1003,
			       .timestamp_ps = CORE_PS(151 * US)});
}

static bool open_rows(struct rows *r)
{
	nx_init(&r->x);
	return fx_open(&r->fx);
}

static void finish(struct rows *r)
{
	nx_build(&r->x);
	add_run(&r->fx, 21, 1, 100 * US, 200 * US);
	add_profile(&r->fx, &r->x, 0, FX_PID);
	fx_end(&r->fx);
	fx_close_writer(&r->fx);
}

static bool merge(struct rows *r, const char *out, bool device)
{
	struct merge_options o = {.device = device, .held_bytes = r->fx.held_bytes};
	size_t open = 0;

	merge_result_free(&r->fx.result);
	free(r->fx.error);
	trace_file_free(&r->fx.trace);
	if (merge_recording(fx_path(&r->fx, REC_DIR).s, fx_path(&r->fx, out).s, &o, &r->fx.result,
		    &r->fx.error) < 0 ||
		!trace_file_read(&r->fx.trace, fx_path(&r->fx, out).s))
		return false;
	const char *fault = trace_file_fault(&r->fx.trace, &open);
	test_info("fault: %s, open %zu", fault, open);
	return !*fault && open == 0;
}

static void free_rows(struct rows *r)
{
	nx_free(&r->x);
	fx_free(&r->fx);
}

static const struct ntrace_event_view *row(struct rows *r, const char *hint, uint32_t phase)
{
	return fx_by_hint(&r->fx, hint, phase, 0);
}

static bool is(const struct ntrace_event_view *e, const char *key, const char *value)
{
	test_info("%s is %.*s", key, (int)event_value(e, key).len, event_value(e, key).s);
	return event_text_is(event_value(e, key), value);
}

static uint64_t value(const struct ntrace_event_view *e, const char *key)
{
	uint64_t v;

	return event_value_number(e, key, &v) ? v : UINT64_MAX;
}

static bool blind_says(const struct rows *r, const char *text)
{
	for (uint32_t i = 0; i < r->fx.result.blind_count; i++)
		if (strstr(r->fx.result.blind[i], text))
			return true;
	return false;
}

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

/* ---- sums --------------------------------------------------------------------------------- */

TEST("device rows: the summary has the share of each unit in the runs of its core", "[device_rows]")
{
	struct rows r;
	struct summary s = {0};
	struct feed_sink sink = summary_sink(&s);
	struct feed_options how = {.device = true};
	_cleanup_free_ char *error = NULL;
	struct nx_ring *pe;

	REQUIRE(open_rows(&r));
	add_points(&r.x);
	pe = nx_ring(&r.x, NX_INSTRUCTION, NX_ON_NC, 0, 0, 1);
	nx_run(&r.x, 0, 1, 1, CORE_PS(100 * US), CORE_PS(200 * US));
	nx_ran(pe, 1, 1, CORE_PS(110 * US), CORE_PS(130 * US));
	nx_ran(pe, 1, 1, CORE_PS(190 * US), CORE_PS(230 * US)); /* goes on behind the run */
	nx_did(nx_ring(&r.x, NX_DMA, NX_ON_DMA, 2, 0, 1), NOTE_TYPE_DMA, 0, NOTE_START,
		CORE_PS(100 * US), CORE_PS(150 * US));
	finish(&r);
	REQUIRE_EQ(feed_trace(fx_path(&r.fx, REC_DIR).s, &how, &sink, &error), 0);
	REQUIRE_EQ(summary_compute(&s), 0);
	REQUIRE_EQ(s.core_count, 1);
	REQUIRE_EQ(s.cores[0].unit_count, 2);
	CHECK_STR(s.cores[0].units[0].name, "dma2");
	CHECK_EQ(s.cores[0].units[0].busy_ns, 50 * US);
	CHECK_EQ(s.cores[0].units[0].in_runs_ns, 50 * US);
	CHECK_STR(s.cores[0].units[1].name, "pe");
	CHECK_EQ(s.cores[0].units[1].n, 2);
	CHECK_EQ(s.cores[0].units[1].busy_ns, 60 * US);
	CHECK_EQ(s.cores[0].units[1].in_runs_ns, 30 * US);
	CHECK_EQ(s.cores[0].units[1].runs_ns, 100 * US);
	CHECK(s.cores[0].unit_bound_ns >= 50);
	CHECK(!s.processes[s.cores[0].process].units_at_least);
	summary_free(&s);
	free_rows(&r);
}

static bool summary_shows(struct summary *s, const char *what)
{
	_cleanup_free_ char *text = sum_print(s, summary_print_text);

	return text && strstr(text, what);
}

TEST("device rows: where records were lost the summary has the units at least so busy; lengths are "
     "the core's",
	"[device_rows]")
{
	struct rows r;
	struct summary s = {0};
	struct feed_sink sink = summary_sink(&s);
	struct feed_options how = {.device = true};
	_cleanup_free_ char *error = NULL;
	struct nx_ring *pe;

	REQUIRE(open_rows(&r));
	/* The host's clock goes 50 ppm faster. */
	nx_sync(&r.x, 0, 1, CORE_PS(0), FX_BOOT, 10);
	nx_sync(&r.x, 0, 1, CORE_PS(1000000 * US), FX_BOOT + 1000050 * US, 10);
	pe = nx_ring(&r.x, NX_INSTRUCTION, NX_ON_NC, 0, 0, 1);
	nx_run(&r.x, 0, 1, 1, CORE_PS(100 * US), CORE_PS(900000 * US));
	nx_ran(pe, 1, 1, CORE_PS(110 * US), CORE_PS(800110 * US));
	nx_lost(&r.x, pe, 3, false);
	finish(&r);
	REQUIRE_EQ(feed_trace(fx_path(&r.fx, REC_DIR).s, &how, &sink, &error), 0);
	REQUIRE_EQ(summary_compute(&s), 0);
	REQUIRE_EQ(s.core_count, 1);
	CHECK(s.processes[s.cores[0].process].units_at_least);
	CHECK(summary_shows(&s, "at least; +-"));
	CHECK(summary_shows(&s, "pe.op1"));
	CHECK_EQ(sum_name(&s, "pe.op1")->total_ns, 800000 * US);
	summary_free(&s);
	free_rows(&r);
}

TEST("device rows: files that were merged without them are not taken for ones with",
	"[device_rows]")
{
	struct rows r;
	struct feed_sink sink = {0};
	struct feed_options how = {.device = true};
	char *error = NULL;

	REQUIRE(open_rows(&r));
	add_points(&r.x);
	add_work(&r.x);
	finish(&r);
	REQUIRE(merge(&r, "without", false));
	CHECK_EQ(feed_trace(fx_path(&r.fx, "without").s, &how, &sink, &error), -ENOTUNIQ);
	CHECK(error && strstr(error, "replay --device"));
	free(error);
	how.device = false;
	CHECK_EQ(feed_trace(fx_path(&r.fx, "without").s, &how, &sink, &error), 0);
	REQUIRE(merge(&r, "with", true));
	how.device = true;
	CHECK_EQ(feed_trace(fx_path(&r.fx, "with").s, &how, &sink, &error), 0);
	free_rows(&r);
}
