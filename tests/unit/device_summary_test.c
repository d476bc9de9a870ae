/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_summary_test.c - what the summary says of the rows of device profiles: shares of units, lengths.
 */
#include <stdio.h>
#include <string.h>

#include "agent/output/summary.h"
#include "tests/unit/device_rows_fixture.h"
#include "tests/unit/summary_fixture.h"

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
