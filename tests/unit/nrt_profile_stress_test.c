/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_profile_stress_test.c - profiles from many threads while executions go on, and nrt_close in the middle of them.
 *
 * Files have names of their own, and each that a call said it wrote is whole.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "tests/shim/shim.h"
#include "tests/unit/nrt_profile.h"

#define THREADS 8
#define ROUNDS 12

static struct job jobs[2];
static atomic_bool over;
static atomic_int files, wrong;

/* The statuses that calls may give here; any other one is wrong. */
static void expect(const char *what, NRT_STATUS status)
{
	if (status == NRT_SUCCESS || status == NRT_INVALID)
		return;
	if (atomic_load(&over) && (status == NRT_CLOSED || status == NRT_UNINITIALIZED ||
					  status == NRT_INVALID_HANDLE))
		return;
	dprintf(complaint_fd, "%s gave %d\n", what, (int)status);
	atomic_fetch_add(&wrong, 1);
}

static void written(NRT_STATUS status, const char *path)
{
	struct ntff n;

	if (status)
		return;
	if (ntff_load(&n, path) != 0)
		atomic_fetch_add(&wrong, 1);
	ntff_done(&n);
	(void)unlink(path);
	atomic_fetch_add(&files, 1);
}

/* ---- what threads do ---------------------------------------------------------------------- */

static void run_session(int thread, int round)
{
	int vnc = (thread + round) % 2;
	char path[64];
	uint64_t id;
	NRT_STATUS status;

	snprintf(path, sizeof(path), "session_%d_%d", thread, round);
	expect("session_start", lib.nrt_profile_session_start(vnc));
	status = lib.nrt_profile_session_stop(vnc, &id);
	expect("session_stop", status);
	if (status)
		return;
	status = round % 3 ? lib.nrt_profile_session_serialize(id, path)
			   : lib.nrt_profile_session_drop(id);
	expect("session_serialize", status);
	if (round % 3)
		written(status, path);
	if (round % 5 == 4)
		expect("session_drop_all", lib.nrt_profile_session_drop_all(vnc));
}

static void run_model(int thread, int round)
{
	char path[64];
	NRT_STATUS status;

	snprintf(path, sizeof(path), "model_%d_%d", thread, round);
	expect("profile_start", lib.nrt_profile_start(jobs[thread % 2].model, path));
	status = lib.nrt_profile_stop(path);
	expect("profile_stop", status);
	written(status, path);
}

static void run_continuous(int thread, int round)
{
	nrt_profile_continuous_options_t *o = NULL;

	(void)lib.nrt_profile_continuous_options_allocate(&o);
	(void)lib.nrt_profile_continuous_options_set_output_dir(o, "continuous");
	expect("continuous_start", lib.nrt_profile_continuous_start(o));
	expect("continuous_save",
		lib.nrt_profile_continuous_save((uint32_t)(thread + round) % 2, o));
	if (round % 4 == 3)
		expect("continuous_stop", lib.nrt_profile_continuous_stop());
	lib.nrt_profile_continuous_options_free(o);
}

static void run_execution(int thread, int round)
{
	const struct job *j = &jobs[thread % 2];

	for (int i = 0; i < 1 + round % 3; i++)
		expect("execute", lib.nrt_execute(j->model, j->in, j->out));
}

static void (*const works[THREADS])(int, int) = {run_execution, run_execution, run_session,
	run_session, run_session, run_model, run_model, run_continuous};

static void *work(void *arg)
{
	int thread = (int)(intptr_t)arg;

	for (int round = 0; round < ROUNDS; round++)
		works[thread](thread, round);
	return NULL;
}

static void *work_until_over(void *arg)
{
	int thread = (int)(intptr_t)arg;

	for (int round = 0; !atomic_load(&over); round++)
		works[thread](thread, round);
	works[thread](thread, 1); /* refused, whatever it is */
	return NULL;
}

/* ---- together ----------------------------------------------------------------------------- */

static int begin_threads(struct place *p, void *(*body)(void *), pthread_t threads[THREADS])
{
	setenv("NEURON_RT_PROFILE_BUF_INSTRUCTION_MB", "1", 1);
	WANT(profile_enter_test(p) == 0);
	for (int i = 0; i < 2; i++)
		WANT(job_open(&jobs[i], i ? COPY_MODEL : ADD_MODEL, i) == 0);
	for (intptr_t i = 0; i < THREADS; i++)
		WANT(pthread_create(&threads[i], NULL, body, (void *)i) == 0);
	return 0;
}

static int join_threads(pthread_t threads[THREADS])
{
	for (int i = 0; i < THREADS; i++)
		WANT(pthread_join(threads[i], NULL) == 0);
	WANT(atomic_load(&wrong) == 0);
	return 0;
}

static int together(void *arg)
{
	struct place *p = arg;
	pthread_t threads[THREADS];

	WANT(begin_threads(p, work, threads) == 0);
	WANT(join_threads(threads) == 0);
	WANT(atomic_load(&files) >= 2 * ROUNDS); /* those of models, at least */
	/* What is left works. */
	(void)lib.nrt_profile_continuous_stop();
	WANT_STATUS(lib.nrt_profile_session_start(0), 0);
	WANT(job_run(&jobs[0], 1.0f, 2.0f) == 0);
	uint64_t id;
	WANT_STATUS(lib.nrt_profile_session_stop(0, &id), 0);
	lib.nrt_close();
	return 0;
}

static const char *const small_cores[] = {"--arch=v2", "--cores=2", NULL};

PROFILE_TEST("profile stress: eight threads start, stop, write and execute", together, small_cores)

static bool has_files(void *arg)
{
	(void)arg;
	return atomic_load(&files) > 10;
}

/* No temporary file is left, and nothing of the old life is in the next one. */
static int close_in_flight(void *arg)
{
	struct place *p = arg;
	pthread_t threads[THREADS];

	WANT(begin_threads(p, work_until_over, threads) == 0);
	WANT(program_until(has_files, NULL, 60));
	atomic_store(&over, true);
	lib.nrt_close();
	WANT(join_threads(threads) == 0);

	for (int i = 0; i < 3; i++) {
		uint64_t id;

		WANT_STATUS(init(), 0);
		WANT_STATUS(lib.nrt_profile_session_drop(0), NRT_INVALID);
		WANT_STATUS(lib.nrt_profile_session_start(0), 0);
		WANT_STATUS(lib.nrt_profile_session_stop(0, &id), 0);
		WANT(id == 0);
		lib.nrt_close();
	}
	scratch_remove_tree("continuous");
	/* The device's directory and log, the library's log. */
	WANT(scratch_entries(".") == 3);
	return 0;
}

PROFILE_TEST("profile stress: nrt_close in the middle waits, and leaves nothing half-written",
	close_in_flight, small_cores)
