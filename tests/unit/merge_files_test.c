/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge_files_test.c - the files that a merge leaves: one set per process, the same bytes every
 * time, whole or not there, and something sound from any damaged recording.
 */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#include "proto/neuron_trace.pb-c.h"
#include "runtime/record/frame.h"
#include "tests/shim/shim.h"
#include "tests/unit/recording_fixture.h"

#define TID 100u
#define LEAF "i-0123_pid_4711"
#define SEGMENT REC_DIR "/segment-000000.ntrec"

static const char *const names[] = {"ntrace.pb", "cpu_util.pb", "host_mem.pb", "trace_info.pb"};

static void put_samples(struct fixture *fx, uint64_t busy, uint64_t total, uint64_t rss)
{
	struct sampler_cpu rows[] = {{.cpu = 0, .busy = busy, .total = total},
		{.cpu = 2, .busy = 10, .total = 20 + total}};
	struct rec_mem mem = {.pid = FX_PID, .rss_bytes = rss};

	fx_frame(fx, REC_CPU, REC_SOURCE_RECORDER, rows, sizeof(rows));
	fx_frame(fx, REC_MEM, REC_SOURCE_RECORDER, &mem, sizeof(mem));
	mem.pid = 1;
	fx_frame(fx, REC_MEM, REC_SOURCE_RECORDER, &mem, sizeof(mem));
}

/* A recording with something of everything. */
static bool make_full(struct fixture *fx)
{
	struct rec_device device = {.index = 1, .is_virtual = 1};

	if (!fx_open(fx))
		return false;
	fx_frame(fx, REC_DEVICE, REC_SOURCE_RECORDER, &device, sizeof(device));
	put_samples(fx, 100, 1000, 4096);
	fx_name(fx, 77, "net.neff");
	fx_name(fx, 5, "five");
	fx_name(fx, 77, "said twice");
	fx_span(fx, TRACE_TENSOR_WRITE, 1, TID, 1000, 2000);
	fx_copy(fx, TID, 1100, 1200, 64);
	fx_record(fx, TRACE_TENSOR_READ, TRACE_START, 2, TID, 3000);
	fx_records(fx, FX_SOURCE);
	put_samples(fx, 125, 1100, 8192);
	fx_clock(fx, 5000, 3000000000);
	fx_counter(fx, FX_SOURCE, REC_C_RUNTIME_EMITTED, 0, 3);
	fx_counter(fx, FX_SOURCE, REC_C_RUNTIME_DELIVERED, 0, 3);
	fx_counter(fx, REC_SOURCE_KERNEL, REC_C_KERNEL_ENTERED, 0, 1);
	fx_counter(fx, REC_SOURCE_KERNEL, REC_C_KERNEL_DONE, 0, 1);
	fx_counter(fx, REC_SOURCE_KERNEL, REC_C_KERNEL_RECEIVED, 0, 1);
	fx_counter(fx, REC_SOURCE_RECORDER, REC_C_AGENT_CPU_NS, 0, 1234);
	fx_counter(fx, REC_SOURCE_RECORDER, REC_C_AGENT_BYTES, 0, 5678);
	fx_end(fx);
	return fx_close_writer(fx) == 0;
}

static Ntff__NtraceInfo *read_info(const char *leaf)
{
	_cleanup_free_ char *data = NULL;
	char path[PATH_MAX + 32];
	size_t size;

	snprintf(path, sizeof(path), "%s/trace_info.pb", leaf);
	if (file_read(path, 1 << 24, &data, &size) < 0)
		return NULL;
	return ntff__ntrace_info__unpack(NULL, size, (const uint8_t *)data);
}

/* Do both directories hold the same four files? */
static bool same_files(const char *a, const char *b)
{
	for (size_t i = 0; i < 4; i++) {
		_cleanup_free_ char *x = NULL, *y = NULL;
		char path[2][PATH_MAX + 32];
		size_t n, m;

		snprintf(path[0], sizeof(path[0]), "%s/%s", a, names[i]);
		snprintf(path[1], sizeof(path[1]), "%s/%s", b, names[i]);
		if (file_read(path[0], 1 << 24, &x, &n) < 0 ||
			file_read(path[1], 1 << 24, &y, &m) < 0)
			return false;
		if (n != m || memcmp(x, y, n))
			return false;
	}
	return true;
}

