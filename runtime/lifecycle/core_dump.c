/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core_dump.c - the gate, what the helper is told, and what is said of it.
 *
 * Which flags there are, and the order of the last run's, is public of libnrt 2.31; the order of the others is ours
 * (docs/conformance.md, "Core dumps").
 */
#include "runtime/lifecycle/core_dump.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/env_table.h"
#include "runtime/base/file.h"
#include "runtime/base/instance.h"
#include "runtime/base/safe_dir.h"
#include "runtime/lifecycle/errors_file.h"
#include "runtime/lifecycle/helper.h"
#include "runtime/lifecycle/path_template.h"
#include "runtime/lifecycle/runtime.h"
#include "runtime/log/log.h"

#ifndef NEURON_DUMP_PATH
#define NEURON_DUMP_PATH "/opt/aws/neuron/bin/neuron-dump"
#endif

#define TAG "NRT"
#define LOG_NAME "%i-nrt-pid-%p.log"
#define NO_CLUSTER "none" /* there are no collectives with others */
#define MAX_FLAGS 14u

/* One failure, and what is told of it. */
struct dump {
	const struct core_dump_of *what;
	const struct runtime *runtime;
	uint64_t until_ns; /* BOOTTIME */
	struct path_variables variables;
	bool has_number; /* of a run that has not been */
	char local_dir[PATH_TEMPLATE_DIR_BYTES], s3_prefix[PATH_TEMPLATE_DIR_BYTES];
	char name[PATH_TEMPLATE_FILE_BYTES];
	struct safe_dir dir; /* local_dir, once it is there */
	bool has_file;
	char log[PATH_TEMPLATE_DIR_BYTES + PATH_TEMPLATE_FILE_BYTES];
};

/* In the name of the call that failed: that is how such a line gets out at once where errors are held. */
#define SAY_ERROR(d, ...) log_write(LOG_LEVEL_ERROR, TAG, (d)->what->location, __VA_ARGS__)

/* ---- which failures ----------------------------------------------------------------------- */

static struct {
	pthread_mutex_t lock;
	uint32_t count;
	bool over; /* the helper had to be killed */
	bool missing_said;
	struct {
		const char *location;
		NRT_STATUS code;
	} dumped[CORE_DUMP_MOST];
} before = {.lock = PTHREAD_MUTEX_INITIALIZER};

void core_dump_begin(void)
{
	pthread_mutex_lock(&before.lock);
	before.count = 0;
	before.over = before.missing_said = false;
	pthread_mutex_unlock(&before.lock);
}

static void no_more(void)
{
	pthread_mutex_lock(&before.lock);
	before.over = true;
	pthread_mutex_unlock(&before.lock);
}

/* Counts it, unless there have been enough; *ret_last: that was the last one of all. */
static bool may_dump(const struct core_dump_of *what, bool *ret_last)
{
	uint32_t same = 0;
	bool may;

	pthread_mutex_lock(&before.lock);
	for (uint32_t i = 0; i < before.count; i++)
		same += before.dumped[i].code == what->code &&
			!strcmp(before.dumped[i].location, what->location);
	may = !before.over && before.count < CORE_DUMP_MOST && same < CORE_DUMP_SAME;
	if (may) {
		before.dumped[before.count].location = what->location;
		before.dumped[before.count++].code = what->code;
	}
	*ret_last = before.count == CORE_DUMP_MOST;
	pthread_mutex_unlock(&before.lock);
	return may;
}

/* Who has named a place waits for something. */
static void say_missing(int error)
{
	bool said;

	pthread_mutex_lock(&before.lock);
	said = before.missing_said;
	before.missing_said = true;
	pthread_mutex_unlock(&before.lock);
	if (!said)
		log_warn(TAG, "No core dumps: " NEURON_DUMP_PATH ": %s", strerror(error));
}

/* By default only with real devices: the helper knows nothing of virtual ones, and would look at those that have their
 * numbers. */
static bool is_open(const struct runtime *r)
{
	if ((r->devices->is_virtual && !r->dumps_asked_for) ||
		!(r->local_dump_dir[0] || r->s3_dump_prefix[0]))
		return false;
	if (access(NEURON_DUMP_PATH, X_OK) == 0)
		return true;
	if (r->dumps_asked_for)
		say_missing(errno);
	return false;
}

/* ---- what the tokens stand for ------------------------------------------------------------ */

#define PUT(to, ...) ((void)snprintf(to, sizeof(to), __VA_ARGS__))

