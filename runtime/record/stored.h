/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stored.h - messages of a file that is written when the merge is done: the newest in memory, the others in an
 * unlinked file, so that samples of days take no more memory than those of minutes.
 *
 * Zero-initialise; stored_free at the end.  One thread at a time.
 */
#ifndef NTRACE_RECORD_STORED_H
#define NTRACE_RECORD_STORED_H

#include <stdint.h>

#include "proto/event_codec.h"

#define STORED_MEMORY (2u << 20) /* bytes that are kept in memory at most */

struct stored {
	struct pb_buf tail;
	uint64_t in_file; /* bytes before those of tail */
	int fd;		  /* when in_file is not 0 */
};

/* Where the file comes from: an unlinked one, empty, or -errno.  NULL: all stays in memory. */
struct stored_place {
	int (*open)(void *ctx);
	void *ctx;
	uint64_t *written; /* counts bytes that went into files */
};

/* Appends one message with its length prefix.  0 or -errno. */
int stored_append(
	struct stored *s, const struct stored_place *where, const void *message, size_t size);
static inline uint64_t stored_size(const struct stored *s)
{
	return s->in_file + s->tail.len;
}
/* Gives the bytes from..from + size, which begin and end with a message, in pieces that do so too.  0, -errno, or what fn returned
 * that is not 0, which ends it. */
int stored_give(const struct stored *s, uint64_t from, uint64_t size,
	int (*fn)(void *ctx, const uint8_t *data, size_t size), void *ctx);
void stored_free(struct stored *s);

#endif
