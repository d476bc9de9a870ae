/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_inspect_storm_test.c - SIGINT and SIGTERM at random points of the API, while inspect sessions begin and end.
 *
 * In the storm the program has handlers that return: every call must do what it does without, and every session must have
 * exactly the executions that were made in it.  In the series of deaths it has none, and what is left must be files or
 * a recording that salvage makes them from, with every execution.  Moments are random, from a fixed seed.
 *
 * NTRACE_TEST_FULL in the environment: 10,000 signals and 200 deaths.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <time.h>

#include "tests/shim/shim.h"
#include "tests/unit/inspect_leaf.h"
#include "tests/unit/sys_trace_capture.h"
#include "tests/workloads/inspect_ends.h"

#define MAX_SESSIONS 4096

static bool is_full(void)
{
	return getenv("NTRACE_TEST_FULL") != NULL;
}

/* xorshift64*: the same moments in every run. */
static uint64_t random_below(uint64_t *state, uint64_t below)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return (*state * 2685821657736338717ull >> 33) % below;
}

static void pause_us(uint64_t us)
{
	struct timespec t = {
		.tv_sec = (time_t)(us / 1000000), .tv_nsec = (long)(us % 1000000 * 1000)};

	nanosleep(&t, NULL);
}

/* ---- the storm ---------------------------------------------------------------------------- */

/* Shared with the sender. */
static struct storm {
	_Atomic uint32_t handled, wanted;
	_Atomic bool over;
} * storm;

static void note(int number)
{
	(void)number;
	atomic_fetch_add(&storm->handled, 1);
}

/* Each is waited for, but not long: two that are under way at once may be delivered as one. */
static pid_t send_signals(void)
{
	pid_t to = getpid(), pid;
	uint64_t state = 20261130;

	fflush(NULL);
	pid = fork();
	if (pid)
		return pid;
	while (atomic_load(&storm->handled) < atomic_load(&storm->wanted)) {
		uint32_t before = atomic_load(&storm->handled);

		if (kill(to, random_below(&state, 2) ? SIGTERM : SIGINT) < 0)
			_exit(1);
		for (int i = 0; i < 200 && atomic_load(&storm->handled) == before; i++)
			pause_us(50);
		pause_us(random_below(&state, 1500));
	}
	atomic_store(&storm->over, true);
	_exit(0);
}

/* Beside the sessions: tensors, and events of the program's own capture. */
static void *works_beside(void *arg)
{
	static int failed;
	char bytes[64] = "x";

	while (!atomic_load(&storm->over) && !failed) {
		nrt_tensor_t *t = NULL;
		char *events = NULL;
		size_t size;

		failed |= lib.nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 1, 64, "t", &t) ||
			  lib.nrt_tensor_write(t, bytes, 0, sizeof(bytes)) ||
			  lib.nrt_tensor_read(t, bytes, 0, sizeof(bytes));
		lib.nrt_tensor_free(&t);
		failed |= lib.nrt_sys_trace_fetch_events(&events, &size, NULL) != NRT_SUCCESS;
		lib.nrt_sys_trace_buffer_free(events);
	}
	return failed ? arg : NULL;
}

static int one_session(const char *base, uint64_t *state, long *ret_executions)
{
	nrt_inspect_config_t *config = NULL;
	struct job j;

	*ret_executions = (long)random_below(state, 8);
	WANT_STATUS(lib.nrt_inspect_config_allocate(&config), 0);
	WANT_STATUS(lib.nrt_inspect_config_set_enable_inspect(config, true), 0);
	WANT_STATUS(lib.nrt_inspect_config_set_output_dir(config, base), 0);
	WANT_STATUS(lib.nrt_inspect_begin_with_options(config), 0);
	WANT_STATUS(lib.nrt_inspect_config_free(config), 0);
	WANT(job_open(&j, ADD_MODEL, 0) == 0);
	for (long i = 0; i < *ret_executions; i++)
		WANT(job_run(&j, (float)i, 2) == 0);
	WANT_STATUS(lib.nrt_inspect_stop(), 0);
	lib.nrt_tensor_free(&j.a);
	lib.nrt_tensor_free(&j.b);
	lib.nrt_tensor_free(&j.c);
	lib.nrt_destroy_tensor_set(&j.in);
	lib.nrt_destroy_tensor_set(&j.out);
	WANT_STATUS(lib.nrt_unload(j.model), 0);
	return 0;
}

