/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rec_tools_test.c - summaries and cuts of recordings: a cut merges to the matching subset, its
 * ledger balances, and what a summary says is what was written.
 */
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "runtime/record/rec_cut.h"
#include "runtime/record/rec_summary.h"
#include "tests/shim/shim.h"
#include "tests/unit/recording_fixture.h"

#define TID 100u
#define OTHER_PID 5000u
#define SPANS 60u

/* The generator's truth: spans with both ends; times relative to FX_BOOT. */
struct truth {
	uint64_t from, to;
	uint32_t pid, core, tid;
	bool is_call;
};

static uint32_t seed;

static uint32_t noise(uint32_t below)
{
	seed = seed * 1664525u + 1013904223u;
	return (uint32_t)((uint64_t)(seed >> 8) * below >> 24);
}

static void put_truth(struct fixture *fx, const struct truth *t, uint64_t id)
{
	uint16_t source = t->pid == FX_PID ? FX_SOURCE : FX_SOURCE + 1;

	if (t->is_call) {
		struct fx_call c = {.tgid = t->pid,
			.tid = t->tid,
			.request = NEURON_IOCTL_DEVICE_BASIC_INFO,
			.from = t->from,
			.to = t->to};
		fx_call(fx, &c);
		return;
	}
	for (unsigned end = 0; end < 2; end++) {
		struct trace_record *r = fx_record(fx, TRACE_TENSOR_READ,
			end ? TRACE_STOP : TRACE_START, id, t->tid, end ? t->to : t->from);
		r->nc_idx = t->core;
	}
	fx_records(fx, source);
}

/* Two processes, three cores, driver calls, random spans, a counter of each kind, an end. */
static bool make(struct fixture *fx, struct truth *t, uint32_t with_seed)
{
	uint64_t calls = 0;

	seed = with_seed;
	if (!fx_open(fx))
		return false;
	fx_process(fx, FX_SOURCE + 1, OTHER_PID);
	for (unsigned i = 0; i < SPANS; i++) {
		t[i] = (struct truth){.from = noise(1000000),
			.pid = noise(3) ? FX_PID : OTHER_PID,
			.core = noise(3),
			.tid = TID + i, /* each alone: whatever the times, nothing nests */
			.is_call = noise(4) == 0};
		t[i].to = t[i].from + 1 + noise(200000);
		calls += t[i].is_call;
		put_truth(fx, &t[i], i + 1);
	}
	fx_counter(fx, REC_SOURCE_KERNEL, REC_C_KERNEL_ENTERED, 0, calls);
	fx_counter(fx, REC_SOURCE_KERNEL, REC_C_KERNEL_DONE, 0, calls);
	fx_counter(fx, REC_SOURCE_KERNEL, REC_C_KERNEL_RECEIVED, 0, calls);
	fx_counter(fx, FX_SOURCE, REC_C_RUNTIME_EMITTED, 0, 2 * (SPANS - calls) + 7);
	fx_counter(fx, FX_SOURCE, REC_C_RUNTIME_DELIVERED, 0, 2 * (SPANS - calls));
	fx_counter(fx, FX_SOURCE, REC_C_RUNTIME_OVERWRITTEN, 0, 7);
	fx_end(fx);
	return fx_close_writer(fx) == 0;
}

static bool wanted(
	const struct truth *t, const struct rec_cut_options *o, uint64_t from, uint64_t to)
{
	if (o->pid_count && t->pid != o->pids[0])
		return false;
	if (o->core_count && !t->is_call && t->core != o->cores[0])
		return false;
	return t->from < to && t->to >= from;
}

