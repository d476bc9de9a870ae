/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_async_test.c - executions in the background, the callback that is told of them, and what both and
 * scheduled work leave on the timeline.
 */
#include <pthread.h>

#include "runtime/base/clock.h"
#include "runtime/trace/event_registry.h"
#include "runtime/trace/ring.h"
#include "tests/shim/shim.h"
#include "tests/unit/fake_agent.h"
#include "tests/unit/schedule_fixture.h"
#include "tests/unit/sys_trace_reader.h"

static int up(void *arg)
{
	WANT(enter(arg) == 0);
	WANT_STATUS(init(), 0);
	return 0;
}

/* ---- the callback ------------------------------------------------------------------------- */

static struct told told[64];
static _Atomic int tellings;

static void note(void *params, uint32_t model_id, uint32_t vnc, uint64_t job_id, NRT_STATUS status)
{
	struct told *list = params;

	list[atomic_fetch_add(&tellings, 1) % 64] = (struct told){model_id, vnc, job_id, status};
}

static int tells(void *arg)
{
	NRT_STATUS good, bad = UNSET;
	nrta_seq_t first, second, third;
	struct job j, k;

	WANT(up(arg) == 0);
	WANT_STATUS(lib.nrt_register_async_exec_callback(note, told), 0);
	WANT(filled_job(&j, 1) == 0 && filled_job(&k, 1) == 0);
	WANT_STATUS(schedule(&j, &good, &first), 0);
	WANT_STATUS(lib.nrta_execute_schedule(k.model, k.out, k.in, 0, &bad, &second), 0);
	WANT_STATUS(lib.nrt_async_drain_queued_execs(1), 0);
	WANT(tellings == 2); /* drained: told as well */
	WANT(told[0].vnc == 1 && told[0].job_id == first && told[0].status == 0);
	WANT(told[1].vnc == 1 && told[1].job_id == second);
	WANT(told[1].status == NRT_EXEC_BAD_INPUT && bad == NRT_EXEC_BAD_INPUT && good == 0);
	WANT(told[0].model_id && told[1].model_id && told[0].model_id != told[1].model_id);
	WANT_STATUS(lib.nrt_execute(j.model, j.in, j.out), 0); /* waited for: not told */
	WANT_STATUS(lib.nrt_register_async_exec_callback(NULL, told), 0);
	WANT_STATUS(schedule(&j, &good, &third), 0);
	WANT_STATUS(lib.nrt_async_drain_queued_execs(1), 0);
	WANT(is_done(third) && tellings == 2);
	/* With nrt_close the callback is forgotten. */
	WANT_STATUS(lib.nrt_register_async_exec_callback(note, told), 0);
	lib.nrt_close();
	WANT_STATUS(init(), 0);
	WANT(filled_job(&j, 1) == 0);
	WANT_STATUS(schedule(&j, &good, &third), 0);
	WANT_STATUS(lib.nrt_async_drain_queued_execs(1), 0);
	WANT(is_done(third) && tellings == 2);
	lib.nrt_close();
	return 0;
}

QUEUE_TEST("callback: told once of each scheduled execution, until it is removed or nrt_close",
	tells, two_cores)

/* From within: schedules the next, works with tensors, executes, asks, and is refused what would wait for
 * itself. */
#define CHAIN 12

static struct chain {
	struct job job;
	NRT_STATUS rets[CHAIN], moved[CHAIN];
	uint64_t bytes;
	_Atomic int length, failed;
} chain;

static int next_link(struct chain *c, nrta_seq_t job_id)
{
	int n = atomic_load(&c->length);
	nrta_seq_t seq;
	float a[8];

	WANT(is_done(job_id) && c->rets[n] == 0);
	WANT_STATUS(lib.nrt_async_drain_queued_execs(0), NRT_FAILURE);
	WANT_STATUS(lib.nrt_tensor_read(c->job.c, a, 0, sizeof(a)), 0);
	WANT(a[1] == 21.0f);
	WANT_STATUS(lib.nrt_execute(c->job.model, c->job.in, c->job.out), 0);
	WANT_STATUS(lib.nrta_tensor_read(&c->bytes, c->job.a, 0, 8, 0, 0, &c->moved[n], &seq), 0);
	lib.nrt_close(); /* refused */
	WANT_STATUS(init(), 0);
	if (n + 1 < CHAIN)
		WANT_STATUS(schedule(&c->job, &c->rets[n + 1], &seq), 0);
	atomic_store(&c->length, n + 1);
	return 0;
}

