/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pfcheck_state.c - the checker's rules about interned numbers, which each sequence has of its own.
 */
#include <errno.h>
#include <stdlib.h>
#include <xxhash.h>

#include "agent/output/pfcheck.h"

/* ---- sequences --------------------------------------------------------------------------------- */

struct pfv_sequence *pfv_sequence(struct pfv_check *c, uint32_t id)
{
	const uint64_t *place = map64_find(&c->sequence_by_id, id);
	struct pfv_sequence *more = c->sequences;
	uint64_t n = c->result->sequences;

	if (place)
		return &c->sequences[*place];
	if ((n & (n - 1)) == 0)
		more = realloc(more, (n ? 2 * n : 1) * sizeof(*more));
	if (more)
		c->sequences = more;
	if (!more || map64_put(&c->sequence_by_id, id, n) < 0) {
		c->error = -ENOMEM;
		return NULL;
	}
	c->sequences[n] = (struct pfv_sequence){.id = id};
	c->result->sequences++;
	return &c->sequences[n];
}

void pfv_sequences_free(struct pfv_check *c)
{
	for (uint64_t i = 0; i < c->result->sequences; i++) {
		for (unsigned t = 0; t < PFV_TABLES; t++)
			map64_free(&c->sequences[i].tables[t]);
		free(c->sequences[i].own);
	}
	free(c->sequences);
	map64_free(&c->sequence_by_id);
}

/* ---- interning --------------------------------------------------------------------------------- */

#define HASH_MASK UINT32_MAX

static const struct {
	uint32_t field;
	enum pfv_message message;
	const char *name;
} tables[PFV_TABLES] = {
	[PFV_CATEGORIES] = {1, PFV_ENTRY, "category"},
	[PFV_NAMES] = {2, PFV_ENTRY, "event name"},
	[PFV_KEYS] = {3, PFV_ENTRY, "annotation name"},
	[PFV_VALUES] = {29, PFV_STRING, "string value"},
};

static void define(struct pfv_check *c, unsigned table, struct pfv_bytes bytes)
{
	struct pfv_walk w;
	struct pfv_field f;
	uint64_t iid = 0, hash = 0, *old;
	bool has_text = false;

	pfv_walk(&w, c, tables[table].message, bytes);
	while (pfv_next(&w, &f)) {
		if (f.number == 1) {
			iid = f.value;
			continue;
		}
		hash = XXH3_64bits(f.bytes.data, f.bytes.len) & HASH_MASK;
		has_text = true;
	}
	if (!has_text && !w.damaged && !w.refused)
		pfv_say(c, PFV_IID_EMPTY, bytes.at, "%s %llu", tables[table].name,
			(unsigned long long)iid);
	if (iid == 0) {
		pfv_say(c, PFV_IID_ZERO, bytes.at, "%s", tables[table].name);
		return;
	}
	old = map64_find(&c->seq->tables[table], iid);
	if (old && (*old & HASH_MASK) != hash)
		pfv_say(c, PFV_IID_REDEFINED, bytes.at, "%s %llu of sequence %u",
			tables[table].name, (unsigned long long)iid, c->seq->id);
	if (map64_put(&c->seq->tables[table], iid, (uint64_t)c->seq->generation << 32 | hash) < 0)
		c->error = -ENOMEM;
}

void pfv_interned(struct pfv_check *c, struct pfv_bytes bytes)
{
	struct pfv_walk w;
	struct pfv_field f;

	pfv_walk(&w, c, PFV_INTERNED, bytes);
	while (pfv_next(&w, &f))
		for (unsigned t = 0; t < PFV_TABLES; t++)
			if (tables[t].field == f.number)
				define(c, t, f.bytes);
}

void pfv_use(struct pfv_check *c, unsigned table, uint64_t iid, uint64_t at)
{
	const uint64_t *found;

	c->uses_state = true;
	if (iid == 0) {
		pfv_say(c, PFV_IID_ZERO, at, "%s", tables[table].name);
		return;
	}
	found = c->seq ? map64_find(&c->seq->tables[table], iid) : NULL;
	if (!found)
		pfv_say(c, PFV_IID_UNDEFINED, at, "%s %llu", tables[table].name,
			(unsigned long long)iid);
	else if (*found >> 32 != c->seq->generation)
		pfv_say(c, PFV_IID_CLEARED, at, "%s %llu of sequence %u", tables[table].name,
			(unsigned long long)iid, c->seq->id);
}
