/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_export.c - `ntrace export`: a trace as a file for another program.
 *
 * The file appears whole or not at all.  Of a damaged trace it holds what can be read, and the exit code
 * says so.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/interrupt.h"
#include "agent/output/perfetto.h"
#include "agent/output/report.h"
#include "runtime/base/file.h"

static const struct {
	const char *name, *what;
} formats[] = {{"perfetto", "Perfetto's protobuf trace (https://ui.perfetto.dev)"}};

struct export_args {
	const char *path, *out;
	bool quiet, device;
};

enum { OPT_DEVICE = 256 };

static const struct argp_option options[] = {
	{"format", 'f', "FORMAT", 0, "Format of the file: perfetto (default)", 0},
	{"output", 'o', "FILE", 0, "File to write; - is standard output", 0},
	{"device", OPT_DEVICE, 0, 0, "Of a recording REC: with what its device profiles tell", 0},
	{"quiet", 'q', 0, 0, "Print nothing but errors", 0},
	{0},
};

static bool is_format(const char *name)
{
	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++)
		if (!strcmp(formats[i].name, name))
			return true;
	return false;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct export_args *a = state->input;

	switch (key) {
	case 'f':
		if (!is_format(arg))
			argp_error(state, "--format: '%s' is none of: %s", arg, formats[0].name);
		return 0;
	case OPT_DEVICE:
		a->device = true;
		return 0;
	case 'o':
		a->out = arg;
		return 0;
	case 'q':
		a->quiet = true;
		return 0;
	default:
		return agent_one_argument(key, arg, state, "trace", &a->path);
	}
}

static const struct argp argp = {options, parse, "-o FILE DIR|REC",
	"Writes the trace in DIR (merged files, of a recorder or of inspect sessions), or that of "
	"the "
	"recording REC, as a file that another "
	"program shows.",
	0, 0, 0};

static int write_file(void *ctx, const void *data, size_t size)
{
	struct outfile *f = ctx;

	outfile_write(f, data, size);
	return f->error;
}

/* A reader that does not read may keep us waiting; a signal ends that. */
static int write_stdout(void *ctx, const void *data, size_t size)
{
	const volatile sig_atomic_t *cancel = ctx;
	const char *p = data;

	while (size) {
		ssize_t n = write(STDOUT_FILENO, p, size);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n < 0 && *cancel)
			return -ECANCELED;
		p += n < 0 ? 0 : n;
		size -= n < 0 ? 0 : (size_t)n;
	}
	return 0;
}

static int say_written(const struct export_args *a, int error)
{
	agent_message("export: cannot write %s: %s%s", a->out, strerror(-error),
		error == -EEXIST ? "; existing files are never overwritten, choose another name"
				 : "");
	return EXIT_ENVIRONMENT;
}

/* Is there a trace to keep?  Of damaged input that is one with events. */
static bool holds_something(int rc, const struct perfetto_result *r)
{
	return r->processes && (rc == 0 || (rc == -EBADMSG && r->events));
}

/* The exit code for what the export ended with, said. */
static int finish(const struct export_args *a, int rc, bool write_failed, const char *error,
	const struct perfetto_result *r)
{
	if (rc == -ECANCELED) {
		agent_message("export: interrupted");
		return agent_exit_for_input(rc);
	}
	if (rc < 0 && write_failed)
		return say_written(a, rc);
	if (rc == 0 && r->processes == 0) {
		agent_message("export: %s has no events; nothing was written", a->path);
		return EXIT_DATA;
	}
	if (rc < 0 && !holds_something(rc, r)) {
		agent_message("export: %s", error ? error : report_reason(rc));
		return agent_exit_for_input(rc);
	}
	if (!a->quiet)
		agent_message("%s: %llu events of %u process%s, %llu bytes", a->out,
			(unsigned long long)r->events, r->processes, r->processes == 1 ? "" : "es",
			(unsigned long long)r->bytes);
	if (!a->quiet && r->device_left)
		agent_message(
			"export: the recording has device profiles, which are not in the file: "
			"of a recording --device adds them");
	if (rc == 0)
		return EXIT_OK;
	agent_message("export: %s (the file holds what could be read)",
		error ? error : report_reason(rc));
	return EXIT_DATA;
}

int cmd_export(int argc, char **argv)
{
	struct export_args a = {0};
	struct outfile f = {0};
	struct perfetto_result r = {0};
	_cleanup_free_ char *error = NULL;
	static char name[] = "export";
	bool write_failed = false;

	agent_parse(&argp, "ntrace export", argc, argv, 0, &a);
	if (!a.out) {
		agent_message(
			"export: -o FILE is missing: where shall the trace go? (- is standard "
			"output)");
		return EXIT_USAGE;
	}
	if (agent_wrong_kind("export", a.path, FILE_NTRACE))
		return EXIT_USAGE;
	bool to_stdout = !strcmp(a.out, "-");
	if (to_stdout && isatty(STDOUT_FILENO)) {
		agent_message(
			"export: the file is binary, and standard output is a terminal; name a "
			"file, or a pipe behind");
		return EXIT_USAGE;
	}
	int rc = to_stdout ? 0 : outfile_open(&f, a.out);
	if (rc < 0)
		return say_written(&a, rc);
	struct feed_options how = {.cancel = interrupt_arm(),
		.device = a.device,
		.left_out = agent_left_out,
		.left_out_ctx = name};
	rc = perfetto_export(a.path, &how, to_stdout ? write_stdout : write_file,
		to_stdout ? (void *)(uintptr_t)how.cancel : &f, &r, &write_failed, &error);
	if (!to_stdout && holds_something(rc, &r)) {
		int done = outfile_commit(&f);

		write_failed = done < 0;
		rc = done < 0 ? done : rc;
	}
	outfile_abort(&f);
	int code = finish(&a, rc, write_failed, error, &r);
	if (rc == -ECANCELED)
		interrupt_end();
	return code;
}
