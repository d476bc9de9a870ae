/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_core_dump_trouble_test.c - core dumps in which something goes wrong: helpers that do not end well; and
 * programs that are killed, fork, or fail in several threads.
 */
#include <pthread.h>

#include "runtime/lifecycle/core_dump.h"
#include "tests/unit/nrt_core_dump.h"
#include "tests/unit/nrt_init_fixture.h"

/* ---- helpers ------------------------------------------------------------------------------ */

static int hanging(void *arg)
{
	int helper = 0, child = 0;
	char *pids;

	setenv("NTRACE_DUMP_SECONDS", "5", 1);
	WANT(fail_with_helper(arg, "hang") == 0);
	WANT(said(arg, "./neuron-dump had no end within NTRACE_DUMP_SECONDS and was killed"));
	pids = program_text(dump_place(arg, "out.pids").s);
	WANT(sscanf(pids, "%d %d", &helper, &child) == 2);
	free(pids);
	WANT(program_until(program_gone, &helper, 20) && program_until(program_gone, &child, 20));
	/* Neither for the other core, nor for other failures. */
	WANT(dump_runs(arg, "") == 1);
	WANT(file_has_error());
	WANT_STATUS(lib.nrt_load(NULL, 1, 0, -1, NULL), NRT_INVALID);
	WANT(dump_runs(arg, "") == 1);
	return 0;
}

DUMP_TEST("core dump: a helper that hangs is killed with its children, said, and not run again",
	hanging)

/* The first run ends well, but the time is over before the program goes on. */
static int held_up(void *arg)
{
	char *log;

	setenv("NTRACE_DUMP_SECONDS", "3", 1);
	WANT(fail_with_helper(arg, "hold-up") == 0);
	log = program_text(dump_place(arg, "log").s);
	WANT(strstr(log, "No time is left of NTRACE_DUMP_SECONDS for ./neuron-dump"));
	WANT(!strstr(log, "killed") && !strstr(log, "Cannot run"));
	free(log);
	WANT(dump_runs(arg, "") == 1);
	WANT(file_has_error());
	unsetenv("FAKE_DUMP");
	WANT_STATUS(lib.nrt_load(NULL, 1, 0, -1, NULL), NRT_INVALID);
	WANT(dump_runs(arg, "--runtime-generated") == 1); /* it goes on with the next failure */
	return 0;
}

DUMP_TEST("core dump: when the time is over the helper is not run, and not blamed", held_up)

static int alone(void *arg)
{
	WANT(fail_with_helper(arg, "alone") == 0);
	WANT(said(arg, "./neuron-dump: nobody knows how it ended"));
	WANT_STATUS(lib.nrt_load(NULL, 1, 0, -1, NULL), NRT_INVALID);
	WANT(dump_runs(arg, "") == 1);
	return 0;
}

DUMP_TEST("core dump: a helper of which nobody knows the end is not run again", alone)

static int ended(const struct place *p, const char *how, const char *words)
{
	WANT(fail_with_helper(p, how) == 0);
	WANT(dump_runs(p, "") == 3);
	WANT(said(p, words));
	return 0;
}

static int crashing(void *arg)
{
	return ended(
		arg, "crash", "./neuron-dump was ended by signal 11 (core 1 of neuron0, run 2)");
}

static int unsuccessful(void *arg)
{
	return ended(arg, "fail", "./neuron-dump ended with status 9 (the file of errors, run 3)");
}

DUMP_TEST("core dump: a helper that crashes is said to, and run for the rest", crashing)
DUMP_TEST("core dump: a helper that fails is said to", unsuccessful)

static int killed_meanwhile(void *arg)
{
	int status = 0;
	pid_t pid = fork();
	char *log;

	if (pid == 0) {
		setenv("NEURON_RT_LOG_COALESCING_ENABLED", "1", 1);
		_exit(fail_with_helper(arg, "kill"));
	}
	WANT(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
	WANT(chdir(((struct place *)arg)->scratch.dir) == 0 && file_has_error());
	log = program_text(dump_place(arg, "log").s);
	WANT(strstr(log, "Generic API Failure Resolution: ") && strstr(log, " Model: "));
	free(log);
	return 0;
}

DUMP_TEST(
	"core dump: of a program that is killed meanwhile log and file have the errors, also those "
	"that were held",
	killed_meanwhile)

/* ---- programs ----------------------------------------------------------------------------- */

/* By the library that is linked here: no call gets so far in the child, but one that a handler interrupted and forked
 * in goes on there. */
static int forked(void *arg)
{
	const struct core_dump_of what = {.location = "a_call", .code = NRT_FAILURE};
	struct scratch_path out = dump_place(arg, "out"), dir = dump_place(arg, "dumps");
	struct program_path helper = program_path("tests/fake_dump");
	int status = 0;
	pid_t pid;

	WANT(enter_linked(arg, "ERROR") == 0 && chdir(((struct place *)arg)->scratch.dir) == 0);
	WANT(symlink(helper.s, "neuron-dump") == 0);
	setenv("FAKE_DUMP_OUT", out.s, 1);
	setenv(LOCAL, dir.s, 1);
	WANT_STATUS(init(), 0);
	pid = fork();
	if (pid == 0) {
		core_dump(&what);
		_exit(0);
	}
	WANT(waitpid(pid, &status, 0) == pid && status == 0);
	WANT(dump_runs(arg, "") == 0 && access(dir.s, F_OK) < 0);
	core_dump(&what);
	WANT(dump_runs(arg, "") == 1);
	return 0;
}

DUMP_TEST("core dump: none in the child of a fork", forked)

static void *fail_in_thread(void *core)
{
	nrt_model_t *m = NULL;

	return lib.nrt_load("\177NEFF", 6, *(int *)core, -1, &m) == GARBAGE_STATUS ? core : NULL;
}

static int in_threads(void *arg)
{
	struct scratch_path dir = dump_place(arg, "dumps");
	pthread_t t[4];
	int core[4] = {0, 1, 0, 1};
	bool seen[7] = {false};

	WANT(dump_begin(arg, dir.s, "ERROR") == 0);
	for (int i = 0; i < 4; i++)
		WANT(pthread_create(&t[i], NULL, fail_in_thread, &core[i]) == 0);
	for (int i = 0; i < 4; i++) {
		void *well;

		WANT(pthread_join(t[i], &well) == 0 && well);
	}
	/* Two dumps, as ever, of three runs: each whole, with a number of its own. */
	WANT(dump_runs(arg, "") == 6);
	for (int k = 0; k < 6; k++) {
		char *number = dump_value(arg, k, "--log-id");
		int n = atoi(number);

		WANT(n >= 1 && n <= 6 && !seen[n]);
		seen[n] = true;
		free(number);
	}
	return 0;
}

DUMP_TEST("core dump: threads that fail at the same time have runs of their own", in_threads)

/* Without a descriptor of the library or the program, and without a trace among the program's children. */
static int unseen(void *arg)
{
	struct scratch_path dir = dump_place(arg, "dumps");

	WANT(dump_begin(arg, dir.s, "ERROR") == 0);
	WANT(fcntl(0, F_DUPFD, 200) >= 200);
	WANT(signal(SIGCHLD, SIG_IGN) != SIG_ERR);
	WANT(fail_to_load() == 0);
	WANT(dump_runs(arg, "\nfds 0 1 2\n") == 3);
	WANT(program_child(getpid()) == 0);
	WANT(waitpid(-1, NULL, 0) == -1 && errno == ECHILD);
	return 0;
}

DUMP_TEST("core dump: no descriptor goes to the helper, and no child is left of it", unseen)
