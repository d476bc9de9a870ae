/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_device_stress_test.c - device profiles of a session that begins and ends while threads
 * execute, that ends while a thread does not go on, and in which each allocation and each call to
 * the system fails once.
 *
 * The library tests/faults.so makes calls fail; it must come before the C library, so a hidden test
 * does that work, in a process of its own.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "tests/shim/shim.h"
#include "tests/unit/inspect_device_fixture.h"
#include "tests/unit/nrt_faults.h"

#define MODE(mode) NRT_INSPECT_DEVICE_PROFILE_MODE_##mode
#define NUMERICAL_MODEL                                                           \
	"ntrace-model 2\nname numerical\ninput a float32 8\noutput c float32 8\n" \
	"step PE 5us nop\nstep PE 1us fault numerical\nstep PE 5us copy a c\n"

/* ---- begin and end while threads execute --------------------------------------------------- */

#define THREADS 4
#define SESSIONS 24

static struct job jobs[THREADS];
static atomic_bool over;
static atomic_int wrong;

static void *execute_and_load(void *arg)
{
	int thread = (int)(intptr_t)arg;
	struct job *j = &jobs[thread];
	NRT_STATUS wanted = thread == 3 ? NRT_EXEC_COMPLETED_WITH_NUM_ERR : NRT_SUCCESS;

	for (int i = 0; !atomic_load(&over); i++) {
		nrt_model_t *again = NULL;
		NRT_STATUS status = lib.nrt_execute(j->model, j->in, j->out);

		if (status == NRT_SUCCESS && i % 4 == thread)
			status = lib.nrt_load(ADD_MODEL, strlen(ADD_MODEL), thread % 2, -1, &again);
		if (again)
			status = lib.nrt_unload(again);
		if (status && status != wanted)
			atomic_fetch_add(&wrong, 1);
	}
	return NULL;
}

/* Every .ntff of the directory is whole, and there are as many as were reported. */
static int check_files(const struct inspected *s)
{
	DIR *d = opendir(s->dir->path);
	unsigned ntffs = 0, neffs = 0;

	WANT(d != NULL);
	for (struct dirent *e; (e = readdir(d));) {
		const char *dot = strrchr(e->d_name, '.');
		struct ntff n;

		neffs += dot && !strcmp(dot, ".neff");
		if (!dot || strcmp(dot, ".ntff") != 0)
			continue;
		WANT(ntff_load(&n, inspected_path(s, e->d_name).s) == 0);
		ntff_done(&n);
		ntffs++;
	}
	closedir(d);
	WANT(ntffs == s->ntffs && neffs == s->neffs);
	return 0;
}

static int one_session(int number, unsigned *ret_files)
{
	static const struct {
		nrt_inspect_device_profile_mode_t mode;
		bool on_fail;
	} kinds[] = {{MODE(SESSION), false}, {MODE(MODEL), false}, {MODE(DISABLED), true},
		{MODE(MODEL), true}, {MODE(SESSION), true}};
	struct inspected s;

	WANT_STATUS(inspected_begin(&s, kinds[number % 5].mode, kinds[number % 5].on_fail), 0);
	for (int i = 0; i < number % 4; i++)
		WANT_STATUS(lib.nrt_execute(jobs[0].model, jobs[0].in, jobs[0].out), 0);
	WANT(inspected_end() == 0);
	WANT(check_files(&s) == 0);
	*ret_files += s.ntffs;
	inspected_done(&s);
	return 0;
}

static int while_executing(void *arg)
{
	static const char *const texts[THREADS] = {
		ADD_MODEL, COPY_MODEL, ADD_MODEL, NUMERICAL_MODEL};
	pthread_t threads[THREADS];
	unsigned files = 0;

	setenv("NEURON_RT_PROFILE_BUF_INSTRUCTION_MB", "1", 1);
	WANT(inspected_enter(arg) == 0);
	for (int i = 0; i < THREADS; i++)
		WANT(job_open(&jobs[i], texts[i], i % 2) == 0);
	for (int i = 0; i < THREADS; i++)
		WANT(pthread_create(&threads[i], NULL, execute_and_load, (void *)(intptr_t)i) == 0);
	for (int n = 0; n < SESSIONS; n++)
		WANT(one_session(n, &files) == 0);
	atomic_store(&over, true);
	for (int i = 0; i < THREADS; i++)
		WANT(pthread_join(threads[i], NULL) == 0);
	WANT(atomic_load(&wrong) == 0 && files > SESSIONS);
	lib.nrt_close();
	return leaks();
}

INSPECT_TEST(
	"inspect device stress: sessions begin and end while threads execute and load, and each "
	"file is whole",
	while_executing, two_cores)

/* ---- a thread that does not go on ---------------------------------------------------------- */

static sem_t in_it, go_on;

static int added_and_waits(void *ctx, const char *name, const char *type, uint64_t bytes)
{
	(void)ctx;
	(void)name;
	(void)bytes;
	if (strcmp(type, "ntff") != 0 && strcmp(type, "neff") != 0)
		return 0; /* what an end says is no file that is written */
	sem_post(&in_it);
	while (sem_wait(&go_on) != 0)
		;
	return 0;
}

