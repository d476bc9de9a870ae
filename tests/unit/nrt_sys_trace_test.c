/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_sys_trace_test.c - a program's own capture, through the library, on a virtual device.
 */
#include "runtime/base/clock.h"
#include "runtime/trace/event_registry.h"
#include "runtime/trace/ring.h"
#include "tests/shim/shim.h"
#include "tests/unit/fake_agent.h"
#include "tests/unit/nrt_lib.h"
#include "tests/unit/sys_trace_capture.h"

#define RUNS 3

static int normal_run(void *arg)
{
	static const char *const inside[] = {"kmgr_exec_core", "kbl_exec_pre", "nrt_model_submit",
		"kbl_exec_wait", "kbl_exec_post", "exec_consume_nc_status_notifications",
		"exec_consume_cc_core_notifications"};
	static const char *const per_core[] = {
		"notification_consume_errors", "exec_consume_gpsimd_stdio"};
	json_t *events;
	struct job j;

	WANT(begin(arg, NULL) == 0);
	WANT(job_open(&j, ADD_MODEL, 1) == 0);
	WANT(run_some(&j, RUNS) == 0);
	lib.nrt_tensor_free(&j.c);
	WANT_STATUS(lib.nrt_unload(j.model), 0);
	events = fetch();
	WANT(strict(events) == 0);
	WANT(count_on(events, 1) == json_array_size(events));
	for (size_t k = 0; k < RUNS; k++) {
		const json_t *run = start_of(events, "nc_exec_running", 2 * k);

		for (size_t i = 0; i < sizeof(inside) / sizeof(inside[0]); i++)
			WANT(nested(events, "nrt_execute", inside[i], k));
		WANT(nested(events, "kmgr_exec_core", "kbl_exec_wait", k));
		for (size_t i = 0; i < 2 * sizeof(per_core) / sizeof(per_core[0]); i++)
			WANT(nested_at(events, "kbl_exec_post", k, per_core[i / 2], 2 * k + i % 2));
		/* Exactly what the model asks for: 20 us and 5 us. */
		WANT(number(stop_of(events, run), "timestamp_ns") - number(run, "timestamp_ns") ==
			25000);
		WANT(number(run, "worker_gid") == -1);
		WANT(!strcmp(text(json_object_get(start_of(events, "nrt_execute", k), "data"),
				     "model_name"),
			"adder"));
	}
	WANT(count_of(events, "nrt_execute", "stop") == RUNS);
	WANT(count_of(events, "nrt_model_submit", "stop") == RUNS);
	/* Two physical cores. */
	WANT(count_of(events, "nc_exec_running", "stop") == 2 * RUNS);
	WANT(count_of(events, "timestamp_sync_point", "instant") == 2 * RUNS);
	WANT(nested(events, "nrt_load", "nrt_dma_mem_alloc", 0));
	json_decref(events);
	events = fetch(); /* each event once */
	WANT(json_is_array(events) && json_array_size(events) == 0);
	json_decref(events);
	WANT_STATUS(lib.nrt_sys_trace_stop(), 0);
	lib.nrt_close();
	return 0;
}

DEVICE_TEST("sys_trace: a strict reader accepts a normal run, nested as documented", normal_run,
	two_cores)

static void *runs_on_thread(void *arg)
{
	return (void *)(intptr_t)run_some(arg, 20);
}

static int both_cores(void *arg)
{
	pthread_t thread;
	void *failed;
	json_t *events;
	struct job a, b;

	WANT(begin(arg, NULL) == 0);
	WANT(job_open(&a, ADD_MODEL, 0) == 0);
	WANT(job_open(&b, ADD_MODEL, 1) == 0);
	WANT(pthread_create(&thread, NULL, runs_on_thread, &a) == 0);
	WANT(run_some(&b, 20) == 0);
	WANT(pthread_join(thread, &failed) == 0 && !failed);
	events = fetch();
	WANT(strict(events) == 0);
	WANT(count_of(events, "nc_exec_running", "start") == 2 * 40);
	WANT(count_on(events, 0) == count_on(events, 1));
	json_decref(events);
	return 0;
}

