/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge_delivery_test.c - whatever the sizes of frames, the order between sources and the memory for what is
 * held back: the bytes must be the same.
 */
#include <xxhash.h>

#include "tests/shim/shim.h"
#include "tests/unit/merge_random.h"

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
		memcpy(r->data, &w, sizeof(w));
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

TEST("stream: a limit of nothing gives the same bytes as plenty, whatever is recorded", "[merge]")
{
	static const size_t limits[] = {0, 1, 20000, 60000};

	for (unsigned round = 0; round < 40; round++) {
		struct random r = {round + 100};
		struct fixture fx;
		uint64_t want = 0;

		REQUIRE(fx_open(&fx));
		put_anything(&fx, &r, 60, 60);
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
