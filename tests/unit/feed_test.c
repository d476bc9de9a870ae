/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed_test.c - a recording and what was merged from it feed the same, whole or damaged.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/output/feed.h"
#include "tests/shim/shim.h"
#include "tests/unit/recording_fixture.h"

#define MAX_PROCESSES 8

/* What was fed, as bytes, per process. */
struct fed_process {
	char name[64];
	uint32_t pid;
	int64_t offset;
	uint64_t events, cpu, mem;
	bool ended, damaged;
	struct pb_buf bytes;
};

struct caught {
	struct fed_process p[MAX_PROCESSES];
	uint32_t count;
	uint64_t stop_at; /* this event fails */
	uint64_t events;
	int rc;
	char *error;
};

static int catch_process(void *ctx, struct feed_process *p)
{
	struct caught *c = ctx;
	struct fed_process *to = &c->p[c->count];

	if (p->index != c->count || c->count == MAX_PROCESSES)
		return -E2BIG;
	snprintf(to->name, sizeof(to->name), "%s", p->name);
	to->pid = p->pid;
	to->offset = p->realtime_offset_ns;
	p->user = to;
	c->count++;
	return 0;
}

static int catch_event(void *ctx, struct feed_process *p, const struct ntrace_event_view *e)
{
	struct caught *c = ctx;
	struct fed_process *to = p->user;

	if (++c->events == c->stop_at)
		return -EIO;
	to->events++;
	return ntrace_event_append(&to->bytes, e);
}

static int keep(struct feed_process *p, const ProtobufCMessage *m)
{
	struct fed_process *to = p->user;
	int rc = pb_buf_reserve(&to->bytes, protobuf_c_message_get_packed_size(m));

	if (rc == 0)
		to->bytes.len += protobuf_c_message_pack(m, to->bytes.data + to->bytes.len);
	return rc;
}

static int catch_cpu(void *ctx, struct feed_process *p, const Ntff__CpuUtil *u)
{
	(void)ctx;
	((struct fed_process *)p->user)->cpu++;
	return keep(p, &u->base);
}

static int catch_mem(void *ctx, struct feed_process *p, const Ntff__HostMemUsage *u)
{
	(void)ctx;
	((struct fed_process *)p->user)->mem++;
	return keep(p, &u->base);
}

static int catch_end(void *ctx, struct feed_process *p, const Ntff__NtraceInfo *info)
{
	(void)ctx;
	((struct fed_process *)p->user)->ended = true;
	((struct fed_process *)p->user)->damaged = p->damaged;
	return info ? keep(p, &info->base) : 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct fed_process *)a)->name, ((const struct fed_process *)b)->name);
}

static void feed(struct caught *c, const char *path, uint64_t stop_at)
{
	struct feed_sink sink = {c, catch_process, catch_event, catch_cpu, catch_mem, catch_end};
	struct feed_options options = {NULL};

	memset(c, 0, sizeof(*c));
	c->stop_at = stop_at;
	c->rc = feed_trace(path, &options, &sink, &c->error);
	qsort(c->p, c->count, sizeof(c->p[0]), by_name);
}

static void caught_free(struct caught *c)
{
	for (uint32_t i = 0; i < c->count; i++)
		pb_buf_free(&c->p[i].bytes);
	free(c->error);
}

/* Name of the first process that differs, "count", or NULL. */
static const char *differs(const struct caught *a, const struct caught *b)
{
	if (a->count != b->count)
		return "count";
	for (uint32_t i = 0; i < a->count; i++) {
		const struct fed_process *x = &a->p[i], *y = &b->p[i];

		if (strcmp(x->name, y->name) || x->pid != y->pid || x->offset != y->offset ||
			x->events != y->events || x->cpu != y->cpu || x->mem != y->mem ||
			!x->ended || !y->ended || x->bytes.len != y->bytes.len ||
			memcmp(x->bytes.data, y->bytes.data, x->bytes.len))
			return x->name;
	}
	return NULL;
}

static void host_samples(struct fixture *fx)
{
	for (uint64_t i = 1; i <= 3; i++) {
		struct sampler_cpu rows[2] = {{.cpu = 0, .busy = 10 * i, .total = 20 * i},
			{.cpu = 1, .busy = i, .total = 20 * i}};
		struct rec_mem mem = {.pid = FX_PID, .rss_bytes = i << 20};

		fx_frame(fx, REC_CPU, REC_SOURCE_RECORDER, rows, sizeof(rows));
		fx_frame(fx, REC_MEM, REC_SOURCE_RECORDER, &mem, sizeof(mem));
	}
}

