/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mapped.h - a regular file as memory, for readers that go to and fro in it.
 *
 * Pages come as they are read and may go again, so a file larger than memory is no matter.  When somebody makes
 * the file shorter meanwhile, what was behind its new end reads as zeros, and mapped_cut says so: a reader asks when it
 * has read, and before it believes it.  For that the process gets a handler of SIGBUS, which leaves all others to the
 * one that was there before.
 */
#ifndef NTRACE_BASE_MAPPED_H
#define NTRACE_BASE_MAPPED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mapped_guard;

/* Zero-initialise. */
struct mapped {
	const uint8_t *data; /* NULL: of no size */
	size_t size;
	struct mapped_guard *guard;
};

/* Maps all that the file has now, to be read; fd may be closed then.  0; -ESPIPE: no regular file; -errno. */
int mapped_open(struct mapped *m, int fd);
void mapped_close(struct mapped *m);

/* Was a part read that the file had no more? */
bool mapped_cut(const struct mapped *m);

#endif
