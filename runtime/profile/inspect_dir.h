/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_dir.h - the directory of a session: what it is called, and that it is this session's
 * alone.
 *
 * A session writes directly in its leaf, which nobody had before: of several processes (or
 * containers with one pid) that want a name mkdir decides, and the others get name_2, name_3,
 * ...  Below the base, which may be a symbolic link, none is followed.  A session that keeps files
 * of failures only writes in a scratch directory of its own, `<base>/.<leaf>.tmp`, from which
 * single files are moved; no directory is ever walked.
 *
 * The layouts, with the session's begin as its time:
 *	flat		<base>/<instance>_pid_<pid>
 *	timestamp	<base>/<instance>_pid_<pid>/YYYYMMDD_HHMMSS_mmm		UTC
 *	seed		<base>/<instance>-<pid>/<epoch ns>
 * Flat is the user guide's, the third a listing's of libnrt 2.31; the form of the second is public
 * as a comment in a framework, which does not say the time zone.
 *
 * One thread at a time per object; inspect_dir_publish and the call
 * nrt_inspect_get_instance_output_dir: any.
 */
#ifndef NTRACE_PROFILE_INSPECT_DIR_H
#define NTRACE_PROFILE_INSPECT_DIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nrt/nrt_status.h>

#include "runtime/base/kept_fd.h"

#define INSPECT_NULL_DIR "/dev/null" /* as the base: a session that writes nothing */

/* As NTRACE_OUTPUT_LAYOUT has them in env.def. */
enum inspect_layout {
	INSPECT_LAYOUT_FLAT = 0,
	INSPECT_LAYOUT_TIMESTAMP = 1,
	INSPECT_LAYOUT_SEED = 2,
};

struct inspect_dir_wish {
	/* NULL or "": INSPECT_DEFAULT_DIR, said in the log.  Relative: to where it is now. */
	const char *base;
	enum inspect_layout layout;
	const char *instance_id; /* of instance_read_id */
	uint64_t time_ns;	 /* epoch ns of the begin */
	bool on_fail;		 /* write in a scratch directory */
};

struct inspect_dir {
	char *path; /* absolute: where the files will be read; INSPECT_NULL_DIR when is_null */
	/* Absolute: where they are written now, path or the scratch one; NULL when is_null. */
	char *work;
	struct kept_fd fd; /* O_DIRECTORY of work; -1 when is_null */
	bool is_null;	   /* write nothing */
	bool on_fail;	   /* work is the scratch directory */

	/* What follows is inspect_dir.c's own. */
	char *base;	     /* absolute */
	struct kept_fd leaf; /* of path, when that is not work */
	uint64_t base_dev, base_ino;
	unsigned base_made; /* components of base that this session made */
	char *level;	    /* path of the one between base and leaf */
};

/* Makes the directory (and, for on_fail, the scratch directory).  What is wrong is said in the
 * log, in the name of the public call: NRT_INVALID for a base that can't be one (./tmp, no
 * directory, a name too long), NRT_RESOURCE when there is no room, NRT_FAILURE for the rest;
 * then nothing that was made is left. *ret is the caller's, for inspect_dir_close. */
NRT_STATUS inspect_dir_open(
	const char *call, const struct inspect_dir_wish *wish, struct inspect_dir **ret);

/* Before something is written to work by its path: 0 when what has that path is still the session's;
 * -ENOENT, it is gone; -ESTALE, it was moved, or something else is in its place; others: it cannot be looked at. */
int inspect_dir_check(const struct inspect_dir *d);

/* On-fail: moves these files of the scratch directory to path, each said at INFO; without
 * on_fail there is nothing to do.  Names have no '/'.  An existing file is not replaced.  0, or the
 * first -errno, said: the others were tried all the same, and what was not moved stays in the
 * scratch directory.  A name that is not there is no error. */
int inspect_dir_keep(
	const char *call, struct inspect_dir *d, const char *const *names, size_t count);

/* Removes one file of work, if it is there.  0 or -errno. */
int inspect_dir_drop(struct inspect_dir *d, const char *name);

/* Removes the scratch directory, and the leaf, its level and the base as far as this session made
 * them, all when they are empty only; says so when the scratch directory is not.  Frees d.  NULL is
 * fine. */
void inspect_dir_close(struct inspect_dir *d);

/* The same without a word, and d stays as it is: another thread may still write in it. */
void inspect_dir_tidy(const struct inspect_dir *d);

/*
 * For nrt_inspect_get_instance_output_dir: the session that is active; NULL = it has ended, before
 * d is closed.  Then its directory, as long as it is there, is the answer until the next session,
 * or until inspect_dir_forget (nrt_close).  An agent learns that there is one, so after trace_open.
 */
void inspect_dir_publish(const struct inspect_dir *d);
void inspect_dir_forget(void);

#endif
