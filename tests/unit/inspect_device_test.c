/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_device_test.c - device profiles of an inspect session: whole cores, first executions of
 * models, executions that fail, and the model files beside them.
 */
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "runtime/lifecycle/runtime.h"
#include "runtime/profile/inspect_config.h"
#include "tests/shim/shim.h"
#include "tests/unit/inspect_device_fixture.h"

#define PARTS 2 /* physical cores of a logical one */
#define MODE(mode) NRT_INSPECT_DEVICE_PROFILE_MODE_##mode

/* The same name, another program. */
#define OTHER_ADDER                                                                      \
	"ntrace-model 1\nname adder\n"                                                   \
	"input a float32 2x4\ninput b float32 8\ntemp t float32 8\noutput c float32 8\n" \
	"step PE 30us add a b t\nstep ACT 5us add t b c\n"
#define FAULTY(name)                                                                    \
	"ntrace-model 2\nname faulty_" name "\ninput a float32 8\noutput c float32 8\n" \
	"step PE 5us nop\nstep PE 1us fault " name "\nstep PE 5us copy a c\n"

static int runs(const struct job *j, int count)
{
	for (int i = 0; i < count; i++)
		WANT(job_run(j, 0, 2) == 0);
	return 0;
}

/* Does the collector have the core's rings open? */
static bool is_collected(int vnc)
{
	bool collected = false;

	if (api_enter(__func__) == NRT_SUCCESS) {
		collected = atomic_load(&runtime_core(vnc)->profiled);
		api_leave();
	}
	return collected;
}

/* ---- SESSION ------------------------------------------------------------------------------ */

static int whole_cores(void *arg)
{
	struct inspected s;
	struct job j[2];

	WANT(inspected_enter(arg) == 0);
	WANT(job_open(&j[0], ADD_MODEL, 0) == 0 && runs(&j[0], 1) == 0);
	WANT_STATUS(inspected_begin(&s, MODE(SESSION), false), 0);
	WANT(is_collected(0) && !is_collected(1));
	WANT(job_open(&j[1], OTHER_ADDER, 1) == 0);
	WANT(is_collected(1));
	WANT(runs(&j[0], 3) == 0 && runs(&j[1], 2) == 0);
	WANT(inspected_end() == 0);
	WANT(!is_collected(0) && !is_collected(1));
	WANT(runs_in(session_file(&s, 0, 0).s, "adder") == 3 * PARTS);
	WANT(runs_in(session_file(&s, 1, 0).s, "adder") == 2 * PARTS);
	WANT(has_model_file(&s, ADD_MODEL) && has_model_file(&s, OTHER_ADDER));
	WANT(inspected_entries(&s) == 4 && s.ntffs == 2 && s.neffs == 2);
	inspected_done(&s);
	lib.nrt_close();
	return leaks();
}

INSPECT_TEST(
	"inspect device: a session has all runs of each core, loaded before it or in it, and the "
	"models byte for byte",
	whole_cores, two_cores)

static int numbers_count(void *arg)
{
	struct inspected s;
	struct job j;

	WANT(inspected_enter(arg) == 0);
	for (int n = 0; n < 3; n++) {
		if (n == 2) {
			lib.nrt_close();
			WANT_STATUS(init(), 0);
		}
		if (n != 1)
			WANT(job_open(&j, ADD_MODEL, 1) == 0);
		WANT_STATUS(inspected_begin(&s, MODE(SESSION), false), 0);
		WANT(runs(&j, 1) == 0 && inspected_end() == 0);
		WANT(runs_in(session_file(&s, 1, n % 2).s, "adder") == PARTS);
		WANT(inspected_entries(&s) == 2); /* nothing of core 0 */
		inspected_done(&s);
	}
	WANT_STATUS(inspected_begin(&s, MODE(SESSION), false), 0);
	WANT(inspected_end() == 0 && inspected_entries(&s) == 0);
	inspected_done(&s);
	lib.nrt_close();
	return leaks();
}

INSPECT_TEST("inspect device: a core on which nothing ran leaves no file, the others count from 0",
	numbers_count, two_cores)

