/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_damage_test.c - `ntrace salvage` of a session whose recording is cut off or changed: it
 * makes of it what is whole, says that something is missing, and never dies over it.
 */
#include <sys/stat.h>
#include <unistd.h>

#include "tests/shim/shim.h"
#include "tests/unit/inspect_leaf.h"
#include "tests/unit/programs.h"
#include "tests/unit/recording_fixture.h"

#define SPANS 24
#define PLACES 40
#define SEGMENT "leaf/" REC_DIR "/segment-000000.ntrec"

struct victim {
	struct fixture fx;
	struct scratch_path leaf, segment, log;
	char *data;
	size_t size;
	size_t head;	    /* bytes until the header, a clock and the process are there */
	size_t ends[SPANS]; /* where each span is whole */
};

static size_t flushed(struct fixture *fx)
{
	CHECK_EQ(rec_writer_flush(fx->w), 0);
	return rec_writer_bytes(fx->w);
}

/* Each span in a block of its own; the session has ended in order. */
static void victim_make(struct victim *v)
{
	static const struct rec_session session = {.session_id = 1, .enabled = 1};
	const struct rec_header_info info = {
		.producer = "test", .instance_id = "i-0123", .host = "h", .session = &session};
	struct fixture *fx = &v->fx;

	memset(v, 0, sizeof(*v));
	REQUIRE(fx_open_bare(fx));
	fx_header(fx, &info);
	fx_clock(fx, 100, 0);
	fx_process(fx, FX_SOURCE, FX_PID);
	v->head = flushed(fx);
	for (unsigned i = 0; i < SPANS; i++) {
		fx_span(fx, TRACE_EXECUTE_API, i + 1, FX_PID, 1000 + 2000 * i, 2000 + 2000 * i);
		fx_records(fx, FX_SOURCE);
		v->ends[i] = flushed(fx);
	}
	fx_end_with(fx, REC_END_ASKED);
	fx_close_writer(fx);
	v->leaf = fx_path(fx, "leaf");
	v->segment = fx_path(fx, SEGMENT);
	v->log = fx_path(fx, "log");
	REQUIRE_EQ(mkdir(v->leaf.s, 0700), 0);
	REQUIRE_EQ(rename(fx_path(fx, REC_DIR).s, scratch_in(v->leaf.s, REC_DIR).s), 0);
	REQUIRE_EQ(file_read(v->segment.s, 1u << 24, &v->data, &v->size), 0);
	REQUIRE(v->size > v->ends[SPANS - 1]);
}

static void victim_free(struct victim *v)
{
	free(v->data);
	fx_free(&v->fx);
}

/* Salvages this in place of the recording; the exit status. */
static int salvage(const struct victim *v, const char *data, size_t size)
{
	FILE *f = fopen(v->segment.s, "we");

	CHECK(f && fwrite(data, 1, size, f) == size);
	if (f)
		fclose(f);
	(void)unlink(v->log.s);
	return leaf_salvage(v->leaf.s, v->log.s);
}

static bool says(const struct victim *v, const char *text)
{
	_cleanup_free_ char *said = program_text(v->log.s);

	test_info("%s", said);
	return said && strstr(said, text);
}

static long executions(const struct victim *v)
{
	return leaf_has(v->leaf.s, "ntrace.pb") ? leaf_executions(v->leaf.s) : 0;
}

static void take_files_away(const struct victim *v)
{
	for (int i = 0; i < LEAF_FILES; i++)
		(void)unlink(scratch_in(v->leaf.s, leaf_files[i]).s);
	/* Whose files they are the header says. */
	scratch_remove_tree(scratch_in(v->leaf.s, "unknown_pid_4711").s);
}

/* Nothing but what the table of exit codes says of data that is damaged or none of ours. */
static bool is_answer(int status)
{
	return status == 0 || status == 3 || status == 4;
}

TEST("salvage: of a session's recording that is cut anywhere all is made that is before the cut",
	"[inspect][spool][salvage]")
{
	struct victim v;

	victim_make(&v);
	for (unsigned place = 0; place < PLACES; place++) {
		size_t cut = v.size * place / PLACES, whole = 0;
		int status = salvage(&v, v.data, cut);

		test_info("cut at %zu of %zu: %d", cut, v.size, status);
		while (whole < SPANS && v.ends[whole] <= cut)
			whole++;
		CHECK(is_answer(status));
		if (cut < v.head) {
			CHECK(status != 0);
		} else {
			CHECK(leaf_is_whole(v.leaf.s, 1)); /* its recording */
			/* One is whole a little before what was flushed with it ends. */
			CHECK(executions(&v) >= (long)whole && executions(&v) <= (long)whole + 1);
			CHECK(says(&v, cut < v.ends[SPANS - 1] ? "incomplete" : ""));
		}
		take_files_away(&v);
	}
	victim_free(&v);
}

TEST("salvage: a changed byte in a session's recording costs the block that it is in, and that is "
     "said",
	"[inspect][spool][salvage]")
{
	struct victim v;

	victim_make(&v);
	for (unsigned place = 0; place < PLACES; place++) {
		size_t at = v.size * place / PLACES;
		int status;

		v.data[at] ^= (char)(1 << place % 8);
		status = salvage(&v, v.data, v.size);
		v.data[at] ^= (char)(1 << place % 8);
		test_info("byte %zu of %zu: %d", at, v.size, status);
		CHECK(is_answer(status));
		if (at >= v.head && at < v.ends[SPANS - 1]) {
			CHECK_EQ(status, 4);
			CHECK(leaf_is_whole(v.leaf.s, 1));
			CHECK(executions(&v) >= SPANS - 1);
			CHECK(says(&v, "damage: "));
		}
		take_files_away(&v);
	}
	victim_free(&v);
}
