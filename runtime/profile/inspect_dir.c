/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_dir.c - makes, names, fills and removes the directory of a session.
 *
 * Below the base every step is one component from an open directory, with O_NOFOLLOW, so that a
 * link that somebody has put there leads nowhere; a name that is taken, by whatever, is stepped
 * over.  The level of two of the layouts is shared by the sessions of a process, so it may be there
 * already: it is used when it is a directory of ours (or of who owns the base), for another owner
 * could exchange what is in it.
 *
 * Others close sessions at the same time, and take a base that has become empty away between two
 * steps of ours: then all begins again.
 */
#include "runtime/profile/inspect_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "runtime/log/log.h"
#include "runtime/profile/inspect_config.h"
#include "runtime/profile/inspect_names.h"

#define TAG "NRT"
#define VANISHED_TRIES 100
#define FILE_ROOM 200 /* bytes of a path for what lies in the leaf */
#define NO_FD ((struct kept_fd){.fd = -1})

/* ---- messages ----------------------------------------------------------------------------- */

static const struct {
	int err;
	NRT_STATUS status;
	const char *advice;
} reasons[] = {
	{ENOTDIR, NRT_INVALID, "name a directory"},
	{ELOOP, NRT_INVALID, "name a directory without links in a circle"},
	{ENAMETOOLONG, NRT_INVALID, "name a directory with a shorter path"},
	{EACCES, NRT_FAILURE, "name a directory that this user may write to"},
	{EPERM, NRT_FAILURE, "name a directory that this user may write to"},
	{EROFS, NRT_FAILURE, "name a directory on a file system that can be written to"},
	{ENOSPC, NRT_RESOURCE, "make room there, in bytes or in inodes"},
	{EDQUOT, NRT_RESOURCE, "make room in the quota of this user"},
	{EMFILE, NRT_RESOURCE, "raise the limit of open files"},
	{ENFILE, NRT_RESOURCE, "close files: the machine has too many open"},
	{ENOMEM, NRT_RESOURCE, "there is no memory"},
	{0, NRT_FAILURE, "name another directory"},
};

static NRT_STATUS refuse(const char *call, const char *base, int rc)
{
	size_t i = 0;

	while (reasons[i].err && reasons[i].err != -rc)
		i++;
	log_write(LOG_LEVEL_ERROR, TAG, call,
		"Cannot make the directory of a session below '%.300s': %s; %s "
		"(NEURON_RT_INSPECT_OUTPUT_DIR, nrt_inspect_config_set_output_dir)",
		base, strerror(-rc), reasons[i].advice);
	return reasons[i].status;
}

/* ---- removing ----------------------------------------------------------------------------- */

/* Is what is there under this path the directory that was made? */
static bool is_still(const char *path, const struct kept_fd *k)
{
	struct kept_fd now;
	int fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	bool same;

	if (fd < 0)
		return false;
	same = kept_fd_learn(&now, fd) == 0 && now.ino == k->ino && now.dev_major == k->dev_major &&
	       now.dev_minor == k->dev_minor;
	(void)close(fd);
	return same;
}

/* Removes the directory when it is empty.  0 or -errno; 0 also when it is another's, or gone. */
static int remove_own(char **path, struct kept_fd *k)
{
	int rc = *path && is_still(*path, k) && rmdir(*path) < 0 ? -errno : 0;

	kept_fd_close(k);
	free(*path);
	*path = NULL;
	return rc;
}

static void remove_scratch(struct inspect_dir *d)
{
	_cleanup_free_ char *work = d->work ? strdup(d->work) : NULL;

	if (remove_own(&d->work, &d->fd) == -ENOTEMPTY)
		log_warn(TAG, "The working directory %s of the session stays: it is not empty",
			work ? work : "");
}

/* As far as it is empty. */
static void take_away(struct inspect_dir *d)
{
	if (d->on_fail)
		remove_scratch(d);
	(void)remove_own(&d->path, d->on_fail ? &d->leaf : &d->fd);
	/* Whoever of those who share it is the last. */
	if (d->level)
		(void)rmdir(d->level);
	file_mkdirs_undo(d->base, d->base_made);
	free(d->work);
	free(d->level);
	d->work = d->level = NULL;
	d->base_made = 0;
}

/* ---- making ------------------------------------------------------------------------------- */

/* A new directory: its descriptor, -EEXIST or -errno. */
static int make_directory(int parent, const char *name)
{
	int fd;

	if (mkdirat(parent, name, 0777) < 0)
		return -errno;
	fd = inspect_directory_open(parent, name);
	if (fd < 0)
		(void)unlinkat(parent, name, AT_REMOVEDIR);
	else
		file_chown_invoker(fd);
	return fd;
}

/* The first of name, name_2, ... that is nobody's: its descriptor or -errno; `name` becomes what
 * it was. */
