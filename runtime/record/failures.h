/* SPDX-License-Identifier: Apache-2.0 */
/*
 * failures.h - what went wrong in a process: the last driver calls that failed, and with them an nrt_init that
 * failed (REC_FAILURE), or the command, when its status says so.
 *
 * A part of struct process: filled in the order of the recording, told at its end.
 */
#ifndef NTRACE_RECORD_FAILURES_H
#define NTRACE_RECORD_FAILURES_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/neuron_event.h"
#include "runtime/record/recording.h"

#define FAILURES_ERRORS 5u /* driver calls that are remembered */
#define FAILURES_TEXTS 2u  /* at most so many of a process */

struct failures_error {
	uint64_t start_ns, end_ns;
	uint32_t tid, request;
	int32_t result;
	int32_t dma_error; /* of what failed in it on the DMA path; 0: nothing, or it is not known */
	uint16_t device;
};

/* The newest, round and round; count: all that there were. */
struct failures_errors {
	struct failures_error last[FAILURES_ERRORS];
	uint64_t count;
};

struct process_failures {
	struct failures_errors errors;
	uint64_t inits; /* of nrt_init; the rest is of the last of them: */
	uint64_t time_ns;
	uint32_t status;
	char comm[16];		     /* of the process, padded with zeros */
	struct failures_errors then; /* those that were seen before it */
	bool recovered;		     /* a later one has announced the process */
};

/* For people. */
struct failures_text {
	char what[256];
	char errors[FAILURES_ERRORS][160]; /* oldest first */
	uint32_t error_count;
};

/* Notes a call that has ended, when it failed. */
void failures_note(struct process_failures *f, const struct nev_ioctl *e);
/* What failed on the DMA path inside of a call that was noted: an errno. */
void failures_explain(
	struct process_failures *f, uint32_t tid, uint64_t start_ns, int32_t dma_error);
/* Notes a REC_FAILURE of that time. */
void failures_init(struct process_failures *f, const struct rec_failure *failure, uint64_t time_ns);
/* Notes that the process has announced itself: an nrt_init got so far, and where it fails it says so later. */
void failures_announced(struct process_failures *f);
/* Says it in so many texts, each valid UTF-8 in one line.  end: of the recording, at end_ns; NULL: it has none. */
unsigned failures_tell(const struct process_failures *f, uint32_t pid, const struct rec_end *end,
	uint64_t end_ns, struct failures_text ret[FAILURES_TEXTS]);

#endif
