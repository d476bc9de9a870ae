/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_test.c - the whole way: a workload on a virtual device under `ntrace record`, and what
 * must be in the files it leaves.
 */
#include <string.h>
#include <sys/stat.h>

#include "proto/neuron_trace.pb-c.h"
#include "runtime/trace/event_registry.h"
#include "tests/shim/shim.h"
#include "tests/unit/programs.h"
#include "tests/unit/scratch.h"
#include "tests/unit/trace_file.h"

#define THREADS 2
#define EXECUTIONS 30
#define PARTS 2		   /* physical cores of a logical one, each with its run */
#define DURATION_NS 125000 /* of the model below */

static const char model[] = "ntrace-model 1\n"
			    "name two_steps\n"
			    "input a float32 512\n"
			    "input b float32 512\n"
			    "output c float32 512\n"
			    "step PE 120us add a b c\n"
			    "step ACT 5us nop\n";

struct session {
	struct scratch dir;
	struct virtual_device device;
	struct trace_file trace;
	char out[1200], log[1200];
};

static bool session_open(struct session *s)
{
	static const char *const two_cores[] = {"--devices", "1", "--cores", "4", NULL};
	FILE *f;

	memset(s, 0, sizeof(*s));
	if (!scratch_make(&s->dir) || !virtual_device_start(&s->device, s->dir.dir, two_cores))
		return false;
	snprintf(s->out, sizeof(s->out), "%s/out", s->dir.dir);
	snprintf(s->log, sizeof(s->log), "%s/log", s->dir.dir);
	f = fopen(scratch_path(&s->dir, "model").s, "w");
	if (!f)
		return false;
	fputs(model, f);
	return fclose(f) == 0;
}

static void session_close(struct session *s)
{
	virtual_device_stop(&s->device);
	trace_file_free(&s->trace);
	scratch_remove(&s->dir);
}

static pid_t record_start(struct session *s, const char *executions)
{
	struct program_path ntrace = program_path("bin/ntrace");
	struct program_path work = program_path("workloads/inference");
	struct scratch_path file = scratch_path(&s->dir, "model");
	char *argv[] = {ntrace.s, "record", "-o", s->out, "--", work.s, "--threads", "2",
		"--executions", (char *)executions, "--model", file.s, NULL};

	return program_start(argv, s->log, s->device.env);
}

static int ntrace_run(
	struct session *s, const char *cmd, const char *a, const char *b, const char *c)
{
	struct program_path ntrace = program_path("bin/ntrace");
	char *argv[] = {ntrace.s, (char *)cmd, (char *)a, (char *)b, (char *)c, NULL};

	return program_run(argv, s->log, NULL);
}

static bool is_runtime(const struct ntrace_event_view *e, uint32_t type, uint32_t phase)
{
	return e->event_type == type && e->phase == phase && e->hint.len == 0;
}

static Ntff__NtraceInfo *read_info(const struct session *s)
{
	_cleanup_free_ char *data = NULL;
	char path[1100];
	size_t size;

	snprintf(path, sizeof(path), "%s/trace_info.pb", s->trace.leaf);
	if (file_read(path, 1 << 24, &data, &size) < 0)
		return NULL;
	return ntff__ntrace_info__unpack(NULL, size, (const uint8_t *)data);
}

static uint64_t ledger(const Ntff__NtraceInfo *info, const char *stage, const char *counter)
{
	for (size_t i = 0; i < info->n_ledger; i++)
		if (!strcmp(info->ledger[i]->stage, stage) &&
			!strcmp(info->ledger[i]->counter, counter))
			return info->ledger[i]->value;
	return UINT64_MAX;
}

static size_t count_kernel_spans(const struct trace_file *t)
{
	size_t n = 0;

	for (size_t i = 0; i < t->count; i++)
		n += t->events[i].phase == PHASE_STOP && t->events[i].hint.len > 0;
	return n;
}

/* Checks a tensor write's span: one copy-in inside, one ioctl inside that, enrichment equal to it.
 */
