/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge_hostile_test.c - recordings that break their word or are made to hurt: the merge counts what
 * it cannot place, keeps its books and its order, and needs neither more time nor more memory.
 */
#include "runtime/record/ingest.h"
#include "tests/shim/shim.h"
#include "tests/unit/recording_fixture.h"

#define TID 100u
#define REQUEST_COPY NEURON_IOCTL_MEM_BUF_COPY64

/* ---- deep stacks -------------------------------------------------------------------------- */

TEST("hostile: the end of a call that was too deep for the stack finds no missed return that is "
     "another's",
	"[merge]")
{
	struct fx_call deep = {.tid = TID, .request = REQUEST_COPY, .from = 5000, .open = true};
	struct fx_call missed = {
		.tid = TID + 1, .request = REQUEST_COPY, .from = 1000, .open = true};
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	for (unsigned i = 0; i < 256; i++)
		fx_record(&fx, TRACE_TENSOR_READ, TRACE_START, i + 1, TID, 1000 + i);
	fx_records(&fx, FX_SOURCE);
	for (unsigned i = 0; i < 256; i++)
		fx_record(&fx, TRACE_TENSOR_READ, TRACE_STOP, i + 1, TID, 9000 - i);
	fx_records(&fx, FX_SOURCE);
	fx_call(&fx, &missed);
	fx_copy(&fx, TID + 1, 2000, 3000, 64);
	fx_call(&fx, &deep);
	deep.open = false;
	deep.to = 5100;
	fx_call(&fx, &deep);
	REQUIRE(fx_merge_one(&fx));
	CHECK_EQ(fx_ledger(&fx, REC_C_MERGE_EXIT_MISSED), 1);
	CHECK_EQ(fx.result.outputs[0].open_spans, 1);
	CHECK(fx.result.balanced);
	fx_free(&fx);
}

/* ---- watermarks --------------------------------------------------------------------------- */

static void put_mark(struct fixture *fx, uint16_t source, uint64_t mark)
{
	fx_frame(fx, REC_WATERMARK, source, &mark, sizeof(mark));
}

/* A span of any runtime, as a batch of its own. */
static void put_span(struct fixture *fx, uint16_t source, uint64_t id, uint64_t from, uint64_t to)
{
	fx_record(fx, TRACE_TENSOR_READ, TRACE_START, id, TID, from);
	fx_record(fx, TRACE_TENSOR_READ, TRACE_STOP, id, TID, to);
	fx_records(fx, source);
}

TEST("hostile: a watermark that is no time is counted as invalid and moves nothing", "[merge]")
{
	static const uint64_t marks[] = {UINT64_MAX - 1, UINT64_MAX - 1000, 1ull << 63,
		4102444800000000000ull, 4102444800000000000ull - (uint64_t)FX_OFFSET};

	for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++) {
		struct fixture fx;
		size_t open;

		test_info("mark %llu", (unsigned long long)marks[i]);
		REQUIRE(fx_open(&fx));
		put_span(&fx, FX_SOURCE, 1, 100, 200);
		put_mark(&fx, FX_SOURCE, marks[i]);
		put_span(&fx, FX_SOURCE, 2, 1000, 2000);
		REQUIRE(fx_merge_one(&fx));
		CHECK_STR(trace_file_fault(&fx.trace, &open), "");
		CHECK_EQ(fx.trace.count, 4);
		CHECK_EQ(fx_ledger(&fx, REC_C_MERGE_INVALID), 1);
		CHECK_EQ(fx_ledger(&fx, REC_C_MERGE_LATE), 0);
		CHECK_EQ(trace_file_find(&fx.trace, 2, PHASE_STOP)->duration, 1000);
		CHECK(fx.result.balanced);
		fx_free(&fx);
	}
}

