/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recording_test.c - frames to disk and back: what is read is what was written, whatever became of
 * the writer or the disk.
 */
#include <signal.h>
#include <sys/resource.h>

#include "runtime/trace/record.h"
#include "tests/shim/shim.h"
#include "tests/unit/recording_fixture.h"
#include "tests/unit/recording_pass.h"

TEST("recording: frames come back in order, with source, payload and padding gone", "[record]")
{
	struct scratch s;
	struct rec_writer *w;
	struct rec_reader *r;
	const struct rec_frame *f;
	const uint8_t *payload;

	REQUIRE(scratch_make(&s));
	struct scratch_path path = scratch_path(&s, "rec");
	REQUIRE_EQ(rec_writer_open(path.s, &w), 0);
	REQUIRE_EQ(rec_writer_frame(w, REC_NAME, 7, "head", 4, "body!", 5), 0);
	REQUIRE_EQ(rec_writer_frame(w, REC_WATERMARK, 1, NULL, 0, NULL, 0), 0);
	uint64_t bytes = rec_writer_bytes(w);
	REQUIRE_EQ(rec_writer_close(w), 0);
	CHECK_EQ(bytes, 16); /* the block is still open */

	REQUIRE_EQ(rec_reader_open(path.s, &r), 0);
	REQUIRE_EQ(rec_reader_next(r, &f, &payload), 1);
	CHECK_EQ(f->type, REC_NAME);
	CHECK_EQ(f->source, 7);
	CHECK_EQ(f->size, 9);
	CHECK(f->time_ns > 0);
	CHECK(!memcmp(payload, "headbody!", 9));
	REQUIRE_EQ(rec_reader_next(r, &f, &payload), 1);
	CHECK_EQ(f->type, REC_WATERMARK);
	CHECK_EQ(f->size, 0);
	REQUIRE_EQ(rec_reader_next(r, &f, &payload), 1);
	CHECK_EQ(f->type, REC_FOOTER);
	CHECK_EQ(rec_reader_next(r, &f, &payload), 0);
	struct rec_damage d = rec_reader_damage(r);
	CHECK(undamaged(&d));
	rec_reader_rewind(r);
	REQUIRE_EQ(rec_reader_next(r, &f, &payload), 1);
	CHECK(!memcmp(payload, "headbody!", 9));
	rec_reader_close(r);
	scratch_remove(&s);
}

TEST("recording: it spans segments, and a segment that is gone is noticed", "[record]")
{
	struct scratch s;
	struct rec_writer *w;
	struct rec_reader *r;
	struct pass first, second;
	size_t size = 9u << 20, n = 18;
	uint8_t *big = malloc(size);

	REQUIRE(scratch_make(&s) && big);
	struct scratch_path path = scratch_path(&s, "rec");
	REQUIRE_EQ(rec_writer_open(path.s, &w), 0);
	uint64_t noise = 1;
	for (size_t i = 0; i < size; i++) {
		noise = noise * 6364136223846793005u + 1442695040888963407u;
		big[i] = (uint8_t)(noise >> 56); /* cannot be made smaller */
	}
	for (size_t i = 0; i < n; i++)
		REQUIRE_EQ(rec_writer_frame(w, REC_NAME, 1, big, size, &i, sizeof(i)), 0);
	REQUIRE_EQ(rec_writer_close(w), 0);
	free(big);
	CHECK_EQ(scratch_entries(path.s), 3);
	REQUIRE_EQ(rec_reader_open(path.s, &r), 0);
	read_pass(r, &first);
	rec_reader_rewind(r);
	read_pass(r, &second);
	rec_reader_close(r);
	CHECK_EQ(first.frames, n + 1);
	CHECK(undamaged(&first.damage));
	CHECK_EQ(second.payload_sum, first.payload_sum);

	REQUIRE(unlink(scratch_path(&s, "rec/segment-000001.ntrec").s) == 0);
	struct pass p = read_recording(path.s);
	CHECK_EQ(p.error, 0);
	CHECK(p.frames > 0 && p.frames < n);
	CHECK_EQ(p.damage.bad_frames, 1);
	scratch_remove(&s);
}

