/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frames_mutate.c - mutations of the frames target's inputs that know rows (frames_input.h): a row is
 * changed, repeated, moved or left out as a whole, and what follows stays what it was.
 *
 * Linked with libFuzzer only.
 */
#include <string.h>

#include "tests/fuzz/frames_input.h"
#include "tests/fuzz/fuzz.h"

#define MAX_ROWS 512u

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

struct span {
	size_t at, size; /* head and payload */
};

static size_t find_rows(const uint8_t *data, size_t size, struct span rows[MAX_ROWS])
{
	size_t pos = sizeof(struct frames_head), n = 0, at = pos;
	struct frames_row row;
	const uint8_t *payload;

	for (; n < MAX_ROWS && frames_row_next(data, size, &pos, &row, &payload); at = pos)
		rows[n++] = (struct span){at, pos - at};
	return n;
}

/* Makes room for a row of `size` bytes at `at`, or takes it out. */
static size_t splice(uint8_t *data, size_t size, size_t at, size_t old, size_t new)
{
	memmove(data + at + new, data + at + old, size - at - old);
	return size - old + new;
}

static size_t mutate_payload(
	uint8_t *data, size_t size, size_t max_size, struct span r, unsigned seed)
{
	size_t head = sizeof(struct frames_row), len = r.size - head, room = len, now;
	uint8_t payload[0x10000];

	if (seed & 1) /* others keep their length: fields stay where they are */
		room = len + max_size - size < 0xffff ? len + max_size - size : 0xffff;
	if (room == 0)
		return size;
	memcpy(payload, data + r.at + head, len);
	now = LLVMFuzzerMutate(payload, len, room);
	size = splice(data, size, r.at + head, len, now);
	memcpy(data + r.at + head, payload, now);
	uint16_t told = (uint16_t)now;
	memcpy(data + r.at + offsetof(struct frames_row, size), &told, sizeof(told));
	return size;
}

/* A copy of row r in front of the row that begins at `to`. */
static size_t copy_row(uint8_t *data, size_t size, size_t max_size, struct span r, size_t to)
{
	uint8_t copy[0x10000 + sizeof(struct frames_row)];

	if (size + r.size > max_size)
		return size;
	memcpy(copy, data + r.at, r.size);
	size = splice(data, size, to, 0, r.size);
	memcpy(data + to, copy, r.size);
	return size;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
	struct span rows[MAX_ROWS];
	size_t n;

	if (size <= sizeof(struct frames_head) || (data[0] & FRAMES_RAW) || seed % 16 == 0)
		return LLVMFuzzerMutate(data, size, max_size);
	n = find_rows(data, size, rows);
	struct span r = rows[(seed >> 8) % n];
	if (r.size < sizeof(struct frames_row))
		return LLVMFuzzerMutate(data, size, max_size);
	switch (seed >> 4 & 15) {
	case 0:
		LLVMFuzzerMutate(data, sizeof(struct frames_head), sizeof(struct frames_head));
		return size;
	case 1:
		return splice(data, size, r.at, r.size, 0);
	case 2:
	case 3:
		return copy_row(data, size, max_size, r, rows[(seed >> 20) % n].at);
	case 4: /* all but the size */
		LLVMFuzzerMutate(data + r.at, 2, 2);
		return size;
	case 5:
		LLVMFuzzerMutate(data + r.at + offsetof(struct frames_row, time_us), 4, 4);
		return size;
	default:
		return mutate_payload(data, size, max_size, r, seed >> 28);
	}
}
