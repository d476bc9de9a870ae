/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_attach.c - `ntrace attach`: what record does, with processes that run already.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/interrupt.h"
#include "agent/recorder.h"
#include "runtime/base/env.h"
#include "runtime/base/file.h"
#include "runtime/record/recording.h"

#define MAX_TARGETS 64u
#define MAX_SECONDS 1e9

struct attach_args {
	struct recorder recorder;
	struct attach_target targets[MAX_TARGETS];
	unsigned count;
};

enum { OPT_DURATION = RECORDER_OPTIONS_END };

static const struct argp_option options[] = {
	{"pid", 'p', "PID[,PID...]", 0, "The processes to attach to", 0},
	{"duration", OPT_DURATION, "SECONDS", 0, "Detach after that time", 0},
	{"all-processes", 'a', 0, 0, "Record ioctls of every process, not only of these", 0},
	RECORDER_OPTIONS,
	{"strict", RECORDER_STRICT, 0, 0, "Exit with 4 when anything was lost", 0},
	{0},
};

static void add_pid(struct argp_state *state, struct attach_args *a, pid_t pid)
{
	for (unsigned i = 0; i < a->count; i++)
		if (a->targets[i].pid == pid)
			return;
	if (a->count == MAX_TARGETS)
		argp_error(state, "more than %u processes", MAX_TARGETS);
	a->targets[a->count] = ATTACH_NONE;
	a->targets[a->count++].pid = pid;
}

static void parse_pids(struct argp_state *state, struct attach_args *a, const char *text)
{
	const char *p = text;
	char *end;

	do {
		errno = 0;
		long pid = strtol(p, &end, 10);
		if (errno || end == p || pid <= 0 || pid > INT32_MAX ||
			(*end && (*end != ',' || !end[1])))
			argp_error(state, "-p: '%s' is not a list of process ids", text);
		add_pid(state, a, (pid_t)pid);
		p = end + 1;
	} while (*end);
}

static uint64_t parse_seconds(struct argp_state *state, const char *text)
{
	char *end;
	double s = strtod(text, &end);

	if (end == text || *end || !(s >= 0.001 && s <= MAX_SECONDS))
		argp_error(state,
			"--duration: '%s' is not a number of seconds from 0.001 to 1000000000",
			text);
	return (uint64_t)(s * 1e9);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct attach_args *a = state->input;

	switch (key) {
	case 'p':
		parse_pids(state, a, arg);
		return 0;
	case OPT_DURATION:
		a->recorder.capture.duration_ns = parse_seconds(state, arg);
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "'%s' is not an option; processes are given with -p", arg);
		return EINVAL;
	case ARGP_KEY_END:
		if (!a->count)
			argp_error(state, "no process given (-p PID)");
		return 0;
	default:
		return recorder_parse(key, arg, state, &a->recorder);
	}
}

static const struct argp argp = {options, parse, "-p PID[,PID...]",
	"Records processes that run already, from now on: what they ask of the NeuronCores, the "
	"driver's ioctls inside each call, and what the device runs.  Ends with SIGINT (Ctrl-C), "
	"SIGTERM or SIGHUP, after --duration, or when all of them have ended; they go on "
	"undisturbed."
	"\vThe output is that of `ntrace record`.\n\n"
	"Processes of the same user can be attached to without privileges; the driver's ioctls "
	"are then not recorded.  One with another libnrt than that of ntrace is recorded by its "
	"ioctls alone.",
	0, 0, 0};

/* ---- finding ------------------------------------------------------------------------------ */

/* All use one device tree; *ret: its root, to be freed, NULL: that of our own environment. */
static int find_root(const struct attach_args *a, char **ret)
{
	for (unsigned i = 0; i < a->count; i++) {
		_cleanup_free_ char *root = NULL;
		int rc = attach_device_root(a->targets[i].pid, &root);

		if (rc == -ENOMEM)
			return agent_no_memory("attach");
		if (i && strcmp(root ? root : "", *ret ? *ret : "")) {
			agent_message("attach: process %d uses another device tree (%s) than "
				      "process %d: attach to one at a time",
				(int)a->targets[i].pid, ENV_DEVICE_ROOT, (int)a->targets[0].pid);
			return EXIT_ENVIRONMENT;
		}
		if (i == 0) {
			*ret = root;
			root = NULL;
		}
	}
	return EXIT_OK;
}

