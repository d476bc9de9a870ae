/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summary_foreign_test.c - the summary of traces that the merge would not write: of others, or damaged.
 */
#include <inttypes.h>

#include "tests/shim/shim.h"
#include "tests/unit/foreign_fixture.h"

/* ---- spans that do not fit ------------------------------------------------------------------ */

TEST("summary: stops without an id are counted and touch no other span", "[summary]")
{
	struct foreign f;

	REQUIRE(foreign_open(&f));
	for (uint64_t i = 1; i <= 5; i++)
		foreign_put(&f, TRACE_EXECUTE_API, PHASE_START, i, 1000 + i);
	for (uint64_t i = 1; i <= 40; i++) {
		f.e.duration = 3;
		foreign_put(&f, TRACE_EXECUTE_API, PHASE_STOP, 0, 2000 + i);
	}
	for (uint64_t i = 1; i <= 5; i++)
		foreign_put(&f, TRACE_EXECUTE_API, PHASE_STOP, i, 3000 + i);
	REQUIRE_EQ(foreign_sum(&f), 0);
	CHECK_EQ(f.s.events.stops, 45);
	CHECK_EQ(f.s.events.closed, 5);
	CHECK_EQ(summary_open_count(&f.s.events), 0);
	CHECK(sum_says(&f.s, "ends without their start: 40"));
	foreign_free(&f);
}

TEST("summary: without ids a start and a stop of a name are a span", "[summary]")
{
	struct foreign f;

	REQUIRE(foreign_open(&f));
	foreign_put(&f, TRACE_EXECUTE_API, PHASE_START, 0, 1000);
	foreign_put(&f, TRACE_TENSOR_WRITE, PHASE_START, 0, 1001);
	foreign_put(&f, TRACE_EXECUTE_API, PHASE_STOP, 0, 1002);
	foreign_put(&f, TRACE_EXECUTE_API, PHASE_STOP, 0, 1003);
	REQUIRE_EQ(foreign_sum(&f), 0);
	CHECK_EQ(f.s.events.closed, 1);
	CHECK_EQ(summary_open_count(&sum_name(&f.s, "nrt_execute")->events), 0);
	CHECK_EQ(summary_open_count(&f.s.events), 1);
	foreign_free(&f);
}

TEST("summary: a run that stops on another core, or as another type, has not begun", "[summary]")
{
	struct foreign f;

	REQUIRE(foreign_open(&f));
	foreign_put(&f, TRACE_TENSOR_WRITE, PHASE_START, 90, 900); /* core 0 is there */
	foreign_attr(&f, "device_core_idx", "5");
	foreign_put(&f, TRACE_DEVICE_EXEC, PHASE_START, 1, 1000);
	foreign_attr(&f, "device_core_idx", "6");
	foreign_put(&f, TRACE_DEVICE_EXEC, PHASE_START, 2, 1000);
	f.e.nc_idx = 1;
	f.e.duration = 500;
	foreign_put(&f, TRACE_DEVICE_EXEC, PHASE_STOP, 2, 1500);
	foreign_put(&f, TRACE_DMEM_BUF_COPYIN, PHASE_START, 3, 1600);
	f.e.duration = 50;
	foreign_put(&f, TRACE_DEVICE_EXEC, PHASE_STOP, 3, 1650);
	REQUIRE_EQ(foreign_sum(&f), 0);
	REQUIRE_EQ(f.s.core_count, 2);
	CHECK_EQ(f.s.cores[0].open_runs, 2);
	CHECK_EQ(f.s.cores[0].runs, 0);
	CHECK_EQ(f.s.cores[1].open_runs, 0);
	CHECK_EQ(f.s.cores[1].runs, 2);
	CHECK_EQ(f.s.cores[1].busy_ns, 550);
	CHECK_EQ(f.s.cores[1].physical_count, 1);
	foreign_free(&f);
}

TEST("summary: a span is open when its own stop is missing, whatever other stops there are",
	"[summary]")
{
	struct foreign f;

	REQUIRE(foreign_open(&f));
	foreign_put(&f, TRACE_EXECUTE_API, PHASE_START, 1, 1000);
	foreign_put(&f, TRACE_EXECUTE_API, PHASE_STOP, 2, 2000);
	foreign_attr(&f, "start", "duplicate");
	foreign_put(&f, TRACE_EXECUTE_API, PHASE_INSTANT, 3, 3000);
	foreign_attr(&f, "start", "lost");
	foreign_put(&f, TRACE_EXECUTE_API, PHASE_INSTANT, 4, 3001);
	REQUIRE_EQ(foreign_sum(&f), 0);
	CHECK_EQ(summary_open_count(&f.s.events), 1);
	CHECK_EQ(f.s.events.start_lost, 1);
	CHECK(sum_says(&f.s, "1 span open at the end"));
	foreign_free(&f);
}

