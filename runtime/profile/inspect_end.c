/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_end.c - the handlers of SIGINT and SIGTERM, and what they and the session's thread say to
 * each other.
 *
 * All of it is words: who asks counts `asked` up, who answers sets `flushed` to the count that it
 * saw, and whatever is waited for moves `changes`, a futex.  A futex and not a second eventfd,
 * because it needs no reset between waiters and no descriptor that the program could close.  The
 * eventfd only makes the thread look sooner than its tick.
 *
 * In a handler that ends the process both signals are blocked, so that a storm of them cannot nest
 * frames on a small stack; the second Ctrl-C is then taken from what is pending.
 */
#include "runtime/profile/inspect_end.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/kept_fd.h"
#include "runtime/base/put_number.h"
#include "runtime/lifecycle/state.h"
#include "runtime/log/log.h"
#include "runtime/profile/inspect.h"

#define TAG "NRT"
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define NS_PER_MS 1000000ull
#define LOOK_MS 50u /* how often a waiting handler looks for a second Ctrl-C */

static const struct sigaction by_default = {.sa_handler = SIG_DFL};

/* A signal, and the action that our handler replaced: written before `next` shows it, and only
 * while no handler uses it. */
static struct watched {
	int number;
	bool installed, had_handler;
	struct sigaction replaced;
	_Atomic(const struct sigaction *) next;
} watched[] = {
	{.number = SIGINT, .next = &by_default},
	{.number = SIGTERM, .next = &by_default},
};

static struct {
	_Atomic int owner;	  /* the process that all of this is for; 0: not open */
	_Atomic bool armed;	  /* a thread answers */
	_Atomic bool thread;	  /* the session's thread has files to make */
	_Atomic uint32_t holders; /* threads between hold and release */
	_Atomic uint32_t asked, taken, flushed;
	_Atomic bool finish_asked, finishing, finished; /* finishing: the thread has taken it */
	_Atomic bool poked;				/* the eventfd was written to */
	_Atomic uint32_t changes;  /* moves when a waiting handler shall look again */
	_Atomic uint64_t first_ns; /* when the first signal that ends the process came; 0: none */
} end;

static struct kept_fd ask = {.fd = -1};
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;

/* This thread stands between hold and release; the signal that waits for it. */
static __thread volatile sig_atomic_t holding __attribute__((tls_model("initial-exec")));
static __thread volatile sig_atomic_t deferred __attribute__((tls_model("initial-exec")));
/* The kernel's timers, one for each of the watched signals; -1: none. */
static __thread int limits[ARRAY_SIZE(watched)] __attribute__((tls_model("initial-exec")));

static struct watched *find(int number)
{
	struct watched *w = watched;

	while (w->number != number)
		w++;
	return w;
}

/* ---- words -------------------------------------------------------------------------------- */

static uint64_t now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

