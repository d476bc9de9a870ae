/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge_stream_test.c - the merge as a stream: watermarks, late records, what is held back and what
 * goes to the temporary file.  Whatever happens between sources, the bytes must be the same.
 */
#include <xxhash.h>

#include "runtime/record/map64.h"
#include "tests/shim/shim.h"
#include "tests/unit/recording_fixture.h"

#define TID 100u
#define REQUEST_COPY NEURON_IOCTL_MEM_BUF_COPY64

struct random {
	uint64_t state;
};

static uint32_t next(struct random *r, uint32_t limit)
{
	r->state = r->state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(r->state >> 33) % limit;
}

static void put_u64(struct trace_record *r, size_t offset, uint64_t v)
{
	memcpy(r->data + offset, &v, sizeof(v));
}

static const struct ntrace_event_view *by_hint(
	const struct fixture *fx, const char *hint, uint32_t phase, unsigned skip)
{
	static const struct ntrace_event_view none;

	for (size_t i = 0; i < fx->trace.count; i++)
		if (fx->trace.events[i].phase == phase &&
			pb_str_is(fx->trace.events[i].hint, hint) && skip-- == 0)
			return &fx->trace.events[i];
	return &none;
}

/* The merged file is there and sound, with so many open spans. */
static bool merged(struct fixture *fx, size_t open)
{
	size_t found = 0;

	if (!fx_merge_one(fx)) {
		test_info("merge: %s", fx->error ? fx->error : "?");
		return false;
	}
	const char *fault = trace_file_fault(&fx->trace, &found);
	test_info("fault: %s, open %zu", fault, found);
	return !*fault && found == open && fx->result.balanced;
}

/* Both sources and the hooks have said everything before a time. */
static void mark_all(struct fixture *fx, uint64_t at)
{
	fx_watermark(fx, FX_SOURCE, at);
	fx_watermark(fx, REC_SOURCE_KERNEL, at);
}

/* ---- late records ------------------------------------------------------------------------- */

#define MS 1000000u
#define RINGS 4u
#define PER_RING 500u

struct late_record {
	uint64_t time, arrives;
	uint32_t core;
};

static int by_arrival(const void *a, const void *b)
{
	const struct late_record *x = a, *y = b;

	return x->arrives < y->arrives ? -1 : x->arrives > y->arrives;
}

TEST("stream: four rings, lateness 200 ms against a watermark of 100 ms: late ones are counted, "
     "moved "
     "and say so",
	"[merge]")
{
	struct late_record list[RINGS * PER_RING];
	struct random r = {3};
	struct fixture fx;
	uint64_t mark = 0, late = 0, late_ns = 0, found = 0, found_ns = 0;
	size_t open;

	for (unsigned i = 0; i < RINGS * PER_RING; i++) {
		uint64_t time = MS + (uint64_t)(i / RINGS) * 2 * MS + i;

		list[i] = (struct late_record){time, time + next(&r, 200 * MS), i % RINGS};
	}
	qsort(list, RINGS * PER_RING, sizeof(*list), by_arrival);
	REQUIRE(fx_open(&fx));
	for (unsigned i = 0; i < RINGS * PER_RING; i++) {
		struct trace_record *rec =
			fx_record(&fx, TRACE_TENSOR_READ, TRACE_INSTANT, i + 1, TID, list[i].time);

		rec->nc_idx = list[i].core;
		put_u64(rec, 0, list[i].time);
		if (list[i].time < mark) {
			late++;
			late_ns += mark - list[i].time;
		}
		if (i % 16 == 15) { /* a drain */
			fx_records(&fx, FX_SOURCE);
			mark = list[i].arrives > 100 * MS ? list[i].arrives - 100 * MS : 0;
			fx_watermark(&fx, FX_SOURCE, mark);
		}
	}
	fx_records(&fx, FX_SOURCE);
	REQUIRE(fx_merge_one(&fx));
	CHECK_STR(trace_file_fault(&fx.trace, &open), "");
	CHECK_EQ(fx.trace.count, RINGS * PER_RING);
	for (size_t i = 0; i < fx.trace.count; i++) {
		const struct ntrace_event_view *e = &fx.trace.events[i];
		long long moved = event_attr_number(e, "late_ns");

		found += moved > 0;
		found_ns += moved > 0 ? (uint64_t)moved : 0;
		CHECK_EQ(e->timestamp - (moved > 0 ? (uint64_t)moved : 0),
			FX_EPOCH + (uint64_t)event_attr_number(e, "tensor_id"));
	}
	CHECK(late > 100);
	CHECK_EQ(found, late);
	CHECK_EQ(found_ns, late_ns);
	CHECK_EQ(fx_ledger(&fx, REC_C_MERGE_LATE), late);
	CHECK_EQ(fx_ledger(&fx, REC_C_MERGE_LATE_NS), late_ns);
	CHECK(fx.result.balanced);
	fx_free(&fx);
}

