/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_trace_test.c - what the runtime records of a program's calls, read as an agent reads it.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/trace/event_registry.h"
#include "runtime/trace/intern.h"
#include "runtime/trace/payload.h"
#include "runtime/trace/ring.h"
#include "tests/shim/shim.h"
#include "tests/unit/nrt_records.h"

#define RUNS 3

static int three_runs(void)
{
	struct job j;

	WANT(job_open(&j, ADD_MODEL, 1) == 0);
	for (int i = 0; i < RUNS; i++)
		WANT(job_run(&j, (float)i, 2.0f) == 0);
	lib.nrt_tensor_free(&j.a);
	return 0;
}

static int check_every_span(void)
{
	uint64_t starts = 0, stops = 0;

	for (size_t i = 0; i < got.count; i++) {
		const struct trace_record *r = &got.records[i];

		WANT(r->tracking_id != 0 && r->status == 0);
		WANT(r->nc_idx == 1);
		starts += r->phase == TRACE_START;
		stops += r->phase == TRACE_STOP;
		WANT(r->phase != TRACE_START || stop_of(r) != NULL);
		for (size_t k = 0; k < i; k++)
			WANT(r->phase == TRACE_STOP ||
				got.records[k].tracking_id != r->tracking_id);
	}
	WANT(starts == stops && starts > 0);
	return 0;
}

static int spans(void *arg)
{
	char name[64];

	WANT(record(arg, three_runs) == 0);
	WANT(check_every_span() == 0);
	WANT(count_of(TRACE_MODEL_LOAD, TRACE_START) == 1);
	WANT(count_of(TRACE_TENSOR_ALLOC, TRACE_START) == 3);
	WANT(count_of(TRACE_TENSOR_FREE, TRACE_START) == 1);
	WANT(count_of(TRACE_DMA_MEM_ALLOC, TRACE_START) == 4 + 3); /* programs, table, temp */
	WANT(count_of(TRACE_TENSOR_WRITE, TRACE_START) == 2 * RUNS);
	WANT(count_of(TRACE_TENSOR_READ, TRACE_START) == RUNS);
	WANT(count_of(TRACE_EXECUTE_API, TRACE_START) == RUNS);
	WANT(count_of(TRACE_DEVICE_EXEC, TRACE_START) == 2 * RUNS); /* physical cores */
	WANT(count_of(TRACE_TIMESTAMP_SYNC, TRACE_INSTANT) == 2 * RUNS);
	for (int k = 0; k < RUNS; k++) {
		WANT(nested(TRACE_TENSOR_READ, TRACE_DMEM_BUF_COPYOUT, k));
		WANT(nested(TRACE_EXECUTE_API, TRACE_EXEC_CORE, k));
		WANT(nested(TRACE_EXEC_CORE, TRACE_EXEC_PRE, k));
		WANT(nested(TRACE_EXEC_CORE, TRACE_MODEL_SUBMIT, k));
		WANT(nested(TRACE_EXEC_CORE, TRACE_EXEC_WAIT, k));
		WANT(nested(TRACE_EXEC_CORE, TRACE_EXEC_POST, k));
		WANT(nested(TRACE_EXEC_POST, TRACE_CONSUME_TPB_STATUS_NOTIFICATIONS, k));
		WANT(nested(TRACE_EXEC_POST, TRACE_CONSUME_TOPSP_CC_NOTIFICATIONS, k));
		for (int i = 2 * k; i < 2 * k + 2; i++) {
			WANT(nested_at(TRACE_EXEC_POST, k, TRACE_CONSUME_ERROR_NOTIFICATIONS, i));
			WANT(nested_at(TRACE_EXEC_POST, k, TRACE_CONSUME_POOL_STDIO, i));
		}
		WANT(stop_of(find(TRACE_MODEL_SUBMIT, TRACE_START, k))->timestamp_ns <=
			find(TRACE_EXEC_WAIT, TRACE_START, k)->timestamp_ns);
	}
	WANT(nested(TRACE_MODEL_LOAD, TRACE_DMA_MEM_ALLOC, 0));
	snprintf(name, sizeof(name), "%llu=adder;", (unsigned long long)intern_id("adder", 5));
	WANT(strcmp(got.names, name) == 0);
	return 0;
}

TEST("nrt trace: each call is a span, nested as documented", "[nrt][trace][vdev]")
{
	if (device_lacks())
		SKIP(device_lacks());
	with_device(spans, two_cores);
}

/* The copies of writes: the first belongs to the load, then one per write and one binding table per
 * execution. */
