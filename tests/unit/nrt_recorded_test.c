/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_recorded_test.c - the device profiles that the library leaves for `ntrace record --device`,
 * in the directory that NTRACE_DEVICE_PROFILE names.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "runtime/base/profile_dir.h"
#include "tests/shim/shim.h"
#include "tests/unit/nrt_profile.h"

#define DIR_NAME "profiles"
#define RUNS 3
#define STEPS_OF_RUN 2 /* of ADD_MODEL, on each of two cores */

static struct scratch_path dir_of(const struct place *p)
{
	return scratch_path(&p->scratch, DIR_NAME);
}

/* A file of a process in the directory. */
static struct scratch_path profile_of(
	const struct place *p, pid_t pid, uint32_t nc, uint64_t number)
{
	struct scratch_path name;

	snprintf(name.s, sizeof(name.s), "%s/" PROFILE_FILE_FORMAT, DIR_NAME, (int)pid, nc, number);
	return scratch_path(&p->scratch, name.s);
}

static bool is_marked(const struct place *p, pid_t pid)
{
	struct scratch_path name;

	snprintf(name.s, sizeof(name.s), "%s/" PROFILE_MARK_FORMAT, DIR_NAME, (int)pid);
	return access(scratch_path(&p->scratch, name.s).s, F_OK) == 0;
}

static int up(struct place *p)
{
	(void)mkdir(dir_of(p).s, 0700);
	setenv(ENV_DEVICE_PROFILE, dir_of(p).s, 1);
	return profile_enter_test(p);
}

static int some_runs(int vnc)
{
	struct job j;

	WANT(job_open(&j, ADD_MODEL, vnc) == 0);
	for (int i = 0; i < RUNS; i++)
		WANT(job_run(&j, 0, 2) == 0);
	return 0;
}

/* Is the profile whole, with all instructions of so many runs? */
static bool has_runs(const struct place *p, pid_t pid, uint32_t nc, uint64_t number, int runs)
{
	return ntff_count_in(profile_of(p, pid, nc, number).s, NTFF_INSTRUCTION) ==
	       2 * STEPS_OF_RUN * runs;
}

/* ---- in order ----------------------------------------------------------------------------- */

static int closes(void *arg)
{
	struct place *p = arg;

	WANT(up(p) == 0);
	WANT(is_marked(p, getpid()));
	WANT(some_runs(1) == 0);
	lib.nrt_close();
	WANT(!is_marked(p, getpid()));
	WANT(has_runs(p, getpid(), 1, 0, RUNS));
	WANT(scratch_entries(dir_of(p).s) == 1); /* nothing ran on core 0 */
	WANT_STATUS(init(), 0);
	WANT(is_marked(p, getpid()));
	WANT(some_runs(0) == 0 && some_runs(1) == 0);
	lib.nrt_close();
	WANT(has_runs(p, getpid(), 0, 0, RUNS) && has_runs(p, getpid(), 1, 1, RUNS));
	WANT(scratch_entries(dir_of(p).s) == 3);
	return 0;
}

PROFILE_TEST(
	"recorded: nrt_close leaves a profile of each core that ran something", closes, two_cores)

static int exits(void *arg)
{
	WANT(up(arg) == 0);
	WANT(some_runs(0) == 0);
	exit(0);
}

static int starts_one_that(int (*what)(void *), void *arg, int expected, pid_t *ret_pid)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0)
		_exit(what(arg));
	WANT(pid > 0 && waitpid(pid, &status, 0) == pid);
	*ret_pid = pid;
	WANT(status == expected);
	return 0;
}

static int exit_and_look(void *arg)
{
	pid_t pid;

	WANT(starts_one_that(exits, arg, 0, &pid) == 0);
	WANT(!is_marked(arg, pid) && has_runs(arg, pid, 0, 0, RUNS));
	return 0;
}

PROFILE_TEST("recorded: a program that ends without nrt_close leaves its profiles", exit_and_look,
	two_cores)

static int is_killed(void *arg)
{
	WANT(up(arg) == 0);
	WANT(some_runs(0) == 0);
	return raise(SIGKILL);
}

static int kill_and_look(void *arg)
{
	const struct place *p = arg;
	pid_t pid;

	WANT(starts_one_that(is_killed, arg, SIGKILL, &pid) == 0);
	WANT(is_marked(p, pid) && scratch_entries(dir_of(p).s) == 1);
	return 0;
}

PROFILE_TEST("recorded: a program that is killed leaves its mark", kill_and_look, two_cores)

static void exit_by_signal(int number)
{
	(void)number;
	exit(0);
}

static bool has_launched(void *arg)
{
	return virtual_device_stat(&((struct place *)arg)->device, "launches") > 0;
}

/* Does the process's first thread wait for something, now and a while later?  Then it is not inside of malloc, whose lock
 * the end of this program takes. */
