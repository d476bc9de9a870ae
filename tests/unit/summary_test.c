/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summary_test.c - the summary tells what is in a trace, and no more than that.
 */
#include "tests/shim/shim.h"
#include "tests/unit/driver_fixture.h"
#include "tests/unit/summary_fixture.h"

/* ---- cores --------------------------------------------------------------------------------- */

TEST("summary: two physical cores of a logical one are a union, not a sum", "[summary]")
{
	struct fixture fx;
	struct summary s;

	REQUIRE(fx_open(&fx));
	fx_span(&fx, TRACE_TENSOR_WRITE, 1, 5, 1000, 1100);
	fx_run(&fx, 0, 0, 10, 1100, 1900); /* both run at once nearly all of the time */
	fx_run(&fx, 0, 1, 11, 1150, 1900);
	fx_records(&fx, FX_SOURCE);
	fx_span(&fx, TRACE_TENSOR_WRITE, 2, 5, 1900, 2000);
	REQUIRE_EQ(sum(&fx, &s), 0);
	REQUIRE_EQ(s.core_count, 1);
	const struct summary_core *c = &s.cores[0];
	CHECK_EQ(summary_length(&s.window), 1000);
	CHECK_EQ(c->logical_size, 2);
	CHECK_EQ(c->runs, 2);
	CHECK_EQ(c->sum_ns, 1550); /* 155 % */
	CHECK_EQ(c->busy_ns, 800);
	CHECK_EQ(c->all_busy_ns, 750);
	CHECK(sum_says(&s, "800 ns  80.0"));
	CHECK(sum_says(&s, "its 2 physical cores at once          750 ns  75.0"));
	CHECK(sum_says(&s, "+- not known")); /* there was no sync point */
	summary_free(&s);
	fx_free(&fx);
}

TEST("summary: logical cores are told apart, and their gaps are between unions", "[summary]")
{
	struct fixture fx;
	struct summary s;

	REQUIRE(fx_open(&fx));
	fx_run(&fx, 0, 0, 10, 1000, 2000);
	fx_run(&fx, 0, 1, 11, 1500, 2500); /* overlaps: no gap */
	fx_run(&fx, 0, 0, 12, 2500, 3000); /* touches: no gap */
	fx_run(&fx, 0, 0, 13, 3100, 3200); /* after 100 */
	fx_run(&fx, 0, 0, 14, 3700, 3800); /* after 500 */
	fx_run(&fx, 3, 0, 20, 1000, 1200);
	fx_records(&fx, FX_SOURCE);
	REQUIRE_EQ(sum(&fx, &s), 0);
	REQUIRE_EQ(s.core_count, 2);
	CHECK_EQ(s.cores[0].busy_ns, 2200);
	CHECK_EQ(s.cores[0].all_busy_ns, 500);
	CHECK_EQ(s.cores[0].gaps.n, 2);
	CHECK_EQ(s.cores[0].gaps.total_ns, 600);
	CHECK_EQ(s.cores[0].gaps.longest_ns, 500);
	CHECK_EQ(s.cores[1].nc, 3);
	CHECK_EQ(s.cores[1].logical_size, 1);
	CHECK_EQ(s.cores[1].busy_ns, 200);
	CHECK_EQ(s.cores[1].all_busy_ns, 200);
	CHECK_EQ(s.cores[1].gaps.n, 0);
	summary_free(&s);
	fx_free(&fx);
}

TEST("summary: collectives and barriers are taken from the busy time once", "[summary]")
{
	struct fixture fx;
	struct summary s;

	REQUIRE(fx_open(&fx));
	fx_run(&fx, 0, 0, 10, 1000, 2000);
	fx_plain(&fx, TRACE_CC_EXEC, 11, 1200, 1500, 0);
	fx_plain(&fx, TRACE_CC_EXEC, 12, 1300, 1400, 0);	 /* inside of the other */
	fx_plain(&fx, TRACE_CC_EXEC_BARRIER, 13, 1450, 1600, 0); /* 50 of it in the collective */
	fx_plain(&fx, TRACE_CC_EXEC, 14, 1900, 2300, 0);	 /* 300 of it outside of runs */
	fx_records(&fx, FX_SOURCE);
	REQUIRE_EQ(sum(&fx, &s), 0);
	const struct summary_core *c = &s.cores[0];
	CHECK_EQ(c->busy_ns, 1000);
	CHECK_EQ(c->collectives, 3);
	CHECK_EQ(c->collective_ns, 400);
	CHECK_EQ(c->barriers, 1);
	CHECK_EQ(c->barrier_ns, 150);
	CHECK_EQ(c->rest_ns, 500);
	CHECK(sum_says(&s, "of it collectives 400 ns, barriers 150 ns, neither 500 ns"));
	summary_free(&s);
	fx_free(&fx);
}