/* Two processes with runtime spans, driver calls, samples and a name. */
static bool write_recording(struct fixture *fx, bool end)
{
	if (!fx_open(fx))
		return false;
	fx_process(fx, FX_SOURCE + 1, FX_PID + 1);
	fx_name(fx, 77, "two_layers.neff");
	host_samples(fx);
	for (uint64_t i = 0; i < 40; i++) {
		uint64_t at = 10000 * (i + 1);

		fx_record(fx, TRACE_TENSOR_WRITE, TRACE_START, 1000 + i, 5, at);
		fx_record(fx, TRACE_TENSOR_WRITE, TRACE_STOP, 1000 + i, 5, at + 5000);
		fx_records(fx, (uint16_t)(FX_SOURCE + i % 2));
		fx_copy(fx, 5, at + 100, at + 200, 4096);
		if (i % 8 == 7) {
			fx_watermark(fx, FX_SOURCE, at);
			fx_watermark(fx, FX_SOURCE + 1, at);
			fx_watermark(fx, REC_SOURCE_KERNEL, at);
		}
	}
	if (end)
		fx_end(fx);
	return fx_close_writer(fx) == 0;
}

/* Feeds the recording and its replay; the results of both. */
static const char *compare(struct fixture *fx, struct caught *rec, struct caught *dir)
{
	feed(rec, fx_path(fx, REC_DIR).s, 0);
	if (fx_merge(fx, "out", MERGE_KERNEL_HINT) < 0)
		return "replay";
	feed(dir, fx_path(fx, "out").s, 0);
	return differs(rec, dir);
}

TEST("feed: a recording feeds what its replayed directory feeds", "[feed]")
{
	struct fixture fx;
	struct caught rec, dir;

	REQUIRE(write_recording(&fx, true));
	const char *what = compare(&fx, &rec, &dir);
	CHECK_STR(what ? what : "", "");
	CHECK_EQ(rec.rc, 0);
	CHECK_EQ(dir.rc, 0);
	CHECK_EQ(rec.count, 2);
	CHECK_STR(rec.p[0].name, "i-0123_pid_4711");
	CHECK_EQ(rec.p[0].pid, FX_PID);
	CHECK(rec.p[0].offset == FX_OFFSET);
	CHECK(rec.p[0].events == 120); /* 20 spans of 2, and all 40 calls of 2 */
	CHECK(rec.p[1].events == 40);
	CHECK_EQ(rec.p[0].cpu, 4);
	CHECK_EQ(rec.p[0].mem, 3);
	CHECK_EQ(rec.p[1].mem, 0);
	caught_free(&rec);
	caught_free(&dir);
	fx_free(&fx);
}

/* A recording whose recorder died: all of it, then -EBADMSG. */
TEST("feed: a recording whose recorder died feeds all of it and says so", "[feed]")
{
	struct fixture fx;
	struct caught rec, dir;

	REQUIRE(write_recording(&fx, false));
	const char *what = compare(&fx, &rec, &dir);
	CHECK_STR(what ? what : "", "");
	CHECK_EQ(rec.rc, -EBADMSG);
	CHECK(rec.error && strstr(rec.error, "the recorder was killed"));
	CHECK(rec.p[0].events == 120);
	CHECK_EQ(dir.rc, -EBADMSG); /* they know of what they were made */
	caught_free(&rec);
	caught_free(&dir);
	fx_free(&fx);
}

/* Cut and overwritten at many places: what is fed is what a replay writes. */
TEST("feed: a damaged recording feeds what its replay has", "[feed]")
{
	struct fixture fx;
	struct stat st;
	unsigned fed = 0;

	REQUIRE(write_recording(&fx, true));
	struct scratch_path segment = fx_path(&fx, REC_DIR "/segment-000000.ntrec");
	REQUIRE(stat(segment.s, &st) == 0);
	for (off_t at = st.st_size - 7; at > 600; at -= st.st_size / 12) {
		struct caught rec, dir;
		char out[32];

		if (at % 2)
			REQUIRE(truncate(segment.s, at) == 0);
		int fd = open(segment.s, O_WRONLY);
		REQUIRE(fd >= 0 && pwrite(fd, "damage", 6, at - 300) == 6);
		close(fd);
		feed(&rec, fx_path(&fx, REC_DIR).s, 0);
		snprintf(out, sizeof(out), "out%ld", (long)at);
		REQUIRE(fx_merge(&fx, out, MERGE_KERNEL_HINT) == 0);
		feed(&dir, fx_path(&fx, out).s, 0);
		const char *what = differs(&rec, &dir);
		CHECK_STR(what ? what : "", "");
		CHECK_EQ(rec.rc, -EBADMSG);
		CHECK(rec.error != NULL);
		fed += rec.count > 0;
		caught_free(&rec);
		caught_free(&dir);
	}
	CHECK(fed > 6);
	fx_free(&fx);
}

