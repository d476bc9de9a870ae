/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ntff_file_test.c - the container of device profiles: what a header says comes back, each of its bytes is
 * checked, and what cannot be believed is not.
 */
#include <errno.h>

#include "proto/delimited.h"
#include "proto/message.h"
#include "tests/shim/shim.h"
#include "tests/unit/ntff_fixture.h"

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))

static const uint8_t message[] = {0x92, 0x3f, 0x00};

/* A file of `message`, blobs at 256 and 64 bytes of them. */
static void make(uint8_t file[320])
{
	memset(file, 0, 320);
	memcpy(file + 128, message, sizeof(message));
	CHECK_EQ(ntff_header_encode(file, message, sizeof(message), 256, 64, "who"), 0);
	for (unsigned i = 0; i < 64; i++)
		file[256 + i] = (uint8_t)i;
}

/* Changes a number of the header and puts the checksum right again. */
static void change(uint8_t *file, unsigned at, unsigned bytes, uint64_t value)
{
	for (unsigned i = 0; i < bytes; i++)
		file[at + i] = (uint8_t)(value >> (8 * i));
	uint64_t hash = XXH3_64bits(file, 120);
	memcpy(file + 120, &hash, sizeof(hash));
}

TEST("ntff file: what the header says comes back", "[ntff]")
{
	uint8_t file[320];
	struct ntff_file f;
	const uint8_t *bytes;
	uint64_t there;

	make(file);
	CHECK(memcmp(file, "\x89NTFF\r\n\x1a", 8) == 0);
	CHECK(ntff_is_ours(file, 8));
	CHECK(!ntff_is_ours(file, 7));
	REQUIRE_EQ(ntff_file_open(&f, file, sizeof(file)), 0);
	CHECK(f.damage == NULL);
	CHECK_EQ(f.header.container_version, 1);
	CHECK_EQ(f.header.format, 6);
	CHECK_EQ(f.header.message_offset, 128);
	CHECK_EQ(f.header.message_size, sizeof(message));
	CHECK_EQ(f.header.blobs_offset, 256);
	CHECK_EQ(f.header.blobs_size, 64);
	CHECK_EQ(f.header.file_size, 320);
	CHECK_STR(f.header.producer, "who");
	CHECK(memcmp(ntff_file_message(&f), message, sizeof(message)) == 0);
	CHECK(ntff_file_blob(&f, 272, 48, &bytes, &there) && bytes == file + 272 && there == 48);
	CHECK(ntff_file_blob(&f, 320, 0, &bytes, &there) && !bytes && there == 0);
	CHECK(!ntff_file_blob(&f, 272, 49, &bytes, &there));
	CHECK(!ntff_file_blob(&f, 255, 1, &bytes, &there));
	CHECK(!ntff_file_blob(&f, 321, 0, &bytes, &there));
	CHECK(!ntff_file_blob(&f, UINT64_MAX, 16, &bytes, &there));
	CHECK(!ntff_file_blob(&f, 272, UINT64_MAX, &bytes, &there));
}

TEST("ntff file: a header that could not be read is not made", "[ntff]")
{
	uint8_t header[NTFF_HEADER_BYTES];
	static const struct {
		size_t message;
		uint64_t offset, size;
		int rc;
	} rows[] = {
		{0, 128, 0, 0},
		{16, 144, 0, 0},
		{17, 144, 0, -EINVAL},
		{3, 130, 0, -EINVAL},
		{3, 112, 0, -EINVAL},
		{0, 128, UINT64_MAX - 128, 0},
		{0, 128, UINT64_MAX - 127, -EINVAL},
		{(size_t)NTFF_MAX_MESSAGE + 1, 1ull << 40, 0, -EINVAL},
	};
	static const uint8_t zeros[32];

	for (size_t i = 0; i < LENGTH(rows); i++) {
		test_info("row %zu", i);
		CHECK_EQ(ntff_header_encode(
				 header, zeros, rows[i].message, rows[i].offset, rows[i].size, ""),
			rows[i].rc);
	}
	CHECK_EQ(ntff_align(0), 0);
	CHECK_EQ(ntff_align(1), 16);
	CHECK_EQ(ntff_align(16), 16);
	CHECK(ntff_align(UINT64_MAX - 3) == UINT64_MAX);
	CHECK_EQ(ntff_blobs_offset(0), 128);
	CHECK_EQ(ntff_blobs_offset(17), 160);
	CHECK(ntff_blobs_offset(UINT64_MAX - 3) == UINT64_MAX);
}

TEST("ntff file: each byte of header and message is checked", "[ntff]")
{
	uint8_t file[320];
	struct ntff_file f;

	for (unsigned i = 0; i < 128 + sizeof(message); i++) {
		make(file);
		file[i] ^= 0x10;
		test_info("byte %u", i);
		CHECK_EQ(ntff_file_open(&f, file, sizeof(file)), i < 8 ? -EINVAL : -EBADMSG);
		CHECK(f.damage != NULL);
	}
}

