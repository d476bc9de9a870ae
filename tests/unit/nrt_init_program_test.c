/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_init_program_test.c - a program that does to the library what programs may: signals at any moment,
 * threads that are cancelled, standard descriptors that are closed; and one with a real device.
 *
 * A door that waits for its own thread waits for ever, so each child has an alarm.
 */
#include <errno.h>
#include <signal.h>
#include <sys/time.h>

#include "runtime/lifecycle/runtime.h"
#include "tests/shim/shim.h"
#include "tests/unit/nrt_init_fixture.h"

/* ---- signals at any instruction of the doors ----------------------------------------------- */

#define STUCK_SECONDS 60

static volatile sig_atomic_t handlers, changes;

/* What nrt_close does to the doors, without a device. */
static void change_in_handler(int signal)
{
	(void)signal;
	handlers++;
	if (state_change_begin("a handler") != NRT_SUCCESS)
		return;
	changes++;
	state_set(STATE_CLOSED);
	state_calls_drain();
	state_set(STATE_INIT);
	state_change_end();
}

/* Through both doors. */
static void pass(void)
{
	if (api_enter("a call") == NRT_SUCCESS)
		api_leave();
	if (state_change_begin("a change") == NRT_SUCCESS)
		state_change_end();
}

/* Both doors are as they were, and the thread can be cancelled. */
static int doors_are_free(void)
{
	int cancel;

	WANT(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &cancel) == 0);
	WANT(cancel == PTHREAD_CANCEL_ENABLE);
	WANT_STATUS(state_change_begin("a test"), NRT_SUCCESS);
	state_calls_drain();
	state_change_end();
	WANT_STATUS(api_enter("a test"), NRT_SUCCESS);
	api_leave();
	return 0;
}

/* Has the processor trap after every instruction.  False where it cannot, or where the sanitizer's own code
 * would be interrupted at every one as well. */
static bool single_step(bool on)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
	const unsigned long long flag = 0x100;
	unsigned long long flags = __builtin_ia32_readeflags_u64();

	__builtin_ia32_writeeflags_u64(on ? flags | flag : flags & ~flag);
	return true;
#else
	return !on;
#endif
}

#define CANNOT_STEP 200

static int stepped(void *arg)
{
	WANT(enter_linked(arg, "QUIET") == 0);
	alarm(STUCK_SECONDS);
	signal(SIGTRAP, change_in_handler);
	state_set(STATE_INIT);
	if (!single_step(true))
		return CANNOT_STEP;
	pass();
	(void)single_step(false);
	WANT(changes > 10 && handlers - changes > 10);
	return doors_are_free();
}

TEST("nrt state: a handler at any instruction of the doors waits for nothing of its own thread",
	"[nrt]")
{
	struct place p;
	int status;

	REQUIRE(place_open(&p));
	status = scratch_child(stepped, &p);
	place_close(&p);
	if (status == CANNOT_STEP)
		SKIP("single steps: an x86-64 processor, and no ThreadSanitizer");
	CHECK_EQ(status, 0);
}

static bool once_in(long us)
{
	const struct itimerval timer = {.it_value.tv_usec = us};

	return setitimer(ITIMER_VIRTUAL, &timer, NULL) == 0;
}

/* The calls of a program, until the timer's handler has run. */
static int until_handled(long us)
{
	sig_atomic_t before = handlers;
	uint32_t n;

	WANT(once_in(us));
	while (handlers == before) {
		(void)lib.nec_get_virtual_core_size(&n);
		(void)init();
	}
	return 0;
}

static void close_in_handler(int signal)
{
	(void)signal;
	handlers++;
	lib.nrt_close();
}

static int timed(void *arg)
{
	WANT(enter_linked(arg, "QUIET") == 0);
	alarm(STUCK_SECONDS);
	signal(SIGVTALRM, close_in_handler);
	for (int i = 0; i < 100; i++)
		WANT(until_handled(1 + i * 37 % 500) == 0);
	WANT_STATUS(init(), 0);
	WANT(doors_are_free() == 0);
	lib.nrt_close();
	WANT(cores_are_free(arg));
	return 0;
}

TEST("nrt state: nrt_close in the handler of a timer, at any time, ends", "[nrt][vdev]")
{
	NEED_VDEV();
#ifdef __SANITIZE_THREAD__
	SKIP("signals that come at any time, which ThreadSanitizer holds back");
#endif
	with_device(timed, fixture_device);
}