TEST("merge: trace_info says what the files are and what was recorded", "[merge]")
{
	struct fixture fx;

	REQUIRE(make_full(&fx));
	REQUIRE(fx_merge_one(&fx));
	CHECK(fx.result.balanced && fx.result.ended && fx.result.is_virtual);
	CHECK_EQ(fx.result.lost, 0);
	Ntff__NtraceInfo *m = read_info(fx.trace.leaf);
	REQUIRE(m != NULL);
	CHECK_EQ(m->pid, FX_PID);
	CHECK_EQ(m->data_version, 2);
	CHECK_STR(m->producer, "ntrace test");
	CHECK_STR(m->instance_id, "i-0123");
	CHECK_STR(m->host, "h");
	CHECK_STR(m->kernel_events, "hint");
	CHECK(m->virtual_device && m->ended);
	CHECK_EQ(m->open_spans, 1);
	CHECK_EQ(m->agent_cpu_ns, 1234);
	CHECK_EQ(m->bytes_recorded, 5678);
	CHECK(m->realtime_offset_ns == FX_OFFSET);
	REQUIRE_EQ(m->n_hooks, 1);
	CHECK_STR(m->hooks[0], "tracepoint:syscalls:sys_enter_ioctl");
	REQUIRE_EQ(m->n_clock_steps, 1);
	CHECK_EQ(m->clock_steps[0]->boot_ns, FX_BOOT + 5000);
	CHECK(m->clock_steps[0]->new_offset_ns == FX_OFFSET + 3000000000);
	REQUIRE_EQ(m->n_interned_data, 1);
	REQUIRE_EQ(m->interned_data[0]->n_id_map, 2);
	CHECK_EQ(m->interned_data[0]->id_map[0]->key, 5);
	CHECK_EQ(m->interned_data[0]->id_map[1]->key, 77);
	CHECK_STR(m->interned_data[0]->id_map[1]->value, "net.neff");
	REQUIRE_EQ(m->n_collected_profiles, 3);
	for (size_t i = 0; i < 3; i++) {
		struct stat st;
		char path[PATH_MAX + 32];

		snprintf(path, sizeof(path), "%s/%s", fx.trace.leaf, names[i]);
		CHECK_STR(m->collected_profiles[i]->name, names[i]);
		CHECK_EQ(stat(path, &st), 0);
		CHECK_EQ(m->collected_profiles[i]->bytes, st.st_size);
	}
	CHECK_EQ(m->collected_profiles[0]->message_count, fx.trace.count);
	CHECK_EQ(m->collected_profiles[1]->message_count, 2);
	CHECK(m->n_blind > 0 && fx.result.blind_count == m->n_blind);
	size_t rows = 0;
	for (size_t i = 0; i < m->n_ledger; i++)
		rows += !strcmp(m->ledger[i]->stage, "merge") &&
			!strcmp(m->ledger[i]->counter, "written") && m->ledger[i]->value == 4 &&
			!strcmp(m->ledger[i]->kind, "out");
	CHECK_EQ(rows, 1);
	ntff__ntrace_info__free_unpacked(m, NULL);
	fx_free(&fx);
}

