/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leaf_below.h - where below a directory there is something to salvage.
 *
 * Whose program was killed knows the directory that it gave to it, not the pid in the name of the one below.
 */
#ifndef NTRACE_OUTPUT_LEAF_BELOW_H
#define NTRACE_OUTPUT_LEAF_BELOW_H

#include <stddef.h>

struct leaf_below {
	char **dirs; /* paths, in order of the names; those that begin with a dot are among them */
	size_t count;
};

/*
 * The directories, at most two below `dir`, that hold a recording of which no files were made there, nor, of a session
 * for failures, where its profiles are.  0, none being
 * fine; -ENOMEM; -errno when `dir` cannot be read.  leaf_below_free in any case.
 */
int leaf_below_find(const char *dir, struct leaf_below *ret);
/*
 * What whoever shows the traces at `path` leaves out: as leaf_below_find, of inspect sessions alone, and where the
 * recording is when `path` has the profiles of failures alone.  None when `path` has its own ntrace.pb, or is a
 * file.  0 or -ENOMEM.
 */
int leaf_below_left_out(const char *path, struct leaf_below *ret);
void leaf_below_free(struct leaf_below *b);

#endif
