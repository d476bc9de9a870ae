/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recording_test.c - frames to disk and back: what is read is what was written, whatever became of
 * the writer, the disk or single bits since.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "runtime/base/file.h"
#include "runtime/record/frame.h"
#include "runtime/trace/record.h"
#include "tests/shim/shim.h"
#include "tests/unit/scratch.h"

#define SEGMENT0 "segment-000000.ntrec"

/* What a pass over a recording found. */
struct pass {
	int error;
	size_t frames;
	uint64_t payload_sum; /* of type, source and payload, order-sensitive */
	uint64_t sums[64];    /* of the first frames, one by one */
	struct rec_damage damage;
};

static uint64_t frame_sum(const struct rec_frame *f, const uint8_t *payload)
{
	uint64_t sum = f->type * 31u + f->source;

	for (uint32_t i = 0; i < f->size; i++)
		sum = sum * 1099511628211u + payload[i];
	return sum;
}

static void read_pass(struct rec_reader *r, struct pass *p)
{
	const struct rec_frame *f;
	const uint8_t *payload;
	int rc;

	memset(p, 0, sizeof(*p));
	while ((rc = rec_reader_next(r, &f, &payload)) > 0) {
		uint64_t sum = frame_sum(f, payload);

		if (p->frames < 64)
			p->sums[p->frames] = sum;
		p->payload_sum = p->payload_sum * 31 + sum;
		p->frames++;
	}
	p->error = rc;
	p->damage = rec_reader_damage(r);
}

static struct pass read_recording(const char *path)
{
	struct rec_reader *r;
	struct pass p = {.error = rec_reader_open(path, &r)};

	if (p.error < 0)
		return p;
	read_pass(r, &p);
	rec_reader_close(r);
	return p;
}

static bool write_file(const char *path, const void *data, size_t size)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	return fd >= 0 && file_write_all(fd, data, size) == 0;
}

static bool undamaged(const struct rec_damage *d)
{
	return !d->skipped_bytes && !d->cut_bytes && !d->bad_frames && !d->unknown_frames;
}

/* Frames of various sizes; returns how many, 0 on error. */
static size_t write_small(const char *path)
{
	static const char text[] = "0123456789abcdefghijklmnopqrstuvwxyz";
	struct rec_writer *w;
	size_t n = 0;

	if (rec_writer_open(path, &w) < 0)
		return 0;
	for (uint16_t i = 0; i < 12; i++, n++)
		if (rec_writer_frame(w, (enum rec_type)(1 + i % 12), i, text, i, text + 3, i % 5) <
			0)
			n = 0;
	return rec_writer_close(w) == 0 ? n : 0;
}

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
	CHECK_EQ(bytes, 16 + (24 + 16) + 24);

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
	for (size_t i = 0; i < n; i++) {
		memset(big, (int)i, size);
		REQUIRE_EQ(rec_writer_frame(w, REC_KERNEL, 1, big, size, NULL, 0), 0);
	}
	REQUIRE_EQ(rec_writer_close(w), 0);
	free(big);
	CHECK_EQ(scratch_entries(path.s), 3);
	REQUIRE_EQ(rec_reader_open(path.s, &r), 0);
	read_pass(r, &first);
	rec_reader_rewind(r);
	read_pass(r, &second);
	rec_reader_close(r);
	CHECK_EQ(first.frames, n);
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
	CHECK_EQ(rec_writer_frame(w, REC_KERNEL, 1, records, REC_MAX_PAYLOAD + 1u, NULL, 0),
		-EMSGSIZE);
	CHECK_EQ(rec_writer_frame(w, REC_KERNEL, 1, "", 1, NULL, 0), -EMSGSIZE);
	CHECK_EQ(rec_writer_close(w), -EMSGSIZE);
	free(records);

	REQUIRE_EQ(rec_reader_open(scratch_path(&s, "rec").s, &r), 0);
	while (rec_reader_next(r, &f, &payload) > 0) {
		struct rec_runtime h;

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
	static const uint8_t newer[16] = {'N', 'T', 'R', 'E', 'C', 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0};
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
	CHECK_EQ(p.frames, 2);
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
	CHECK_EQ(rec_reader_next(r, &f, &payloads[0]), 0);
	rec_reader_close(r);
	for (int i = 0; i < FRAMES; i++) {
		memset(data, i, BYTES);
		CHECK(!memcmp(payloads[i], data, BYTES - (size_t)i));
		rec_block_unref(blocks[i]);
	}
	rec_block_unref(NULL);
	scratch_remove(&s);
}

