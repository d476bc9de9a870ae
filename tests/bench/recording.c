/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recording.c - how fast records go into a recording and come back, and how small they get.
 *
 * A stream as serving programs make it: per core writes and copies of several sizes to pooled
 * buffers, submits, waits and device runs, with a driver call per copy, random durations, four
 * threads, batches as the recorder drains them every 10 ms.  In the same run: the same bytes by
 * plain write(2), and compressed by zstd alone block by block.
 *
 * Usage: recording [EVENTS]
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zstd.h>

#include "bpf/neuron_event.h"
#include "runtime/base/file.h"
#include "runtime/record/frame.h"
#include "runtime/record/recording.h"
#include "runtime/trace/event_registry.h"
#include "runtime/trace/record.h"
#include "tests/unit/scratch.h"
#include "vmlinux/ioctl_table.h"

#define PID 4711u
#define CORES 4u
#define BATCH 900u /* records of a core in a drain */
#define TAPE_BYTES (512u << 20)

struct core {
	struct trace_record records[BATCH + 32];
	size_t count;
	uint64_t id, exec, now;
};

struct stream {
	struct core core[CORES];
	uint8_t calls[CORES * BATCH * (sizeof(struct nev_ioctl) + 6 * sizeof(uint64_t))];
	size_t call_bytes, call_count;
	uint32_t seq[4];
	uint64_t buffers[64], state;
};

/* Batches one after the other: type, size, bytes. */
struct batch {
	struct rec_runtime head;
	uint32_t type, size;
};

struct tape {
	uint8_t *data;
	size_t used, events, bytes; /* bytes: of records */
};

/* Time on the clock and on the CPU, in seconds. */
struct spent {
	double wall, cpu;
};

