/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_many_test.c - many inspect sessions: of many processes with one base at once, of one
 * process with many cores, and one after another.
 */
#include <malloc.h>
#include <sys/wait.h>

#include "runtime/trace/event_registry.h"
#include "tests/shim/shim.h"
#include "tests/unit/nrt_init_fixture.h"
#include "tests/unit/nrt_inspect.h"

/* ---- many processes ----------------------------------------------------------------------- */

#define PROCESSES 32

static const char *const many_devices[] = {"--arch=v2", "--cores=2", "--devices=16", NULL};

/* Each has another core, and runs a number of times that is its own. */
static int one_of_many(const struct place *p, int number, int go)
{
	char core[8], leaf[PATH_MAX], byte;
	struct place mine = *p;
	struct job j;

	snprintf(core, sizeof(core), "%d", number);
	snprintf(mine.log.s, sizeof(mine.log.s), "%s/log.%d", p->scratch.dir, number);
	setenv("NEURON_RT_VISIBLE_CORES", core, 1);
	setenv("NEURON_RT_INSPECT_ENABLE", "1", 1);
	setenv("NEURON_RT_INSPECT_HOST_MEMORY", "1", 1);
	WANT(inspect_enter(&mine) == 0);
	WANT(read(go, &byte, 1) == 0); /* until all are there */
	WANT_STATUS(init(), 0);
	WANT(job_open(&j, ADD_MODEL, 0) == 0);
	for (int i = 0; i <= number; i++)
		WANT(job_run(&j, (float)i, 2) == 0);
	lib.nrt_close();
	WANT(inspect_leaf(INSPECT_BASE, getpid(), 1, leaf, sizeof(leaf)));
	WANT(inspect_tree(leaf, 0, 0) == 0);
	WANT(inspect_events(leaf, TRACE_EXECUTE_API, PHASE_STOP) == number + 1);
	WANT(inspect_bytes(leaf, "host_mem.pb") > 0);
	return 0;
}

static int many_processes(void *arg)
{
	const struct place *p = arg;
	pid_t pids[PROCESSES];
	int go[2];

	WANT(pipe(go) == 0);
	for (int i = 0; i < PROCESSES; i++) {
		pids[i] = fork();
		WANT(pids[i] >= 0);
		if (pids[i] == 0) {
			close(go[1]);
			_exit(one_of_many(p, i, go[0]));
		}
	}
	close(go[1]);
	for (int i = 0; i < PROCESSES; i++)
		WANT(program_wait(pids[i]) == 0);
	WANT(chdir(p->scratch.dir) == 0);
	WANT(inspect_leaves(INSPECT_BASE) == PROCESSES);
	WANT(scratch_entries(INSPECT_BASE) == PROCESSES);
	return 0;
}

INSPECT_TEST(
	"inspect many: 32 processes at once below one base have their own files, and no others",
	many_processes, many_devices)

/* ---- many cores --------------------------------------------------------------------------- */

#define CORES 128

static const char *const largest_machine[] = {
	"--arch=v3", "--cores=8", "--devices=16", "--memory=64M", NULL};

static void few_events(nrt_inspect_config_t *c)
{
	(void)lib.nrt_inspect_config_set_sys_trace_max_events_per_nc(c, 1024);
}

/* Executions of each core that are whole in ntrace.pb. */
static int count_per_core(const char *leaf, unsigned counts[CORES])
{
	char path[PATH_MAX + 16];
	struct trace_file t;
	size_t open;

	snprintf(path, sizeof(path), "%s/ntrace.pb", leaf);
	WANT(trace_file_load(&t, path) && !*trace_file_fault(&t, &open));
	for (size_t i = 0; i < t.count; i++)
		if (t.events[i].event_type == TRACE_EXECUTE_API &&
			t.events[i].phase == PHASE_STOP && t.events[i].nc_idx < CORES)
			counts[t.events[i].nc_idx]++;
	trace_file_free(&t);
	return 0;
}