static int make_unique(int parent, char name[INSPECT_NAME_BYTES])
{
	char buf[INSPECT_NAME_BYTES + 16];

	for (unsigned n = 1; n <= INSPECT_NAME_TRIES; n++) {
		const char *try = inspect_name_numbered(buf, name, n);
		int fd = make_directory(parent, try);

		if (fd == -EEXIST)
			continue;
		if (fd >= 0 && n > 1)
			inspect_name_copy(name, try);
		return fd;
	}
	return -EEXIST;
}

/* The first of name, name_2, ... that is new or ours; as make_unique. */
static int take_level(
	int parent, const struct stat *base, char name[INSPECT_NAME_BYTES], bool *ret_made)
{
	char buf[INSPECT_NAME_BYTES + 16];

	for (unsigned n = 1; n <= INSPECT_NAME_TRIES; n++) {
		const char *try = inspect_name_numbered(buf, name, n);
		int fd = make_directory(parent, try);

		*ret_made = fd >= 0;
		if (fd == -EEXIST)
			fd = inspect_level_open(parent, base, try);
		if (fd == -EEXIST)
			continue;
		if (fd >= 0 && n > 1)
			inspect_name_copy(name, try);
		return fd;
	}
	return -EEXIST;
}

/* Where a session is being made. */
struct place {
	int base, level; /* descriptors; level -1 = none */
	struct inspect_names names;
};

static int make_level(
	struct inspect_dir *d, int base_fd, const struct stat *base, char name[INSPECT_NAME_BYTES])
{
	bool made;
	int fd = take_level(base_fd, base, name, &made);

	if (fd < 0)
		return fd;
	d->level = inspect_path_join(d->base, "", name);
	if (d->level)
		return fd;
	(void)close(fd);
	if (made)
		(void)unlinkat(base_fd, name, AT_REMOVEDIR);
	return -ENOMEM;
}

static int make_leaf(struct inspect_dir *d, struct place *p)
{
	int parent = p->level >= 0 ? p->level : p->base;
	int fd = make_unique(parent, p->names.leaf);
	int rc;

	if (fd < 0)
		return fd;
	d->path = inspect_path_join(d->base, p->names.level, p->names.leaf);
	rc = !d->path ? -ENOMEM : strlen(d->path) + FILE_ROOM >= PATH_MAX ? -ENAMETOOLONG : 0;
	if (rc < 0)
		(void)close(fd);
	else
		rc = kept_fd_adopt(&d->leaf, fd);
	if (rc < 0)
		(void)unlinkat(parent, p->names.leaf, AT_REMOVEDIR);
	return rc;
}

/* Stands in the base, whatever the layout: its name has the whole of the leaf's. */
static int make_scratch(struct inspect_dir *d, const struct place *p)
{
	char name[INSPECT_NAME_BYTES];
	int fd, rc;

	(void)snprintf(name, sizeof(name), ".%.100s%s%.48s.tmp", p->names.level,
		*p->names.level ? "_" : "", p->names.leaf);
	fd = make_unique(p->base, name);
	if (fd < 0)
		return fd;
	d->work = inspect_path_join(d->base, "", name);
	if (d->work)
		rc = kept_fd_adopt(&d->fd, fd);
	else {
		(void)close(fd);
		rc = -ENOMEM;
	}
	if (rc < 0)
		(void)unlinkat(p->base, name, AT_REMOVEDIR);
	return rc;
}

/* Without a scratch directory the leaf is where it works. */
static int work_in_leaf(struct inspect_dir *d)
{
	/* First, for that is where take_away looks for the leaf's. */
	d->fd = d->leaf;
	d->leaf = NO_FD;
	d->work = strdup(d->path);
	return d->work ? 0 : -ENOMEM;
}

static int open_base(struct inspect_dir *d, struct stat *ret)
{
	int fd = open(d->base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, ret) < 0) {
		int rc = -errno;

		cleanup_close(&fd);
		return rc;
	}
	d->base_dev = ret->st_dev;
	d->base_ino = ret->st_ino;
	return fd;
}

/* One attempt; what it leaves half-made take_away removes. */
static int make_once(struct inspect_dir *d, const struct inspect_dir_wish *wish)
{
	_cleanup_close_ int base_fd = -1, level_fd = -1;
	struct place p;
	struct stat base;
	int rc = file_mkdirs(d->base, &d->base_made);

	if (rc < 0)
		return rc;
	base_fd = open_base(d, &base);
	if (base_fd < 0)
		return base_fd;
	p = (struct place){.base = base_fd, .level = -1};
	inspect_names_make(wish, &p.names);
	if (*p.names.level) {
		level_fd = make_level(d, base_fd, &base, p.names.level);
		if (level_fd < 0)
			return level_fd;
		p.level = level_fd;
	}
	rc = make_leaf(d, &p);
	if (rc == 0)
		rc = wish->on_fail ? make_scratch(d, &p) : work_in_leaf(d);
	return rc;
}

static int make(struct inspect_dir *d, const struct inspect_dir_wish *wish)
{
	int rc = -ENOENT;

	/* ENOTDIR: mkdir has seen it, and stat has not. */
	for (int n = 0; (rc == -ENOENT || rc == -ENOTDIR) && n < VANISHED_TRIES; n++) {
		rc = make_once(d, wish);
		if (rc < 0)
			take_away(d);
	}
	return rc;
}