static int transfers(void *arg)
{
	int writes = 0;

	WANT(record(arg, three_runs) == 0);
	for (int k = 0; find(TRACE_DMEM_BUF_COPYIN, TRACE_START, k); k++) {
		const struct trace_record *copy = find(TRACE_DMEM_BUF_COPYIN, TRACE_START, k);
		const struct trace_record *write = find(TRACE_TENSOR_WRITE, TRACE_START, writes);
		struct trace_dmem_copy c;
		struct trace_tensor t;

		if (!write || copy->timestamp_ns < write->timestamp_ns ||
			copy->timestamp_ns > stop_of(write)->timestamp_ns)
			continue;
		memcpy(&c, copy->data, sizeof(c));
		memcpy(&t, write->data, sizeof(t));
		WANT(c.size == 32 && t.size == 32 && c.offset == 0 && c.mem_handle != 0);
		WANT(t.tensor_id == 1 + (uint64_t)(writes % 2));
		writes++;
	}
	WANT(writes == 2 * RUNS);
	return 0;
}

TEST("nrt trace: each tensor write holds one copy of its bytes", "[nrt][trace][vdev]")
{
	if (device_lacks())
		SKIP(device_lacks());
	with_device(transfers, two_cores);
}

static int device_runs(void *arg)
{
	WANT(record(arg, three_runs) == 0);
	for (int k = 0; k < 2 * RUNS; k++) {
		const struct trace_record *start = find(TRACE_DEVICE_EXEC, TRACE_START, k);
		const struct trace_record *stop = stop_of(start);
		const struct trace_record *point = find(TRACE_TIMESTAMP_SYNC, TRACE_INSTANT, k);
		const struct trace_record *wait = find(TRACE_EXEC_WAIT, TRACE_START, k / 2);
		const struct trace_record *submit = find(TRACE_MODEL_SUBMIT, TRACE_START, k / 2);
		struct trace_device_exec s;
		struct trace_device_stop e;
		struct trace_timestamp_sync y;
		struct trace_exec w;

		WANT(start && stop && point && wait && submit);
		memcpy(&s, start->data, sizeof(s));
		memcpy(&e, stop->data, sizeof(e));
		memcpy(&y, point->data, sizeof(y));
		memcpy(&w, wait->data, sizeof(w));
		/* Exactly what the model asks for: 20 us and 5 us. */
		WANT(e.sync.nc_timestamp_ns - s.sync.nc_timestamp_ns == 25000);
		WANT(stop->timestamp_ns - start->timestamp_ns == 25000);
		WANT(s.exec_id == (uint32_t)(k / 2 + 1) && y.exec_id == s.exec_id &&
			w.exec_id == s.exec_id);
		WANT(s.model_id == intern_id("adder", 5) && w.model_id == s.model_id);
		/* The two of logical core 1, each with its own clock. */
		WANT(s.device_core_idx == 2 + (uint32_t)k % 2);
		WANT(y.device_core_idx == s.device_core_idx && y.core_clocks == 2);
		WANT(s.sync.cpu_timestamp_ns == start->timestamp_ns);
		WANT(e.sync.cpu_timestamp_ns == stop->timestamp_ns);
		/* Within the bound, cause comes before effect. */
		WANT(start->timestamp_ns + y.sync_bound_ns >= submit->timestamp_ns);
		WANT(stop->timestamp_ns <= stop_of(wait)->timestamp_ns + y.sync_bound_ns);
		WANT(point->timestamp_ns >= wait->timestamp_ns &&
			point->timestamp_ns <= stop_of(wait)->timestamp_ns);
		WANT(y.sync_bound_ns > 0 && y.sync.cpu_timestamp_ns <= point->timestamp_ns);
	}
	return 0;
}

TEST("nrt trace: a run on the device lasts exactly what its model says", "[nrt][trace][vdev]")
{
	if (device_lacks())
		SKIP(device_lacks());
	with_device(device_runs, two_cores);
}

static int failing_calls(void)
{
	nrt_model_t *m = NULL;
	nrt_tensor_set_t *set = NULL;
	struct job j;
	char bytes[40] = {0};

	WANT(job_open(&j, ADD_MODEL, 0) == 0);
	WANT_STATUS(lib.nrt_tensor_write(j.a, bytes, 0, 40), NRT_INVALID);
	WANT_STATUS(lib.nrt_allocate_tensor_set(&set), 0);
	WANT_STATUS(lib.nrt_execute(j.model, set, set), NRT_EXEC_BAD_INPUT);
	WANT_STATUS(lib.nrt_load("x", 1, 9, 1, &m), NRT_INVALID); /* no such core */
	WANT_STATUS(lib.nrt_load("x", 1, 0, 1, &m), NRT_INVALID);
	return 0;
}

