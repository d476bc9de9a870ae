/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counter_frames.c - frames of counters, from a table of rows per kind of source.
 */
#include "agent/collect/counter_frames.h"

#include <sys/resource.h>

#include "agent/collect/bpf_support.h"
#include "runtime/record/rec_put.h"

static int put_rows(const struct counter_frames *c, uint16_t source, const struct rec_counter *rows,
	size_t size)
{
	return rec_writer_frame(c->rec, REC_COUNTERS, source, rows, size, NULL, 0);
}

static int put_hook_cost(const struct counter_frames *c)
{
	struct bpf_cost cost;
	int rc;

	if (!ioctl_hooks_cost(c->hooks, &cost))
		return 0;
	struct rec_counter rows[] = {
		{REC_C_HOOK_RUNS, 0, 0},
		{REC_C_HOOK_RUN_NS, 0, 0},
		{REC_C_HOOK_MAP_BYTES, 0, cost.map_bytes},
	};
	for (unsigned i = 0; i < cost.count; i++) {
		rows[0].value += cost.programs[i].runs;
		rows[1].value += cost.programs[i].run_ns;
	}
	rc = put_rows(c, REC_SOURCE_KERNEL, rows, sizeof(rows));
	return rc < 0 ? rc
		      : rec_writer_frame(c->rec, REC_HOOK_COST, REC_SOURCE_KERNEL, cost.programs,
				cost.count * sizeof(cost.programs[0]), NULL, 0);
}

/* Records in the ring buffer at the moment of k: what has come in since is not among them.  `received` is all that
 * was taken. */
static uint64_t left_at(
	const struct counter_frames *c, const uint64_t k[NEV_C_MAX], uint64_t received)
{
	uint64_t handed = k[NEV_C_DONE] + k[NEV_C_DMA_DONE], left = ioctl_hooks_left(c->hooks);
	uint64_t due = handed > received ? handed - received : 0;

	return left < due ? left : due;
}

static int put_kernel_counters(const struct counter_frames *c)
{
	uint64_t k[NEV_C_MAX], open, received;
	uint64_t dma_received = ioctl_hooks_dma_received(c->hooks);
	int rc = ioctl_hooks_counters(c->hooks, k, &open, &received);

	if (rc < 0)
		return rc;
	const struct rec_counter rows[] = {
		{REC_C_KERNEL_ENTERED, 0, k[NEV_C_ENTERED]},
		{REC_C_KERNEL_DONE, 0, k[NEV_C_DONE]},
		{REC_C_KERNEL_OPEN, 0, open},
		{REC_C_KERNEL_RING_FULL, 0, k[NEV_C_LOST_RING_FULL]},
		{REC_C_KERNEL_INFLIGHT_FULL, 0, k[NEV_C_LOST_INFLIGHT_FULL]},
		{REC_C_KERNEL_RATE, 0, k[NEV_C_LOST_RATE]},
		{REC_C_KERNEL_EXIT_LOST, 0, k[NEV_C_LOST_EXIT]},
		{REC_C_KERNEL_ARG_FAULT, 0, k[NEV_C_ARG_FAULT]},
		{REC_C_KERNEL_UNTRACKED, 0, k[NEV_C_UNTRACKED]},
		{REC_C_KERNEL_MISSED, 0, ioctl_hooks_missed(c->hooks)},
		{REC_C_KERNEL_UNCOUNTED, 0, ioctl_hooks_uncounted(c->hooks)},
		{REC_C_KERNEL_KPROBES_OFF_NS, 0, ioctl_hooks_kprobes_off_ns(c->hooks)},
		{REC_C_KERNEL_SWITCH_FAILED, 0, ioctl_hooks_switches_failed(c->hooks)},
		{REC_C_KERNEL_RECEIVED, 0, received},
		{REC_C_KERNEL_LEFT, 0, left_at(c, k, received + dma_received)},
		{REC_C_DMA_MADE, 0, k[NEV_C_DMA_MADE]},
		{REC_C_DMA_DONE, 0, k[NEV_C_DMA_DONE]},
		{REC_C_DMA_RING_FULL, 0, k[NEV_C_DMA_LOST_RING_FULL]},
		{REC_C_DMA_RECEIVED, 0, dma_received},
		{REC_C_DMA_NO_PLACE, 0, k[NEV_C_DMA_NO_PLACE]},
		{REC_C_DMA_UNENDED, 0, k[NEV_C_DMA_UNENDED]},
	};
	rc = put_rows(c, REC_SOURCE_KERNEL, rows, sizeof(rows));
	return rc < 0 ? rc : put_hook_cost(c);
}

static int put_runtime_counters(
	const struct counter_frames *c, const struct runtime_source *s, unsigned at)
{
	const struct rec_counter rows[] = {
		{REC_C_NAMES_LOST, 0, runtimes_names_lost(c->runtimes, at)},
		{REC_C_THREADS_GONE, 0, runtimes_threads_gone(c->runtimes, at)},
		{REC_C_SESSIONS, 0, runtimes_sessions(c->runtimes, at)},
	};
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < runtimes_ring_count(c->runtimes, at); i++) {
		struct ring_counters v;
		uint32_t nc, lane;

		runtimes_ring(c->runtimes, at, i, &nc, &lane, &v);
		rc = rec_put_ring_counters(c->rec, s->source, nc, lane, &v, s->failed);
	}
	return rc < 0 ? rc : put_rows(c, s->source, rows, sizeof(rows));
}

int counter_frames_put_cost(const struct counter_frames *c)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	uint64_t ns = ((uint64_t)u.ru_utime.tv_sec + (uint64_t)u.ru_stime.tv_sec) * 1000000000u +
		      ((uint64_t)u.ru_utime.tv_usec + (uint64_t)u.ru_stime.tv_usec) * 1000u;
	const struct rec_counter rows[] = {
		{REC_C_AGENT_CPU_NS, 0, ns},
		{REC_C_AGENT_BYTES, 0, rec_writer_bytes(c->rec)},
		{REC_C_AGENT_REFUSED, 0, runtimes_refused(c->runtimes)},
		{REC_C_AGENT_FAILED, 0, runtimes_failed(c->runtimes)},
		{REC_C_AGENT_REPLACED, 0, runtimes_replacements(c->runtimes)},
		{REC_C_MEMORY_SKIPPED, 0, c->residents->skipped},
		{REC_C_AGENT_LEFT_RUNNING, 0, c->attached ? 0 : ioctl_hooks_tracked(c->hooks)},
	};
	return put_rows(c, REC_SOURCE_RECORDER, rows, sizeof(rows));
}

int counter_frames_put(const struct counter_frames *c)
{
	struct runtime_source s;
	uint64_t mark;
	int rc = put_kernel_counters(c);

	for (unsigned i = 0; rc == 0 && runtimes_get(c->runtimes, i, &s, &mark); i++)
		rc = put_runtime_counters(c, &s, i);
	return rc;
}
