/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_execute_fault_test.c - executions in which the device fails: the status, the events, and the next
 * execution, which works.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "runtime/vdev/vdev_abi.h"
#include "tests/shim/shim.h"
#include "tests/unit/nrt_records.h"
#include "vmlinux/ioctl_table.h"

/* ---- every fault -------------------------------------------------------------------------- */

static const struct fault_case {
	const char *name;
	int status;
	unsigned number;
	bool goes_on;
} fault_cases[] = {
	{"numerical", 1003, 1, true},
	{"hardware", 1202, 2, false},
	{"dma-abort", 1203, 3, false},
	{"timeout", NRT_TIMEOUT, 4, false},
	{"queue-overflow", 1204, 5, false},
	{"memory", 1201, 6, false},
	{"memory-repairable", 1205, 7, false},
	{"collectives", 1200, 8, false},
	{"out-of-bounds", 1006, 9, false},
	{"error", 1004, 10, true},
	{"unrecoverable", 101, 11, false},
};

static const struct fault_case *fault_now;
static int cores_now; /* physical ones of a logical one */
#define BAD_RUNS 2

static int one_fault(const struct job *bad)
{
	float a[8] = {1, 2, 3, 4, 5, 6, 7, 8}, c[8] = {0};

	WANT_STATUS(lib.nrt_tensor_write(bad->a, a, 0, sizeof(a)), 0);
	WANT_STATUS(lib.nrt_tensor_write(bad->c, c, 0, sizeof(c)), 0);
	WANT_STATUS(lib.nrt_execute(bad->model, bad->in, bad->out), fault_now->status);
	WANT_STATUS(lib.nrt_tensor_read(bad->c, c, 0, sizeof(c)), 0);
	/* What a fault that lets the run go on does not keep from its result. */
	WANT((memcmp(a, c, sizeof(a)) == 0) == fault_now->goes_on);
	return 0;
}

static int faulty_runs(void)
{
	struct job bad, good;
	char text[256];

	snprintf(text, sizeof(text),
		"ntrace-model 2\nname faulty\ninput a float32 8\noutput c float32 8\n"
		"step PE 5us nop\nstep PE 1us fault %s\nstep PE 5us copy a c\n",
		fault_now->name);
	for (int i = 0; i < BAD_RUNS; i++) {
		WANT(job_open(&bad, text, 0) == 0);
		WANT(job_open(&good, COPY_MODEL, 0) == 0);
		WANT(one_fault(&bad) == 0);
		if (fault_now->status == NRT_EXEC_UNIT_UNRECOVERABLE) {
			WANT_STATUS(lib.nrt_execute(good.model, good.in, good.out), 101);
			lib.nrt_close();
			WANT_STATUS(init(), 0);
			WANT(job_open(&good, COPY_MODEL, 0) == 0);
		}
		WANT(job_run(&good, 1.0f, 0.0f) == 0);
	}
	return 0;
}

static int status_at(enum trace_type type, int k)
{
	const struct trace_record *stop = stop_of(find(type, TRACE_START, k));

	return stop ? (int)stop->status : -1;
}

/* The records of errors: one per core and run, of the first run in its device run. */
static int check_errors(void)
{
	bool numerical = fault_now->number == VDEV_CORE_FAULT_NUMERICAL;
	enum trace_type type = numerical ? TRACE_NUM_ERR : TRACE_HW_NOTIFY;

	WANT(count_of(type, TRACE_INSTANT) >= BAD_RUNS * cores_now);
	WANT(count_of(numerical ? TRACE_HW_NOTIFY : TRACE_NUM_ERR, TRACE_INSTANT) == 0);
	for (int k = 0; k < cores_now; k++) {
		const struct trace_record *r = find(type, TRACE_INSTANT, k);
		const struct trace_record *run = find(TRACE_DEVICE_EXEC, TRACE_START, k);
		struct trace_hw_notify n;
		struct trace_device_exec d;

		memcpy(&n, r->data, sizeof(n));
		memcpy(&d, run->data, sizeof(d));
		WANT(r->status == (uint32_t)fault_now->status);
		WANT(n.device_core_idx == (uint32_t)k && d.device_core_idx == (uint32_t)k);
		WANT(numerical || (n.custom_data == fault_now->number && n.exec_id == 1));
		WANT(run->timestamp_ns <= r->timestamp_ns);
		WANT(r->timestamp_ns <= stop_of(run)->timestamp_ns);
	}
	return 0;
}

