/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_init_life_test.c - libnrt.so.1 over the lives of processes: a thousand bring-ups, loading and
 * unloading, exec, ends in the middle.
 *
 * After each, what counts is that the device has nothing reserved and the next process comes up.
 */
#include <signal.h>

#include "tests/shim/shim.h"
#include "tests/unit/nrt_init_fixture.h"

/* ---- a thousand --------------------------------------------------------------------------- */

static int thousand(void *arg)
{
	struct place *p = arg;
	struct belongings before, after;

	WANT(enter(p) == 0);
	WANT_STATUS(init(), 0);
	lib.nrt_close();
	before = belongings_now();
	for (int i = 0; i < 1000; i++) {
		WANT_STATUS(init(), 0);
		lib.nrt_close();
	}
	after = belongings_now();
	WANT(belongings_equal(&before, &after));
	WANT(leaks() == 0);
	/* All but the handle of the question, which its process closes by ending. */
	WANT(cores_are_free(p));
	return 0;
}

TEST("nrt life: 1,000 times nrt_init and nrt_close leave nothing behind", "[nrt][vdev][slow]")
{
	NEED_VDEV();
	REQUIRE_LIBRARY();
	with_device(thousand, fixture_device);
}

static int with_work(void *arg)
{
	struct place *p = arg;
	struct belongings before = {0}, after;
	struct job j;

	WANT(enter(p) == 0);
	for (int i = 0; i < 50; i++) {
		WANT_STATUS(init(), 0);
		WANT(job_open(&j, ADD_MODEL, 0) == 0);
		WANT(job_run(&j, (float)i, 2.0f) == 0);
		lib.nrt_close(); /* frees what the program has not */
		after = belongings_now();
		if (i == 0)
			before = after;
	}
	WANT(belongings_equal(&before, &after));
	WANT(leaks() == 0);
	WANT(cores_are_free(p));
	return 0;
}

TEST("nrt life: nrt_close frees models, tensors and rings that were left", "[nrt][vdev]")
{
	NEED_VDEV();
	REQUIRE_LIBRARY();
	with_device(with_work, fixture_device);
}

/* ---- loading and unloading ---------------------------------------------------------------- */

static int loads(void *arg)
{
	struct place *p = arg;
	struct belongings before = {0}, after = {0};

	WANT(enter(p) == 0);
	for (int i = 0; i < 20; i++) {
		void *so = dlopen(program_path("lib/libnrt.so.1").s, RTLD_NOW | RTLD_LOCAL);

		WANT(so != NULL);
#define NRT_CALL(name, node, returns, state) lib.name = (__typeof__(lib.name))dlsym(so, #name);
#include "tests/unit/nrt_calls.def"
#undef NRT_CALL
		WANT_STATUS(init(), 0);
		if (i % 2)
			lib.nrt_close();
		WANT(dlclose(so) == 0);
		/* It stays in memory: its thread-local data and fork handler must not point nowhere. */
		WANT_STATUS(init(), 0);
		lib.nrt_close();
		after = belongings_now();
		if (i == 0)
			before = after;
	}
	WANT(belongings_equal(&before, &after));
	WANT(cores_are_free(p));
	return 0;
}

TEST("nrt life: dlopen, nrt_init, dlclose in any order", "[nrt][vdev]")
{
	NEED_VDEV();
	REQUIRE_LIBRARY();
	with_device(loads, fixture_device);
}

/* ---- exec --------------------------------------------------------------------------------- */

TEST("nrt life: exec gives the cores back, and the new program takes them", "[nrt][vdev]")
{
	struct program_path program = program_path("workloads/bring_up");
	char *argv[] = {program.s, "1", program.s, "3", NULL};
	char *text;
	struct place p;

	NEED_VDEV();
	if (!program_exists("workloads/bring_up"))
		SKIP("workloads/bring_up");
	REQUIRE(place_open(&p));
	if (virtual_device_start(&p.device, p.scratch.dir, fixture_device)) {
		CHECK_EQ(program_run(argv, p.log.s, p.device.env), 0);
		text = program_text(p.log.s);
		test_info("%s", text);
		CHECK(strstr(text, "descriptors left 0\n") != NULL);
		CHECK(strstr(text, "failed") == NULL);
		free(text);
		CHECK(program_until(cores_are_free, &p, 20));
	} else {
		CHECK(!"the virtual device starts");
	}
	place_close(&p);
}

/* ---- ends in the middle ------------------------------------------------------------------- */

static const char *end_at;
static bool end_by_kill;

