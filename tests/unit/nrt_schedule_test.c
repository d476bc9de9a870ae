/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_schedule_test.c - the queues of execution units: order, limits, handles, numbers, threads, the end.
 */
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "tests/shim/shim.h"
#include "tests/unit/nrt_init_fixture.h"
#include "tests/unit/schedule_fixture.h"

static const char *const eight_cores[] = {"--cores=8", NULL};

static int up(void *arg)
{
	WANT(enter(arg) == 0);
	WANT_STATUS(init(), 0);
	return 0;
}

/* ---- order -------------------------------------------------------------------------------- */

#define ROUNDS 40

/* Each read finds what the write before it has written, and the copy behind both what was last. */
static int in_order(void *arg)
{
	static uint64_t values[ROUNDS], got[ROUNDS];
	NRT_STATUS wrote[ROUNDS], read[ROUNDS], copied = UNSET;
	nrta_seq_t seq, last = 0;
	struct job j;
	uint64_t copy = 0;

	WANT(up(arg) == 0);
	WANT(job_open(&j, ADD_MODEL, 0) == 0);
	for (int i = 0; i < ROUNDS; i++) {
		values[i] = 1000u + (uint64_t)i;
		WANT_STATUS(lib.nrta_tensor_write(j.a, &values[i], 8, 8, 0, 3, &wrote[i], &seq), 0);
		WANT(seq == last + 1 || last == 0);
		WANT_STATUS(lib.nrta_tensor_read(&got[i], j.a, 8, 8, 0, 3, &read[i], &last), 0);
		WANT(last == seq + 1);
	}
	WANT_STATUS(lib.nrta_tensor_copy(j.a, 8, j.c, 16, 8, 0, 3, &copied, &last), 0);
	WANT(await(last));
	for (int i = 0; i < ROUNDS; i++)
		WANT(wrote[i] == 0 && read[i] == 0 && got[i] == values[i]);
	WANT(copied == 0);
	WANT_STATUS(lib.nrt_tensor_read(j.c, &copy, 16, 8), 0);
	WANT(copy == values[ROUNDS - 1]);
	lib.nrt_close();
	return 0;
}

QUEUE_TEST("schedule: the work of a queue is done in order", in_order, two_cores)

static int side_by_side(void *arg)
{
	NRT_STATUS other, write = UNSET, behind;
	nrta_seq_t seq, held, done;
	struct job first, second;
	uint64_t byte = 7;
	struct gate g;

	WANT(up(arg) == 0);
	WANT(filled_job(&first, 0) == 0 && filled_job(&second, 1) == 0);
	WANT(gate_close(&g, &first) == 0);
	WANT_STATUS(schedule(&first, &behind, &held), 0);
	WANT_STATUS(schedule(&second, &other, &seq), 0);
	WANT(await(seq) && other == 0 && computed(second.c));
	WANT_STATUS(lib.nrta_tensor_write(second.a, &byte, 0, 8, 0, 0, &write, &seq), 0);
	WANT(await(seq) && write == 0);
	WANT(!is_done(held) && behind == UNSET);
	WANT_STATUS(lib.nrta_get_sequence(0, NRTA_XU_COMPUTE, 0, &done), 0);
	WANT(done == held - 1);
	gate_open(&g);
	WANT(await(held) && behind == 0);
	lib.nrt_close();
	return 0;
}

QUEUE_TEST("schedule: a queue that stands still does not hold the others", side_by_side, two_cores)

/* ---- limits ------------------------------------------------------------------------------- */

