/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_times_test.c - what the merge makes of the times of devices: bounds, corrections, causality,
 * quarantine, in whatever portions the records come.
 */
#include "proto/neuron_trace.pb-c.h"
#include "runtime/base/file.h"
#include "tests/shim/shim.h"
#include "tests/unit/recording_fixture.h"

#define TID 100u
#define DEVICE 5000000000ull /* what the device's clock shows at relative time 0 */
#define AT 10000000ull	     /* the execution; its submit 1000 later, its wait ends at 99000 */

static void put_u32(struct trace_record *r, size_t offset, uint32_t v)
{
	memcpy(r->data + offset, &v, sizeof(v));
}

static void put_u64(struct trace_record *r, size_t offset, uint64_t v)
{
	memcpy(r->data + offset, &v, sizeof(v));
}

static void sync_point(struct fixture *fx, uint64_t id, uint64_t at, uint64_t bound)
{
	struct trace_record *r = fx_record(fx, TRACE_TIMESTAMP_SYNC, TRACE_INSTANT, id, TID, at);

	put_u64(r, 8, DEVICE + at);
	put_u64(r, 16, FX_BOOT + at);
	put_u64(r, 24, bound);
}

/* Relative times; `told` are the runtime's. */
struct run {
	uint64_t from, to, told_from, told_to;
};

static struct run sound(uint64_t from, uint64_t to)
{
	return (struct run){from, to, from, to};
}

static void run_start(struct fixture *fx, const struct run *t)
{
	struct trace_record *r = fx_record(fx, TRACE_DEVICE_EXEC, TRACE_START, 20, 0, t->told_from);

	put_u32(r, 4, 7);
	put_u64(r, 8, DEVICE + t->from);
}

static void run_stop(struct fixture *fx, const struct run *t)
{
	struct trace_record *r = fx_record(fx, TRACE_DEVICE_EXEC, TRACE_STOP, 20, 0, t->told_to);

	r->status = 3;
	put_u64(r, 0, DEVICE + t->to);
}

static void execution(struct fixture *fx)
{
	fx_record(fx, TRACE_EXECUTE_API, TRACE_START, 10, TID, AT);
	fx_record(fx, TRACE_MODEL_SUBMIT, TRACE_START, 11, TID, AT + 1000);
	fx_record(fx, TRACE_MODEL_SUBMIT, TRACE_STOP, 11, TID, AT + 2000);
	put_u64(fx_record(fx, TRACE_EXEC_WAIT, TRACE_START, 12, TID, AT + 3000), 0, 7);
	fx_record(fx, TRACE_EXEC_WAIT, TRACE_STOP, 12, TID, AT + 99000);
}

/* Everything in one frame. */
static bool merge_run(struct fixture *fx, const struct run *t, uint64_t bound)
{
	size_t open;

	if (!fx_open(fx))
		return false;
	execution(fx);
	sync_point(fx, 13, AT + 98000, bound);
	run_start(fx, t);
	run_stop(fx, t);
	fx_record(fx, TRACE_EXECUTE_API, TRACE_STOP, 10, TID, AT + 100000);
	fx_records(fx, FX_SOURCE);
	return fx_merge_one(fx) && fx->result.balanced && !*trace_file_fault(&fx->trace, &open);
}

static const struct ntrace_event_view *event(const struct fixture *fx, uint64_t id, uint32_t phase)
{
	static const struct ntrace_event_view none;
	const struct ntrace_event_view *e = trace_file_find(&fx->trace, id, phase);

	return e ? e : &none;
}

/* ---- runs that can be --------------------------------------------------------------------- */

