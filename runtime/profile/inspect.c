/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect.c - begins and ends the inspect session.
 *
 * A begin is a table of steps; when one fails, those before it are undone from the last to the
 * first, and of the session there is nothing left, also no directory.  The end is one harvest:
 * device profiles come before the .pb files, which list them.
 *
 * Of the vendor's library: the order of the steps, the default directory, that a begin with options
 * looks at no NEURON_RT_INSPECT_ variable, and that nrt_close ends a session.  Inferred:
 * NRT_INVALID for a second begin.  Ours: NULL options stand for the defaults, as its header says (a
 * listing of the binary refuses them), and a stop without a session succeeds.
 */
#include "runtime/profile/inspect.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/lock_within.h"
#include "runtime/exec/memory.h"
#include "runtime/log/log.h"
#include "runtime/profile/inspect_device.h"
#include "runtime/profile/inspect_end.h"
#include "runtime/profile/inspect_facts.h"

#define TAG "NRT"
#define FILING_PATIENCE_NS 500000000ull

struct session {
	struct inspect_dir *dir;
	struct inspect_spool *spool;
	int id;
	uint64_t begin_ns; /* since the epoch */
	bool failures_only;
};

static struct {
	pthread_mutex_t lock;
	bool open;		 /* from nrt_init to nrt_close; under lock, as is: */
	struct session *session; /* NULL: none */
	/* Of an end that might not wait: another thread may still write in it, so it stays. */
	struct inspect_dir *left;
} inspect = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Where files of device profiles are told; innermost but for the spool's locks. */
static struct {
	pthread_mutex_t lock;
	struct inspect_spool *spool; /* NULL: nowhere */
} filing = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Atomic bool active;

bool inspect_is_active(void)
{
	return atomic_load(&active);
}

/* A signal that ends the process waits for a begin or an end in its thread. */
static void lock_held(void)
{
	inspect_end_hold();
	pthread_mutex_lock(&inspect.lock);
}

static void unlock_held(void)
{
	pthread_mutex_unlock(&inspect.lock);
	inspect_end_release();
}

/* ---- the steps of a begin ----------------------------------------------------------------- */

struct begin {
	const char *call;
	const struct nrt_inspect_config *config;
	bool environment; /* the config is from there */
	struct inspect_facts facts;
	struct session *s;
};

static NRT_STATUS make_directory(struct begin *b)
{
	const struct inspect_dir_wish wish = {
		.base = b->config->output_dir,
		.layout = (enum inspect_layout)runtime_get()->output_layout,
		.instance_id = b->facts.host.instance_id,
		.time_ns = b->s->begin_ns,
		.on_fail = b->s->failures_only,
	};

	return inspect_dir_open(b->call, &wish, &b->s->dir);
}

static void take_directory_back(struct begin *b)
{
	inspect_dir_close(b->s->dir);
}

/* A signal wants the session to end: in its own thread. */
static void asked(void *ctx, bool finish)
{
	(void)ctx;
	if (finish && !inspect_finish(REC_END_ASKED, false))
		log_warn(TAG, "The session is being begun or ended; what is missing `ntrace "
			      "salvage` makes from its recording");
}

/* What cannot be locked in this time is with the thread that is interrupted. */
static bool lock_filing(void)
{
	return lock_within(&filing.lock, (struct boot_ns){clock_boot().ns + FILING_PATIENCE_NS});
}

/* A file that comes when the spool is gone, by an end that might not wait, is in no list. */
static int add_file(void *ctx, const char *name, const char *type, uint64_t bytes)
{
	int rc = -ENOENT;

	(void)ctx;
	if (!lock_filing())
		return -EBUSY;
	if (filing.spool)
		rc = inspect_spool_add_file(filing.spool, name, type, bytes);
	pthread_mutex_unlock(&filing.lock);
	return rc;
}

static void set_filing(struct inspect_spool *spool)
{
	if (!lock_filing())
		return;
	filing.spool = spool;
	pthread_mutex_unlock(&filing.lock);
}

static NRT_STATUS start_spool(struct begin *b)
{
	const struct nrt_inspect_config *c = b->config;
	const struct inspect_spool_wish wish = {
		.dir = b->s->dir,
		.events = c->activities & INSPECT_SYSTEM_PROFILE ? &c->sys_trace : NULL,
		.cpu_util = c->activities & INSPECT_CPU_UTIL,
		.host_memory = c->activities & INSPECT_HOST_MEMORY,
		.info = &b->facts.info,
		.asked = asked,
	};
	int rc = inspect_spool_open(&wish, &b->s->spool);

	if (rc < 0)
		return status_from_errno(rc);
	/* From here on a signal finds something to save. */
	inspect_end_arm(getpid());
	set_filing(b->s->spool);
	return NRT_SUCCESS;
}

static void drop_spool(struct begin *b)
{
	inspect_end_disarm();
	set_filing(NULL);
	inspect_spool_drop(b->s->spool);
}

