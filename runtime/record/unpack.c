/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack.c - decompresses a block and restores its frames, one when it is asked for.
 */
#include "runtime/record/unpack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/record/columns.h"

static int decompress(struct unpack *u, const struct rec_block_head *h, const uint8_t *data)
{
	if (u->cap < h->size + REC_COLUMNS_SLACK) {
		free(u->frames);
		u->cap = h->size + REC_COLUMNS_SLACK;
		u->frames = malloc(u->cap);
		if (!u->frames) {
			u->cap = 0;
			return -ENOMEM;
		}
		memset(u->frames, 0, u->cap);
	}
	if (h->compression == REC_STORED && h->stored == h->size) {
		memcpy(u->frames, data, h->size);
	} else if (h->compression == REC_ZSTD) {
		if (!u->zstd && !(u->zstd = ZSTD_createDCtx()))
			return -ENOMEM;
		if (ZSTD_decompressDCtx(u->zstd, u->frames, h->size, data, h->stored) != h->size)
			return -EBADMSG;
	} else {
		return -EBADMSG;
	}
	u->size = h->size;
	return 0;
}

/* The frame at `at`, if there is room for it: its head, and the size that it stands for. */
static int look(const struct unpack *u, size_t at, struct rec_frame *f, uint32_t *ret_restored)
{
	if (u->size - at < sizeof(*f))
		return -EBADMSG;
	memcpy(f, u->frames + at, sizeof(*f));
	if (f->size > REC_MAX_PAYLOAD || u->size - at - sizeof(*f) < f->size + rec_padding(f->size))
		return -EBADMSG;
	*ret_restored = f->size;
	if (f->magic == REC_CODED_MAGIC)
		return rec_columns_size(u->frames + at + sizeof(*f), f->size, ret_restored);
	return f->magic == REC_FRAME_MAGIC ? 0 : -EBADMSG;
}

static inline size_t padded(size_t size)
{
	return size + rec_padding(size);
}

/* Do the frames fill the block, and how large are their payloads?  0 or -EBADMSG. */
static int survey(const struct unpack *u, uint32_t frames, size_t *ret_payloads)
{
	size_t at = 0, total = 0;

	for (; frames && at < u->size; frames--) {
		struct rec_frame f;
		uint32_t restored;
		int rc = look(u, at, &f, &restored);

		if (rc < 0)
			return rc;
		at += sizeof(f) + padded(f.size);
		total += padded(restored);
		if (total > REC_MAX_BLOCK)
			return -EBADMSG;
	}
	*ret_payloads = total;
	return frames == 0 && at == u->size ? 0 : -EBADMSG;
}

int unpack_block(struct unpack *u, struct block_pool *pool, const struct rec_block_head *head,
	const uint8_t *data, struct rec_ratio *so_far)
{
	uint64_t bytes = sizeof(*head) + (uint64_t)head->stored;
	size_t payloads = 0;
	int rc = 0;

	unpack_reset(u);
	if (so_far && !rec_ratio_allows(so_far, head->size, bytes))
		return -EBADMSG; /* before any work */
	rc = decompress(u, head, data);
	if (rc == 0)
		rc = survey(u, head->frames, &payloads);
	if (rc == 0 && so_far && !rec_ratio_allows(so_far, payloads, bytes))
		rc = -EBADMSG;
	if (rc == 0 && !(u->payloads = block_new(pool, payloads)))
		rc = -ENOMEM;
	if (rc < 0) {
		unpack_reset(u);
	} else if (so_far) {
		so_far->payload += payloads;
		so_far->bytes += bytes;
	}
	return rc;
}

int unpack_next(struct unpack *u, struct rec_frame *ret_frame, const uint8_t **ret_payload)
{
	struct rec_frame f;
	uint32_t restored;
	const uint8_t *stored;
	uint8_t *to;
	int rc;

	if (u->at == u->size)
		return 0;
	look(u, u->at, &f, &restored); /* survey has seen it */
	stored = u->frames + u->at + sizeof(f);
	u->at += sizeof(f) + padded(f.size);
	to = u->payloads->data + u->used;
	u->used += padded(restored);
	if (rec_frame_check(&f, NULL, 0, stored, f.size) != f.check)
		return -EBADMSG;
	if (f.magic == REC_CODED_MAGIC) {
		rc = rec_columns_decode((enum rec_type)f.type, stored, f.size, to, restored);
		if (rc < 0)
			return rc;
	} else if (f.size) {
		memcpy(to, stored, f.size);
	}
	f.magic = REC_FRAME_MAGIC;
	f.size = restored;
	*ret_frame = f;
	*ret_payload = to;
	return 1;
}

void unpack_reset(struct unpack *u)
{
	rec_block_unref(u->payloads);
	u->payloads = NULL;
	u->size = u->at = u->used = 0;
}

void unpack_free(struct unpack *u)
{
	unpack_reset(u);
	ZSTD_freeDCtx(u->zstd);
	free(u->frames);
}
