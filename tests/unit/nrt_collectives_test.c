/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_collectives_test.c - models of several ranks: results, members that are late, missing or at odds, and the
 * events.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/shim/shim.h"
#include "tests/unit/nrt_records.h"

#define COUNT_OF_EACH 5 /* odd: the physical cores have parts of different sizes */
#define MAX_RANKS 8

/* Every rank gives a; all has what each gave, sum their sum, and copied, made of all, the same again. */
static void rank_text(char *text, size_t size, unsigned ranks)
{
	snprintf(text, size,
		"ntrace-model 2\nname group\ninput a int32 %d\noutput all int32 %ux%d\n"
		"output sum int32 %d\nsemaphore s\n"
		"step DMA0 2us nop post s\n"
		"step TOPSP 1us barrier wait s 1\n"
		"step TOPSP 8us all_gather a all\n"
		"step TOPSP 5us all_reduce a sum\n",
		COUNT_OF_EACH, ranks, COUNT_OF_EACH, COUNT_OF_EACH);
}

struct rank {
	unsigned number, ranks, first, rounds;
	int core;
	nrt_model_t *model;
	nrt_tensor_t *a, *all, *sum;
	nrt_tensor_set_t *in, *out;
	pthread_t thread;
	NRT_STATUS status; /* of the last execution */
};

static int rank_open(struct rank *r)
{
	size_t each = COUNT_OF_EACH * sizeof(int32_t);
	char text[512];

	rank_text(text, sizeof(text), r->ranks);
	WANT_STATUS(lib.nrt_load_collectives(
			    text, strlen(text), r->core, -1, r->number, r->ranks, &r->model),
		0);
	WANT_STATUS(
		lib.nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, r->core, each, "a", &r->a), 0);
	WANT_STATUS(lib.nrt_tensor_allocate(
			    NRT_TENSOR_PLACEMENT_DEVICE, r->core, r->ranks * each, "all", &r->all),
		0);
	WANT_STATUS(
		lib.nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, r->core, each, "sum", &r->sum),
		0);
	WANT_STATUS(lib.nrt_allocate_tensor_set(&r->in), 0);
	WANT_STATUS(lib.nrt_allocate_tensor_set(&r->out), 0);
	WANT_STATUS(lib.nrt_add_tensor_to_tensor_set(r->in, "a", r->a), 0);
	WANT_STATUS(lib.nrt_add_tensor_to_tensor_set(r->out, "all", r->all), 0);
	WANT_STATUS(lib.nrt_add_tensor_to_tensor_set(r->out, "sum", r->sum), 0);
	return 0;
}

static int32_t given(unsigned rank, unsigned round, unsigned i)
{
	return (int32_t)(1000 * round + 100 * rank + i);
}

static int rank_round(struct rank *r, unsigned round)
{
	int32_t a[COUNT_OF_EACH], all[MAX_RANKS * COUNT_OF_EACH], sum[COUNT_OF_EACH];

	for (unsigned i = 0; i < COUNT_OF_EACH; i++)
		a[i] = given(r->number, round, i);
	WANT_STATUS(lib.nrt_tensor_write(r->a, a, 0, sizeof(a)), 0);
	r->status = lib.nrt_execute(r->model, r->in, r->out);
	WANT_STATUS(r->status, 0);
	WANT_STATUS(lib.nrt_tensor_read(r->all, all, 0, r->ranks * sizeof(a)), 0);
	WANT_STATUS(lib.nrt_tensor_read(r->sum, sum, 0, sizeof(sum)), 0);
	for (unsigned i = 0; i < COUNT_OF_EACH; i++) {
		int32_t want = 0;

		for (unsigned k = 0; k < r->ranks; k++) {
			WANT(all[k * COUNT_OF_EACH + i] == given(k, round, i));
			want += given(k, round, i);
		}
		WANT(sum[i] == want);
	}
	return 0;
}

static void *rank_main(void *arg)
{
	struct rank *r = arg;

	for (unsigned round = 0; round < r->rounds; round++)
		if (rank_round(r, r->first + round) != 0)
			return r;
	return NULL;
}

static void *execute_main(void *arg)
{
	struct rank *r = arg;

	r->status = lib.nrt_execute(r->model, r->in, r->out);
	return NULL;
}

static unsigned ranks_now;
static const char *lnc_now = "2", *job_now = "127.0.0.1:4000";

static int up(const struct place *p)
{
	setenv("NEURON_LOGICAL_NC_CONFIG", lnc_now, 1);
	setenv("NEURON_RT_ROOT_COMM_ID", job_now, 1);
	WANT(enter(p) == 0);
	WANT_STATUS(init(), 0);
	return 0;
}