TEST("merge: CPU samples become percent per CPU, memory that of the process", "[merge]")
{
	struct fixture fx;
	struct scratch_path path;
	_cleanup_free_ char *cpu = NULL, *mem = NULL;
	size_t size, pos = 0, len;
	const uint8_t *msg;

	REQUIRE(make_full(&fx));
	REQUIRE(fx_merge_one(&fx));
	CHECK_EQ(fx.result.outputs[0].cpu_samples, 2);
	CHECK_EQ(fx.result.outputs[0].mem_samples, 2);
	path = fx_path(&fx, "out/" LEAF "/cpu_util.pb");
	REQUIRE_EQ(file_read(path.s, 1 << 20, &cpu, &size), 0);
	uint64_t time = 0;
	static const struct {
		uint32_t cpu;
		float util;
	} want[] = {{0, 25.0f}, {2, 0.0f}};
	for (size_t i = 0; i < 2; i++) {
		REQUIRE_EQ(pb_delimited_next((const uint8_t *)cpu, size, &pos, &msg, &len), 1);
		Ntff__CpuUtil *u = ntff__cpu_util__unpack(NULL, len, msg);
		REQUIRE(u != NULL);
		CHECK_EQ(u->cpu, want[i].cpu);
		CHECK(u->util == want[i].util);
		CHECK(u->timestamp > (uint64_t)FX_OFFSET && (i == 0 || u->timestamp == time));
		time = u->timestamp;
		ntff__cpu_util__free_unpacked(u, NULL);
	}
	CHECK_EQ(pos, size);
	path = fx_path(&fx, "out/" LEAF "/host_mem.pb");
	REQUIRE_EQ(file_read(path.s, 1 << 20, &mem, &size), 0);
	pos = 0;
	for (int64_t want_rss = 4096; want_rss <= 8192; want_rss += 4096) {
		REQUIRE_EQ(pb_delimited_next((const uint8_t *)mem, size, &pos, &msg, &len), 1);
		Ntff__HostMemUsage *u = ntff__host_mem_usage__unpack(NULL, len, msg);
		REQUIRE(u != NULL);
		CHECK_EQ(u->usage, want_rss);
		ntff__host_mem_usage__free_unpacked(u, NULL);
	}
	CHECK_EQ(pos, size);
	fx_free(&fx);
}

TEST("merge: CPU samples are those of the time in which the process was seen", "[merge]")
{
	/* Times in tenths of a second; samples are taken each second. */
	static const struct {
		uint64_t from, to;
		uint64_t memory; /* when a sample was taken; 0: never */
		uint64_t samples;
	} want[] = {
		{32, 55, 0, 3},			      /* 3-4, 4-5, 5-6 */
		{101, 102, 0, 1},		      /* 10-11 */
		{120, 120, 0, 2},		      /* 11-12, 12-13 */
		{151, 152, 175, 3}, {250, 260, 0, 0}, /* behind the last one */
	};
	const uint64_t tenth = 100000000;
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	for (uint64_t k = 0; k <= 20; k++) {
		struct sampler_cpu row = {.busy = 10 * k, .total = 100 * k};

		rec_writer_frame_at(fx.w, REC_CPU, REC_SOURCE_RECORDER, FX_BOOT + k * 10 * tenth,
			&row, sizeof(row), NULL, 0);
	}
	for (uint32_t i = 0; i < 5; i++) {
		struct rec_mem mem = {.pid = 100 + i, .rss_bytes = 1};
		struct fx_call call = {.tgid = 100 + i,
			.tid = 100 + i,
			.request = NEURON_IOCTL_MEM_BUF_COPY64,
			.from = want[i].from * tenth,
			.to = want[i].to * tenth};

		fx_call(&fx, &call);
		if (want[i].memory)
			rec_writer_frame_at(fx.w, REC_MEM, REC_SOURCE_RECORDER,
				FX_BOOT + want[i].memory * tenth, &mem, sizeof(mem), NULL, 0);
	}
	REQUIRE_EQ(fx_merge(&fx, "out", MERGE_KERNEL_OFF), 0);
	REQUIRE_EQ(fx.result.output_count, 5);
	for (uint32_t i = 0; i < 5; i++) {
		CHECK_EQ(fx.result.outputs[i].pid, 100 + i);
		CHECK_EQ(fx.result.outputs[i].cpu_samples, want[i].samples);
	}
	fx_free(&fx);
}

/* ---- determinism -------------------------------------------------------------------------- */

