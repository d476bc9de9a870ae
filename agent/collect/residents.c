/* SPDX-License-Identifier: Apache-2.0 */
/*
 * residents.c - see residents.h.
 */
#include "agent/collect/residents.h"

#include <errno.h>
#include <stdlib.h>

#include "runtime/record/rec_put.h"

static int add(struct residents *m, uint32_t pid)
{
	if (m->count == m->cap) {
		size_t cap = m->cap ? 2 * m->cap : 64;
		uint32_t *more = realloc(m->pids, cap * sizeof(*more));

		if (!more)
			return -ENOMEM;
		m->pids = more;
		m->cap = cap;
	}
	int rc = map64_put(&m->places, (uint64_t)pid + 1, m->count);
	if (rc == 0)
		m->pids[m->count++] = pid;
	return rc;
}

/* The last one takes its place. */
static void forget(struct residents *m, size_t at)
{
	uint32_t last = m->pids[--m->count];

	map64_remove(&m->places, (uint64_t)m->pids[at] + 1);
	if (at == m->count)
		return;
	m->pids[at] = last;
	*map64_find(&m->places, (uint64_t)last + 1) = at;
}

int residents_know(struct residents *m, struct rec_writer *rec, uint32_t pid)
{
	int rc;

	if (map64_find(&m->places, (uint64_t)pid + 1))
		return 0;
	rc = rec_put_memory(rec, pid);
	return rc <= 0 ? rc : add(m, pid);
}

int residents_sample(struct residents *m, struct rec_writer *rec, size_t most)
{
	size_t left = m->count;

	for (; left && most; left--, most--) {
		if (m->next >= m->count)
			m->next = 0;
		int rc = rec_put_memory(rec, m->pids[m->next]);
		if (rc < 0)
			return rc;
		if (rc == 0)
			forget(m, m->next);
		else
			m->next++;
	}
	m->skipped += left;
	return 0;
}

void residents_free(struct residents *m)
{
	free(m->pids);
	map64_free(&m->places);
	*m = (struct residents){0};
}