static int filtered(void *arg)
{
	bool nc[TRACE_MAX_NC] = {false, true, [9] = true};
	struct inspected s;
	struct job j[2], bad;

	WANT(inspected_enter(arg) == 0);
	WANT(job_open(&j[0], ADD_MODEL, 0) == 0 && job_open(&j[1], ADD_MODEL, 1) == 0);
	WANT_STATUS(inspected_begin_with(&s,
			    (struct inspect_device_wish){
				    .mode = MODE(SESSION), .enabled = true, .nc = nc}),
		0);
	memset(nc, 0, sizeof(nc)); /* it was copied */
	WANT(runs(&j[0], 1) == 0 && runs(&j[1], 1) == 0 && inspected_end() == 0);
	WANT(runs_in(session_file(&s, 1, 0).s, "adder") == PARTS && inspected_entries(&s) == 2);
	inspected_done(&s);
	WANT_STATUS(
		inspected_begin_with(&s,
			(struct inspect_device_wish){
				.mode = MODE(MODEL), .enabled = true, .on_fail = true, .nc = nc}),
		0);
	WANT(runs(&j[0], 1) == 0 && !inspect_device_has_failed());
	WANT(job_open(&bad, FAULTY("numerical"), 0) == 0);
	WANT_STATUS(lib.nrt_execute(bad.model, bad.in, bad.out), NRT_EXEC_COMPLETED_WITH_NUM_ERR);
	WANT(inspect_device_has_failed()); /* the session's other files say how */
	WANT(inspected_end() == 0 && inspected_entries(&s) == 0);
	inspected_done(&s);
	lib.nrt_close();
	return leaks();
}

INSPECT_TEST("inspect device: only the cores that are asked for are profiled", filtered, two_cores)

static int own_session(void *arg)
{
	struct inspected s;
	struct job j;
	uint64_t id = 9;

	WANT(inspected_enter(arg) == 0);
	WANT(job_open(&j, ADD_MODEL, 0) == 0);
	WANT_STATUS(lib.nrt_profile_session_start(0), 0);
	WANT_STATUS(inspected_begin(&s, MODE(SESSION), false), 0);
	WANT(runs(&j, 2) == 0);
	WANT_STATUS(lib.nrt_profile_session_stop(0, &id), 0);
	WANT(id == 0);
	WANT_STATUS(lib.nrt_profile_session_serialize(id, "own.ntff"), 0);
	WANT_STATUS(lib.nrt_profile_session_start(0), 0);
	WANT(runs(&j, 1) == 0 && inspected_end() == 0 && runs(&j, 1) == 0);
	WANT_STATUS(lib.nrt_profile_session_stop(0, &id), 0);
	WANT(id == 1);
	WANT_STATUS(lib.nrt_profile_session_serialize(id, "second.ntff"), 0);
	WANT(runs_in("own.ntff", "adder") == 2 * PARTS);
	WANT(runs_in("second.ntff", "adder") == 2 * PARTS);
	WANT(runs_in(session_file(&s, 0, 0).s, "adder") == 3 * PARTS);
	inspected_done(&s);
	lib.nrt_close();
	return leaks();
}

INSPECT_TEST("inspect device: sessions of the program's own on the same core are as without",
	own_session, two_cores)

static int unloaded(void *arg)
{
	struct inspected s;
	struct job j;

	WANT(inspected_enter(arg) == 0);
	WANT(job_open(&j, ADD_MODEL, 0) == 0);
	WANT_STATUS(inspected_begin(&s, MODE(SESSION), false), 0);
	WANT(runs(&j, 1) == 0);
	WANT_STATUS(lib.nrt_unload(j.model), 0);
	WANT(inspected_end() == 0);
	WANT(runs_in(session_file(&s, 0, 0).s, "adder") == PARTS && has_model_file(&s, ADD_MODEL));
	inspected_done(&s);
	lib.nrt_close();
	return leaks();
}

INSPECT_TEST(
	"inspect device: a model that was unloaded meanwhile has its file", unloaded, two_cores)

