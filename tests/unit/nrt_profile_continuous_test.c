/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_profile_continuous_test.c - continuous profiling: the last execution of a core, names of files, what excludes
 * it.
 */
#include <glob.h>
#include <pthread.h>

#include "tests/shim/shim.h"
#include "tests/unit/nrt_profile.h"

static nrt_profile_continuous_options_t *options_with(const char *dir)
{
	nrt_profile_continuous_options_t *o = NULL;

	if (lib.nrt_profile_continuous_options_allocate(&o) == 0 && dir)
		(void)lib.nrt_profile_continuous_options_set_output_dir(o, dir);
	return o;
}

/* The names that fit the pattern, in order; "" when there are less. */
static struct scratch_path nth_file(const char *pattern, size_t n)
{
	struct scratch_path path = {""};
	glob_t found;

	if (glob(pattern, 0, NULL, &found) == 0) {
		if (n < found.gl_pathc)
			snprintf(path.s, sizeof(path.s), "%s", found.gl_pathv[n]);
		globfree(&found);
	}
	return path;
}

/* ---- what is saved ------------------------------------------------------------------------ */

/* Is it one run of the model, whole, on both physical cores? */
static int check_last(const char *path, const char *model, long instructions, uint64_t *ret_exec)
{
	struct ntff n;

	WANT(ntff_load(&n, path) == 0);
	WANT(ntff_runs(&n, model) == 2 && ntff_runs(&n, NULL) == 2);
	WANT(ntff_count(&n, NTFF_INSTRUCTION) == 2 * instructions);
	WANT(n.info->n_neff_nodes == 1 && !strcmp(n.info->neff_nodes[0]->name, model));
	WANT(!n.info->partial);
	*ret_exec = n.info->execution_timeline[0]->exec_id;
	WANT(n.info->execution_timeline[1]->exec_id == *ret_exec);
	ntff_done(&n);
	return 0;
}

static int saves(void *arg)
{
	struct place *p = arg;
	struct job a, b;
	uint64_t first, second;
	nrt_profile_continuous_options_t *o;

	WANT(profile_enter_test(p) == 0);
	WANT(job_open(&a, ADD_MODEL, 1) == 0 && job_open(&b, COPY_MODEL, 1) == 0);
	o = options_with("one/two");
	WANT_STATUS(lib.nrt_profile_continuous_start(o), 0);
	for (int i = 0; i < 3; i++)
		WANT(job_run(&b, 1.0f, 0.0f) == 0 && job_run(&a, 1.0f, 2.0f) == 0);
	WANT_STATUS(lib.nrt_profile_continuous_save(1, o), 0);
	WANT(scratch_entries("one/two") == 1);
	WANT(check_last(nth_file("one/two/*", 0).s, "adder", 2, &first) == 0);
	/* Nothing ran since: the same one again, under a name of its own. */
	WANT_STATUS(lib.nrt_profile_continuous_save(1, o), 0);
	WANT(scratch_entries("one/two") == 2);
	WANT(check_last(nth_file("one/two/*", 1).s, "adder", 2, &second) == 0 && second == first);
	/* It goes on. */
	(void)lib.nrt_profile_continuous_options_set_output_dir(o, "three");
	WANT(job_run(&a, 1.0f, 2.0f) == 0 && job_run(&b, 1.0f, 0.0f) == 0);
	WANT_STATUS(lib.nrt_profile_continuous_save(1, o), 0);
	WANT(check_last(nth_file("three/*", 0).s, "copier", 1, &second) == 0 && second > first);
	lib.nrt_profile_continuous_options_free(o);
	lib.nrt_close();
	return 0;
}

PROFILE_TEST(
	"profile continuous: save writes the last execution of the core, and profiling goes on",
	saves, two_cores)

