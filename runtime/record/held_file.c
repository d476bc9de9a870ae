/* SPDX-License-Identifier: Apache-2.0 */
/*
 * held_file.c - what is held beyond the limit: sorted runs in an unlinked temporary file.
 *
 * A run is the items of one spill by time.  A release merges the runs that have something old enough
 * with what is in memory.  Each run is read through a buffer of its own, and all buffers together have a
 * fixed size, so that many runs cost reads and not memory.  Items of one time are gathered from all
 * places before they are ordered.  Space in the file is given back when its last run has been given.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "runtime/record/held.h"

#define BUFFER_BYTES (4u << 20) /* of all runs together */
#define MIN_ITEMS 4u
#define MAX_ITEMS 4096u
#define WRITE_ITEMS 2048u

static struct held_run *add_run(struct held *h)
{
	if (h->run_count == h->run_cap) {
		size_t cap = h->run_cap ? 2 * h->run_cap : 16;
		struct held_run *more = realloc(h->runs, cap * sizeof(*more));

		if (!more)
			return NULL;
		h->runs = more;
		h->run_cap = cap;
	}
	return &h->runs[h->run_count];
}

int held_write_run(struct held *h, const struct held_ref *refs, size_t count)
{
	struct held_run *run = add_run(h);
	_cleanup_free_ struct item *buf = malloc(WRITE_ITEMS * sizeof(*buf));
	int rc = run && buf ? 0 : -ENOMEM;

	if (rc == 0 && h->fd < 0)
		rc = h->fd = h->open_file(h->ctx);
	if (rc < 0 || count == 0)
		return rc < 0 ? rc : 0;
	*run = (struct held_run){.offset = h->file_bytes, .count = count, .head = refs[0].time};
	for (size_t i = 0; i < count;) {
		size_t n = 0;

		for (; n < WRITE_ITEMS && i < count; n++, i++)
			buf[n] = *refs[i].item;
		rc = file_write_all(h->fd, buf, n * sizeof(*buf));
		if (rc < 0)
			return rc;
		h->file_bytes += n * sizeof(*buf);
	}
	h->run_count++;
	h->spilled += count;
	return 0;
}

/* ---- reading ------------------------------------------------------------------------------ */

/* Fills a run's buffer from its next item on. */
static int fill(struct held *h, struct held_run *r, uint32_t items)
{
	uint64_t left = r->count - r->next;
	size_t want, got = 0;

	if (r->cap < items) {
		struct item *more = realloc(r->buf, items * sizeof(*more));

		if (!more)
			return -ENOMEM;
		r->buf = more;
		r->cap = items;
	}
	r->at = 0;
	r->have = left < items ? (uint32_t)left : items;
	want = r->have * sizeof(struct item);
	while (got < want) {
		ssize_t n = pread(h->fd, (char *)r->buf + got, want - got,
			(off_t)(r->offset + r->next * sizeof(struct item) + got));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		got += (size_t)n;
	}
	return 0;
}

/* Flags that a start got while it lay in the file. */
static void update_flags(struct held *h, struct item *i)
{
	uint64_t *flags = i->kind == ITEM_START ? map64_find(&h->late_flags, i->pair) : NULL;

	if (!flags)
		return;
	i->flags |= (uint16_t)*flags;
	map64_remove(&h->late_flags, i->pair);
}

struct merger {
	struct held *h;
	size_t *heap; /* places of runs, the one with the oldest head on top */
	size_t heap_count;
	uint32_t items;	    /* per buffer */
	size_t at;	    /* into the batch */
	struct item *arena; /* items of one time that come from the file */
	size_t arena_count, arena_cap;
	struct held_refs group;
};

static uint64_t head(const struct merger *m, size_t place)
{
	return m->h->runs[m->heap[place]].head;
}

static void sink(struct merger *m, size_t i)
{
	for (;;) {
		size_t least = i, left = 2 * i + 1;

		for (size_t c = left; c < left + 2 && c < m->heap_count; c++)
			if (head(m, c) < head(m, least))
				least = c;
		if (least == i)
			return;
		size_t t = m->heap[i];
		m->heap[i] = m->heap[least];
		m->heap[least] = t;
		i = least;
	}
}

static int add_to_group(struct merger *m, const struct item *item)
{
	if (m->arena_count == m->arena_cap) {
		size_t cap = m->arena_cap ? 2 * m->arena_cap : 64;
		struct item *more = realloc(m->arena, cap * sizeof(*more));

		if (!more)
			return -ENOMEM;
		m->arena = more;
		m->arena_cap = cap;
	}
	m->arena[m->arena_count] = *item;
	update_flags(m->h, &m->arena[m->arena_count++]);
	return 0;
}

