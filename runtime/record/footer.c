/* SPDX-License-Identifier: Apache-2.0 */
/*
 * footer.c - see footer.h, and rec_footer_parse for readers.
 */
#include "runtime/record/footer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int compare(const struct rec_footer_counter *a, const struct rec_footer_counter *b)
{
	if (a->source != b->source)
		return a->source < b->source ? -1 : 1;
	if (a->id != b->id)
		return a->id < b->id ? -1 : 1;
	return a->sub < b->sub ? -1 : a->sub > b->sub;
}

/* Room for one element more in *(T **)array. */
static int grow(void *array, size_t *cap, size_t count, size_t element)
{
	void **a = array;

	if (count < *cap)
		return 0;
	size_t more = *cap ? 2 * *cap : 64;
	void *p = realloc(*a, more * element);
	if (!p)
		return -ENOMEM;
	*a = p;
	*cap = more;
	return 0;
}

static int note_counter(struct footer *f, const struct rec_footer_counter *c)
{
	size_t lo = 0, hi = f->head.counters;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (compare(&f->counters[mid], c) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo < f->head.counters && compare(&f->counters[lo], c) == 0) {
		f->counters[lo].value = c->value;
		return 0;
	}
	if (f->head.counters == FOOTER_MAX_COUNTERS)
		return 0;
	int rc = grow(&f->counters, &f->counter_cap, f->head.counters, sizeof(*f->counters));
	if (rc < 0)
		return rc;
	memmove(f->counters + lo + 1, f->counters + lo,
		(f->head.counters - lo) * sizeof(*f->counters));
	f->counters[lo] = *c;
	f->head.counters++;
	return 0;
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
	int rc = grow(&f->entries, &f->entry_cap, f->head.entries, sizeof(*f->entries));
	if (rc < 0)
		return rc;
	f->entries[f->head.entries++] = *entry;
	return 0;
}

uint8_t *footer_build(const struct footer *f, size_t *ret_size)
{
	size_t counters = f->head.counters * sizeof(*f->counters);
	size_t entries = f->head.entries * sizeof(*f->entries);
	uint8_t *p = malloc(sizeof(f->head) + counters + entries);

	if (!p)
		return NULL;
	memcpy(p, &f->head, sizeof(f->head));
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
