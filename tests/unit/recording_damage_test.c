/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recording_damage_test.c - recordings of every version that were cut or changed: the reader yields
 * all that is whole, and says what is not.
 */
#include <zstd.h>

#include "runtime/trace/record.h"
#include "tests/shim/shim.h"
#include "tests/unit/recording_pass.h"

static const unsigned versions[] = {1, 2};
#define VERSIONS (sizeof(versions) / sizeof(*versions))

struct small {
	struct scratch dir;
	struct scratch_path rec, segment;
	char *data;
	size_t size, frames;
	struct pass whole;
	size_t ends[64]; /* where the unit of each frame ends, padding not counted */
};

/* Where the unit at `at` ends: a frame, or a block. */
static size_t unit_end(const struct small *m, unsigned version, size_t at)
{
	struct rec_block_head h;
	struct rec_frame f;

	if (version == 1) {
		memcpy(&f, m->data + at, sizeof(f));
		return at + sizeof(f) + f.size;
	}
	memcpy(&h, m->data + at, sizeof(h));
	return at + sizeof(h) + h.stored;
}

static bool small_make(struct small *m, unsigned version)
{
	memset(m, 0, sizeof(*m));
	if (!scratch_make(&m->dir))
		return false;
	m->rec = scratch_path(&m->dir, "rec");
	m->segment = scratch_path(&m->dir, "rec/" SEGMENT0);
	m->frames = version == 1 ? write_small_v1(m->rec.s) : write_small(m->rec.s);
	if (!m->frames || file_read(m->segment.s, 1 << 20, &m->data, &m->size) < 0)
		return false;
	m->whole = read_recording(m->rec.s);
	size_t at = sizeof(struct rec_segment);
	for (size_t i = 0; i < m->frames; i++) {
		m->ends[i] = unit_end(m, version, at);
		at = m->ends[i] + (version == 1 ? rec_padding(m->ends[i]) : 0);
	}
	if (version > 1)
		at += sizeof(struct rec_tail);
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
	for (size_t v = 0; v < VERSIONS; v++) {
		struct small m;

		REQUIRE(small_make(&m, versions[v]));
		for (size_t cut = 0; cut <= m.size; cut++) {
			size_t whole = 0;

			REQUIRE(write_file(m.segment.s, m.data, cut));
			struct pass p = read_recording(m.rec.s);
			test_info("version %u cut at %zu", versions[v], cut);
			if (cut < sizeof(struct rec_segment)) {
				CHECK_EQ(p.error, -EPROTO);
				continue;
			}
			while (whole < m.frames && m.ends[whole] <= cut)
				whole++;
			size_t used = whole ? m.ends[whole - 1] : sizeof(struct rec_segment);
			if (versions[v] == 1)
				used += rec_padding(used);
			if (cut == m.size)
				used = cut; /* the tail is no frame */
			CHECK_EQ(p.error, 0);
			CHECK_EQ(p.frames, whole);
			CHECK(!memcmp(p.sums, m.whole.sums, whole * sizeof(p.sums[0])));
			CHECK_EQ(p.damage.cut_bytes, cut > used ? cut - used : 0);
			CHECK_EQ(p.damage.bad_frames + p.damage.skipped_bytes, 0);
		}
		small_free(&m);
	}
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

/* What a flip of this bit may cost. */
static void check_flip(struct small *m, size_t bit)
{
	REQUIRE(write_file(m->segment.s, m->data, m->size));
	struct pass p = read_recording(m->rec.s);

	if (bit / 8 < 8) {
		CHECK_EQ(p.error, -EPROTO);
	} else if (bit / 8 < 12) {
		CHECK(p.error == -EPROTONOSUPPORT || p.error == -EPROTO);
	} else if (bit / 8 < 16) {
		CHECK(p.error == 0 && p.frames == m->frames && p.damage.bad_frames == 1);
	} else {
		CHECK_EQ(p.error, 0);
		CHECK(all_but_one(&p, &m->whole));
		if (p.frames < m->frames)
			CHECK(p.damage.skipped_bytes + p.damage.cut_bytes > 0);
		else if (bit / 8 < m->ends[m->frames - 1])
			CHECK_EQ(p.damage.skipped_bytes + p.damage.cut_bytes, 0);
	}
}

TEST("recording: any flipped bit costs at most the frame or block that it is in", "[record]")
{
	for (size_t v = 0; v < VERSIONS; v++) {
		struct small m;

		REQUIRE(small_make(&m, versions[v]));
		for (size_t bit = 0; bit < m.size * 8; bit++) {
			test_info("version %u bit %zu", versions[v], bit);
			m.data[bit / 8] = (char)(m.data[bit / 8] ^ (1 << bit % 8));
			check_flip(&m, bit);
			m.data[bit / 8] = (char)(m.data[bit / 8] ^ (1 << bit % 8));
		}
		small_free(&m);
	}
}

TEST("recording: a block that is gone without a trace is missed by its number", "[record]")
{
	struct small m;

	REQUIRE(small_make(&m, 2));
	memmove(m.data + m.ends[3], m.data + m.ends[5], m.size - m.ends[5]);
	REQUIRE(write_file(m.segment.s, m.data, m.size - (m.ends[5] - m.ends[3])));
	struct pass p = read_recording(m.rec.s);
	CHECK_EQ(p.frames, m.frames - 2);
	CHECK_EQ(p.damage.bad_frames, 1);
	CHECK_EQ(p.damage.skipped_bytes + p.damage.cut_bytes, 0);
	small_free(&m);
}

TEST("recording: a second copy of a segment or of blocks is skipped, not counted twice", "[record]")
{
	struct small m;

	REQUIRE(small_make(&m, 2));
	struct scratch_path copy = scratch_path(&m.dir, "rec/segment-000001.ntrec");
	REQUIRE(write_file(copy.s, m.data, m.size));
	struct pass p = read_recording(m.rec.s);
	CHECK_EQ(p.frames, m.frames);
	CHECK_EQ(p.payload_sum, m.whole.payload_sum);
	CHECK_EQ(p.damage.bad_frames, 1);
	CHECK_EQ(p.damage.skipped_bytes, m.size - sizeof(struct rec_tail));

	/* The third block once more, between the sixth and the seventh. */
	size_t block = m.ends[2] - m.ends[1];
	_cleanup_free_ uint8_t *data = malloc(m.size + block);
	REQUIRE(data && unlink(copy.s) == 0);
	memcpy(data, m.data, m.ends[5]);
	memcpy(data + m.ends[5], m.data + m.ends[1], block);
	memcpy(data + m.ends[5] + block, m.data + m.ends[5], m.size - m.ends[5]);
	REQUIRE(write_file(m.segment.s, data, m.size + block));
	p = read_recording(m.rec.s);
	CHECK_EQ(p.payload_sum, m.whole.payload_sum);
	CHECK_EQ(p.damage.bad_frames, 1);
	CHECK_EQ(p.damage.skipped_bytes, block);
	small_free(&m);
}

static void check_foreign_bytes(unsigned version)
{
	struct small m;
	char junk[1000];
	uint32_t magic = version == 1 ? REC_FRAME_MAGIC : REC_BLOCK_MAGIC;

	REQUIRE(small_make(&m, version));
	memset(junk, 'N', sizeof(junk));
	memcpy(junk + 100, &magic, sizeof(magic)); /* looks like a unit and is none */
	size_t at = m.ends[4] + (version == 1 ? rec_padding(m.ends[4]) : 0);
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

TEST("recording: after foreign bytes in the middle the reader finds the next frame", "[record]")
{
	for (size_t v = 0; v < VERSIONS; v++)
		check_foreign_bytes(versions[v]);
}

/* Fills the segment behind its head with heads that promise much. */
static void check_false_units(unsigned version, const void *unit, size_t unit_size)
{
	struct small m;
	size_t size = 40u << 20;
	uint8_t *data = malloc(size);

	REQUIRE(small_make(&m, version) && data);
	memcpy(data, m.data, sizeof(struct rec_segment));
	for (size_t i = sizeof(struct rec_segment); i < size; i += unit_size)
		memcpy(data + i, unit, size - i < unit_size ? size - i : unit_size);
	REQUIRE(write_file(m.segment.s, data, size));
	free(data);
	struct pass p = read_recording(m.rec.s);
	test_info("version %u", version);
	CHECK_EQ(p.error, 0);
	CHECK_EQ(p.frames, 0);
	CHECK_EQ(p.damage.cut_bytes, size - sizeof(struct rec_segment));
	small_free(&m);
}

static bool make_directory(const char *path)
{
	return mkdir(path, 0700) == 0;
}

static bool make_fifo(const char *path)
{
	return mkfifo(path, 0600) == 0;
}

static bool make_endless(const char *path)
{
	return symlink("/dev/zero", path) == 0;
}

static bool make_circle(const char *path)
{
	return symlink(path, path) == 0;
}

TEST("recording: a segment that is no file is a damaged place, and what is around it is read",
	"[record]")
{
	bool (*const make[])(const char *) = {make_directory, make_fifo, make_endless, make_circle};

	for (size_t i = 0; i < sizeof(make) / sizeof(*make); i++) {
		struct scratch s;

		REQUIRE(scratch_make(&s));
		struct scratch_path rec = scratch_path(&s, "rec");
		size_t n = write_small(rec.s);
		REQUIRE(n > 0);
		REQUIRE(make[i](scratch_path(&s, "rec/segment-000001.ntrec").s));
		struct pass p = read_recording(rec.s);
		CHECK_EQ(p.error, 0);
		CHECK_EQ(p.frames, n);
		CHECK_EQ(p.damage.bad_frames, 1);
		CHECK_EQ(p.damage.skipped_bytes + p.damage.cut_bytes, 0);
		CHECK_EQ(p.damage.no_file.count, 1);
		CHECK_EQ(p.damage.no_file.first, 1);
		scratch_remove(&s);
	}
}

TEST("recording: which segments are gone is told, and which have the name of another", "[record]")
{
	struct small m;

	REQUIRE(small_make(&m, 2));
	struct scratch_path far = scratch_path(&m.dir, "rec/segment-000004.ntrec");
	REQUIRE(write_file(far.s, "", 0));
	struct pass p = read_recording(m.rec.s);
	CHECK_EQ(p.frames, m.frames);
	CHECK_EQ(p.damage.missing.count, 3);
	CHECK_EQ(p.damage.missing.first, 1);
	CHECK_EQ(p.damage.misplaced.count, 0);
	REQUIRE(write_file(far.s, m.data, m.size));
	REQUIRE_EQ(unlink(m.segment.s), 0);
	p = read_recording(m.rec.s);
	CHECK_EQ(p.frames, m.frames);
	CHECK_EQ(p.damage.missing.count, 4);
	CHECK_EQ(p.damage.missing.first, 0);
	CHECK_EQ(p.damage.misplaced.count, 1);
	CHECK_EQ(p.damage.misplaced.first, 4);
	CHECK_EQ(p.damage.misplaced_is, 0);
	small_free(&m);
}

TEST("recording: a search through a damaged place can be cancelled", "[record]")
{
	static const struct rec_segment head = {
		.magic = REC_MAGIC, .version = REC_FORMAT_VERSION, .index = 1};
	volatile sig_atomic_t cancel = 1;
	struct rec_reader *r;
	struct scratch s;
	struct pass p;

	REQUIRE(scratch_make(&s));
	struct scratch_path rec = scratch_path(&s, "rec");
	struct scratch_path long_one = scratch_path(&s, "rec/segment-000001.ntrec");
	size_t n = write_small(rec.s);
	REQUIRE(n > 0 && write_file(long_one.s, &head, sizeof(head)));
	REQUIRE_EQ(truncate(long_one.s, 100 << 20), 0);
	REQUIRE_EQ(rec_reader_open(rec.s, &r), 0);
	rec_reader_cancel_by(r, &cancel);
	read_pass(r, &p);
	CHECK_EQ(p.error, -ECANCELED);
	CHECK_EQ(p.frames, n);
	cancel = 0;
	rec_reader_rewind(r);
	read_pass(r, &p);
	CHECK_EQ(p.error, 0);
	CHECK_EQ(p.damage.cut_bytes, (100 << 20) - sizeof(head));
	rec_reader_close(r);
	scratch_remove(&s);
}

TEST("recording: a file made of false heads is given up in bounded time", "[record]")
{
	struct rec_frame f = {
		.magic = REC_FRAME_MAGIC, .type = REC_KERNEL, .size = REC_MAX_PAYLOAD};
	struct rec_block_head h = {
		.magic = REC_BLOCK_MAGIC, .stored = REC_MAX_BLOCK, .size = REC_MAX_BLOCK};

	check_false_units(1, &f, 16);
	check_false_units(2, &h, 64);
	h.head_check = rec_check(&h, offsetof(struct rec_block_head, head_check));
	check_false_units(2, &h, 64);
}

/* A block that restores to `size` zeros behind the blocks of a small recording. */
static bool append_bomb(const struct small *m, uint32_t number, size_t size)
{
	struct rec_frame f = {.magic = REC_FRAME_MAGIC, .type = REC_NAME, .size = (uint32_t)size};
	struct rec_block_head h = {.magic = REC_BLOCK_MAGIC,
		.compression = REC_ZSTD,
		.number = number,
		.frames = 1,
		.size = (uint32_t)(sizeof(f) + size)};
	_cleanup_free_ uint8_t *raw = calloc(1, h.size),
			       *packed = malloc(ZSTD_compressBound(h.size));
	_cleanup_close_ int fd = open(m->segment.s, O_WRONLY | O_APPEND);

	if (!raw || !packed || fd < 0)
		return false;
	f.check = rec_frame_check(&f, NULL, 0, raw, size);
	memcpy(raw, &f, sizeof(f));
	h.stored = (uint32_t)ZSTD_compress(packed, ZSTD_compressBound(h.size), raw, h.size, 1);
	h.data_check = rec_check(packed, h.stored);
	h.head_check = rec_check(&h, offsetof(struct rec_block_head, head_check));
	return file_write_all(fd, &h, sizeof(h)) == 0 && file_write_all(fd, packed, h.stored) == 0;
}

TEST("recording: blocks that stand for far more than they take are damage", "[record]")
{
	enum { BOMBS = 20, BYTES = 512 << 10 };
	struct small m;

	REQUIRE(small_make(&m, 2));
	for (uint32_t i = 0; i < BOMBS; i++)
		REQUIRE(append_bomb(&m, (uint32_t)m.frames + i, BYTES));
	struct pass p = read_recording(m.rec.s);
	CHECK_EQ(p.error, 0);
	CHECK(p.frames > m.frames);	    /* some are free */
	CHECK(p.frames < m.frames + BOMBS); /* not all of them */
	CHECK(p.damage.skipped_bytes + p.damage.cut_bytes > 0);
	CHECK_EQ(p.damage.bad_frames, 1);
	small_free(&m);
}

/* Writes n times the same batch of zeros, which takes next to nothing, or the same large frame. */
static bool write_even(const char *path, bool batches, size_t n)
{
	struct rec_runtime head = {0};
	struct rec_writer *w;
	size_t size = batches ? 2000 * sizeof(struct trace_record) : 2u << 20;
	_cleanup_free_ uint8_t *zeros = calloc(1, size);

	if (!zeros || rec_writer_open(path, &w) < 0)
		return false;
	for (size_t i = 0; i < n; i++)
		rec_writer_frame(
			w, batches ? REC_RUNTIME : REC_NAME, 2, &head, sizeof(head), zeros, size);
	return rec_writer_close(w) == 0;
}

TEST("recording: a writer never makes what a reader takes for too much, however even its frames",
	"[record]")
{
	for (int batches = 0; batches < 2; batches++) {
		struct scratch s;

		REQUIRE(scratch_make(&s));
		struct scratch_path rec = scratch_path(&s, "rec");
		REQUIRE(write_even(rec.s, batches, batches ? 300 : 30));
		struct pass p = read_recording(rec.s);
		CHECK_EQ(p.error, 0);
		CHECK_EQ(p.frames, batches ? 301 : 31);
		CHECK(undamaged(&p.damage));
		struct stat st;
		REQUIRE_EQ(stat(scratch_path(&s, "rec/" SEGMENT0).s, &st), 0);
		CHECK(st.st_size < 4 << 20); /* small all the same: 60 MiB each */
		scratch_remove(&s);
	}
}
