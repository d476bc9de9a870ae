/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_init_state_test.c - the four states: what each lets in, and what threads, forks and signal
 * handlers meet in between.
 *
 * The tests stand at a chosen place: in a step of nrt_init through init_set_probe, and in a call through
 * api_enter.  Nothing here depends on time.
 */
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/log/log.h"
#include "tests/shim/shim.h"
#include "tests/unit/nrt_init_fixture.h"

#define INIT_IN "API:IN: (cc_root_comm_id=10.0.0.1:7, num_cores=2, reset_cores=0)\n"

static int allocate(void)
{
	nrt_tensor_t *t = (nrt_tensor_t *)&complaint_fd;
	int status = (int)lib.nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_HOST, 0, 1, "", &t);

	return status == 0 ? (lib.nrt_tensor_free(&t), 0) : status;
}

/* ---- one thread --------------------------------------------------------------------------- */

static int start_and_back(void *arg)
{
	struct place *p = arg;

	WANT(enter_linked(p, "WARN") == 0);
	WANT(state_now() == STATE_START);
	WANT_STATUS(allocate(), NRT_UNINITIALIZED);
	WANT(said(p, "ERROR   NRT:nrt_tensor_allocate                      NRT uninitialized\n"));
	WANT_STATUS(init(), 0);
	WANT(state_now() == STATE_INIT);
	WANT_STATUS(allocate(), 0);
	lib.nrt_close();
	WANT(state_now() == STATE_START);
	WANT_STATUS(allocate(), NRT_UNINITIALIZED);
	WANT_STATUS(init(), 0);
	lib.nrt_close();
	return 0;
}

TEST("nrt state: START refuses a call with 13, nrt_close leads back to it, and nrt_init on",
	"[nrt][vdev]")
{
	NEED_VDEV();
	with_device(start_and_back, fixture_device);
}

static int twice(void *arg)
{
	struct place *p = arg;

	setenv("NEURON_RT_ROOT_COMM_ID", "10.0.0.1:7", 1);
	setenv("NEURON_RT_NUM_CORES", "2", 1);
	setenv("NEURON_RT_RESET_CORES", "0", 1);
	WANT(enter_linked(p, "DEBUG") == 0);
	WANT_STATUS(init(), 0);
	WANT(said(p, INIT_IN));
	WANT_STATUS(lib.nrt_init(NRT_FRAMEWORK_TYPE_PYTORCH, "other", "other"), 0);
	char *all = program_text(p->log.s);
	const char *in = strstr(all, INIT_IN), *out = strstr(all, "API:OUT: (ret=0)\n");
	WANT(in && out && in < out && !strchr(strchr(out, '\n') + 1, '\n'));
	WANT(strchr(strchr(all, '\n') + 1, '\n')[1] == '\0'); /* two lines and no more */
	WANT(strstr(all, " DEBUG   NRT:nrt_init "));
	WANT(state_now() == STATE_INIT && cores_are_free(p) == false);
	free(all);
	lib.nrt_close();
	return 0;
}

TEST("nrt state: nrt_init when it is up writes two DEBUG lines and succeeds", "[nrt][vdev]")
{
	NEED_VDEV();
	with_device(twice, fixture_device);
}

static int closed_quietly(void *arg)
{
	struct place *p = arg;
	char *all;

	WANT(enter_linked(p, "DEBUG") == 0);
	log_configure(); /* nrt_init would do it, and tests before this one have */
	lib.nrt_close();
	all = program_text(p->log.s);
	WANT(strstr(all, "DEBUG   NRT:nrt_close                                API:IN: ()\n"));
	WANT(strstr(all, "API:OUT: ()\n") && !strstr(all, "ERROR") && !strstr(all, "WARN"));
	free(all);
	return 0;
}

TEST("nrt state: nrt_close when it is not up only logs its begin and end", "[nrt]")
{
	struct place p;

	REQUIRE(place_open(&p));
	CHECK_EQ(scratch_child(closed_quietly, &p), 0);
	place_close(&p);
}

/* ---- forks -------------------------------------------------------------------------------- */

/* What a child finds, and its own child. */
static int grandchild(void *arg)
{
	(void)arg;
	WANT_STATUS(init(), NRT_FAILURE);
	WANT_STATUS(allocate(), NRT_FAILURE);
	return 0;
}

