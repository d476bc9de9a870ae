/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frames_seed.c - makes inputs of the frames target (frames_input.h) from recordings.
 *
 * Usage: frames_seed RECORDING DIR     Writes small inputs with neighbouring parts of the recording,
 * each with the recording's first frames, which say what the others belong to.
 */
#include "bpf/neuron_event.h"
#include "runtime/record/columns.h"
#include "runtime/record/frame.h"
#include "runtime/trace/record.h"
#include "tests/fuzz/frames_input.h"
#include "tests/fuzz/fuzz.h"

#define SEED_BYTES 3500u
#define BATCH_BYTES 1200u

struct seeder {
	const char *dir;
	struct pb_buf first, seed; /* rows of the first frames; the seed that is made */
	unsigned count;
	uint64_t start_ns;
};

static const uint8_t kinds[] = {FRAMES_ZSTD | FRAMES_TAIL, FRAMES_V1 | FRAMES_SPILL,
	FRAMES_CUT | FRAMES_SUMMARY, FRAMES_EXTENDED | FRAMES_SUMMARY, FRAMES_SPILL | FRAMES_TAIL};

static void put_row(struct pb_buf *b, struct frames_row row, const void *payload)
{
	FUZZ_REQUIRE(pb_buf_append(b, &row, sizeof(row)) == 0);
	FUZZ_REQUIRE(pb_buf_append(b, payload, row.size) == 0);
}

static void end_seed(struct seeder *s)
{
	struct frames_head head = {.flags = kinds[s->count % sizeof(kinds)]};
	char path[4096];

	if (s->seed.len == 0)
		return;
	snprintf(path, sizeof(path), "%s/seed-%03u", s->dir, s->count++);
	FILE *f = fopen(path, "w");
	FUZZ_REQUIRE(f && fwrite(&head, sizeof(head), 1, f) == 1);
	FUZZ_REQUIRE(s->first.len == 0 || fwrite(s->first.data, s->first.len, 1, f) == 1);
	FUZZ_REQUIRE(fwrite(s->seed.data, s->seed.len, 1, f) == 1 && fclose(f) == 0);
	s->seed.len = 0;
}

static void put(struct seeder *s, struct frames_row row, const uint8_t *payload)
{
	if (s->first.len + s->seed.len + sizeof(row) + row.size > SEED_BYTES)
		end_seed(s);
	if (s->seed.len == 0)
		row.op |= FRAMES_BLOCK;
	put_row(&s->seed, row, payload);
}

/* Records in batches, every other one in coded form. */
static void put_records(
	struct seeder *s, struct frames_row row, const uint8_t *payload, size_t size)
{
	size_t head = rec_columns_head((enum rec_type)(row.op & FRAMES_TYPE)), at = head, n, count;
	enum rec_type type = (enum rec_type)(row.op & FRAMES_TYPE);
	static uint8_t batch[1 << 16], coded[1 << 20];
	static unsigned turn;

	memcpy(batch, payload, head);
	while ((n = rec_columns_prefix(type, payload + at, size - at, BATCH_BYTES, &count)) > 0) {
		struct frames_row now = row;

		memcpy(batch + head, payload + at, n);
		now.size = (uint16_t)(head + n);
		at += n;
		if (turn++ % 2 && rec_columns_bound(count) + REC_COLUMNS_SLACK <= sizeof(coded)) {
			now.op |= FRAMES_CODED;
			now.size = (uint16_t)rec_columns_encode(
				type, batch, batch + head, n, count, coded);
			put(s, now, coded);
		} else {
			put(s, now, batch);
		}
	}
}

int main(int argc, char **argv)
{
	struct seeder s = {.dir = argc == 3 ? argv[2] : NULL};
	const struct rec_frame *f;
	struct rec_reader *r;
	const uint8_t *payload;

	if (!s.dir || rec_reader_open(argv[1], &r) < 0) {
		fprintf(stderr, "usage: frames_seed RECORDING DIR\n");
		return 2;
	}
	while (rec_reader_next(r, &f, &payload) > 0) {
		if (!s.start_ns)
			s.start_ns = f->time_ns;
		struct frames_row row = {.op = (uint8_t)f->type,
			.source = (uint8_t)f->source,
			.size = (uint16_t)f->size,
			.time_us = (uint32_t)((f->time_ns - s.start_ns) / 1000)};
		bool records = f->type == REC_KERNEL || f->type == REC_RUNTIME;

		if (s.seed.len == 0 && s.count == 0 && !records && f->size < 512 &&
			s.first.len < 1000)
			put_row(&s.first, row, payload);
		else if (records)
			put_records(&s, row, payload, f->size);
		else if (f->size < 2048)
			put(&s, row, payload);
	}
	end_seed(&s);
	rec_reader_close(r);
	pb_buf_free(&s.first);
	pb_buf_free(&s.seed);
	return 0;
}