static int many_cores(void *arg)
{
	unsigned counts[CORES] = {0};
	char leaf[PATH_MAX];
	uint32_t count = 0;

	setenv("NEURON_LOGICAL_NC_CONFIG", "1", 1);
	WANT(inspect_enter(arg) == 0);
	WANT_STATUS(init(), 0);
	WANT_STATUS(lib.nrt_get_visible_nc_count(&count), 0);
	WANT(count == CORES);
	WANT_STATUS(inspect_begin(few_events), 0);
	for (int nc = 0; nc < CORES; nc++) {
		struct job j;

		WANT(job_open(&j, ADD_MODEL, nc) == 0);
		for (int i = 0; i <= nc % 3; i++)
			WANT(job_run(&j, (float)i, 2) == 0);
	}
	WANT_STATUS(lib.nrt_inspect_stop(), 0);
	WANT(inspect_leaf(INSPECT_BASE, getpid(), 1, leaf, sizeof(leaf)));
	WANT(inspect_tree(leaf, 0, 0) == 0);
	WANT(count_per_core(leaf, counts) == 0);
	for (unsigned nc = 0; nc < CORES; nc++)
		WANT(counts[nc] == nc % 3 + 1);
	lib.nrt_close();
	return 0;
}

INSPECT_TEST("inspect many: a process with 128 cores has the events of each", many_cores,
	largest_machine)

/* ---- one after another -------------------------------------------------------------------- */

#define SESSIONS 100
#define SETTLED 20	/* sessions after which what is kept is there */
#define PAGES_MORE 2048 /* resident ones, which the allocator may keep of the others */

static long resident_pages(void)
{
	long size, resident = -1;

	malloc_trim(0); /* what is free is nobody's */
	FILE *f = fopen("/proc/self/statm", "r");

	if (f && fscanf(f, "%ld %ld", &size, &resident) != 2)
		resident = -1;
	if (f)
		fclose(f);
	return resident;
}

static void session_mode(nrt_inspect_config_t *c)
{
	(void)lib.nrt_inspect_config_set_inspect_device_profile_mode(
		c, NRT_INSPECT_DEVICE_PROFILE_MODE_SESSION);
}

/* Once the threads that have been joined are gone from the list, too. */
static bool threads_are(void *count)
{
	return scratch_entries("/proc/self/task") == *(const int *)count;
}

static int one_after_another(void *arg)
{
	struct belongings after_some = {0}, now;
	char leaf[PATH_MAX], where[PATH_MAX], full[PATH_MAX];
	long pages = 0;
	struct job j;

	setenv("NEURON_RT_PROFILE_BUF_INSTRUCTION_MB", "1", 1);
	WANT(inspect_enter(arg) == 0);
	WANT_STATUS(init(), 0);
	WANT(job_open(&j, ADD_MODEL, 0) == 0);
	for (unsigned n = 1; n <= SESSIONS; n++) {
		WANT_STATUS(inspect_begin(session_mode), 0);
		WANT_STATUS(lib.nrt_inspect_get_instance_output_dir(NULL, where, sizeof(where)), 0);
		for (unsigned i = 0; i < 1 + n % 3; i++)
			WANT(job_run(&j, (float)i, 2) == 0);
		WANT_STATUS(lib.nrt_inspect_stop(), 0);
		WANT(inspect_leaf(INSPECT_BASE, getpid(), n, leaf, sizeof(leaf)));
		WANT(realpath(leaf, full) && strcmp(full, where) == 0);
		WANT(inspect_tree(leaf, 1, 1) == 0);
		WANT(inspect_events(leaf, TRACE_EXECUTE_API, PHASE_STOP) == 1 + n % 3);
		if (n == SETTLED) {
			after_some = belongings_now();
			pages = resident_pages();
		}
	}
	WANT(program_until(threads_are, &after_some.threads, 20));
	now = belongings_now();
	WANT(belongings_equal(&after_some, &now));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	WANT(resident_pages() < pages + PAGES_MORE);
#endif
	(void)pages;
	lib.nrt_close();
	WANT(scratch_entries(INSPECT_BASE) == SESSIONS);
	WANT(leaks() == 0);
	return 0;
}

INSPECT_TEST(
	"inspect many: 100 sessions one after another each have a directory, and nothing grows",
	one_after_another, two_cores)
