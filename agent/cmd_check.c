/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_check.c - `ntrace check`: what this machine allows, and what follows for a recording.
 */
#include <stdbool.h>
#include <stdio.h>

#include "agent/agent.h"
#include "agent/collect/probe.h"
#include "agent/recorder.h"
#include "runtime/base/printable.h"

static const struct argp argp = {0, 0, 0,
	"Lists what this machine allows, a line each: ok, missing or denied.  Exit code 1 when "
	"`ntrace "
	"record` cannot work here.",
	0, 0, 0};

static void print_row(const struct probe_row *r)
{
	printf("%-8s %-24s %s\n", probe_state_name(r->state), r->name, PRINTABLE(r->detail));
	if (r->state != PROBE_OK && r->consequence)
		printf("%-8s %-24s   %s%s\n", "", "", r->required ? "needed: " : "",
			r->consequence);
}

int cmd_check(int argc, char **argv)
{
	struct probe_row rows[PROBE_MAX_ROWS];
	struct probe_paths paths = {0};

	agent_parse(&argp, "ntrace check", argc, argv, 0, NULL);
	if (recorder_hooks_variable("check", &paths.hooks) < 0)
		return EXIT_USAGE;
	int n = probe_run(&paths, rows, PROBE_MAX_ROWS);
	for (int i = 0; i < n; i++)
		print_row(&rows[i]);
	bool can = probe_can_record(rows, n);
	printf("%s\n", can ? "ntrace record works here" : "ntrace record does not work here");
	return can ? EXIT_OK : EXIT_NO;
}