DEVICE_TEST("sys_trace: tracking_id alone pairs starts and stops of several cores", both_cores,
	two_cores)

static void only_runs_of_core_1(nrt_sys_trace_config_t *config)
{
	lib.nrt_sys_trace_config_set_capture_enabled_for_nc(config, 0, false);
	lib.nrt_sys_trace_config_set_capture_enabled_for_event_type(config, "software", false);
	lib.nrt_sys_trace_config_set_capture_enabled_for_event_type(
		config, "timestamp_sync_point", false);
	lib.nrt_sys_trace_config_set_capture_enabled_for_event_type(config, "tensor_read", true);
}

static int filters(void *arg)
{
	const struct place *p = arg;
	json_t *events;
	struct job a, b;

	setenv("NEURON_RT_LOG_LEVEL", "INFO", 1);
	WANT(enter(p) == 0);
	WANT(dup2(2, 1) == 1); /* warnings go there */
	WANT_STATUS(init(), 0);
	WANT_STATUS(start(only_runs_of_core_1), 0);
	WANT(said(p, "Event type 'tensor_read' is retired; taken for 'nrt_tensor_read'"));
	WANT(job_open(&a, ADD_MODEL, 0) == 0);
	WANT(job_open(&b, ADD_MODEL, 1) == 0);
	WANT(run_some(&a, RUNS) == 0);
	WANT(run_some(&b, RUNS) == 0);
	events = fetch();
	WANT(strict(events) == 0);
	WANT(json_array_size(events) == 6 * RUNS);
	WANT(count_on(events, 1) == 6 * RUNS);
	WANT(count_of(events, "nc_exec_running", "start") == 2 * RUNS);
	WANT(count_of(events, "nrt_tensor_read", "stop") == RUNS);
	json_decref(events);
	WANT_STATUS(lib.nrt_sys_trace_stop(), 0);
	WANT(said(p, "Capture ends: 18 events fetched, 0 not fetched, 0 beyond the limit, 0 "
		     "overwritten, 0 dropped"));
	return 0;
}

DEVICE_TEST("sys_trace: cores and types that are not wanted are not there", filters, two_cores)

static int portions(void *arg)
{
	json_t *events, *first;
	size_t total = 0, n;
	struct job a, b;

	WANT(begin(arg, NULL) == 0);
	WANT(job_open(&a, ADD_MODEL, 0) == 0);
	WANT(job_open(&b, ADD_MODEL, 1) == 0);
	WANT(run_some(&a, 1) == 0);
	first = fetch_some(1, 1);
	WANT(json_array_size(first) == 1 && is(json_array_get(first, 0), "nrt_load", "start"));
	WANT(count_on(first, 1) == 1);
	json_decref(first);
	events = fetch_some(ALL, 2);
	WANT(json_array_size(events) == 4 && count_on(events, 0) == 2 && count_on(events, 1) == 2);
	json_decref(events);
	events = fetch_some(0, 0);
	n = json_array_size(events);
	WANT(n > 20 && count_on(events, 0) == n);
	json_decref(events);
	do { /* what is left, of core 1 alone */
		events = fetch_some(ALL, 3);
		n = json_array_size(events);
		WANT(n <= 3 && count_on(events, 1) == n);
		total += n;
		json_decref(events);
	} while (n);
	/* A load with its span, four memories and two copies; three tensors with a memory each. */
	WANT(total + 3 == 2 * (1 + 4 + 2) + 3 * 4);
	events = fetch_some(255, 0);
	WANT(json_is_array(events) && json_array_size(events) == 0);
	json_decref(events);
	return 0;
}

DEVICE_TEST("sys_trace: a fetch takes what is asked for and leaves the rest", portions, two_cores)

