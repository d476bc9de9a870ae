/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_inspect_test.c - the inspect session: when one begins, what is on, what a second one is told,
 * what is left when it has ended.
 */
#include "runtime/trace/event_registry.h"
#include "tests/shim/shim.h"
#include "tests/unit/nrt_init_fixture.h"
#include "tests/unit/nrt_inspect.h"

#define RUNS 5

static int some_runs(int runs)
{
	struct job j;

	WANT(job_open(&j, ADD_MODEL, 0) == 0);
	for (int i = 0; i < runs; i++)
		WANT(job_run(&j, (float)i, 2) == 0);
	return 0;
}

/* ---- by the environment ------------------------------------------------------------------- */

static int enabled(void *arg)
{
	char leaf[PATH_MAX];

	setenv("NEURON_RT_INSPECT_ENABLE", "1", 1);
	setenv("NEURON_RT_INSPECT_HOST_MEMORY", "1", 1);
	WANT(inspect_enter(arg) == 0);
	WANT_STATUS(init(), 0);
	WANT(some_runs(RUNS) == 0);
	lib.nrt_close();
	WANT(inspect_leaves(INSPECT_BASE) == 1);
	WANT(inspect_leaf(INSPECT_BASE, getpid(), 1, leaf, sizeof(leaf)));
	WANT(inspect_tree(leaf, 0, 0) == 0);
	WANT(inspect_events(leaf, TRACE_EXECUTE_API, PHASE_START) == RUNS);
	WANT(inspect_events(leaf, TRACE_EXECUTE_API, PHASE_STOP) == RUNS);
	WANT(inspect_bytes(leaf, "host_mem.pb") > 0);
	WANT(inspect_bytes(leaf, "cpu_util.pb") == 0); /* off */
	/* Another nrt_init has another session. */
	WANT_STATUS(init(), 0);
	lib.nrt_close();
	WANT(inspect_leaves(INSPECT_BASE) == 2);
	WANT(inspect_leaf(INSPECT_BASE, getpid(), 2, leaf, sizeof(leaf)));
	WANT(inspect_tree(leaf, 0, 0) == 0);
	WANT(inspect_events(leaf, TRACE_EXECUTE_API, PHASE_START) == 0);
	return 0;
}

INSPECT_TEST("inspect: NEURON_RT_INSPECT_ENABLE has nrt_init begin a session and nrt_close end it",
	enabled, two_cores)

static int without(void *arg)
{
	WANT(inspect_enter(arg) == 0);
	WANT_STATUS(init(), 0);
	WANT(some_runs(1) == 0);
	WANT_STATUS(lib.nrt_inspect_stop(), 0);
	lib.nrt_close();
	WANT(access(INSPECT_BASE, F_OK) < 0);
	return 0;
}

INSPECT_TEST("inspect: without a wish for one there is no session", without, two_cores)

/* Whatever is wrong with the session is no reason for the program not to work. */
static int cannot_begin(void *arg)
{
	setenv("NEURON_RT_INSPECT_ENABLE", "1", 1);
	setenv("NEURON_RT_INSPECT_OUTPUT_DIR", "./tmp", 1);
	WANT(inspect_enter(arg) == 0);
	WANT_STATUS(init(), 0);
	WANT(said(arg, "No session begins (status 2), and nothing is recorded; nrt_init goes on"));
	WANT(some_runs(1) == 0);
	lib.nrt_close();
	/* A value that cannot be, on the other hand, is as that of any other variable. */
	setenv("NEURON_RT_INSPECT_ENABLE", "yes", 1);
	WANT_STATUS(init(), NRT_INVALID);
	return 0;
}

INSPECT_TEST("inspect: a session that cannot begin is said, and nrt_init goes on", cannot_begin,
	two_cores)