TEST("summary: a run without an end takes no time and is said", "[summary]")
{
	struct fixture fx;
	struct summary s;

	REQUIRE(fx_open(&fx));
	fx_run(&fx, 0, 0, 10, 1000, 2000);
	fx_run(&fx, 0, 0, 11, 3000, 4000);
	fx.count--; /* the second STOP */
	fx_span(&fx, TRACE_TENSOR_WRITE, 1, 5, 900, 9000);
	REQUIRE_EQ(sum(&fx, &s), 0);
	CHECK_EQ(s.cores[0].busy_ns, 1000);
	CHECK_EQ(s.cores[0].open_runs, 1);
	CHECK_EQ(summary_open_count(&s.events), 1);
	CHECK(sum_says(&s, "1 run without an end, not counted"));
	CHECK(sum_says(&s, "1 span open at the end"));
	summary_free(&s);
	fx_free(&fx);
}

TEST("summary: the largest error of device times stands beside the core", "[summary]")
{
	struct fixture fx;
	struct summary s;

	REQUIRE(fx_open(&fx));
	for (uint64_t i = 0; i < 3; i++) {
		uint64_t at = 100000 * (i + 1), host = FX_BOOT + at, bound = 40 + i;
		struct trace_record *r =
			fx_record(&fx, TRACE_TIMESTAMP_SYNC, TRACE_INSTANT, 50 + i, 5, at);

		memcpy(r->data + 8, &at, sizeof(at));
		memcpy(r->data + 16, &host, sizeof(host));
		memcpy(r->data + 24, &bound, sizeof(bound));
		fx_run(&fx, 0, 0, 60 + i, at + 1000, at + 2000);
	}
	fx_records(&fx, FX_SOURCE);
	REQUIRE_EQ(sum(&fx, &s), 0);
	uint64_t largest = 0;
	REQUIRE(fx_merge_one(&fx));
	for (size_t i = 0; i < fx.trace.count; i++) {
		uint64_t ns;
		event_value_number(&fx.trace.events[i], "clock.bound_ns", &ns);
		largest = ns > largest ? ns : largest;
	}
	CHECK(largest > 40);
	CHECK_EQ(s.cores[0].bound_ns, largest);
	CHECK(s.cores[0].bound_known > 0);
	CHECK(sum_says(&s, "+-"));
	summary_free(&s);
	fx_free(&fx);
}

/* ---- times --------------------------------------------------------------------------------- */

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

TEST("summary: percentiles are those of a naive computation, and withheld below 1/(1-p)",
	"[summary]")
{
	static const size_t sizes[] = {1, 2, 9, 10, 11, 99, 100, 101};
	uint64_t seed = 12345;

	for (size_t k = 0; k < sizeof(sizes) / sizeof(*sizes); k++) {
		uint64_t ns[101], at = 1000, total = 0;
		size_t n = sizes[k];
		struct fixture fx;
		struct summary s;

		test_info("n %zu", n);
		REQUIRE(fx_open(&fx));
		for (size_t i = 0; i < n; i++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			ns[i] = 1 + (seed >> 40) % 5000;
			total += ns[i];
			fx_span(&fx, TRACE_TENSOR_READ, 100 + i, 5, at, at + ns[i]);
			at += 6000;
		}
		REQUIRE_EQ(sum(&fx, &s), 0);
		qsort(ns, n, sizeof(*ns), compare_u64);
		const struct summary_name *name = sum_name(&s, "nrt_tensor_read");
		struct duration_stats st = duration_stats(&name->durations);
		CHECK_EQ(name->total_ns, total);
		CHECK_EQ(st.n, n);
		CHECK_EQ(st.ns[STAT_MAX], ns[n - 1]);
		static const unsigned percents[] = {50, 90, 99};
		for (unsigned p = 0; p < 3; p++) {
			size_t below = 0; /* the first value that p percent are not above */

			while (100 * (below + 1) < percents[p] * n)
				below++;
			CHECK_EQ(st.has[STAT_P50 + p], n * (100 - percents[p]) >= 100);
			if (st.has[STAT_P50 + p])
				CHECK_EQ(st.ns[STAT_P50 + p], ns[below]);
		}
		summary_free(&s);
		fx_free(&fx);
	}
}