static void *execute(void *arg)
{
	struct job *j = arg;

	(void)lib.nrt_execute(j->model, j->in, j->out);
	return NULL;
}

static int end_in_a_hurry(void)
{
	WANT_STATUS(api_enter(__func__), 0);
	(void)inspect_device_end(__func__, false);
	api_leave();
	return 0;
}

/* It writes a file, and has the lock that goes with that. */
static int stuck_in_a_file(void *arg)
{
	struct inspected s = {0};
	pthread_t thread;

	WANT(inspected_enter(arg) == 0);
	WANT(sem_init(&in_it, 0, 0) == 0 && sem_init(&go_on, 0, 0) == 0);
	WANT(job_open(&jobs[0], ADD_MODEL, 0) == 0);
	WANT_STATUS(inspected_begin_with(&s, (struct inspect_device_wish){.mode = MODE(MODEL),
						     .enabled = true,
						     .added = added_and_waits}),
		0);
	WANT(pthread_create(&thread, NULL, execute, &jobs[0]) == 0);
	WANT(sem_wait(&in_it) == 0);
	WANT(end_in_a_hurry() == 0);
	WANT(said(arg, "Device profiles are lost: a thread that was interrupted writes one"));
	sem_post(&go_on);
	sem_post(&go_on);
	WANT(pthread_join(thread, NULL) == 0);
	WANT(end_in_a_hurry() == 0);
	WANT(runs_in(run_file(&s, ADD_MODEL, 0, "").s, "adder") == 2);
	WANT(has_model_file(&s, ADD_MODEL) && inspected_entries(&s) == 2);
	inspected_done(&s);
	/* What an end in a hurry has left does not disturb the next one. */
	WANT_STATUS(inspected_begin(&s, MODE(SESSION), false), 0);
	WANT(job_run(&jobs[0], 0, 2) == 0 && inspected_end() == 0);
	WANT(runs_in(session_file(&s, 0, 0).s, "adder") == 2);
	inspected_done(&s);
	lib.nrt_close();
	return leaks();
}

INSPECT_TEST(
	"inspect device: an end that may not wait skips what a thread writes that does not go on",
	stuck_in_a_file, two_cores)

#define RING_REQUEST "NOTIFICATIONS_INIT_WITH_REALLOC_V2"
static long long rings_of_load;

static bool opens_rings(void *arg)
{
	return virtual_device_stat(&((struct place *)arg)->device, "ioctl." RING_REQUEST) >
	       rings_of_load;
}

/* It opens the core's rings, and has the lock of the core. */
static int stuck_in_a_core(void *arg)
{
	const struct place *p = arg;
	struct inspected s;
	pthread_t thread;

	WANT(inspected_enter(arg) == 0);
	WANT(job_open(&jobs[0], ADD_MODEL, 0) == 0);
	rings_of_load = virtual_device_stat(&p->device, "ioctl." RING_REQUEST);
	WANT_STATUS(inspected_begin(&s, MODE(MODEL), false), 0);
	WANT(pthread_create(&thread, NULL, execute, &jobs[0]) == 0);
	WANT(program_until(opens_rings, arg, 20));
	WANT(end_in_a_hurry() == 0);
	WANT(said(arg, "The device profile of NC 0 is lost: a thread that was interrupted works on "
		       "it"));
	WANT(pthread_join(thread, NULL) == 0);
	WANT(inspected_entries(&s) == 0);
	inspected_done(&s);
	lib.nrt_close(); /* takes away what is left */
	return leaks();
}

TEST("inspect device: an end that may not wait skips a core on which a thread does not go on",
	"[nrt][inspect_device][vdev]")
{
	/* More than 30 of them, each a part of the time that the end would have to wait. */
	static const char *const options[] = {
		"--arch=v2", "--cores=1", "--delay=" RING_REQUEST ":100", NULL};

	if (device_lacks())
		SKIP(device_lacks());
	with_device(stuck_in_a_core, options);
}

static bool is_at_work(void *arg)
{
	return virtual_device_stat(&((struct place *)arg)->device, "launches") > 0;
}

/* It is in the middle of an execution, with the core's lock; the others are idle. */
static int stuck_in_an_execution(void *arg)
{
	struct inspected s;
	pthread_t thread;

	WANT(inspected_enter(arg) == 0);
	WANT(job_open(&jobs[0], SLOW_MODEL, 0) == 0 && job_open(&jobs[1], ADD_MODEL, 1) == 0);
	WANT_STATUS(inspected_begin(&s, MODE(SESSION), true), 0);
	WANT(pthread_create(&thread, NULL, execute, &jobs[0]) == 0);
	WANT(program_until(is_at_work, arg, 20));
	WANT(job_run(&jobs[1], 0, 2) == 0);
	WANT(end_in_a_hurry() == 0);
	WANT(said(arg, "An execution on NC 0 has not ended: no device profile of it"));
	WANT(runs_in(session_file(&s, 1, 0).s, "adder") == 2);
	WANT(access(session_file(&s, 0, 0).s, F_OK) == 0); /* what there was of it */
	WANT(pthread_join(thread, NULL) == 0);
	inspected_done(&s);
	lib.nrt_close();
	return leaks();
}