static int open_all(struct rank *r, unsigned ranks, unsigned rounds)
{
	for (unsigned i = 0; i < ranks; i++) {
		r[i] = (struct rank){.number = i, .ranks = ranks, .rounds = rounds, .core = (int)i};
		WANT(rank_open(&r[i]) == 0);
	}
	return 0;
}

static int run_all(struct rank *r, unsigned ranks)
{
	void *failed;

	for (unsigned i = 0; i < ranks; i++)
		WANT(pthread_create(&r[i].thread, NULL, rank_main, &r[i]) == 0);
	for (unsigned i = 0; i < ranks; i++)
		WANT(pthread_join(r[i].thread, &failed) == 0 && !failed);
	return 0;
}

/* ---- results ------------------------------------------------------------------------------ */

static int in_one_process(void *arg)
{
	struct rank r[MAX_RANKS];

	WANT(up(arg) == 0);
	WANT(open_all(r, ranks_now, 10) == 0);
	WANT(run_all(r, ranks_now) == 0);
	lib.nrt_close();
	return 0;
}

static const char *const eight_cores[] = {"--devices=2", "--cores=8", NULL};

TEST("collectives: right over 2, 4 and 8 cores of a process, LNC 1 and 2", "[nrt][execute][vdev]")
{
	static const char *const sizes[] = {"1", "2"};

	if (device_lacks())
		SKIP(device_lacks());
	for (int i = 0; i < 2; i++)
		for (ranks_now = 2; ranks_now <= MAX_RANKS; ranks_now *= 2) {
			test_info("LNC %s, %u ranks", sizes[i], ranks_now);
			lnc_now = sizes[i];
			with_device(in_one_process, eight_cores);
		}
}

static int one_process_of_two(const struct place *p, unsigned number)
{
	struct rank r = {.number = number, .ranks = 2, .rounds = 10};

	setenv("NEURON_RT_VISIBLE_CORES", number ? "1" : "0", 1);
	WANT(up(p) == 0);
	WANT(rank_open(&r) == 0);
	WANT(rank_main(&r) == NULL);
	lib.nrt_close();
	return 0;
}

static int in_two_processes(void *arg)
{
	pid_t other = fork();
	int status = 0;

	if (other == 0)
		_exit(one_process_of_two(arg, 1));
	WANT(other > 0);
	WANT(one_process_of_two(arg, 0) == 0);
	WANT(waitpid(other, &status, 0) == other && WIFEXITED(status) && WEXITSTATUS(status) == 0);
	return 0;
}

TEST("collectives: right over two processes", "[nrt][execute][vdev]")
{
	if (device_lacks())
		SKIP(device_lacks());
	lnc_now = "2";
	with_device(in_two_processes, two_cores);
}

/* ---- members that are late, missing or at odds --------------------------------------------- */

static bool two_launched(void *arg)
{
	const struct place *p = arg;

	return virtual_device_stat(&p->device, "launches") >= 2;
}

static int late_member(void *arg)
{
	struct rank r[2];
	void *failed;

	WANT(up(arg) == 0);
	WANT(open_all(r, 2, 1) == 0);
	WANT(pthread_create(&r[0].thread, NULL, rank_main, &r[0]) == 0);
	WANT(program_until(two_launched, arg, 20)); /* both physical cores of it wait */
	WANT(rank_round(&r[1], 0) == 0);
	WANT(pthread_join(r[0].thread, &failed) == 0 && !failed);
	lib.nrt_close();
	return 0;
}

static int missing_member(void *arg)
{
	struct rank r[2];
	void *failed;

	setenv("NEURON_RT_EXEC_TIMEOUT", "1", 1);
	WANT(up(arg) == 0);
	WANT(open_all(r, 2, 3) == 0);
	WANT_STATUS(lib.nrt_execute(r[0].model, r[0].in, r[0].out), NRT_TIMEOUT);
	/* The other one's first run is the one that was given up, at once and whatever the first does now. */
	WANT(pthread_create(&r[0].thread, NULL, rank_main, &r[0]) == 0);
	WANT_STATUS(lib.nrt_execute(r[1].model, r[1].in, r[1].out), NRT_TIMEOUT);
	WANT(rank_main(&r[1]) == NULL);
	WANT(pthread_join(r[0].thread, &failed) == 0 && !failed);
	/* What was given up is forgotten with the model. */
	WANT_STATUS(lib.nrt_execute(r[0].model, r[0].in, r[0].out), NRT_TIMEOUT);
	for (unsigned i = 0; i < 2; i++)
		WANT_STATUS(lib.nrt_unload(r[i].model), 0);
	WANT(open_all(r, 2, 5) == 0);
	WANT(run_all(r, 2) == 0);
	lib.nrt_close();
	return 0;
}