/* Is every span of the truth in the merged files exactly when it is wanted, whole? */
static void check_spans(struct fixture *fx, const struct truth *t, const struct rec_cut_options *o,
	uint64_t from, uint64_t to)
{
	size_t events = 0, expected = 0;

	for (uint32_t p = 0; p < fx->result.output_count; p++)
		events += fx->result.outputs[p].events;
	for (unsigned i = 0; i < SPANS; i++)
		expected += wanted(&t[i], o, from, to) ? 2 : 0;
	CHECK_EQ(events, expected);
	CHECK(fx->result.balanced);
	CHECK_EQ(fx->result.lost, 7);
	CHECK(fx->result.ended);
	for (uint32_t p = 0; p < fx->result.output_count; p++) {
		CHECK_EQ(fx->result.outputs[p].open_spans, 0);
		CHECK_EQ(fx->result.outputs[p].events,
			2 * (fx->result.outputs[p].spans + fx->result.outputs[p].kernel_spans));
	}
}

/* Cuts the fixture's recording and merges the cut in its place. */
static void check_cut(
	uint32_t with_seed, const struct rec_cut_options *o, uint64_t from, uint64_t to)
{
	struct truth t[SPANS];
	struct rec_cut_result cut;
	struct rec_summary s;
	struct fixture fx;

	REQUIRE(make(&fx, t, with_seed));
	struct scratch_path rec = fx_path(&fx, REC_DIR), part = fx_path(&fx, "part");
	REQUIRE_EQ(rec_cut(rec.s, part.s, o, &cut), 0);
	CHECK_EQ(rec_cut(rec.s, part.s, o, &cut), -EEXIST);
	REQUIRE_EQ(rec_summary_make(part.s, &s), 0);
	CHECK_EQ(s.open_spans, 0);
	CHECK(s.has_footer && !s.footer_fault && !rec_damaged(&s.damage) && s.ended);
	CHECK(ledger_balanced(&s.ledger, s.seq_gaps, true));
	rec_summary_free(&s);
	rename(rec.s, fx_path(&fx, "whole").s);
	rename(part.s, rec.s);
	REQUIRE_EQ(fx_merge(&fx, "out", MERGE_KERNEL_HINT), 0);
	check_spans(&fx, t, o, from, to);
	fx_free(&fx);
}

TEST("rec cut: the spans that touch the time are kept whole, others are left out and counted",
	"[record]")
{
	for (uint32_t i = 0; i < 30; i++) {
		struct rec_cut_options o = {0};
		uint64_t from = 40000 * i % 900000, to = from + 1 + 11000 * i % 300000;

		test_info("seed %u", i);
		/* The first snapshot begins at 50. */
		o.from = (struct cut_time){CUT_RELATIVE, from - 50 * (from > 50)};
		o.to = (struct cut_time){CUT_EPOCH, FX_EPOCH + to};
		check_cut(i, &o, from > 50 ? from : from + 50, to);
	}
}

TEST("rec cut: without a choice all is kept", "[record]")
{
	struct rec_cut_options o = {0};

	check_cut(7, &o, 0, UINT64_MAX);
}

TEST("rec cut: a process and a core can be chosen", "[record]")
{
	struct rec_cut_options pid = {.pids = {OTHER_PID}, .pid_count = 1};
	struct rec_cut_options core = {.cores = {2}, .core_count = 1};

	for (uint32_t i = 0; i < 5; i++) {
		check_cut(i, &pid, 0, UINT64_MAX);
		check_cut(i, &core, 0, UINT64_MAX);
	}
}