/* ---- damage ------------------------------------------------------------------------------- */

struct small {
	struct scratch dir;
	struct scratch_path rec, segment;
	char *data;
	size_t size, frames;
	struct pass whole;
	size_t ends[64]; /* where the payload of each frame ends, 0 = end of the segment's head */
};

static bool small_make(struct small *m)
{
	memset(m, 0, sizeof(*m));
	if (!scratch_make(&m->dir))
		return false;
	m->rec = scratch_path(&m->dir, "rec");
	m->segment = scratch_path(&m->dir, "rec/" SEGMENT0);
	m->frames = write_small(m->rec.s);
	if (!m->frames || file_read(m->segment.s, 1 << 20, &m->data, &m->size) < 0)
		return false;
	m->whole = read_recording(m->rec.s);
	size_t at = sizeof(struct rec_segment);
	for (size_t i = 0; i < m->frames; i++) {
		struct rec_frame f;

		memcpy(&f, m->data + at, sizeof(f));
		m->ends[i] = at + sizeof(f) + f.size;
		at = m->ends[i] + rec_padding(f.size);
	}
	return at == m->size && m->whole.frames == m->frames;
}

static void small_free(struct small *m)
{
	free(m->data);
	scratch_remove(&m->dir);
}

TEST("recording: cut at any byte, the frames before the cut are read and the rest is counted",
	"[record]")
{
	struct small m;

	REQUIRE(small_make(&m));
	for (size_t cut = 0; cut <= m.size; cut++) {
		size_t whole = 0;

		REQUIRE(write_file(m.segment.s, m.data, cut));
		struct pass p = read_recording(m.rec.s);
		test_info("cut at %zu", cut);
		if (cut < sizeof(struct rec_segment)) {
			CHECK_EQ(p.error, -EPROTO);
			continue;
		}
		while (whole < m.frames && m.ends[whole] <= cut)
			whole++;
		size_t used = whole ? m.ends[whole - 1] : sizeof(struct rec_segment);
		used += rec_padding(used);
		CHECK_EQ(p.error, 0);
		CHECK_EQ(p.frames, whole);
		CHECK(!memcmp(p.sums, m.whole.sums, whole * sizeof(p.sums[0])));
		CHECK_EQ(p.damage.cut_bytes, cut > used ? cut - used : 0);
		CHECK_EQ(p.damage.bad_frames + p.damage.skipped_bytes, 0);
	}
	small_free(&m);
}

/* Are the frames of p those of the whole, in order, but for at most one? */
static bool all_but_one(const struct pass *p, const struct pass *whole)
{
	size_t i = 0, missing = 0;

	for (size_t k = 0; k < whole->frames; k++) {
		if (i < p->frames && p->sums[i] == whole->sums[k])
			i++;
		else
			missing++;
	}
	return i == p->frames && missing <= 1;
}

TEST("recording: any flipped bit costs at most the frame that it is in", "[record]")
{
	struct small m;

	REQUIRE(small_make(&m));
	for (size_t bit = 0; bit < m.size * 8; bit++) {
		m.data[bit / 8] = (char)(m.data[bit / 8] ^ (1 << bit % 8));
		REQUIRE(write_file(m.segment.s, m.data, m.size));
		struct pass p = read_recording(m.rec.s);
		test_info("bit %zu", bit);
		if (bit / 8 < 8) {
			CHECK_EQ(p.error, -EPROTO);
		} else if (bit / 8 < 12) {
			CHECK(p.error == -EPROTONOSUPPORT || p.error == -EPROTO);
		} else if (bit / 8 < 16) {
			CHECK(p.error == 0 && p.frames == m.frames && p.damage.bad_frames == 1);
		} else {
			CHECK_EQ(p.error, 0);
			CHECK(all_but_one(&p, &m.whole));
			if (p.frames < m.frames)
				CHECK(p.damage.skipped_bytes + p.damage.cut_bytes > 0);
			else
				CHECK_EQ(p.damage.skipped_bytes + p.damage.cut_bytes, 0);
		}
		m.data[bit / 8] = (char)(m.data[bit / 8] ^ (1 << bit % 8));
	}
	small_free(&m);
}

