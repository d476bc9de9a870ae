/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rec_reader.c - yields the whole frames of a recording, and says what else there was.
 *
 * The reader looks at a segment through a window that moves forward; memory is bounded by the
 * largest block.  What it looks for are units: blocks, or in segments of version 1 single frames. A
 * unit counts only when magic, length and checksums are right.  Where one is not, the reader
 * searches on byte by byte for the next that is, so a damaged spot costs the units that it touches
 * and no more.  The last unit of a segment may lack bytes: that is what a kill leaves behind, and
 * is counted as cut, not as bad.
 *
 * A block whose number was read already is a second copy, of a segment say: its frames would count
 * twice.  It is skipped like a damaged one.
 *
 * Bytes without a whole unit are `pending` until another whole unit follows (then they were
 * skipped) or the recording ends (then they were cut off).
 *
 * A hostile file can make each byte look like the start of a large unit.  The search therefore
 * hashes at most SEARCH_BUDGET bytes per segment and gives up the rest of the segment beyond that.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "runtime/record/frame.h"
#include "runtime/record/map64.h"
#include "runtime/record/segments.h"
#include "runtime/record/unpack.h"
#include "runtime/record/window.h"

#define SEARCH_BUDGET (1ull << 30)

struct rec_reader {
	struct segments segments;
	size_t next_segment;
	struct block_pool *pool;
	struct window w;
	uint32_t version; /* of the segment in the window */
	struct unpack u;  /* version 2 */
	struct rec_block_head head;
	uint64_t block_at; /* where that block is in its segment */
	uint32_t next_number;
	struct rec_ratio ratio; /* of the blocks so far */
	struct map64 seen;	/* number / 64 + 1 -> bits of the blocks that were read */
	bool gap_noted;		/* a gap in the blocks' numbers is counted already */
	bool in_work;		/* a writer was there at the beginning */
	bool in_sync;		/* the window is where a unit should begin */
	rec_reader_filter filter;
	void *filter_ctx;
	uint64_t budget;
	uint64_t pending;
	bool pending_bad; /* the pending bytes began with a damaged unit, not with a cut one */
	struct rec_frame frame;
	struct rec_damage damage, complete;
};

int rec_reader_open(const char *path, struct rec_reader **ret_reader)
{
	struct rec_reader *r = calloc(1, sizeof(*r));
	int rc;

	if (!r)
		return -ENOMEM;
	r->pool = block_pool_new();
	r->w = (struct window){.pool = r->pool, .fd = -1};
	rc = segments_open(&r->segments, path);
	if (rc == 0 && !r->pool)
		rc = -ENOMEM;
	if (rc < 0) {
		rec_reader_close(r);
		return rc;
	}
	r->in_work = segments_in_work(&r->segments);
	*ret_reader = r;
	return 0;
}

void rec_reader_cancel_by(struct rec_reader *r, const volatile sig_atomic_t *cancel)
{
	r->w.cancel = cancel;
}

int rec_reader_dir(const struct rec_reader *r)
{
	return r->segments.dir_fd;
}

bool rec_reader_in_work(const struct rec_reader *r)
{
	return r->in_work;
}

/* ---- segments ----------------------------------------------------------------------------- */

static void set_aside(struct rec_reader *r, size_t n)
{
	r->w.pos += n;
	r->pending += n;
}

static void note_odd(struct rec_odd_segments *odd, uint32_t index, uint32_t count)
{
	if (odd->count == 0)
		odd->first = index;
	odd->count += count;
}

/* A head with another number than the file's name; is it one at all? */
static void note_head(struct rec_reader *r, const struct rec_segment *s, uint32_t index)
{
	if (memcmp(s->magic, REC_MAGIC, sizeof(s->magic)))
		return;
	if (r->damage.misplaced.count == 0)
		r->damage.misplaced_is = s->index;
	note_odd(&r->damage.misplaced, index, 1);
}

/* Looks at the head of the segment in the window. */
static int begin_segment(struct rec_reader *r, uint32_t index)
{
	struct rec_segment s;
	int rc = window_want(&r->w, sizeof(s));

	r->version = r->segments.version;
	if (rc < 0)
		return rc;
	if (window_left(&r->w) < sizeof(s)) {
		set_aside(r, window_left(&r->w));
		return 1;
	}
	memcpy(&s, window_at(&r->w), sizeof(s));
	r->w.pos += sizeof(s);
	if (memcmp(s.magic, REC_MAGIC, sizeof(s.magic)) || s.index != index) {
		r->pending += sizeof(s);
		r->pending_bad = true;
		note_head(r, &s, index);
	} else if (s.version && s.version <= REC_FORMAT_VERSION) {
		r->version = s.version;
	}
	return 1;
}