static int statuses(void *arg)
{
	const struct place *p = arg;
	char *buffer = NULL, *before = (char *)p;
	size_t size;
	json_t *events;

	setenv("NEURON_RT_LOG_LEVEL", "WARN", 1);
	WANT(enter(p) == 0);
	WANT(dup2(2, 1) == 1); /* warnings go there */
	WANT_STATUS(init(), 0);
	WANT_STATUS(lib.nrt_sys_trace_stop(), 0);
	WANT_STATUS(lib.nrt_sys_trace_start(NULL), NRT_INVALID);
	WANT_STATUS(lib.nrt_sys_trace_fetch_events(NULL, &size, NULL), NRT_INVALID);
	WANT_STATUS(lib.nrt_sys_trace_fetch_events(&buffer, NULL, NULL), NRT_INVALID);
	WANT(!buffer);
	WANT(said(p, "No place for the length (NULL)"));
	WANT_STATUS(lib.nrt_sys_trace_fetch_events(&before, &size, NULL), NRT_INVALID);
	WANT(before == (const char *)p && said(p, "*buffer is not NULL"));
	events = fetch();
	WANT(json_is_array(events) && json_array_size(events) == 0);
	WANT(said(p, "The capture is off: there is nothing to fetch"));
	json_decref(events);
	WANT_STATUS(start(NULL), 0);
	WANT_STATUS(start(NULL), NRT_FAILURE);
	WANT(said(p, "The capture is on already; nothing changes"));
	WANT_STATUS(lib.nrt_sys_trace_stop(), 0);
	WANT_STATUS(lib.nrt_sys_trace_stop(), 0);
	WANT_STATUS(start(NULL), 0);
	lib.nrt_close(); /* ends it */
	WANT_STATUS(init(), 0);
	WANT_STATUS(start(NULL), 0);
	return 0;
}

DEVICE_TEST("sys_trace: start, stop and fetch have their statuses, and stop may be repeated",
	statuses, two_cores)

static int after_stop(void *arg)
{
	json_t *events;
	struct job j;

	WANT(begin(arg, NULL) == 0);
	WANT(job_open(&j, ADD_MODEL, 0) == 0);
	WANT_STATUS(lib.nrt_sys_trace_stop(), 0);
	WANT(run_some(&j, 1) == 0); /* nobody records it */
	WANT_STATUS(start(NULL), 0);
	WANT(run_some(&j, 1) == 0);
	events = fetch();
	WANT(strict(events) == 0);
	WANT(count_of(events, "nrt_load", "start") == 0);
	WANT(count_of(events, "nrt_execute", "start") == 1);
	/* The name is known though the model was loaded before. */
	WANT(!strcmp(
		text(json_object_get(start_of(events, "nrt_execute", 0), "data"), "model_name"),
		"adder"));
	json_decref(events);
	return 0;
}

DEVICE_TEST("sys_trace: what was not fetched before the stop is lost", after_stop, two_cores)

static void one_event(nrt_sys_trace_config_t *config)
{
	lib.nrt_sys_trace_config_set_max_events_per_nc(config, 1);
}

static int limit(void *arg)
{
	json_t *events;
	struct job j;
	float value = 1;

	WANT(begin(arg, one_event) == 0);
	WANT(job_open(&j, ADD_MODEL, 0) == 0);
	for (int i = 0; i < 400; i++) /* four events each */
		WANT_STATUS(lib.nrt_tensor_write(j.a, &value, 0, sizeof(value)), 0);
	events = fetch();
	WANT(json_array_size(events) == 1024);
	WANT(count_of(events, "nrt_tensor_write", "start") == 256); /* the last ones, whole */
	WANT(strict(events) == 0);
	json_decref(events);
	return 0;
}

DEVICE_TEST("sys_trace: the newest 1024 events are kept at least", limit, two_cores)

#define BUSY_RUNS 60