static double clock_now(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static struct spent now(void)
{
	return (struct spent){clock_now(CLOCK_MONOTONIC), clock_now(CLOCK_PROCESS_CPUTIME_ID)};
}

static void add_since(struct spent *sum, struct spent start)
{
	struct spent end = now();

	sum->wall += end.wall - start.wall;
	sum->cpu += end.cpu - start.cpu;
}

static uint64_t noise(struct stream *s)
{
	s->state ^= s->state << 13;
	s->state ^= s->state >> 7;
	s->state ^= s->state << 17;
	return s->state;
}

/* A duration: mostly near the mean, now and then many times as long. */
static uint64_t some(struct stream *s, uint64_t mean)
{
	uint64_t v = mean / 2 + noise(s) % mean;

	return noise(s) % 64 ? v : v * 20;
}

/* ---- the stream --------------------------------------------------------------------------- */

static struct trace_record *put(struct stream *s, uint32_t c, enum trace_type type,
	enum trace_phase phase, uint64_t id, uint64_t after)
{
	struct core *k = &s->core[c];
	struct trace_record *r = &k->records[k->count++];

	k->now += some(s, after);
	*r = (struct trace_record){
		.trace_type = type,
		.phase = phase,
		.thread_id = type == TRACE_DEVICE_EXEC ? 0 : PID + c * 2 + (noise(s) % 16 == 0),
		.id = ++k->id,
		.nc_local_id = k->id,
		.tracking_id = id,
		.timestamp_ns = k->now,
		.nc_idx = c,
	};
	return r;
}

static uint64_t next_id(const struct stream *s, uint32_t c)
{
	return ((uint64_t)c << 50) | (s->core[c].id + 1);
}

static void put_call(
	struct stream *s, uint32_t c, uint64_t handle, uint64_t bytes, uint64_t duration)
{
	uint32_t cpu = (uint32_t)(noise(s) % 8 ? c : noise(s) % 4);
	struct nev_ioctl e = {
		.hdr = {.time_ns = s->core[c].now + duration,
			.seq = s->seq[cpu]++,
			.cpu = (uint16_t)cpu,
			.type = NEV_IOCTL_DONE,
			.nargs = 4},
		.start_ns = s->core[c].now,
		.duration_ns = duration,
		.tgid = PID,
		.tid = PID + c * 2,
		.request = NEURON_IOCTL_MEM_BUF_COPY64,
		.device = 0,
		.fd = 7,
	};
	uint64_t args[4] = {handle, bytes, 0, noise(s) % 2};

	memcpy(s->calls + s->call_bytes, &e, sizeof(e));
	memcpy(s->calls + s->call_bytes + sizeof(e), args, sizeof(args));
	s->call_bytes += sizeof(e) + sizeof(args);
	s->call_count++;
}

static void put_write(struct stream *s, uint32_t c)
{
	static const uint64_t sizes[] = {512, 4096, 65536, 1048576};
	uint64_t handle = s->buffers[noise(s) % 64], size = sizes[noise(s) % 4];
	uint64_t outer = next_id(s, c), inner;

	memcpy(put(s, c, TRACE_TENSOR_WRITE, TRACE_START, outer, 700)->data, &handle, 8);
	inner = next_id(s, c);
	struct trace_record *r = put(s, c, TRACE_DMEM_BUF_COPYIN, TRACE_START, inner, 200);
	memcpy(r->data, &handle, 8);
	memcpy(r->data + 8, &size, 8);
	put_call(s, c, handle, size, some(s, 9000));
	put(s, c, TRACE_DMEM_BUF_COPYIN, TRACE_STOP, inner, 12000);
	put(s, c, TRACE_TENSOR_WRITE, TRACE_STOP, outer, 250);
}

static void put_execution(struct stream *s, uint32_t c)
{
	uint64_t model = 77, exec = ++s->core[c].exec, api = next_id(s, c), submit, run, wait;

	memcpy(put(s, c, TRACE_EXECUTE_API, TRACE_START, api, 900)->data, &model, 8);
	submit = next_id(s, c);
	memcpy(put(s, c, TRACE_MODEL_SUBMIT, TRACE_START, submit, 300)->data, &model, 8);
	put(s, c, TRACE_MODEL_SUBMIT, TRACE_STOP, submit, 4000);
	run = next_id(s, c);
	memcpy(put(s, c, TRACE_DEVICE_EXEC, TRACE_START, run, 1500)->data, &exec, 8);
	wait = next_id(s, c);
	memcpy(put(s, c, TRACE_EXEC_WAIT, TRACE_START, wait, 300)->data, &exec, 8);
	put(s, c, TRACE_DEVICE_EXEC, TRACE_STOP, run, 200000);
	put(s, c, TRACE_EXEC_WAIT, TRACE_STOP, wait, 3000);
	put(s, c, TRACE_EXECUTE_API, TRACE_STOP, api, 600);
}

static void tape_put(struct tape *t, uint32_t type, uint32_t core, const void *data, size_t size)
{
	struct batch b = {.head = {.nc_idx = core}, .type = type, .size = (uint32_t)size};

	memcpy(t->data + t->used, &b, sizeof(b));
	memcpy(t->data + t->used + sizeof(b), data, size);
	t->used += sizeof(b) + size;
	t->bytes += size;
}

/* What a drain finds: each core's ring, then the ring buffer of the hooks. */
static void drain(struct stream *s, struct tape *t)
{
	for (uint32_t c = 0; c < CORES; c++) {
		struct core *k = &s->core[c];

		while (k->count < BATCH) {
			for (uint64_t n = 1 + noise(s) % 4; n > 0; n--)
				put_write(s, c);
			put_execution(s, c);
		}
		tape_put(t, REC_RUNTIME, c, k->records, k->count * sizeof(k->records[0]));
		t->events += k->count;
		k->count = 0;
	}
	tape_put(t, REC_KERNEL, 0, s->calls, s->call_bytes);
	t->events += 2 * s->call_count; /* a start and a stop each */
	s->call_bytes = s->call_count = 0;
}

static bool make_tape(struct tape *t, size_t events)
{
	struct stream *s = calloc(1, sizeof(*s));

	t->data = malloc(TAPE_BYTES);
	if (!s || !t->data)
		return false;
	s->state = 88172645463325252u;
	for (unsigned i = 0; i < 64; i++)
		s->buffers[i] = 0x7f3a00000000u + (noise(s) & 0xffffff) * 64;
	for (unsigned c = 0; c < CORES; c++)
		s->core[c].now = 1000000000000u;
	while (t->events < events && TAPE_BYTES - t->used > sizeof(*s))
		drain(s, t);
	free(s);
	return true;
}

/* ---- measures ----------------------------------------------------------------------------- */

static bool next_batch(const struct tape *t, size_t *pos, struct batch *b, const uint8_t **data)
{
	if (*pos == t->used)
		return false;
	memcpy(b, t->data + *pos, sizeof(*b));
	*data = t->data + *pos + sizeof(*b);
	*pos += sizeof(*b) + b->size;
	return true;
}

static int write_recording(const char *path, const struct tape *t, uint64_t *ret_bytes)
{
	struct rec_writer *w;
	int rc = rec_writer_open(path, &w), closed;
	const uint8_t *data;
	struct batch b;

	if (rc < 0)
		return rc;
	for (size_t pos = 0; rc == 0 && next_batch(t, &pos, &b, &data);)
		rc = b.type == REC_RUNTIME
			     ? rec_writer_frame(
				       w, REC_RUNTIME, 2, &b.head, sizeof(b.head), data, b.size)
			     : rec_writer_frame(w, REC_KERNEL, 1, data, b.size, NULL, 0);
	if (rc == 0)
		rc = rec_writer_flush(w);
	*ret_bytes = rec_writer_bytes(w);
	closed = rec_writer_close(w);
	return rc < 0 ? rc : closed;
}

/* Bytes of records that come back; 0 on error. */
static size_t read_recording(const char *path)
{
	struct rec_reader *r;
	const struct rec_frame *f;
	const uint8_t *payload;
	size_t bytes = 0;
	int rc = rec_reader_open(path, &r);

	if (rc < 0)
		return 0;
	while ((rc = rec_reader_next(r, &f, &payload)) > 0) {
		if (f->type == REC_RUNTIME)
			bytes += f->size - sizeof(struct rec_runtime);
		else if (f->type == REC_KERNEL)
			bytes += f->size;
	}
	rec_reader_close(r);
	return rc < 0 ? 0 : bytes;
}

static bool plain_write(const char *path, const struct tape *t)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	return fd >= 0 && file_write_all(fd, t->data, t->used) == 0 && fsync(fd) == 0;
}