INSPECT_TEST(
	"inspect device: an end in the middle of an execution has what was until then, and says so",
	stuck_in_an_execution, two_cores)

/* ---- faults ------------------------------------------------------------------------------- */

#define MOST_CALLS 600

static const struct fault_kind {
	nrt_inspect_device_profile_mode_t mode;
	bool on_fail;
} fault_kinds[] = {{MODE(SESSION), false}, {MODE(MODEL), false}, {MODE(DISABLED), true}};

static bool fault(const struct faults *f, unsigned long n)
{
	bool happened = f->happened();

	f->arm(n, false);
	return happened;
}

/* What is there is whole; a fault costs at most what it met. */
static int look(const struct inspected *s, bool happened)
{
	WANT(scratch_entries(s->dir->work) >= 0);
	WANT(happened || (s->ntffs == 1 && s->neffs == 1));
	return check_files(s);
}

/* The n-th call of begin, or of the executions and the end, fails. */
static int with_fault(const struct faults *f, const struct fault_kind *kind, bool in_begin,
	unsigned long n, bool *ret_happened)
{
	struct job *j = &jobs[kind->on_fail ? 1 : 0];
	struct inspected s;
	NRT_STATUS status;

	WANT_STATUS(inspected_open(&s, kind->on_fail), 0);
	f->arm(in_begin ? n : 0, false);
	status = inspected_start(&s,
		(struct inspect_device_wish){
			.mode = kind->mode, .enabled = !kind->on_fail, .on_fail = kind->on_fail});
	*ret_happened = fault(f, 0);
	if (status) {
		WANT(*ret_happened && in_begin);
		inspected_done(&s);
		return 0;
	}
	f->arm(in_begin ? 0 : n, false);
	WANT(lib.nrt_execute(j->model, j->in, j->out) != NRT_UNINITIALIZED);
	WANT(inspected_end() == 0);
	*ret_happened |= fault(f, 0);
	WANT(look(&s, *ret_happened) == 0);
	inspected_done(&s);
	return 0;
}

static int each_fault(const struct faults *f, const struct fault_kind *kind, bool in_begin)
{
	struct belongings before = belongings_now(), after;
	bool happened = true;
	unsigned long n;

	for (n = 1; happened && n < MOST_CALLS; n += 1 + (in_begin ? n / 4 : n / 60)) {
		int rc = with_fault(f, kind, in_begin, n, &happened);

		if (rc)
			dprintf(complaint_fd, "mode %d, %s, fault %lu\n", (int)kind->mode,
				in_begin ? "begin" : "run and end", n);
		WANT(rc == 0);
		after = belongings_now();
		WANT(belongings_equal(&before, &after));
	}
	WANT(!happened && (n > 2 || in_begin)); /* a begin may have nothing to do */
	return 0;
}

static int all_faults(const struct place *p, const struct faults *f)
{
	int out = dup(1);

	setenv("NEURON_RT_PROFILE_BUF_INSTRUCTION_MB", "1", 1);
	WANT(enter_linked(p, NULL) == 0);
	WANT_STATUS(init(), 0);
	WANT(chdir(p->scratch.dir) == 0);
	WANT(job_open(&jobs[0], ADD_MODEL, 0) == 0 && job_open(&jobs[1], NUMERICAL_MODEL, 0) == 0);
#ifdef __SANITIZE_ADDRESS__
	/* A thread that begins without memory ends in AddressSanitizer: the collector's is there
	 * already. */
	WANT_STATUS(lib.nrt_profile_session_start(1), 0);
#endif
	for (size_t k = 0; k < sizeof(fault_kinds) / sizeof(fault_kinds[0]); k++)
		for (int in_begin = 0; in_begin < 2; in_begin++)
			WANT(each_fault(f, &fault_kinds[k], in_begin) == 0);
	lib.nrt_close();
	WANT(leaks() == 0);
	WANT(dup2(out, 1) == 1 && close(out) == 0);
	return 0;
}

static const char *const small_device[] = {"--arch=v2", "--cores=2", NULL};

TEST("inspect device faults: the work, under tests/faults.so", "[.inspect_device_faults]")
{
	faults_work(all_faults);
}

TEST("inspect device faults: memory runs out anywhere, which costs at most one file",
	"[nrt][inspect_device][vdev][slow]")
{
	faults_run_on("[.inspect_device_faults]", "NTRACE_FAULT=alloc:0", small_device);
}

TEST("inspect device faults: any call to the system fails, which costs at most one file",
	"[nrt][inspect_device][vdev][slow]")
{
	faults_run_on("[.inspect_device_faults]", "NTRACE_FAULT=file:0", small_device);
}
