/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cut_blocks_test.c - blocks that a cut passes over: a recording with a block for each frame gives the
 * same cut as one with a single block for all, of which none can be passed over.
 */
#include "runtime/record/rec_cut.h"
#include "tests/shim/shim.h"
#include "tests/unit/event_samples.h"
#include "tests/unit/recording_fixture.h"
#include "tests/unit/recording_pass.h"

#define SPAN_COUNT 120u
#define LENGTH 100000u /* ns */

struct world {
	struct fixture *fx;
	uint64_t state;
	bool one_block;
};

static uint64_t some(struct world *w, uint64_t below)
{
	return sample_random(&w->state) % below;
}

static void put(struct world *w, enum rec_type type, uint16_t source, uint64_t at, const void *data,
	size_t size)
{
	rec_writer_frame_at(w->fx->w, type, source, FX_BOOT + at, data, size, NULL, 0);
	if (!w->one_block)
		rec_writer_flush(w->fx->w);
}

static void put_record(struct world *w, enum trace_phase phase, uint64_t id, uint64_t at)
{
	struct {
		struct rec_runtime head;
		struct trace_record r;
	} batch = {.r = {.trace_type = TRACE_TENSOR_READ,
			   .phase = phase,
			   .tracking_id = id,
			   .thread_id = 100 + id,
			   .timestamp_ns = FX_BOOT + at,
			   .id = id,
			   .nc_idx = (uint32_t)(id % 3)}};

	put(w, REC_RUNTIME, FX_SOURCE, at, &batch, sizeof(batch));
}

static void put_call(struct world *w, bool announced, uint64_t from, uint64_t to)
{
	struct nev_ioctl e = {.hdr = {.time_ns = FX_BOOT + to,
				      .type = announced ? NEV_IOCTL_START : NEV_IOCTL_DONE},
		.start_ns = FX_BOOT + from,
		.duration_ns = announced ? 0 : to - from,
		.tgid = FX_PID,
		.tid = 7,
		.request = NEURON_IOCTL_DEVICE_BASIC_INFO};

	put(w, REC_KERNEL, REC_SOURCE_KERNEL, to, &e, sizeof(e));
}

static void put_samples(struct world *w, uint64_t at)
{
	struct sampler_cpu cpu = {.busy = at, .total = at * 2};
	struct rec_mem mem = {.pid = FX_PID, .rss_bytes = at};
	uint64_t mark = FX_BOOT + at;

	put(w, REC_CPU, REC_SOURCE_RECORDER, at, &cpu, sizeof(cpu));
	put(w, REC_MEM, REC_SOURCE_RECORDER, at, &mem, sizeof(mem));
	put(w, REC_WATERMARK, FX_SOURCE, at, &mark, sizeof(mark));
}

/* Spans and calls with both ends or one, at random, in no order of time. */
static void put_anything(struct world *w, uint64_t id)
{
	uint64_t from = some(w, LENGTH), to = from + 1 + some(w, some(w, 4) ? 2000 : LENGTH);
	uint64_t ends = some(w, 8);

	if (some(w, 3) == 0) {
		if (ends)
			put_call(w, true, from, from);
		if (ends != 1)
			put_call(w, false, from, to);
		return;
	}
	if (ends)
		put_record(w, TRACE_START, id, from);
	if (some(w, 4) == 0)
		put_samples(w, from);
	if (ends != 1)
		put_record(w, TRACE_STOP, id, to);
}

static bool make(struct fixture *fx, uint64_t seed, bool one_block)
{
	struct world w = {.fx = fx, .state = seed * 2 + 1, .one_block = one_block};
	struct clock_snapshot s = {
		.boot_before = FX_BOOT, .boot_after = FX_BOOT, .realtime = FX_EPOCH};
	struct rec_process p = {.pid = FX_PID};
	struct rec_end end = {0};

	if (!fx_open_bare(fx))
		return false;
	put(&w, REC_CLOCK, REC_SOURCE_RECORDER, 0, &s, sizeof(s));
	put(&w, REC_PROCESS, FX_SOURCE, 0, &p, sizeof(p));
	for (uint64_t id = 1; id <= SPAN_COUNT; id++)
		put_anything(&w, id);
	if (seed % 3)
		put(&w, REC_END, REC_SOURCE_RECORDER, LENGTH, &end, sizeof(end));
	return fx_close_writer(fx) == 0;
}

