/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_replay.c - `ntrace replay` and `ntrace salvage`: the merge of a recording that is there
 * already.
 *
 * Both do the same work.  Replay expects a recording that ended in order and says with its exit
 * code when it did not; salvage is for what a killed recorder left, and fails only over damage.  What a killed
 * program left of an inspect session salvage completes in the session's own directory.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/interrupt.h"
#include "agent/output/leaf.h"
#include "agent/output/leaf_below.h"
#include "agent/output/leaf_failures.h"
#include "agent/output/report.h"
#include "agent/output/same_trace.h"
#include "agent/output/state.h"
#include "runtime/base/file.h"
#include "runtime/base/printable.h"
#include "runtime/record/merge.h"

struct replay_args {
	const char *rec;
	const char *out;
	const char *scratch; /* of a session for failures alone, whose files are in out */
	bool quiet;
	struct merge_options merge;
};

enum { OPT_KERNEL_EVENTS = 256, OPT_DEVICE };

static const struct argp_option options[] = {
	{"output", 'o', "DIR", 0, "Directory below which the files are written", 0},
	{"kernel-events", OPT_KERNEL_EVENTS, "MODE", 0,
		"How kernel spans are written: hint (default), extended or off", 0},
	{"device", OPT_DEVICE, 0, 0,
		"Show what device profiles of the recording (record --device) tell, too", 0},
	{"quiet", 'q', 0, 0, "Print nothing but errors", 0},
	{0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct replay_args *a = state->input;

	switch (key) {
	case 'o':
		a->out = arg;
		return 0;
	case 'q':
		a->quiet = true;
		return 0;
	case OPT_DEVICE:
		a->merge.device = true;
		return 0;
	case OPT_KERNEL_EVENTS:
		if (report_kernel_events(arg, &a->merge.kernel_events) < 0)
			argp_error(
				state, "--kernel-events: '%s' is none of hint, extended, off", arg);
		return 0;
	default:
		return agent_one_argument(key, arg, state, "recording", &a->rec);
	}
}

static const struct argp replay_argp = {options, parse, "-o DIR REC",
	"Merges the recording REC (a directory `recording`, or one that holds it) again and writes "
	"the "
	"same bytes that `record` wrote.",
	0, 0, 0};
static const struct argp salvage_argp = {options, parse, "DIR",
	"Merges what a killed `ntrace record -o DIR` left behind, or completes the directory DIR "
	"of an "
	"inspect session whose program was killed.  Without -o the files go below DIR, those of a "
	"session into DIR itself.  A DIR that has no recording, but directories that do, gets "
	"these named.",
	0, 0, 0};

/* Says what is wrong with what was merged; the exit code. */
static int judge(
	const char *name, const struct replay_args *a, const struct merge_result *m, bool salvage)
{
	struct trace_state state = state_of_merge(m);
	char fault[STATE_TEXT];
	int code = EXIT_OK;

	state.ended |= salvage; /* it is for those that are not */
	if (state_fault(&state, fault)) {
		agent_message("%s: %s: %s; the files hold what there is", name, a->rec, fault);
		code = EXIT_DATA;
	}
	if (!m->balanced) {
		agent_message("%s: the ledger does not balance", name);
		code = EXIT_DATA;
	}
	return code;
}

/* Says why nothing was merged; the exit code. */
static int refuse(const char *name, const struct replay_args *a, int error, const char *text)
{
	agent_message("%s: %s: %s", name, a->rec, text ? text : report_reason(error));
	if (error == -ECANCELED)
		interrupt_end();
	return agent_exit_for_input(error);
}

/* Has a salvage, or the recorder itself, merged all of it?  1: said, or it cannot be told; *ret_code is then
 * the exit code. */
static int is_merged(const struct replay_args *a, const struct merge_options *how, int *ret_code)
{
	_cleanup_free_ char *text = NULL;
	struct merge_result m;
	int rc = same_trace_merged(a->rec, a->out, how, &m, &text);

	if (rc == 1) {
		if (!a->quiet)
			agent_message(
				"salvage: nothing to salvage: the merged files are in %s", text);
		*ret_code = judge("salvage", a, &m, true);
	}
	merge_result_free(&m);
	if (rc < 0)
		*ret_code = refuse("salvage", a, rc, text);
	return rc != 0;
}

static int merge(const char *name, const struct replay_args *a, bool salvage)
{
	struct merge_result m;
	_cleanup_free_ char *error = NULL;
	struct merge_options how = a->merge;
	int code = EXIT_INTERNAL;

	how.cancel = interrupt_arm();
	how.only_at_rest = salvage;
	if (salvage && is_merged(a, &how, &code))
		return code;
	int rc = how.leaf ? leaf_take_back(a->rec, a->out, &how, &error) : 0;
	if (rc < 0)
		return refuse(name, a, rc, error);
	rc = merge_recording(a->rec, a->out, &how, &m, &error);

	if (rc < 0 && agent_wrong_kind(name, a->rec, FILE_UNTOLD)) {
		merge_result_free(&m);
		return EXIT_USAGE;
	}
	if (rc < 0) {
		merge_result_free(&m);
		return refuse(name, a, rc, error);
	}
	if (how.leaf && m.output_count)
		leaf_clean(a->out, m.outputs[0].pid);
	if (a->scratch && m.output_count)
		leaf_clean(a->scratch, m.outputs[0].pid);
	if (!a->quiet)
		report_print(stderr, &m, NULL);
	code = judge(name, a, &m, salvage);
	merge_result_free(&m);
	return code;
}

int cmd_replay(int argc, char **argv)
{
	struct replay_args a = {0};

	agent_parse(&replay_argp, "ntrace replay", argc, argv, 0, &a);
	if (!a.out) {
		agent_message("replay: -o DIR is missing: where shall the files go?");
		return EXIT_USAGE;
	}
	return merge("replay", &a, false);
}

#define SHOWN_BELOW 8u

/* There is no recording at the path: says which directories below it have one.  True: some do. */
static bool say_below(const char *path)
{
	struct leaf_below below;
	bool some = leaf_below_find(path, &below) == 0 && below.count;

	if (some)
		agent_message(
			"salvage: %s: there is no recording here; give one that is below:", path);
	for (size_t i = 0; some && i < below.count && i < SHOWN_BELOW; i++)
		fprintf(stderr, "  ntrace salvage %s\n", PRINTABLE(below.dirs[i]));
	if (some && below.count > SHOWN_BELOW)
		fprintf(stderr, "  ... and %zu more\n", below.count - SHOWN_BELOW);
	leaf_below_free(&below);
	return some;
}

/* Nothing is to be made: all files are there.  The exit code. */
static int say_done(const struct replay_args *a, const char *dir, const char *what)
{
	leaf_sweep(dir);
	if (!a->quiet)
		agent_message("salvage: nothing to salvage: %s has its files%s", dir, what);
	return EXIT_OK;
}

static int say_in_work(const char *leaf)
{
	agent_message("salvage: %s: another `ntrace salvage` is making its files; they are there "
		      "when that ends",
		leaf);
	return agent_exit_for_input(-EBUSY);
}

static int salvage_session(struct replay_args *a)
{
	_cleanup_free_ char *leaf = NULL;
	int rc = leaf_of(a->rec, &leaf);
	_cleanup_close_ int lock = rc > 0 ? leaf_lock(leaf) : -1;

	if (lock == -EBUSY)
		return say_in_work(leaf);
	if (rc == -ENOENT && leaf_is_done(a->rec))
		return say_done(a, a->rec, ", and no recording");
	if (rc == -ENOENT && say_below(a->rec))
		return agent_exit_for_input(rc);
	a->merge.leaf = rc > 0;
	a->out = leaf ? leaf : a->rec;
	return merge("salvage", a, true);
}

/* What the program had made already is moved; the rest comes from the recording, if there still is one. */
static int salvage_failures(struct replay_args *a, const char *scratch, const char *leaf)
{
	_cleanup_close_ int lock = leaf_lock(leaf);
	_cleanup_free_ char *text = NULL;
	struct rec_header h;
	int rc;

	if (lock == -EBUSY)
		return say_in_work(leaf);
	rc = leaf_failures_move(scratch, leaf, &text);

	if (rc < 0)
		return refuse("salvage", a, rc, text);
	if (!a->quiet)
		agent_message("salvage: the session of %s worked in %s", leaf, scratch);
	a->out = leaf;
	rc = leaf_header(scratch, &h);
	if (rc > 0)
		rec_header_free(&h);
	if (rc == -ENOENT) {
		leaf_sweep(scratch);
		(void)rmdir(scratch);
		return say_done(a, leaf, " now");
	}
	a->rec = a->scratch = scratch;
	a->merge.leaf = true;
	return merge("salvage", a, true);
}

int cmd_salvage(int argc, char **argv)
{
	struct replay_args a = {0};
	_cleanup_free_ char *scratch = NULL, *leaf = NULL;

	agent_parse(&salvage_argp, "ntrace salvage", argc, argv, 0, &a);
	if (a.out)
		return merge("salvage", &a, true);
	if (leaf_failures_find(a.rec, &scratch, &leaf) > 0)
		return salvage_failures(&a, scratch, leaf);
	return salvage_session(&a);
}
