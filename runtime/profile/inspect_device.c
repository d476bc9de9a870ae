/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_device.c - begin, end and the executor's hooks; see inspect_device.h.
 *
 * Hooks of executions take the lock of their core, and, when they have something to write, that of
 * the files before it.  End closes the gate first, and then takes the lock of the files: from then
 * on nobody else writes, and what runs that ended have left is written by it.
 *
 * A thread that a signal has interrupted may hold any of the locks for ever (may_wait false).  It
 * cannot take another one, so a lock that can be had once is free; each core's are tried before it
 * is touched.
 *
 * Known of libnrt 2.31: the order of cores, that the first failure ends it, the message of a failed
 * stop, the file names of SESSION.  Documented by the vendor: those of MODEL and of model files (a
 * listing of 2.31 has <model>_vnc_<id>.ntff). Ours: the rings are opened with the first model and
 * not at begin, a core on which nothing ran leaves no file, and on-fail keeps only what failed.
 */
#include "runtime/profile/inspect_device.h"

#include <inttypes.h>
#include <stdio.h>

#include "runtime/base/lock_within.h"
#include "runtime/log/log.h"
#include "runtime/profile/core_profile.h"
#include "runtime/profile/inspect_dir.h"
#include "runtime/profile/inspect_runs.h"
#include "runtime/record/recording.h"

#define TAG "NRT"
#define PATIENCE_NS 1000000000ull /* with locks, when the process is about to die */

static struct core {
	pthread_mutex_t lock;
	uint32_t wants; /* INSPECT_WANT_*; 0: not in a session */
	struct core_profile all;
	struct inspect_runs runs;
	uint64_t next_number; /* of its profiles */
	struct profile
		*left; /* by an end that may not wait, which frees nothing: memory may be locked */
} cores[PROFILE_MAX_CORES] = {
	[0 ... PROFILE_MAX_CORES - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER},
};

static struct {
	pthread_mutex_t lock;
	bool on;
	struct inspect_files files;
} session = {.lock = PTHREAD_MUTEX_INITIALIZER};

static atomic_bool has_failed;
static atomic_bool said_continuous;

_Atomic uint32_t inspect_device_gate;

static uint32_t gate(void)
{
	return atomic_load_explicit(&inspect_device_gate, memory_order_relaxed);
}

bool inspect_device_is_on(void)
{
	return gate() & (INSPECT_WANT_ALL | INSPECT_WANT_FIRST);
}

bool inspect_device_has_failed(void)
{
	return atomic_load(&has_failed);
}

/* ---- cores; under their locks ------------------------------------------------------------- */

static void drop_core(struct core *c, uint32_t nc)
{
	c->wants = 0;
	profile_free(c->left);
	c->left = NULL;
	core_profile_drop(&c->all, nc);
	inspect_runs_drop(&c->runs, nc);
}

/* A model is on the core. */
static NRT_STATUS open_core(struct core *c, uint32_t nc)
{
	NRT_STATUS status = NRT_SUCCESS;

	if (c->wants & INSPECT_WANT_ALL)
		status = core_profile_begin(&c->all, nc);
	if (!status)
		inspect_runs_load(&c->runs, nc, c->wants);
	return status;
}

static void open_late(struct core *c, uint32_t nc)
{
	NRT_STATUS status = open_core(c, nc);

	if (status)
		log_warn(TAG, "There is no device profile of NC %u, status %u", nc,
			(unsigned)status);
}

static NRT_STATUS begin_core(uint32_t nc, uint32_t wants)
{
	struct core *c = &cores[nc];
	NRT_STATUS status = NRT_SUCCESS;

	pthread_mutex_lock(&c->lock);
	drop_core(c, nc); /* what an end in a hurry has left */
	c->wants = wants;
	if (wants && atomic_load(&runtime_core((int32_t)nc)->models))
		status = open_core(c, nc);
	if (status)
		drop_core(c, nc);
	pthread_mutex_unlock(&c->lock);
	return status;
}

/* ---- begin -------------------------------------------------------------------------------- */

static uint32_t wants_of(const struct inspect_device_wish *w)
{
	uint32_t wants = w->on_fail ? INSPECT_WANT_FAILED : 0;

	if (w->dir->is_null)
		return 0;
	if (w->enabled && w->mode == NRT_INSPECT_DEVICE_PROFILE_MODE_MODEL)
		wants |= INSPECT_WANT_FIRST;
	if (w->enabled && w->mode == NRT_INSPECT_DEVICE_PROFILE_MODE_SESSION)
		wants |= INSPECT_WANT_ALL;
	return wants;
}

static uint32_t core_count(void)
{
	uint32_t count = device_logical_count(runtime_get()->devices);

	return count < PROFILE_MAX_CORES ? count : PROFILE_MAX_CORES;
}

