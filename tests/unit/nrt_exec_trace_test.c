/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_exec_trace_test.c - nrt_trace_start and nrt_trace_stop, through the library, on a virtual
 * device.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

#include "tests/shim/shim.h"
#include "tests/unit/exec_trace_reader.h"
#include "tests/unit/nrt_faults.h"

#define RUN_NS 25000u /* of ADD_MODEL */
#define FILE_NAME "t.pb"

#define TRACE_TEST(name, fn)                  \
	TEST(name, "[nrt][exec_trace][vdev]") \
	{                                     \
		if (device_lacks())           \
			SKIP(device_lacks()); \
		with_device(fn, two_cores);   \
	}

static int up(const struct place *p)
{
	setenv("NEURON_RT_LOG_LEVEL", "WARN", 1);
	WANT(enter(p) == 0);
	WANT(dup2(2, 1) == 1); /* warnings go there */
	WANT_STATUS(init(), 0);
	return 0;
}

/* ---- what is in it ------------------------------------------------------------------------ */

static int check_pair(const Ntff__NtraceInfo *m, const char *start_name, const char *end_name,
	size_t n, const char *hint)
{
	const Ntff__NtraceEvent *start = trace_at(m, start_name, n),
				*end = trace_at(m, end_name, n);

	WANT(start && end);
	WANT(start->phase == NTFF__NTRACE_EVENT_PHASE_TYPE__NTRACE_EVENT_PHASE_START);
	WANT(end->phase == NTFF__NTRACE_EVENT_PHASE_TYPE__NTRACE_EVENT_PHASE_STOP);
	WANT(start->timestamp <= end->timestamp);
	WANT(!strcmp(start->hint, hint) && !strcmp(end->hint, hint));
	WANT(start->data == end->data && start->nc_idx == end->nc_idx);
	return 0;
}

/* The run of each of the two physical cores: as long as the model says, inside of its execution. */
static int check_run(const Ntff__NtraceInfo *m, size_t n)
{
	const Ntff__NtraceEvent *outer = trace_at(m, "EXEC_START", n),
				*outer_end = trace_at(m, "EXEC_END", n);

	WANT(check_pair(m, "EXEC_START", "EXEC_END", n, "adder") == 0);
	WANT(outer->data == n + 1 && outer->nc_idx == 2 && outer->nd_idx == 0);
	for (size_t core = 0; core < 2; core++) {
		const Ntff__NtraceEvent *start = NULL, *end = NULL;

		for (size_t i = 2 * n; i < 2 * n + 2; i++) {
			const Ntff__NtraceEvent *s = trace_at(m, "NC_EXEC_START", i),
						*e = trace_at(m, "NC_EXEC_END", i);

			WANT(s && e && s->data == n + 1 && e->data == n + 1);
			start = s->nc_idx == 2 + core ? s : start;
			end = e->nc_idx == 2 + core ? e : end;
		}
		WANT(start && end && end->timestamp - start->timestamp == RUN_NS);
		WANT(outer->timestamp <= start->timestamp &&
			end->timestamp <= outer_end->timestamp);
	}
	return 0;
}

/* Both clocks at one moment. */
static int check_sync(const Ntff__NtraceInfo *m, size_t n)
{
	const Ntff__NtraceEvent *nc = trace_at(m, "NC_TIMESTAMP_SYNC", n),
				*cpu = trace_at(m, "CPU_TIMESTAMP_SYNC", n);

	WANT(nc && cpu && nc->timestamp == cpu->timestamp && nc->nc_idx == cpu->nc_idx);
	WANT(nc->data > 1000 * RUN_NS); /* ps */
	WANT(cpu->data < 1000000000u);	/* ns that it may be wrong */
	return 0;
}

