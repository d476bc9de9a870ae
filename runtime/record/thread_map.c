/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread_map.c - thread ids of another pid namespace: per id its rows, by the times from which they hold.
 *
 * What is told later counts more, so a row takes the place of those told before it that hold from no
 * earlier: no look-up could find them any more.
 */
#include "runtime/record/thread_map.h"

#include <errno.h>
#include <stdlib.h>

#include "runtime/record/session.h"

static struct thread_rows *rows_of(const struct thread_map *m, uint32_t tid)
{
	const uint64_t *place = map64_find(&m->places, (uint64_t)tid + 1);

	return place ? &m->ids[*place] : NULL;
}

static struct thread_rows *make_rows(struct thread_map *m, uint32_t tid)
{
	struct thread_rows *known = rows_of(m, tid);

	if (known)
		return known;
	if (session_grow(&m->ids, &m->cap, m->count + 1, sizeof(*m->ids)) < 0 ||
		map64_put(&m->places, (uint64_t)tid + 1, m->count) < 0)
		return NULL;
	m->ids[m->count] = (struct thread_rows){0};
	return &m->ids[m->count++];
}

/* Room for one row more; most ids have only one. */
static int grow(struct thread_rows *r)
{
	uint32_t cap = r->cap ? 2 * r->cap : 1;
	struct thread_row *more;

	if (r->count < r->cap)
		return 0;
	more = realloc(r->rows, cap * sizeof(*more));
	if (!more)
		return -ENOMEM;
	r->rows = more;
	r->cap = cap;
	return 0;
}

int thread_map_add(struct thread_map *m, const struct rec_thread *t)
{
	struct thread_rows *r = make_rows(m, t->tid);

	if (!r)
		return -ENOMEM;
	if (r->count && r->rows[r->count - 1].host_tid == t->host_tid)
		return 0;
	while (r->count && r->rows[r->count - 1].from_ns >= t->from_ns)
		r->count--;
	if (grow(r) < 0)
		return -ENOMEM;
	r->rows[r->count++] = (struct thread_row){t->from_ns, t->host_tid};
	return 1;
}

bool thread_map_knows(const struct thread_map *m, uint32_t tid)
{
	return rows_of(m, tid) != NULL;
}

uint32_t thread_map_host(const struct thread_map *m, uint32_t tid, uint64_t at_ns)
{
	const struct thread_rows *r = rows_of(m, tid);
	uint32_t low = 0, high = r ? r->count : 0;

	while (low < high) { /* the first row that does not hold yet */
		uint32_t middle = low + (high - low) / 2;

		if (r->rows[middle].from_ns <= at_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? r->rows[low - 1].host_tid : 0;
}

void thread_map_free(struct thread_map *m)
{
	for (size_t i = 0; i < m->count; i++)
		free(m->ids[i].rows);
	map64_free(&m->places);
	free(m->ids);
	*m = (struct thread_map){0};
}