static int check_fault(void *arg)
{
	static const enum trace_type spans[] = {
		TRACE_EXECUTE_API, TRACE_EXEC_CORE, TRACE_EXEC_WAIT, TRACE_EXEC_POST};

	setenv("NEURON_LOGICAL_NC_CONFIG", cores_now == 1 ? "1" : "2", 1);
	setenv("NEURON_RT_EXEC_TIMEOUT", "1", 1);
	WANT(record(arg, faulty_runs) == 0);
	WANT(all_closed() == 0);
	for (size_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++)
		WANT(status_at(spans[i], 0) == fault_now->status);
	for (int k = 0; k < cores_now; k++) {
		WANT(status_at(TRACE_CONSUME_ERROR_NOTIFICATIONS, k) == fault_now->status);
		WANT(status_at(TRACE_DEVICE_EXEC, k) == fault_now->status);
	}
	WANT(check_errors() == 0);
	return 0;
}

static void each_fault(int cores)
{
	static const char *const options[] = {"--cores=2", NULL};

	if (device_lacks())
		SKIP(device_lacks());
	cores_now = cores;
	for (size_t i = 0; i < sizeof(fault_cases) / sizeof(fault_cases[0]); i++) {
		fault_now = &fault_cases[i];
		test_info("%s", fault_now->name);
		with_device(check_fault, options);
	}
}

TEST("faults: each has its status and its events, and the next execution works, LNC 1",
	"[nrt][execute][vdev]")
{
	each_fault(1);
}

TEST("faults: each has its status and its events, and the next execution works, LNC 2",
	"[nrt][execute][vdev]")
{
	each_fault(2);
}

/* ---- several cores ------------------------------------------------------------------------ */

static int wanted;

static int failing_cores(void *arg)
{
	struct job j;

	setenv("NEURON_RT_EXEC_TIMEOUT", "86400", 1);
	WANT(enter(arg) == 0);
	WANT_STATUS(init(), 0);
	WANT(job_open(&j, ADD_MODEL, 0) == 0);
	WANT_STATUS(lib.nrt_execute(j.model, j.in, j.out), wanted);
	if (wanted == 101) {
		lib.nrt_close();
		WANT_STATUS(init(), 0);
		WANT(job_open(&j, ADD_MODEL, 0) == 0);
	}
	WANT(job_run(&j, 3.0f, 2.0f) == 0);
	lib.nrt_close();
	return 0;
}

/* The last one would wait a day for the core that hangs. */
TEST("faults: when the cores of a logical core fail the graver status holds",
	"[nrt][execute][vdev]")
{
	static const struct {
		const char *first, *second;
		int status;
	} rows[] = {
		{"--fault=numerical:1:1", "-q", 1003},
		{"--fault=numerical:0:1", "--fault=hardware:1:1", 1202},
		{"--fault=hardware:0:1", "--fault=unrecoverable:1:1", 101},
		{"--fault=error:0:1", "--fault=numerical:1:1", 1004},
		{"--fault=timeout:0:1", "--fault=hardware:1:1", 1202},
	};

	if (device_lacks())
		SKIP(device_lacks());
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *options[] = {"--cores=2", rows[i].first, rows[i].second, NULL};

		test_info("%s %s", rows[i].first, rows[i].second);
		wanted = rows[i].status;
		with_device(failing_cores, options);
	}
}

/* ---- changes of model --------------------------------------------------------------------- */