static int check_head(const Ntff__NtraceInfo *m)
{
	struct timespec now;

	WANT(clock_gettime(CLOCK_REALTIME, &now) == 0);
	WANT(m->pid == (uint32_t)getpid() && m->data_version == 2 && m->logical_nc_size == 2);
	WANT(m->virtual_device && m->ended && strstr(m->producer, "libnrt"));
	WANT(m->n_events && m->begin_ns <= m->events[0]->timestamp);
	WANT(m->events[m->n_events - 1]->timestamp <=
		(uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec);
	return 0;
}

static int normal_run(void *arg)
{
	Ntff__NtraceInfo *m;
	struct job j;

	WANT(up(arg) == 0);
	WANT_STATUS(lib.nrt_trace_start(true), 0);
	WANT(job_open(&j, ADD_MODEL, 1) == 0);
	for (int i = 0; i < 3; i++)
		WANT(job_run(&j, (float)i, 2) == 0);
	WANT_STATUS(trace_stop_to(arg, FILE_NAME), 0);
	m = trace_load(arg, FILE_NAME);
	WANT(m && trace_is_whole(m) == 0 && check_head(m) == 0);
	WANT(trace_at(m, "MODEL_LOAD_START", 0)->nc_idx == 2);
	WANT(!strcmp(trace_at(m, "MODEL_LOAD_END", 0)->hint, "adder"));
	WANT(trace_at(m, "MODEL_LOAD_END", 0)->data != 0);
	for (size_t n = 0; n < 3; n++) {
		WANT(check_run(m, n) == 0);
		WANT(check_sync(m, 2 * n) == 0 && check_sync(m, 2 * n + 1) == 0);
		/* Written: a, then b, which has no name; read: c. */
		WANT(check_pair(m, "IO_COPY_START", "IO_COPY_END", 3 * n, "a") == 0);
		WANT(check_pair(m, "IO_COPY_START", "IO_COPY_END", 3 * n + 1, "") == 0);
		WANT(check_pair(m, "IO_COPY_START", "IO_COPY_END", 3 * n + 2, "c") == 0);
		WANT(trace_at(m, "IO_COPY_START", 3 * n)->data == 32);
	}
	WANT(trace_count(m, "EXEC_START") == 3 && trace_count(m, "NC_EXEC_END") == 6);
	WANT(trace_count(m, "IO_COPY_END") == 9 && trace_count(m, "ERROR") == 0);
	ntff__ntrace_info__free_unpacked(m, NULL);
	lib.nrt_close();
	return 0;
}

TRACE_TEST("exec_trace: runs, copies and clocks of a program, with names, places and exact times",
	normal_run)

/* Three tensors come, and one goes. */
static int memory(void *arg)
{
	static const bool wanted[] = {true, false};
	size_t allocs, frees;
	Ntff__NtraceInfo *m;

	WANT(up(arg) == 0);
	for (size_t i = 0; i < 2; i++) {
		struct job j;

		WANT_STATUS(lib.nrt_trace_start(wanted[i]), 0);
		WANT(job_open(&j, ADD_MODEL, 0) == 0);
		lib.nrt_destroy_tensor_set(&j.out);
		lib.nrt_tensor_free(&j.c);
		WANT_STATUS(trace_stop_to(arg, i ? "without" : "with"), 0);
	}
	m = trace_load(arg, "with");
	WANT(m && trace_is_whole(m) == 0);
	allocs = trace_count(m, "MEM_ALLOC");
	frees = trace_count(m, "MEM_FREE");
	WANT(frees == 1 && allocs >= 3 + 1); /* the model's too */
	WANT(trace_at(m, "MEM_FREE", frees - 1)->data == 32);
	WANT(trace_at(m, "MEM_ALLOC", allocs - 1)->data == 32);
	WANT(!strcmp(trace_at(m, "MEM_FREE", frees - 1)->hint,
		trace_at(m, "MEM_ALLOC", allocs - 1)->hint));
	WANT(*trace_at(m, "MEM_FREE", frees - 1)->hint);
	ntff__ntrace_info__free_unpacked(m, NULL);
	m = trace_load(arg, "without");
	WANT(m && trace_is_whole(m) == 0 && m->n_events == 2);
	WANT(trace_count(m, "MODEL_LOAD_START") == 1 && trace_count(m, "MODEL_LOAD_END") == 1);
	ntff__ntrace_info__free_unpacked(m, NULL);
	return 0;
}

TRACE_TEST("exec_trace: device memory is in it when that was asked for", memory)

#define COLLECTIVE_MODEL                                                    \
	"ntrace-model 2\nname alone\ninput a int32 8\noutput c int32 1x8\n" \
	"step TOPSP 8us all_gather a c\n"
static int failures(void *arg)
{
	const Ntff__NtraceEvent *start, *end;
	Ntff__NtraceInfo *m;
	struct job alone, faulty;

	WANT(up(arg) == 0);
	WANT(job_open(&alone, COLLECTIVE_MODEL, 0) == 0);
	WANT(job_open(&faulty, FAULTY_MODEL, 1) == 0);
	WANT_STATUS(lib.nrt_trace_start(false), 0);
	WANT_STATUS(lib.nrt_execute(alone.model, alone.in, alone.out), 0);
	WANT_STATUS(lib.nrt_execute(faulty.model, faulty.in, faulty.out),
		NRT_EXEC_COMPLETED_WITH_NUM_ERR);
	WANT_STATUS(trace_stop_to(arg, FILE_NAME), 0);
	m = trace_load(arg, FILE_NAME);
	WANT(m && trace_is_whole(m) == 0);
	start = trace_at(m, "CC_START", 0);
	end = trace_at(m, "CC_END", 0);
	WANT(start && end && end->timestamp - start->timestamp == 8000 && start->data == 1);
	WANT(trace_at(m, "EXEC_END", 0)->status == 0);
	WANT(trace_at(m, "EXEC_END", 1)->status == NRT_EXEC_COMPLETED_WITH_NUM_ERR);
	WANT(trace_at(m, "NC_EXEC_END", 3)->status == NRT_EXEC_COMPLETED_WITH_NUM_ERR);
	WANT(trace_count(m, "ERROR") >= 1);
	WANT(trace_at(m, "ERROR", 0)->status == NRT_EXEC_COMPLETED_WITH_NUM_ERR);
	WANT(!strcmp(trace_at(m, "ERROR", 0)->hint, "faulty"));
	ntff__ntrace_info__free_unpacked(m, NULL);
	return 0;
}

TRACE_TEST("exec_trace: collectives, errors and what became of executions", failures)

/* ---- the ring ----------------------------------------------------------------------------- */

#define RING "8"
#define IN_RING 8

static int overflow(void *arg)
{
	Ntff__NtraceInfo *m;
	struct job j;

	setenv("NEURON_RT_TRACE_NUM_ENTRIES", RING, 1);
	WANT(up(arg) == 0);
	WANT(job_open(&j, ADD_MODEL, 0) == 0);
	WANT_STATUS(lib.nrt_trace_start(false), 0);
	for (int i = 0; i < 5; i++)
		WANT(job_run(&j, 0, 2) == 0);
	WANT_STATUS(trace_stop_to(arg, FILE_NAME), 0);
	WANT(said(arg, "NEURON_RT_TRACE_NUM_ENTRIES is " RING));
	m = trace_load(arg, FILE_NAME);
	WANT(m && trace_is_whole(m) == 0 && m->n_events == IN_RING);
	/* Of a run 2 executions', 4 of cores, 4 of clocks; 6 of copies. */
	WANT(trace_counter(m, "records") == 5 * 16);
	WANT(trace_counter(m, "overwritten") == 5 * 16 - IN_RING);
	/* The newest: the end of the last run, and the read behind it. */
	WANT(!strcmp(trace_name(m->events[IN_RING - 1]), "IO_COPY_END"));
	WANT(trace_at(m, "EXEC_END", 0)->data == 5 && !trace_at(m, "EXEC_END", 1));
	ntff__ntrace_info__free_unpacked(m, NULL);
	return 0;
}

TRACE_TEST("exec_trace: a full ring keeps the newest, and the file counts the rest", overflow)

/* A stop that fails when the ring is full: the next records replace the oldest, not others. */
static int overflow_twice(void *arg)
{
	Ntff__NtraceInfo *m;
	struct job j;

	setenv("NEURON_RT_TRACE_NUM_ENTRIES", RING, 1);
	WANT(up(arg) == 0);
	WANT(job_open(&j, ADD_MODEL, 0) == 0);
	WANT_STATUS(lib.nrt_trace_start(false), 0);
	for (int i = 0; i < 3; i++)
		WANT(job_run(&j, 0, 2) == 0);
	WANT_STATUS(trace_stop_to(arg, "none/t.pb"), NRT_INVALID);
	for (int i = 0; i < 4; i++) { /* two records each */
		float a[8];

		WANT_STATUS(lib.nrt_tensor_read(j.a, a, 0, sizeof(a)), 0);
		if (i < 2)
			WANT_STATUS(trace_stop_to(arg, "none/t.pb"), NRT_INVALID);
	}
	WANT_STATUS(trace_stop_to(arg, FILE_NAME), 0);
	m = trace_load(arg, FILE_NAME);
	WANT(m && trace_is_whole(m) == 0 && m->n_events == IN_RING);
	WANT(trace_count(m, "IO_COPY_START") == 4 && trace_count(m, "IO_COPY_END") == 4);
	for (size_t i = 0; i < IN_RING; i++)
		WANT(!strcmp(m->events[i]->hint, "a"));
	ntff__ntrace_info__free_unpacked(m, NULL);
	return 0;
}

TRACE_TEST("exec_trace: a stop that fails leaves a full ring in order", overflow_twice)

/* ---- what is refused ---------------------------------------------------------------------- */

static int refusals(void *arg)
{
	const struct place *p = arg;
	struct scratch_path taken = scratch_path(&p->scratch, "taken");
	struct scratch_path not_a_directory = scratch_path(&p->scratch, "taken/t.pb");
	int fd = open(taken.s, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	Ntff__NtraceInfo *m;
	struct job j;

	WANT(fd >= 0 && close(fd) == 0);
	WANT(up(p) == 0);
	WANT(job_open(&j, ADD_MODEL, 0) == 0);
	WANT_STATUS(trace_stop_to(p, FILE_NAME), NRT_INVALID);
	WANT(said(p, "There is no trace to stop"));
	WANT_STATUS(lib.nrt_trace_start(false), 0);
	WANT(job_run(&j, 0, 2) == 0);
	WANT_STATUS(lib.nrt_trace_start(true), NRT_INVALID);
	WANT(said(p, "A trace is on already; nothing changes"));
	WANT_STATUS(lib.nrt_trace_stop(NULL), NRT_INVALID);
	WANT(said(p, "No file name given (NULL); the trace goes on"));
	WANT_STATUS(lib.nrt_trace_stop(""), NRT_INVALID);
	WANT(said(p, "No file name given (empty); the trace goes on"));
	WANT_STATUS(lib.nrt_trace_stop(taken.s), NRT_INVALID);
	WANT(said(p, "taken: File exists; the trace goes on, choose another name"));
	WANT_STATUS(lib.nrt_trace_stop(not_a_directory.s), NRT_INVALID);
	WANT(said(p, "Not a directory; the trace goes on"));
	WANT_STATUS(trace_stop_to(p, "none/t.pb"), NRT_INVALID);
	WANT(said(p, "No such file or directory; the trace goes on"));
	WANT_STATUS(trace_stop_to(p, FILE_NAME), 0);
	WANT_STATUS(trace_stop_to(p, "again"), NRT_INVALID);
	m = trace_load(p, FILE_NAME);
	WANT(m && trace_is_whole(m) == 0 && trace_count(m, "EXEC_START") == 1);
	WANT(trace_count(m, "MEM_ALLOC") == 0 && trace_counter(m, "overwritten") == 0);
	ntff__ntrace_info__free_unpacked(m, NULL);
	return 0;
}

TRACE_TEST("exec_trace: what cannot be is refused, and the trace goes on", refusals)

/* A file that does not fit: nothing of it is left, and nothing of the trace is lost. */
static int no_space(void *arg)
{
	struct place *p = arg;
	struct rlimit limit, small = {.rlim_cur = 100};
	Ntff__NtraceInfo *m;
	struct job j;
	int before;

	WANT(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
	WANT(up(p) == 0);
	WANT(job_open(&j, ADD_MODEL, 0) == 0);
	WANT_STATUS(lib.nrt_trace_start(false), 0);
	WANT(job_run(&j, 0, 2) == 0);
	before = scratch_entries(p->scratch.dir);
	WANT(getrlimit(RLIMIT_FSIZE, &limit) == 0);
	small.rlim_max = limit.rlim_max;
	WANT(setrlimit(RLIMIT_FSIZE, &small) == 0);
	WANT_STATUS(trace_stop_to(p, FILE_NAME), NRT_FAILURE);
	WANT(setrlimit(RLIMIT_FSIZE, &limit) == 0);
	WANT(scratch_entries(p->scratch.dir) == before);
	WANT(job_run(&j, 0, 2) == 0);
	WANT_STATUS(trace_stop_to(p, FILE_NAME), 0);
	m = trace_load(p, FILE_NAME);
	WANT(m && trace_is_whole(m) == 0 && trace_count(m, "EXEC_END") == 2);
	ntff__ntrace_info__free_unpacked(m, NULL);
	return 0;
}

TRACE_TEST(
	"exec_trace: a file that cannot be written leaves nothing, and the trace goes on", no_space)

static int in_async_mode(void *arg)
{
	setenv("NEURON_RT_ASYNC_EXEC_MAX_INFLIGHT_REQUESTS", "4", 1);
	WANT(up(arg) == 0);
	WANT_STATUS(lib.nrt_trace_start(true), NRT_INVALID);
	WANT(said(arg, "Trace is not supported in implicit async execution mode"));
	WANT_STATUS(trace_stop_to(arg, FILE_NAME), NRT_INVALID);
	WANT(said(arg, "Trace is not supported in implicit async execution mode"));
	return 0;
}

TRACE_TEST("exec_trace: refused where nrt_execute does not wait for the end", in_async_mode)

static int no_room(void *arg)
{
	setenv("NEURON_RT_TRACE_NUM_ENTRIES", "0", 1);
	WANT(up(arg) == 0);
	WANT_STATUS(lib.nrt_trace_start(true), NRT_INVALID);
	WANT(said(arg, "NEURON_RT_TRACE_NUM_ENTRIES is 0"));
	return 0;
}

TRACE_TEST("exec_trace: a ring without room is refused", no_room)

static int closes(void *arg)
{
	Ntff__NtraceInfo *m;

	WANT(up(arg) == 0);
	WANT_STATUS(lib.nrt_trace_start(true), 0);
	lib.nrt_close();
	WANT(said(arg, "A trace that nrt_trace_stop has not ended is dropped"));
	WANT_STATUS(init(), 0);
	WANT_STATUS(trace_stop_to(arg, FILE_NAME), NRT_INVALID);
	WANT_STATUS(lib.nrt_trace_start(true), 0);
	WANT_STATUS(trace_stop_to(arg, FILE_NAME), 0);
	m = trace_load(arg, FILE_NAME);
	WANT(m && m->n_events == 0 && trace_is_whole(m) == 0);
	ntff__ntrace_info__free_unpacked(m, NULL);
	lib.nrt_close();
	return 0;
}

TRACE_TEST("exec_trace: nrt_close drops a trace that was not stopped, and says so", closes)

/* ---- memory runs out ---------------------------------------------------------------------- */

#define MOST_ALLOCATIONS 100

/* A trace of whose calls, or of whose records, the n-th allocation fails, if *ret_happened. */
static int trace_with_fault(const struct place *p, const struct faults *f, const struct job *j,
	unsigned long n, bool *ret_happened)
{
	Ntff__NtraceInfo *m;
	char name[32];
	NRT_STATUS status, executed;
	float a[8];

	snprintf(name, sizeof(name), "t%lu", n);
	f->arm(n, false);
	status = lib.nrt_trace_start(true);
	if (status) {
		WANT_STATUS(status, NRT_RESOURCE);
		WANT_STATUS(lib.nrt_trace_start(true), 0);
	}
	executed = lib.nrt_execute(j->model, j->in, j->out);
	WANT_STATUS(lib.nrt_tensor_read(j->c, a, 0, sizeof(a)), 0);
	status = trace_stop_to(p, name);
	*ret_happened = f->happened();
	f->arm(0, false);
	if (status) {
		WANT_STATUS(status, NRT_RESOURCE);
		WANT_STATUS(trace_stop_to(p, name), 0);
	}
	m = trace_load(p, name);
	WANT(m && trace_is_whole(m) == 0);
	WANT(trace_counter(m, "overwritten") == 0 && trace_counter(m, "stopping") == 0);
	WANT(trace_counter(m, "no_memory") <= 1);
	WANT(trace_counter(m, "records") == 12 || (executed == NRT_RESOURCE && *ret_happened));
	ntff__ntrace_info__free_unpacked(m, NULL);
	return 0;
}

static int each_fault(const struct place *p, const struct faults *f)
{
	unsigned long n = 0;
	bool happened = true;
	struct job j;

	WANT(enter(p) == 0);
	WANT_STATUS(init(), 0);
	WANT(job_open(&j, ADD_MODEL, 0) == 0);
	while (happened && ++n < MOST_ALLOCATIONS)
		WANT(trace_with_fault(p, f, &j, n, &happened) == 0);
	WANT(n > 5 && !happened); /* AddressSanitizer hides those of strdup */
	lib.nrt_close();
	return 0;
}

TEST("exec_trace: the work, under tests/faults.so", "[.exec_trace_faults]")
{
	faults_work(each_fault);
}

TEST("exec_trace: each allocation of its calls fails once, and nothing is lost",
	"[nrt][exec_trace][vdev]")
{
	faults_run("[.exec_trace_faults]");
}

/* ---- threads ------------------------------------------------------------------------------ */

#define STOPS 20

static _Atomic bool enough;

static void *runs(void *arg)
{
	while (!enough)
		if (job_run(arg, 0, 2) != 0)
			return arg;
	return NULL;
}

static int all_stops(const struct place *p)
{
	for (int i = 0; i < STOPS; i++) {
		char name[32];
		Ntff__NtraceInfo *m;

		snprintf(name, sizeof(name), "t%d", i);
		WANT_STATUS(lib.nrt_trace_start(true), 0);
		WANT_STATUS(trace_stop_to(p, "none/t.pb"), NRT_INVALID);
		WANT_STATUS(trace_stop_to(p, name), 0);
		m = trace_load(p, name);
		WANT(m && trace_is_whole(m) == 0);
		ntff__ntrace_info__free_unpacked(m, NULL);
	}
	return 0;
}

static int threads(void *arg)
{
	pthread_t thread[2];
	struct job j[2];
	void *failed;
	int rc;

	setenv("NEURON_RT_TRACE_NUM_ENTRIES", "50", 1);
	WANT(up(arg) == 0);
	for (int i = 0; i < 2; i++) {
		WANT(job_open(&j[i], ADD_MODEL, i) == 0);
		WANT(pthread_create(&thread[i], NULL, runs, &j[i]) == 0);
	}
	rc = all_stops(arg);
	enough = true;
	for (int i = 0; i < 2; i++)
		WANT(pthread_join(thread[i], &failed) == 0 && !failed);
	lib.nrt_close();
	return rc;
}

TRACE_TEST("exec_trace: started and stopped while threads execute, every record is accounted for",
	threads)
