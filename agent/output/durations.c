/* SPDX-License-Identifier: Apache-2.0 */
/*
 * durations.c - see durations.h.
 */
#include "agent/output/durations.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/output/sum.h"

int durations_add(struct durations *d, uint64_t ns)
{
	if (d->n == d->cap) {
		size_t cap = d->cap ? d->cap * 2 : 16;
		uint64_t *more = realloc(d->ns, cap * sizeof(*more));

		if (!more)
			return -ENOMEM;
		d->ns = more;
		d->cap = cap;
	}
	d->ns[d->n++] = ns;
	return 0;
}

void durations_free(struct durations *d)
{
	free(d->ns);
	*d = (struct durations){0};
}

static int compare_ns(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

void durations_sort(struct durations *d)
{
	if (d->n > 1)
		qsort(d->ns, d->n, sizeof(*d->ns), compare_ns);
}

uint64_t durations_total(const struct durations *d)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < d->n; i++)
		sum_add(&sum, d->ns[i]);
	return sum;
}

static const struct {
	const char *name;
	unsigned percent;
} stat_rows[STAT_COUNT] = {
	[STAT_MIN] = {"min", 0},
	[STAT_P50] = {"p50", 50},
	[STAT_P90] = {"p90", 90},
	[STAT_P99] = {"p99", 99},
	[STAT_MAX] = {"max", 100},
};

const char *duration_stat_name(int stat)
{
	return stat_rows[stat].name;
}

struct duration_stats duration_stats(const struct durations *d)
{
	struct duration_stats s = {.n = d->n};

	for (int i = 0; i < STAT_COUNT && d->n; i++) {
		unsigned p = stat_rows[i].percent;
		uint64_t rank = d->n / 100 * p + (d->n % 100 * p + 99) / 100;

		s.has[i] = p == 0 || p == 100 || d->n >= 100 / (100 - p);
		if (s.has[i])
			s.ns[i] = d->ns[rank ? rank - 1 : 0];
	}
	return s;
}

void durations_json(struct json_out *j, const struct durations *d)
{
	struct duration_stats s = duration_stats(d);

	jout_key_unsigned(j, "n", s.n);
	for (int i = 0; i < STAT_COUNT; i++) {
		char key[16];

		if (!s.has[i])
			continue;
		snprintf(key, sizeof(key), "%s_ns", duration_stat_name(i));
		jout_key_unsigned(j, key, s.ns[i]);
	}
}
