/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ledger_test.c - the books: each stage's identity, gaps in sequence numbers, and what was blind.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "agent/agent.h"
#include "agent/output/report.h"
#include "runtime/record/blind.h"
#include "runtime/record/ledger.h"
#include "runtime/record/modules.h"
#include "tests/shim/shim.h"
#include "tests/unit/recording_fixture.h"

#define TID 100u

TEST("ledger: every counter has its row, and every stage has something that enters it", "[merge]")
{
	unsigned in = 0;

	for (uint32_t id = 1; id < REC_COUNTER_MAX; id++) {
		const struct rec_counter_info *i = rec_counter_info(id);

		REQUIRE(i && i->stage && i->name && i->text);
		in += i->kind == REC_KIND_IN;
	}
	CHECK_EQ(in, 7); /* kernel, dma, runtime, reader, recording, merge, device */
	CHECK(rec_counter_info(REC_COUNTER_NONE) == NULL);
	CHECK(rec_counter_info(REC_COUNTER_MAX) == NULL);
}

/* Three runtime records and two calls, with counters that agree. */
static void put_capture(struct fixture *fx)
{
	fx_span(fx, TRACE_TENSOR_READ, 1, TID, 1000, 2000);
	fx_record(fx, TRACE_GENERIC, TRACE_INSTANT, 2, TID, 3000);
	fx_records(fx, FX_SOURCE);
	fx_copy(fx, TID, 1100, 1200, 64);
	fx_copy(fx, TID, 1300, 1400, 64);
}

struct value {
	enum rec_counter_id id;
	uint64_t value;
};

static void put_values(struct fixture *fx, const struct value *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		fx_counter(fx, v[i].id < REC_C_RUNTIME_EMITTED ? REC_SOURCE_KERNEL : FX_SOURCE,
			v[i].id, 0, v[i].value);
}

static const struct value good[] = {
	{REC_C_RUNTIME_EMITTED, 10}, {REC_C_RUNTIME_DELIVERED, 3}, {REC_C_RUNTIME_UNREAD, 1},
	{REC_C_RUNTIME_OVERWRITTEN, 2}, {REC_C_RUNTIME_FILTERED, 1}, {REC_C_RUNTIME_SLOT_BUSY, 1},
	{REC_C_RUNTIME_NO_RING, 1}, {REC_C_RUNTIME_ABANDONED, 1}, {REC_C_KERNEL_ENTERED, 8},
	{REC_C_KERNEL_DONE, 2}, {REC_C_KERNEL_OPEN, 1}, {REC_C_KERNEL_RING_FULL, 3},
	{REC_C_KERNEL_INFLIGHT_FULL, 2}, {REC_C_KERNEL_RECEIVED, 2}, {REC_C_KERNEL_LEFT, 0},
	{REC_C_KERNEL_ARG_FAULT, 100}, /* a note: no part of the identity */
};

#define GOOD_COUNT (sizeof(good) / sizeof(*good))

TEST("ledger: what is lost is summed, what is left is not lost, and the books balance", "[merge]")
{
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	put_capture(&fx);
	put_values(&fx, good, GOOD_COUNT);
	fx_end(&fx);
	REQUIRE_EQ(fx_merge(&fx, "out", MERGE_KERNEL_HINT), 0);
	CHECK(fx.result.balanced);
	CHECK_EQ(fx.result.lost, 2 + 1 + 1 + 1 + 3 + 2);
	CHECK_EQ(fx_ledger(&fx, REC_C_RECORDING_CAPTURED), 5);
	CHECK_EQ(fx_ledger(&fx, REC_C_RECORDING_READ), 5);
	CHECK_EQ(fx_ledger(&fx, REC_C_MERGE_WRITTEN), 5);
	CHECK_EQ(fx.result.ledger[REC_C_KERNEL_ENTERED].id, REC_C_KERNEL_ENTERED);
	fx_free(&fx);
}

