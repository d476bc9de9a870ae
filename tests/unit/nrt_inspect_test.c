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

/* ---- what trace_info.pb says of what is off ------------------------------------------------ */

/* Why something is not in the session; "" when it is. */
static const char *why_off(const Ntff__NtraceSession *s, const char *what)
{
	for (size_t i = 0; i < s->n_off; i++)
		if (!strcmp(s->off[i]->what, what))
			return s->off[i]->why;
	return "";
}

/* Is it said why this is not in the session of the leaf?  text: a part of it. */
static bool off_says(const char *leaf, const char *what, const char *text)
{
	Ntff__NtraceInfo *info = inspect_info(leaf);
	bool found = false;

	for (size_t i = 0; info && info->session && i < info->session->n_off; i++)
		found |= !strcmp(info->session->off[i]->what, what) &&
			 strstr(info->session->off[i]->why, text);
	if (info && !found)
		dprintf(complaint_fd, "%s: nothing of '%s'\n", what, text);
	if (info)
		ntff__ntrace_info__free_unpacked(info, NULL);
	return found;
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
	setenv("NEURON_RT_INSPECT_EVENT_FILTER_NC", "7,9", 1);
	WANT(inspect_enter(arg) == 0);
	WANT_STATUS(init(), 0);
	WANT(said(arg, "no core of this process is selected"));
	WANT(some_runs(1) == 0);
	lib.nrt_close();
	WANT(inspect_leaf(INSPECT_BASE, getpid(), 1, leaf, sizeof(leaf)));
	WANT(inspect_tree(leaf, 0, 0) == 0);
	WANT(inspect_events(leaf, TRACE_EXECUTE_API, PHASE_START) == 0);
	WANT(off_says(leaf, "event_cores", "not visible to this process: NC 7, 9"));
	WANT(off_says(leaf, "event_cores", "no core of this process is selected"));
	return 0;
}

INSPECT_TEST("inspect: a filter for cores that are not there leaves none, and the program works",
	other_cores, two_cores)

/* A program's log shows errors alone, unless it is told otherwise: the files say it as well. */
static int silent(void *arg)
{
	char leaf[PATH_MAX];

	setenv("NEURON_RT_LOG_LEVEL", "ERROR", 1);
	setenv("NEURON_RT_INSPECT_ENABLE", "1", 1);
	setenv("NEURON_RT_INSPECT_EVENT_FILTER_TYPE", "nrt_exeucte,zebra,^hardware", 1);
	WANT(inspect_enter(arg) == 0);
	WANT_STATUS(init(), 0);
	lib.nrt_close();
	WANT(!said(arg, "zebra"));
	WANT(inspect_leaf(INSPECT_BASE, getpid(), 1, leaf, sizeof(leaf)));
	WANT(off_says(leaf, "event_types", "there is no nrt_exeucte, zebra"));
	WANT(!off_says(leaf, "event_types", "no type of event is selected"));
	setenv("NEURON_RT_INSPECT_EVENT_FILTER_TYPE", "^software,^hardware", 1);
	WANT_STATUS(init(), 0);
	lib.nrt_close();
	WANT(inspect_leaf(INSPECT_BASE, getpid(), 2, leaf, sizeof(leaf)));
	WANT(off_says(leaf, "event_types", "no type of event is selected"));
	return 0;
}

INSPECT_TEST("inspect: what a filter names in vain is in trace_info.pb, whatever the log shows",
	silent, two_cores)

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

static void device_models(nrt_inspect_config_t *config)
{
	(void)lib.nrt_inspect_config_set_inspect_device_profile_mode(
		config, NRT_INSPECT_DEVICE_PROFILE_MODE_MODEL);
}

static int in_async(void *arg)
{
	char leaf[PATH_MAX];

	setenv("NEURON_RT_ASYNC_EXEC_MAX_INFLIGHT_REQUESTS", "2", 1);
	WANT(inspect_enter(arg) == 0);
	WANT_STATUS(init(), 0);
	WANT_STATUS(inspect_begin(device_session), 0);
	WANT(some_runs(RUNS) == 0);
	WANT_STATUS(lib.nrt_inspect_stop(), 0);
	WANT(!said(arg, "implicit async execution mode"));
	WANT(inspect_leaf(INSPECT_BASE, getpid(), 1, leaf, sizeof(leaf)));
	WANT(inspect_tree(leaf, 1, 1) == 0);
	WANT_STATUS(inspect_begin(device_models), 0);
	WANT(said(arg, "device_profile: mode model is not supported in implicit async execution"));
	WANT(some_runs(RUNS) == 0);
	WANT_STATUS(lib.nrt_inspect_stop(), 0);
	WANT(inspect_leaf(INSPECT_BASE, getpid(), 2, leaf, sizeof(leaf)));
	WANT(inspect_tree(leaf, 0, 0) == 0);
	WANT(off_says(leaf, "device_profile", "mode model is not supported"));
	lib.nrt_close();
	return 0;
}

INSPECT_TEST("inspect: profiles of models do not go with implicit async execution, which is said; "
	     "sessions do",
	in_async, two_cores)

/* ---- what the session says of itself ------------------------------------------------------ */

/* MODEL is asked for, where executions are only posted; the environment's variables that count
 * are listed. */
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
		"mode model is not supported in implicit async execution mode "
		"(NEURON_RT_ASYNC_EXEC_MAX_INFLIGHT_REQUESTS); mode session is"));
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

/* ---- somebody moves things ----------------------------------------------------------------- */

