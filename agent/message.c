/* SPDX-License-Identifier: Apache-2.0 */
/*
 * message.c - messages and option parsing, the same for every subcommand.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "runtime/base/printable.h"

void agent_message(const char *format, ...)
{
	char line[2048], shown[2 * sizeof(line)];
	va_list ap;

	va_start(ap, format);
	vsnprintf(line, sizeof(line), format, ap);
	va_end(ap);
	/* It may name what others have named. */
	fprintf(stderr, "ntrace: %s\n", printable_into(line, strlen(line), shown, sizeof(shown)));
}

void agent_parse(
	const struct argp *argp, const char *name, int argc, char **argv, int in_order, void *input)
{
	/* argp takes the program's name for usage texts from argv[0]. */
	argv[0] = (char *)name;
	argp_err_exit_status = EXIT_USAGE;
	if (argp_parse(argp, argc, argv, in_order ? ARGP_IN_ORDER : 0, NULL, input) == 0)
		return;
	agent_message("%s: out of memory", name + strlen("ntrace "));
	exit(in_order ? EXIT_RECORD_FAILED : EXIT_INTERNAL); /* others are the command's there */
}

error_t agent_one_argument(
	int key, char *arg, struct argp_state *state, const char *what, const char **ret)
{
	switch (key) {
	case ARGP_KEY_ARG:
		if (*ret)
			argp_error(state, "one %s at a time", what);
		*ret = arg;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "no %s given", what);
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int agent_no_memory(const char *name)
{
	agent_message("%s: out of memory", name);
	return EXIT_INTERNAL;
}

void agent_left_out(void *ctx, const char *dir, bool in_work)
{
	const char *name = ctx;

	if (in_work)
		agent_message(
			"%s: %s is left out: its session still goes on, or its files are just "
			"being made",
			name, dir);
	else
		agent_message(
			"%s: %s is left out: its program ended without making the files of its "
			"session; `ntrace salvage %s` makes them",
			name, dir, dir);
}

static const struct {
	int error, code;
} input_codes[] = {
	{-EPROTO, EXIT_DATA},
	{-EBADMSG, EXIT_DATA},
	{-ENODATA, EXIT_DATA},
	{-EPROTONOSUPPORT, EXIT_DATA},
	{-EFBIG, EXIT_DATA},
	{-EBUSY, EXIT_DATA},
	{-ENOTUNIQ, EXIT_USAGE},
	{-ENOMEM, EXIT_INTERNAL},
};

int agent_exit_for_input(int error)
{
	for (size_t i = 0; i < sizeof(input_codes) / sizeof(*input_codes); i++)
		if (input_codes[i].error == error)
			return input_codes[i].code;
	return EXIT_ENVIRONMENT;
}
