/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_inspect_on_fail_test.c - a session for failures whose program is killed after one: its profiles are in the session's
 * directory already, and salvage puts the rest beside them.
 */
#include <signal.h>
#include <sys/wait.h>

#include "runtime/record/merge.h"
#include "runtime/trace/event_registry.h"
#include "tests/shim/shim.h"
#include "tests/unit/inspect_leaf.h"
#include "tests/unit/nrt_init_fixture.h"
#include "tests/unit/nrt_inspect.h"

#define RUNS 5

static const int deaths[] = {SIGKILL, SIGSEGV};
static struct scratch_path base;

/* Where the session works, by its directory. */
static struct scratch_path scratch_beside(const char *leaf)
{
	const char *slash = strrchr(leaf, '/');
	struct scratch_path p;

	snprintf(p.s, sizeof(p.s), "%.*s/.%s.tmp", (int)(slash - leaf), leaf, slash + 1);
	return p;
}

/* All executions of the program are on the disk. */
static bool is_flushed(void *arg)
{
	const uint64_t *events = arg;
	_cleanup_free_ char *text = NULL;
	struct merge_result m;
	char leaf[PATH_MAX];
	bool there = false;

	if (!inspect_leaf(base.s, getpid(), 1, leaf, sizeof(leaf)))
		return false;
	if (merge_recording(scratch_beside(leaf).s, NULL, &(struct merge_options){.leaf = true}, &m,
		    &text) == 0)
		there = m.output_count && m.outputs[0].events >= *events;
	merge_result_free(&m);
	return there;
}

static int run_and_die(int sig)
{
	uint64_t events = 2ull * (RUNS + 1);
	struct job good, bad;

	WANT_STATUS(init(), 0);
	WANT(job_open(&good, ADD_MODEL, 0) == 0);
	WANT(job_open(&bad, FAULTY_MODEL, 0) == 0);
	WANT_STATUS(lib.nrt_execute(bad.model, bad.in, bad.out), NRT_EXEC_COMPLETED_WITH_NUM_ERR);
	for (int i = 0; i < RUNS; i++)
		WANT(job_run(&good, (float)i, 2) == 0);
	WANT(program_until(is_flushed, &events, 60));
	signal(sig, SIG_DFL);
	raise(sig);
	return 1;
}

static int killed(void *arg)
{
	const struct place *p = arg;

	base = scratch_path(&p->scratch, INSPECT_BASE);
	setenv("NEURON_RT_INSPECT_ON_FAIL", "1", 1);
	setenv("NEURON_RT_INSPECT_EVENT_FILTER_TYPE", "nrt_execute", 1);
	setenv("NEURON_RT_INSPECT_OUTPUT_DIR", base.s, 1);
	WANT(enter(p) == 0);
	for (size_t i = 0; i < sizeof(deaths) / sizeof(deaths[0]); i++) {
		Ntff__NtraceInfo *info;
		char leaf[PATH_MAX];
		bool told = false;
		int status = 0;
		pid_t pid = fork();

		if (pid == 0)
			_exit(run_and_die(deaths[i]));
		WANT(waitpid(pid, &status, 0) == pid);
		WANT(WIFSIGNALED(status) && WTERMSIG(status) == deaths[i]);
		WANT(inspect_leaf(base.s, pid, 1, leaf, sizeof(leaf)));
		WANT(leaf_salvage(leaf, scratch_path(&p->scratch, "said").s) == 0);
		WANT(inspect_tree(leaf, 1, 1) == 0);
		WANT(leaf_executions(leaf) >= RUNS);
		info = inspect_info(leaf);
		WANT(info && info->session && info->session->on_fail);
		WANT(info->n_collected_profiles == 5); /* three of the four, and of the failure */
		for (size_t k = 0; k < info->session->n_off; k++)
			told |= !strcmp(info->session->off[k]->what, "device_profile") &&
				strstr(info->session->off[k]->why, "executions that fail");
		WANT(told);
		for (size_t k = 0; k < info->n_blind; k++)
			WANT(!strstr(info->blind[k], "took no device profile"));
		ntff__ntrace_info__free_unpacked(info, NULL);
	}
	return 0;
}

INSPECT_TEST(
	"inspect on-fail: of a program that dies after a failure all files come to its profiles",
	killed, two_cores)
