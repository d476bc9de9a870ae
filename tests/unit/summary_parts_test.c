/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summary_parts_test.c - the summary of what is not all: cuts, overwritten rings, failed calls, parts that
 * were not written; and its notes in words.
 */
#include "runtime/record/blind.h"
#include "runtime/record/rec_cut.h"
#include "tests/shim/shim.h"
#include "tests/unit/summary_fixture.h"

/* An execution of model 77 on core 0, with a status. */
static void execute(struct fixture *fx, uint64_t id, uint64_t from, uint64_t to, uint32_t status)
{
	fx_plain(fx, TRACE_EXECUTE_API, id, from, to, 77);
	fx->records[fx->count - 1].status = status;
}

/* Four executions: one fails, then a long one, then two short ones. */
static bool make(struct fixture *fx)
{
	if (!fx_open(fx))
		return false;
	execute(fx, 1, 1000, 1010, 1002);
	execute(fx, 2, 2000, 2900, 0);
	execute(fx, 3, 3000, 3100, 0);
	execute(fx, 4, 4000, 4200, 0);
	fx_records(fx, FX_SOURCE);
	return true;
}

TEST("summary: an execution that failed is not the first, and stands apart", "[summary]")
{
	struct fixture fx;
	struct summary s;

	REQUIRE(make(&fx));
	REQUIRE_EQ(sum(&fx, &s), 0);
	REQUIRE_EQ(s.model_count, 1);
	CHECK_EQ(s.models[0].first.n, 1);
	CHECK_EQ(durations_total(&s.models[0].first), 900);
	CHECK_EQ(s.models[0].rest.n, 2);
	CHECK_EQ(durations_total(&s.models[0].rest), 300);
	CHECK_EQ(s.models[0].failed, 1);
	CHECK_EQ(s.models[0].failed_ns, 10);
	CHECK(sum_says(&s, "failed, in neither                      1       10 ns"));
	char *json = sum_print(&s, summary_print_json);
	CHECK(json && strstr(json, "\"failed\":{\"n\":1,\"total_ns\":10}"));
	free(json);
	summary_free(&s);
	fx_free(&fx);
}

TEST("summary: of executions at once the first is the one that began first", "[summary]")
{
	struct fixture fx;
	struct summary s;

	REQUIRE(fx_open(&fx));
	for (uint32_t i = 0; i < 2; i++) { /* the second thread's ends before the first's */
		execute(&fx, 1 + i, 1000 + 100 * i, 5000 - 2000 * i, 0);
		fx.records[fx.count - 1].thread_id = fx.records[fx.count - 2].thread_id = 5 + i;
	}
	fx_records(&fx, FX_SOURCE);
	REQUIRE_EQ(sum(&fx, &s), 0);
	CHECK_EQ(durations_total(&s.models[0].first), 4000);
	CHECK_EQ(durations_total(&s.models[0].rest), 1900);
	summary_free(&s);
	fx_free(&fx);
}

/* All executions that succeeded are in one row. */
static void check_withheld(const struct summary *s, size_t n, const char *why)
{
	REQUIRE_EQ(s->model_count, 1);
	CHECK_EQ(s->models[0].first.n, 0);
	CHECK_EQ(s->models[0].rest.n, n);
	CHECK(sum_says(s, why));
	CHECK(!sum_says(s, "the first on each core"));
	char *json = sum_print(s, summary_print_json);
	CHECK(json && !strstr(json, "\"first\":"));
	free(json);
}

TEST("summary: a cut says that it is one, and claims neither first executions nor its share of the "
     "cost",
	"[summary]")
{
	struct rec_cut_options o = {.from = {CUT_EPOCH, FX_EPOCH + 2950}};
	struct rec_cut_result cut;
	struct summary s = {0};
	struct fixture fx;

	REQUIRE(make(&fx));
	fx_counter(&fx, REC_SOURCE_RECORDER, REC_C_AGENT_CPU_NS, 0, 4000);
	fx_end(&fx);
	fx_close_writer(&fx);
	REQUIRE_EQ(rec_cut(fx_path(&fx, REC_DIR).s, fx_path(&fx, "part").s, &o, &cut), 0);
	REQUIRE_EQ(sum_path(&fx, &s, "part"), 0);
	check_withheld(&s, 2, "which were first on a core is not known: the trace is a cut");
	CHECK(sum_says(&s, "cut: 4 of 8 records of the recording left out\n"));
	CHECK(sum_says(&s, "cost of recording: of the whole before it was cut: 4.000 us of CPU"));
	CHECK(!sum_says(&s, "per event"));
	char *json = sum_print(&s, summary_print_json);
	CHECK(json && strstr(json, "\"cuts\":[{\"left_out\":4,\"records\":8}]"));
	free(json);
	summary_free(&s);
	fx_free(&fx);
}

TEST("summary: where a ring overwrote events the first executions are not known", "[summary]")
{
	struct fixture fx;
	struct summary s;

	REQUIRE(make(&fx));
	fx_counter(&fx, FX_SOURCE, REC_C_RUNTIME_EMITTED, 0, 108);
	fx_counter(&fx, FX_SOURCE, REC_C_RUNTIME_DELIVERED, 0, 8);
	fx_counter(&fx, FX_SOURCE, REC_C_RUNTIME_OVERWRITTEN, 0, 100);
	REQUIRE_EQ(sum(&fx, &s), 0);
	check_withheld(&s, 3, "the ring overwrote events");
	CHECK(sum_says(&s, "lost: 100 runtime overwritten (--ring=RECORDS makes it larger)\n"));
	summary_free(&s);
	fx_free(&fx);
}