/* Opens the next segment: 1, 0 when there is none, -errno. */
static int next_segment(struct rec_reader *r)
{
	const struct segments *s = &r->segments;
	size_t i = r->next_segment;

	window_end(&r->w);
	if (i == s->count)
		return 0;
	/* Segments are missing: at least one frame. */
	uint32_t next = i ? s->index[i - 1] + 1 : 0;
	if (s->index[i] != next) {
		if (r->damage.missing.count == 0)
			note_odd(&r->damage.missing, next, s->index[i] - next);
		r->damage.bad_frames++;
		r->gap_noted = true;
	}
	r->next_segment++;
	int fd = segments_file(s, i);
	if (fd == -EPROTO) { /* a directory, a device: nothing in it is ours */
		note_odd(&r->damage.no_file, s->index[i], 1);
		r->damage.bad_frames++;
		r->gap_noted = true;
		return 1;
	}
	if (fd < 0)
		return fd;
	window_begin(&r->w, fd);
	r->in_sync = true;
	r->budget = SEARCH_BUDGET;
	return begin_segment(r, s->index[i]);
}

/* ---- units -------------------------------------------------------------------------------- */

enum verdict {
	UNIT_WHOLE,
	UNIT_AGAIN, /* whole, and was there before */
	UNIT_CUT,   /* the segment ends inside it */
	UNIT_BAD,
};

/* May so many bytes be hashed? */
static bool spend(struct rec_reader *r, size_t bytes)
{
	if (r->in_sync)
		return true;
	if (r->budget < bytes) {
		r->budget = 0;
		return false;
	}
	r->budget -= bytes;
	return true;
}

/* Version 1: a frame.  A verdict and its size, or -errno. */
static int look_frame(struct rec_reader *r, size_t *ret_size)
{
	struct rec_frame *f = &r->frame;
	int rc = window_want(&r->w, sizeof(*f));

	if (rc < 0)
		return rc;
	if (window_left(&r->w) < sizeof(*f))
		return UNIT_CUT;
	memcpy(f, window_at(&r->w), sizeof(*f));
	if (f->magic != REC_FRAME_MAGIC || f->size > REC_MAX_PAYLOAD)
		return UNIT_BAD;
	size_t padding = rec_padding(f->size), size = sizeof(*f) + f->size;
	rc = window_want(&r->w, size + padding);
	if (rc < 0)
		return rc;
	if (window_left(&r->w) < size)
		return UNIT_CUT;
	if (!spend(r, size) ||
		rec_frame_check(f, NULL, 0, window_at(&r->w) + sizeof(*f), f->size) != f->check)
		return UNIT_BAD;
	*ret_size = window_left(&r->w) < size + padding ? window_left(&r->w) : size + padding;
	return (rc = window_align(&r->w)) < 0 ? rc : UNIT_WHOLE; /* behind damage */
}

static bool head_right(const struct rec_block_head *h)
{
	return h->magic == REC_BLOCK_MAGIC && h->stored <= h->size && h->size <= REC_MAX_BLOCK &&
	       h->head_check == rec_check(h, offsetof(struct rec_block_head, head_check));
}

/* The last bytes of a recording. */
static bool is_tail(const struct window *w)
{
	struct rec_tail t;

	if (window_left(w) < sizeof(t))
		return false;
	memcpy(&t, window_at(w), sizeof(t));
	return t.magic == REC_TAIL_MAGIC &&
	       t.check == rec_check(&t, offsetof(struct rec_tail, check));
}

/* Is the block whose head is in the window one that the filter does not want? */
static bool passed_over(const struct rec_reader *r)
{
	return r->filter && r->in_sync &&
	       !r->filter(r->filter_ctx, r->segments.index[r->next_segment - 1],
		       r->w.start + r->w.pos);
}

/* Was a block of this number read before?  Notes that it is now.  1, 0, -ENOMEM. */
static int seen_before(struct rec_reader *r, uint32_t number)
{
	uint64_t key = number / 64u + 1u, bit = 1ull << number % 64u;
	uint64_t *bits = map64_find(&r->seen, key);

	if (!bits)
		return map64_put(&r->seen, key, bit);
	if (*bits & bit)
		return 1;
	*bits |= bit;
	return 0;
}