/* As many as the limit are taken while nothing is done; the next is not, and has written nothing. */
static int fills(int limit)
{
	NRT_STATUS rets[16], refused = UNSET;
	nrta_seq_t seq[16], none = 99;
	struct gate g;
	struct job j;

	WANT_STATUS(init(), 0);
	WANT(filled_job(&j, 0) == 0);
	WANT(gate_close(&g, &j) == 0);
	for (int i = 0; i < limit; i++)
		WANT_STATUS(schedule(&j, &rets[i], &seq[i]), 0);
	WANT_STATUS(schedule(&j, &refused, &none), NRT_QUEUE_FULL);
	WANT(refused == UNSET && none == 99);
	gate_open(&g);
	for (int i = 0; i < limit; i++)
		WANT(await(seq[i]) && rets[i] == 0);
	WANT_STATUS(schedule(&j, &refused, &none), 0);
	WANT(none == seq[limit - 1] + 1);
	lib.nrt_close();
	return 0;
}

static int full(void *arg)
{
	nrta_seq_t none = 99;
	NRT_STATUS ret = UNSET;
	struct job j;

	WANT(enter(arg) == 0);
	WANT(fills(8) == 0);
	setenv("NEURON_RT_XU_COMPUTE_MAX_QUEUED_REQUESTS", "1", 1);
	WANT(fills(1) == 0);
	setenv("NEURON_RT_XU_COMPUTE_MAX_QUEUED_REQUESTS", "9223372036854775807", 1);
	WANT_STATUS(init(), 0);
	WANT(filled_job(&j, 0) == 0);
	WANT_STATUS(schedule(&j, &ret, &none), 0);
	lib.nrt_close();
	setenv("NEURON_RT_XU_COMPUTE_MAX_QUEUED_REQUESTS", "0", 1);
	WANT_STATUS(init(), 0);
	WANT(filled_job(&j, 0) == 0);
	WANT_STATUS(schedule(&j, &ret, &none), NRT_QUEUE_FULL);
	lib.nrt_close();
	return 0;
}

QUEUE_TEST("schedule: a full queue of executions refuses and goes on when there is room", full,
	two_cores)

/* Scheduling is faster than a transfer of a megabyte. */
static int full_of_transfers(void *arg)
{
	static char bytes[1 << 20];
	static NRT_STATUS rets[4096];
	NRT_STATUS status = 0;
	nrta_seq_t seq, last = 0;
	nrt_tensor_t *t;
	int n = 0;

	WANT(up(arg) == 0);
	WANT_STATUS(
		lib.nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, sizeof(bytes), "t", &t), 0);
	while (n < 4096 && status == 0) {
		status = lib.nrta_tensor_write(t, bytes, 0, sizeof(bytes), 0, 0, &rets[n], &seq);
		last = status ? last : seq;
		n++;
	}
	WANT(status == NRT_QUEUE_FULL && n > 256);
	WANT(await(last) && rets[n - 2] == 0);
	lib.nrt_close();
	return 0;
}

QUEUE_TEST("schedule: a queue of transfers is full at 256", full_of_transfers, two_cores)

/* ---- handles ------------------------------------------------------------------------------ */