TEST("summary: of a program that ran before ntrace was attached the first executions are not known",
	"[summary]")
{
	struct rec_header_info info = {.producer = "ntrace test", .attached = true};
	struct fixture fx;
	struct summary s;

	REQUIRE(fx_open_bare(&fx));
	fx_header(&fx, &info);
	fx_clock(&fx, 100, 0);
	fx_process(&fx, FX_SOURCE, FX_PID);
	execute(&fx, 1, 2000, 2900, 0);
	execute(&fx, 2, 3000, 3100, 0);
	fx_records(&fx, FX_SOURCE);
	REQUIRE_EQ(sum(&fx, &s), 0);
	check_withheld(&s, 2, "ntrace was attached to a program that ran already");
	summary_free(&s);
	fx_free(&fx);
}

TEST("summary: a model whose executions all failed has one row", "[summary]")
{
	struct fixture fx;
	struct summary s;

	REQUIRE(fx_open(&fx));
	execute(&fx, 1, 1000, 1010, 1002);
	fx_records(&fx, FX_SOURCE);
	REQUIRE_EQ(sum(&fx, &s), 0);
	CHECK(sum_says(
		&s, "nrt_execute\n    failed, in neither                      1       10 ns"));
	char *text = sum_print(&s, summary_print_text);
	CHECK(text && !strstr(text, "the first on each core") && !strstr(text, "the rest"));
	free(text);
	summary_free(&s);
	fx_free(&fx);
}

TEST("summary: the device runs of all processes are blind, as one sum", "[summary]")
{
	struct fixture fx;
	struct summary s;

	REQUIRE(fx_open(&fx));
	fx_process(&fx, FX_SOURCE + 1, 99);
	fx_run(&fx, 0, 0, 10, 1000, 2000);
	fx_records(&fx, FX_SOURCE);
	for (uint64_t i = 0; i < 3; i++)
		fx_run(&fx, 0, 0, 20 + i, 3000 + 100 * i, 3050 + 100 * i);
	fx_records(&fx, FX_SOURCE + 1);
	REQUIRE_EQ(sum(&fx, &s), 0);
	CHECK(sum_says(&s, "blind: inside of 4 device runs: no device profile"));
	CHECK(!sum_says(&s, "inside of 1 device run"));
	CHECK(!sum_says(&s, "inside of 3 device runs"));
	CHECK(sum_says(&s, "nc0 of two need not be one core"));
	summary_free(&s);
	fx_free(&fx);
}

TEST("summary: why the inside of device runs is blind is read as it was written", "[summary]")
{
	for (unsigned why = 0; why < BLIND_WHYS; why++) {
		char line[BLIND_BYTES];
		enum blind_why read = BLIND_WHYS;

		blind_runs_line(why + 1, why, line);
		CHECK(strlen(line) + 1 < BLIND_BYTES);
		CHECK_EQ(blind_runs(line, &read), why + 1);
		CHECK_EQ(read, why);
		line[strlen(line) - 1] = '\0';
		CHECK_EQ(blind_runs(line, &read), 0);
	}
}

TEST("summary: driver calls that were not written are not taken for none", "[summary]")
{
	struct fixture fx;
	struct summary s = {0};

	REQUIRE(make(&fx));
	fx_copy(&fx, 5, 1000, 2000, 4000);
	fx_end(&fx);
	REQUIRE_EQ(fx_merge(&fx, "out", MERGE_KERNEL_OFF), 0);
	REQUIRE_EQ(sum_path(&fx, &s, "out"), 0);
	CHECK(sum_says(&s, "driver calls: not written (--kernel-events=off)"));
	char *json = sum_print(&s, summary_print_json);
	CHECK(json && strstr(json, "\"driver_calls\":false"));
	free(json);
	summary_free(&s);
	fx_free(&fx);
}

/* A trace whose ledger has these notes. */
static void note(struct summary *s, const char *counter, uint64_t value)
{
	REQUIRE_EQ(summary_grow(&s->noted, s->noted_count, sizeof(*s->noted)), 0);
	s->noted[s->noted_count++] = (struct summary_row){strdup("merge"), strdup(counter), value};
}

TEST("summary: notes are sentences, with by how much", "[summary]")
{
	struct summary s = {0}, many = {0};

	note(&s, "device_clamped", 1);
	note(&s, "device_clamped_ns", 11617);
	note(&s, "device_clamped_max_ns", 11617);
	note(&s, "from_the_future", 3);
	CHECK(sum_says(&s,
		"noted: 1 device run was moved to its submit's start, by 11.617 us; 3 merge "
		"from_the_future\n"));
	note(&many, "device_clamped_ns", 12000);
	note(&many, "device_clamped_max_ns", 11000);
	note(&many, "device_clamped", 2);
	note(&many, "start_lost", 4);
	CHECK(sum_says(&many,
		"noted: 2 device runs were moved to their submits' starts, by 12.000 us in "
		"sum, 11.000 us at most; 4 ends whose start was lost are instants\n"));
	summary_free(&s);
	summary_free(&many);
}