TEST("summary: the first execution of a model on each core stands apart", "[summary]")
{
	struct fixture fx;
	struct summary s;

	REQUIRE(fx_open(&fx));
	fx_name(&fx, 77, "two_layers.neff");
	for (uint64_t i = 0; i < 12; i++) {
		uint64_t at = 100000 * (i + 1), ns = i < 2 ? 9000 : 100 + i;

		fx_plain(&fx, TRACE_EXECUTE_API, 100 + i, at, at + ns, 77);
		fx.records[fx.count - 1].nc_idx = fx.records[fx.count - 2].nc_idx = i % 2;
		fx_run(&fx, i % 2, 0, 200 + i, at + 10, at + 50 + 10 * (i < 2));
	}
	fx_records(&fx, FX_SOURCE);
	REQUIRE_EQ(sum(&fx, &s), 0);
	REQUIRE_EQ(s.model_count, 2);
	CHECK_STR(s.models[0].name, "two_layers.neff");
	CHECK(!s.models[0].on_device);
	CHECK_EQ(s.models[0].first.n, 2);
	CHECK_EQ(durations_total(&s.models[0].first), 18000);
	CHECK_EQ(s.models[0].rest.n, 10);
	CHECK_EQ(duration_stats(&s.models[0].rest).ns[STAT_MAX], 111);
	CHECK(s.models[1].on_device);
	CHECK_EQ(duration_stats(&s.models[1].first).ns[STAT_MAX], 50);
	CHECK_EQ(s.models[1].rest.n, 10);
	CHECK_EQ(duration_stats(&s.models[1].rest).ns[STAT_MAX], 40);
	summary_free(&s);
	fx_free(&fx);
}

/* ---- the driver ---------------------------------------------------------------------------- */

TEST("summary: goodput is bytes over the union of the copies' times", "[summary]")
{
	struct fixture fx;
	struct summary s;

	REQUIRE(fx_open(&fx));
	fx_copy(&fx, 5, 1000, 2000, 4000);
	fx_copy(&fx, 6, 1500, 2500, 4000); /* at the same time on another thread */
	fx_copy(&fx, 5, 4000, 4500, 2000);
	struct fx_call back = {.tid = 5,
		.request = NEURON_IOCTL_MEM_BUF_COPY64,
		.from = 5000,
		.to = 5100,
		.nargs = 4,
		.args = {77, 300, 0, 0}};
	fx_call(&fx, &back);
	back.from = 6000;
	back.to = 9000;
	back.result = -EIO; /* copied nothing */
	fx_call(&fx, &back);
	REQUIRE_EQ(sum(&fx, &s), 0);
	const struct summary_copies *in = &s.copies[SUMMARY_BY_DRIVER][EVENT_TO_DEVICE];
	const struct summary_copies *out = &s.copies[SUMMARY_BY_DRIVER][EVENT_TO_HOST];
	CHECK_EQ(in->n, 3);
	CHECK_EQ(in->bytes, 10000);
	CHECK_EQ(in->wall_ns, 2000);
	CHECK_EQ(summary_goodput(in), 5000000000);
	CHECK_EQ(out->n, 1);
	CHECK_EQ(out->bytes, 300);
	CHECK_EQ(out->wall_ns, 100);
	summary_free(&s);
	fx_free(&fx);
}

