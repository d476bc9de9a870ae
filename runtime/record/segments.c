/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segments.c - finds, orders and opens the segment files of a recording.
 */
#include "runtime/record/segments.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "runtime/record/frame.h"

/* Index in a segment's name; false when it is none. */
static bool segment_index(const char *name, uint32_t *ret)
{
	char again[64];
	unsigned v;

	if (sscanf(name, "segment-%7u.ntrec", &v) != 1 || v >= REC_MAX_SEGMENTS)
		return false;
	snprintf(again, sizeof(again), REC_SEGMENT_FORMAT, v);
	*ret = v;
	return !strcmp(again, name);
}

static int compare_index(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static int list(struct segments *s)
{
	int fd = fcntl(s->dir_fd, F_DUPFD_CLOEXEC, 0);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	size_t cap = 0;
	struct dirent *d;
	uint32_t index;

	if (!dir) {
		int error = -errno;
		cleanup_close(&fd);
		return error;
	}
	rewinddir(dir);
	while ((d = readdir(dir))) {
		if (!segment_index(d->d_name, &index))
			continue;
		if (s->count == cap) {
			cap = cap ? 2 * cap : 16;
			uint32_t *more = realloc(s->index, cap * sizeof(*more));
			if (!more) {
				closedir(dir);
				return -ENOMEM;
			}
			s->index = more;
		}
		s->index[s->count++] = index;
	}
	closedir(dir);
	if (s->count == 0)
		return -ENOENT;
	qsort(s->index, s->count, sizeof(*s->index), compare_index);
	return 0;
}

int segments_file(const struct segments *s, size_t i)
{
	char name[64];
	struct stat st;
	int fd;

	snprintf(name, sizeof(name), REC_SEGMENT_FORMAT, s->index[i]);
	fd = openat(s->dir_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return errno == ENXIO || errno == ELOOP ? -EPROTO : -errno;
	int rc = fstat(fd, &st) < 0 ? -errno : S_ISREG(st.st_mode) ? 0 : -EPROTO;
	if (rc < 0)
		close(fd);
	return rc < 0 ? rc : fd;
}

bool segments_in_work(const struct segments *s)
{
	if (flock(s->dir_fd, LOCK_SH | LOCK_NB) < 0)
		return errno == EWOULDBLOCK;
	flock(s->dir_fd, LOCK_UN);
	return false;
}

/* Is the head of a segment right?  Its version, -EPROTO, -EPROTONOSUPPORT or -errno. */
static int check_segment(const struct segments *s, size_t i)
{
	_cleanup_close_ int fd = segments_file(s, i);
	struct rec_segment head;

	if (fd < 0)
		return fd;
	ssize_t n = pread(fd, &head, sizeof(head), 0);
	if (n < 0)
		return -errno;
	if (n < (ssize_t)sizeof(head) || memcmp(head.magic, REC_MAGIC, sizeof(head.magic)) ||
		head.version == 0)
		return -EPROTO;
	return head.version > REC_FORMAT_VERSION ? -EPROTONOSUPPORT : (int)head.version;
}

/* A later segment without a head is damage; the first one decides whether this is a recording. */
static int check(struct segments *s)
{
	for (size_t i = 0; i < s->count; i++) {
		int rc = check_segment(s, i);

		if (rc < 0 && (i == 0 || rc != -EPROTO))
			return rc;
		if (i == 0)
			s->version = (uint32_t)rc;
	}
	return 0;
}

/* The directory itself, or REC_DIR in it. */
static int open_directory(struct segments *s, const char *path)
{
	s->dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->dir_fd < 0)
		return errno == ENOTDIR ? -EPROTO : -errno;
	int rc = list(s);
	if (rc != -ENOENT)
		return rc;
	int inner = openat(s->dir_fd, REC_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (inner < 0)
		return errno == ENOTDIR ? -EPROTO : -errno;
	cleanup_close(&s->dir_fd);
	s->dir_fd = inner;
	return list(s);
}

int segments_open(struct segments *s, const char *path)
{
	int rc;

	*s = (struct segments){.dir_fd = -1};
	rc = open_directory(s, path);
	return rc < 0 ? rc : check(s);
}

void segments_close(struct segments *s)
{
	cleanup_close(&s->dir_fd);
	s->dir_fd = -1;
	free(s->index);
	s->index = NULL;
}

/* What is being removed is no recording any more.  A writer numbers its segments without a gap, so nothing need be
 * listed, for which there may be no memory; the last goes first, in case there was no other name to be had. */
static int remove_segments(int dir)
{
	char name[64];
	uint32_t count = 0;
	struct stat st;

	do
		snprintf(name, sizeof(name), REC_SEGMENT_FORMAT, count);
	while (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && ++count < REC_MAX_SEGMENTS);
	while (count--) {
		snprintf(name, sizeof(name), REC_SEGMENT_FORMAT, count);
		if (unlinkat(dir, name, 0) < 0)
			return -errno;
	}
	return 0;
}

/* Gives it a name by which nobody takes it for a recording, beside it; path when that can't be. */
static const char *put_aside(const char *path, char buf[PATH_MAX])
{
	const char *slash = strrchr(path, '/');
	int n = snprintf(buf, PATH_MAX, "%.*s" OUTFILE_TEMPORARY "%u-" REC_REMOVED,
		slash ? (int)(slash - path) + 1 : 0, path, (unsigned)getpid());

	return n > 0 && n < PATH_MAX && file_rename(path, buf) == 0 ? buf : path;
}

int rec_remove(const char *path)
{
	_cleanup_close_ int dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	char buf[PATH_MAX];
	int rc;

	if (dir < 0)
		return -errno;
	path = put_aside(path, buf);
	rc = remove_segments(dir);
	return rc < 0 ? rc : rmdir(path) < 0 ? -errno : 0;
}