static int changes(void)
{
	struct job a, b;

	WANT(job_open(&a, ADD_MODEL, 0) == 0);
	WANT(job_open(&b, COPY_MODEL, 0) == 0);
	for (int i = 0; i < 2; i++) {
		WANT(job_run(&b, 1.0f, 0.0f) == 0);
		WANT(job_run(&a, 1.0f, 2.0f) == 0);
	}
	WANT_STATUS(lib.nrt_execute_repeat(a.model, a.in, a.out, 3), 0);
	WANT_STATUS(lib.nrt_execute_repeat(a.model, a.in, a.out, 0), NRT_INVALID);
	WANT_STATUS(lib.nrt_execute_repeat(a.model, a.in, a.out, -1), NRT_INVALID);
	return 0;
}

static int check_changes(void *arg)
{
	WANT(record(arg, changes) == 0);
	WANT(all_closed() == 0);
	WANT(count_of(TRACE_EXECUTE_API, TRACE_START) == 4 + 3);
	WANT(count_of(TRACE_DEVICE_EXEC, TRACE_START) == 2 * (4 + 3));
	WANT(count_of(TRACE_MODEL_SWITCH, TRACE_START) == 3);
	/* On the device: on both cores, each time right before the run. */
	WANT(count_of(TRACE_NC_MODEL_SWITCH, TRACE_START) == 2 * 3);
	for (int k = 0; k < 2 * 3; k++) {
		const struct trace_record *change = find(TRACE_NC_MODEL_SWITCH, TRACE_START, k);
		const struct trace_record *run = find(TRACE_DEVICE_EXEC, TRACE_START, k + 2);
		struct trace_nc_model_switch c;
		struct trace_device_exec r;

		memcpy(&c, change->data, sizeof(c));
		memcpy(&r, run->data, sizeof(r));
		WANT(c.device_core_idx == (uint32_t)k % 2 && c.exec_id == r.exec_id);
		WANT(c.model_id == r.model_id);
		WANT(stop_of(change)->timestamp_ns - change->timestamp_ns == 50000);
		WANT(stop_of(change)->timestamp_ns <= run->timestamp_ns);
	}
	return 0;
}

TEST("nrt trace: a core that changes its program says how long it took", "[nrt][execute][vdev]")
{
	static const char *const options[] = {"--cores=2", "--switch=50", NULL};

	if (device_lacks())
		SKIP(device_lacks());
	with_device(check_changes, options);
}

/* ---- a fast clock ------------------------------------------------------------------------- */

static int long_runs(void)
{
	static const char text[] = "ntrace-model 2\nname long\nstep PE 20000us fault error\nstep "
				   "PE 20000us fault error\n";
	nrt_tensor_set_t *none = NULL;
	nrt_model_t *m = NULL;

	WANT_STATUS(lib.nrt_load(text, strlen(text), 0, -1, &m), 0);
	WANT_STATUS(lib.nrt_allocate_tensor_set(&none), 0);
	for (int i = 0; i < 3; i++)
		WANT_STATUS(lib.nrt_execute(m, none, none), NRT_EXEC_COMPLETED_WITH_ERR);
	return 0;
}

/* The clock gains 4 ms and more in a run, which is more than starting it takes. */
static int check_fast_clock(void *arg)
{
	WANT(record(arg, long_runs) == 0);
	WANT(all_closed() == 0);
	WANT(count_of(TRACE_DEVICE_EXEC, TRACE_START) == 2 * 3);
	for (int k = 0; k < 2 * 3; k++) {
		const struct trace_record *run = find(TRACE_DEVICE_EXEC, TRACE_START, k);
		const struct trace_record *call = find(TRACE_EXECUTE_API, TRACE_START, k / 2);
		const struct trace_record *error = find(TRACE_HW_NOTIFY, TRACE_INSTANT, 2 * k);
		struct trace_device_exec start;
		struct trace_device_stop stop;

		WANT(run && stop_of(run) && call && stop_of(call) && error);
		WANT(run->timestamp_ns >= call->timestamp_ns);
		WANT(stop_of(run)->timestamp_ns <= stop_of(call)->timestamp_ns);
		WANT(error->timestamp_ns > run->timestamp_ns);
		WANT(error->timestamp_ns < stop_of(run)->timestamp_ns);
		/* The device's own time is what it said. */
		memcpy(&start, run->data, sizeof(start));
		memcpy(&stop, stop_of(run)->data, sizeof(stop));
		WANT(stop.sync.nc_timestamp_ns - start.sync.nc_timestamp_ns >= 40000000);
	}
	return 0;
}

