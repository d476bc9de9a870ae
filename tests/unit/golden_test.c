/* SPDX-License-Identifier: Apache-2.0 */
/*
 * golden_test.c - cases that users of other tracing tools ran into, one test each; the letter is the
 * family (A losses, B clocks, C order, E containers, F broken files).
 *
 * Each is the smallest recording that shows the case.  Cases of device clocks are in
 * golden_clock_test.c.
 */
#include <fcntl.h>

#include "tests/shim/shim.h"
#include "tests/unit/recording_fixture.h"

#define TID 100u
#define MS 1000000u

/* ---- A: losses ------------------------------------------------------------------------------ */

/* Losses of five kinds whose sum must come out, and one reader that has dropped some unseen. */
static bool lose(struct fixture *fx, uint64_t dropped)
{
	static const uint64_t lost[] = {73300, 28, 606, 20, 22};

	if (!fx_open(fx))
		return false;
	fx_span(fx, TRACE_TENSOR_READ, 1, TID, 1000, 2000);
	for (uint32_t core = 0; core < 5; core++) {
		uint64_t taken = core == 0 ? 2 + dropped : 0;

		fx_counter(fx, FX_SOURCE, REC_C_RUNTIME_EMITTED, core, taken + lost[core]);
		fx_counter(fx, FX_SOURCE, REC_C_RUNTIME_DELIVERED, core, taken);
		fx_counter(fx, FX_SOURCE, REC_C_RUNTIME_OVERWRITTEN, core, lost[core]);
	}
	fx_end(fx);
	return fx_merge(fx, "out", MERGE_KERNEL_HINT) == 0;
}

TEST("golden A7: losses of five rings are one sum, and a drop behind the counters is found",
	"[golden]")
{
	struct fixture fx;

	REQUIRE(lose(&fx, 0));
	CHECK_EQ(fx_ledger(&fx, REC_C_RUNTIME_OVERWRITTEN), 73976);
	CHECK_EQ(fx.result.lost, 73976);
	CHECK(fx.result.balanced);
	fx_free(&fx);

	REQUIRE(lose(&fx, 1)); /* a reader took it and no frame has it */
	CHECK_EQ(fx_ledger(&fx, REC_C_RECORDING_CAPTURED), 3);
	CHECK_EQ(fx_ledger(&fx, REC_C_RECORDING_READ), 2);
	CHECK(!fx.result.balanced);
	fx_free(&fx);
}

TEST("golden A8: three records that vanish from the middle of a ring are three, though no counter "
     "says so",
	"[golden]")
{
	struct fixture fx;

	for (unsigned removed = 0; removed <= 3; removed += 3) {
		REQUIRE(fx_open(&fx));
		for (uint32_t i = 0; i < 20; i++) {
			struct fx_call c = {.tid = TID,
				.request = NEURON_IOCTL_DEVICE_BASIC_INFO,
				.from = 1000 + 10 * i,
				.to = 1005 + 10 * i,
				.cpu = 2};

			if (i < 8 || i >= 8 + removed)
				fx_call_raw(&fx, &c, i);
		}
		fx_end(&fx);
		REQUIRE(fx_merged(&fx, 0));
		CHECK_EQ(fx.result.outputs[0].kernel_spans, 20 - removed);
		CHECK_EQ(fx.result.seq_gaps, removed);
		CHECK_EQ(fx.result.balanced, removed == 0);
		fx_free(&fx);
	}
}