TEST("device times: a run keeps the runtime's host times and says by how much they may be wrong",
	"[merge]")
{
	struct run t = sound(AT + 5000, AT + 90000);
	struct fixture fx;

	REQUIRE(merge_run(&fx, &t, 500));
	const struct ntrace_event_view *e = event(&fx, 20, PHASE_STOP);
	CHECK_EQ(e->timestamp, FX_EPOCH + AT + 90000);
	CHECK_EQ(e->duration, 85000);
	/* The reading, 100 ppm of 93 us for the start, and rounding. */
	CHECK_EQ(event_attr_number(e, "clock.bound_ns"), 500 + 10 + 2);
	CHECK_STR(event_attr(e, "link"), "exact");
	CHECK_STR(event_attr(e, "link.id"), "11");
	CHECK_STR(event_attr(e, "clock.corrected_ns"), "");
	CHECK_STR(event_attr(e, "clamped_ns"), "");
	CHECK_STR(event_attr(event(&fx, 20, PHASE_START), "clock.bound_ns"), "");
	CHECK_EQ(fx_ledger(&fx, REC_C_MERGE_DEVICE_CLAMPED), 0);
	fx_free(&fx);
}

TEST("device times: without a sync point nobody knows the bound, and that is said", "[merge]")
{
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	fx_span(&fx, TRACE_DEVICE_EXEC, 1, 0, 1000, 2000);
	fx_record(&fx, TRACE_HW_NOTIFY, TRACE_INSTANT, 2, 0, 3000);
	fx_records(&fx, FX_SOURCE);
	REQUIRE(fx_merge_one(&fx));
	CHECK_EQ(event(&fx, 1, PHASE_STOP)->duration, 1000);
	CHECK_STR(event_attr(event(&fx, 1, PHASE_STOP), "clock.bound_ns"), "unknown");
	CHECK_STR(event_attr(event(&fx, 2, PHASE_INSTANT), "clock.bound_ns"), "");
	fx_free(&fx);
}

TEST("device times: an instant of the device has its bound too", "[merge]")
{
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	sync_point(&fx, 1, 1000, 70);
	put_u64(fx_record(&fx, TRACE_HW_NOTIFY, TRACE_INSTANT, 2, 0, 3000), 24, DEVICE + 3000);
	struct trace_record *r = fx_record(&fx, TRACE_NUM_ERR, TRACE_INSTANT, 3, 0, 4000 + 600);
	put_u64(r, 8, DEVICE + 4000); /* 600 from where the map has it */
	put_u64(r, 32, 77);
	fx_records(&fx, FX_SOURCE);
	REQUIRE(fx_merge_one(&fx));
	CHECK_EQ(event_attr_number(event(&fx, 2, PHASE_INSTANT), "clock.bound_ns"), 73);
	CHECK_EQ(event(&fx, 3, PHASE_INSTANT)->timestamp, FX_EPOCH + 4000);
	CHECK_EQ(event_attr_number(event(&fx, 3, PHASE_INSTANT), "clock.corrected_ns"), -600);
	CHECK_EQ(event_attr_number(event(&fx, 3, PHASE_INSTANT), "model_id"), 77);
	CHECK_EQ(fx_ledger(&fx, REC_C_MERGE_DEVICE_CORRECTED), 1);
	fx_free(&fx);
}

TEST("device times: host times that the sync points contradict give way, both ends together",
	"[merge]")
{
	struct run t = {AT + 5000, AT + 90000, AT + 5100, AT + 95000};
	struct fixture fx;

	REQUIRE(merge_run(&fx, &t, 100));
	CHECK_EQ(event(&fx, 20, PHASE_START)->timestamp, FX_EPOCH + AT + 5000);
	CHECK_EQ(event(&fx, 20, PHASE_STOP)->timestamp, FX_EPOCH + AT + 90000);
	CHECK_EQ(event(&fx, 20, PHASE_STOP)->duration, 85000);
	CHECK_EQ(event_attr_number(event(&fx, 20, PHASE_START), "clock.corrected_ns"), -100);
	CHECK_EQ(event_attr_number(event(&fx, 20, PHASE_STOP), "clock.corrected_ns"), -5000);
	CHECK_STR(event_attr(event(&fx, 20, PHASE_STOP), "link.id"), "11");
	CHECK_EQ(fx_ledger(&fx, REC_C_MERGE_DEVICE_CORRECTED), 2);
	fx_free(&fx);
}

/* ---- causality ---------------------------------------------------------------------------- */

