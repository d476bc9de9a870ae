/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frames.h - frames as a recorder would write them, made in memory, for benchmarks of what comes after.
 *
 * Batches of four threads on four cores and of the kernel hooks, with watermarks.  A round is an
 * execution with submit, wait and device run, and sixteen allocations with one copy each: 72 events
 * with six attributes on average.  Header only; a benchmark includes it and uses what it wants.
 */
#ifndef NTRACE_BENCH_FRAMES_H
#define NTRACE_BENCH_FRAMES_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bpf/neuron_event.h"
#include "runtime/base/sampler.h"
#include "runtime/record/merge.h"
#include "runtime/trace/event_registry.h"
#include "runtime/trace/record.h"
#include "vmlinux/ioctl_table.h"

#define PID 4711u
#define THREADS 4u
#define BOOT 1000000000000u
#define ALLOCATIONS 16u
#define RECORDS_PER_ROUND (8u + 2u * ALLOCATIONS)
#define EVENTS_PER_ROUND (RECORDS_PER_ROUND + 2u * ALLOCATIONS)
#define ROUND_NS 20000u
#define ROUNDS_PER_BATCH 16u /* of one core */
#define ROUNDS_PER_SAMPLE (1000000u / EVENTS_PER_ROUND)
#define CPUS 64u

enum step {
	STEP_RECORDS,
	STEP_CALLS,
	STEP_MARK_RUNTIME,
	STEP_MARK_KERNEL,
	STEP_CPU,
	STEP_MEM,
};

/* Frames of a recording, one after the other. */
struct generator {
	uint64_t rounds, done; /* of all cores */
	uint64_t samples;
	uint64_t next_id[THREADS];
	uint32_t seq;
	unsigned start; /* frames before the first event that were given */
	unsigned core;
	enum step step;
	struct rec_frame frame;
	struct rec_runtime head;
	struct trace_record records[ROUNDS_PER_BATCH * RECORDS_PER_ROUND];
	uint8_t calls[ROUNDS_PER_BATCH * ALLOCATIONS *
		      (sizeof(struct nev_ioctl) + 6 * sizeof(uint64_t))];
	size_t count, call_bytes;
	uint8_t payload[sizeof(struct rec_runtime) +
			ROUNDS_PER_BATCH * RECORDS_PER_ROUND * sizeof(struct trace_record)];
};

