/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - ntrace-vdev: command line of the virtual Neuron device.
 *
 * Reads the options and hands over to daemon.c.
 */
#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/vdev/daemon.h"

#define MAX_MEMORY (64ull << 30) /* the address space of one HBM here */

const char *argp_program_version = "ntrace-vdev " NTRACE_VERSION;

enum option_key {
	KEY_ROOT = 'r',
	KEY_QUIET = 'q',
	KEY_DEVICES = 256,
	KEY_CORES,
	KEY_ARCH,
	KEY_MEMORY,
	KEY_LATENCY,
	KEY_DRIVER_VERSION,
};

static const struct argp_option option_table[] = {
	{"root", KEY_ROOT, "DIR", 0, "Directory of the device; without it a private one", 0},
	{"devices", KEY_DEVICES, "N", 0, "Devices, 1 to 64 (default 1)", 0},
	{"cores", KEY_CORES, "N", 0, "NeuronCores per device, 1 to 8 (default: v2 2, v3 8)", 0},
	{"arch", KEY_ARCH, "v2|v3", 0, "Generation (default v3)", 0},
	{"memory", KEY_MEMORY, "BYTES[K|M|G]", 0, "Memory per device (default 1G, at most 64G)", 0},
	{"latency", KEY_LATENCY, "US", 0, "Microseconds before each launch (default 0)", 0},
	{"driver-version", KEY_DRIVER_VERSION, "TEXT", 0,
		"Version that sysfs shows (default 2.24.7.0)", 0},
	{"quiet", KEY_QUIET, NULL, 0, "No banner", 0},
	{0},
};

static bool parse_number(const char *text, uint64_t min, uint64_t max, uint64_t *ret)
{
	char *end;

	errno = 0;
	*ret = strtoull(text, &end, 10);
	return text[0] >= '0' && text[0] <= '9' && !errno && !*end && *ret >= min && *ret <= max;
}

static bool parse_bytes(const char *text, uint64_t *ret)
{
	static const char units[] = "KMG";
	char digits[32];
	size_t length = strlen(text);
	const char *unit = length ? strchr(units, text[length - 1]) : NULL;
	unsigned shift = unit && *unit ? 10u * (unsigned)(unit - units + 1) : 0;

	if (shift)
		length--;
	if (length == 0 || length >= sizeof(digits))
		return false;
	memcpy(digits, text, length);
	digits[length] = '\0';
	if (!parse_number(digits, 1, MAX_MEMORY >> shift, ret))
		return false;
	*ret <<= shift;
	return true;
}

static const struct vdev_arch *find_arch(const char *name)
{
	for (size_t i = 0; i < vdev_arch_count; i++)
		if (strcmp(vdev_archs[i].option, name) == 0)
			return &vdev_archs[i];
	return NULL;
}

static const struct number_option {
	int key;
	uint64_t min, max;
} number_options[] = {
	{KEY_DEVICES, 1, VDEV_MAX_DEVICES},
	{KEY_CORES, 1, VDEV_MAX_CORES},
	{KEY_LATENCY, 0, 60000000},
};

static const struct number_option *find_number(int key)
{
	for (size_t i = 0; i < sizeof(number_options) / sizeof(number_options[0]); i++)
		if (number_options[i].key == key)
			return &number_options[i];
	return NULL;
}

/* What the value should have been, or NULL when it is fine. */
static const char *set_number(
	struct vdev_options *o, const struct number_option *option, const char *value)
{
	static char want[64];
	uint64_t n;

	snprintf(want, sizeof(want), "a number from %" PRIu64 " to %" PRIu64, option->min,
		option->max);
	if (!parse_number(value, option->min, option->max, &n))
		return want;
	if (option->key == KEY_DEVICES)
		o->config.devices = (unsigned)n;
	else if (option->key == KEY_CORES)
		o->config.cores = (unsigned)n;
	else
		o->config.latency_us = n;
	return NULL;
}

/* The same for any option. */
static const char *set_option(struct vdev_options *o, int key, const char *value)
{
	const struct number_option *number = find_number(key);

	if (number)
		return set_number(o, number, value);
	switch (key) {
	case KEY_ROOT:
		o->root = value;
		return value[0] ? NULL : "the name of a directory";
	case KEY_QUIET:
		o->quiet = true;
		return NULL;
	case KEY_ARCH:
		o->config.arch = find_arch(value);
		return o->config.arch ? NULL : "one of v2, v3";
	case KEY_MEMORY:
		return parse_bytes(value, &o->config.memory_bytes)
			       ? NULL
			       : "a number of bytes, or of K, M or G, from 1 to 64G";
	default:
		o->config.driver_version = value;
		return value[0] ? NULL : "a version";
	}
}

static const char *option_name(int key)
{
	for (const struct argp_option *o = option_table; o->name; o++)
		if (o->key == key)
			return o->name;
	return NULL;
}

static error_t parse(int key, char *value, struct argp_state *state)
{
	struct vdev_options *o = state->input;
	const char *name = option_name(key);

	if (name) {
		const char *want = set_option(o, key, value);

		if (want)
			argp_error(state, "--%s: '%s' is not %s", name, value, want);
		return 0;
	}
	switch (key) {
	case ARGP_KEY_ARGS:
		o->command = &state->argv[state->next];
		state->next = state->argc;
		return 0;
	case ARGP_KEY_END:
		if (!o->command && !o->root)
			argp_error(state, "give --root DIR, or a command after --");
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
		.options = option_table,
		.parser = parse,
		.args_doc = "[-- CMD ARGS...]",
		.doc = "A virtual Neuron device: /dev/neuronN on which real system calls work.\v"
		       "With CMD, runs it with NTRACE_DEVICE_ROOT set and ends with its status "
		       "when it "
		       "and all that it started have ended.  Without, prints \"ready DIR\" and "
		       "serves until SIGTERM or SIGINT.",
	};
	struct vdev_options options = {
		.config = {.arch = find_arch("v3"),
			.devices = 1,
			.memory_bytes = 1ull << 30,
			.driver_version = "2.24.7.0"},
	};

	argp_err_exit_status = has_command(argc, argv) ? VDEV_EXIT_WRAPPER : VDEV_EXIT_USAGE;
	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &options);
	if (!options.config.cores)
		options.config.cores = options.config.arch->default_cores;
	return vdev_daemon_run(&options);
}
