/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collector.c - who subscribes to which core, and the thread that empties all rings.
 *
 * Locks, in this order: `life`, for opening and closing, held as long as that takes; `lock`, for the table of cores, held by
 * the thread while it goes through the rings; `gate` of a core, for the taps of executions; those of collector_parts.h.
 * The thread would take `lock` again at once as long as records come, so who wants it says so and is let in first.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/last_thread.h"
#include "runtime/device/simulate.h"
#include "runtime/lifecycle/runtime.h"
#include "runtime/log/log.h"
#include "runtime/profile/collector_parts.h"
#include "runtime/profile/collector_tap.h"

#define TAG "NMGR"
#define IDLE_MS 1u

static struct slot {
	pthread_mutex_t gate;
	struct collector_core *core; /* under lock and gate */
	struct pieces_account account;
} slots[CORES_MAX] = {[0 ... CORES_MAX - 1] = {.gate = PTHREAD_MUTEX_INITIALIZER}};

static pthread_mutex_t life = PTHREAD_MUTEX_INITIALIZER;
/* Under life: */
static uint32_t open_cores;
static pthread_t thread;
static bool thread_runs;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake; /* of the thread; CLOCK_MONOTONIC */
static pthread_once_t wake_once = PTHREAD_ONCE_INIT;
static _Atomic uint32_t wanting; /* the lock */
static bool stop;		 /* under lock */

static void make_wake(void)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&wake, &attr);
	pthread_condattr_destroy(&attr);
}

static void change_begin(void)
{
	atomic_fetch_add(&wanting, 1);
	pthread_mutex_lock(&lock);
}

static void change_end(void)
{
	atomic_fetch_sub(&wanting, 1);
	pthread_cond_signal(&wake);
	pthread_mutex_unlock(&lock);
}

/* ---- the thread --------------------------------------------------------------------------- */

static bool drain_all(void)
{
	bool any = false;

	for (uint32_t i = 0; i < CORES_MAX; i++)
		if (slots[i].core)
			any |= collector_core_drain(slots[i].core);
	return any;
}

static void *drain(void *arg)
{
	state_thread_belongs();
	last_thread_rests(); /* profiles are taken of what others do */
	pthread_mutex_lock(&lock);
	while (!stop) {
		bool busy = drain_all();

		if (atomic_load(&wanting)) {
			pthread_cond_wait(&wake, &lock);
		} else if (!busy) {
			struct timespec until = clock_in_ms(CLOCK_MONOTONIC, IDLE_MS);

			(void)pthread_cond_timedwait(&wake, &lock, &until);
		}
	}
	pthread_mutex_unlock(&lock);
	last_thread_works();
	return arg;
}

