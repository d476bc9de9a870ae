/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_inspect_locked_test.c - a signal that interrupts the program while it holds a lock of the library, or the allocator's:
 * the session's thread saves what it has without them.
 *
 * The workload inspect_locked has these points; see there.
 */
#include "tests/shim/shim.h"
#include "tests/unit/inspect_leaf.h"

#define RUNS 3 /* of the workload, before its points */

static int run_locked(const struct place *p, const char *base, const char *point)
{
	char program[512];
	char *argv[] = {program, point ? "--point" : NULL, (char *)point, NULL};

	snprintf(program, sizeof(program), "%s", program_path("workloads/inspect_locked").s);
	setenv("NTRACE_DEVICE_ROOT", p->device.root, 1);
	setenv("NEURON_RT_INSPECT_ENABLE", "1", 1);
	setenv("NEURON_RT_INSPECT_DEVICE_PROFILE", "0", 1);
	setenv("NEURON_RT_INSPECT_OUTPUT_DIR", base, 1);
	return program_run(argv, p->log.s, NULL);
}

static void show(const struct place *p)
{
	char *text = program_text(p->log.s);

	dprintf(2, "%s", text ? text : "");
	free(text);
}

static int goes_on(void *arg)
{
	const struct place *p = arg;
	struct scratch_path base = scratch_path(&p->scratch, "base");
	char leaf[1200];
	int rc = run_locked(p, base.s, NULL);

	if (rc)
		show(p);
	WANT(rc == 0);
	WANT(leaf_find(base.s, leaf, sizeof(leaf)) && leaf_is_whole(leaf, 0));
	WANT(leaf_executions(leaf) == 2 * RUNS);
	return 0;
}

/* As far as locks are free, there are files. */
static int one_point(const struct place *p, unsigned number)
{
	struct scratch_path base;
	char point[16], leaf[1200], name[32];
	int rc;

	snprintf(point, sizeof(point), "%u", number);
	snprintf(name, sizeof(name), "base-%u", number);
	base = scratch_path(&p->scratch, name);
	rc = run_locked(p, base.s, point);
	if (rc == 3)
		return 0;
	WANT(rc == 128 + SIGTERM);
	WANT(leaf_find(base.s, leaf, sizeof(leaf)));
	WANT(leaf_complete(leaf, p->log.s) == 0);
	WANT(leaf_is_whole(leaf, 0));
	WANT(leaf_executions(leaf) >=
		RUNS); /* all that ended before: the flush is no matter of locks */
	scratch_remove_tree(base.s);
	return 0;
}

static int ends(void *arg)
{
	bool full = getenv("NTRACE_TEST_FULL") != NULL;

	for (unsigned i = 1; i < 400; i += full ? 7 : 45) {
		int rc = one_point(arg, i);

		if (rc) {
			dprintf(2, "that was point %u\n", i);
			show(arg);
			return rc;
		}
	}
	return 0;
}

#define LOCKED_TEST(name, fn)                              \
	TEST(name, "[nrt][inspect][inspect-locked][vdev]") \
	{                                                  \
		NEEDS_LOCKS();                             \
		if (device_lacks())                        \
			SKIP(device_lacks());              \
		with_device(fn, two_cores);                \
	}

/* The program stands between the library and the C library's locks. */
#ifdef __SANITIZE_THREAD__
#define NEEDS_LOCKS() SKIP("a build without ThreadSanitizer, which stands there itself")
#else
#define NEEDS_LOCKS() (void)0
#endif

LOCKED_TEST("inspect locked: a flush needs no lock and no memory that an interrupted call may hold",
	goes_on)
LOCKED_TEST(
	"inspect locked: a program that ends while a call holds a lock has saved what it did", ends)
