/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_tensor_wait_test.c - what tensors have to do with executions: transfers that wait for one, counters of
 * completions; and the events of transfers.
 *
 * Executions are played by the test, on the runtime that is linked into it.
 */
#include <stdatomic.h>
#include <unistd.h>

#include "runtime/exec/tensor.h"
#include "tests/shim/shim.h"
#include "tests/unit/nrt_init_fixture.h"
#include "tests/unit/sys_trace_reader.h"

#define DEVICE NRT_TENSOR_PLACEMENT_DEVICE
#define HOST NRT_TENSOR_PLACEMENT_HOST

#define DEVICE_TEST(name, fn, options)        \
	TEST(name, "[nrt][tensor][vdev]")     \
	{                                     \
		if (device_lacks())           \
			SKIP(device_lacks()); \
		with_device(fn, options);     \
	}

static int begin(const struct place *p)
{
	nrt_sys_trace_config_t *config = NULL;

	WANT(enter_linked(p, "WARN") == 0);
	WANT_STATUS(init(), 0);
	WANT_STATUS(lib.nrt_sys_trace_config_allocate(&config), 0);
	WANT_STATUS(lib.nrt_sys_trace_start(config), 0);
	lib.nrt_sys_trace_config_free(config);
	return 0;
}

/* What the handle stands for.  The table has a reference. */
static struct nrt_tensor *inside(const nrt_tensor_t *handle)
{
	struct object *o = NULL;

	if (object_get(handle, OBJECT_TENSOR, &o) == NRT_SUCCESS)
		object_put(o);
	return (struct nrt_tensor *)o;
}

/* ---- events ------------------------------------------------------------------------------- */

static int batch_events(void *arg)
{
	char bytes[64] = "";
	const nrt_tensor_batch_op_t ops[] = {{0, 10, bytes}, {10, 20, bytes}, {0, 0, bytes}};
	nrt_tensor_t *a, *b, *c, *h;
	const json_t *data;
	json_t *events;

	WANT(begin(arg) == 0);
	WANT_STATUS(lib.nrt_tensor_allocate(DEVICE, 1, 64, "a", &a), 0);
	WANT_STATUS(lib.nrt_tensor_allocate(DEVICE, 1, 64, "b", &b), 0);
	WANT_STATUS(lib.nrt_tensor_allocate(DEVICE, 0, 64, "c", &c), 0);
	WANT_STATUS(lib.nrt_tensor_allocate(HOST, 0, 64, "h", &h), 0);
	json_decref(fetch());
	{
		const nrt_tensor_batch_t in[] = {
			{a, ops, 2}, {b, ops, 3}, {h, ops, 1}, {c, ops, 1}};

		WANT_STATUS(lib.nrt_tensor_write_batch(in, 4, false), 0);
		WANT_STATUS(lib.nrt_tensor_read_batch(in, 1, false), 0);
		WANT_STATUS(lib.nrt_tensor_read_batch(NULL, 1, false), NRT_INVALID);
	}
	events = fetch();
	WANT(strict(events) == 0);
	WANT(count_of(events, "nrt_tensor_write_batch", "start") == 1);
	WANT(count_of(events, "nrt_tensor_read_batch", "start") == 1);
	WANT(count_of(events, "dmem_buf_batch_copyin", "start") == 2);
	WANT(count_of(events, "dmem_buf_batch_copyout", "start") == 1);
	WANT(count_of(events, "dmem_buf_copyin", "start") == 0);
	WANT(nested(events, "nrt_tensor_write_batch", "dmem_buf_batch_copyin", 0));
	WANT(nested(events, "nrt_tensor_read_batch", "dmem_buf_batch_copyout", 0));
	data = json_object_get(start_of(events, "nrt_tensor_write_batch", 0), "data");
	WANT(number(data, "num_batches") == 4);
	data = json_object_get(start_of(events, "dmem_buf_batch_copyin", 0), "data");
	WANT(!strcmp(text(data, "mem_type"), "device") && number(data, "num_batches") == 2);
	WANT(number(data, "total_num_ops") == 5 && number(data, "total_size") == 60);
	WANT(number(start_of(events, "dmem_buf_batch_copyin", 1), "nc_idx") == 0);
	json_decref(events);
	lib.nrt_close();
	return 0;
}

DEVICE_TEST("tensor events: a batch is one span, in it one for the tensors of each core",
	batch_events, two_cores)

