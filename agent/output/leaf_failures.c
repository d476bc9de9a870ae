/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leaf_failures.c - from the directory of a session to where it worked, and back.
 *
 * The scratch directory is hidden and lies in the base.  What it holds (a recording, or the finished trace_info.pb) names
 * the session's directory: as it was called then, so that of that name only as much counts as lies below the base.
 */
#include "agent/output/leaf_failures.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/output/leaf.h"
#include "agent/output/trace_read.h"
#include "runtime/base/file.h"
#include "runtime/record/header.h"

/* ---- what a scratch directory says -------------------------------------------------------- */

/* The directory of the session below its base; NULL: this is no session for failures alone. */
static char *below_base(bool enabled, bool on_fail, const char *layout, const char *directory)
{
	const char *at = directory ? directory + strlen(directory) : "";
	int components = layout && !strcmp(layout, "flat") ? 1 : 2;

	if (enabled || !on_fail || *at == '/' || !directory || strstr(directory, "/."))
		return NULL;
	while (at > directory && components)
		components -= *--at == '/';
	return components ? NULL : strdup(at + 1);
}

/* As below_base, by the recording in dir. */
static char *by_recording(const char *dir)
{
	const struct rec_session *s;
	struct rec_header h;
	char *name = NULL;

	if (leaf_header(dir, &h) <= 0)
		return NULL;
	s = h.info.session;
	if (s)
		name = below_base(s->enabled, s->on_fail, s->layout, s->directory);
	rec_header_free(&h);
	return name;
}

/* As below_base, by the finished files. */
static char *by_files(const char *dir)
{
	_cleanup_free_ char *trace = NULL, *path = NULL;
	const Ntff__NtraceSession *s;
	Ntff__NtraceInfo *info = NULL;
	char *name = NULL;

	if (asprintf(&trace, "%s/%s", dir, merge_file_name(MERGE_NTRACE)) < 0) {
		trace = NULL;
		return NULL;
	}
	if (trace_info_read(trace, &info, &path) < 0 || !info)
		return NULL;
	s = info->session;
	if (s)
		name = below_base(s->enabled, s->on_fail, s->layout, s->directory);
	ntff__ntrace_info__free_unpacked(info, NULL);
	return name;
}

/* ---- the two directories ------------------------------------------------------------------ */

/* What path lies in, path being without links; "" when in nothing. */
static char *parent_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return strndup(path, slash ? (size_t)(slash - path) : 0);
}

static bool is_hidden(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] == '.';
}

/* The session's directory, when this one is its scratch directory and that one is there; NULL. */
static char *leaf_of_scratch(const char *scratch)
{
	_cleanup_free_ char *base = parent_of(scratch), *name = NULL;
	struct stat st;
	char *leaf;

	if (!base || !is_hidden(scratch))
		return NULL;
	name = by_recording(scratch);
	if (!name)
		name = by_files(scratch);
	if (!name || asprintf(&leaf, "%s/%s", base, name) < 0)
		return NULL;
	if (lstat(leaf, &st) == 0 && S_ISDIR(st.st_mode))
		return leaf;
	free(leaf);
	return NULL;
}

/* The scratch directory in base that is this leaf's; NULL. */
static char *scratch_in_base(const char *base, const char *leaf)
{
	DIR *dir = opendir(*base ? base : "/");
	char *found = NULL;
	struct dirent *d;

	while (dir && !found && (d = readdir(dir))) {
		_cleanup_free_ char *of = NULL;

		if (d->d_name[0] != '.' || !strstr(d->d_name, ".tmp"))
			continue;
		if (asprintf(&found, "%s/%s", base, d->d_name) < 0)
			found = NULL;
		of = found ? leaf_of_scratch(found) : NULL;
		if (of && !strcmp(of, leaf))
			break;
		free(found);
		found = NULL;
	}
	if (dir)
		closedir(dir);
	return found;
}

/* The base is one or two levels above. */
static char *scratch_of_leaf(const char *leaf)
{
	_cleanup_free_ char *parent = parent_of(leaf), *above = NULL;
	char *found = parent ? scratch_in_base(parent, leaf) : NULL;

	if (found || !parent || !*parent)
		return found;
	above = parent_of(parent);
	return above ? scratch_in_base(above, leaf) : NULL;
}

/* path without links, or what it lies in when it is the recording itself. */
static char *directory_named(const char *path)
{
	char *real = realpath(path, NULL), *slash = real ? strrchr(real, '/') : NULL;

	if (slash && !strcmp(slash + 1, REC_DIR))
		*slash = '\0';
	return real;
}

int leaf_failures_find(const char *path, char **ret_scratch, char **ret_leaf)
{
	_cleanup_free_ char *dir = directory_named(path), *other = NULL;

	if (!dir)
		return -errno;
	other = leaf_of_scratch(dir);
	if (other) {
		*ret_scratch = dir;
		*ret_leaf = other;
	} else {
		other = leaf_is_done(dir) ? NULL : scratch_of_leaf(dir);
		if (!other)
			return 0;
		*ret_scratch = other;
		*ret_leaf = dir;
	}
	dir = other = NULL;
	return 1;
}

/* ---- moving ------------------------------------------------------------------------------- */

int leaf_failures_move(const char *scratch, const char *leaf, char **ret_text)
{
	int rc = 0;

	*ret_text = NULL;
	/* trace_info.pb is the last: with it the set is whole. */
	for (unsigned i = 0; rc == 0 && i < MERGE_FILES && !leaf_in_work(scratch); i++) {
		const char *name = merge_file_name((enum merge_file)i);
		_cleanup_free_ char *from = NULL, *to = NULL;

		if (asprintf(&from, "%s/%s", scratch, name) < 0)
			from = NULL;
		if (asprintf(&to, "%s/%s", leaf, name) < 0)
			to = NULL;
		rc = from && to ? file_rename(from, to) : -ENOMEM;
		if (rc == -ENOENT)
			rc = 0;
		if (rc < 0 && from && to &&
			asprintf(ret_text, "cannot move %s to %s: %s", from, to, strerror(-rc)) < 0)
			*ret_text = NULL;
	}
	return rc;
}
