/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frames_input.c - see frames_input.h.
 */
#include "tests/fuzz/frames_input.h"

#include <string.h>
#include <zstd.h>

#include "runtime/record/frame.h"
#include "tests/fuzz/fuzz.h"

struct maker {
	struct frames_made *m;
	struct frames_head head;
	struct pb_buf block;	    /* frames of the open block */
	struct rec_block_head open; /* its frames, types, times */
	uint32_t number;
	uint64_t last_block; /* offset in the last segment */
};

static void append(struct pb_buf *b, const void *data, size_t size)
{
	FUZZ_REQUIRE(pb_buf_append(b, data, size) == 0);
}

static struct pb_buf *segment(struct maker *k)
{
	return &k->m->segments[k->m->count - 1];
}

static void begin_segment(struct maker *k)
{
	struct rec_segment s = {REC_MAGIC, k->head.flags & FRAMES_V1 ? 1 : 2, k->m->count};

	if (k->m->count == FRAMES_MAX_SEGMENTS)
		return;
	k->m->count++;
	append(segment(k), &s, sizeof(s));
}

/* ---- blocks ------------------------------------------------------------------------------- */

static void seal(struct rec_block_head *h, const void *stored)
{
	h->data_check = rec_check(stored, h->stored);
	h->head_check = rec_check(h, offsetof(struct rec_block_head, head_check));
}

static void compress(struct pb_buf *b)
{
	static ZSTD_CCtx *zstd;
	struct pb_buf out = {0};
	size_t n;

	if (!zstd)
		zstd = ZSTD_createCCtx();
	FUZZ_REQUIRE(zstd && pb_buf_reserve(&out, ZSTD_compressBound(b->len)) == 0);
	n = ZSTD_compressCCtx(zstd, out.data, out.cap, b->data, b->len, 1);
	FUZZ_REQUIRE(!ZSTD_isError(n));
	out.len = n;
	pb_buf_free(b);
	*b = out;
}

static void end_block(struct maker *k)
{
	struct rec_block_head *h = &k->open;

	if (k->block.len == 0)
		return;
	k->last_block = segment(k)->len;
	if (k->head.flags & FRAMES_V1) {
		append(segment(k), k->block.data, k->block.len);
	} else {
		h->magic = REC_BLOCK_MAGIC;
		h->number = k->number++;
		h->size = (uint32_t)k->block.len;
		if (k->head.flags & FRAMES_ZSTD) {
			compress(&k->block);
			h->compression = k->block.len <= h->size ? REC_ZSTD : REC_STORED;
		}
		h->stored = (uint32_t)k->block.len;
		seal(h, k->block.data);
		append(segment(k), h, sizeof(*h));
		append(segment(k), k->block.data, k->block.len);
	}
	k->block.len = 0;
	*h = (struct rec_block_head){0};
}

static void put_frame(struct maker *k, const struct frames_row *row, const uint8_t *payload)
{
	static const uint8_t zeros[8];
	struct rec_frame f = {
		.magic = row->op & FRAMES_CODED ? REC_CODED_MAGIC : REC_FRAME_MAGIC,
		.type = row->op & FRAMES_TYPE,
		.source = row->source,
		.size = row->size,
		.time_ns = FRAMES_BOOT_NS + row->time_us * 1000ull,
	};

	f.check = rec_frame_check(&f, NULL, 0, payload, f.size) ^ (row->op & FRAMES_WRONG);
	append(&k->block, &f, sizeof(f));
	append(&k->block, payload, f.size);
	append(&k->block, zeros, rec_padding(f.size));
	if (k->open.frames++ == 0)
		k->open.first_ns = f.time_ns;
	k->open.last_ns = f.time_ns;
	k->open.types |= rec_type_bit(f.type);
}

static void put_tail(struct maker *k)
{
	struct rec_tail t = {
		.magic = REC_TAIL_MAGIC, .segment = k->m->count - 1, .offset = k->last_block};

	t.check = rec_check(&t, offsetof(struct rec_tail, check));
	append(segment(k), &t, sizeof(t));
}