static void change(void)
{
	atomic_fetch_add(&end.changes, 1);
	(void)syscall(SYS_futex, &end.changes, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static void wait_for_change(uint32_t seen, uint64_t ns)
{
	const struct timespec most = {
		.tv_sec = (time_t)(ns / 1000000000ull), .tv_nsec = (long)(ns % 1000000000ull)};

	(void)syscall(SYS_futex, &end.changes, FUTEX_WAIT_PRIVATE, seen, &most, NULL, 0);
}

/* Not in the child of a vfork (another pid) nor of a fork. */
static bool is_ours(void)
{
	return atomic_load(&end.owner) == getpid() && state_now() != STATE_CHILD;
}

/* ---- asking ------------------------------------------------------------------------------- */

static uint32_t ask_for(enum inspect_end_ask what)
{
	const uint64_t one = 1;
	uint32_t ticket;

	if (what == INSPECT_END_FINISH)
		atomic_store(&end.finish_asked, true);
	ticket = atomic_fetch_add(&end.asked, 1) + 1;
	if (kept_fd_valid(&ask) && write(ask.fd, &one, sizeof(one)) > 0)
		atomic_store(&end.poked, true);
	return ticket;
}

static bool is_flushed(uint32_t ticket)
{
	return !atomic_load(&end.armed) || (int32_t)(atomic_load(&end.flushed) - ticket) >= 0;
}

static bool is_finished(void)
{
	return atomic_load(&end.holders) == 0 && !atomic_load(&end.finishing) &&
	       (!atomic_load(&end.armed) || atomic_load(&end.finished));
}

/* The thread has made the files, or cannot. */
static bool is_answered(void)
{
	return !atomic_load(&end.thread) || atomic_load(&end.finished);
}

/* Nothing to wait for, nobody to ask. */
static bool is_idle(void)
{
	return !atomic_load(&end.armed) && atomic_load(&end.holders) == 0 &&
	       !atomic_load(&end.finishing);
}

/* Is this, at that distance from the first signal, one that does not wait any more? */
static bool is_enough(int number, uint64_t first, uint64_t now)
{
	const uint64_t ms = number == SIGINT ? INSPECT_END_AGAIN_MS : INSPECT_END_GRACE_MS;

	return now >= first + ms * NS_PER_MS;
}

/* The time of the first signal that ends the process. */
static uint64_t first_signal(uint64_t now)
{
	uint64_t first = 0;

	return atomic_compare_exchange_strong(&end.first_ns, &first, now) ? now : first;
}

/* A wrapper that passes Ctrl-C on makes two of one: a pending one is taken back until it counts. */
static bool is_pressed_again(uint64_t first, uint64_t now)
{
	const struct timespec at_once = {0};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	return sigtimedwait(&set, NULL, &at_once) == SIGINT && is_enough(SIGINT, first, now);
}

static void wait_until_flushed(uint32_t ticket)
{
	const uint64_t until = now_ns() + INSPECT_END_GRACE_MS * NS_PER_MS;
	uint64_t now;

	for (;;) {
		uint32_t seen = atomic_load(&end.changes);

		if (is_flushed(ticket) || (now = now_ns()) >= until)
			return;
		wait_for_change(seen, until - now);
	}
}

static void wait_until(bool (*is_done)(void), uint64_t first)
{
	const uint64_t until = first + INSPECT_END_GRACE_MS * NS_PER_MS;
	uint64_t now;

	for (;;) {
		uint32_t seen = atomic_load(&end.changes);

		if (is_done() || (now = now_ns()) >= until || is_pressed_again(first, now))
			return;
		wait_for_change(seen,
			until - now < LOOK_MS * NS_PER_MS ? until - now : LOOK_MS * NS_PER_MS);
	}
}

/* ---- a limit for who begins or stops ------------------------------------------------------ */

/* A signal that waits for this thread's release comes again when the grace is over, and is then one
 * that does not wait any more.  Made before it is needed: a handler may only set it. */
static void limits_open(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(watched); i++) {
		struct sigevent again = {
			.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = watched[i].number};

		again._sigev_un._tid = (int)syscall(SYS_gettid);
		if (syscall(SYS_timer_create, CLOCK_MONOTONIC, &again, &limits[i]) < 0)
			limits[i] = -1;
	}
}

static void limits_close(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(watched); i++)
		if (limits[i] >= 0)
			(void)syscall(SYS_timer_delete, limits[i]);
}

static void defer(int number, uint64_t first)
{
	const uint64_t at = first + (INSPECT_END_GRACE_MS + 1) * NS_PER_MS;
	const struct itimerspec when = {.it_value = {.tv_sec = (time_t)(at / 1000000000ull),
						.tv_nsec = (long)(at % 1000000000ull)}};
	int limit = limits[find(number) - watched];

	deferred = number;
	if (limit >= 0)
		(void)syscall(SYS_timer_settime, limit, TIMER_ABSTIME, &when, NULL);
}

/* ---- the handler -------------------------------------------------------------------------- */

static void say(int number, bool ends)
{
	char line[128], *p = stpcpy(line, "Interrupt signal (");

	p = (char *)put_decimal((uint8_t *)p, (uint64_t)number);
	p = stpcpy(p, ends ? ") received. Finishing saving profiling data…\n"
			   : ") received. Saving profiling data so far; the session goes on\n");
	log_from_handler(LOG_LEVEL_INFO, TAG, line, (size_t)(p - line));
}

/* Does the default action end the process?  Not the first one of a pid namespace: there is nothing
 * to finish. */
static bool ends_process(const struct sigaction *next)
{
	return next->sa_handler == SIG_DFL && getpid() != 1;
}

