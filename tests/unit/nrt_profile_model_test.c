/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_profile_model_test.c - profiles of models: which runs are in a file, several at once, what is refused, what
 * is kept.
 */
#include <pthread.h>
#include <sys/stat.h>

#include "tests/shim/shim.h"
#include "tests/unit/nrt_profile.h"

/* Has the file so many runs of the model on two physical cores, with this many instructions each, and nothing
 * else? */
static int check_file(const char *path, const char *model, long runs, long instructions)
{
	struct ntff n;

	WANT(ntff_load(&n, path) == 0);
	WANT(n.info->n_neff_nodes == 1 && !strcmp(n.info->neff_nodes[0]->name, model));
	WANT(n.info->n_session_notifications == 0);
	WANT((long)ntff_runs(&n, NULL) == 2 * runs && (long)ntff_runs(&n, model) == 2 * runs);
	WANT(ntff_count(&n, NTFF_RUN) == 2 * runs);
	WANT(ntff_count(&n, NTFF_INSTRUCTION) == 2 * runs * instructions);
	WANT(runs == 0 ||
		(ntff_graph(&n, model, 0)->n_traces > 0 && ntff_graph(&n, model, 1)->n_traces > 0));
	WANT(!n.info->partial);
	ntff_done(&n);
	return 0;
}

/* ---- which runs --------------------------------------------------------------------------- */

static int interleaved(void *arg)
{
	struct job a, b;

	WANT(profile_enter_test(arg) == 0);
	WANT(job_open(&a, ADD_MODEL, 0) == 0 && job_open(&b, COPY_MODEL, 0) == 0);
	WANT(job_run(&a, 9.0f, 2.0f) == 0);
	WANT_STATUS(lib.nrt_profile_start(a.model, "a.ntff"), 0);
	WANT(job_run(&b, 9.0f, 0.0f) == 0);
	WANT_STATUS(lib.nrt_profile_start(b.model, "b.ntff"), 0);
	for (int i = 0; i < 3; i++) {
		WANT(job_run(&a, (float)i, 2.0f) == 0);
		WANT(job_run(&b, (float)i, 0.0f) == 0);
		WANT(job_run(&b, (float)i, 0.0f) == 0);
	}
	WANT_STATUS(lib.nrt_profile_stop("a.ntff"), 0);
	WANT(job_run(&a, 9.0f, 2.0f) == 0 && job_run(&b, 9.0f, 0.0f) == 0);
	WANT_STATUS(lib.nrt_profile_stop("b.ntff"), 0);
	WANT(check_file("a.ntff", "adder", 3, 2) == 0);
	WANT(check_file("b.ntff", "copier", 7, 1) == 0);
	lib.nrt_close();
	return 0;
}

PROFILE_TEST(
	"profile model: a file has the runs of its model between start and stop, and no others",
	interleaved, two_cores)

/* One drain for all of them. */
static int together(void *arg)
{
	struct job a, b;
	uint64_t id;

	WANT(profile_enter_test(arg) == 0);
	WANT(job_open(&a, ADD_MODEL, 0) == 0 && job_open(&b, COPY_MODEL, 0) == 0);
	WANT_STATUS(lib.nrt_profile_session_start(0), 0);
	WANT_STATUS(lib.nrt_profile_start(a.model, "one"), 0);
	WANT(job_run(&a, 1.0f, 2.0f) == 0);
	WANT_STATUS(lib.nrt_profile_start(a.model, "two"), 0);
	WANT(job_run(&a, 2.0f, 2.0f) == 0 && job_run(&b, 2.0f, 0.0f) == 0);
	WANT_STATUS(lib.nrt_profile_stop("one"), 0);
	WANT(job_run(&a, 3.0f, 2.0f) == 0);
	WANT_STATUS(lib.nrt_profile_session_stop(0, &id), 0);
	WANT(job_run(&a, 4.0f, 2.0f) == 0);
	WANT_STATUS(lib.nrt_profile_stop("two"), 0);
	WANT_STATUS(lib.nrt_profile_session_serialize(id, "session"), 0);
	WANT(check_file("one", "adder", 2, 2) == 0);
	WANT(check_file("two", "adder", 3, 2) == 0);
	WANT(ntff_count_in("session", NTFF_INSTRUCTION) == 2 * (3 * 2 + 1));
	lib.nrt_close();
	return 0;
}

PROFILE_TEST("profile model: a model under two names, and a session of its core, do not disturb "
	     "each other",
	together, two_cores)

static int unloaded(void *arg)
{
	struct job a, b;

	WANT(profile_enter_test(arg) == 0);
	WANT(job_open(&a, ADD_MODEL, 1) == 0 && job_open(&b, ADD_MODEL, 1) == 0);
	WANT_STATUS(lib.nrt_profile_start(a.model, "file"), 0);
	WANT_STATUS(lib.nrt_profile_start(b.model, "idle"), 0);
	WANT(job_run(&a, 1.0f, 2.0f) == 0);
	WANT_STATUS(lib.nrt_unload(a.model), 0);
	WANT_STATUS(lib.nrt_unload(b.model), 0);
	/* The same text, but another load. */
	WANT(job_open(&b, ADD_MODEL, 1) == 0 && job_run(&b, 1.0f, 2.0f) == 0);
	WANT_STATUS(lib.nrt_profile_stop("file"), 0);
	WANT(check_file("file", "adder", 1, 2) == 0);
	WANT_STATUS(lib.nrt_profile_stop("idle"), 0);
	WANT(check_file("idle", "adder", 0, 2) == 0);
	lib.nrt_close();
	return 0;
}