/* That those begun before are dropped cannot fail. */
static NRT_STATUS begin_cores(const struct inspect_device_wish *w, uint32_t wants)
{
	NRT_STATUS status = NRT_SUCCESS;
	uint32_t nc;

	for (nc = 0; nc < core_count() && !status; nc++)
		status = begin_core(nc, !w->nc || w->nc[nc] ? wants : 0);
	if (status)
		while (nc-- > 0)
			(void)begin_core(nc, 0);
	return status;
}

NRT_STATUS inspect_device_begin(const struct inspect_device_wish *w)
{
	uint32_t wants = wants_of(w);
	NRT_STATUS status;

	atomic_store(&has_failed, false);
	atomic_store(&said_continuous, false);
	if (!wants)
		return NRT_SUCCESS;
	pthread_mutex_lock(&session.lock);
	status = begin_cores(w, wants);
	session.on = !status;
	if (session.on) {
		inspect_files_done(&session.files);
		session.files =
			(struct inspect_files){.dir = w->dir, .added = w->added, .ctx = w->ctx};
		atomic_store(&inspect_device_gate, wants);
	}
	pthread_mutex_unlock(&session.lock);
	return status;
}

/* ---- writing; with the session's lock ------------------------------------------------------ */

/* What runs have left. */
static void write_taken(const char *call, struct inspect_taken *taken)
{
	for (struct inspect_taken *t = taken; t; t = t->next)
		if (profile_build(call, &t->wish, &t->harvest, &t->profile) == NRT_SUCCESS)
			inspect_files_put(&session.files, call, t->profile, t->name);
		else
			inspect_files_unwritten(&session.files, t->name);
}

static void free_taken(struct inspect_taken *t)
{
	while (t)
		t = inspect_taken_free(t);
}

static void write_all(const char *call, struct profile *p, uint32_t nc, uint64_t number)
{
	char name[INSPECT_FILE_BYTES];

	(void)snprintf(
		name, sizeof(name), "profile_nc_%" PRIu32 "_session_%" PRIu64 ".ntff", nc, number);
	inspect_files_put(&session.files, call, p, name);
}

/* ---- end ---------------------------------------------------------------------------------- */

#define CORE_NAME_BYTES 32u

struct ending {
	const char *call;
	struct boot_ns until; /* when it may not wait */
};

/* Does the core have something that could be written? */
static bool is_begun(const struct core *c)
{
	return c->all.cursor || c->runs.taken || c->runs.armed;
}

static bool is_free(const struct ending *e, const struct core *c, uint32_t nc)
{
	return profile_core_is_free(nc, e->until) &&
	       (!c->all.cursor || collector_is_free(c->all.cursor, e->until));
}

static void name_core(char ret[CORE_NAME_BYTES], uint32_t nc)
{
	(void)snprintf(ret, CORE_NAME_BYTES, "NC %" PRIu32, nc);
}

/* Under the core's lock. */
static struct profile *take_all(const struct ending *e, struct core *c, uint32_t nc)
{
	char name[CORE_NAME_BYTES];
	struct profile *p;
	NRT_STATUS status = core_profile_take(e->call, &c->all, nc, c->next_number, &p);

	if (status) {
		log_write(LOG_LEVEL_ERROR, TAG, e->call,
			"Failed to stop device profile session on NC %u", nc);
		name_core(name, nc);
		inspect_files_unwritten(&session.files, name);
	}
	if (c->runs.armed)
		log_write(LOG_LEVEL_WARN, TAG, e->call,
			"An execution on NC %u has not ended: no device profile of it", nc);
	return p;
}

static void write_core(const struct ending *e, struct profile *p, uint32_t nc, uint64_t number,
	struct inspect_taken *taken)
{
	if (p)
		write_all(e->call, p, nc, number);
	write_taken(e->call, taken);
}

static void end_core(const struct ending *e, uint32_t nc)
{
	struct core *c = &cores[nc];
	struct inspect_taken *taken;
	struct profile *p;
	uint64_t number;

	pthread_mutex_lock(&c->lock);
	number = c->next_number;
	p = take_all(e, c, nc);
	c->next_number += p != NULL;
	taken = inspect_runs_take(&c->runs);
	drop_core(c, nc);
	pthread_mutex_unlock(&c->lock);
	write_core(e, p, nc, number, taken);
	profile_free(p);
	free_taken(taken);
}

/* Without the files' lock, which a thread that writes one holds: they were said at the begin. */
static void note_lost(const char *name)
{
	if (session.files.added)
		(void)session.files.added(session.files.ctx, name, REC_FILE_LOST, 0);
}

static void note_lost_core(uint32_t nc)
{
	char name[CORE_NAME_BYTES];

	name_core(name, nc);
	note_lost(name);
}

