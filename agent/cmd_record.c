/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_record.c - `ntrace record`: capture, then the same merge that replay uses, then a report.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/interrupt.h"
#include "agent/collect/capture.h"
#include "agent/output/report.h"
#include "runtime/base/env.h"
#include "runtime/base/file.h"
#include "runtime/record/merge.h"

#define DEFAULT_OUT "output"
#define MAX_OUT_BYTES (PATH_MAX - 512) /* what is appended to it fits behind */

struct record_args {
	const char *out;
	bool all;
	bool strict;
	bool quiet;
	struct capture_options capture;
	struct merge_options merge;
	char **command;
};

enum { OPT_STRICT = 256, OPT_KERNEL_EVENTS, OPT_KERNEL_RING, OPT_RING };

static const struct argp_option options[] = {
	{"output", 'o', "DIR", 0, "Directory for all output (default: output, then output_2, ...)",
		0},
	{"all-processes", 'a', 0, 0,
		"Record ioctls of every process, not only of CMD and its children", 0},
	{"kernel-events", OPT_KERNEL_EVENTS, "MODE", 0,
		"How kernel spans are written: hint (default), extended or off", 0},
	{"kernel-ring", OPT_KERNEL_RING, "BYTES", 0,
		"Size of the BPF ring buffer, a power of two (default 4194304)", 0},
	{"ring", OPT_RING, "RECORDS", 0,
		"Records per NeuronCore ring in a runtime, which rounds up to a power of two from "
		"1024 to 4194304 (default 65536)",
		0},
	{"strict", OPT_STRICT, 0, 0, "Exit with 125 when anything was lost", 0},
	{"quiet", 'q', 0, 0, "Print nothing but errors", 0},
	{0},
};

static uint32_t parse_count(struct argp_state *state, const char *name, const char *text)
{
	char *end;

	errno = 0;
	unsigned long long v = strtoull(text, &end, 10);
	if (errno || *end || end == text || *text == '-' || v == 0 || v > UINT32_MAX)
		argp_error(state, "--%s: '%s' is not a number from 1 to 4294967295", name, text);
	return (uint32_t)v;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct record_args *a = state->input;

	switch (key) {
	case 'o':
		a->out = arg;
		return 0;
	case 'a':
		a->capture.all_processes = true;
		return 0;
	case 'q':
		a->quiet = true;
		return 0;
	case OPT_STRICT:
		a->strict = true;
		return 0;
	case OPT_KERNEL_EVENTS:
		if (report_kernel_events(arg, &a->merge.kernel_events) < 0)
			argp_error(
				state, "--kernel-events: '%s' is none of hint, extended, off", arg);
		return 0;
	case OPT_KERNEL_RING:
		a->capture.kernel_ring_bytes = parse_count(state, "kernel-ring", arg);
		return 0;
	case OPT_RING:
		a->capture.ring_capacity = parse_count(state, "ring", arg);
		return 0;
	case ARGP_KEY_ARGS:
		a->command = state->argv + state->next;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "no command given");
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
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

/* The directory to use: what was asked for, or the first of output, output_2, ... that holds no
 * recording.  NULL when memory is short. */
static char *choose_out(const struct record_args *a)
{
	char *dir = NULL;

	if (a->out)
		return strdup(a->out);
	for (unsigned n = 1; n < 100000; n++) {
		_cleanup_free_ char *rec = NULL;
		struct stat st;
		int rc =
			n == 1 ? asprintf(&dir, DEFAULT_OUT) : asprintf(&dir, DEFAULT_OUT "_%u", n);
		if (rc < 0 || asprintf(&rec, "%s/%s", dir, REC_DIR) < 0)
			return NULL;
		if (lstat(rec, &st) < 0)
			return dir;
		free(dir);
		dir = NULL;
	}
	return NULL;
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

static int merge_and_report(const struct record_args *a, const char *out, const char *rec_path)
{
	struct merge_result m;
	_cleanup_free_ char *error = NULL;
	int rc = merge_recording(rec_path, out, &a->merge, &m, &error);

	if (rc < 0) {
		if (access(rec_path, F_OK) < 0)
			agent_message("record: the recording %s has vanished; nothing was merged",
				rec_path);
		else
			agent_message("record: %s; the recording is whole: `ntrace replay %s -o "
				      "DIR` merges it",
				error ? error : strerror(-rc), rec_path);
		merge_result_free(&m);
		return EXIT_RECORD_FAILED;
	}
	if (!a->quiet)
		report_print(stderr, &m, rec_path);
	if (!m.balanced)
		agent_message("record: the ledger does not balance; please report this as a bug");
	uint64_t missing = a->strict ? report_missing(&m) : 0;
	if (missing)
		agent_message("record: %llu losses, which --strict does not allow",
			(unsigned long long)missing);
	rc = !m.balanced || missing ? EXIT_RECORD_FAILED : EXIT_OK;
	merge_result_free(&m);
	return rc;
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

int cmd_record(int argc, char **argv)
{
	struct record_args a = {0};
	struct capture_result cap;

	agent_parse(&argp, "ntrace record", argc, argv, 1, &a);
	int rc = find_command(a.command[0]);
	if (rc < 0)
		return command_failed(a.command[0], rc);

	_cleanup_free_ char *out = choose_out(&a);
	if (!out) {
		agent_message("record: out of memory");
		return EXIT_RECORD_FAILED;
	}
	const char *root = getenv(ENV_DEVICE_ROOT);
	a.capture.device_root = root && *root ? root : NULL;
	if (strlen(out) > MAX_OUT_BYTES) {
		agent_message("record: the path given with -o has %zu bytes, more than %d; nothing "
			      "was run",
			strlen(out), MAX_OUT_BYTES);
		return EXIT_RECORD_FAILED;
	}
	a.capture.out_dir = out;
	a.capture.on_no_device = a.quiet ? NULL : say_no_device;
	a.capture.on_stopped = say_stopped;
	rc = capture_run(&a.capture, a.command, &cap);
	a.merge.cancel = interrupt_arm(); /* until here a signal is the command's or ends us */
	if (rc < 0)
		rc = explain_capture(&cap, out, a.command[0]);
	else
		rc = merge_and_report(&a, out, cap.rec_path);
	if (rc == EXIT_OK)
		rc = command_status(cap.wait_status);
	capture_result_free(&cap);
	return rc;
}