PROFILE_TEST(
	"profile model: one that is unloaded keeps its runs, and a later load is another model",
	unloaded, two_cores)

static int failing(void *arg)
{
	static const char text[] = "ntrace-model 2\nname faulty\ninput a float32 8\n"
				   "output c float32 8\nstep PE 5us nop\n"
				   "step PE 1us fault numerical\nstep PE 5us copy a c\n";
	struct job j;
	struct ntff n;

	WANT(profile_enter_test(arg) == 0);
	WANT(job_open(&j, text, 0) == 0);
	WANT_STATUS(lib.nrt_profile_start(j.model, "file"), 0);
	WANT_STATUS(lib.nrt_execute(j.model, j.in, j.out), NRT_EXEC_COMPLETED_WITH_NUM_ERR);
	WANT_STATUS(lib.nrt_profile_stop("file"), 0);
	WANT(ntff_load(&n, "file") == 0);
	WANT(ntff_count(&n, NTFF_ERROR) == 2 && ntff_count(&n, NTFF_INSTRUCTION) == 6);
	WANT(n.info->execution_timeline[0]->status == NRT_EXEC_COMPLETED_WITH_NUM_ERR);
	ntff_done(&n);
	lib.nrt_close();
	return 0;
}

PROFILE_TEST("profile model: an execution that fails is in the file with its errors and its status",
	failing, two_cores)

/* ---- two texts of one name ----------------------------------------------------------------- */

static const Ntff__NeffNodeInfo *node_of(const struct ntff *n, const char *uuid)
{
	for (size_t i = 0; i < n->info->n_neff_nodes; i++)
		if (!strcmp(n->info->neff_nodes[i]->uuid, uuid))
			return n->info->neff_nodes[i];
	return NULL;
}

/* The run'th run of core 0: the op of its first instruction, and how long its model's last run took. */
static int check_run(
	const struct ntff *n, size_t run, const char *op, const Ntff__ExecutionInfo *last)
{
	const struct ntff_core *core = &n->profile.cores[0];
	const Ntff__ExecutionInfo *r = core->runs[run];
	const struct ntff_item item = {
		.what = NTFF_INSTRUCTION, .span = true, .start_ps = r->start_ps};
	const Ntff__NeffNodeInfo *node = node_of(n, r->model_uuid);
	const Ntff__NtffInstruction *i = ntff_instruction_of(&n->profile, core, r, &item);

	WANT(ntff_run_of(core, &item) == r);
	WANT(node && i && !strcmp(i->op, op));
	WANT(node->nd_node->graphs[0]->exec_duration == last->end_ps - last->start_ps);
	return 0;
}

static int one_name(void *arg)
{
	static const char *const texts[2] = {
		"ntrace-model 2\nname same\ninput a float32 8\noutput c float32 8\n"
		"step PE 10us copy a c\n",
		"ntrace-model 2\nname same\nstep PE 20us nop\nstep PE 1ms nop\n"};
	struct job x, y;
	struct ntff n;
	uint64_t id;

	WANT(profile_enter_test(arg) == 0);
	WANT(job_open(&x, texts[0], 0) == 0 && job_open(&y, texts[1], 0) == 0);
	WANT_STATUS(lib.nrt_profile_session_start(0), 0);
	WANT_STATUS(lib.nrt_profile_start(x.model, "x"), 0);
	for (int i = 0; i < 2; i++) {
		WANT_STATUS(lib.nrt_execute(x.model, x.in, x.out), 0);
		WANT_STATUS(lib.nrt_execute(y.model, y.in, y.out), 0);
	}
	WANT_STATUS(lib.nrt_profile_stop("x"), 0);
	WANT_STATUS(lib.nrt_profile_session_stop(0, &id), 0);
	WANT_STATUS(lib.nrt_profile_session_serialize(id, "session"), 0);
	WANT(ntff_load(&n, "session") == 0);
	WANT(n.info->n_neff_nodes == 2 && n.profile.cores[0].run_count == 4);
	for (size_t i = 0; i < 4; i++)
		WANT(check_run(&n, i, i % 2 ? "nop" : "copy", n.profile.cores[0].runs[2 + i % 2]) ==
			0);
	ntff_done(&n);
	WANT(ntff_load(&n, "x") == 0);
	WANT(n.info->n_neff_nodes == 1 && n.profile.cores[0].run_count == 2);
	for (size_t i = 0; i < 2; i++)
		WANT(check_run(&n, i, "copy", n.profile.cores[0].runs[1]) == 0);
	ntff_done(&n);
	lib.nrt_close();
	return 0;
}