TEST("device times: a start before its submit is moved to it within the bound, and set aside "
     "beyond",
	"[merge]")
{
	/* The submit begins at 1000; the bound is 400 and 10 ns of drift and rounding. */
	static const struct {
		uint64_t from, to, clamped;
		bool invalid;
	} rows[] = {
		{1000, 50000, 0, false},
		{999, 50000, 1, false},
		{700, 50000, 300, false},
		{600, 50000, 400, false},
		{588, 50000, 412, false},
		{587, 50000, 0, true},
		{700, 900, 300, false}, /* the end moves too */
		{0, 50000, 0, true},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct run t = sound(AT + rows[i].from, AT + rows[i].to);
		uint64_t start = rows[i].from + rows[i].clamped;
		uint64_t end = rows[i].to < start ? start : rows[i].to;
		struct fixture fx;

		REQUIRE(merge_run(&fx, &t, 400));
		test_info("row %zu", i);
		CHECK_EQ(fx_ledger(&fx, REC_C_MERGE_DEVICE_BEFORE_SUBMIT), rows[i].invalid);
		CHECK_EQ(fx_ledger(&fx, REC_C_MERGE_DEVICE_CLAMPED), rows[i].clamped > 0);
		CHECK_EQ(fx_ledger(&fx, REC_C_MERGE_DEVICE_CLAMPED_NS), rows[i].clamped);
		CHECK_EQ(fx_ledger(&fx, REC_C_MERGE_DEVICE_CLAMPED_MAX), rows[i].clamped);
		CHECK_EQ(fx_ledger(&fx, REC_C_MERGE_CLAMPED), 0);
		if (!rows[i].invalid) {
			const struct ntrace_event_view *a = event(&fx, 20, PHASE_START);
			const struct ntrace_event_view *b = event(&fx, 20, PHASE_STOP);

			CHECK_EQ(a->timestamp, FX_EPOCH + AT + start);
			CHECK_EQ(b->timestamp, FX_EPOCH + AT + end);
			CHECK_EQ(b->duration, end - start);
			CHECK_EQ(*event_attr(a, "clamped_ns") != 0, rows[i].clamped > 0);
			if (rows[i].clamped) {
				CHECK_EQ(event_attr_number(a, "clamped_ns"), rows[i].clamped);
				CHECK_EQ(event_attr_number(b, "clamped_ns"), rows[i].clamped);
			}
			CHECK_STR(event_attr(b, "link.id"), "11");
		}
		fx_free(&fx);
	}
}

TEST("device times: an end after the wait for it had ended is fine within the bound", "[merge]")
{
	/* The wait ends at 99000; the sync point lies 1412 before that end. */
	static const struct {
		uint64_t to;
		bool invalid;
	} rows[] = {{99000, false}, {99402, false}, {99403, true}, {5000000, true}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct run t = sound(AT + 5000, AT + rows[i].to);
		struct fixture fx;

		REQUIRE(merge_run(&fx, &t, 399));
		test_info("row %zu", i);
		CHECK_EQ(fx_ledger(&fx, REC_C_MERGE_DEVICE_AFTER_COLLECTION), rows[i].invalid);
		CHECK_EQ(trace_file_find(&fx.trace, 20, PHASE_STOP) == NULL, rows[i].invalid);
		fx_free(&fx);
	}
}

/* ---- quarantine --------------------------------------------------------------------------- */