TEST("golden A15: enter, enter, exit: the first call stays open and is counted as exit-missed",
	"[golden]")
{
	struct fx_call first = {.tid = TID,
		.request = NEURON_IOCTL_MEM_BUF_COPY64,
		.from = 1000,
		.open = true,
		.cpu = 0xffff,
		.nargs = 4,
		.args = {7, 4096, 0, 1}};
	struct fx_call second = {.tid = TID,
		.request = NEURON_IOCTL_MEM_FREE,
		.from = 3000,
		.to = 3500,
		.nargs = 2,
		.args = {7}};
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	fx_span(&fx, TRACE_TENSOR_WRITE, 1, TID, 500, 9000);
	fx_call(&fx, &first);
	fx_call(&fx, &second);
	fx_counter(&fx, REC_SOURCE_KERNEL, REC_C_KERNEL_ENTERED, 0, 2);
	fx_counter(&fx, REC_SOURCE_KERNEL, REC_C_KERNEL_DONE, 0, 1);
	fx_counter(&fx, REC_SOURCE_KERNEL, REC_C_KERNEL_RECEIVED, 0, 1);
	fx_counter(&fx, REC_SOURCE_KERNEL, REC_C_KERNEL_EXIT_LOST, 0, 1);
	fx_counter(&fx, FX_SOURCE, REC_C_RUNTIME_EMITTED, 0, 2);
	fx_counter(&fx, FX_SOURCE, REC_C_RUNTIME_DELIVERED, 0, 2);
	fx_end(&fx);
	REQUIRE(fx_merged(&fx, 1));
	CHECK_EQ(fx.result.outputs[0].open_spans, 1);
	CHECK_EQ(fx_ledger(&fx, REC_C_MERGE_EXIT_MISSED), 1);
	CHECK_EQ(fx_ledger(&fx, REC_C_KERNEL_EXIT_LOST), 1);
	CHECK_EQ(fx.result.lost, 1);
	CHECK(fx.result.balanced);
	/* It began; when it ended is nobody's guess, and it contains nothing of what came later. */
	const struct ntrace_event_view *open = fx_by_hint(&fx, "MEM_BUF_COPY64", PHASE_START, 0);
	CHECK_EQ(open->timestamp, FX_EPOCH + 1000);
	CHECK_EQ(fx_by_hint(&fx, "MEM_BUF_COPY64", PHASE_STOP, 0)->timestamp, 0);
	CHECK_EQ(fx_by_hint(&fx, "MEM_FREE", PHASE_STOP, 0)->parent_id, 1);
	const struct ntrace_event_view *outer = trace_file_find(&fx.trace, 1, PHASE_STOP);
	REQUIRE(outer != NULL);
	CHECK_STR(event_attr(outer, "driver.ioctls"), "1");
	fx_free(&fx);
}

/* ---- B: clocks ------------------------------------------------------------------------------- */

static bool open_without_clock(struct fixture *fx)
{
	if (!fx_open_bare(fx))
		return false;
	fx_process(fx, FX_SOURCE, FX_PID);
	fx_span(fx, TRACE_TENSOR_READ, 1, TID, 1000, 2000);
	return true;
}

TEST("golden B1: with a snapshot every event has a time; without any it is an error, not a guess",
	"[golden]")
{
	struct fixture fx;

	REQUIRE(open_without_clock(&fx));
	CHECK_EQ(fx_merge(&fx, "out", MERGE_KERNEL_HINT), -ENODATA);
	REQUIRE(fx.error != NULL);
	CHECK(strstr(fx.error, "clock snapshot") != NULL);
	CHECK_EQ(fx.result.output_count, 0);
	CHECK_EQ(scratch_entries(fx_path(&fx, "out").s), -1);
	fx_free(&fx);
}

TEST("golden B12: a snapshot that is the last packet serves everything before it", "[golden]")
{
	struct fixture fx;

	REQUIRE(open_without_clock(&fx));
	fx_clock(&fx, 5000, 0);
	fx_end(&fx);
	REQUIRE(fx_merged(&fx, 0));
	CHECK_EQ(fx.trace.count, 2);
	CHECK_EQ(fx.trace.events[0].timestamp, FX_EPOCH + 1000);
	CHECK_EQ(fx_ledger(&fx, REC_C_MERGE_INVALID), 0);
	fx_free(&fx);
}

static bool put_step(struct fixture *fx, int64_t step)
{
	if (!fx_open(fx))
		return false;
	fx_span(fx, TRACE_EXECUTE_API, 1, TID, 1 * MS, 9 * MS);
	fx_copy(fx, TID, 2 * MS, 3 * MS, 64);
	fx_clock(fx, 5 * MS, step);
	fx_copy(fx, TID, 6 * MS, 7 * MS, 64);
	fx_span(fx, TRACE_TENSOR_READ, 3, TID + 1, 4 * MS, 8 * MS);
	fx_end(fx);
	return fx_merged(fx, 0);
}