static int transfer_events(void *arg)
{
	char bytes[64] = "";
	nrt_tensor_t *d, *h, *slice, *empty;
	const json_t *data;
	json_t *events;

	WANT(begin(arg) == 0);
	WANT_STATUS(lib.nrt_tensor_allocate(DEVICE, 1, 64, "d", &d), 0);
	WANT_STATUS(lib.nrt_tensor_allocate(HOST, 1, 64, "h", &h), 0);
	WANT_STATUS(lib.nrt_tensor_allocate_slice(d, 10, 20, "slice", &slice), 0);
	WANT_STATUS(lib.nrt_tensor_allocate_empty("empty", &empty), 0);
	json_decref(fetch());
	WANT_STATUS(lib.nrt_tensor_write(slice, bytes, 3, 5), 0);
	WANT_STATUS(lib.nrt_tensor_copy(h, 0, slice, 1, 6), 0);
	WANT_STATUS(lib.nrt_tensor_copy(slice, 1, h, 0, 7), 0);
	WANT_STATUS(lib.nrt_tensor_write(slice, bytes, 3, 500), NRT_INVALID);
	lib.nrt_tensor_free(&d); /* the slice has the memory */
	lib.nrt_tensor_free(&empty);
	events = fetch();
	WANT(strict(events) == 0);
	WANT(count_of(events, "nrt_tensor_write", "start") == 2);
	WANT(nested(events, "nrt_tensor_write", "dmem_buf_copyin", 0));
	data = json_object_get(start_of(events, "dmem_buf_copyin", 0), "data");
	WANT(number(data, "offset") == 13 && number(data, "size") == 5);
	data = json_object_get(start_of(events, "dmem_buf_copyin", 1), "data");
	WANT(number(data, "offset") == 11 && number(data, "size") == 6);
	data = json_object_get(start_of(events, "dmem_buf_copyout", 0), "data");
	WANT(number(data, "offset") == 11 && number(data, "size") == 7);
	WANT(count_of(events, "nrt_tensor_free", "start") == 2);
	WANT(count_of(events, "nrt_dma_mem_dealloc", "start") == 0);
	json_decref(events);
	lib.nrt_tensor_free(&slice);
	events = fetch();
	WANT(nested(events, "nrt_tensor_free", "nrt_dma_mem_dealloc", 0));
	json_decref(events);
	lib.nrt_close();
	return 0;
}

DEVICE_TEST("tensor events: transfers of slices say where in the memory they are", transfer_events,
	two_cores)

/* ---- transfers and executions ------------------------------------------------------------- */

struct job_of_thread {
	nrt_tensor_t *tensor;
	NRT_STATUS (*call)(nrt_tensor_t *tensor);
	NRT_STATUS status;
};

static void *run_job(void *arg)
{
	struct job_of_thread *j = arg;

	j->status = j->call(j->tensor);
	return NULL;
}

static NRT_STATUS read_it(nrt_tensor_t *t)
{
	char bytes[8];

	return lib.nrt_tensor_read(t, bytes, 0, 8);
}

static NRT_STATUS write_it(nrt_tensor_t *t)
{
	return lib.nrt_tensor_write(t, "written", 0, 8);
}

static NRT_STATUS fill_it(nrt_tensor_t *t)
{
	return lib.nrt_tensor_memset(t, 0, 1, 8);
}

static NRT_STATUS copy_it(nrt_tensor_t *t)
{
	return lib.nrt_tensor_copy(t, 0, t, 8, 8);
}

static NRT_STATUS batch_it(nrt_tensor_t *t)
{
	char bytes[8] = "";
	const nrt_tensor_batch_op_t op = {0, 8, bytes};
	const nrt_tensor_batch_t batch = {t, &op, 1};

	return lib.nrt_tensor_write_batch(&batch, 1, false);
}

static NRT_STATUS batch_unsafe(nrt_tensor_t *t)
{
	char bytes[8] = "";
	const nrt_tensor_batch_op_t op = {0, 8, bytes};
	const nrt_tensor_batch_t batch = {t, &op, 1};

	return lib.nrt_tensor_write_batch(&batch, 1, true);
}

/* Fetches until a transfer has begun to wait. */
static bool someone_waits(void *ret_data)
{
	json_t *events = fetch(), **data = ret_data;
	const json_t *start = start_of(events, "tensor_block_while_exec", 0);

	if (start)
		*data = json_incref(json_object_get(start, "data"));
	json_decref(events);
	return *data != NULL;
}