static NRT_STATUS end_here(const char *step)
{
	if (!strcmp(step, end_at)) {
		if (end_by_kill)
			(void)raise(SIGKILL);
		_exit(3);
	}
	return NRT_SUCCESS;
}

static int ends(void *arg)
{
	WANT(enter_linked(arg, "QUIET") == 0);
	init_set_probe(end_here);
	WANT_STATUS(init(), 0);
	return 0;
}

static int next_process(void *arg)
{
	WANT(enter_linked(arg, NULL) == 0);
	WANT_STATUS(init(), 0);
	lib.nrt_close();
	return 0;
}

static void end_in_each_step(bool kill)
{
	struct place p;

	REQUIRE(place_open(&p));
	end_by_kill = kill;
	if (virtual_device_start(&p.device, p.scratch.dir, fixture_device))
		for (size_t n = 0; init_step_name(n); n++) {
			end_at = init_step_name(n);
			test_info("%s", end_at);
			CHECK_EQ(scratch_child(ends, &p), kill ? -1 : 3);
			/* The kernel tells the device of the end, a moment later. */
			CHECK(program_until(cores_are_free, &p, 20));
			CHECK_EQ(scratch_child(next_process, &p), 0);
		}
	else
		CHECK(!"the virtual device starts");
	place_close(&p);
}

TEST("nrt life: _exit in any step of nrt_init leaves no reservation", "[nrt][vdev]")
{
	NEED_VDEV();
	end_in_each_step(false);
}

TEST("nrt life: SIGKILL in any step of nrt_init leaves no reservation", "[nrt][vdev]")
{
	NEED_VDEV();
	end_in_each_step(true);
}

/* ---- memory and system calls fail --------------------------------------------------------- */

/* bring_up with the n-th call of this kind failing; false when there are less. */
static bool run_with_fault(const struct place *p, const char *kind, int n)
{
	struct scratch_path fault_log = scratch_path(&p->scratch, "faults");
	char *argv[] = {"/usr/bin/env", NULL, NULL, NULL, NULL, NULL, NULL, NULL, "1", NULL};
	char fault[64], preload[600], log[PATH_MAX + 32], asan[PATH_MAX];
	struct program_path program = program_path("workloads/bring_up");
	char *text, *said_text;
	bool happened;

	snprintf(fault, sizeof(fault), "NTRACE_FAULT=%s:%d", kind, n);
	snprintf(preload, sizeof(preload), "LD_PRELOAD=%s", program_path("tests/faults.so").s);
	snprintf(log, sizeof(log), "NTRACE_FAULT_LOG=%s", fault_log.s);
	argv[1] = fault;
	argv[2] = preload;
	argv[3] = log;
	argv[4] = (char *)program_asan_options(asan, sizeof(asan));
	argv[5] = "NTRACE_FAULT_PROGRAM=bring_up";
	argv[6] = (char *)p->device.env;
	argv[7] = program.s;
	(void)unlink(fault_log.s);
	(void)unlink(p->log.s);
	int status = program_run(argv, p->log.s, NULL);
	text = program_text(fault_log.s);
	said_text = program_text(p->log.s);
	happened = strstr(text, "failed ") != NULL;
	test_info("%s %d: %s%s", kind, n, text, said_text);
	CHECK_EQ(status, 0);
	if (strstr(said_text, "nrt_init failed"))
		CHECK(strstr(said_text, "ERROR") != NULL);
	free(text);
	free(said_text);
	return happened;
}

TEST("nrt life: each allocation and each system call of nrt_init fails once", "[nrt][vdev][slow]")
{
	struct place p;
	int allocations = 1, calls = 1;

	NEED_VDEV();
	if (!program_exists("workloads/bring_up") || !program_exists("tests/faults.so"))
		SKIP("workloads/bring_up and tests/faults.so");
#ifdef __SANITIZE_THREAD__
	SKIP("a build without ThreadSanitizer, which allows no library before it");
#endif
	REQUIRE(place_open(&p));
	if (virtual_device_start(&p.device, p.scratch.dir, fixture_device)) {
		while (run_with_fault(&p, "alloc", allocations) && allocations < 200)
			allocations++;
		while (run_with_fault(&p, "file", calls) && calls < 500)
			calls++;
		CHECK(allocations > 2 && allocations < 200);
		CHECK(calls > 5 && calls < 500);
		CHECK(program_until(cores_are_free, &p, 20));
	} else {
		CHECK(!"the virtual device starts");
	}
	place_close(&p);
}