static int child_is_refused(void *arg)
{
	struct place *p = arg;
	uint32_t n = 0;

	WANT(state_now() == STATE_CHILD);
	WANT_STATUS(allocate(), NRT_FAILURE);
	WANT(said(p, "ERROR   NRT:nrt_tensor_allocate                      Incompatible runtime "
		     "state: NRT_STATE_CHILD\n"));
	WANT_STATUS(init(), NRT_FAILURE);
	WANT(said(p, "NRT:nrt_init                                 Incompatible runtime state: "
		     "NRT_STATE_CHILD\n"));
	lib.nrt_close();
	WANT(state_now() == STATE_CHILD);
	WANT(scratch_child(grandchild, p) == 0);
	WANT_STATUS(lib.nrt_get_visible_nc_count(&n), 0);
	WANT(n == 1); /* what the parent had, whatever the environment says now */
	return 0;
}

static int child_without_cores(void *arg)
{
	(void)arg;
	WANT(state_now() == STATE_CHILD);
	WANT_STATUS(init(), NRT_FAILURE);
	return 0;
}

/* In a child that no handler of pthread_atfork has run in. */
static int bare_child(int (*f)(void *), void *arg)
{
	int status;
	pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

	if (pid == 0)
		_exit(f(arg));
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status)
									       : -1;
}

static int fresh_child(void *arg)
{
	WANT_STATUS(init(), 0);
	lib.nrt_close();
	return cores_are_free(arg) ? 0 : 1;
}

static int forks_in_states(void *arg)
{
	struct place *p = arg;

	WANT(enter_linked(p, NULL) == 0);
	WANT(scratch_child(fresh_child, p) == 0); /* nobody has initialised yet */
	setenv("NEURON_RT_VISIBLE_CORES", "1", 1);
	WANT_STATUS(init(), 0);
	unsetenv("NEURON_RT_VISIBLE_CORES");
	WANT(scratch_child(child_is_refused, p) == 0);
	WANT(bare_child(child_is_refused, p) == 0);
	WANT_STATUS(allocate(), 0);
	lib.nrt_close();
	WANT(scratch_child(child_without_cores, p) == 0);
	WANT(bare_child(child_without_cores, p) == 0);
	WANT_STATUS(init(), 0);
	lib.nrt_close();
	return 0;
}

TEST("nrt state: the child of a fork is CHILD for good, and so are its children", "[nrt][vdev]")
{
	NEED_VDEV();
	with_device(forks_in_states, fixture_device);
}

static int fork_failures, forks_done;

static int child_of_a_change(void *arg)
{
	(void)arg;
	WANT_STATUS(allocate(), state_now() == STATE_CHILD ? NRT_FAILURE : NRT_UNINITIALIZED);
	lib.nrt_close();
	WANT_STATUS(init(), NRT_FAILURE);
	WANT(state_now() == STATE_CHILD);
	WANT_STATUS(allocate(), NRT_FAILURE);
	return 0;
}

static NRT_STATUS fork_here(const char *step)
{
	(void)step;
	forks_done++;
	fork_failures += scratch_child(child_of_a_change, NULL) != 0;
	return NRT_SUCCESS;
}

static int forks_in_mid_init(void *arg)
{
	size_t steps = 0;

	WANT(enter_linked(arg, NULL) == 0);
	while (init_step_name(steps))
		steps++;
	init_set_probe(fork_here);
	for (int i = 0; i < 2; i++) { /* without the fork handler, and with it */
		WANT_STATUS(init(), 0);
		lib.nrt_close();
	}
	WANT(forks_done == (int)(2 * steps) && steps > 15);
	WANT(fork_failures == 0);
	return cores_are_free(arg) ? 0 : 1;
}

TEST("nrt state: a child forked in any step of nrt_init is refused and does not hang",
	"[nrt][vdev]")
{
	NEED_VDEV();
	with_device(forks_in_mid_init, fixture_device);
}

/* ---- a thread that waits at a chosen place ------------------------------------------------- */

static sem_t reached, go_on;
static const char *wait_at;

static NRT_STATUS wait_here(const char *step)
{
	if (!strcmp(step, wait_at)) {
		sem_post(&reached);
		while (sem_wait(&go_on) != 0)
			;
	}
	return NRT_SUCCESS;
}

static void *init_thread(void *ret)
{
	*(int *)ret = (int)init();
	return NULL;
}

static void *close_thread(void *arg)
{
	(void)arg;
	lib.nrt_close();
	return NULL;
}