TEST("recording: a frame beyond the limit is refused, a runtime's large batch is split", "[record]")
{
	struct scratch s;
	struct rec_writer *w;
	struct rec_reader *r;
	const struct rec_frame *f;
	const uint8_t *payload;
	struct rec_runtime head = {.nc_idx = 3};
	size_t count = 200000, got = 0;
	struct trace_record *records = calloc(count, sizeof(*records));

	REQUIRE(scratch_make(&s) && records);
	REQUIRE_EQ(rec_writer_open(scratch_path(&s, "rec").s, &w), 0);
	for (size_t i = 0; i < count; i++)
		records[i].id = i;
	REQUIRE_EQ(rec_writer_frame(w, REC_RUNTIME, 2, &head, sizeof(head), records,
			   count * sizeof(*records)),
		0);
	CHECK_EQ(rec_writer_frame(w, REC_NAME, 1, records, REC_MAX_PAYLOAD + 1u, NULL, 0),
		-EMSGSIZE);
	CHECK_EQ(rec_writer_frame(w, REC_KERNEL, 1, "", 1, NULL, 0), -EMSGSIZE);
	CHECK_EQ(rec_writer_close(w), -EMSGSIZE);
	free(records);

	REQUIRE_EQ(rec_reader_open(scratch_path(&s, "rec").s, &r), 0);
	while (rec_reader_next(r, &f, &payload) > 0) {
		struct rec_runtime h;

		if (f->type != REC_RUNTIME)
			continue;
		CHECK(f->size <= REC_BLOCK_PAYLOAD);
		memcpy(&h, payload, sizeof(h));
		CHECK_EQ(h.nc_idx, 3);
		for (size_t at = sizeof(h); at < f->size;
			at += sizeof(struct trace_record), got++) {
			struct trace_record rec;

			memcpy(&rec, payload + at, sizeof(rec));
			if (rec.id != got)
				CHECK_EQ(rec.id, got);
		}
	}
	rec_reader_close(r);
	CHECK_EQ(got, count);
	scratch_remove(&s);
}

TEST("recording: what cannot be opened says why", "[record]")
{
	static const uint8_t newer[16] = {'N', 'T', 'R', 'E', 'C', 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0};
	struct scratch s;
	struct rec_writer *w;
	struct rec_reader *r;

	REQUIRE(scratch_make(&s));
	CHECK_EQ(rec_reader_open(scratch_path(&s, "none").s, &r), -ENOENT);
	CHECK_EQ(rec_reader_open(s.dir, &r), -ENOENT);
	REQUIRE(write_file(scratch_path(&s, "file").s, "x", 1));
	CHECK_EQ(rec_reader_open(scratch_path(&s, "file").s, &r), -EPROTO);

	struct scratch_path rec = scratch_path(&s, REC_DIR);
	REQUIRE_EQ(rec_writer_open(rec.s, &w), 0);
	REQUIRE_EQ(rec_writer_close(w), 0);
	CHECK_EQ(rec_writer_open(rec.s, &w), -EEXIST);
	CHECK_EQ(rec_writer_open(scratch_path(&s, "a/b").s, &w), -ENOENT);

	/* The directory that holds it is enough. */
	REQUIRE_EQ(rec_reader_open(s.dir, &r), 0);
	rec_reader_close(r);
	struct scratch_path segment = scratch_path(&s, REC_DIR "/" SEGMENT0);
	REQUIRE(write_file(segment.s, newer, sizeof(newer)));
	CHECK_EQ(rec_reader_open(rec.s, &r), -EPROTONOSUPPORT);
	REQUIRE(write_file(segment.s, newer, 15));
	CHECK_EQ(rec_reader_open(rec.s, &r), -EPROTO);
	REQUIRE(write_file(segment.s, "0123456789abcdef", 16));
	CHECK_EQ(rec_reader_open(rec.s, &r), -EPROTO);
	scratch_remove(&s);
}

TEST("recording: frames of types to come are skipped and counted, not damage", "[record]")
{
	struct scratch s;
	struct rec_writer *w;

	REQUIRE(scratch_make(&s));
	struct scratch_path path = scratch_path(&s, "rec");
	REQUIRE_EQ(rec_writer_open(path.s, &w), 0);
	rec_writer_frame(w, REC_NAME, 0, "a", 1, NULL, 0);
	rec_writer_frame(w, (enum rec_type)200, 0, "new", 3, NULL, 0);
	rec_writer_frame(w, (enum rec_type)0, 0, "odd", 3, NULL, 0);
	rec_writer_frame(w, REC_NAME, 0, "b", 1, NULL, 0);
	REQUIRE_EQ(rec_writer_close(w), 0);
	struct pass p = read_recording(path.s);
	CHECK_EQ(p.error, 0);
	CHECK_EQ(p.frames, 3); /* and the footer */
	CHECK_EQ(p.damage.unknown_frames, 2);
	CHECK_EQ(p.damage.bad_frames + p.damage.skipped_bytes + p.damage.cut_bytes, 0);
	scratch_remove(&s);
}

