/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mapped.h - a regular file as memory, for readers that go to and fro in it.
 *
 * Pages come as they are read and may go again, so a file larger than memory is no matter.  The file must not be
 * made shorter meanwhile: what is read behind its new end ends the process (SIGBUS).
 */
#ifndef NTRACE_BASE_MAPPED_H
#define NTRACE_BASE_MAPPED_H

#include <stddef.h>
#include <stdint.h>

/* Zero-initialise. */
struct mapped {
	const uint8_t *data; /* NULL: of no size */
	size_t size;
};

/* Maps all that the file has now, to be read; fd may be closed then.  0; -ESPIPE: no regular file; -errno. */
int mapped_open(struct mapped *m, int fd);
void mapped_close(struct mapped *m);

#endif