TEST("stream: a late start takes its stop along, and the duration is that of what is written",
	"[merge]")
{
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	fx_span(&fx, TRACE_EXECUTE_API, 1, TID, 1000, 9000);
	fx_watermark(&fx, FX_SOURCE, 5000);
	fx_span(&fx, TRACE_TENSOR_READ, 2, TID, 3000, 4000); /* all of it too late */
	fx_span(&fx, TRACE_TENSOR_READ, 3, TID, 4500, 6000); /* its start */
	REQUIRE(merged(&fx, 0));
	const struct ntrace_event_view *a = trace_file_find(&fx.trace, 2, PHASE_STOP);
	const struct ntrace_event_view *b = trace_file_find(&fx.trace, 3, PHASE_STOP);
	REQUIRE(a && b);
	CHECK_EQ(a->timestamp, FX_EPOCH + 5000);
	CHECK_EQ(a->duration, 0);
	CHECK_STR(event_attr(a, "late_ns"), "1000");
	CHECK_STR(event_attr(trace_file_find(&fx.trace, 2, PHASE_START), "late_ns"), "2000");
	CHECK_EQ(b->duration, 1000);
	CHECK_STR(event_attr(b, "late_ns"), "");
	CHECK_STR(event_attr(trace_file_find(&fx.trace, 3, PHASE_START), "late_ns"), "500");
	CHECK_EQ(fx_parent(&fx, 2), 3); /* without extent: after the start of what goes on */
	CHECK_EQ(fx_parent(&fx, 3), 1);
	CHECK_EQ(fx_ledger(&fx, REC_C_MERGE_LATE), 3);
	fx_free(&fx);
}

/* ---- delivery ----------------------------------------------------------------------------- */

/* Something of everything from two runtimes and the hooks, in windows of 10 us, with a watermark behind
 * each.  `how` decides frame boundaries and how the sources lie between each other. */
static void put_window(struct fixture *fx, unsigned source, uint64_t w, struct random *how)
{
	uint64_t t = 1000 + w * 10000, id = w * 100 + 1;
	static const enum trace_type types[] = {TRACE_EXECUTE_API, TRACE_MODEL_SUBMIT,
		TRACE_EXEC_WAIT, TRACE_TENSOR_READ, TRACE_GENERIC};

	if (source == 2) {
		for (unsigned i = 0; i < 4; i++)
			fx_copy(fx, TID + i % 2, t + i * 1000, t + i * 1000 + 900, 64);
		fx_watermark(fx, REC_SOURCE_KERNEL, t + 10000);
		return;
	}
	for (unsigned i = 0; i < 5; i++) {
		struct trace_record *r =
			fx_record(fx, types[i], TRACE_START, id + i, TID + source, t + i * 100);
		put_u64(r, 0, w);
		if (next(how, 3) == 0)
			fx_records(fx, (uint16_t)(FX_SOURCE + source));
		/* Every third span goes on into the next window; some never end. */
		if ((w + i) % 3)
			fx_record(
				fx, types[i], TRACE_STOP, id + i, TID + source, t + 9000 - i * 100);
		else if (w && (w + i) % 7)
			fx_record(fx, types[i], TRACE_STOP, id + i - 100, TID + source,
				t + 9500 - i * 100);
	}
	struct trace_record *r = fx_record(fx, TRACE_DEVICE_EXEC, TRACE_START, id + 50, 0, t + 150);
	uint32_t exec_id = (uint32_t)w;
	memcpy(r->data + 4, &exec_id, sizeof(exec_id));
	fx_record(fx, TRACE_DEVICE_EXEC, TRACE_STOP, id + 50, 0, t + 8000);
	fx_records(fx, (uint16_t)(FX_SOURCE + source));
	fx_watermark(fx, (uint16_t)(FX_SOURCE + source), t + 10000);
}