static int one_core_cannot(void *arg)
{
	struct belongings before, after;
	struct inspected s;
	struct job j[2];

	WANT(inspected_enter(arg) == 0);
	WANT(job_open(&j[0], ADD_MODEL, 0) == 0 && job_open(&j[1], ADD_MODEL, 1) == 0);
	WANT_STATUS(inspected_open(&s, false), 0);
	before = belongings_now();
	WANT_STATUS(inspected_start(&s,
			    (struct inspect_device_wish){.mode = MODE(SESSION), .enabled = true}),
		NRT_HW_ERROR); /* of core 1 */
	WANT(said(arg, "Profile ring"));
	after = belongings_now();
	WANT(belongings_equal(&before, &after) && !is_collected(0) && !is_collected(1));
	WANT(inspected_entries(&s) == 0);
	inspected_done(&s);
	WANT_STATUS(inspected_begin(&s, MODE(SESSION), false), 0);
	WANT(runs(&j[1], 1) == 0 && inspected_end() == 0);
	WANT(runs_in(session_file(&s, 1, 0).s, "adder") == 1); /* a logical core is one core */
	inspected_done(&s);
	lib.nrt_close();
	return leaks();
}

TEST("inspect device: when a core cannot be profiled, none is, and the next begin works",
	"[nrt][inspect_device][vdev]")
{
	/* Each core has more than 30 rings of its own besides those of executions. */
	static const char *const options[] = {
		"--arch=v2", "--cores=2", "--fail=NOTIFICATIONS_INIT_WITH_REALLOC_V2:EIO:60", NULL};

	if (device_lacks())
		SKIP(device_lacks());
	with_device(one_core_cannot, options);
}

/* ---- MODEL -------------------------------------------------------------------------------- */

static int first_executions(void *arg)
{
	struct inspected s;
	struct job j[4];

	WANT(inspected_enter(arg) == 0);
	WANT(job_open(&j[0], ADD_MODEL, 0) == 0);
	WANT_STATUS(inspected_begin(&s, MODE(MODEL), false), 0);
	WANT(inspect_device_is_on() && !is_collected(0));
	WANT(runs(&j[0], 3) == 0);
	WANT(inspected_entries(&s) == 2); /* when the first one ended */
	WANT(!is_collected(0));		  /* and the rest costs nothing */
	WANT(job_open(&j[1], ADD_MODEL, 1) == 0 && runs(&j[1], 2) == 0);
	WANT(job_open(&j[2], OTHER_ADDER, 0) == 0 && runs(&j[2], 2) == 0);
	WANT(job_open(&j[3], ADD_MODEL, 0) == 0 && runs(&j[3], 2) == 0); /* once more */
	WANT(inspected_end() == 0);
	WANT(runs_in(run_file(&s, ADD_MODEL, 0, "").s, "adder") == PARTS);
	WANT(runs_in(run_file(&s, ADD_MODEL, 1, "").s, "adder") == PARTS);
	WANT(runs_in(run_file(&s, OTHER_ADDER, 0, "").s, "adder") == PARTS);
	WANT(ntff_count_in(run_file(&s, OTHER_ADDER, 0, "").s, NTFF_INSTRUCTION) == 2 * PARTS);
	WANT(has_model_file(&s, ADD_MODEL) && has_model_file(&s, OTHER_ADDER));
	WANT(inspected_entries(&s) == 5 && s.ntffs == 3 && s.neffs == 2);
	inspected_done(&s);
	WANT_STATUS(inspected_begin(&s, MODE(MODEL), false), 0); /* begins anew */
	WANT(runs(&j[0], 1) == 0 && inspected_end() == 0 && inspected_entries(&s) == 2);
	inspected_done(&s);
	lib.nrt_close();
	return leaks();
}

INSPECT_TEST(
	"inspect device: the first execution of each model on each core has a profile, with its "
	"model of the same hash",
	first_executions, two_cores)

