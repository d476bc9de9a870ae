/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ntff_file.h - the container of a device profile: a header of 128 bytes, a serialized ntff_info
 * (ntff.proto), and blobs that its messages name by offset from the start of the file and size.
 *
 * That a profile has these three parts in this order is known of the vendor's; what its header holds, and how
 * blobs are aligned, is not.  So everything here is OURS: no reader of the vendor's takes such a file, and
 * none of theirs is taken here.  This file and ntff_file.c are all that knows the layout; docs/formats.md is
 * the prose.  Numbers are little-endian.
 *
 *	 0  8  magic: 89 4e 54 46 46 0d 0a 1a
 *	 8  4  bytes of the header: 128
 *	12  2  version of the container: 1
 *	14  2  format of the profile: 6 (5 is one without an execution timeline)
 *	16  8  offset of the message: 128
 *	24  8  size of the message
 *	32  8  offset of the blobs: a multiple of 16 behind the message; zeros between
 *	40  8  size of the blobs
 *	48  8  size of the file: the end of the blobs
 *	56  8  XXH3 (64 bits) of the message
 *	64 48  who wrote it, text, padded with zeros
 *	112  8  0
 *	120  8  XXH3 (64 bits) of bytes 0 to 119
 *
 * Each blob begins at a multiple of 16, and zeros are behind it up to the next.
 *
 * Functions on memory: no input, no output, no state, no allocation.  Nothing that a file says is
 * believed before it was checked against the bytes that are there.
 */
#ifndef NTRACE_PROTO_NTFF_FILE_H
#define NTRACE_PROTO_NTFF_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NTFF_HEADER_BYTES 128u
#define NTFF_CONTAINER_VERSION 1u
#define NTFF_FORMAT 6u
#define NTFF_BLOB_ALIGN 16u
#define NTFF_MAX_MESSAGE (1u << 30)
#define NTFF_PRODUCER_BYTES 48u
#define NTFF_MAGIC_BYTES 8u

/* What a header says, in its own order. */
struct ntff_header {
	uint16_t container_version, format;
	uint64_t message_offset, message_size;
	uint64_t blobs_offset, blobs_size;
	uint64_t file_size;
	uint64_t message_hash;
	char producer[NTFF_PRODUCER_BYTES + 1];
};

/* ---- writing ------------------------------------------------------------------------------ */

/* size rounded up to where the next blob may begin; all ones where it would wrap. */
uint64_t ntff_align(uint64_t size);

/*
 * Where the blobs begin behind a message of that size.  Offsets stand in the message, and a larger number
 * takes more bytes: take this of a size that is large enough, set the offsets, and pack; what remains
 * before the blobs is filled with zeros.
 */
uint64_t ntff_blobs_offset(uint64_t message_size);

/*
 * The header of a file: 128 bytes, then message_size bytes of message, zeros up to blobs_offset, and
 * blobs_size bytes.  producer is cut after NTFF_PRODUCER_BYTES.  0; -EINVAL when the message is larger than
 * NTFF_MAX_MESSAGE, blobs_offset is not aligned or lies in the message, or the file's size would wrap.
 */
int ntff_header_encode(uint8_t header[NTFF_HEADER_BYTES], const void *message, size_t message_size,
	uint64_t blobs_offset, uint64_t blobs_size, const char *producer);

/* ---- reading ------------------------------------------------------------------------------ */

/* A file in memory that stays the caller's, and must stay while this is used. */
struct ntff_file {
	struct ntff_header header;
	const uint8_t *data;
	uint64_t size;	    /* of what there is: less than header.file_size when it was cut */
	const char *damage; /* what is wrong with it, a text that stays; NULL: whole */
	uint64_t damage_at; /* byte of the file */
};

/* Does it begin like one of ours?  False for fewer than NTFF_MAGIC_BYTES bytes. */
bool ntff_is_ours(const void *data, size_t size);

/*
 * Checks the header and the message's checksum.  0: both are whole, though the blobs may be cut, or bytes follow
 * that do not belong there: then damage says so.  -EINVAL: not one of ours; -ENOTSUP: of a version of
 * the container that this program does not know; -EBADMSG: header or message is damaged; each with damage.
 */
int ntff_file_open(struct ntff_file *ret, const void *data, size_t size);

/* The message, header.message_size bytes, of a file that was opened with 0. */
const uint8_t *ntff_file_message(const struct ntff_file *f);

/*
 * Bytes that a message names.  False when not all of them are blobs, by what the header says.  Else *ret and *ret_there
 * say how many are in the file: less than size when it was cut, and *ret is NULL for none.
 */
bool ntff_file_blob(const struct ntff_file *f, uint64_t offset, uint64_t size, const uint8_t **ret,
	uint64_t *ret_there);

#endif
