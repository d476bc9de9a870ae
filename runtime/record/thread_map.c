/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread_map.c - thread ids of another pid namespace: per id a list of rows, the one that was told
 * last first.
 */
#include "runtime/record/thread_map.h"

#include <errno.h>
#include <stdlib.h>

#include "runtime/record/session.h"

static const struct thread_row *newest(const struct thread_map *m, uint32_t tid)
{
	const uint64_t *place = map64_find(&m->newest, (uint64_t)tid + 1);

	return place ? &m->rows[*place] : NULL;
}

int thread_map_add(struct thread_map *m, const struct rec_thread *t)
{
	const struct thread_row *known = newest(m, t->tid);
	uint32_t before = known ? (uint32_t)(known - m->rows) + 1 : 0;

	if (known && known->host_tid == t->host_tid)
		return 0;
	if (session_grow(&m->rows, &m->cap, m->count + 1, sizeof(*m->rows)) < 0 ||
		map64_put(&m->newest, (uint64_t)t->tid + 1, m->count) < 0)
		return -ENOMEM;
	m->rows[m->count++] = (struct thread_row){t->from_ns, t->host_tid, before};
	return 1;
}

bool thread_map_knows(const struct thread_map *m, uint32_t tid)
{
	return newest(m, tid) != NULL;
}

uint32_t thread_map_host(const struct thread_map *m, uint32_t tid, uint64_t at_ns)
{
	const struct thread_row *r = newest(m, tid);

	while (r && r->from_ns > at_ns)
		r = r->before ? &m->rows[r->before - 1] : NULL;
	return r ? r->host_tid : 0;
}

void thread_map_free(struct thread_map *m)
{
	map64_free(&m->newest);
	free(m->rows);
	*m = (struct thread_map){0};
}