TEST("recording: a payload stays as it was while its block is referenced, also behind the reader",
	"[record]")
{
	enum { FRAMES = 40, BYTES = 100000 };
	struct rec_block *blocks[FRAMES];
	const uint8_t *payloads[FRAMES];
	struct scratch s;
	struct rec_writer *w;
	struct rec_reader *r;
	const struct rec_frame *f;

	REQUIRE(scratch_make(&s));
	struct scratch_path path = scratch_path(&s, "rec");
	_cleanup_free_ uint8_t *data = malloc(BYTES);
	REQUIRE(data && rec_writer_open(path.s, &w) == 0);
	for (int i = 0; i < FRAMES; i++) {
		memset(data, i, BYTES);
		rec_writer_frame(w, REC_NAME, 0, data, BYTES - (size_t)i, NULL, 0);
	}
	REQUIRE_EQ(rec_writer_close(w), 0);
	REQUIRE_EQ(rec_reader_open(path.s, &r), 0);
	for (int i = 0; i < FRAMES; i++) {
		REQUIRE_EQ(rec_reader_next(r, &f, &payloads[i]), 1);
		CHECK_EQ((uintptr_t)payloads[i] % 8, 0);
		blocks[i] = rec_block_ref(rec_reader_block(r));
		CHECK(rec_block_bytes(blocks[i]) > f->size);
	}
	const uint8_t *last;
	CHECK_EQ(rec_reader_next(r, &f, &last), 1); /* the footer */
	CHECK_EQ(rec_reader_next(r, &f, &last), 0);
	rec_reader_close(r);
	for (int i = 0; i < FRAMES; i++) {
		memset(data, i, BYTES);
		CHECK(!memcmp(payloads[i], data, BYTES - (size_t)i));
		rec_block_unref(blocks[i]);
	}
	rec_block_unref(NULL);
	scratch_remove(&s);
}

/* ---- the death of the writer and of the disk ------------------------------------------------ */

static bool in_work(const char *path)
{
	struct rec_reader *r;

	if (rec_reader_open(path, &r) < 0)
		return false;
	bool busy = rec_reader_in_work(r);
	rec_reader_close(r);
	return busy;
}

static int write_and_die(void *arg)
{
	struct rec_writer *w;

	if (rec_writer_open(arg, &w) < 0)
		return 1;
	for (unsigned i = 0; i < 10; i++)
		rec_writer_frame(w, REC_NAME, 0, &i, sizeof(i), NULL, 0);
	if (rec_writer_flush(w) < 0)
		return 2;
	rec_writer_frame(w, REC_NAME, 0, "lost", 4, NULL, 0);
	kill(getpid(), SIGKILL);
	return 3;
}

TEST("recording: what was flushed survives the death of the writer", "[record]")
{
	struct scratch s;

	REQUIRE(scratch_make(&s));
	struct scratch_path path = scratch_path(&s, "rec");
	CHECK_EQ(scratch_child(write_and_die, path.s), -1);
	CHECK(!in_work(path.s));
	struct pass p = read_recording(path.s);
	CHECK_EQ(p.error, 0);
	CHECK_EQ(p.frames, 10);
	CHECK(undamaged(&p.damage));
	scratch_remove(&s);
}

static int write_into_limit(void *arg, bool stop)
{
	struct rlimit limit = {.rlim_cur = 5000, .rlim_max = 5000};
	char payload[1000];
	uint32_t noise = 1;
	struct rec_writer *w;

	for (size_t i = 0; i < sizeof(payload); i++)
		payload[i] = (char)((noise = noise * 1664525u + 1013904223u) >> 24);
	signal(SIGXFSZ, SIG_IGN);
	if (setrlimit(RLIMIT_FSIZE, &limit) < 0 || rec_writer_open(arg, &w) < 0)
		return 1;
	for (unsigned i = 0; i < 10; i++) {
		rec_writer_frame(w, REC_NAME, 0, payload, sizeof(payload), NULL, 0);
		if (rec_writer_flush(w) != (i < 4 ? 0 : -EFBIG))
			return 2;
	}
	if (rec_writer_frame(w, REC_NAME, 0, payload, 1, NULL, 0) != -EFBIG)
		return 3;
	if (stop && rec_writer_stop(w, -1) != 0)
		return 4;
	return rec_writer_close(w) == -EFBIG ? 0 : 5;
}

static int close_at_limit(void *arg)
{
	return write_into_limit(arg, false);
}

static int stop_at_limit(void *arg)
{
	return write_into_limit(arg, true);
}

