/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rec_put.c - frames of recorders.
 */
#include "runtime/record/rec_put.h"

int rec_put_records(struct rec_writer *w, uint16_t source, uint32_t nc_idx, uint32_t lane,
	const struct trace_record *records, size_t count)
{
	const struct rec_runtime head = {.nc_idx = nc_idx, .lane = lane};

	return rec_writer_frame(
		w, REC_RUNTIME, source, &head, sizeof(head), records, count * sizeof(*records));
}

int rec_put_name(struct rec_writer *w, uint16_t source, uint64_t id, const char *text, uint32_t len)
{
	const struct rec_name head = {.id = id};

	return rec_writer_frame(w, REC_NAME, source, &head, sizeof(head), text, len);
}

int rec_put_watermark(struct rec_writer *w, uint16_t source, uint64_t mark)
{
	return rec_writer_frame(w, REC_WATERMARK, source, &mark, sizeof(mark), NULL, 0);
}

int rec_put_ring_counters(struct rec_writer *w, uint16_t source, uint32_t nc_idx, uint32_t lane,
	const struct ring_counters *v, bool failed)
{
	const struct ring_counters taken = {.emitted = v->delivered, .delivered = v->delivered};
	const struct ring_counters *c = failed ? &taken : v;
	uint32_t sub = nc_idx == TRACE_NC_UNKNOWN ? nc_idx : nc_idx | lane << 16;
	const struct rec_counter rows[] = {
		{REC_C_RUNTIME_EMITTED, sub, c->emitted},
		{REC_C_RUNTIME_DELIVERED, sub, c->delivered},
		{REC_C_RUNTIME_UNREAD, sub, c->unread},
		{REC_C_RUNTIME_OVERWRITTEN, sub, c->overwritten},
		{REC_C_RUNTIME_FILTERED, sub, c->filtered},
		{REC_C_RUNTIME_SLOT_BUSY, sub, c->slot_busy},
		{REC_C_RUNTIME_NO_RING, sub, c->no_ring},
		{REC_C_RUNTIME_ABANDONED, sub, c->abandoned},
	};

	return rec_writer_frame(w, REC_COUNTERS, source, rows, sizeof(rows), NULL, 0);
}

int rec_put_clock(struct rec_writer *w)
{
	struct clock_snapshot s = clock_snapshot_take();

	return rec_writer_frame(w, REC_CLOCK, REC_SOURCE_RECORDER, &s, sizeof(s), NULL, 0);
}

int rec_put_end(struct rec_writer *w, int wait_status, enum rec_end_reason reason)
{
	const struct rec_end end = {.wait_status = wait_status, .reason = (uint32_t)reason};

	return rec_writer_frame(w, REC_END, REC_SOURCE_RECORDER, &end, sizeof(end), NULL, 0);
}

int rec_put_cpus(struct rec_writer *w, struct sampler_cpu *rows)
{
	int n = sampler_cpus(rows, SAMPLER_MAX_CPUS);

	return n <= 0 ? 0
		      : rec_writer_frame(w, REC_CPU, REC_SOURCE_RECORDER, rows,
				(size_t)n * sizeof(rows[0]), NULL, 0);
}

int rec_put_memory(struct rec_writer *w, uint32_t pid)
{
	struct rec_mem s = {.pid = pid};
	int rc;

	if (sampler_rss((pid_t)pid, &s.rss_bytes) < 0)
		return 0;
	rc = rec_writer_frame(w, REC_MEM, REC_SOURCE_RECORDER, &s, sizeof(s), NULL, 0);
	return rc < 0 ? rc : 1;
}
