/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_ends.c - a program with an inspect session (of its environment) that ends in a way of many.
 *
 *	inspect_ends --end WAY [--page FILE] [--executions N] [--pause-us N] [--rest N] [--wait 1]
 *
 * It executes a small model N (20) times, tells it in FILE (inspect_ends.h), rests for N naps of
 * 10 ms, waits with --wait until the test has done something, executes N times again then, and ends.
 * The ways are in a table below.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#include <nrt/nrt_async.h>
#include <nrt/nrt_experimental.h>
#include <nrt/nrt_profile.h>

#include "tests/workloads/inspect_ends.h"
#include "tests/workloads/workload.h"

#define MODEL                                                                \
	"ntrace-model 1\nname adder\ninput a float32 8\ninput b float32 8\n" \
	"output c float32 8\nstep PE 20us add a b c\n"
#define BYTES 32u

#define SLOW_MODEL "ntrace-model 1\nname slow\nstep SP 400ms nop\n"
#define HOUR_MODEL "ntrace-model 1\nname hour\nstep SP 3600s nop\n"

static const char *way, *page_file;
static unsigned executions = 20, pause_us, rests, waits;
static struct ends_page *page;
static struct {
	nrt_model_t *model;
	nrt_tensor_set_t *in, *out;
	nrt_tensor_t *a, *b, *c;
} job;
static volatile sig_atomic_t told_to_end;
static bool runs_late;

static bool execute(void)
{
	if (failed("nrt_execute", nrt_execute(job.model, job.in, job.out)))
		return false;
	atomic_fetch_add(&page->count, 1);
	if (pause_us)
		usleep(pause_us);
	return true;
}

static bool execute_some(void)
{
	for (unsigned i = 0; i < executions; i++)
		if (!execute())
			return false;
	return true;
}

/* In naps as those of the session's thread, which a busy machine makes longer in the same way. */
static void rest(void)
{
	uint32_t count = atomic_load(&page->count);

	for (unsigned i = 0; i < rests; i++)
		(void)poll(NULL, 0, 10);
	atomic_store(&page->safe, rests ? count : 0);
}

/* ---- the ways ----------------------------------------------------------------------------- */

static int ends_return(void)
{
	return 0;
}

/* As daemons do, but late. */
static int ends_humble(void)
{
	return setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534);
}

static int ends_close(void)
{
	nrt_close();
	return 0;
}

static int ends_exit(void)
{
	exit(3);
}

static int ends_at_once(void)
{
	_exit(4);
}

static int ends_exec(void)
{
	execl("/bin/sh", "sh", "-c", "exit 6", (char *)NULL);
	return 1;
}

static int ends_abort(void)
{
	abort();
}

static int ends_segv(void)
{
	signal(SIGSEGV, SIG_DFL); /* not a sanitizer's */
	raise(SIGSEGV);
	return 1;
}

/* By a signal of the test. */
static int ends_working(void)
{
	while (execute())
		;
	return 1;
}

/* By one that comes when no call is under way, nor malloc. */
static int ends_idle(void)
{
	while (pause() < 0)
		;
	return 1;
}

static int ends_stop(void)
{
	atomic_store(&page->stage, ENDS_STOPPING);
	atomic_store(&page->stop_status, (int)nrt_inspect_stop());
	atomic_store(&page->stage, ENDS_STOPPED);
	return 0;
}

/* By a signal in the middle of a call that takes long. */
static int ends_inside(void)
{
	nrt_model_t *hour;

	if (failed("nrt_load", nrt_load(HOUR_MODEL, strlen(HOUR_MODEL), 0, -1, &hour)))
		return 1;
	atomic_store(&page->stage, ENDS_INSIDE);
	(void)nrt_execute(hour, job.in, job.out);
	return 1;
}

/* One session after the other, until a signal comes. */
static int ends_in_sessions(void)
{
	while (execute())
		if (failed("nrt_inspect_stop", nrt_inspect_stop()) ||
			failed("nrt_inspect_begin", nrt_inspect_begin()))
			return 1;
	return 1;
}

/* By one that comes while a stop makes many events into files, or behind it. */
static int ends_long_stop(void)
{
	for (unsigned i = 0; i < 40; i++) {
		pause_us = 0;
		if (!execute_some())
			return 1;
	}
	(void)ends_stop();
	return ends_idle();
}

/* By a signal that comes before the stop is over. */
static int ends_stop_and_wait(void)
{
	(void)ends_stop();
	return ends_idle();
}

static void note(int number)
{
	told_to_end = number;
}

/* What goes on when the main thread has ended. */
static void *work_and_return(void *main_thread)
{
	(void)pthread_join(*(pthread_t *)main_thread, NULL);
	atomic_store(&page->stage, ENDS_HEADLESS);
	(void)execute_some();
	return NULL;
}

static void *work_on(void *main_thread)
{
	(void)pthread_join(*(pthread_t *)main_thread, NULL);
	(void)execute_some();
	atomic_store(&page->stage, ENDS_HEADLESS);
	(void)ends_idle();
	return NULL;
}

