/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state.c - the state word, and the two doors of state.h.
 *
 * Both doors are words that are waited for with a futex, and not the C library's locks.  A mutex is locked
 * for ever in the child of a fork that happened during a change, and nothing tells; the door of changes
 * names a process that the child is not.  And no lock may be taken by a signal handler that has interrupted
 * its own thread in the middle of taking it; these words may.  (One child has its parent's number: that of a
 * pid 1 which forked into a pid namespace of its own during a change.  It waits for ever, as with a mutex.)
 *
 * A thread is marked before it goes through a door and until it is out again, so that a handler never finds
 * it half-way in without the mark.  While it is marked it cannot be cancelled: what it holds would be
 * held for ever.
 */
#include "runtime/lifecycle/state.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/log/log.h"

#define TAG "NRT"

static struct {
	_Atomic int state;
	_Atomic int changer;	/* pid of who changes the state, 0 = nobody */
	_Atomic uint32_t calls; /* in progress, and those about to find that they may not */
	_Atomic bool forks_watched;
} lib;

/* 1 once forks are watched.  The child of any fork finds 0 here, also of one that runs no handlers (_Fork): the page
 * is wiped there.  Where pages are larger the handler alone has to do. */
#define PAGE_BYTES 4096

static union {
	_Atomic uint32_t here;
	char page[PAGE_BYTES];
} ours __attribute__((aligned(PAGE_BYTES)));

/* This thread's: how many doors it stands in (a signal handler may add one), and whether it could be cancelled
 * before the first.  Volatile for the handler's sake. */
static __thread volatile unsigned doors __attribute__((tls_model("initial-exec")));
static __thread volatile int cancel_before __attribute__((tls_model("initial-exec")));

/* ---- states ------------------------------------------------------------------------------- */

enum lib_state state_now(void)
{
	return atomic_load(&lib.forks_watched) && !atomic_load(&ours.here)
		       ? STATE_CHILD
		       : (enum lib_state)atomic_load(&lib.state);
}

void state_set(enum lib_state state)
{
	atomic_store(&lib.state, (int)state);
}

const char *state_name(enum lib_state state)
{
	static const char *const names[] = {
		"NRT_STATE_START", "NRT_STATE_INIT", "NRT_STATE_CHILD", "NRT_STATE_CLOSED"};

	return names[state];
}

static void become_child(void)
{
	state_set(STATE_CHILD);
}

int state_watch_forks(void)
{
	int rc;

	if (atomic_load(&lib.forks_watched))
		return 0;
	rc = pthread_atfork(NULL, NULL, become_child);
	if (rc)
		return rc;
	(void)madvise(&ours, sizeof(ours), MADV_WIPEONFORK);
	atomic_store(&ours.here, 1);
	atomic_store(&lib.forks_watched, true);
	return 0;
}

/* ---- waiting, and marking a thread --------------------------------------------------------- */

static void wait_while(void *word, uint32_t value)
{
	(void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void wake_one(void *word)
{
	(void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* A handler between any two instructions of these leaves both words as it found them, or unused.  The log is
 * told of a call while the thread is marked, so it hears of the outermost one alone. */
static void mark_thread(const char *call)
{
	int before;

	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	if (doors++ == 0) {
		cancel_before = before;
		log_api_begin(call);
	}
}

static void unmark_thread(void)
{
	int before = cancel_before;

	if (doors == 1)
		log_api_end();
	if (--doors == 0)
		(void)pthread_setcancelstate(before, NULL);
}

bool state_is_inside(void)
{
	return doors != 0;
}

void state_thread_belongs(void)
{
	mark_thread(NULL);
}

/* ---- refusals ----------------------------------------------------------------------------- */

static NRT_STATUS refuse(enum lib_state state, const char *call)
{
	switch (state) {
	case STATE_START:
		log_write(LOG_LEVEL_ERROR, TAG, call, "NRT uninitialized");
		return NRT_UNINITIALIZED;
	case STATE_CLOSED:
		log_write(LOG_LEVEL_WARN, TAG, call, "NRT already closed");
		return NRT_CLOSED;
	default:
		log_write(LOG_LEVEL_ERROR, TAG, call, "Incompatible runtime state: %s",
			state_name(state));
		return NRT_FAILURE;
	}
}

/* Marked, so that the call of a handler that interrupts this is not taken for the outermost one. */
NRT_STATUS state_refuse(enum lib_state state, const char *call)
{
	NRT_STATUS status;

	mark_thread(call);
	status = refuse(state, call);
	unmark_thread();
	return status;
}

/* ---- the door of calls -------------------------------------------------------------------- */

static bool try_enter(const char *call)
{
	if (state_now() != STATE_INIT)
		return false;
	mark_thread(call);
	atomic_fetch_add(&lib.calls, 1);
	if (state_now() == STATE_INIT)
		return true;
	api_leave();
	return false;
}

bool state_try_enter(void)
{
	return try_enter(NULL);
}

NRT_STATUS api_enter(const char *call)
{
	enum lib_state state;

	while (!try_enter(call)) {
		state = state_now();
		if (state != STATE_INIT) /* else somebody initialised meanwhile */
			return state_refuse(state, call);
	}
	return NRT_SUCCESS;
}

void api_leave(void)
{
	/* Whoever drains has set the state before it looked at the number. */
	if (atomic_fetch_sub(&lib.calls, 1) == 1 && state_now() != STATE_INIT)
		wake_one(&lib.calls);
	unmark_thread();
}

void state_calls_drain(void)
{
	uint32_t calls;

	while ((calls = atomic_load(&lib.calls)) != 0)
		wait_while(&lib.calls, calls);
}

/* ---- the door of changes ------------------------------------------------------------------ */

static NRT_STATUS refuse_reentry(const char *call)
{
	log_write(LOG_LEVEL_ERROR, TAG, call,
		"Called by a thread that is inside of the library already (from a signal "
		"handler or a callback?)");
	return NRT_FAILURE;
}

static NRT_STATUS refuse_child(const char *call)
{
	become_child();
	return state_refuse(STATE_CHILD, call);
}

NRT_STATUS state_change_begin(const char *call)
{
	int self = getpid(), holder = atomic_load(&lib.changer);

	if (holder && holder != self)
		return refuse_child(call);
	if (doors)
		return refuse_reentry(call);
	mark_thread(call);
	while (holder = 0, !atomic_compare_exchange_strong(&lib.changer, &holder, self)) {
		if (holder != self) {
			unmark_thread();
			return refuse_child(call);
		}
		wait_while(&lib.changer, (uint32_t)holder);
	}
	return NRT_SUCCESS;
}

void state_change_end(void)
{
	atomic_store(&lib.changer, 0);
	wake_one(&lib.changer);
	unmark_thread();
}
