/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_dump.c - `ntrace dump`: finds out which file it is given, and prints it as it reads it, in memory
 * that does not grow with the file (that of an .ntff grows with its message, not with its records).  What stands before a damaged place is printed before the
 * damage is reported.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/agent.h"
#include "agent/output/dump.h"
#include "agent/output/dump_ntff.h"
#include "agent/output/trace_read.h"
#include "runtime/base/file.h"
#include "runtime/base/mapped.h"

#define MAX_PIPED ((size_t)1 << 30)

struct dump_args {
	const char *path;
	enum dump_kind kind, looks; /* looks: by its content */
	enum dump_format format;
};

static const struct argp_option options[] = {
	{"as", 'k', "KIND", 0,
		"What the file is: ntrace, trace_info, cpu_util, host_mem or ntff (default: by "
		"name, else by content)",
		0},
	{"text", 't', 0, 0, "Print an ntrace.pb or .ntff as a timeline instead of JSON lines", 0},
	{0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct dump_args *a = state->input;

	switch (key) {
	case 'k':
		a->kind = dump_kind_by_name(arg);
		if (a->kind == DUMP_UNKNOWN)
			argp_error(state,
				"--as: '%s' is none of ntrace, trace_info, cpu_util, host_mem, "
				"ntff",
				arg);
		return 0;
	case 't':
		a->format = DUMP_TEXT;
		return 0;
	default:
		return agent_one_argument(key, arg, state, "file", &a->path);
	}
}

static const struct argp argp = {options, parse, "FILE",
	"Prints ntrace.pb, trace_info.pb, cpu_util.pb or host_mem.pb, one line per message, or a "
	"device profile (.ntff), one line per item.  FILE may be - for standard input.",
	0, 0, 0};

static int unreadable(const struct dump_args *a, int error)
{
	agent_message("dump: cannot read %s: %s", a->path, strerror(-error));
	return agent_exit_for_input(error);
}

static int unwritable(void)
{
	agent_message("dump: cannot write to standard output: %s", strerror(errno));
	return EXIT_ENVIRONMENT;
}

/* Says why nothing, or not everything, could be printed. */
static int explain(
	const struct dump_args *a, enum dump_kind looks, struct trace_read *r, uint64_t at)
{
	uint64_t size;
	int rc = trace_read_rest(r, &size);

	if (rc < 0)
		return unreadable(a, rc);
	if (file_kind_of(a->path, FILE_UNTOLD) == FILE_INFO_FOREIGN &&
		agent_wrong_kind("dump", a->path, FILE_UNTOLD))
		return EXIT_USAGE;
	if (at == 0 && looks != DUMP_UNKNOWN && looks != a->kind)
		agent_message("dump: %s is no %s file; it looks like %s (--as %s)", a->path,
			dump_kind_name(a->kind), dump_kind_name(looks), dump_kind_name(looks));
	else
		agent_message("dump: %s is damaged at byte %" PRIu64 " of %" PRIu64
			      "; what stands before it was printed",
			a->path, at, size);
	return EXIT_DATA;
}

/* What the file is: as asked for, else by its name, else as it looks.  EXIT_OK or an exit code. */
static int settle_kind(struct dump_args *a, enum dump_kind looks, const struct trace_read *r)
{
	if (a->kind == DUMP_UNKNOWN)
		a->kind = dump_kind_by_path(a->path);
	if (a->kind == DUMP_UNKNOWN)
		a->kind = looks;
	if (a->kind == DUMP_UNKNOWN) {
		if (file_kind_of(a->path, FILE_UNTOLD) != FILE_FOREIGN &&
			agent_wrong_kind("dump", a->path, FILE_UNTOLD))
			return EXIT_USAGE;
		agent_message("dump: %s is %s (--as KIND reads it all the same)", a->path,
			r->have ? "none of ntrace.pb, trace_info.pb, cpu_util.pb, host_mem.pb, "
				  ".ntff"
				: "empty");
		return EXIT_DATA;
	}
	if (a->format == DUMP_TEXT && a->kind != DUMP_NTRACE && a->kind != DUMP_NTFF) {
		agent_message("dump: --text is for ntrace.pb and .ntff; %s is %s", a->path,
			dump_kind_name(a->kind));
		return EXIT_USAGE;
	}
	return EXIT_OK;
}

/* ---- device profiles ---------------------------------------------------------------------- */

/* Why none of it could be printed. */
static int explain_ntff(
	const struct dump_args *a, const struct ntff_profile *p, size_t size, int error)
{
	if (error == -ENOTSUP)
		agent_message("dump: %s: %s", a->path, p->file.damage);
	else if (error == -EINVAL && a->looks != DUMP_UNKNOWN && a->looks != DUMP_NTFF)
		agent_message("dump: %s is no .ntff file; it looks like %s (--as %s)", a->path,
			dump_kind_name(a->looks), dump_kind_name(a->looks));
	else if (error == -EINVAL && size > 0 && agent_wrong_kind("dump", a->path, FILE_UNTOLD))
		return EXIT_USAGE;
	else if (error == -EINVAL)
		agent_message("dump: %s is %s", a->path, size ? "no .ntff file" : "empty");
	else if (error == -EBADMSG)
		agent_message("dump: %s is damaged at byte %" PRIu64 " of %zu: %s", a->path,
			p->file.damage_at, size, p->file.damage);
	else
		return unreadable(a, error);
	return EXIT_DATA;
}

/* What of a profile that was printed was not whole. */
static int tell_damage(const struct dump_args *a, const struct ntff_profile *p, size_t size)
{
	uint64_t kept = p->flaw_count < NTFF_MAX_FLAWS ? p->flaw_count : NTFF_MAX_FLAWS;

	if (p->file.damage)
		agent_message("dump: %s is damaged at byte %" PRIu64 " of %zu: %s; what is whole "
			      "was printed",
			a->path, p->file.damage_at, size, p->file.damage);
	for (uint64_t i = 0; i < kept; i++)
		agent_message("dump: %s: byte %" PRIu64 ": %s", a->path, p->flaws[i].at,
			p->flaws[i].what);
	if (kept < p->flaw_count)
		agent_message("dump: %s: %" PRIu64 " more places are not as they must be", a->path,
			p->flaw_count - kept);
	return p->file.damage || p->flaw_count ? EXIT_DATA : EXIT_OK;
}

static int tell_cut(const struct dump_args *a)
{
	agent_message(
		"dump: %s became shorter while it was read; what was printed is not whole, and "
		"its end not true",
		a->path);
	return EXIT_DATA;
}

/* m: the file, when it is mapped. */
static int print_ntff(
	const struct dump_args *a, const struct mapped *m, const uint8_t *data, size_t size)
{
	_cleanup_(ntff_profile_close) struct ntff_profile p;
	int rc = ntff_profile_open(&p, data, size);

	if (rc < 0 && mapped_cut(m))
		return tell_cut(a);
	if (rc < 0)
		return explain_ntff(a, &p, size, rc);
	rc = a->format == DUMP_TEXT ? dump_ntff_text(stdout, &p) : dump_ntff_json(stdout, &p);
	if (fflush(stdout) != 0 || ferror(stdout))
		return unwritable();
	if (mapped_cut(m))
		return tell_cut(a);
	return rc < 0 ? unreadable(a, rc) : tell_damage(a, &p, size);
}

/* A file is mapped; what comes through a pipe is kept in memory, all of it. */
static int read_ntff(const struct dump_args *a, struct trace_read *r)
{
	_cleanup_(mapped_close) struct mapped m;
	int rc = mapped_open(&m, r->fd);
	const uint8_t *data = m.data;
	size_t size = m.size;

	if (rc == -ESPIPE) {
		rc = trace_read_peek(r, MAX_PIPED, &data, &size);
		if (rc == 0 && size >= MAX_PIPED)
			rc = -EFBIG;
	}
	return rc < 0 ? unreadable(a, rc) : print_ntff(a, &m, data, size);
}

static int print(struct dump_args *a, struct trace_read *r)
{
	enum dump_kind looks;
	uint64_t at = 0;
	int rc = dump_sniff_file(r, &looks), status;

	if (rc < 0)
		return unreadable(a, rc);
	a->looks = looks;
	status = settle_kind(a, looks, r);
	if (status != EXIT_OK)
		return status;
	if (a->kind == DUMP_NTFF)
		return read_ntff(a, r);
	rc = dump_file(stdout, a->kind, a->format, r, &at);
	if (fflush(stdout) != 0 || ferror(stdout))
		return unwritable();
	if (rc == -EBADMSG)
		return explain(a, looks, r, at);
	return rc < 0 ? unreadable(a, rc) : EXIT_OK;
}

int cmd_dump(int argc, char **argv)
{
	struct dump_args a = {0};
	struct trace_read r;
	struct stat st;

	agent_parse(&argp, "ntrace dump", argc, argv, 0, &a);
	if (!strcmp(a.path, "-"))
		a.path = "/dev/stdin";
	if (stat(a.path, &st) == 0 && S_ISDIR(st.st_mode)) {
		agent_message("dump: %s is a directory; name a .pb or .ntff file in it", a.path);
		return EXIT_USAGE;
	}
	int rc = trace_read_open(&r, a.path);
	if (rc < 0)
		return unreadable(&a, rc);
	rc = print(&a, &r);
	trace_read_close(&r);
	return rc;
}
