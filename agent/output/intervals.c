/* SPDX-License-Identifier: Apache-2.0 */
/*
 * intervals.c - see intervals.h.
 */
#include "agent/output/intervals.h"

#include <errno.h>
#include <stdlib.h>

void intervals_free(struct intervals *s)
{
	free(s->list);
	*s = (struct intervals){0};
}

static int append(struct intervals *s, struct ran r)
{
	if (s->n == s->cap) {
		size_t cap = s->cap ? s->cap * 2 : 16;
		struct ran *more = realloc(s->list, cap * sizeof(*more));

		if (!more)
			return -ENOMEM;
		s->list = more;
		s->cap = cap;
	}
	s->list[s->n++] = r;
	return 0;
}

int intervals_add(struct intervals *s, uint64_t from, uint64_t to)
{
	struct ran r = {from, to};

	if (from >= to)
		return 0;
	while (s->n && s->list[s->n - 1].to >= r.from && s->list[s->n - 1].from <= r.to) {
		const struct ran *last = &s->list[--s->n];

		r.from = last->from < r.from ? last->from : r.from;
		r.to = last->to > r.to ? last->to : r.to;
	}
	return append(s, r);
}

static int compare(const void *a, const void *b)
{
	const struct ran *x = a, *y = b;

	return (x->from > y->from) - (x->from < y->from);
}

void intervals_finish(struct intervals *s)
{
	size_t n = s->n;

	if (n < 2)
		return;
	qsort(s->list, n, sizeof(*s->list), compare);
	s->n = 0;
	for (size_t i = 0; i < n; i++)
		intervals_add(s, s->list[i].from, s->list[i].to); /* into room that is there */
}

uint64_t intervals_total(const struct intervals *s)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < s->n; i++)
		sum += s->list[i].to - s->list[i].from;
	return sum;
}

int intervals_append(struct intervals *a, const struct intervals *b)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < b->n; i++)
		rc = append(a, b->list[i]);
	return rc;
}

int intervals_join(struct intervals *a, const struct intervals *b)
{
	int rc = intervals_append(a, b);

	intervals_finish(a);
	return rc;
}

int intervals_common(struct intervals *a, const struct intervals *b)
{
	struct intervals both = {0};
	int rc = 0;

	for (size_t i = 0, k = 0; rc == 0 && i < a->n && k < b->n;) {
		const struct ran *x = &a->list[i], *y = &b->list[k];

		rc = intervals_add(&both, x->from > y->from ? x->from : y->from,
			x->to < y->to ? x->to : y->to);
		if (x->to < y->to)
			i++;
		else
			k++;
	}
	intervals_free(a);
	*a = both;
	return rc;
}
