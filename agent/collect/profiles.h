/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profiles.h - device profiles of `record --device`: the directory in which the runtimes of traced
 * processes leave them, and their way into the recording.
 *
 * The directory lies in the recording's and is there while the command runs.  At the end each
 * profile becomes a file of the recording, device-NNNNNN.ntff, and a frame; a process that left
 * none, a frame that says so.  What was not whole by then goes with the directory.
 */
#ifndef NTRACE_COLLECT_PROFILES_H
#define NTRACE_COLLECT_PROFILES_H

#include "runtime/record/recording.h"

#define PROFILES_DIR "device-profiles" /* in the directory of the recording */

struct profiles {
	char *dir;	 /* absolute; NULL: there is none */
	unsigned failed; /* profiles that were there and could not be taken */
	int error;	 /* why the last of them: -errno */
};

/* Makes the directory.  0 or -errno, and then there is none. */
int profiles_open(struct profiles *p, const char *rec_path);

/* Moves what came into the recording, in the order of pid, core and number, and writes the frames.  0 or -errno of the
 * writer.  A directory that is gone counts as one profile that could not be taken.  A file that cannot be taken counts as missing; it is in p->failed when that is not its
 * maker's doing. */
int profiles_collect(struct profiles *p, const char *rec_path, struct rec_writer *rec);

/* Removes the directory and all in it.  Harmless when there is none. */
void profiles_close(struct profiles *p);

#endif
