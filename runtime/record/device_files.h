/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_files.h - the device profiles of a recording: found by the frames that name them, checked, mapped.
 * Those of a recorder lie in the recording, those of an inspect session beside it.
 *
 * A profile that is missing or damaged costs itself alone: it is noted in the session.
 */
#ifndef NTRACE_RECORD_DEVICE_FILES_H
#define NTRACE_RECORD_DEVICE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/mapped.h"
#include "runtime/record/map64.h"
#include "runtime/record/ntff_records.h"
#include "runtime/record/recording.h"
#include "runtime/record/session.h"

#define DEVICE_FILE_NAME 256

struct device_file {
	struct rec_device_profile
		frame; /* of a session's file: made of its REC_FILE, without a checksum */
	char name[DEVICE_FILE_NAME];
	bool is_beside; /* a session's: it lies in the directory that the recording is in */
	struct mapped map;
	struct ntff_profile profile;
};

struct device_files {
	struct device_file *list; /* by their number; those that can be read */
	size_t count;
	struct device_file *named; /* while they are looked for: by frames */
	size_t named_count, named_cap;
	struct map64 names; /* of a session's files, by their hashes */
	uint32_t pid;	    /* of the session's process */
};

/*
 * Looks for the frames, and rewinds the reader.  The footer says in which blocks they are; a recording without
 * one is read through.  0 or -errno of reading, -ENOMEM; device_files_free in any case.
 */
int device_files_open(struct device_files *f, struct rec_reader *reader, struct session *session);
/* A file that became shorter while it was read: what came of it is not to be believed.  NULL: there is none. */
const struct device_file *device_files_cut(const struct device_files *f);
void device_files_free(struct device_files *f);

/* The kernel may take back memory of a mapping that was read; what lies before `to` is not read again.
 * Returns where it begins now. */
const uint8_t *device_files_passed(const uint8_t *from, const uint8_t *to);

#endif
