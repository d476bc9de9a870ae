/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge_stream_test.c - the merge as a stream: watermarks, late records, calls that are announced, device
 * runs that are awaited, threads and processes that come and go.
 */
#include "tests/shim/shim.h"
#include "tests/unit/merge_random.h"

#define REQUEST_COPY NEURON_IOCTL_MEM_BUF_COPY64

static void put_u64(struct trace_record *r, size_t offset, uint64_t v)
{
	memcpy(r->data + offset, &v, sizeof(v));
}

/* The merged file is there and sound, and so are the books. */
static bool merged(struct fixture *fx, size_t open)
{
	return fx_merged(fx, open) && fx->result.balanced;
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

/* ---- rings that are drained one after the other --------------------------------------------- */

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
	const struct ntrace_event_view *a = fx_by_hint(&fx, "MEM_BUF_COPY64", PHASE_START, 0);
	const struct ntrace_event_view *b = fx_by_hint(&fx, "MEM_BUF_COPY64", PHASE_STOP, 0);
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
		CHECK_EQ(fx_by_hint(&fx, "MEM_BUF_COPY64", PHASE_STOP, 0)->parent_id, 0);
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
	CHECK_EQ(fx_by_hint(&fx, "MEM_BUF_COPY64", PHASE_STOP, 0)->parent_id, 3);
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