static int other_cores(void *arg)
{
	char leaf[PATH_MAX];

	setenv("NEURON_RT_INSPECT_ENABLE", "1", 1);
	setenv("NEURON_RT_INSPECT_EVENT_FILTER_NC", "7", 1);
	WANT(inspect_enter(arg) == 0);
	WANT_STATUS(init(), 0);
	WANT(said(arg, "Requested capture for NC 7, but it is not visible"));
	WANT(some_runs(1) == 0);
	lib.nrt_close();
	WANT(inspect_leaf(INSPECT_BASE, getpid(), 1, leaf, sizeof(leaf)));
	WANT(inspect_tree(leaf, 0, 0) == 0);
	WANT(inspect_events(leaf, TRACE_EXECUTE_API, PHASE_START) == 0);
	return 0;
}

INSPECT_TEST("inspect: a filter for cores that are not there leaves none, and the program works",
	other_cores, two_cores)

/* nrt_inspect_begin is the wish: NEURON_RT_INSPECT_ENABLE need not be set. */
static int by_call(void *arg)
{
	char leaf[PATH_MAX];

	setenv("NEURON_RT_INSPECT_OUTPUT_DIR", "elsewhere", 1);
	setenv("NEURON_RT_INSPECT_EVENT_FILTER_TYPE", "nrt_execute", 1);
	WANT(inspect_enter(arg) == 0);
	WANT_STATUS(init(), 0);
	WANT_STATUS(lib.nrt_inspect_begin(), 0);
	WANT(some_runs(RUNS) == 0);
	WANT_STATUS(lib.nrt_inspect_stop(), 0);
	WANT(inspect_leaf("elsewhere", getpid(), 1, leaf, sizeof(leaf)));
	WANT(inspect_tree(leaf, 0, 0) == 0);
	WANT(inspect_events(leaf, TRACE_EXECUTE_API, PHASE_START) == RUNS);
	WANT(inspect_events(leaf, TRACE_DEVICE_EXEC, PHASE_START) == 0);
	/* The variables are read at each begin. */
	setenv("NEURON_RT_INSPECT_CPU_UTIL", "2", 1);
	WANT_STATUS(lib.nrt_inspect_begin(), NRT_INVALID);
	WANT(said(arg, "NEURON_RT_INSPECT_CPU_UTIL='2' is not 0 or 1"));
	WANT(inspect_leaves("elsewhere") == 1);
	lib.nrt_close();
	return 0;
}

INSPECT_TEST("inspect: nrt_inspect_begin goes by the variables", by_call, two_cores)

/* ---- by a config -------------------------------------------------------------------------- */

static int nothing_asked(void *arg)
{
	nrt_inspect_config_t *config = NULL;

	WANT(inspect_enter(arg) == 0);
	WANT_STATUS(init(), 0);
	WANT_STATUS(lib.nrt_inspect_begin_with_options(NULL), 0);
	WANT(said(arg, "called with null options."));
	WANT_STATUS(lib.nrt_inspect_config_allocate(&config), 0);
	WANT_STATUS(lib.nrt_inspect_begin_with_options(config), 0);
	WANT(said(arg, "Nothing is recorded"));
	WANT_STATUS(lib.nrt_inspect_config_free(config), 0);
	WANT_STATUS(lib.nrt_inspect_stop(), 0);
	lib.nrt_close();
	WANT(access(INSPECT_BASE, F_OK) < 0);
	return 0;
}

INSPECT_TEST("inspect: NULL options, and a config with neither switch, record nothing and say so",
	nothing_asked, two_cores)

static void host_alone(nrt_inspect_config_t *config)
{
	(void)lib.nrt_inspect_config_set_activity(config, "all", false);
	(void)lib.nrt_inspect_config_set_activity(config, "cpu_util", true);
	(void)lib.nrt_inspect_config_set_inspect_device_profile_mode(
		config, NRT_INSPECT_DEVICE_PROFILE_MODE_SESSION);
}