/* ---- threads that are cancelled ------------------------------------------------------------ */

static NRT_STATUS cancel_here(const char *step)
{
	if (!strcmp(step, "device discovery"))
		(void)pthread_cancel(pthread_self());
	return NRT_SUCCESS;
}

/* Both end at the first cancellation point behind the door. */
static void *cancelled_in_init(void *ret)
{
	*(int *)ret = (int)init();
	pthread_testcancel();
	return NULL;
}

static void *cancelled_in_call(void *ret)
{
	if (api_enter("a call") != NRT_SUCCESS)
		return NULL;
	(void)pthread_cancel(pthread_self());
	pthread_testcancel();
	*(int *)ret = 1;
	api_leave();
	pthread_testcancel();
	return NULL;
}

static int cancelled(void *arg)
{
	int status = -1, left = 0;
	pthread_t t;
	void *end;

	WANT(enter_linked(arg, NULL) == 0);
	alarm(STUCK_SECONDS);
	init_set_probe(cancel_here);
	WANT(pthread_create(&t, NULL, cancelled_in_init, &status) == 0);
	WANT(pthread_join(t, &end) == 0 && end == PTHREAD_CANCELED);
	init_set_probe(NULL);
	WANT(status == NRT_SUCCESS);
	WANT(pthread_create(&t, NULL, cancelled_in_call, &left) == 0);
	WANT(pthread_join(t, &end) == 0 && end == PTHREAD_CANCELED);
	WANT(left == 1);
	lib.nrt_close();
	WANT_STATUS(init(), 0);
	WANT(doors_are_free() == 0);
	lib.nrt_close();
	WANT(cores_are_free(arg));
	return 0;
}

TEST("nrt state: a thread is cancelled behind nrt_init or a call, not in it", "[nrt][vdev]")
{
	NEED_VDEV();
	with_device(cancelled, fixture_device);
}

/* ---- what is left of the program's ---------------------------------------------------------- */

static int without_standard_fds(void *arg)
{
	for (int mask = 1; mask < 8; mask++) {
		for (int fd = 0; fd < 3; fd++)
			if (mask >> fd & 1)
				close(fd);
		WANT_STATUS(init(), 0);
		for (int fd = 0; fd < 3; fd++)
			WANT(!(mask >> fd & 1) || fcntl(fd, F_GETFD) < 0);
		/* As daemon(3) does it; the cores stay reserved. */
		for (int fd = 0; fd < 3; fd++)
			WANT(open("/dev/null", O_RDWR) >= 0);
		WANT(!cores_are_free(arg));
		lib.nrt_close();
		WANT(cores_are_free(arg));
	}
	return 0;
}

static int daemons(void *arg)
{
	struct job j;

	WANT(enter_linked(arg, "DEBUG") == 0);
	WANT(without_standard_fds(arg) == 0);
	close(0);
	close(1);
	WANT_STATUS(init(), 0);
	WANT(job_open(&j, ADD_MODEL, 0) == 0 && job_run(&j, 1, 2) == 0);
	WANT(fcntl(0, F_GETFD) < 0 && fcntl(1, F_GETFD) < 0);
	lib.nrt_close();
	return 0;
}

TEST("nrt_init: a program that has closed its standard descriptors finds no device at them",
	"[nrt][vdev]")
{
	NEED_VDEV();
	with_device(daemons, fixture_device);
}

static int model_on_silicon(void *arg)
{
	nrt_model_t *model = NULL;

	WANT(enter_linked(arg, NULL) == 0);
	WANT_STATUS(init(), 0);
	/* As if it had been opened as a character device, and everything had been allowed. */
	runtime_core(0)->device->file.is_real = true;
	runtime_core(0)->device->file.allow_reset = true;
	WANT_STATUS(lib.nrt_load(ADD_MODEL, strlen(ADD_MODEL), 0, 1, &model), NRT_INVALID);
	WANT(said(
		arg, "Models of this library run on virtual devices only, and nd0 is a real one"));
	WANT(model == NULL);
	WANT(virtual_device_stat(&((struct place *)arg)->device, "launches") == 0);
	lib.nrt_close();
	return 0;
}

TEST("nrt_load: no model is placed on a real device, whatever is allowed", "[nrt][vdev]")
{
	NEED_VDEV();
	with_device(model_on_silicon, fixture_device);
}