TEST("golden B5: a step of -2 s in the middle changes neither order nor times", "[golden]")
{
	struct fixture plain, stepped;
	size_t k = 0;

	REQUIRE(put_step(&plain, 0));
	REQUIRE(put_step(&stepped, -2000000000));
	CHECK_EQ(stepped.trace.count, plain.trace.count + 1);
	for (size_t i = 0; i < stepped.trace.count; i++) {
		const struct ntrace_event_view *e = &stepped.trace.events[i];

		if (pb_str_is(e->hint, "clock_step")) {
			CHECK_EQ(e->timestamp, FX_EPOCH + 5 * MS);
			CHECK_EQ(event_attr_number(e, "new_offset_ns"), FX_OFFSET - 2000000000);
			continue;
		}
		REQUIRE(k < plain.trace.count);
		CHECK_EQ(e->timestamp, plain.trace.events[k].timestamp);
		CHECK_EQ(e->id, plain.trace.events[k].id);
		CHECK_EQ(e->duration, plain.trace.events[k++].duration);
	}
	CHECK_EQ(k, plain.trace.count);
	fx_free(&plain);
	fx_free(&stepped);
}

/* ---- C: order --------------------------------------------------------------------------------- */

/* Calls of four CPUs; several at each time. */
static bool put_rings(struct fixture *fx, unsigned rotate)
{
	if (!fx_open(fx))
		return false;
	for (unsigned n = 0; n < 4 * 50; n++) {
		/* Each CPU's ring is in order; which one is drained when is up to the reader. */
		unsigned cpu = (n / 5 + rotate) % 4, i = n / 20 * 5 + n % 5;
		struct fx_call c = {.tid = TID + cpu,
			.request = NEURON_IOCTL_MEM_FREE,
			.from = 1000 + 10 * (i / 3),
			.to = 1000 + 10 * (i / 3) + 10,
			.cpu = (uint16_t)cpu,
			.nargs = 2,
			.args = {1 + i}};

		fx_call_raw(fx, &c, i);
	}
	fx_end(fx);
	return fx_merge_one(fx);
}

TEST("golden C1: four rings in any order of delivery: by time, then CPU, then number", "[golden]")
{
	struct fixture fx[4];

	for (unsigned rotate = 0; rotate < 4; rotate++) {
		const struct ntrace_event_view *last = NULL;
		size_t open;

		REQUIRE(put_rings(&fx[rotate], rotate));
		CHECK_STR(trace_file_fault(&fx[rotate].trace, &open), "");
		CHECK_EQ(fx[rotate].trace.count, 400);
		for (size_t i = 0; i < fx[rotate].trace.count; i++) {
			const struct ntrace_event_view *e = &fx[rotate].trace.events[i];

			if (e->phase != PHASE_START)
				continue;
			CHECK(!last || e->timestamp > last->timestamp ||
				(e->timestamp == last->timestamp &&
					e->thread_id >= last->thread_id));
			CHECK_EQ(e->id, last ? last->id + 1 : (1ull << 63 | 1));
			last = e;
		}
		CHECK_EQ(fx_ledger(&fx[rotate], REC_C_MERGE_LATE), 0);
	}
	for (unsigned rotate = 1; rotate < 4; rotate++)
		for (size_t i = 0; i < 400; i++) {
			const struct ntrace_event_view *a = &fx[0].trace.events[i];
			const struct ntrace_event_view *b = &fx[rotate].trace.events[i];

			CHECK(a->id == b->id && a->timestamp == b->timestamp &&
				a->thread_id == b->thread_id && a->phase == b->phase &&
				event_attr_number(a, "handle") == event_attr_number(b, "handle"));
		}
	for (unsigned rotate = 0; rotate < 4; rotate++)
		fx_free(&fx[rotate]);
}

/* ---- E: containers ------------------------------------------------------------------------------ */

