/* SPDX-License-Identifier: Apache-2.0 */
/* collector_read.c - what a subscriber gets: cursors, and the data from a cursor to now. */
#include <stdlib.h>
#include <string.h>

#include "runtime/base/lock_within.h"
#include "runtime/log/log.h"
#include "runtime/profile/collector_parts.h"

#define TAG "NMGR"
#define MAX_ROWS (CORES_MAX_SIZE * NOTIFICATION_RINGS)

/* Where a ring was when the cursor passed. */
struct ring_place {
	struct pieces_place place;
	uint64_t lost, vague, dropped, gone, replaced, unasked, given;
};

/* Of all rings, in the order of rows, and of the core itself. */
struct core_place {
	struct ring_place rings[MAX_ROWS];
	struct pieces_place runs, syncs;
	uint64_t runs_dropped;
	uint64_t boot_ns;
};

struct collector_cursor {
	struct collector_core *core;
	struct core_place at;
};

static uint32_t row_count(const struct collector_core *c)
{
	return c->part_count * NOTIFICATION_RINGS;
}

static struct collector_ring *ring_of(struct collector_core *c, uint32_t row)
{
	return &c->parts[row / NOTIFICATION_RINGS].rings[row % NOTIFICATION_RINGS];
}

/* ---- places ------------------------------------------------------------------------------- */

static struct ring_place ring_now(struct collector_ring *r)
{
	struct ring_place now;

	pthread_mutex_lock(&r->lock);
	now = (struct ring_place){
		.place = pieces_now(&r->records),
		.lost = r->lost + r->reader.lost,
		.vague = r->vague + r->reader.vague + r->reader.doubts,
		.given = r->given,
		.dropped = r->dropped,
		.gone = r->gone,
		.replaced = r->replaced,
		.unasked = r->unasked,
	};
	pthread_mutex_unlock(&r->lock);
	return now;
}

/* -errno: the device did not answer, and it is as far as could be seen. */
static int core_now(struct collector_core *c, struct core_place *ret)
{
	int rc;

	ret->boot_ns = clock_boot().ns;
	collector_core_sync(c);
	rc = collector_core_settle(c);
	for (uint32_t i = 0; i < row_count(c); i++)
		ret->rings[i] = ring_now(ring_of(c, i));
	pthread_mutex_lock(&c->lock);
	ret->runs = pieces_now(&c->runs);
	ret->syncs = pieces_now(&c->syncs);
	ret->runs_dropped = c->runs_dropped;
	pthread_mutex_unlock(&c->lock);
	return rc;
}

static void core_leave(struct core_place *at)
{
	for (uint32_t i = 0; i < MAX_ROWS; i++)
		pieces_leave(&at->rings[i].place);
	pieces_leave(&at->runs);
	pieces_leave(&at->syncs);
}

struct collector_cursor *collector_cursor_new(struct collector_core *c)
{
	struct collector_cursor *cursor = calloc(1, sizeof(*cursor));

	if (!cursor)
		return NULL;
	cursor->core = c;
	(void)core_now(c, &cursor->at);
	return cursor;
}

struct collector_core *collector_cursor_free(struct collector_cursor *cursor)
{
	struct collector_core *c = cursor->core;

	core_leave(&cursor->at);
	free(cursor);
	return c;
}

bool collector_is_free(struct collector_cursor *cursor, struct boot_ns until)
{
	struct collector_core *c = cursor->core;

	for (uint32_t i = 0; i < row_count(c); i++)
		if (!lock_is_free(&ring_of(c, i)->lock, until))
			return false;
	return lock_is_free(&c->lock, until);
}

void collector_skip(struct collector_cursor *cursor)
{
	struct core_place now = {0};

	(void)core_now(cursor->core, &now);
	core_leave(&cursor->at);
	cursor->at = now;
}

/* ---- from a place to another -------------------------------------------------------------- */

static uint32_t count_spans(struct pieces_place from, const struct pieces_place *to)
{
	struct collector_piece *piece;
	uint32_t n = 0, count;

	while (pieces_walk(&from, to, sizeof(struct notification), &count, &piece))
		n++;
	return n;
}

static void fill_spans(
	struct collector_row *row, struct pieces_place from, const struct pieces_place *to)
{
	struct collector_span *s = row->spans;

	while ((s->records = pieces_walk(
			&from, to, sizeof(struct notification), &s->count, &s->piece))) {
		pieces_hold(s->piece);
		row->count += s->count;
		s++;
	}
	row->span_count = (uint32_t)(s - row->spans);
}

static void fill_row(struct collector_row *row, const struct collector_ring *r, uint32_t part,
	const struct ring_place *from, const struct ring_place *to)
{
	row->kind = r->type->kind;
	row->trace_type = r->type->trace;
	row->block_type = r->type->block;
	row->engine = r->key.engine;
	row->part = part;
	row->nd_idx = r->core->device->index;
	row->nc_idx = r->core->index;
	row->lost = to->lost - from->lost;
	row->replaced = to->gone - from->gone;
	row->was_replaced = to->replaced != from->replaced;
	row->unasked = to->unasked != from->unasked;
	row->given_back = to->given != from->given;
	row->doubtful = to->vague != from->vague;
	row->lost_at_least = row->was_replaced || row->unasked || row->doubtful || row->given_back;
	row->dropped = to->dropped - from->dropped;
	row->ring_bytes = r->bytes;
	fill_spans(row, from->place, &to->place);
}