struct busy {
	struct job *job;
	_Atomic int left; /* threads that still run */
};

static void *busy_runs(void *arg)
{
	struct busy *b = arg;
	int failed = run_some(b->job, BUSY_RUNS);

	atomic_fetch_sub(&b->left, 1);
	return (void *)(intptr_t)failed;
}

/* Moves what is new to all; its number, or -1. */
static int fetch_into(json_t *all)
{
	json_t *events = fetch();
	int n = events ? (int)json_array_size(events) : -1;

	json_array_extend(all, events);
	json_decref(events);
	return n;
}

static int by_time(const void *a, const void *b)
{
	const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
	json_int_t from = number(x, "timestamp_ns"), to = number(y, "timestamp_ns");

	if (from != to)
		return from < to ? -1 : 1;
	return number(x, "id") < number(y, "id") ? -1 : 1;
}

/* The same events in the order of time: a device run may come with a later fetch than what it precedes. */
static json_t *in_order(json_t *events)
{
	size_t n = json_array_size(events);
	json_t **list = malloc((n + 1) * sizeof(*list)), *ordered = json_array();

	for (size_t i = 0; list && i < n; i++)
		list[i] = json_array_get(events, i);
	qsort(list, n, sizeof(*list), by_time);
	for (size_t i = 0; i < n; i++)
		json_array_append(ordered, list[i]);
	free(list);
	json_decref(events);
	return ordered;
}

static int meanwhile(void *arg)
{
	json_t *all = json_array();
	struct job job[2];
	struct busy busy[2] = {{&job[0], 1}, {&job[1], 1}};
	pthread_t thread[2];
	void *failed;

	WANT(begin(arg, NULL) == 0);
	for (int i = 0; i < 2; i++) {
		WANT(job_open(&job[i], ADD_MODEL, i) == 0);
		WANT(pthread_create(&thread[i], NULL, busy_runs, &busy[i]) == 0);
	}
	while (atomic_load(&busy[0].left) || atomic_load(&busy[1].left))
		WANT(fetch_into(all) >= 0);
	for (int i = 0; i < 2; i++)
		WANT(pthread_join(thread[i], &failed) == 0 && !failed);
	while (fetch_into(all) > 0)
		;
	all = in_order(all);
	WANT(count_on(all, 0) == count_on(all, 1));
	WANT(count_of(all, "nrt_execute", "start") == 2 * BUSY_RUNS);
	WANT(strict(all) == 0);
	json_decref(all);
	return 0;
}

DEVICE_TEST("sys_trace: fetches while threads run give every event once, together", meanwhile,
	two_cores)

/* ---- beside others ------------------------------------------------------------------------ */

static struct {
	size_t all, by_type[TRACE_TYPE_COUNT];
} agent_saw;

static int on_batch(
	void *ctx, uint32_t nc, uint32_t lane, const struct trace_record *records, size_t count)
{
	(void)ctx;
	(void)nc;
	(void)lane;
	for (size_t i = 0; i < count; i++) {
		agent_saw.all++;
		agent_saw.by_type[records[i].trace_type % TRACE_TYPE_COUNT]++;
	}
	return 0;
}

static int on_name(void *ctx, uint64_t id, const char *name, uint32_t len)
{
	(void)ctx;
	(void)id;
	(void)name;
	(void)len;
	return 0;
}