static int merge_elsewhere(void *arg)
{
	struct fixture *fx = arg;

	setenv("TZ", "Asia/Kolkata", 1);
	setenv("LC_ALL", "de_DE.UTF-8", 1);
	setenv("NTRACE_DEVICE_ROOT", "/nowhere", 1);
	tzset();
	setlocale(LC_ALL, "");
	umask(0077);
	return chdir("/") < 0 || fx_merge(fx, "elsewhere", MERGE_KERNEL_HINT) < 0;
}

TEST("merge: the same recording gives the same bytes, whatever surrounds it", "[merge]")
{
	struct fixture fx;
	struct stat st;

	REQUIRE(make_full(&fx));
	REQUIRE_EQ(fx_merge(&fx, "a", MERGE_KERNEL_HINT), 0);
	REQUIRE_EQ(fx_merge(&fx, "b", MERGE_KERNEL_HINT), 0);
	CHECK(same_files(fx_path(&fx, "a/" LEAF).s, fx_path(&fx, "b/" LEAF).s));
	REQUIRE_EQ(scratch_child(merge_elsewhere, &fx), 0);
	CHECK(same_files(fx_path(&fx, "a/" LEAF).s, fx_path(&fx, "elsewhere/" LEAF).s));
	CHECK(stat(fx_path(&fx, "elsewhere/" LEAF "/ntrace.pb").s, &st) == 0 &&
		(st.st_mode & 0777) == 0600);
	fx_free(&fx);
}

TEST("merge: the order in which sources were drained does not matter", "[merge]")
{
	struct fixture fx[2];

	for (int i = 0; i < 2; i++) {
		REQUIRE(fx_open(&fx[i]));
		if (i == 0)
			fx_copy(&fx[i], TID, 1100, 1200, 64);
		fx_record(&fx[i], TRACE_TENSOR_WRITE, TRACE_START, 1, TID, 1000);
		struct trace_record *r =
			fx_record(&fx[i], TRACE_TENSOR_WRITE, TRACE_STOP, 1, TID, 2000);
		if (i == 1) { /* its ring is drained first */
			struct trace_record start = r[-1];
			r[-1] = *r;
			*r = start;
		}
		fx_records(&fx[i], FX_SOURCE);
		if (i == 1)
			fx_copy(&fx[i], TID, 1100, 1200, 64);
		REQUIRE_EQ(fx_merge(&fx[i], "out", MERGE_KERNEL_HINT), 0);
	}
	CHECK(same_files(fx_path(&fx[0], "out/" LEAF).s, fx_path(&fx[1], "out/" LEAF).s));
	fx_free(&fx[0]);
	fx_free(&fx[1]);
}

/* ---- directories -------------------------------------------------------------------------- */

TEST("merge: a directory that exists is left alone, the next gets _2", "[merge]")
{
	struct fixture fx;

	REQUIRE(make_full(&fx));
	REQUIRE_EQ(fx_merge(&fx, "out", MERGE_KERNEL_HINT), 0);
	CHECK_STR(fx.result.outputs[0].dir, fx_path(&fx, "out/" LEAF).s);
	REQUIRE_EQ(fx_merge(&fx, "out", MERGE_KERNEL_HINT), 0);
	CHECK_STR(fx.result.outputs[0].dir, fx_path(&fx, "out/" LEAF "_2").s);
	CHECK_EQ(scratch_entries(fx_path(&fx, "out/" LEAF).s), 4);
	CHECK(same_files(fx_path(&fx, "out/" LEAF).s, fx_path(&fx, "out/" LEAF "_2").s));
	fx_free(&fx);
}

TEST("merge: an instance name from a recording cannot leave the output directory", "[merge]")
{
	struct fixture fx;
	struct rec_header_info info = {.instance_id = "../../x y"};

	REQUIRE(fx_open_bare(&fx));
	fx_header(&fx, &info);
	fx_clock(&fx, 100, 0);
	fx_process(&fx, FX_SOURCE, FX_PID);
	fx_span(&fx, TRACE_TENSOR_READ, 1, TID, 1000, 2000);
	REQUIRE_EQ(fx_merge(&fx, "out", MERGE_KERNEL_HINT), 0);
	CHECK_STR(fx.result.outputs[0].dir, fx_path(&fx, "out/_._.._x_y_pid_4711").s);
	fx_free(&fx);
}