/* The leaf of the n-th session of a process, from 0. */
static struct scratch_path nth_leaf(const char *first, unsigned n)
{
	struct scratch_path p;

	if (n)
		snprintf(p.s, sizeof(p.s), "%s_%u", first, n + 1);
	else
		snprintf(p.s, sizeof(p.s), "%s", first);
	return p;
}

static int through_storm(const char *base, uint64_t *state)
{
	static long executions[MAX_SESSIONS];
	char first[1200];
	unsigned sessions = 0;

	WANT_STATUS(lib.nrt_inspect_get_instance_output_dir(base, first, sizeof(first)), 0);
	while (!atomic_load(&storm->over) && sessions < MAX_SESSIONS) {
		WANT(one_session(base, state, &executions[sessions]) == 0);
		sessions++;
	}
	WANT(sessions > 0 && sessions < MAX_SESSIONS);
	for (unsigned i = 0; i < sessions; i++) {
		struct scratch_path leaf = nth_leaf(first, i);
		long found;

		WANT(leaf_is_whole(leaf.s, 0));
		found = leaf_executions(leaf.s);
		if (found != executions[i])
			dprintf(complaint_fd, "%s: %ld executions, and %ld were made\n", leaf.s,
				found, executions[i]);
		WANT(found == executions[i]);
	}
	return 0;
}

