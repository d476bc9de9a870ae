/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_where.c - nrt_inspect_get_instance_output_dir: the directory that the active session has,
 * or the last one had, or that one which begins now would get.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nrt/nrt_profile.h>

#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/base/instance.h"
#include "runtime/lifecycle/runtime.h"
#include "runtime/log/log.h"
#include "runtime/profile/inspect_config.h"
#include "runtime/profile/inspect_dir.h"
#include "runtime/profile/inspect_names.h"
#include "runtime/trace/trace.h"

#define TAG "NRT"

/* Where a session writes: a copy, for the session's own is gone when it has ended. */
static struct {
	pthread_mutex_t lock;
	bool active;
	char *path, *base; /* of the active or the last session; NULL = none, or no memory */
	uint64_t base_dev, base_ino;
} published = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Under the lock. */
static void forget(void)
{
	free(published.path);
	free(published.base);
	published.path = published.base = NULL;
	published.active = false;
}

static void remember(const struct inspect_dir *d)
{
	forget();
	published.active = true;
	published.path = strdup(d->path);
	published.base = d->base ? strdup(d->base) : NULL;
	published.base_dev = d->base_dev;
	published.base_ino = d->base_ino;
}

void inspect_dir_publish(const struct inspect_dir *d)
{
	pthread_mutex_lock(&published.lock);
	if (d)
		remember(d);
	else
		published.active = false;
	pthread_mutex_unlock(&published.lock);
	if (d && !d->is_null)
		trace_count_session();
}

void inspect_dir_forget(void)
{
	pthread_mutex_lock(&published.lock);
	forget();
	pthread_mutex_unlock(&published.lock);
}

/* name becomes the first of name, name_2, ... that nothing has. */
static void find_free(int parent, char name[INSPECT_NAME_BYTES])
{
	char buf[INSPECT_NAME_BYTES + 16];
	struct stat st;
	unsigned n = 1;

	while (n < INSPECT_NAME_TRIES &&
		fstatat(parent, inspect_name_numbered(buf, name, n), &st, AT_SYMLINK_NOFOLLOW) == 0)
		n++;
	if (n > 1)
		inspect_name_copy(name, inspect_name_numbered(buf, name, n));
}

/* The level that would be taken: its descriptor, or -errno when it is new. */
static int find_level(int parent, const struct stat *base, char name[INSPECT_NAME_BYTES])
{
	char buf[INSPECT_NAME_BYTES + 16];
	int fd = -EEXIST;

	for (unsigned n = 1; fd == -EEXIST && n <= INSPECT_NAME_TRIES; n++) {
		const char *try = inspect_name_numbered(buf, name, n);

		fd = inspect_level_open(parent, base, try);
		if (fd != -EEXIST && n > 1)
			inspect_name_copy(name, try);
	}
	return fd;
}

/* What a session that begins now would get; makes nothing. */
static int next_path(const char *base, struct inspect_names *names, char **ret)
{
	_cleanup_close_ int fd = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_close_ int level = -1;
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0) {
		if (!*names->level)
			find_free(fd, names->leaf);
		else if ((level = find_level(fd, &st, names->level)) >= 0)
			find_free(level, names->leaf);
	}
	*ret = inspect_path_join(base, names->level, names->leaf);
	return *ret ? 0 : -ENOMEM;
}

static int next_path_now(const char *base, char **ret)
{
	const struct runtime *r = runtime_get();
	char id[INSTANCE_ID_BYTES];
	struct inspect_dir_wish wish = {
		.layout = (enum inspect_layout)r->output_layout,
		.instance_id = id,
		.time_ns = clock_snapshot_take().realtime,
	};
	struct inspect_names names;

	instance_read_id(r->devices->root, NULL, id);
	inspect_names_make(&wish, &names);
	return next_path(base, &names, ret);
}

/* Under the lock.  A session that writes nothing has no base. */
static bool is_its_base(const char *base)
{
	struct stat st;

	if (!published.base)
		return false;
	if (stat(base, &st) < 0)
		return strcmp(base, published.base) == 0;
	return st.st_dev == published.base_dev && st.st_ino == published.base_ino;
}

/* Under the lock.  A directory that is not there, or no longer, is no answer for who looks for the
 * files of a session that has ended. */
static bool is_answer(const char *base)
{
	if (!published.path || (base && !is_its_base(base)))
		return false;
	return published.active || access(published.path, F_OK) == 0;
}

/* 1: base is not that of the active, or last, session. */
static int session_path(const char *base, char **ret)
{
	int rc = 1;

	pthread_mutex_lock(&published.lock);
	if (is_answer(base)) {
		*ret = strdup(published.path);
		rc = *ret ? 0 : -ENOMEM;
	}
	pthread_mutex_unlock(&published.lock);
	return rc;
}

static int find_path(const char *dir, char **ret)
{
	_cleanup_free_ char *base = NULL;
	int rc = 1;

	if (!dir || !*dir) {
		dir = INSPECT_DEFAULT_DIR;
		rc = session_path(NULL, ret);
	} else if (strcmp(dir, INSPECT_NULL_DIR) == 0) {
		*ret = strdup(dir);
		rc = *ret ? 0 : -ENOMEM;
	}
	if (rc != 1)
		return rc;
	rc = inspect_path_absolute(dir, &base);
	if (rc == 0)
		rc = session_path(base, ret);
	return rc == 1 ? next_path_now(base, ret) : rc;
}

static NRT_STATUS answer_path(const char *call, const char *dir, char *buf, size_t size)
{
	_cleanup_free_ char *path = NULL;
	NRT_STATUS status = dir ? inspect_base_check(call, dir) : NRT_SUCCESS;
	size_t need;
	int rc;

	if (status)
		return status;
	rc = find_path(dir, &path);
	if (rc < 0) {
		log_write(LOG_LEVEL_ERROR, TAG, call, "Cannot name the directory of a session: %s",
			strerror(-rc));
		return rc == -ENOMEM ? NRT_RESOURCE : NRT_FAILURE;
	}
	need = strlen(path) + 1;
	if (need > size) {
		log_write(LOG_LEVEL_ERROR, TAG, call, "Buffer too small (%zu bytes). Need %zu",
			size, need);
		return NRT_INVALID;
	}
	memcpy(buf, path, need);
	return NRT_SUCCESS;
}

NRT_STATUS nrt_inspect_get_instance_output_dir(
	const char *output_dir, char *instance_dir_buf, size_t buf_size)
{
	NRT_STATUS status = api_enter(__func__);

	if (status)
		return status;
	status = instance_dir_buf ? answer_path(__func__, output_dir, instance_dir_buf, buf_size)
				  : runtime_no_place(__func__);
	api_leave();
	return status;
}