TEST("merge: each process gets its own files, calls of a process without a runtime too", "[merge]")
{
	struct fixture fx;
	struct fx_call other = {.tgid = 99,
		.tid = 99,
		.request = NEURON_IOCTL_DEVICE_BASIC_INFO,
		.from = 10,
		.to = 20};

	REQUIRE(fx_open(&fx));
	fx_call(&fx, &other);
	fx_span(&fx, TRACE_TENSOR_READ, 1, TID, 1000, 2000);
	fx_process(&fx, FX_SOURCE + 1, 5000); /* announced, silent */
	REQUIRE_EQ(fx_merge(&fx, "out", MERGE_KERNEL_HINT), 0);
	REQUIRE_EQ(fx.result.output_count, 2);
	CHECK_EQ(fx.result.outputs[0].pid, 99);
	CHECK_EQ(fx.result.outputs[0].kernel_spans, 1);
	CHECK_EQ(fx.result.outputs[1].pid, FX_PID);
	CHECK_EQ(fx.result.outputs[1].spans, 1);
	CHECK_EQ(scratch_entries(fx_path(&fx, "out").s), 2);
	fx_free(&fx);
}

TEST("merge: of two runtimes under one pid the second gets new ids, and parents follow", "[merge]")
{
	struct fixture fx;
	size_t open;
	unsigned children = 0;

	REQUIRE(fx_open(&fx));
	fx_process(&fx, FX_SOURCE + 1, FX_PID);
	for (uint16_t i = 0; i < 2; i++) {
		fx_record(&fx, TRACE_EXECUTE_API, TRACE_START, 1, TID, 1000 + i * 1000);
		fx_record(&fx, TRACE_MODEL_SUBMIT, TRACE_START, 2, TID, 1100 + i * 1000);
		fx_record(&fx, TRACE_MODEL_SUBMIT, TRACE_STOP, 2, TID, 1200 + i * 1000);
		fx_record(&fx, TRACE_EXECUTE_API, TRACE_STOP, 1, TID, 1300 + i * 1000);
		fx_records(&fx, FX_SOURCE + i);
	}
	REQUIRE(fx_merge_one(&fx));
	CHECK_EQ(fx.trace.count, 8);
	CHECK_STR(trace_file_fault(&fx.trace, &open), "");
	CHECK_EQ(open, 0);
	for (size_t i = 0; i < fx.trace.count; i++)
		children += fx.trace.events[i].parent_id != 0;
	CHECK_EQ(children, 2);
	CHECK_EQ(fx_parent(&fx, 2), 1);
	CHECK_EQ(fx_parent(&fx, 1ull << 61 | 1ull << 48 | 2), 1ull << 61 | 1ull << 48 | 1);
	fx_free(&fx);
}

TEST("merge: nothing recorded gives no files and is no error", "[merge]")
{
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	fx_end(&fx);
	REQUIRE_EQ(fx_merge(&fx, "out", MERGE_KERNEL_HINT), 0);
	CHECK_EQ(fx.result.output_count, 0);
	CHECK(fx.result.balanced && fx.result.ended);
	CHECK_EQ(scratch_entries(fx_path(&fx, "out").s), -1);
	fx_free(&fx);
}

/* ---- failures ----------------------------------------------------------------------------- */

static int merge_into_limit(void *arg)
{
	struct rlimit limit = {.rlim_cur = 600, .rlim_max = 600};
	struct fixture *fx = arg;

	signal(SIGXFSZ, SIG_IGN);
	if (setrlimit(RLIMIT_FSIZE, &limit) < 0)
		return 1;
	if (fx_merge(fx, "out", MERGE_KERNEL_HINT) != -EFBIG)
		return 2;
	return fx->error && strstr(fx->error, "trace_info.pb") ? 0 : 3;
}

