/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scratch.h - what file tests need: a directory of their own, and a child process to break things
 * in.
 *
 * Header only; a test file includes it and uses what it wants.
 */
#ifndef NTRACE_TESTS_SCRATCH_H
#define NTRACE_TESTS_SCRATCH_H

#include <dirent.h>
#include <ftw.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct scratch {
	char dir[PATH_MAX / 4];
};

/* Makes a new directory below $TMPDIR; false when that fails. */
static inline bool scratch_make(struct scratch *s)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(s->dir, sizeof(s->dir), "%s/ntrace-test-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	return mkdtemp(s->dir) != NULL;
}

static inline int scratch_unlink_(
	const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static inline void scratch_remove_tree(const char *path)
{
	nftw(path, scratch_unlink_, 16, FTW_DEPTH | FTW_PHYS);
}

static inline void scratch_remove(struct scratch *s)
{
	scratch_remove_tree(s->dir);
}

struct scratch_path {
	char s[PATH_MAX];
};

/* The path of `name` in the directory. */
static inline struct scratch_path scratch_path(const struct scratch *s, const char *name)
{
	struct scratch_path p;

	snprintf(p.s, sizeof(p.s), "%s/%s", s->dir, name);
	return p;
}

/* How many entries the directory has, temporary files included; -1 when it cannot be read. */
static inline int scratch_entries(const char *dir)
{
	DIR *d = opendir(dir);
	int n = 0;

	if (!d)
		return -1;
	for (struct dirent *e; (e = readdir(d));)
		n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
	closedir(d);
	return n;
}

/* Runs fn in a child: what it returns (0..255), or -1 when it died.  Checks belong to the parent.
 */
static inline int scratch_child(int (*fn)(void *arg), void *arg)
{
	int status = 0;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0)
		_exit(fn(arg));
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

#endif
