/* SPDX-License-Identifier: Apache-2.0 */
/*
 * helper.c - a process between the program and the helper: the keeper.
 *
 * A helper that is the program's own child would send it SIGCHLD and be found by its wait(-1), and one that is given
 * away to init stays a zombie in a container whose first process reaps nobody.  So the keeper is forked without a
 * signal for its end: such a child the kernel shows to a wait with __WCLONE (or __WALL) alone.  (Exec would make an
 * ordinary child of it, thus it never does one.)  It forks the helper, waits, kills it when the time is over, and
 * leaves a note in a page that it shares with the program.
 *
 * The program may have threads, so keeper and helper make nothing but system calls before exec.  They are made with
 * clone and not with fork: handlers of pthread_atfork are the program's, and may wait for locks.  Not with vfork:
 * the calling thread could then not handle signals until the helper ends.  What that costs is a copy of the page
 * tables, after a failure.
 */
#include "runtime/lifecycle/helper.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SIGNAL_SET_BYTES 8 /* as the kernel has it */
#define SIGNALS 64
#define GRACE_MS (HELPER_GRACE_MS / 2) /* for what was killed to go; then it is left to init */
#define LOOK_MS 20 /* between two looks, where nothing tells of the keeper's end */

/* What keeper and helper tell the program. */
struct note {
	volatile int exec_errno; /* of the helper */
	volatile int fork_errno; /* of the keeper */
	volatile int wait_status;
	volatile pid_t helper; /* and its group; 0: there is none yet */
	volatile bool ended, timed_out;
};

struct run {
	char *const *argv;
	char **env;
	uint64_t limit_ms;
	struct note *note;
};

static void leave(void) __attribute__((noreturn));
static void leave(void)
{
	for (;;)
		(void)syscall(SYS_exit_group, 0);
}

/* A fork without the C library's part of it; 0 in the child. */
static pid_t plain_fork(unsigned long end_signal)
{
	return (pid_t)syscall(SYS_clone, end_signal, NULL, NULL, NULL, NULL);
}

/* The number that a name of /proc/self/fd is; -1: none. */
static int number_of(const char *name)
{
	int n = 0;

	for (; *name >= '0' && *name <= '9'; name++)
		n = n * 10 + (*name - '0');
	return *name ? -1 : n;
}

static void close_below(unsigned first, unsigned end)
{
	for (; first < end; first++)
		(void)syscall(SYS_close, first);
}

/* As the kernel lists them; without /proc all that could be open, at most so many. */
#define MOST_DESCRIPTORS (1u << 20)
static void close_listed(unsigned first)
{
	int dir = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY, 0);
	char entries[4096] __attribute__((aligned(8)));
	struct rlimit limit = {MOST_DESCRIPTORS, 0};
	long size;

	if (dir < 0) {
		(void)syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, &limit);
		close_below(first, limit.rlim_cur < MOST_DESCRIPTORS ? (unsigned)limit.rlim_cur
								     : MOST_DESCRIPTORS);
		return;
	}
	while ((size = syscall(SYS_getdents64, dir, entries, sizeof(entries))) > 0) {
		for (long at = 0; at < size;) {
			const struct dirent64 *e = (const struct dirent64 *)(entries + at);
			int fd = number_of(e->d_name);

			if (fd >= (int)first && fd != dir)
				(void)syscall(SYS_close, fd);
			at += e->d_reclen;
		}
	}
	if (dir >= (int)first)
		(void)syscall(SYS_close, dir);
}

/* Kernels before 5.9, and filters of system calls, do not know the one call. */
static void close_from(unsigned first)
{
	if (syscall(SYS_close_range, first, ~0u, 0) != 0)
		close_listed(first);
}

/* ---- the helper --------------------------------------------------------------------------- */

/* A helper without a keeper has nobody who ends it in time. */
static void die_with(pid_t keeper)
{
	(void)syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (syscall(SYS_getppid) != keeper)
		leave();
}

/* What the program reads is not for it. */
static void read_nothing(void)
{
	int fd = (int)syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDONLY, 0);

	if (fd == STDIN_FILENO)
		return;
	if (fd < 0) {
		(void)syscall(SYS_close, STDIN_FILENO);
		return;
	}
	(void)syscall(SYS_dup3, fd, STDIN_FILENO, 0);
	(void)syscall(SYS_close, fd);
}

static void become_helper(const struct run *r, pid_t keeper) __attribute__((noreturn));
static void become_helper(const struct run *r, pid_t keeper)
{
	static const char
		zeros[64]; /* the kernel's sigaction of SIG_DFL, and a set without a signal */

	die_with(keeper);
	(void)syscall(SYS_setsid);
	close_from(3);
	read_nothing();
	for (int i = 1; i <= SIGNALS; i++) /* two cannot be set, and need not */
		(void)syscall(SYS_rt_sigaction, i, zeros, NULL, SIGNAL_SET_BYTES);
	(void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, zeros, NULL, SIGNAL_SET_BYTES);
	(void)execve(r->argv[0], r->argv, r->env);
	r->note->exec_errno = errno;
	leave();
}

