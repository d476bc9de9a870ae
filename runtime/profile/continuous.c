/* SPDX-License-Identifier: Apache-2.0 */
/*
 * continuous.c - continuous profiling: every execution is profiled, and the last one of a core is
 * written when nrt_profile_continuous_save is called.
 *
 * A core is subscribed before its first execution.  Its two cursors take turns: when a run begins
 * the older one passes over all that was before.  So one has all of the newest run, the other all
 * of the run before it, which is the last one while the newest is in progress; nothing is read or
 * copied before somebody asks, and no more than two runs are kept.
 *
 * Known of libnrt 2.31: the two messages, the names of files, that saving goes on profiling and
 * stopping saves nothing, and what is refused with 2.  Inferred: a second start, and a stop of what
 * does not run, change nothing and are no error (they set one flag there).  Ours: the directory is
 * made, a name that is taken becomes _2, _3 and so on, `inst` is always 0 (a model has one
 * instance), and saving twice writes the same execution twice.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/env_table.h"
#include "runtime/base/file.h"
#include "runtime/log/log.h"
#include "runtime/profile/inspect_config.h"
#include "runtime/profile/inspect_device.h"
#include "runtime/profile/serialize.h"

#define TAG "NRT"
#define MAX_FILES 1000

static struct core {
	/* One save at a time; it is taken before `lock`, and executions do not wait for it. */
	pthread_mutex_t saving;
	struct profile_harvest harvest;
	struct profile *last; /* of the last execution that was asked for */

	pthread_mutex_t lock;
	struct collector_cursor *cursors[2]; /* NULL: not subscribed */
	unsigned newest;		     /* the one that has the newest run */
	bool running;			     /* that run has not ended */
	bool refused;			     /* the core cannot be subscribed; said */
} cores[PROFILE_MAX_CORES] = {
	[0 ... PROFILE_MAX_CORES - 1] = {.saving = PTHREAD_MUTEX_INITIALIZER,
		.lock = PTHREAD_MUTEX_INITIALIZER},
};

static atomic_bool enabled;

bool continuous_is_enabled(void)
{
	return atomic_load_explicit(&enabled, memory_order_relaxed);
}

/* ---- cores; under `lock` ------------------------------------------------------------------ */

static void unsubscribe(struct core *c, uint32_t nc)
{
	for (unsigned i = 0; i < 2; i++)
		profile_unsubscribe(nc, &c->cursors[i]);
	c->running = c->refused = false;
}

static void subscribe(struct core *c, uint32_t nc)
{
	NRT_STATUS status = profile_subscribe(nc, &c->cursors[0]);

	if (!status)
		status = profile_subscribe(nc, &c->cursors[1]);
	if (!status)
		return;
	log_warn(TAG, "Executions on NC %u are not profiled, status %u", nc, (unsigned)status);
	unsubscribe(c, nc);
	c->refused = true;
}

/* ---- hooks -------------------------------------------------------------------------------- */

void continuous_before_run(const struct nrt_model *m)
{
	struct core *c = &cores[m->nc];

	if (!profile_try_enter())
		return;
	pthread_mutex_lock(&c->lock);
	if (continuous_is_enabled() && !c->cursors[0] && !c->refused)
		subscribe(c, m->nc);
	pthread_mutex_unlock(&c->lock);
	profile_leave_run();
}

void continuous_run_begins(const struct nrt_model *m)
{
	struct core *c = &cores[m->nc];

	if (!continuous_is_enabled())
		return;
	pthread_mutex_lock(&c->lock);
	if (c->cursors[0]) {
		c->newest ^= 1;
		collector_skip(c->cursors[c->newest]);
		c->running = true;
	}
	pthread_mutex_unlock(&c->lock);
}

void continuous_run_ended(const struct nrt_model *m)
{
	struct core *c = &cores[m->nc];

	if (!continuous_is_enabled())
		return;
	pthread_mutex_lock(&c->lock);
	c->running = false;
	pthread_mutex_unlock(&c->lock);
}

