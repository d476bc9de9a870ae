/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_state_test.c - what is damaged, incomplete or there twice is told by every command that reads it, in
 * the same words and with the same exit code.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>

#include "agent/agent.h"
#include "agent/output/state.h"
#include "agent/output/trace_read.h"
#include "runtime/base/file.h"
#include "runtime/record/rec_cut.h"
#include "tests/shim/shim.h"
#include "tests/unit/recording_fixture.h"

#define TID 100u
#define FILES "out/i-0123_pid_4711"

/* Runs a command in this process; what it printed is in `said`, to be freed.  Arguments end with NULL. */
static int run(struct fixture *fx, char **said, int (*command)(int, char **), ...)
{
	char *argv[10] = {"command"};
	int argc = 1, keep[2] = {dup(STDOUT_FILENO), dup(STDERR_FILENO)};
	struct scratch_path log = fx_path(fx, "log");
	int to = open(log.s, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
	size_t size;
	va_list ap;

	va_start(ap, command);
	while (argc < 9 && (argv[argc] = va_arg(ap, char *)))
		argc++;
	va_end(ap);
	for (int i = 0; i < 2; i++) {
		fflush(i ? stderr : stdout);
		dup2(to, i ? STDERR_FILENO : STDOUT_FILENO);
	}
	int code = command(argc, argv);
	for (int i = 0; i < 2; i++) {
		fflush(i ? stderr : stdout);
		dup2(keep[i], i ? STDERR_FILENO : STDOUT_FILENO);
		close(keep[i]);
	}
	close(to);
	if (file_read(log.s, 1 << 20, said, &size) < 0)
		*said = NULL;
	test_info("%s", *said ? *said : "");
	return code;
}

#define RUN(fx, code, says, command, ...)                              \
	do {                                                           \
		_cleanup_free_ char *said_ = NULL;                     \
		CHECK_EQ(run(fx, &said_, command, __VA_ARGS__), code); \
		CHECK(said_ &&strstr(said_, says));                    \
	} while (0)

/* Three spans, the end or none; the recording then ends in the middle of the last span's block (behind = 40)
 * or at its begin (0).  ~0: it is left whole. */
static bool make(struct fixture *fx, bool ended, uint64_t behind)
{
	if (!fx_open(fx))
		return false;
	fx_span(fx, TRACE_TENSOR_READ, 1, TID, 1000, 2000);
	fx_span(fx, TRACE_TENSOR_READ, 2, TID, 3000, 4000);
	uint64_t at = rec_writer_bytes(fx->w);
	fx_span(fx, TRACE_TENSOR_READ, 3, TID, 5000, 6000);
	if (ended)
		fx_end(fx);
	return fx_close_writer(fx) == 0 &&
	       (behind == UINT64_MAX || truncate(fx_path(fx, REC_DIR "/segment-000000.ntrec").s,
						(off_t)(at + behind)) == 0);
}

static bool flip(struct fixture *fx, uint64_t at)
{
	_cleanup_close_ int fd = open(fx_path(fx, REC_DIR "/segment-000000.ntrec").s, O_RDWR);
	char byte;

	if (fd < 0 || pread(fd, &byte, 1, (off_t)at) != 1)
		return false;
	byte ^= 1;
	return pwrite(fd, &byte, 1, (off_t)at) == 1;
}

/* The recording, and the files that a salvage makes of it, have this exit code in all commands that read them,
 * and `fault` is said. */
static void check_all(struct fixture *fx, int salvaged, int code, const char *fault)
{
	struct scratch_path rec = fx_path(fx, REC_DIR), out = fx_path(fx, "out"),
			    again = fx_path(fx, "again"), of_rec = fx_path(fx, "rec.pf"),
			    of_files = fx_path(fx, "files.pf");

	RUN(fx, salvaged, salvaged ? fault : "", cmd_salvage, rec.s, "-o", out.s, NULL);
	RUN(fx, code, fault, cmd_replay, rec.s, "-o", again.s, NULL);
	RUN(fx, code, fault, cmd_summary, rec.s, NULL);
	RUN(fx, code, fault, cmd_summary, out.s, NULL);
	RUN(fx, code, fault, cmd_export, rec.s, "-o", of_rec.s, NULL);
	RUN(fx, code, fault, cmd_export, out.s, "-o", of_files.s, NULL);
}

TEST("state: a file that is cut off is told everywhere, and nobody claims to know what is gone",
	"[output]")
{
	struct fixture fx;

	REQUIRE(make(&fx, false, 40));
	check_all(&fx, EXIT_DATA, EXIT_DATA, "40 bytes of a block that is cut off at the end");
	RUN(&fx, EXIT_DATA, "lost: unknown, the file is cut off; before that 40 bytes of a block",
		cmd_summary, fx_path(&fx, "out").s, NULL);
	RUN(&fx, EXIT_DATA, "blind: everything since the end of the recording, which is cut off",
		cmd_summary, fx_path(&fx, "out").s, NULL);
	RUN(&fx, EXIT_DATA, "lost: unknown, the file is cut off; before that 40 bytes", cmd_replay,
		fx_path(&fx, REC_DIR).s, "-o", fx_path(&fx, "third").s, NULL);
	RUN(&fx, EXIT_DATA, "\"cut_bytes\":40", cmd_summary, "-j", fx_path(&fx, "out").s, NULL);
	RUN(&fx, EXIT_DATA, "\"lost_known\":false", cmd_summary, "-j", fx_path(&fx, "out").s, NULL);
	fx_free(&fx);
}

TEST("state: a cut of what is cut off claims no bound, and nobody that no device was used",
	"[output]")
{
	struct rec_cut_options o = {0};
	struct rec_cut_result cut;
	struct fixture fx;

	REQUIRE(make(&fx, false, 40));
	REQUIRE_EQ(rec_cut(fx_path(&fx, REC_DIR).s, fx_path(&fx, "part").s, &o, &cut), 0);
	RUN(&fx, EXIT_DATA, "lost: unknown, what was cut has no end; before that nothing",
		cmd_summary, fx_path(&fx, "part").s, NULL);
	RUN(&fx, EXIT_DATA, "blind: everything since the end of what was cut", cmd_summary,
		fx_path(&fx, "part").s, NULL);
	fx_free(&fx);

	REQUIRE(fx_open(&fx)); /* there is no record in it */
	fx_close_writer(&fx);
	_cleanup_free_ char *said = NULL;
	CHECK_EQ(run(&fx, &said, cmd_replay, fx_path(&fx, REC_DIR).s, "-o", fx_path(&fx, "out").s,
			 NULL),
		EXIT_DATA);
	CHECK(said && strstr(said, "no process that used a neuron device is in what there is"));
	CHECK(said && !strstr(said, "no device was used"));
	fx_free(&fx);
}

TEST("state: a recording that ends at a block's end may be a killed recorder's", "[output]")
{
	struct fixture fx;

	REQUIRE(make(&fx, false, 0));
	check_all(&fx, EXIT_OK, EXIT_DATA, "the recorder was killed, or the recording is cut off");
	RUN(&fx, EXIT_DATA,
		"at most the last 100 ms if the recorder was killed; before that nothing",
		cmd_summary, fx_path(&fx, "out").s, NULL);
	fx_free(&fx);
}

TEST("state: of a session that was not ended nobody speaks of a recorder", "[output]")
{
	static const struct rec_session session = {.session_id = 1};
	static const struct rec_header_info info = {
		.producer = "ntrace test", .instance_id = "h", .session = &session};
	_cleanup_free_ char *said = NULL;
	struct fixture fx;

	REQUIRE(fx_open_bare(&fx));
	fx_header(&fx, &info);
	fx_clock(&fx, 100, 0);
	fx_process(&fx, FX_SOURCE, FX_PID);
	fx_span(&fx, TRACE_TENSOR_READ, 1, TID, 1000, 2000);
	fx_close_writer(&fx);
	check_all(&fx, EXIT_OK, EXIT_DATA, "the program ended without ending its session");
	RUN(&fx, EXIT_DATA, "at most the last 100 ms before the program ended; before that nothing",
		cmd_summary, fx_path(&fx, "out").s, NULL);
	CHECK_EQ(run(&fx, &said, cmd_salvage, fx_path(&fx, REC_DIR).s, "-o",
			 fx_path(&fx, "other").s, NULL),
		EXIT_OK);
	CHECK(said && strstr(said, "incomplete: the program ended") && !strstr(said, "recorder"));
	fx_free(&fx);
}

TEST("twice: a session and what a recorder has of its process are not counted twice", "[output]")
{
	static const struct rec_session session = {.session_id = 1};
	static const struct rec_header_info own = {
		.producer = "libnrt", .instance_id = "i-0123", .session = &session};
	struct fixture a, b;

	REQUIRE(fx_open(&a));
	REQUIRE(fx_open_bare(&b));
	fx_header(&b, &own);
	fx_clock(&b, 200, 0);
	fx_process(&b, FX_SOURCE, FX_PID);
	fx_counter(&a, FX_SOURCE, REC_C_SESSIONS, 0, 1);
	for (unsigned i = 0; i < 2; i++) {
		struct fixture *fx = i ? &b : &a;

		fx_span(fx, TRACE_TENSOR_READ, 1, TID, 1000, 2000);
		fx_end(fx);
		fx_close_writer(fx);
		RUN(&a, EXIT_OK, "ntrace.pb", cmd_replay, fx_path(fx, REC_DIR).s, "-o",
			fx_path(&a, "out").s, NULL);
	}
	struct scratch_path out = fx_path(&a, "out"), file = fx_path(&a, "out.pf");
	RUN(&a, EXIT_USAGE, "is what a recorder has of process 4711", cmd_summary, out.s, NULL);
	RUN(&a, EXIT_USAGE, "together all would count twice", cmd_export, out.s, "-o", file.s,
		NULL);
	CHECK(access(file.s, F_OK) < 0);
	scratch_remove_tree(fx_path(&a, "out/ntrace-i-0123-4711").s);
	RUN(&a, EXIT_OK, "duration", cmd_summary, out.s, NULL);
	fx_free(&a);
	fx_free(&b);
}

TEST("state: bytes that were skipped stay told when the files were merged", "[output]")
{
	struct fixture fx;
	Ntff__NtraceInfo *info;
	char *path;

	REQUIRE(make(&fx, true, UINT64_MAX));
	REQUIRE(flip(&fx, 700));
	check_all(&fx, EXIT_DATA, EXIT_DATA, "skipped in 1 place");
	RUN(&fx, EXIT_DATA, " bytes skipped in 1 place\nblind: ", cmd_summary,
		fx_path(&fx, "out").s, NULL);
	REQUIRE_EQ(trace_info_read(fx_path(&fx, FILES "/ntrace.pb").s, &info, &path), 0);
	REQUIRE(info && info->damage);
	CHECK(info->ended);
	CHECK_STR(info->end, "command");
	CHECK_EQ(info->damage->places, 1);
	CHECK(info->damage->skipped_bytes > 0);
	CHECK_EQ(info->damage->cut_bytes, 0);
	ntff__ntrace_info__free_unpacked(info, NULL);
	free(path);
	fx_free(&fx);
}

TEST("state: of damage in a trace whose end is not known its bytes are told, not that nothing was "
     "lost",
	"[output]")
{
	struct fixture fx;

	REQUIRE(make(&fx, false, UINT64_MAX));
	REQUIRE(flip(&fx, 700));
	RUN(&fx, EXIT_DATA, "skipped", cmd_salvage, fx_path(&fx, REC_DIR).s, "-o",
		fx_path(&fx, "out").s, NULL);
	_cleanup_free_ char *said = NULL;
	run(&fx, &said, cmd_summary, fx_path(&fx, "out").s, NULL);
	const char *lost = said ? strstr(said, "\nlost: unknown, at most the last 100 ms") : NULL;
	REQUIRE(lost != NULL);
	_cleanup_free_ char *line = strndup(lost + 1, strcspn(lost + 1, "\n"));
	CHECK(line && strstr(line, "; before that ") && strstr(line, " skipped in 1 place"));
	CHECK(line && !strstr(line, "nothing"));
	fx_free(&fx);
}

TEST("state: of segments that are gone, misplaced or no file it is said which", "[output]")
{
	static const struct {
		struct rec_damage damage;
		const char *text;
	} cases[] = {
		{{.bad_frames = 1, .missing = {1, 3}}, "segment 3 is missing"},
		{{.bad_frames = 1, .missing = {4, 3}}, "segments 3 to 6 are missing"},
		{{.skipped_bytes = 32, .bad_frames = 4, .misplaced = {2, 1}, .misplaced_is = 3},
			"32 bytes skipped in 4 places, segment-000001.ntrec is segment 3, 1 more "
			"is "
			"misplaced"},
		{{.bad_frames = 3, .no_file = {3, 2}, .cut_bytes = 1},
			"segment-000002.ntrec is not a file, 2 more are none, 1 byte of a block "
			"that "
			"is cut off at the end"},
		{{.bad_frames = 2}, "something is missing in 2 places"},
		{{.skipped_bytes = 1, .bad_frames = 1}, "1 byte skipped in 1 place"},
		{{0}, ""},
	};
	char text[STATE_TEXT];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		state_damage(&cases[i].damage, text);
		CHECK_STR(text, cases[i].text);
	}
}