static NRT_STATUS start_devices(struct begin *b)
{
	const struct inspect_device_wish wish = {
		.mode = inspect_facts_mode(runtime_get(), b->config),
		.nc = b->config->nc,
		.dir = b->s->dir,
		.on_fail = b->config->enable_inspect_on_fail,
		.enabled = b->config->enable_inspect,
		.added = add_file,
	};

	if (!wish.mode && !wish.on_fail)
		return NRT_SUCCESS;
	return inspect_device_begin(&wish);
}

static const struct step {
	NRT_STATUS (*run)(struct begin *b);
	void (*undo)(struct begin *b);
} steps[] = {
	{make_directory, take_directory_back},
	{start_spool, drop_spool},
	{start_devices, NULL},
};
#define STEPS (sizeof(steps) / sizeof(steps[0]))

static NRT_STATUS run_steps(struct begin *b)
{
	NRT_STATUS status = NRT_SUCCESS;
	size_t n;

	for (n = 0; n < STEPS && !status; n++)
		status = steps[n].run(b);
	if (!status)
		return NRT_SUCCESS;
	/* The one that failed has left nothing. */
	for (n--; n-- > 0;)
		if (steps[n].undo)
			steps[n].undo(b);
	return status;
}

/* ---- begin -------------------------------------------------------------------------------- */

static NRT_STATUS refuse_second(const char *call)
{
	const struct session *s = inspect.session;
	time_t begin = (time_t)(s->begin_ns / 1000000000u);
	char since[32] = "";
	struct tm tm;

	if (gmtime_r(&begin, &tm))
		(void)strftime(since, sizeof(since), "%Y-%m-%d %H:%M:%S UTC", &tm);
	log_write(LOG_LEVEL_ERROR, TAG, call,
		"A session is active already: session %d, in %s, since %s; stop it first "
		"(nrt_inspect_stop)",
		s->id, s->dir->path, since);
	return NRT_INVALID;
}

static NRT_STATUS begin_new(struct begin *b)
{
	NRT_STATUS status;

	b->s = calloc(1, sizeof(*b->s));
	if (!b->s)
		return NRT_RESOURCE;
	b->s->id = b->config->session_id;
	b->s->begin_ns = clock_snapshot_take().realtime;
	b->s->failures_only = !b->config->enable_inspect;
	status = inspect_facts_get(b->call, runtime_get(), b->config, b->environment, &b->facts);
	if (!status)
		status = run_steps(b);
	inspect_facts_free(&b->facts);
	if (status) {
		free(b->s);
		return status;
	}
	inspect.session = b->s;
	inspect_dir_publish(b->s->dir);
	atomic_store(&active, true);
	log_write(LOG_LEVEL_INFO, TAG, b->call, "Session %d begins, in %s", b->s->id,
		b->s->dir->path);
	return NRT_SUCCESS;
}

/* c: NULL options are the defaults, by which nothing is recorded. */
static bool asks_for_something(const struct nrt_inspect_config *c)
{
	return c && (c->enable_inspect || c->enable_inspect_on_fail);
}

static void say_nothing_asked(const char *call, const struct nrt_inspect_config *c)
{
	log_write(LOG_LEVEL_WARN, TAG, call, "%s",
		c ? "Nothing is recorded: neither nrt_inspect_config_set_enable_inspect nor "
		    "..._on_fail was called"
		  : "called with null options. The defaults are taken, with which nothing is "
		    "recorded");
}

/* Under the lock.  A second begin is refused whatever it asks for. */
static NRT_STATUS begin_locked(
	const char *call, const struct nrt_inspect_config *c, bool environment)
{
	struct begin b = {.call = call, .config = c, .environment = environment};

	if (!inspect.open)
		return state_refuse(STATE_CLOSED, call);
	if (inspect.session)
		return refuse_second(call);
	if (asks_for_something(c))
		return begin_new(&b);
	say_nothing_asked(call, c);
	return NRT_SUCCESS;
}

static NRT_STATUS begin(const char *call, const struct nrt_inspect_config *c, bool environment)
{
	int rc = asks_for_something(c) ? inspect_end_open() : 0;
	NRT_STATUS status;

	if (rc < 0)
		log_write(LOG_LEVEL_WARN, TAG, call,
			"A signal that ends the program will leave the session to `ntrace "
			"salvage`: %s",
			strerror(-rc));
	lock_held();
	status = begin_locked(call, c, environment);
	unlock_held();
	if (status == NRT_RESOURCE)
		log_write(LOG_LEVEL_ERROR, TAG, call, "No session: out of memory or room");
	return status;
}

static NRT_STATUS begin_by_environment(const char *call, struct nrt_inspect_config *c, bool force)
{
	NRT_STATUS status =
		inspect_config_read(call, device_logical_count(runtime_get()->devices), c);

	if (status)
		return status;
	c->enable_inspect |= force;
	return asks_for_something(c) ? begin(call, c, true) : NRT_SUCCESS;
}

