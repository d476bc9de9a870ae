/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - ntrace-vdev: command line of the virtual Neuron device.
 *
 * Reads the options and hands over to daemon.c.
 */
#include <argp.h>
#include <string.h>

#include "runtime/vdev/daemon.h"
#include "runtime/vdev/options.h"

const char *argp_program_version = "ntrace-vdev " NTRACE_VERSION;

static void resolve(struct vdev_choice *choice, struct argp_state *state)
{
	const char *why;

	if (!choice->options.command && !choice->options.root)
		argp_error(state, "give --root DIR, or a command after --");
	why = vdev_options_resolve(choice);
	if (why)
		argp_error(state, "%s", why);
}

static error_t parse(int key, char *value, struct argp_state *state)
{
	struct vdev_choice *choice = state->input;
	const char *name = vdev_option_name(key);

	if (name) {
		const char *want = vdev_options_set(choice, key, value);

		if (want)
			argp_error(state, "--%s: '%s' is not %s", name, value, want);
		return 0;
	}
	switch (key) {
	case ARGP_KEY_ARGS:
		choice->options.command = &state->argv[state->next];
		state->next = state->argc;
		return 0;
	case ARGP_KEY_END:
		resolve(choice, state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* A command that is not started fails as env(1) fails: 125. */
static bool has_command(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--") == 0)
			return true;
	return false;
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		.options = vdev_option_table,
		.parser = parse,
		.args_doc = "[-- CMD ARGS...]",
		.doc = "A virtual Neuron device: /dev/neuronN on which real system calls work.\v"
		       "With CMD, runs it with NTRACE_DEVICE_ROOT set and ends with its status "
		       "when it "
		       "and all that it started have ended.  Without, prints \"ready DIR\" and "
		       "serves until SIGTERM or SIGINT.",
	};
	struct vdev_choice choice = {0};

	argp_err_exit_status = has_command(argc, argv) ? VDEV_EXIT_WRAPPER : VDEV_EXIT_USAGE;
	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &choice);
	return vdev_daemon_run(&choice.options);
}
