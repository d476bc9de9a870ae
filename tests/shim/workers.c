/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workers.c - see workers.h
 *
 * A process that dies in a test costs this test: its counts lie in shared memory, what it printed in a file that
 * its successor goes on to fill, and the successor takes the next test.
 */
#include "tests/shim/workers.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/shim/watchdog.h"

static struct shared {
	atomic_uint next;
	unsigned end;
	struct slot {
		unsigned test;	      /* that it is in */
		unsigned long before; /* tests that were counted when it began */
		struct test_counts counts;
	} slots[WORKERS_MAX];
} * shared;
static struct slot *own; /* in a worker */

struct worker {
	pid_t pid;
	int output;
};

static unsigned long counted(const struct slot *slot)
{
	return slot->counts.passed + slot->counts.failed + slot->counts.skipped;
}

unsigned workers_next(void)
{
	const unsigned test = atomic_fetch_add(&shared->next, 1);

	own->test = test < shared->end ? test : WORKERS_DONE;
	own->before = counted(own);
	return own->test;
}

static void start(const struct workers_plan *plan, struct worker *w, struct slot *slot)
{
	(void)fflush(NULL); /* what waits in buffers is no worker's to print */
	w->pid = fork();
	if (w->pid != 0)
		return;
	own = slot;
	if (dup2(w->output, STDOUT_FILENO) < 0 || dup2(w->output, STDERR_FILENO) < 0)
		_exit(1);
	watchdog_start();
	plan->work(&slot->counts);
	exit(0); /* by way of LeakSanitizer */
}

/* True if the worker has a successor. */
static bool ended(const struct workers_plan *plan, struct worker *w, struct slot *slot, int status)
{
	char how[64];

	if (WIFSIGNALED(status))
		(void)snprintf(how, sizeof(how), "signal %d", WTERMSIG(status));
	else
		(void)snprintf(how, sizeof(how), "exit status %d", WEXITSTATUS(status));
	if (status == 0 && slot->test == WORKERS_DONE)
		return false;
	if (counted(slot) == slot->before) { /* else the runner has told it with its last breath */
		plan->died(slot->test, how);
		slot->counts.failed++;
	}
	if (slot->test == WORKERS_DONE)
		return false;
	slot->test = WORKERS_DONE;
	start(plan, w, slot);
	return w->pid > 0;
}

static void print(int fd)
{
	char buf[16384];
	off_t at = 0;
	ssize_t n;

	while ((n = pread(fd, buf, sizeof(buf), at)) > 0) {
		(void)fwrite(buf, 1, (size_t)n, stdout);
		at += n;
	}
	(void)fflush(stdout);
}

void workers_run(const struct workers_plan *plan, struct test_counts *sum)
{
	const unsigned jobs = plan->jobs < WORKERS_MAX ? plan->jobs : WORKERS_MAX;
	struct worker workers[WORKERS_MAX] = {0};
	int status;
	pid_t pid;

	shared = mmap(
		NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED) {
		plan->died(WORKERS_DONE, "no memory");
		sum->failed++;
		return;
	}
	shared->end = plan->tests;
	for (unsigned i = 0; i < jobs; i++) {
		shared->slots[i].test = WORKERS_DONE;
		workers[i].output = memfd_create("output", MFD_CLOEXEC);
		start(plan, &workers[i], &shared->slots[i]);
	}
	while ((pid = wait(&status)) > 0)
		for (unsigned i = 0; i < jobs; i++)
			if (workers[i].pid == pid &&
				!ended(plan, &workers[i], &shared->slots[i], status))
				workers[i].pid = 0;
	for (unsigned i = 0; i < jobs; i++) {
		const struct test_counts *c = &shared->slots[i].counts;

		print(workers[i].output);
		(void)close(workers[i].output);
		sum->passed += c->passed;
		sum->failed += c->failed;
		sum->skipped += c->skipped;
	}
	/* No test is forgotten, also when no process could be made for it. */
	for (unsigned test; (test = atomic_fetch_add(&shared->next, 1)) < plan->tests;) {
		plan->died(test, "no process");
		sum->failed++;
	}
	(void)munmap(shared, sizeof(*shared));
}