static uint64_t hash_file(const char *path)
{
	char *data = NULL;
	size_t size = 0;
	uint64_t hash = file_read(path, 1u << 30, &data, &size) == 0 ? XXH3_64bits(data, size) : 0;

	free(data);
	return hash;
}

static uint64_t hash_output(const struct fixture *fx, const char *out, uint32_t pid)
{
	char path[PATH_MAX + 64];

	snprintf(path, sizeof(path), "%s/%s/i-0123_pid_%u/ntrace.pb", fx->dir.dir, out, pid);
	return hash_file(path);
}

#define WINDOWS 40u

static bool put_windows(struct fixture *fx, struct random *how)
{
	uint64_t at[3] = {0};
	unsigned left = 3 * WINDOWS;

	if (!fx_open(fx))
		return false;
	fx_process(fx, REC_SOURCE_KERNEL, FX_PID);
	fx_process(fx, FX_SOURCE + 1, 5000);
	while (left) {
		unsigned source = next(how, 3);

		if (at[source] == WINDOWS)
			continue;
		put_window(fx, source, at[source]++, how);
		left--;
	}
	return true;
}

TEST("stream: neither frame boundaries nor the order between sources change a byte", "[merge]")
{
	uint64_t want[2] = {0};

	for (unsigned round = 0; round < 12; round++) {
		struct random how = {round};
		struct fixture fx;

		REQUIRE(put_windows(&fx, &how));
		/* Every other round with so little memory that all goes through the file. */
		fx.held_bytes = round % 2 ? 1 : 0;
		REQUIRE_EQ(fx_merge(&fx, "out", MERGE_KERNEL_HINT), 0);
		test_info("round %u, %llu spilled", round, (unsigned long long)fx.result.spilled);
		CHECK_EQ(fx.result.spilled > 0, round % 2 == 1);
		CHECK_EQ(fx_ledger(&fx, REC_C_MERGE_LATE), 0);
		CHECK(fx.result.balanced);
		for (unsigned i = 0; i < 2; i++) {
			uint64_t hash = hash_output(&fx, "out", i ? 5000 : FX_PID);

			want[i] = round ? want[i] : hash;
			CHECK(hash != 0 && hash == want[i]);
		}
		CHECK(fx.result.outputs[0].open_spans > 0);
		fx_free(&fx);
	}
}

/* Any records, without watermarks. */
static void put_anything(struct fixture *fx, struct random *r)
{
	for (unsigned i = 0; i < 240; i++) {
		struct trace_record *rec =
			fx_record(fx, (enum trace_type)next(r, 30), (enum trace_phase)next(r, 3),
				1 + next(r, 160), TID + next(r, 2), 1000 + next(r, 60));

		rec->nc_idx = next(r, 5) ? next(r, 3) : TRACE_NC_UNKNOWN;
		rec->id = next(r, 50);
	}
	fx_records(fx, FX_SOURCE);
	for (unsigned i = 0; i < 60; i++) {
		uint64_t from = 1000 + next(r, 60);
		struct fx_call c = {.tid = TID + next(r, 2),
			.request = REQUEST_COPY,
			.from = from,
			.to = from + next(r, 8),
			.open = next(r, 3) == 0,
			.nargs = 4,
			.args = {1, 100, 0, 1}};

		fx_call(fx, &c);
	}
}

TEST("stream: a limit of nothing gives the same bytes as plenty, whatever is recorded", "[merge]")
{
	static const size_t limits[] = {0, 1, 20000, 60000};

	for (unsigned round = 0; round < 40; round++) {
		struct random r = {round + 100};
		struct fixture fx;
		uint64_t want = 0;

		REQUIRE(fx_open(&fx));
		put_anything(&fx, &r);
		test_info("round %u", round);
		for (unsigned i = 0; i < 4; i++) {
			char out[16];

			snprintf(out, sizeof(out), "out%u", i);
			fx.held_bytes = limits[i];
			REQUIRE_EQ(fx_merge(&fx, out, MERGE_KERNEL_HINT), 0);
			CHECK_EQ(fx.result.spilled > 0, i > 0);
			uint64_t hash = hash_output(&fx, out, FX_PID);
			want = i ? want : hash;
			CHECK(hash != 0 && hash == want);
			CHECK(fx.result.balanced);
		}
		fx_free(&fx);
	}
}