TEST("ledger: any single counter that is off by one unbalances the books", "[merge]")
{
	for (size_t i = 0; i < GOOD_COUNT; i++) {
		struct value v[GOOD_COUNT];
		struct fixture fx;

		memcpy(v, good, sizeof(good));
		v[i].value++;
		REQUIRE(fx_open(&fx));
		put_capture(&fx);
		put_values(&fx, v, GOOD_COUNT);
		fx_end(&fx);
		REQUIRE_EQ(fx_merge(&fx, "out", MERGE_KERNEL_HINT), 0);
		test_info("counter %s", rec_counter_info(v[i].id)->name);
		CHECK_EQ(fx.result.balanced, v[i].id == REC_C_KERNEL_ARG_FAULT);
		fx_free(&fx);
	}
}

TEST("ledger: the reader's stage is three counts, and an orderly end leaves nothing", "[merge]")
{
	static const struct {
		uint64_t done, received, left;
		bool ended, balanced;
	} cases[] = {
		{2, 2, 0, true, true},
		{3, 2, 1, false, true}, /* a recorder that died before it took the last */
		{3, 2, 1, true, false}, {3, 2, 0, false, false}, /* one that nobody has seen */
		{3, 2, 0, true, false}, {2, 2, 1, false, false},
		{2, 3, 0, false, false}, /* one that was never made */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture fx;

		test_info("case %zu", i);
		REQUIRE(fx_open(&fx));
		for (uint64_t n = 0; n < cases[i].received; n++)
			fx_copy(&fx, TID, 1000 + 100 * n, 1050 + 100 * n, 64);
		fx_counter(&fx, REC_SOURCE_KERNEL, REC_C_KERNEL_ENTERED, 0, cases[i].done);
		fx_counter(&fx, REC_SOURCE_KERNEL, REC_C_KERNEL_DONE, 0, cases[i].done);
		fx_counter(&fx, REC_SOURCE_KERNEL, REC_C_KERNEL_RECEIVED, 0, cases[i].received);
		fx_counter(&fx, REC_SOURCE_KERNEL, REC_C_KERNEL_LEFT, 0, cases[i].left);
		if (cases[i].ended)
			fx_end(&fx);
		REQUIRE_EQ(fx_merge(&fx, "out", MERGE_KERNEL_HINT), 0);
		CHECK_EQ(fx_ledger(&fx, REC_C_KERNEL_LEFT), cases[i].left);
		CHECK_EQ(fx.result.balanced, cases[i].balanced);
		fx_free(&fx);
	}
}

TEST("ledger: the newest value of each source and core counts, and they add up", "[merge]")
{
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	fx_process(&fx, FX_SOURCE + 1, 5000);
	for (uint64_t round = 1; round <= 300; round++) {
		for (uint32_t core = 0; core < 2; core++) {
			fx_counter(&fx, FX_SOURCE, REC_C_RUNTIME_EMITTED, core, round * (core + 1));
			fx_counter(&fx, FX_SOURCE, REC_C_RUNTIME_UNREAD, core, round * (core + 1));
		}
		fx_counter(&fx, FX_SOURCE + 1, REC_C_RUNTIME_EMITTED, 0, 1000 + round);
		fx_counter(&fx, FX_SOURCE + 1, REC_C_RUNTIME_UNREAD, 0, 1000 + round);
	}
	fx_counter(&fx, FX_SOURCE, (enum rec_counter_id)5000, 0, 7); /* of a newer recorder */
	fx_counter(&fx, FX_SOURCE, REC_C_MERGE_INVALID, 0, 7);	     /* the merge's own */
	fx_end(&fx);
	REQUIRE_EQ(fx_merge(&fx, "out", MERGE_KERNEL_HINT), 0);
	CHECK_EQ(fx_ledger(&fx, REC_C_RUNTIME_EMITTED), 300 + 600 + 1300);
	CHECK_EQ(fx_ledger(&fx, REC_C_MERGE_INVALID), 0);
	CHECK(fx.result.balanced);
	fx_free(&fx);
}