TEST("merge: when one file of a set cannot be written none of them stays", "[merge]")
{
	struct fixture fx;

	REQUIRE(make_full(&fx));
	/* trace_info.pb, the largest here, is committed last: three others are taken back. */
	CHECK_EQ(scratch_child(merge_into_limit, &fx), 0);
	CHECK_EQ(scratch_entries(fx.dir.dir), 1); /* the recording */
	CHECK_EQ(scratch_entries(fx_path(&fx, REC_DIR).s), 1);
	fx_free(&fx);
}

TEST("merge: an output directory that cannot be made is named", "[merge]")
{
	struct fixture fx;

	REQUIRE(make_full(&fx));
	CHECK_EQ(fx_merge(&fx, SEGMENT "/out", MERGE_KERNEL_HINT), -ENOTDIR);
	CHECK(fx.error && strstr(fx.error, SEGMENT "/out"));
	fx_free(&fx);
}

TEST("merge: without any clock snapshot no time can be told, and it says so", "[merge]")
{
	struct fixture fx;

	REQUIRE(fx_open_bare(&fx));
	fx_process(&fx, FX_SOURCE, FX_PID);
	fx_span(&fx, TRACE_TENSOR_READ, 1, TID, 1000, 2000);
	CHECK_EQ(fx_merge(&fx, "out", MERGE_KERNEL_HINT), -ENODATA);
	CHECK(fx.error && strstr(fx.error, "clock"));
	CHECK_EQ(fx_merge(&fx, "out", MERGE_KERNEL_HINT), -ENODATA);
	fx_free(&fx);
}

/* ---- damage ------------------------------------------------------------------------------- */

static bool write_file(const char *path, const void *data, size_t size)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_TRUNC);

	return fd >= 0 && file_write_all(fd, data, size) == 0;
}

/* Merges and holds what came out against the invariants; false when something is wrong. */
static bool merge_is_sound(struct fixture *fx)
{
	struct scratch out = {0};
	struct trace_file t = {0};
	size_t open;
	bool sound = true;

	snprintf(out.dir, sizeof(out.dir), "%s/out", fx->dir.dir);
	int rc = fx_merge(fx, "out", MERGE_KERNEL_HINT);
	if (rc == 0 && fx->result.output_count == 1)
		sound = trace_file_read(&t, out.dir) && !*trace_file_fault(&t, &open);
	else if (rc < 0)
		sound = (rc == -EPROTO || rc == -EPROTONOSUPPORT || rc == -ENODATA) &&
			scratch_entries(out.dir) == -1;
	trace_file_free(&t);
	scratch_remove(&out);
	return sound;
}

TEST("merge: a recording cut at any byte gives sound files of what there is", "[merge][slow]")
{
	struct fixture fx;
	struct scratch_path path;
	_cleanup_free_ char *data = NULL;
	size_t size;

	REQUIRE(make_full(&fx));
	path = fx_path(&fx, SEGMENT);
	REQUIRE_EQ(file_read(path.s, 1 << 20, &data, &size), 0);
	struct rec_tail tail;
	memcpy(&tail, data + size - sizeof(tail), sizeof(tail));
	for (size_t cut = 0; cut < size; cut++) {
		REQUIRE(write_file(path.s, data, cut));
		test_info("cut at %zu of %zu", cut, size);
		CHECK(merge_is_sound(&fx));
		CHECK_EQ(fx.result.ended, cut >= tail.offset); /* the END frame is before it */
	}
	fx_free(&fx);
}

