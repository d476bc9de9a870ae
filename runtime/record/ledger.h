/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ledger.h - the loss ledger: what every stage took in, handed on and lost, and whether that adds
 * up.
 */
#ifndef NTRACE_RECORD_LEDGER_H
#define NTRACE_RECORD_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/record/process.h"
#include "runtime/record/recording.h"
#include "runtime/record/session.h"

enum rec_counter_kind { REC_KIND_IN, REC_KIND_OUT, REC_KIND_LOST, REC_KIND_NOTE };

struct rec_counter_info {
	const char *stage, *name, *text;
	enum rec_counter_kind kind;
};

/* The row of counters.def; NULL for REC_COUNTER_NONE and beyond the table. */
const struct rec_counter_info *rec_counter_info(uint32_t id);

/* The id of a row by its stage and name, as they stand in trace_info.pb; REC_COUNTER_NONE: there is none. */
uint32_t rec_counter_find(const char *stage, const char *name);

/* "in", "out", "lost", "note" */
const char *rec_counter_kind_name(enum rec_counter_kind kind);

/* Values by enum rec_counter_id. */
struct ledger {
	uint64_t value[REC_COUNTER_MAX];
};

/* What is in the recording, to be held against what its readers say they took. */
struct ledger_found {
	uint64_t records; /* runtime records, finished calls, records of the DMA path */
	uint64_t calls;	  /* finished calls among them */
	uint64_t dma;	  /* records of the DMA path among them */
	bool counted;	  /* there are counters of records that were taken */
	bool ended;	  /* REC_END */
	bool damaged;
};

/* Adds one of the newest counters of a recording; notes in `found` if it is one of records taken.  What is of
 * a newer recorder is passed over: its stages cannot be checked. */
void ledger_add(struct ledger *g, struct ledger_found *found, uint32_t id, uint64_t value);

/* Fills the stages reader and recording from the counters and what was found. */
void ledger_compare(struct ledger *g, const struct ledger_found *found);

/* The stages up to the recording: newest counters summed over sources, cores and CPUs. */
void ledger_capture(struct ledger *g, const struct session *s);

/* Adds the merge stage of one process. */
void ledger_add_process(struct ledger *g, const struct process *p);

/* Adds records that belong to no process because their contents are impossible. */
void ledger_add_invalid(struct ledger *g, const struct session *s);

/* How many numbers of driver calls may be missing: what was counted as lost or left out. */
uint64_t ledger_gaps_explained(const struct ledger *g);

/* Does every stage's identity hold, do counters explain the gaps in the sequence numbers, and was
 * the kernel's ring buffer emptied?  A recorder that died leaves counters older than its last
 * records: then gaps and the ring buffer are not judged. */
bool ledger_balanced(const struct ledger *g, uint64_t seq_gaps, bool ended);

/* Has the merge an account of every raw record that was found in the recording?  `found` is counted
 * where frames are read, merge/read where their records are taken. */
bool ledger_complete(const struct ledger *g, uint64_t found);

/* Sum of all that was lost. */
uint64_t ledger_lost(const struct ledger *g);

#endif
