/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_end_program_test.c - the handlers of an inspect session among what programs do: other handlers, threads that
 * begin and stop sessions, children, closed descriptors, and many signals.
 */
#include "tests/unit/inspect_end_fixture.h"

/* ---- handlers of others ------------------------------------------------------------------- */

static struct sigaction saved;

static void chain(int number, siginfo_t *info, void *context)
{
	if (atomic_fetch_add(&seen->handled, 1) < 10)
		saved.sa_sigaction(number, info, context);
}

static void chain_to_ours(void)
{
	struct sigaction action = {.sa_sigaction = chain, .sa_flags = SA_SIGINFO};

	WANT(sigaction(SIGTERM, &action, &saved) == 0);
}

static void chained(void)
{
	handle(SIGTERM, note, 0);
	session();
	chain_to_ours();
	inspect_end_disarm();
	WANT(inspect_end_open() == 0); /* the next session */
	inspect_end_arm(getpid());
	raise(SIGTERM);
	WANT(seen->handled == 2 && seen->flushes == 1);
}

static void chained_to_default(void)
{
	session();
	chain_to_ours();
	inspect_end_disarm();
	WANT(inspect_end_open() == 0);
	inspect_end_arm(getpid());
	raise(SIGTERM);
}

static void replaced(void)
{
	struct sigaction now;

	session();
	inspect_end_disarm();
	handle(SIGTERM, note, 0);
	WANT(inspect_end_open() == 0);
	inspect_end_arm(getpid());
	WANT(sigaction(SIGTERM, NULL, &now) == 0 && now.sa_handler == note);
	inspect_end_disarm();
	handle(SIGTERM, SIG_DFL, 0);
	WANT(inspect_end_open() == 0); /* default again: ours again */
	inspect_end_arm(getpid());
	raise(SIGTERM);
}

TEST("inspect end: a handler that the program installs later stays, and may call ours",
	"[inspect][inspect-end]")
{
	NEEDS_SIGNALS();
	REQUIRE(run(chained));
	CHECK(exited());
	REQUIRE(run(chained_to_default));
	CHECK(died_of(SIGTERM));
	CHECK_EQ(seen->handled, 1);
	CHECK_EQ(seen->finishes, 1);
	REQUIRE(run(replaced));
	CHECK(died_of(SIGTERM));
	CHECK_EQ(seen->finishes, 1);
}

/* ---- begin and stop ----------------------------------------------------------------------- */

static void in_stop(void)
{
	session();
	inspect_end_hold();
	inspect_end_disarm();
	raise(SIGTERM);
	raise(SIGINT);
	atomic_store(&seen->flag, true);
	inspect_end_release();
	WANT(!"reached");
}

static void in_begin(void)
{
	WANT(inspect_end_open() == 0);
	inspect_end_hold();
	raise(SIGTERM);
	(void)start(answer);
	wait_for(&seen->ready);
	inspect_end_arm(getpid());
	atomic_store(&seen->flag, true);
	inspect_end_release();
}

static void twice_in_stop(void)
{
	struct timespec later = {.tv_nsec = (INSPECT_END_AGAIN_MS + 10) * 1000000l};

	session();
	inspect_end_hold();
	inspect_end_disarm();
	raise(SIGINT);
	nanosleep(&later, NULL);
	raise(SIGINT);
	WANT(!"reached");
}

TEST("inspect end: a signal during begin or stop waits until that is done, a second Ctrl-C does "
     "not",
	"[inspect][inspect-end]")
{
	NEEDS_SIGNALS();
	REQUIRE(run(in_stop));
	CHECK(died_of(SIGTERM));
	CHECK(seen->flag);
	CHECK_EQ(seen->flushes, 0);
	REQUIRE(run(in_begin));
	CHECK(died_of(SIGTERM));
	CHECK(seen->flag);
	CHECK_EQ(seen->finishes, 1);
	REQUIRE(run(twice_in_stop));
	CHECK(died_of(SIGINT));
}

/* A stop that takes for ever. */
static void long_stop(void)
{
	struct timespec most = {.tv_sec = 60};

	session();
	inspect_end_hold();
	inspect_end_disarm();
	raise(SIGTERM);
	atomic_store(&seen->flag, true);
	while (nanosleep(&most, &most) < 0)
		;
	WANT(!"reached");
}

static void third_stop(void)
{
	sigset_t pending;

	session();
	for (int i = 0; i < 2; i++) {
		inspect_end_hold();
		inspect_end_release();
	}
	WANT(sigpending(&pending) == 0 && !sigismember(&pending, SIGTERM));
	inspect_end_hold();
	inspect_end_disarm();
	raise(SIGINT);
	atomic_store(&seen->flag, true);
	for (;;)
		pause();
}

TEST("inspect end: a signal waits for a begin or stop as long as the grace, no longer",
	"[inspect][inspect-end][slow]")
{
	NEEDS_SIGNALS();
	REQUIRE(run(long_stop));
	CHECK(died_of(SIGTERM));
	CHECK(seen->flag);
	REQUIRE(run(third_stop));
	CHECK(died_of(SIGINT));
	CHECK(seen->flag);
}

