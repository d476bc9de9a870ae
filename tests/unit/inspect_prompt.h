/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_prompt.h - how old the records of an inspect session's recording were when they went to the
 * disk: at most 100 ms.
 *
 * Counted in the recording itself, and in ticks of the session's thread, each of which leaves a
 * watermark where there are records: what a busy machine adds is that ticks come late, which is
 * seen and allowed for.  Header only; meant for a child (nrt_lib.h).
 */
#ifndef NTRACE_TESTS_INSPECT_PROMPT_H
#define NTRACE_TESTS_INSPECT_PROMPT_H

#include "runtime/record/recording.h"
#include "runtime/trace/record.h"
#include "tests/unit/nrt_lib.h"

#define PROMPT_TICK_NS 10000000ull
#define PROMPT_TICKS 10u /* in 100 ms */

struct prompt {
	unsigned blocks; /* that hold an execution's end */
	uint64_t least_gap_ns;
	/* Of the block that is being read. */
	uint32_t number;
	unsigned ticks;
	uint64_t late_ns, oldest_ns;
	uint64_t tick_ns; /* the tick before, also of another block */
};

static inline void prompt_tick(struct prompt *p, uint64_t now)
{
	uint64_t gap = now - p->tick_ns;

	if (p->tick_ns && gap > PROMPT_TICK_NS)
		p->late_ns += gap - PROMPT_TICK_NS;
	if (p->tick_ns && gap < p->least_gap_ns)
		p->least_gap_ns = gap;
	p->tick_ns = now;
	p->ticks++;
}

/* When a call has ended its record is there, so it counts from then on. */
static inline void prompt_records(struct prompt *p, const uint8_t *payload, size_t size)
{
	struct trace_record r;

	for (size_t at = sizeof(struct rec_runtime); at + sizeof(r) <= size; at += sizeof(r)) {
		memcpy(&r, payload + at, sizeof(r));
		if (r.trace_type == TRACE_EXECUTE_API && r.phase == TRACE_STOP &&
			r.timestamp_ns < p->oldest_ns)
			p->oldest_ns = r.timestamp_ns;
	}
}

/* The block is all there: it went to the disk with its last tick. */
static inline bool prompt_block(struct prompt *p)
{
	uint64_t most = (PROMPT_TICKS + 1) * PROMPT_TICK_NS + p->late_ns;
	uint64_t age = p->tick_ns > p->oldest_ns ? p->tick_ns - p->oldest_ns : 0;
	bool fine = p->ticks <= PROMPT_TICKS && age <= most;

	if (!fine)
		dprintf(complaint_fd,
			"block %u was written after %u ticks, with a record of %.1f ms before; "
			"ticks were late by %.1f ms\n",
			p->number, p->ticks, (double)age / 1e6, (double)p->late_ns / 1e6);
	p->blocks += p->oldest_ns != UINT64_MAX;
	p->ticks = 0;
	p->late_ns = 0;
	p->oldest_ns = UINT64_MAX;
	return fine;
}

static inline bool prompt_read(struct prompt *p, struct rec_reader *r)
{
	const struct rec_frame *f;
	const uint8_t *payload;
	struct rec_place place;
	bool fine = true;
	int rc;

	while (fine && (rc = rec_reader_next(r, &f, &payload)) > 0) {
		rec_reader_place(r, &place);
		if (place.number != p->number)
			fine = prompt_block(p);
		p->number = place.number;
		if (f->type == REC_WATERMARK)
			prompt_tick(p, f->time_ns);
		else if (f->type == REC_RUNTIME)
			prompt_records(p, payload, f->size);
	}
	return fine && rc == 0 && prompt_block(p);
}

/* Is each of the recording's executions on the disk in time, and are there several? */
static inline bool recording_is_prompt(const char *leaf)
{
	struct prompt p = {.least_gap_ns = UINT64_MAX, .oldest_ns = UINT64_MAX};
	struct rec_reader *r;
	bool fine;

	if (rec_reader_open(leaf, &r) < 0)
		return false;
	fine = prompt_read(&p, r);
	rec_reader_close(r);
	if (p.blocks < 2 || p.least_gap_ns > 2 * PROMPT_TICK_NS)
		dprintf(complaint_fd, "%u blocks, and ticks of %.1f ms at least\n", p.blocks,
			(double)p.least_gap_ns / 1e6);
	return fine && p.blocks >= 2 && p.least_gap_ns <= 2 * PROMPT_TICK_NS;
}

#endif
