/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_summary.c - `ntrace summary`: a trace in one page.
 */
#include <errno.h>
#include <stdlib.h>

#include "agent/agent.h"
#include "agent/interrupt.h"
#include "agent/output/summary.h"
#include "runtime/base/file.h"

struct summary_args {
	const char *path;
	bool json, device;
};

enum { OPT_DEVICE = 256 };

static const struct argp_option options[] = {
	{"json", 'j', 0, 0, "Print one JSON object", 0},
	{"device", OPT_DEVICE, 0, 0, "Of a recording: with what its device profiles tell", 0},
	{0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct summary_args *a = state->input;

	switch (key) {
	case 'j':
		a->json = true;
		return 0;
	case OPT_DEVICE:
		a->device = true;
		return 0;
	default:
		return agent_one_argument(key, arg, state, "trace", &a->path);
	}
}

static const struct argp argp = {options, parse, "TRACE",
	"Shows how long a trace is, what was lost, how busy the cores were and which calls took "
	"the "
	"time.  TRACE is a directory that `record`, `replay` or an inspect session wrote, an "
	"ntrace.pb, or a recording."
	"\vRuns of a core are those of all its physical cores: it is busy while one of them runs, "
	"and "
	"has a gap while none does.",
	0, 0, 0};

/* Damage does not keep what was read from being shown; it is told after it. */
static int print(const struct summary_args *a, struct summary *s, int fed, const char *error)
{
	int rc = summary_compute(s);

	if (rc == 0 && fed < 0 && !s->events.total && s->without_info) {
		agent_message("summary: %s", error);
		return EXIT_DATA;
	}

	if (rc < 0) {
		agent_message("summary: %s: %s", a->path,
			rc == -ECANCELED ? "interrupted" : "out of memory");
		return agent_exit_for_input(rc);
	}
	if (a->json)
		summary_print_json(stdout, s);
	else
		summary_print_text(stdout, s);
	if (fed == 0)
		return EXIT_OK;
	fflush(stdout);
	agent_message("summary: %s", error);
	return EXIT_DATA;
}

static void left_out(void *ctx, const char *dir, bool in_work)
{
	static char name[] = "summary";
	struct summary *s = ctx;

	s->left_out++;
	agent_left_out(name, dir, in_work);
}

int cmd_summary(int argc, char **argv)
{
	struct summary_args a = {0};
	struct summary s = {0};
	_cleanup_free_ char *error = NULL;
	struct feed_options how = {0};
	int rc, code;

	agent_parse(&argp, "ntrace summary", argc, argv, 0, &a);
	if (agent_wrong_kind("summary", a.path, FILE_NTRACE))
		return EXIT_USAGE;
	s.cancel = how.cancel = interrupt_arm();
	how.device = a.device;
	how.left_out = left_out;
	how.left_out_ctx = &s;
	struct feed_sink sink = summary_sink(&s);
	rc = feed_trace(a.path, &how, &sink, &error);
	if (rc == 0 || rc == -EBADMSG) {
		code = print(&a, &s, rc, error ? error : a.path);
	} else {
		agent_message("summary: %s", error ? error : "out of memory");
		code = agent_exit_for_input(rc);
	}
	summary_free(&s);
	if (rc == -ECANCELED)
		interrupt_end();
	return code;
}