static int find_all(struct attach_args *a)
{
	char why[512];

	for (unsigned i = 0; i < a->count; i++) {
		int rc = attach_find(a->targets[i].pid, &a->targets[i], why, sizeof(why));

		if (rc < 0) {
			agent_message("attach: %s", why);
			return rc == -ENOMEM ? EXIT_INTERNAL : EXIT_ENVIRONMENT;
		}
		if (a->targets[i].memfd < 0 && !a->recorder.quiet)
			agent_message("attach: process %d has another libnrt than that of ntrace: "
				      "only the driver's ioctls are recorded",
				(int)a->targets[i].pid);
	}
	return EXIT_OK;
}

/* ---- recording ---------------------------------------------------------------------------- */

static void say_no_hooks(const char *why)
{
	agent_message("attach: the driver's ioctls are not recorded: %s", why);
}

static void say_attached(void)
{
	agent_message("attach: attached; Ctrl-C ends it");
}

static void say_attached_for(void)
{
	agent_message("attach: attached; it ends after --duration, or with Ctrl-C");
}

static int explain(const struct capture_result *r, const char *out)
{
	const char *check =
		r->stage == CAPTURE_HOOKS ? " (`ntrace check` lists what is missing)" : "";

	if (r->stage == CAPTURE_OUTPUT && r->error == -EEXIST)
		agent_message("%s/%s exists and is not overwritten; choose another directory "
			      "with -o",
			out, REC_DIR);
	else if (r->stage == CAPTURE_RUN)
		agent_message(
			"attach: %s; the processes run on; `ntrace salvage %s` merges what was "
			"recorded",
			r->why, out);
	else
		agent_message("attach: %s; nothing was recorded%s", r->why, check);
	if (r->error == -ENOMEM)
		return EXIT_INTERNAL;
	return r->stage == CAPTURE_RUN ? EXIT_DATA : EXIT_ENVIRONMENT;
}

static const int end_codes[] = {
	[RECORDER_GOOD] = EXIT_OK,
	[RECORDER_FAILED] = EXIT_ENVIRONMENT,
	[RECORDER_UNBALANCED] = EXIT_INTERNAL,
	[RECORDER_LOST] = EXIT_DATA,
};

static int capture_and_merge(struct attach_args *a)
{
	struct recorder *r = &a->recorder;
	struct capture_result cap;
	int rc;

	r->capture.targets = a->targets;
	r->capture.target_count = a->count;
	r->capture.on_attached = r->capture.duration_ns ? say_attached_for : say_attached;
	if (r->quiet)
		r->capture.on_attached = NULL;
	r->capture.on_no_hooks = r->quiet ? NULL : say_no_hooks;
	rc = capture_run(&r->capture, NULL, &cap);
	r->merge.cancel = interrupt_arm();
	rc = rc < 0 ? explain(&cap, r->dir) : end_codes[recorder_merge(r, cap.rec_path)];
	capture_result_free(&cap);
	return rc;
}

int cmd_attach(int argc, char **argv)
{
	struct attach_args a = {.recorder = {.name = "attach", .nothing = "recorded"}};
	_cleanup_free_ char *root = NULL;

	agent_parse(&argp, "ntrace attach", argc, argv, 0, &a);
	if (!recorder_take_environment(&a.recorder))
		return EXIT_USAGE;
	int rc = find_all(&a);
	if (rc == EXIT_OK)
		rc = find_root(&a, &root);
	if (rc == EXIT_OK && recorder_open(&a.recorder, root ? root : getenv(ENV_DEVICE_ROOT)) < 0)
		rc = EXIT_ENVIRONMENT;
	if (rc == EXIT_OK)
		rc = capture_and_merge(&a);
	for (unsigned i = 0; i < a.count; i++)
		attach_target_close(&a.targets[i]);
	recorder_close(&a.recorder);
	return rc;
}
