/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kept_fd.h - descriptors of a library that live in somebody else's program.
 *
 * The program may close a descriptor behind our back (programs that close "all" of them do), and the
 * number may come to mean another file.  A kept descriptor stands at a high number if it can, and
 * is compared with its file's identity before it is used or closed.
 */
#ifndef NTRACE_BASE_KEPT_FD_H
#define NTRACE_BASE_KEPT_FD_H

#include <stdbool.h>
#include <stdint.h>

struct kept_fd {
	int fd; /* -1 = none */
	uint32_t dev_major, dev_minor;
	uint64_t ino;
};

/* Takes ownership of fd and moves it to a high number, close-on-exec.  0 or -errno (fd is closed then). */
int kept_fd_adopt(struct kept_fd *k, int fd);
/* The same, but fd stays where it is: for a file that minds the close of a duplicate. */
int kept_fd_know(struct kept_fd *k, int fd);
/* Only learns which file it is: fd is the caller's until this gave 0, and then k's.  0 or -errno. */
int kept_fd_learn(struct kept_fd *k, int fd);
/* Takes ownership of fd, by which what k was is to be had again.  0, or -ESTALE: it is another file; or -errno.  fd is
 * closed then, and k is none. */
int kept_fd_again(struct kept_fd *k, int fd);
/* Is the number still our file?  Asks the kernel alone, never who serves the file system. */
bool kept_fd_valid(const struct kept_fd *k);
/* Closes it when it is still ours.  Async-signal-safe. */
void kept_fd_close(struct kept_fd *k);

/* A program may have closed its standard input, output or error; whatever is opened next gets that number,
 * and with it all that the program prints.  Between hold and release no number from 0 to 2 is free, for
 * descriptors that cannot be moved.  hold: 0, or -errno and nothing is held.  release leaves errno. */
struct standard_fds {
	struct kept_fd held[3];
	unsigned count;
};
int standard_fds_hold(struct standard_fds *s);
void standard_fds_release(struct standard_fds *s);

#endif
