/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ntff_file.c - the header of an .ntff file to bytes and back; the table is in ntff_file.h.
 */
#include "proto/ntff_file.h"

#include <errno.h>
#include <string.h>
#include <xxhash.h>

enum {
	AT_MAGIC = 0,
	AT_HEADER_BYTES = 8,
	AT_VERSION = 12,
	AT_FORMAT = 14,
	AT_MESSAGE_OFFSET = 16,
	AT_MESSAGE_SIZE = 24,
	AT_BLOBS_OFFSET = 32,
	AT_BLOBS_SIZE = 40,
	AT_FILE_SIZE = 48,
	AT_MESSAGE_HASH = 56,
	AT_PRODUCER = 64,
	AT_ZERO = 112,
	AT_HEADER_HASH = 120,
};

/* Not text from its first byte on, and broken by whoever changes ends of lines. */
static const uint8_t magic[NTFF_MAGIC_BYTES] = {0x89, 'N', 'T', 'F', 'F', '\r', '\n', 0x1a};

static void put(uint8_t *at, unsigned bytes, uint64_t value)
{
	for (unsigned i = 0; i < bytes; i++)
		at[i] = (uint8_t)(value >> (8 * i));
}

static uint64_t get(const uint8_t *at, unsigned bytes)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < bytes; i++)
		value |= (uint64_t)at[i] << (8 * i);
	return value;
}

/* ---- writing ------------------------------------------------------------------------------ */

uint64_t ntff_align(uint64_t size)
{
	if (size > UINT64_MAX - (NTFF_BLOB_ALIGN - 1))
		return UINT64_MAX;
	return (size + NTFF_BLOB_ALIGN - 1) / NTFF_BLOB_ALIGN * NTFF_BLOB_ALIGN;
}

uint64_t ntff_blobs_offset(uint64_t message_size)
{
	if (message_size > UINT64_MAX - NTFF_HEADER_BYTES)
		return UINT64_MAX;
	return ntff_align(NTFF_HEADER_BYTES + message_size);
}

int ntff_header_encode(uint8_t header[NTFF_HEADER_BYTES], const void *message, size_t message_size,
	uint64_t blobs_offset, uint64_t blobs_size, const char *producer)
{
	if (message_size > NTFF_MAX_MESSAGE || blobs_offset % NTFF_BLOB_ALIGN != 0 ||
		blobs_offset < NTFF_HEADER_BYTES + message_size ||
		blobs_size > UINT64_MAX - blobs_offset)
		return -EINVAL;
	memset(header, 0, NTFF_HEADER_BYTES);
	memcpy(header + AT_MAGIC, magic, sizeof(magic));
	put(header + AT_HEADER_BYTES, 4, NTFF_HEADER_BYTES);
	put(header + AT_VERSION, 2, NTFF_CONTAINER_VERSION);
	put(header + AT_FORMAT, 2, NTFF_FORMAT);
	put(header + AT_MESSAGE_OFFSET, 8, NTFF_HEADER_BYTES);
	put(header + AT_MESSAGE_SIZE, 8, message_size);
	put(header + AT_BLOBS_OFFSET, 8, blobs_offset);
	put(header + AT_BLOBS_SIZE, 8, blobs_size);
	put(header + AT_FILE_SIZE, 8, blobs_offset + blobs_size);
	put(header + AT_MESSAGE_HASH, 8, XXH3_64bits(message, message_size));
	memcpy(header + AT_PRODUCER, producer, strnlen(producer, NTFF_PRODUCER_BYTES));
	put(header + AT_HEADER_HASH, 8, XXH3_64bits(header, AT_HEADER_HASH));
	return 0;
}

/* ---- reading ------------------------------------------------------------------------------ */

static int damaged(struct ntff_file *f, int error, uint64_t at, const char *what)
{
	f->damage = what;
	f->damage_at = at;
	return error;
}

static void decode(struct ntff_header *h, const uint8_t *data)
{
	h->container_version = (uint16_t)get(data + AT_VERSION, 2);
	h->format = (uint16_t)get(data + AT_FORMAT, 2);
	h->message_offset = get(data + AT_MESSAGE_OFFSET, 8);
	h->message_size = get(data + AT_MESSAGE_SIZE, 8);
	h->blobs_offset = get(data + AT_BLOBS_OFFSET, 8);
	h->blobs_size = get(data + AT_BLOBS_SIZE, 8);
	h->file_size = get(data + AT_FILE_SIZE, 8);
	h->message_hash = get(data + AT_MESSAGE_HASH, 8);
	memcpy(h->producer, data + AT_PRODUCER, NTFF_PRODUCER_BYTES);
	h->producer[NTFF_PRODUCER_BYTES] = '\0';
}

