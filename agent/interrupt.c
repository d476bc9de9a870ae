/* SPDX-License-Identifier: Apache-2.0 */
/*
 * interrupt.c - signal handlers that ask a merge to stop.
 */
#include <stddef.h>
#include <stdio.h>

#include "agent/interrupt.h"

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
	interrupted = number;
}

const volatile sig_atomic_t *interrupt_arm(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

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