TEST("stream: the temporary file leaves nothing behind", "[merge]")
{
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	for (uint64_t i = 0; i < 100; i++)
		fx_span(&fx, TRACE_TENSOR_READ, i + 1, TID, 1000 + 100 * i, 1050 + 100 * i);
	fx.held_bytes = 1;
	REQUIRE_EQ(fx_merge(&fx, "out", MERGE_KERNEL_HINT), 0);
	CHECK_EQ(fx.result.spilled, 200);
	CHECK_EQ(scratch_entries(fx_path(&fx, "out").s), 1);
	CHECK_EQ(scratch_entries(fx_path(&fx, "out/i-0123_pid_4711").s), 4);
	fx_free(&fx);
}

TEST("stream: a stop that is drained before its start finds it until the watermark has passed",
	"[merge]")
{
	struct fixture fx;

	for (int early = 0; early < 2; early++) {
		REQUIRE(fx_open(&fx));
		struct trace_record *r = fx_record(&fx, TRACE_MODEL_LOAD, TRACE_STOP, 1, TID, 2000);
		r->nc_idx = 2; /* of another ring */
		fx_records(&fx, FX_SOURCE);
		if (early)
			fx_watermark(&fx, FX_SOURCE, 2001);
		r = fx_record(&fx, TRACE_MODEL_LOAD, TRACE_START, 1, TID, 1000);
		r->nc_idx = TRACE_NC_UNKNOWN;
		fx_records(&fx, FX_SOURCE);
		REQUIRE(merged(&fx, early ? 1 : 0));
		CHECK_EQ(fx_ledger(&fx, REC_C_MERGE_START_LOST), early);
		CHECK_EQ(fx_ledger(&fx, REC_C_MERGE_LATE), early);
		fx_free(&fx);
	}
}

/* ---- calls that are announced ------------------------------------------------------------- */

static struct fx_call copy_call(uint64_t from, uint64_t to, bool open)
{
	return (struct fx_call){.tid = TID,
		.request = REQUEST_COPY,
		.from = from,
		.to = to,
		.open = open,
		.nargs = 4,
		.args = {77, 4096, 0, 1}};
}

TEST("stream: a call that was announced is written before it ends, with its arguments, and its end "
     "joins "
     "it",
	"[merge]")
{
	struct fixture fx;
	struct fx_call c = copy_call(2000, 0, true);

	REQUIRE(fx_open(&fx));
	fx_record(&fx, TRACE_TENSOR_WRITE, TRACE_START, 1, TID, 1000);
	fx_records(&fx, FX_SOURCE);
	fx_call(&fx, &c);
	mark_all(&fx, 5000); /* the call does not hold it */
	fx_span(&fx, TRACE_TENSOR_READ, 2, TID + 1, 6000, 7000);
	mark_all(&fx, 8000);
	c = copy_call(2000, 9000, false);
	fx_call(&fx, &c);
	fx_record(&fx, TRACE_TENSOR_WRITE, TRACE_STOP, 1, TID, 9500);
	fx_records(&fx, FX_SOURCE);
	mark_all(&fx, 10000);
	REQUIRE(merged(&fx, 0));
	const struct ntrace_event_view *a = by_hint(&fx, "MEM_BUF_COPY64", PHASE_START, 0);
	const struct ntrace_event_view *b = by_hint(&fx, "MEM_BUF_COPY64", PHASE_STOP, 0);
	CHECK_EQ(a->timestamp, FX_EPOCH + 2000);
	CHECK_STR(event_attr(a, "bytes"), "4096");
	CHECK_EQ(b->id, a->id);
	CHECK_EQ(b->duration, 7000);
	CHECK_EQ(b->parent_id, 1);
	CHECK_STR(event_attr(b, "late_ns"), "");
	CHECK_STR(
		event_attr(trace_file_find(&fx.trace, 1, PHASE_STOP), "driver.dma_bytes"), "4096");
	CHECK_EQ(fx_ledger(&fx, REC_C_MERGE_ANNOUNCED), 1);
	CHECK_EQ(fx_ledger(&fx, REC_C_MERGE_WRITTEN), 5);
	CHECK_EQ(fx_ledger(&fx, REC_C_MERGE_LATE), 0);
	CHECK_EQ(fx_ledger(&fx, REC_C_MERGE_EXIT_MISSED), 0);
	fx_free(&fx);
}

