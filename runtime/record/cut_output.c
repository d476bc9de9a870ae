/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cut_output.c - writes a recording under a hidden name, then renames it or takes it back.
 */
#include "runtime/record/cut_output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "runtime/record/device_sum.h"
#include "runtime/record/frame.h"

/* Removes what was written so far.  By path: a descriptor for the directory may not be had any more. */
static void discard(const struct cut_output *o)
{
	char path[PATH_MAX];

	for (unsigned i = 0; i < REC_MAX_SEGMENTS; i++) {
		snprintf(path, sizeof(path), "%s/" REC_SEGMENT_FORMAT, o->inner, i);
		if (unlink(path) < 0)
			break;
	}
	for (uint32_t i = 0; i < o->profiles; i++) {
		snprintf(path, sizeof(path), "%s/" REC_DEVICE_PROFILE_FORMAT, o->inner, i);
		unlink(path);
	}
	rmdir(o->inner);
}

static int open_hidden(struct cut_output *o)
{
	const char *slash = strrchr(o->path, '/');
	int parent = slash ? (int)(slash + 1 - o->path) : 0;

	if (asprintf(&o->hidden, "%.*s.recording-XXXXXX", parent, o->path) < 0) {
		o->hidden = NULL;
		return -ENOMEM;
	}
	if (!mkdtemp(o->hidden)) {
		int error = -errno;

		free(o->hidden);
		o->hidden = NULL;
		return error;
	}
	if (asprintf(&o->inner, "%s/" REC_DIR, o->hidden) < 0) {
		o->inner = NULL;
		return -ENOMEM;
	}
	return rec_writer_open(o->inner, &o->writer);
}

static void forget(struct cut_output *o)
{
	if (o->hidden)
		rmdir(o->hidden);
	free(o->hidden);
	free(o->inner);
	*o = (struct cut_output){0};
}

int cut_output_open(struct cut_output *o, const char *path)
{
	struct stat st;
	int rc;

	*o = (struct cut_output){.path = path};
	if (lstat(path, &st) == 0)
		return -EEXIST;
	rc = open_hidden(o);
	if (rc < 0)
		forget(o);
	return rc;
}

int cut_output_profile(struct cut_output *o, int from_dir, struct rec_device_profile *p)
{
	_cleanup_close_ int dir = open(o->inner, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc = dir < 0 ? -errno : device_sum_copy(from_dir, p, dir, o->profiles);

	if (rc == 0)
		p->index = o->profiles++;
	return rc;
}

int cut_output_close(struct cut_output *o, int error)
{
	int closed = rec_writer_close(o->writer);

	if (error == 0)
		error = closed;
	if (error == 0)
		error = file_rename(o->inner, o->path);
	if (error < 0)
		discard(o);
	forget(o);
	return error;
}