TEST("nrt trace: a run of a core whose clock is fast begins within its call",
	"[nrt][execute][vdev]")
{
	static const char *const options[] = {"--cores=2", "--clock-drift=100000", NULL};

	if (device_lacks())
		SKIP(device_lacks());
	with_device(check_fast_clock, options);
}

/* ---- what is asked of the device ---------------------------------------------------------- */

#define QUIET_RUNS 10

/* How often the clock is read in some runs with a capture of these types of events. */
static long long clocks_read(const struct place *p, const struct job *j, const char *type)
{
	nrt_sys_trace_config_t *config = NULL;
	const char **types = NULL;
	size_t count = 0;
	long long before;

	if (lib.nrt_sys_trace_config_allocate(&config) ||
		lib.nrt_sys_trace_get_event_types(&types, &count))
		return -1;
	for (size_t i = 0; i < count; i++)
		(void)lib.nrt_sys_trace_config_set_capture_enabled_for_event_type(
			config, types[i], !strcmp(types[i], type));
	if (lib.nrt_sys_trace_start(config))
		return -1;
	before = virtual_device_stat(&p->device, "ioctl.BAR_READ");
	for (int i = 0; i < QUIET_RUNS; i++)
		if (job_run(j, 1.0f, 2.0f) != 0)
			return -1;
	if (lib.nrt_sys_trace_stop())
		return -1;
	lib.nrt_sys_trace_config_free(config);
	return virtual_device_stat(&p->device, "ioctl.BAR_READ") - before;
}

static int read_for_whom(void *arg)
{
	struct job j;

	setenv("NEURON_LOGICAL_NC_CONFIG", "1", 1);
	WANT(enter(arg) == 0);
	WANT_STATUS(init(), 0);
	WANT(job_open(&j, ADD_MODEL, 0) == 0);
	WANT(clocks_read(arg, &j, "nrt_load") == 0);
	WANT(clocks_read(arg, &j, "nrt_tensor_write") == 0);
	WANT(clocks_read(arg, &j, "timestamp_sync_point") >= QUIET_RUNS);
	WANT(clocks_read(arg, &j, "nc_exec_running") >= QUIET_RUNS);
	WANT(clocks_read(arg, &j, "nrt_load") == 0);
	lib.nrt_close();
	return 0;
}

TEST("execute: the device's clock is read only for who wants its times", "[nrt][execute][vdev]")
{
	static const char *const options[] = {"--cores=2", NULL};

	if (device_lacks())
		SKIP(device_lacks());
	with_device(read_for_whom, options);
}

/* As another process sees the queue of core 0: launches done, and acknowledged. */
static int queue_of_core(const struct place *p, uint32_t *ret_done, uint32_t *ret_acknowledged)
{
	struct neuron_dma_queue_state tx = {0}, rx = {0};
	struct neuron_dma_queue_get_state state = {.eng_id = VDEV_EXEC_ENGINE,
		.qid = 0,
		.tx = (uint64_t)(uintptr_t)&tx,
		.rx = (uint64_t)(uintptr_t)&rx};
	char path[640];
	int fd, rc;

	snprintf(path, sizeof(path), "%s/dev/neuron0", p->device.root);
	fd = open(path, O_RDWR | O_CLOEXEC);
	rc = fd < 0 ? -1 : ioctl(fd, NEURON_IOCTL_DMA_QUEUE_GET_STATE, &state);
	if (fd >= 0)
		close(fd);
	*ret_done = rx.head_pointer;
	*ret_acknowledged = rx.completion_head;
	return rc;
}

