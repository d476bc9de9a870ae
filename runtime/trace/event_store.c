/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event_store.c - queues of records, put into the order of time and cut to length when they are written.
 *
 * A ring delivers records in the order of their emission.  Device runs are emitted behind their time, and a
 * core may have several rings, so a queue is sorted before use, which is a look at each record when nothing is
 * out of order.  A start and its stop of equal times keep their order through their numbers.
 */
#include "runtime/trace/event_store.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/record/map64.h"
#include "runtime/trace/ring.h"

#define QUEUES (TRACE_MAX_NC + 1) /* the last: of no core */
#define FIRST_ROOM 256u
#define NAME_LEN_BITS 16

struct queue {
	struct trace_record *records;
	size_t at, end, room; /* records[at..end) are waiting */
	bool sorted;
	size_t taken; /* by the write in progress */
};

struct event_store {
	uint64_t max;
	uint64_t dropped;
	struct queue queues[QUEUES];
	struct map64 names; /* id to place in texts << NAME_LEN_BITS | length */
	char *texts;
	size_t texts_len, texts_room;
	struct {
		struct queue *queue;
		size_t count;
		struct trace_record records[RING_BATCH_RECORDS];
	} late; /* of the add that found no memory */
};

struct event_store *event_store_new(uint64_t max_per_core)
{
	struct event_store *s = calloc(1, sizeof(*s));

	if (s)
		s->max = max_per_core;
	return s;
}

void event_store_free(struct event_store *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < QUEUES; i++)
		free(s->queues[i].records);
	map64_free(&s->names);
	free(s->texts);
	free(s);
}

uint64_t event_store_dropped(const struct event_store *s)
{
	return s->dropped;
}

/* ---- records in --------------------------------------------------------------------------- */

/* Room for more records behind the last; the front is used again when most of it is free. */
static int make_room(struct queue *q, size_t more)
{
	size_t count = q->end - q->at, room = q->room ? q->room : FIRST_ROOM;
	struct trace_record *grown;

	if (q->room - q->end >= more)
		return 0;
	if (q->at > 0 && q->room - count >= more && q->at >= count) {
		memcpy(q->records, q->records + q->at, count * sizeof(*q->records));
		q->at = 0;
		q->end = count;
		return 0;
	}
	while (room - q->end < more)
		room *= 2;
	grown = reallocarray(q->records, room, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	q->records = grown;
	q->room = room;
	return 0;
}

static int append(struct queue *q, const struct trace_record *records, size_t count)
{
	int rc = make_room(q, count);

	if (rc < 0)
		return rc;
	memcpy(q->records + q->end, records, count * sizeof(*records));
	q->end += count;
	q->sorted = false;
	return 0;
}

int event_store_add(
	void *ctx, uint32_t nc_idx, uint32_t lane, const struct trace_record *records, size_t count)
{
	struct event_store *s = ctx;
	struct queue *q = &s->queues[nc_idx < TRACE_MAX_NC ? nc_idx : TRACE_MAX_NC];
	int rc = append(q, records, count);

	(void)lane;
	if (rc < 0) {
		memcpy(s->late.records, records, count * sizeof(*records));
		s->late.queue = q;
		s->late.count = count;
	}
	return rc;
}

int event_store_add_late(struct event_store *s)
{
	int rc = s->late.count ? append(s->late.queue, s->late.records, s->late.count) : 0;

	if (rc == 0)
		s->late.count = 0;
	return rc;
}

static int by_time(const void *a, const void *b)
{
	const struct trace_record *x = a, *y = b;

	if (x->timestamp_ns != y->timestamp_ns)
		return x->timestamp_ns < y->timestamp_ns ? -1 : 1;
	return (x->id > y->id) - (x->id < y->id);
}

static void sort(struct queue *q)
{
	bool ordered = true;

	for (size_t i = q->at + 1; i < q->end && ordered; i++)
		ordered = by_time(&q->records[i - 1], &q->records[i]) <= 0;
	if (!ordered)
		qsort(q->records + q->at, q->end - q->at, sizeof(*q->records), by_time);
	q->sorted = true;
}

/* Only now is known which are the oldest: rings of one core come one after the other. */
static void settle(struct event_store *s, struct queue *q)
{
	uint64_t count = q->end - q->at;

	if (!q->sorted)
		sort(q);
	if (count <= s->max)
		return;
	q->at += count - s->max;
	s->dropped += count - s->max;
}

/* ---- names -------------------------------------------------------------------------------- */

int event_store_add_name(void *ctx, uint64_t id, const char *text, uint32_t len)
{
	struct event_store *s = ctx;
	size_t room = s->texts_room ? s->texts_room : FIRST_ROOM;
	char *grown;
	int rc;

	if (id == 0 || len >= 1u << NAME_LEN_BITS)
		return 0;
	while (room - s->texts_len < len)
		room *= 2;
	if (room > s->texts_room) {
		grown = realloc(s->texts, room);
		if (!grown)
			return -ENOMEM;
		s->texts = grown;
		s->texts_room = room;
	}
	rc = map64_put(&s->names, id, (uint64_t)s->texts_len << NAME_LEN_BITS | len);
	if (rc < 0)
		return rc;
	memcpy(s->texts + s->texts_len, text, len);
	s->texts_len += len;
	return 0;
}

const char *event_store_name(void *ctx, uint64_t id, size_t *ret_len)
{
	const struct event_store *s = ctx;
	const uint64_t *found;

	if (id == 0) {
		*ret_len = sizeof(EVENT_JSON_NO_NAME) - 1;
		return EVENT_JSON_NO_NAME;
	}
	found = map64_find(&s->names, id);
	if (!found)
		return NULL;
	*ret_len = *found & ((1u << NAME_LEN_BITS) - 1);
	return s->texts + (*found >> NAME_LEN_BITS);
}

/* ---- records out -------------------------------------------------------------------------- */

/* The queue whose next record is the oldest, of those given; NULL when all have given theirs. */
static struct queue *oldest(struct queue *const *queues, uint32_t count, uint64_t limit)
{
	struct queue *best = NULL;

	for (uint32_t i = 0; i < count; i++) {
		struct queue *q = queues[i];

		if (q->at + q->taken == q->end || (limit && q->taken == limit))
			continue;
		if (!best || q->records[q->at + q->taken].timestamp_ns <
				     best->records[best->at + best->taken].timestamp_ns)
			best = q;
	}
	return best;
}

int event_store_write(struct event_store *s, int32_t nc, uint64_t limit, struct event_json *j)
{
	struct queue *chosen[QUEUES], *q;
	uint32_t count = 0;
	int rc = 0;

	for (uint32_t i = 0; i < QUEUES; i++) {
		q = &s->queues[i];
		settle(s, q);
		if (q->at == q->end || (nc != EVENT_STORE_ALL_NC && i != (uint32_t)nc))
			continue;
		q->taken = 0;
		chosen[count++] = q;
	}
	while (rc == 0 && (q = oldest(chosen, count, limit)))
		rc = event_json_add(j, &q->records[q->at + q->taken++]);
	for (uint32_t i = 0; i < count && rc == 0; i++)
		chosen[i]->at += chosen[i]->taken;
	return rc;
}