/* ---- the object --------------------------------------------------------------------------- */

static void free_dir(struct inspect_dir *d)
{
	free(d->base);
	free(d->path);
	free(d);
}

static NRT_STATUS open_null(struct inspect_dir *d)
{
	d->is_null = true;
	d->path = strdup(INSPECT_NULL_DIR);
	return d->path ? NRT_SUCCESS : NRT_RESOURCE;
}

static NRT_STATUS open_dir(const char *call, const char *base, const struct inspect_dir_wish *wish,
	struct inspect_dir *d)
{
	int rc;

	if (strcmp(base, INSPECT_NULL_DIR) == 0)
		return open_null(d);
	d->on_fail = wish->on_fail;
	rc = inspect_path_absolute(base, &d->base);
	if (rc == 0)
		rc = make(d, wish);
	return rc < 0 ? refuse(call, base, rc) : NRT_SUCCESS;
}

NRT_STATUS inspect_dir_open(
	const char *call, const struct inspect_dir_wish *wish, struct inspect_dir **ret)
{
	const char *base = wish->base && *wish->base ? wish->base : INSPECT_DEFAULT_DIR;
	NRT_STATUS status = inspect_base_check(call, base);
	struct inspect_dir *d;

	if (status)
		return status;
	if (base != wish->base)
		log_write(LOG_LEVEL_INFO, TAG, call,
			"provided inspect output directory is empty. Defaulting to %s", base);
	d = calloc(1, sizeof(*d));
	if (!d)
		return refuse(call, base, -ENOMEM);
	d->fd = d->leaf = NO_FD;
	status = open_dir(call, base, wish, d);
	if (status)
		free_dir(d);
	else
		*ret = d;
	return status;
}

int inspect_dir_check(const struct inspect_dir *d)
{
	struct stat st;

	if (d->is_null || is_still(d->work, &d->fd))
		return 0;
	return lstat(d->work, &st) < 0 ? -errno : -ESTALE;
}

void inspect_dir_tidy(const struct inspect_dir *d)
{
	if (d->is_null)
		return;
	if (d->on_fail && is_still(d->work, &d->fd))
		(void)rmdir(d->work);
	if (is_still(d->path, d->on_fail ? &d->leaf : &d->fd))
		(void)rmdir(d->path);
	if (d->level)
		(void)rmdir(d->level);
	file_mkdirs_undo(d->base, d->base_made);
}

void inspect_dir_close(struct inspect_dir *d)
{
	if (!d)
		return;
	if (!d->is_null)
		take_away(d);
	free_dir(d);
}

/* ---- its files ---------------------------------------------------------------------------- */

/* The descriptor, opened again when the program has closed it. */
static int again(struct kept_fd *k, const char *path)
{
	struct kept_fd now;
	int rc;

	if (kept_fd_valid(k))
		return k->fd;
	if (!is_still(path, k))
		return -ENOENT;
	rc = inspect_directory_open(AT_FDCWD, path);
	if (rc >= 0)
		rc = kept_fd_adopt(&now, rc);
	if (rc < 0)
		return rc;
	*k = now;
	return k->fd;
}

static bool is_name(const char *name)
{
	return *name && !strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/* As file_rename, from one directory to another. */
static int move_file(int from, int to, const char *name)
{
	if (renameat2(from, name, to, name, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	if (linkat(from, name, to, name, 0) < 0)
		return -errno;
	return unlinkat(from, name, 0) < 0 ? -errno : 0;
}

static int keep_file(const char *call, struct inspect_dir *d, const char *name)
{
	int from = again(&d->fd, d->work), to = again(&d->leaf, d->path);
	struct stat st;
	int rc;

	if (!is_name(name))
		rc = -EINVAL;
	else if (from < 0 || to < 0)
		rc = from < 0 ? from : to;
	else if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
		return 0;
	else
		rc = move_file(from, to, name);
	if (rc < 0)
		log_write(LOG_LEVEL_ERROR, TAG, call, "Cannot move %s/%s to %s: %s; it stays there",
			d->work, name, d->path, strerror(-rc));
	else
		log_write(LOG_LEVEL_INFO, TAG, call, "Move %s/%s to %s/%s", d->work, name, d->path,
			name);
	return rc;
}

int inspect_dir_keep(
	const char *call, struct inspect_dir *d, const char *const *names, size_t count)
{
	int first = 0;

	for (size_t i = 0; d->on_fail && !d->is_null && i < count; i++) {
		int rc = keep_file(call, d, names[i]);

		first = first ? first : rc;
	}
	return first;
}

int inspect_dir_drop(struct inspect_dir *d, const char *name)
{
	int fd;

	if (d->is_null)
		return 0;
	fd = is_name(name) ? again(&d->fd, d->work) : -EINVAL;
	if (fd < 0)
		return fd;
	return unlinkat(fd, name, 0) < 0 && errno != ENOENT ? -errno : 0;
}