static int with_continuous(void *arg)
{
	nrt_profile_continuous_options_t *o;
	struct inspected s;
	struct job j;

	WANT(inspected_enter(arg) == 0);
	WANT_STATUS(lib.nrt_profile_continuous_options_allocate(&o), 0);
	WANT(job_open(&j, ADD_MODEL, 0) == 0);
	for (int mode = MODE(MODEL); mode <= MODE(SESSION); mode++) {
		WANT_STATUS(inspected_begin(&s, (nrt_inspect_device_profile_mode_t)mode, false), 0);
		WANT_STATUS(lib.nrt_profile_continuous_start(o), NRT_INVALID);
		WANT(said(arg, "Please disable inspect device profiling"));
		WANT(inspected_end() == 0);
		inspected_done(&s);
	}
	WANT_STATUS(lib.nrt_profile_continuous_start(o), 0);
	WANT_STATUS(inspected_begin(&s, MODE(MODEL), false), 0);
	WANT(runs(&j, 2) == 0);
	WANT(said(arg, "Continuous profiling is already enabled"));
	WANT(inspected_entries(&s) == 0);
	WANT_STATUS(lib.nrt_profile_continuous_stop(), 0);
	WANT(runs(&j, 2) == 0 && inspected_end() == 0);
	WANT(runs_in(run_file(&s, ADD_MODEL, 0, "").s, "adder") == PARTS);
	inspected_done(&s);
	WANT_STATUS(lib.nrt_profile_continuous_options_free(o), 0);
	lib.nrt_close();
	return leaks();
}

INSPECT_TEST("inspect device: modes of sessions and continuous profiling exclude each other",
	with_continuous, two_cores)

/* ---- failures ----------------------------------------------------------------------------- */

static const struct {
	const char *text, *model;
	int status;
} faulty[] = {
	{FAULTY("numerical"), "faulty_numerical", NRT_EXEC_COMPLETED_WITH_NUM_ERR},
	{FAULTY("hardware"), "faulty_hardware", 1202},
	{FAULTY("timeout"), "faulty_timeout", NRT_TIMEOUT},
};
#define FAULTY_COUNT (sizeof(faulty) / sizeof(faulty[0]))

static int failures_only(void *arg)
{
	struct inspected s;
	struct job good, bad;

	setenv("NEURON_RT_EXEC_TIMEOUT", "1", 1);
	WANT(inspected_enter(arg) == 0);
	WANT_STATUS(inspected_begin(&s, MODE(DISABLED), true), 0);
	WANT(!inspect_device_is_on());
	WANT(job_open(&good, ADD_MODEL, 0) == 0 && runs(&good, 3) == 0);
	WANT(!inspect_device_has_failed());
	WANT(scratch_entries(s.dir->work) == 0 && inspected_entries(&s) == 0);
	for (size_t i = 0; i < FAULTY_COUNT; i++) {
		WANT(job_open(&bad, faulty[i].text, 0) == 0);
		WANT(runs(&good, 1) == 0);
		WANT_STATUS(lib.nrt_execute(bad.model, bad.in, bad.out), faulty[i].status);
		/* At once, and of this execution alone. */
		WANT(runs_in(run_file(&s, faulty[i].text, 0, "").s, faulty[i].model) == PARTS);
		WANT(has_model_file(&s, faulty[i].text));
		WANT(inspected_entries(&s) == 2 * ((int)i + 1));
		WANT(runs(&good, 1) == 0);
	}
	WANT(inspect_device_has_failed());
	WANT(inspected_end() == 0 && scratch_entries(s.dir->work) == 0);
	WANT(inspected_entries(&s) == 2 * FAULTY_COUNT && s.ntffs == FAULTY_COUNT);
	inspected_done(&s);
	lib.nrt_close();
	return leaks();
}

INSPECT_TEST("inspect device: on-fail keeps each execution that fails, at once, and nothing else",
	failures_only, two_cores)

static int failures_besides(void *arg)
{
	static const nrt_inspect_device_profile_mode_t modes[] = {MODE(MODEL), MODE(SESSION)};
	struct inspected s;
	struct job good, bad;

	WANT(inspected_enter(arg) == 0);
	WANT(job_open(&good, ADD_MODEL, 0) == 0 && job_open(&bad, faulty[0].text, 0) == 0);
	for (int i = 0; i < 2; i++) {
		WANT_STATUS(inspected_begin(&s, modes[i], true), 0);
		for (int k = 0; k < 3; k++) {
			WANT(runs(&good, 1) == 0);
			WANT_STATUS(lib.nrt_execute(bad.model, bad.in, bad.out), faulty[0].status);
		}
		WANT(inspected_end() == 0);
		for (int k = 0; k < 3; k++) {
			static const char *const suffixes[] = {"", "_2", "_3"};

			WANT(runs_in(run_file(&s, faulty[0].text, 0, suffixes[k]).s,
				     "faulty_numerical") == PARTS);
		}
		WANT(runs_in(i ? session_file(&s, 0, 0).s : run_file(&s, ADD_MODEL, 0, "").s,
			     NULL) == (i ? 6 : 1) * PARTS);
		WANT(inspected_entries(&s) == 6);
		inspected_done(&s);
	}
	lib.nrt_close();
	return leaks();
}