static int names(void *arg)
{
	struct place *p = arg;
	struct job j;
	struct ntff n;
	char pattern[300], one[300];
	nrt_profile_continuous_options_t *o;

	setenv("TZ", "UTC", 1);
	WANT(profile_enter_test(p) == 0);
	WANT(job_open(&j, ADD_MODEL, 1) == 0);
	o = options_with(NULL);
	WANT_STATUS(lib.nrt_profile_continuous_start(o), 0);
	WANT(job_run(&j, 1.0f, 2.0f) == 0);
	/* More than there are seconds in which they come. */
	for (int i = 0; i < 40; i++)
		WANT_STATUS(lib.nrt_profile_continuous_save(1, o), 0);
	WANT(ntff_load(&n, nth_file("output/*", 0).s) == 0);
	snprintf(pattern, sizeof(pattern),
		"output/model_%llu_pid_%d_vnc_1_inst_0_"
		"20[0-9][0-9][01][0-9][0-3][0-9]_[0-2][0-9][0-5][0-9][0-6][0-9]",
		(unsigned long long)n.info->neff_nodes[0]->model_id, (int)getpid());
	ntff_done(&n);
	WANT(scratch_entries("output") == 40);
	snprintf(one, sizeof(one), "%s.ntff", pattern);
	WANT(nth_file(one, 0).s[0]);
	snprintf(one, sizeof(one), "%s_2.ntff", pattern);
	WANT(nth_file(one, 0).s[0]);
	snprintf(one, sizeof(one), "%s_3.ntff", pattern);
	WANT(nth_file(one, 0).s[0]);
	lib.nrt_profile_continuous_options_free(o);
	lib.nrt_close();
	return 0;
}

PROFILE_TEST("profile continuous: files are named by model, process, core and second, then _2, _3",
	names, two_cores)

/* ---- while one runs ----------------------------------------------------------------------- */

static void *run_slow(void *arg)
{
	const struct job *j = arg;

	return lib.nrt_execute(j->model, j->in, j->out) == 0 ? arg : NULL;
}

static long long launches_wanted;

static bool has_launched(void *arg)
{
	return virtual_device_stat(&((struct place *)arg)->device, "launches") >= launches_wanted;
}

static int in_progress(void *arg)
{
	static const char slow[] = "ntrace-model 1\nname slow\nstep SP 2s nop\n";
	struct place *p = arg;
	struct job a, b;
	uint64_t exec;
	pthread_t thread;
	void *result;
	nrt_profile_continuous_options_t *o;

	WANT(profile_enter_test(p) == 0);
	WANT(job_open(&a, ADD_MODEL, 0) == 0 && job_open(&b, slow, 0) == 0);
	o = options_with("during");
	WANT_STATUS(lib.nrt_profile_continuous_start(o), 0);
	WANT_STATUS(lib.nrt_profile_continuous_save(0, o), NRT_INVALID);
	WANT(said(p, "No execution on NC 0 has ended since nrt_profile_continuous_start"));
	WANT(job_run(&a, 1.0f, 2.0f) == 0);
	launches_wanted = virtual_device_stat(&p->device, "launches") + 2;
	WANT(pthread_create(&thread, NULL, run_slow, &b) == 0);
	WANT(program_until(has_launched, p, 20));
	WANT_STATUS(lib.nrt_profile_continuous_save(0, o), 0);
	WANT(check_last(nth_file("during/*", 0).s, "adder", 2, &exec) == 0);
	WANT_STATUS(lib.nrt_profile_continuous_save(0, o), 0);
	WANT(check_last(nth_file("during/*", 1).s, "adder", 2, &exec) == 0);
	WANT(pthread_join(thread, &result) == 0 && result == &b);
	(void)lib.nrt_profile_continuous_options_set_output_dir(o, "after");
	WANT_STATUS(lib.nrt_profile_continuous_save(0, o), 0);
	WANT(check_last(nth_file("after/*", 0).s, "slow", 1, &exec) == 0);
	lib.nrt_profile_continuous_options_free(o);
	lib.nrt_close();
	return 0;
}

PROFILE_TEST("profile continuous: while an execution runs the one before it is saved", in_progress,
	two_cores)

/* ---- what is refused ---------------------------------------------------------------------- */

