/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rec_cut_parts.h - what the two passes of a cut share: its state, and what is chosen.
 */
#ifndef NTRACE_RECORD_REC_CUT_PARTS_H
#define NTRACE_RECORD_REC_CUT_PARTS_H

#include "runtime/record/clock_map.h"
#include "runtime/record/cut_blocks.h"
#include "runtime/record/cut_output.h"
#include "runtime/record/footer.h"
#include "runtime/record/frame.h"
#include "runtime/record/rec_cut.h"
#include "runtime/record/records.h"
#include "runtime/record/span_set.h"

#define SOURCES (1u << 16) /* numbers that a source can have */

struct cutter {
	const struct rec_cut_options *o;
	struct rec_cut_result *ret;
	struct rec_writer *w;
	struct cut_output out;
	struct rec_reader *reader;
	struct span_set spans; /* those that reach over an end of the time */
	uint32_t *pids;	       /* of sources; 0: unknown */
	struct footer newest;  /* counters */
	struct clock_map clock;
	uint8_t *records; /* of the frame that is made */
	size_t cap;
	struct rec_frame cpu; /* newest CPU sample before the time: intervals begin there */
	uint8_t *cpu_rows;
	uint64_t seen;			  /* records */
	uint64_t finished, finished_kept; /* runtime records, finished calls, DMA path */
	uint64_t calls;			  /* finished calls among those that are there */
	uint64_t dma;			  /* records of the DMA path among those */
	uint64_t last_ns;		  /* time of the last frame */
	struct cut_blocks blocks;
	uint32_t block; /* that is surveyed */
	uint32_t cpu_block;
	bool has_cpu; /* cpu_block has a sample from before the time */
	bool end_written;
};

static inline bool chosen(const uint32_t *choices, unsigned count, uint32_t value)
{
	for (unsigned i = 0; i < count; i++)
		if (choices[i] == value)
			return true;
	return count == 0;
}

static inline bool pid_wanted(const struct cutter *c, uint32_t pid)
{
	return chosen(c->o->pids, c->o->pid_count, pid);
}

static inline bool core_wanted(const struct cutter *c, uint32_t core)
{
	return core == TRACE_NC_UNKNOWN || chosen(c->o->cores, c->o->core_count, core);
}

static inline bool before_end(const struct cutter *c, uint64_t ns)
{
	return ns < c->ret->to_ns || c->ret->to_ns == UINT64_MAX;
}

static inline bool time_wanted(const struct cutter *c, uint64_t ns)
{
	return ns >= c->ret->from_ns && before_end(c, ns);
}

/* Of a source that has ended: it must not hold the others back. */
static inline bool watermark_wanted(const struct cutter *c, uint64_t ns)
{
	return ns == UINT64_MAX || time_wanted(c, ns);
}

static inline struct span_key runtime_key(uint16_t source, const struct trace_record *r)
{
	return (struct span_key){source, r->tracking_id};
}

static inline struct span_key call_key(const struct nev_ioctl *e)
{
	return (struct span_key){SPAN_KERNEL | e->tid, e->start_ns};
}

/* Does any part of a finished call lie in the time? */
static inline bool call_overlaps(const struct cutter *c, const struct nev_ioctl *e)
{
	return before_end(c, e->start_ns) && records_call_end(e) >= c->ret->from_ns;
}

static inline bool has_times(const struct cutter *c)
{
	return c->o->from.kind != CUT_OPEN || c->o->to.kind != CUT_OPEN;
}

/* ---- first pass (rec_cut_survey.c) ---------------------------------------------------------- */

/* Finds the first clock snapshot that can be, as the merge does, and with it the time that is wanted. */
int cut_find_time(struct cutter *c, struct rec_reader *r);
/* Finds the spans that reach over an end of that time, the process of each source, and what blocks hold. */
int cut_survey(struct cutter *c, struct rec_reader *r);

#endif