TEST("summary: a model's name may come with a later execution", "[summary]")
{
	struct foreign f;

	REQUIRE(foreign_open(&f));
	for (uint64_t i = 1; i <= 3; i++) {
		foreign_attr(&f, "model_id", "77");
		if (i == 2)
			foreign_attr(&f, "model_name", "two_layers");
		foreign_put(&f, TRACE_EXECUTE_API, PHASE_START, i, 1000 * i);
		f.e.duration = 5;
		foreign_put(&f, TRACE_EXECUTE_API, PHASE_STOP, i, 1000 * i + 5);
	}
	REQUIRE_EQ(foreign_sum(&f), 0);
	REQUIRE_EQ(f.s.model_count, 1);
	CHECK_STR(f.s.models[0].name, "two_layers");
	foreign_free(&f);
}

/* ---- copies --------------------------------------------------------------------------------- */

/* A copy of the runtime of 1000 bytes in 10 ns. */
static void put_copy(struct foreign *f, uint64_t id, uint32_t status, bool with_start)
{
	if (with_start) {
		foreign_attr(f, "size", "1000");
		foreign_put(f, TRACE_DMEM_BUF_COPYIN, PHASE_START, id, 100 * id);
	}
	f->e.duration = 10;
	f->e.status = status;
	foreign_put(f, TRACE_DMEM_BUF_COPYIN, PHASE_STOP, id, 100 * id + 10);
}

TEST("summary: copies of the runtime that failed copied nothing", "[summary]")
{
	struct foreign f;

	REQUIRE(foreign_open(&f));
	put_copy(&f, 1, 0, true);
	put_copy(&f, 2, 4, true);
	put_copy(&f, 3, 0, false);
	REQUIRE_EQ(foreign_sum(&f), 0);
	const struct summary_copies *c = &f.s.copies[SUMMARY_BY_RUNTIME][EVENT_TO_DEVICE];
	CHECK_EQ(c->n, 2);
	CHECK_EQ(c->bytes, 1000);
	CHECK_EQ(c->unsized, 1);
	CHECK_EQ(c->wall_ns, 20);
	CHECK(sum_says(&f.s, "MB/s, 1 without size"));
	foreign_free(&f);
}

static void put_call(struct foreign *f, uint64_t n, const char *name)
{
	f->e.hint = foreign_text(name);
	foreign_put(f, 0, PHASE_START, (1ull << 63) + n, 1000 + 10 * n);
	f->e.hint = foreign_text(name);
	f->e.duration = 5;
	foreign_attr(f, "bytes", "100");
	foreign_attr(f, "direction", "host_to_device");
	foreign_put(f, 0, PHASE_STOP, (1ull << 63) + n, 1005 + 10 * n);
}

TEST("summary: behind the names that are kept, copies still count and kinds stay apart",
	"[summary]")
{
	struct foreign f;
	char name[32];

	REQUIRE(foreign_open(&f));
	for (unsigned i = 0; i < SUMMARY_MAX_NAMES; i++) {
		snprintf(name, sizeof(name), "call_%u", i);
		put_call(&f, i, name);
	}
	put_call(&f, 5000, "MEM_BUF_COPY64");
	foreign_put(&f, TRACE_DEVICE_EXEC, PHASE_START, 1, 90000);
	foreign_put(&f, TRACE_DEVICE_EXEC, PHASE_STOP, 1, 90010);
	REQUIRE_EQ(foreign_sum(&f), 0);
	CHECK_EQ(f.s.copies[SUMMARY_BY_DRIVER][EVENT_TO_DEVICE].n, 1);
	CHECK_EQ(f.s.copies[SUMMARY_BY_DRIVER][EVENT_TO_DEVICE].bytes, 100);
	CHECK_EQ(f.s.name_count, SUMMARY_MAX_NAMES + 2);
	for (size_t i = 0; i < f.s.name_count; i++)
		if (!strcmp(f.s.names[i].name, SUMMARY_OTHER_NAMES))
			CHECK_EQ(f.s.names[i].events.total, 2);
	foreign_free(&f);
}

/* ---- many, and large ------------------------------------------------------------------------ */

