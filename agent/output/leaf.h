/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leaf.h - the directory of an inspect session, where a program died before it had made its files.
 *
 * Such a directory holds `recording`, whose header has a session.  Its files belong beside that, not into a directory of a process
 * below it.
 */
#ifndef NTRACE_OUTPUT_LEAF_H
#define NTRACE_OUTPUT_LEAF_H

#include <stdint.h>

#include "runtime/record/header.h"
#include "runtime/record/merge.h"

/* The header of a recording.  1 and *ret, for rec_header_free; 0: it is lost; -errno: as rec_reader_open. */
int leaf_header(const char *rec_path, struct rec_header *ret);

/* The directory where the files of a session's recording belong.  1 and *ret_leaf, to be freed; 0: it is not a session's;
 * -errno: as rec_reader_open. */
int leaf_of(const char *rec_path, char **ret_leaf);

/* Is the recording still being written, or are its files just being made by its program? */
bool leaf_in_work(const char *rec_path);

/* So that two do not make its files at once.  A descriptor to be closed; -EBUSY: another one does; other errors: it
 * cannot be told. */
int leaf_lock(const char *leaf);

/* Is there no recording in the directory any more because its session has ended, or was salvaged? */
bool leaf_is_done(const char *dir);

/*
 * A process that died while it gave its files their names has left some of the four.  Takes those away
 * that are, byte for byte, what the recording gives.  0; -EEXIST: one is something else, then nothing is taken away; other
 * errors of merge_recording; *ret_text then says what, to be freed, or is NULL.
 */
int leaf_take_back(
	const char *rec_path, const char *leaf, const struct merge_options *how, char **ret_text);

/* Removes what is left of recordings that programs died over removing (rec_remove). */
void leaf_sweep(const char *leaf);

/* Removes the temporary files that the process with this pid has left. */
void leaf_clean(const char *leaf, uint32_t pid);

#endif
