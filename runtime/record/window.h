/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window.h - a file seen through a buffer that moves forward.
 *
 * The buffer is a rec_block: when somebody holds a reference to it, it is left alone and another
 * takes its place.  Memory is bounded by what is wanted at once.
 */
#ifndef NTRACE_RECORD_WINDOW_H
#define NTRACE_RECORD_WINDOW_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/record/block.h"

#define WINDOW_READ_BYTES (256u << 10)

struct window {
	struct block_pool *pool;
	const volatile sig_atomic_t *cancel; /* window_find ends with -ECANCELED; may be NULL */
	int fd;				     /* -1: none */
	bool eof;
	struct rec_block *block;
	uint8_t *buf; /* the block's data: buf[pos..len) is not yet consumed */
	size_t pos, len;
	uint64_t start; /* where in the file buf[0] is */
};

/* Begins a file; the window closes fd. */
void window_begin(struct window *w, int fd);
void window_end(struct window *w);

static inline size_t window_left(const struct window *w)
{
	return w->len - w->pos;
}

static inline const uint8_t *window_at(const struct window *w)
{
	return w->buf + w->pos;
}

/* Makes n bytes available if the file has them.  0 or -errno. */
int window_want(struct window *w, size_t n);

/* Passes over n bytes, or to the end of the file, without reading what is not there yet.  0 or -errno. */
int window_skip(struct window *w, size_t n);

/* Makes window_at a multiple of 16.  0 or -ENOMEM. */
int window_align(struct window *w);

/* Skips to the next place that holds these four bytes, or, when *budget (of bytes that are hashed)
 * is used up or there is none, to the end of the file.  Returns the bytes skipped, -ECANCELED or
 * another -errno. */
int64_t window_find(struct window *w, uint32_t magic, const uint64_t *budget);

#endif