static const struct bad {
	const char *kind;
	struct run t;
	enum rec_counter_id counter;
} bads[] = {
	{"zero", {0 - DEVICE, 0 - DEVICE, 0 - FX_BOOT, 0 - FX_BOOT}, REC_C_MERGE_DEVICE_ZERO},
	{"zero", {0 - DEVICE, AT + 5000, AT + 1500, AT + 5000}, REC_C_MERGE_DEVICE_ZERO},
	{"zero", {AT + 5000, AT + 6000, AT + 5000, 0 - FX_BOOT}, REC_C_MERGE_DEVICE_ZERO},
	{"backward", {AT + 60000, AT + 20000, AT + 60000, AT + 20000}, REC_C_MERGE_DEVICE_BACKWARD},
	{"before_submit", {AT - 60000, AT + 20000, AT - 60000, AT + 20000},
		REC_C_MERGE_DEVICE_BEFORE_SUBMIT},
	{"before_submit", {AT - 9000, AT - 5000, AT - 9000, AT - 5000},
		REC_C_MERGE_DEVICE_BEFORE_SUBMIT},
	{"after_collection", {AT + 60000, AT * 2, AT + 60000, AT * 2},
		REC_C_MERGE_DEVICE_AFTER_COLLECTION},
	{"after_collection", {AT * 2, AT * 3, AT * 2, AT * 3}, REC_C_MERGE_DEVICE_AFTER_COLLECTION},
	{"after_collection", {AT + 5000, AT + 6000, 1ull << 63, 1ull << 63},
		REC_C_MERGE_DEVICE_AFTER_COLLECTION},
};

#define BADS (sizeof(bads) / sizeof(*bads))

static uint64_t epoch_or_raw(uint64_t relative)
{
	uint64_t boot = FX_BOOT + relative;

	return boot == 0 || boot >= 1ull << 62 ? boot : boot + (uint64_t)FX_OFFSET;
}

TEST("device times: a run that cannot be is one instant where it was collected, and says what it "
     "said",
	"[merge]")
{
	for (size_t i = 0; i < BADS; i++) {
		struct fixture fx;
		uint64_t all = 0;

		REQUIRE(merge_run(&fx, &bads[i].t, 100));
		test_info("row %zu: %s", i, bads[i].kind);
		const struct ntrace_event_view *e = event(&fx, 20, PHASE_INSTANT);
		CHECK_EQ(e->event_type, TRACE_DEVICE_EXEC);
		CHECK_STR(event_attr(e, "invalid"), bads[i].kind);
		CHECK_EQ(e->timestamp, FX_EPOCH + AT + 99000);
		CHECK_EQ(e->status, 3);
		CHECK_EQ(event_attr_number(e, "exec_id"), 7);
		CHECK_STR(event_attr(e, "link.id"), "11");
		CHECK((uint64_t)strtoull(event_attr(e, "told_start_ns"), NULL, 10) ==
			epoch_or_raw(bads[i].t.told_from));
		CHECK((uint64_t)strtoull(event_attr(e, "told_end_ns"), NULL, 10) ==
			epoch_or_raw(bads[i].t.told_to));
		CHECK(trace_file_find(&fx.trace, 20, PHASE_START) == NULL);
		CHECK(trace_file_find(&fx.trace, 20, PHASE_STOP) == NULL);
		CHECK_EQ(fx.result.outputs[0].open_spans, 0);
		for (enum rec_counter_id c = REC_C_MERGE_DEVICE_ZERO;
			c <= REC_C_MERGE_DEVICE_AFTER_COLLECTION; c++)
			all += fx_ledger(&fx, c);
		CHECK_EQ(fx_ledger(&fx, bads[i].counter), 1);
		CHECK_EQ(all, 1);
		CHECK_EQ(fx_ledger(&fx, REC_C_MERGE_INVALID), 0);
		fx_free(&fx);
	}
}

/* Start and stop in frames of their own, with watermarks around them, or the stop first, or one alone. */
enum portion { WHOLE, FRAMES, MARK_BETWEEN, STOP_FIRST, START_ALONE, STOP_ALONE, PORTIONS };

static void put_portions(struct fixture *fx, const struct run *t, enum portion p)
{
	execution(fx);
	sync_point(fx, 13, AT + 98000, 100);
	if (p == STOP_FIRST || p == STOP_ALONE)
		run_stop(fx, t);
	if (p != STOP_ALONE)
		run_start(fx, t);
	if (p != WHOLE && p != STOP_FIRST)
		fx_records(fx, FX_SOURCE);
	if (p == MARK_BETWEEN)
		fx_watermark(fx, FX_SOURCE, AT * 4);
	if (p != STOP_FIRST && p != START_ALONE && p != STOP_ALONE)
		run_stop(fx, t);
	fx_record(fx, TRACE_EXECUTE_API, TRACE_STOP, 10, TID,
		p == MARK_BETWEEN ? AT * 5 : AT + 100000);
	fx_records(fx, FX_SOURCE);
}

