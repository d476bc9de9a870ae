/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_rec.c - `ntrace rec info`, `rec verify` and `rec cut`: recordings themselves, without the
 * merge.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/output/rec_print.h"
#include "agent/output/report.h"
#include "runtime/base/file.h"
#include "runtime/record/rec_cut.h"
#include "runtime/record/rec_summary.h"

struct rec_args {
	const char *rec;
	const char *out;
	bool json, quiet;
	struct rec_cut_options cut;
};

/* ---- options ------------------------------------------------------------------------------ */

enum { OPT_FROM = 256, OPT_TO, OPT_PID, OPT_CORE };

static const struct argp_option info_options[] = {
	{"json", 'j', 0, 0, "One JSON object instead of text", 0},
	{0},
};
static const struct argp_option verify_options[] = {
	{"quiet", 'q', 0, 0, "Print nothing but errors", 0},
	{0},
};
static const struct argp_option cut_options[] = {
	{"output", 'o', "DIR", 0, "Directory that gets the new `recording`", 0},
	{"from", OPT_FROM, "TIME", 0,
		"Seconds since the start of the recording, or epoch nanoseconds", 0},
	{"to", OPT_TO, "TIME", 0, "The first moment that is no longer wanted, in the same way", 0},
	{"pid", OPT_PID, "PID", 0, "Only this process (may be given several times)", 0},
	{"core", OPT_CORE, "N", 0,
		"Only runtime events of this NeuronCore or of none (may be given several times)",
		0},
	{"quiet", 'q', 0, 0, "Print nothing but errors", 0},
	{0},
};

/* Seconds with up to nine decimals, or epoch ns (at least 10^15, which no recording lasts). */
static bool parse_time(const char *text, struct cut_time *ret)
{
	const char *p = text;
	uint64_t whole = 0, ns = 0, unit = 1000000000u;
	unsigned digits = 0;

	for (; isdigit((unsigned char)*p) && digits < 19; p++, digits++)
		whole = whole * 10 + (uint64_t)(*p - '0');
	if (!*p && whole >= 1000000000000000u) {
		*ret = (struct cut_time){CUT_EPOCH, whole};
		return true;
	}
	if (*p == '.')
		for (p++; isdigit((unsigned char)*p) && unit > 1; p++, digits++)
			ns += (uint64_t)(*p - '0') * (unit /= 10);
	if (*p || digits == 0 || whole >= 1000000000u)
		return false;
	*ret = (struct cut_time){CUT_RELATIVE, whole * 1000000000u + ns};
	return true;
}

static void add_choice(struct argp_state *state, const char *what, const char *arg,
	uint32_t *choices, unsigned *count)
{
	char *end;
	unsigned long v;

	errno = 0;
	v = strtoul(arg, &end, 10);
	if (!isdigit((unsigned char)*arg) || *end || errno || v > UINT32_MAX)
		argp_error(state, "%s: '%s' is no number", what, arg);
	if (*count == CUT_MAX_CHOICES)
		argp_error(state, "%s: at most %u", what, CUT_MAX_CHOICES);
	choices[(*count)++] = (uint32_t)v;
}

static void add_time(
	struct argp_state *state, const char *what, const char *arg, struct cut_time *t)
{
	if (!parse_time(arg, t))
		argp_error(state, "%s: '%s' is neither seconds nor epoch nanoseconds", what, arg);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct rec_args *a = state->input;

	switch (key) {
	case 'j':
		a->json = true;
		return 0;
	case 'q':
		a->quiet = true;
		return 0;
	case 'o':
		a->out = arg;
		return 0;
	case OPT_FROM:
		add_time(state, "--from", arg, &a->cut.from);
		return 0;
	case OPT_TO:
		add_time(state, "--to", arg, &a->cut.to);
		return 0;
	case OPT_PID:
		add_choice(state, "--pid", arg, a->cut.pids, &a->cut.pid_count);
		return 0;
	case OPT_CORE:
		add_choice(state, "--core", arg, a->cut.cores, &a->cut.core_count);
		return 0;
	default:
		return agent_one_argument(key, arg, state, "recording", &a->rec);
	}
}