/* ---- start and stop ----------------------------------------------------------------------- */

/* Inspections profile devices unless the variable says no; by the message, whether one is on
 * does not count then. */
static bool is_inspect_wanted(void)
{
	const struct env_row *row = env_row(ENV_ID_NEURON_RT_INSPECT_DEVICE_PROFILE);
	const char *text = getenv(row->name);
	struct env_value value;

	return env_has_value(row, text) && (env_parse(row, text, &value) < 0 || value.number != 0);
}

static NRT_STATUS check_start(const nrt_profile_continuous_options_t *options)
{
	if (!options) {
		log_write(LOG_LEVEL_ERROR, TAG, "nrt_profile_continuous_start",
			"No options given (NULL)");
		return NRT_INVALID;
	}
	if (inspect_device_is_on() || is_inspect_wanted()) {
		log_write(LOG_LEVEL_ERROR, TAG, "nrt_profile_continuous_start",
			"Please disable inspect device profiling to use continuous profiling. "
			"Unset NEURON_RT_INSPECT_DEVICE_PROFILE or set to 0.");
		return NRT_INVALID;
	}
	return profile_check_synchronous("nrt_profile_continuous_start", "Continuous profiling");
}

NRT_STATUS nrt_profile_continuous_start(nrt_profile_continuous_options_t *options)
{
	NRT_STATUS status = profile_enter(__func__);

	if (status)
		return status;
	status = check_start(options);
	if (!status && atomic_exchange(&enabled, true))
		log_warn(TAG, "Continuous profiling is already enabled; nothing changes");
	profile_leave();
	return status;
}

static void disable(void)
{
	atomic_store(&enabled, false);
	for (uint32_t nc = 0; nc < PROFILE_MAX_CORES; nc++) {
		struct core *c = &cores[nc];

		pthread_mutex_lock(&c->saving);
		pthread_mutex_lock(&c->lock);
		unsubscribe(c, nc);
		pthread_mutex_unlock(&c->lock);
		profile_harvest_drop(&c->harvest);
		profile_free(c->last);
		c->last = NULL;
		pthread_mutex_unlock(&c->saving);
	}
}

NRT_STATUS nrt_profile_continuous_stop(void)
{
	NRT_STATUS status = profile_enter(__func__);

	if (status)
		return status;
	if (!continuous_is_enabled())
		log_info(TAG, "Continuous profiling is not enabled");
	disable();
	profile_leave();
	return NRT_SUCCESS;
}

void continuous_close(void)
{
	disable();
}

/* ---- save --------------------------------------------------------------------------------- */

/* Reads from the cursor that has the last execution. */
static void harvest(struct core *c, uint32_t nc)
{
	pthread_mutex_lock(&c->lock);
	if (c->cursors[0])
		profile_harvest(
			&c->harvest, c->cursors[c->running ? c->newest ^ 1 : c->newest], nc);
	pthread_mutex_unlock(&c->lock);
}

/* The profile of the core's last run, if one has ended since the last time, takes the place of
 * the older one. */
static NRT_STATUS renew(struct core *c, uint32_t nc)
{
	const struct collector_data *d = &c->harvest.data;
	const struct collector_run *r;
	struct profile_wish wish = {.nc = nc};
	struct profile *p;
	NRT_STATUS status;

	harvest(c, nc);
	if (!d->run_count) {
		status = c->harvest.partial ? NRT_FAILURE : NRT_SUCCESS;
		profile_harvest_drop(&c->harvest);
		return status;
	}
	r = &d->runs[d->run_count - 1];
	wish.id = r->model_id;
	wish.model = r->model_number;
	wish.exec = r->exec_id;
	wish.node = profile_node_find(nc, r->model_number);
	status = profile_build("nrt_profile_continuous_save", &wish, &c->harvest, &p);
	profile_node_put(wish.node);
	if (status)
		return status;
	profile_free(c->last);
	c->last = p;
	return NRT_SUCCESS;
}