static int in_storm(void *arg)
{
	struct place *p = arg;
	struct scratch_path base = scratch_path(&p->scratch, "base");
	uint64_t state = 47;
	pthread_t beside;
	void *failed;
	pid_t sender;

	storm = mmap(
		NULL, sizeof(*storm), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	WANT(storm != MAP_FAILED);
	atomic_store(&storm->wanted, is_full() ? 10000 : 1000);
	WANT(signal(SIGTERM, note) != SIG_ERR && signal(SIGINT, note) != SIG_ERR);
	WANT(enter(p) == 0);
	WANT_STATUS(init(), 0);
	WANT(job_open(&(struct job){0}, ADD_MODEL, 1) == 0);
	WANT_STATUS(start(NULL), 0);
	WANT(pthread_create(&beside, NULL, works_beside, storm) == 0);
	sender = send_signals();
	WANT(sender > 0);
	WANT(through_storm(base.s, &state) == 0);
	WANT(program_wait(sender) == 0);
	WANT(pthread_join(beside, &failed) == 0 && !failed);
	WANT(atomic_load(&storm->handled) >= atomic_load(&storm->wanted));
	lib.nrt_close();
	return 0;
}

TEST("inspect storm: signals at random points of the API harm neither the calls nor the sessions",
	"[nrt][inspect][inspect-storm][vdev]")
{
	if (device_lacks())
		SKIP(device_lacks());
	with_device(in_storm, two_cores);
}

/* ---- deaths ------------------------------------------------------------------------------- */

static const char *const ways[] = {"working", "sessions"};
#define MAX_DELAY_US 400000

struct death {
	const struct place *p;
	struct scratch_path base, page_path, log;
	struct ends_page *page;
	pid_t pid;
	uint32_t count; /* executions when the signal was sent */
};

static int death_open(struct death *d, unsigned number)
{
	char name[32];
	int fd;

	snprintf(name, sizeof(name), "base-%u", number);
	d->base = scratch_path(&d->p->scratch, name);
	snprintf(name, sizeof(name), "log-%u", number);
	d->log = scratch_path(&d->p->scratch, name);
	snprintf(name, sizeof(name), "page-%u", number);
	d->page_path = scratch_path(&d->p->scratch, name);
	fd = open(d->page_path.s, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	WANT(fd >= 0 && ftruncate(fd, sizeof(*d->page)) == 0);
	d->page = mmap(NULL, sizeof(*d->page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	WANT(d->page != MAP_FAILED);
	return 0;
}

/* The executions in what a death has left, made whole; -1. */
static long left_in(const char *leaf, const char *log)
{
	if (leaf_complete(leaf, log) != 0 || !leaf_is_whole(leaf, 0))
		return -1;
	return leaf_executions(leaf);
}

/* The same of all sessions. */
static long left_below(const char *base, const char *log)
{
	DIR *d = opendir(base);
	long all = 0, n = 0;

	for (struct dirent *e; d && n >= 0 && (e = readdir(d));)
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
			n = left_in(scratch_in(base, e->d_name).s, log);
			all += n;
		}
	if (d)
		closedir(d);
	return n < 0 ? -1 : all;
}

/* All that the program had done: the handler waits until it is saved. */
static int look_at_death(struct death *d, int status)
{
	uint32_t most =
		atomic_load(&d->page->count) + 1; /* it need not have told of the last one */
	long left = left_below(d->base.s, d->log.s);

	if (status != 128 + SIGTERM || left < (long)d->count || left > (long)most)
		dprintf(complaint_fd, "ended with %d; %ld executions, wanted are %u to %u; %s\n",
			status, left, d->count, most, d->log.s);
	WANT(status == 128 + SIGTERM);
	WANT(left >= (long)d->count && left <= (long)most);
	return 0;
}

static bool has_executed(void *arg)
{
	const struct death *d = arg;

	return atomic_load(&d->page->stage) >= ENDS_READY;
}

/* The signal comes so long after the program's first execution; that of every fourth one so long
 * after its start, which may be before there is a session. */
static int one_death(const struct place *p, unsigned number, uint64_t delay_us)
{
	char program[512];
	struct death d = {.p = p};
	char *argv[] = {program, "--end", (char *)ways[number % 2], "--executions", "1", "--page",
		d.page_path.s, NULL};
	int rc;

	snprintf(program, sizeof(program), "%s", program_path("workloads/inspect_ends").s);
	WANT(death_open(&d, number) == 0);
	setenv("NEURON_RT_INSPECT_OUTPUT_DIR", d.base.s, 1);
	d.pid = program_start(argv, d.log.s, NULL);
	WANT(number % 4 == 3 || program_until(has_executed, &d, 60));
	pause_us(delay_us);
	d.count = atomic_load(&d.page->count);
	kill(d.pid, SIGTERM);
	rc = look_at_death(&d, program_wait(d.pid));
	munmap(d.page, sizeof(*d.page));
	scratch_remove_tree(d.base.s);
	return rc;
}

static int deaths(void *arg)
{
	uint64_t state = 4711;

	complaint_fd = 2;
	signal(SIGTERM, SIG_DFL); /* not the runner's, in a program that is not yet there */
	setenv("NTRACE_DEVICE_ROOT", ((struct place *)arg)->device.root, 1);
	setenv("NEURON_RT_INSPECT_ENABLE", "1", 1);
	setenv("NEURON_RT_INSPECT_DEVICE_PROFILE", "0", 1);
	for (unsigned i = 0; i < (is_full() ? 200 : 20); i++)
		WANT(one_death(arg, i, random_below(&state, MAX_DELAY_US)) == 0);
	return 0;
}

TEST("inspect storm: whenever SIGTERM ends a program, its sessions leave files or a recording, "
     "with "
     "all executions",
	"[nrt][inspect][inspect-storm][vdev][slow]")
{
	if (device_lacks())
		SKIP(device_lacks());
	with_device(deaths, two_cores);
}