TEST("stream: entered, entered and left on one thread: the first call stays open and is "
     "exit-missed",
	"[merge]")
{
	struct fixture fx;
	struct fx_call first = copy_call(1000, 0, true), second = copy_call(2000, 3000, false);

	for (int marks = 0; marks < 2; marks++) {
		REQUIRE(fx_open(&fx));
		fx_call(&fx, &first);
		if (marks)
			mark_all(&fx, 1500);
		fx_call(&fx, &second);
		fx_span(&fx, TRACE_TENSOR_READ, 1, TID, 4000, 5000);
		REQUIRE(merged(&fx, 1));
		CHECK_EQ(fx_ledger(&fx, REC_C_MERGE_EXIT_MISSED), 1);
		CHECK_EQ(fx.result.outputs[0].kernel_spans, 1);
		CHECK_EQ(by_hint(&fx, "MEM_BUF_COPY64", PHASE_STOP, 0)->parent_id, 0);
		CHECK_EQ(fx_parent(&fx, 1), 0);
		fx_free(&fx);
	}
}

/* ---- device runs -------------------------------------------------------------------------- */

/* An nrt_execute whose device run comes when the watermark of its source would be past it. */
static void put_late_run(struct fixture *fx, bool lose)
{
	struct trace_record *r;
	uint32_t exec_id = 9;

	fx_record(fx, TRACE_EXECUTE_API, TRACE_START, 1, TID, 10000000);
	fx_record(fx, TRACE_MODEL_SUBMIT, TRACE_START, 2, TID, 10001000);
	fx_record(fx, TRACE_MODEL_SUBMIT, TRACE_STOP, 2, TID, 10002000);
	r = fx_record(fx, TRACE_EXEC_WAIT, TRACE_START, 3, TID, 10003000);
	put_u64(r, 0, exec_id);
	fx_records(fx, FX_SOURCE);
	if (lose) { /* records of the ring, the end of the execution among them */
		fx->next_id[0] += 5;
		fx_record(fx, TRACE_GENERIC, TRACE_INSTANT, 50, TID + 1, 800000000);
		fx_records(fx, FX_SOURCE);
	}
	for (uint64_t t = 100; t <= 900; t += 100)
		mark_all(fx, t * 1000000);
	fx_record(fx, TRACE_EXEC_WAIT, TRACE_STOP, 3, TID, 901000000);
	r = fx_record(fx, TRACE_DEVICE_EXEC, TRACE_START, 4, 0, 10005000);
	memcpy(r->data + 4, &exec_id, sizeof(exec_id));
	fx_record(fx, TRACE_DEVICE_EXEC, TRACE_STOP, 4, 0, 900500000);
	fx_record(fx, TRACE_EXECUTE_API, TRACE_STOP, 1, TID, 902000000);
	fx_records(fx, FX_SOURCE);
	mark_all(fx, 1000000000);
}

TEST("stream: a submit holds the watermark until its device run has come", "[merge]")
{
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	fx_process(&fx, REC_SOURCE_KERNEL, FX_PID);
	put_late_run(&fx, false);
	REQUIRE(merged(&fx, 0));
	const struct ntrace_event_view *run = trace_file_find(&fx.trace, 4, PHASE_STOP);
	REQUIRE(run != NULL);
	CHECK_EQ(run->duration, 900500000 - 10005000);
	CHECK_STR(event_attr(run, "link.id"), "2");
	CHECK_STR(event_attr(run, "link"), "exact");
	CHECK_EQ(fx_ledger(&fx, REC_C_MERGE_LATE), 0);
	fx_free(&fx);
}