TEST("hostile: a record of a source that had nothing more to come is counted as invalid", "[merge]")
{
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	put_span(&fx, FX_SOURCE, 1, 1000, 2000);
	put_mark(&fx, FX_SOURCE, UINT64_MAX);
	put_span(&fx, FX_SOURCE, 2, 3000, 4000);
	put_mark(&fx, FX_SOURCE, FX_BOOT + 5000);
	REQUIRE(fx_merge_one(&fx));
	CHECK_EQ(fx.trace.count, 2);
	CHECK_EQ(fx_ledger(&fx, REC_C_MERGE_READ), 4);
	CHECK_EQ(fx_ledger(&fx, REC_C_MERGE_WRITTEN), 2);
	CHECK_EQ(fx_ledger(&fx, REC_C_MERGE_INVALID), 2);
	CHECK(fx.result.balanced);
	fx_free(&fx);
}

TEST("stream: a runtime that appears when all others have ended is written in its place", "[merge]")
{
	struct fixture fx;
	size_t open;

	REQUIRE(fx_open(&fx));
	put_span(&fx, FX_SOURCE, 1, 1000, 4000);
	fx_watermark(&fx, FX_SOURCE, 500);
	put_mark(&fx, FX_SOURCE, UINT64_MAX);
	fx_process(&fx, FX_SOURCE + 1, FX_PID);
	put_span(&fx, FX_SOURCE + 1, 1, 2000, 3000);
	put_mark(&fx, FX_SOURCE + 1, UINT64_MAX);
	REQUIRE(fx_merge_one(&fx));
	CHECK_STR(trace_file_fault(&fx.trace, &open), "");
	CHECK_EQ(open, 0);
	CHECK_EQ(fx.trace.count, 4);
	CHECK_EQ(fx_ledger(&fx, REC_C_MERGE_LATE), 0);
	CHECK_EQ(fx_ledger(&fx, REC_C_MERGE_WRITTEN), 4);
	CHECK(fx.result.balanced);
	fx_free(&fx);
}

/* ---- names and clocks --------------------------------------------------------------------- */

/* Frames of two runtimes; 'n': the first says the name of its model, 'a', 'b': a watermark of the one,
 * of the other. */
static bool merge_named(struct fixture *fx, const char *order)
{
	if (!fx_open(fx))
		return false;
	fx_process(fx, FX_SOURCE + 1, FX_PID + 1);
	struct trace_record *r = fx_record(fx, TRACE_MODEL_LOAD, TRACE_START, 5, TID, 1000);
	memcpy(r->data, &(uint64_t){77}, 8);
	memcpy(r->data + 8, &(uint64_t){77}, 8);
	r = fx_record(fx, TRACE_MODEL_LOAD, TRACE_STOP, 5, TID, 2000);
	memcpy(r->data, &(uint64_t){77}, 8);
	memcpy(r->data + 8, &(uint64_t){77}, 8);
	fx_records(fx, FX_SOURCE);
	for (; *order; order++)
		if (*order == 'n')
			fx_name(fx, 77, "resnet");
		else
			fx_watermark(fx, (uint16_t)(FX_SOURCE + (*order == 'b')), 5000);
	return fx_merge_one(fx);
}

TEST("stream: a name is that of its source's records before the next mark, whatever other sources "
     "say",
	"[merge]")
{
	static const struct {
		const char *order, *name;
	} cases[] = {{"nab", "resnet"}, {"nba", "resnet"}, {"bna", "resnet"}, {"anb", ""},
		{"abn", ""}, {"ban", ""}, {"n", "resnet"}, {"an", ""}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		unsigned named = 0;
		struct fixture fx;

		test_info("order %s", cases[i].order);
		REQUIRE(merge_named(&fx, cases[i].order));
		REQUIRE_EQ(fx.trace.count, 2);
		for (size_t k = 0; k < fx.trace.count; k++)
			named += !strcmp(event_attr(&fx.trace.events[k], "model_name"), "resnet");
		CHECK_EQ(named > 0, *cases[i].name != 0);
		fx_free(&fx);
	}
}

