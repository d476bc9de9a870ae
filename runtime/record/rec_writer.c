/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rec_writer.c - appends frames to the segments of a recording.
 *
 * Frames gather in a buffer and reach the kernel at rec_writer_flush or when the buffer is full;
 * from then on they survive the death of this process.  A segment ends at a frame's end once it is
 * larger than REC_SEGMENT_BYTES.  The first error ends the recording: what is on disk stays a valid
 * prefix, at most with a torn last frame, which the reader cuts off.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "runtime/record/frame.h"
#include "runtime/trace/record.h"

#define BUFFER_BYTES (1u << 20)
#define MAX_BATCH_RECORDS 65536u /* of a runtime in one frame: 7 MiB */

struct rec_writer {
	int dir_fd;
	int fd; /* segment being written */
	uint32_t index;
	int error; /* first error, sticky */
	uint64_t segment_bytes;
	uint64_t bytes; /* of all segments */
	size_t used;
	uint8_t buf[BUFFER_BYTES];
};

static int flush(struct rec_writer *w)
{
	if (!w->error && w->used)
		w->error = file_write_all(w->fd, w->buf, w->used);
	w->used = 0;
	return w->error;
}

static void append(struct rec_writer *w, const void *data, size_t size)
{
	w->bytes += size;
	w->segment_bytes += size;
	if (size > BUFFER_BYTES - w->used)
		flush(w);
	if (size > BUFFER_BYTES) {
		if (!w->error)
			w->error = file_write_all(w->fd, data, size);
		return;
	}
	if (size)
		memcpy(w->buf + w->used, data, size);
	w->used += size;
}

/* Closes the segment for good. */
static void end_segment(struct rec_writer *w)
{
	if (w->fd < 0)
		return;
	flush(w);
	if (!w->error && fsync(w->fd) < 0 && errno != EINVAL && errno != ENOSYS)
		w->error = -errno;
	if (close(w->fd) < 0 && !w->error && errno != EINTR)
		w->error = -errno;
	w->fd = -1;
}

static int begin_segment(struct rec_writer *w, uint32_t index)
{
	struct rec_segment s = {.magic = REC_MAGIC, .version = REC_FORMAT_VERSION, .index = index};
	char name[64];

	if (index >= REC_MAX_SEGMENTS)
		return w->error = -EFBIG;
	snprintf(name, sizeof(name), REC_SEGMENT_FORMAT, index);
	w->fd = openat(w->dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (w->fd < 0)
		return w->error = -errno;
	file_chown_invoker(w->fd);
	w->index = index;
	w->segment_bytes = 0;
	append(w, &s, sizeof(s));
	return w->error;
}

/* Takes back what open has begun. */
static void discard(struct rec_writer *w, const char *path)
{
	char name[64];

	snprintf(name, sizeof(name), REC_SEGMENT_FORMAT, 0u);
	if (w->dir_fd >= 0)
		unlinkat(w->dir_fd, name, 0);
	rmdir(path);
	cleanup_close(&w->fd);
	cleanup_close(&w->dir_fd);
	free(w);
}

int rec_writer_open(const char *path, struct rec_writer **ret_writer)
{
	struct rec_writer *w = malloc(sizeof(*w));
	int error;

	if (!w)
		return -ENOMEM;
	memset(w, 0, offsetof(struct rec_writer, buf));
	w->fd = w->dir_fd = -1;
	if (mkdir(path, 0777) < 0) {
		error = -errno;
		free(w);
		return error;
	}
	w->dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (w->dir_fd < 0) {
		error = -errno;
		discard(w, path);
		return error;
	}
	file_chown_invoker(w->dir_fd);
	error = begin_segment(w, 0);
	if (!error)
		error = flush(w);
	if (error) {
		discard(w, path);
		return error;
	}
	*ret_writer = w;
	return 0;
}

static int write_frame(struct rec_writer *w, enum rec_type type, uint16_t source, const void *head,
	size_t head_size, const void *body, size_t body_size)
{
	static const uint8_t zero[8];
	struct rec_frame f = {.magic = REC_FRAME_MAGIC, .type = (uint16_t)type, .source = source};

	if (w->error)
		return w->error;
	if (head_size > REC_MAX_PAYLOAD || body_size > REC_MAX_PAYLOAD - head_size) {
		flush(w); /* what came before is good */
		return w->error ? w->error : (w->error = -EMSGSIZE);
	}
	if (w->segment_bytes >= REC_SEGMENT_BYTES) {
		end_segment(w);
		if (w->error || begin_segment(w, w->index + 1) < 0)
			return w->error;
	}
	f.size = (uint32_t)(head_size + body_size);
	f.time_ns = clock_boot().ns;
	f.check = rec_frame_check(&f, head, head_size, body, body_size);
	append(w, &f, sizeof(f));
	append(w, head, head_size);
	append(w, body, body_size);
	append(w, zero, rec_padding(f.size));
	return w->error;
}

int rec_writer_frame(struct rec_writer *w, enum rec_type type, uint16_t source, const void *head,
	size_t head_size, const void *body, size_t body_size)
{
	/* A ring of a million records comes as one batch, larger than a frame may be. */
	const size_t batch = MAX_BATCH_RECORDS * sizeof(struct trace_record);

	while (type == REC_RUNTIME && body_size > batch && !w->error) {
		write_frame(w, type, source, head, head_size, body, batch);
		body = (const uint8_t *)body + batch;
		body_size -= batch;
	}
	return write_frame(w, type, source, head, head_size, body, body_size);
}

int rec_writer_flush(struct rec_writer *w)
{
	return flush(w);
}

uint64_t rec_writer_bytes(const struct rec_writer *w)
{
	return w->bytes;
}

int rec_writer_close(struct rec_writer *w)
{
	int error;

	if (!w)
		return 0;
	end_segment(w);
	error = w->error;
	cleanup_close(&w->dir_fd);
	free(w);
	return error;
}