/* All frames but the footer, which tells when it was made. */
static struct pass frames_of(const char *path)
{
	struct pass p = {0};
	struct rec_reader *r;
	const struct rec_frame *f;
	const uint8_t *payload;

	p.error = rec_reader_open(path, &r);
	if (p.error < 0)
		return p;
	while ((p.error = rec_reader_next(r, &f, &payload)) > 0) {
		if (f->type == REC_FOOTER)
			continue;
		p.payload_sum = p.payload_sum * 31 + frame_sum(f, payload);
		if (f->type != REC_COUNTERS) /* the last frame's time, which may be the footer */
			p.payload_sum += f->time_ns * 7;
		p.frames++;
	}
	p.damage = rec_reader_damage(r);
	rec_reader_close(r);
	return p;
}

static void check_seed(uint64_t seed)
{
	struct rec_cut_options o = {.from = {CUT_RELATIVE, seed * 7919 % LENGTH}};
	struct rec_cut_result cut[2];
	struct pass pass[2];

	o.to = (struct cut_time){CUT_RELATIVE, o.from.ns + 1 + seed * 104729 % 20000};
	test_info("seed %u", (unsigned)seed);
	for (int one = 0; one < 2; one++) {
		struct fixture fx;

		REQUIRE(make(&fx, seed, one));
		REQUIRE_EQ(
			rec_cut(fx_path(&fx, REC_DIR).s, fx_path(&fx, "part").s, &o, &cut[one]), 0);
		pass[one] = frames_of(fx_path(&fx, "part").s);
		fx_free(&fx);
	}
	CHECK(cut[0].kept > 0);
	CHECK_EQ(cut[0].kept, cut[1].kept);
	CHECK_EQ(cut[0].left_out, cut[1].left_out);
	CHECK_EQ(pass[0].error, 0);
	CHECK_EQ(pass[0].frames, pass[1].frames);
	CHECK_EQ(pass[0].payload_sum, pass[1].payload_sum);
	CHECK(undamaged(&pass[0].damage));
}

TEST("rec cut: blocks that are passed over hold nothing of it", "[record]")
{
	for (uint64_t seed = 1; seed <= 60; seed++)
		check_seed(seed);
}

static bool third(void *ctx, uint32_t segment, uint64_t offset)
{
	unsigned *asked = ctx;

	return segment == 0 && offset > 0 && (*asked)++ % 3 == 0;
}

TEST("recording: a filter decides which blocks are read", "[record]")
{
	struct rec_reader *r;
	struct fixture fx;
	struct pass all, some_frames, again;
	unsigned asked = 0;

	REQUIRE(make(&fx, 1, false));
	REQUIRE_EQ(rec_reader_open(fx_path(&fx, REC_DIR).s, &r), 0);
	read_pass(r, &all);
	rec_reader_rewind(r);
	rec_reader_set_filter(r, third, &asked);
	read_pass(r, &some_frames);
	CHECK_EQ(some_frames.error, 0);
	CHECK_EQ(asked, all.frames);
	CHECK_EQ(some_frames.frames, (all.frames + 2) / 3);
	CHECK_EQ(some_frames.sums[0], all.sums[0]);
	CHECK_EQ(some_frames.sums[5], all.sums[15]);
	CHECK(undamaged(&some_frames.damage));
	rec_reader_rewind(r);
	rec_reader_set_filter(r, NULL, NULL);
	read_pass(r, &again);
	CHECK_EQ(again.payload_sum, all.payload_sum);
	rec_reader_close(r);
	fx_free(&fx);
}