static const struct argp info_argp = {info_options, parse, "REC",
	"Shows what the recording REC (a directory `recording`, or one that holds it) holds.", 0, 0,
	0};
static const struct argp verify_argp = {verify_options, parse, "REC",
	"Reads all of the recording REC and checks it: frames, footer, ledger, sequence numbers.",
	0, 0, 0};
static const struct argp cut_argp = {cut_options, parse, "-o DIR REC",
	"Makes a recording of a part of REC.  A span is kept whole when any part of it lies in the "
	"time that is wanted.",
	0, 0, 0};

/* ---- commands ----------------------------------------------------------------------------- */

static int refuse(const char *name, const char *path, int error)
{
	if (agent_wrong_kind(name, path, FILE_UNTOLD))
		return EXIT_USAGE;
	agent_message("%s: %s: %s", name, path, report_reason(error));
	return agent_exit_for_input(error);
}

/* Whatever was printed must have arrived. */
static int finish_output(const char *name, int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	agent_message("%s: cannot write to standard output: %s", name, strerror(errno));
	return EXIT_ENVIRONMENT;
}

static int rec_info(int argc, char **argv)
{
	struct rec_args a = {0};
	struct rec_summary s;

	agent_parse(&info_argp, "ntrace rec info", argc, argv, 0, &a);
	int rc = rec_summary_make(a.rec, &s);
	if (rc < 0)
		rc = refuse("rec info", a.rec, rc);
	else {
		(a.json ? rec_print_json : rec_print_text)(stdout, &s);
		/* A block that a writer has just begun is no damage. */
		bool bad = s.in_work ? s.damage.bad_frames > 0 : rec_damaged(&s.damage);
		for (size_t i = 0; i < s.profile_count; i++)
			bad |= summary_profile_fault(&s.profiles[i]) != NULL;
		rc = finish_output("rec info", bad ? EXIT_DATA : EXIT_OK);
	}
	rec_summary_free(&s);
	return rc;
}

/* Says which device profiles are not as they were; the exit code. */
static int judge_profiles(const struct rec_summary *s)
{
	int status = EXIT_OK;

	for (size_t i = 0; i < s->profile_count; i++) {
		const struct summary_profile *p = &s->profiles[i];
		const char *fault = summary_profile_fault(p);

		if (!fault)
			continue;
		printf("profile     " REC_DEVICE_PROFILE_FORMAT " of pid %" PRIu32 ": %s\n",
			p->frame.index, p->frame.pid, fault);
		status = EXIT_DATA;
	}
	return status;
}

/* Says what is wrong; the exit code. */
static int judge(const struct rec_summary *s)
{
	uint64_t lost = ledger_gaps_explained(&s->ledger);
	int status = EXIT_OK;

	if (s->ended && s->seq_gaps > lost) {
		printf("gaps        %" PRIu64 " driver calls missing by number, %" PRIu64
		       " of them explained\n",
			s->seq_gaps, lost);
		status = EXIT_NO;
	}
	if (s->ended && !ledger_balanced(&s->ledger, 0, true)) {
		printf("ledger      it does not balance: see `ntrace rec info`\n");
		status = EXIT_NO;
	}
	if (s->invalid) {
		printf("records     %" PRIu64 " frames hold records that are not whole\n",
			s->invalid);
		status = EXIT_DATA;
	}
	if (!s->has_header || s->clock.boot_after == 0) {
		printf("missing     %s\n", s->has_header ? "clock snapshots" : "the header");
		status = EXIT_DATA;
	}
	if (s->behind_end) {
		printf("end         %" PRIu64 " frames stand behind the end frame\n",
			s->behind_end);
		status = EXIT_DATA;
	}
	if (s->footer_fault) {
		printf("footer      %s\n", s->footer_fault);
		status = EXIT_DATA;
	}
	if (!s->ended) {
		printf("incomplete  %s%s\n",
			!s->in_work && rec_end_in_order(&s->end) ? "no end frame: " : "",
			s->in_work ? "it is still being written"
				   : report_end(&s->end, s->header.info.session));
		status = EXIT_DATA;
	}
	if (judge_profiles(s) != EXIT_OK)
		status = EXIT_DATA;
	rec_print_damage(stdout, &s->damage);
	return rec_damaged(&s->damage) ? EXIT_DATA : status;
}