/* An agent wants everything and reads it; does its count of each type equal that of the fetch? */
static int with_agent(void *arg)
{
	struct ctl_reader *reader = NULL;
	struct agent a;
	json_t *events;
	struct job j;

	WANT(enter(arg) == 0);
	WANT(agent_listen(&a, ANNOUNCE_ENABLE) == 0);
	WANT_STATUS(init(), 0);
	WANT(pthread_join(a.thread, NULL) == 0);
	WANT_STATUS(start(NULL), 0);
	WANT(job_open(&j, ADD_MODEL, 0) == 0);
	WANT(run_some(&j, RUNS) == 0);
	events = fetch();
	WANT(strict(events) == 0);
	WANT(ctl_reader_open(a.control_fd, CTL_SUB_AGENT, &reader) == 0);
	WANT(ctl_reader_poll(reader, false, clock_boot().ns, on_batch, on_name, NULL) > 0);
	ctl_reader_close(reader);
	WANT(agent_saw.all == json_array_size(events));
	for (uint32_t t = 0; t < TRACE_TYPE_COUNT; t++) {
		const char *name = trace_event_info(t)->name;

		WANT(agent_saw.by_type[t] == count_of(events, name, "start") +
						     count_of(events, name, "stop") +
						     count_of(events, name, "instant"));
	}
	json_decref(events);
	return 0;
}

DEVICE_TEST(
	"sys_trace: an agent that records and a fetch count the same events", with_agent, two_cores)

static int agent_wants_more(void *arg)
{
	struct agent a;
	json_t *events;
	struct job j, k;

	WANT(enter(arg) == 0);
	WANT(agent_listen(&a, ANNOUNCE_ENABLE) == 0);
	WANT_STATUS(init(), 0);
	WANT(pthread_join(a.thread, NULL) == 0);
	WANT(job_open(&j, ADD_MODEL, 1) == 0); /* the agent's alone */
	WANT_STATUS(start(only_runs_of_core_1), 0);
	WANT(job_open(&k, ADD_MODEL, 0) == 0);
	WANT(run_some(&k, RUNS) == 0);
	WANT(run_some(&j, RUNS) == 0);
	events = fetch();
	WANT(strict(events) == 0 && json_array_size(events) == 6 * RUNS);
	json_decref(events);
	WANT_STATUS(lib.nrt_sys_trace_stop(), 0);
	WANT(run_some(&j, 1) == 0);
	WANT_STATUS(start(only_runs_of_core_1), 0);
	events = fetch();
	WANT(json_is_array(events) && json_array_size(events) == 0);
	json_decref(events);
	return 0;
}

DEVICE_TEST("sys_trace: what an agent wants changes nothing of what a fetch gives",
	agent_wants_more, two_cores)

static int worker(void *arg)
{
	json_t *events;
	struct job j, k;

	WANT(begin(arg, NULL) == 0);
	WANT_STATUS(lib.nrt_build_global_comm(1, 5, 8), 0);
	WANT(job_open(&j, ADD_MODEL, 0) == 0);
	WANT(job_open(&k, ADD_MODEL, 1) == 0);
	events = fetch();
	for (size_t i = 0; i < json_array_size(events); i++) {
		const json_t *e = json_array_get(events, i);

		WANT(number(e, "worker_gid") == (number(e, "nc_idx") == 1 ? 5 : -1));
	}
	json_decref(events);
	return 0;
}

/* A rank is a worker, also when it has joined nothing before. */
static int ranked(void *arg)
{
	nrt_model_t *m = NULL;
	json_t *events;
	struct job j;

	setenv("NEURON_RT_ROOT_COMM_ID", "localhost:1", 1);
	WANT(begin(arg, NULL) == 0);
	WANT_STATUS(lib.nrt_load_collectives(COPY_MODEL, strlen(COPY_MODEL), 1, -1, 6, 8, &m), 0);
	json_decref(fetch());
	WANT(job_open(&j, ADD_MODEL, 1) == 0);
	events = fetch();
	WANT(json_array_size(events) > 0);
	for (size_t i = 0; i < json_array_size(events); i++)
		WANT(number(json_array_get(events, i), "worker_gid") == 6);
	json_decref(events);
	return 0;
}

DEVICE_TEST("sys_trace: a core that a rank is loaded on shows the rank's number", ranked, two_cores)

DEVICE_TEST("sys_trace: a core that has joined a communicator shows its worker's number", worker,
	two_cores)