TEST("stream: where records of the ring were lost a submit waits for nothing", "[merge]")
{
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	fx_process(&fx, REC_SOURCE_KERNEL, FX_PID);
	put_late_run(&fx, true);
	REQUIRE(merged(&fx, 0));
	CHECK(fx_ledger(&fx, REC_C_MERGE_LATE) > 0);
	CHECK_STR(event_attr(trace_file_find(&fx.trace, 4, PHASE_STOP), "link"), "exact");
	fx_free(&fx);
}

/* ---- threads and processes ---------------------------------------------------------------- */

TEST("stream: a thread id that is used again inherits nothing", "[merge]")
{
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	fx_span(&fx, TRACE_EXECUTE_API, 1, TID, 1000, 2000);
	fx_record(&fx, TRACE_EXECUTE_API, TRACE_START, 2, TID, 3000); /* its thread dies in it */
	fx_records(&fx, FX_SOURCE);
	mark_all(&fx, 4000);
	fx_span(&fx, TRACE_EXECUTE_API, 3, TID, 5000, 9000); /* another thread of that id */
	fx_copy(&fx, TID, 6000, 7000, 10);
	mark_all(&fx, 10000);
	REQUIRE(merged(&fx, 1));
	CHECK_EQ(fx_parent(&fx, 3), 0);
	CHECK_EQ(by_hint(&fx, "MEM_BUF_COPY64", PHASE_STOP, 0)->parent_id, 3);
	CHECK_STR(event_attr(trace_file_find(&fx.trace, 3, PHASE_STOP), "driver.ioctls"), "1");
	fx_free(&fx);
}

TEST("stream: a child after fork has its own files, and thread ids of two processes do not mix",
	"[merge]")
{
	struct fixture fx;
	struct trace_file t;
	struct fx_call child = {
		.tgid = 6000, .tid = TID, .request = REQUEST_COPY, .from = 1500, .to = 1600};

	REQUIRE(fx_open(&fx));
	fx_record(&fx, TRACE_EXECUTE_API, TRACE_START, 1, TID, 1000);
	fx_records(&fx, FX_SOURCE);
	fx_call(&fx, &child); /* while the parent is inside */
	mark_all(&fx, 2000);
	child.from = 2500;
	child.to = 2600;
	fx_call(&fx, &child);
	fx_record(&fx, TRACE_EXECUTE_API, TRACE_STOP, 1, TID, 3000);
	fx_records(&fx, FX_SOURCE);
	REQUIRE_EQ(fx_merge(&fx, "out", MERGE_KERNEL_HINT), 0);
	REQUIRE_EQ(fx.result.output_count, 2);
	CHECK_EQ(fx.result.outputs[0].pid, FX_PID);
	CHECK_EQ(fx.result.outputs[0].spans, 1);
	CHECK_EQ(fx.result.outputs[0].kernel_spans, 0);
	CHECK_EQ(fx.result.outputs[1].pid, 6000);
	CHECK_EQ(fx.result.outputs[1].kernel_spans, 2);
	CHECK(fx.result.balanced);
	REQUIRE(rename(fx_path(&fx, "out/i-0123_pid_6000").s, fx_path(&fx, "child").s) == 0);
	REQUIRE(trace_file_read(&t, fx_path(&fx, "out").s));
	REQUIRE_EQ(t.count, 2);
	CHECK_STR(event_attr(&t.events[1], "driver.ioctls"), "");
	trace_file_free(&t);
	fx_free(&fx);
}

TEST("stream: after an exec the new runtime's spans are in none of the old one's", "[merge]")
{
	struct fixture fx;
	uint64_t renewed = 1ull << 61 | 1ull << 48;

	REQUIRE(fx_open(&fx));
	fx_record(&fx, TRACE_TENSOR_READ, TRACE_START, 1, TID, 1000); /* exec from inside */
	fx_records(&fx, FX_SOURCE);
	fx_watermark(&fx, FX_SOURCE, 2000);
	fx_process(&fx, FX_SOURCE + 1, FX_PID);
	fx_record(&fx, TRACE_TENSOR_WRITE, TRACE_START, 1, TID, 3000);
	fx_record(&fx, TRACE_TENSOR_WRITE, TRACE_STOP, 1, TID, 4000);
	fx_records(&fx, FX_SOURCE + 1);
	REQUIRE(merged(&fx, 1));
	CHECK_EQ(fx_parent(&fx, renewed | 1), 0);
	CHECK(trace_file_find(&fx.trace, 1, PHASE_START) != NULL);
	fx_free(&fx);
}

