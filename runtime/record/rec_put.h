/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rec_put.h - the frames that every recorder writes alike: the agent's, and that of a session within the program.
 *
 * One thread, that of the writer.  None of these allocates but those that read /proc; all return 0, or the
 * writer's sticky error.
 */
#ifndef NTRACE_RECORD_REC_PUT_H
#define NTRACE_RECORD_REC_PUT_H

#include <stdbool.h>

#include "runtime/base/sampler.h"
#include "runtime/record/recording.h"
#include "runtime/trace/ring.h"

/* A writer of events reads the clock, then takes its place in the ring.  One that loses its CPU in between leaves a
 * record older than what was read meanwhile; this is how long that may be. */
#define REC_SLACK_NS 20000000ull

/* A batch as ctl_reader_poll gives it. */
int rec_put_records(struct rec_writer *w, uint16_t source, uint32_t nc_idx, uint32_t lane,
	const struct trace_record *records, size_t count);
int rec_put_name(
	struct rec_writer *w, uint16_t source, uint64_t id, const char *text, uint32_t len);
int rec_put_watermark(struct rec_writer *w, uint16_t source, uint64_t mark);
/* The newest counters of a ring.  failed: its process's memory broke its rules, so nothing counts but what was
 * taken from it. */
int rec_put_ring_counters(struct rec_writer *w, uint16_t source, uint32_t nc_idx, uint32_t lane,
	const struct ring_counters *v, bool failed);
/* A snapshot of the clocks, now. */
int rec_put_clock(struct rec_writer *w);
int rec_put_end(struct rec_writer *w, int wait_status, enum rec_end_reason reason);

/* A sample of all CPUs; rows: SAMPLER_MAX_CPUS of memory for it.  Nothing when /proc cannot be read. */
int rec_put_cpus(struct rec_writer *w, struct sampler_cpu *rows);
/* What a process has resident.  1 when it is written, 0: the process is gone. */
int rec_put_memory(struct rec_writer *w, uint32_t pid);

#endif