static int refusals(void *arg)
{
	struct place *p = arg;
	struct job j;
	int entries;
	nrt_profile_continuous_options_t *o;

	WANT(profile_enter_test(p) == 0);
	WANT(job_open(&j, ADD_MODEL, 0) == 0);
	o = options_with("dir");
	WANT_STATUS(lib.nrt_profile_continuous_save(0, o), NRT_INVALID);
	WANT(said(p, "To use the nrt_profile_continuous_save() API you must first call "
		     "nrt_profile_continuous_start()."));
	WANT_STATUS(lib.nrt_profile_continuous_stop(), 0); /* one flag: nothing to do */
	WANT_STATUS(lib.nrt_profile_continuous_start(NULL), NRT_INVALID);
	WANT(said(p, "No options given (NULL)"));
	WANT_STATUS(lib.nrt_profile_continuous_start(o), 0);
	WANT_STATUS(lib.nrt_profile_continuous_start(o), 0);
	WANT(said(p, "Continuous profiling is already enabled"));
	WANT(job_run(&j, 1.0f, 2.0f) == 0);
	WANT_STATUS(lib.nrt_profile_continuous_save(0, NULL), NRT_INVALID);
	WANT_STATUS(lib.nrt_profile_continuous_save(2, o), NRT_INVALID);
	WANT(said(p, "There is no core 2; this process has 2"));
	WANT_STATUS(lib.nrt_profile_continuous_save(UINT32_MAX, o), NRT_INVALID);
	WANT_STATUS(lib.nrt_profile_continuous_save(1, o), NRT_INVALID); /* nothing ran there */
	WANT(close(open("file", O_CREAT | O_WRONLY, 0600)) == 0);
	entries = scratch_entries(".");
	(void)lib.nrt_profile_continuous_options_set_output_dir(o, "file/dir");
	WANT_STATUS(lib.nrt_profile_continuous_save(0, o), NRT_INVALID);
	WANT(said(p, "Cannot write the profile 'file/dir': Not a directory"));
	WANT(scratch_entries(".") == entries);
	(void)lib.nrt_profile_continuous_options_set_output_dir(o, "dir");
	WANT_STATUS(lib.nrt_profile_continuous_save(0, o), 0); /* none of that lost it */
	WANT_STATUS(lib.nrt_profile_continuous_stop(), 0);
	WANT_STATUS(lib.nrt_profile_continuous_save(0, o), NRT_INVALID);
	WANT(scratch_entries("dir") == 1); /* stop saves nothing */
	WANT_STATUS(lib.nrt_profile_continuous_start(o), 0);
	WANT_STATUS(lib.nrt_profile_continuous_save(0, o), NRT_INVALID); /* and keeps nothing */
	lib.nrt_profile_continuous_options_free(o);
	lib.nrt_close();
	return 0;
}

PROFILE_TEST("profile continuous: what cannot be is refused with its message; stop saves nothing",
	refusals, two_cores)

static int excluded(void *arg)
{
	static const struct {
		const char *value;
		int status;
	} values[] = {{"1", 2}, {"session", 2}, {"MODEL", 2}, {"0", 0}, {"", 0}};
	static const char text[] =
		"Please disable inspect device profiling to use continuous profiling. Unset "
		"NEURON_RT_INSPECT_DEVICE_PROFILE or set to 0.";
	struct place *p = arg;
	nrt_profile_continuous_options_t *o;

	WANT(profile_enter_test(p) == 0);
	o = options_with("dir");
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		setenv("NEURON_RT_INSPECT_DEVICE_PROFILE", values[i].value, 1);
		WANT_STATUS(lib.nrt_profile_continuous_start(o), values[i].status);
		WANT(values[i].status == 0 || said(p, text));
		WANT_STATUS(lib.nrt_profile_continuous_stop(), 0);
	}
	unsetenv("NEURON_RT_INSPECT_DEVICE_PROFILE");
	WANT_STATUS(lib.nrt_profile_continuous_start(o), 0);
	lib.nrt_close();
	setenv("NEURON_RT_ASYNC_EXEC_MAX_INFLIGHT_REQUESTS", "4", 1);
	WANT_STATUS(init(), 0);
	WANT_STATUS(lib.nrt_profile_continuous_start(o), NRT_INVALID);
	WANT(said(p, "Continuous profiling is not supported in implicit async execution mode"));
	WANT_STATUS(lib.nrt_profile_continuous_save(0, o), NRT_INVALID);
	lib.nrt_profile_continuous_options_free(o);
	lib.nrt_close();
	return 0;
}

PROFILE_TEST("profile continuous: not beside device profiles of inspections, nor posted executions",
	excluded, two_cores)
