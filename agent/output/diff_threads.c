/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff_threads.c - a pass over both traces that keeps of each thread a hash of what it does, without
 * times, ids and objects.
 */
#include "agent/output/diff_threads.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "agent/output/canon.h"
#include "agent/output/trace_read.h"

#define NONE SIZE_MAX

struct thread {
	uint32_t id;
	uint64_t does; /* hash of its events in order */
	uint64_t core; /* of its first runtime event, + 1; 0: it has none */
	size_t like;   /* place of its like in A, NONE; of a thread of A: its like in B */
};

/* The threads of a trace in order of appearance. */
struct threads {
	struct thread *list;
	size_t count, cap;
	struct map64 places; /* id -> place */
};

static int find(struct threads *t, uint32_t id, struct thread **ret)
{
	const uint64_t *place = map64_find(&t->places, id);

	if (place) {
		*ret = &t->list[*place];
		return 0;
	}
	if (t->count == t->cap) {
		size_t cap = t->cap ? t->cap * 2 : 16;
		struct thread *list = realloc(t->list, cap * sizeof(*list));

		if (!list)
			return -ENOMEM;
		t->list = list;
		t->cap = cap;
	}
	*ret = &t->list[t->count];
	**ret = (struct thread){.id = id, .like = NONE};
	return map64_put(&t->places, id, t->count++);
}

static int take(struct threads *t, const struct ntrace_event_view *e)
{
	struct thread *of;
	int rc;

	if (e->thread_id == 0 || canon_is_clock(e) || canon_is_hardware(e))
		return 0;
	rc = find(t, e->thread_id, &of);
	if (rc < 0)
		return rc;
	if (of->core == 0 && e->hint.len == 0)
		of->core = (uint64_t)e->nc_idx + 1;
	uint64_t v[] = {of->does, e->event_type, e->phase, e->nc_idx, e->nd_idx, e->status,
		e->hint.len ? XXH3_64bits(e->hint.s, e->hint.len) : 0};
	of->does = XXH3_64bits(v, sizeof(v)) | 1;
	return 0;
}

static int read_threads(const struct diff_side *side, struct threads *t, struct diff_fault *fault)
{
	struct ntrace_event_view e;
	struct trace_read r;
	int rc = trace_read_open(&r, side->file);

	while (rc >= 0 && (rc = trace_read_next(&r, &e)) > 0)
		rc = take(t, &e);
	if (rc < 0) {
		fault->path = strdup(side->file);
		fault->offset = r.fd < 0 ? 0 : trace_read_offset(&r);
	}
	trace_read_close(&r);
	return rc;
}

static uint64_t does(const struct thread *t)
{
	return t->does;
}

static uint64_t core(const struct thread *t)
{
	return t->core;
}

static uint64_t any(const struct thread *t)
{
	(void)t;
	return 1;
}

/* Pairs those that have no like yet and the same key, in order of appearance; key 0 has no like. */
static int pair_by(struct threads t[2], uint64_t (*key)(const struct thread *))
{
	size_t *next = malloc((t[0].count + 1) * sizeof(*next));
	struct map64 first = {0};
	int rc = next ? 0 : -ENOMEM;

	for (size_t i = t[0].count; rc == 0 && i-- > 0;) {
		uint64_t k = t[0].list[i].like == NONE ? key(&t[0].list[i]) : 0;
		const uint64_t *head = k ? map64_find(&first, k) : NULL;

		next[i] = head ? *head : NONE;
		if (k)
			rc = map64_put(&first, k, i);
	}
	for (size_t i = 0; rc == 0 && i < t[1].count; i++) {
		struct thread *b = &t[1].list[i];
		uint64_t k = b->like == NONE ? key(b) : 0;
		uint64_t *head = k ? map64_find(&first, k) : NULL;

		if (!head || *head == NONE)
			continue;
		b->like = *head;
		t[0].list[b->like].like = i;
		*head = next[b->like];
	}
	map64_free(&first);
	free(next);
	return rc;
}

static int number(const struct threads t[2], struct map64 *ret)
{
	uint64_t above = t[0].count;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < t[1].count; i++) {
		const struct thread *b = &t[1].list[i];

		rc = map64_put(ret, b->id, b->like == NONE ? ++above : b->like + 1);
	}
	return rc;
}

int diff_threads_pair(const struct diff_side side[2], struct map64 *ret, struct diff_fault *fault)
{
	static uint64_t (*const keys[])(const struct thread *) = {does, core, any};
	struct threads t[2] = {{0}, {0}};
	int rc = read_threads(&side[0], &t[0], fault);

	if (rc == 0)
		rc = read_threads(&side[1], &t[1], fault);
	for (size_t i = 0; rc == 0 && i < sizeof(keys) / sizeof(*keys); i++)
		rc = pair_by(t, keys[i]);
	if (rc == 0)
		rc = number(t, ret);
	for (unsigned s = 0; s < 2; s++) {
		free(t[s].list);
		map64_free(&t[s].places);
	}
	return rc;
}