static void extend(
	void *params, uint32_t model_id, uint32_t vnc, uint64_t job_id, NRT_STATUS status)
{
	struct chain *c = params;

	(void)model_id;
	if (status || vnc != 0 || next_link(c, job_id) != 0)
		atomic_store(&c->failed, 1);
}

static bool chain_ends(void *arg)
{
	struct chain *c = arg;

	return atomic_load(&c->failed) || atomic_load(&c->length) == CHAIN;
}

static int reenters(void *arg)
{
	nrta_seq_t seq;

	WANT(up(arg) == 0);
	WANT(filled_job(&chain.job, 0) == 0);
	WANT_STATUS(lib.nrt_register_async_exec_callback(extend, &chain), 0);
	WANT_STATUS(schedule(&chain.job, &chain.rets[0], &seq), 0);
	WANT(program_until(chain_ends, &chain, 60) && !chain.failed);
	WANT(said(arg, "inside of the library already"));
	WANT_STATUS(lib.nrt_async_drain_queued_execs(0), 0);
	lib.nrt_close();
	for (int i = 0; i < CHAIN; i++)
		WANT(chain.rets[i] == 0 && chain.moved[i] == 0);
	return 0;
}

QUEUE_TEST("callback: it may call the library, and what would wait for itself is refused", reenters,
	two_cores)

static void *drains(void *arg)
{
	(void)arg;
	return (void *)(intptr_t)lib.nrt_async_drain_queued_execs(0);
}

/* nrt_close waits for a callback that is running; after it there is none. */
static void *closes(void *arg)
{
	lib.nrt_close();
	return arg;
}

static bool is_closing(void *arg)
{
	(void)arg;
	return lib.nrt_unload(NULL) == NRT_CLOSED;
}

static int callback_at_the_end(void *arg)
{
	pthread_t closing, draining;
	NRT_STATUS rets[4];
	nrta_seq_t seq;
	void *status;
	struct gate g;
	struct job j;

	WANT(up(arg) == 0);
	WANT(filled_job(&j, 0) == 0);
	WANT(gate_close(&g, &j) == 0);
	WANT(pthread_create(&draining, NULL, drains, NULL) == 0);
	for (int i = 0; i < 4; i++)
		WANT_STATUS(schedule(&j, &rets[i], &seq), 0);
	WANT(pthread_create(&closing, NULL, closes, NULL) == 0);
	WANT(program_until(is_closing, NULL, 60));
	WANT(g.calls == 1);
	gate_open(&g);
	WANT(pthread_join(draining, &status) == 0);
	/* It was in, or it came too late. */
	WANT(status == NULL || (intptr_t)status == NRT_CLOSED ||
		(intptr_t)status == NRT_UNINITIALIZED);
	WANT(pthread_join(closing, NULL) == 0);
	WANT(g.calls == 5 && g.last.status == 0);
	for (int i = 0; i < 4; i++)
		WANT(rets[i] == 0);
	return 0;
}

QUEUE_TEST("callback: nrt_close waits for it, and it is told of the last", callback_at_the_end,
	two_cores)

/* ---- in the background -------------------------------------------------------------------- */

struct poster {
	const struct job *job;
	_Atomic int posted;
};

static void *posts_one(void *arg)
{
	struct poster *p = arg;
	NRT_STATUS status = lib.nrt_execute(p->job->model, p->job->in, p->job->out);

	atomic_store(&p->posted, 1);
	return (void *)(intptr_t)status;
}

