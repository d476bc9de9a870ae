/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file.h - files that are whole or not there.
 *
 * An outfile is written under a temporary name in its own directory and takes its real name at
 * outfile_commit, never replacing an existing file; outfile_abort (or the death of the process)
 * leaves at most a `.ntrace-tmp-*`.  Everything created gets SUDO_UID/SUDO_GID as owner when root
 * runs for somebody, and the caller's umask.  No function prints.
 */
#ifndef NTRACE_BASE_FILE_H
#define NTRACE_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define _cleanup_(f) __attribute__((cleanup(f)))
#define _cleanup_free_ _cleanup_(cleanup_free)
#define _cleanup_close_ _cleanup_(cleanup_close)
void cleanup_free(void *p);  /* frees *(void **)p */
void cleanup_close(int *fd); /* closes it unless it is -1, and makes it -1; errno stays */

/* Writes all bytes; 0 or -errno. */
int file_write_all(int fd, const void *data, size_t size);

/* Reads a whole file, at most max bytes (-EFBIG beyond); the caller frees *ret_data, which is
 * followed by a NUL that does not count.  0 or -errno. */
int file_read(const char *path, size_t max, char **ret_data, size_t *ret_size);
/* The same of a regular file, as those of /proc and /sys are; -EINVAL for what is none.  Does not wait
 * for a writer, as reading a FIFO would. */
int file_read_attribute(const char *path, size_t max, char **ret_data, size_t *ret_size);

/* The first line of a small file, of at most 4096 bytes, without its newline: as much of it as fits
 * into size bytes with the NUL.  0, or -errno and then "". */
int file_read_line(const char *path, char *ret, size_t size);

/* mkdir -p; existing directories are fine.  New ones get the invoking user as owner.  *ret_made
 * (may be NULL): how many were made.  0 or -errno; then nothing that was made is left. */
int file_mkdirs(const char *path, unsigned *ret_made);

/* Removes the last `made` components of path again, as far as they are empty. */
void file_mkdirs_undo(const char *path, unsigned made);

/* Gives fd to SUDO_UID/SUDO_GID when run through sudo as root; nothing otherwise. */
void file_chown_invoker(int fd);

/* Reads these two variables now, once for all: other threads may change the environment while one of a library makes
 * files. */
void file_invoker_fix(void);

/* A directory name that does not exist yet: base, base_2, base_3, ...  Creates it; its parent must
 * exist (-ENOENT).  Of several processes each gets its own.  The name that was taken is returned in
 * *ret_path (to be freed).  0 or -errno. */
int file_mkdir_unique(const char *base, char **ret_path);

/* Gives a file or directory another name without replacing anything; -EEXIST when there is something
 * called `to`.  0 or -errno. */
int file_rename(const char *from, const char *to);

#define OUTFILE_TEMPORARY ".ntrace-tmp-" /* then the pid, '-', a number */

struct outfile {
	int fd;
	char *path;
	char *tmp_path;
	uint8_t *buf; /* write buffer */
	size_t used;
	uint64_t bytes; /* written so far, buffer included */
	int error;	/* first error; sticky */
};

/* Starts a file; -EEXIST when path exists.  0 or -errno. */
int outfile_open(struct outfile *f, const char *path);
/* Appends; errors are kept and reported by commit. */
void outfile_write(struct outfile *f, const void *data, size_t size);
/* Flushes and gives the descriptor up; outfile_resume takes it again, before anything else is done with
 * the file but outfile_abort.  0 or -errno. */
void outfile_pause(struct outfile *f);
int outfile_resume(struct outfile *f);
/* Flushes and renames without replacing.  0 or -errno (then the file is gone, as by abort). */
int outfile_commit(struct outfile *f);
/* Removes the temporary file.  Harmless after commit and on a zeroed struct. */
void outfile_abort(struct outfile *f);

#endif
