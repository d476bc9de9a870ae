/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge_beside_test.c - what the recorder's files are called of a process that has inspected itself: not
 * `*_pid_*`, of which the session has made one.
 */
#include "tests/shim/shim.h"
#include "tests/unit/recording_fixture.h"

#define TID 5001u
#define OTHER_PID 4712u
#define OTHER_SOURCE (REC_SOURCE_RUNTIME0 + 1)

static bool is_output(const struct fixture *fx, unsigned i, const char *name)
{
	const char *dir = i < fx->result.output_count ? fx->result.outputs[i].dir : "";
	struct scratch_path want = fx_path(fx, name);

	test_info("%s, wanted %s", dir, want.s);
	return strcmp(dir, want.s) == 0 && scratch_entries(dir) == 4;
}

TEST("merge: a process with inspect sessions gets another name, and its neighbour does not",
	"[merge]")
{
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	fx_process(&fx, OTHER_SOURCE, OTHER_PID);
	fx_counter(&fx, OTHER_SOURCE, REC_C_SESSIONS, 0, 0);
	fx_counter(&fx, FX_SOURCE, REC_C_SESSIONS, 0, 1);
	fx_span(&fx, TRACE_TENSOR_READ, 1, TID, 1000, 2000);
	fx_record(&fx, TRACE_MODEL_SWITCH, TRACE_INSTANT, 1, TID, 1500);
	fx_records(&fx, OTHER_SOURCE);
	fx_counter(&fx, FX_SOURCE, REC_C_SESSIONS, 0, 0); /* it was one */
	for (int again = 0; again < 2; again++) {
		REQUIRE_EQ(fx_merge(&fx, "out", MERGE_KERNEL_HINT), 0);
		REQUIRE_EQ(fx.result.output_count, 2);
		CHECK(is_output(
			&fx, 0, again ? "out/ntrace-i-0123-4711_2" : "out/ntrace-i-0123-4711"));
		CHECK(is_output(&fx, 1, again ? "out/i-0123_pid_4712_2" : "out/i-0123_pid_4712"));
	}
	CHECK_EQ(scratch_entries(fx_path(&fx, "out").s), 4);
	fx_free(&fx);
}

/* So much that the file is there before the counter comes. */
#define MANY 4000

TEST("merge: a session that begins late renames what is there already", "[merge]")
{
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	for (uint64_t i = 1; i <= MANY; i++)
		fx_span(&fx, TRACE_TENSOR_READ, i, TID, 1000 * i, 1000 * i + 500);
	fx_watermark(&fx, FX_SOURCE, 1000 * MANY);
	fx_watermark(&fx, REC_SOURCE_KERNEL, 1000 * MANY);
	fx_counter(&fx, FX_SOURCE, REC_C_SESSIONS, 0, 2);
	fx_end(&fx);
	for (int again = 0; again < 2; again++) {
		REQUIRE_EQ(fx_merge(&fx, "out", MERGE_KERNEL_HINT), 0);
		CHECK(is_output(
			&fx, 0, again ? "out/ntrace-i-0123-4711_2" : "out/ntrace-i-0123-4711"));
		CHECK_EQ(scratch_entries(fx_path(&fx, "out").s), again + 1);
	}
	fx_free(&fx);
}

TEST("merge: a session of a source that no process is known of names nothing", "[merge]")
{
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	fx_counter(&fx, OTHER_SOURCE, REC_C_SESSIONS, 0, 1);
	fx_span(&fx, TRACE_TENSOR_READ, 1, TID, 1000, 2000);
	REQUIRE_EQ(fx_merge(&fx, "out", MERGE_KERNEL_HINT), 0);
	CHECK(is_output(&fx, 0, "out/i-0123_pid_4711"));
	fx_free(&fx);
}