/* True: the action has to wait for this thread's release. */
static bool save_before(int number, bool ends)
{
	const uint64_t now = now_ns(), first = ends ? first_signal(now) : now;
	bool armed = atomic_load(&end.armed);

	if (ends ? is_idle() : !armed) {
		atomic_store(&end.first_ns, 0);
		return false;
	}
	say(number, ends);
	if (first != now && is_enough(number, first, now))
		return false;
	if (holding) {
		if (ends && !deferred)
			defer(number, first);
		return ends;
	}
	if (!ends)
		wait_until_flushed(ask_for(INSPECT_END_FLUSH));
	else {
		if (armed)
			(void)ask_for(INSPECT_END_FINISH);
		wait_until(is_finished, first);
	}
	return false;
}

/* SA_RESETHAND of the one who is called: the next time it is the default. */
static const struct sigaction *take_next(struct watched *w)
{
	const struct sigaction *next = atomic_load(&w->next);

	while (next->sa_flags & SA_RESETHAND)
		if (atomic_compare_exchange_weak(&w->next, &next, &by_default))
			break;
	return next;
}

/* As if there had never been a handler.  It returns when the default action is nothing: in the
 * first process of a pid namespace. */
static void act_by_default(int number)
{
	struct sigaction before;
	sigset_t set, mask;

	sigemptyset(&set);
	sigaddset(&set, number);
	if (sigaction(number, &by_default, &before) < 0)
		return;
	(void)syscall(SYS_tgkill, getpid(), (int)syscall(SYS_gettid), number);
	(void)pthread_sigmask(SIG_UNBLOCK, &set, &mask);
	(void)sigaction(number, &before, NULL);
	(void)pthread_sigmask(SIG_SETMASK, &mask, NULL);
}

static void on_signal(int number, siginfo_t *info, void *context)
{
	const struct sigaction *next = take_next(find(number));
	int saved = errno;
	bool later = is_ours() && save_before(number, ends_process(next));

	errno = saved;
	if (later)
		return;
	if (next->sa_handler == SIG_DFL)
		act_by_default(number);
	else if (next->sa_flags & SA_SIGINFO)
		next->sa_sigaction(number, info, context);
	else
		next->sa_handler(number);
}

/* ---- installing --------------------------------------------------------------------------- */

static bool is_our_handler(const struct sigaction *a)
{
	return (a->sa_flags & SA_SIGINFO) && a->sa_sigaction == on_signal;
}

/* The program's handler finds what it asked for: its mask, its stack, whether system calls are
 * resumed. */
static struct sigaction action_before(const struct sigaction *next)
{
	struct sigaction ours = {.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};

	if (next->sa_handler == SIG_DFL) {
		for (size_t i = 0; i < ARRAY_SIZE(watched); i++)
			sigaddset(&ours.sa_mask, watched[i].number);
	} else {
		ours.sa_mask = next->sa_mask;
		ours.sa_flags =
			SA_SIGINFO | (next->sa_flags & (SA_ONSTACK | SA_RESTART | SA_NODEFER));
	}
	ours.sa_sigaction = on_signal;
	return ours;
}

/* Only the first time may a handler be replaced: one that is found later may have saved ours and
 * call it, and ours would call it, for ever.  Nor is the default action that follows upon a
 * program's handler: that one may be put back. */
static bool may_replace(const struct watched *w, const struct sigaction *now)
{
	if (now->sa_handler == SIG_IGN || is_our_handler(now))
		return false;
	return now->sa_handler == SIG_DFL ? !w->had_handler : !w->installed;
}

static int install(struct watched *w)
{
	struct sigaction now, ours, was;

	if (sigaction(w->number, NULL, &now) < 0)
		return -errno;
	if (!may_replace(w, &now))
		return 0;
	ours = action_before(&now);
	w->installed = true;
	w->had_handler = now.sa_handler != SIG_DFL;
	w->replaced = now;
	atomic_store(&w->next, w->had_handler ? &w->replaced : &by_default);
	if (sigaction(w->number, &ours, &was) < 0)
		return -errno;
	if (was.sa_handler != now.sa_handler) /* another thread was faster: it is the program's */
		(void)sigaction(w->number, &was, NULL);
	return 0;
}

/* What a forked child has from its parent is nothing to it. */
static void forget_parent(void)
{
	atomic_store(&end.armed, false);
	atomic_store(&end.thread, false);
	atomic_store(&end.holders, 0);
	atomic_store(&end.poked, false);
	atomic_store(&end.finishing, false);
	atomic_store(&end.taken, atomic_load(&end.asked));
	atomic_store(&end.first_ns, 0);
}