/* ---- the keeper --------------------------------------------------------------------------- */

static uint64_t now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Waits for the helper until then.  SIGCHLD is blocked, so none is missed between the look and the sleep. */
static bool ended_by(pid_t helper, uint64_t until_ms, struct note *note)
{
	const uint64_t child = 1ull << (SIGCHLD - 1);
	int status;

	for (;;) {
		uint64_t now = now_ms(), left = until_ms > now ? until_ms - now : 0;
		struct timespec sleep = {(time_t)(left / 1000), (long)(left % 1000 * 1000000)};

		if (syscall(SYS_wait4, helper, &status, WNOHANG, NULL) == helper) {
			note->wait_status = status;
			note->ended = true;
			return true;
		}
		if (left == 0)
			return false;
		(void)syscall(SYS_rt_sigtimedwait, &child, NULL, &sleep, SIGNAL_SET_BYTES);
	}
}

static void keep(const struct run *r) __attribute__((noreturn));
static void keep(const struct run *r)
{
	static const char zeros[64];
	uint64_t until = now_ms() + r->limit_ms;
	pid_t self = (pid_t)syscall(SYS_getpid), helper;

	/* Where the program ignores it the kernel would reap the helper. */
	(void)syscall(SYS_rt_sigaction, SIGCHLD, zeros, NULL, SIGNAL_SET_BYTES);
	helper = plain_fork(SIGCHLD);
	if (helper == 0)
		become_helper(r, self);
	if (helper < 0) {
		r->note->fork_errno = errno;
		leave();
	}
	r->note->helper = helper;
	close_from(0); /* pipes that others wait at for their end, for one */
	if (!ended_by(helper, until, r->note)) {
		r->note->timed_out = true;
		(void)syscall(SYS_kill, -helper, SIGKILL);
		(void)syscall(SYS_kill, helper, SIGKILL);
		(void)ended_by(helper, now_ms() + GRACE_MS, r->note);
	}
	leave();
}

/* ---- the program -------------------------------------------------------------------------- */

/* The keeper watches its own time.  It is killed when it could not, being stopped for instance. */
static void await_keeper(pid_t keeper, uint64_t limit_ms)
{
	int fd = (int)syscall(SYS_pidfd_open, keeper, 0); /* -1: poll is but a sleep */
	int longest = fd < 0 ? LOOK_MS : 1000;
	struct pollfd end = {.fd = fd, .events = POLLIN};
	uint64_t until = now_ms() + limit_ms, now;
	pid_t gone;

	while ((gone = waitpid(keeper, NULL, __WCLONE | WNOHANG)) == 0 && (now = now_ms()) < until)
		(void)poll(&end, 1, until - now < (uint64_t)longest ? (int)(until - now) : longest);
	if (fd >= 0)
		(void)close(fd);
	if (gone != 0)
		return;
	(void)kill(keeper, SIGKILL);
	while (waitpid(keeper, NULL, __WCLONE) < 0 && errno == EINTR)
		;
}

/* The helper has died with its keeper, but what it has started may be there: its group has the number of its own pid,
 * which nobody else gets so soon. */
static void end_group(const struct note *n)
{
	if (!n->ended && !n->timed_out && n->helper > 0)
		(void)kill(-n->helper, SIGKILL);
}

static struct helper_end end_of(const struct note *n)
{
	if (n->timed_out)
		return (struct helper_end){HELPER_KILLED, 0};
	if (n->exec_errno || n->fork_errno)
		return (struct helper_end){
			HELPER_NOT_RUN, n->exec_errno ? n->exec_errno : n->fork_errno};
	if (!n->ended)
		return (struct helper_end){HELPER_UNKNOWN, 0};
	if (WIFSIGNALED(n->wait_status))
		return (struct helper_end){HELPER_DIED, WTERMSIG(n->wait_status)};
	return (struct helper_end){HELPER_EXITED, WEXITSTATUS(n->wait_status)};
}

static struct helper_end run_with(const struct run *r)
{
	sigset_t all, before;
	pid_t keeper;
	int error;

	/* No handler of the program's may run in the keeper. */
	sigfillset(&all);
	(void)pthread_sigmask(SIG_BLOCK, &all, &before);
	keeper = plain_fork(0);
	if (keeper == 0)
		keep(r);
	error = errno;
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (keeper < 0)
		return (struct helper_end){HELPER_NOT_RUN, error};
	await_keeper(keeper, r->limit_ms + HELPER_GRACE_MS);
	end_group(r->note);
	return end_of(r->note);
}

struct helper_end helper_run(char *const argv[], uint64_t limit_ms)
{
	struct run r = {.argv = argv, .env = environ, .limit_ms = limit_ms};
	struct helper_end end;

	r.note = mmap(
		NULL, sizeof(*r.note), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (r.note == MAP_FAILED)
		return (struct helper_end){HELPER_NOT_RUN, errno};
	end = run_with(&r);
	(void)munmap(r.note, sizeof(*r.note));
	return end;
}
