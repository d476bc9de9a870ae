/* SPDX-License-Identifier: Apache-2.0 */
/*
 * map64.h - a small hash table from non-zero 64-bit keys to 64-bit values.
 *
 * Open addressing with linear probing, at most half full, deletion by moving back: no tombstones, so
 * it stays fast however long it lives.  Its order is never looked at, so nothing that is written can
 * depend on it.
 *
 * Keys may be chosen by whoever is traced, so where they stand must not be foreseen: the hash folds a
 * product of 128 bits, which has no simple inverse, and takes a seed.
 */
#ifndef NTRACE_RECORD_MAP64_H
#define NTRACE_RECORD_MAP64_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

struct map64_entry {
	uint64_t key; /* 0: free */
	uint64_t value;
};

/* Zero-initialise; map64_free at the end. */
struct map64 {
	struct map64_entry *entries;
	size_t count;
	unsigned bits; /* log2 of the places; 0: none yet */
	uint64_t seed; /* set while the map is empty; 0 is fine for keys that nobody chooses */
};

#define MAP64_FIRST_BITS 6u

static inline size_t map64_place(const struct map64 *m, uint64_t key)
{
	__uint128_t product = (__uint128_t)(key ^ m->seed) * 0x9e3779b97f4a7c15ull;

	return (size_t)(((uint64_t)product ^ (uint64_t)(product >> 64)) >> (64 - m->bits));
}

static inline size_t map64_mask(const struct map64 *m)
{
	return ((size_t)1 << m->bits) - 1;
}

static inline void map64_free(struct map64 *m)
{
	free(m->entries);
	*m = (struct map64){0};
}

/* The value's place, NULL when the key is not there; valid until the next put or remove.  Key 0 is
 * never there: it marks what is free. */
static inline uint64_t *map64_find(const struct map64 *m, uint64_t key)
{
	if (m->count == 0 || key == 0)
		return NULL;
	for (size_t i = map64_place(m, key);; i = (i + 1) & map64_mask(m)) {
		if (m->entries[i].key == key)
			return &m->entries[i].value;
		if (m->entries[i].key == 0)
			return NULL;
	}
}

static inline int map64_grow(struct map64 *m)
{
	struct map64 more = {.bits = m->bits ? m->bits + 1 : MAP64_FIRST_BITS, .seed = m->seed};

	more.entries = calloc(map64_mask(&more) + 1, sizeof(*more.entries));
	if (!more.entries)
		return -ENOMEM;
	for (size_t i = 0; m->bits && i <= map64_mask(m); i++) {
		size_t to;

		if (!m->entries[i].key)
			continue;
		for (to = map64_place(&more, m->entries[i].key); more.entries[to].key;
			to = (to + 1) & map64_mask(&more))
			;
		more.entries[to] = m->entries[i];
	}
	more.count = m->count;
	free(m->entries);
	*m = more;
	return 0;
}

/* Memory for so many keys more.  0 or -ENOMEM. */
static inline int map64_reserve(struct map64 *m, size_t more)
{
	int rc = 0;

	while (rc == 0 && (m->bits == 0 || (m->count + more) * 2 > map64_mask(m)))
		rc = map64_grow(m);
	return rc;
}

/* Sets the value of a key, which may be there already.  0, -ENOMEM, or -EINVAL for key 0. */
static inline int map64_put(struct map64 *m, uint64_t key, uint64_t value)
{
	size_t i;

	if (key == 0)
		return -EINVAL;
	if (m->bits == 0 || m->count * 2 > map64_mask(m)) {
		int rc = map64_grow(m);
		if (rc < 0)
			return rc;
	}
	for (i = map64_place(m, key); m->entries[i].key && m->entries[i].key != key;
		i = (i + 1) & map64_mask(m))
		;
	m->count += m->entries[i].key == 0;
	m->entries[i] = (struct map64_entry){key, value};
	return 0;
}

/* Removes a key; false when it was not there. */
static inline bool map64_remove(struct map64 *m, uint64_t key)
{
	uint64_t *found = map64_find(m, key);
	size_t hole, i;

	if (!found)
		return false;
	hole = (size_t)((struct map64_entry *)((char *)found -
					       offsetof(struct map64_entry, value)) -
			m->entries);
	for (i = (hole + 1) & map64_mask(m); m->entries[i].key; i = (i + 1) & map64_mask(m)) {
		size_t home = map64_place(m, m->entries[i].key);

		/* May the entry at i stand in the hole: is its home not between the two? */
		if (((i - home) & map64_mask(m)) >= ((i - hole) & map64_mask(m))) {
			m->entries[hole] = m->entries[i];
			hole = i;
		}
	}
	m->entries[hole].key = 0;
	m->count--;
	return true;
}

#endif
