/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_salvage_test.c - `ntrace salvage` of what is not in one place: sessions for failures alone, whose device profiles are
 * elsewhere than their recording, and recordings that a program died over removing.
 *
 * The recordings are made by hand.
 */
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/neuron_trace.pb-c.h"
#include "tests/shim/shim.h"
#include "tests/unit/inspect_leaf.h"
#include "tests/unit/programs.h"
#include "tests/unit/recording_fixture.h"

#define LEAF "i-0123_pid_4711"
#define TIME "20261130_133337_553"

/* A session for failures alone, and where it was. */
struct failures {
	const char *layout;
	const char *leaf, *scratch;
};

static const struct failures places[] = {
	{"flat", LEAF, "." LEAF ".tmp"},
	{"flat", LEAF "_2", "." LEAF "_2.tmp_3"},
	{"timestamp", LEAF "/" TIME, "." LEAF "_" TIME ".tmp"},
	{"seed", "i-0123-4711/1796045617851584882", ".i-0123-4711_1796045617851584882.tmp"},
};
#define PLACES (sizeof(places) / sizeof(places[0]))

static void put_session(struct fixture *fx, const struct rec_session *s)
{
	const struct rec_header_info info = {
		.producer = "test", .instance_id = "i-0123", .host = "h", .session = s};

	fx_header(fx, &info);
	fx_clock(fx, 100, 0);
	fx_process(fx, FX_SOURCE, FX_PID);
	fx_span(fx, TRACE_EXECUTE_API, 1, FX_PID, 1000, 2000);
	fx_records(fx, FX_SOURCE);
}

static void make_dirs(const struct fixture *fx, const char *name)
{
	CHECK_EQ(file_mkdirs(fx_path(fx, name).s, NULL), 0);
}

static void make_file(const char *dir, const char *name, const char *text)
{
	FILE *f = fopen(scratch_in(dir, name).s, "wex");

	REQUIRE(f != NULL);
	fputs(text, f);
	fclose(f);
}

/* The directories of a session that was killed after a failure; its recording is still open. */
static void make_failures(struct fixture *fx, const struct failures *w)
{
	char directory[300];
	struct rec_session s = {.session_id = 1,
		.on_fail = 1,
		.device_profile = "off",
		.layout = w->layout,
		.directory = directory};

	/* As it was called in the container of the program. */
	snprintf(directory, sizeof(directory), "/elsewhere/%s", w->leaf);
	REQUIRE(fx_open_bare(fx));
	put_session(fx, &s);
	make_dirs(fx, w->leaf);
	make_dirs(fx, w->scratch);
	make_file(fx_path(fx, w->leaf).s, "x_instid_0_vnc_0.ntff", "profile");
	REQUIRE_EQ(rename(fx_path(fx, REC_DIR).s, scratch_in(fx_path(fx, w->scratch).s, REC_DIR).s),
		0);
}

static int salvage(const struct fixture *fx, const char *name)
{
	return leaf_salvage(fx_path(fx, name).s, fx_path(fx, "log").s);
}

static bool says(const struct fixture *fx, const char *text)
{
	_cleanup_free_ char *said = program_text(fx_path(fx, "log").s);

	test_info("%s", said);
	return said && strstr(said, text);
}

static Ntff__NtraceInfo *info_in(const char *leaf)
{
	_cleanup_free_ char *data = NULL;
	size_t size = 0;

	if (file_read(scratch_in(leaf, "trace_info.pb").s, 1u << 24, &data, &size) < 0)
		return NULL;
	return ntff__ntrace_info__unpack(NULL, size, (const uint8_t *)data);
}

