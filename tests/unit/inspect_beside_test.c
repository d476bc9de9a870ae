/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_beside_test.c - an inspect session beside what else records in the same process: the
 * sys_trace API, nrt_trace_start, continuous profiling.
 */
#include <jansson.h>

#include "runtime/trace/event_registry.h"
#include "tests/shim/shim.h"
#include "tests/unit/exec_trace_reader.h"
#include "tests/unit/nrt_inspect.h"

#define RUNS 4
#define TRACE_NAME "trace_info.pb"

static int some_runs(const struct job *j, int runs)
{
	for (int i = 0; i < runs; i++)
		WANT(job_run(j, (float)i, 2) == 0);
	return 0;
}

/* Events of this name and phase that a fetch gives; -1. */
static int fetched(const char *name, const char *phase)
{
	char *text = NULL;
	size_t size = 0, i;
	json_t *root, *event;
	int n = 0;

	if (lib.nrt_sys_trace_fetch_events(&text, &size, NULL) != NRT_SUCCESS)
		return -1;
	root = json_loadb(text, size, 0, NULL);
	(void)lib.nrt_sys_trace_buffer_free(text);
	json_array_foreach(json_object_get(root, "events"), i, event) n +=
		!strcmp(json_string_value(json_object_get(event, "event_type")), name) &&
		!strcmp(json_string_value(json_object_get(event, "phase")), phase);
	json_decref(root);
	return root ? n : -1;
}

static void session_mode(nrt_inspect_config_t *c)
{
	(void)lib.nrt_inspect_config_set_inspect_device_profile_mode(
		c, NRT_INSPECT_DEVICE_PROFILE_MODE_SESSION);
}

static void model_mode(nrt_inspect_config_t *c)
{
	(void)lib.nrt_inspect_config_set_inspect_device_profile_mode(
		c, NRT_INSPECT_DEVICE_PROFILE_MODE_MODEL);
}

/* ---- the others that take events ---------------------------------------------------------- */

/* Each has begun and ends at another time. */
static int all_three(void *arg)
{
	const struct place *p = arg;
	nrt_sys_trace_config_t *config;
	Ntff__NtraceInfo *m;
	char leaf[PATH_MAX];
	struct job j;

	WANT(inspect_enter(p) == 0);
	WANT_STATUS(init(), 0);
	WANT(job_open(&j, ADD_MODEL, 0) == 0);
	WANT(some_runs(&j, RUNS) == 0); /* nobody's */
	WANT_STATUS(lib.nrt_sys_trace_config_allocate(&config), 0);
	WANT_STATUS(lib.nrt_sys_trace_start(config), 0);
	lib.nrt_sys_trace_config_free(config);
	WANT(some_runs(&j, RUNS) == 0); /* the API's */
	WANT_STATUS(inspect_begin(session_mode), 0);
	WANT(some_runs(&j, RUNS) == 0); /* and the session's */
	WANT_STATUS(lib.nrt_trace_start(true), 0);
	WANT(some_runs(&j, RUNS) == 0); /* and the trace's */
	WANT(fetched("nrt_execute", "stop") == 3 * RUNS);
	WANT_STATUS(lib.nrt_sys_trace_stop(), 0);
	WANT(some_runs(&j, RUNS) == 0); /* these two's */
	WANT_STATUS(trace_stop_to(p, TRACE_NAME), 0);
	WANT(some_runs(&j, RUNS) == 0); /* the session's alone */
	WANT_STATUS(lib.nrt_inspect_stop(), 0);
	WANT(some_runs(&j, RUNS) == 0);
	lib.nrt_close();

	WANT(inspect_leaf(INSPECT_BASE, getpid(), 1, leaf, sizeof(leaf)));
	WANT(inspect_tree(leaf, 1, 1) == 0);
	WANT(inspect_events(leaf, TRACE_EXECUTE_API, PHASE_START) == 4 * RUNS);
	WANT(inspect_events(leaf, TRACE_EXECUTE_API, PHASE_STOP) == 4 * RUNS);
	m = trace_load(p, TRACE_NAME);
	WANT(m && m->n_events > 0);
	ntff__ntrace_info__free_unpacked(m, NULL);
	return 0;
}

