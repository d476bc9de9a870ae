/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorder.h - what `record` and `attach` share: options, the choice of the directory, and what follows a capture.
 */
#ifndef NTRACE_AGENT_RECORDER_H
#define NTRACE_AGENT_RECORDER_H

#include "agent/agent.h"
#include "agent/collect/capture.h"
#include "runtime/record/merge.h"

#define HOOK_LEVEL_NAMES "auto, fentry, kprobe, tracepoint, syscall"
/* The families of agent/collect/hooks.def. */
#define DRIVER_FAMILIES                                                                 \
	"ioctl, file, doorbell, owner, completion, transfer, memset, zerocopy, async, " \
	"user-ring, queue"

struct recorder {
	const char *name;    /* of the command, for messages */
	const char *nothing; /* what has not happened after an early failure: "run" */
	const char *out;     /* -o, or NULL */
	bool strict, quiet;
	struct capture_options capture;
	struct merge_options merge;
	char *dir; /* of the output; recorder_close frees it */
};

enum {
	RECORDER_STRICT = 256,
	RECORDER_KERNEL_EVENTS,
	RECORDER_KERNEL_RING,
	RECORDER_RING,
	RECORDER_HOOKS,
	RECORDER_HOOKS_OFF,
	RECORDER_RATE,
	RECORDER_HOOK_COST,
	RECORDER_OPTIONS_END, /* the command's own are numbered from here on */
};

/* Rows of a table of struct argp_option; the command's own about -a and --strict come before them. */
#define RECORDER_OPTIONS                                                                           \
	{"output", 'o', "DIR", 0,                                                                  \
		"Directory for all output (default: output, then output_2, ...)", 0},              \
		{"kernel-events", RECORDER_KERNEL_EVENTS, "MODE", 0,                               \
			"How kernel spans are written: hint (default), extended or off", 0},       \
		{"hooks", RECORDER_HOOKS, "LEVEL", 0,                                              \
			"Where to hook: auto (default; the best there is), fentry, kprobe, "       \
			"tracepoint or syscall",                                                   \
			0},                                                                        \
		{"hooks-off", RECORDER_HOOKS_OFF, "FAMILY[,FAMILY...]", 0,                         \
			"Do not hook these inside of the driver: " DRIVER_FAMILIES, 0},            \
		{"rate", RECORDER_RATE, "CALLS", 0,                                                \
			"Record at most so many driver calls of a process per second", 0},         \
		{"hook-cost", RECORDER_HOOK_COST, 0, 0,                                            \
			"Measure how often and how long the hooks run, and their memory", 0},      \
		{"kernel-ring", RECORDER_KERNEL_RING, "BYTES", 0,                                  \
			"Size of the BPF ring buffer, a power of two (default 4194304, more when " \
			"there are more than 16 devices)",                                         \
			0},                                                                        \
		{"ring", RECORDER_RING, "RECORDS", 0,                                              \
			"Records per NeuronCore ring in a runtime, which rounds up to a power of " \
			"two from 1024 to 4194304 (default 65536)",                                \
			0},                                                                        \
	{                                                                                          \
		"quiet", 'q', 0, 0, "Print nothing but errors", 0                                  \
	}

/* The parser of those rows, -a and --strict. */
error_t recorder_parse(int key, char *arg, struct argp_state *state, struct recorder *r);

#define RECORDER_HOOKS_VARIABLE "NTRACE_HOOKS"

/* The level of hooks that the environment names; NULL: none.  0, or -EINVAL and it was said: there is no such level. */
int recorder_hooks_variable(const char *command, const char **ret);
/* The same for what no option has said; false: it was said, and is wrong usage. */
bool recorder_take_environment(struct recorder *r);

/* Chooses the directory: what was asked for, or the first of output, output_2, ... that holds no recording.
 * device_root: where the tree of a virtual device is, "" and NULL: /dev.  0, or -errno and it was said. */
int recorder_open(struct recorder *r, const char *device_root);
void recorder_close(struct recorder *r);

enum recorder_end {
	RECORDER_GOOD,
	RECORDER_FAILED,     /* nothing was merged */
	RECORDER_UNBALANCED, /* that is a bug of ours */
	RECORDER_LOST,	     /* something was lost, and --strict was given */
};

/* Merges the recording and reports.  What went wrong was said. */
enum recorder_end recorder_merge(const struct recorder *r, const char *rec_path);

#endif