TEST("golden E3: processes are told apart by the pid that the recorder sees, and each is shown "
     "once",
	"[golden]")
{
	/* Two containers: inside, both call their thread 1 and their first span 1. */
	static const uint32_t pids[] = {5001, 5002};
	struct fixture fx;

	REQUIRE(fx_open_bare(&fx));
	fx_clock(&fx, 100, 0);
	for (unsigned i = 0; i < 2; i++) {
		uint16_t source = (uint16_t)(FX_SOURCE + i);

		fx_process(&fx, source, pids[i]);
		fx_process(&fx, source, pids[i]); /* found a second time */
		fx_record(&fx, TRACE_TENSOR_WRITE, TRACE_START, 1, 1, 1000 + i);
		fx_record(&fx, TRACE_TENSOR_WRITE, TRACE_STOP, 1, 1, 9000 + i);
		fx_records(&fx, source);
		struct fx_call c = {.tgid = pids[i],
			.tid = pids[i],
			.request = NEURON_IOCTL_MEM_FREE,
			.from = 2000,
			.to = 3000};
		fx_call(&fx, &c);
	}
	fx_end(&fx);
	REQUIRE_EQ(fx_merge(&fx, "out", MERGE_KERNEL_HINT), 0);
	REQUIRE_EQ(fx.result.output_count, 2);
	for (unsigned i = 0; i < 2; i++) {
		struct trace_file t;
		char path[PATH_MAX];
		size_t open;

		CHECK_EQ(fx.result.outputs[i].pid, pids[i]);
		snprintf(path, sizeof(path), "%s/ntrace.pb", fx.result.outputs[i].dir);
		REQUIRE(trace_file_load(&t, path));
		CHECK_STR(trace_file_fault(&t, &open), "");
		CHECK_EQ(t.count, 4);
		const struct ntrace_event_view *stop = trace_file_find(&t, 1, PHASE_STOP);
		REQUIRE(stop != NULL);
		CHECK_EQ(stop->timestamp, FX_EPOCH + 9000 + i);
		trace_file_free(&t);
	}
	fx_free(&fx);
}

/* A call of a thread of the host, in the middle of a span from `from` to `from` + 1000. */
static void call_within(struct fixture *fx, uint32_t host_tid, uint64_t from)
{
	struct fx_call c = {.tid = host_tid,
		.request = NEURON_IOCTL_MEM_FREE,
		.from = from + 200,
		.to = from + 700};

	fx_call(fx, &c);
}

/* Does the span hold so many calls, and is it written with this thread? */
static bool span_has(const struct fixture *fx, uint64_t id, uint32_t thread, long long calls)
{
	const struct ntrace_event_view *e = trace_file_find(&fx->trace, id, PHASE_STOP);

	return e && e->thread_id == thread && event_attr_number(e, "driver.ioctls") == calls;
}

TEST("golden E3: driver calls nest in the spans of their thread, which its pid namespace calls "
     "otherwise",
	"[golden]")
{
	struct fixture fx;

	/* What is 21 inside is 22 outside, and 21 outside is 2 inside. */
	REQUIRE(fx_open(&fx));
	fx_thread(&fx, 1, 20, 0);
	fx_thread(&fx, 2, 21, 0);
	fx_thread(&fx, 21, 22, 0);
	fx_span(&fx, TRACE_TENSOR_WRITE, 1, 2, 1000, 2000);
	fx_span(&fx, TRACE_TENSOR_WRITE, 2, 21, 1000, 2000);
	fx_span(&fx, TRACE_TENSOR_WRITE, 3, 1, 1000, 2000);
	call_within(&fx, 21, 1000);
	call_within(&fx, 22, 1010);
	call_within(&fx, 22, 1900); /* behind its span */
	fx_end(&fx);
	REQUIRE(fx_merged(&fx, 0));
	CHECK(span_has(&fx, 1, 21, 1));
	CHECK(span_has(&fx, 2, 22, 1));
	CHECK(span_has(&fx, 3, 20, -1));
	CHECK_EQ(fx_by_hint(&fx, "MEM_FREE", PHASE_STOP, 0)->parent_id, 1);
	CHECK_EQ(fx_by_hint(&fx, "MEM_FREE", PHASE_STOP, 1)->parent_id, 2);
	CHECK_EQ(fx_by_hint(&fx, "MEM_FREE", PHASE_STOP, 2)->parent_id, 0);
	CHECK_EQ(fx_ledger(&fx, REC_C_MERGE_FOREIGN_THREAD), 0);
	fx_free(&fx);
}