static int make_fd(void)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	kept_fd_close(&ask);
	return fd < 0 ? -errno : kept_fd_adopt(&ask, fd);
}

static int open_for(int self)
{
	int rc = 0;

	if (atomic_load(&end.owner) != self)
		forget_parent();
	else if (atomic_load(&end.armed))
		return 0;
	if (atomic_load(&end.owner) != self || !kept_fd_valid(&ask))
		rc = make_fd();
	for (size_t i = 0; i < ARRAY_SIZE(watched) && rc == 0; i++)
		rc = install(&watched[i]);
	if (rc == 0)
		atomic_store(&end.owner, self);
	return rc;
}

int inspect_end_open(void)
{
	int rc;

	pthread_mutex_lock(&opening);
	rc = open_for(getpid());
	pthread_mutex_unlock(&opening);
	return rc;
}

/* ---- the controller ----------------------------------------------------------------------- */

void inspect_end_arm(int pid)
{
	if (pid != atomic_load(&end.owner))
		return;
	atomic_store(&end.finish_asked, false);
	atomic_store(&end.finished, false);
	atomic_store(&end.armed, true);
}

void inspect_end_disarm(void)
{
	atomic_store(&end.armed, false);
	change();
}

void inspect_end_hold(void)
{
	limits_open();
	holding = 1;
	atomic_fetch_add(&end.holders, 1);
}

/* In this order a signal that comes in between waits, and is found. */
void inspect_end_release(void)
{
	int number;

	atomic_fetch_sub(&end.holders, 1);
	holding = 0;
	number = (int)deferred;
	deferred = 0;
	limits_close();
	change();
	if (number) {
		atomic_store(&end.first_ns, 0);
		(void)syscall(SYS_tgkill, getpid(), (int)syscall(SYS_gettid), number);
	}
}

/* ---- the session's thread ------------------------------------------------------------------- */

int inspect_end_ask_fd(void)
{
	return ask.fd;
}

enum inspect_end_ask inspect_end_asked(void)
{
	uint64_t pokes;
	uint32_t asked;

	if (atomic_exchange(&end.poked, false) && kept_fd_valid(&ask))
		(void)!read(ask.fd, &pokes, sizeof(pokes));
	asked = atomic_load(&end.asked);
	if (asked == atomic_load(&end.taken))
		return INSPECT_END_NONE;
	atomic_store(&end.taken, asked);
	if (!atomic_load(&end.finish_asked))
		return INSPECT_END_FLUSH;
	atomic_store(&end.finishing, true); /* before the session is disarmed by who ends it */
	return INSPECT_END_FINISH;
}

void inspect_end_thread(bool works)
{
	atomic_store(&end.thread, works);
	change();
}

void inspect_end_answer(enum inspect_end_ask done)
{
	if (done == INSPECT_END_FINISH) {
		atomic_store(&end.finished, true);
		atomic_store(&end.finishing, false);
	} else
		atomic_store(&end.flushed, atomic_load(&end.taken));
	change();
}

/* ---- exit --------------------------------------------------------------------------------- */

/* The thread may do what a call that holds its locks for ever cannot.  A stop that was interrupted
 * has told it to end, mostly: then it goes on by itself. */
static void finish_by_thread(void)
{
	(void)ask_for(INSPECT_END_FINISH);
	wait_until(holding ? is_answered : is_finished, now_ns());
}

static bool is_unfinished(void)
{
	return holding ? atomic_load(&end.thread) : !is_idle();
}

/*
 * A program that ends without nrt_close.  Its own destructors and functions of atexit have run by
 * now, with the session. When it exits in a signal handler that has interrupted one of our calls,
 * this is the end of that call too.
 */
__attribute__((destructor)) static void end_of_program(void)
{
	if (!is_ours() || is_idle())
		return;
	if (state_is_inside())
		finish_by_thread();
	else if (state_try_enter()) {
		(void)inspect_finish(REC_END_ASKED, true);
		api_leave();
	}
	if (is_unfinished())
		log_error(TAG,
			"The program exits in the middle of a call, and the session could not be "
			"finished: `ntrace salvage` makes its files from the recording in its "
			"directory");
}