static int rec_verify(int argc, char **argv)
{
	struct rec_args a = {0};
	struct rec_summary s;

	agent_parse(&verify_argp, "ntrace rec verify", argc, argv, 0, &a);
	int rc = rec_summary_make(a.rec, &s);
	if (rc < 0) {
		rc = refuse("rec verify", a.rec, rc);
	} else {
		uint64_t frames = 0;

		for (unsigned t = 0; t < SUMMARY_TYPES; t++)
			frames += s.types[t].frames;
		rc = judge(&s);
		if (!a.quiet)
			printf("%s%" PRIu64 " frames read\n", rc == EXIT_OK ? "sound: " : "",
				frames);
		rc = finish_output("rec verify", rc);
	}
	rec_summary_free(&s);
	return rc;
}

/* ", of processes 4711, 4712" */
static void print_found(FILE *f, const char *what, const struct rec_cut_found *found)
{
	if (found->count == 0)
		return;
	fprintf(f, "%s", what);
	for (unsigned i = 0; i < found->count; i++)
		fprintf(f, "%s%" PRIu32, i ? ", " : " ", found->values[i]);
	if (found->more)
		fprintf(f, " and others");
}

static void print_seconds(FILE *f, uint64_t ns)
{
	fprintf(f, "%" PRIu64 ".%09" PRIu64, ns / 1000000000u, ns % 1000000000u);
}

/* What the recording holds, as a text to be freed; NULL: no memory. */
static char *covered_text(const struct rec_cut_result *r)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	fprintf(f, "records");
	if (r->begin_ns && r->begin_ns <= r->first_ns) {
		fprintf(f, " from ");
		print_seconds(f, r->first_ns - r->begin_ns);
		fprintf(f, " to ");
		print_seconds(f, r->last_ns - r->begin_ns);
		fprintf(f, " s");
	}
	print_found(f, ", of process", &r->pids);
	print_found(f, ", of core", &r->cores);
	bool lost = ferror(f);
	if (fclose(f) != 0 || lost) {
		free(text);
		return NULL;
	}
	return text;
}

/* Why there is no cut; the exit code. */
static int cut_refused(
	const struct rec_args *a, const char *path, const struct rec_cut_result *r, int error)
{
	_cleanup_free_ char *covered = NULL;

	switch (error) {
	case -EEXIST:
		agent_message("rec cut: %s exists already", path);
		return EXIT_ENVIRONMENT;
	case -ENODATA:
		agent_message("rec cut: %s holds no clock snapshot, so no time in it can be told",
			a->rec);
		return EXIT_DATA;
	case -ERANGE:
		agent_message("rec cut: --from must be before --to");
		return EXIT_USAGE;
	case -EFBIG:
		agent_message("rec cut: %s: its header is too long to be rewritten", a->rec);
		return EXIT_DATA;
	case -ENOMSG:
		covered = covered_text(r);
		agent_message(
			"rec cut: nothing of %s is wanted, so nothing was written; it holds %s",
			a->rec, covered ? covered : "other records");
		return EXIT_NO;
	default:
		return refuse("rec cut", a->rec, error);
	}
}