/* What has the directory's name now is not the session's: nothing of it is touched. */
static int replaced(void *arg)
{
	struct place *p = arg;
	char leaf[PATH_MAX];

	WANT(inspect_enter(p) == 0);
	WANT_STATUS(init(), 0);
	WANT_STATUS(inspect_begin(device_session), 0);
	WANT(some_runs(RUNS) == 0);
	WANT(inspect_leaf(INSPECT_BASE, getpid(), 1, leaf, sizeof(leaf)));
	WANT(rename(leaf, "moved") == 0 && mkdir("other", 0700) == 0);
	WANT(mkdir("other/recording", 0700) == 0 && creat("other/recording/x", 0600) >= 0);
	WANT(symlink("../other", leaf) == 0);
	WANT_STATUS(lib.nrt_inspect_stop(), NRT_FAILURE);
	WANT(said(p, "something else has its name"));
	WANT(scratch_entries("other") == 1 && scratch_entries("other/recording") == 1);
	WANT(scratch_entries("moved") == 1); /* its recording */
	WANT(inspect_bytes("moved", "recording/segment-000000.ntrec") > 0);
	lib.nrt_close();
	return 0;
}

INSPECT_TEST("inspect: a directory that was moved away is not looked for under its name", replaced,
	two_cores)

/* What lies under a profile's name is no file that could be replaced. */
static int in_the_way(void *arg)
{
	char leaf[PATH_MAX], way[PATH_MAX + 64];
	Ntff__NtraceInfo *info;
	bool told = false;

	WANT(inspect_enter(arg) == 0);
	WANT_STATUS(init(), 0);
	WANT_STATUS(inspect_begin(device_session), 0);
	WANT(some_runs(RUNS) == 0);
	WANT(inspect_leaf(INSPECT_BASE, getpid(), 1, leaf, sizeof(leaf)));
	for (unsigned n = 0; n < 3; n++) {
		snprintf(way, sizeof(way), "%s/profile_nc_0_session_%u.ntff", leaf, n);
		WANT(mkdir(way, 0700) == 0);
	}
	WANT_STATUS(lib.nrt_inspect_stop(), NRT_FAILURE);
	lib.nrt_close();
	info = inspect_info(leaf);
	WANT(info != NULL);
	for (size_t i = 0; i < info->n_blind; i++)
		told |= strstr(info->blind[i], "profile_nc_0_session_") != NULL &&
			strstr(info->blind[i], "could not be written") != NULL;
	WANT(told);
	ntff__ntrace_info__free_unpacked(info, NULL);
	return 0;
}

INSPECT_TEST("inspect: a device profile that cannot be written fails the stop, and BLIND names it",
	in_the_way, two_cores)

/* ---- one at a time ------------------------------------------------------------------------ */

static void number_seven(nrt_inspect_config_t *config)
{
	(void)lib.nrt_inspect_config_set_session_id(config, 7);
}

/* A begin that asks for nothing is a second one all the same. */
static int begins_nothing(void *arg)
{
	nrt_inspect_config_t *config = NULL;

	WANT_STATUS(lib.nrt_inspect_config_allocate(&config), 0);
	WANT_STATUS(lib.nrt_inspect_begin_with_options(config), NRT_INVALID);
	WANT_STATUS(lib.nrt_inspect_config_free(config), 0);
	WANT_STATUS(lib.nrt_inspect_begin_with_options(NULL), NRT_INVALID);
	WANT(!said(arg, "othing is recorded"));
	return 0;
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
	WANT(begins_nothing(arg) == 0);
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

/* ---- where its files are -------------------------------------------------------------------- */

/* Is the directory of sessions to base this one? */
static bool is_in(const char *base, const char *leaf)
{
	char told[PATH_MAX], real[PATH_MAX];

	return lib.nrt_inspect_get_instance_output_dir(base, told, sizeof(told)) == NRT_SUCCESS &&
	       realpath(leaf, real) && !strcmp(told, real);
}

static int named(void *arg)
{
	char leaf[PATH_MAX], other[PATH_MAX], next[PATH_MAX];

	WANT(inspect_enter(arg) == 0);
	WANT_STATUS(init(), 0);
	WANT_STATUS(inspect_begin(NULL), 0);
	WANT(inspect_leaf(INSPECT_BASE, getpid(), 1, leaf, sizeof(leaf)));
	WANT(is_in(INSPECT_BASE, leaf) && is_in(NULL, leaf));
	WANT_STATUS(lib.nrt_inspect_stop(), 0);
	WANT(is_in(INSPECT_BASE, leaf) && is_in(NULL, leaf)); /* the files are there */
	WANT(!is_in("elsewhere", leaf));
	WANT_STATUS(inspect_begin(NULL), 0);
	WANT(inspect_leaf(INSPECT_BASE, getpid(), 2, other, sizeof(other)));
	WANT(is_in(INSPECT_BASE, other));
	WANT_STATUS(lib.nrt_inspect_stop(), 0);
	WANT(is_in(INSPECT_BASE, other));
	/* Who has taken the files away asks for the next one. */
	WANT(rename(other, "away") == 0);
	WANT_STATUS(lib.nrt_inspect_get_instance_output_dir(NULL, next, sizeof(next)), 0);
	WANT(access(next, F_OK) < 0);
	WANT(rename("away", other) == 0);
	lib.nrt_close();
	WANT_STATUS(init(), 0);
	WANT(!is_in(INSPECT_BASE, other)); /* nrt_close has forgotten it */
	lib.nrt_close();
	return 0;
}

INSPECT_TEST("inspect: the directory of a session that has ended is named until the next begin",
	named, two_cores)

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
