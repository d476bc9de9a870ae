/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_version_test.c - nrt_get_version byte by byte: what it writes into a buffer of which size, and what it leaves
 * alone.
 */
#include <stddef.h>
#include <string.h>

#include "tests/shim/shim.h"
#include "tests/unit/nrt_lib.h"

#define CANARY 0xa5
#define ROOM 256u

/* How many bytes are written into a buffer of that size; 0: it is refused. */
static const struct {
	size_t size, written;
} sizes[] = {{0, 0}, {1, 0}, {32, 0}, {159, 0}, {160, 160}, {161, 160}, {199, 160}, {200, 160},
	{201, 201}, {223, 223}, {224, 224}, {225, 224}, {ROOM, 224}, {SIZE_MAX, 224}};

static const char detail[] = "libnrt version 2.31.24.0 (ntrace ";

static int untouched_from(const unsigned char *room, size_t from)
{
	for (size_t i = from; i < ROOM; i++)
		WANT(room[i] == CANARY);
	return 0;
}

static int written_well(const unsigned char *room, size_t written)
{
	static const uint64_t numbers[4] = {2, 31, 24, 0};
	const char *hash = (const char *)room + offsetof(nrt_version_t, git_hash);

	WANT(!memcmp(room, numbers, sizeof(numbers)));
	WANT(!strncmp((const char *)room + 32, detail, sizeof(detail) - 1));
	WANT(memchr(room + 32, '\0', 128) != NULL);
	if (written <= 160)
		return 0;
	/* It ends within what the smallest buffer has of it, and cannot be a hash of anybody's. */
	WANT(memchr(hash, '\0', 201 - 160) != NULL);
	WANT(!strcmp(hash, "ntrace-" NTRACE_VERSION));
	for (size_t i = 160 + strlen(hash); i < written; i++)
		WANT(room[i] == '\0');
	return 0;
}

static int every_size(void *arg)
{
	_Alignas(8) unsigned char room[ROOM];

	WANT(enter(arg) == 0);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		memset(room, CANARY, sizeof(room));
		WANT_STATUS(lib.nrt_get_version((nrt_version_t *)room, sizes[i].size),
			sizes[i].written ? NRT_SUCCESS : NRT_FAILURE);
		if (!sizes[i].written)
			WANT(said(arg, "Size is < 160"));
		else
			WANT(written_well(room, sizes[i].written) == 0);
		WANT(untouched_from(room, sizes[i].written) == 0);
	}
	return 0;
}

TEST("nrt version: a buffer of each size gets what belongs into it and no byte more", "[nrt]")
{
	struct place p;

	REQUIRE_LIBRARY();
	REQUIRE(place_open(&p));
	CHECK_EQ(scratch_child(every_size, &p), 0);
	place_close(&p);
}