static int start_thread(void)
{
	sigset_t all, old;
	int rc;

	if (thread_runs)
		return 0;
	pthread_once(&wake_once, make_wake);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = -pthread_create(&thread, NULL, drain, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	thread_runs = rc == 0;
	return rc;
}

static void stop_thread(void)
{
	if (!thread_runs)
		return;
	change_begin();
	stop = true;
	change_end();
	pthread_join(thread, NULL);
	stop = false;
	thread_runs = false;
}

/* ---- cores -------------------------------------------------------------------------------- */

static void set_core(struct slot *s, struct collector_core *c)
{
	change_begin();
	pthread_mutex_lock(&s->gate);
	s->core = c;
	pthread_mutex_unlock(&s->gate);
	change_end();
}

static void set_profiled(const struct collector_core *c, bool profiled)
{
	for (uint32_t p = 0; p < c->part_count; p++)
		atomic_store(&c->parts[p].core->profiled, profiled);
}

static NRT_STATUS open_core(struct slot *s, uint32_t vnc, struct device_core *first)
{
	const struct runtime *r = runtime_get();
	struct collector_core *c;
	NRT_STATUS status;
	int rc;

	atomic_store(&s->account.limit, (uint64_t)r->profile.max_mb << 20);
	status = collector_core_open(r->devices, first, vnc, &r->profile, &s->account, &c);
	if (status)
		return status;
	rc = start_thread();
	if (rc < 0) {
		log_error(TAG, "Profile of nc %u: no thread: %s", vnc, strerror(-rc));
		collector_core_close(c);
		collector_core_free(c);
		return NRT_RESOURCE;
	}
	set_core(s, c);
	set_profiled(c, true);
	open_cores++;
	return NRT_SUCCESS;
}

static void close_core(struct slot *s)
{
	struct collector_core *c = s->core;

	set_profiled(c, false);
	set_core(s, NULL);
	if (--open_cores == 0)
		stop_thread();
	collector_core_close(c);
	if (c->cursors == 0)
		collector_core_free(c);
}

/* ---- subscribers -------------------------------------------------------------------------- */

static NRT_STATUS subscribe(uint32_t vnc, struct device_core *first, struct collector_cursor **ret)
{
	struct slot *s = &slots[vnc];
	NRT_STATUS status = s->core ? NRT_SUCCESS : open_core(s, vnc, first);

	if (status)
		return status;
	*ret = collector_cursor_new(s->core);
	if (*ret) {
		s->core->cursors++;
		return NRT_SUCCESS;
	}
	log_error(TAG, "Profile of nc %u: no memory", vnc);
	if (s->core->cursors == 0)
		close_core(s);
	return NRT_RESOURCE;
}

NRT_STATUS collector_subscribe(uint32_t vnc, struct collector_cursor **ret)
{
	struct device_system *d = runtime_get()->devices;
	struct device_core *first = vnc <= INT32_MAX ? runtime_core((int32_t)vnc) : NULL;
	NRT_STATUS status;

	if (!first) {
		log_error(TAG, "There is no core %u; this process has %u, from 0", vnc,
			device_logical_count(d));
		return NRT_INVALID;
	}
	if (simulate_lacks(d, SIMULATE_MODEL))
		return NRT_INVALID;
	pthread_mutex_lock(&life);
	status = subscribe(vnc, first, ret);
	pthread_mutex_unlock(&life);
	return status;
}

void collector_unsubscribe(struct collector_cursor *cursor)
{
	struct collector_core *c;

	if (!cursor)
		return;
	pthread_mutex_lock(&life);
	c = collector_cursor_free(cursor);
	if (--c->cursors == 0) {
		if (slots[c->vnc].core == c)
			close_core(&slots[c->vnc]);
		else
			collector_core_free(c);
	}
	pthread_mutex_unlock(&life);
}

/* That has most of the memory of profile rings on a device. */
static struct slot *largest(const struct device_core *core)
{
	struct slot *found = NULL;

	for (uint32_t i = 0; i < CORES_MAX; i++) {
		const struct collector_core *c = slots[i].core;

		if (c && c->parts[0].core->device == core->device && c->memory.size &&
			(!found || c->memory.size > found->core->memory.size))
			found = &slots[i];
	}
	return found;
}

bool collector_give_room(const struct device_core *core)
{
	struct slot *s;
	uint64_t given = 0;

	pthread_mutex_lock(&life);
	s = largest(core);
	if (s) {
		change_begin();
		given = collector_core_shrink(s->core);
		change_end();
	}
	pthread_mutex_unlock(&life);
	return given > 0;
}

void collector_close(void)
{
	pthread_mutex_lock(&life);
	for (uint32_t i = 0; i < CORES_MAX; i++)
		if (slots[i].core)
			close_core(&slots[i]);
	pthread_mutex_unlock(&life);
}

/* ---- taps --------------------------------------------------------------------------------- */

static const enum notification_kind kinds[DEVICE_RING_COUNT] = {
	[DEVICE_RING_RUNS] = NOTIFICATION_INFER_STATUS,
	[DEVICE_RING_ERRORS] = NOTIFICATION_ERROR,
	[DEVICE_RING_COLLECTIVES] = NOTIFICATION_EXPLICIT_CC,
};

/* Where a physical core is, with its gate locked; NULL: nobody collects it. */
static struct collector_core *enter(
	const struct device_core *core, struct slot **ret_slot, uint32_t *ret_part)
{
	const struct device_system *d = runtime_get()->devices;
	uint32_t at = (uint32_t)(core - d->cores);

	*ret_slot = &slots[cores_logical(at, d->lnc_size)];
	*ret_part = at % d->lnc_size;
	pthread_mutex_lock(&(*ret_slot)->gate);
	if (!(*ret_slot)->core)
		pthread_mutex_unlock(&(*ret_slot)->gate);
	return (*ret_slot)->core;
}

/* The executor's ring of that kind, locked. */
static struct collector_ring *lock_ring(struct collector_part *part, enum notification_kind kind)
{
	struct collector_ring *r = part->rings;

	while (r->type->kind != kind)
		r++;
	pthread_mutex_lock(&r->lock);
	return r;
}

void collector_tap(
	const struct device_core *core, enum device_ring ring, const struct notification *note)
{
	struct slot *s;
	uint32_t part;
	struct collector_core *c = collector_wants(core) ? enter(core, &s, &part) : NULL;
	struct collector_ring *r;

	if (!c)
		return;
	r = lock_ring(&c->parts[part], kinds[ring]);
	if (!pieces_add(&r->records, note))
		r->dropped++;
	pthread_mutex_unlock(&r->lock);
	pthread_mutex_unlock(&s->gate);
}

void collector_tap_lost(
	const struct device_core *core, enum device_ring ring, uint64_t lost, bool exact)
{
	struct slot *s;
	uint32_t part;
	struct collector_core *c = lost && collector_wants(core) ? enter(core, &s, &part) : NULL;
	struct collector_ring *r;

	if (!c)
		return;
	r = lock_ring(&c->parts[part], kinds[ring]);
	r->lost += lost;
	r->vague += !exact;
	pthread_mutex_unlock(&r->lock);
	pthread_mutex_unlock(&s->gate);
}

void collector_tap_run(const struct device_core *core, struct collector_run *run)
{
	struct slot *s;
	struct collector_core *c = collector_wants(core) ? enter(core, &s, &run->part) : NULL;

	if (!c)
		return;
	run->nd_idx = core->device->index;
	run->nc_idx = core->index;
	pthread_mutex_lock(&c->lock);
	c->runs_dropped += !pieces_add(&c->runs, run);
	pthread_mutex_unlock(&c->lock);
	pthread_mutex_unlock(&s->gate);
}

void collector_tap_sync(
	const struct device_core *core, uint32_t exec_id, const struct device_sync *sync)
{
	struct slot *s;
	uint32_t part;
	struct collector_core *c = collector_wants(core) ? enter(core, &s, &part) : NULL;

	if (!c)
		return;
	collector_core_add_sync(c, part, exec_id, sync);
	pthread_mutex_unlock(&s->gate);
}