TEST("rec cut: spans that are open at its begin keep their starts, also those that never end",
	"[record]")
{
	struct rec_cut_options o = {.from = {CUT_RELATIVE, 5000}, .to = {CUT_RELATIVE, 6000}};
	struct fx_call open = {
		.tid = TID, .request = NEURON_IOCTL_DEVICE_BASIC_INFO, .from = 1500, .open = true};
	struct rec_cut_result cut;
	struct rec_summary s;
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	fx_record(&fx, TRACE_EXECUTE_API, TRACE_START, 1, TID, 1000);
	fx_records(&fx, FX_SOURCE);
	fx_call(&fx, &open);
	fx_span(&fx, TRACE_TENSOR_READ, 3, TID + 1, 2000, 3000);
	fx_record(&fx, TRACE_TENSOR_READ, TRACE_STOP, 9, TID + 2, 2500); /* its start is lost */
	fx_records(&fx, FX_SOURCE);
	fx_span(&fx, TRACE_TENSOR_READ, 5, TID + 1, 5500, 5600);
	fx_span(&fx, TRACE_TENSOR_READ, 7, TID + 1, 7000, 7100);
	fx_close_writer(&fx);
	REQUIRE_EQ(rec_cut(fx_path(&fx, REC_DIR).s, fx_path(&fx, "part").s, &o, &cut), 0);
	CHECK_EQ(cut.kept, 4);
	CHECK_EQ(cut.left_out, 5);
	CHECK(!cut.ended);
	REQUIRE_EQ(rec_summary_make(fx_path(&fx, "part").s, &s), 0);
	CHECK_EQ(s.open_spans, 2);
	CHECK_EQ(s.first_ns, FX_BOOT + 1000);
	CHECK_EQ(s.last_ns, FX_BOOT + 5600);
	CHECK_EQ(s.ledger.value[REC_C_CUT_OUT], 5);
	rec_summary_free(&s);
	fx_free(&fx);
}

TEST("rec cut: names, samples in the time and the sample before it are kept", "[record]")
{
	struct rec_cut_options o = {0};
	struct rec_cut_result cut;
	struct rec_summary s;
	struct fixture fx;
	struct sampler_cpu row = {0};

	REQUIRE(fx_open(&fx));
	fx_name(&fx, 77, "net.neff");
	fx_frame(&fx, REC_CPU, REC_SOURCE_RECORDER, &row, sizeof(row));
	fx_frame(&fx, REC_CPU, REC_SOURCE_RECORDER, &row, sizeof(row));
	uint64_t between = clock_boot().ns;
	fx_frame(&fx, REC_CPU, REC_SOURCE_RECORDER, &row, sizeof(row));
	fx_end(&fx);
	fx_close_writer(&fx);
	o.from = (struct cut_time){CUT_EPOCH, between + (uint64_t)FX_OFFSET};
	REQUIRE_EQ(rec_cut(fx_path(&fx, REC_DIR).s, fx_path(&fx, "part").s, &o, &cut), 0);
	REQUIRE_EQ(rec_summary_make(fx_path(&fx, "part").s, &s), 0);
	CHECK_EQ(s.types[REC_CPU].frames, 2);
	CHECK_EQ(s.types[REC_NAME].frames, 1);
	CHECK_EQ(s.types[REC_CLOCK].frames, 1);
	CHECK_EQ(s.types[REC_PROCESS].frames, 1);
	CHECK_STR(s.header.info.instance_id, "i-0123");
	rec_summary_free(&s);
	fx_free(&fx);
}

TEST("rec cut: records that were damaged before stay lost in the cut", "[record]")
{
	struct rec_cut_options o = {0};
	struct rec_cut_result cut;
	_cleanup_free_ char *data = NULL;
	struct fixture fx;
	size_t size;

	REQUIRE(fx_open(&fx));
	fx_span(&fx, TRACE_TENSOR_READ, 1, TID, 1000, 2000);
	uint64_t at = rec_writer_bytes(fx.w);
	fx_span(&fx, TRACE_TENSOR_READ, 3, TID, 3000, 4000);
	fx_counter(&fx, FX_SOURCE, REC_C_RUNTIME_EMITTED, 0, 4);
	fx_counter(&fx, FX_SOURCE, REC_C_RUNTIME_DELIVERED, 0, 4);
	fx_end(&fx);
	fx_close_writer(&fx);
	struct scratch_path path = fx_path(&fx, REC_DIR "/segment-000000.ntrec");
	REQUIRE_EQ(file_read(path.s, 1 << 20, &data, &size), 0);
	data[at + 70] ^= 1;
	FILE *f = fopen(path.s, "w");
	REQUIRE(f && fwrite(data, 1, size, f) == size && fclose(f) == 0);
	REQUIRE_EQ(rec_cut(fx_path(&fx, REC_DIR).s, fx_path(&fx, "part").s, &o, &cut), 0);
	CHECK(rec_damaged(&cut.damage));
	rename(fx_path(&fx, REC_DIR).s, fx_path(&fx, "whole").s);
	rename(fx_path(&fx, "part").s, fx_path(&fx, REC_DIR).s);
	REQUIRE(fx_merge_one(&fx));
	CHECK_EQ(fx.trace.count, 2);
	CHECK(fx.result.balanced);
	CHECK_EQ(fx.result.lost, 2);
	CHECK_EQ(fx_ledger(&fx, REC_C_CUT_DAMAGED), 2);
	fx_free(&fx);
}