TEST("stream: a clock step that comes behind a watermark of its time says how late it is",
	"[merge]")
{
	for (int late = 0; late < 2; late++) {
		struct fixture fx;
		const struct ntrace_event_view *step = NULL;

		REQUIRE(fx_open(&fx));
		put_span(&fx, FX_SOURCE, 5, 1000, 2000);
		put_span(&fx, FX_SOURCE, 6, 300000, 400000);
		if (late)
			fx_watermark(&fx, FX_SOURCE, 500000);
		fx_clock(&fx, 100000, 5000000000ll);
		fx_watermark(&fx, FX_SOURCE, 500000);
		REQUIRE(fx_merge_one(&fx));
		for (size_t i = 0; i < fx.trace.count; i++)
			if (pb_str_is(fx.trace.events[i].hint, "clock_step"))
				step = &fx.trace.events[i];
		REQUIRE(step != NULL);
		CHECK_EQ(step->timestamp, FX_EPOCH + (late ? 400000 : 100000));
		CHECK_STR(event_attr(step, "late_ns"), late ? "300000" : "");
		fx_free(&fx);
	}
}

TEST("stream: clock snapshots that stand in no order give steps that never go back", "[merge]")
{
	struct fixture fx;
	size_t open;

	REQUIRE(fx_open(&fx));
	fx_clock(&fx, 50000, 5000000000ll);
	fx_clock(&fx, 20000, -5000000000ll);
	put_span(&fx, FX_SOURCE, 1, 1000, 2000);
	REQUIRE(fx_merge_one(&fx));
	CHECK_STR(trace_file_fault(&fx.trace, &open), "");
	for (size_t i = 1; i < fx.trace.count; i++)
		CHECK(fx.trace.events[i].timestamp >= fx.trace.events[i - 1].timestamp);
	CHECK_STR(event_attr(fx_by_hint(&fx, "clock_step", PHASE_INSTANT, 1), "late_ns"), "30000");
	fx_free(&fx);
}

/* ---- runtimes that do not say which process they are ---------------------------------------- */

static bool says(const struct fixture *fx, const char *text)
{
	for (uint32_t i = 0; i < fx->result.blind_count; i++)
		if (strstr(fx->result.blind[i], text))
			return true;
	return false;
}

TEST("hostile: runtimes without a PROCESS frame have ids of their own, in whatever order they come",
	"[merge]")
{
	for (uint16_t swapped = 0; swapped < 2; swapped++) {
		struct fixture fx;
		size_t open;

		REQUIRE(fx_open(&fx));
		put_span(&fx, FX_SOURCE + 1 + swapped, 1, 1000 + 4000 * swapped,
			2000 + 4000 * swapped);
		put_span(&fx, FX_SOURCE + 2 - swapped, 1, 5000 - 4000 * swapped,
			6000 - 4000 * swapped);
		REQUIRE(fx_merge_one(&fx));
		CHECK_STR(trace_file_fault(&fx.trace, &open), "");
		REQUIRE_EQ(fx.trace.count, 4);
		for (size_t i = 0; i < 4; i++)
			CHECK_EQ(fx.trace.events[i].id, 1ull << 61 | (1 + i / 2) << 48 | 1);
		CHECK_EQ(fx.result.outputs[0].pid, 0);
		CHECK(says(&fx, "2 runtimes whose PROCESS frame is lost"));
		CHECK(fx.result.balanced);
		fx_free(&fx);
	}
}

TEST("hostile: a PROCESS frame behind its runtime's records changes nothing of what they are",
	"[merge]")
{
	struct fixture fx;
	size_t open;

	REQUIRE(fx_open(&fx));
	fx_record(&fx, TRACE_TENSOR_READ, TRACE_START, 1, TID, 1000);
	fx_records(&fx, FX_SOURCE + 1);
	fx_process(&fx, FX_SOURCE + 1, FX_PID);
	fx_record(&fx, TRACE_TENSOR_READ, TRACE_STOP, 1, TID, 2000);
	fx_records(&fx, FX_SOURCE + 1);
	REQUIRE(fx_merged(&fx, 0));
	CHECK_EQ(fx.trace.events[1].id, 1ull << 61 | 1ull << 48 | 1);
	CHECK_STR(trace_file_fault(&fx.trace, &open), "");
	CHECK(says(&fx, "1 runtime whose PROCESS frame is lost"));
	fx_free(&fx);
}

