/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output.h - the four files of each process.
 *
 * They appear together or not at all: written under temporary names, committed at the end,
 * trace_info.pb last; what was committed is taken back when a later one fails.
 */
#ifndef NTRACE_RECORD_OUTPUT_H
#define NTRACE_RECORD_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/record/ledger.h"
#include "runtime/record/merge.h"
#include "runtime/record/process.h"
#include "runtime/record/session.h"

struct output {
	const struct session *session;
	const char *dir; /* NULL: to the sink, or /dev/null when there is none */
	const struct merge_sink *sink;
	bool leaf, leaf_used; /* dir is the directory of the one process that there is */
	enum merge_kernel_events kernel_events;
	char **ret_error;
	unsigned made;		/* components of dir that are ours */
	struct file_set *first; /* all that are open */
	unsigned files_open;
	int error; /* of the sink */
};

/* Says what failed; the first saying counts.  Returns error. */
int output_fail(struct output *o, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Creates the output directory unless it exists. */
int output_make_dir(struct output *o);
/* An unlinked temporary file below the output directory (ctx is the output). */
int output_temporary(void *ctx);
/* Creates a process's directory and its ntrace.pb. */
int output_open(struct output *o, struct process *p);
/* Writes the process's buffer (an encoder's flush; ctx is the output). */
void output_flush(void *ctx, struct process *p);
/* Writes the other three files and gives all four their names. */
int output_commit(
	struct output *o, struct process *p, const struct ledger *g, struct merge_output *ret);
/* Takes back what was not committed. */
void output_discard(struct output *o, struct process *p);
/* Removes the output directory if it was made here and nothing is in it. */
void output_end(struct output *o);

#endif
