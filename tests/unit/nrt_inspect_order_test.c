/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_inspect_order_test.c - clients of the inspect session, in the order in which they make their
 * calls, as programs in C and C++ (tests/workloads), and the tree that their users then read.
 *
 * They want exactly one directory with `_pid_` in its name, and directly in it the four .pb files,
 * a device profile and a model file.  They measure by the device's clock, so what a run takes there
 * is exactly what its steps take.
 */
#include "runtime/trace/event_registry.h"
#include "tests/shim/shim.h"
#include "tests/unit/nrt_inspect.h"

#define RUNS 8	     /* 4 executions on two physical cores */
#define RUN_NS 50000 /* of the models of these programs */

/* Each run on the device is a pair, and takes what it must. */
static long paired_runs(const char *leaf)
{
	char path[PATH_MAX];
	struct trace_file t;
	size_t open;
	long n = -1;

	snprintf(path, sizeof(path), "%s/ntrace.pb", leaf);
	if (trace_file_load(&t, path) && !*trace_file_fault(&t, &open) && open == 0)
		n = 0;
	for (size_t i = 0; n >= 0 && i < t.count; i++) {
		const struct ntrace_event_view *stop = &t.events[i], *start;

		if (stop->event_type != TRACE_DEVICE_EXEC || stop->phase != PHASE_STOP)
			continue;
		start = trace_file_find(&t, stop->id, PHASE_START);
		n = start && event_attr_number(stop, "nc_timestamp_ns") -
						    event_attr_number(start, "nc_timestamp_ns") ==
					    RUN_NS
			    ? n + 1
			    : -1;
	}
	trace_file_free(&t);
	return n;
}

/* Runs the program in the scratch directory, on a device; the tree is below base. */
static void run_program(const char *name, const char *const arguments[], const char *const more[],
	const char *base, long runs)
{
	struct program_path program = program_path(name);
	char *argv[24] = {"/usr/bin/env", "-C", NULL};
	char leaf[PATH_MAX], dir[PATH_MAX], *text;
	struct place p;
	int n = 2;
	glob_t g;

	if (device_lacks())
		SKIP(device_lacks());
	if (!program_exists(name))
		SKIP(name);
	REQUIRE(place_open(&p));
	argv[n++] = p.scratch.dir;
	if (virtual_device_start(&p.device, p.scratch.dir, two_cores)) {
		argv[n++] = p.device.env;
		for (; more && *more; more++)
			argv[n++] = (char *)*more;
		argv[n++] = program.s;
		for (; *arguments; arguments++)
			argv[n++] = (char *)*arguments;
		CHECK_EQ(program_run(argv, p.log.s, NULL), 0);
		text = program_text(p.log.s);
		test_info("%s", text);
		CHECK(strstr(text, "all answers are right\n") != NULL);
		free(text);
		snprintf(dir, sizeof(dir), "%s/%s", p.scratch.dir, base);
		CHECK_EQ(inspect_leaves(dir), 1);
		snprintf(leaf, sizeof(leaf), "%s/*_pid_*", dir);
		CHECK_EQ(glob(leaf, 0, NULL, &g), 0);
		if (g.gl_pathc) {
			CHECK_EQ(inspect_tree(g.gl_pathv[0], 1, 1), 0);
			CHECK_EQ(paired_runs(g.gl_pathv[0]), runs);
		}
		globfree(&g);
	} else {
		CHECK(!"the virtual device starts");
	}
	place_close(&p);
}

#define KINETO "workloads/kineto_order"
#define CUSTOM "max_events_per_nc:4096;capture_enabled_for_nc:0-1;host_memory:true;"

TEST("inspect order: a framework's profiler plug-in, whose config lives until the end",
	"[nrt][inspect][vdev]")
{
	run_program(KINETO, (const char *const[]){CUSTOM, "4", NULL}, NULL, INSPECT_BASE, RUNS);
}

TEST("inspect order: a framework's profiler plug-in, with a directory of its own",
	"[nrt][inspect][vdev]")
{
	run_program(KINETO,
		(const char *const[]){CUSTOM "profile_output_dir:./a/b", "4", "early", NULL}, NULL,
		"a/b", RUNS);
}

TEST("inspect order: a framework's profiling module, which frees its config after the begin",
	"[nrt][inspect][vdev]")
{
	run_program("workloads/profiling_order", (const char *const[]){"--executions", "4", NULL},
		NULL, INSPECT_BASE, RUNS);
}

TEST("inspect order: a framework's profiling module, with cores and types of its choice",
	"[nrt][inspect][vdev]")
{
	run_program("workloads/profiling_order",
		(const char *const[]){"--executions", "4", "--core", "1", "--cores", "1-1",
			"--types", "nc_exec_running,nrt_execute", "--free", "late", NULL},
		NULL, INSPECT_BASE, RUNS);
}

/* It captures by itself as well, and profiles a model: neither knows of the session that the
 * environment asks for. */
TEST("inspect order: a client that captures by itself, under a session of the environment",
	"[nrt][inspect][vdev]")
{
	run_program("workloads/client_order", (const char *const[]){"once", NULL},
		(const char *const[]){"NEURON_RT_INSPECT_ENABLE=1",
			"NEURON_RT_INSPECT_DEVICE_PROFILE=session", NULL},
		INSPECT_BASE, 10);
}
