/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_end_test.c - the handlers of SIGINT and SIGTERM of an inspect session: the action that follows, and what the program's
 * own handler finds.
 */
#include "tests/unit/inspect_end_fixture.h"

/* ---- the default action ------------------------------------------------------------------- */

static void killed(void)
{
	session();
	raise(SIGTERM);
	WANT(!"reached");
}

static void interrupted(void)
{
	session();
	raise(SIGINT);
	WANT(!"reached");
}

TEST("inspect end: a signal's default action waits for the session to finish and ends the process "
     "as "
     "it would have",
	"[inspect][inspect-end]")
{
	NEEDS_SIGNALS();
	REQUIRE(run(killed));
	CHECK(died_of(SIGTERM));
	CHECK_EQ(seen->flushes, 1);
	CHECK_EQ(seen->finishes, 1);
	REQUIRE(run(interrupted));
	CHECK(died_of(SIGINT));
	CHECK_EQ(seen->finishes, 1);
}

static void without_session(void)
{
	session();
	inspect_end_disarm();
	raise(SIGTERM);
}

TEST("inspect end: without a session the default action comes at once", "[inspect][inspect-end]")
{
	NEEDS_SIGNALS();
	REQUIRE(run(without_session));
	CHECK(died_of(SIGTERM));
	CHECK_EQ(seen->flushes, 0);
}

static void hangs(void)
{
	session();
	atomic_store(&seen->hang, true);
	raise(SIGTERM);
}

TEST("inspect end: a thread that never answers is waited for as long as the grace, no longer",
	"[inspect][inspect-end]")
{
	NEEDS_SIGNALS();
	REQUIRE(run(hangs));
	CHECK(died_of(SIGTERM));
	CHECK_EQ(seen->finishes, 0);
}

static void *take_interrupt(void *arg)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	atomic_store(&seen->other, (int)syscall(SYS_gettid));
	atomic_store(&seen->flag, true);
	for (;;)
		pause();
	return arg;
}

/* Meanwhile the thread waits in the handler of the first; the other one comes to the second. */
static void twice_in_threads(void)
{
	struct timespec later = {.tv_nsec = (INSPECT_END_AGAIN_MS + 100) * 1000000l};
	sigset_t set;
	pid_t child, self = getpid();

	session();
	atomic_store(&seen->hang, true);
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	(void)start(take_interrupt);
	wait_for(&seen->flag);
	child = fork();
	if (child == 0) {
		nanosleep(&later, NULL);
		syscall(SYS_tgkill, self, seen->other, SIGINT);
		_exit(0);
	}
	raise(SIGTERM);
}

static void twice_alone(void)
{
	struct timespec later = {.tv_nsec = (INSPECT_END_AGAIN_MS + 100) * 1000000l};
	pid_t self = getpid();

	session();
	atomic_store(&seen->hang, true);
	if (fork() == 0) {
		nanosleep(&later, NULL);
		kill(self, SIGINT);
		_exit(0);
	}
	raise(SIGINT);
}

TEST("inspect end: a second Ctrl-C ends the wait", "[inspect][inspect-end]")
{
	NEEDS_SIGNALS();
	REQUIRE(run(twice_in_threads));
	CHECK(died_of(SIGINT)); /* and not of the SIGTERM that waited */
	REQUIRE(run(twice_alone));
	CHECK(died_of(SIGINT));
}

