/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core_dump.c - the gate, what the helper is told, and the file of errors.
 *
 * Which flags there are, and the order of the last run's, is public of libnrt 2.31; the order of the others is ours
 * (docs/conformance.md, "Core dumps").
 */
#include "runtime/lifecycle/core_dump.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/env_table.h"
#include "runtime/base/file.h"
#include "runtime/base/instance.h"
#include "runtime/lifecycle/helper.h"
#include "runtime/lifecycle/path_template.h"
#include "runtime/lifecycle/runtime.h"
#include "runtime/log/log.h"

#ifndef NEURON_DUMP_PATH
#define NEURON_DUMP_PATH "/opt/aws/neuron/bin/neuron-dump"
#endif

#define TAG "NRT"
#define LOG_NAME "%i-nrt-pid-%p.log"
#define LOCK_MS 1000u	  /* for who writes the same file */
#define NO_CLUSTER "none" /* there are no collectives with others */
#define MAX_FLAGS 14u

/* One failure, and what is told of it. */
struct dump {
	const struct core_dump_of *what;
	const struct runtime *runtime;
	uint64_t until_ns; /* BOOTTIME */
	struct path_variables variables;
	char local_dir[PATH_TEMPLATE_DIR_BYTES], s3_prefix[PATH_TEMPLATE_DIR_BYTES];
	char name[PATH_TEMPLATE_FILE_BYTES];
	char log[PATH_TEMPLATE_DIR_BYTES + PATH_TEMPLATE_FILE_BYTES];
};

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

/* Each run of the helper has a number, and may have a directory by it. */
static void next_run(struct dump *d)
{
	static _Atomic uint32_t last;
	const char *local = d->runtime->local_dump_dir;

	if (!*local) /* S3 alone: the helper still needs a place to put together what goes there */
		local = env_row(ENV_ID_NEURON_RT_LOCAL_CORE_DUMP_DIRECTORY)->initial;
	PUT(d->variables.log_id, "%u", atomic_fetch_add(&last, 1) + 1);
	(void)path_template(d->local_dir, sizeof(d->local_dir), local, &d->variables);
	(void)path_template(
		d->s3_prefix, sizeof(d->s3_prefix), d->runtime->s3_dump_prefix, &d->variables);
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

static void say_end(struct helper_end end)
{
	if (end.how == HELPER_NOT_RUN)
		log_error(TAG, "Cannot run " NEURON_DUMP_PATH ": %s", strerror(end.value));
	else if (end.how == HELPER_KILLED)
		log_error(TAG,
			NEURON_DUMP_PATH " had no end within NTRACE_DUMP_SECONDS and was killed; "
					 "there are no more core dumps");
	else if (end.how == HELPER_DIED)
		log_error(TAG, NEURON_DUMP_PATH " was ended by signal %d", end.value);
	else if (end.how == HELPER_UNKNOWN)
		log_error(TAG, NEURON_DUMP_PATH
			": nobody knows how it ended; there are no more core dumps");
	else if (end.value)
		log_error(TAG, NEURON_DUMP_PATH " ended with status %d", end.value);
}

/* false: there is no use in another run. */
static bool run(const struct dump *d, const struct arguments *a)
{
	uint64_t now = clock_boot().ns;
	uint64_t left_ms = d->until_ns > now ? (d->until_ns - now) / 1000000 : 0;
	struct helper_end end;

	if (left_ms == 0) {
		log_error(TAG, "No time is left of NTRACE_DUMP_SECONDS for " NEURON_DUMP_PATH);
		return false;
	}
	end = helper_run((char *const *)a->at, left_ms);
	say_end(end);
	if (end.how == HELPER_KILLED || end.how == HELPER_UNKNOWN)
		no_more();
	return end.how == HELPER_EXITED || end.how == HELPER_DIED;
}

static bool dump_core(struct dump *d, const struct device_core *core)
{
	const struct path_variables *v = &d->variables;
	struct arguments a = begin_arguments();
	char code[12], device[12], index[12];

	next_run(d);
	PUT(code, "%d", (int)d->what->code);
	PUT(device, "%u", core->device->index);
	PUT(index, "%u", core->index);
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
	return run(d, &a);
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

/* Several processes may write the same one.  0 or -errno. */
static int lock_file(int fd)
{
	for (unsigned ms = 0; flock(fd, LOCK_EX | LOCK_NB) < 0; ms += 10) {
		if ((errno != EWOULDBLOCK && errno != EINTR) || ms >= LOCK_MS)
			return -errno;
		(void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	}
	return 0;
}

/* Below /tmp anybody may have put something there: no link is followed, and a FIFO not waited for. */
static int append_errors(const struct dump *d)
{
	_cleanup_close_ int fd = -1;
	struct stat st;
	int rc = file_mkdirs(d->local_dir, NULL);

	if (rc < 0)
		return rc;
	fd = open(
		d->log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	rc = lock_file(fd);
	return rc < 0 ? rc : log_dump_errors(fd);
}

static void report_file(struct dump *d)
{
	const struct path_variables *v = &d->variables;
	struct arguments a = begin_arguments();
	char resolved[PATH_MAX];

	if (!realpath(d->log, resolved)) {
		log_error(TAG, "Unable to find file: %s", d->log);
		return;
	}
	put(&a, "--pid", v->pid);
	put(&a, "--tid", v->tid);
	put(&a, "--log-id", v->log_id);
	put(&a, "--instance-id", v->instance_id);
	put_places(&a, d);
	put(&a, "--cluster-id", v->cluster_id);
	put(&a, "--date-time", v->datetime);
	put(&a, "--runtime-generated", resolved);
	(void)run(d, &a);
}

/* Writing it needs no helper. */
static void dump_errors(struct dump *d, bool helper_is_of_use)
{
	int rc;

	next_run(d);
	(void)path_template(d->name, sizeof(d->name), LOG_NAME, &d->variables);
	PUT(d->log, "%s/%s", d->local_dir, d->name);
	rc = append_errors(d);
	if (rc < 0)
		log_error(TAG, "Cannot write %s: %s", d->log, strerror(-rc));
	/* What somebody else has put in its place is not handed out. */
	if (helper_is_of_use && (rc == 0 || access(d->log, F_OK) < 0))
		report_file(d);
}

/* ---- all of it ---------------------------------------------------------------------------- */

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
		log_error(TAG, "No memory for a core dump");
		return;
	}
	d->what = what;
	d->runtime = r;
	d->until_ns = clock_boot().ns + r->dump_seconds * 1000000000ull;
	find_variables(d);
	log_info(TAG, "Core dump by " NEURON_DUMP_PATH ": %s, status %d", what->location,
		(int)what->code);
	dump_errors(d, dump_cores(d));
	log_info(TAG, "Core dump: %s%s%s", d->local_dir, d->s3_prefix[0] ? ", " : "", d->s3_prefix);
	if (last)
		log_error(TAG, "There have been %u core dumps; that was the last", CORE_DUMP_MOST);
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