static bool write_is_enriched(const struct trace_file *t, const struct ntrace_event_view *stop)
{
	const struct ntrace_event_view *start = trace_file_find(t, stop->id, PHASE_START);
	const struct ntrace_event_view *copy = NULL, *kernel = NULL;
	unsigned copies = 0, kernels = 0;

	for (size_t i = 0; i < t->count; i++) {
		const struct ntrace_event_view *e = &t->events[i];
		if (e->parent_id == stop->id && is_runtime(e, TRACE_DMEM_BUF_COPYIN, PHASE_STOP)) {
			copy = e;
			copies++;
		}
	}
	for (size_t i = 0; copy && i < t->count; i++) {
		const struct ntrace_event_view *e = &t->events[i];
		if (e->parent_id == copy->id && e->phase == PHASE_STOP && e->hint.len) {
			kernel = e;
			kernels++;
		}
	}
	return start && copies == 1 && kernels == 1 && pb_str_is(kernel->hint, "MEM_BUF_COPY64") &&
	       event_attr_number(kernel, "bytes") == event_attr_number(start, "size") &&
	       !strcmp(event_attr(kernel, "direction"), "host_to_device") &&
	       event_attr_number(stop, "driver.ioctls") == 1 &&
	       event_attr_number(stop, "driver.ioctl_ns") == (long long)kernel->duration &&
	       event_attr_number(stop, "driver.dma_bytes") == event_attr_number(start, "size");
}

/* Every piece of device memory has an address: the device's, not 0, not one that is in use, and the
 * same when it is freed.  What is wrong, or "". */
static const char *addresses_fault(const struct trace_file *t)
{
	unsigned allocated = 0, freed = 0;
	unsigned long long live[64];
	size_t n = 0;

	for (size_t i = 0; i < t->count; i++) {
		const struct ntrace_event_view *e = &t->events[i];
		bool alloc = is_runtime(e, TRACE_DMA_MEM_ALLOC, PHASE_STOP);
		unsigned long long address;
		size_t at = 0;

		if (!alloc && !is_runtime(e, TRACE_DMA_MEM_DEALLOC, PHASE_START))
			continue;
		address = strtoull(event_attr(e, "physical_address"), NULL, 0);
		while (at < n && live[at] != address)
			at++;
		if (alloc && (address == 0 || at < n || n == 64))
			return address ? "an address twice" : "no address";
		if (!alloc && at == n)
			return "an address is freed that was not allocated";
		if (alloc)
			live[n++] = address;
		else
			live[at] = live[--n];
		allocated += alloc;
		freed += !alloc;
	}
	return allocated && freed ? "" : "no allocations";
}

TEST("record: spans contain what the driver did, device runs last as long as the model says",
	"[record][e2e]")
{
	struct session s;
	size_t open = 0, writes = 0, runs[2] = {0};

	if (recording_lacks())
		SKIP(recording_lacks());
	REQUIRE(session_open(&s));
	long long before = virtual_device_stat(&s.device, "ioctls_total");
	int status = program_wait(record_start(&s, "30"));
	long long ioctls = virtual_device_stat(&s.device, "ioctls_total") - before;
	_cleanup_free_ char *log = program_text(s.log);
	test_info("%s", log);
	CHECK_EQ(status, 0);
	REQUIRE(trace_file_read(&s.trace, s.out));
	CHECK_STR(trace_file_fault(&s.trace, &open), "");
	CHECK_EQ(open, 0);

	for (size_t i = 0; i < s.trace.count; i++) {
		const struct ntrace_event_view *e = &s.trace.events[i];
		if (is_runtime(e, TRACE_TENSOR_WRITE, PHASE_STOP)) {
			writes++;
			CHECK(write_is_enriched(&s.trace, e));
		}
		if (is_runtime(e, TRACE_DEVICE_EXEC, PHASE_STOP)) {
			const struct ntrace_event_view *b =
				trace_file_find(&s.trace, e->id, PHASE_START);
			REQUIRE(b && e->nc_idx < 2);
			runs[e->nc_idx]++;
			CHECK_EQ(event_attr_number(e, "nc_timestamp_ns") -
					 event_attr_number(b, "nc_timestamp_ns"),
				DURATION_NS);
			/* Where the clocks disagreed within their bound, causality moved the start. */
			long long moved = event_attr_number(e, "clamped_ns");
			CHECK_EQ((long long)e->duration + (moved > 0 ? moved : 0), DURATION_NS);
			CHECK(moved <= event_attr_number(e, "clock.bound_ns"));
			CHECK_STR(event_attr(e, "link"), "exact");
			const struct ntrace_event_view *submit = trace_file_find(
				&s.trace, strtoull(event_attr(e, "link.id"), NULL, 0), PHASE_START);
			CHECK(submit && is_runtime(submit, TRACE_MODEL_SUBMIT, PHASE_START));
		}
	}
	CHECK_EQ(writes, 2 * THREADS);
	CHECK_STR(addresses_fault(&s.trace), "");
	CHECK_EQ(runs[0], PARTS * EXECUTIONS);
	CHECK_EQ(runs[1], PARTS * EXECUTIONS);

	/* Three sides count the same: the device, the hooks, the file. */
	Ntff__NtraceInfo *info = read_info(&s);
	REQUIRE(info);
	CHECK_EQ(ledger(info, "kernel", "entered"), ioctls);
	CHECK_EQ(count_kernel_spans(&s.trace), ioctls);
	CHECK(info->virtual_device);
	CHECK_EQ(ledger(info, "runtime", "emitted"), ledger(info, "runtime", "delivered"));
	ntff__ntrace_info__free_unpacked(info, NULL);
	CHECK(strstr(log, "VIRTUAL"));
	CHECK(strstr(log, "lost: nothing"));
	session_close(&s);
}