static void twice_at_once(void)
{
	sigset_t set;

	session();
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	syscall(SYS_tgkill, getpid(), (int)syscall(SYS_gettid), SIGINT);
	kill(getpid(), SIGINT);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

TEST("inspect end: a Ctrl-C that a wrapper has doubled does not end the wait",
	"[inspect][inspect-end]")
{
	NEEDS_SIGNALS();
	REQUIRE(run(twice_at_once));
	CHECK(died_of(SIGINT));
	CHECK_EQ(seen->finishes, 1);
}

/* ---- the program's own handler ------------------------------------------------------------ */

static void note_info(int number, siginfo_t *info, void *context)
{
	note(number);
	atomic_store(&seen->value, info->si_value.sival_int);
	atomic_store(&seen->flag, context != NULL);
}

static void with_handler(void)
{
	struct sigaction action = {.sa_sigaction = note_info, .sa_flags = SA_SIGINFO};

	WANT(sigaction(SIGTERM, &action, NULL) == 0);
	session();
	errno = EDOM;
	WANT(sigqueue(getpid(), SIGTERM, (union sigval){.sival_int = 4711}) == 0);
	WANT(errno == EDOM);
	WANT(seen->handled == 1 && seen->value == 4711 && seen->flag && seen->error == EDOM);
	WANT(seen->flushes == 1);
	raise(SIGTERM);
	WANT(seen->handled == 2 && seen->flushes == 2 && seen->finishes == 0);
}

TEST("inspect end: the program's own handler is called with its arguments after a flush, and the "
     "session goes on",
	"[inspect][inspect-end]")
{
	NEEDS_SIGNALS();
	REQUIRE(run(with_handler));
	CHECK(exited());
}

static void ignores(void)
{
	struct sigaction now;

	signal(SIGINT, SIG_IGN);
	session();
	raise(SIGINT);
	WANT(sigaction(SIGINT, NULL, &now) == 0 && now.sa_handler == SIG_IGN);
	WANT(seen->flushes == 0);
}

TEST("inspect end: an ignored signal stays ignored", "[inspect][inspect-end]")
{
	NEEDS_SIGNALS();
	REQUIRE(run(ignores));
	CHECK(exited());
}

static void reset(void)
{
	handle(SIGTERM, note, (int)SA_RESETHAND);
	session();
	raise(SIGTERM);
	WANT(seen->handled == 1 && seen->finishes == 0);
	raise(SIGTERM);
	WANT(!"reached");
}

TEST("inspect end: a handler that is wanted once is followed by the default action",
	"[inspect][inspect-end]")
{
	NEEDS_SIGNALS();
	REQUIRE(run(reset));
	CHECK(died_of(SIGTERM));
	CHECK_EQ(seen->handled, 1);
	CHECK_EQ(seen->finishes, 1);
}

static int depth, deepest;

static void nest(int number)
{
	deepest = ++depth > deepest ? depth : deepest;
	if (atomic_fetch_add(&seen->handled, 1) == 0)
		raise(number);
	depth--;
}

static void look_at_mask(int number)
{
	sigset_t now;

	(void)number;
	pthread_sigmask(SIG_BLOCK, NULL, &now);
	atomic_store(&seen->value, sigismember(&now, SIGUSR1) | sigismember(&now, SIGTERM) << 1 |
					   sigismember(&now, SIGINT) << 2);
}

static void flags(void)
{
	struct sigaction masked = {.sa_handler = look_at_mask};

	sigaddset(&masked.sa_mask, SIGUSR1);
	handle(SIGINT, nest, SA_NODEFER);
	WANT(sigaction(SIGTERM, &masked, NULL) == 0);
	session();
	raise(SIGINT);
	WANT(deepest == 2);
	raise(SIGTERM);
	WANT(seen->value == 3); /* SIGUSR1 and itself, not SIGINT */
}

static void not_nested(void)
{
	handle(SIGINT, nest, 0);
	session();
	raise(SIGINT);
	WANT(deepest == 1 && seen->handled == 2);
}

TEST("inspect end: the program's handler has the signals blocked that it asked for",
	"[inspect][inspect-end]")
{
	NEEDS_SIGNALS();
	REQUIRE(run(flags));
	CHECK(exited());
	REQUIRE(run(not_nested));
	CHECK(exited());
}

static int pipe_fds[2];

static void *interrupt_reader(void *main_thread)
{
	/* The read is found by its system call's number in /proc. */
	char path[64], line[64];

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", (int)getpid());
	for (bool reads = false; !reads;) {
		FILE *f = fopen(path, "r");

		reads = f && fgets(line, sizeof(line), f) && atoi(line) == SYS_read && *line == '0';
		if (f)
			fclose(f);
	}
	pthread_kill(*(pthread_t *)main_thread, SIGTERM);
	while (seen->handled == 0)
		(void)poll(NULL, 0, 1);
	(void)!write(pipe_fds[1], "x", 1);
	return NULL;
}

static ssize_t read_interrupted(int restart)
{
	pthread_t self = pthread_self(), other;
	ssize_t n;
	char c;

	handle(SIGTERM, note, restart);
	session();
	WANT(pipe(pipe_fds) == 0);
	WANT(pthread_create(&other, NULL, interrupt_reader, &self) == 0);
	n = read(pipe_fds[0], &c, 1);
	if (n < 0)
		n = -errno;
	pthread_join(other, NULL);
	return n;
}

static void resumes(void)
{
	WANT(read_interrupted(SA_RESTART) == 1);
}

static void does_not_resume(void)
{
	WANT(read_interrupted(0) == -EINTR);
}

TEST("inspect end: system calls are resumed as the program's handler asked for",
	"[inspect][inspect-end]")
{
	NEEDS_SIGNALS();
	if (access("/proc/self/syscall", R_OK) < 0)
		SKIP("/proc/self/syscall");
	REQUIRE(run(resumes));
	CHECK(exited());
	REQUIRE(run(does_not_resume));
	CHECK(exited());
}

/* ---- stacks ------------------------------------------------------------------------------- */

static void note_stack(int number)
{
	char here;

	(void)number;
	atomic_store(&seen->flag, &here >= other_stack && &here < other_stack + stack_bytes);
}

static void on_other_stack(void)
{
	use_other_stack(65536);
	handle(SIGTERM, note_stack, SA_ONSTACK);
	session();
	raise(SIGTERM);
	WANT(seen->flag);
}

static void on_usual_stack(void)
{
	use_other_stack(65536);
	handle(SIGTERM, note_stack, 0);
	atomic_store(&seen->flag, true);
	session();
	raise(SIGTERM);
	WANT(!seen->flag);
}

TEST("inspect end: the program's handler runs on the stack that it asked for",
	"[inspect][inspect-end]")
{
	NEEDS_SIGNALS();
	REQUIRE(run(on_other_stack));
	CHECK(exited());
	REQUIRE(run(on_usual_stack));
	CHECK(exited());
}

/* What the kernel puts there, and 2 KiB. */
static void on_small_stack(void)
{
	unsigned long least = getauxval(AT_MINSIGSTKSZ);
	int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);

	WANT(nowhere >= 0 && dup2(nowhere, 1) == 1);
	setenv("NEURON_RT_LOG_LEVEL", "INFO", 1);
	log_configure();
	use_other_stack((least ? least : MINSIGSTKSZ) + 2048);
	session();
	raise(SIGTERM);
}

TEST("inspect end: the handler needs less than 2 KiB of stack", "[inspect][inspect-end]")
{
	NEEDS_SIGNALS();
	if (is_instrumented())
		SKIP("a build without sanitizer");
	REQUIRE(run(on_small_stack));
	CHECK(died_of(SIGTERM));
	CHECK_EQ(seen->finishes, 1);
}