/* What a recorder leaves that was killed: its counters are older than its last records. */
static bool make_killed(struct fixture *fx)
{
	static const struct rec_counter kernel[] = {{REC_C_KERNEL_ENTERED, 0, 2},
		{REC_C_KERNEL_DONE, 0, 1}, {REC_C_KERNEL_OPEN, 0, 1}, {REC_C_KERNEL_RECEIVED, 0, 0},
		{REC_C_KERNEL_LEFT, 0, 1}};
	static const struct rec_counter runtime[] = {{REC_C_RUNTIME_EMITTED, 0, 1},
		{REC_C_RUNTIME_EMITTED, 1, 2}, {REC_C_RUNTIME_DELIVERED, 0, 1},
		{REC_C_RUNTIME_UNREAD, 0, 1}, {REC_C_RUNTIME_UNREAD, 1, 1}};

	if (!fx_open(fx))
		return false;
	fx_frame(fx, REC_COUNTERS, REC_SOURCE_KERNEL, kernel, sizeof(kernel));
	fx_frame(fx, REC_COUNTERS, FX_SOURCE, runtime, sizeof(runtime));
	for (uint64_t i = 0; i < 4; i++) {
		fx_span(fx, TRACE_TENSOR_READ, 1 + i, TID, 1000 * (i + 1), 1000 * (i + 1) + 500);
		fx_copy(fx, TID + 1, 1000 * (i + 1), 1000 * (i + 1) + 500, 64);
	}
	return fx_close_writer(fx) == 0;
}

/* The ledgers up to the recording are alike but for what the cut left out. */
static void check_ledgers(const struct ledger *of, const struct ledger *cut, uint64_t left_out)
{
	for (uint32_t id = 1; id <= REC_C_RECORDING_DAMAGED; id++) {
		uint64_t want = of->value[id];

		test_info("%s/%s", rec_counter_info(id)->stage, rec_counter_info(id)->name);
		if (id == REC_C_CUT_OUT)
			want += left_out;
		if (id == REC_C_RECORDING_READ)
			want -= left_out;
		CHECK_EQ(cut->value[id], want);
	}
}

