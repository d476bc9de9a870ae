/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rec_reader.c - yields the whole frames of a recording, and says what else there was.
 *
 * The reader looks at a segment through a window that moves forward; memory is bounded by the
 * largest frame.  A frame counts only when magic, length and checksum are right.  Where one is not,
 * the reader searches on byte by byte for the next that is, so a damaged spot costs the frames that
 * it touches and no more.  The last frame of a segment may lack bytes: that is what a kill leaves
 * behind, and is counted as cut, not as bad.
 *
 * Bytes without a whole frame are `pending` until another whole frame follows (then they were
 * skipped) or the recording ends (then they were cut off).
 *
 * A hostile file can make each byte look like the start of a large frame.  The search therefore
 * hashes at most SEARCH_BUDGET bytes per segment and gives up the rest of the segment beyond that.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "runtime/record/block.h"
#include "runtime/record/frame.h"

#define READ_BYTES (256u << 10)
#define SEARCH_BUDGET (1ull << 30)
#define KNOWN_TYPES REC_END /* the highest number of enum rec_type */

struct rec_reader {
	int dir_fd;
	uint32_t *segments; /* indices, ascending */
	size_t segment_count, next_segment;
	int fd; /* segment being read, -1 between segments */
	bool eof;
	struct rec_block *block; /* the window; replaced when somebody still needs what it holds */
	uint8_t *buf;		 /* its data: buf[pos..len) is not yet consumed */
	size_t pos, len;
	bool in_sync; /* pos is where a frame should begin */
	uint64_t budget;
	uint64_t pending;
	bool pending_bad; /* the pending bytes began with a damaged frame, not with a cut one */
	struct rec_frame frame;
	struct rec_damage damage, complete;
};

/* ---- the directory ------------------------------------------------------------------------ */

/* Index in a segment's name; false when it is none. */
static bool segment_index(const char *name, uint32_t *ret)
{
	char again[64];
	unsigned v;

	if (sscanf(name, "segment-%7u.ntrec", &v) != 1 || v >= REC_MAX_SEGMENTS)
		return false;
	snprintf(again, sizeof(again), REC_SEGMENT_FORMAT, v);
	*ret = v;
	return !strcmp(again, name);
}

