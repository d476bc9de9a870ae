/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_inspect_fault_test.c - each allocation, and each call to the system, within begin and stop of
 * a session fails once, and all from each one on.
 *
 * A begin that fails leaves nothing: no directory, no thread, no descriptor; and the same call
 * works afterwards.  A stop that fails has ended the session all the same, and `ntrace salvage`
 * makes what it could not make, from the recording that it left.  The execution in each session is
 * on the disk before the stop (by a signal, for which the program has a handler), so that it is
 * never lost.  tests/faults.so makes calls fail (nrt_faults.h).
 */
#include <signal.h>

#include "tests/shim/shim.h"
#include "tests/unit/inspect_leaf.h"
#include "tests/unit/nrt_faults.h"
#include "tests/unit/nrt_init_fixture.h"
#include "tests/unit/nrt_inspect.h"

#define MOST_CALLS 1500
#define SAMPLE 6u

enum where { IN_BEGIN, IN_STOP };

struct fault {
	const struct faults *faults;
	const char *log; /* of the library */
	enum where where;
	unsigned long n;
	bool and_all_behind, happened;
};

static struct job job;

static void with_devices(nrt_inspect_config_t *config)
{
	(void)lib.nrt_inspect_config_set_inspect_device_profile_mode(
		config, NRT_INSPECT_DEVICE_PROFILE_MODE_SESSION);
}

static NRT_STATUS begin(void)
{
	return inspect_begin(with_devices);
}

static NRT_STATUS stop(void)
{
	return lib.nrt_inspect_stop();
}

/* The call, with the fault when this is its place. */
static NRT_STATUS call_with(struct fault *f, enum where where, NRT_STATUS (*call)(void))
{
	NRT_STATUS status;

	if (f->where != where)
		return call();
	f->faults->arm(f->n, f->and_all_behind);
	status = call();
	f->happened = f->faults->happened();
	f->faults->arm(0, false);
	return status;
}

/* A thread that was joined may be seen in /proc for a moment. */
static bool has_threads(void *arg)
{
	const struct belongings *before = arg;

	return scratch_entries("/proc/self/task") == before->threads;
}

static bool is_as_before(struct belongings *before)
{
	struct belongings now;

	(void)program_until(has_threads, before, 10);
	now = belongings_now();
	return belongings_equal(before, &now);
}

/* After a begin that failed.  To take a directory away, and to see first that it is its own, needs
 * calls that work: it may be left when all fail. */
static int nothing_is_there(const struct fault *f, struct belongings *before)
{
	if (f->and_all_behind)
		scratch_remove_tree(INSPECT_BASE);
	WANT(access(INSPECT_BASE, F_OK) < 0);
	WANT(is_as_before(before));
	return 0;
}

static void go_on(int number)
{
	(void)number;
}

/* All files of it, and nothing half-made.  Only a begin with a fault may give a session that records
 * nothing, which its stop says. */
static int all_is_there(const struct fault *f, NRT_STATUS stopped)
{
	bool ended_early = f->where == IN_BEGIN && stopped;
	char leaf[PATH_MAX];
	long executions;

	WANT(inspect_leaf(INSPECT_BASE, getpid(), 1, leaf, sizeof(leaf)));
	WANT(leaf_complete(leaf, f->log) == 0);
	WANT(inspect_tree(leaf, inspect_count(leaf, ".ntff"), inspect_count(leaf, ".neff")) == 0);
	executions = leaf_executions(leaf);
	WANT(executions == 1 || (ended_early && executions == 0));
	scratch_remove_tree(INSPECT_BASE);
	return 0;
}

static int one_session(struct fault *f)
{
	struct belongings before = belongings_now();
	NRT_STATUS status = call_with(f, IN_BEGIN, begin);

	if (status) {
		WANT(f->happened);
		WANT(nothing_is_there(f, &before) == 0);
		WANT_STATUS(begin(), 0);
	}
	WANT_STATUS(lib.nrt_execute(job.model, job.in, job.out), 0);
	WANT(raise(SIGTERM) == 0); /* flushed */
	status = call_with(f, IN_STOP, stop);
	WANT(!status || f->happened);
	WANT(all_is_there(f, status) == 0);
	WANT_STATUS(stop(), 0); /* there is none any more */
	WANT(is_as_before(&before));
	return 0;
}

