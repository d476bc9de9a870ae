/* SPDX-License-Identifier: Apache-2.0 */
/*
 * golden_clock_test.c - cases of clocks that do not agree: device times that cannot be, small skew,
 * rare anchors, a source on another clock.
 *
 * A device run comes with the device's own times and what the runtime made of them; sync points tie
 * the device's clock to BOOTTIME, each with its bound.  What the merge writes is held against
 * the truth that only the test knows.
 */
#include "runtime/record/ledger.h"
#include "tests/shim/shim.h"
#include "tests/unit/recording_fixture.h"

#define TID 100u
#define S 1000000000ull

static void put_u32(struct trace_record *r, size_t offset, uint32_t v)
{
	memcpy(r->data + offset, &v, sizeof(v));
}

static void put_u64(struct trace_record *r, size_t offset, uint64_t v)
{
	memcpy(r->data + offset, &v, sizeof(v));
}

/* Both clocks at one moment, with the bound of the reading. */
static void sync_point(
	struct fixture *fx, uint64_t id, uint64_t at, uint64_t device, uint64_t bound)
{
	struct trace_record *r = fx_record(fx, TRACE_TIMESTAMP_SYNC, TRACE_INSTANT, id, TID, at);

	put_u64(r, 8, device);
	put_u64(r, 16, FX_BOOT + at);
	put_u64(r, 24, bound);
}

/* A run with the device's times; the stamps are what the runtime reckoned. */
static void device_run(struct fixture *fx, uint64_t id, uint32_t exec_id, uint64_t device_from,
	uint64_t device_to, uint64_t from, uint64_t to)
{
	struct trace_record *r = fx_record(fx, TRACE_DEVICE_EXEC, TRACE_START, id, 0, from);

	put_u32(r, 4, exec_id);
	put_u64(r, 8, device_from);
	r = fx_record(fx, TRACE_DEVICE_EXEC, TRACE_STOP, id, 0, to);
	put_u64(r, 0, device_to);
}

/* nrt_execute id with its submit and wait; all before the run is emitted. */
static void execution(struct fixture *fx, uint64_t id, uint32_t exec_id, uint64_t from, uint64_t to)
{
	fx_record(fx, TRACE_EXECUTE_API, TRACE_START, id, TID, from);
	fx_record(fx, TRACE_MODEL_SUBMIT, TRACE_START, id + 1, TID, from + 1000);
	fx_record(fx, TRACE_MODEL_SUBMIT, TRACE_STOP, id + 1, TID, from + 2000);
	struct trace_record *r =
		fx_record(fx, TRACE_EXEC_WAIT, TRACE_START, id + 2, TID, from + 3000);
	put_u64(r, 0, exec_id);
	fx_record(fx, TRACE_EXEC_WAIT, TRACE_STOP, id + 2, TID, to - 1000);
}

static void execution_end(struct fixture *fx, uint64_t id, uint64_t to)
{
	fx_record(fx, TRACE_EXECUTE_API, TRACE_STOP, id, TID, to);
	fx_records(fx, FX_SOURCE);
}

/* Value of a ledger row by name; -1: there is no such row. */
static long long row(const struct fixture *fx, const char *stage, const char *name)
{
	for (uint32_t id = 1; id < REC_COUNTER_MAX; id++) {
		const struct rec_counter_info *i = rec_counter_info(id);

		if (strcmp(i->stage, stage) == 0 && strcmp(i->name, name) == 0)
			return (long long)fx->result.ledger[id].value;
	}
	return -1;
}

TEST("golden B2: a device's times go through its own sync points, each core by its own", "[golden]")
{
	/* Two cores whose clocks began at other times; the runtime's stamps are off by half a second
	 * on the second, as if it had assumed the first one's clock. */
	static const uint64_t zero[] = {5 * S, 905 * S};
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	for (uint32_t core = 0; core < 2; core++) {
		size_t first = fx.count;

		for (unsigned i = 0; i < 3; i++)
			sync_point(
				&fx, 100 * (core + 1) + i, S + i * S, zero[core] + S + i * S, 50);
		device_run(&fx, 1 + core, 7, zero[core] + 2 * S + 1000, zero[core] + 2 * S + 9000,
			2 * S + 1000 + core * S / 2, 2 * S + 9000 + core * S / 2);
		for (size_t i = first; i < fx.count; i++) {
			fx.records[i].nc_idx = core;
			fx.records[i].id = i - first + 1;
		}
	}
	fx_records(&fx, FX_SOURCE);
	fx_end(&fx);
	REQUIRE(fx_merge_one(&fx));
	for (uint64_t id = 1; id <= 2; id++) {
		const struct ntrace_event_view *e = trace_file_find(&fx.trace, id, PHASE_START);

		REQUIRE(e != NULL);
		test_info("core %d", (int)id - 1);
		CHECK(e->timestamp + 50 >= FX_EPOCH + 2 * S + 1000 &&
			e->timestamp <= FX_EPOCH + 2 * S + 1050);
	}
	fx_free(&fx);
}