static int waits(nrt_tensor_t *t, bool exec_writes, NRT_STATUS (*call)(nrt_tensor_t *tensor))
{
	struct job_of_thread j = {.tensor = t, .call = call, .status = 99};
	struct tensor_use use;
	json_t *data = NULL;
	pthread_t thread;

	tensor_use_begin(inside(t), exec_writes, &use);
	WANT(pthread_create(&thread, NULL, run_job, &j) == 0);
	WANT(program_until(someone_waits, &data, 10));
	WANT(number(data, "pending_writer_count") == exec_writes);
	WANT(number(data, "pending_reader_count") == !exec_writes);
	WANT(number(data, "tensor_id") > 0);
	json_decref(data);
	tensor_use_end(&use);
	tensor_use_end(&use);
	WANT(pthread_join(thread, NULL) == 0);
	WANT_STATUS(j.status, 0);
	return 0;
}

static int blocked(void *arg)
{
	nrt_tensor_t *whole, *t, *other;
	struct tensor_use use;
	json_t *events;

	WANT(begin(arg) == 0);
	WANT_STATUS(lib.nrt_tensor_allocate(DEVICE, 1, 64, "whole", &whole), 0);
	WANT_STATUS(lib.nrt_tensor_allocate_slice(whole, 0, 32, "t", &t), 0);
	WANT_STATUS(lib.nrt_tensor_allocate_slice(whole, 32, 32, "other", &other), 0);
	WANT(waits(t, true, read_it) == 0);
	WANT(waits(t, true, write_it) == 0);
	WANT(waits(t, false, write_it) == 0);
	WANT(waits(t, false, fill_it) == 0);
	WANT(waits(t, true, copy_it) == 0);
	WANT(waits(t, false, copy_it) == 0);
	WANT(waits(t, true, batch_it) == 0);

	/* None of these is in the way. */
	json_decref(fetch());
	tensor_use_begin(inside(t), false, &use);
	WANT_STATUS(read_it(t), 0);
	WANT_STATUS(read_it(whole), 0);
	WANT_STATUS(write_it(other), 0);
	WANT_STATUS(batch_unsafe(t), 0);
	tensor_use_end(&use);
	events = fetch();
	WANT(strict(events) == 0 && count_of(events, "tensor_block_while_exec", "start") == 0);
	json_decref(events);
	lib.nrt_close();
	return 0;
}

DEVICE_TEST("tensor: a transfer waits for the executions that it would disturb, and for no others",
	blocked, two_cores)

/* An execution on a thread of its own: it says what was in the tensor when it began to run. */
struct late_execution {
	struct tensor_use use;
	const char *bytes;
	char seen[8];
	_Atomic pid_t thread;
	atomic_bool ended;
};

static void *run_late(void *arg)
{
	struct late_execution *e = arg;

	atomic_store(&e->thread, gettid());
	tensor_uses_run(&e->use, 1, false);
	memcpy(e->seen, e->bytes, sizeof(e->seen));
	tensor_use_end(&e->use);
	atomic_store(&e->ended, true);
	return NULL;
}

