/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_verify.c - `ntrace verify`: is this a sound Perfetto trace?
 *
 * Of each kind the first findings are shown and all are counted.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/output/perfetto_verify.h"
#include "runtime/base/file.h"

#define SHOWN 5u /* of each kind */

static const struct argp_option options[] = {
	{"quiet", 'q', 0, 0, "Print nothing but errors; the exit code is the answer", 0},
	{0},
};

struct verify_args {
	const char *path;
	bool quiet;
	unsigned shown[PFV_KINDS];
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct verify_args *a = state->input;

	switch (key) {
	case 'q':
		a->quiet = true;
		return 0;
	default:
		return agent_one_argument(key, arg, state, "file", &a->path);
	}
}

static const struct argp argp = {options, parse, "FILE",
	"Checks a Perfetto trace, whoever wrote it, against the rules of the format.  FILE may be "
	"- "
	"for standard input.",
	0, 0, 0};

static void report(void *ctx, const struct pfv_finding *f)
{
	struct verify_args *a = ctx;

	if (!a->quiet && a->shown[f->kind]++ < SHOWN)
		printf("byte %llu: %s: %s\n", (unsigned long long)f->offset, pfv_kind_name(f->kind),
			f->text);
}

static void print_result(const struct verify_args *a, const struct pfv_result *r)
{
	for (unsigned k = 0; k < PFV_KINDS; k++)
		if (r->counts[k])
			printf("%s: %llu (rule: %s)\n", pfv_kind_name(k),
				(unsigned long long)r->counts[k], pfv_kind_rule(k));
	printf("%s: %s; bytes %llu, packets %llu, sequences %llu, events %llu, slices %llu (open "
	       "at "
	       "the end %llu), tracks %llu, flows %llu\n",
		a->path,
		r->damage     ? "damaged"
		: r->findings ? "not sound"
		: r->packets  ? "sound"
			      : "empty",
		(unsigned long long)r->bytes, (unsigned long long)r->packets,
		(unsigned long long)r->sequences, (unsigned long long)r->events,
		(unsigned long long)r->slices, (unsigned long long)r->open,
		(unsigned long long)r->tracks, (unsigned long long)r->flows);
}

int cmd_verify(int argc, char **argv)
{
	struct verify_args a = {0};
	struct pfv_result r;
	struct stat st;

	agent_parse(&argp, "ntrace verify", argc, argv, 0, &a);
	if (agent_wrong_kind("verify", a.path, FILE_PERFETTO))
		return EXIT_USAGE;
	bool is_stdin = !strcmp(a.path, "-");
	_cleanup_close_ int fd = is_stdin ? dup(STDIN_FILENO) : open(a.path, O_RDONLY | O_CLOEXEC);
	int rc = fd < 0 ? -errno : 0;
	if (rc == 0 && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
		agent_message("verify: %s is a directory; `ntrace export %s -o FILE` makes a file, "
			      "`ntrace rec verify` checks a recording",
			a.path, a.path);
		return EXIT_USAGE;
	}
	if (rc == 0)
		rc = perfetto_verify(fd, report, &a, &r);
	if (rc < 0) {
		agent_message("verify: cannot read %s: %s", a.path, strerror(-rc));
		return agent_exit_for_input(rc);
	}
	if (!a.quiet)
		print_result(&a, &r);
	return r.damage || !r.packets ? EXIT_DATA : r.findings ? EXIT_NO : EXIT_OK;
}