TEST("rec: info, a cut and the merge have one ledger for a recording without an end", "[record]")
{
	for (unsigned part = 0; part < 2; part++) {
		struct rec_cut_options o = {
			.to = {part ? CUT_RELATIVE : CUT_OPEN, 2400}}; /* two of the four */
		struct rec_summary whole, of_cut;
		struct ledger merged = {0};
		struct rec_cut_result cut;
		struct fixture fx;

		REQUIRE(make_killed(&fx));
		struct scratch_path rec = fx_path(&fx, REC_DIR), to = fx_path(&fx, "part");
		REQUIRE_EQ(rec_cut(rec.s, to.s, &o, &cut), 0);
		REQUIRE_EQ(rec_summary_make(rec.s, &whole), 0);
		REQUIRE_EQ(rec_summary_make(to.s, &of_cut), 0);
		CHECK_EQ(whole.ledger.value[REC_C_KERNEL_RECEIVED], 4);
		CHECK_EQ(whole.ledger.value[REC_C_KERNEL_LEFT], 0);
		CHECK_EQ(whole.ledger.value[REC_C_RUNTIME_DELIVERED], 8);
		CHECK_EQ(whole.ledger.value[REC_C_RUNTIME_UNREAD], 0);
		CHECK_EQ(ledger_lost(&whole.ledger), 0);
		check_ledgers(&whole.ledger, &of_cut.ledger, part ? 6 : 0);
		CHECK_EQ(ledger_lost(&of_cut.ledger), 0);
		REQUIRE_EQ(fx_merge(&fx, "out", MERGE_KERNEL_HINT), 0);
		for (uint32_t id = 0; id < REC_COUNTER_MAX; id++)
			merged.value[id] = fx_ledger(&fx, (enum rec_counter_id)id);
		check_ledgers(&merged, &whole.ledger, 0);
		rename(rec.s, fx_path(&fx, "whole").s);
		rename(to.s, rec.s);
		REQUIRE_EQ(fx_merge(&fx, "out", MERGE_KERNEL_HINT), 0);
		for (uint32_t id = 0; id < REC_COUNTER_MAX; id++)
			merged.value[id] = fx_ledger(&fx, (enum rec_counter_id)id);
		check_ledgers(&of_cut.ledger, &merged, 0);
		CHECK(fx.result.balanced);
		rec_summary_free(&whole);
		rec_summary_free(&of_cut);
		fx_free(&fx);
	}
}

TEST("rec cut: a recording without a clock snapshot cannot be cut by time", "[record]")
{
	struct rec_cut_options o = {.from = {CUT_RELATIVE, 1}};
	struct rec_cut_result cut;
	struct fixture fx;

	REQUIRE(fx_open_bare(&fx));
	fx_span(&fx, TRACE_TENSOR_READ, 1, TID, 1000, 2000);
	fx_close_writer(&fx);
	CHECK_EQ(rec_cut(fx_path(&fx, REC_DIR).s, fx_path(&fx, "part").s, &o, &cut), -ENODATA);
	CHECK_EQ(scratch_entries(fx_path(&fx, "part").s), -1);
	o.from.kind = CUT_OPEN;
	CHECK_EQ(rec_cut(fx_path(&fx, REC_DIR).s, fx_path(&fx, "part").s, &o, &cut), 0);
	CHECK_EQ(cut.kept, 2);
	fx_free(&fx);
}

TEST("rec: a clock snapshot that cannot be counts for nothing, as in the merge", "[record]")
{
	struct fixture fx;
	struct rec_cut_options o = {.from = {CUT_RELATIVE, 0}};
	struct rec_cut_result r;
	struct rec_summary s;
	struct clock_snapshot unread = {.boot_before = 1, .boot_after = 2};

	REQUIRE(fx_open_bare(&fx));
	fx_frame(&fx, REC_CLOCK, REC_SOURCE_RECORDER, &unread, sizeof(unread));
	REQUIRE(fx_close_writer(&fx) == 0);
	CHECK_EQ(rec_cut(fx_path(&fx, REC_DIR).s, fx_path(&fx, "cut").s, &o, &r), -ENODATA);
	CHECK_EQ(rec_summary_make(fx_path(&fx, REC_DIR).s, &s), 0);
	CHECK_EQ(s.clock.boot_after, 0);
	rec_summary_free(&s);
	fx_free(&fx);

	REQUIRE(fx_open_bare(&fx));
	fx_frame(&fx, REC_CLOCK, REC_SOURCE_RECORDER, &unread, sizeof(unread));
	fx_clock(&fx, 100, 0);
	REQUIRE(fx_close_writer(&fx) == 0);
	CHECK_EQ(rec_cut(fx_path(&fx, REC_DIR).s, fx_path(&fx, "cut").s, &o, &r), 0);
	CHECK_EQ(r.from_ns, FX_BOOT + 50);
	CHECK_EQ(rec_summary_make(fx_path(&fx, REC_DIR).s, &s), 0);
	CHECK_EQ(s.clock.boot_before, FX_BOOT + 50);
	rec_summary_free(&s);
	fx_free(&fx);
}