TEST("recording: after foreign bytes in the middle the reader finds the next frame", "[record]")
{
	struct small m;
	char junk[1000];

	REQUIRE(small_make(&m));
	memset(junk, 'N', sizeof(junk));
	uint32_t magic = REC_FRAME_MAGIC;
	memcpy(junk + 100, &magic, sizeof(magic)); /* looks like a frame and is none */
	size_t at = m.ends[4] + rec_padding(m.ends[4]);
	_cleanup_free_ char *data = malloc(m.size + 777);
	REQUIRE(data != NULL);
	memcpy(data, m.data, at);
	memcpy(data + at, junk, 777);
	memcpy(data + at + 777, m.data + at, m.size - at);
	REQUIRE(write_file(m.segment.s, data, m.size + 777));
	struct pass p = read_recording(m.rec.s);
	CHECK_EQ(p.frames, m.frames);
	CHECK_EQ(p.payload_sum, m.whole.payload_sum);
	CHECK_EQ(p.damage.skipped_bytes, 777);
	CHECK_EQ(p.damage.bad_frames, 1);
	small_free(&m);
}

TEST("recording: a file made of false frames is given up in bounded time", "[record]")
{
	struct small m;
	size_t size = 40u << 20;
	uint32_t *data = malloc(size);

	REQUIRE(small_make(&m) && data);
	memcpy(data, m.data, sizeof(struct rec_segment));
	for (size_t i = 4; i < size / 4; i += 4) {
		data[i] = REC_FRAME_MAGIC;
		data[i + 1] = REC_KERNEL;
		data[i + 2] = REC_MAX_PAYLOAD;
		data[i + 3] = 0;
	}
	REQUIRE(write_file(m.segment.s, data, size));
	free(data);
	struct pass p = read_recording(m.rec.s);
	CHECK_EQ(p.error, 0);
	CHECK_EQ(p.frames, 0);
	CHECK_EQ(p.damage.cut_bytes, size - sizeof(struct rec_segment));
	small_free(&m);
}

/* ---- the death of the writer and of the disk ------------------------------------------------ */

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
	struct pass p = read_recording(path.s);
	CHECK_EQ(p.error, 0);
	CHECK_EQ(p.frames, 10);
	CHECK(undamaged(&p.damage));
	scratch_remove(&s);
}

static int write_into_limit(void *arg)
{
	struct rlimit limit = {.rlim_cur = 5000, .rlim_max = 5000};
	char payload[1000] = {0};
	struct rec_writer *w;

	signal(SIGXFSZ, SIG_IGN);
	if (setrlimit(RLIMIT_FSIZE, &limit) < 0 || rec_writer_open(arg, &w) < 0)
		return 1;
	for (unsigned i = 0; i < 10; i++)
		rec_writer_frame(w, REC_NAME, 0, payload, sizeof(payload), NULL, 0);
	if (rec_writer_flush(w) != -EFBIG)
		return 2;
	if (rec_writer_frame(w, REC_NAME, 0, payload, 1, NULL, 0) != -EFBIG)
		return 3;
	return rec_writer_close(w) == -EFBIG ? 0 : 4;
}

TEST("recording: when the disk is full the error stays and the frames before it are whole",
	"[record]")
{
	struct scratch s;

	REQUIRE(scratch_make(&s));
	struct scratch_path path = scratch_path(&s, "rec");
	CHECK_EQ(scratch_child(write_into_limit, path.s), 0);
	struct pass p = read_recording(path.s);
	CHECK_EQ(p.error, 0);
	CHECK_EQ(p.frames, 4); /* of 1024 bytes each, behind 16 */
	CHECK_EQ(p.damage.cut_bytes, 5000 - 16 - 4 * 1024);
	CHECK_EQ(p.damage.bad_frames, 0);
	scratch_remove(&s);
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
