/* SPDX-License-Identifier: Apache-2.0 */
/*
 * footer.c - the newest of each counter and the index of blocks, gathered, written and read back.
 */
#include "runtime/record/footer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static int compare(const struct rec_footer_counter *a, const struct rec_footer_counter *b)
{
	if (a->source != b->source)
		return a->source < b->source ? -1 : 1;
	if (a->id != b->id)
		return a->id < b->id ? -1 : 1;
	return a->sub < b->sub ? -1 : a->sub > b->sub;
}

/* Room for `want` elements more in *(T **)array. */
static int grow(void *array, size_t *cap, size_t count, size_t want, size_t element)
{
	void **a = array;

	if (count + want <= *cap)
		return 0;
	size_t more = *cap ? 2 * *cap : 64;
	while (more < count + want)
		more *= 2;
	void *p = realloc(*a, more * element);
	if (!p)
		return -ENOMEM;
	*a = p;
	*cap = more;
	return 0;
}

/* Finds a row, or the key under which a new one is to be kept. */
static struct rec_footer_counter *find(
	struct footer *f, const struct rec_footer_counter *c, uint64_t *ret_key)
{
	uint64_t key = XXH3_64bits(c, offsetof(struct rec_footer_counter, zero)) | 1, *place;

	/* Another row with the same hash: try on. */
	while ((place = map64_find(&f->index, key)) && compare(&f->counters[*place], c) != 0)
		key += 2;
	*ret_key = key;
	return place ? &f->counters[*place] : NULL;
}

static int note_counter(struct footer *f, const struct rec_footer_counter *c)
{
	uint64_t key;
	struct rec_footer_counter *known = find(f, c, &key);
	int rc;

	if (known) {
		known->value = c->value;
		return 0;
	}
	rc = grow(&f->counters, &f->counter_cap, f->head.counters, 1, sizeof(*f->counters));
	if (rc == 0)
		rc = map64_put(&f->index, key, f->head.counters);
	if (rc == 0)
		f->counters[f->head.counters++] = *c;
	return rc;
}

static int compare_rows(const void *a, const void *b)
{
	return compare(a, b);
}

void footer_sort(struct footer *f)
{
	if (f->head.counters)
		qsort(f->counters, f->head.counters, sizeof(*f->counters), compare_rows);
	map64_free(&f->index);
}

uint32_t footer_written(const struct footer *f)
{
	return f->head.counters < FOOTER_MAX_COUNTERS ? f->head.counters : FOOTER_MAX_COUNTERS;
}

int footer_counters(struct footer *f, uint16_t source, const uint8_t *rows, size_t size)
{
	for (; size >= sizeof(struct rec_counter); size -= sizeof(struct rec_counter)) {
		struct rec_counter c;

		memcpy(&c, rows, sizeof(c));
		rows += sizeof(c);
		struct rec_footer_counter row = {
			.source = source, .id = c.id, .sub = c.sub, .value = c.value};
		int rc = note_counter(f, &row);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static void join(struct rec_index *to, const struct rec_index *next)
{
	to->blocks += next->blocks;
	to->last_ns = next->last_ns;
	to->types |= next->types;
	to->frames += next->frames;
}

int footer_block(struct footer *f, const struct rec_index *entry, uint64_t payload_bytes)
{
	struct rec_index *last = f->head.entries ? &f->entries[f->head.entries - 1] : NULL;

	f->head.blocks++;
	f->head.frames += entry->frames;
	f->head.payload_bytes += payload_bytes;
	if (f->per_entry == 0)
		f->per_entry = 1;
	if (last && last->blocks < f->per_entry) {
		join(last, entry);
		return 0;
	}
	if (f->head.entries == FOOTER_MAX_ENTRIES) {
		for (uint32_t i = 0; i < FOOTER_MAX_ENTRIES / 2; i++) {
			f->entries[i] = f->entries[2 * i];
			join(&f->entries[i], &f->entries[2 * i + 1]);
		}
		f->head.entries /= 2;
		f->per_entry *= 2;
	}
	int rc = grow(&f->entries, &f->entry_cap, f->head.entries, 1, sizeof(*f->entries));
	if (rc < 0)
		return rc;
	f->entries[f->head.entries++] = *entry;
	return 0;
}

int footer_reserve(struct footer *f, size_t counters, size_t entries)
{
	size_t left = FOOTER_MAX_ENTRIES - f->head.entries;
	int rc = grow(
		&f->counters, &f->counter_cap, f->head.counters, counters, sizeof(*f->counters));

	if (rc == 0) /* beyond that neighbours are joined */
		rc = grow(&f->entries, &f->entry_cap, f->head.entries,
			entries < left ? entries : left, sizeof(*f->entries));
	if (rc == 0)
		rc = map64_reserve(&f->index, counters);
	return rc;
}

uint8_t *footer_build(struct footer *f, size_t *ret_size)
{
	struct rec_footer head = f->head;
	size_t counters = footer_written(f) * sizeof(*f->counters);
	size_t entries = f->head.entries * sizeof(*f->entries);
	uint8_t *p = malloc(sizeof(f->head) + counters + entries);

	if (!p)
		return NULL;
	footer_sort(f);
	head.counters = footer_written(f);
	memcpy(p, &head, sizeof(head));
	if (counters)
		memcpy(p + sizeof(f->head), f->counters, counters);
	if (entries)
		memcpy(p + sizeof(f->head) + counters, f->entries, entries);
	*ret_size = sizeof(f->head) + counters + entries;
	return p;
}

void footer_free(struct footer *f)
{
	free(f->counters);
	free(f->entries);
	map64_free(&f->index);
}

int rec_footer_parse(const uint8_t *payload, size_t size, struct rec_footer *ret,
	const struct rec_footer_counter **ret_counters, const struct rec_index **ret_entries)
{
	size_t left;

	if (size < sizeof(*ret))
		return -EBADMSG;
	memcpy(ret, payload, sizeof(*ret));
	left = size - sizeof(*ret);
	if (ret->counters > left / sizeof(**ret_counters))
		return -EBADMSG;
	left -= ret->counters * sizeof(**ret_counters);
	if (ret->entries > left / sizeof(**ret_entries))
		return -EBADMSG;
	/* Payloads are aligned, and so are both arrays behind the head. */
	*ret_counters = (const void *)(payload + sizeof(*ret));
	*ret_entries = (const void *)(*ret_counters + ret->counters);
	return 0;
}