static void find_variables(struct dump *d)
{
	struct path_variables *v = &d->variables;
	char id[INSTANCE_ID_BYTES];
	time_t now = time(NULL);
	struct tm utc;

	PUT(v->pid, "%d", (int)getpid());
	PUT(v->tid, "%d", (int)syscall(SYS_gettid));
	PUT(v->cluster_id, "%s", NO_CLUSTER);
	if (!gmtime_r(&now, &utc) ||
		!strftime(v->datetime, sizeof(v->datetime), "%Y%m%d-%H%M%S", &utc))
		PUT(v->datetime, "none");
	instance_read_id(d->runtime->devices->root, NULL, id);
	PUT(v->instance_id, "%s", id);
}

/* Each run of the helper has a number; that of the first is there before it. */
static void next_run(struct dump *d)
{
	static _Atomic uint32_t last;

	if (d->has_number) {
		d->has_number = false;
		return;
	}
	PUT(d->variables.log_id, "%u", atomic_fetch_add(&last, 1) + 1);
}

/* By the number of the first run: with one for each, a %l would tear a dump apart. */
static void find_places(struct dump *d)
{
	const char *local = d->runtime->local_dump_dir;

	if (!*local) /* S3 alone: the helper still needs a place to put together what goes there */
		local = env_row(ENV_ID_NEURON_RT_LOCAL_CORE_DUMP_DIRECTORY)->initial;
	next_run(d);
	d->has_number = true;
	(void)path_template(d->local_dir, sizeof(d->local_dir), local, &d->variables);
	(void)path_template(
		d->s3_prefix, sizeof(d->s3_prefix), d->runtime->s3_dump_prefix, &d->variables);
	(void)path_template(d->name, sizeof(d->name), LOG_NAME, &d->variables);
}

/* ---- one run of the helper ---------------------------------------------------------------- */

struct arguments {
	const char *at[1 + 2 * MAX_FLAGS + 1];
	unsigned count;
};

static void put(struct arguments *a, const char *flag, const char *value)
{
	a->at[a->count++] = flag;
	a->at[a->count++] = value ? value : "";
	a->at[a->count] = NULL;
}

static struct arguments begin_arguments(void)
{
	return (struct arguments){.at = {NEURON_DUMP_PATH}, .count = 1};
}

static void put_places(struct arguments *a, const struct dump *d)
{
	put(a, "--local-output-dir", d->local_dir);
	if (d->s3_prefix[0])
		put(a, "--s3-output-prefix", d->s3_prefix);
}

/* about: which run that was. */
static void say_end(const struct dump *d, const char *about, struct helper_end end)
{
	const char *run = d->variables.log_id;

	if (end.how == HELPER_NOT_RUN)
		SAY_ERROR(d, "Cannot run " NEURON_DUMP_PATH ": %s (%s, run %s)",
			strerror(end.value), about, run);
	else if (end.how == HELPER_KILLED)
		SAY_ERROR(d,
			NEURON_DUMP_PATH " had no end within NTRACE_DUMP_SECONDS and was killed "
					 "(%s, run %s); there are no more core dumps",
			about, run);
	else if (end.how == HELPER_DIED)
		SAY_ERROR(d, NEURON_DUMP_PATH " was ended by signal %d (%s, run %s)", end.value,
			about, run);
	else if (end.how == HELPER_UNKNOWN)
		SAY_ERROR(d,
			NEURON_DUMP_PATH ": nobody knows how it ended (%s, run %s); there are no "
					 "more core dumps",
			about, run);
	else if (end.value)
		SAY_ERROR(d, NEURON_DUMP_PATH " ended with status %d (%s, run %s)", end.value,
			about, run);
}

/* false: there is no use in another run. */
static bool run(struct dump *d, const char *about, const struct arguments *a)
{
	uint64_t now = clock_boot().ns;
	uint64_t left_ms = d->until_ns > now ? (d->until_ns - now) / 1000000 : 0;
	struct helper_end end;

	if (left_ms == 0) {
		SAY_ERROR(d, "No time is left of NTRACE_DUMP_SECONDS for " NEURON_DUMP_PATH " (%s)",
			about);
		return false;
	}
	end = helper_run((char *const *)a->at, left_ms);
	say_end(d, about, end);
	if (end.how == HELPER_KILLED || end.how == HELPER_UNKNOWN)
		no_more();
	return end.how == HELPER_EXITED || end.how == HELPER_DIED;
}