/* Version 2: a block.  A verdict and its size, or -errno. */
static int look_block(struct rec_reader *r, size_t *ret_size)
{
	struct rec_block_head *h = &r->head;
	int rc = window_want(&r->w, sizeof(*h));

	if (rc < 0)
		return rc;
	if (is_tail(&r->w)) {
		unpack_reset(&r->u);
		*ret_size = sizeof(struct rec_tail);
		return UNIT_WHOLE;
	}
	if (window_left(&r->w) < sizeof(*h))
		return UNIT_CUT;
	memcpy(h, window_at(&r->w), sizeof(*h));
	if (!head_right(h))
		return UNIT_BAD;
	if (passed_over(r)) {
		unpack_reset(&r->u);
		r->ratio.bytes += sizeof(*h) + h->stored;
		*ret_size = 0;
		rc = window_skip(&r->w, sizeof(*h) + h->stored);
		return rc < 0 ? rc : UNIT_WHOLE;
	}
	rc = window_want(&r->w, sizeof(*h) + h->stored);
	if (rc < 0)
		return rc;
	if (window_left(&r->w) < sizeof(*h) + h->stored)
		return UNIT_CUT;
	const uint8_t *data = window_at(&r->w) + sizeof(*h);
	if (!spend(r, h->size) || rec_check(data, h->stored) != h->data_check)
		return UNIT_BAD;
	rc = unpack_block(&r->u, r->pool, h, data, &r->ratio);
	if (rc == -EBADMSG)
		return UNIT_BAD;
	if (rc == 0)
		rc = seen_before(r, h->number);
	if (rc < 0)
		return rc;
	*ret_size = sizeof(*h) + h->stored;
	if (rc > 0) {
		unpack_reset(&r->u);
		return UNIT_AGAIN;
	}
	r->block_at = r->w.start + r->w.pos;
	return UNIT_WHOLE;
}

/* Moves to the next place that could begin a unit, at least one byte on.  0 or -errno. */
static int search(struct rec_reader *r)
{
	set_aside(r, window_left(&r->w) ? 1 : 0);
	int64_t n =
		window_find(&r->w, r->version == 1 ? REC_FRAME_MAGIC : REC_BLOCK_MAGIC, &r->budget);

	if (n < 0)
		return (int)n;
	r->pending += (uint64_t)n;
	return 0;
}

/* What is set aside so far lies between whole units. */
static void found(struct rec_reader *r)
{
	if (r->pending) {
		r->damage.skipped_bytes += r->pending;
		r->damage.bad_frames++;
		r->gap_noted = true;
	}
	r->pending = 0;
	r->pending_bad = false;
	r->in_sync = true;
}

/* Blocks are numbered: are some gone without a trace? */
static void check_number(struct rec_reader *r)
{
	if (r->u.payloads == NULL || r->filter)
		return; /* the tail, or blocks are left out */
	r->damage.bad_frames += r->head.number != r->next_number && !r->gap_noted;
	r->next_number = r->head.number + 1;
	r->gap_noted = false;
}

static void end_of_pass(struct rec_reader *r)
{
	r->damage.cut_bytes = r->pending;
	r->damage.bad_frames += r->pending_bad;
	r->complete = r->damage;
	r->pending = 0;
	r->pending_bad = false;
}

/* ---- frames ------------------------------------------------------------------------------- */

/* Goes on to the next whole unit: 1 when it is a frame itself, 2 when its frames are to be
 * unpacked, 0 at the end, -errno. */
static int next_unit(struct rec_reader *r, const uint8_t **ret_payload)
{
	for (;;) {
		size_t size = 0;
		int rc = r->w.fd < 0 ? 0 : window_want(&r->w, 1);

		if (rc < 0)
			return rc;
		if (r->w.fd < 0 || window_left(&r->w) == 0) {
			rc = next_segment(r);
			if (rc == 0)
				end_of_pass(r);
			if (rc <= 0)
				return rc;
			continue;
		}
		rc = r->version == 1 ? look_frame(r, &size) : look_block(r, &size);
		if (rc < 0)
			return rc;
		if (rc == UNIT_WHOLE) {
			found(r);
			*ret_payload = window_at(&r->w) + sizeof(struct rec_frame);
			r->w.pos += size;
			if (r->version == 1)
				return 1;
			check_number(r);
			return 2;
		}
		if (rc == UNIT_AGAIN) {
			set_aside(r, size);
			r->pending_bad = r->in_sync = true;
			continue;
		}
		if (r->in_sync && rc == UNIT_BAD)
			r->pending_bad = true;
		r->in_sync = false;
		rc = search(r);
		if (rc < 0)
			return rc;
	}
}