TEST("device times: nothing impossible is drawn, in whatever portions it comes", "[merge]")
{
	for (size_t i = 0; i < BADS; i++)
		for (enum portion p = WHOLE; p < PORTIONS; p++) {
			unsigned instants = 0;
			struct fixture fx;
			size_t open;

			REQUIRE(fx_open(&fx));
			put_portions(&fx, &bads[i].t, p);
			test_info("row %zu, portion %d", i, (int)p);
			REQUIRE(fx_merge_one(&fx));
			CHECK_STR(trace_file_fault(&fx.trace, &open), "");
			CHECK_EQ(open, fx.result.outputs[0].open_spans);
			CHECK(fx.result.balanced);
			for (size_t k = 0; k < fx.trace.count; k++) {
				const struct ntrace_event_view *e = &fx.trace.events[k];

				CHECK(e->timestamp > FX_EPOCH);
				CHECK(e->timestamp <= FX_EPOCH + 5 * AT);
				instants += *event_attr(e, "invalid") != 0;
			}
			if (p <= FRAMES)
				CHECK_EQ(instants, 1);
			CHECK(instants <= 2);
			fx_free(&fx);
		}
}

TEST("device times: a run comes out the same in whatever portions it comes", "[merge]")
{
	struct run t = sound(AT + 800, AT + 90000);

	for (enum portion p = WHOLE; p <= STOP_FIRST; p++) {
		struct fixture fx;

		REQUIRE(fx_open(&fx));
		put_portions(&fx, &t, p);
		test_info("portion %d", (int)p);
		REQUIRE(fx_merge_one(&fx));
		const struct ntrace_event_view *a = event(&fx, 20, PHASE_START);
		const struct ntrace_event_view *b = event(&fx, 20, PHASE_STOP);
		/* The bound of 112 does not allow for 200. */
		CHECK_EQ(a->timestamp, 0);
		CHECK_EQ(b->timestamp, 0);
		fx_free(&fx);
		REQUIRE(fx_open(&fx));
		t = sound(AT + 900, AT + 90000);
		put_portions(&fx, &t, p);
		REQUIRE(fx_merge_one(&fx));
		a = event(&fx, 20, PHASE_START);
		b = event(&fx, 20, PHASE_STOP);
		CHECK_EQ(a->timestamp, FX_EPOCH + AT + 1000);
		CHECK_EQ(event_attr_number(a, "clamped_ns"), 100);
		if (p != MARK_BETWEEN) { /* which broke the word of its source */
			CHECK_EQ(b->timestamp, FX_EPOCH + AT + 90000);
			CHECK_EQ(b->duration, 89000);
		}
		CHECK_EQ(event_attr_number(b, "clamped_ns"), 100);
		t = sound(AT + 800, AT + 90000);
		fx_free(&fx);
	}
}

/* ---- trace_info --------------------------------------------------------------------------- */