TEST("salvage: a session for failures is found by either of its directories, and its files come to "
     "its "
     "profiles",
	"[inspect][spool]")
{
	for (size_t i = 0; i < 3 * PLACES; i++) {
		const struct failures *w = &places[i % PLACES];
		struct scratch_path leaf, scratch, recording;
		struct fixture fx;

		make_failures(&fx, w);
		fx_close_writer(&fx);
		leaf = fx_path(&fx, w->leaf);
		scratch = fx_path(&fx, w->scratch);
		recording = scratch_in(scratch.s, REC_DIR);
		/* What a program that dies while it commits leaves. */
		make_file(scratch.s, OUTFILE_TEMPORARY "4711-1", "half");
		CHECK_EQ(leaf_salvage(i < PLACES       ? leaf.s
				      : i < 2 * PLACES ? scratch.s
						       : recording.s,
				 fx_path(&fx, "log").s),
			0);
		CHECK(says(&fx, w->scratch));
		CHECK(leaf_is_whole(leaf.s, 1));
		CHECK_EQ(leaf_executions(leaf.s), 1);
		CHECK_EQ(scratch_entries(scratch.s), 1);
		/* Again: nothing to do. */
		CHECK_EQ(salvage(&fx, w->leaf), 0);
		CHECK(says(&fx, "nothing to salvage"));
		CHECK_EQ(salvage(&fx, w->scratch), 0);
		CHECK(says(&fx, "nothing to salvage"));
		CHECK(leaf_is_whole(leaf.s, 1));
		fx_free(&fx);
	}
}

TEST("salvage: a session for failures is not said to have taken no device profile",
	"[inspect][spool]")
{
	struct scratch_path leaf;
	bool told = false;
	struct fixture fx;

	make_failures(&fx, &places[0]);
	fx_end_with(&fx, REC_END_ASKED);
	fx_close_writer(&fx);
	REQUIRE_EQ(salvage(&fx, places[0].leaf), 0);
	leaf = fx_path(&fx, places[0].leaf);
	Ntff__NtraceInfo *info = info_in(leaf.s);
	REQUIRE(info != NULL);
	for (size_t i = 0; i < info->n_blind; i++) {
		CHECK(!strstr(info->blind[i], "took no device profile"));
		told |= strstr(info->blind[i], "of failures alone") != NULL;
	}
	CHECK(told);
	ntff__ntrace_info__free_unpacked(info, NULL);
	fx_free(&fx);
}

TEST("salvage: a session for failures that is alive is left alone", "[inspect][spool]")
{
	struct scratch_path scratch;
	struct fixture fx;

	make_failures(&fx, &places[0]);
	scratch = fx_path(&fx, places[0].scratch);
	make_file(scratch.s, "ntrace.pb", "in work");
	CHECK_EQ(salvage(&fx, places[0].leaf), 4);
	CHECK(leaf_has(scratch.s, "ntrace.pb"));
	CHECK_EQ(scratch_entries(fx_path(&fx, places[0].leaf).s), 1);
	fx_close_writer(&fx);
	fx_free(&fx);
}

/* As far as the program came with moving them: all but the first `moved`. */
TEST("salvage: files that a session for failures had made are moved to its profiles",
	"[inspect][spool]")
{
	for (int moved = 0; moved < LEAF_FILES; moved++) {
		static const char *const order[] = {
			"ntrace.pb", "cpu_util.pb", "host_mem.pb", "trace_info.pb"};
		struct scratch_path leaf, scratch;
		struct fixture fx;

		make_failures(&fx, &places[0]);
		fx_close_writer(&fx);
		leaf = fx_path(&fx, places[0].leaf);
		scratch = fx_path(&fx, places[0].scratch);
		REQUIRE_EQ(salvage(&fx, places[0].leaf), 0);
		REQUIRE_EQ(rec_remove(scratch_in(scratch.s, REC_DIR).s), 0);
		for (int i = moved; i < LEAF_FILES; i++)
			REQUIRE_EQ(rename(scratch_in(leaf.s, order[i]).s,
					   scratch_in(scratch.s, order[i]).s),
				0);
		CHECK_EQ(salvage(&fx, places[0].leaf), 0);
		CHECK(leaf_is_whole(leaf.s, 1));
		CHECK(access(scratch.s, F_OK) < 0);
		fx_free(&fx);
	}
}

