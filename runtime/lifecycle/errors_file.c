/* SPDX-License-Identifier: Apache-2.0 */
/*
 * errors_file.c - opens, locks, looks, and only then writes.
 */
#include "runtime/lifecycle/errors_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/log/log.h"

#define LOCK_NS 1000000000ull /* for who writes the same file */
#define LOOK_NS 10000000

/* Several processes may write the same one.  0 or -errno. */
static int lock_file(int fd, uint64_t until_ns)
{
	uint64_t end = clock_boot().ns + LOCK_NS;

	if (end > until_ns)
		end = until_ns;
	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if ((errno != EWOULDBLOCK && errno != EINTR) || clock_boot().ns >= end)
			return -errno;
		(void)nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
	}
	return 0;
}

/* While the lock was waited for the name may have come to mean something else. */
static const char *why_not(const struct safe_dir *dir, const char *name, const struct stat *st)
{
	struct stat named;

	if (!S_ISREG(st->st_mode))
		return "is no plain file";
	if (st->st_uid != geteuid())
		return "belongs to another user";
	if (fstatat(dir->fd, name, &named, AT_SYMLINK_NOFOLLOW) < 0 || named.st_dev != st->st_dev ||
		named.st_ino != st->st_ino)
		return "has been replaced while it was opened";
	if (st->st_nlink != 1)
		return "has another name, too";
	return NULL;
}

/* ---- what it has already ------------------------------------------------------------------ */

static struct {
	pthread_mutex_t lock;
	dev_t dev;
	ino_t ino;
	off_t size;
} last = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* One that has become shorter has been emptied, or has the number of one that is gone. */
static bool has_all_before(const struct stat *st)
{
	bool has;

	pthread_mutex_lock(&last.lock);
	has = last.size > 0 && st->st_dev == last.dev && st->st_ino == last.ino &&
	      st->st_size >= last.size;
	pthread_mutex_unlock(&last.lock);
	return has;
}

static void remember(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return;
	pthread_mutex_lock(&last.lock);
	last.dev = st.st_dev;
	last.ino = st.st_ino;
	last.size = st.st_size;
	pthread_mutex_unlock(&last.lock);
}

/* ---- all of it ---------------------------------------------------------------------------- */

int errors_file_append(
	const struct safe_dir *dir, const char *name, uint64_t until_ns, const char **ret_why)
{
	/* A link is not followed, and a FIFO not waited for. */
	_cleanup_close_ int fd = openat(dir->fd, name,
		O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	struct stat st;
	int rc;

	*ret_why = NULL;
	if (fd < 0)
		return -errno;
	rc = lock_file(fd, until_ns);
	if (rc < 0)
		return rc;
	if (fstat(fd, &st) < 0)
		return -errno;
	*ret_why = why_not(dir, name, &st);
	if (*ret_why)
		return -EPERM;
	rc = log_dump_errors(fd, !has_all_before(&st));
	if (rc == 0)
		remember(fd);
	return rc;
}