/* All, one behind the other, with NTRACE_TEST_FULL; else some, closer together at the front.  With
 * all behind it there is little that is new in the next one. */
static unsigned long next_place(const struct fault *f)
{
	if (f->and_all_behind)
		return f->n + 1 + f->n / 4;
	return f->n + (getenv("NTRACE_TEST_FULL") ? 1 : 1 + f->n / SAMPLE);
}

/* Until there is no further call to fail. */
static int each_fault(struct fault *f)
{
	f->happened = true;
	for (f->n = 1; f->happened && f->n < MOST_CALLS; f->n = next_place(f)) {
		int rc;

		(void)(ftruncate(2, 0) == 0 && lseek(2, 0, SEEK_SET));
		rc = one_session(f);
		if (rc) {
			_cleanup_free_ char *words = program_text(f->log);

			dprintf(complaint_fd, "%s, fault %lu%s\n%s",
				f->where == IN_BEGIN ? "begin" : "stop", f->n,
				f->and_all_behind ? " and all behind" : "", words ? words : "");
		}
		WANT(rc == 0);
	}
	WANT(!f->happened);
	return 0;
}

static int all_faults(const struct place *p, const struct faults *faults)
{
	struct fault f = {.faults = faults, .log = p->log.s};

	setenv("NEURON_RT_PROFILE_BUF_INSTRUCTION_MB", "1", 1);
	WANT(enter(p) == 0);
	setenv("BUILD", program_path("").s, 1);
	WANT(chdir(p->scratch.dir) == 0);
	WANT(signal(SIGTERM, go_on) != SIG_ERR);
	WANT_STATUS(init(), 0);
	WANT(job_open(&job, ADD_MODEL, 0) == 0);
	WANT_STATUS(begin(), 0); /* rings of events are made, and stay */
	WANT_STATUS(lib.nrt_execute(job.model, job.in, job.out), 0);
	WANT_STATUS(stop(), 0);
	scratch_remove_tree(INSPECT_BASE);
	for (int i = 0; i < 4; i++) {
		f.where = i % 2 ? IN_STOP : IN_BEGIN;
		f.and_all_behind = i / 2;
		WANT(each_fault(&f) == 0);
	}
	lib.nrt_close();
	WANT(leaks() == 0);
	return 0;
}

/* Memory is out when the program executes, and only then. */
static int execution_refused(const struct place *p, const struct faults *faults)
{
	char leaf[PATH_MAX];

	WANT(enter(p) == 0);
	WANT(chdir(p->scratch.dir) == 0);
	WANT_STATUS(init(), 0);
	WANT(job_open(&job, ADD_MODEL, 0) == 0);
	WANT_STATUS(begin(), 0);
	faults->arm(1, true);
	NRT_STATUS status = lib.nrt_execute(job.model, job.in, job.out);
	faults->arm(0, false);
	WANT(status == NRT_RESOURCE);
	WANT_STATUS(stop(), 0);
	WANT(inspect_leaf(INSPECT_BASE, getpid(), 1, leaf, sizeof(leaf)));
	WANT(leaf_executions(leaf) == 1);
	lib.nrt_close();
	return 0;
}

TEST("inspect faults: an execution without memory, under tests/faults.so", "[.execution_refused]")
{
	faults_work(execution_refused);
}

static const char *const one_core[] = {"--arch=v2", "--cores=1", NULL};

TEST("inspect faults: the work, under tests/faults.so", "[.inspect_faults]")
{
	faults_work(all_faults);
}

TEST("inspect faults: memory runs out in begin or stop, which leave nothing half-made",
	"[nrt][inspect][inspect-faults][vdev][slow]")
{
	faults_run_on("[.inspect_faults]", "NTRACE_FAULT=alloc:0", one_core);
}

TEST("inspect faults: any call to the system fails in begin or stop, which leave nothing half-made",
	"[nrt][inspect][inspect-faults][vdev][slow]")
{
	faults_run_on("[.inspect_faults]", "NTRACE_FAULT=file:0", one_core);
}

TEST("inspect faults: an execution that there is no memory for is among the events",
	"[nrt][inspect][inspect-faults][vdev]")
{
	faults_run_on("[.execution_refused]", "NTRACE_FAULT=alloc:0", one_core);
}
