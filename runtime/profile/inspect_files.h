/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_files.h - what device profiles leave in the directory of an inspect session: the profile,
 * and beside it the models that ran in it.
 *
 * One thread at a time per object.
 */
#ifndef NTRACE_PROFILE_INSPECT_FILES_H
#define NTRACE_PROFILE_INSPECT_FILES_H

#include "runtime/profile/inspect_device.h"
#include "runtime/profile/ntff_build.h"

#define INSPECT_FILE_BYTES 80u /* of the longest name, with its terminator */

struct inspect_files {
	struct inspect_dir *dir; /* the owner's */
	int (*added)(void *ctx, const char *name, const char *type, uint64_t bytes);
	void *ctx;
	uint64_t (*models)[2]; /* digests of those that have their files */
	uint32_t count, room;
	uint32_t unwritten; /* files that there should be and are not */
};

/* "<hash>_instid_0_vnc_<n>.ntff", of the number-th (from 1) of a model's profiles on a core. */
void inspect_files_name(
	char ret[INSPECT_FILE_BYTES], const uint64_t digest[2], uint32_t nc, uint32_t number);

/* Writes the profile under that name, and the files of its models that are not there yet.  What
 * cannot be written is said in the name of `call`; the others are written all the same. */
void inspect_files_put(
	struct inspect_files *f, const char *call, struct profile *p, const char *name);

/* Notes that there will be no such file, or none of what the name says. */
void inspect_files_unwritten(struct inspect_files *f, const char *name);

/* Forgets all; the files stay. */
void inspect_files_done(struct inspect_files *f);

#endif