TEST("stream: many processes at once, more than may have their files open", "[merge]")
{
	struct fixture fx;
	unsigned right = 0;

	REQUIRE(fx_open(&fx));
	for (uint64_t round = 0; round < 3; round++) {
		for (uint32_t i = 0; i < 200; i++) {
			struct fx_call c = {.tgid = 10000 + i,
				.tid = 10000 + i,
				.request = NEURON_IOCTL_DEVICE_BASIC_INFO,
				.from = 1000 + round * 10000 + i,
				.to = 2000 + round * 10000 + i};

			fx_call(&fx, &c);
		}
		mark_all(&fx, 10000 + round * 10000);
	}
	REQUIRE_EQ(fx_merge(&fx, "out", MERGE_KERNEL_HINT), 0);
	REQUIRE_EQ(fx.result.output_count, 200);
	for (unsigned i = 0; i < 200; i++)
		right += fx.result.outputs[i].pid == 10000 + i && fx.result.outputs[i].events == 6;
	CHECK_EQ(right, 200);
	CHECK(fx.result.balanced);
	fx_free(&fx);
}

/* ---- size --------------------------------------------------------------------------------- */

TEST("stream: a million events give the same bytes each time, with much memory and with little",
	"[merge][slow]")
{
	static const size_t limits[] = {0, 0, 4u << 20};
	struct random how = {5};
	uint64_t want = 0;
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	for (uint64_t n = 0; n < 500000 / 100; n++) {
		for (uint64_t i = 0; i < 100; i++) {
			uint64_t id = n * 100 + i + 1, t = 1000 + id * 100 + next(&how, 90);
			uint32_t tid = TID + (uint32_t)(id % 3);

			fx_record(&fx, TRACE_TENSOR_READ, TRACE_START, id, tid, t);
			fx_record(&fx, TRACE_TENSOR_READ, TRACE_STOP, id, tid,
				t + 1 + next(&how, 200));
		}
		fx_records(&fx, FX_SOURCE);
		if (n % 500 == 499) /* seldom: a tenth is held at a time */
			fx_watermark(&fx, FX_SOURCE, 1000 + n * 10000);
	}
	for (unsigned i = 0; i < 3; i++) {
		char out[16];

		snprintf(out, sizeof(out), "out%u", i);
		fx.held_bytes = limits[i];
		REQUIRE_EQ(fx_merge(&fx, out, MERGE_KERNEL_HINT), 0);
		CHECK_EQ(fx.result.outputs[0].events, 1000000);
		CHECK_EQ(fx.result.spilled > 0, i == 2);
		uint64_t hash = hash_output(&fx, out, FX_PID);
		want = i ? want : hash;
		CHECK(hash != 0 && hash == want);
	}
	fx_free(&fx);
}

TEST("map64: it finds what was put, also after removals, as a plain list does", "[merge]")
{
	struct map64 m = {0};
	uint64_t plain[64] = {0};
	struct random r = {11};

	for (unsigned i = 0; i < 20000; i++) {
		/* Keys that collide: their hashes share the high bits. */
		unsigned k = next(&r, 64);
		uint64_t key = ((uint64_t)k << 58 | k) + 1;

		if (next(&r, 2)) {
			plain[k] = next(&r, 1000) + 1;
			REQUIRE_EQ(map64_put(&m, key, plain[k]), 0);
		} else {
			CHECK_EQ(map64_remove(&m, key), plain[k] != 0);
			plain[k] = 0;
		}
		k = next(&r, 64);
		const uint64_t *found = map64_find(&m, ((uint64_t)k << 58 | k) + 1);
		CHECK_EQ(found ? *found : 0, plain[k]);
	}
	map64_free(&m);
	CHECK(map64_find(&m, 1) == NULL);
}
