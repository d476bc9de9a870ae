/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quiet_signal.c - blocks a signal for a call and takes back the one that the call raised.
 */
#include "runtime/base/quiet_signal.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

void quiet_signal_begin(struct quiet_signal *q, int number)
{
	int saved = errno;
	sigset_t pending;

	sigemptyset(&q->set);
	sigaddset(&q->set, number);
	(void)pthread_sigmask(SIG_BLOCK, &q->set, &q->before);
	q->pended = sigpending(&pending) == 0 && sigismember(&pending, number) == 1;
	errno = saved;
}

void quiet_signal_end(const struct quiet_signal *q, bool raised)
{
	const struct timespec at_once = {0};
	int saved = errno;

	if (raised && !q->pended)
		while (sigtimedwait(&q->set, NULL, &at_once) < 0 && errno == EINTR)
			;
	(void)pthread_sigmask(SIG_SETMASK, &q->before, NULL);
	errno = saved;
}
