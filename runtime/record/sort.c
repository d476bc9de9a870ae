/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sort.c - natural merge sort.
 */
#include "runtime/record/sort.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/file.h"

struct sorter {
	sort_tie_fn tie;
	const void *ctx;
};

/* Must b stand before a, which stands before it now? */
static inline bool misplaced(
	const struct sorter *s, const struct sort_entry *a, const struct sort_entry *b)
{
	if (a->key != b->key)
		return b->key < a->key;
	return s->tie(s->ctx, a, b) > 0;
}

/* Ends of the ascending runs; *ret_count of them. */
static size_t *find_runs(
	const struct sorter *s, const struct sort_entry *e, size_t count, size_t *ret_count)
{
	size_t n = 0, cap = 64;
	size_t *ends = malloc(cap * sizeof(*ends));

	if (!ends)
		return NULL;
	for (size_t i = 1; i <= count; i++) {
		if (i < count && !misplaced(s, &e[i - 1], &e[i]))
			continue;
		if (n == cap) {
			size_t *more = realloc(ends, 2 * cap * sizeof(*ends));
			if (!more) {
				free(ends);
				return NULL;
			}
			ends = more;
			cap *= 2;
		}
		ends[n++] = i;
	}
	*ret_count = n;
	return ends;
}

static void merge(const struct sorter *s, struct sort_entry *to, const struct sort_entry *e,
	size_t begin, size_t middle, size_t end)
{
	size_t a = begin, b = middle, out = begin;

	while (a < middle && b < end)
		to[out++] = misplaced(s, &e[a], &e[b]) ? e[b++] : e[a++];
	memcpy(&to[out], &e[a], (middle - a) * sizeof(*to));
	out += middle - a;
	memcpy(&to[out], &e[b], (end - b) * sizeof(*to));
}

int sort_entries(struct sort_entry *entries, size_t count, sort_tie_fn tie, const void *ctx)
{
	struct sorter s = {tie, ctx};
	struct sort_entry *from = entries, *to;
	_cleanup_free_ size_t *ends = NULL;
	_cleanup_free_ struct sort_entry *spare = NULL;
	size_t runs = 0;

	if (count < 2)
		return 0;
	ends = find_runs(&s, entries, count, &runs);
	if (!ends)
		return -ENOMEM;
	if (runs < 2)
		return 0;
	to = spare = malloc(count * sizeof(*spare));
	if (!spare)
		return -ENOMEM;
	while (runs > 1) {
		size_t begin = 0, left = 0;

		for (size_t i = 0; i < runs; i += 2) {
			size_t middle = ends[i], end = i + 1 < runs ? ends[i + 1] : middle;

			merge(&s, to, from, begin, middle, end);
			ends[left++] = end;
			begin = end;
		}
		runs = left;
		struct sort_entry *t = from;
		from = to;
		to = t;
	}
	if (from != entries)
		memcpy(entries, from, count * sizeof(*entries));
	return 0;
}