/* The same when the process is about to die. */
static void end_core_now(const struct ending *e, uint32_t nc)
{
	struct core *c = &cores[nc];
	bool locked = lock_within(&c->lock, e->until);

	if (!locked || (is_begun(c) && !is_free(e, c, nc))) {
		log_write(LOG_LEVEL_ERROR, TAG, e->call,
			"The device profile of NC %u is lost: a thread that was interrupted works "
			"on it",
			nc);
		note_lost_core(nc);
	} else {
		c->left = take_all(e, c, nc);
		write_core(e, c->left, nc, c->next_number, c->runs.taken);
	}
	if (locked)
		pthread_mutex_unlock(&c->lock);
}

bool inspect_device_end(const char *call, bool may_wait)
{
	const struct ending e = {call, {clock_boot().ns + PATIENCE_NS}};
	bool whole;

	atomic_store(&inspect_device_gate, 0);
	if (may_wait) {
		pthread_mutex_lock(&session.lock);
	} else if (!lock_within(&session.lock, e.until)) {
		log_write(LOG_LEVEL_ERROR, TAG, call,
			"Device profiles are lost: a thread that was interrupted writes one");
		note_lost("all cores");
		return false;
	}
	for (uint32_t nc = 0; session.on && nc < core_count(); nc++)
		(may_wait ? end_core : end_core_now)(&e, nc);
	session.on = false;
	whole = session.files.unwritten == 0;
	if (may_wait)
		inspect_files_done(&session.files);
	pthread_mutex_unlock(&session.lock);
	return whole;
}

void inspect_device_close(void)
{
	pthread_mutex_lock(&session.lock);
	for (uint32_t nc = 0; nc < PROFILE_MAX_CORES; nc++) {
		struct core *c = &cores[nc];

		pthread_mutex_lock(&c->lock);
		drop_core(c, nc);
		c->next_number = 0;
		pthread_mutex_unlock(&c->lock);
	}
	inspect_files_done(&session.files);
	pthread_mutex_unlock(&session.lock);
}

/* ---- hooks -------------------------------------------------------------------------------- */

void inspect_device_load(uint32_t nc)
{
	struct core *c = &cores[nc];

	if (!(gate() & (INSPECT_WANT_ALL | INSPECT_WANT_FAILED)))
		return;
	pthread_mutex_lock(&c->lock);
	open_late(c, nc);
	pthread_mutex_unlock(&c->lock);
}

/* Profiles of models and continuous profiling exclude each other, whichever was first. */
static uint32_t without_first(uint32_t wants)
{
	if (!(wants & INSPECT_WANT_FIRST) || !continuous_is_enabled())
		return wants;
	if (!atomic_exchange(&said_continuous, true))
		log_warn(TAG, "Continuous profiling is already enabled; executions have no "
			      "device profile of the inspect session until it is stopped "
			      "(nrt_profile_continuous_stop)");
	return wants & ~(uint32_t)INSPECT_WANT_FIRST;
}

/* A core that was loaded while the session began is opened here. */
void inspect_device_before_run(struct nrt_model *m)
{
	struct core *c = &cores[m->nc];

	pthread_mutex_lock(&c->lock);
	if (c->wants) {
		open_late(c, m->nc);
		inspect_runs_before(&c->runs, m, without_first(c->wants));
	}
	pthread_mutex_unlock(&c->lock);
}

static bool wants_single_runs(void)
{
	return gate() & (INSPECT_WANT_FIRST | INSPECT_WANT_FAILED);
}

void inspect_device_run_begins(struct nrt_model *m)
{
	struct core *c = &cores[m->nc];

	if (!wants_single_runs())
		return;
	pthread_mutex_lock(&c->lock);
	inspect_runs_begin(&c->runs, m, c->wants);
	pthread_mutex_unlock(&c->lock);
}

void inspect_device_run_ended(struct nrt_model *m, NRT_STATUS status)
{
	struct core *c = &cores[m->nc];

	if (!wants_single_runs())
		return;
	if (status && (gate() & INSPECT_WANT_FAILED))
		atomic_store(&has_failed, true);
	pthread_mutex_lock(&c->lock);
	inspect_runs_end(&c->runs, m, status, c->wants);
	pthread_mutex_unlock(&c->lock);
}

void inspect_device_after_run(struct nrt_model *m)
{
	struct core *c = &cores[m->nc];
	struct inspect_taken *taken;
	bool any;

	if (!wants_single_runs())
		return;
	pthread_mutex_lock(&c->lock);
	any = c->runs.taken != NULL;
	pthread_mutex_unlock(&c->lock);
	if (!any)
		return;
	pthread_mutex_lock(&session.lock);
	pthread_mutex_lock(&c->lock);
	taken = inspect_runs_take(&c->runs);
	pthread_mutex_unlock(&c->lock);
	write_taken("nrt_execute", taken);
	pthread_mutex_unlock(&session.lock);
	free_taken(taken);
}
