/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent.h - what all subcommands share: their table, exit codes, and how messages look.
 */
#ifndef NTRACE_AGENT_H
#define NTRACE_AGENT_H

#include <argp.h>
#include <stdbool.h>

#include "agent/output/file_kind.h"

enum agent_exit {
#define EXIT_CODE(id, number, text) EXIT_##id = (number),
#include "agent/exit_codes.def"
#undef EXIT_CODE
};

/* argv[0] is the subcommand's name.  Returns an exit code. */
typedef int (*agent_cmd_fn)(int argc, char **argv);

struct agent_cmd {
	const char *name;
	agent_cmd_fn run;
	const char *help;
};

int cmd_record(int argc, char **argv);
int cmd_attach(int argc, char **argv);
int cmd_replay(int argc, char **argv);
int cmd_salvage(int argc, char **argv);
int cmd_rec(int argc, char **argv);
int cmd_summary(int argc, char **argv);
int cmd_dump(int argc, char **argv);
int cmd_diff(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_verify(int argc, char **argv);
int cmd_env(int argc, char **argv);
int cmd_check(int argc, char **argv);

/* One line on stderr, "ntrace: " before it. */
void agent_message(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Says that the subcommand ("diff") lacks memory; returns EXIT_INTERNAL. */
int agent_no_memory(const char *name);

/*
 * argp_parse for a subcommand: usage errors exit with EXIT_USAGE, --help and --usage name the
 * subcommand.  name is e.g. "ntrace record".  in_order: stop at the first non-option.
 */
void agent_parse(const struct argp *argp, const char *name, int argc, char **argv, int in_order,
	void *input);

/* For the parser of a command that takes one argument, "a file" or the like (what): the keys that are not options. */
error_t agent_one_argument(
	int key, char *arg, struct argp_state *state, const char *what, const char **ret);

/* Is the file at path plainly of another kind than `wanted`?  Then that is said, and the exit code is
 * EXIT_USAGE. */
bool agent_wrong_kind(const char *command, const char *path, enum file_kind wanted);

/* Warns that the session in dir is left out of what is shown, and says what to do.  ctx: the subcommand's name, for
 * feed_options. */
void agent_left_out(void *ctx, const char *dir, bool in_work);

/* The exit code for a negative errno met while reading input. */
int agent_exit_for_input(int error);

#endif