static int acknowledged(void *arg)
{
	uint32_t done = 0, seen = 0;
	struct job j;

	setenv("NEURON_LOGICAL_NC_CONFIG", "1", 1);
	WANT(enter(arg) == 0);
	WANT_STATUS(init(), 0);
	WANT(job_open(&j, ADD_MODEL, 0) == 0);
	for (uint32_t i = 1; i <= 3; i++) {
		WANT(job_run(&j, 1.0f, 2.0f) == 0);
		WANT(queue_of_core(arg, &done, &seen) == 0);
		WANT(done == i && seen == i);
	}
	lib.nrt_close();
	return 0;
}

TEST("execute: each run is acknowledged when it has been read", "[nrt][execute][vdev]")
{
	static const char *const options[] = {"--cores=2", NULL};

	if (device_lacks())
		SKIP(device_lacks());
	with_device(acknowledged, options);
}

/* ---- rings -------------------------------------------------------------------------------- */

#define RING_RECORDS 4096 /* of each ring */

#define BARRIERS (RING_RECORDS / 2 + 52) /* two records each */

/* The ring goes round while the run goes on. */
static int many_barriers(void)
{
	_cleanup_free_ char *text = malloc(64 + 32 * BARRIERS);
	nrt_tensor_set_t *none = NULL;
	nrt_model_t *m = NULL;
	char *at = text;

	WANT(text);
	at += sprintf(at, "ntrace-model 2\nname barriers\n");
	for (int i = 0; i < BARRIERS; i++)
		at += sprintf(at, "step TOPSP 50us barrier\n");
	WANT_STATUS(lib.nrt_load(text, strlen(text), 0, -1, &m), 0);
	WANT_STATUS(lib.nrt_allocate_tensor_set(&none), 0);
	WANT_STATUS(lib.nrt_execute(m, none, none), 0);
	return 0;
}

static int check_barriers(void *arg)
{
	setenv("NEURON_LOGICAL_NC_CONFIG", "1", 1);
	/* Nobody reads before the end, and a thread's own lane begins with an eighth of what was asked for. */
	agent_ring_capacity = 8 * 8192;
	WANT(record(arg, many_barriers) == 0);
	WANT(count_of(TRACE_CC_EXEC_BARRIER, TRACE_START) == BARRIERS);
	WANT(count_of(TRACE_HW_NOTIFY, TRACE_INSTANT) == 0);
	return 0;
}

TEST("nrt trace: all collectives of a run whose ring goes round are there", "[nrt][execute][vdev]")
{
	static const char *const options[] = {"--cores=2", "--ring-full=fail", NULL};

	if (device_lacks())
		SKIP(device_lacks());
	with_device(check_barriers, options);
}

static int run_often(const char *text)
{
	nrt_tensor_set_t *none = NULL;
	nrt_model_t *m = NULL;

	WANT_STATUS(init(), 0);
	WANT_STATUS(lib.nrt_load(text, strlen(text), 0, -1, &m), 0);
	WANT_STATUS(lib.nrt_allocate_tensor_set(&none), 0);
	/* Two records in each ring per run, and the device refuses what finds its ring full. */
	for (int i = 0; i < RING_RECORDS / 2 + 100; i++)
		WANT_STATUS(lib.nrt_execute(m, none, none), NRT_EXEC_COMPLETED_WITH_ERR);
	lib.nrt_close();
	return 0;
}

static int many_records(void *arg)
{
	static const char text[] = "ntrace-model 2\nname many\nstep TOPSP 1ns barrier\n"
				   "step PE 1ns fault error\nstep PE 1ns fault error\n";

	setenv("NEURON_LOGICAL_NC_CONFIG", "1", 1);
	setenv("NEURON_RT_LOG_LEVEL", "DISABLED", 1);
	WANT(enter(arg) == 0);
	WANT(run_often(text) == 0);
	/* The next one takes the rings over as they are. */
	setenv("NEURON_RT_RESET_CORES", "0", 1);
	WANT(run_often(text) == 0);
	return 0;
}

TEST("faults: rings go round, for the device hears what has been read", "[nrt][execute][vdev]")
{
	static const char *const options[] = {"--cores=2", "--ring-full=fail", NULL};

	if (device_lacks())
		SKIP(device_lacks());
	with_device(many_records, options);
}
