/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leaf_failures.h - a session that kept failures only, and whose program died: its device profiles are in its directory
 * already, while its recording is in the scratch directory where it worked.
 */
#ifndef NTRACE_OUTPUT_LEAF_FAILURES_H
#define NTRACE_OUTPUT_LEAF_FAILURES_H

/* The two directories of such a session, found by either, or by the recording.  1 and both, to be freed; 0: it is none, or one of the
 * two is gone; -errno. */
int leaf_failures_find(const char *path, char **ret_scratch, char **ret_leaf);

/* Moves what the program has made of the four files from the one to the other, unless it is still at work.  0 or -errno;
 * *ret_text then says what, to be freed, or is NULL. */
int leaf_failures_move(const char *scratch, const char *leaf, char **ret_text);

#endif