/* ---- what waits --------------------------------------------------------------------------- */

#define WAITING (1u << 17) /* of a source, at most */

/* So many stops (or starts), of spans from an id on, in frames of a full batch. */
static void put_ends(struct fixture *fx, enum trace_phase phase, uint64_t first, uint64_t count)
{
	struct rec_runtime head = {0};

	for (uint64_t i = 0; i < count; i++) {
		fx_record(fx, TRACE_TENSOR_READ, phase, first + i, TID,
			1000 + 10 * (first + i) + (phase == TRACE_STOP ? 5 : 0));
		if (fx->count < 256 && i + 1 < count)
			continue;
		rec_writer_frame(fx->w, REC_RUNTIME, FX_SOURCE, &head, sizeof(head), fx->records,
			fx->count * sizeof(fx->records[0]));
		fx->count = 0;
	}
}

TEST("hostile: stops that all come before their starts find them, however many there are",
	"[merge]")
{
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	put_ends(&fx, TRACE_STOP, 1, 100000);
	put_ends(&fx, TRACE_START, 1, 100000);
	REQUIRE_EQ(fx_merge(&fx, "out", MERGE_KERNEL_HINT), 0);
	CHECK_EQ(fx.result.outputs[0].spans, 100000);
	CHECK_EQ(fx_ledger(&fx, REC_C_MERGE_START_LOST), 0);
	CHECK(fx.result.balanced);
	fx_free(&fx);
}

TEST("hostile: of more stops than may wait the older half is given up, and no record is lost",
	"[merge]")
{
	struct fixture fx;

	for (unsigned limited = 0; limited < 2; limited++) {
		REQUIRE(fx_open(&fx));
		put_ends(&fx, TRACE_STOP, 1, WAITING + 1);
		put_ends(&fx, TRACE_START, 1, WAITING + 1);
		fx.held_bytes = limited ? 1u << 20 : 0;
		REQUIRE_EQ(fx_merge(&fx, "out", MERGE_KERNEL_HINT), 0);
		CHECK_EQ(fx_ledger(&fx, REC_C_MERGE_START_LOST), WAITING / 2);
		CHECK_EQ(fx.result.outputs[0].spans, WAITING / 2 + 1);
		CHECK_EQ(fx.result.outputs[0].open_spans, WAITING / 2);
		CHECK_EQ(fx.result.outputs[0].events, 2 * (WAITING + 1));
		CHECK(fx.result.balanced);
		fx_free(&fx);
	}
}

/* ---- threads ------------------------------------------------------------------------------ */

struct front {
	struct session session;
	struct processes processes;
	struct held held;
	struct ingest in;
};

static int no_file(void *ctx)
{
	(void)ctx;
	return -ENOSPC;
}

static bool front_make(struct front *f)
{
	struct clock_snapshot s = {
		.boot_before = FX_BOOT, .boot_after = FX_BOOT, .realtime = FX_EPOCH};

	memset(f, 0, sizeof(*f));
	held_init(&f->held, 0, no_file, NULL);
	return session_init(&f->session) == 0 && clock_map_find(&f->session.clock, &s) &&
	       ingest_init(&f->in, &f->session, &f->held, &f->processes) == 0;
}

static void front_free(struct front *f)
{
	ingest_free(&f->in);
	held_free(&f->held);
	processes_free(&f->processes);
	session_free(&f->session);
}

static void front_mark(struct front *f, uint16_t source, uint64_t at)
{
	uint64_t mark = FX_BOOT + at;
	struct rec_frame frame = {.type = REC_WATERMARK, .source = source, .size = sizeof(mark)};

	CHECK_EQ(ingest_watermark(&f->in, &frame, (const uint8_t *)&mark), 0);
}

