/* SPDX-License-Identifier: Apache-2.0 */
/*
 * span_set.c - open addressing with linear probing; removal moves what follows back, so that there
 * are no tombstones.
 */
#include "runtime/record/span_set.h"

#include <stdlib.h>

static size_t place(const struct span_set *s, struct span_key key)
{
	uint64_t h = (key.who * 0x9e3779b97f4a7c15u) ^ key.id;

	h *= 0xd6e8feb86659fd93u;
	return (size_t)(h >> 32 ^ h) & s->mask;
}

static struct span *probe(const struct span_set *s, struct span_key key)
{
	size_t i = place(s, key);

	while (s->slots[i].used && (s->slots[i].key.who != key.who || s->slots[i].key.id != key.id))
		i = (i + 1) & s->mask;
	return &s->slots[i];
}

static bool grow(struct span_set *s)
{
	struct span_set more = {.mask = s->slots ? 2 * s->mask + 1 : 63, .count = s->count};

	more.slots = calloc(more.mask + 1, sizeof(*more.slots));
	if (!more.slots)
		return false;
	for (size_t i = 0; s->slots && i <= s->mask; i++)
		if (s->slots[i].used)
			*probe(&more, s->slots[i].key) = s->slots[i];
	free(s->slots);
	*s = more;
	return true;
}

struct span *span_set_at(struct span_set *s, struct span_key key)
{
	struct span *p;

	if ((!s->slots || s->count * 2 > s->mask) && !grow(s))
		return NULL;
	p = probe(s, key);
	if (!p->used) {
		*p = (struct span){.key = key, .used = true};
		s->count++;
	}
	return p;
}

const struct span *span_set_find(const struct span_set *s, struct span_key key)
{
	const struct span *p = s->slots ? probe(s, key) : NULL;

	return p && p->used ? p : NULL;
}

void span_set_remove(struct span_set *s, struct span *span)
{
	size_t hole = (size_t)(span - s->slots), i = hole;

	for (;;) {
		i = (i + 1) & s->mask;
		if (!s->slots[i].used)
			break;
		/* May it stand in the hole?  Only if that is not before its place. */
		size_t home = place(s, s->slots[i].key);
		if (((i - home) & s->mask) >= ((i - hole) & s->mask)) {
			s->slots[hole] = s->slots[i];
			hole = i;
		}
	}
	s->slots[hole].used = false;
	s->count--;
}

void span_set_free(struct span_set *s)
{
	free(s->slots);
	*s = (struct span_set){0};
}