/* Everything that queued work needs is given up, and what it was given is used all the same. */
static int freed(void *arg)
{
	nrt_vnc_memory_stats_t stats = {1, 1};
	nrt_tensor_t *other, *c;
	NRT_STATUS ret, wrote = UNSET;
	nrta_seq_t seq, write;
	float nothing[8] = {0};
	size_t size;
	struct gate g;
	struct job j;

	WANT(up(arg) == 0);
	WANT(filled_job(&j, 0) == 0);
	c = j.c;
	WANT_STATUS(lib.nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, 32, "o", &other), 0);
	WANT_STATUS(lib.nrt_tensor_write(other, nothing, 0, sizeof(nothing)), 0);
	WANT(gate_close(&g, &j) == 0);
	WANT_STATUS(lib.nrt_tensor_write(c, nothing, 0, sizeof(nothing)), 0);
	WANT_STATUS(schedule(&j, &ret, &seq), 0);
	/* The set changes, then goes. */
	WANT_STATUS(lib.nrt_add_tensor_to_tensor_set(j.in, "a", other), 0);
	WANT_STATUS(lib.nrt_add_tensor_to_tensor_set(j.out, "c", other), 0);
	WANT_STATUS(lib.nrta_tensor_write(other, nothing, 0, 32, 0, 1, &wrote, &write), 0);
	lib.nrt_tensor_free(&other);
	lib.nrt_tensor_free(&j.a);
	lib.nrt_tensor_free(&j.b);
	lib.nrt_destroy_tensor_set(&j.in);
	lib.nrt_destroy_tensor_set(&j.out);
	WANT_STATUS(lib.nrt_unload(j.model), 0);
	WANT_STATUS(lib.nrt_unload(j.model), NRT_INVALID_HANDLE);
	gate_open(&g);
	WANT(await(seq) && ret == 0 && computed(c));
	WANT(await(write) && wrote == 0);
	lib.nrt_tensor_free(&c);
	/* Completion comes after the last reference: nothing is left but the rings of two cores, three of each. */
	WANT_STATUS(lib.nrt_get_vnc_memory_stats(0, &stats, sizeof(stats), &size), 0);
	WANT(stats.bytes_used == 2 * 3 * 65536);
	lib.nrt_close();
	return 0;
}

QUEUE_TEST("schedule: what queued work was given lives until it is done", freed, two_cores)

static int refused(void *arg)
{
	int foreign[64] = {0};
	nrt_tensor_t *bad = (nrt_tensor_t *)foreign;
	NRT_STATUS ret = UNSET, *r = &ret;
	nrta_seq_t seq = 99, *s = &seq;
	bool done = true;
	struct job j;
	char b[64];

	WANT(up(arg) == 0);
	WANT(filled_job(&j, 1) == 0);
	WANT_STATUS(lib.nrta_execute_schedule(NULL, j.in, j.out, 0, r, s), NRT_INVALID);
	WANT_STATUS(lib.nrta_execute_schedule(j.model, NULL, j.out, 0, r, s), NRT_INVALID);
	WANT_STATUS(lib.nrta_execute_schedule(j.model, j.in, NULL, 0, r, s), NRT_INVALID);
	WANT_STATUS(lib.nrta_execute_schedule((nrt_model_t *)foreign, j.in, j.out, 0, r, s),
		NRT_INVALID_HANDLE);
	WANT_STATUS(
		lib.nrta_execute_schedule(j.model, j.model, j.out, 0, r, s), NRT_INVALID_HANDLE);
	WANT_STATUS(lib.nrta_execute_schedule(j.model, j.in, j.out, 1, r, s), NRT_INVALID);
	WANT(said(arg, "Execution unit 1 has no queue 1"));
	WANT_STATUS(lib.nrta_execute_schedule(j.model, j.in, j.out, -1, r, s), NRT_INVALID);
	WANT_STATUS(lib.nrta_execute_schedule(j.model, j.in, j.out, 0, NULL, s), NRT_INVALID);
	WANT_STATUS(lib.nrta_execute_schedule(j.model, j.in, j.out, 0, r, NULL), NRT_INVALID);
	WANT_STATUS(lib.nrta_tensor_write(NULL, b, 0, 8, 0, 0, r, s), NRT_INVALID);
	WANT_STATUS(lib.nrta_tensor_write(bad, b, 0, 8, 0, 0, r, s), NRT_INVALID_HANDLE);
	WANT_STATUS(lib.nrta_tensor_write(j.a, NULL, 0, 8, 0, 0, r, s), NRT_INVALID);
	WANT_STATUS(lib.nrta_tensor_write(j.a, b, 0, 8, 2, 0, r, s), NRT_INVALID);
	WANT(said(arg, "There is no core 2; this process has 2"));
	WANT_STATUS(lib.nrta_tensor_write(j.a, b, 0, 8, -1, 0, r, s), NRT_INVALID);
	WANT_STATUS(lib.nrta_tensor_write(j.a, b, 0, 8, 0, 16, r, s), NRT_INVALID);
	WANT_STATUS(lib.nrta_tensor_write(j.a, b, 0, 8, 0, 0, NULL, s), NRT_INVALID);
	WANT_STATUS(lib.nrta_tensor_read(NULL, j.a, 0, 8, 0, 0, r, s), NRT_INVALID);
	WANT_STATUS(lib.nrta_tensor_read(b, NULL, 0, 8, 0, 0, r, s), NRT_INVALID);
	WANT_STATUS(lib.nrta_tensor_read(b, bad, 0, 8, 0, 0, r, NULL), NRT_INVALID);
	WANT_STATUS(lib.nrta_tensor_copy(j.a, 0, NULL, 0, 8, 0, 0, r, s), NRT_INVALID);
	WANT_STATUS(lib.nrta_tensor_copy(bad, 0, j.b, 0, 8, 0, 0, r, s), NRT_INVALID_HANDLE);
	WANT_STATUS(lib.nrta_is_completed(1, NULL), NRT_INVALID);
	WANT_STATUS(lib.nrta_is_completed(0, &done), NRT_INVALID);
	WANT_STATUS(lib.nrta_is_completed(1, &done), NRT_INVALID);
	WANT_STATUS(lib.nrta_is_completed(UINT64_MAX, &done), NRT_INVALID);
	WANT_STATUS(lib.nrta_get_sequence(0, NRTA_XU_COLLECTIVES, 0, s), NRT_INVALID);
	WANT_STATUS(lib.nrta_get_sequence(0, NRTA_XU_TYPE_NUM, 0, s), NRT_INVALID);
	WANT_STATUS(lib.nrta_get_sequence(0, (nrta_xu_t)-1, 0, s), NRT_INVALID);
	WANT_STATUS(lib.nrta_get_sequence(2, NRTA_XU_COMPUTE, 0, s), NRT_INVALID);
	WANT_STATUS(lib.nrta_get_sequence(0, NRTA_XU_COMPUTE, 1, s), NRT_INVALID);
	WANT_STATUS(lib.nrta_get_sequence(0, NRTA_XU_COMPUTE, 0, NULL), NRT_INVALID);
	WANT_STATUS(lib.nrt_async_drain_queued_execs(2), NRT_INVALID);
	WANT_STATUS(lib.nrt_async_drain_queued_execs(-1), NRT_INVALID);
	WANT(ret == UNSET && seq == 99 && done);
	lib.nrt_close();
	return 0;
}