static int compare_index(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static int list_segments(struct rec_reader *r)
{
	int fd = fcntl(r->dir_fd, F_DUPFD_CLOEXEC, 0);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	size_t cap = 0;
	struct dirent *d;
	uint32_t index;

	if (!dir) {
		int error = -errno;
		cleanup_close(&fd);
		return error;
	}
	rewinddir(dir);
	while ((d = readdir(dir))) {
		if (!segment_index(d->d_name, &index))
			continue;
		if (r->segment_count == cap) {
			cap = cap ? 2 * cap : 16;
			uint32_t *more = realloc(r->segments, cap * sizeof(*more));
			if (!more) {
				closedir(dir);
				return -ENOMEM;
			}
			r->segments = more;
		}
		r->segments[r->segment_count++] = index;
	}
	closedir(dir);
	if (r->segment_count == 0)
		return -ENOENT;
	qsort(r->segments, r->segment_count, sizeof(*r->segments), compare_index);
	return 0;
}

static int open_segment(struct rec_reader *r, uint32_t index)
{
	char name[64];
	int fd;

	snprintf(name, sizeof(name), REC_SEGMENT_FORMAT, index);
	fd = openat(r->dir_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

/* Is the head of a segment right?  -EPROTO, -EPROTONOSUPPORT or -errno. */
static int check_segment(struct rec_reader *r, uint32_t index)
{
	_cleanup_close_ int fd = open_segment(r, index);
	struct rec_segment s;
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EPROTO;
	ssize_t n = pread(fd, &s, sizeof(s), 0);
	if (n < 0)
		return -errno;
	if (n < (ssize_t)sizeof(s) || memcmp(s.magic, REC_MAGIC, sizeof(s.magic)) || s.version == 0)
		return -EPROTO;
	return s.version > REC_FORMAT_VERSION ? -EPROTONOSUPPORT : 0;
}

/* A later segment without a head is damage; the first one decides whether this is a recording. */
static int check_segments(struct rec_reader *r)
{
	for (size_t i = 0; i < r->segment_count; i++) {
		int rc = check_segment(r, r->segments[i]);
		if (rc < 0 && (i == 0 || rc != -EPROTO))
			return rc;
	}
	return 0;
}

/* The directory itself, or REC_DIR in it. */
static int open_directory(struct rec_reader *r, const char *path)
{
	r->dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r->dir_fd < 0)
		return errno == ENOTDIR ? -EPROTO : -errno;
	int rc = list_segments(r);
	if (rc != -ENOENT)
		return rc;
	int inner = openat(r->dir_fd, REC_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (inner < 0)
		return errno == ENOTDIR ? -EPROTO : -errno;
	cleanup_close(&r->dir_fd);
	r->dir_fd = inner;
	return list_segments(r);
}

int rec_reader_open(const char *path, struct rec_reader **ret_reader)
{
	struct rec_reader *r = calloc(1, sizeof(*r));
	int rc;

	if (!r)
		return -ENOMEM;
	r->dir_fd = r->fd = -1;
	rc = open_directory(r, path);
	if (rc == 0)
		rc = check_segments(r);
	if (rc < 0) {
		rec_reader_close(r);
		return rc;
	}
	rec_reader_rewind(r);
	*ret_reader = r;
	return 0;
}

/* ---- the window --------------------------------------------------------------------------- */

static inline size_t available(const struct rec_reader *r)
{
	return r->len - r->pos;
}

/* Moves what is not consumed to the beginning of a window with room for n bytes more. */
static int make_room(struct rec_reader *r, size_t n)
{
	struct rec_block *old = r->block;

	if (old && old->refs == 1 && old->cap >= n + READ_BYTES) {
		memmove(r->buf, r->buf + r->pos, available(r));
	} else {
		r->block = rec_block_new(n + READ_BYTES);
		if (!r->block) {
			r->block = old;
			return -ENOMEM;
		}
		if (old)
			memcpy(r->block->data, r->buf + r->pos, available(r));
		rec_block_unref(old);
		r->buf = r->block->data;
	}
	r->len -= r->pos;
	r->pos = 0;
	return 0;
}

/* Makes n bytes available if the segment has them.  0 or -errno. */
static int want(struct rec_reader *r, size_t n)
{
	if (available(r) >= n || r->eof)
		return 0;
	int rc = make_room(r, n);
	if (rc < 0)
		return rc;
	while (r->len < n) {
		ssize_t got = read(r->fd, r->buf + r->len, r->block->cap - r->len);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0) {
			r->eof = true;
			break;
		}
		r->len += (size_t)got;
	}
	return 0;
}

static void set_aside(struct rec_reader *r, size_t n)
{
	r->pos += n;
	r->pending += n;
}

/* Opens the next segment: 1, 0 when there is none, -errno. */
static int next_segment(struct rec_reader *r)
{
	struct rec_segment s;
	uint32_t expected, index;

	cleanup_close(&r->fd);
	r->fd = -1;
	if (r->next_segment == r->segment_count)
		return 0;
	index = r->segments[r->next_segment];
	expected = r->next_segment ? r->segments[r->next_segment - 1] + 1 : 0;
	r->damage.bad_frames += index != expected; /* segments are missing: at least one frame */
	r->next_segment++;
	r->fd = open_segment(r, index);
	if (r->fd < 0)
		return r->fd;
	r->pos = r->len = 0;
	rec_block_unref(r->block);
	r->block = NULL;
	r->buf = NULL;
	r->eof = false;
	r->in_sync = true;
	r->budget = SEARCH_BUDGET;
	int rc = want(r, sizeof(s));
	if (rc < 0)
		return rc;
	if (available(r) < sizeof(s)) {
		set_aside(r, available(r));
		return 1;
	}
	memcpy(&s, r->buf + r->pos, sizeof(s));
	if (memcmp(s.magic, REC_MAGIC, sizeof(s.magic)) || s.index != index) {
		r->pending += sizeof(s);
		r->pending_bad = true;
	}
	r->pos += sizeof(s);
	return 1;
}

/* ---- frames ------------------------------------------------------------------------------- */

enum verdict {
	FRAME_WHOLE,
	FRAME_CUT, /* the segment ends inside it */
	FRAME_BAD,
};

/* Looks at the frame at pos.  A verdict, or -errno. */
static int look(struct rec_reader *r, struct rec_frame *f)
{
	int rc = want(r, sizeof(*f));

	if (rc < 0)
		return rc;
	if (available(r) < sizeof(*f))
		return FRAME_CUT;
	memcpy(f, r->buf + r->pos, sizeof(*f));
	if (f->magic != REC_FRAME_MAGIC || f->size > REC_MAX_PAYLOAD)
		return FRAME_BAD;
	rc = want(r, sizeof(*f) + f->size);
	if (rc < 0)
		return rc;
	if (available(r) < sizeof(*f) + f->size)
		return FRAME_CUT;
	if (!r->in_sync) {
		if (r->budget < sizeof(*f) + f->size) {
			r->budget = 0;
			return FRAME_BAD;
		}
		r->budget -= sizeof(*f) + f->size;
	}
	return rec_frame_check(f, NULL, 0, r->buf + r->pos + sizeof(*f), f->size) == f->check
		       ? FRAME_WHOLE
		       : FRAME_BAD;
}

/* Moves to the next place that could begin a frame, at least one byte on.  0 or -errno. */
static int search(struct rec_reader *r)
{
	static const uint32_t magic = REC_FRAME_MAGIC;

	set_aside(r, available(r) ? 1 : 0);
	while (r->budget) {
		int rc = want(r, sizeof(struct rec_frame));
		const uint8_t *at;

		if (rc < 0)
			return rc;
		at = memmem(r->buf + r->pos, available(r), &magic, sizeof(magic));
		if (at) {
			set_aside(r, (size_t)(at - (r->buf + r->pos)));
			return 0;
		}
		if (r->eof)
			break;
		set_aside(r, available(r) - (sizeof(magic) - 1));
	}
	/* Nothing more here: the rest of the segment has no whole frame. */
	for (;;) {
		set_aside(r, available(r));
		if (r->eof)
			return 0;
		int rc = want(r, READ_BYTES);
		if (rc < 0)
			return rc;
	}
}

/* What is set aside so far lies between whole frames. */
static void found(struct rec_reader *r)
{
	if (r->pending) {
		r->damage.skipped_bytes += r->pending;
		r->damage.bad_frames++;
	}
	r->pending = 0;
	r->pending_bad = false;
}

static void end_of_pass(struct rec_reader *r)
{
	r->damage.cut_bytes = r->pending;
	r->damage.bad_frames += r->pending_bad;
	r->complete = r->damage;
	r->pending = 0;
	r->pending_bad = false;
}

int rec_reader_next(
	struct rec_reader *r, const struct rec_frame **ret_frame, const uint8_t **ret_payload)
{
	for (;;) {
		int rc = r->fd < 0 ? 0 : want(r, 1);

		if (rc < 0)
			return rc;
		if (r->fd < 0 || available(r) == 0) {
			rc = next_segment(r);
			if (rc == 0)
				end_of_pass(r);
			if (rc <= 0)
				return rc;
			continue;
		}
		rc = look(r, &r->frame);
		if (rc < 0)
			return rc;
		if (rc == FRAME_WHOLE) {
			size_t at = r->pos + sizeof(r->frame), end = at + r->frame.size;
			size_t padding = rec_padding(r->frame.size);

			found(r);
			r->in_sync = true;
			if ((rc = want(r, end - r->pos + padding)) < 0)
				return rc;
			if (r->pos % 8 && (rc = make_room(r, available(r))) < 0)
				return rc;		/* behind damage; payloads are aligned */
			at = r->pos + sizeof(r->frame); /* the window may have moved */
			end = at + r->frame.size;
			r->pos = r->len - end < padding ? r->len : end + padding;
			if (r->frame.type == 0 || r->frame.type > KNOWN_TYPES) {
				r->damage.unknown_frames++;
				continue;
			}
			*ret_frame = &r->frame;
			*ret_payload = r->buf + at;
			return 1;
		}
		if (r->in_sync && rc == FRAME_BAD)
			r->pending_bad = true;
		r->in_sync = false;
		rc = search(r);
		if (rc < 0)
			return rc;
	}
}

struct rec_block *rec_reader_block(struct rec_reader *r)
{
	return r->block;
}

void rec_reader_rewind(struct rec_reader *r)
{
	cleanup_close(&r->fd);
	r->fd = -1;
	r->next_segment = 0;
	r->pending = 0;
	r->pending_bad = false;
	memset(&r->damage, 0, sizeof(r->damage));
}

struct rec_damage rec_reader_damage(const struct rec_reader *r)
{
	return r->complete;
}

void rec_reader_close(struct rec_reader *r)
{
	if (!r)
		return;
	cleanup_close(&r->fd);
	cleanup_close(&r->dir_fd);
	free(r->segments);
	rec_block_unref(r->block);
	free(r);
}
