/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_init_stress_test.c - threads race into nrt_init, nrt_close and every other call.
 *
 * What may come out is what docs/conformance.md lists, and the test must come to its end; which of the
 * outcomes it is, is the scheduler's.  A fixed number of rounds, so ThreadSanitizer can run it too.
 */
#include <stdatomic.h>

#include "tests/shim/shim.h"
#include "tests/unit/nrt_init_fixture.h"

#define ROUNDS 60
#define CALLERS 3
#define FORKS 20

static _Atomic int wrong, successes, refusals;
static _Atomic bool over;

static void expect(const char *call, int status, int a, int b, int c)
{
	if (status == NRT_SUCCESS)
		atomic_fetch_add(&successes, 1);
	else
		atomic_fetch_add(&refusals, 1);
	if (status == NRT_SUCCESS || status == a || status == b || status == c)
		return;
	if (atomic_fetch_add(&wrong, 1) < 5)
		dprintf(complaint_fd, "%s gave %d\n", call, status);
}

static void *initialises(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS; i++)
		expect("nrt_init", (int)init(), NRT_CLOSED, NRT_CLOSED, NRT_CLOSED);
	return NULL;
}

static void *opens_and_closes(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		expect("nrt_init", (int)init(), NRT_CLOSED, NRT_CLOSED, NRT_CLOSED);
		lib.nrt_close();
	}
	return NULL;
}

/* A tensor's life; nrt_close may take it away between any two calls. */
static void *calls(void *arg)
{
	char byte = 1;

	(void)arg;
	while (!atomic_load(&over)) {
		nrt_tensor_t *t = NULL;
		int status =
			(int)lib.nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, 64, "t", &t);

		expect("nrt_tensor_allocate", status, NRT_UNINITIALIZED, NRT_CLOSED, NRT_CLOSED);
		if (status != NRT_SUCCESS)
			continue;
		expect("nrt_tensor_write", (int)lib.nrt_tensor_write(t, &byte, 0, 1),
			NRT_UNINITIALIZED, NRT_CLOSED, NRT_INVALID_HANDLE);
		lib.nrt_tensor_free(&t);
	}
	return NULL;
}

static void *counts(void *arg)
{
	uint32_t n = 0;

	(void)arg;
	while (!atomic_load(&over)) {
		int status = (int)lib.nrt_get_visible_nc_count(&n);

		expect("nrt_get_visible_nc_count", status, NRT_SUCCESS, NRT_SUCCESS, NRT_SUCCESS);
		if (status == NRT_SUCCESS && n != FIXTURE_CORES)
			expect("a count of cores", 999, 0, 0, 0);
	}
	return NULL;
}

/* A child must be able to say that it cannot go on, whatever the others did when it was made. */
static int forked(void *arg)
{
	int status;

	(void)arg;
	status = (int)init();
	return status == NRT_FAILURE ? 0 : 1;
}

static void *forks(void *arg)
{
	for (int i = 0; i < FORKS && !arg; i++)
		if (scratch_child(forked, NULL) != 0)
			expect("nrt_init in a child", 999, 0, 0, 0);
	return NULL;
}

static int races(void *arg)
{
	pthread_t changers[4], callers[CALLERS + 1], forker;
	void *(*const bodies[])(void *) = {
		initialises, initialises, opens_and_closes, opens_and_closes};

	WANT(enter_linked(arg, "QUIET") == 0);
	WANT_STATUS(init(), 0); /* so that every fork from here on is a child's */
	for (int i = 0; i < 4; i++)
		pthread_create(&changers[i], NULL, bodies[i], NULL);
	for (int i = 0; i < CALLERS; i++)
		pthread_create(&callers[i], NULL, calls, NULL);
	pthread_create(&callers[CALLERS], NULL, counts, NULL);
#ifdef __SANITIZE_THREAD__
	pthread_create(&forker, NULL, forks, "it bears no fork of many threads");
#else
	pthread_create(&forker, NULL, forks, NULL);
#endif
	for (int i = 0; i < 4; i++)
		pthread_join(changers[i], NULL);
	pthread_join(forker, NULL);
	atomic_store(&over, true);
	for (int i = 0; i <= CALLERS; i++)
		pthread_join(callers[i], NULL);
	WANT(wrong == 0);
	WANT(successes > 0);
	lib.nrt_close();
	WANT_STATUS(init(), 0);
	lib.nrt_close();
	WANT(cores_are_free(arg));
	WANT(leaks() == 0);
	return 0;
}

TEST("nrt stress: threads in nrt_init, nrt_close, calls, counts and forks get what is documented",
	"[nrt][vdev]")
{
	NEED_VDEV();
	with_device(races, fixture_device);
}