INSPECT_TEST("inspect device: on-fail keeps failures beside the profiles of either mode",
	failures_besides, two_cores)

static int always_failing(void *arg)
{
	struct inspected s;
	struct job bad;

	WANT(inspected_enter(arg) == 0);
	WANT_STATUS(inspected_begin(&s, MODE(DISABLED), true), 0);
	WANT(job_open(&bad, faulty[0].text, 1) == 0);
	for (int i = 0; i < 20; i++)
		WANT_STATUS(lib.nrt_execute(bad.model, bad.in, bad.out), faulty[0].status);
	WANT(said(arg, "no more are kept"));
	WANT(inspected_end() == 0 && inspected_entries(&s) == 17);
	inspected_done(&s);
	lib.nrt_close();
	return leaks();
}

INSPECT_TEST("inspect device: a model that always fails does not fill the disk", always_failing,
	two_cores)

/* ---- what cannot be written --------------------------------------------------------------- */

static int limit_files(rlim_t bytes, struct rlimit *old)
{
	struct rlimit small;

	WANT(signal(SIGXFSZ, SIG_IGN) != SIG_ERR && getrlimit(RLIMIT_FSIZE, old) == 0);
	small = (struct rlimit){bytes, old->rlim_max};
	WANT(setrlimit(RLIMIT_FSIZE, &small) == 0);
	return 0;
}

static int no_space(void *arg)
{
	struct rlimit old;
	struct inspected s;
	struct job j[2];

	WANT(inspected_enter(arg) == 0);
	WANT(job_open(&j[0], ADD_MODEL, 0) == 0 && job_open(&j[1], OTHER_ADDER, 0) == 0);
	WANT_STATUS(inspected_begin(&s, MODE(MODEL), false), 0);
	WANT(limit_files(strlen(ADD_MODEL) + 500, &old) == 0); /* the log's end is there, too */
	WANT(runs(&j[0], 1) == 0);
	WANT(setrlimit(RLIMIT_FSIZE, &old) == 0);
	WANT(inspected_entries(&s) == 1 && s.ntffs == 0); /* the model's */
	WANT(runs(&j[1], 1) == 0 && inspected_end() == 0);
	WANT(runs_in(run_file(&s, OTHER_ADDER, 0, "").s, "adder") == PARTS);
	WANT(inspected_entries(&s) == 3);
	inspected_done(&s);
	lib.nrt_close();
	return leaks();
}

INSPECT_TEST(
	"inspect device: a profile that finds no room leaves no half of it, and the next one is "
	"written",
	no_space, two_cores)

static int never_replaced(void *arg)
{
	struct inspected s;
	struct job j;
	FILE *f;

	WANT(inspected_enter(arg) == 0);
	WANT(job_open(&j, ADD_MODEL, 0) == 0);
	WANT_STATUS(inspected_begin(&s, MODE(MODEL), false), 0);
	f = fopen(run_file(&s, ADD_MODEL, 0, "").s, "w");
	WANT(f && fputs("mine", f) >= 0 && fclose(f) == 0);
	WANT(runs(&j, 1) == 0 && inspected_end() == 0);
	WANT(said(arg, "a file that exists is never replaced"));
	_cleanup_free_ char *text = program_text(run_file(&s, ADD_MODEL, 0, "").s);
	WANT(!strcmp(text, "mine") && has_model_file(&s, ADD_MODEL));
	WANT(s.ntffs == 0 && s.neffs == 1);
	inspected_done(&s);
	lib.nrt_close();
	return leaks();
}

INSPECT_TEST("inspect device: a file that exists is never replaced", never_replaced, two_cores)
