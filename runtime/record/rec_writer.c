/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rec_writer.c - appends frames to the segments of a recording.
 *
 * Frames gather in the open block.  It is closed - compressed and handed to the kernel - when enough
 * has come in and at rec_writer_flush; from then on its frames survive the death of this process.
 * Batches of records are coded as columns before, and split so that none is larger than a block is
 * meant to be.  A segment ends at a block's end once it is larger than REC_SEGMENT_BYTES.  The first
 * error ends the recording: what is on disk stays a valid prefix, at most with a torn last block,
 * which the reader cuts off.
 *
 * A full disk has no room to say that it is full.  So the writer holds some, in a file without a name
 * that vanishes with it, however it ends: rec_writer_stop gives it up for the last frame.
 *
 * The writer may live in somebody else's program.  There its descriptors may be closed by others, and their numbers come
 * to mean other files: before it writes it looks, and opens its own file anew.  And it may have to write while
 * another thread holds the allocator's lock: rec_writer_reserve gets all memory beforehand, that of the compressor
 * never grows.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#define ZSTD_STATIC_LINKING_ONLY /* contexts in memory of the caller's */
#include <zstd.h>

#include "runtime/base/file.h"
#include "runtime/base/kept_fd.h"
#include "runtime/record/columns.h"
#include "runtime/record/footer.h"
#include "runtime/record/frame.h"
#include "runtime/trace/record.h"

#define ZSTD_LEVEL 1
#define MIN_CODED_RECORDS 4u	  /* fewer are left to zstd */
#define RESERVE_BYTES (16u << 10) /* for the block of an end frame and what a file system adds */
#define RESERVE_NAME ".reserve"
/* What lies in a block before it is closed, if all its frames are as small as a frame can be that has a payload (8 bytes behind
 * a head of 24), and the last one is as large as any. */
#define BLOCK_ROOM (5u * REC_BLOCK_PAYLOAD)
#define RESERVED_BLOCKS 1024u

struct bytes {
	uint8_t *data;
	size_t used, cap;
};

struct rec_writer {
	char *path;
	struct kept_fd dir;
	struct kept_fd file; /* segment being written */
	struct kept_fd reserve;
	uint32_t index;
	int error; /* first error, sticky */
	uint64_t segment_bytes;
	uint64_t bytes; /* of all segments */
	ZSTD_CCtx *zstd;
	void *zstd_memory;
	struct bytes block; /* frames of the open block */
	struct bytes out;   /* the closed block */
	struct bytes whole; /* a payload whose two parts are put together */
	struct bytes coded;
	struct rec_block_head head; /* of the open block */
	size_t payload;		    /* that came in for the open block */
	size_t restored;	    /* the same with padding */
	struct rec_ratio ratio;	    /* of the blocks before */
	struct footer footer;
};

static bool no_space(int error)
{
	return error == -ENOSPC || error == -EDQUOT || error == -EFBIG;
}

/* Room for `size` bytes more.  0 or the sticky error. */
static int room(struct rec_writer *w, struct bytes *b, size_t size)
{
	if (b->cap - b->used >= size)
		return 0;
	size_t cap = b->used + size + b->used / 2;
	uint8_t *p = realloc(b->data, cap);
	if (!p)
		return w->error ? w->error : (w->error = -ENOMEM);
	b->data = p;
	b->cap = cap;
	return 0;
}

static void append(struct bytes *b, const void *data, size_t size)
{
	if (size)
		memcpy(b->data + b->used, data, size);
	b->used += size;
}

/* ---- descriptors -------------------------------------------------------------------------- */