/* One end of a span. */
static void front_record(struct front *f, enum trace_phase phase, uint64_t id, uint64_t at)
{
	struct {
		struct rec_runtime head;
		struct trace_record r;
	} p = {.r = {.trace_type = TRACE_TENSOR_READ,
		       .phase = phase,
		       .tracking_id = id,
		       .thread_id = TID,
		       .timestamp_ns = FX_BOOT + at}};
	struct rec_frame frame = {.type = REC_RUNTIME, .source = FX_SOURCE, .size = sizeof(p)};

	CHECK_EQ(ingest_runtime(&f->in, &frame, (const uint8_t *)&p), 0);
}

static void front_execution(struct front *f, uint32_t tid, uint64_t at)
{
	struct {
		struct rec_runtime head;
		struct trace_record r[2];
	} p = {0};
	struct rec_frame frame = {.type = REC_RUNTIME, .source = FX_SOURCE, .size = sizeof(p)};

	for (unsigned i = 0; i < 2; i++) {
		p.r[i].trace_type = TRACE_EXECUTE_API;
		p.r[i].phase = i ? TRACE_STOP : TRACE_START;
		p.r[i].tracking_id = tid;
		p.r[i].thread_id = tid;
		p.r[i].timestamp_ns = FX_BOOT + at + 10 * i;
	}
	CHECK_EQ(ingest_runtime(&f->in, &frame, (const uint8_t *)&p), 0);
}

static void front_call(struct front *f, uint32_t tid, uint64_t at, enum nev_type type)
{
	struct nev_ioctl e = {.hdr = {.type = (uint8_t)type, .cpu = NEV_CPU_READER},
		.start_ns = FX_BOOT + at,
		.duration_ns = 10,
		.tgid = FX_PID,
		.tid = tid};
	struct rec_frame frame = {
		.type = REC_KERNEL, .source = REC_SOURCE_KERNEL, .size = sizeof(e)};

	CHECK_EQ(ingest_kernel(&f->in, &frame, (const uint8_t *)&e), 0);
}

TEST("stream: threads are forgotten when the mark has passed what they did", "[merge]")
{
	struct front f;

	for (unsigned marks = 0; marks < 2; marks++) {
		REQUIRE(front_make(&f));
		for (uint32_t tid = 1; tid <= 30000; tid++) {
			front_execution(&f, tid, tid * 100);
			front_call(&f, tid, tid * 100, NEV_IOCTL_DONE);
			if (marks && tid % 100 == 0) {
				front_mark(&f, FX_SOURCE, tid * 100);
				front_mark(&f, REC_SOURCE_KERNEL, tid * 100);
			}
		}
		/* What has just ended is known: that its call is announced says nothing new. */
		front_call(&f, 30000, 30000 * 100, NEV_IOCTL_START);
		CHECK_EQ(f.processes.list[f.processes.count - 1].announced_again, 1);
		size_t threads = submits_threads(f.in.by_number[FX_SOURCE]->submits);
		test_info("%zu threads, %zu calls", threads, f.in.last_count);
		CHECK_EQ(threads < 5000, marks == 1);
		CHECK_EQ(f.in.last_count < 5000, marks == 1);
		front_free(&f);
	}
}

TEST("hostile: marks that each pass little of what waits leave the rest where it is", "[merge]")
{
	struct ingest_source *s;
	struct front f;

	REQUIRE(front_make(&f));
	for (uint64_t i = 1; i <= 10000; i++)
		front_record(&f, TRACE_STOP, i, 1000 * i);
	s = f.in.by_number[FX_SOURCE];
	REQUIRE_EQ(s->waiting_count, 10000);
	front_mark(&f, FX_SOURCE, 100001);
	CHECK_EQ(s->waiting_count, 10000);
	CHECK_EQ(s->waiting_gone, 100);
	CHECK_EQ(f.held.count, 100);
	/* More than half: they are moved together, and still found. */
	front_mark(&f, FX_SOURCE, 6000001);
	CHECK_EQ(s->waiting_count, 4000);
	CHECK_EQ(s->waiting_gone, 0);
	CHECK_EQ(f.held.count, 6000);
	for (uint64_t i = 7000; i <= 10000; i++)
		front_record(&f, TRACE_START, i, 1000 * i - 1);
	CHECK_EQ(f.held.count, 6000 + 2 * 3001);
	front_mark(&f, FX_SOURCE, 20000000);
	CHECK_EQ(s->waiting_count, 0);
	CHECK_EQ(f.held.count, 6000 + 2 * 3001 + 999);
	front_free(&f);
}

