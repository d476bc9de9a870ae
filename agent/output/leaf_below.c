/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leaf_below.c - looks one directory down, and in each that has nothing one more: that is as deep as any layout of
 * inspect sessions puts a recording.
 */
#include "agent/output/leaf_below.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/output/leaf.h"
#include "agent/output/leaf_failures.h"
#include "runtime/base/file.h"

#define LEVELS 2

void leaf_below_free(struct leaf_below *b)
{
	for (size_t i = 0; i < b->count; i++)
		free(b->dirs[i]);
	free(b->dirs);
	*b = (struct leaf_below){0};
}

/* Takes path. */
static int add(struct leaf_below *b, char *path)
{
	char **dirs = realloc(b->dirs, (b->count + 1) * sizeof(*dirs));

	if (!dirs) {
		free(path);
		return -ENOMEM;
	}
	dirs[b->count++] = path;
	b->dirs = dirs;
	return 0;
}

static int is_entry(const struct dirent *d)
{
	return (d->d_type == DT_DIR || d->d_type == DT_UNKNOWN) && strcmp(d->d_name, ".") != 0 &&
	       strcmp(d->d_name, "..") != 0;
}

static bool has_recording(const char *dir)
{
	_cleanup_free_ char *path = NULL;

	if (asprintf(&path, "%s/" REC_DIR, dir) < 0)
		path = NULL;
	return path && access(path, F_OK) == 0;
}

/* Has it been made into files, there or in the session's own directory? */
static bool is_done(const char *dir)
{
	_cleanup_free_ char *scratch = NULL, *leaf = NULL;

	return leaf_is_done(dir) ||
	       (leaf_failures_find(dir, &scratch, &leaf) > 0 && leaf_is_done(leaf));
}

static int look(const char *dir, unsigned levels, struct leaf_below *b);

static int look_at(const char *dir, const char *name, unsigned levels, struct leaf_below *b)
{
	size_t len = strlen(dir);
	char *path = NULL;
	int rc = 0;

	if (asprintf(&path, "%s%s%s", dir, len && dir[len - 1] == '/' ? "" : "/", name) < 0)
		return -ENOMEM;
	if (has_recording(path) && !is_done(path))
		return add(b, path);
	if (levels > 1)
		rc = look(path, levels - 1, b);
	free(path);
	return rc == -ENOMEM ? rc : 0; /* what cannot be read has nothing to offer */
}

static int look(const char *dir, unsigned levels, struct leaf_below *b)
{
	struct dirent **list;
	int n = scandir(dir, &list, is_entry, versionsort), rc = 0;

	if (n < 0)
		return -errno;
	for (int i = 0; i < n; i++) {
		if (rc == 0)
			rc = look_at(dir, list[i]->d_name, levels, b);
		free(list[i]);
	}
	free(list);
	return rc;
}

int leaf_below_find(const char *dir, struct leaf_below *ret)
{
	*ret = (struct leaf_below){0};
	return look(dir, LEVELS, ret);
}

/* Is it plainly that of a recorder? */
static bool is_recorders(const char *dir)
{
	struct rec_header h;
	bool recorders;

	if (leaf_header(dir, &h) <= 0)
		return false; /* nobody knows */
	recorders = !h.info.session;
	rec_header_free(&h);
	return recorders;
}

static void keep_sessions(struct leaf_below *b)
{
	size_t n = 0;

	for (size_t i = 0; i < b->count; i++)
		if (is_recorders(b->dirs[i]))
			free(b->dirs[i]);
		else
			b->dirs[n++] = b->dirs[i];
	b->count = n;
}

/* The profiles of failures without the rest? */
static int add_failures(const char *path, struct leaf_below *b)
{
	_cleanup_free_ char *scratch = NULL, *leaf = NULL;
	int rc;

	if (has_recording(path) || leaf_failures_find(path, &scratch, &leaf) <= 0)
		return 0;
	rc = add(b, scratch);
	scratch = NULL;
	return rc;
}

int leaf_below_left_out(const char *path, struct leaf_below *ret)
{
	_cleanup_free_ char *own = NULL;
	int rc;

	*ret = (struct leaf_below){0};
	if (asprintf(&own, "%s/%s", path, merge_file_name(MERGE_NTRACE)) < 0) {
		own = NULL;
		return -ENOMEM;
	}
	if (access(own, F_OK) == 0)
		return 0;
	rc = leaf_below_find(path, ret);
	if (rc < 0)
		return rc == -ENOMEM ? rc : 0;
	keep_sessions(ret);
	return add_failures(path, ret);
}
