/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge_events.c - how fast a recording becomes the four files.
 *
 * A synthetic recording of about a million events is merged: executions with submit, wait and
 * device run, and copies with one driver call each, by four threads on four cores, in batches as a
 * recorder writes them.  Three peers are measured in the same run: protobuf-c packing the very same
 * events (what the encoding alone would cost with the usual library), a copy of the output's bytes
 * in memory, and a plain write of them to a file.
 *
 * Usage: merge_events [EVENTS]
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bpf/neuron_event.h"
#include "proto/delimited.h"
#include "proto/event_codec.h"
#include "proto/neuron_trace.pb-c.h"
#include "runtime/base/file.h"
#include "runtime/record/header.h"
#include "runtime/record/merge.h"
#include "runtime/trace/event_registry.h"
#include "tests/unit/scratch.h"
#include "vmlinux/ioctl_table.h"

#define PID 4711u
#define THREADS 4u
#define BATCH 512u
#define EVENTS_PER_ROUND 14u /* records in ntrace.pb, see put_round */

struct generator {
	struct rec_writer *w;
	struct trace_record records[BATCH + 16];
	size_t count;
	uint8_t calls[BATCH * (sizeof(struct nev_ioctl) + 4 * sizeof(uint64_t))];
	size_t call_bytes;
	uint64_t next_id[THREADS];
	uint32_t seq;
};

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* ---- the recording ------------------------------------------------------------------------ */

static struct trace_record *put_record(struct generator *g, uint32_t core, enum trace_type type,
	enum trace_phase phase, uint64_t id, uint64_t time)
{
	struct trace_record *r = &g->records[g->count++];

	*r = (struct trace_record){
		.trace_type = type,
		.phase = phase,
		.thread_id = type == TRACE_DEVICE_EXEC ? 0 : PID + core,
		.id = ++g->next_id[core],
		.tracking_id = id,
		.timestamp_ns = time,
		.nc_idx = core,
	};
	return r;
}

static void put_span(struct generator *g, uint32_t core, enum trace_type type, uint64_t from,
	uint64_t to, uint64_t value)
{
	uint64_t id = ((uint64_t)core << 50) | (g->next_id[core] + 1);
	struct trace_record *r = put_record(g, core, type, TRACE_START, id, from);

	memcpy(r->data, &value, sizeof(value));
	put_record(g, core, type, TRACE_STOP, id, to);
}

static void put_copy(struct generator *g, uint32_t core, uint64_t from, uint64_t to)
{
	struct nev_ioctl e = {
		.hdr = {.time_ns = to, .seq = g->seq++, .type = NEV_IOCTL_DONE, .nargs = 4},
		.start_ns = from,
		.duration_ns = to - from,
		.tgid = PID,
		.tid = PID + core,
		.request = NEURON_IOCTL_MEM_BUF_COPY64,
	};
	uint64_t args[4] = {from, 4096, 0, 1};

	memcpy(g->calls + g->call_bytes, &e, sizeof(e));
	memcpy(g->calls + g->call_bytes + sizeof(e), args, sizeof(args));
	g->call_bytes += sizeof(e) + sizeof(args);
}

static int put_batches(struct generator *g)
{
	struct rec_runtime head = {0};
	int rc = rec_writer_frame(g->w, REC_RUNTIME, REC_SOURCE_RUNTIME0, &head, sizeof(head),
		g->records, g->count * sizeof(g->records[0]));

	if (rc == 0)
		rc = rec_writer_frame(
			g->w, REC_KERNEL, REC_SOURCE_KERNEL, g->calls, g->call_bytes, NULL, 0);
	g->count = g->call_bytes = 0;
	return rc;
}

/* One execution and one copy: twelve runtime records and a call. */
static int put_round(struct generator *g, uint32_t core, uint64_t t, uint64_t exec_id)
{
	put_span(g, core, TRACE_TENSOR_WRITE, t, t + 900, 42);
	put_span(g, core, TRACE_DMEM_BUF_COPYIN, t + 100, t + 800, 1);
	put_copy(g, core, t + 200, t + 700);
	put_span(g, core, TRACE_EXECUTE_API, t + 1000, t + 2900, 77);
	put_span(g, core, TRACE_MODEL_SUBMIT, t + 1100, t + 1200, 77);
	put_span(g, core, TRACE_EXEC_WAIT, t + 1300, t + 2800, exec_id);
	put_span(g, core, TRACE_DEVICE_EXEC, t + 1250, t + 2700, exec_id << 32);
	return g->count >= BATCH ? put_batches(g) : 0;
}

static int put_start(struct generator *g, uint64_t boot)
{
	struct rec_header_info info = {.producer = "bench", .instance_id = "bench"};
	struct rec_process p = {.pid = PID};
	struct rec_name name = {.id = 77};
	struct clock_snapshot s = {
		.boot_before = boot, .boot_after = boot, .realtime = boot + 1790000000000000000u};
	_cleanup_free_ char *text = NULL;
	int rc = rec_header_text(&info, &text);

	if (rc == 0)
		rc = rec_writer_frame(
			g->w, REC_HEADER, REC_SOURCE_RECORDER, text, strlen(text), NULL, 0);
	if (rc == 0)
		rc = rec_writer_frame(g->w, REC_CLOCK, REC_SOURCE_RECORDER, &s, sizeof(s), NULL, 0);
	if (rc == 0)
		rc = rec_writer_frame(
			g->w, REC_PROCESS, REC_SOURCE_RUNTIME0, &p, sizeof(p), NULL, 0);
	return rc < 0 ? rc
		      : rec_writer_frame(g->w, REC_NAME, REC_SOURCE_RUNTIME0, &name, sizeof(name),
				"compiled/net.neff", 17);
}