QUEUE_TEST(
	"schedule: bad handles, cores, queues and places are refused at once", refused, two_cores)

/* What only the work itself can find. */
static int fails_later(void *arg)
{
	NRT_STATUS range = UNSET, other = UNSET, missing = UNSET, good = UNSET;
	nrta_seq_t seq;
	struct job j, k;
	char b[64] = {0};

	WANT(up(arg) == 0);
	WANT(filled_job(&j, 0) == 0 && filled_job(&k, 1) == 0);
	WANT_STATUS(lib.nrta_tensor_write(j.a, b, 32, 1, 0, 0, &range, &seq), 0);
	WANT_STATUS(lib.nrta_tensor_copy(j.a, 0, k.a, 0, 8, 0, 0, &other, &seq), 0);
	WANT_STATUS(lib.nrta_tensor_write(j.a, b, 31, 1, 0, 0, &good, &seq), 0);
	WANT(await(seq) && range == NRT_INVALID && other == NRT_INVALID && good == 0);
	WANT_STATUS(lib.nrta_execute_schedule(j.model, j.out, j.in, 0, &missing, &seq), 0);
	WANT(await(seq) && missing == NRT_EXEC_BAD_INPUT);
	WANT_STATUS(schedule(&j, &good, &seq), 0);
	WANT(await(seq) && good == 0);
	lib.nrt_close();
	return 0;
}

QUEUE_TEST("schedule: work that fails says so in its status, and the queue goes on", fails_later,
	two_cores)