TEST("feed: the sink ends a feed", "[feed]")
{
	struct fixture fx;
	struct caught c;

	REQUIRE(write_recording(&fx, true));
	REQUIRE(fx_merge(&fx, "out", MERGE_KERNEL_HINT) == 0);
	const char *const paths[] = {REC_DIR, "out"};
	for (unsigned i = 0; i < 2; i++) {
		feed(&c, fx_path(&fx, paths[i]).s, 3);
		CHECK_EQ(c.rc, -EIO);
		CHECK_EQ(c.events, 3); /* none after the one that failed */
		CHECK(c.error && strstr(c.error, "Input/output error"));
		caught_free(&c);
	}
	fx_free(&fx);
}

TEST("feed: a feed can be cancelled", "[feed]")
{
	volatile sig_atomic_t cancel = 1;
	struct feed_options options = {.cancel = &cancel};
	struct feed_sink sink = {0};
	struct fixture fx;

	REQUIRE(write_recording(&fx, true));
	REQUIRE(fx_merge(&fx, "out", MERGE_KERNEL_HINT) == 0);
	const char *const paths[] = {REC_DIR, "out"};
	for (unsigned i = 0; i < 2; i++) {
		char *error = NULL;

		CHECK_EQ(feed_trace(fx_path(&fx, paths[i]).s, &options, &sink, &error), -ECANCELED);
		CHECK(error != NULL);
		free(error);
	}
	fx_free(&fx);
}

/* A damaged file of one process costs what is behind the damage, and no other process. */
TEST("feed: a damaged file costs its own rest only", "[feed]")
{
	struct fixture fx;
	struct caught c;

	REQUIRE(write_recording(&fx, true));
	REQUIRE(fx_merge(&fx, "out", MERGE_KERNEL_HINT) == 0);
	struct scratch_path first = fx_path(&fx, "out/i-0123_pid_4711/ntrace.pb");
	struct stat st;
	REQUIRE(stat(first.s, &st) == 0);
	REQUIRE(truncate(first.s, st.st_size - 3) == 0);
	feed(&c, fx_path(&fx, "out").s, 0);
	CHECK_EQ(c.rc, -EBADMSG);
	CHECK(c.error && strstr(c.error, "pid_4711/ntrace.pb is damaged at byte"));
	CHECK_EQ(c.count, 2);
	CHECK(c.p[0].events == 119);
	CHECK_EQ(c.p[0].cpu, 4);
	CHECK(c.p[0].ended);
	CHECK(c.p[1].events == 40);
	caught_free(&c);
	fx_free(&fx);
}

/* One ntrace.pb: with what lies beside it under its own name, alone under another. */
TEST("feed: one ntrace.pb is fed with or without what is beside it", "[feed]")
{
	struct fixture fx;
	struct caught c;

	REQUIRE(write_recording(&fx, true));
	REQUIRE(fx_merge(&fx, "out", MERGE_KERNEL_HINT) == 0);
	struct scratch_path file = fx_path(&fx, "out/i-0123_pid_4711/ntrace.pb");
	struct scratch_path alone = fx_path(&fx, "out/i-0123_pid_4711/copy.pb");
	feed(&c, file.s, 0);
	CHECK_EQ(c.rc, 0);
	CHECK_EQ(c.count, 1);
	CHECK_EQ(c.p[0].pid, FX_PID);
	CHECK_EQ(c.p[0].cpu, 4);
	caught_free(&c);
	REQUIRE(link(file.s, alone.s) == 0);
	feed(&c, alone.s, 0);
	CHECK_EQ(c.rc, 0);
	CHECK_EQ(c.p[0].pid, 0);
	CHECK(c.p[0].offset == 0);
	CHECK_EQ(c.p[0].cpu, 0);
	CHECK(c.p[0].events == 120);
	CHECK(c.p[0].ended);
	caught_free(&c);
	fx_free(&fx);
}

TEST("feed: a path without a trace is named", "[feed]")
{
	struct scratch dir;
	struct caught c;

	REQUIRE(scratch_make(&dir));
	feed(&c, dir.dir, 0);
	CHECK_EQ(c.rc, -ENOENT);
	CHECK(c.error && strstr(c.error, dir.dir));
	caught_free(&c);
	feed(&c, scratch_path(&dir, "missing").s, 0);
	CHECK_EQ(c.rc, -ENOENT);
	CHECK(c.error && strstr(c.error, "missing"));
	caught_free(&c);
	scratch_remove(&dir);
}