static int failures(void *arg)
{
	const struct trace_record *nowhere, *load;

	WANT(record(arg, failing_calls) == 0);
	WANT(stop_of(find(TRACE_TENSOR_WRITE, TRACE_START, 0))->status == NRT_INVALID);
	WANT(stop_of(find(TRACE_EXECUTE_API, TRACE_START, 0))->status == NRT_EXEC_BAD_INPUT);
	/* The ring of no core was made first, so its records come first. */
	nowhere = find(TRACE_MODEL_LOAD, TRACE_START, 0);
	WANT(nowhere && nowhere->nc_idx == TRACE_NC_UNKNOWN);
	WANT(stop_of(nowhere)->status == NRT_INVALID);
	load = find(TRACE_MODEL_LOAD, TRACE_START, 2);
	WANT(load && load->nc_idx == 0 && stop_of(load)->status == NRT_INVALID);
	return 0;
}

TEST("nrt trace: calls that fail carry their status", "[nrt][trace][vdev]")
{
	if (device_lacks())
		SKIP(device_lacks());
	with_device(failures, two_cores);
}

static int two_models(void)
{
	struct job a, b;

	WANT(job_open(&a, ADD_MODEL, 1) == 0);
	WANT(job_open(&b, COPY_MODEL, 1) == 0);
	WANT(job_run(&b, 1.0f, 0.0f) == 0); /* loaded last: bound already */
	WANT(job_run(&a, 1.0f, 2.0f) == 0);
	WANT(job_run(&a, 2.0f, 2.0f) == 0);
	return 0;
}

static int switches(void *arg)
{
	WANT(record(arg, two_models) == 0);
	WANT(count_of(TRACE_MODEL_SWITCH, TRACE_START) == 1);
	return 0;
}

TEST("nrt trace: a core that changes its model shows the switch", "[nrt][trace][vdev]")
{
	if (device_lacks())
		SKIP(device_lacks());
	with_device(switches, two_cores);
}

/* ---- requests that fail ------------------------------------------------------------------- */

/* The status of the last span of a type; -1 when there is none, -2 when one of that type is open. */
static int last_status(enum trace_type type)
{
	int n = count_of(type, TRACE_START);
	const struct trace_record *stop = n ? stop_of(find(type, TRACE_START, n - 1)) : NULL;

	return n == 0 ? -1 : count_of(type, TRACE_STOP) != n || !stop ? -2 : (int)stop->status;
}

static int expected; /* of the execution */

static int one_execution(void)
{
	struct job a, b;
	NRT_STATUS status;

	WANT(job_open(&a, ADD_MODEL, 0) == 0);
	WANT(job_open(&b, COPY_MODEL, 0) == 0);
	status = lib.nrt_execute(a.model, a.in, a.out);
	WANT_STATUS(status, expected);
	return 0;
}

#define HW NRT_HW_ERROR
static const struct failing {
	const char *option;
	int pre, change, submit, wait, ack, errors, post, core; /* -1: did not begin */
} failing[] = {
	{"--fail=DMA_QUEUE_INIT:EIO:5", HW, HW, -1, -1, -1, -1, -1, HW},
	{"--fail=DMA_QUEUE_INIT:EIO:6", HW, HW, -1, -1, -1, -1, -1, HW},
	{"--fail=DMA_QUEUE_COPY_START:EIO:1", 0, 0, HW, -1, -1, -1, -1, HW},
	{"--fail=DMA_QUEUE_COPY_START:EIO:2", 0, 0, HW, -1, -1, -1, -1, HW},
	{"--fail=DMA_ACK_COMPLETED:EIO:1", 0, 0, 0, 0, HW, 0, 0, 0},
	{"--fail=DMA_ACK_COMPLETED:EIO:2", 0, 0, 0, 0, HW, 0, 0, 0},
};

static const struct failing *case_now;

static int failed_request(void *arg)
{
	const struct failing *f = case_now;

	expected = f->core;
	WANT(record(arg, one_execution) == 0);
	WANT(last_status(TRACE_EXEC_PRE) == f->pre);
	WANT(last_status(TRACE_MODEL_SWITCH) == f->change);
	WANT(last_status(TRACE_MODEL_SUBMIT) == f->submit);
	WANT(last_status(TRACE_EXEC_WAIT) == f->wait);
	WANT(last_status(TRACE_CONSUME_TPB_STATUS_NOTIFICATIONS) == f->ack);
	WANT(last_status(TRACE_CONSUME_ERROR_NOTIFICATIONS) == f->errors);
	WANT(last_status(TRACE_EXEC_POST) == f->post);
	WANT(last_status(TRACE_EXEC_CORE) == f->core);
	WANT(last_status(TRACE_EXECUTE_API) == f->core);
	return 0;
}

TEST("nrt trace: a request that fails closes every span around it with its status",
	"[nrt][trace][vdev]")
{
	if (device_lacks())
		SKIP(device_lacks());
	for (size_t i = 0; i < sizeof(failing) / sizeof(failing[0]); i++) {
		const char *options[] = {"--cores=4", failing[i].option, NULL};

		test_info("%s", failing[i].option);
		case_now = &failing[i];
		with_device(failed_request, options);
	}
}
