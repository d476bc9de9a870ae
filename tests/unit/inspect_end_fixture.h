/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_end_fixture.h - a child with the handlers of an inspect session and a thread that answers them like a
 * session's.
 *
 * Header only.  Each test runs in a child, for handlers stay; how it ended is the result.
 */
#ifndef NTRACE_TESTS_INSPECT_END_FIXTURE_H
#define NTRACE_TESTS_INSPECT_END_FIXTURE_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/log/log.h"
#include "runtime/profile/inspect_end.h"
#include "tests/shim/shim.h"
#include "tests/unit/programs.h"

/* What the child did, also when a signal has ended it. */
static struct seen {
	_Atomic int flushes, finishes, handled, other, value, error;
	_Atomic bool ready, hang, flag;
} * seen;

/* ThreadSanitizer delivers signals when it likes, and knows neither masks nor stacks. */
#ifdef __SANITIZE_THREAD__
#define NEEDS_SIGNALS() SKIP("a build without ThreadSanitizer")
#else
#define NEEDS_SIGNALS() (void)0
#endif

static int gone; /* wait status of the child */

#define WANT(x)                                                            \
	do {                                                               \
		if (!(x)) {                                                \
			dprintf(2, "%s:%d: %s\n", __FILE__, __LINE__, #x); \
			_exit(99);                                         \
		}                                                          \
	} while (0)

static inline bool run(void (*fn)(void))
{
	pid_t pid;

	if (!seen)
		seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	if (seen == MAP_FAILED)
		return false;
	memset(seen, 0, sizeof(*seen));
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		signal(SIGINT, SIG_DFL);
		signal(SIGTERM, SIG_DFL);
		fn();
		_exit(0);
	}
	return pid > 0 && waitpid(pid, &gone, 0) == pid;
}

static inline bool died_of(int number)
{
	return WIFSIGNALED(gone) && WTERMSIG(gone) == number;
}

static inline bool exited(void)
{
	if (WIFSIGNALED(gone))
		test_info("ended by signal %d", WTERMSIG(gone));
	return WIFEXITED(gone) && WEXITSTATUS(gone) == 0;
}

/* ---- the thread that answers -------------------------------------------------------------- */

static inline void *answer(void *arg)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	atomic_store(&seen->ready, true);
	for (;;) {
		struct pollfd fd = {.fd = inspect_end_ask_fd(), .events = POLLIN};
		enum inspect_end_ask what;

		(void)poll(&fd, 1, 10);
		what = inspect_end_asked();
		while (what && atomic_load(&seen->hang))
			(void)poll(NULL, 0, 10);
		if (!what)
			continue;
		atomic_fetch_add(&seen->flushes, 1);
		inspect_end_answer(INSPECT_END_FLUSH);
		if (what == INSPECT_END_FINISH) /* its session is over, and so is it */
			break;
	}
	inspect_end_disarm(); /* as who ends the session begins with it */
	(void)poll(NULL, 0, 20);
	atomic_fetch_add(&seen->finishes, 1);
	inspect_end_answer(INSPECT_END_FINISH);
	return arg;
}

static inline pthread_t start(void *(*fn)(void *))
{
	pthread_t thread;

	WANT(pthread_create(&thread, NULL, fn, NULL) == 0);
	return thread;
}

static inline void wait_for(const _Atomic bool *word)
{
	while (!atomic_load(word))
		(void)poll(NULL, 0, 1);
}

static inline void session(void)
{
	WANT(inspect_end_open() == 0);
	(void)start(answer);
	wait_for(&seen->ready);
	inspect_end_arm(getpid());
}

/* ---- handlers and stacks of the program -------------------------------------------------------- */

static inline void note(int number)
{
	(void)number;
	atomic_fetch_add(&seen->handled, 1);
	atomic_store(&seen->error, errno);
}

static inline void handle(int number, void (*handler)(int), int flags)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = flags};

	WANT(sigaction(number, &action, NULL) == 0);
}

static char *other_stack;
static size_t stack_bytes __attribute__((unused));

/* Below it there is nothing to write to. */
static inline void use_other_stack(size_t bytes)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = (bytes + page - 1) / page * page;
	char *memory = mmap(
		NULL, whole + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t s;

	WANT(memory != MAP_FAILED && mprotect(memory, page, PROT_NONE) == 0);
	other_stack = memory + page;
	stack_bytes = bytes;
	s = (stack_t){.ss_sp = other_stack, .ss_size = bytes};
	WANT(sigaltstack(&s, NULL) == 0);
}

static inline bool is_instrumented(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	return true;
#else
	return false;
#endif
}

#endif