static int activities(void *arg)
{
	char leaf[PATH_MAX];

	setenv("NEURON_RT_INSPECT_OUTPUT_DIR", "elsewhere", 1); /* does not count */
	WANT(inspect_enter(arg) == 0);
	WANT_STATUS(init(), 0);
	WANT_STATUS(inspect_begin(host_alone), 0);
	WANT(said(arg, "the activity device_profile is off"));
	WANT(some_runs(RUNS) == 0);
	WANT_STATUS(lib.nrt_inspect_stop(), 0);
	lib.nrt_close();
	WANT(access("elsewhere", F_OK) < 0);
	WANT(inspect_leaf(INSPECT_BASE, getpid(), 1, leaf, sizeof(leaf)));
	WANT(inspect_tree(leaf, 0, 0) == 0);
	WANT(inspect_bytes(leaf, "ntrace.pb") == 0);
	WANT(inspect_bytes(leaf, "host_mem.pb") == 0);
	WANT(inspect_bytes(leaf, "cpu_util.pb") > 0);
	WANT(inspect_bytes(leaf, "trace_info.pb") > 0);
	return 0;
}

INSPECT_TEST("inspect: an activity that is off leaves an empty file", activities, two_cores)

static void device_session(nrt_inspect_config_t *config)
{
	(void)lib.nrt_inspect_config_set_inspect_device_profile_mode(
		config, NRT_INSPECT_DEVICE_PROFILE_MODE_SESSION);
}

static int device_profiles(void *arg)
{
	char leaf[PATH_MAX];

	WANT(inspect_enter(arg) == 0);
	WANT_STATUS(init(), 0);
	WANT_STATUS(inspect_begin(device_session), 0);
	WANT(some_runs(RUNS) == 0);
	WANT_STATUS(lib.nrt_inspect_stop(), 0);
	WANT(inspect_leaf(INSPECT_BASE, getpid(), 1, leaf, sizeof(leaf)));
	WANT(inspect_tree(leaf, 1, 1) == 0); /* nothing ran on core 1 */
	lib.nrt_close();
	return 0;
}

INSPECT_TEST("inspect: a session with device profiles has them beside its files", device_profiles,
	two_cores)

/* ---- what the session says of itself ------------------------------------------------------ */

/* Why an activity is off; "" when it is on. */
static const char *why_off(const Ntff__NtraceSession *s, const char *activity)
{
	for (size_t i = 0; i < s->n_off; i++)
		if (!strcmp(s->off[i]->what, activity))
			return s->off[i]->why;
	return "";
}

/* MODEL is asked for, where executions are only posted; the environment's variables that count are listed. */
static int facts(void *arg)
{
	char leaf[PATH_MAX];
	Ntff__NtraceInfo *info;
	Ntff__NtraceSession *s;

	setenv("NEURON_RT_INSPECT_ENABLE", "1", 1);
	setenv("NEURON_RT_INSPECT_DEVICE_PROFILE", "model", 1);
	setenv("NEURON_RT_INSPECT_CPU_UTIL", "1", 1);
	setenv("NEURON_RT_INSPECT_START_OFFSET_NSEC", "1", 1);
	setenv("NEURON_RT_ASYNC_EXEC_MAX_INFLIGHT_REQUESTS", "2", 1);
	WANT(inspect_enter(arg) == 0);
	WANT_STATUS(init(), 0);
	lib.nrt_close();
	WANT(inspect_leaf(INSPECT_BASE, getpid(), 1, leaf, sizeof(leaf)));
	info = inspect_info(leaf);
	WANT(info && info->session);
	s = info->session;
	WANT(info->pid == (uint32_t)getpid() && info->arch == 3 && info->virtual_device);
	WANT(s->session_id == 1 && s->enabled && !s->on_fail);
	WANT(s->logical_cores == 2 && s->logical_nc_size == 2);
	WANT(!strcmp(s->device_profile, "off") && !strcmp(s->device_profile_wanted, "model"));
	WANT(!strcmp(s->layout, "flat") && !strcmp(s->runtime, "2.31.24.0"));
	WANT(!strcmp(why_off(s, "system_profile"), "") && !strcmp(why_off(s, "cpu_util"), ""));
	WANT(!strcmp(why_off(s, "host_memory"), "not asked for"));
	WANT(!strcmp(why_off(s, "device_profile"),
		"profiles of models do not go with executions that are only posted"));
	WANT(s->n_environment == 3);
	WANT(!strcmp(s->environment[0], "NEURON_RT_INSPECT_ENABLE=1"));
	WANT(!strcmp(s->environment[1], "NEURON_RT_INSPECT_DEVICE_PROFILE=model"));
	WANT(!strcmp(s->environment[2], "NEURON_RT_INSPECT_CPU_UTIL=1"));
	ntff__ntrace_info__free_unpacked(info, NULL);
	return 0;
}

