/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_profile_fault_test.c - each allocation, and each call to the system, within a call of profiles fails once, and
 * all from each one on.
 *
 * A call that fails leaves nothing half-made: what it would have started has not begun, what it would have written is
 * not there, and what it was to write is kept, so that the same call works afterwards.  The library
 * tests/faults.so makes calls fail; it must come before the C library, so hidden tests do the work, in a
 * process of their own.
 */
#include "tests/shim/shim.h"
#include "tests/unit/nrt_faults.h"
#include "tests/unit/nrt_init_fixture.h"
#include "tests/unit/nrt_profile.h"

#define MOST_CALLS 600

struct fault {
	const struct faults *faults;
	unsigned long n;
	bool and_all_behind;
};

/* ---- what is called with a fault in it ----------------------------------------------------- */

static struct job job;
static nrt_profile_continuous_options_t *options;
static int entries; /* of the directory, without a profile */

static NRT_STATUS session_start(void)
{
	return lib.nrt_profile_session_start(0);
}

static NRT_STATUS session_stop(void)
{
	uint64_t id;

	return lib.nrt_profile_session_stop(0, &id);
}

/* Numbers go on; the only one that there is. */
static NRT_STATUS session_serialize(void)
{
	NRT_STATUS status = NRT_INVALID;
	static uint64_t id;

	for (uint64_t i = id; i < id + 3 && status == NRT_INVALID; i++) {
		status = lib.nrt_profile_session_serialize(i, "file");
		if (status != NRT_INVALID)
			id = i;
	}
	return status;
}

static NRT_STATUS model_start(void)
{
	return lib.nrt_profile_start(job.model, "file");
}

static NRT_STATUS model_stop(void)
{
	return lib.nrt_profile_stop("file");
}

static NRT_STATUS continuous_start(void)
{
	return lib.nrt_profile_continuous_start(options);
}

static NRT_STATUS continuous_save(void)
{
	return lib.nrt_profile_continuous_save(0, options);
}

static NRT_STATUS continuous_stop(void)
{
	return lib.nrt_profile_continuous_stop();
}

static NRT_STATUS run(void)
{
	return lib.nrt_execute(job.model, job.in, job.out);
}

/* Calls in their order; each of them has the faults once. */
static const struct story {
	const char *name;
	NRT_STATUS (*calls[5])(void);
} stories[] = {
	{"session", {session_start, run, session_stop, session_serialize}},
	{"model", {model_start, run, model_stop}},
	{"continuous", {continuous_start, run, continuous_save, continuous_stop}},
};

/* ---- one story ---------------------------------------------------------------------------- */

/* Is the file whole, and alone?  Takes it away. */
static int take_file(void)
{
	struct ntff n;

	WANT(scratch_entries(".") == entries + 1);
	if (access("file", F_OK) == 0) {
		WANT(ntff_load(&n, "file") == 0 && unlink("file") == 0);
		ntff_done(&n);
	} else {
		WANT(scratch_entries("out") == 1);
		scratch_remove_tree("out");
	}
	WANT(scratch_entries(".") == entries);
	return 0;
}

/* The call with the fault; when that makes it fail there is nothing, and it works when it is made again. */
static int with_fault(const struct fault *f, NRT_STATUS (*call)(void), bool *ret_happened)
{
	NRT_STATUS status;

	f->faults->arm(f->n, f->and_all_behind);
	status = call();
	*ret_happened = f->faults->happened();
	f->faults->arm(0, false);
	if (!status)
		return 0;
	WANT(*ret_happened);
	if (f->and_all_behind)
		(void)rmdir("out"); /* taking it away needs memory, too; it must be empty */
	WANT(scratch_entries(".") == entries);
	WANT_STATUS(call(), 0);
	return 0;
}

static int tell(const struct fault *f, const struct story *s, size_t faulty, bool *ret_happened)
{
	for (size_t i = 0; s->calls[i]; i++) {
		if (i == faulty)
			WANT(with_fault(f, s->calls[i], ret_happened) == 0);
		else
			WANT_STATUS(s->calls[i](), 0);
	}
	return take_file();
}

/* Until there is no further call to fail.  A start opens many rings alike, so not each of its calls; nor each one from
 * which on all fail. */
static int each_fault(struct fault *f, const struct story *s, size_t faulty)
{
	bool happened = true;

	for (f->n = 1; happened && f->n < MOST_CALLS;
		f->n += faulty && !f->and_all_behind ? 1 : 1 + f->n / 4) {
		int rc = tell(f, s, faulty, &happened);

		if (rc)
			dprintf(complaint_fd, "%s, call %zu, fault %lu%s\n", s->name, faulty, f->n,
				f->and_all_behind ? " and all behind" : "");
		WANT(rc == 0);
	}
	WANT(!happened);
	return 0;
}

static int all_faults(const struct place *p, const struct faults *faults)
{
	struct fault f = {.faults = faults};

	setenv("NEURON_RT_PROFILE_BUF_INSTRUCTION_MB", "1", 1);
	WANT(enter(p) == 0);
	WANT_STATUS(init(), 0);
	WANT(chdir(p->scratch.dir) == 0);
	WANT(job_open(&job, ADD_MODEL, 0) == 0);
	WANT_STATUS(lib.nrt_profile_continuous_options_allocate(&options), 0);
	WANT_STATUS(lib.nrt_profile_continuous_options_set_output_dir(options, "out"), 0);
	entries = scratch_entries(".");
	for (size_t s = 0; s < sizeof(stories) / sizeof(stories[0]); s++)
		for (size_t i = 0; stories[s].calls[i]; i++) {
			if (stories[s].calls[i] == run)
				continue;
			f.and_all_behind = false;
			WANT(each_fault(&f, &stories[s], i) == 0);
			f.and_all_behind = i > 0;
			WANT(!i || each_fault(&f, &stories[s], i) == 0);
		}
	WANT_STATUS(lib.nrt_profile_continuous_options_free(options), 0);
	lib.nrt_close();
	WANT(leaks() == 0);
	return 0;
}

/* ---- the processes ------------------------------------------------------------------------ */

static const char *const one_core[] = {"--arch=v2", "--cores=1", NULL};

TEST("profile faults: the work, under tests/faults.so", "[.profile_faults]")
{
	faults_work(all_faults);
}

TEST("profile faults: memory runs out in any call, which leaves nothing half-made",
	"[nrt][profile][vdev][slow]")
{
	faults_run_on("[.profile_faults]", "NTRACE_FAULT=alloc:0", one_core);
}

TEST("profile faults: any call to the system fails, which leaves nothing half-made",
	"[nrt][profile][vdev][slow]")
{
	faults_run_on("[.profile_faults]", "NTRACE_FAULT=file:0", one_core);
}