TEST("golden B7: device times that cannot be are set aside and counted by kind", "[golden]")
{
	static const struct {
		const char *kind;
		uint64_t from, to; /* of the device, relative to the execution at 10 ms; 0: none */
	} runs[] = {{"device_zero", 0, 0}, {"device_backward", 60000, 20000},
		{"device_before_submit", 8000000, 9000000},
		{"device_after_collection", 60000, 40000000}};
	struct fixture fx;

	for (unsigned k = 0; k < 4; k++) {
		uint64_t at = 10000000, device = 3 * S;
		bool before = k == 2, zero = k == 0;
		uint64_t from = zero ? 0 : device + (before ? runs[k].from : at + runs[k].from);
		uint64_t to = zero ? 0 : device + (before ? runs[k].to : at + runs[k].to);
		size_t open;

		REQUIRE(fx_open(&fx));
		sync_point(&fx, 50, 1000, device + 1000, 100);
		execution(&fx, 10, 7, at, at + 100000);
		device_run(
			&fx, 20, 7, from, to, zero ? at : from - device, zero ? at : to - device);
		sync_point(&fx, 51, at + 99500, device + at + 99500, 100);
		execution_end(&fx, 10, at + 100000);
		fx_end(&fx);
		REQUIRE(fx_merge_one(&fx));
		test_info("%s", runs[k].kind);
		CHECK_STR(trace_file_fault(&fx.trace, &open), "");
		for (unsigned n = 0; n < 4; n++)
			CHECK_EQ(row(&fx, "merge", runs[n].kind), n == k);
		/* Nothing of it is drawn at time 0, and no span is made of it. */
		CHECK(trace_file_find(&fx.trace, 20, PHASE_STOP) == NULL);
		CHECK(fx.result.balanced);
		fx_free(&fx);
	}
}

TEST("golden B8: 1,000 runs that a clock has 300 ns before their submits are moved there, each "
     "said",
	"[golden]")
{
	unsigned clamped = 0;
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	for (uint32_t i = 0; i < 1000; i++) {
		uint64_t at = 1000000 + 200000ull * i, submit = at + 1000;

		/* It begins where the submit does; its clock is 300 ns slow and says no better. */
		execution(&fx, 10 + 10 * i, 1 + i, at, at + 100000);
		sync_point(&fx, 15 + 10 * i, at + 99000, at + 99000 - 300, 400);
		device_run(&fx, 16 + 10 * i, 1 + i, submit - 600, at + 90000 - 300, submit - 300,
			at + 90000);
		execution_end(&fx, 10 + 10 * i, at + 100000);
	}
	fx_end(&fx);
	REQUIRE(fx_merge_one(&fx));
	for (size_t i = 0; i < fx.trace.count; i++) {
		const struct ntrace_event_view *e = &fx.trace.events[i];

		if (e->event_type != TRACE_DEVICE_EXEC || e->phase != PHASE_START)
			continue;
		uint64_t at = 1000000 + 200000 * ((e->id - 16) / 10);
		clamped += e->timestamp == FX_EPOCH + at + 1000;
	}
	CHECK_EQ(clamped, 1000);
	CHECK_EQ(row(&fx, "merge", "device_clamped"), 1000);
	CHECK_EQ(row(&fx, "merge", "device_clamped_ns"), 300 * 1000);
	fx_free(&fx);
}

TEST("golden B9: a clock that drifts by 50 ppm for 120 s is never off by more than is stated",
	"[golden]")
{
	/* A sync point each second; runs in between, stamped by the first sync point alone. */
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	for (uint64_t i = 0; i <= 120; i++) {
		uint64_t at = 1000 + i * S, mid = at + S / 2, zero = 7 * S;
		uint64_t device = zero + at + at / 20000, run = zero + mid + mid / 20000;

		sync_point(&fx, 1000 + i, at, device, 60);
		if (i < 120)
			device_run(&fx, 1 + i, (uint32_t)i + 1, run, run + 1000, run - zero,
				run + 1000 - zero);
		fx_records(&fx, FX_SOURCE);
	}
	fx_end(&fx);
	REQUIRE(fx_merge_one(&fx));
	for (uint64_t i = 0; i < 120; i++) {
		const struct ntrace_event_view *e = trace_file_find(&fx.trace, 1 + i, PHASE_STOP);
		uint64_t truth = FX_EPOCH + 1000 + i * S + S / 2 + 1000;

		REQUIRE(e != NULL);
		long long bound = event_attr_number(e, "clock.bound_ns");
		long long error = (long long)(e->timestamp - truth);
		test_info("run %d: off by %lld, stated %lld", (int)i, error, bound);
		CHECK(bound >= 0 && bound < 100000);
		CHECK(error <= bound && -error <= bound);
	}
	fx_free(&fx);
}

TEST("golden B4: a clock that could not be read is not taken for one that shows 0", "[golden]")
{
	/* Each clock of a snapshot in turn says nothing. */
	static const size_t clocks[] = {offsetof(struct clock_snapshot, boot_before),
		offsetof(struct clock_snapshot, realtime),
		offsetof(struct clock_snapshot, boot_after)};

	for (size_t i = 0; i < sizeof(clocks) / sizeof(*clocks); i++) {
		struct clock_snapshot s = {.boot_before = FX_BOOT + 10,
			.realtime = FX_EPOCH + 20,
			.monotonic = FX_BOOT,
			.monotonic_raw = FX_BOOT,
			.boot_after = FX_BOOT + 30};
		struct fixture fx;

		memset((char *)&s + clocks[i], 0, sizeof(uint64_t));
		REQUIRE(fx_open_bare(&fx));
		fx_process(&fx, FX_SOURCE, FX_PID);
		fx_span(&fx, TRACE_TENSOR_READ, 1, TID, 1000, 2000);
		fx_frame(&fx, REC_CLOCK, REC_SOURCE_RECORDER, &s, sizeof(s));
		test_info("member at %zu", clocks[i]);
		CHECK_EQ(fx_merge(&fx, "out", MERGE_KERNEL_HINT), -ENODATA);
		CHECK_EQ(fx.result.output_count, 0);
		fx_free(&fx);
	}
}
