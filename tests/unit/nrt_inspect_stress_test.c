/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_inspect_stress_test.c - begin and stop of the inspect session from many threads while
 * executions go on, and nrt_close in the middle of them.
 *
 * Whatever their order: each begin that succeeded has one directory with all its files, and there
 * is no other.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "tests/shim/shim.h"
#include "tests/unit/nrt_init_fixture.h"
#include "tests/unit/nrt_inspect.h"

#define THREADS 8
#define ROUNDS 10

static struct job jobs[2];
static atomic_bool over;
static atomic_int begun, wrong;

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

static void with_devices(nrt_inspect_config_t *config)
{
	(void)lib.nrt_inspect_config_set_inspect_device_profile_mode(
		config, NRT_INSPECT_DEVICE_PROFILE_MODE_SESSION);
}

static void begin(int thread, int round)
{
	NRT_STATUS status = round % 3 ? inspect_begin(thread % 2 ? with_devices : NULL)
				      : lib.nrt_inspect_begin();

	expect("begin", status);
	atomic_fetch_add(&begun, status == NRT_SUCCESS);
}

static void execute(int thread, int round)
{
	const struct job *j = &jobs[(thread + round) % 2];

	(void)round;
	expect("execute", lib.nrt_execute(j->model, j->in, j->out));
}

static void *work(void *arg)
{
	int thread = (int)(intptr_t)arg;

	for (int round = 0; round < ROUNDS || (!atomic_load(&over) && thread < 2); round++) {
		if (thread < 3) {
			execute(thread, round);
			continue;
		}
		begin(thread, round);
		execute(thread, round);
		expect("stop", lib.nrt_inspect_stop());
	}
	return NULL;
}

static int everything_is_whole(void)
{
	char pattern[PATH_MAX] = INSPECT_BASE "/*_pid_*";
	glob_t g;

	WANT(glob(pattern, 0, NULL, &g) == 0);
	if ((int)g.gl_pathc != begun)
		dprintf(complaint_fd, "%d begins, %zu directories\n", begun, g.gl_pathc);
	WANT((int)g.gl_pathc == begun);
	for (size_t i = 0; i < g.gl_pathc; i++) {
		const char *leaf = g.gl_pathv[i];

		WANT(inspect_tree(leaf, inspect_count(leaf, ".ntff"),
			     inspect_count(leaf, ".neff")) == 0);
		WANT(inspect_events(leaf, 0, PHASE_START) >= 0);
	}
	globfree(&g);
	return 0;
}

static int stress(void *arg)
{
	pthread_t threads[THREADS];

	WANT(inspect_enter(arg) == 0);
	WANT_STATUS(init(), 0);
	for (int i = 0; i < 2; i++)
		WANT(job_open(&jobs[i], ADD_MODEL, i) == 0);
	for (int i = 0; i < THREADS; i++)
		WANT(pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i) == 0);
	for (int i = 2; i < THREADS - 1; i++)
		WANT(pthread_join(threads[i], NULL) == 0);
	/* Two are executing, one begins and stops. */
	atomic_store(&over, true);
	lib.nrt_close();
	for (int i = 0; i < 2; i++)
		WANT(pthread_join(threads[i], NULL) == 0);
	WANT(pthread_join(threads[THREADS - 1], NULL) == 0);
	WANT(!wrong);
	WANT(begun > 0);
	WANT(everything_is_whole() == 0);
	return 0;
}

INSPECT_TEST(
	"inspect stress: begin, stop, execute and nrt_close from eight threads", stress, two_cores)
