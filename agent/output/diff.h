/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff.h - compares two ntrace.pb by meaning (canon.h says which), and the losses that the
 * trace_info.pb beside them tell of.
 *
 * Both files are read once from front to back, without times twice, and up to the first difference once
 * more.  Memory
 * holds 8 bytes per span for the durations, 16 per event by which one side of a lane is ahead of the
 * other, and per open span, thread and name; ids as canon.h says.
 */
#ifndef NTRACE_OUTPUT_DIFF_H
#define NTRACE_OUTPUT_DIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "agent/output/durations.h"

#define DIFF_PHASES 4 /* enum ntrace_event_phase */

struct diff_options {
	/* Leave out times and the readings of clocks; compare thread by thread. */
	bool ignore_times;
	/* By which part of A's value B's may deviate in a distribution of durations.  Above 0 events
	 * are compared as without times. */
	double tolerance;
};

/* Events with one name; a side is 0 for A and 1 for B. */
struct diff_name {
	char *name;
	bool driver; /* named by its hint */
	uint64_t count[2][DIFF_PHASES];
	uint64_t open[2]; /* spans without an end */
	struct durations durations[2];
};

struct diff_value {
	char *key, *value;
	bool shown; /* an attribute, or not zero */
};

/* An event as canon.h sees it, in words. */
struct diff_event {
	bool present;	/* false: this side has nothing at that place */
	uint64_t index; /* in the file, from 1 */
	char *name;
	const char *phase;
	struct diff_value *values;
	size_t count;
};

struct diff_loss {
	char *stage, *counter;
	uint64_t value[2];
};

/* What an inspect session was asked for. */
struct diff_setting {
	const char *name; /* not freed */
	char *value[2];
};

struct diff {
	uint64_t events[2];  /* that were compared */
	uint64_t in_file[2]; /* all that were read */
	struct diff_name *names;
	size_t name_count;
	bool differs; /* the events, in order */
	struct diff_event first[2];
	bool has_info[2];
	bool ended[2]; /* the recorder stopped in order; true without a trace_info.pb */
	struct diff_loss *losses;
	size_t loss_count; /* rows that differ */
	bool info_missing; /* one side should have a trace_info.pb and does not */
	struct diff_setting *settings;
	size_t setting_count; /* of two inspect sessions, that differ */
};

/* What a side is. */
struct diff_side {
	const char *file;
	bool alone; /* named as a file: what stands beside it is not looked at */
};

/* What could not be read. */
struct diff_fault {
	char *path; /* to be freed */
	uint64_t offset;
};

/* 0, -EBADMSG (damage at fault->offset), or another -errno; fault->path may be NULL.  diff_free in
 * any case. */
int diff_traces(const struct diff_side side[2], const struct diff_options *options,
	struct diff *ret, struct diff_fault *fault);
void diff_free(struct diff *d);

/* Reads the ledgers beside both files into d; as diff_traces. */
int diff_read_info(const struct diff_side side[2], const struct diff_options *options,
	struct diff *d, struct diff_fault *fault);

/* Compares what two sessions were asked to record.  0 or -ENOMEM. */
struct Ntff__NtraceSession;
int diff_sessions(
	struct diff *d, const struct Ntff__NtraceSession *a, const struct Ntff__NtraceSession *b);

/* The questions whose answers are the report; all of them have a say in diff_same. */
bool diff_counts_differ(const struct diff_name *n, unsigned phase);
bool diff_durations_differ(const struct diff_name *n, const struct diff_options *options);
bool diff_open_differ(const struct diff_name *n);
bool diff_same(const struct diff *d, const struct diff_options *options);

/* The report on one pair. */
void diff_print_text(FILE *f, const struct diff_side side[2], const struct diff *d,
	const struct diff_options *options);

void diff_print_json(struct json_out *j, const struct diff_side side[2], const struct diff *d,
	const struct diff_options *options);

#endif
