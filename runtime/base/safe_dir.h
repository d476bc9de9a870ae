/* SPDX-License-Identifier: Apache-2.0 */
/*
 * safe_dir.h - a directory that nobody but this user and root can put something else in the place of.
 *
 * For programs of root that write where others can write, too: below /tmp somebody may have made a directory before,
 * or may swap a name for a link between two looks.  The path is walked part by part, each held by a descriptor. Every
 * directory on it, and every link, must belong to root or to the effective user, and no directory may be writable by
 * all unless it is sticky, as /tmp is.  A group that may write is trusted: somebody has given it that right.
 */
#ifndef NTRACE_BASE_SAFE_DIR_H
#define NTRACE_BASE_SAFE_DIR_H

#include <limits.h>

struct safe_dir {
	int fd; /* for openat and the like; -1 = none */
	char path
		[PATH_MAX]; /* absolute, without links and dots; when refused, of the part that is at fault */
	const char *
		why; /* it is refused: what its path is, such as "belongs to another user"; else NULL */
};

/* Opens it, and makes what is missing of it (mode 0755, less the umask).  0; -EPERM and ret->why; or -errno. */
int safe_dir_open(const char *path, struct safe_dir *ret);
/* Harmless after an open that failed. */
void safe_dir_close(struct safe_dir *d);

#endif