/* ---- numbers ------------------------------------------------------------------------------ */

/* Puts one piece of work into each queue there is; ids are unique and numbers begin with 1. */
static int numbers(void *arg)
{
	static bool used[1 << 16];
	NRT_STATUS ret[2][17];
	nrta_seq_t seq, asked;
	struct job j[2];
	char b[8] = {0};

	WANT(up(arg) == 0);
	for (int vnc = 0; vnc < 2; vnc++) {
		WANT(filled_job(&j[vnc], vnc) == 0);
		for (int q = 0; q <= 16; q++) {
			nrta_xu_t unit = q < 16 ? NRTA_XU_TENSOR_OP : NRTA_XU_COMPUTE;

			WANT_STATUS(lib.nrta_get_sequence((uint32_t)vnc, unit, q % 16, &asked), 0);
			WANT(NRTA_SEQ_GET_SEQ_NUM(asked) == 0);
			WANT_STATUS(q < 16 ? lib.nrta_tensor_write(
						     j[vnc].a, b, 0, 8, vnc, q, &ret[vnc][q], &seq)
					   : schedule(&j[vnc], &ret[vnc][q], &seq),
				0);
			WANT(NRTA_SEQ_GET_SEQ_NUM(seq) == 1);
			WANT(NRTA_SEQ_GET_XU_ID(seq) == NRTA_SEQ_GET_XU_ID(asked));
			WANT(!used[NRTA_SEQ_GET_XU_ID(seq)]);
			used[NRTA_SEQ_GET_XU_ID(seq)] = true;
			WANT(await(seq) && ret[vnc][q] == 0);
			WANT_STATUS(lib.nrta_get_sequence((uint32_t)vnc, unit, q % 16, &asked), 0);
			WANT(asked == seq);
			WANT(!is_done(seq + 1));
		}
	}
	/* Anew with the next nrt_init. */
	lib.nrt_close();
	WANT_STATUS(init(), 0);
	WANT_STATUS(lib.nrta_is_completed(seq, &(bool){0}), NRT_INVALID);
	WANT(filled_job(&j[1], 1) == 0);
	WANT_STATUS(schedule(&j[1], &ret[1][0], &asked), 0);
	WANT(asked == seq && await(seq) && computed(j[1].c));
	lib.nrt_close();
	return 0;
}

QUEUE_TEST("schedule: execution units have ids of their own, their numbers begin with 1 after "
	   "nrt_init",
	numbers, two_cores)

/* ---- threads ------------------------------------------------------------------------------ */

#define THREADS 8
#define PIECES 40

struct crowd {
	struct job jobs[THREADS]; /* of each core */
	pthread_barrier_t start;
};
struct member {
	struct crowd *crowd;
	unsigned id;
	NRT_STATUS rets[PIECES][2];
	uint64_t bytes[PIECES];
};

/* One execution and one transfer on some core. */
static int schedule_pair(struct member *m, int i, nrta_seq_t *execution, nrta_seq_t *transfer)
{
	unsigned core = (m->id + (unsigned)i) % THREADS;
	struct job *j = &m->crowd->jobs[core];
	NRT_STATUS status;

	while ((status = schedule(j, &m->rets[i][0], execution)) == NRT_QUEUE_FULL)
		sched_yield();
	WANT_STATUS(status, 0);
	m->rets[i][1] = UNSET;
	do
		status = lib.nrta_tensor_read(&m->bytes[i], j->a, 0, 8, (int)core, (int)m->id % 4,
			&m->rets[i][1], transfer);
	while (status == NRT_QUEUE_FULL);
	WANT_STATUS(status, 0);
	return 0;
}

