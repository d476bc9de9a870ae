/* SPDX-License-Identifier: Apache-2.0 */
/*
 * safe_dir.c - walks a path as the kernel does, and looks at who could change it.
 */
#include "runtime/base/safe_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/file.h"

#define MOST_LINKS 40u /* as the kernel has it */

struct walk {
	struct safe_dir *at; /* where it has come to; its path is "" for the root */
	char rest[PATH_MAX]; /* what is to come */
	char link[PATH_MAX];
	unsigned links;
};

static const char *why_not(const struct stat *st)
{
	if (st->st_uid != 0 && st->st_uid != geteuid())
		return "belongs to another user";
	if (S_ISDIR(st->st_mode) && (st->st_mode & S_IWOTH) && !(st->st_mode & S_ISVTX))
		return "can be changed by all users";
	return NULL;
}

/* ---- texts -------------------------------------------------------------------------------- */

/* Puts a path in front of what is to come. */
static int go_first(struct walk *w, const char *path)
{
	size_t len = strlen(path), left = strlen(w->rest);

	if (len + 1 + left >= sizeof(w->rest))
		return -ENAMETOOLONG;
	memmove(w->rest + len + 1, w->rest, left + 1);
	memcpy(w->rest, path, len);
	w->rest[len] = '/';
	return 0;
}

/* Takes the next name; 1, 0 at the end, or -errno. */
static int next_name(struct walk *w, char name[NAME_MAX + 1])
{
	const char *from = w->rest + strspn(w->rest, "/");
	size_t len = strcspn(from, "/");

	if (len > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(name, from, len);
	name[len] = '\0';
	memmove(w->rest, from + len, strlen(from + len) + 1);
	return len != 0;
}

static void drop_name(struct safe_dir *d)
{
	char *slash = strrchr(d->path, '/');

	if (slash)
		*slash = '\0';
}

static int put_name(struct safe_dir *d, const char *name)
{
	size_t len = strlen(d->path);

	if (!strcmp(name, "..")) {
		drop_name(d);
		return 0;
	}
	if (len + 1 + strlen(name) >= sizeof(d->path))
		return -ENAMETOOLONG;
	d->path[len] = '/';
	(void)stpcpy(d->path + len + 1, name);
	return 0;
}

/* ---- steps -------------------------------------------------------------------------------- */

static void go_to(struct walk *w, int fd)
{
	safe_dir_close(w->at);
	w->at->fd = fd;
}

/* To the root, for an absolute path. */
static int go_to_root(struct walk *w)
{
	int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return -errno;
	go_to(w, fd);
	w->at->path[0] = '\0';
	if (fstat(fd, &st) < 0)
		return -errno;
	w->at->why = why_not(&st);
	return w->at->why ? -EPERM : 0;
}

/* The thing itself, also when it is a link. */
static int open_or_make(int dir, const char *name)
{
	int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT) {
		if (mkdirat(dir, name, 0755) < 0 && errno != EEXIST)
			return -errno;
		fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	}
	return fd < 0 ? -errno : fd;
}

static int follow(struct walk *w, int link)
{
	ssize_t n = readlinkat(link, "", w->link, sizeof(w->link) - 1);
	int rc;

	if (n < 0)
		return -errno;
	if (++w->links > MOST_LINKS)
		return -ELOOP;
	w->link[n] = '\0';
	drop_name(w->at);
	rc = go_first(w, w->link);
	return rc == 0 && w->link[0] == '/' ? go_to_root(w) : rc;
}

/* Into what has been opened, which is the walk's from here on. */
static int step_into(struct walk *w, int fd)
{
	struct stat st;
	int rc = -ENOTDIR;

	if (fstat(fd, &st) < 0) {
		rc = -errno;
	} else if ((w->at->why = why_not(&st))) {
		rc = -EPERM;
	} else if (S_ISDIR(st.st_mode)) {
		go_to(w, fd);
		return 0;
	} else if (S_ISLNK(st.st_mode)) {
		rc = follow(w, fd);
	}
	(void)close(fd);
	return rc;
}

static int step(struct walk *w, const char *name)
{
	int fd, rc;

	if (!strcmp(name, "."))
		return 0;
	fd = open_or_make(w->at->fd, name);
	if (fd < 0)
		return fd;
	rc = put_name(w->at, name);
	if (rc < 0) {
		(void)close(fd);
		return rc;
	}
	return step_into(w, fd);
}

static int begin(struct walk *w, const char *path)
{
	int rc;

	if (!*path)
		return -ENOENT;
	rc = go_first(w, path);
	/* Who could swap a directory above the current one could swap what is found by its name. */
	if (rc == 0 && *path != '/')
		rc = getcwd(w->link, sizeof(w->link)) ? go_first(w, w->link) : -errno;
	return rc < 0 ? rc : go_to_root(w);
}

int safe_dir_open(const char *path, struct safe_dir *ret)
{
	_cleanup_free_ struct walk *w = calloc(1, sizeof(*w));
	char name[NAME_MAX + 1];
	int rc;

	ret->fd = -1;
	ret->path[0] = '\0';
	ret->why = NULL;
	if (!w)
		return -ENOMEM;
	w->at = ret;
	rc = begin(w, path);
	while (rc == 0 && (rc = next_name(w, name)) > 0)
		rc = step(w, name);
	if (!ret->path[0])
		(void)stpcpy(ret->path, "/");
	if (rc < 0)
		safe_dir_close(ret);
	return rc;
}

void safe_dir_close(struct safe_dir *d)
{
	int saved = errno;

	if (d->fd >= 0)
		(void)close(d->fd);
	d->fd = -1;
	errno = saved;
}
