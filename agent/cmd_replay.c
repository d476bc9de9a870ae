/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_replay.c - `ntrace replay` and `ntrace salvage`: the merge of a recording that is there
 * already.
 *
 * Both do the same work.  Replay expects a recording that ended in order and says with its exit
 * code when it did not; salvage is for what a killed recorder left, and fails only over damage.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/interrupt.h"
#include "agent/output/report.h"
#include "runtime/base/file.h"
#include "runtime/record/merge.h"

struct replay_args {
	const char *rec;
	const char *out;
	bool quiet;
	struct merge_options merge;
};

enum { OPT_KERNEL_EVENTS = 256 };

static const struct argp_option options[] = {
	{"output", 'o', "DIR", 0, "Directory below which the files are written", 0},
	{"kernel-events", OPT_KERNEL_EVENTS, "MODE", 0,
		"How kernel spans are written: hint (default), extended or off", 0},
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
	case OPT_KERNEL_EVENTS:
		if (report_kernel_events(arg, &a->merge.kernel_events) < 0)
			argp_error(
				state, "--kernel-events: '%s' is none of hint, extended, off", arg);
		return 0;
	case ARGP_KEY_ARG:
		if (a->rec)
			argp_error(state, "one recording at a time");
		a->rec = arg;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "no recording given");
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp replay_argp = {options, parse, "REC",
	"Merges the recording REC (a directory `recording`, or one that holds it) again and writes "
	"the "
	"same bytes that `record` wrote.",
	0, 0, 0};
static const struct argp salvage_argp = {options, parse, "DIR",
	"Merges what a killed `ntrace record -o DIR` left behind.  Without -o the files go below "
	"DIR.",
	0, 0, 0};

/* A cut last frame is what a kill leaves, and what a writer has just begun. */
static bool damaged(const struct rec_damage *d, bool open_end)
{
	return d->skipped_bytes || d->bad_frames || (d->cut_bytes && !open_end);
}

static int merge(const char *name, const struct replay_args *a, bool salvage)
{
	struct merge_result m;
	_cleanup_free_ char *error = NULL;
	struct merge_options how = a->merge;

	how.cancel = interrupt_arm();
	how.only_at_rest = salvage;
	int rc = merge_recording(a->rec, a->out, &how, &m, &error);

	if (rc < 0) {
		agent_message("%s: %s: %s", name, a->rec, error ? error : report_reason(rc));
		merge_result_free(&m);
		if (rc == -ECANCELED)
			interrupt_end();
		return agent_exit_for_input(rc);
	}
	if (!a->quiet)
		report_print(stderr, &m, NULL);
	rc = EXIT_OK;
	if (m.in_work) {
		agent_message("%s: %s is still being written; the files hold what there was so far",
			name, a->rec);
		rc = EXIT_DATA;
	} else if (!m.ended && !salvage) {
		agent_message(
			"%s: %s; the files hold what it wrote (as `ntrace salvage` makes them)",
			name, report_end(&m.end));
		rc = EXIT_DATA;
	}
	if (damaged(&m.damage, salvage || m.in_work)) {
		agent_message("%s: %llu damaged bytes were skipped, %llu bytes cut off at the end",
			name, (unsigned long long)m.damage.skipped_bytes,
			(unsigned long long)m.damage.cut_bytes);
		rc = EXIT_DATA;
	}
	if (!m.balanced) {
		agent_message("%s: the ledger does not balance", name);
		rc = EXIT_DATA;
	}
	merge_result_free(&m);
	return rc;
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

int cmd_salvage(int argc, char **argv)
{
	struct replay_args a = {0};

	agent_parse(&salvage_argp, "ntrace salvage", argc, argv, 0, &a);
	if (!a.out)
		a.out = a.rec;
	return merge("salvage", &a, true);
}
