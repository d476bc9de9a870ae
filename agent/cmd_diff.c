/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_diff.c - `ntrace diff`: do two traces mean the same?
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/output/diff.h"
#include "agent/output/json_out.h"
#include "agent/output/leaf.h"
#include "agent/output/leaf_below.h"
#include "agent/output/report.h"
#include "agent/output/same_trace.h"
#include "agent/output/trace_read.h"
#include "runtime/base/file.h"
#include "runtime/record/recording.h"

struct diff_args {
	const char *path[2];
	unsigned paths;
	bool json;
	bool incomplete; /* sessions are left out */
	struct diff_options options;
};

enum { OPT_TOLERANCE = 256, OPT_IGNORE_TIMES };

static const struct argp_option options[] = {
	{"tolerance", OPT_TOLERANCE, "PERCENT", 0,
		"By how much of A's the durations of B may deviate, e.g. 10% (default: 0)", 0},
	{"ignore-times", OPT_IGNORE_TIMES, 0, 0,
		"Compare names, order, nesting and attributes only, thread by thread", 0},
	{"json", 'j', 0, 0, "Print one JSON object", 0},
	{0},
};

/* "10%" or "10" or "0.5%" as a part of 1; false for anything else. */
static bool parse_percent(const char *text, double *ret)
{
	char *end;
	double v;

	if (*text < '0' || *text > '9')
		return false;
	v = strtod(text, &end);
	if (!isfinite(v) || (*end && strcmp(end, "%") != 0))
		return false;
	*ret = v / 100;
	return true;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct diff_args *a = state->input;

	switch (key) {
	case OPT_TOLERANCE:
		if (!parse_percent(arg, &a->options.tolerance))
			argp_error(state, "--tolerance: '%s' is not a percentage like 10%%", arg);
		return 0;
	case OPT_IGNORE_TIMES:
		a->options.ignore_times = true;
		return 0;
	case 'j':
		a->json = true;
		return 0;
	case ARGP_KEY_ARG:
		if (a->paths == 2)
			argp_error(state, "two traces at a time");
		a->path[a->paths++] = arg;
		return 0;
	case ARGP_KEY_END:
		if (a->paths < 2)
			argp_error(state, "two traces are needed");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {options, parse, "A B",
	"Compares two traces by meaning: counts, durations, losses, and the order of events.  A "
	"and B "
	"are directories that `record` or `replay` wrote, or ntrace.pb files.  Exits with 0 when "
	"they "
	"are the same and with 1 when they differ.",
	0, 0, 0};

/* Is there a recording in which nobody used a device?  1; 0: it has records; -ENOENT: there is none;
 * -EBADMSG: damage, so what it had is not known; another -errno. */
static int nothing_recorded(const char *path)
{
	const struct rec_frame *f;
	const uint8_t *payload;
	struct rec_reader *r;
	bool records = false;
	int rc = rec_reader_open(path, &r);

	if (rc < 0)
		return rc;
	while (!records && (rc = rec_reader_next(r, &f, &payload)) == 1)
		records = (f->type == REC_RUNTIME || f->type == REC_KERNEL ||
				  f->type == REC_DRIVER) &&
			  f->size;
	struct rec_damage damage = rec_reader_damage(r);
	rec_reader_close(r);
	if (rc < 0 || records)
		return rc < 0 ? rc : 0;
	return rec_damaged(&damage) ? -EBADMSG : 1;
}

/* Says which sessions have no files yet; their number, 0 also when that cannot be told. */
static size_t say_left_out(const char *path)
{
	static char name[] = "diff";
	struct leaf_below out;
	size_t n = leaf_below_left_out(path, &out) == 0 ? out.count : 0;

	for (size_t i = 0; i < n; i++)
		agent_left_out(name, out.dirs[i], leaf_in_work(out.dirs[i]));
	leaf_below_free(&out);
	return n;
}

/* A directory without traces is one all the same when that is what its recording gives. */
static int explain_none(const char *path)
{
	int rc = nothing_recorded(path);

	if (rc > 0)
		return EXIT_OK;
	if (rc == -ENOENT)
		agent_message("diff: %s: there is no ntrace.pb here or one directory below%s", path,
			say_left_out(path) ? ", and what is above has no files yet" : "");
	else if (rc == 0)
		agent_message("diff: %s: the recording is not merged yet; `ntrace replay %s -o "
			      "DIR` writes its traces",
			path, path);
	else
		agent_message("diff: %s: there is no ntrace.pb, and of the recording: %s", path,
			rc == -EBADMSG ? "it is damaged" : report_reason(rc));
	return rc == -ENOENT || rc == 0 ? EXIT_ENVIRONMENT : agent_exit_for_input(rc);
}

static int find(struct diff_args *a, const char *path, struct trace_set *set)
{
	int rc = trace_set_find(path, set);

	if (rc == -ENODATA)
		return explain_none(path);
	if (rc < 0) {
		agent_message("diff: cannot read %s: %s", path, strerror(-rc));
		return agent_exit_for_input(rc);
	}
	_cleanup_free_ char *twice = NULL;
	rc = same_trace_twice(set, &twice);
	if (rc < 0)
		agent_message("diff: %s", twice ? twice : strerror(-rc));
	else if (!set->is_file && say_left_out(path))
		a->incomplete = true;
	return rc < 0 ? agent_exit_for_input(rc) : EXIT_OK;
}

static int report_fault(int rc, struct diff_fault *fault)
{
	_cleanup_free_ char *path = fault->path;

	if (rc == -EBADMSG && fault->offset)
		agent_message("diff: %s is damaged at byte %llu", path ? path : "a trace",
			(unsigned long long)fault->offset);
	else if (rc == -EBADMSG)
		agent_message("diff: %s is damaged", path ? path : "a trace");
	else
		agent_message("diff: cannot read %s: %s", path ? path : "a trace", strerror(-rc));
	return agent_exit_for_input(rc);
}

/* Compares the traces in pairs and prints the report on each; an exit code. */
static int compare_pairs(
	const struct diff_args *a, const struct trace_set set[2], struct json_out *j)
{
	size_t pairs = set[0].count < set[1].count ? set[0].count : set[1].count;
	int code = set[0].count == set[1].count ? EXIT_OK : EXIT_NO;

	for (size_t i = 0; i < pairs; i++) {
		struct diff_side side[2] = {
			{set[0].files[i], set[0].is_file}, {set[1].files[i], set[1].is_file}};
		struct diff_fault fault;
		struct diff d;
		int rc = diff_traces(side, &a->options, &d, &fault);

		if (rc < 0) {
			diff_free(&d);
			return report_fault(rc, &fault);
		}
		if (a->json)
			diff_print_json(j, side, &d, &a->options);
		else
			diff_print_text(stdout, side, &d, &a->options);
		if (!diff_same(&d, &a->options))
			code = EXIT_NO;
		diff_free(&d);
	}
	return code;
}

static void print_unpaired(
	const struct diff_args *a, const struct trace_set set[2], struct json_out *j)
{
	for (unsigned s = 0; s < 2; s++) {
		if (a->json) {
			jout_key(j, s ? "only_b" : "only_a");
			jout_begin(j, '[');
		}
		for (size_t i = set[!s].count; i < set[s].count; i++) {
			if (a->json)
				jout_string(j, set[s].files[i], strlen(set[s].files[i]));
			else
				printf("only in %c: %s\n", s ? 'B' : 'A', set[s].files[i]);
		}
		if (a->json)
			jout_end(j, ']');
	}
}

/* The report goes to a buffer first: JSON is whole or not there, also when a later trace is bad. */
static int compare(const struct diff_args *a, const struct trace_set set[2])
{
	struct json_out j = {.f = stdout};
	int code;

	if (!a->json) {
		code = compare_pairs(a, set, &j);
		if (code <= EXIT_NO)
			print_unpaired(a, set, &j);
		if (set[0].count == 0 && set[1].count == 0)
			printf("the same: no process of A or B used a neuron device\n");
		return code;
	}
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	j.f = open_memstream(&text, &size);
	if (!j.f)
		return agent_no_memory("diff");
	jout_begin(&j, '{');
	jout_key(&j, "pairs");
	jout_begin(&j, '[');
	code = compare_pairs(a, set, &j);
	jout_end(&j, ']');
	print_unpaired(a, set, &j);
	jout_key(&j, "same");
	jout_bool(&j, code == EXIT_OK);
	jout_end(&j, '}');
	bool lost = ferror(j.f);
	if (fclose(j.f) != 0 || lost || !text) /* glibc's fclose is content without */
		return agent_no_memory("diff");
	if (code <= EXIT_NO)
		printf("%s\n", text);
	return code;
}

int cmd_diff(int argc, char **argv)
{
	struct trace_set set[2] = {{0}, {0}};
	struct diff_args a = {0};
	int code;

	agent_parse(&argp, "ntrace diff", argc, argv, 0, &a);
	if (agent_wrong_kind("diff", a.path[0], FILE_NTRACE) ||
		agent_wrong_kind("diff", a.path[1], FILE_NTRACE))
		return EXIT_USAGE;
	code = find(&a, a.path[0], &set[0]);
	if (code == EXIT_OK)
		code = find(&a, a.path[1], &set[1]);
	if (code == EXIT_OK)
		code = compare(&a, set);
	if (a.incomplete && code <= EXIT_NO)
		code = EXIT_DATA;
	trace_set_free(&set[0]);
	trace_set_free(&set[1]);
	if ((fflush(stdout) != 0 || ferror(stdout)) && code <= EXIT_NO) {
		agent_message("diff: cannot write to standard output: %s", strerror(errno));
		code = EXIT_ENVIRONMENT;
	}
	return code;
}