/* CPU time of the process: what one core takes, whatever else runs. */
static double used(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

__attribute__((unused)) static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static struct trace_record *put_record(struct generator *g, enum trace_type type,
	enum trace_phase phase, uint64_t id, uint64_t time, uint32_t nc)
{
	struct trace_record *r = (struct trace_record *)(g->payload + sizeof(g->head)) + g->count++;

	memset(r, 0, sizeof(*r));
	r->trace_type = type;
	r->phase = phase;
	r->thread_id = type == TRACE_DEVICE_EXEC ? 0 : PID + g->core;
	r->id = ++g->next_id[g->core];
	r->tracking_id = id ? id : (uint64_t)(g->core + 1) << 50 | r->id;
	r->timestamp_ns = time;
	r->nc_idx = nc;
	return r;
}

static void put_span(struct generator *g, enum trace_type type, uint64_t from, uint64_t to,
	uint64_t a, uint64_t b)
{
	struct trace_record *r = put_record(g, type, TRACE_START, 0, from, g->core);

	memcpy(r->data, &a, sizeof(a));
	memcpy(r->data + 8, &b, sizeof(b));
	put_record(g, type, TRACE_STOP, r->tracking_id, to, g->core);
}

static void put_call(struct generator *g, uint64_t from, uint64_t to)
{
	struct nev_ioctl e = {
		.hdr = {.time_ns = to, .seq = g->seq++, .type = NEV_IOCTL_DONE, .nargs = 6},
		.start_ns = from,
		.duration_ns = to - from,
		.tgid = PID,
		.tid = PID + g->core,
		.request = NEURON_IOCTL_MEM_COPY64,
	};
	uint64_t args[6] = {from, to, 4096, 65536, 131072, 7};

	memcpy(g->calls + g->call_bytes, &e, sizeof(e));
	memcpy(g->calls + g->call_bytes + sizeof(e), args, sizeof(args));
	g->call_bytes += sizeof(e) + sizeof(args);
}

static void put_allocation(struct generator *g, uint64_t t)
{
	struct trace_record *r =
		put_record(g, TRACE_DMA_MEM_ALLOC, TRACE_START, 0, t, TRACE_NC_UNKNOWN);
	uint32_t usage = 12;
	uint64_t stop[5] = {4096, 0x10000000 + t, 0, 1 << 30, 1u << 31};

	memcpy(r->data + 4, &usage, sizeof(usage));
	r = put_record(
		g, TRACE_DMA_MEM_ALLOC, TRACE_STOP, r->tracking_id, t + 900, TRACE_NC_UNKNOWN);
	memcpy(r->data, stop, sizeof(stop));
	put_call(g, t + 100, t + 800);
}

/* One execution and the allocations before it. */
static void put_round(struct generator *g, uint64_t t, uint64_t exec_id)
{
	for (unsigned i = 0; i < ALLOCATIONS; i++)
		put_allocation(g, t + i * 1000);
	t += ALLOCATIONS * 1000;
	struct trace_record *api = put_record(g, TRACE_EXECUTE_API, TRACE_START, 0, t, g->core);
	uint64_t model = 77, api_id = api->tracking_id;
	memcpy(api->data, &model, sizeof(model));
	put_span(g, TRACE_MODEL_SUBMIT, t + 100, t + 200, model, 0);
	put_span(g, TRACE_EXEC_WAIT, t + 300, t + 1800, exec_id, model);
	struct trace_record *r = put_record(g, TRACE_DEVICE_EXEC, TRACE_START, 0, t + 250, g->core);
	memcpy(r->data + 4, &exec_id, 4);
	memcpy(r->data + 8, &t, sizeof(t));
	memcpy(r->data + 32, &model, sizeof(model));
	put_record(g, TRACE_DEVICE_EXEC, TRACE_STOP, r->tracking_id, t + 1700, g->core);
	put_record(g, TRACE_EXECUTE_API, TRACE_STOP, api_id, t + 1900, g->core);
}

static int give(struct generator *g, enum rec_type type, uint16_t source, const void *payload,
	size_t size, const struct rec_frame **ret_frame, const uint8_t **ret_payload)
{
	g->frame = (struct rec_frame){.type = (uint16_t)type,
		.source = source,
		.size = (uint32_t)size,
		.time_ns = BOOT + 1000000 + g->done / THREADS * ROUND_NS};
	if (payload != g->payload && payload != g->calls)
		memcpy(g->calls, payload, size);
	*ret_frame = &g->frame;
	*ret_payload = payload == g->payload ? g->payload : g->calls;
	return 1;
}

static int give_start(
	struct generator *g, const struct rec_frame **ret_frame, const uint8_t **ret_payload)
{
	static const char header[] = "{\"format\":\"ntrace-recording\",\"instance_id\":\"bench\"}";
	struct clock_snapshot s = {
		.boot_before = BOOT, .boot_after = BOOT, .realtime = BOOT + 1790000000000000000u};
	struct rec_process p = {.pid = PID};
	struct {
		struct rec_name name;
		char text[16];
	} name = {{77}, "two_layers.neff"};

	switch (g->start++) {
	case 0:
		return give(g, REC_HEADER, 0, header, sizeof(header) - 1, ret_frame, ret_payload);
	case 1:
		return give(g, REC_CLOCK, 0, &s, sizeof(s), ret_frame, ret_payload);
	case 2:
		return give(g, REC_PROCESS, 1, &p, sizeof(p), ret_frame, ret_payload);
	case 3:
		return give(g, REC_PROCESS, 2, &p, sizeof(p), ret_frame, ret_payload);
	default:
		return give(g, REC_NAME, 2, &name, sizeof(name.name) + 15, ret_frame, ret_payload);
	}
}

/* One after the other: the CPUs, the memory of the process. */
static int give_sample(
	struct generator *g, const struct rec_frame **ret_frame, const uint8_t **ret_payload)
{
	struct sampler_cpu rows[CPUS];
	struct rec_mem m = {.pid = PID, .rss_bytes = 1u << 30};

	if (g->step == STEP_MEM) {
		g->step = STEP_RECORDS;
		return give(g, REC_MEM, 0, &m, sizeof(m), ret_frame, ret_payload);
	}
	g->samples++;
	for (uint32_t i = 0; i < CPUS; i++)
		rows[i] = (struct sampler_cpu){
			.cpu = i, .busy = g->samples * (37 + i), .total = g->samples * 100};
	g->step = STEP_MEM;
	return give(g, REC_CPU, 0, rows, sizeof(rows), ret_frame, ret_payload);
}

static void make_batch(struct generator *g, uint64_t t)
{
	g->count = 0;
	g->call_bytes = g->core == 0 ? 0 : g->call_bytes;
	for (unsigned i = 0; i < ROUNDS_PER_BATCH; i++)
		put_round(g, t + i * ROUND_NS + g->core * 17, g->done / THREADS + i);
	memcpy(g->payload, &g->head, sizeof(g->head));
}

static int generate(void *ctx, const struct rec_frame **ret_frame, const uint8_t **ret_payload)
{
	struct generator *g = ctx;
	uint64_t t = BOOT + 1000000 + g->done / THREADS * ROUND_NS;
	uint64_t end = t + ROUNDS_PER_BATCH * ROUND_NS;

	if (g->start < 5)
		return give_start(g, ret_frame, ret_payload);
	if (g->step == STEP_RECORDS && g->core == 0 && g->done >= g->rounds)
		return 0;
	switch (g->step) {
	case STEP_RECORDS:
		g->call_bytes = 0;
		make_batch(g, t);
		g->step = STEP_CALLS;
		return give(g, REC_RUNTIME, 2, g->payload,
			sizeof(g->head) + g->count * sizeof(g->records[0]), ret_frame, ret_payload);
	case STEP_CALLS:
		g->step = ++g->core == THREADS ? STEP_MARK_RUNTIME : STEP_RECORDS;
		return give(g, REC_KERNEL, 1, g->calls, g->call_bytes, ret_frame, ret_payload);
	case STEP_MARK_RUNTIME:
		g->step = STEP_MARK_KERNEL;
		return give(g, REC_WATERMARK, 2, &end, sizeof(end), ret_frame, ret_payload);
	case STEP_CPU:
	case STEP_MEM:
		return give_sample(g, ret_frame, ret_payload);
	default:
		g->core = 0;
		g->done += ROUNDS_PER_BATCH * THREADS;
		g->step = g->done >= g->samples * ROUNDS_PER_SAMPLE ? STEP_CPU : STEP_RECORDS;
		return give(g, REC_WATERMARK, 1, &end, sizeof(end), ret_frame, ret_payload);
	}
}

__attribute__((unused)) static void generate_again(void *ctx)
{
	struct generator *g = ctx;

	*g = (struct generator){.rounds = g->rounds};
}

__attribute__((unused)) static struct rec_damage no_damage(void *ctx)
{
	(void)ctx;
	return (struct rec_damage){0};
}

static struct generator *new_generator(uint64_t events)
{
	struct generator *g = calloc(1, sizeof(*g));

	if (g)
		g->rounds = events / EVENTS_PER_ROUND + 1;
	return g;
}

#endif
