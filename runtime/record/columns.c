/* SPDX-License-Identifier: Apache-2.0 */
/*
 * columns.c - records to columns of differences and back.
 *
 * A layout lists the fields of a record.  Each has a reference: the record before, the last record
 * of the same key (event type and phase; request), the last of the same CPU, or the record that
 * came last time after one with the previous record's key, which foretells loops.  What is stored is
 * the difference to the reference's value, all modulo the field's width, so any bytes are coded
 * without loss.  A field with a base is first taken relative to other fields of its record (an id
 * to the sequence number; the time of a record to the end of the call).
 *
 * A difference is stored as its length (0 to 8, half a byte) and that many bytes, zigzag coded.  A
 * column with nothing but zeros is left out.  Records are handled in chunks that fit the first
 * level cache, for each chunk column by column.
 *
 * All references start as a record of zeros in each frame: frames do not depend on each other.
 */
#include "runtime/record/columns.h"

#include "runtime/record/columns_layout.h"

/* A column being written: lengths and bytes. */
struct sink {
	uint8_t *lengths, *bytes;
	size_t values, used;
	bool any;
};

static inline void sink_put(struct sink *s, uint64_t v)
{
	unsigned n = v ? (71u - (unsigned)__builtin_clzll(v)) / 8 : 0;
	size_t at = s->values++;

	if (at & 1)
		s->lengths[at / 2] = (uint8_t)(s->lengths[at / 2] | n << 4);
	else
		s->lengths[at / 2] = (uint8_t)n;
	memcpy(s->bytes + s->used, &v, 8);
	s->used += n;
	s->any |= v != 0;
}

static inline __attribute__((always_inline)) void encode_field(struct sink *s,
	const struct column *c, unsigned width, const uint8_t *record, const uint8_t *reference)
{
	uint64_t v = get(record + c->offset, width) - get(reference + c->offset, width) - c->step;

	if (c->base[0] != NO_BASE)
		v -= base_of(c, record) - base_of(c, reference);
	sink_put(s, zigzag(v, width));
}

static void encode_arguments(struct sink *s, const uint8_t *record, const uint8_t *reference)
{
	unsigned n = argument_count(record), known = argument_count(reference);

	for (unsigned k = 0; k < n; k++) {
		size_t at = sizeof(struct nev_ioctl) + k * sizeof(uint64_t);
		uint64_t v = get(record + at, 8) - (k < known ? get(reference + at, 8) : 0);
		sink_put(s, zigzag(v, 8));
	}
}

static void encode_chunk(struct context *x, struct sink *sinks, unsigned n)
{
	const struct layout *l = x->l;

	for (unsigned k = l->key_count; k < l->count; k++) {
		const struct column *c = &l->column[k];
		const uint8_t *const *reference = references(x, c);

		for (unsigned i = 0; i < n; i++)
			encode_field(&sinks[k], c, c->width, x->record[i + 1], reference[i]);
	}
	if (l->has_arguments)
		for (unsigned i = 0; i < n; i++)
			encode_arguments(&sinks[l->count], x->record[i + 1], x->same[i]);
}

static inline size_t max_values(const struct layout *l, unsigned column, size_t records)
{
	return column == l->count ? records * NEV_MAX_ARGS : records;
}

size_t rec_columns_bound(size_t count)
{
	return sizeof(struct coded_head) + MAX_COLUMNS * 4 + sizeof(struct rec_runtime) +
	       (MAX_COLUMNS + NEV_MAX_ARGS) * (count * 9 + 16);
}

/* Places each column where it would stand if all were as large as they can be. */
static void sinks_init(struct sink *sinks, const struct layout *l, uint8_t *room, size_t count)
{
	for (unsigned k = 0; k < column_count(l); k++) {
		size_t values = max_values(l, k, count);

		sinks[k] = (struct sink){.lengths = room, .bytes = room + (values + 1) / 2};
		room += (values + 1) / 2 + 8 * values + 8;
	}
}

/* Writes heads and sizes and moves the columns together.  The coded size. */
static size_t gather(const struct layout *l, const struct sink *sinks, struct coded_head *h,
	const void *head, uint8_t *out)
{
	uint8_t *at = out + sizeof(*h);

	for (unsigned k = 0; k < column_count(l); k++) {
		uint32_t bytes = (uint32_t)sinks[k].used;

		if (!sinks[k].any)
			continue;
		h->columns |= 1u << k;
		memcpy(at, &bytes, sizeof(bytes));
		at += sizeof(bytes);
	}
	memcpy(out, h, sizeof(*h));
	if (l->head)
		memcpy(at, head, l->head);
	at += l->head;
	for (unsigned k = 0; k < column_count(l); k++) {
		if (!sinks[k].any)
			continue;
		memmove(at, sinks[k].lengths, (sinks[k].values + 1) / 2);
		at += (sinks[k].values + 1) / 2;
		memmove(at, sinks[k].bytes, sinks[k].used);
		at += sinks[k].used;
	}
	return (size_t)(at - out);
}

size_t rec_columns_encode(enum rec_type type, const void *head, const uint8_t *records, size_t size,
	size_t count, uint8_t *out)
{
	const struct layout *l = layout_of(type);
	struct coded_head h = {.size = (uint32_t)(l->head + size), .records = (uint32_t)count};
	struct sink sinks[MAX_COLUMNS];
	struct context x;
	const uint8_t *record = records;
	const bool runtime = type == REC_RUNTIME;

	context_init(&x, l);
	sinks_init(sinks, l, out + sizeof(h) + column_count(l) * 4 + l->head, count);
	for (size_t done = 0; done < count;) {
		unsigned n = count - done < CHUNK ? (unsigned)(count - done) : CHUNK;

		for (unsigned i = 0; i < n; i++) {
			for (unsigned k = 0; k < l->key_count; k++)
				encode_field(&sinks[k], &l->column[k], l->column[k].width, record,
					key_reference(&x, &l->column[k], i));
			note(&x, runtime, i, record);
			record += record_size(l, record);
		}
		encode_chunk(&x, sinks, n);
		x.record[0] = x.record[n];
		done += n;
	}
	return gather(l, sinks, &h, head, out);
}

size_t rec_columns_head(enum rec_type type)
{
	return type == REC_RUNTIME ? runtime_layout.head : 0;
}

size_t rec_columns_prefix(
	enum rec_type type, const uint8_t *records, size_t size, size_t max, size_t *ret_count)
{
	const struct layout *l = layout_of(type);
	size_t at = 0, count = 0;

	while (l && size - at >= l->record) {
		size_t n = record_size(l, records + at);

		if (l->has_arguments && argument_count(records + at) > NEV_MAX_ARGS)
			break;
		if (n > size - at || (count && at + n > max))
			break;
		at += n;
		count++;
	}
	*ret_count = count;
	return at;
}