/* Two jobs with the same model at once, each a process with both ranks. */
static int one_job(const struct place *p, const char *cores, const char *job, unsigned base)
{
	struct rank r[2];

	setenv("NEURON_RT_VISIBLE_CORES", cores, 1);
	job_now = job;
	WANT(up(p) == 0);
	WANT(open_all(r, 2, 0) == 0);
	for (unsigned round = base; round < base + 40; round++) {
		for (unsigned i = 0; i < 2; i++) {
			r[i].first = round;
			r[i].rounds = 1;
		}
		WANT(run_all(r, 2) == 0);
	}
	lib.nrt_close();
	return 0;
}

static int two_jobs(void *arg)
{
	pid_t other = fork();
	int status = 0;

	if (other == 0)
		_exit(one_job(arg, "2-3", "127.0.0.1:4001", 1000));
	WANT(other > 0);
	WANT(one_job(arg, "0-1", "127.0.0.1:4000", 0) == 0);
	WANT(waitpid(other, &status, 0) == other && WIFEXITED(status) && WEXITSTATUS(status) == 0);
	return 0;
}

TEST("collectives: two jobs with one model do not meet", "[nrt][execute][vdev]")
{
	if (device_lacks())
		SKIP(device_lacks());
	lnc_now = "2";
	with_device(two_jobs, eight_cores);
}

/* Two that both say that they are the same rank: one is refused, and the other waits in vain, or on each physical
 * core another one. */
static int twice(void *arg)
{
	struct rank r[2];

	setenv("NEURON_RT_EXEC_TIMEOUT", "1", 1);
	WANT(up(arg) == 0);
	for (unsigned i = 0; i < 2; i++) {
		r[i] = (struct rank){.number = 0, .ranks = 2, .core = (int)i};
		WANT(rank_open(&r[i]) == 0);
		WANT(pthread_create(&r[i].thread, NULL, execute_main, &r[i]) == 0);
	}
	for (unsigned i = 0; i < 2; i++) {
		WANT(pthread_join(r[i].thread, NULL) == 0);
		WANT(r[i].status == NRT_EXEC_HW_ERR_COLLECTIVES || r[i].status == NRT_TIMEOUT);
		WANT_STATUS(lib.nrt_unload(r[i].model), 0);
	}
	WANT(r[0].status != NRT_TIMEOUT || r[1].status != NRT_TIMEOUT);
	WANT(open_all(r, 2, 3) == 0);
	WANT(run_all(r, 2) == 0);
	lib.nrt_close();
	return 0;
}

#define MEETING "ntrace-model 2\nname meeting\nstep TOPSP 1us barrier\n"

/* One thinks that there are two of them, the other three. */
static int at_odds(void *arg)
{
	struct rank r[2];

	WANT(up(arg) == 0);
	for (unsigned i = 0; i < 2; i++) {
		r[i] = (struct rank){.number = i, .ranks = 2 + i, .core = (int)i};
		WANT_STATUS(lib.nrt_load_collectives(MEETING, strlen(MEETING), r[i].core, -1, i,
				    r[i].ranks, &r[i].model),
			0);
		WANT_STATUS(lib.nrt_allocate_tensor_set(&r[i].in), 0);
		r[i].out = r[i].in;
		WANT(pthread_create(&r[i].thread, NULL, execute_main, &r[i]) == 0);
	}
	for (unsigned i = 0; i < 2; i++) {
		WANT(pthread_join(r[i].thread, NULL) == 0);
		WANT_STATUS(r[i].status, NRT_EXEC_HW_ERR_COLLECTIVES);
	}
	WANT(open_all(r, 2, 3) == 0);
	WANT(run_all(r, 2) == 0);
	lib.nrt_close();
	return 0;
}

#define MEMBER_TEST(name, fn)                 \
	TEST(name, "[nrt][execute][vdev]")    \
	{                                     \
		if (device_lacks())           \
			SKIP(device_lacks()); \
		lnc_now = "2";                \
		with_device(fn, two_cores);   \
	}

MEMBER_TEST("collectives: a late member is waited for", late_member)
MEMBER_TEST(
	"collectives: a run that a member has given up is a timeout for all, and the next is right",
	missing_member)
MEMBER_TEST("collectives: a rank that is there twice is an error, and the next group works", twice)
MEMBER_TEST("collectives: members at odds all get an error, and the next group works", at_odds)

