/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event_store.c - queues of records, put into the order of time and cut to length when they are written.
 *
 * A ring delivers records in the order of their emission.  Device runs are emitted behind their time, and a
 * core may have several rings, so what was added since the last time is sorted before use and merged with what
 * was waiting.  That looks at the new records, and at those of the old ones that are younger than the oldest new
 * one: a program that takes a few events at a time does not pay for the many that wait.  A start and its stop
 * of equal times keep their order through their numbers.
 *
 * A queue is cut whenever it is a quarter longer than it may be.  The newest of all are among the newest of any part,
 * so it does not matter that records of another ring are still to come.
 */
#include "runtime/trace/event_store.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/record/map64.h"

#define QUEUES (TRACE_MAX_NC + 1) /* the last: of no core */
#define FIRST_ROOM 256u
#define NAME_LEN_BITS 16

struct queue {
	struct trace_record *records;
	size_t at, sorted, end, room; /* records[at..end) are waiting, [at..sorted) in order */
	size_t taken;		      /* by the write in progress */
};

struct event_store {
	uint64_t max;
	uint64_t dropped;
	struct queue queues[QUEUES];
	struct map64 names; /* id to place in texts << NAME_LEN_BITS | length */
	char *texts;
	size_t texts_len, texts_room;
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

uint64_t event_store_waiting(const struct event_store *s)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < QUEUES; i++)
		sum += s->queues[i].end - s->queues[i].at;
	return sum;
}

uint64_t event_store_dropped(const struct event_store *s)
{
	return s->dropped;
}

/* ---- records in --------------------------------------------------------------------------- */

/* Room for more records behind the last; the front is used again when it is worth moving the rest. */
static int make_room(struct queue *q, size_t more)
{
	size_t count = q->end - q->at, room = q->room ? q->room : FIRST_ROOM;
	struct trace_record *grown;

	if (q->room - q->end >= more)
		return 0;
	if (q->at > 0 && q->room - count >= more && q->at >= count / 4) {
		memmove(q->records, q->records + q->at, count * sizeof(*q->records));
		q->sorted -= q->at;
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

static int by_time(const void *a, const void *b)
{
	const struct trace_record *x = a, *y = b;

	if (x->timestamp_ns != y->timestamp_ns)
		return x->timestamp_ns < y->timestamp_ns ? -1 : 1;
	return (x->id > y->id) - (x->id < y->id);
}

/* Sorts what was added; says whether it was in order and is to stay where it is. */
static bool sort_added(struct queue *q)
{
	size_t i = q->sorted + 1;

	while (i < q->end && by_time(&q->records[i - 1], &q->records[i]) <= 0)
		i++;
	if (i < q->end)
		qsort(q->records + q->sorted, q->end - q->sorted, sizeof(*q->records), by_time);
	return q->sorted == q->at ||
	       by_time(&q->records[q->sorted - 1], &q->records[q->sorted]) <= 0;
}

/* Brings the queue into order.  0, or -ENOMEM: it is as it was, but for what was added being in order. */
static int sort(struct queue *q)
{
	size_t added = q->end - q->sorted, old = q->sorted, to = q->end;
	struct trace_record *copy;

	if (added == 0)
		return 0;
	if (!sort_added(q)) {
		copy = malloc(added * sizeof(*copy));
		if (!copy)
			return -ENOMEM;
		memcpy(copy, q->records + q->sorted, added * sizeof(*copy));
		/* From the end; what is old and older than all that was added does not move. */
		while (added) {
			if (old > q->at && by_time(&q->records[old - 1], &copy[added - 1]) > 0)
				q->records[--to] = q->records[--old];
			else
				q->records[--to] = copy[--added];
		}
		free(copy);
	}
	q->sorted = q->end;
	return 0;
}

/* In order, and no longer than it may be.  0 or -ENOMEM. */
static int settle(struct event_store *s, struct queue *q)
{
	int rc = sort(q);
	uint64_t count = q->end - q->at;

	if (rc == 0 && count > s->max) {
		q->at += count - s->max;
		s->dropped += count - s->max;
	}
	return rc;
}

int event_store_add(
	void *ctx, uint32_t nc_idx, uint32_t lane, const struct trace_record *records, size_t count)
{
	struct event_store *s = ctx;
	struct queue *q = &s->queues[nc_idx < TRACE_MAX_NC ? nc_idx : TRACE_MAX_NC];
	int rc = 0;

	(void)lane;
	if (q->end - q->at >= s->max + s->max / 4)
		rc = settle(s, q);
	if (rc == 0)
		rc = make_room(q, count);
	if (rc < 0)
		return rc;
	memcpy(q->records + q->end, records, count * sizeof(*records));
	q->end += count;
	return 0;
}

static int move_queue(struct event_store *to, struct event_store *from, uint32_t nc)
{
	struct queue *q = &to->queues[nc], *give = &from->queues[nc];
	int rc = 0;

	if (q->at == q->end) {
		struct queue empty = *q;

		*q = *give;
		*give = empty;
	} else if (give->at < give->end) {
		rc = event_store_add(to, nc, 0, give->records + give->at, give->end - give->at);
	}
	if (rc == 0)
		give->at = give->sorted = give->end = 0;
	return rc;
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

static int move_names(struct event_store *to, struct event_store *from)
{
	const struct map64 *m = &from->names;
	int rc = 0;

	for (size_t i = 0; m->bits && i <= map64_mask(m) && rc == 0; i++) {
		uint64_t at = m->entries[i].value;

		if (m->entries[i].key)
			rc = event_store_add_name(to, m->entries[i].key,
				from->texts + (at >> NAME_LEN_BITS),
				(uint32_t)(at & ((1u << NAME_LEN_BITS) - 1)));
	}
	if (rc == 0) {
		map64_free(&from->names);
		from->texts_len = 0;
	}
	return rc;
}

int event_store_move(struct event_store *to, struct event_store *from)
{
	int rc = move_names(to, from);

	for (uint32_t i = 0; i < QUEUES && rc == 0; i++)
		rc = move_queue(to, from, i);
	return rc;
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
static struct queue *oldest(
	struct queue *const *queues, uint32_t count, uint64_t limit, uint64_t until_ns)
{
	struct queue *best = NULL;
	uint64_t best_ns = 0;

	for (uint32_t i = 0; i < count; i++) {
		struct queue *q = queues[i];
		uint64_t ns;

		if (q->at + q->taken == q->end || (limit && q->taken == limit))
			continue;
		ns = q->records[q->at + q->taken].timestamp_ns;
		if (ns <= until_ns && (!best || ns < best_ns)) {
			best = q;
			best_ns = ns;
		}
	}
	return best;
}

int event_store_write(
	struct event_store *s, int32_t nc, uint64_t limit, uint64_t until_ns, struct event_json *j)
{
	struct queue *chosen[QUEUES], *q;
	uint32_t count = 0;
	int rc = 0;

	for (uint32_t i = 0; i < QUEUES; i++) {
		q = &s->queues[i];
		rc = settle(s, q);
		if (rc < 0)
			return rc;
		if (q->at == q->end || (nc != TRACE_ALL_NC && i != (uint32_t)nc))
			continue;
		q->taken = 0;
		chosen[count++] = q;
	}
	while (rc == 0 && (q = oldest(chosen, count, limit, until_ns)))
		rc = event_json_add(j, &q->records[q->at + q->taken++]);
	for (uint32_t i = 0; i < count && rc == 0; i++)
		chosen[i]->at += chosen[i]->taken;
	return rc;
}
