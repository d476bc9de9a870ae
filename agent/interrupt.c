/* SPDX-License-Identifier: Apache-2.0 */
/*
 * interrupt.c - signal handlers that ask a merge to stop.
 */
#include <stddef.h>
#include <stdio.h>

#include "agent/interrupt.h"

static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
static volatile sig_atomic_t interrupted;

/* The second one ends the process: whatever it waits for may never come. */
static void on_signal(int number)
{
	interrupted = number;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		signal(numbers[i], SIG_DFL);
}

const volatile sig_atomic_t *interrupt_arm(void)
{
	/* No SA_RESTART: a call that waits, on a pipe, ends with EINTR and the flag is looked at. */
	struct sigaction action = {.sa_handler = on_signal};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		sigaction(numbers[i], &action, NULL);
	return &interrupted;
}

void interrupt_end(void)
{
	if (!interrupted)
		return;
	fflush(NULL);
	signal(interrupted, SIG_DFL);
	raise(interrupted);
}
