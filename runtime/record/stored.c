/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stored.c - memory first, then the file; read back through a small buffer.
 */
#include "runtime/record/stored.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "proto/delimited.h"
#include "runtime/base/file.h"

#define PIECE_BYTES 65536u

static int move_out(struct stored *s, const struct stored_place *where)
{
	int rc = s->in_file ? 0 : where->open(where->ctx);

	if (rc < 0)
		return rc;
	if (!s->in_file)
		s->fd = rc;
	rc = file_write_all(s->fd, s->tail.data, s->tail.len);
	if (rc < 0 && !s->in_file)
		cleanup_close(&s->fd);
	if (rc < 0)
		return rc;
	s->in_file += s->tail.len;
	*where->written += s->tail.len;
	s->tail.len = 0;
	return 0;
}

int stored_append(
	struct stored *s, const struct stored_place *where, const void *message, size_t size)
{
	int rc = 0;

	if (where->open && s->tail.len && s->tail.len + size > STORED_MEMORY)
		rc = move_out(s, where);
	return rc < 0 ? rc : pb_buf_append(&s->tail, message, size);
}

static int read_at(int fd, uint8_t *buf, size_t size, uint64_t at)
{
	size_t got = 0;

	while (got < size) {
		ssize_t n = pread(fd, buf + got, size - got, (off_t)(at + got));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		got += (size_t)n;
	}
	return 0;
}

/* Bytes of the messages that are whole. */
static size_t whole(const uint8_t *data, size_t size)
{
	const uint8_t *message;
	size_t at = 0, end = 0, len;

	while (end < size && pb_delimited_next(data, size, &at, &message, &len) == 1)
		end = at;
	return end;
}

/* Of the part that is in the file. */
static int give_file(const struct stored *s, uint64_t from, uint64_t size,
	int (*fn)(void *ctx, const uint8_t *data, size_t size), void *ctx)
{
	uint8_t buf[PIECE_BYTES];

	while (size) {
		size_t n = size < sizeof(buf) ? (size_t)size : sizeof(buf);
		int rc = read_at(s->fd, buf, n, from);

		if (rc < 0)
			return rc;
		n = whole(buf, n);
		rc = n ? fn(ctx, buf, n) : -EIO;
		if (rc)
			return rc;
		from += n;
		size -= n;
	}
	return 0;
}

int stored_give(const struct stored *s, uint64_t from, uint64_t size,
	int (*fn)(void *ctx, const uint8_t *data, size_t size), void *ctx)
{
	uint64_t left = from < s->in_file ? s->in_file - from : 0;
	uint64_t there = size < left ? size : left;
	int rc = there ? give_file(s, from, there, fn, ctx) : 0;

	if (rc || there == size)
		return rc;
	return fn(ctx, s->tail.data + (from + there - s->in_file), (size_t)(size - there));
}

void stored_free(struct stored *s)
{
	if (s->in_file)
		cleanup_close(&s->fd);
	pb_buf_free(&s->tail);
	memset(s, 0, sizeof(*s));
}