static bool dump_core(struct dump *d, const struct device_core *core)
{
	const struct path_variables *v = &d->variables;
	struct arguments a = begin_arguments();
	char code[12], device[12], index[12], about[48];

	next_run(d);
	PUT(code, "%d", (int)d->what->code);
	PUT(device, "%u", core->device->index);
	PUT(index, "%u", core->index);
	PUT(about, "core %s of neuron%s", index, device);
	put(&a, "--neff-name", d->what->neff_name);
	put(&a, "--neff-uuid", d->what->neff_uuid);
	put(&a, "--date-time", v->datetime);
	put(&a, "--pid", v->pid);
	put(&a, "--tid", v->tid);
	put(&a, "--log-id", v->log_id);
	put(&a, "--instance-id", v->instance_id);
	put(&a, "--cluster-id", v->cluster_id);
	put(&a, "--error-location", d->what->location);
	put(&a, "--error-code", code);
	put_places(&a, d);
	put(&a, "--device-id", device);
	put(&a, "--core-id", index);
	return run(d, about, &a);
}

/* Every physical core of the logical one. */
static bool dump_cores(struct dump *d)
{
	const struct device_core *core =
		d->what->has_core ? runtime_core((int32_t)d->what->logical_core) : NULL;

	for (uint32_t i = 0; core && i < d->runtime->devices->lnc_size; i++)
		if (!dump_core(d, core + i))
			return false;
	return true;
}

/* ---- the file of errors ------------------------------------------------------------------- */

/* Writing it needs no helper.  What somebody else has put in its place is not handed out. */
static void write_errors(struct dump *d, int dir_error)
{
	const char *why = NULL;
	int rc = dir_error;

	PUT(d->log, "%s/%s", rc < 0 ? d->local_dir : d->dir.path, d->name);
	if (rc == 0)
		rc = errors_file_append(&d->dir, d->name, d->until_ns, &why);
	if (rc < 0)
		SAY_ERROR(d, "Cannot write %s: %s%s", d->log, why ? "it " : "",
			why ? why : strerror(-rc));
	if (rc < 0 && access(d->log, F_OK) < 0)
		SAY_ERROR(d, "Unable to find file: %s", d->log);
	d->has_file = rc == 0;
}

static void report_file(struct dump *d)
{
	const struct path_variables *v = &d->variables;
	struct arguments a = begin_arguments();

	next_run(d);
	put(&a, "--pid", v->pid);
	put(&a, "--tid", v->tid);
	put(&a, "--log-id", v->log_id);
	put(&a, "--instance-id", v->instance_id);
	put_places(&a, d);
	put(&a, "--cluster-id", v->cluster_id);
	put(&a, "--date-time", v->datetime);
	put(&a, "--runtime-generated", d->log);
	(void)run(d, "the file of errors", &a);
}

/* ---- all of it ---------------------------------------------------------------------------- */

/* The file is written before any helper runs: who waits for it may be killed meanwhile. */
static void dump_to_places(struct dump *d)
{
	int rc = safe_dir_open(d->local_dir, &d->dir);

	if (rc < 0 && d->dir.why) {
		SAY_ERROR(d, "No core dump to %s: %s %s", d->local_dir, d->dir.path, d->dir.why);
		return;
	}
	write_errors(d, rc);
	if (dump_cores(d) && d->has_file)
		report_file(d);
	safe_dir_close(&d->dir);
	log_info(TAG, "Core dump: %s%s%s", d->local_dir, d->s3_prefix[0] ? ", " : "", d->s3_prefix);
}

static void dump(const struct core_dump_of *what, const struct runtime *r)
{
	_cleanup_free_ struct dump *d = calloc(1, sizeof(*d));
	bool last;

	if (!may_dump(what, &last)) {
		log_debug(TAG, "No core dump: there have been enough of %s, status %d",
			what->location, (int)what->code);
		return;
	}
	if (!d) {
		log_write(LOG_LEVEL_ERROR, TAG, what->location, "No memory for a core dump");
		return;
	}
	d->what = what;
	d->runtime = r;
	d->until_ns = clock_boot().ns + r->dump_seconds * 1000000000ull;
	find_variables(d);
	find_places(d);
	log_info(TAG, "Core dump by " NEURON_DUMP_PATH ": %s, status %d", what->location,
		(int)what->code);
	log_api_flush();
	dump_to_places(d);
	if (last)
		SAY_ERROR(d, "There have been %u core dumps; that was the last", CORE_DUMP_MOST);
}

void core_dump(const struct core_dump_of *what)
{
	const struct runtime *r = runtime_get();
	int saved = errno;

	/* In the child of a fork the devices are its parent's. */
	if (state_now() != STATE_CHILD && r->devices && is_open(r))
		dump(what, r);
	errno = saved;
}
