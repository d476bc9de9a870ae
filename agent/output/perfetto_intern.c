/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfetto_intern.c - texts that have numbers.
 */
#include "agent/output/perfetto_intern.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static int intern_grow(struct pft_intern *t)
{
	struct pft_intern more = {.bits = t->bits ? t->bits + 1 : 6};
	size_t mask = ((size_t)1 << more.bits) - 1;

	more.entries = calloc(mask + 1, sizeof(*more.entries));
	more.texts = more.entries ? reallocarray(t->texts, mask / 2 + 2, sizeof(*t->texts)) : NULL;
	if (!more.texts) {
		free(more.entries);
		return -ENOMEM;
	}
	t->texts = more.texts;
	for (size_t i = 0; t->bits && i < (size_t)1 << t->bits; i++) {
		size_t to = t->entries[i].hash & mask;

		if (!t->entries[i].iid)
			continue;
		while (more.entries[to].iid)
			to = (to + 1) & mask;
		more.entries[to] = t->entries[i];
	}
	more.count = t->count;
	free(t->entries);
	*t = more;
	return 0;
}

struct pft_text *pft_intern_find(const struct pft_intern *t, struct pb_str text, uint64_t *ret_hash)
{
	uint64_t hash = XXH3_64bits(text.s, text.len);
	size_t mask = ((size_t)1 << t->bits) - 1;

	*ret_hash = hash;
	for (size_t i = hash & mask; t->bits && t->entries[i].iid; i = (i + 1) & mask) {
		struct pft_text *e = &t->entries[i];

		if (e->hash == hash && e->len == text.len && !memcmp(e->text, text.s, text.len))
			return e;
	}
	return NULL;
}

struct pft_text *pft_intern_add(struct pft_intern *t, uint64_t hash, struct pb_str text)
{
	char *copy = malloc(text.len + 1u);
	size_t mask, i;

	if (!copy ||
		((t->bits == 0 || t->count * 2 > (size_t)1 << t->bits) && intern_grow(t) < 0)) {
		free(copy);
		return NULL;
	}
	memcpy(copy, text.s, text.len);
	mask = ((size_t)1 << t->bits) - 1;
	for (i = hash & mask; t->entries[i].iid; i = (i + 1) & mask)
		;
	t->entries[i] =
		(struct pft_text){.hash = hash, .text = copy, .len = text.len, .iid = ++t->count};
	t->texts[t->count - 1] = (struct pb_str){copy, text.len};
	return &t->entries[i];
}

struct pb_str pft_intern_text(const struct pft_intern *t, uint32_t iid)
{
	return iid && iid <= t->count ? t->texts[iid - 1] : (struct pb_str){"?", 1};
}

void pft_intern_free(struct pft_intern *t)
{
	for (size_t i = 0; t->bits && i < (size_t)1 << t->bits; i++)
		free(t->entries[i].text);
	free(t->entries);
	free(t->texts);
	*t = (struct pft_intern){0};
}