static void *is_hit(void *arg)
{
	atomic_store(&seen->other, (int)syscall(SYS_gettid));
	pthread_kill(pthread_self(), SIGTERM);
	return arg;
}

/* Does the other thread wait in its handler? */
static bool sleeps(int tid)
{
	char path[64], line[512] = "";
	char *end;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	f = fopen(path, "r");
	if (f && !fgets(line, sizeof(line), f))
		*line = 0;
	if (f)
		fclose(f);
	end = strrchr(line, ')');
	return end && end[2] == 'S';
}

static void stop_by_another(void)
{
	session();
	inspect_end_hold();
	inspect_end_disarm();
	(void)start(is_hit);
	while (seen->other == 0 || !sleeps(seen->other))
		(void)poll(NULL, 0, 1);
	atomic_store(&seen->flag, true);
	inspect_end_release();
	for (;;)
		pause();
}

TEST("inspect end: a signal waits for the stop of another thread", "[inspect][inspect-end]")
{
	NEEDS_SIGNALS();
	REQUIRE(run(stop_by_another));
	CHECK(died_of(SIGTERM));
	CHECK(seen->flag);
}

static void own_handler_in_stop(void)
{
	handle(SIGTERM, note, 0);
	session();
	inspect_end_hold();
	raise(SIGTERM); /* no waiting for itself */
	WANT(seen->handled == 1);
	inspect_end_disarm();
	raise(SIGTERM);
	WANT(seen->handled == 2);
	inspect_end_release();
	WANT(seen->flushes == 0);
}

TEST("inspect end: the program's handler comes at once during begin and stop",
	"[inspect][inspect-end]")
{
	NEEDS_SIGNALS();
	REQUIRE(run(own_handler_in_stop));
	CHECK(exited());
}

/* ---- children ----------------------------------------------------------------------------- */

static void kill_child(void)
{
	syscall(SYS_kill, (int)syscall(SYS_getpid), SIGTERM);
	_exit(1);
}