static int posts(void *arg)
{
	struct poster late = {0};
	pthread_t thread;
	struct gate g;
	struct job j;
	void *status;

	setenv("NEURON_RT_ASYNC_EXEC_MAX_INFLIGHT_REQUESTS", "3", 1);
	WANT(up(arg) == 0);
	WANT(filled_job(&j, 0) == 0);
	WANT(gate_close(&g, &j) == 0);
	for (int i = 0; i < 3; i++) /* before their end: nothing of this queue is done */
		WANT_STATUS(lib.nrt_execute(j.model, j.in, j.out), 0);
	WANT(g.calls == 1);
	late.job = &j;
	WANT(pthread_create(&thread, NULL, posts_one, &late) == 0);
	sched_yield();
	WANT(!late.posted); /* all slots are taken, whenever the thread comes */
	gate_open(&g);
	WANT(pthread_join(thread, &status) == 0 && status == NULL);
	WANT_STATUS(lib.nrt_async_drain_queued_execs(0), 0);
	WANT(g.calls == 5 && g.last.status == 0 && g.last.vnc == 0);
	WANT(computed(j.c));
	/* What fails is told as well. */
	WANT_STATUS(lib.nrt_execute(j.model, j.out, j.in), 0);
	WANT_STATUS(lib.nrt_async_drain_queued_execs(0), 0);
	WANT(g.calls == 6 && g.last.status == NRT_EXEC_BAD_INPUT);
	WANT_STATUS(lib.nrt_execute(NULL, j.in, j.out), NRT_INVALID);
	lib.nrt_close();
	return 0;
}

QUEUE_TEST("background: nrt_execute returns before the end while there are slots", posts, two_cores)

/* Is it in the log since the last look? */
static bool said_now(const struct place *p, const char *text)
{
	char *all = program_text(p->log.s);
	bool found = all && strstr(all, text);

	free(all);
	return found && ftruncate(2, 0) == 0 && lseek(2, 0, SEEK_SET) == 0;
}

static int fails_unheard(void *arg)
{
	static const char text[] = "ntrace-model 2\nname bad\nstep PE 1ns fault error\n";
	nrt_tensor_set_t *none;
	nrt_model_t *m;

	setenv("NEURON_RT_ASYNC_EXEC_MAX_INFLIGHT_REQUESTS", "3", 1);
	WANT(up(arg) == 0);
	WANT_STATUS(lib.nrt_load(text, strlen(text), 0, -1, &m), 0);
	WANT_STATUS(lib.nrt_allocate_tensor_set(&none), 0);
	WANT_STATUS(lib.nrt_register_async_exec_callback(note, told), 0);
	WANT_STATUS(lib.nrt_execute(m, none, none), 0);
	WANT_STATUS(lib.nrt_async_drain_queued_execs(0), 0);
	WANT(tellings == 1 && told[0].status && !said_now(arg, "does not hear of it"));
	WANT_STATUS(lib.nrt_register_async_exec_callback(NULL, NULL), 0);
	for (int i = 0; i < 2; i++) {
		WANT_STATUS(lib.nrt_execute(m, none, none), 0);
		WANT_STATUS(lib.nrt_async_drain_queued_execs(0), 0);
		WANT(said_now(arg, "does not hear of it") == (i == 0));
	}
	WANT(tellings == 1);
	lib.nrt_close();
	return 0;
}

QUEUE_TEST("background: a failure that no callback is told of is in the log, once", fails_unheard,
	two_cores)

/* Lets the queue go on when the other thread is about to touch the tensors. */
struct opener {
	struct gate *gate;
	_Atomic int now;
};

static void *opens(void *arg)
{
	struct opener *o = arg;

	while (!atomic_load(&o->now))
		sched_yield();
	gate_open(o->gate);
	return NULL;
}

/* From the call on: what is read is what it makes, what is written comes behind it. */
static int holds_tensors(void *arg)
{
	float none[8] = {0}, c[8];
	pthread_t thread;
	struct gate g;
	struct job j;

	setenv("NEURON_RT_ASYNC_EXEC_MAX_INFLIGHT_REQUESTS", "3", 1);
	WANT(up(arg) == 0);
	for (int round = 0; round < 2; round++) {
		struct opener o = {.gate = &g};

		WANT(filled_job(&j, 0) == 0);
		WANT(gate_close(&g, &j) == 0);
		WANT_STATUS(lib.nrt_tensor_write(j.c, none, 0, sizeof(none)), 0);
		WANT_STATUS(lib.nrt_execute(j.model, j.in, j.out), 0);
		WANT(pthread_create(&thread, NULL, opens, &o) == 0);
		atomic_store(&o.now, 1);
		if (round == 0)
			WANT_STATUS(lib.nrt_tensor_read(j.c, c, 0, sizeof(c)), 0);
		else
			WANT_STATUS(lib.nrt_tensor_write(j.a, none, 0, sizeof(none)), 0);
		WANT(round > 0 || c[1] == 21.0f);
		WANT(pthread_join(thread, NULL) == 0);
		WANT_STATUS(lib.nrt_async_drain_queued_execs(0), 0);
		WANT(computed(j.c));
	}
	lib.nrt_close();
	return 0;
}

