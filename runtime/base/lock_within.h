/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lock_within.h - taking a lock that may never become free: its owner may be a thread that a signal has
 * interrupted, whose handler waits for us.
 *
 * Header only.
 */
#ifndef NTRACE_BASE_LOCK_WITHIN_H
#define NTRACE_BASE_LOCK_WITHIN_H

#include <pthread.h>
#include <stdbool.h>
#include <time.h>

#include "runtime/base/clock.h"

/* Until then (BOOTTIME), and at least once.  false: it is not taken. */
static inline bool lock_within(pthread_mutex_t *m, struct boot_ns until)
{
	while (pthread_mutex_trylock(m) != 0) {
		if (clock_boot().ns > until.ns)
			return false;
		(void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	return true;
}

/* Can it be had?  Then no interrupted thread has it, and none takes it before its handler ends. */
static inline bool lock_is_free(pthread_mutex_t *m, struct boot_ns until)
{
	if (!lock_within(m, until))
		return false;
	pthread_mutex_unlock(m);
	return true;
}

#endif