/* Takes the oldest item of the top run into the group. */
static int take_top(struct merger *m)
{
	struct held_run *r = &m->h->runs[m->heap[0]];
	int rc = add_to_group(m, &r->buf[r->at]);

	if (rc < 0)
		return rc;
	r->next++;
	if (++r->at == r->have && r->next < r->count) {
		rc = fill(m->h, r, m->items);
		if (rc < 0)
			return rc;
	}
	if (r->next < r->count)
		r->head = r->buf[r->at].time;
	else
		m->heap[0] = m->heap[--m->heap_count];
	if (m->heap_count)
		sink(m, 0);
	return 0;
}

/* Refs to all of the group: those from the file and `count` of the batch. */
static int gather(struct merger *m, size_t count)
{
	size_t need = m->arena_count + count;
	struct held_refs *g = &m->group;

	if (need > g->cap) {
		struct held_ref *more = realloc(g->refs, 2 * need * sizeof(*more));

		if (!more)
			return -ENOMEM;
		g->refs = more;
		g->cap = 2 * need;
	}
	for (size_t i = 0; i < m->arena_count; i++)
		g->refs[i] = (struct held_ref){m->arena[i].time, &m->arena[i]};
	if (count)
		memcpy(&g->refs[m->arena_count], &m->h->batch.refs[m->at],
			count * sizeof(*g->refs));
	g->count = need;
	return 0;
}

static int give_next(struct merger *m, held_fn fn, void *ctx)
{
	const struct held_refs *b = &m->h->batch;
	uint64_t time = m->at < b->count ? b->refs[m->at].time : UINT64_MAX;
	size_t from_memory = 0;
	int rc = 0;

	if (m->heap_count && head(m, 0) < time)
		time = head(m, 0);
	m->arena_count = 0;
	while (rc == 0 && m->heap_count && head(m, 0) == time)
		rc = take_top(m);
	while (m->at + from_memory < b->count && b->refs[m->at + from_memory].time == time)
		from_memory++;
	if (rc == 0)
		rc = gather(m, from_memory);
	if (rc == 0)
		rc = held_give_group(m->group.refs, m->group.count, fn, ctx);
	for (size_t i = 0; i < from_memory; i++)
		held_release_item(m->h, b->refs[m->at + i].item);
	m->at += from_memory;
	return rc < 0 ? rc : 0;
}

/* Builds the heap of the runs that have something before a time. */
static int open_runs(struct merger *m, uint64_t before)
{
	struct held *h = m->h;
	size_t want = 0;

	m->heap = malloc(h->run_count * sizeof(*m->heap));
	if (!m->heap)
		return -ENOMEM;
	for (size_t i = 0; i < h->run_count; i++)
		if (h->runs[i].next < h->runs[i].count && h->runs[i].head < before)
			m->heap[m->heap_count++] = i;
	want = BUFFER_BYTES / sizeof(struct item) / (m->heap_count + 1);
	m->items = want < MIN_ITEMS ? MIN_ITEMS : want > MAX_ITEMS ? MAX_ITEMS : (uint32_t)want;
	for (size_t i = 0; i < m->heap_count; i++) {
		int rc = fill(h, &h->runs[m->heap[i]], m->items);
		if (rc < 0)
			return rc;
	}
	for (size_t i = m->heap_count / 2; i-- > 0;)
		sink(m, i);
	return 0;
}

/* Forgets runs that were given, buffers, and the file's content when no run is left. */
static int close_runs(struct held *h)
{
	size_t kept = 0;

	for (size_t i = 0; i < h->run_count; i++) {
		free(h->runs[i].buf);
		h->runs[i].buf = NULL;
		h->runs[i].cap = 0;
		if (h->runs[i].next < h->runs[i].count)
			h->runs[kept++] = h->runs[i];
	}
	h->run_count = kept;
	if (kept)
		return 0;
	h->file_bytes = 0;
	return ftruncate(h->fd, 0) < 0 || lseek(h->fd, 0, SEEK_SET) < 0 ? -errno : 0;
}

int held_merge_runs(struct held *h, uint64_t before, held_fn fn, void *ctx)
{
	struct merger m = {.h = h};
	int rc = open_runs(&m, before);

	/* The newest time in the batch is before `before` already. */
	while (rc == 0 && (m.at < h->batch.count || (m.heap_count && head(&m, 0) < before)))
		rc = give_next(&m, fn, ctx);
	while (rc < 0 && m.at < h->batch.count)
		held_release_item(h, h->batch.refs[m.at++].item);
	free(m.heap);
	free(m.arena);
	free(m.group.refs);
	int closed = close_runs(h);
	return rc < 0 ? rc : closed;
}
