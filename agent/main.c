/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - the table of subcommands, and the little that they share.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"

static const struct agent_cmd commands[] = {
	{"record", cmd_record, "run a command and record it, the driver's ioctls and the device"},
	{"attach", cmd_attach, "record processes that run already"},
	{"replay", cmd_replay, "merge a recording again"},
	{"salvage", cmd_salvage, "merge what a killed `record` or inspect session left"},
	{"rec", cmd_rec, "show, verify or cut a recording"},
	{"summary", cmd_summary, "show a trace in one page"},
	{"dump", cmd_dump, "print a .pb or .ntff file as JSON lines or as a timeline"},
	{"diff", cmd_diff, "compare two traces by meaning"},
	{"export", cmd_export, "write a trace as a file for Perfetto"},
	{"verify", cmd_verify, "check a Perfetto file, whoever wrote it"},
	{"env", cmd_env, "list the environment variables of the runtime"},
	{"check", cmd_check, "list what this machine allows"},
};

static const struct {
	int number;
	const char *text;
} exit_codes[] = {
#define EXIT_CODE(id, number, text) {number, text},
#include "agent/exit_codes.def"
#undef EXIT_CODE
};

static void print_help(FILE *f)
{
	fprintf(f, "Usage: ntrace COMMAND [OPTION...] [ARG...]\n\n"
		   "One timeline of what a program asked of an AWS Neuron accelerator, what the\n"
		   "kernel driver did, and what the device ran.\n\nCommands:\n");
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		fprintf(f, "  %-9s %s\n", commands[i].name, commands[i].help);
	fprintf(f, "\n`ntrace COMMAND --help` shows a command's options.\n\nExit codes:\n");
	for (size_t i = 0; i < sizeof(exit_codes) / sizeof(*exit_codes); i++)
		fprintf(f, "  %-4d %s\n", exit_codes[i].number, exit_codes[i].text);
	fprintf(f, "\n`record` otherwise returns the command's own status, 128+n when signal n\n"
		   "killed it.\n");
}

/* An answer that could not be written is none. */
static int said(int code)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return code;
	agent_message("cannot write to standard output: %s", strerror(errno));
	return code == EXIT_OK || code == EXIT_NO ? EXIT_ENVIRONMENT : code;
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		print_help(stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
		print_help(stdout);
		return said(EXIT_OK);
	}
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
		printf("ntrace %s\n", NTRACE_VERSION);
		return said(EXIT_OK);
	}
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		if (!strcmp(argv[1], commands[i].name))
			return said(commands[i].run(argc - 1, argv + 1));
	agent_message("no command named '%s'; `ntrace --help` lists them", argv[1]);
	return EXIT_USAGE;
}