TEST("merge: payloads of any content are harmless", "[merge]")
{
	struct fixture fx;
	uint32_t seed = 1;
	uint8_t noise[400];

	for (unsigned round = 0; round < 300; round++) {
		REQUIRE(fx_open(&fx));
		fx_span(&fx, TRACE_TENSOR_READ, 1, TID, 1000, 2000);
		for (enum rec_type type = REC_HEADER; type <= REC_END; type++) {
			size_t size;

			seed = seed * 1664525u + 1013904223u;
			size = seed >> 8 & 0xff;
			for (size_t i = 0; i < sizeof(noise); i++) {
				seed = seed * 1664525u + 1013904223u;
				noise[i] = round % 3 ? (uint8_t)(seed >> 24)
						     : (uint8_t)(seed >> 29 ? 0 : seed >> 24);
			}
			fx_frame(&fx, type, (uint16_t)(seed >> 30), noise, size);
		}
		test_info("round %u", round);
		fx_close_writer(&fx);
		int rc = fx_merge(&fx, "out", MERGE_KERNEL_HINT);
		CHECK_EQ(rc, 0);
		CHECK(fx.result.output_count >= 1);
		fx_free(&fx);
	}
}

TEST("merge: hostile records are counted and change nothing else", "[merge]")
{
	struct fixture fx;
	struct trace_record *r;

	REQUIRE(fx_open(&fx));
	fx_record(&fx, TRACE_GENERIC, TRACE_INSTANT, 0, TID, 10);	       /* no id */
	fx_record(&fx, TRACE_GENERIC, TRACE_INSTANT, 1ull << 63 | 1, TID, 10); /* a kernel id */
	fx_record(&fx, TRACE_GENERIC, TRACE_INSTANT, 1ull << 62 | 1, TID, 10); /* a marker's */
	fx_record(&fx, TRACE_GENERIC, (enum trace_phase)3, 5, TID, 10);
	fx_record(&fx, (enum trace_type)1000, TRACE_INSTANT, 6, TID, 10); /* a kernel type */
	r = fx_record(&fx, TRACE_GENERIC, TRACE_INSTANT, 7, TID, 10);
	r->timestamp_ns = 0;
	r = fx_record(&fx, TRACE_GENERIC, TRACE_INSTANT, 8, TID, 10);
	r->timestamp_ns = UINT64_MAX;
	r = fx_record(&fx, TRACE_GENERIC, TRACE_INSTANT, 9, TID, 10);
	r->thread_id = 1ull << 31;
	r = fx_record(&fx, TRACE_GENERIC, TRACE_INSTANT, 10, TID, 10);
	r->nc_idx = 256;
	fx_records(&fx, FX_SOURCE);
	fx_span(&fx, TRACE_TENSOR_READ, 11, TID, 1000, 2000);
	REQUIRE(fx_merge_one(&fx));
	CHECK_EQ(fx.trace.count, 2);
	CHECK_EQ(fx_ledger(&fx, REC_C_MERGE_INVALID), 9);
	CHECK_EQ(fx_ledger(&fx, REC_C_MERGE_READ), 11);
	CHECK_EQ(fx_ledger(&fx, REC_C_MERGE_WRITTEN), 2);
	CHECK(fx.result.balanced);
	CHECK_EQ(fx.result.lost, 9);
	fx_free(&fx);
}

TEST("merge: an event type of a newer runtime is kept by its number", "[merge]")
{
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	fx_span(&fx, (enum trace_type)60, 1, TID, 1000, 2000);
	REQUIRE(fx_merge_one(&fx));
	REQUIRE_EQ(fx.trace.count, 2);
	CHECK_EQ(fx.trace.events[1].event_type, 60);
	CHECK_EQ(fx.trace.events[1].duration, 1000);
	fx_free(&fx);
}

TEST("merge: records whose process frame is lost are not lost with it", "[merge]")
{
	struct fixture fx;

	REQUIRE(fx_open_bare(&fx));
	fx_clock(&fx, 100, 0);
	fx_span(&fx, TRACE_TENSOR_READ, 1, TID, 1000, 2000);
	REQUIRE(fx_merge_one(&fx));
	CHECK_EQ(fx.trace.count, 2);
	CHECK_STR(fx.result.outputs[0].dir, fx_path(&fx, "out/unknown_pid_0").s);
	fx_free(&fx);
}
