/* SPDX-License-Identifier: Apache-2.0 */
/*
 * last_thread.c - the end of a program whose main thread is gone.
 *
 * That the main thread ends is known by a value of its own that the C library destroys, in
 * pthread_exit alone.  The number of threads that rest is kept with the process that it is of: the
 * child of a fork has none of them.
 */
#include "runtime/base/last_thread.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/file.h"

#define LOOK_NS 100000000L
#define THREADS_FIELD 20 /* of /proc/self/stat: num_threads; 3 is the state */

static struct {
	pthread_once_t once;
	pthread_key_t key;
	bool has_key;
	sigset_t mask;		  /* of the main thread; before `ended` says so */
	_Atomic int ended;	  /* the process whose main thread has ended; 0: none */
	_Atomic int watched;	  /* the process that has a thread for it */
	_Atomic uint64_t resting; /* how many threads rest, and of which process */
} last = {.once = PTHREAD_ONCE_INIT};

/* Of the word: 22 bits of process (the kernel has no more), 26 of changes, 16 of threads. */
#define ONE_CHANGE (1ull << 16)
#define OWNER(word) ((word) >> 42)

static uint64_t owner_now(void)
{
	return (uint64_t)getpid();
}

static uint32_t resting(uint64_t word)
{
	return OWNER(word) == owner_now() ? word & (ONE_CHANGE - 1) : 0;
}

static void add(int by)
{
	uint64_t was = atomic_load(&last.resting), now;

	do {
		now = OWNER(was) == owner_now() ? was : owner_now() << 42;
		if (by < 0 && !resting(now))
			return;
		now = ((now + ONE_CHANGE) & ((1ull << 42) - 1)) | owner_now() << 42;
		now = by < 0 ? now - 1 : now + 1;
	} while (!atomic_compare_exchange_weak(&last.resting, &was, now));
}

/* ---- the look ----------------------------------------------------------------------------- */

/* The state of the main thread and the number of all. */
static bool read_stat(char *ret_state, uint32_t *ret_threads)
{
	char line[512], *p, *place;
	int field = 3;

	if (file_read_line("/proc/self/stat", line, sizeof(line)) < 0)
		return false;
	p = strrchr(line, ')'); /* a name may have any letter */
	p = p ? strtok_r(p + 1, " ", &place) : NULL;
	if (!p)
		return false;
	*ret_state = *p;
	while (p && field++ < THREADS_FIELD)
		p = strtok_r(NULL, " ", &place);
	*ret_threads = p ? (uint32_t)strtoul(p, NULL, 10) : 0;
	return p != NULL;
}

/* But for the main thread and the one that asks all rest.  The numbers are of one moment when the
 * word is the same before and after: a thread that is counted in it is among all until it is taken
 * out. */
static bool all_rest(void)
{
	uint64_t word = atomic_load(&last.resting);
	uint32_t threads;
	char state;

	return read_stat(&state, &threads) && state == 'Z' && threads == resting(word) + 2 &&
	       atomic_load(&last.resting) == word;
}

static void *watch(void *arg)
{
	const struct timespec nap = {.tv_nsec = LOOK_NS};

	(void)pthread_setname_np(pthread_self(), "nrt-last");
	while (!all_rest())
		(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
	/* Its functions of atexit run as in the last thread of the program. */
	(void)pthread_sigmask(SIG_SETMASK, &last.mask, NULL);
	exit(0);
	return arg;
}

static void begin_watch(void)
{
	int none = atomic_load(&last.watched);
	sigset_t all, old;
	pthread_t thread;

	if (none == getpid() || !atomic_compare_exchange_strong(&last.watched, &none, getpid()))
		return;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	if (pthread_create(&thread, NULL, watch, NULL) == 0)
		(void)pthread_detach(thread);
	else
		atomic_store(&last.watched, 0); /* with the next thread */
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* ---- the main thread ---------------------------------------------------------------------- */

static void main_ends(void *value)
{
	(void)value;
	(void)pthread_sigmask(SIG_SETMASK, NULL, &last.mask);
	atomic_store(&last.ended, getpid());
	if (resting(atomic_load(&last.resting)))
		begin_watch();
}

static void make_key(void)
{
	last.has_key = pthread_key_create(&last.key, main_ends) == 0;
}

void last_thread_watch(void)
{
	if (syscall(SYS_gettid) != getpid())
		return;
	pthread_once(&last.once, make_key);
	if (last.has_key && !pthread_getspecific(last.key))
		(void)pthread_setspecific(last.key, &last);
}

/* ---- threads of the library --------------------------------------------------------------- */

void last_thread_rests(void)
{
	add(1);
	if (atomic_load(&last.ended) == getpid())
		begin_watch();
}

void last_thread_works(void)
{
	add(-1);
}
