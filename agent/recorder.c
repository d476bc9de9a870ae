/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorder.c - options and output of the commands that record.
 */
#include "agent/recorder.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/collect/driver_hooks.h"
#include "agent/collect/ioctl_hooks.h"
#include "agent/output/report.h"
#include "runtime/base/env.h"
#include "runtime/base/file.h"

#define DEFAULT_OUT "output"
#define MAX_OUT_BYTES (PATH_MAX - 512) /* what is appended to it fits behind */

static uint32_t parse_count(struct argp_state *state, const char *name, const char *text)
{
	char *end;

	errno = 0;
	unsigned long long v = strtoull(text, &end, 10);
	if (errno || *end || end == text || *text == '-' || v == 0 || v > UINT32_MAX)
		argp_error(state, "--%s: '%s' is not a number from 1 to 4294967295", name, text);
	return (uint32_t)v;
}

static uint32_t parse_kernel_ring(struct argp_state *state, const char *text)
{
	uint32_t bytes = parse_count(state, "kernel-ring", text);
	uint64_t nearest = ioctl_hooks_ring_size(bytes);

	if (bytes != nearest)
		argp_error(state,
			"--kernel-ring: %" PRIu32
			" is not a power of two and a multiple of the page "
			"size; the nearest is %" PRIu64,
			bytes, nearest);
	return bytes;
}

static bool hooks_level_known(const char *text)
{
	return strcmp(text, "auto") == 0 || hook_level_of(text) != HOOK_LEVELS;
}

error_t recorder_parse(int key, char *arg, struct argp_state *state, struct recorder *r)
{
	const char *unknown;
	size_t length;

	switch (key) {
	case 'o':
		r->out = arg;
		return 0;
	case 'a':
		r->capture.all_processes = true;
		return 0;
	case 'q':
		r->quiet = true;
		return 0;
	case RECORDER_STRICT:
		r->strict = true;
		return 0;
	case RECORDER_KERNEL_EVENTS:
		if (report_kernel_events(arg, &r->merge.kernel_events) < 0)
			argp_error(
				state, "--kernel-events: '%s' is none of hint, extended, off", arg);
		return 0;
	case RECORDER_HOOKS:
		if (!hooks_level_known(arg))
			argp_error(state, "--hooks: '%s' is none of " HOOK_LEVEL_NAMES, arg);
		r->capture.hooks = arg;
		return 0;
	case RECORDER_HOOKS_OFF:
		unknown = driver_hooks_unknown_family(arg, &length);
		if (unknown)
			argp_error(state, "--hooks-off: '%.*s' is none of " DRIVER_FAMILIES,
				(int)length, unknown);
		r->capture.hooks_off = arg;
		return 0;
	case RECORDER_RATE:
		r->capture.rate = parse_count(state, "rate", arg);
		return 0;
	case RECORDER_HOOK_COST:
		r->capture.hook_cost = true;
		return 0;
	case RECORDER_KERNEL_RING:
		r->capture.kernel_ring_bytes = parse_kernel_ring(state, arg);
		return 0;
	case RECORDER_RING:
		r->capture.ring_capacity = parse_count(state, "ring", arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* The directory to use: what was asked for, or the first of output, output_2, ... that holds no
 * recording.  NULL when memory is short. */
static char *choose_out(const struct recorder *r)
{
	char *dir = NULL;

	if (r->out)
		return strdup(r->out);
	for (unsigned n = 1; n < 100000; n++) {
		_cleanup_free_ char *rec = NULL;
		struct stat st;
		int made =
			n == 1 ? asprintf(&dir, DEFAULT_OUT) : asprintf(&dir, DEFAULT_OUT "_%u", n);
		if (made < 0 || asprintf(&rec, "%s/%s", dir, REC_DIR) < 0)
			return NULL;
		if (lstat(rec, &st) < 0)
			return dir;
		free(dir);
		dir = NULL;
	}
	return NULL;
}

int recorder_hooks_variable(const char *command, const char **ret)
{
	const char *hooks = getenv(RECORDER_HOOKS_VARIABLE);

	if (hooks && !*hooks)
		hooks = NULL; /* as ever with variables: not set */
	*ret = hooks;
	if (!hooks || hooks_level_known(hooks))
		return 0;
	agent_message("%s: " RECORDER_HOOKS_VARIABLE ": '%s' is none of " HOOK_LEVEL_NAMES, command,
		hooks);
	return -EINVAL;
}

bool recorder_take_environment(struct recorder *r)
{
	return r->capture.hooks || recorder_hooks_variable(r->name, &r->capture.hooks) == 0;
}

int recorder_open(struct recorder *r, const char *device_root)
{
	char *out = choose_out(r);

	if (!out) {
		agent_message("%s: out of memory", r->name);
		return -ENOMEM;
	}
	if (strlen(out) > MAX_OUT_BYTES) {
		agent_message("%s: the path given with -o has %zu bytes, more than %d; nothing "
			      "was %s",
			r->name, strlen(out), MAX_OUT_BYTES, r->nothing);
		free(out);
		return -ENAMETOOLONG;
	}
	r->capture.out_dir = r->dir = out;
	r->capture.device_root = device_root && *device_root ? device_root : NULL;
	return 0;
}

void recorder_close(struct recorder *r)
{
	free(r->dir);
	r->dir = NULL;
}

enum recorder_end recorder_merge(const struct recorder *r, const char *rec_path)
{
	struct merge_result m;
	_cleanup_free_ char *error = NULL;
	int rc = merge_recording(rec_path, r->dir, &r->merge, &m, &error);

	if (rc < 0) {
		if (access(rec_path, F_OK) < 0)
			agent_message("%s: the recording %s has vanished; nothing was merged",
				r->name, rec_path);
		else
			agent_message("%s: %s; the recording is whole: `ntrace replay %s -o "
				      "DIR` merges it",
				r->name, error ? error : strerror(-rc), rec_path);
		merge_result_free(&m);
		return RECORDER_FAILED;
	}
	if (!r->quiet)
		report_print(stderr, &m, rec_path);
	if (!m.balanced)
		agent_message(
			"%s: the ledger does not balance; please report this as a bug", r->name);
	uint64_t missing = r->strict ? report_missing(&m) : 0;
	if (missing)
		agent_message("%s: %llu losses, which --strict does not allow", r->name,
			(unsigned long long)missing);
	bool balanced = m.balanced;
	merge_result_free(&m);
	return !balanced ? RECORDER_UNBALANCED : missing ? RECORDER_LOST : RECORDER_GOOD;
}
