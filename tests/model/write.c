/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write.c - the frames become a recording, which is harmed and read back: what is left is what the merge
 * can know.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "tests/model/model.h"

enum { RNG_HARM = 31 };

/* What of the file may be harmed. */
struct range {
	uint64_t from, to;
};

static bool write_frames(struct model *m, const char *path, uint32_t count, struct range *ret)
{
	struct rec_writer *w;
	int rc = rec_writer_open(path, &w);

	*ret = (struct range){0};
	if (rc < 0)
		return model_fail(m, "cannot open the recording: %d", rc);
	for (uint32_t i = 0; i < count; i++) {
		const struct model_frame *f = &m->frames[i];

		rec_writer_frame_at(w, f->type, f->source, MODEL_BOOT + i, f->head, f->head_size,
			f->body, f->size);
		if (f->flush) {
			rec_writer_flush(w);
			if (!ret->from)
				ret->from = rec_writer_bytes(w);
			if (i < m->last_frame)
				ret->to = rec_writer_bytes(w);
		}
	}
	rc = rec_writer_close(w);
	return rc == 0 || model_fail(m, "cannot write the recording: %d", rc);
}

/* Cuts the segment or makes a place in it unreadable. */
static bool harm(struct model *m, const char *path, struct rng *r, const struct range *range)
{
	char file[4096];
	_cleanup_free_ char *data = NULL;
	size_t size = 0;
	bool cut = m->killed;

	snprintf(file, sizeof(file), "%s/segment-000000.ntrec", path);
	if (file_read(file, 1u << 30, &data, &size) < 0)
		return model_fail(m, "cannot read the segment");
	if (cut) {
		size = range->from + rng_below(r, (uint32_t)(size - range->from));
	} else {
		if (range->to <= range->from)
			return true;
		uint64_t at = range->from + rng_below(r, (uint32_t)(range->to - range->from));

		for (unsigned n = 1 + rng_below(r, 40); n > 0 && at < range->to; n--, at++)
			data[at] ^= (char)(1 + rng_below(r, 255));
		m->damaged = true;
	}
	_cleanup_close_ int fd = open(file, O_WRONLY | O_TRUNC);
	return (fd >= 0 && file_write_all(fd, data, size) == 0) ||
	       model_fail(m, "cannot write the segment");
}

/* Which frames are still there, and which watermark each record met. */
static bool read_back(struct model *m, const char *path)
{
	uint64_t said[MODEL_SOURCES + REC_SOURCE_RUNTIME0] = {0};
	struct rec_reader *reader;
	const struct rec_frame *f;
	const uint8_t *payload;
	int rc = rec_reader_open(path, &reader);

	if (rc < 0)
		return model_fail(m, "cannot read the recording: %d", rc);
	for (uint32_t i = 0; i < m->record_count; i++)
		m->records[i].read = false;
	for (uint32_t i = 0; i < m->frame_count; i++)
		m->frames[i].survives = false;
	while ((rc = rec_reader_next(reader, &f, &payload)) > 0) {
		uint64_t i = f->time_ns - MODEL_BOOT;

		if (f->type == REC_FOOTER || i >= m->frame_count)
			continue;
		if (m->frames[i].type != f->type || m->frames[i].survives) {
			rec_reader_close(reader);
			return model_fail(m, "frame %d comes back as another", (int)i);
		}
		m->frames[i].survives = true;
	}
	rec_reader_close(reader);
	for (uint32_t i = 0; i < m->frame_count; i++) {
		const struct model_frame *g = &m->frames[i];

		if (!g->survives)
			continue;
		if (g->type == REC_WATERMARK && g->watermark > said[g->source])
			said[g->source] = g->watermark;
		m->frames[i].said = said[g->source] ? said[g->source] - MODEL_BOOT : 0;
		for (uint32_t k = 0; k < g->count; k++) {
			struct model_record *r = &m->records[m->sequence[g->first + k]];

			r->read = true;
			r->said = said[g->source] ? said[g->source] - MODEL_BOOT : 0;
		}
	}
	return true;
}

bool model_write(struct model *m, const char *path)
{
	struct rng r = rng_for(m->seed, RNG_HARM);
	uint32_t count = m->frame_count, first = 0;
	bool by_frame = rng_one_in(&r, 2), ok;
	struct range range;

	m->killed = m->damaged = false;
	while (!m->frames[first++].flush)
		;
	if (model_has(m, WITH_KILL) && by_frame)
		count = first + rng_below(&r, count - first);
	if (!write_frames(m, path, count, &range))
		return false;
	m->killed = model_has(m, WITH_KILL) && !by_frame;
	ok = true;
	if (m->killed || (model_has(m, WITH_DAMAGE) && count == m->frame_count))
		ok = harm(m, path, &r, &range);
	m->killed = model_has(m, WITH_KILL);
	return ok && read_back(m, path);
}