/* What a header must say for its file to be one, whatever of it is there; NULL: it does. */
static const char *contradiction(const struct ntff_header *h, const uint8_t *data, uint64_t *ret_at)
{
	const struct {
		bool wrong;
		uint64_t at;
		const char *what;
	} rules[] = {
		{h->format == 0, AT_FORMAT, "the format is 0"},
		{h->message_offset != NTFF_HEADER_BYTES, AT_MESSAGE_OFFSET,
			"the message is not behind the header"},
		{h->message_size > NTFF_MAX_MESSAGE, AT_MESSAGE_SIZE,
			"the message is larger than any is written"},
		{h->blobs_offset % NTFF_BLOB_ALIGN != 0, AT_BLOBS_OFFSET,
			"the blobs do not begin at a multiple of 16"},
		{h->blobs_offset < h->message_offset ||
				h->blobs_offset - h->message_offset < h->message_size,
			AT_BLOBS_OFFSET, "the blobs begin in the message"},
		{h->file_size < h->blobs_offset || h->file_size - h->blobs_offset != h->blobs_size,
			AT_FILE_SIZE, "the size of the file is not the end of its blobs"},
		{get(data + AT_ZERO, 8) != 0, AT_ZERO, "bytes that must be 0 are not"},
	};

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		*ret_at = rules[i].at;
		if (rules[i].wrong)
			return rules[i].what;
	}
	return NULL;
}

static int check_header(struct ntff_file *f)
{
	const char *what;
	uint64_t at;

	if (!ntff_is_ours(f->data, f->size))
		return damaged(f, -EINVAL, AT_MAGIC, "it does not begin like an .ntff of ntrace's");
	if (f->size < NTFF_HEADER_BYTES)
		return damaged(f, -EBADMSG, f->size, "it ends in its header");
	if (get(f->data + AT_HEADER_HASH, 8) != XXH3_64bits(f->data, AT_HEADER_HASH))
		return damaged(f, -EBADMSG, AT_HEADER_HASH, "its header has another checksum");
	decode(&f->header, f->data);
	if (f->header.container_version != NTFF_CONTAINER_VERSION ||
		get(f->data + AT_HEADER_BYTES, 4) != NTFF_HEADER_BYTES)
		return damaged(f, -ENOTSUP, AT_VERSION,
			"its container has a version that this program does not know");
	what = contradiction(&f->header, f->data, &at);
	return what ? damaged(f, -EBADMSG, at, what) : 0;
}

bool ntff_is_ours(const void *data, size_t size)
{
	return size >= sizeof(magic) && !memcmp(data, magic, sizeof(magic));
}

int ntff_file_open(struct ntff_file *ret, const void *data, size_t size)
{
	const struct ntff_header *h = &ret->header;

	*ret = (struct ntff_file){.data = data, .size = size};
	int rc = check_header(ret);
	if (rc < 0)
		return rc;
	if (size - h->message_offset < h->message_size)
		return damaged(ret, -EBADMSG, size, "it ends in its message");
	if (XXH3_64bits(ntff_file_message(ret), h->message_size) != h->message_hash)
		return damaged(
			ret, -EBADMSG, h->message_offset, "its message has another checksum");
	if (size < h->file_size)
		damaged(ret, 0, size, "it ends before its blobs do");
	else if (size > h->file_size)
		damaged(ret, 0, h->file_size, "bytes follow that do not belong to it");
	return 0;
}

const uint8_t *ntff_file_message(const struct ntff_file *f)
{
	return f->data + f->header.message_offset;
}

bool ntff_file_blob(const struct ntff_file *f, uint64_t offset, uint64_t size, const uint8_t **ret,
	uint64_t *ret_there)
{
	const struct ntff_header *h = &f->header;

	*ret = NULL;
	*ret_there = 0;
	if (offset < h->blobs_offset || offset > h->file_size || size > h->file_size - offset)
		return false;
	if (offset < f->size) {
		*ret_there = size < f->size - offset ? size : f->size - offset;
		*ret = *ret_there ? f->data + offset : NULL;
	}
	return true;
}
