/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workers.h - runs tests in processes side by side.  Tests are numbers here; each process takes the next
 * one when it has ended its last, so that a test that waits does not keep the others waiting.
 */
#ifndef NTRACE_TESTS_WORKERS_H
#define NTRACE_TESTS_WORKERS_H

#ifdef __cplusplus
extern "C" {
#endif

struct test_counts {
	unsigned long passed, failed, skipped;
};

struct workers_plan {
	unsigned tests;
	unsigned jobs; /* processes, not more than WORKERS_MAX */
	/* In a process of its own: runs what workers_next() says, until WORKERS_DONE, and counts. */
	void (*work)(struct test_counts *counts);
	/* In the caller: a process ended in this test, or after the last one (WORKERS_DONE). */
	void (*died)(unsigned test, const char *how);
};

enum { WORKERS_MAX = 64 };
#define WORKERS_DONE (~0u)

/* Prints what the tests print, each process's as one piece, and adds to the sum. */
void workers_run(const struct workers_plan *plan, struct test_counts *sum);
unsigned workers_next(void);

#ifdef __cplusplus
}
#endif

#endif