/* Names what was asked for and is not there. */
static void warn_absent(const char *rec, const char *what, const uint32_t *choices, unsigned count,
	const struct rec_cut_found *found)
{
	for (unsigned i = 0; i < count; i++) {
		bool there = found->more;

		for (unsigned k = 0; k < found->count && !there; k++)
			there = found->values[k] == choices[i];
		if (!there)
			agent_message(
				"rec cut: %s has no records of %s %" PRIu32, rec, what, choices[i]);
	}
}

static void warn_profiles(const struct rec_cut_result *r)
{
	if (r->profiles_left_out)
		agent_message("rec cut: %" PRIu64 " device profile%s left out: they cannot be cut "
			      "to a time or core, only to a process (--pid)",
			r->profiles_left_out, r->profiles_left_out == 1 ? "" : "s");
	if (r->profiles_bad)
		agent_message("rec cut: %" PRIu64 " device profile%s left out: missing or damaged; "
			      "`ntrace rec verify` says which",
			r->profiles_bad, r->profiles_bad == 1 ? "" : "s");
}

static int cut_into(const struct rec_args *a, const char *path)
{
	struct rec_cut_result r;
	unsigned made;
	int rc = file_mkdirs(a->out, &made);

	if (rc < 0) {
		agent_message("rec cut: cannot create %s: %s", a->out, strerror(-rc));
		return EXIT_ENVIRONMENT;
	}
	rc = rec_cut(a->rec, path, &a->cut, &r);
	if (rc < 0)
		file_mkdirs_undo(a->out, made);
	if (rc < 0)
		return cut_refused(a, path, &r, rc);
	warn_absent(a->rec, "process", a->cut.pids, a->cut.pid_count, &r.pids);
	warn_absent(a->rec, "core", a->cut.cores, a->cut.core_count, &r.cores);
	if (r.in_work)
		agent_message("rec cut: %s is still being written; this is a cut of what there was "
			      "so far",
			a->rec);
	warn_profiles(&r);
	if (!a->quiet) {
		fprintf(stderr,
			"%s  %" PRIu64 " records kept, %" PRIu64 " left out, %" PRIu64 " bytes\n",
			path, r.kept, r.left_out, r.bytes);
		rec_print_damage(stderr, &r.damage);
	}
	return r.in_work || rec_damaged(&r.damage) || r.profiles_bad ? EXIT_DATA : EXIT_OK;
}

static int rec_cut_command(int argc, char **argv)
{
	struct rec_args a = {0};
	_cleanup_free_ char *path = NULL;

	agent_parse(&cut_argp, "ntrace rec cut", argc, argv, 0, &a);
	if (!a.out) {
		agent_message("rec cut: -o DIR is missing: where shall the recording go?");
		return EXIT_USAGE;
	}
	if (asprintf(&path, "%s/%s", a.out, REC_DIR) < 0) {
		path = NULL;
		return agent_no_memory("rec cut");
	}
	return cut_into(&a, path);
}

/* ---- the table ---------------------------------------------------------------------------- */

static const struct agent_cmd commands[] = {
	{"info", rec_info, "show what a recording holds"},
	{"verify", rec_verify, "read all of it and check it"},
	{"cut", rec_cut_command, "make a recording of a part: by time, process, core"},
};

static void print_help(FILE *f)
{
	fprintf(f, "Usage: ntrace rec COMMAND [OPTION...] REC\n\nCommands:\n");
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		fprintf(f, "  %-9s %s\n", commands[i].name, commands[i].help);
	fprintf(f, "\n`ntrace rec COMMAND --help` shows a command's options.\n");
}

int cmd_rec(int argc, char **argv)
{
	if (argc < 2) {
		print_help(stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
		print_help(stdout);
		return EXIT_OK;
	}
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		if (!strcmp(argv[1], commands[i].name))
			return commands[i].run(argc - 1, argv + 1);
	agent_message("rec: no command named '%s'; `ntrace rec --help` lists them", argv[1]);
	return EXIT_USAGE;
}