/* ---- sources that end --------------------------------------------------------------------- */

TEST("hostile: of a source that has ended nothing is kept but that it has", "[merge]")
{
	struct front f;

	REQUIRE(front_make(&f));
	front_record(&f, TRACE_STOP, 1, 1000);
	front_mark(&f, FX_SOURCE, 500);
	front_call(&f, TID, 700, NEV_IOCTL_DONE);
	CHECK_EQ(f.in.source_count, 2);
	front_mark(&f, FX_SOURCE, UINT64_MAX - FX_BOOT);
	CHECK_EQ(f.in.source_count, 1);
	CHECK(!f.in.by_number[FX_SOURCE]->submits);
	CHECK(!f.in.by_number[FX_SOURCE]->waiting);
	CHECK(!f.in.by_number[FX_SOURCE]->newest);
	/* It holds nobody back, and what it gives all the same cannot be. */
	front_record(&f, TRACE_START, 2, 2000);
	CHECK_EQ(f.session.invalid, 1);
	CHECK_EQ(ingest_safe(&f.in), 0);
	front_mark(&f, REC_SOURCE_KERNEL, 800);
	CHECK_EQ(ingest_safe(&f.in), FX_BOOT + 800);
	front_mark(&f, REC_SOURCE_KERNEL, UINT64_MAX - FX_BOOT);
	CHECK_EQ(ingest_safe(&f.in), FX_BOOT + 800);
	CHECK_EQ(ingest_end(&f.in), 0);
	front_free(&f);
}

/* ---- tables ------------------------------------------------------------------------------- */

/* How far from its home the entry that is furthest from it stands. */
static size_t furthest(const struct map64 *m)
{
	size_t most = 0;

	for (size_t i = 0; m->bits && i <= map64_mask(m); i++) {
		size_t far = (i - map64_place(m, m->entries[i].key)) & map64_mask(m);

		if (m->entries[i].key && far > most)
			most = far;
	}
	return most;
}

/* Keys whose products with the table's factor are neighbours. */
static uint64_t neighbour(uint64_t i)
{
	uint64_t inverse =
		0x9e3779b97f4a7c15ull; /* Newton: each step doubles the bits that are right */

	for (unsigned n = 0; n < 6; n++)
		inverse *= 2 - 0x9e3779b97f4a7c15ull * inverse;
	return i * inverse;
}

TEST("map64: keys that are made for one place stand far apart, and elsewhere with another seed",
	"[merge]")
{
	size_t same = 0;

	for (uint64_t seed = 0; seed < 2; seed++) {
		struct map64 m = {.seed = seed * 0x123456789abcdefull};

		for (uint64_t i = 1; i <= 20000; i++)
			REQUIRE_EQ(map64_put(&m, neighbour(i), i), 0);
		CHECK(furthest(&m) < 200);
		for (uint64_t i = 1; i <= 20000; i++) {
			struct map64 other = {.bits = m.bits, .seed = 77};

			same += map64_place(&m, neighbour(i)) == map64_place(&other, neighbour(i));
		}
		map64_free(&m);
	}
	CHECK(same < 100);
}

TEST("hostile: what the keys of names are cannot be told without the recording's beginning",
	"[merge]")
{
	struct session a = {.seed = 1}, b = {.seed = 2};
	unsigned same = 0, next = 0;

	for (uint64_t i = 0; i < 1000; i++) {
		same += session_key(&a, i, 2) == session_key(&b, i, 2);
		next += session_key(&a, i, 2) + 2 == session_key(&a, i + 1, 2);
		CHECK(session_key(&a, i, 2) != 0);
	}
	CHECK_EQ(same, 0);
	CHECK_EQ(next, 0);
}