static int during_init(void *arg)
{
	int first = -1, second = -1;
	pthread_t a, b;
	uint32_t n = 0;

	WANT(enter_linked(arg, NULL) == 0);
	sem_init(&reached, 0, 0);
	sem_init(&go_on, 0, 0);
	wait_at = "devices";
	init_set_probe(wait_here);
	pthread_create(&a, NULL, init_thread, &first);
	sem_wait(&reached);
	WANT_STATUS(allocate(), NRT_UNINITIALIZED);
	lib.nrt_close(); /* not up yet: it returns, and nothing is closed */
	WANT_STATUS(lib.nrt_get_total_nc_count(&n), 0);
	WANT(n == FIXTURE_CORES);
	pthread_create(&b, NULL, init_thread, &second);
	WANT(scratch_child(child_of_a_change, NULL) == 0);
	sem_post(&go_on);
	pthread_join(a, NULL);
	pthread_join(b, NULL); /* waited, and found it up: the step was passed once */
	WANT(first == 0 && second == 0);
	WANT(sem_trywait(&reached) < 0);
	WANT_STATUS(allocate(), 0);
	lib.nrt_close();
	return 0;
}

TEST("nrt state: while a thread is in nrt_init calls get 13, a second nrt_init waits",
	"[nrt][vdev]")
{
	NEED_VDEV();
	with_device(during_init, fixture_device);
}

static bool is_closed(void *arg)
{
	(void)arg;
	return state_now() == STATE_CLOSED;
}

static int while_closed(void *arg)
{
	struct place *p = arg;
	int result = -1;
	uint32_t n = 0;

	WANT_STATUS(allocate(), NRT_CLOSED);
	WANT(said(p, "WARN   NRT:nrt_tensor_allocate                      NRT already closed\n"));
	WANT_STATUS(init(), NRT_CLOSED);
	WANT(said(p, "WARN   NRT:nrt_init                                 NRT already closed\n"));
	lib.nrt_close(); /* returns; the other one goes on */
	WANT(state_now() == STATE_CLOSED);
	WANT_STATUS(lib.nrt_get_visible_nc_count(&n), 0);
	WANT(n == FIXTURE_CORES);
	result = scratch_child(child_without_cores, NULL);
	WANT(result == 0);
	return 0;
}

static int during_close(void *arg)
{
	int result;
	pthread_t t;

	WANT(enter_linked(arg, "WARN") == 0);
	WANT_STATUS(init(), 0);
	WANT_STATUS(api_enter("a call"), 0); /* nrt_close waits for it */
	pthread_create(&t, NULL, close_thread, NULL);
	WANT(program_until(is_closed, NULL, 20));
	result = while_closed(arg);
	api_leave();
	pthread_join(t, NULL);
	WANT(result == 0);
	WANT(state_now() == STATE_START && cores_are_free(arg));
	WANT_STATUS(init(), 0);
	lib.nrt_close();
	return 0;
}

TEST("nrt state: while a thread is in nrt_close calls and nrt_init get 14", "[nrt][vdev]")
{
	NEED_VDEV();
	with_device(during_close, fixture_device);
}

/* ---- a thread that meets itself ------------------------------------------------------------ */

static int inner_status = -1;

static void init_in_handler(int signal)
{
	(void)signal;
	inner_status = (int)init();
	lib.nrt_close();
}

static NRT_STATUS signal_here(const char *step)
{
	if (!strcmp(step, "framework"))
		raise(SIGUSR1);
	return NRT_SUCCESS;
}

static int reentry(void *arg)
{
	struct place *p = arg;

	WANT(enter_linked(p, NULL) == 0);
	signal(SIGUSR1, init_in_handler);
	init_set_probe(signal_here);
	WANT_STATUS(init(), 0);
	WANT(inner_status == NRT_FAILURE);
	WANT(said(p, "Called by a thread that is inside of the library already"));
	WANT(state_now() == STATE_INIT);
	WANT_STATUS(api_enter("a call"), 0);
	raise(SIGUSR1); /* nrt_init is a no-op, nrt_close would wait for this very call */
	WANT(inner_status == NRT_SUCCESS);
	WANT(said(p, "NRT:nrt_close                                Called by a thread"));
	WANT(state_now() == STATE_INIT);
	api_leave();
	lib.nrt_close();
	WANT(state_now() == STATE_START);
	return 0;
}

TEST("nrt state: a signal handler inside of nrt_init or a call is refused, not hung", "[nrt][vdev]")
{
	NEED_VDEV();
	with_device(reentry, fixture_device);
}