TEST("salvage: of two at once one makes the files, and the other one says so", "[inspect][spool]")
{
	for (int from_scratch = 0; from_scratch < 2; from_scratch++) {
		struct scratch_path leaf;
		struct fixture fx;
		int other;

		make_failures(&fx, &places[0]);
		fx_close_writer(&fx);
		leaf = fx_path(&fx, places[0].leaf);
		if (!from_scratch)
			REQUIRE_EQ(rename(scratch_in(fx_path(&fx, places[0].scratch).s, REC_DIR).s,
					   scratch_in(leaf.s, REC_DIR).s),
				0);
		other = open(leaf.s, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		REQUIRE(other >= 0 && flock(other, LOCK_EX | LOCK_NB) == 0);
		CHECK_EQ(salvage(&fx, places[0].leaf), 4);
		CHECK(says(&fx, "another `ntrace salvage` is making its files"));
		CHECK(!leaf_has(leaf.s, "ntrace.pb"));
		(void)close(other);
		CHECK_EQ(salvage(&fx, places[0].leaf), 0);
		CHECK_EQ(leaf_executions(leaf.s), 1);
		fx_free(&fx);
	}
}

TEST("salvage: a file of somebody else where one is to be moved stays, and is named",
	"[inspect][spool]")
{
	struct scratch_path leaf;
	struct fixture fx;

	make_failures(&fx, &places[0]);
	fx_close_writer(&fx);
	leaf = fx_path(&fx, places[0].leaf);
	make_file(fx_path(&fx, places[0].scratch).s, "host_mem.pb", "ours");
	make_file(leaf.s, "host_mem.pb", "theirs");
	CHECK(salvage(&fx, places[0].leaf) != 0);
	CHECK(says(&fx, "host_mem.pb"));
	_cleanup_free_ char *text = program_text(scratch_in(leaf.s, "host_mem.pb").s);
	CHECK_STR(text, "theirs");
	fx_free(&fx);
}

static int summarize(const struct fixture *fx, const char *path)
{
	char program[512];
	char *argv[] = {program, "summary", (char *)path, NULL};

	(void)unlink(fx_path(fx, "log").s); /* which would go on */
	snprintf(program, sizeof(program), "%s", program_path("bin/ntrace").s);
	return program_run(argv, fx_path(fx, "log").s, NULL);
}

TEST("summary: a session for failures without files is named by its base and its directory until "
     "it is "
     "salvaged",
	"[inspect][spool]")
{
	for (size_t i = 0; i < PLACES; i++) {
		const struct failures *w = &places[i];
		struct scratch_path leaf;
		struct fixture fx;

		make_failures(&fx, w);
		leaf = fx_path(&fx, w->leaf);
		CHECK_EQ(summarize(&fx, fx.dir.dir), 3);
		CHECK(says(&fx, "still goes on"));
		CHECK_EQ(summarize(&fx, leaf.s), 3);
		CHECK(says(&fx, "still goes on"));
		fx_close_writer(&fx);
		CHECK_EQ(summarize(&fx, leaf.s), 3);
		CHECK(says(&fx, "`ntrace salvage /"));
		CHECK(says(&fx, w->scratch));
		CHECK_EQ(summarize(&fx, fx.dir.dir), 3);
		CHECK(says(&fx, "`ntrace salvage /"));
		CHECK(says(&fx, w->scratch));
		CHECK_EQ(salvage(&fx, w->leaf), 0);
		summarize(&fx, fx.dir.dir);
		CHECK(says(&fx, "events: "));
		CHECK(!says(&fx, "left out"));
		fx_free(&fx);
	}
}

TEST("salvage: files of another session, and what is no file, stay and are named",
	"[inspect][spool]")
{
	static const struct rec_session session = {.session_id = 1, .enabled = 1};

	for (unsigned i = 0; i < 3; i++) {
		struct fixture fx, other;

		REQUIRE(fx_open_bare(&fx));
		put_session(&fx, &session);
		fx_close_writer(&fx);
		REQUIRE(fx_open_bare(&other));
		put_session(&other, &session);
		fx_span(&other, TRACE_TENSOR_READ, 2, FX_PID, 3000, 4000);
		fx_close_writer(&other);
		REQUIRE_EQ(leaf_salvage(other.dir.dir, fx_path(&fx, "log").s), 0);
		for (size_t k = 0; i == 0 && k < LEAF_FILES; k++)
			REQUIRE_EQ(rename(scratch_in(other.dir.dir, leaf_files[k]).s,
					   scratch_in(fx.dir.dir, leaf_files[k]).s),
				0);
		if (i == 1)
			make_dirs(&fx, "ntrace.pb");
		if (i == 2)
			REQUIRE_EQ(symlink("/nowhere", fx_path(&fx, "ntrace.pb").s), 0);
		int entries = scratch_entries(fx.dir.dir);

		CHECK_EQ(leaf_salvage(fx.dir.dir, fx_path(&fx, "log").s), 3);
		CHECK(says(&fx, ".pb is there and is not what the recording gives; move it away"));
		CHECK_EQ(scratch_entries(fx.dir.dir), entries);
		fx_free(&fx);
		fx_free(&other);
	}
}

/* ---- recordings that were being removed ---------------------------------------------------- */

TEST("recording: one that is being removed is none from the first step on", "[inspect][spool]")
{
	struct fixture fx;
	struct scratch_path rec;

	REQUIRE(fx_open(&fx));
	fx_close_writer(&fx);
	rec = fx_path(&fx, REC_DIR);
	/* It cannot go: what it is called meanwhile stays. */
	make_file(rec.s, "segment-000000.ntrec.mine", "");
	CHECK_EQ(rec_remove(rec.s), -ENOTEMPTY);
	CHECK(access(rec.s, F_OK) < 0);
	CHECK_EQ(scratch_entries(fx.dir.dir), 1);
	fx_free(&fx);
}

TEST("salvage: what is left of a recording whose program died over removing it goes",
	"[inspect][spool]")
{
	static const struct rec_session session = {.session_id = 1, .enabled = 1};
	const char *rest = OUTFILE_TEMPORARY "4711-" REC_REMOVED;
	struct scratch_path dir, mine;
	struct fixture fx;

	REQUIRE(fx_open_bare(&fx));
	put_session(&fx, &session);
	fx_end_with(&fx, REC_END_ASKED);
	fx_close_writer(&fx);
	make_dirs(&fx, "leaf");
	dir = fx_path(&fx, "leaf");
	REQUIRE_EQ(rename(fx_path(&fx, REC_DIR).s, scratch_in(dir.s, REC_DIR).s), 0);
	REQUIRE_EQ(salvage(&fx, "leaf"), 0);
	REQUIRE_EQ(rename(scratch_in(dir.s, REC_DIR).s, scratch_in(dir.s, rest).s), 0);
	mine = scratch_in(dir.s, OUTFILE_TEMPORARY "mine-" REC_REMOVED);
	REQUIRE_EQ(mkdir(mine.s, 0700), 0);
	CHECK_EQ(salvage(&fx, "leaf"), 0);
	CHECK(says(&fx, "nothing to salvage"));
	CHECK(!leaf_has(dir.s, rest));
	CHECK(access(mine.s, F_OK) == 0); /* not of ours */
	fx_free(&fx);
}

TEST("salvage: a session whose recording has several segments is completed, and all of them can go",
	"[inspect][spool]")
{
	static const struct rec_session session = {.session_id = 1, .enabled = 1};
	static uint64_t noise[1u << 17]; /* 1 MiB that no compression makes smaller */
	struct rec_name head = {.id = 1};
	struct scratch_path dir, rec;
	uint64_t x = 88172645463325252u;
	struct fixture fx;

	REQUIRE(fx_open_bare(&fx));
	put_session(&fx, &session);
	for (unsigned n = 0; n < 70; n++, head.id++) {
		for (size_t i = 0; i < sizeof(noise) / sizeof(noise[0]); i++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			noise[i] = x;
		}
		fx_frame2(&fx, REC_NAME, FX_SOURCE, &head, sizeof(head), noise, sizeof(noise));
	}
	fx_end_with(&fx, REC_END_ASKED);
	fx_close_writer(&fx);
	make_dirs(&fx, "leaf");
	dir = fx_path(&fx, "leaf");
	rec = scratch_in(dir.s, REC_DIR);
	REQUIRE_EQ(rename(fx_path(&fx, REC_DIR).s, rec.s), 0);
	CHECK_EQ(scratch_entries(rec.s), 2);
	CHECK_EQ(salvage(&fx, "leaf"), 0);
	CHECK_EQ(leaf_executions(dir.s), 1);
	CHECK_EQ(rec_remove(rec.s), 0);
	CHECK(leaf_is_whole(dir.s, 0));
	fx_free(&fx);
}

/* ---- what to set -------------------------------------------------------------------------- */

TEST("salvage: what would have kept events of a session is its variable, no option of a recorder",
	"[inspect][spool]")
{
	static const struct rec_session session = {.session_id = 1, .enabled = 1};
	static const char variable[] =
		"lost: 100 runtime overwritten "
		"(NEURON_RT_INSPECT_SYS_TRACE_MAX_EVENTS_PER_NC makes it larger)";
	char program[512];
	struct fixture fx;
	struct scratch_path log;
	char *summary[] = {program, "summary", fx.dir.dir, NULL};

	REQUIRE(fx_open_bare(&fx));
	put_session(&fx, &session);
	fx_counter(&fx, FX_SOURCE, REC_C_RUNTIME_EMITTED, 0, 102);
	fx_counter(&fx, FX_SOURCE, REC_C_RUNTIME_DELIVERED, 0, 2);
	fx_counter(&fx, FX_SOURCE, REC_C_RUNTIME_OVERWRITTEN, 0, 100);
	fx_end_with(&fx, REC_END_ASKED);
	fx_close_writer(&fx);
	CHECK_EQ(leaf_salvage(fx.dir.dir, fx_path(&fx, "log").s), 0);
	CHECK(says(&fx, variable));
	snprintf(program, sizeof(program), "%s", program_path("bin/ntrace").s);
	REQUIRE_EQ(rec_remove(fx_path(&fx, REC_DIR).s), 0);
	log = fx_path(&fx, "log");
	CHECK_EQ(unlink(log.s), 0);
	(void)program_run(summary, log.s, NULL);
	CHECK(says(&fx, variable));
	fx_free(&fx);
}

/* ---- what could not be made ------------------------------------------------------------------- */

TEST("merge: files that a session could not make are told, though it ended in order",
	"[inspect][spool][merge]")
{
	static const struct rec_session session = {
		.session_id = 1, .enabled = 1, .device_profile = "session"};
	static const struct {
		struct rec_file file;
		unsigned n;
		const char *told;
	} rows[] = {
		{{.type = REC_FILE_LOST}, 1, "(NTFF) of NC 3: a thread"},
		{{.type = REC_FILE_LOST}, 2, "of 2 cores, the first NC 3"},
		{{.type = REC_FILE_UNWRITTEN}, 1, "NC 3, a file of the session that could not be"},
		{{.type = REC_FILE_UNWRITTEN}, 2,
			"2 files of the session that could not be written, "
			"the first NC 3"},
	};

	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		struct merge_options how = {.leaf = true};
		struct merge_result m;
		_cleanup_free_ char *text = NULL;
		bool told = false;
		struct fixture fx;

		REQUIRE(fx_open_bare(&fx));
		put_session(&fx, &session);
		for (unsigned i = 0; i < rows[r].n; i++)
			fx_frame2(&fx, REC_FILE, REC_SOURCE_RECORDER, &rows[r].file,
				sizeof(rows[r].file), "NC 3", 4);
		fx_end_with(&fx, REC_END_ASKED);
		fx_close_writer(&fx);
		REQUIRE_EQ(
			merge_recording(fx_path(&fx, REC_DIR).s, fx.dir.dir, &how, &m, &text), 0);
		for (uint32_t i = 0; i < m.blind_count; i++)
			told |= strstr(m.blind[i], rows[r].told) != NULL;
		CHECK(told);
		Ntff__NtraceInfo *info = info_in(fx.dir.dir);
		REQUIRE(info != NULL);
		CHECK_EQ(info->n_collected_profiles, 3); /* it is no file */
		ntff__ntrace_info__free_unpacked(info, NULL);
		merge_result_free(&m);
		fx_free(&fx);
	}
}