/* "<dir>/model_..._<time>"; NULL: no memory. */
static char *name_of(const struct profile *p, const char *dir, uint32_t vnc)
{
	time_t now = time(NULL);
	struct tm tm;
	char when[32], *name;

	if (!localtime_r(&now, &tm) || !strftime(when, sizeof(when), "%Y%m%d_%H%M%S", &tm))
		(void)snprintf(when, sizeof(when), "%lld", (long long)now);
	if (asprintf(&name, "%s/model_%" PRIu64 "_pid_%d_vnc_%u_inst_0_%s", dir, p->info.id,
		    (int)getpid(), vnc, when) < 0)
		return NULL;
	return name;
}

/* Tries one name after the other until one is new; *ret_path: the last one.  0 or -errno. */
static int store_new(struct profile *p, const char *name, char **ret_path)
{
	int rc = -EEXIST;

	for (int n = 1; rc == -EEXIST && n <= MAX_FILES; n++) {
		char suffix[16] = "";

		if (n > 1)
			(void)snprintf(suffix, sizeof(suffix), "_%d", n);
		free(*ret_path);
		if (asprintf(ret_path, "%s%s.ntff", name, suffix) < 0) {
			*ret_path = NULL;
			return -ENOMEM;
		}
		rc = profile_store(p, *ret_path, NULL);
	}
	return rc;
}

static NRT_STATUS write_last(struct core *c, uint32_t vnc, const char *dir)
{
	static const char call[] = "nrt_profile_continuous_save";
	_cleanup_free_ char *name = name_of(c->last, dir, vnc);
	_cleanup_free_ char *path = NULL;
	unsigned made = 0;
	int rc = name ? file_mkdirs(dir, &made) : -ENOMEM;

	if (rc < 0)
		return profile_say_refused(call, dir, rc);
	rc = store_new(c->last, name, &path);
	if (rc < 0) {
		file_mkdirs_undo(dir, made);
		return profile_say_refused(call, path ? path : dir, rc);
	}
	log_write(LOG_LEVEL_INFO, TAG, call, "The profile is in '%.300s'", path);
	return NRT_SUCCESS;
}

static NRT_STATUS save(struct core *c, uint32_t vnc, const char *dir)
{
	NRT_STATUS status = renew(c, vnc);

	if (status)
		return status;
	if (!c->last) {
		log_write(LOG_LEVEL_ERROR, TAG, "nrt_profile_continuous_save",
			"No execution on NC %u has ended since nrt_profile_continuous_start", vnc);
		return NRT_INVALID;
	}
	return write_last(c, vnc, dir);
}

static NRT_STATUS check_save(uint32_t vnc, const nrt_profile_continuous_options_t *options)
{
	static const char call[] = "nrt_profile_continuous_save";

	if (!continuous_is_enabled()) {
		log_write(LOG_LEVEL_ERROR, TAG, call,
			"To use the nrt_profile_continuous_save() API you must first call "
			"nrt_profile_continuous_start().");
		return NRT_INVALID;
	}
	if (!options || (options->output_dir && !*options->output_dir)) {
		log_write(LOG_LEVEL_ERROR, TAG, call, "No %s given",
			options ? "directory" : "options");
		return NRT_INVALID;
	}
	return profile_check_core(call, vnc);
}

NRT_STATUS nrt_profile_continuous_save(uint32_t vnc, nrt_profile_continuous_options_t *options)
{
	NRT_STATUS status = profile_enter(__func__);

	if (status)
		return status;
	status = check_save(vnc, options);
	if (!status) {
		const char *dir = options->output_dir;

		pthread_mutex_lock(&cores[vnc].saving);
		status = save(&cores[vnc], vnc, dir ? dir : INSPECT_DEFAULT_DIR);
		pthread_mutex_unlock(&cores[vnc].saving);
	}
	profile_leave();
	return status;
}