TEST("summary: failed driver calls are counted by errno, failed calls by status", "[summary]")
{
	struct fixture fx;
	struct summary s;

	REQUIRE(fx_open(&fx));
	for (uint64_t i = 0; i < 6; i++) {
		struct fx_call c = {.tid = 5,
			.request = NEURON_IOCTL_MEM_FREE,
			.from = 1000 * (i + 1),
			.to = 1000 * (i + 1) + 100,
			.result = i < 2	   ? 0
				  : i == 2 ? -EAGAIN
					   : -EINVAL};

		fx_call(&fx, &c);
	}
	fx_span(&fx, TRACE_EXECUTE_API, 1, 5, 9000, 9500);
	fx_plain(&fx, TRACE_EXECUTE_API, 2, 9600, 9700, 1);
	fx.records[fx.count - 1].status = 1204;
	fx_records(&fx, FX_SOURCE);
	REQUIRE_EQ(sum(&fx, &s), 0);
	const struct summary_name *n = sum_name(&s, "MEM_FREE");
	CHECK_EQ(n->kind, EVENT_DRIVER);
	CHECK_EQ(n->durations.n, 6);
	CHECK_EQ(n->failed, 4);
	REQUIRE_EQ(n->error_count, 2);
	CHECK_STR(n->errors[0].name, "EINVAL");
	CHECK_EQ(n->errors[0].n, 3);
	CHECK_STR(n->errors[1].name, "EAGAIN");
	CHECK(sum_says(&s, "failed: 3 EINVAL, 1 EAGAIN"));
	CHECK(sum_says(&s, "failed: 1 status 1204"));
	summary_free(&s);
	fx_free(&fx);
}

TEST("summary: the driver's DMA path is a table of its own, and no copy is counted twice",
	"[summary][dma]")
{
	struct fixture fx;
	struct summary s;

	REQUIRE(fx_open(&fx));
	for (uint32_t i = 0; i < 3; i++) {
		struct nev_dma d = fx_dma_of(NEV_DMA_STOP, NEV_DMA_DOORBELL, 5, 1200 + 1000 * i);

		fx_doorbell(&fx, NEV_DMA_START, i + 1, 5, 1100 + 1000 * i, 1000 + 1000 * i);
		d.device = 1;
		d.engine = 128;
		d.queue = 0;
		d.sequence = i + 1;
		d.result = i ? 0 : -1;
		fx_dma(&fx, d);
		fx_copy(&fx, 5, 1000 + 1000 * i, 1900 + 1000 * i, 64);
	}
	REQUIRE_EQ(sum(&fx, &s), 0);
	const struct summary_name *n = sum_name(&s, "dma_doorbell");
	CHECK_EQ(n->kind, EVENT_DMA);
	CHECK_EQ(n->durations.n, 3);
	CHECK_EQ(n->failed, 1);
	CHECK(sum_says(&s, "DMA by the driver"));
	CHECK(sum_says(&s, "failed: 1 ETIMEDOUT"));
	CHECK_EQ(s.copies[SUMMARY_BY_DRIVER][EVENT_TO_DEVICE].n, 3);
	CHECK_EQ(s.copies[SUMMARY_BY_DRIVER][EVENT_TO_DEVICE].bytes, 3 * 64);
	summary_free(&s);
	fx_free(&fx);
}

/* What a driver was recorded with on whose completions no hook was (--hooks-off=completion). */
TEST("summary: doorbells whose ends nobody saw are open for that reason, and no other is told it",
	"[summary][dma]")
{
	static const char because[] = "1 open (completions were not hooked, see blind)";
	static const char *const hooks[] = {"fentry:ncdev_ioctl", NULL};
	static const char *const results[] = {"off", "reached"};

	for (size_t i = 0; i < 2; i++) {
		const struct rec_ladder_step ladder[] = {{"doorbell", "fentry", "reached"},
			{"completion", "fentry", results[i]}, {0}};
		struct rec_header_info info = {.producer = "ntrace test",
			.instance_id = "i-0",
			.host = "h",
			.driver = "2.24.7.0",
			.hooks = hooks,
			.ladder = ladder};
		struct fixture fx;
		struct summary s;

		REQUIRE(fx_open_bare(&fx));
		fx_header(&fx, &info);
		fx_clock(&fx, 100, 0);
		fx_doorbell(&fx, NEV_DMA_START, 1, 5, 1100, 1000);
		fx_copy(&fx, 5, 1000, 1900, 64);
		REQUIRE_EQ(sum(&fx, &s), 0);
		CHECK(sum_says(&s, i ? "1 open\n" : because));
		summary_free(&s);
		fx_free(&fx);
	}
}