TEST("summary: physical cores and errors that nobody has are counted as the others", "[summary]")
{
	struct foreign f;
	char text[24];

	REQUIRE(foreign_open(&f));
	for (uint64_t i = 0; i < 3000; i++) {
		snprintf(text, sizeof(text), "%" PRIu64, i);
		foreign_attr(&f, "device_core_idx", text);
		foreign_put(&f, TRACE_DEVICE_EXEC, PHASE_START, i + 1, 1000 + i);
		f.e.duration = 1;
		f.e.status = (uint32_t)i + 1;
		foreign_put(&f, TRACE_DEVICE_EXEC, PHASE_STOP, i + 1, 1001 + i);
	}
	REQUIRE_EQ(foreign_sum(&f), 0);
	CHECK_EQ(f.s.cores[0].physical_count, SUMMARY_MAX_PHYSICAL + 1);
	CHECK_EQ(f.s.cores[0].runs, 3000);
	CHECK_EQ(f.s.cores[0].busy_ns, 3000);
	const struct summary_name *n = sum_name(&f.s, "nc_exec_running");
	CHECK_EQ(n->failed, 3000);
	CHECK_EQ(n->error_count, SUMMARY_MAX_ERRORS + 1);
	CHECK_STR(n->errors[0].name, SUMMARY_OTHER_NAMES);
	CHECK_EQ(n->errors[0].n, 3000 - SUMMARY_MAX_ERRORS);
	foreign_free(&f);
}

TEST("summary: sums stay at the largest number, and a number that is too large is none",
	"[summary]")
{
	static const char *const sizes[] = {
		"18446744073709551615", "2", "18446744073709551617"}; /* the last: 2^64 + 1 */
	struct foreign f;

	REQUIRE(foreign_open(&f));
	for (uint64_t i = 0; i < 3; i++) {
		foreign_attr(&f, "size", sizes[i]);
		foreign_put(&f, TRACE_DMEM_BUF_COPYIN, PHASE_START, i + 1, 1000 + i);
		f.e.duration = UINT64_MAX - 1;
		foreign_put(&f, TRACE_DMEM_BUF_COPYIN, PHASE_STOP, i + 1, 2000 + i);
	}
	REQUIRE_EQ(foreign_sum(&f), 0);
	const struct summary_copies *c = &f.s.copies[SUMMARY_BY_RUNTIME][EVENT_TO_DEVICE];
	CHECK_EQ(c->bytes, UINT64_MAX);
	CHECK_EQ(c->unsized, 1);
	CHECK_EQ(summary_goodput(c), UINT64_MAX);
	for (size_t i = 0; i < f.s.name_count; i++)
		CHECK(f.s.names[i].total_ns == UINT64_MAX);
	foreign_free(&f);
}

TEST("summary: it can be cancelled while it computes", "[summary]")
{
	volatile sig_atomic_t cancel = 1;
	struct foreign f;

	REQUIRE(foreign_open(&f));
	foreign_put(&f, TRACE_EXECUTE_API, PHASE_START, 1, 1000);
	REQUIRE_EQ(foreign_sum(&f), 0);
	f.s.cancel = &cancel;
	CHECK_EQ(summary_compute(&f.s), -ECANCELED);
	foreign_free(&f);
}

/* ---- damage --------------------------------------------------------------------------------- */

static void put_some_of_all(struct foreign *f)
{
	for (uint32_t type = 0; type < TRACE_TYPE_COUNT; type++)
		for (uint64_t i = 1; i <= 2; i++) {
			uint64_t id = 100 * type + i;

			f->e.nc_idx = (uint32_t)i - 1;
			foreign_attr(f, "device_core_idx", i == 1 ? "0" : "1");
			foreign_attr(f, "model_id", "77");
			foreign_attr(f, "size", "4096");
			foreign_put(f, type, PHASE_START, id, 1000 + 10 * id);
			f->e.duration = 5;
			f->e.status = type % 3;
			foreign_attr(f, "clock.bound_ns", i == 1 ? "40" : "unknown");
			foreign_put(f, type, PHASE_STOP, id, 1005 + 10 * id);
		}
	put_call(f, 1, "MEM_BUF_COPY64");
}

static void print_both(const struct summary *s)
{
	free(sum_print(s, summary_print_text));
	free(sum_print(s, summary_print_json));
}

TEST("summary: a file that is cut off anywhere is summed up as far as it goes", "[summary]")
{
	struct foreign f;

	REQUIRE(foreign_open(&f));
	put_some_of_all(&f);
	for (size_t size = 0; size <= f.bytes.len; size += 97) {
		REQUIRE(foreign_write(&f, "cut.pb", size));
		int rc = foreign_sum_file(&f, "cut.pb");
		CHECK(rc == 0 || rc == -EBADMSG);
		print_both(&f.s);
	}
	foreign_free(&f);
}

TEST("summary: a file with any one bit changed is summed up or called damaged", "[summary]")
{
	struct foreign f;

	REQUIRE(foreign_open(&f));
	put_some_of_all(&f);
	for (size_t i = 0; i < f.bytes.len; i += 3) {
		uint8_t bit = (uint8_t)(1u << (i * 5 / 3 % 8));

		f.bytes.data[i] ^= bit;
		int rc = foreign_sum(&f);
		CHECK(rc == 0 || rc == -EBADMSG);
		print_both(&f.s);
		f.bytes.data[i] ^= bit;
	}
	CHECK_EQ(foreign_sum(&f), 0);
	foreign_free(&f);
}