PROFILE_TEST("profile model: two texts of one name have each its own names, runs and duration",
	one_name, two_cores)

/* ---- what is refused ---------------------------------------------------------------------- */

static int refusals(void *arg)
{
	struct place *p = arg;
	struct job j;

	WANT(profile_enter_test(p) == 0);
	WANT(job_open(&j, ADD_MODEL, 0) == 0);
	WANT_STATUS(lib.nrt_profile_start(j.model, NULL), NRT_INVALID);
	WANT(said(p, "No file name given (NULL)"));
	WANT_STATUS(lib.nrt_profile_start(j.model, ""), NRT_INVALID);
	WANT(said(p, "No file name given (empty)"));
	WANT_STATUS(lib.nrt_profile_start(NULL, "file"), NRT_INVALID);
	WANT_STATUS(lib.nrt_profile_start((void *)j.a, "file"), NRT_INVALID_HANDLE);
	WANT_STATUS(lib.nrt_profile_start(j.model, "missing/file"), NRT_INVALID);
	WANT(said(p, "Cannot write the profile 'missing/file': No such file or directory"));
	WANT(close(open("there", O_CREAT | O_WRONLY, 0600)) == 0);
	WANT_STATUS(lib.nrt_profile_start(j.model, "there"), NRT_INVALID);
	WANT(said(p, "Cannot write the profile 'there': File exists"));
	WANT_STATUS(lib.nrt_profile_start(j.model, "file"), 0);
	WANT_STATUS(lib.nrt_profile_start(j.model, "file"), NRT_INVALID);
	WANT(said(p, "A profile for 'file' is being made already"));
	WANT_STATUS(lib.nrt_profile_stop("other"), NRT_INVALID);
	WANT(said(p, "Profile stop request for other not found"));
	WANT_STATUS(lib.nrt_profile_stop(NULL), NRT_INVALID);
	WANT_STATUS(lib.nrt_profile_stop(""), NRT_INVALID);
	WANT_STATUS(lib.nrt_profile_stop("file"), 0);
	WANT_STATUS(lib.nrt_profile_stop("file"), NRT_INVALID);
	WANT(said(p, "Profile stop request for file not found"));
	WANT_STATUS(lib.nrt_profile_start(j.model, "file"), NRT_INVALID); /* it exists now */
	lib.nrt_close();
	return 0;
}

PROFILE_TEST("profile model: what cannot be is refused with its message and changes nothing",
	refusals, two_cores)

static int posted(void *arg)
{
	struct place *p = arg;
	struct job j;

	setenv("NEURON_RT_ASYNC_EXEC_MAX_INFLIGHT_REQUESTS", "4", 1);
	WANT(profile_enter_test(p) == 0);
	WANT(job_open(&j, ADD_MODEL, 0) == 0);
	WANT_STATUS(lib.nrt_profile_start(j.model, "file"), NRT_INVALID);
	WANT(said(p, "A profile of a model is not supported in implicit async execution mode"));
	WANT_STATUS(lib.nrt_profile_stop("file"), NRT_INVALID);
	lib.nrt_close();
	return 0;
}

PROFILE_TEST("profile model: refused where nrt_execute only posts executions", posted, two_cores)

/* ---- files -------------------------------------------------------------------------------- */

static int kept(void *arg)
{
	struct place *p = arg;
	struct job j;

	WANT(profile_enter_test(p) == 0);
	WANT(job_open(&j, ADD_MODEL, 0) == 0);
	WANT_STATUS(lib.nrt_profile_start(j.model, "file"), 0);
	WANT(job_run(&j, 1.0f, 2.0f) == 0);
	WANT(mkdir("file", 0700) == 0); /* somebody takes the name */
	WANT_STATUS(lib.nrt_profile_stop("file"), NRT_INVALID);
	WANT(said(p, "Cannot write the profile 'file': File exists"));
	WANT(job_run(&j, 1.0f, 2.0f) == 0); /* it had been stopped */
	WANT(rmdir("file") == 0);
	WANT_STATUS(lib.nrt_profile_stop("file"), 0);
	WANT(check_file("file", "adder", 1, 2) == 0);
	lib.nrt_close();
	return 0;
}

PROFILE_TEST("profile model: one that cannot be written is kept for another stop", kept, two_cores)

static int closes(void *arg)
{
	struct place *p = arg;
	struct job j;
	int entries;

	WANT(profile_enter_test(p) == 0);
	WANT(job_open(&j, ADD_MODEL, 0) == 0);
	entries = scratch_entries(".");
	WANT_STATUS(lib.nrt_profile_start(j.model, "file"), 0);
	WANT(job_run(&j, 1.0f, 2.0f) == 0);
	lib.nrt_close();
	WANT(said(p, "The profile 'file' was not stopped and is not written"));
	WANT_STATUS(init(), 0);
	WANT_STATUS(lib.nrt_profile_stop("file"), NRT_INVALID);
	WANT(scratch_entries(".") == entries);
	lib.nrt_close();
	return 0;
}

PROFILE_TEST(
	"profile model: nrt_close forgets what was not stopped, and says so", closes, two_cores)