TEST("ntff file: a header that contradicts itself or the file is refused, whatever its checksum",
	"[ntff]")
{
	static const struct {
		unsigned at, bytes;
		uint64_t value;
		int rc;
	} rows[] = {
		{8, 4, 129, -ENOTSUP}, {12, 2, 2, -ENOTSUP}, {14, 2, 0, -EBADMSG},
		{16, 8, 127, -EBADMSG}, {16, 8, UINT64_MAX, -EBADMSG}, {24, 8, 129, -EBADMSG},
		{24, 8, UINT64_MAX, -EBADMSG}, {24, 8, 2, -EBADMSG}, /* another checksum */
		{32, 8, 257, -EBADMSG}, {32, 8, 112, -EBADMSG}, {32, 8, UINT64_MAX - 15, -EBADMSG},
		{40, 8, 65, -EBADMSG}, {40, 8, UINT64_MAX, -EBADMSG}, {48, 8, 0, -EBADMSG},
		{48, 8, UINT64_MAX, -EBADMSG}, {56, 8, 1, -EBADMSG}, {112, 8, 1, -EBADMSG},
		{14, 2, 5, 0}, /* a profile without an execution timeline is one, too */
	};
	uint8_t file[320];
	struct ntff_file f;

	for (size_t i = 0; i < LENGTH(rows); i++) {
		make(file);
		change(file, rows[i].at, rows[i].bytes, rows[i].value);
		test_info("row %zu", i);
		CHECK_EQ(ntff_file_open(&f, file, sizeof(file)), rows[i].rc);
		CHECK((f.damage != NULL) == (rows[i].rc < 0));
	}
}

TEST("ntff file: of a file that was cut, as much as there is can be read", "[ntff]")
{
	uint8_t file[336];
	struct ntff_file f;
	const uint8_t *bytes;
	uint64_t there;

	make(file);
	for (size_t size = 0; size < 320; size++) {
		int want = size < 8 ? -EINVAL : size < 128 + sizeof(message) ? -EBADMSG : 0;

		test_info("%zu bytes", size);
		CHECK_EQ(ntff_file_open(&f, file, size), want);
		CHECK(f.damage != NULL);
		if (want < 0)
			continue;
		CHECK_EQ(f.damage_at, size);
		CHECK(ntff_file_blob(&f, 256, 64, &bytes, &there));
		CHECK_EQ(there, size > 256 ? size - 256 : 0);
		CHECK((bytes != NULL) == (size > 256));
	}
	CHECK_EQ(ntff_file_open(&f, file, sizeof(file)), 0);
	CHECK(f.damage != NULL);
	CHECK_EQ(f.damage_at, 320);
}

/* ---- messages that cost more than they say ------------------------------------------------ */

static size_t put_field(uint8_t *to, unsigned number, const uint8_t *bytes, size_t size)
{
	size_t n = pb_varint_put(to, (uint64_t)number << 3 | 2);

	n += pb_varint_put(to + n, size);
	if (size > 0)
		memcpy(to + n, bytes, size);
	return n + size;
}

TEST("ntff message: what it takes of memory is known before it is unpacked", "[ntff]")
{
	uint8_t bytes[4096] = {0};
	size_t size = 0;
	uint64_t one, memory;

	REQUIRE_EQ(pb_message_measure(&ntff__ntff_info__descriptor, bytes, 0, &one), 0);
	CHECK(one >= sizeof(Ntff__NtffInfo));
	for (unsigned i = 0; i < 100; i++)
		size += put_field(bytes + size, 1002, NULL, 0);
	REQUIRE_EQ(pb_message_measure(&ntff__ntff_info__descriptor, bytes, size, &memory), 0);
	CHECK(memory >= one + 100 * sizeof(Ntff__TraceInfo));
	CHECK(memory < one + 100 * (sizeof(Ntff__TraceInfo) + 100));
}

TEST("ntff message: a message twice where there can be one is no message", "[ntff]")
{
	uint8_t bytes[64];
	size_t size = put_field(bytes, 8, NULL, 0);
	uint64_t memory;

	CHECK_EQ(pb_message_measure(&ntff__ntff_info__descriptor, bytes, size, &memory), 0);
	size += put_field(bytes + size, 8, NULL, 0);
	CHECK_EQ(pb_message_measure(&ntff__ntff_info__descriptor, bytes, size, &memory), -EBADMSG);
}

TEST("ntff message: bytes that are cut or no fields are found before protobuf sees them", "[ntff]")
{
	static const struct {
		const char *bytes;
		size_t size;
		int rc;
	} rows[] = {
		{"\x42\x00", 2, 0},
		{"\x42", 1, -EBADMSG},
		{"\x42\x01", 2, -EBADMSG},
		{"\x43\x00", 2, -EBADMSG},
		{"\x00\x00", 2, -EBADMSG},
		{"\x09\x01\x02\x03\x04\x05\x06\x07\x08", 9, 0}, /* an unknown field */
		{"\x09\x01\x02\x03\x04\x05\x06\x07", 8, -EBADMSG},
		{"\x0d\x01\x02\x03\x04", 5, 0},
		{"\x0d\x01\x02\x03", 4, -EBADMSG},
		{"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, 0},
		{"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 11, -EBADMSG},
	};
	uint64_t memory;

	for (size_t i = 0; i < LENGTH(rows); i++) {
		test_info("row %zu", i);
		CHECK_EQ(pb_message_measure(&ntff__ntff_info__descriptor,
				 (const uint8_t *)rows[i].bytes, rows[i].size, &memory),
			rows[i].rc);
	}
}