static bool first_thread_waits(void *arg)
{
	const struct timespec pause = {.tv_nsec = 20000000};
	struct scratch_path path;

	(void)arg;
	snprintf(path.s, sizeof(path.s), "/proc/self/task/%d/stat", (int)getpid());
	for (int look = 0; look < 2; look++) {
		_cleanup_free_ char *stat = program_text(path.s);
		const char *state = strrchr(stat, ')');

		if (!state || state[2] != 'S')
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

static void *interrupt(void *arg)
{
	(void)program_until(has_launched, arg, 20);
	(void)program_until(first_thread_waits, NULL, 20);
	(void)kill(getpid(), SIGUSR1);
	return NULL;
}

/* The thread that executes is the only one that takes the signal. */
static int exits_inside(void *arg)
{
	struct job j;
	pthread_t thread;
	sigset_t set;

	setenv("NEURON_RT_EXEC_TIMEOUT", "7200", 1);
	WANT(up(arg) == 0);
	WANT(job_open(&j, HOUR_MODEL, 0) == 0);
	WANT(signal(SIGUSR1, exit_by_signal) != SIG_ERR);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	WANT(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
	WANT(pthread_create(&thread, NULL, interrupt, arg) == 0);
	WANT(pthread_sigmask(SIG_UNBLOCK, &set, NULL) == 0);
	(void)lib.nrt_execute(j.model, j.in, j.out);
	return 1;
}

static int exit_inside_and_look(void *arg)
{
	const struct place *p = arg;
	pid_t pid;

	WANT(starts_one_that(exits_inside, arg, 0, &pid) == 0);
	WANT(is_marked(p, pid) && scratch_entries(dir_of(p).s) == 1);
	return 0;
}

TEST("recorded: a program that exits in the handler of a signal ends, in the middle of a call, too",
	"[nrt][profile][vdev]")
{
#ifdef __SANITIZE_THREAD__
	SKIP("a build without ThreadSanitizer, which objects to exit in the handler of a signal");
#endif
	if (device_lacks())
		SKIP(device_lacks());
	with_device(exit_inside_and_look, two_cores);
}

static void *execute_for_an_hour(void *arg)
{
	struct job *j = arg;

	(void)lib.nrt_execute(j->model, j->in, j->out);
	return NULL;
}

static int exits_beside(void *arg)
{
	static struct job j; /* the thread outlives this function */
	pthread_t thread;

	setenv("NEURON_RT_EXEC_TIMEOUT", "7200", 1);
	WANT(up(arg) == 0);
	WANT(job_open(&j, HOUR_MODEL, 0) == 0);
	WANT(pthread_create(&thread, NULL, execute_for_an_hour, &j) == 0);
	WANT(program_until(has_launched, arg, 20));
	exit(0);
}

static int exit_beside_and_look(void *arg)
{
	pid_t pid;

	WANT(starts_one_that(exits_beside, arg, 0, &pid) == 0);
	WANT(!is_marked(arg, pid));
	WANT(ntff_count_in(profile_of(arg, pid, 0, 0).s, NTFF_INSTRUCTION) == 0);
	return 0;
}

PROFILE_TEST("recorded: a program that exits while a thread executes leaves what there was",
	exit_beside_and_look, two_cores)

/* ---- beside the program's own ------------------------------------------------------------- */

static int own_session(void *arg)
{
	struct place *p = arg;
	uint64_t id = 9;

	WANT(up(p) == 0);
	WANT(some_runs(0) == 0);
	WANT_STATUS(lib.nrt_profile_session_start(0), 0);
	WANT(some_runs(0) == 0);
	WANT_STATUS(lib.nrt_profile_session_stop(0, &id), 0);
	WANT(id == 0);
	WANT_STATUS(lib.nrt_profile_session_serialize(id, "own.ntff"), 0);
	WANT(some_runs(0) == 0);
	lib.nrt_close();
	WANT(ntff_count_in("own.ntff", NTFF_INSTRUCTION) == 2 * STEPS_OF_RUN * RUNS);
	WANT(has_runs(p, getpid(), 0, 0, 3 * RUNS));
	return 0;
}

PROFILE_TEST("recorded: a session of the program's own is as without, and the profile has all",
	own_session, two_cores)

static int child_of_fork(void *arg)
{
	(void)arg;
	exit(0);
}

static int forks(void *arg)
{
	struct place *p = arg;
	pid_t pid;

	WANT(up(p) == 0);
	WANT(some_runs(0) == 0);
	WANT(starts_one_that(child_of_fork, NULL, 0, &pid) == 0);
	WANT(is_marked(p, getpid()) && scratch_entries(dir_of(p).s) == 1);
	lib.nrt_close();
	WANT(has_runs(p, getpid(), 0, 0, RUNS) && scratch_entries(dir_of(p).s) == 1);
	return 0;
}

PROFILE_TEST(
	"recorded: the child of a fork leaves nothing and takes nothing away", forks, two_cores)

/* ---- what cannot be ----------------------------------------------------------------------- */

static int no_directory(void *arg)
{
	struct place *p = arg;

	setenv(ENV_DEVICE_PROFILE, "/proc/none", 1);
	WANT(profile_enter_test(p) == 0);
	WANT(said(p, "No device profiles: NTRACE_DEVICE_PROFILE=/proc/none: "));
	WANT(some_runs(0) == 0);
	lib.nrt_close();
	return 0;
}

PROFILE_TEST("recorded: without its directory the library works, and says why there is no profile",
	no_directory, two_cores)

static int no_space(void *arg)
{
	struct place *p = arg;
	struct rlimit small = {100, RLIM_INFINITY};

	WANT(up(p) == 0);
	WANT(some_runs(0) == 0);
	WANT(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
	WANT(setrlimit(RLIMIT_FSIZE, &small) == 0);
	lib.nrt_close();
	small.rlim_cur = RLIM_INFINITY;
	WANT(setrlimit(RLIMIT_FSIZE, &small) == 0);
	WANT(is_marked(p, getpid()));
	WANT(scratch_entries(dir_of(p).s) == 1); /* no half of a file */
	return 0;
}

PROFILE_TEST("recorded: a profile that cannot be written leaves nothing but the mark", no_space,
	two_cores)