/* Returns the bytes of the recording, 0 on error. */
static uint64_t make_recording(const char *path, uint64_t rounds)
{
	struct generator *g = calloc(1, sizeof(*g));
	uint64_t boot = 1000000000000u, bytes = 0;
	int rc = g ? rec_writer_open(path, &g->w) : -ENOMEM;

	if (rc == 0)
		rc = put_start(g, boot);
	for (uint64_t i = 0; rc == 0 && i < rounds; i++)
		rc = put_round(g, (uint32_t)(i % THREADS), boot + i * 800, i);
	if (rc == 0)
		rc = put_batches(g);
	if (g && g->w) {
		bytes = rec_writer_bytes(g->w);
		if (rec_writer_close(g->w) < 0)
			rc = -EIO;
	}
	free(g);
	return rc < 0 ? 0 : bytes;
}

/* ---- peers -------------------------------------------------------------------------------- */

/* Packs events with protobuf-c as they stand in a file; seconds, or -1. */
static double pack_with_protobuf_c(const uint8_t *data, size_t size)
{
	_cleanup_free_ uint8_t *out = malloc(1 << 16);
	size_t pos = 0, len = 0, count = 0, cap = 1 << 21;
	Ntff__NtraceEvent **events = calloc(cap, sizeof(*events));
	const uint8_t *msg;
	double start, seconds = -1;

	while (out && events && count < cap && pb_delimited_next(data, size, &pos, &msg, &len) == 1)
		events[count++] = ntff__ntrace_event__unpack(NULL, len, msg);
	start = now();
	for (size_t i = 0; out && events && i < count; i++) {
		uint8_t prefix[PB_MAX_VARINT];

		pb_varint_put(prefix, ntff__ntrace_event__get_packed_size(events[i]));
		ntff__ntrace_event__pack(events[i], out);
	}
	seconds = now() - start;
	for (size_t i = 0; events && i < count; i++)
		ntff__ntrace_event__free_unpacked(events[i], NULL);
	free(events);
	return out && count ? seconds : -1;
}

static double copy_bytes(const uint8_t *data, size_t size)
{
	_cleanup_free_ uint8_t *to = malloc(size);
	double start = now();

	if (!to)
		return -1;
	memcpy(to, data, size);
	__asm__ volatile("" : : "r"(to) : "memory"); /* the copy must not be left out */
	return now() - start;
}

static double write_bytes(const char *path, const uint8_t *data, size_t size)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	double start = now();

	if (fd < 0 || file_write_all(fd, data, size) < 0 || fsync(fd) < 0)
		return -1;
	return now() - start;
}

static void print_peer(const char *name, double seconds, double merge_seconds, double events)
{
	if (seconds < 0)
		printf("  %-34s failed\n", name);
	else
		printf("  %-34s %6.2f M events/s, merge takes %.1f times as long\n", name,
			events / seconds / 1e6, merge_seconds / seconds);
}

static int run(struct scratch *dir, uint64_t rounds)
{
	struct merge_options options = {.kernel_events = MERGE_KERNEL_HINT};
	struct merge_result m;
	_cleanup_free_ char *error = NULL, *data = NULL;
	struct scratch_path rec = scratch_path(dir, REC_DIR), out = scratch_path(dir, "out");
	char path[PATH_MAX + 32];
	size_t size = 0;
	uint64_t bytes = make_recording(rec.s, rounds);
	double start = now();
	int rc = bytes ? merge_recording(rec.s, out.s, &options, &m, &error) : -EIO;
	double seconds = now() - start;

	if (rc < 0 || m.output_count != 1) {
		printf("merge failed: %s\n", error ? error : strerror(-rc));
		return 1;
	}
	double events = (double)m.outputs[0].events;
	snprintf(path, sizeof(path), "%s/ntrace.pb", m.outputs[0].dir);
	rc = file_read(path, 1u << 31, &data, &size);
	printf("merge of %.0f events: %.2f s, %.2f M events/s; recording %.1f and ntrace.pb %.1f "
	       "bytes "
	       "per event\n",
		events, seconds, events / seconds / 1e6, (double)bytes / events,
		(double)size / events);
	if (rc == 0 && size) {
		print_peer("protobuf-c packing alone",
			pack_with_protobuf_c((const uint8_t *)data, size), seconds, events);
		print_peer("copying the bytes", copy_bytes((const uint8_t *)data, size), seconds,
			events);
		print_peer("writing the bytes to a file",
			write_bytes(scratch_path(dir, "plain").s, (const uint8_t *)data, size),
			seconds, events);
	}
	bool right = m.outputs[0].events == rounds * EVENTS_PER_ROUND && m.balanced && rc == 0;
	merge_result_free(&m);
	return right ? 0 : 1;
}

int main(int argc, char **argv)
{
	uint64_t events = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
	struct scratch dir;

	if (!scratch_make(&dir)) {
		perror("scratch directory");
		return 1;
	}
	int rc = run(&dir, events / EVENTS_PER_ROUND + 1);
	scratch_remove(&dir);
	return rc;
}