TEST("rec: more counters than a footer takes are all summed and all kept in a cut", "[record]")
{
	enum { ROWS = 70000 };
	struct fixture fx;
	struct rec_cut_options o = {0};
	struct rec_cut_result r;
	struct rec_summary s;
	struct rec_counter *rows = calloc(ROWS, sizeof(*rows));

	REQUIRE(rows && fx_open(&fx));
	for (uint32_t i = 0; i < ROWS; i++)
		rows[i] = (struct rec_counter){REC_C_RUNTIME_FILTERED, ROWS - i, 1};
	fx_frame(&fx, REC_COUNTERS, FX_SOURCE, rows, ROWS * sizeof(*rows));
	fx_end(&fx);
	free(rows);
	REQUIRE(fx_close_writer(&fx) == 0);
	CHECK_EQ(rec_summary_make(fx_path(&fx, REC_DIR).s, &s), 0);
	CHECK_EQ(s.ledger.value[REC_C_RUNTIME_FILTERED], ROWS);
	CHECK(s.has_footer && !s.footer_fault);
	rec_summary_free(&s);
	CHECK_EQ(rec_cut(fx_path(&fx, REC_DIR).s, fx_path(&fx, "cut").s, &o, &r), 0);
	CHECK_EQ(rec_summary_make(fx_path(&fx, "cut").s, &s), 0);
	CHECK_EQ(s.ledger.value[REC_C_RUNTIME_FILTERED], ROWS);
	rec_summary_free(&s);
	fx_free(&fx);
}