/* ---- files that are less than they were, or something else -------------------------------------- */

/* Where the last message of a stream begins. */
static off_t last_message(const char *path)
{
	_cleanup_free_ char *data = NULL;
	size_t size = 0, pos = 0, begin = 0, len;
	const uint8_t *msg;

	if (file_read(path, 1 << 24, &data, &size) < 0)
		return -1;
	while (pos < size) {
		begin = pos;
		if (pb_delimited_next((const uint8_t *)data, size, &pos, &msg, &len) != 1)
			return -1;
	}
	return (off_t)begin;
}

/* A file that ends between two messages parses to its end; trace_info.pb knows better. */
TEST("feed: a file that lacks whole messages is damaged", "[feed]")
{
	static const char *const files[] = {"ntrace.pb", "cpu_util.pb", "host_mem.pb"};

	for (unsigned i = 0; i < 6; i++) {
		struct fixture fx;
		struct caught c;
		char name[64];

		REQUIRE(write_recording(&fx, true));
		REQUIRE(fx_merge(&fx, "out", MERGE_KERNEL_HINT) == 0);
		snprintf(name, sizeof(name), "out/i-0123_pid_4711/%s", files[i / 2]);
		struct scratch_path path = fx_path(&fx, name);
		off_t size = i % 2 ? last_message(path.s) : 0;
		REQUIRE(size >= 0);
		REQUIRE(truncate(path.s, size) == 0);
		feed(&c, fx_path(&fx, "out").s, 0);
		test_info("%s cut to %lld bytes", files[i / 2], (long long)size);
		CHECK_EQ(c.rc, -EBADMSG);
		CHECK(c.error && strstr(c.error, files[i / 2]));
		CHECK(c.error && strstr(c.error, "but trace_info.pb tells of"));
		CHECK(c.p[0].damaged);
		CHECK(!c.p[1].damaged);
		caught_free(&c);
		fx_free(&fx);
	}
}

/* A megabyte of zeros is a million messages of no length. */
TEST("feed: what has no phase or no time is no event", "[feed]")
{
	static const uint8_t zeros[4096];
	const struct ntrace_event_view rows[] = {{.phase = PHASE_START, .id = 1},
		{.timestamp = 5, .id = 1}, {.timestamp = 5, .phase = 9, .id = 1}};
	struct scratch dir;
	struct caught c;

	REQUIRE(scratch_make(&dir));
	struct scratch_path path = scratch_path(&dir, "some.pb");
	for (size_t i = 0; i < 5; i++) {
		struct pb_buf b = {0};

		if (i < 3)
			REQUIRE_EQ(ntrace_event_append(&b, &rows[i]), 0);
		else if (i == 3)
			REQUIRE_EQ(pb_buf_append(&b, zeros, sizeof(zeros)), 0);
		FILE *f = fopen(path.s, "w");
		REQUIRE(f && fwrite(b.data ? b.data : zeros, 1, b.len, f) == b.len);
		REQUIRE(fclose(f) == 0);
		feed(&c, path.s, 0);
		test_info("row %zu", i);
		CHECK_EQ(c.rc, -EBADMSG);
		CHECK_EQ(c.events, 0);
		CHECK(c.error && strstr(c.error, i < 4 ? "damaged at byte 0" : "is empty"));
		caught_free(&c);
		pb_buf_free(&b);
	}
	feed(&c, "/dev/zero", 0); /* has no end */
	CHECK_EQ(c.rc, -EBADMSG);
	caught_free(&c);
	scratch_remove(&dir);
}

/* The samples beside a trace are messages of the same shape on the wire. */
TEST("feed: a host_mem.pb or cpu_util.pb is no trace", "[feed]")
{
	static const char *const files[] = {"cpu_util.pb", "host_mem.pb"};
	struct fixture fx;

	REQUIRE(write_recording(&fx, true));
	REQUIRE(fx_merge(&fx, "out", MERGE_KERNEL_HINT) == 0);
	for (unsigned i = 0; i < 2; i++) {
		struct caught c;
		char name[64];

		snprintf(name, sizeof(name), "out/i-0123_pid_4711/%s", files[i]);
		feed(&c, fx_path(&fx, name).s, 0);
		CHECK_EQ(c.rc, -EBADMSG);
		CHECK_EQ(c.events, 0);
		caught_free(&c);
	}
	fx_free(&fx);
}