INSPECT_TEST("inspect: trace_info.pb says what was asked for, what was in effect, and why not",
	facts, two_cores)

/* ---- failures ------------------------------------------------------------------------------ */

static int nothing_fails(void)
{
	WANT_STATUS(init(), 0);
	WANT(some_runs(RUNS) == 0);
	lib.nrt_close();
	WANT(access(INSPECT_BASE, F_OK) < 0);
	return 0;
}

static int on_fail(void *arg)
{
	char leaf[PATH_MAX];
	struct job bad;

	setenv("NEURON_RT_INSPECT_ON_FAIL", "1", 1);
	WANT(inspect_enter(arg) == 0);
	WANT(nothing_fails() == 0);
	WANT_STATUS(init(), 0);
	WANT(job_open(&bad, FAULTY_MODEL, 0) == 0);
	WANT(some_runs(RUNS) == 0);
	WANT_STATUS(lib.nrt_execute(bad.model, bad.in, bad.out), NRT_EXEC_COMPLETED_WITH_NUM_ERR);
	WANT(some_runs(RUNS) == 0);
	lib.nrt_close();
	WANT(inspect_leaves(INSPECT_BASE) == 1);
	WANT(inspect_leaf(INSPECT_BASE, getpid(), 1, leaf, sizeof(leaf)));
	WANT(inspect_tree(leaf, 1, 1) == 0);
	WANT(inspect_events(leaf, TRACE_EXECUTE_API, PHASE_STOP) == 2 * RUNS + 1);
	WANT(scratch_entries(INSPECT_BASE) == 1); /* no scratch directory */
	return 0;
}

INSPECT_TEST("inspect: a session for failures leaves its files when there was one, else nothing",
	on_fail, two_cores)

static int nowhere(void *arg)
{
	struct place *p = arg;
	int entries;

	setenv("NEURON_RT_INSPECT_ENABLE", "1", 1);
	setenv("NEURON_RT_INSPECT_DEVICE_PROFILE", "session", 1);
	setenv("NEURON_RT_INSPECT_OUTPUT_DIR", "/dev/null", 1);
	WANT(inspect_enter(p) == 0);
	entries = scratch_entries(".");
	WANT_STATUS(init(), 0);
	WANT(some_runs(RUNS) == 0);
	WANT_STATUS(lib.nrt_inspect_begin(), NRT_INVALID); /* it is a session */
	WANT_STATUS(lib.nrt_inspect_stop(), 0);
	lib.nrt_close();
	WANT(scratch_entries(".") == entries);
	return 0;
}

INSPECT_TEST("inspect: a session to /dev/null writes nothing", nowhere, two_cores)

/* ---- one at a time ------------------------------------------------------------------------ */

static void number_seven(nrt_inspect_config_t *config)
{
	(void)lib.nrt_inspect_config_set_session_id(config, 7);
}