TEST("device times: trace_info says how good each core's clock is, and how long the machine slept",
	"[merge]")
{
	char path[4400];
	_cleanup_free_ char *data = NULL;
	size_t size = 0;
	struct fixture fx;

	REQUIRE(fx_open(&fx)); /* a snapshot at 100 */
	for (unsigned core = 2; core-- > 0;)
		for (unsigned i = 0; i < 3; i++) {
			sync_point(&fx, 100 * (core + 1) + i, 1000000000ull * (i + 1), 50 + core);
			struct trace_record *r = &fx.records[fx.count - 1];
			r->nc_idx = core;
			/* Core 1 is 50 ppm slow. */
			put_u64(r, 8, DEVICE + 1000000000ull * (i + 1) - 50000 * i * core);
		}
	fx_records(&fx, FX_SOURCE);
	struct clock_snapshot s = {.boot_before = FX_BOOT + 8000000000,
		.realtime = FX_EPOCH + 8000000000,
		.monotonic = FX_BOOT + 3000000000,
		.boot_after = FX_BOOT + 8000000000};
	fx_frame(&fx, REC_CLOCK, REC_SOURCE_RECORDER, &s, sizeof(s));
	REQUIRE(fx_merge_one(&fx));
	snprintf(path, sizeof(path), "%s/trace_info.pb", fx.result.outputs[0].dir);
	REQUIRE(file_read(path, 1u << 20, &data, &size) == 0);
	Ntff__NtraceInfo *info = ntff__ntrace_info__unpack(NULL, size, (const uint8_t *)data);
	REQUIRE(info != NULL);
	REQUIRE_EQ(info->n_device_clocks, 2);
	for (unsigned core = 0; core < 2; core++) {
		const Ntff__NtraceDeviceClock *c = info->device_clocks[core];

		CHECK_EQ(c->nc_idx, core);
		CHECK_EQ(c->points, 3);
		CHECK_EQ(c->resets, 0);
		CHECK_EQ(c->drift_ppb, core ? 50002 : 0);
		CHECK_EQ(c->residual_ns, core ? 50000 : 0);
	}
	CHECK_EQ(info->n_clock_steps, 0);
	CHECK_EQ(info->suspended_ns, 5000000000 - 100 + 100);
	ntff__ntrace_info__free_unpacked(info, NULL);
	const struct ntrace_event_view *e = event(&fx, 1ull << 62 | 1, PHASE_INSTANT);
	CHECK(pb_str_is(e->hint, "suspend"));
	CHECK_EQ(e->timestamp, FX_EPOCH + 8000000000);
	CHECK_EQ(event_attr_number(e, "suspended_ns"), 5000000000);
	fx_free(&fx);
}

/* ---- the hold ----------------------------------------------------------------------------- */

/* A run that no wait explains, told to have begun so much before its submit, which comes when its source's
 * other records are long behind; the core's clock is known to `bound`, 0: not at all. */
static void put_early_run(struct fixture *fx, uint64_t before, uint64_t bound)
{
	uint64_t submit = 20 * AT;
	struct run t = sound(submit - before, submit + 50000);

	if (bound)
		sync_point(fx, 13, submit - 1000, bound);
	fx_record(fx, TRACE_EXECUTE_API, TRACE_START, 10, TID, submit - 100);
	fx_record(fx, TRACE_MODEL_SUBMIT, TRACE_START, 11, TID, submit);
	fx_record(fx, TRACE_MODEL_SUBMIT, TRACE_STOP, 11, TID, submit + 100);
	fx_records(fx, FX_SOURCE);
	fx_watermark(fx, FX_SOURCE, submit + 2000000);
	run_start(fx, &t);
	run_stop(fx, &t);
	fx_record(fx, TRACE_EXECUTE_API, TRACE_STOP, 10, TID, submit + 3000000);
	fx_records(fx, FX_SOURCE);
	fx_watermark(fx, FX_SOURCE, submit + 4000000);
}

TEST("device times: a run within its clock's error before its submit is not late, and one beyond "
     "is",
	"[merge]")
{
	static const struct {
		uint64_t before, bound;
		bool late;
	} cases[] = {{500000, 0, false}, {1500000, 0, true}, {500000, 100, false},
		{3000000, 5000000, false}, {6000000, 5000000, true}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct fixture fx;

		test_info("case %zu", i);
		REQUIRE(fx_open(&fx));
		put_early_run(&fx, cases[i].before, cases[i].bound);
		REQUIRE(fx_merge_one(&fx));
		const struct ntrace_event_view *run = trace_file_find(&fx.trace, 20, PHASE_START);
		REQUIRE(run != NULL);
		CHECK_EQ(fx_ledger(&fx, REC_C_MERGE_LATE) > 0, cases[i].late);
		CHECK_EQ(run->timestamp == FX_EPOCH + 20 * AT - cases[i].before, !cases[i].late);
		CHECK_EQ(event_attr_number(run, "late_ns") > 0, cases[i].late);
		fx_free(&fx);
	}
}