/* Opens the directory again when the program has closed it.  0, or -errno: it is another's now, or gone. */
static int hold_directory(struct rec_writer *w)
{
	int fd;

	if (kept_fd_valid(&w->dir))
		return 0;
	fd = open(w->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	int rc = kept_fd_again(&w->dir, fd);
	if (rc == 0)
		flock(w->dir.fd, LOCK_EX | LOCK_NB);
	return rc;
}

/* The same with the segment.  0 or the sticky error. */
static int hold_segment(struct rec_writer *w)
{
	char name[64];
	int fd, rc;

	if (w->error || kept_fd_valid(&w->file))
		return w->error;
	rc = hold_directory(w);
	if (rc < 0)
		return w->error = rc;
	snprintf(name, sizeof(name), REC_SEGMENT_FORMAT, w->index);
	fd = openat(w->dir.fd, name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return w->error = -errno;
	rc = kept_fd_again(&w->file, fd);
	if (rc == 0 && lseek(w->file.fd, (off_t)w->segment_bytes, SEEK_SET) < 0)
		rc = -errno;
	return w->error = rc;
}

void rec_writer_forget(struct rec_writer *w)
{
	kept_fd_close(&w->file);
	kept_fd_close(&w->reserve);
	kept_fd_close(&w->dir);
}

/* ---- segments ----------------------------------------------------------------------------- */

static void put_out(struct rec_writer *w, const void *data, size_t size)
{
	if (hold_segment(w) == 0)
		w->error = file_write_all(w->file.fd, data, size);
	if (w->error)
		return;
	w->segment_bytes += size;
	w->bytes += size;
}

/* Closes the segment for good. */
static void end_segment(struct rec_writer *w)
{
	if (w->file.fd < 0 || hold_segment(w) < 0) {
		kept_fd_close(&w->file);
		return;
	}
	if (fsync(w->file.fd) < 0 && errno != EINVAL && errno != ENOSYS)
		w->error = -errno;
	if (close(w->file.fd) < 0 && !w->error && errno != EINTR)
		w->error = -errno;
	w->file.fd = -1;
}

static int put_segment_head(struct rec_writer *w)
{
	struct rec_segment s = {
		.magic = REC_MAGIC, .version = REC_FORMAT_VERSION, .index = w->index};

	put_out(w, &s, sizeof(s));
	return w->error;
}

static int begin_segment(struct rec_writer *w, uint32_t index)
{
	char name[64];
	int fd, rc;

	if (index >= REC_MAX_SEGMENTS)
		return w->error = -EFBIG;
	rc = hold_directory(w);
	if (rc < 0)
		return w->error = rc;
	snprintf(name, sizeof(name), REC_SEGMENT_FORMAT, index);
	fd = openat(w->dir.fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	rc = fd < 0 ? -errno : kept_fd_adopt(&w->file, fd);
	if (rc < 0)
		return w->error = rc;
	file_chown_invoker(w->file.fd);
	w->index = index;
	w->segment_bytes = 0;
	return put_segment_head(w);
}

/* ---- blocks ------------------------------------------------------------------------------- */

static size_t larger(size_t a, size_t b)
{
	return a > b ? a : b;
}

/* Compresses the open block into `out`, behind room for its head.  0 or the sticky error. */
static int compress(struct rec_writer *w)
{
	size_t bound = ZSTD_compressBound(w->block.used), n;

	w->out.used = 0;
	if (room(w, &w->out, sizeof(w->head) + bound) < 0)
		return w->error;
	w->out.used = sizeof(w->head);
	n = ZSTD_compress2(w->zstd, w->out.data + w->out.used, bound, w->block.data, w->block.used);
	w->head.compression = REC_ZSTD;
	if (ZSTD_isError(n) || n >= w->block.used ||
		!rec_ratio_allows(
			&w->ratio, larger(w->restored, w->block.used), sizeof(w->head) + n)) {
		w->head.compression = REC_STORED;
		n = w->block.used;
		memcpy(w->out.data + w->out.used, w->block.data, n);
	}
	w->out.used += n;
	w->head.stored = (uint32_t)n;
	return 0;
}

static int close_block(struct rec_writer *w)
{
	struct rec_block_head *h = &w->head;

	if (w->error || w->block.used == 0)
		return w->error;
	if (w->segment_bytes >= REC_SEGMENT_BYTES) {
		end_segment(w);
		if (w->error || begin_segment(w, w->index + 1) < 0)
			return w->error;
	}
	if (compress(w) < 0)
		return w->error;
	h->magic = REC_BLOCK_MAGIC;
	h->size = (uint32_t)w->block.used;
	h->data_check = rec_check(w->out.data + sizeof(*h), h->stored);
	h->head_check = rec_check(h, offsetof(struct rec_block_head, head_check));
	memcpy(w->out.data, h, sizeof(*h));
	struct rec_index entry = {.segment = w->index,
		.blocks = 1,
		.offset = w->segment_bytes,
		.first_ns = h->first_ns,
		.last_ns = h->last_ns,
		.types = h->types,
		.frames = h->frames};
	put_out(w, w->out.data, w->out.used);
	if (w->error)
		return w->error;
	w->error = footer_block(&w->footer, &entry, w->payload);
	*h = (struct rec_block_head){.number = h->number + 1};
	w->ratio.payload += w->restored;
	w->ratio.bytes += w->out.used;
	w->block.used = w->payload = w->restored = 0;
	return w->error;
}

/* ---- frames ------------------------------------------------------------------------------- */

/* What does not go into the open block begins another. */
static void make_way(struct rec_writer *w, size_t restored)
{
	if (w->block.used && w->payload + restored > REC_BLOCK_PAYLOAD)
		close_block(w);
}

/* A frame whose payload comes in two parts and stands for `restored` bytes. */
static int add_frame(struct rec_writer *w, struct rec_frame *f, const void *head, size_t head_size,
	const void *body, size_t body_size, size_t restored)
{
	static const uint8_t zero[8];
	size_t size = head_size + body_size;

	make_way(w, restored);
	if (size > REC_MAX_PAYLOAD && close_block(w) == 0) /* what came before is good */
		w->error = -EMSGSIZE;
	if (w->error || room(w, &w->block, sizeof(*f) + size + 8) < 0)
		return w->error;
	f->size = (uint32_t)size;
	f->check = rec_frame_check(f, head, head_size, body, body_size);
	append(&w->block, f, sizeof(*f));
	append(&w->block, head, head_size);
	append(&w->block, body, body_size);
	append(&w->block, zero, rec_padding(size));
	w->payload += restored;
	w->restored += restored + rec_padding(restored);
	if (w->head.frames++ == 0)
		w->head.first_ns = f->time_ns;
	w->head.last_ns = f->time_ns;
	w->head.types |= rec_type_bit(f->type);
	return w->payload >= REC_BLOCK_PAYLOAD ? close_block(w) : 0;
}

/* Would the block with this frame be read again, also if it is left uncompressed? */
static bool may_code(const struct rec_writer *w, size_t restored, size_t coded)
{
	return rec_ratio_allows(&w->ratio, w->restored + restored + rec_padding(restored),
		sizeof(w->head) + w->block.used + sizeof(struct rec_frame) + coded);
}

/* A batch of whole records, coded when that pays. */
static int add_batch(struct rec_writer *w, struct rec_frame *f, const void *head,
	const uint8_t *records, size_t size, size_t count)
{
	size_t head_size = rec_columns_head((enum rec_type)f->type), coded = 0;

	make_way(w, head_size + size); /* the ratio is that of the block where the frame will be */
	if (count >= MIN_CODED_RECORDS) {
		w->coded.used = 0;
		if (room(w, &w->coded, rec_columns_bound(count)) < 0)
			return w->error;
		coded = rec_columns_encode(
			(enum rec_type)f->type, head, records, size, count, w->coded.data);
	}
	if (coded && coded < head_size + size && may_code(w, head_size + size, coded)) {
		f->magic = REC_CODED_MAGIC;
		return add_frame(w, f, w->coded.data, coded, NULL, 0, head_size + size);
	}
	f->magic = REC_FRAME_MAGIC;
	return add_frame(w, f, head, head_size, records, size, head_size + size);
}

/* Records in batches; what is behind the last whole one is a frame as it stands. */
static int add_records(struct rec_writer *w, struct rec_frame *f, const void *head,
	const uint8_t *records, size_t size)
{
	size_t head_size = rec_columns_head((enum rec_type)f->type), max, count;

	max = REC_BLOCK_PAYLOAD - head_size;
	do {
		size_t n = rec_columns_prefix((enum rec_type)f->type, records, size, max, &count);

		if (n == 0) {
			f->magic = REC_FRAME_MAGIC;
			return add_frame(w, f, head, head_size, records, size, head_size + size);
		}
		add_batch(w, f, head, records, n, count);
		records += n;
		size -= n;
	} while (size && !w->error);
	return w->error;
}

/* Finds head and records in a payload that came in two parts and puts them together if need be. */
static int add_payload(struct rec_writer *w, struct rec_frame *f, const void *head,
	size_t head_size, const void *body, size_t body_size)
{
	size_t before = rec_columns_head((enum rec_type)f->type);

	if ((f->type != REC_RUNTIME && f->type != REC_KERNEL) || head_size + body_size < before) {
		f->magic = REC_FRAME_MAGIC;
		return add_frame(w, f, head, head_size, body, body_size, head_size + body_size);
	}
	if (head_size == before)
		return add_records(w, f, head, body, body_size);
	if (body_size) {
		w->whole.used = 0;
		if (room(w, &w->whole, head_size + body_size) < 0)
			return w->error;
		append(&w->whole, head, head_size);
		append(&w->whole, body, body_size);
		head = w->whole.data;
		head_size += body_size;
	}
	return add_records(w, f, head, (const uint8_t *)head + before, head_size - before);
}

int rec_writer_frame_at(struct rec_writer *w, enum rec_type type, uint16_t source, uint64_t time_ns,
	const void *head, size_t head_size, const void *body, size_t body_size)
{
	struct rec_frame f = {.type = (uint16_t)type, .source = source, .time_ns = time_ns};

	if (w->error)
		return w->error;
	if (type == REC_COUNTERS && body_size == 0)
		w->error = footer_counters(&w->footer, source, head, head_size);
	return w->error ? w->error : add_payload(w, &f, head, head_size, body, body_size);
}

int rec_writer_frame(struct rec_writer *w, enum rec_type type, uint16_t source, const void *head,
	size_t head_size, const void *body, size_t body_size)
{
	return rec_writer_frame_at(
		w, type, source, clock_boot().ns, head, head_size, body, body_size);
}

int rec_writer_flush(struct rec_writer *w)
{
	return close_block(w);
}

int rec_writer_error(const struct rec_writer *w)
{
	return w->error;
}

uint64_t rec_writer_bytes(const struct rec_writer *w)
{
	return w->bytes;
}

/* ---- begin and end ------------------------------------------------------------------------ */

static void writer_free(struct rec_writer *w)
{
	rec_writer_forget(w);
	footer_free(&w->footer);
	free(w->path);
	free(w->zstd_memory);
	free(w->block.data);
	free(w->out.data);
	free(w->whole.data);
	free(w->coded.data);
	free(w);
}

/* Takes back what open has begun. */
static void discard(struct rec_writer *w)
{
	char name[64];

	snprintf(name, sizeof(name), REC_SEGMENT_FORMAT, 0u);
	if (hold_directory(w) == 0)
		unlinkat(w->dir.fd, name, 0);
	rmdir(w->path);
	writer_free(w);
}

static struct rec_writer *writer_new(const char *path)
{
	struct rec_writer *w = calloc(1, sizeof(*w));
	size_t size = ZSTD_estimateCCtxSize(ZSTD_LEVEL);

	if (!w)
		return NULL;
	w->file.fd = w->dir.fd = w->reserve.fd = -1;
	w->path = strdup(path);
	w->zstd_memory = malloc(size);
	if (w->zstd_memory)
		w->zstd = ZSTD_initStaticCCtx(w->zstd_memory, size);
	if (w->zstd)
		ZSTD_CCtx_setParameter(w->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL);
	if (!w->path || !w->zstd)
		w->error = -ENOMEM;
	return w;
}

/* Takes hold of some room.  Only when there is none is that an error. */
static int reserve(struct rec_writer *w)
{
	static const uint8_t zero[RESERVE_BYTES];
	int fd = openat(w->dir.fd, RESERVE_NAME, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int rc;

	if (fd < 0)
		return no_space(-errno) ? -errno : 0;
	unlinkat(w->dir.fd, RESERVE_NAME, 0);
	if (kept_fd_adopt(&w->reserve, fd) < 0)
		return 0;
	rc = file_write_all(w->reserve.fd, zero, sizeof(zero));
	return rc == -ENOSPC || rc == -EDQUOT ? rc : 0; /* the size of a file may have a limit */
}

static int open_directory(struct rec_writer *w)
{
	int fd = open(w->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int rc = fd < 0 ? -errno : kept_fd_adopt(&w->dir, fd);

	if (rc < 0)
		return rc;
	/* Not every file system can; readers then do not know. */
	flock(w->dir.fd, LOCK_EX | LOCK_NB);
	file_chown_invoker(w->dir.fd);
	return 0;
}

int rec_writer_open(const char *path, struct rec_writer **ret_writer)
{
	struct rec_writer *w = writer_new(path);
	int error = w ? w->error : -ENOMEM;

	if (error == 0 && mkdir(path, 0777) < 0)
		error = -errno;
	if (error) {
		if (w)
			writer_free(w);
		return error;
	}
	error = open_directory(w);
	if (error == 0)
		error = begin_segment(w, 0);
	if (error == 0)
		error = reserve(w);
	if (error) {
		discard(w);
		return error;
	}
	*ret_writer = w;
	return 0;
}

int rec_writer_reserve(struct rec_writer *w, size_t counters)
{
	size_t records = REC_BLOCK_PAYLOAD / sizeof(struct trace_record);

	if (room(w, &w->block, BLOCK_ROOM - w->block.used) < 0 ||
		room(w, &w->coded, rec_columns_bound(records) - w->coded.used) < 0)
		return w->error;
	w->out.used = 0;
	if (room(w, &w->out, sizeof(w->head) + ZSTD_compressBound(BLOCK_ROOM)) < 0)
		return w->error;
	if (footer_reserve(&w->footer, counters, RESERVED_BLOCKS) < 0 && !w->error)
		w->error = -ENOMEM;
	return w->error;
}

/* A block of its own, and the way to it. */
static void put_footer(struct rec_writer *w)
{
	size_t size = 0;
	_cleanup_free_ uint8_t *payload = footer_build(&w->footer, &size);
	struct rec_tail tail = {.magic = REC_TAIL_MAGIC};

	if (!payload) {
		w->error = -ENOMEM;
		return;
	}
	rec_writer_frame(w, REC_FOOTER, REC_SOURCE_RECORDER, payload, size, NULL, 0);
	if (close_block(w) < 0)
		return;
	tail.segment = w->index;
	tail.offset = w->segment_bytes - w->out.used;
	tail.check = rec_check(&tail, offsetof(struct rec_tail, check));
	put_out(w, &tail, sizeof(tail));
}

/* What was begun behind the last whole block is gone, and the reserve is there to be used. */
static int take_back(struct rec_writer *w)
{
	w->error = 0;
	w->block.used = w->payload = w->restored = 0;
	w->head = (struct rec_block_head){.number = w->head.number};
	kept_fd_close(&w->reserve);
	if (w->file.fd < 0)
		return begin_segment(w, w->index + 1);
	if (hold_segment(w) < 0)
		return w->error;
	if (ftruncate(w->file.fd, (off_t)w->segment_bytes) < 0 ||
		lseek(w->file.fd, (off_t)w->segment_bytes, SEEK_SET) < 0)
		return w->error = -errno;
	return w->segment_bytes ? 0 : put_segment_head(w);
}

int rec_writer_stop(struct rec_writer *w, int wait_status)
{
	int error = w->error;
	struct rec_end end = {.wait_status = wait_status,
		.reason = no_space(error) ? REC_END_NO_SPACE : REC_END_FAILED};

	if (error == 0 || take_back(w) == 0) {
		rec_writer_frame(w, REC_END, REC_SOURCE_RECORDER, &end, sizeof(end), NULL, 0);
		close_block(w);
	}
	if (w->error == 0)
		fsync(w->file.fd); /* the command may run on for long */
	int rc = w->error;
	w->error = error ? error : rc;
	return rc;
}

int rec_writer_end(struct rec_writer *w, struct kept_fd *ret_lock)
{
	bool no_memory = false;
	int error;

	if (close_block(w) == 0) {
		kept_fd_close(&w->reserve);
		put_footer(w);
		no_memory = w->error == -ENOMEM;
	}
	if (w->error && kept_fd_valid(&w->file) &&
		ftruncate(w->file.fd, (off_t)w->segment_bytes) < 0)
		w->segment_bytes = 0; /* a torn block stays, and is cut off when it is read */
	end_segment(w);
	error = no_memory ? 0 : w->error; /* the footer repeats what is there */
	if (ret_lock) {
		*ret_lock = w->dir;
		w->dir.fd = -1;
	}
	writer_free(w);
	return error;
}

int rec_writer_close(struct rec_writer *w)
{
	return w ? rec_writer_end(w, NULL) : 0;
}
