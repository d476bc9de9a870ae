/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recovery_test.c - the committed recordings of each version, cut at every byte and with thousands
 * of flipped bits: the reader yields a prefix (cut) or all but what was hit (flipped), replay gives
 * sound files and the right exit code, and nothing appears outside its output directory.
 */
#include <fcntl.h>

#include "agent/agent.h"
#include "tests/shim/shim.h"
#include "tests/unit/recording_pass.h"
#include "tests/unit/trace_file.h"

#define FLIPS 10000u
/* One in so many is replayed too; all with NTRACE_TEST_FULL in the environment.  A merge has one thread:
 * ThreadSanitizer would only make it slow. */
#ifdef __SANITIZE_THREAD__
#define REPLAYED 512u
#else
#define REPLAYED 8u
#endif

static bool replayed(size_t n)
{
	return n % REPLAYED == 0 || getenv("NTRACE_TEST_FULL");
}

static const char *const fixtures[] = {"v1", "v2"};
#define FIXTURES (sizeof(fixtures) / sizeof(*fixtures))

struct victim {
	struct scratch dir;
	struct scratch_path rec, segment, out;
	char *data;
	size_t size;
	struct pass whole;
	size_t end_at, tail_at; /* cut here only the footer, or the way to it, is gone */
};

/* In memory when that can be: each replay syncs its files. */
static bool make_directory(struct scratch *s)
{
	snprintf(s->dir, sizeof(s->dir), "/dev/shm/ntrace-test-XXXXXX");
	return mkdtemp(s->dir) || scratch_make(s);
}

static bool victim_make(struct victim *v, const char *name)
{
	char path[200];

	memset(v, 0, sizeof(*v));
	snprintf(path, sizeof(path), "tests/replay/recordings/%s/" SEGMENT0, name);
	if (file_read(path, 1 << 20, &v->data, &v->size) < 0 || !make_directory(&v->dir))
		return false;
	v->rec = scratch_path(&v->dir, "rec");
	v->segment = scratch_path(&v->dir, "rec/" SEGMENT0);
	v->out = scratch_path(&v->dir, "out");
	v->end_at = v->tail_at = v->size;
	if (!strcmp(name, "v2")) {
		struct rec_tail t;

		memcpy(&t, v->data + v->size - sizeof(t), sizeof(t));
		v->end_at = t.offset;
		v->tail_at = v->size - sizeof(t);
	}
	if (mkdir(v->rec.s, 0700) < 0 || !write_file(v->segment.s, v->data, v->size))
		return false;
	v->whole = read_recording(v->rec.s);
	return v->whole.error == 0 && v->whole.frames > 10 && v->whole.frames < 64;
}

static void victim_free(struct victim *v)
{
	free(v->data);
	scratch_remove(&v->dir);
}

/* `ntrace replay -q REC -o OUT` in this process, silently. */
static int replay(struct victim *v)
{
	char *argv[] = {"replay", "-q", v->rec.s, "-o", v->out.s, NULL};
	int keep = dup(STDERR_FILENO), null = open("/dev/null", O_WRONLY);

	fflush(stderr);
	dup2(null, STDERR_FILENO);
	int code = cmd_replay(5, argv);
	fflush(stderr);
	dup2(keep, STDERR_FILENO);
	close(keep);
	close(null);
	return code;
}

/* Replays and removes what came out; what is wrong, or "". */
static const char *replay_fault(struct victim *v, bool complete)
{
	struct trace_file t = {0};
	struct scratch out;
	const char *fault = "";
	size_t open_spans;
	int code = replay(v);

	snprintf(out.dir, sizeof(out.dir), "%s", v->out.s);
	if (code != (complete ? EXIT_OK : EXIT_DATA))
		fault = "the exit code";
	else if (scratch_entries(v->dir.dir) > 2 || scratch_entries(v->rec.s) != 1)
		fault = "something outside the output directory";
	else if (scratch_entries(v->out.s) > 2) /* of the process, and of pid 0 */
		fault = "more than the directory of the process";
	else if (scratch_entries(v->out.s) == 1 && !trace_file_read(&t, v->out.s))
		fault = "a file that cannot be read";
	else if (t.count)
		fault = trace_file_fault(&t, &open_spans);
	trace_file_free(&t);
	scratch_remove(&out);
	return fault;
}

static bool is_prefix(const struct pass *p, const struct pass *whole)
{
	return p->frames <= whole->frames &&
	       !memcmp(p->sums, whole->sums, p->frames * sizeof(p->sums[0]));
}

static bool is_subsequence(const struct pass *p, const struct pass *whole)
{
	size_t i = 0;

	for (size_t k = 0; k < whole->frames && i < p->frames; k++)
		i += p->sums[i] == whole->sums[k];
	return i == p->frames;
}

TEST("recovery: a recording cut at any byte is read up to there, and replay says so", "[recovery]")
{
	for (size_t i = 0; i < FIXTURES; i++) {
		struct victim v;
		size_t frames;

		REQUIRE(victim_make(&v, fixtures[i]));
		frames = v.whole.frames;
		for (size_t cut = v.size; cut-- > 0;) {
			REQUIRE(truncate(v.segment.s, (off_t)cut) == 0);
			struct pass p = read_recording(v.rec.s);
			bool whole = cut == v.end_at || cut == v.tail_at;

			test_info("%s cut at %zu", fixtures[i], cut);
			if (cut < sizeof(struct rec_segment)) {
				CHECK_EQ(p.error, -EPROTO);
			} else {
				CHECK_EQ(p.error, 0);
				CHECK(is_prefix(&p, &v.whole));
				CHECK_EQ(p.damage.skipped_bytes + p.damage.bad_frames, 0);
			}
			CHECK(p.frames <= frames);
			/* Replayed too, where frames or blocks end and now and then. */
			if (p.frames < frames || replayed(cut) || whole)
				CHECK_STR(replay_fault(&v, whole), "");
			frames = p.frames;
		}
		victim_free(&v);
	}
}

TEST("recovery: flipped bits cost what they hit, and replay says so", "[recovery]")
{
	uint64_t noise = 1;

	for (size_t i = 0; i < FIXTURES; i++) {
		struct victim v;

		REQUIRE(victim_make(&v, fixtures[i]));
		int fd = open(v.segment.s, O_WRONLY);
		for (unsigned n = 0; n < FLIPS / FIXTURES; n++) {
			noise = noise * 6364136223846793005u + 1442695040888963407u;
			size_t bit = (size_t)(noise >> 33) % (v.size * 8);
			char flipped = (char)(v.data[bit / 8] ^ (1 << bit % 8));

			REQUIRE(pwrite(fd, &flipped, 1, (off_t)(bit / 8)) == 1);
			struct pass p = read_recording(v.rec.s);
			test_info("%s bit %zu", fixtures[i], bit);
			CHECK(p.error == 0 || bit / 8 < 12);
			CHECK(is_subsequence(&p, &v.whole));
			bool whole = p.error == 0 && !rec_damaged(&p.damage);
			CHECK(!whole || p.payload_sum == v.whole.payload_sum);
			if (replayed(n))
				CHECK_STR(replay_fault(&v, whole), "");
			REQUIRE(pwrite(fd, v.data + bit / 8, 1, (off_t)(bit / 8)) == 1);
		}
		close(fd);
		victim_free(&v);
	}
}