static int second(void *arg)
{
	char leaf[PATH_MAX], text[PATH_MAX + 100];

	WANT(inspect_enter(arg) == 0);
	WANT_STATUS(init(), 0);
	WANT_STATUS(inspect_begin(number_seven), 0);
	WANT_STATUS(inspect_begin(NULL), NRT_INVALID);
	WANT(inspect_leaf(INSPECT_BASE, getpid(), 1, leaf, sizeof(leaf)));
	snprintf(text, sizeof(text), "A session is active already: session 7, in %s/%s, since 20",
		((struct place *)arg)->scratch.dir, leaf);
	WANT(said(arg, text));
	WANT_STATUS(lib.nrt_inspect_begin(), NRT_INVALID);
	WANT_STATUS(lib.nrt_inspect_get_instance_output_dir(NULL, text, sizeof(text)), 0);
	WANT(strstr(text, leaf) && !strcmp(strstr(text, leaf), leaf));
	/* The first one has not noticed. */
	WANT(some_runs(RUNS) == 0);
	WANT_STATUS(lib.nrt_inspect_stop(), 0);
	WANT(inspect_leaves(INSPECT_BASE) == 1);
	WANT(inspect_tree(leaf, 0, 0) == 0);
	WANT(inspect_events(leaf, TRACE_EXECUTE_API, PHASE_STOP) == RUNS);
	/* A stop is one for all, and there may be more of them. */
	WANT_STATUS(lib.nrt_inspect_stop(), 0);
	WANT_STATUS(inspect_begin(NULL), 0);
	WANT_STATUS(lib.nrt_inspect_stop(), 0);
	WANT(inspect_leaves(INSPECT_BASE) == 2);
	lib.nrt_close();
	WANT_STATUS(lib.nrt_inspect_stop(), NRT_UNINITIALIZED);
	return 0;
}

INSPECT_TEST(
	"inspect: a second begin is told who holds the session; a second stop has nothing to do",
	second, two_cores)

/* ---- forks -------------------------------------------------------------------------------- */

static int in_the_child(void *arg)
{
	(void)arg;
	WANT_STATUS(lib.nrt_inspect_stop(), NRT_FAILURE);
	WANT_STATUS(lib.nrt_inspect_begin(), NRT_FAILURE);
	lib.nrt_close();
	exit(0); /* with everything that runs at an exit */
}

static int forks(void *arg)
{
	char leaf[PATH_MAX];

	WANT(inspect_enter(arg) == 0);
	WANT_STATUS(init(), 0);
	WANT_STATUS(inspect_begin(NULL), 0);
	WANT(some_runs(1) == 0);
	WANT(scratch_child(in_the_child, NULL) == 0);
	WANT(inspect_leaf(INSPECT_BASE, getpid(), 1, leaf, sizeof(leaf)));
	WANT(inspect_bytes(leaf, "ntrace.pb") < 0); /* it goes on */
	WANT(some_runs(1) == 0);
	WANT_STATUS(lib.nrt_inspect_stop(), 0);
	WANT(inspect_leaves(INSPECT_BASE) == 1);
	WANT(inspect_tree(leaf, 0, 0) == 0);
	WANT(inspect_events(leaf, TRACE_EXECUTE_API, PHASE_STOP) == 2);
	lib.nrt_close();
	return 0;
}

INSPECT_TEST(
	"inspect: the child of a fork has no session, and its parent's goes on", forks, two_cores)

/* ---- nothing is left ---------------------------------------------------------------------- */

static int gives_back(void *arg)
{
	struct belongings before = {0}, after;

	WANT(inspect_enter(arg) == 0);
	WANT_STATUS(init(), 0);
	for (int i = 0; i < 6; i++) {
		WANT_STATUS(inspect_begin(device_session), 0);
		WANT(some_runs(1) == 0);
		WANT_STATUS(lib.nrt_inspect_stop(), 0);
		after = belongings_now();
		if (i == 1)
			before = after;
	}
	WANT(belongings_equal(&before, &after));
	lib.nrt_close();
	WANT(leaks() == 0);
	return 0;
}

INSPECT_TEST("inspect: a session that has ended has given everything back", gives_back, two_cores)