TEST("state: a whole recording has no fault, and its files have its begin", "[output]")
{
	struct fixture fx;
	Ntff__NtraceInfo *info;
	char *path;

	REQUIRE(make(&fx, true, UINT64_MAX));
	check_all(&fx, EXIT_OK, EXIT_OK, "");
	REQUIRE_EQ(trace_info_read(fx_path(&fx, FILES "/ntrace.pb").s, &info, &path), 0);
	REQUIRE(info != NULL);
	CHECK(!info->damage && !info->cut);
	CHECK_EQ(info->begin_ns, FX_EPOCH + 50);
	ntff__ntrace_info__free_unpacked(info, NULL);
	free(path);
	fx_free(&fx);
}

TEST("state: how a recording ended comes back from trace_info", "[output]")
{
	for (unsigned reason = REC_END_COMMAND; reason <= REC_END_FAILED; reason++) {
		Ntff__NtraceInfo info = NTFF__NTRACE_INFO__INIT;
		struct trace_state s;
		char text[STATE_TEXT];

		info.end = (char *)merge_end_name(reason);
		info.ended = reason <= REC_END_ASKED;
		s = state_of_info(&info);
		CHECK_EQ(s.end.reason, reason);
		CHECK_EQ(state_fault(&s, text), reason > REC_END_ASKED);
	}
	CHECK(merge_end_name(REC_END_FAILED + 1) == NULL);
}

