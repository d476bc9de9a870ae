/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recording_pass.h - small recordings of every version, and what a reader makes of them.
 */
#ifndef NTRACE_TESTS_RECORDING_PASS_H
#define NTRACE_TESTS_RECORDING_PASS_H

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "runtime/base/file.h"
#include "runtime/record/frame.h"
#include "tests/unit/scratch.h"

#define SEGMENT0 "segment-000000.ntrec"

/* What a pass over a recording found. */
struct pass {
	int error;
	size_t frames;
	uint64_t payload_sum; /* of type, source and payload, order-sensitive */
	uint64_t sums[64];    /* of the first frames, one by one */
	struct rec_damage damage;
};

static inline uint64_t frame_sum(const struct rec_frame *f, const uint8_t *payload)
{
	uint64_t sum = f->type * 31u + f->source;

	for (uint32_t i = 0; i < f->size; i++)
		sum = sum * 1099511628211u + payload[i];
	return sum;
}

static inline void read_pass(struct rec_reader *r, struct pass *p)
{
	const struct rec_frame *f;
	const uint8_t *payload;
	int rc;

	memset(p, 0, sizeof(*p));
	while ((rc = rec_reader_next(r, &f, &payload)) > 0) {
		uint64_t sum = frame_sum(f, payload);

		if (p->frames < 64)
			p->sums[p->frames] = sum;
		p->payload_sum = p->payload_sum * 31 + sum;
		p->frames++;
	}
	p->error = rc;
	p->damage = rec_reader_damage(r);
}

static inline struct pass read_recording(const char *path)
{
	struct rec_reader *r;
	struct pass p = {.error = rec_reader_open(path, &r)};

	if (p.error < 0)
		return p;
	read_pass(r, &p);
	rec_reader_close(r);
	return p;
}

static inline bool write_file(const char *path, const void *data, size_t size)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	return fd >= 0 && file_write_all(fd, data, size) == 0;
}

static inline bool undamaged(const struct rec_damage *d)
{
	return !d->skipped_bytes && !d->cut_bytes && !d->bad_frames && !d->unknown_frames;
}

static const char small_text[] = "0123456789abcdefghijklmnopqrstuvwxyz";

/* Frames of various sizes in the newest version, a block each; how many, 0 on error. */
static inline size_t write_small(const char *path)
{
	struct rec_writer *w;
	size_t n = 0;

	if (rec_writer_open(path, &w) < 0)
		return 0;
	for (uint16_t i = 0; i < 12; i++, n++) {
		int rc = rec_writer_frame(
			w, (enum rec_type)(1 + i % 12), i, small_text, i, small_text + 3, i % 5);
		if (rc < 0 || rec_writer_flush(w) < 0)
			n = 0;
	}
	return rec_writer_close(w) == 0 ? n + 1 : 0; /* and the footer */
}

/* The same as version 1 had them: no blocks, no footer. */
static inline size_t write_small_v1(const char *path)
{
	struct rec_segment s = {.magic = REC_MAGIC, .version = 1};
	char name[PATH_MAX + 32];
	uint8_t data[2000];
	size_t used = sizeof(s);

	memcpy(data, &s, sizeof(s));
	for (uint16_t i = 0; i < 12; i++) {
		struct rec_frame f = {.magic = REC_FRAME_MAGIC,
			.type = (uint16_t)(1 + i % 12),
			.source = i,
			.size = i + i % 5u,
			.time_ns = 1000u + i};

		f.check = rec_frame_check(&f, small_text, i, small_text + 3, i % 5);
		memcpy(data + used, &f, sizeof(f));
		memcpy(data + used + sizeof(f), small_text, i);
		memcpy(data + used + sizeof(f) + i, small_text + 3, i % 5);
		memset(data + used + sizeof(f) + f.size, 0, 8);
		used += sizeof(f) + f.size + rec_padding(f.size);
	}
	snprintf(name, sizeof(name), "%s/" SEGMENT0, path);
	return mkdir(path, 0700) == 0 && write_file(name, data, used) ? 12 : 0;
}

#endif