QUEUE_TEST("background: an execution holds its tensors from the call on", holds_tensors, two_cores)

/* A callback reads the output that the next execution, queued behind it, will write. */
static struct reading {
	struct job job;
	sem_t posted;
	_Atomic int right;
} reading;

static void reads_output(
	void *params, uint32_t model_id, uint32_t vnc, uint64_t job_id, NRT_STATUS status)
{
	struct reading *r = params;

	(void)model_id;
	(void)vnc;
	(void)job_id;
	sem_wait(&r->posted);
	atomic_fetch_add(&r->right, status == 0 && computed(r->job.c));
}

static int callback_reads(void *arg)
{
	setenv("NEURON_RT_ASYNC_EXEC_MAX_INFLIGHT_REQUESTS", "3", 1);
	WANT(up(arg) == 0);
	WANT(filled_job(&reading.job, 0) == 0);
	sem_init(&reading.posted, 0, 0);
	WANT_STATUS(lib.nrt_register_async_exec_callback(reads_output, &reading), 0);
	for (int i = 0; i < 3; i++)
		WANT_STATUS(lib.nrt_execute(reading.job.model, reading.job.in, reading.job.out), 0);
	for (int i = 0; i < 3; i++)
		sem_post(&reading.posted);
	WANT_STATUS(lib.nrt_async_drain_queued_execs(0), 0);
	WANT(reading.right == 3);
	lib.nrt_close();
	return 0;
}

QUEUE_TEST("background: a callback does not wait for what is queued behind it", callback_reads,
	two_cores)

/* A callback that finds all slots taken must not wait for its own thread. */
static struct greedy {
	struct job job;
	_Atomic int taken, status;
} greedy;

static void takes_all(void *params, uint32_t model_id, uint32_t vnc, uint64_t job_id, NRT_STATUS s)
{
	struct greedy *g = params;
	NRT_STATUS status;

	(void)model_id;
	(void)vnc;
	(void)job_id;
	if (s || atomic_load(&g->status))
		return;
	while ((status = lib.nrt_execute(g->job.model, g->job.in, g->job.out)) == 0)
		atomic_fetch_add(&g->taken, 1);
	atomic_store(&g->status, (int)status);
}

static int takes_slots(void *arg)
{
	setenv("NEURON_RT_ASYNC_EXEC_MAX_INFLIGHT_REQUESTS", "5", 1);
	WANT(up(arg) == 0);
	WANT(filled_job(&greedy.job, 0) == 0);
	WANT_STATUS(lib.nrt_register_async_exec_callback(takes_all, &greedy), 0);
	WANT_STATUS(lib.nrt_execute(greedy.job.model, greedy.job.in, greedy.job.out), 0);
	WANT_STATUS(lib.nrt_async_drain_queued_execs(0), 0);
	WANT(greedy.taken == 5 && greedy.status == NRT_QUEUE_FULL);
	lib.nrt_close();
	return 0;
}

QUEUE_TEST("background: a callback that finds no slot is refused", takes_slots, two_cores)

/* ---- the timeline ------------------------------------------------------------------------- */

static NRT_STATUS capture(void)
{
	nrt_sys_trace_config_t *config = NULL;
	NRT_STATUS status = lib.nrt_sys_trace_config_allocate(&config);

	if (!status)
		status = lib.nrt_sys_trace_start(config);
	lib.nrt_sys_trace_config_free(config);
	return status;
}

/* All events of this sequence number: how many, and how many of a type (NULL: any). */
static size_t numbered(const json_t *events, nrta_seq_t seq, const char *type)
{
	size_t n = 0, i;
	json_t *e;

	json_array_foreach(events, i, e)
	{
		const json_t *s = json_object_get(e, "nrta_seq_id");

		n += s && (nrta_seq_t)json_integer_value(s) == seq &&
		     (!type || !strcmp(text(e, "event_type"), type));
	}
	return n;
}