static int take_part(struct member *m)
{
	nrta_seq_t seq[PIECES][2], last[THREADS] = {0};

	pthread_barrier_wait(&m->crowd->start);
	for (int i = 0; i < PIECES; i++) {
		unsigned core = (m->id + (unsigned)i) % THREADS;

		WANT(schedule_pair(m, i, &seq[i][0], &seq[i][1]) == 0);
		WANT(seq[i][0] > last[core]);
		last[core] = seq[i][0];
	}
	for (int i = 0; i < PIECES; i++) {
		WANT(await(seq[i][0]) && m->rets[i][0] == 0);
		WANT(await(seq[i][1]) && m->rets[i][1] == 0);
	}
	return 0;
}

static void *member_main(void *arg)
{
	return (void *)(intptr_t)take_part(arg);
}

static int crowd(void *arg)
{
	static struct member members[THREADS];
	static struct crowd c;
	pthread_t threads[THREADS];
	void *failed;

	setenv("NEURON_LOGICAL_NC_CONFIG", "1", 1);
	WANT(up(arg) == 0);
	pthread_barrier_init(&c.start, NULL, THREADS);
	for (unsigned i = 0; i < THREADS; i++)
		WANT(filled_job(&c.jobs[i], (int)i) == 0);
	for (unsigned i = 0; i < THREADS; i++) {
		members[i].crowd = &c;
		members[i].id = i;
		WANT(pthread_create(&threads[i], NULL, member_main, &members[i]) == 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		WANT(pthread_join(threads[i], &failed) == 0 && !failed);
	for (unsigned i = 0; i < THREADS; i++) {
		nrta_seq_t seq;

		WANT_STATUS(lib.nrta_get_sequence(i, NRTA_XU_COMPUTE, 0, &seq), 0);
		WANT(NRTA_SEQ_GET_SEQ_NUM(seq) == PIECES); /* each thread an eighth of them */
		WANT(computed(c.jobs[i].c));
	}
	lib.nrt_close();
	return 0;
}

QUEUE_TEST("schedule: eight threads on eight cores", crowd, eight_cores)

/* ---- the end ------------------------------------------------------------------------------ */

#define LONG_MODEL "ntrace-model 1\nname long\nstep SP 30ms nop\n"

/* An execution without tensors. */
static int open_bare(struct job *j, const char *text)
{
	memset(j, 0, sizeof(*j));
	WANT_STATUS(lib.nrt_load(text, strlen(text), 0, -1, &j->model), 0);
	WANT_STATUS(lib.nrt_allocate_tensor_set(&j->in), 0);
	j->out = j->in;
	return 0;
}

/* A thread that was joined may be seen a moment longer. */
static bool threads_are(void *count)
{
	return scratch_entries("/proc/self/task") == *(int *)count;
}

/* Do all threads but this one leave signals to the program's threads? */
static bool threads_block(uint64_t signals)
{
	char path[64], line[256];
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *d;
	unsigned others = 0;
	bool all = tasks != NULL;

	while (tasks && (d = readdir(tasks)) != NULL) {
		unsigned long long blocked = 0;
		FILE *f;

		if (d->d_name[0] == '.' || atoi(d->d_name) == gettid())
			continue;
		(void)snprintf(path, sizeof(path), "/proc/self/task/%.16s/status", d->d_name);
		f = fopen(path, "r");
		while (f && fgets(line, sizeof(line), f))
			(void)sscanf(line, "SigBlk: %llx", &blocked);
		if (f)
			fclose(f);
		all &= (blocked & signals) == signals;
		others++;
	}
	if (tasks)
		closedir(tasks);
	return all && others > 0;
}

static int signals_are_not_for_queues(void *arg)
{
	NRT_STATUS wrote = UNSET;
	static char bytes[32];
	nrta_seq_t seq;
	struct job j;

	WANT(up(arg) == 0);
	WANT(job_open(&j, ADD_MODEL, 0) == 0);
	WANT_STATUS(lib.nrta_tensor_write(j.a, bytes, 0, 32, 0, 0, &wrote, &seq), 0);
	WANT(await(seq));
	WANT(threads_block(1u << (SIGTERM - 1) | 1u << (SIGUSR1 - 1) | 1u << (SIGINT - 1)));
	lib.nrt_close();
	return 0;
}

QUEUE_TEST("schedule: the threads of queues take no signals of the program",
	signals_are_not_for_queues, two_cores)

static int closes_with_work(void *arg)
{
	NRT_STATUS rets[8], wrote = UNSET;
	static char bytes[32];
	nrta_seq_t seq;
	struct job j;
	int before;

	WANT(up(arg) == 0);
	before = scratch_entries("/proc/self/task");
	for (int round = 0; round < 3; round++) {
		WANT(open_bare(&j, LONG_MODEL) == 0);
		for (int i = 0; i < 8; i++)
			WANT_STATUS(schedule(&j, &rets[i], &seq), 0);
		WANT_STATUS(
			lib.nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, 32, "a", &j.a), 0);
		WANT_STATUS(lib.nrta_tensor_write(j.a, bytes, 0, 32, 0, 0, &wrote, &seq), 0);
		lib.nrt_close();
		for (int i = 0; i < 8; i++)
			WANT(rets[i] == 0);
		WANT(wrote == 0);
		WANT_STATUS(lib.nrta_is_completed(seq, &(bool){0}), NRT_UNINITIALIZED);
		WANT_STATUS(init(), 0);
		WANT(program_until(threads_are, &before, 20));
	}
	lib.nrt_close();
	WANT(virtual_device_stat(&((struct place *)arg)->device, "allocated_bytes") == 0);
	WANT(leaks() == 0);
	return 0;
}

QUEUE_TEST("schedule: nrt_close does what is queued and joins the threads", closes_with_work,
	two_cores)

static int closes_with_a_hang(void *arg)
{
	NRT_STATUS rets[8];
	nrta_seq_t seq;
	struct job j;

	setenv("NEURON_RT_EXEC_TIMEOUT", "1", 1);
	WANT(up(arg) == 0);
	WANT(open_bare(&j, HOUR_MODEL) == 0);
	for (int i = 0; i < 8; i++)
		WANT_STATUS(schedule(&j, &rets[i], &seq), 0);
	lib.nrt_close();
	WANT(rets[0] == NRT_TIMEOUT && rets[7] == NRT_CLOSED);
	return 0;
}

QUEUE_TEST("schedule: behind an execution that hangs nrt_close cancels the rest",
	closes_with_a_hang, two_cores)

static int child(void *arg)
{
	NRT_STATUS ret = UNSET;
	nrta_seq_t seq = 99;

	WANT_STATUS(schedule(arg, &ret, &seq), NRT_FAILURE);
	WANT_STATUS(lib.nrta_get_sequence(0, NRTA_XU_COMPUTE, 0, &seq), NRT_FAILURE);
	WANT_STATUS(lib.nrta_is_completed(99, &(bool){0}), NRT_FAILURE);
	WANT_STATUS(lib.nrt_async_drain_queued_execs(0), NRT_FAILURE);
	WANT_STATUS(lib.nrt_register_async_exec_callback(NULL, NULL), NRT_FAILURE);
	lib.nrt_close();
	WANT(seq == 99 && ret == UNSET);
	return 0;
}

/* A child is made while a queue works and another stands still. */
static int forks(void *arg)
{
	NRT_STATUS ret;
	nrta_seq_t seq;
	struct gate g;
	struct job j;

	WANT(up(arg) == 0);
	WANT(filled_job(&j, 0) == 0);
	WANT(gate_close(&g, &j) == 0);
	WANT_STATUS(schedule(&j, &ret, &seq), 0);
	WANT(scratch_child(child, &j) == 0);
	gate_open(&g);
	WANT(await(seq) && ret == 0);
	lib.nrt_close();
	return 0;
}

QUEUE_TEST("schedule: the child of a fork is refused, the parent's queues go on", forks, two_cores)