/* ---- extent and losses ---------------------------------------------------------------------- */

TEST("summary: a trace without events, and one with one", "[summary]")
{
	struct fixture fx;
	struct summary s;

	for (unsigned n = 0; n < 2; n++) {
		REQUIRE(fx_open(&fx));
		if (n) {
			fx_record(&fx, TRACE_TENSOR_WRITE, TRACE_START, 1, 5, 1000);
			fx_records(&fx, FX_SOURCE);
		}
		REQUIRE_EQ(sum(&fx, &s), 0);
		CHECK_EQ(s.events.total, n);
		CHECK_EQ(summary_length(&s.window), 0);
		CHECK(sum_says(&s, n ? "duration: 0 ns" : "duration: none"));
		CHECK(sum_says(&s, n ? "1 span open" : "0 spans open"));
		CHECK(sum_says(&s, "lost: nothing\n"));
		char *json = sum_print(&s, summary_print_json);
		CHECK(json && strstr(json, "\"duration_ns\":0,"));
		free(json);
		summary_free(&s);
		fx_free(&fx);
	}
}

TEST("summary: a run that was cut by overwriting names what is left", "[summary]")
{
	struct fixture fx;
	struct summary s;

	REQUIRE(fx_open(&fx));
	fx_copy(&fx, 5, 1000, 2000, 64); /* the driver's side has all of it */
	fx_span(&fx, TRACE_TENSOR_WRITE, 1, 5, 5001000, 5002000);
	fx_span(&fx, TRACE_TENSOR_WRITE, 2, 5, 9000000, 9001000);
	fx_counter(&fx, FX_SOURCE, REC_C_RUNTIME_EMITTED, 0, 104);
	fx_counter(&fx, FX_SOURCE, REC_C_RUNTIME_DELIVERED, 0, 4);
	fx_counter(&fx, FX_SOURCE, REC_C_RUNTIME_OVERWRITTEN, 0, 100);
	fx_counter(&fx, REC_SOURCE_KERNEL, REC_C_KERNEL_ENTERED, 0, 1);
	fx_counter(&fx, REC_SOURCE_KERNEL, REC_C_KERNEL_DONE, 0, 1);
	fx_counter(&fx, REC_SOURCE_KERNEL, REC_C_KERNEL_RECEIVED, 0, 1);
	REQUIRE_EQ(sum(&fx, &s), 0);
	CHECK_EQ(s.overwritten, 100);
	CHECK_EQ(s.lost_total, 100);
	CHECK_EQ(s.window.first_ns, FX_EPOCH + 1000);
	CHECK(sum_says(&s, "lost: 100 runtime overwritten (--ring=RECORDS makes it larger)\n"));
	CHECK(sum_says(&s, "window: cut, 100 events of the runtime overwritten"));
	CHECK(sum_says(&s, "  nc0             5.000 ms to 9.000 ms\n"));
	summary_free(&s);
	fx_free(&fx);
}

/* What was overwritten in the middle leaves the first and the last event as they are. */
TEST("summary: a run that lost its middle does not claim to be whole between its ends", "[summary]")
{
	struct fixture fx;
	struct summary s;

	REQUIRE(fx_open(&fx));
	fx_span(&fx, TRACE_TENSOR_WRITE, 1, 5, 1000, 2000);
	fx_counter(&fx, FX_SOURCE, REC_C_RUNTIME_OVERWRITTEN, 0, 100);
	fx_span(&fx, TRACE_TENSOR_WRITE, 2, 5, 9000000, 9001000);
	fx_counter(&fx, FX_SOURCE, REC_C_RUNTIME_EMITTED, 0, 104);
	fx_counter(&fx, FX_SOURCE, REC_C_RUNTIME_DELIVERED, 0, 4);
	REQUIRE_EQ(sum(&fx, &s), 0);
	CHECK(sum_says(&s, "perhaps with holes:\n  nc0                 0 ns to 9.000 ms\n"));
	summary_free(&s);
	fx_free(&fx);
}