TEST("report: open calls are told, and what would have kept a loss from happening", "[output]")
{
	for (unsigned counted = 0; counted < 3; counted++) {
		struct fixture fx;

		REQUIRE(fx_open(&fx));
		fx_copy(&fx, TID, 1000, 2000, 64);
		if (counted == 1) {
			fx_counter(&fx, REC_SOURCE_KERNEL, REC_C_KERNEL_ENTERED, 0, 6);
			fx_counter(&fx, REC_SOURCE_KERNEL, REC_C_KERNEL_DONE, 0, 1);
			fx_counter(&fx, REC_SOURCE_KERNEL, REC_C_KERNEL_OPEN, 0, 2);
			fx_counter(&fx, REC_SOURCE_KERNEL, REC_C_KERNEL_RING_FULL, 0, 3);
			fx_counter(&fx, REC_SOURCE_KERNEL, REC_C_KERNEL_RECEIVED, 0, 1);
		}
		if (counted == 2)
			fx_counter(&fx, REC_SOURCE_RECORDER, REC_C_AGENT_BYTES, 0, 5);
		fx_end(&fx);
		fx_close_writer(&fx);
		RUN(&fx, EXIT_OK,
			counted == 0 ? "lost: nothing (calls and events were not counted)\n"
			: counted == 1
				? "lost: 3 kernel ring_full (--kernel-ring=BYTES makes it larger) "
				  "(kernel 1 of 6 calls and 2 still open, runtime 0 of 0 events "
				  "recorded)\n"
				: "lost: nothing (there were no driver calls and no runtime "
				  "events)\n",
			cmd_replay, fx_path(&fx, REC_DIR).s, "-o", fx_path(&fx, "out").s, NULL);
		fx_free(&fx);
	}
}