/* Has it ended, or does it sleep? */
static bool is_late(void *arg)
{
	struct late_execution *e = arg;
	char path[64], state = 0;
	FILE *f;

	if (atomic_load(&e->ended))
		return true;
	(void)snprintf(path, sizeof(path), "/proc/self/task/%d/stat", atomic_load(&e->thread));
	f = fopen(path, "r");
	if (!f || fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
		state = 0;
	if (f)
		fclose(f);
	return state == 'S';
}

/* The first runs, a transfer waits for it, another execution comes. */
static int in_order(void *arg)
{
	struct job_of_thread j = {.call = write_it, .status = 99};
	struct late_execution late = {0};
	struct tensor_use first, idle, third;
	json_t *data = NULL;
	pthread_t writer, executor;
	nrt_tensor_t *t;

	WANT(begin(arg) == 0);
	WANT_STATUS(lib.nrt_tensor_allocate(HOST, 0, 16, "t", &t), 0);
	j.tensor = t;
	late.bytes = lib.nrt_tensor_get_va(t);
	tensor_use_begin(inside(t), false, &first);
	tensor_uses_run(&first, 1, false);
	WANT(pthread_create(&writer, NULL, run_job, &j) == 0);
	WANT(program_until(someone_waits, &data, 10));
	json_decref(data);
	data = NULL;
	tensor_use_begin(inside(t), false, &late.use);
	WANT(pthread_create(&executor, NULL, run_late, &late) == 0);
	WANT(program_until(is_late, &late, 10));
	WANT(!atomic_load(&late.ended)); /* the transfer was before it */

	/* Whoever meets others passes; they would wait for him. */
	tensor_use_begin(inside(t), false, &third);
	tensor_uses_run(&third, 1, true);
	tensor_use_end(&third);
	tensor_use_end(&first);
	WANT(pthread_join(writer, NULL) == 0);
	WANT(pthread_join(executor, NULL) == 0);
	WANT_STATUS(j.status, 0);
	WANT(!strcmp(late.seen, "written"));

	/* A transfer that waits for one that does not run yet lets others pass. */
	tensor_use_begin(inside(t), false, &idle);
	WANT(pthread_create(&writer, NULL, run_job, &j) == 0);
	WANT(program_until(someone_waits, &data, 10));
	json_decref(data);
	tensor_use_begin(inside(t), false, &third);
	tensor_uses_run(&third, 1, false);
	tensor_use_end(&third);
	tensor_use_end(&idle);
	WANT(pthread_join(writer, NULL) == 0);
	lib.nrt_close();
	return 0;
}

DEVICE_TEST("tensor: executions and transfers go on in the order in which they came", in_order,
	two_cores)

/* Two threads that execute, and have the bytes between them all the time. */
struct executors {
	nrt_model_t *model;
	nrt_tensor_set_t *in, *out;
	_Atomic uint32_t runs;
	atomic_bool stop;
};

static void *execute_on(void *arg)
{
	struct executors *e = arg;

	while (!atomic_load(&e->stop) && atomic_fetch_add(&e->runs, 1) < 1000)
		if (lib.nrt_execute(e->model, e->in, e->out))
			return NULL;
	return NULL;
}

static int not_starved(void *arg)
{
	static const char text[] = "ntrace-model 1\nname slow_copy\ninput a int8 8\n"
				   "output c int8 8\nstep PE 2ms copy a c\n";
	struct executors e = {0};
	nrt_tensor_t *a, *c;
	pthread_t threads[2];

	WANT(begin(arg) == 0);
	WANT_STATUS(lib.nrt_load(text, strlen(text), 0, -1, &e.model), 0);
	WANT_STATUS(lib.nrt_tensor_allocate(DEVICE, 0, 8, "a", &a), 0);
	WANT_STATUS(lib.nrt_tensor_allocate(DEVICE, 0, 8, "c", &c), 0);
	WANT_STATUS(lib.nrt_allocate_tensor_set(&e.in), 0);
	WANT_STATUS(lib.nrt_allocate_tensor_set(&e.out), 0);
	WANT_STATUS(lib.nrt_add_tensor_to_tensor_set(e.in, "a", a), 0);
	WANT_STATUS(lib.nrt_add_tensor_to_tensor_set(e.out, "c", c), 0);
	for (int i = 0; i < 2; i++)
		WANT(pthread_create(&threads[i], NULL, execute_on, &e) == 0);
	for (int i = 0; i < 10; i++) {
		WANT_STATUS(write_it(a), 0);
		WANT_STATUS(read_it(c), 0);
	}
	WANT(atomic_load(&e.runs) < 500); /* 2 for each, if threads were not preempted */
	atomic_store(&e.stop, true);
	for (int i = 0; i < 2; i++)
		WANT(pthread_join(threads[i], NULL) == 0);
	lib.nrt_close();
	return 0;
}

DEVICE_TEST("tensor: threads that execute all the time do not keep a transfer waiting", not_starved,
	two_cores)

/* An execution in progress keeps what it works on. */
static int held(void *arg)
{
	char buffer[64] = "";
	struct place *p = arg;
	struct tensor_use use;
	nrt_tensor_t *t;

	WANT(begin(p) == 0);
	WANT_STATUS(lib.nrt_tensor_allocate(DEVICE, 1, 64, "t", &t), 0);
	tensor_use_begin(inside(t), true, &use);
	WANT_STATUS(lib.nrt_tensor_attach_buffer(t, buffer, 64), 0);
	WANT_STATUS(write_it(t), 0); /* other memory */
	WANT(!strcmp(buffer, "written"));
	lib.nrt_tensor_free(&t);
	WANT(virtual_device_stat(&p->device, "allocations") == 1);
	tensor_use_end(&use);
	WANT(virtual_device_stat(&p->device, "allocations") == 0);
	lib.nrt_close();
	return 0;
}

DEVICE_TEST("tensor: an execution keeps the memory that it began with", held, two_cores)

/* ---- completions -------------------------------------------------------------------------- */

static NRT_STATUS wait_for_two(nrt_tensor_t *t)
{
	return lib.nrt_tensor_check_output_completion(t, -1, 2);
}

static int counted(void *arg)
{
	struct job_of_thread j = {.call = wait_for_two, .status = 99};
	pthread_t thread;
	nrt_tensor_t *t;

	WANT(begin(arg) == 0);
	WANT_STATUS(lib.nrt_tensor_allocate(HOST, 0, 8, "t", &t), 0);
	WANT_STATUS(lib.nrt_tensor_check_output_completion(t, 0, 0), 0);
	WANT_STATUS(lib.nrt_tensor_check_output_completion(t, 0, 1), NRT_TIMEOUT);
	WANT_STATUS(lib.nrt_tensor_check_output_completion(t, 2000, 1), NRT_TIMEOUT);
	tensor_completed(inside(t));
	WANT_STATUS(lib.nrt_tensor_check_output_completion(t, 0, 1), 0);
	WANT_STATUS(lib.nrt_tensor_check_output_completion(t, -1, 1), 0);
	WANT_STATUS(lib.nrt_tensor_check_output_completion(t, INT64_MAX, 1), 0);
	WANT_STATUS(lib.nrt_tensor_check_output_completion(t, 1, UINT64_MAX), NRT_TIMEOUT);
	WANT_STATUS(lib.nrt_tensor_reset_output_completion(t), 0);
	WANT_STATUS(lib.nrt_tensor_check_output_completion(t, 0, 1), NRT_TIMEOUT);
	j.tensor = t;
	WANT(pthread_create(&thread, NULL, run_job, &j) == 0);
	tensor_completed(inside(t));
	tensor_completed(inside(t));
	WANT(pthread_join(thread, NULL) == 0);
	WANT_STATUS(j.status, 0);
	lib.nrt_close();
	return 0;
}

DEVICE_TEST("tensor: completions are counted and waited for", counted, two_cores)

static void *close_library(void *arg)
{
	(void)arg;
	lib.nrt_close();
	return NULL;
}

static int endless(void *arg)
{
	struct place *p = arg;
	pthread_t thread;
	nrt_tensor_t *t;

	WANT(begin(p) == 0);
	WANT_STATUS(lib.nrt_tensor_allocate(HOST, 0, 8, "late", &t), 0);
	WANT(pthread_create(&thread, NULL, close_library, NULL) == 0);
	/* The other thread may be first, then the handle is gone, or may be in between. */
	switch (lib.nrt_tensor_check_output_completion(t, -1, 1)) {
	case NRT_CLOSED:
	case NRT_UNINITIALIZED:
		break;
	default:
		WANT(!"the wait ends with nrt_close");
	}
	WANT(pthread_join(thread, NULL) == 0);
	return 0;
}

DEVICE_TEST("tensor: a wait without a limit ends when the library is closed", endless, two_cores)

static void *complete_soon(void *arg)
{
	const struct place *p = ((void **)arg)[0];
	char *log = NULL;

	do {
		free(log);
		log = program_text(p->log.s);
	} while (!log || !strstr(log, "still waiting for completion 1, it has 0"));
	free(log);
	tensor_completed(((void **)arg)[1]);
	return NULL;
}

static int warned(void *arg)
{
	struct place *p = arg;
	void *args[2] = {p, NULL};
	pthread_t thread;
	nrt_tensor_t *t;

	WANT(begin(p) == 0);
	WANT_STATUS(lib.nrt_tensor_allocate(HOST, 0, 8, "slow", &t), 0);
	args[1] = inside(t);
	WANT(pthread_create(&thread, NULL, complete_soon, args) == 0);
	WANT_STATUS(tensor_wait_completed(inside(t), -1, 1, 1), 0);
	WANT(pthread_join(thread, NULL) == 0);
	WANT(said(p, "Tensor 'slow': still waiting for completion 1, it has 0"));
	lib.nrt_close();
	return 0;
}

DEVICE_TEST("tensor: a wait without a limit says that it still waits", warned, two_cores)
