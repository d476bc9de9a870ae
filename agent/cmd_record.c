/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_record.c - `ntrace record`: capture, then the same merge that replay uses, then a report.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/interrupt.h"
#include "agent/recorder.h"
#include "runtime/base/env.h"
#include "runtime/base/file.h"
#include "runtime/record/recording.h"

struct record_args {
	struct recorder recorder;
	char **command;
};

enum { OPT_DEVICE = RECORDER_OPTIONS_END };

static const struct argp_option options[] = {
	{"all-processes", 'a', 0, 0,
		"Record ioctls of every process, not only of CMD and its children", 0},
	RECORDER_OPTIONS,
	{"device", OPT_DEVICE, 0, 0,
		"Also profile the device: what the units of its cores ran and copied", 0},
	{"strict", RECORDER_STRICT, 0, 0, "Exit with 125 when anything was lost", 0},
	{0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct record_args *a = state->input;

	switch (key) {
	case ARGP_KEY_ARGS:
		a->command = state->argv + state->next;
		return 0;
	case OPT_DEVICE:
		a->recorder.capture.device_profiles = a->recorder.merge.device = true;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "no command given");
		return EINVAL;
	default:
		return recorder_parse(key, arg, state, &a->recorder);
	}
}

static const struct argp argp = {options, parse, "[--] CMD [ARG...]",
	"Runs CMD and records, on one timeline, what it asked of the NeuronCores, the driver's "
	"ioctls inside each call, and what the device ran."
	"\vThe raw recording stays in DIR/recording; the files of each process are in "
	"DIR/<instance>_pid_<pid>/: ntrace.pb, trace_info.pb, cpu_util.pb, host_mem.pb.\n\n"
	"Kernel spans: `hint` gives them event_type 0 and the request's name as hint, `extended` "
	"event_type from 1000 on, `off` leaves them out.  The driver.* attributes do not depend "
	"on it.",
	0, 0, 0};

/* A directory that cannot be searched has nothing of that name for us, as for a shell. */
static int try_file(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0 || S_ISDIR(st.st_mode))
		return -ENOENT;
	return access(path, X_OK) == 0 ? 0 : -errno;
}

/* Is there something executable of that name?  0, -ENOENT, or -EACCES when there is a file of that
 * name that cannot be executed. */
static int find_command(const char *name)
{
	const char *path = getenv("PATH");
	int error = -ENOENT;

	if (strchr(name, '/'))
		return access(name, X_OK) == 0 ? 0 : -errno;
	for (const char *p = path ? path : "/usr/bin:/bin"; *p;) {
		size_t len = strcspn(p, ":");
		_cleanup_free_ char *full = NULL;
		/* An empty element is the current directory. */
		if (asprintf(&full, "%.*s/%s", len ? (int)len : 1, len ? p : ".", name) < 0)
			return -ENOMEM;
		int rc = try_file(full);
		if (rc == 0)
			return 0;
		if (rc == -EACCES)
			error = rc;
		p += len + (p[len] == ':');
	}
	return error;
}

static int command_failed(const char *name, int error)
{
	bool missing = error == -ENOENT;

	agent_message("%s: %s", name, missing ? "command not found" : strerror(-error));
	return missing ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
}

static int explain_capture(const struct capture_result *r, const char *out, const char *name)
{
	switch (r->stage) {
	case CAPTURE_EXEC:
		if (r->error != -ENOENT)
			return command_failed(name, r->error);
		agent_message("%s: the file is there, but not the interpreter that it names", name);
		return EXIT_NOT_FOUND;
	case CAPTURE_OUTPUT:
		if (r->error == -EEXIST)
			agent_message(
				"%s/%s exists and is not overwritten; choose another directory "
				"with -o",
				out, REC_DIR);
		else
			agent_message("record: %s; nothing was run", r->why);
		break;
	case CAPTURE_DEVICES:
	case CAPTURE_CLOCKS:
		agent_message("record: %s; nothing was run", r->why);
		break;
	case CAPTURE_HOOKS:
		agent_message("record: %s; nothing was run (`ntrace check` lists what is missing)",
			r->why);
		break;
	case CAPTURE_RUN:
		agent_message(
			"record: %s; the command %s; `ntrace salvage %s` merges what was recorded",
			r->why, r->wait_status == -1 ? "runs on" : "ran to its end", out);
		break;
	case CAPTURE_ATTACH: /* there is a command */
	case CAPTURE_DONE:
		break;
	}
	return EXIT_RECORD_FAILED;
}

static int command_status(int wait_status)
{
	if (WIFEXITED(wait_status))
		return WEXITSTATUS(wait_status);
	if (WIFSIGNALED(wait_status))
		return 128 + WTERMSIG(wait_status);
	return EXIT_RECORD_FAILED;
}

static void say_no_device(const char *root)
{
	agent_message(
		"record: no neuron device in %s/dev so far; `ntrace-vdev -- ntrace record ...` "
		"records on a virtual one, NTRACE_DEVICE_ROOT names one that is running",
		root ? root : "");
}

static void say_stopped(const char *why)
{
	agent_message("record: %s; the command runs on without being recorded", why);
}

/* What was captured is merged; the exit code. */
static int finish(const struct recorder *r, const struct capture_result *cap)
{
	enum recorder_end end = recorder_merge(r, cap->rec_path);

	if (cap->profiles_failed)
		agent_message("record: %u device profile%s could not be taken into %s: %s; BLIND "
			      "names the processes, where it is known",
			cap->profiles_failed, cap->profiles_failed == 1 ? "" : "s", cap->rec_path,
			strerror(-cap->profile_error));
	return end != RECORDER_GOOD || cap->profiles_failed ? EXIT_RECORD_FAILED
							    : command_status(cap->wait_status);
}

int cmd_record(int argc, char **argv)
{
	struct record_args a = {.recorder = {.name = "record", .nothing = "run"}};
	struct recorder *r = &a.recorder;
	struct capture_result cap;

	agent_parse(&argp, "ntrace record", argc, argv, 1, &a);
	if (!recorder_take_environment(r))
		return EXIT_USAGE;
	int rc = find_command(a.command[0]);
	if (rc < 0)
		return command_failed(a.command[0], rc);
	if (recorder_open(r, getenv(ENV_DEVICE_ROOT)) < 0)
		return EXIT_RECORD_FAILED;
	r->capture.on_no_device = r->quiet ? NULL : say_no_device;
	r->capture.on_stopped = say_stopped;
	rc = capture_run(&r->capture, a.command, &cap);
	r->merge.cancel = interrupt_arm(); /* until here a signal is the command's or ends us */
	if (rc < 0)
		rc = explain_capture(&cap, r->dir, a.command[0]);
	else
		rc = finish(r, &cap);
	capture_result_free(&cap);
	recorder_close(r);
	return rc;
}