/* ---- sequence numbers --------------------------------------------------------------------- */

/* Calls with these sequence numbers on a CPU. */
static void put_sequence(struct fixture *fx, uint16_t cpu, const uint32_t *seq, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct fx_call c = {.tid = TID,
			.request = NEURON_IOCTL_DEVICE_BASIC_INFO,
			.from = 1000 + 10 * i,
			.to = 1005 + 10 * i,
			.cpu = cpu};

		fx_call_raw(fx, &c, seq[i]);
	}
}

static void put_kernel_counters(struct fixture *fx, uint64_t received, uint64_t ring_full)
{
	fx_counter(fx, REC_SOURCE_KERNEL, REC_C_KERNEL_ENTERED, 0, received + ring_full);
	fx_counter(fx, REC_SOURCE_KERNEL, REC_C_KERNEL_DONE, 0, received);
	fx_counter(fx, REC_SOURCE_KERNEL, REC_C_KERNEL_RECEIVED, 0, received);
	fx_counter(fx, REC_SOURCE_KERNEL, REC_C_KERNEL_RING_FULL, 0, ring_full);
}

TEST("ledger: three records missing in the middle are three gaps, counter or not", "[merge]")
{
	static const uint32_t a[] = {0, 1, 2, 6, 7}, b[] = {0, 2, 1, 3}, reader[] = {0, 5};
	struct fixture fx;

	for (uint64_t ring_full = 0; ring_full <= 3; ring_full += 3) {
		REQUIRE(fx_open(&fx));
		put_sequence(&fx, 0, a, 5);
		put_sequence(&fx, 1, b, 4);	      /* a little out of order: no gap */
		put_sequence(&fx, 0xffff, reader, 2); /* the reader's own are not BPF's */
		put_kernel_counters(&fx, 11, ring_full);
		fx_end(&fx);
		REQUIRE_EQ(fx_merge(&fx, "out", MERGE_KERNEL_HINT), 0);
		CHECK_EQ(fx.result.seq_gaps, 3);
		CHECK_EQ(fx.result.balanced, ring_full == 3);
		CHECK_EQ(fx.result.lost, ring_full);
		fx_free(&fx);
	}
}

TEST("ledger: losses before the first and over the end of 32 bits are seen too", "[merge]")
{
	static const uint32_t late[] = {4, 5};
	uint32_t wrap[6];
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	put_sequence(&fx, 3, late, 2);
	put_kernel_counters(&fx, 2, 4);
	fx_end(&fx);
	REQUIRE_EQ(fx_merge(&fx, "out", MERGE_KERNEL_HINT), 0);
	CHECK_EQ(fx.result.seq_gaps, 4);
	CHECK(fx.result.balanced);
	fx_free(&fx);

	REQUIRE(fx_open(&fx));
	for (uint32_t i = 0; i < 4; i++)
		wrap[i] = i * 0x40000000u + 0x3fffffffu; /* up to 2^32 - 1 in legal strides */
	wrap[4] = 0;
	wrap[5] = 2;
	put_sequence(&fx, 3, wrap, 6);
	fx_end(&fx);
	REQUIRE_EQ(fx_merge(&fx, "out", MERGE_KERNEL_HINT), 0);
	CHECK_EQ(fx.result.seq_gaps, (1ull << 32) + 3 - 6);
	fx_free(&fx);
}

TEST("ledger: the merge has an account of every raw record that was found, or of none too many",
	"[merge]")
{
	struct ledger g = {.value = {[REC_C_MERGE_READ] = 5}};

	CHECK(ledger_complete(&g, 5));
	CHECK(!ledger_complete(&g, 6));
	CHECK(!ledger_complete(&g, 4));
}