static int refused(void *arg)
{
	static const struct {
		unsigned id, count;
	} rows[] = {{2, 2}, {0, 0}, {0, 65}, {UINT32_MAX, UINT32_MAX}};
	nrt_model_t *m = NULL;
	char text[512];

	WANT(up(arg) == 0);
	rank_text(text, sizeof(text), 2);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		WANT_STATUS(lib.nrt_load_collectives(
				    text, strlen(text), 0, -1, rows[i].id, rows[i].count, &m),
			NRT_INVALID);
	WANT(said(arg, "at most 64 work together here"));
	WANT_STATUS(lib.nrt_load_collectives(text, strlen(text), 0, -1, 0, 3, &m), NRT_INVALID);
	WANT(said(arg, "Model, line 9: 'all' has room for 2 ranks, and the model is loaded for 3"));
	WANT_STATUS(lib.nrt_load(text, strlen(text), 0, -1, &m), NRT_INVALID);
	WANT(m == NULL);
	lib.nrt_close();
	/* Nobody says whose ranks they would be. */
	setenv("NEURON_RT_ROOT_COMM_ID", "", 1);
	WANT_STATUS(init(), 0);
	WANT_STATUS(lib.nrt_load_collectives(text, strlen(text), 0, -1, 0, 2, &m), NRT_INVALID);
	WANT(said(arg, "for 2 ranks NEURON_RT_ROOT_COMM_ID must say whose they are"));
	WANT_STATUS(lib.nrt_load_collectives(MEETING, strlen(MEETING), 0, -1, 0, 1, &m), 0);
	lib.nrt_close();
	return 0;
}

MEMBER_TEST("collectives: ranks that cannot be are refused at the load", refused)

/* ---- events ------------------------------------------------------------------------------- */

#define ROUNDS 3

static int group_runs(void)
{
	struct rank r[2];

	WANT(open_all(r, 2, ROUNDS) == 0);
	return run_all(r, 2);
}

/* Is the k-th start of `inner` in a run of the same core and execution? */
static bool in_its_run(enum trace_type inner, int k)
{
	const struct trace_record *in = find(inner, TRACE_START, k), *run;
	struct trace_cc_exec cc;
	struct trace_device_exec d;

	memcpy(&cc, in->data, sizeof(cc));
	for (int i = 0; (run = find(TRACE_DEVICE_EXEC, TRACE_START, i)) != NULL; i++) {
		memcpy(&d, run->data, sizeof(d));
		if (d.exec_id == cc.exec_id && d.device_core_idx == cc.device_core_idx)
			return run->timestamp_ns <= in->timestamp_ns &&
			       stop_of(in)->timestamp_ns <= stop_of(run)->timestamp_ns;
	}
	return false;
}

static int check_group(void *arg)
{
	int executions = 2 * ROUNDS;

	setenv("NEURON_RT_ROOT_COMM_ID", job_now, 1);
	setenv("NEURON_LOGICAL_NC_CONFIG", "2", 1);
	WANT(record(arg, group_runs) == 0);
	WANT(all_closed() == 0);
	WANT(count_of(TRACE_CC_LOAD, TRACE_START) == 2);
	WANT(nested(TRACE_CC_LOAD, TRACE_MODEL_LOAD, 0) &&
		nested(TRACE_CC_LOAD, TRACE_MODEL_LOAD, 1));
	WANT(count_of(TRACE_MODEL_SUBMIT, TRACE_START) == executions);
	WANT(count_of(TRACE_DEVICE_EXEC, TRACE_START) == 2 * executions);
	WANT(count_of(TRACE_ENC_BARRIER, TRACE_START) == executions);
	WANT(count_of(TRACE_CONSUME_ERROR_NOTIFICATIONS, TRACE_START) == 2 * executions);
	WANT(count_of(TRACE_CONSUME_POOL_STDIO, TRACE_START) == 2 * executions);
	WANT(count_of(TRACE_CONSUME_TOPSP_CC_NOTIFICATIONS, TRACE_START) == executions);
	/* Two collectives on both physical cores, one barrier that is one for both. */
	WANT(count_of(TRACE_CC_EXEC, TRACE_START) == 2 * 2 * executions);
	WANT(count_of(TRACE_CC_EXEC_BARRIER, TRACE_START) == executions);
	for (int k = 0; k < 2 * 2 * executions; k++)
		WANT(in_its_run(TRACE_CC_EXEC, k));
	for (int k = 0; k < executions; k++) {
		WANT(nested(TRACE_EXEC_CORE, TRACE_ENC_BARRIER, k));
		WANT(stop_of(find(TRACE_ENC_BARRIER, TRACE_START, k))->timestamp_ns <=
			find(TRACE_EXEC_WAIT, TRACE_START, k)->timestamp_ns);
	}
	return 0;
}

MEMBER_TEST("nrt trace: collectives, barriers and loads of a group are spans", check_group)