/* A copy of the elements between two places; NULL: none, or *ret_count is not 0 and there is no memory. */
static void *copy_list(struct pieces_place from, const struct pieces_place *to, uint32_t bytes,
	uint32_t *ret_count)
{
	struct pieces_place walk = from;
	struct collector_piece *piece;
	const void *found;
	uint32_t count;
	char *list, *at;

	*ret_count = 0;
	while (pieces_walk(&walk, to, bytes, &count, &piece))
		*ret_count += count;
	list = at = *ret_count ? malloc((size_t)*ret_count * bytes) : NULL;
	while (list && (found = pieces_walk(&from, to, bytes, &count, &piece))) {
		memcpy(at, found, (size_t)count * bytes);
		at += (size_t)count * bytes;
	}
	return list;
}

/* All memory of *ret; false: there is none. */
static bool make_data(const struct collector_cursor *cursor, const struct core_place *to,
	struct collector_data *ret)
{
	const struct core_place *from = &cursor->at;
	uint32_t rows = row_count(cursor->core), spans = 0;
	struct collector_span *span;

	for (uint32_t i = 0; i < rows; i++) /* and one for the end of the walk */
		spans += count_spans(from->rings[i].place, &to->rings[i].place) + 1;
	ret->rows = calloc(rows, sizeof(ret->rows[0]));
	ret->spans = span = calloc(spans, sizeof(*span));
	ret->runs = copy_list(from->runs, &to->runs, sizeof(ret->runs[0]), &ret->run_count);
	ret->syncs = copy_list(from->syncs, &to->syncs, sizeof(ret->syncs[0]), &ret->sync_count);
	if (!ret->rows || !span || (ret->run_count && !ret->runs) ||
		(ret->sync_count && !ret->syncs))
		return false;
	for (uint32_t i = 0; i < rows; i++) {
		ret->rows[i].spans = span;
		span += count_spans(from->rings[i].place, &to->rings[i].place) + 1;
	}
	return true;
}

static void warn_of_losses(const struct collector_core *c, const struct collector_data *d)
{
	uint64_t lost = 0, dropped = 0;
	uint32_t rings = 0;
	bool at_least = false;

	for (uint32_t i = 0; i < d->row_count; i++) {
		const struct collector_row *row = &d->rows[i];
		bool doubt = row->was_replaced || row->doubtful || row->given_back;

		lost += row->lost;
		dropped += row->dropped;
		at_least |= row->lost_at_least;
		rings += row->lost || row->dropped || doubt;
	}
	if (rings)
		log_error(TAG,
			"Profile of nc %u is not whole: of %u rings %s%llu notifications are lost, "
			"and %llu "
			"more not "
			"kept (NTRACE_PROFILE_MAX_MB); executions are as without it",
			c->vnc, rings, at_least ? "at least " : "", (unsigned long long)lost,
			(unsigned long long)dropped);
}

NRT_STATUS collector_read(struct collector_cursor *cursor, struct collector_data *ret)
{
	struct collector_core *c = cursor->core;
	struct collector_data d = {0};
	struct core_place now = {0};

	d.unasked = core_now(c, &now);
	if (!make_data(cursor, &now, &d)) {
		log_error(TAG, "Profile of nc %u: no memory", c->vnc);
		collector_data_free(&d);
		core_leave(&now);
		return NRT_RESOURCE;
	}
	d.row_count = row_count(c);
	for (uint32_t i = 0; i < d.row_count; i++)
		fill_row(&d.rows[i], ring_of(c, i), i / NOTIFICATION_RINGS, &cursor->at.rings[i],
			&now.rings[i]);
	d.runs_dropped = now.runs_dropped - cursor->at.runs_dropped;
	d.boot_ns_begin = cursor->at.boot_ns;
	d.boot_ns_end = now.boot_ns;
	core_leave(&cursor->at);
	cursor->at = now;
	warn_of_losses(c, &d);
	*ret = d;
	return NRT_SUCCESS;
}

void collector_data_free(struct collector_data *data)
{
	for (uint32_t i = 0; i < data->row_count; i++)
		for (uint32_t s = 0; s < data->rows[i].span_count; s++)
			pieces_drop(data->rows[i].spans[s].piece);
	free(data->spans);
	free(data->rows);
	free(data->runs);
	free(data->syncs);
	*data = (struct collector_data){0};
}

void collector_row_copy(const struct collector_row *row, struct notification *to)
{
	for (uint32_t s = 0; s < row->span_count; s++) {
		memcpy(to, row->spans[s].records, row->spans[s].count * sizeof(*to));
		to += row->spans[s].count;
	}
}