static int leave_to(void *(*work)(void *))
{
	static pthread_t main_thread;
	pthread_t other;

	main_thread = pthread_self();
	if (pthread_create(&other, NULL, work, &main_thread))
		return 1;
	pthread_exit(NULL);
}

static int ends_headless(void)
{
	return leave_to(work_and_return);
}

static int ends_headless_idle(void)
{
	return leave_to(work_on);
}

/* What it has asked the library for is not done yet. */
static int ends_headless_scheduled(void)
{
	static NRT_STATUS later;
	nrta_seq_t seq;
	nrt_model_t *slow;

	if (failed("nrt_load", nrt_load(SLOW_MODEL, strlen(SLOW_MODEL), 0, -1, &slow)) ||
		failed("nrta_execute_schedule",
			nrta_execute_schedule(slow, job.in, job.out, 0, &later, &seq)))
		return 1;
	atomic_fetch_add(&page->count, 1);
	pthread_exit(NULL);
}

/* As servers do. */
static int ends_told(void)
{
	while (!told_to_end)
		if (!execute())
			return 1;
	nrt_close();
	return 7;
}

static void exit_in_handler(int number)
{
	(void)number;
	exit(5);
}

static void end_in_handler(int number)
{
	(void)number;
	_exit(8);
}

static void close_and_exit(void)
{
	nrt_close();
}

static int ends_atexit(void)
{
	atexit(close_and_exit);
	return 0;
}

static int ends_late(void)
{
	runs_late = true;
	return 0;
}

/* A program's destructors run before the library's. */
__attribute__((destructor)) static void late(void)
{
	if (runs_late)
		(void)execute_some();
}

static const struct {
	const char *name;
	int (*end)(void);
	void (*handler)(int); /* of SIGTERM, from before nrt_init */
} ways[] = {
	{"return", ends_return, NULL},
	{"close", ends_close, NULL},
	{"humble", ends_humble, NULL},
	{"exit", ends_exit, NULL},
	{"_exit", ends_at_once, NULL},
	{"exec", ends_exec, NULL},
	{"abort", ends_abort, NULL},
	{"segv", ends_segv, NULL},
	{"working", ends_working, NULL},
	{"idle", ends_idle, NULL},
	{"stop", ends_stop, NULL},
	{"stop-wait", ends_stop_and_wait, NULL},
	{"inside", ends_inside, NULL},
	{"sessions", ends_in_sessions, NULL},
	{"headless", ends_headless, NULL},
	{"headless-idle", ends_headless_idle, NULL},
	{"headless-scheduled", ends_headless_scheduled, NULL},
	{"told", ends_told, note},
	{"exit-in-handler", ends_idle, exit_in_handler},
	{"exit-in-handler-in-stop", ends_long_stop, exit_in_handler},
	{"_exit-in-handler", ends_working, end_in_handler},
	{"atexit", ends_atexit, NULL},
	{"late", ends_late, NULL},
};
#define WAYS (sizeof(ways) / sizeof(ways[0]))

/* ---- the work ----------------------------------------------------------------------------- */

static bool prepare(void)
{
	return init_cores(1) &&
	       !failed("nrt_load", nrt_load(MODEL, strlen(MODEL), 0, -1, &job.model)) &&
	       !failed("nrt_allocate_tensor_set", nrt_allocate_tensor_set(&job.in)) &&
	       !failed("nrt_allocate_tensor_set", nrt_allocate_tensor_set(&job.out)) &&
	       tensor_for(job.in, 0, "a", BYTES, &job.a) &&
	       tensor_for(job.in, 0, "b", BYTES, &job.b) &&
	       tensor_for(job.out, 0, "c", BYTES, &job.c);
}

static bool open_page(void)
{
	int fd = page_file ? open(page_file, O_RDWR | O_CREAT | O_CLOEXEC, 0600)
			   : memfd_create("page", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, sizeof(*page)) < 0)
		return false;
	page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return page != MAP_FAILED;
}

static bool work(void)
{
	if (!prepare() || !execute_some())
		return false;
	rest();
	atomic_store(&page->stage, ENDS_READY);
	while (waits && atomic_load(&page->stage) != ENDS_GOES_ON)
		(void)poll(NULL, 0, 1);
	return !waits || execute_some();
}

static const struct workload_option options[] = {
	TEXT_OPTION("--end", way),
	TEXT_OPTION("--page", page_file),
	NUMBER_OPTION("--executions", executions, 32768),
	NUMBER_OPTION("--pause-us", pause_us, 1000000),
	NUMBER_OPTION("--rest", rests, 1000),
	NUMBER_OPTION("--wait", waits, 1),
	{.name = NULL},
};

int main(int argc, char **argv)
{
	size_t i = 0;

	if (!workload_options(argc, argv, options) || !way)
		return 2;
	while (i < WAYS && strcmp(ways[i].name, way) != 0)
		i++;
	if (i == WAYS || !open_page())
		return 2;
	if (ways[i].handler)
		signal(SIGTERM, ways[i].handler);
	if (!work())
		return 1;
	return ways[i].end();
}