INSPECT_TEST("inspect beside: the sys_trace calls, nrt_trace_start and a session each get what is "
	     "theirs",
	all_three, two_cores)

/* ---- continuous profiling ----------------------------------------------------------------- */

static int options_new(nrt_profile_continuous_options_t **ret)
{
	WANT_STATUS(lib.nrt_profile_continuous_options_allocate(ret), 0);
	WANT_STATUS(lib.nrt_profile_continuous_options_set_output_dir(*ret, "continuous"), 0);
	return 0;
}

static int continuous_after(void *arg)
{
	const struct place *p = arg;
	nrt_profile_continuous_options_t *o;
	char leaf[PATH_MAX];
	struct job j;

	WANT(inspect_enter(p) == 0);
	WANT_STATUS(init(), 0);
	WANT(options_new(&o) == 0 && job_open(&j, ADD_MODEL, 0) == 0);
	WANT_STATUS(inspect_begin(session_mode), 0);
	WANT_STATUS(lib.nrt_profile_continuous_start(o), NRT_INVALID);
	WANT(said(p, "Please disable inspect device profiling to use continuous profiling."));
	WANT(some_runs(&j, RUNS) == 0);
	WANT_STATUS(lib.nrt_inspect_stop(), 0);
	WANT(inspect_leaf(INSPECT_BASE, getpid(), 1, leaf, sizeof(leaf)));
	WANT(inspect_tree(leaf, 1, 1) == 0);
	/* It was the session that was in the way; one without device profiles is not. */
	WANT_STATUS(inspect_begin(NULL), 0);
	WANT_STATUS(lib.nrt_profile_continuous_start(o), 0);
	WANT(some_runs(&j, RUNS) == 0);
	WANT_STATUS(lib.nrt_profile_continuous_save(0, o), 0);
	WANT_STATUS(lib.nrt_profile_continuous_stop(), 0);
	WANT_STATUS(lib.nrt_inspect_stop(), 0);
	WANT(inspect_leaf(INSPECT_BASE, getpid(), 2, leaf, sizeof(leaf)));
	WANT(inspect_tree(leaf, 0, 0) == 0);
	WANT(inspect_events(leaf, TRACE_EXECUTE_API, PHASE_STOP) == RUNS);
	WANT(scratch_entries("continuous") == 1);
	WANT_STATUS(lib.nrt_profile_continuous_options_free(o), 0);
	lib.nrt_close();
	return 0;
}

INSPECT_TEST(
	"inspect beside: continuous profiling is refused beside device profiles, not beside events",
	continuous_after, two_cores)

static int continuous_before(void *arg)
{
	const struct place *p = arg;
	nrt_profile_continuous_options_t *o;
	char leaf[PATH_MAX];
	struct job j;

	WANT(inspect_enter(p) == 0);
	WANT_STATUS(init(), 0);
	WANT(options_new(&o) == 0 && job_open(&j, ADD_MODEL, 0) == 0);
	WANT_STATUS(lib.nrt_profile_continuous_start(o), 0);
	WANT_STATUS(inspect_begin(model_mode), 0);
	WANT(some_runs(&j, RUNS) == 0);
	WANT(said(p, "Continuous profiling is already enabled"));
	WANT_STATUS(lib.nrt_profile_continuous_save(0, o), 0);
	WANT_STATUS(lib.nrt_profile_continuous_stop(), 0);
	WANT(some_runs(&j, RUNS) == 0);
	WANT_STATUS(lib.nrt_inspect_stop(), 0);
	WANT(inspect_leaf(INSPECT_BASE, getpid(), 1, leaf, sizeof(leaf)));
	WANT(inspect_tree(leaf, 1, 1) == 0); /* of an execution after the stop */
	WANT(inspect_events(leaf, TRACE_EXECUTE_API, PHASE_STOP) == 2 * RUNS);
	WANT(scratch_entries("continuous") == 1);
	WANT_STATUS(lib.nrt_profile_continuous_options_free(o), 0);
	lib.nrt_close();
	return 0;
}

INSPECT_TEST("inspect beside: profiles of models wait until continuous profiling is stopped",
	continuous_before, two_cores)