static size_t without_number(const json_t *events)
{
	size_t n = 0, i;
	json_t *e;

	json_array_foreach(events, i, e) n += json_object_get(e, "nrta_seq_id") == NULL;
	return n;
}

static int shows_numbers(void *arg)
{
	static const char *const spans[] = {"async_post_request", "nrt_execute", "kmgr_exec_core",
		"kbl_exec_pre", "nrt_model_submit", "kbl_exec_wait", "kbl_exec_post"};
	static const char *const per_core[] = {"notification_consume_errors", "nc_exec_running"};
	NRT_STATUS rets[2], moved[3] = {UNSET, UNSET, UNSET};
	nrta_seq_t seq[2], move[3];
	char bytes[32] = {0};
	json_t *events;
	size_t all = 0;
	struct job j;

	WANT(up(arg) == 0);
	WANT(filled_job(&j, 0) == 0);
	WANT_STATUS(capture(), 0);
	for (int i = 0; i < 2; i++)
		WANT_STATUS(schedule(&j, &rets[i], &seq[i]), 0);
	WANT(await(seq[1]));
	WANT_STATUS(lib.nrta_tensor_write(j.a, bytes, 0, 32, 0, 0, &moved[0], &move[0]), 0);
	WANT_STATUS(lib.nrta_tensor_read(bytes, j.c, 0, 32, 0, 0, &moved[1], &move[1]), 0);
	WANT_STATUS(lib.nrta_tensor_copy(j.a, 0, j.b, 0, 32, 0, 0, &moved[2], &move[2]), 0);
	WANT(await(move[2]) && !moved[0] && !moved[1] && !moved[2]);
	events = fetch();
	WANT(strict(events) == 0);
	for (int i = 0; i < 2; i++) {
		for (size_t k = 0; k < sizeof(spans) / sizeof(spans[0]); k++)
			WANT(numbered(events, seq[i], spans[k]) == 2);
		for (size_t k = 0; k < sizeof(per_core) / sizeof(per_core[0]); k++)
			WANT(numbered(events, seq[i], per_core[k]) == 4);
		WANT(number(json_object_get(
				    start_of(events, "async_post_request", (size_t)i), "data"),
			     "request_id") == i + 1);
		all += numbered(events, seq[i], NULL);
	}
	WANT(numbered(events, move[0], "nrt_tensor_write") == 2);
	WANT(numbered(events, move[0], "dmem_buf_copyin") == 2);
	WANT(numbered(events, move[1], "nrt_tensor_read") == 2);
	for (int i = 0; i < 3; i++)
		all += numbered(events, move[i], NULL);
	WANT(all == json_array_size(events) && without_number(events) == 0);
	/* The caller's thread posts, another one executes. */
	WANT(number(start_of(events, "async_post_request", 0), "thread_id") == gettid());
	WANT(number(start_of(events, "nrt_execute", 0), "thread_id") != gettid());
	json_decref(events);
	/* A thread's own calls have none. */
	WANT_STATUS(lib.nrt_execute(j.model, j.in, j.out), 0);
	events = fetch();
	WANT(json_array_size(events) > 0 && without_number(events) == json_array_size(events));
	json_decref(events);
	lib.nrt_close();
	return 0;
}

QUEUE_TEST("sys_trace: all events of scheduled work have its sequence number, and no others",
	shows_numbers, two_cores)

/* Those that a callback makes belong to no scheduled work. */
static void executes_too(void *params, uint32_t model_id, uint32_t vnc, uint64_t id, NRT_STATUS s)
{
	const struct job *j = params;

	(void)model_id;
	(void)vnc;
	(void)id;
	(void)s;
	(void)lib.nrt_execute(j->model, j->in, j->out);
}