TEST("golden E3: a thread that nobody could look up is not taken for the host's thread of its "
     "number",
	"[golden]")
{
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	fx_frame(&fx, REC_THREAD, FX_SOURCE, NULL, 0);
	fx_record(&fx, TRACE_TENSOR_WRITE, TRACE_START, 1, 21, 1000);
	fx_record(&fx, TRACE_DMEM_BUF_COPYIN, TRACE_START, 2, 21, 1100);
	fx_record(&fx, TRACE_DMEM_BUF_COPYIN, TRACE_STOP, 2, 21, 1800);
	fx_record(&fx, TRACE_TENSOR_WRITE, TRACE_STOP, 1, 21, 2000);
	fx_records(&fx, FX_SOURCE);
	call_within(&fx, 21, 1000);
	fx_end(&fx);
	REQUIRE(fx_merged(&fx, 0));
	CHECK(span_has(&fx, 1, 21, -1));
	CHECK(span_has(&fx, 2, 21, -1));
	CHECK_EQ(fx_parent(&fx, 2), 1);
	CHECK_EQ(fx_by_hint(&fx, "MEM_FREE", PHASE_STOP, 0)->parent_id, 0);
	CHECK_EQ(fx_ledger(&fx, REC_C_MERGE_FOREIGN_THREAD), 4);
	CHECK(fx.result.balanced);
	bool blind = false;
	for (uint32_t i = 0; i < fx.result.blind_count; i++)
		blind |= strstr(fx.result.blind[i], "4 events of threads that ended") != NULL;
	CHECK(blind);
	fx_free(&fx);
}

TEST("golden E3: an id of the namespace that a second thread has got is two threads of the host",
	"[golden]")
{
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	fx_thread(&fx, 7, 30, 500);
	fx_thread(&fx, 7, 40, 5000);
	fx_span(&fx, TRACE_TENSOR_WRITE, 1, 7, 1000, 2000);
	fx_span(&fx, TRACE_TENSOR_WRITE, 2, 7, 6000, 7000);
	fx_span(&fx, TRACE_TENSOR_WRITE, 3, 7, 100, 400); /* a third one, before both */
	call_within(&fx, 30, 1000);
	call_within(&fx, 40, 6000);
	fx_end(&fx);
	REQUIRE(fx_merged(&fx, 0));
	CHECK(span_has(&fx, 1, 30, 1));
	CHECK(span_has(&fx, 2, 40, 1));
	CHECK(span_has(&fx, 3, 7, -1));
	CHECK_EQ(fx_ledger(&fx, REC_C_MERGE_FOREIGN_THREAD), 2);
	fx_free(&fx);
}

/* ---- F: broken files ------------------------------------------------------------------------------ */

/* Writes the first `size` bytes of a segment. */
static bool cut(const char *path, const char *data, size_t size)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_TRUNC);

	return fd >= 0 && file_write_all(fd, data, size) == 0;
}

TEST("golden F4: cut at every byte, what is before the cut is there and the rest is said to be "
     "gone",
	"[golden]")
{
	_cleanup_free_ char *data = NULL;
	uint64_t last_count = 0;
	struct fixture fx;
	size_t size = 0;

	REQUIRE(fx_open(&fx));
	uint64_t head = rec_writer_bytes(fx.w);
	for (unsigned i = 0; i < 5; i++)
		fx_span(&fx, TRACE_TENSOR_READ, 1 + i, TID, 1000 * i + 100, 1000 * i + 900);
	uint64_t records = rec_writer_bytes(fx.w);
	fx_end(&fx);
	REQUIRE_EQ(fx_close_writer(&fx), 0);
	struct scratch_path path = fx_path(&fx, REC_DIR "/segment-000000.ntrec");
	REQUIRE_EQ(file_read(path.s, 1 << 20, &data, &size), 0);
	for (size_t n = 0; n <= size; n++) {
		char out[32];

		REQUIRE(cut(path.s, data, n));
		snprintf(out, sizeof(out), "out%zu", n);
		int rc = fx_merge(&fx, out, MERGE_KERNEL_HINT);
		uint64_t count = fx.result.output_count ? fx.result.outputs[0].events : 0;

		test_info("cut at %zu of %zu: %d", n, size, rc);
		CHECK(rc == 0 || n < head);
		CHECK(count >= last_count && count % 2 == 0);
		CHECK(fx.result.ended ? n > records : n < size);
		CHECK_EQ(n < records ? count < 10 : count == 10, true);
		if (rc == 0)
			CHECK(fx.result.balanced);
		last_count = count;
		scratch_remove_tree(fx_path(&fx, out).s);
	}
	CHECK_EQ(last_count, 10);
	CHECK(!rec_damaged(&fx.result.damage));
	fx_free(&fx);
}
