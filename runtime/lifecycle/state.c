/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state.c - the state word, and the two doors of state.h.
 *
 * The door of changes is a word with the pid of its holder, waited for with a futex.  A mutex would
 * not do: in the child of a fork that happened during a change it is locked for ever, and nothing tells.
 * Here the word names a process that the child is not.
 */
#include "runtime/lifecycle/state.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/log/log.h"

#define TAG "NRT"

static struct {
	_Atomic int state;
	_Atomic int changer;	 /* pid of who changes the state, 0 = nobody */
	pthread_rwlock_t inside; /* read: calls in progress */
	bool forks_watched;
} lib = {.inside = PTHREAD_RWLOCK_INITIALIZER};

/* This thread's: calls that it is in (a signal handler may add one), and whether it is the changer. */
static __thread unsigned calls_inside __attribute__((tls_model("initial-exec")));
static __thread bool changing __attribute__((tls_model("initial-exec")));

/* ---- states ------------------------------------------------------------------------------- */

enum lib_state state_now(void)
{
	return (enum lib_state)atomic_load(&lib.state);
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

NRT_STATUS state_refuse(enum lib_state state, const char *call)
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

static void become_child(void)
{
	state_set(STATE_CHILD);
}

int state_watch_forks(void)
{
	int rc = lib.forks_watched ? 0 : pthread_atfork(NULL, NULL, become_child);

	lib.forks_watched = rc == 0;
	return rc;
}

/* ---- the door of calls -------------------------------------------------------------------- */

bool state_try_enter(void)
{
	if (state_now() != STATE_INIT)
		return false;
	pthread_rwlock_rdlock(&lib.inside);
	if (state_now() == STATE_INIT) {
		calls_inside++;
		return true;
	}
	pthread_rwlock_unlock(&lib.inside);
	return false;
}

NRT_STATUS api_enter(const char *call)
{
	enum lib_state state;

	while (!state_try_enter()) {
		state = state_now();
		if (state != STATE_INIT) /* else somebody initialised meanwhile */
			return state_refuse(state, call);
	}
	return NRT_SUCCESS;
}

void api_leave(void)
{
	calls_inside--;
	pthread_rwlock_unlock(&lib.inside);
}

void state_calls_drain(void)
{
	pthread_rwlock_wrlock(&lib.inside);
}

void state_calls_resume(void)
{
	pthread_rwlock_unlock(&lib.inside);
}

/* ---- the door of changes ------------------------------------------------------------------ */

static NRT_STATUS refuse_reentry(const char *call)
{
	log_write(LOG_LEVEL_ERROR, TAG, call,
		"Called by a thread that is inside of the library already (from a signal "
		"handler?)");
	return NRT_FAILURE;
}

NRT_STATUS state_change_begin(const char *call)
{
	int self = getpid(), holder = 0;

	while (!atomic_compare_exchange_strong(&lib.changer, &holder, self)) {
		if (holder != self) {
			become_child();
			return state_refuse(STATE_CHILD, call);
		}
		if (changing || calls_inside)
			return refuse_reentry(call);
		(void)syscall(SYS_futex, &lib.changer, FUTEX_WAIT_PRIVATE, holder, NULL, NULL, 0);
		holder = 0;
	}
	if (calls_inside) {
		state_change_end();
		return refuse_reentry(call);
	}
	changing = true;
	return NRT_SUCCESS;
}

void state_change_end(void)
{
	changing = false;
	atomic_store(&lib.changer, 0);
	(void)syscall(SYS_futex, &lib.changer, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