/* ---- twice --------------------------------------------------------------------------------- */

TEST("salvage: what is merged already is not merged again", "[output]")
{
	for (unsigned ended = 0; ended < 2; ended++) {
		struct fixture fx;

		REQUIRE(make(&fx, ended, ended ? UINT64_MAX : 0));
		struct scratch_path rec = fx_path(&fx, REC_DIR), out = fx_path(&fx, "out");
		RUN(&fx, EXIT_OK, "ntrace.pb", cmd_salvage, rec.s, "-o", out.s, NULL);
		RUN(&fx, EXIT_OK, "nothing to salvage", cmd_salvage, rec.s, "-o", out.s, NULL);
		RUN(&fx, EXIT_OK, FILES, cmd_salvage, rec.s, "-o", out.s, NULL);
		CHECK_EQ(scratch_entries(out.s), 1);
		RUN(&fx, EXIT_OK, "pid_4711_2", cmd_salvage, "--kernel-events=off", rec.s, "-o",
			out.s, NULL);
		CHECK_EQ(scratch_entries(out.s), 2);
		fx_free(&fx);
	}
}

TEST("salvage: when the files of one process of two are missing both are written", "[output]")
{
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	fx_process(&fx, FX_SOURCE + 1, 99);
	fx_span(&fx, TRACE_TENSOR_WRITE, 1, 5, 1000, 2000);
	fx_record(&fx, TRACE_TENSOR_WRITE, TRACE_INSTANT, 2, 5, 1000);
	fx_records(&fx, FX_SOURCE + 1);
	fx_end(&fx);
	fx_close_writer(&fx);
	struct scratch_path rec = fx_path(&fx, REC_DIR), out = fx_path(&fx, "out");
	RUN(&fx, EXIT_OK, "ntrace.pb", cmd_salvage, rec.s, "-o", out.s, NULL);
	RUN(&fx, EXIT_OK, "2 processes", cmd_salvage, rec.s, "-o", out.s, NULL);
	scratch_remove_tree(fx_path(&fx, "out/i-0123_pid_99").s);
	RUN(&fx, EXIT_OK, "i-0123_pid_99/ntrace.pb", cmd_salvage, rec.s, "-o", out.s, NULL);
	fx_free(&fx);
}

TEST("twice: a recording that was merged twice into a directory is not counted twice", "[output]")
{
	struct fixture fx;

	REQUIRE(make(&fx, true, UINT64_MAX));
	struct scratch_path rec = fx_path(&fx, REC_DIR), out = fx_path(&fx, "out"),
			    file = fx_path(&fx, "out.pf"), one = fx_path(&fx, FILES);
	for (unsigned i = 0; i < 2; i++)
		RUN(&fx, EXIT_OK, "", cmd_replay, rec.s, "-o", out.s, NULL);
	RUN(&fx, EXIT_USAGE, "_pid_4711 and ", cmd_summary, out.s, NULL);
	RUN(&fx, EXIT_USAGE, "_pid_4711_2 are process 4711 of the same recording", cmd_summary,
		out.s, NULL);
	RUN(&fx, EXIT_USAGE, "of the same recording", cmd_export, out.s, "-o", file.s, NULL);
	CHECK(access(file.s, F_OK) < 0);
	RUN(&fx, EXIT_USAGE, "of the same recording", cmd_diff, one.s, out.s, NULL);
	RUN(&fx, EXIT_OK, "duration", cmd_summary, one.s, NULL);
	fx_free(&fx);
}