TEST("recording: a reader knows whether a writer is at work, and salvage waits for it", "[record]")
{
	struct merge_options o = {.only_at_rest = true};
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	fx_span(&fx, TRACE_TENSOR_READ, 1, 7, 1000, 2000);
	CHECK(in_work(fx_path(&fx, REC_DIR).s));
	CHECK_EQ(merge_recording(
			 fx_path(&fx, REC_DIR).s, fx_path(&fx, "out").s, &o, &fx.result, &fx.error),
		-EBUSY);
	CHECK_EQ(scratch_entries(fx_path(&fx, "out").s), -1);
	o.only_at_rest = false;
	CHECK_EQ(merge_recording(
			 fx_path(&fx, REC_DIR).s, fx_path(&fx, "out").s, &o, &fx.result, &fx.error),
		0);
	CHECK(fx.result.in_work);
	CHECK_EQ(fx.result.output_count, 1);
	fx_close_writer(&fx);
	CHECK(!in_work(fx_path(&fx, REC_DIR).s));
	CHECK_EQ(fx_merge(&fx, "later", MERGE_KERNEL_HINT), 0);
	CHECK(!fx.result.in_work);
	fx_free(&fx);
}

TEST("recording: when the disk is full the error stays and the frames before it are whole",
	"[record]")
{
	struct scratch s;

	REQUIRE(scratch_make(&s));
	struct scratch_path path = scratch_path(&s, "rec");
	CHECK_EQ(scratch_child(close_at_limit, path.s), 0);
	struct pass p = read_recording(path.s);
	CHECK_EQ(p.error, 0);
	CHECK_EQ(p.frames, 4);	     /* in blocks of 64 + 1024 bytes, behind 16 */
	CHECK(undamaged(&p.damage)); /* what there was of the fifth is taken back */
	scratch_remove(&s);
}

TEST("recording: a full disk leaves a mark of the stop behind the last whole block", "[record]")
{
	const struct rec_frame *f;
	const uint8_t *payload;
	struct rec_reader *r;
	struct rec_end end;
	struct scratch s;
	int names = 0;

	REQUIRE(scratch_make(&s));
	struct scratch_path path = scratch_path(&s, "rec");
	CHECK_EQ(scratch_child(stop_at_limit, path.s), 0);
	CHECK_EQ(scratch_entries(path.s), 1);
	REQUIRE_EQ(rec_reader_open(path.s, &r), 0);
	while (rec_reader_next(r, &f, &payload) == 1 && f->type == REC_NAME)
		names++;
	CHECK_EQ(names, 4);
	CHECK_EQ(f->type, REC_END);
	CHECK_EQ(f->size, sizeof(end));
	memcpy(&end, payload, sizeof(end));
	CHECK_EQ(end.wait_status, -1);
	CHECK_EQ(end.reason, REC_END_NO_SPACE);
	CHECK(!rec_end_in_order(&end));
	CHECK_EQ(rec_reader_next(r, &f, &payload), 0);
	struct rec_damage d = rec_reader_damage(r);
	CHECK(undamaged(&d));
	rec_reader_close(r);
	scratch_remove(&s);
}

TEST("recording: a mark of a full disk is not taken for an orderly end", "[record]")
{
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	fx_span(&fx, TRACE_TENSOR_READ, 1, 7, 1000, 2000);
	fx_end_with(&fx, REC_END_NO_SPACE);
	REQUIRE(fx_merge_one(&fx));
	CHECK(!fx.result.ended);
	CHECK_EQ(fx.result.end.reason, REC_END_NO_SPACE);
	bool said = false;
	for (uint32_t i = 0; i < fx.result.blind_count; i++)
		said |= strstr(fx.result.blind[i], "no more space") != NULL;
	CHECK(said);
	fx_free(&fx);
}

static int open_into_limit(void *arg)
{
	struct rlimit limit = {.rlim_cur = 8, .rlim_max = 8};
	struct rec_writer *w;

	signal(SIGXFSZ, SIG_IGN);
	if (setrlimit(RLIMIT_FSIZE, &limit) < 0)
		return 1;
	return rec_writer_open(arg, &w) == -EFBIG ? 0 : 2;
}

TEST("recording: one that cannot be begun leaves nothing", "[record]")
{
	struct scratch s;

	REQUIRE(scratch_make(&s));
	CHECK_EQ(scratch_child(open_into_limit, scratch_path(&s, "rec").s), 0);
	CHECK_EQ(scratch_entries(s.dir), 0);
	scratch_remove(&s);
}
