/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_turn.c - a word with the process and the thread whose turn it is.
 */
#include "runtime/log/log_turn.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/clock.h"

#define WAIT_NS 1000000000ull /* for one turn of another */
#define YIELDS 50u	      /* most turns are short */
#define LOOK_NS 200000

static _Atomic uint64_t owner; /* 0: nobody */
static _Atomic uint64_t last_owner;
static _Atomic uint32_t turns; /* that have ended */
static _Atomic uint32_t waiting;

static uint64_t self(void)
{
	return (uint64_t)getpid() << 32 | (uint32_t)syscall(SYS_gettid);
}

static uint32_t process_of_owner(uint64_t o)
{
	return (uint32_t)(o >> 32);
}

static void look_later(unsigned times)
{
	if (times < YIELDS)
		(void)sched_yield();
	else
		(void)nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
}

/* Takes it from who has it, when that is not in this process or this one turn has lasted long enough. */
static bool take_from(uint64_t holder, uint64_t me, uint64_t end_ns)
{
	return (process_of_owner(holder) != process_of_owner(me) || clock_boot().ns > end_ns) &&
	       atomic_compare_exchange_strong(&owner, &holder, me);
}

static bool wait_for(uint64_t me)
{
	uint32_t seen = atomic_load(&turns);
	uint64_t end_ns = clock_boot().ns + WAIT_NS;

	for (unsigned i = 0;; i++) {
		uint64_t holder = 0;

		if (atomic_compare_exchange_strong(&owner, &holder, me))
			return true;
		if (atomic_load(&turns) != seen) {
			seen = atomic_load(&turns);
			end_ns = clock_boot().ns + WAIT_NS;
		}
		if (take_from(holder, me, end_ns))
			return true;
		look_later(i);
	}
}

/* false: it is this thread's already, which a handler has interrupted. */
static bool take(uint64_t me)
{
	uint64_t holder = 0;
	bool has;

	/* Those who sleep between two looks get theirs, too. */
	if (atomic_load(&waiting) && atomic_load(&last_owner) == me)
		(void)nanosleep(&(struct timespec){.tv_nsec = 2 * LOOK_NS}, NULL);
	if (atomic_compare_exchange_strong(&owner, &holder, me))
		return true;
	if (holder == me)
		return false;
	atomic_fetch_add(&waiting, 1);
	has = wait_for(me);
	atomic_fetch_sub(&waiting, 1);
	return has;
}

void log_turn_begin(struct log_turn *t)
{
	int saved = errno;

	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &t->cancel_before);
	t->has = take(self());
	errno = saved;
}

void log_turn_end(const struct log_turn *t)
{
	uint64_t me = self();
	int before;

	if (t->has) {
		atomic_store(&last_owner, me);
		atomic_fetch_add(&turns, 1);
		/* Unless somebody has taken it meanwhile. */
		(void)atomic_compare_exchange_strong(&owner, &me, 0);
	}
	(void)pthread_setcancelstate(t->cancel_before, &before);
}
