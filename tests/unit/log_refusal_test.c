/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_refusal_test.c - what calls that are refused say, with blocks of errors, when a handler's call interrupts them.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/time.h>

#include "runtime/lifecycle/state.h"
#include "tests/shim/shim.h"
#include "tests/unit/hearing.h"
#include "tests/unit/log_listener.h"

#define REFUSALS 20u /* of a thread, whose first one makes the block */
#define REFUSED_THREADS 300u
#define MOST_IN_HANDLER 1000u

static atomic_uint refused_in_handler;

static void refuse_in_handler(int number)
{
	int saved = errno;

	(void)number;
	if (atomic_load(&refused_in_handler) < MOST_IN_HANDLER &&
		api_enter("nrt_unload") == NRT_UNINITIALIZED)
		atomic_fetch_add(&refused_in_handler, 1);
	errno = saved;
}

static void *be_refused(void *count)
{
	sigset_t alarm;

	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	pthread_sigmask(SIG_UNBLOCK, &alarm, NULL);
	for (unsigned i = 0; i < REFUSALS; i++)
		if (api_enter("nrt_execute") == NRT_UNINITIALIZED)
			++*(unsigned *)count;
	pthread_sigmask(SIG_BLOCK, &alarm, NULL);
	return NULL;
}

TEST("log block: a call that is refused in a handler writes its line once, and no other one again",
	"[log]")
{
	const struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
	struct sigaction sa = {.sa_handler = refuse_in_handler, .sa_flags = SA_RESTART}, old;
	unsigned refused = 0, threads = 0;
	sigset_t alarm, before;
	struct hearing h;
	pthread_t thread;
	char *said;

	setenv("NEURON_RT_LOG_COALESCING_ENABLED", "1", 1);
	REQUIRE(hear_begin(&h, "ERROR"));
	hear_on(&h);
	atomic_store(&refused_in_handler, 0);
	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &alarm, &before);
	sigaction(SIGALRM, &sa, &old);
	setitimer(ITIMER_REAL, &often, NULL);
	for (; threads < REFUSED_THREADS; threads++)
		if (pthread_create(&thread, NULL, be_refused, &refused) == 0)
			pthread_join(thread, NULL);
	setitimer(ITIMER_REAL, &never, NULL);
	signal(SIGALRM, SIG_IGN); /* one that is pending */
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	sigaction(SIGALRM, &old, NULL);
	said = hear(&h);
	CHECK_EQ(refused, threads * REFUSALS);
	CHECK(atomic_load(&refused_in_handler) > 0);
	CHECK_EQ(log_count(said, ":nrt_execute "), refused);
	CHECK_EQ(log_count(said, ":nrt_unload "), atomic_load(&refused_in_handler));
	CHECK_EQ(
		log_count(said, "NRT uninitialized\n"), refused + atomic_load(&refused_in_handler));
	free(said);
	unsetenv("NEURON_RT_LOG_COALESCING_ENABLED");
	hear_end(&h);
}