static int callback_has_no_number(void *arg)
{
	nrta_seq_t seq;
	json_t *events;
	NRT_STATUS ret;
	struct job j;

	WANT(up(arg) == 0);
	WANT(filled_job(&j, 0) == 0);
	WANT_STATUS(lib.nrt_register_async_exec_callback(executes_too, &j), 0);
	WANT_STATUS(capture(), 0);
	WANT_STATUS(schedule(&j, &ret, &seq), 0);
	WANT_STATUS(lib.nrt_async_drain_queued_execs(0), 0);
	events = fetch();
	WANT(strict(events) == 0);
	WANT(count_of(events, "nrt_execute", "start") == 2);
	WANT(numbered(events, seq, "nrt_execute") == 2); /* one span */
	json_decref(events);
	lib.nrt_close();
	return 0;
}

QUEUE_TEST("sys_trace: calls from a callback have no sequence number", callback_has_no_number,
	two_cores)

static int shows_waiting(void *arg)
{
	struct poster late = {0};
	const json_t *wait;
	pthread_t thread;
	json_t *events;
	struct gate g;
	struct job j;

	setenv("NEURON_RT_ASYNC_EXEC_MAX_INFLIGHT_REQUESTS", "1", 1);
	WANT(up(arg) == 0);
	WANT(filled_job(&j, 0) == 0);
	WANT(gate_close(&g, &j) == 0);
	WANT_STATUS(capture(), 0);
	WANT_STATUS(lib.nrt_execute(j.model, j.in, j.out), 0);
	late.job = &j;
	WANT(pthread_create(&thread, NULL, posts_one, &late) == 0);
	for (events = fetch(); count_of(events, "nrt_async_sema_wait", "start") == 0;
		events = fetch())
		json_decref(events);
	WANT(count_of(events, "nrt_async_sema_wait", "stop") == 0);
	wait = start_of(events, "nrt_async_sema_wait", 0);
	WANT(number(json_object_get(wait, "data"), "available_request_slots") == 0);
	WANT(json_is_true(json_object_get(json_object_get(wait, "data"), "has_work")));
	json_decref(events);
	gate_open(&g);
	WANT(pthread_join(thread, NULL) == 0);
	WANT_STATUS(lib.nrt_async_drain_queued_execs(0), 0);
	events = fetch();
	WANT(count_of(events, "nrt_async_sema_wait", "stop") == 1);
	WANT(count_of(events, "async_post_request", "start") == 1); /* the other was fetched */
	WANT(count_of(events, "nrt_execute", "start") == 2);
	WANT(without_number(events) == json_array_size(events));
	json_decref(events);
	lib.nrt_close();
	return 0;
}

QUEUE_TEST("sys_trace: an execution in the background shows its posting and its wait for a slot",
	shows_waiting, two_cores)

/* ---- in rings ----------------------------------------------------------------------------- */

static struct {
	size_t with, without;
	uint64_t seq;
} ring_events;

static int count_records(
	void *ctx, uint32_t nc, uint32_t lane, const struct trace_record *records, size_t count)
{
	(void)ctx;
	(void)nc;
	(void)lane;
	for (size_t i = 0; i < count; i++)
		if (records[i].trace_type != TRACE_EXECUTE_API)
			continue;
		else if (records[i].has_nrta_seq_id && records[i].nrta_seq_id == ring_events.seq)
			ring_events.with++;
		else if (!records[i].has_nrta_seq_id && records[i].nrta_seq_id == 0)
			ring_events.without++;
	return 0;
}

static int recorded(void *arg)
{
	struct ctl_reader *reader = NULL;
	struct agent a;
	NRT_STATUS ret;
	struct job j;

	WANT(enter(arg) == 0);
	WANT(agent_listen(&a, ANNOUNCE_ENABLE) == 0);
	WANT_STATUS(init(), 0);
	WANT(pthread_join(a.thread, NULL) == 0);
	WANT(filled_job(&j, 1) == 0);
	WANT_STATUS(schedule(&j, &ret, &ring_events.seq), 0);
	WANT(await(ring_events.seq));
	WANT_STATUS(lib.nrt_execute(j.model, j.in, j.out), 0);
	lib.nrt_close();
	WANT(ctl_reader_open(a.control_fd, CTL_SUB_AGENT, &reader) == 0);
	WANT(ctl_reader_poll(reader, false, clock_boot().ns, count_records, NULL, NULL) > 0);
	ctl_reader_close(reader);
	WANT(ring_events.with == 2 && ring_events.without == 2);
	return 0;
}

QUEUE_TEST("nrt trace: records of scheduled work carry its sequence number", recorded, two_cores)