/* A cut that meets a limit on the size of files in the middle: what it returns, or -1 when it was killed. */
static int limited_cut(const struct fixture *fx, const char *out, bool killed)
{
	struct rec_cut_options o = {0};
	struct rec_cut_result r;
	struct rlimit limit = {64, 64};
	int status = -1;
	pid_t child = fork();

	if (child == 0) {
		signal(SIGXFSZ, killed ? SIG_DFL : SIG_IGN);
		setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
		setrlimit(RLIMIT_FSIZE, &limit);
		_exit(-rec_cut(scratch_path(&fx->dir, REC_DIR).s, out, &o, &r));
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		return -ECHILD;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -1;
}

TEST("rec cut: what fails in the middle is removed, and one who is killed leaves no recording of "
     "that name",
	"[record]")
{
	struct fixture fx;
	struct truth t[SPANS];
	struct scratch_path dir, cut;

	REQUIRE(make(&fx, t, 3));
	dir = scratch_path(&fx.dir, "cut");
	cut = scratch_path(&fx.dir, "cut/recording");
	REQUIRE(mkdir(dir.s, 0777) == 0);
	CHECK_EQ(limited_cut(&fx, cut.s, false), -EFBIG);
	CHECK_EQ(rmdir(dir.s), 0); /* it is empty */
	REQUIRE(mkdir(dir.s, 0777) == 0);
	CHECK_EQ(limited_cut(&fx, cut.s, true), -1);
	CHECK_EQ(access(cut.s, F_OK), -1);
	CHECK_EQ(rmdir(dir.s), -1); /* what it wrote is there by another name */
	fx_free(&fx);
}

TEST("rec summary: it says what was written", "[record]")
{
	struct truth t[SPANS];
	struct rec_summary s;
	struct fixture fx;

	REQUIRE(make(&fx, t, 3));
	REQUIRE_EQ(rec_summary_make(fx_path(&fx, REC_DIR).s, &s), 0);
	CHECK_EQ(s.version, REC_FORMAT_VERSION);
	CHECK_STR(s.header.info.producer, "ntrace test");
	REQUIRE_EQ(s.source_count, 3);
	CHECK_EQ(s.sources[1].process.pid, FX_PID);
	CHECK_EQ(s.sources[2].process.pid, OTHER_PID);
	CHECK_EQ(2 * s.sources[0].records + s.sources[1].records + s.sources[2].records, 2 * SPANS);
	CHECK_EQ(s.types[REC_COUNTERS].frames, 6);
	CHECK(s.has_footer && !s.footer_fault && s.ended);
	CHECK_EQ(s.seq_gaps + s.open_spans + s.invalid, 0);
	CHECK_EQ(s.ledger.value[REC_C_RUNTIME_OVERWRITTEN], 7);
	CHECK(ledger_balanced(&s.ledger, 0, true));
	rec_summary_free(&s);
	CHECK_EQ(rec_summary_make(fx_path(&fx, "none").s, &s), -ENOENT);
	rec_summary_free(&s);
	fx_free(&fx);
}

TEST("rec summary: calls that are missing by number are found, footers are read with care",
	"[record]")
{
	static const struct rec_footer lie = {.frames = 1};
	struct fx_call c = {.tid = TID, .request = 1, .from = 10, .to = 20};
	struct rec_summary s;
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	fx_call_raw(&fx, &c, 0);
	fx_call_raw(&fx, &c, 3);
	REQUIRE_EQ(rec_writer_close(fx.w), 0);
	fx.w = NULL;
	REQUIRE_EQ(rec_summary_make(fx_path(&fx, REC_DIR).s, &s), 0);
	CHECK_EQ(s.seq_gaps, 2);
	CHECK(s.has_footer && !s.footer_fault);
	rec_summary_free(&s);
	fx_free(&fx);

	const struct rec_footer_counter *counters;
	const struct rec_index *entries;
	struct rec_footer f = lie;
	CHECK_EQ(rec_footer_parse((const uint8_t *)&f, sizeof(f) - 1, &f, &counters, &entries),
		-EBADMSG);
	f.counters = 1;
	CHECK_EQ(rec_footer_parse((const uint8_t *)&f, sizeof(f), &f, &counters, &entries),
		-EBADMSG);
	f.counters = 0;
	f.entries = 1;
	CHECK_EQ(rec_footer_parse((const uint8_t *)&f, sizeof(f), &f, &counters, &entries),
		-EBADMSG);
	f.entries = 0;
	CHECK_EQ(rec_footer_parse((const uint8_t *)&f, sizeof(f), &f, &counters, &entries), 0);
}

TEST("rec cut: the threads of a namespace are kept, and those of a process that is left out are "
     "not",
	"[record]")
{
	struct rec_cut_options late = {.from = {CUT_RELATIVE, 5000}};
	struct rec_cut_options other = {.pids = {OTHER_PID}, .pid_count = 1};
	struct rec_cut_result cut;
	struct rec_summary s;
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	fx_thread(&fx, 7, 30, 100);
	fx_span(&fx, TRACE_TENSOR_READ, 1, 7, 6000, 7000);
	fx_close_writer(&fx);
	REQUIRE_EQ(rec_cut(fx_path(&fx, REC_DIR).s, fx_path(&fx, "late").s, &late, &cut), 0);
	REQUIRE_EQ(rec_summary_make(fx_path(&fx, "late").s, &s), 0);
	CHECK_EQ(s.types[REC_THREAD].frames, 1);
	CHECK_EQ(s.damage.unknown_frames, 0);
	rec_summary_free(&s);
	REQUIRE_EQ(rec_cut(fx_path(&fx, REC_DIR).s, fx_path(&fx, "other").s, &other, &cut), 0);
	REQUIRE_EQ(rec_summary_make(fx_path(&fx, "other").s, &s), 0);
	CHECK_EQ(s.types[REC_THREAD].frames, 0);
	rec_summary_free(&s);
	fx_free(&fx);
}