TEST("summary: a recorder that was killed leaves losses that are not known", "[summary]")
{
	struct fixture fx;
	struct summary s = {0};

	REQUIRE(fx_open(&fx));
	fx_span(&fx, TRACE_TENSOR_WRITE, 1, 5, 1000, 2000);
	CHECK_EQ(sum_path(&fx, &s, REC_DIR), -EBADMSG);
	CHECK_EQ(s.events.total, 2);
	CHECK(sum_says(&s, "at most the last 100 ms if the recorder was killed"));
	char *json = sum_print(&s, summary_print_json);
	CHECK(json && strstr(json, "\"lost_known\":false"));
	free(json);
	summary_free(&s);
	fx_free(&fx);
}

TEST("summary: several processes are one total, and what they share counts once", "[summary]")
{
	struct fixture fx;
	struct summary s, dir = {0};

	REQUIRE(fx_open(&fx));
	fx_process(&fx, FX_SOURCE + 1, 99); /* sorts before the first */
	fx_span(&fx, TRACE_TENSOR_WRITE, 1, 5, 1000, 2000);
	fx_run(&fx, 0, 0, 10, 3000, 4000);
	fx_records(&fx, FX_SOURCE + 1);
	fx_counter(&fx, FX_SOURCE, REC_C_RUNTIME_EMITTED, 0, 11);
	fx_counter(&fx, FX_SOURCE, REC_C_RUNTIME_DELIVERED, 0, 4);
	fx_counter(&fx, FX_SOURCE, REC_C_RUNTIME_SLOT_BUSY, 0, 7);
	fx_counter(&fx, REC_SOURCE_RECORDER, REC_C_AGENT_CPU_NS, 0, 4000);
	REQUIRE_EQ(sum(&fx, &s), 0);
	REQUIRE_EQ(s.process_count, 2);
	CHECK_EQ(s.processes[0].pid, 99);
	CHECK_EQ(s.processes[1].pid, FX_PID);
	CHECK_EQ(s.events.total, 4);
	CHECK_EQ(summary_length(&s.window), 3000);
	CHECK_EQ(s.lost_total, 7);
	REQUIRE_EQ(s.capture_count, 1);
	CHECK_EQ(s.captures[0].cpu_ns, 4000);
	CHECK_EQ(s.captures[0].events, 4);
	bool named = false;
	for (size_t i = 0; i < s.core_count; i++)
		named |= s.cores[i].runs == 1 && s.cores[i].process == 0;
	CHECK(named);
	CHECK(sum_says(&s, "i-0123_pid_99 nc0"));
	/* The same from the files. */
	REQUIRE_EQ(fx_merge(&fx, "out", MERGE_KERNEL_HINT), 0);
	REQUIRE_EQ(sum_path(&fx, &dir, "out"), 0);
	char *a = sum_print(&s, summary_print_json), *b = sum_print(&dir, summary_print_json);
	CHECK_STR(a, b);
	free(a);
	free(b);
	summary_free(&dir);
	summary_free(&s);
	fx_free(&fx);
}

TEST("summary: a trace with more names than any program has takes no more memory", "[summary]")
{
	struct summary s = {0};
	struct feed_sink sink = summary_sink(&s);
	struct feed_process p = {.name = "x"};
	struct ntrace_event_view e = {.phase = PHASE_STOP, .event_type = 1000, .duration = 1};

	REQUIRE_EQ(sink.process(sink.ctx, &p), 0);
	for (unsigned i = 0; i < SUMMARY_MAX_NAMES + 1000; i++) {
		char hint[16];

		snprintf(hint, sizeof(hint), "name %u", i);
		e.hint = (struct pb_str){hint, (uint32_t)strlen(hint)};
		REQUIRE_EQ(sink.event(sink.ctx, &p, &e), 0);
	}
	REQUIRE_EQ(sink.end(sink.ctx, &p, NULL), 0);
	REQUIRE_EQ(summary_compute(&s), 0);
	CHECK_EQ(s.name_count, SUMMARY_MAX_NAMES + 1);
	CHECK_EQ(sum_name(&s, SUMMARY_OTHER_NAMES)->events.stops, 1000);
	CHECK(sum_says(&s, "lost: not known of 1 process without trace_info.pb\n"));
	summary_free(&s);
}
