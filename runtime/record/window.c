/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window.c - reads a file forward through one buffer, which grows to what is wanted at once.
 */
#include "runtime/record/window.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/file.h"

void window_end(struct window *w)
{
	cleanup_close(&w->fd);
	rec_block_unref(w->block);
	*w = (struct window){.pool = w->pool, .cancel = w->cancel, .fd = -1};
}

void window_begin(struct window *w, int fd)
{
	window_end(w);
	w->fd = fd;
}

/* Moves what is not consumed to the beginning of a buffer with room for n bytes more. */
static int make_room(struct window *w, size_t n)
{
	struct rec_block *old = w->block;

	if (old && old->refs == 1 && old->cap >= n + WINDOW_READ_BYTES) {
		memmove(w->buf, window_at(w), window_left(w));
	} else {
		struct rec_block *b = block_new(w->pool, n + WINDOW_READ_BYTES);

		if (!b)
			return -ENOMEM;
		if (old)
			memcpy(b->data, window_at(w), window_left(w));
		rec_block_unref(old);
		w->block = b;
		w->buf = b->data;
	}
	w->start += w->pos;
	w->len -= w->pos;
	w->pos = 0;
	return 0;
}

int window_want(struct window *w, size_t n)
{
	if (window_left(w) >= n || w->eof)
		return 0;
	int rc = make_room(w, n);
	if (rc < 0)
		return rc;
	while (w->len < n) {
		ssize_t got = read(w->fd, w->buf + w->len, w->block->cap - w->len);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0) {
			w->eof = true;
			break;
		}
		w->len += (size_t)got;
	}
	return 0;
}

int window_skip(struct window *w, size_t n)
{
	size_t here = window_left(w) < n ? window_left(w) : n;

	w->pos += here;
	n -= here;
	if (n == 0)
		return 0;
	if (lseek(w->fd, (off_t)n, SEEK_CUR) < 0)
		return -errno;
	w->start += w->len + n;
	w->pos = w->len = 0;
	return 0;
}

int window_align(struct window *w)
{
	return w->pos % 16 ? make_room(w, window_left(w)) : 0;
}

int64_t window_find(struct window *w, uint32_t magic, const uint64_t *budget)
{
	int64_t skipped = 0;

	for (;;) {
		if (w->cancel && *w->cancel)
			return -ECANCELED;
		int rc = window_want(w, WINDOW_READ_BYTES);
		const uint8_t *at = NULL;
		size_t n = window_left(w);

		if (rc < 0)
			return rc;
		if (*budget && n)
			at = memmem(window_at(w), n, &magic, sizeof(magic));
		if (at)
			n = (size_t)(at - window_at(w));
		else if (*budget && !w->eof)
			n -= sizeof(magic) - 1;
		w->pos += n;
		skipped += (int64_t)n;
		if (at || (w->eof && window_left(w) == 0))
			return skipped;
	}
}