TEST("record: calls nest in the spans of a workload in a pid namespace of its own", "[record][e2e]")
{
	struct program_path ntrace = program_path("bin/ntrace");
	struct program_path work = program_path("workloads/inference");
	char *probe[] = {"/usr/bin/env", "unshare", "--pid", "--fork", "true", NULL};
	struct session s;
	size_t open = 0, writes = 0;

	if (recording_lacks())
		SKIP(recording_lacks());
	REQUIRE(session_open(&s));
	if (program_run(probe, s.log, NULL) != 0) {
		session_close(&s);
		SKIP("unshare cannot make a pid namespace here");
	}
	struct scratch_path file = scratch_path(&s.dir, "model");
	char *argv[] = {ntrace.s, "record", "-o", s.out, "--", "unshare", "--pid", "--fork", work.s,
		"--threads", "2", "--executions", "30", "--model", file.s, NULL};
	int status = program_wait(program_start(argv, s.log, s.device.env));
	_cleanup_free_ char *log = program_text(s.log);
	test_info("%s", log);
	CHECK_EQ(status, 0);
	REQUIRE(trace_file_read(&s.trace, s.out));
	CHECK_STR(trace_file_fault(&s.trace, &open), "");
	CHECK_EQ(open, 0);
	for (size_t i = 0; i < s.trace.count; i++) {
		if (!is_runtime(&s.trace.events[i], TRACE_TENSOR_WRITE, PHASE_STOP))
			continue;
		writes++;
		CHECK(write_is_enriched(&s.trace, &s.trace.events[i]));
	}
	CHECK_EQ(writes, 2 * THREADS);
	Ntff__NtraceInfo *info = read_info(&s);
	REQUIRE(info);
	CHECK_EQ(ledger(info, "merge", "foreign_thread"), 0);
	CHECK_EQ(ledger(info, "runtime", "threads_gone"), 0);
	ntff__ntrace_info__free_unpacked(info, NULL);
	session_close(&s);
}