struct zstd_alone {
	struct spent compress, decompress;
	size_t bytes;
};

static bool zstd_alone(const struct tape *t, struct zstd_alone *ret)
{
	size_t bound = ZSTD_compressBound(REC_BLOCK_PAYLOAD);
	_cleanup_free_ uint8_t *small = malloc(bound), *large = malloc(REC_BLOCK_PAYLOAD);
	ZSTD_CCtx *cc = ZSTD_createCCtx();
	ZSTD_DCtx *dc = ZSTD_createDCtx();
	bool ok = small && large && cc && dc;

	*ret = (struct zstd_alone){0};
	for (size_t at = 0; ok && at < t->used; at += REC_BLOCK_PAYLOAD) {
		size_t n = t->used - at < REC_BLOCK_PAYLOAD ? t->used - at : REC_BLOCK_PAYLOAD;
		struct spent start = now();
		size_t z = ZSTD_compressCCtx(cc, small, bound, t->data + at, n, 1);

		add_since(&ret->compress, start);
		start = now();
		ok = ZSTD_decompressDCtx(dc, large, REC_BLOCK_PAYLOAD, small, z) == n;
		add_since(&ret->decompress, start);
		ret->bytes += z;
	}
	ZSTD_freeCCtx(cc);
	ZSTD_freeDCtx(dc);
	return ok;
}

static void line(const char *what, struct spent spent, const struct tape *t, double bytes)
{
	double events = (double)t->events;

	printf("  %-26s %6.0f MB/s %6.2f M events/s, %5.1f ns of CPU per event", what,
		(double)t->bytes / spent.wall / 1e6, events / spent.wall / 1e6,
		spent.cpu / events * 1e9);
	if (bytes > 0)
		printf(", %5.2f bytes", bytes / events);
	printf("\n");
}

static int run(struct scratch *dir, const struct tape *t)
{
	struct scratch_path rec = scratch_path(dir, REC_DIR), plain = scratch_path(dir, "plain");
	struct spent written = {0}, read = {0}, bare = {0}, start = now();
	struct zstd_alone z;
	uint64_t stored = 0;
	int rc = write_recording(rec.s, t, &stored);

	add_since(&written, start);
	if (rc < 0) {
		printf("writing failed: %s\n", strerror(-rc));
		return 1;
	}
	start = now();
	size_t bytes = read_recording(rec.s);
	add_since(&read, start);
	if (bytes != t->bytes) {
		printf("read %zu bytes of records\n", bytes);
		return 1;
	}
	start = now();
	if (!plain_write(plain.s, t))
		printf("plain write failed: %s\n", strerror(errno));
	add_since(&bare, start);
	if (!zstd_alone(t, &z))
		return 1;
	printf("%zu events in %zu bytes of records\n", t->events, t->bytes);
	line("recording, written", written, t, (double)stored);
	line("recording, read", read, t, 0);
	line("plain write(2) and fsync", bare, t, (double)t->used);
	line("zstd -1 alone, compress", z.compress, t, (double)z.bytes);
	line("zstd -1 alone, decompress", z.decompress, t, 0);
	return 0;
}

int main(int argc, char **argv)
{
	size_t events = argc > 1 ? strtoull(argv[1], NULL, 10) : 2000000;
	struct tape t = {0};
	struct scratch dir = {0};

	if (!make_tape(&t, events) || !scratch_make(&dir)) {
		perror("recording");
		return 1;
	}
	int rc = run(&dir, &t);
	scratch_remove(&dir);
	free(t.data);
	return rc;
}