int rec_reader_next(
	struct rec_reader *r, const struct rec_frame **ret_frame, const uint8_t **ret_payload)
{
	for (;;) {
		int rc = unpack_next(&r->u, &r->frame, ret_payload);

		if (rc == -EBADMSG) {
			r->damage.bad_frames++;
			continue;
		}
		if (rc == 0) {
			rc = next_unit(r, ret_payload);
			if (rc == 2)
				continue;
			if (rc <= 0)
				return rc;
		}
		if (r->frame.type != 0 && r->frame.type < REC_TYPES_END) {
			*ret_frame = &r->frame;
			return 1;
		}
		r->damage.unknown_frames++;
	}
}

struct rec_block *rec_reader_block(struct rec_reader *r)
{
	return r->u.payloads ? r->u.payloads : r->w.block;
}

void rec_reader_place(const struct rec_reader *r, struct rec_place *ret)
{
	*ret = (struct rec_place){.version = r->version};
	if (r->next_segment)
		ret->segment = r->segments.index[r->next_segment - 1];
	if (!r->u.payloads)
		return;
	ret->offset = r->block_at;
	ret->number = r->head.number;
	ret->bytes = (uint32_t)sizeof(r->head) + r->head.stored;
	ret->types = r->head.types;
}

void rec_reader_set_filter(struct rec_reader *r, rec_reader_filter filter, void *ctx)
{
	r->filter = filter;
	r->filter_ctx = ctx;
}

void rec_reader_rewind(struct rec_reader *r)
{
	window_end(&r->w);
	unpack_reset(&r->u);
	r->next_segment = 0;
	r->next_number = 0;
	map64_free(&r->seen);
	r->ratio = (struct rec_ratio){0};
	r->gap_noted = false;
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
	window_end(&r->w);
	unpack_free(&r->u);
	map64_free(&r->seen);
	segments_close(&r->segments);
	block_pool_release(r->pool);
	free(r);
}

/* ---- the footer --------------------------------------------------------------------------- */

/* Reads exactly so many bytes of the last segment.  0, -ENODATA or -errno. */
static int read_at(int fd, void *to, size_t size, off_t at)
{
	ssize_t n = pread(fd, to, size, at);

	return n < 0 ? -errno : (size_t)n < size ? -ENODATA : 0;
}

/* The block that the tail names. */
static int read_footer_block(int fd, uint32_t segment, struct rec_block_head *h, uint8_t **ret_data)
{
	struct rec_tail t;
	off_t end = lseek(fd, 0, SEEK_END);
	int rc;

	if (end < 0)
		return -errno;
	rc = end < (off_t)sizeof(t) ? -ENODATA : read_at(fd, &t, sizeof(t), end - (off_t)sizeof(t));
	if (rc < 0)
		return rc;
	if (t.magic != REC_TAIL_MAGIC || t.segment != segment || t.offset > (uint64_t)end ||
		t.check != rec_check(&t, offsetof(struct rec_tail, check)))
		return t.magic == REC_TAIL_MAGIC ? -EBADMSG : -ENODATA;
	rc = read_at(fd, h, sizeof(*h), (off_t)t.offset);
	if (rc < 0)
		return rc == -ENODATA ? -EBADMSG : rc;
	if (!head_right(h))
		return -EBADMSG;
	*ret_data = malloc(h->stored);
	if (!*ret_data)
		return -ENOMEM;
	rc = read_at(fd, *ret_data, h->stored, (off_t)(t.offset + sizeof(*h)));
	return rc == 0 && rec_check(*ret_data, h->stored) != h->data_check ? -EBADMSG : rc;
}

int rec_reader_footer(struct rec_reader *r, struct rec_block **ret_block,
	const uint8_t **ret_payload, size_t *ret_size)
{
	const struct segments *s = &r->segments;
	_cleanup_close_ int fd = segments_file(s, s->count - 1);
	_cleanup_free_ uint8_t *data = NULL;
	struct unpack u = {0};
	struct rec_block_head h;
	struct rec_frame f;
	int rc = fd < 0 ? fd : read_footer_block(fd, s->index[s->count - 1], &h, &data);

	if (rc == 0)
		rc = unpack_block(&u, r->pool, &h, data, NULL);
	if (rc == -EPROTO)
		rc = -EBADMSG;
	while (rc == 0) {
		rc = unpack_next(&u, &f, ret_payload);
		if (rc == 0)
			rc = -EBADMSG;
		if (rc == 1 && f.type != REC_FOOTER)
			rc = 0;
	}
	if (rc == 1) {
		*ret_block = rec_block_ref(u.payloads);
		*ret_size = f.size;
	}
	unpack_free(&u);
	return rc == 1 ? 0 : rc;
}