static bool recording_grew(void *arg)
{
	struct session *s = arg;
	char path[1300];
	struct stat st;

	snprintf(path, sizeof(path), "%s/recording/segment-000000.ntrec", s->out);
	return stat(path, &st) == 0 && st.st_size > 200000;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static uint64_t newest(const struct trace_file *t)
{
	return t->count ? t->events[t->count - 1].timestamp : 0;
}

TEST("record: a workload killed in mid-run leaves everything up to the kill", "[record][e2e]")
{
	struct session s;
	size_t open = 0;
	char again[1300];

	if (recording_lacks())
		SKIP(recording_lacks());
	REQUIRE(session_open(&s));
	pid_t agent = record_start(&s, "1000000");
	bool grew = program_until(recording_grew, &s, 30);
	pid_t work = program_child(agent);
	uint64_t killed = now_ns();
	if (work > 0)
		kill(work, SIGKILL);
	int status = program_wait(agent);
	_cleanup_free_ char *log = program_text(s.log);
	test_info("%s", log);
	CHECK(grew);
	CHECK_EQ(status, 128 + SIGKILL);
	REQUIRE(trace_file_read(&s.trace, s.out));
	CHECK_STR(trace_file_fault(&s.trace, &open), "");
	CHECK(newest(&s.trace) + 100000000u > killed);
	CHECK(strstr(log, "killed by signal 9"));
	snprintf(again, sizeof(again), "%s/again", s.dir.dir);
	CHECK_EQ(ntrace_run(&s, "replay", s.out, "-o", again), 0);
	session_close(&s);
}

static bool is_gone(void *arg)
{
	return kill(*(pid_t *)arg, 0) < 0;
}

#define MAX_PROGRAMS 32

/* BPF programs that a process holds, by their ids. */
struct programs {
	unsigned id[MAX_PROGRAMS];
	size_t count;
};

static struct programs programs_of(pid_t pid)
{
	struct programs p = {0};
	unsigned id;
	char command[80];
	FILE *f;

	snprintf(command, sizeof(command), "sed -n 's/^prog_id://p' /proc/%d/fdinfo/*", (int)pid);
	f = popen(command, "r");
	while (f && p.count < MAX_PROGRAMS && fscanf(f, "%u", &id) == 1)
		p.id[p.count++] = id;
	if (f)
		pclose(f);
	return p;
}

static bool no_programs(void *arg)
{
	const struct programs *p = arg;
	char command[80];

	for (size_t i = 0; i < p->count; i++) {
		snprintf(command, sizeof(command), "bpftool prog show id %u >/dev/null 2>&1",
			p->id[i]);
		if (system(command) == 0)
			return false;
	}
	return true;
}

TEST("record: when the recorder is killed the workload runs on, and the recording is salvaged",
	"[record][e2e]")
{
	struct session s;
	size_t open = 0;

	if (recording_lacks())
		SKIP(recording_lacks());
	REQUIRE(session_open(&s));
	pid_t agent = record_start(&s, "3000");
	CHECK(program_until(recording_grew, &s, 30));
	struct programs programs = programs_of(agent);
	CHECK(programs.count > 0);
	CHECK(!no_programs(&programs));
	pid_t work = program_child(agent);
	uint64_t killed = now_ns();
	kill(agent, SIGKILL);
	CHECK_EQ(program_wait(agent), 128 + SIGKILL);
	REQUIRE(work > 0);
	CHECK(kill(work, 0) == 0);
	CHECK(program_until(no_programs, &programs, 10));
	CHECK(program_until(is_gone, &work, 60));
	_cleanup_free_ char *log = program_text(s.log);
	test_info("%s", log);
	CHECK(strstr(log, "executions=6000"));

	int salvaged = ntrace_run(&s, "salvage", s.out, NULL, NULL);
	_cleanup_free_ char *said = program_text(s.log);
	const char *fault = strstr(said, "ntrace: salvage");
	test_info("%s", said);
	test_info("%s", fault ? fault : "no fault");
	/* A kill can end a write(2) in its middle: then the last block is torn. */
	bool torn = strstr(said, "of a block that is cut off at the end");
	CHECK_EQ(salvaged, torn ? 4 : 0);
	CHECK(strstr(said, "incomplete"));
	CHECK(strstr(
		said, torn ? "lost: unknown, the file is cut off"
			   : "lost: unknown, at most the last 100 ms if the recorder was killed"));
	CHECK(!strstr(said, " of 0 "));
	REQUIRE(trace_file_read(&s.trace, s.out));
	CHECK_STR(trace_file_fault(&s.trace, &open), "");
	CHECK(newest(&s.trace) + 200000000u > killed);
	session_close(&s);
}