/* ---- end ---------------------------------------------------------------------------------- */

static NRT_STATUS finish_spool(struct session *s, enum rec_end_reason reason)
{
	struct inspect_outcome outcome;

	return inspect_spool_finish(s->spool, reason, &outcome) < 0 ? NRT_FAILURE : NRT_SUCCESS;
}

/* Of a session for failures alone nothing is left when there was none. */
static NRT_STATUS finish_failures(const char *call, struct session *s, enum rec_end_reason reason)
{
	/* With the last one the set is whole. */
	static const char *const files[] = {
		"ntrace.pb", "cpu_util.pb", "host_mem.pb", "trace_info.pb"};
	NRT_STATUS status;

	if (!inspect_device_has_failed()) {
		inspect_spool_drop(s->spool);
		return NRT_SUCCESS;
	}
	status = finish_spool(s, reason);
	if (inspect_dir_keep(call, s->dir, files, sizeof(files) / sizeof(files[0])) < 0)
		status = NRT_FAILURE;
	return status;
}

/* Under the lock.  A handler that waits goes on when the session is disarmed and nobody holds it: a
 * call does, so it is early here; the session's thread does not, so it is late. */
static NRT_STATUS end(const char *call, enum rec_end_reason reason, bool may_wait)
{
	struct session *s = inspect.session;
	NRT_STATUS status;
	bool profiled;

	if (may_wait)
		inspect_end_disarm();
	profiled = inspect_device_end(call, may_wait);
	set_filing(NULL);
	status = s->failures_only ? finish_failures(call, s, reason) : finish_spool(s, reason);
	if (!profiled && !status)
		status = NRT_FAILURE;
	inspect_dir_publish(NULL);
	log_write(LOG_LEVEL_INFO, TAG, call, "Session %d ends, in %s", s->id, s->dir->path);
	if (may_wait) {
		inspect_dir_close(s->dir);
	} else {
		inspect_dir_tidy(s->dir);
		inspect.left = s->dir;
	}
	free(s);
	inspect.session = NULL;
	atomic_store(&active, false);
	if (!may_wait)
		inspect_end_disarm();
	return status;
}

/* By a call, which may wait. */
static NRT_STATUS end_by_call(const char *call, enum rec_end_reason reason, bool closes)
{
	NRT_STATUS status = NRT_SUCCESS;

	lock_held();
	if (inspect.session)
		status = end(call, reason, true);
	if (closes) {
		inspect.open = false;
		inspect_dir_forget();
	}
	unlock_held();
	return status;
}

bool inspect_finish(enum rec_end_reason reason, bool may_wait)
{
	static const char call[] = "nrt_inspect_stop";

	if (may_wait) {
		(void)end_by_call(call, reason, false);
		return true;
	}
	if (pthread_mutex_trylock(&inspect.lock))
		return false;
	if (inspect.session)
		(void)end(call, reason, false);
	pthread_mutex_unlock(&inspect.lock);
	return true;
}

/* ---- nrt_init and nrt_close --------------------------------------------------------------- */

void inspect_init(void)
{
	static const char call[] = "nrt_init";
	struct nrt_inspect_config *c;
	NRT_STATUS status;

	pthread_mutex_lock(&inspect.lock);
	inspect.open = true;
	pthread_mutex_unlock(&inspect.lock);
	status = nrt_inspect_config_allocate(&c);
	if (!status) {
		status = begin_by_environment(call, c, false);
		(void)nrt_inspect_config_free(c);
	}
	if (status)
		log_write(LOG_LEVEL_ERROR, TAG, call,
			"No session begins (status %u), and nothing is recorded; nrt_init goes on",
			(unsigned)status);
}

void inspect_close(void)
{
	(void)end_by_call("nrt_close", REC_END_ASKED, true);
}

/* ---- the calls ---------------------------------------------------------------------------- */

NRT_STATUS nrt_inspect_begin(void)
{
	NRT_STATUS status = api_enter(__func__);
	struct nrt_inspect_config *c;

	if (status)
		return status;
	status = nrt_inspect_config_allocate(&c);
	if (!status) {
		status = begin_by_environment(__func__, c, true);
		(void)nrt_inspect_config_free(c);
	}
	api_leave();
	return status;
}

NRT_STATUS nrt_inspect_begin_with_options(nrt_inspect_config_t *options)
{
	NRT_STATUS status = api_enter(__func__);

	if (status)
		return status;
	status = begin(__func__, options, false);
	api_leave();
	return status;
}

NRT_STATUS nrt_inspect_stop(void)
{
	NRT_STATUS status = api_enter(__func__);

	if (status)
		return status;
	status = end_by_call(__func__, REC_END_ASKED, false);
	api_leave();
	return status;
}