/* ---- raw segments ------------------------------------------------------------------------- */

/* The frame at p, of at most `left` bytes: its checksum is put right.  What it takes, or 0. */
static size_t repair_frame(uint8_t *p, size_t left)
{
	struct rec_frame f;

	if (left < sizeof(f))
		return 0;
	memcpy(&f, p, sizeof(f));
	if ((f.magic != REC_FRAME_MAGIC && f.magic != REC_CODED_MAGIC) || f.size > left - sizeof(f))
		return 0;
	f.check = rec_frame_check(&f, NULL, 0, p + sizeof(f), f.size);
	memcpy(p, &f, sizeof(f));
	left -= sizeof(f) + f.size;
	return sizeof(f) + f.size + (left < rec_padding(f.size) ? left : rec_padding(f.size));
}

static void repair_frames(uint8_t *p, size_t size)
{
	for (size_t at = 0, n; at < size; at += n)
		if ((n = repair_frame(p + at, size - at)) == 0)
			n = 1;
}

/* The same for a block. */
static size_t repair_block(uint8_t *p, size_t left)
{
	struct rec_block_head h;

	if (left < sizeof(h))
		return 0;
	memcpy(&h, p, sizeof(h));
	if (h.magic != REC_BLOCK_MAGIC || h.stored > left - sizeof(h))
		return 0;
	if (h.compression == REC_STORED)
		repair_frames(p + sizeof(h), h.stored);
	seal(&h, p + sizeof(h));
	memcpy(p, &h, sizeof(h));
	return sizeof(h) + h.stored;
}

static void put_raw(struct maker *k, const uint8_t *data, size_t size)
{
	struct pb_buf *b = segment(k);
	size_t at = b->len;

	append(b, data, size);
	if (k->head.flags & FRAMES_V1) {
		repair_frames(b->data + at, size);
		return;
	}
	for (size_t n; at < b->len; at += n) {
		if ((n = repair_block(b->data + at, b->len - at)) > 0)
			k->last_block = at;
		else
			n = 1;
	}
}

/* ---- the whole ---------------------------------------------------------------------------- */

struct frames_head frames_head(const uint8_t *data, size_t size)
{
	struct frames_head h = {0};

	memcpy(&h, data, size < sizeof(h) ? size : sizeof(h));
	return h;
}

int frames_row_next(const uint8_t *data, size_t size, size_t *pos, struct frames_row *ret,
	const uint8_t **ret_payload)
{
	if (*pos >= size)
		return 0;
	size_t n = size - *pos < sizeof(*ret) ? size - *pos : sizeof(*ret);
	*ret = (struct frames_row){0};
	memcpy(ret, data + *pos, n);
	*pos += n;
	if (ret->size > size - *pos)
		ret->size = (uint16_t)(size - *pos);
	*ret_payload = data + *pos;
	*pos += ret->size;
	return 1;
}

void frames_make(const uint8_t *data, size_t size, struct frames_made *ret)
{
	struct maker k = {.m = ret, .head = frames_head(data, size)};
	size_t pos = size < sizeof(k.head) ? size : sizeof(k.head);
	struct frames_row row;
	const uint8_t *payload;

	*ret = (struct frames_made){0};
	begin_segment(&k);
	if (k.head.flags & FRAMES_RAW)
		put_raw(&k, data + pos, size - pos);
	else
		while (frames_row_next(data, size, &pos, &row, &payload)) {
			if (row.op & FRAMES_BLOCK)
				end_block(&k);
			if ((row.op & FRAMES_TYPE) == FRAMES_SEGMENT) {
				end_block(&k);
				begin_segment(&k);
			} else {
				put_frame(&k, &row, payload);
			}
		}
	end_block(&k);
	if (k.head.flags & FRAMES_TAIL)
		put_tail(&k);
	pb_buf_free(&k.block);
}

void frames_free(struct frames_made *m)
{
	for (unsigned i = 0; i < m->count; i++)
		pb_buf_free(&m->segments[i]);
	*m = (struct frames_made){0};
}