/* The child's signal has ended the child alone; this one's has its session finished. */
static void outlive(pid_t pid)
{
	int status;

	WANT(pid > 0 && waitpid(pid, &status, 0) == pid);
	WANT(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	WANT(seen->flushes == 0);
	raise(SIGTERM);
}

static void child_of(pid_t (*make)(void))
{
	pid_t pid;

	session();
	pid = make();
	if (pid == 0)
		kill_child();
	outlive(pid);
}

static pid_t bare_fork(void)
{
	return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

static void in_forked(void)
{
	child_of(fork);
}

static void in_cloned(void)
{
	child_of(bare_fork);
}

/* The parent waits, and they share the memory: also AddressSanitizer's notes of a stack that the child has left in the middle
 * of our handler, so not there. */
static void in_vforked(void)
{
	pid_t pid;

	session();
	pid = vfork();
	if (pid == 0)
		kill_child();
	outlive(pid);
}

TEST("inspect end: a child's signal is its own affair", "[inspect][inspect-end]")
{
	NEEDS_SIGNALS();
	static void (*const kinds[])(void) = {in_forked, in_cloned, in_vforked};

	for (size_t i = 0; i < (is_instrumented() ? 2 : 3); i++) {
		test_info("kind %zu", i);
		REQUIRE(run(kinds[i]));
		CHECK(died_of(SIGTERM));
		CHECK_EQ(seen->finishes, 1);
	}
}

/* The first one of a pid namespace survives what would end another process. */
static void as_first(void)
{
	int status;
	pid_t pid;

	if (unshare(CLONE_NEWPID) < 0)
		_exit(77);
	pid = fork();
	if (pid == 0) {
		session();
		raise(SIGTERM);
		raise(SIGTERM);
		WANT(getpid() == 1 && seen->flushes == 2 && seen->finishes == 0);
		_exit(0);
	}
	WANT(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
}

TEST("inspect end: the first process of a container survives SIGTERM, with its session",
	"[inspect][inspect-end]")
{
	NEEDS_SIGNALS();
	REQUIRE(run(as_first));
	if (WIFEXITED(gone) && WEXITSTATUS(gone) == 77)
		SKIP("pid namespaces");
	CHECK(exited());
}

/* ---- what stands in the way --------------------------------------------------------------- */

static void all_closed(void)
{
	session();
	WANT(syscall(SYS_close_range, 3, ~0u, 0) == 0);
	raise(SIGTERM);
}

TEST("inspect end: a program that has closed all descriptors is heard too",
	"[inspect][inspect-end]")
{
	NEEDS_SIGNALS();
	REQUIRE(run(all_closed));
	CHECK(died_of(SIGTERM));
	CHECK_EQ(seen->finishes, 1);
}

static int said_fd;

static void says(const char *level, bool expected)
{
	static const char text[] = "Interrupt signal (15) received. Saving profiling data so far; "
				   "the session goes on\n";
	char line[256] = "";

	WANT(dup2(said_fd, 1) == 1 && ftruncate(said_fd, 0) == 0);
	setenv("NEURON_RT_LOG_LEVEL", level, 1);
	log_configure();
	raise(SIGTERM);
	WANT(pread(said_fd, line, sizeof(line) - 1, 0) >= 0);
	WANT(expected ? !strcmp(line, text) : !*line);
	WANT(lseek(said_fd, 0, SEEK_SET) == 0);
}

static void spoken(void)
{
	handle(SIGTERM, note, 0);
	session();
	said_fd = memfd_create("said", MFD_CLOEXEC);
	says("INFO", true);
	says("WARN", false);
	inspect_end_disarm();
	says("INFO", false);
}

/* A pipe that is full. */
static void into_full_pipe(void)
{
	static const char zeros[4096];
	int fds[2];

	session();
	setenv("NEURON_RT_LOG_LEVEL", "INFO", 1);
	log_configure();
	WANT(pipe(fds) == 0 && fcntl(fds[1], F_SETFL, O_NONBLOCK) == 0);
	while (write(fds[1], zeros, sizeof(zeros)) > 0)
		;
	WANT(fcntl(fds[1], F_SETFL, 0) == 0 && dup2(fds[1], 1) == 1);
	raise(SIGTERM);
}

static void into_broken_pipe(void)
{
	int fds[2];

	session();
	setenv("NEURON_RT_LOG_LEVEL", "INFO", 1);
	log_configure();
	WANT(pipe(fds) == 0 && dup2(fds[1], 1) == 1 && close(fds[0]) == 0);
	raise(SIGTERM);
}

TEST("inspect end: the message is written at INFO, and never in the way", "[inspect][inspect-end]")
{
	NEEDS_SIGNALS();
	REQUIRE(run(spoken));
	CHECK(exited());
	REQUIRE(run(into_full_pipe));
	CHECK(died_of(SIGTERM));
	CHECK_EQ(seen->finishes, 1);
	REQUIRE(run(into_broken_pipe));
	CHECK(died_of(SIGTERM));
	CHECK_EQ(seen->finishes, 1);
}

/* ---- many --------------------------------------------------------------------------------- */

#define STORM_THREADS 4
#define STORM_SIGNALS 2000

static void *is_stormed(void *arg)
{
	while (!atomic_load(&seen->flag))
		(void)sched_yield();
	return arg;
}

/* While sessions come and go, and the stop of each is held. */
static void storm(void)
{
	pthread_t threads[STORM_THREADS];
	pid_t self = getpid(), sender;
	int status;

	handle(SIGTERM, note, 0);
	handle(SIGINT, note, SA_NODEFER);
	session();
	for (int i = 0; i < STORM_THREADS; i++)
		threads[i] = start(is_stormed);
	sender = fork();
	for (int i = 0; sender == 0 && i < STORM_SIGNALS; i++) {
		int before = seen->handled;

		kill(self, i % 3 ? SIGTERM : SIGINT);
		for (int k = 0; k < 1000 && seen->handled == before; k++)
			(void)sched_yield();
	}
	if (sender == 0)
		_exit(0);
	while (waitpid(sender, &status, WNOHANG) == 0) {
		inspect_end_hold();
		inspect_end_disarm();
		inspect_end_release();
		WANT(inspect_end_open() == 0);
		inspect_end_hold();
		inspect_end_arm(self);
		inspect_end_release();
		(void)sched_yield();
	}
	WANT(status == 0);
	atomic_store(&seen->flag, true);
	for (int i = 0; i < STORM_THREADS; i++)
		pthread_join(threads[i], NULL);
	WANT(seen->handled > 0 && seen->finishes == 0);
	raise(SIGTERM);
	WANT(seen->flushes > 0);
}

TEST("inspect end: a storm of signals on several threads while sessions come and go",
	"[inspect][inspect-end]")
{
	REQUIRE(run(storm));
	CHECK(exited());
}

static void *is_killed_often(void *arg)
{
	for (;;)
		pthread_kill(pthread_self(), SIGTERM);
	return arg;
}

static void storm_of_kills(void)
{
	unsigned long least = getauxval(AT_MINSIGSTKSZ);

	if (!is_instrumented())
		use_other_stack((least ? least : MINSIGSTKSZ) + 2048);
	session();
	for (int i = 0; i < STORM_THREADS; i++)
		(void)start(is_killed_often);
	for (;;) {
		raise(SIGTERM);
		raise(SIGINT);
	}
}

TEST("inspect end: many signals that all end the process finish the session once",
	"[inspect][inspect-end]")
{
	NEEDS_SIGNALS();
	REQUIRE(run(storm_of_kills));
	CHECK(died_of(SIGTERM) || died_of(SIGINT));
	CHECK_EQ(seen->finishes, 1);
}