/* Runs `ntrace salvage -q` on the fixture in this process; what it said goes to a file. */
static int salvage(struct fixture *fx, const char *said)
{
	struct scratch_path rec = fx_path(fx, REC_DIR), out = fx_path(fx, "out");
	char *argv[] = {"salvage", "-q", rec.s, "-o", out.s, NULL};
	int keep = dup(STDERR_FILENO);
	int to = open(fx_path(fx, said).s, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	fflush(stderr);
	dup2(to, STDERR_FILENO);
	int code = cmd_salvage(5, argv);
	fflush(stderr);
	dup2(keep, STDERR_FILENO);
	close(keep);
	close(to);
	return code;
}

TEST("ledger: books that do not balance are reported of a recording without an end too", "[merge]")
{
	for (uint64_t done = 1; done <= 2; done++) {
		_cleanup_free_ char *text = NULL;
		struct fixture fx;
		size_t size;

		REQUIRE(fx_open(&fx));
		fx_copy(&fx, TID, 1000, 1050, 64);
		fx_counter(&fx, REC_SOURCE_KERNEL, REC_C_KERNEL_ENTERED, 0, done);
		fx_counter(&fx, REC_SOURCE_KERNEL, REC_C_KERNEL_DONE, 0, done);
		fx_counter(&fx, REC_SOURCE_KERNEL, REC_C_KERNEL_RECEIVED, 0, 1);
		REQUIRE_EQ(fx_close_writer(&fx), 0);
		CHECK_EQ(salvage(&fx, "said"), done == 1 ? EXIT_OK : EXIT_DATA);
		REQUIRE_EQ(file_read(fx_path(&fx, "said").s, 4096, &text, &size), 0);
		CHECK_EQ(strstr(text, "does not balance") != NULL, done == 2);
		fx_free(&fx);
	}
}

TEST("ledger: counters that a recorder read while calls went on are not held against it", "[merge]")
{
	/* One call was recorded; entered, done and open as they were read in turn. */
	static const struct {
		uint64_t entered, done, open;
	} read[] = {{2, 1, 0}, {1, 1, 1}, {3, 1, 1}, {0, 1, 0}};

	for (size_t i = 0; i < sizeof(read) / sizeof(*read); i++) {
		struct fixture fx;

		REQUIRE(fx_open(&fx));
		fx_copy(&fx, TID, 1000, 1050, 64);
		fx_counter(&fx, REC_SOURCE_KERNEL, REC_C_KERNEL_ENTERED, 0, read[i].entered);
		fx_counter(&fx, REC_SOURCE_KERNEL, REC_C_KERNEL_DONE, 0, read[i].done);
		fx_counter(&fx, REC_SOURCE_KERNEL, REC_C_KERNEL_OPEN, 0, read[i].open);
		fx_counter(&fx, REC_SOURCE_KERNEL, REC_C_KERNEL_RECEIVED, 0, 1);
		REQUIRE_EQ(fx_merge(&fx, "out", MERGE_KERNEL_HINT), 0);
		CHECK(fx.result.balanced);
		fx_free(&fx);
	}
}

/* Frames of rows whose last row is cut. */
TEST("ledger: what is left behind the last whole row of a frame is one invalid record", "[merge]")
{
	static const struct {
		enum rec_type type;
		uint16_t source;
		size_t head, row;
	} frames[] = {{REC_COUNTERS, FX_SOURCE, 0, sizeof(struct rec_counter)},
		{REC_CPU, REC_SOURCE_RECORDER, 0, sizeof(struct sampler_cpu)},
		{REC_THREAD, FX_SOURCE, 0, sizeof(struct rec_thread)},
		{REC_RUNTIME, FX_SOURCE, sizeof(struct rec_runtime), sizeof(struct trace_record)}};
	static const uint8_t zeros[512];

	for (size_t i = 0; i < sizeof(frames) / sizeof(*frames); i++)
		for (unsigned left = 0; left < 2; left++) {
			struct fixture fx;

			test_info("frame type %d, %u bytes behind", frames[i].type, left);
			REQUIRE(fx_open(&fx));
			fx_frame(&fx, frames[i].type, frames[i].source, zeros,
				frames[i].head + frames[i].row + left);
			fx_copy(&fx, TID, 1000, 1050, 64);
			REQUIRE_EQ(fx_merge(&fx, "out", MERGE_KERNEL_HINT), 0);
			/* A runtime's record of zeros is one itself. */
			CHECK_EQ(fx_ledger(&fx, REC_C_MERGE_INVALID),
				left + (frames[i].type == REC_RUNTIME));
			CHECK(fx.result.balanced);
			fx_free(&fx);
		}
}

/* ---- damage ------------------------------------------------------------------------------- */

TEST("ledger: records in a damaged frame are counted as lost there", "[merge]")
{
	struct fixture fx;
	struct scratch_path path;
	_cleanup_free_ char *data = NULL;
	size_t size;

	REQUIRE(fx_open(&fx));
	fx_span(&fx, TRACE_TENSOR_READ, 1, TID, 1000, 2000);
	uint64_t at = rec_writer_bytes(fx.w);
	fx_span(&fx, TRACE_TENSOR_READ, 3, TID, 3000, 4000);
	uint64_t end = rec_writer_bytes(fx.w);
	fx_counter(&fx, FX_SOURCE, REC_C_RUNTIME_EMITTED, 0, 4);
	fx_counter(&fx, FX_SOURCE, REC_C_RUNTIME_DELIVERED, 0, 4);
	fx_end(&fx);
	REQUIRE_EQ(fx_close_writer(&fx), 0);
	path = fx_path(&fx, REC_DIR "/segment-000000.ntrec");
	REQUIRE_EQ(file_read(path.s, 1 << 20, &data, &size), 0);
	data[at + 60] ^= 1;
	_cleanup_close_ int fd = open(path.s, O_WRONLY | O_TRUNC);
	REQUIRE(fd >= 0 && file_write_all(fd, data, size) == 0);
	REQUIRE(fx_merge_one(&fx));
	CHECK_EQ(fx.trace.count, 2);
	CHECK_EQ(fx.result.damage.bad_frames, 1);
	CHECK_EQ(fx.result.damage.skipped_bytes, end - at);
	CHECK_EQ(fx_ledger(&fx, REC_C_RECORDING_DAMAGED), 2);
	CHECK_EQ(fx.result.lost, 2);
	CHECK(fx.result.balanced);
	fx_free(&fx);
}

TEST("ledger: a recorder that died between counters and records is not accused", "[merge]")
{
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	fx_counter(&fx, FX_SOURCE, REC_C_RUNTIME_EMITTED, 0, 1);
	fx_counter(&fx, FX_SOURCE, REC_C_RUNTIME_DELIVERED, 0, 1);
	put_capture(&fx);
	REQUIRE_EQ(fx_merge(&fx, "out", MERGE_KERNEL_HINT), 0);
	CHECK(fx.result.balanced);
	CHECK(!fx.result.ended);
	CHECK_EQ(fx_ledger(&fx, REC_C_RECORDING_CAPTURED), 5);
	fx_free(&fx);
}

TEST("ledger: a record too many in a recording that ended unbalances the books", "[merge]")
{
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	fx_counter(&fx, FX_SOURCE, REC_C_RUNTIME_EMITTED, 0, 2);
	fx_counter(&fx, FX_SOURCE, REC_C_RUNTIME_DELIVERED, 0, 2);
	fx_span(&fx, TRACE_TENSOR_READ, 1, TID, 1000, 2000);
	fx_span(&fx, TRACE_TENSOR_READ, 3, TID, 3000, 4000);
	fx_end(&fx);
	REQUIRE_EQ(fx_merge(&fx, "out", MERGE_KERNEL_HINT), 0);
	CHECK(!fx.result.balanced);
	fx_free(&fx);
}

/* ---- blind -------------------------------------------------------------------------------- */

static bool is_blind(const struct fixture *fx, const char *what)
{
	for (uint32_t i = 0; i < fx->result.blind_count; i++)
		if (strstr(fx->result.blind[i], what))
			return true;
	return false;
}

TEST("blind: what system-call hooks cannot see is said, with numbers", "[merge]")
{
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	fx_span(&fx, TRACE_DEVICE_EXEC, 1, 0, 1000, 2000);
	fx_span(&fx, TRACE_DEVICE_EXEC, 3, 0, 3000, 4000);
	fx_end(&fx);
	REQUIRE_EQ(fx_merge(&fx, "out", MERGE_KERNEL_HINT), 0);
	CHECK(is_blind(&fx, "doorbells"));
	CHECK(is_blind(&fx, "DMA that devices start"));
	CHECK(is_blind(&fx, "2 device runs"));
	CHECK(is_blind(&fx, "other than the command"));
	CHECK(!is_blind(&fx, "died"));
	CHECK(!is_blind(&fx, "registry"));
	CHECK(!is_blind(&fx, "no kernel hook"));
	fx_free(&fx);
}

TEST("blind: of a device that nothing used or ran on no insides are missing", "[merge]")
{
	const struct rec_module driver = {.generation = 1, .loaded = 1};
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	fx_end(&fx);
	REQUIRE_EQ(fx_merge(&fx, "out", MERGE_KERNEL_HINT), 0);
	REQUIRE_EQ(fx.result.blind_count, 1);
	CHECK(is_blind(&fx, "no device was used by the command and its children"));
	fx_free(&fx);

	/* But nobody can say that of children that were not followed, or of a driver that came meanwhile. */
	REQUIRE(fx_open(&fx));
	fx_counter(&fx, REC_SOURCE_KERNEL, REC_C_KERNEL_UNTRACKED, 0, 168);
	fx_frame(&fx, REC_MODULE, REC_SOURCE_RECORDER, &driver, sizeof(driver));
	fx_end(&fx);
	REQUIRE_EQ(fx_merge(&fx, "out", MERGE_KERNEL_HINT), 0);
	CHECK(is_blind(&fx, "driver calls of 168 processes that could not be followed"));
	CHECK(is_blind(&fx, "loaded meanwhile"));
	CHECK_EQ(report_missing(&fx.result), 168);
	fx_free(&fx);

	REQUIRE(fx_open(&fx));
	fx_span(&fx, TRACE_TENSOR_WRITE, 1, 0, 1000, 2000);
	fx_end(&fx);
	REQUIRE_EQ(fx_merge(&fx, "out", MERGE_KERNEL_HINT), 0);
	CHECK(is_blind(&fx, "doorbells"));
	CHECK(!is_blind(&fx, "no device was used"));
	CHECK(!is_blind(&fx, "inside of"));
	fx_free(&fx);
}

TEST("blind: what a foreign runtime started is not known, so its insides are missing", "[merge]")
{
	struct fixture fx;

	REQUIRE(fx_open_bare(&fx));
	fx_clock(&fx, 100, 0);
	fx_copy(&fx, 7, 1000, 2000, 64);
	fx_end(&fx);
	REQUIRE_EQ(fx_merge(&fx, "out", MERGE_KERNEL_HINT), 0);
	CHECK(is_blind(&fx, "inside of the device"));
	CHECK(is_blind(&fx, "no process announced"));
	fx_free(&fx);
}

TEST("blind: no hooks, no runtime, no end, no header, other tables", "[merge]")
{
	static const char *const hooks[] = {"h", NULL};
	struct rec_header_info bare = {.producer = "p"};
	struct rec_header_info foreign = {.hooks = hooks, .registry_hash = 1, .ioctl_hash = 2};
	struct fixture fx;

	REQUIRE(fx_open_bare(&fx));
	fx_header(&fx, &bare);
	fx_clock(&fx, 100, 0);
	REQUIRE_EQ(fx_merge(&fx, "out", MERGE_KERNEL_HINT), 0);
	CHECK(is_blind(&fx, "no kernel hook"));
	CHECK(is_blind(&fx, "no process announced"));
	CHECK(is_blind(&fx, "recorder was killed"));
	fx_free(&fx);

	REQUIRE(fx_open_bare(&fx));
	fx_header(&fx, &foreign);
	fx_clock(&fx, 100, 0);
	REQUIRE_EQ(fx_merge(&fx, "out", MERGE_KERNEL_HINT), 0);
	CHECK(is_blind(&fx, "another event registry"));
	CHECK(is_blind(&fx, "another request table"));
	fx_free(&fx);

	REQUIRE(fx_open_bare(&fx));
	fx_clock(&fx, 100, 0);
	REQUIRE_EQ(fx_merge(&fx, "out", MERGE_KERNEL_HINT), 0);
	CHECK(is_blind(&fx, "header is lost"));
	fx_free(&fx);
}

TEST("ledger: a dead recorder's counters catch up with the records that were found", "[merge]")
{
	static const struct value stale[] = {{REC_C_KERNEL_ENTERED, 2}, {REC_C_KERNEL_DONE, 1},
		{REC_C_KERNEL_OPEN, 1}, {REC_C_KERNEL_RECEIVED, 1}, {REC_C_RUNTIME_EMITTED, 2},
		{REC_C_RUNTIME_DELIVERED, 1}, {REC_C_RUNTIME_OVERWRITTEN, 1}};
	static const struct value want[] = {{REC_C_KERNEL_ENTERED, 3}, {REC_C_KERNEL_DONE, 2},
		{REC_C_KERNEL_RECEIVED, 2}, {REC_C_RUNTIME_EMITTED, 4},
		{REC_C_RUNTIME_DELIVERED, 3}, {REC_C_RECORDING_READ, 5},
		{REC_C_RECORDING_CAPTURED, 5}};
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	put_values(&fx, stale, sizeof(stale) / sizeof(*stale));
	put_capture(&fx);
	REQUIRE_EQ(fx_merge(&fx, "out", MERGE_KERNEL_HINT), 0);
	for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++) {
		test_info("%s", rec_counter_info(want[i].id)->name);
		CHECK_EQ(fx.result.ledger[want[i].id].value, want[i].value);
	}
	CHECK(fx.result.balanced);
	CHECK(!fx.result.ended);
	fx_free(&fx);
}

TEST("blind: all that can be blind at once has its line, and none is cut off", "[merge]")
{
	struct rec_header_info foreign = {.registry_hash = 1, .ioctl_hash = 2};
	static const char *const hooks[] = {"h", NULL};
	char lines[BLIND_LINES][BLIND_BYTES];
	struct session s = {.has_header = true, .process_count = 1, .foreign = UINT64_MAX};
	struct session_counter counters[] = {{.id = REC_C_AGENT_REFUSED, .value = UINT64_MAX},
		{.id = REC_C_AGENT_FAILED, .value = UINT64_MAX},
		{.id = REC_C_AGENT_LEFT_RUNNING, .value = UINT64_MAX}};

	foreign.hooks = hooks;
	s.header.info = foreign;
	s.counters = counters;
	s.counter_count = 3;
	uint32_t count = blind_lines(&s, UINT64_MAX, lines);
	CHECK_EQ(count, 12);
	for (uint32_t i = 0; i < count; i++) {
		test_info("%s", lines[i]);
		CHECK(strlen(lines[i]) > 10 && strlen(lines[i]) < BLIND_BYTES - 1);
	}
	CHECK(strstr(lines[count - 1], "another request table") != NULL);
}
