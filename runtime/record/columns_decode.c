/* SPDX-License-Identifier: Apache-2.0 */
/*
 * columns_decode.c - columns of differences back to records; columns.c says how they are made.
 *
 * The bytes may be anything.  Sizes are checked once per frame and the ends of columns once per
 * chunk, which REC_COLUMNS_SLACK allows; what is written always lies in the payload.
 */
#include <errno.h>

#include "runtime/record/columns.h"
#include "runtime/record/columns_layout.h"

static const uint64_t masks[16] = {0, 0xff, 0xffff, 0xffffff, 0xffffffff, 0xffffffffff,
	0xffffffffffff, 0xffffffffffffff, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX,
	UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};

/* A column being read. */
struct source {
	const uint8_t *lengths, *bytes, *end; /* NULL: zeros */
	size_t values, count;		      /* read so far, in all */
};

/* The next difference.  May read up to 8 bytes behind `bytes`, which runs at most 15 ahead per
 * value: callers look at it once per chunk. */
static inline uint64_t source_next(struct source *s)
{
	size_t at = s->values++;
	unsigned n = s->lengths[at / 2] >> (at & 1) * 4 & 15;
	uint64_t v;

	memcpy(&v, s->bytes, 8);
	s->bytes += n;
	return unzigzag(v & masks[n]);
}

/* The next n (of a chunk that begins at an even place). */
static inline void source_chunk(struct source *s, uint64_t *values, unsigned n)
{
	const uint8_t *lengths = s->lengths + s->values / 2, *bytes = s->bytes;

	for (unsigned i = 0; i < n; i += 2) {
		unsigned two = *lengths++, a = two & 15, b = i + 1 < n ? two >> 4 : 0;
		uint64_t v;

		memcpy(&v, bytes, 8);
		bytes += a;
		values[i] = unzigzag(v & masks[a]);
		memcpy(&v, bytes, 8);
		bytes += b;
		values[i + 1] = unzigzag(v & masks[b]);
	}
	s->bytes = bytes;
	s->values += n;
}

static inline __attribute__((always_inline)) void decode_before(const struct context *x,
	const struct column *c, unsigned width, const uint64_t *values, unsigned n)
{
	uint64_t v = get(x->record[0] + c->offset, width);

	for (unsigned i = 0; i < n; i++) {
		v += values[i] + c->step;
		set((uint8_t *)(uintptr_t)x->record[i + 1] + c->offset, width, v);
	}
}

static inline __attribute__((always_inline)) void decode_other(const struct context *x,
	const struct column *c, unsigned width, const uint64_t *values, unsigned n)
{
	const uint8_t *const *reference = references(x, c);

	for (unsigned i = 0; i < n; i++) {
		uint8_t *record = (uint8_t *)(uintptr_t)x->record[i + 1];
		uint64_t v = get(reference[i] + c->offset, width) + values[i] + c->step;

		if (c->base[0] != NO_BASE)
			v += base_of(c, record) - base_of(c, reference[i]);
		set(record + c->offset, width, v);
	}
}

static void decode_column(
	const struct context *x, const struct column *c, const uint64_t *values, unsigned n)
{
	bool before = c->reference == BEFORE && c->base[0] == NO_BASE;

	if (c->width == 8 && before)
		decode_before(x, c, 8, values, n);
	else if (c->width == 8)
		decode_other(x, c, 8, values, n);
	else if (c->width == 4 && before)
		decode_before(x, c, 4, values, n);
	else if (c->width == 4)
		decode_other(x, c, 4, values, n);
	else
		decode_other(x, c, c->width, values, n);
}

/* Decodes the arguments of a chunk.  0 or -EBADMSG. */
static int decode_arguments(const struct context *x, struct source *s, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		uint8_t *record = (uint8_t *)(uintptr_t)x->record[i + 1];
		const uint8_t *reference = x->same[i];
		unsigned count = argument_count(record), known = argument_count(reference);

		/* How many there are follows from the size of the payload; records may say more. */
		if (s->bytes > s->end || count > s->count - s->values)
			return -EBADMSG;
		for (unsigned k = 0; k < count; k++) {
			size_t at = sizeof(struct nev_ioctl) + k * sizeof(uint64_t);
			uint64_t v = k < known ? get(reference + at, 8) : 0;

			set(record + at, 8, v + (s->lengths ? source_next(s) : 0));
		}
	}
	return 0;
}

static int decode_chunk(struct context *x, struct source *sources, unsigned n)
{
	static const uint64_t none[CHUNK + 1];
	const struct layout *l = x->l;
	uint64_t values[CHUNK + 1];

	for (unsigned k = l->key_count; k < l->count; k++) {
		struct source *s = &sources[k];

		if (s->lengths)
			source_chunk(s, values, n);
		if (s->bytes > s->end)
			return -EBADMSG;
		decode_column(x, &l->column[k], s->lengths ? values : none, n);
	}
	return l->has_arguments ? decode_arguments(x, &sources[l->count], n) : 0;
}

/* Decodes the key fields of the record that begins at `record`. */
static inline __attribute__((always_inline)) void decode_key(struct context *x,
	const struct layout *l, struct source *sources, unsigned i, uint8_t *record)
{
	for (unsigned k = 0; k < l->key_count; k++) {
		const struct column *c = &l->column[k];
		uint64_t v = get(key_reference(x, c, i) + c->offset, c->width);

		if (sources[k].lengths)
			v += source_next(&sources[k]);
		set(record + c->offset, c->width, v);
	}
}

static inline __attribute__((always_inline)) int decode_records(struct context *x,
	const struct layout *l, struct source *sources, uint8_t *out, const uint8_t *end,
	size_t records)
{
	const bool runtime = !l->has_arguments;

	while (records) {
		unsigned n = records < CHUNK ? (unsigned)records : CHUNK;

		for (unsigned i = 0; i < n; i++) {
			if ((size_t)(end - out) < l->record)
				return -EBADMSG;
			decode_key(x, l, sources, i, out);
			if (!runtime && (argument_count(out) > NEV_MAX_ARGS ||
						(size_t)(end - out) < record_size(l, out)))
				return -EBADMSG;
			note(x, runtime, i, out);
			out += record_size(l, out);
		}
		for (unsigned k = 0; k < l->key_count; k++)
			if (sources[k].bytes > sources[k].end)
				return -EBADMSG;
		int rc = decode_chunk(x, sources, n);
		if (rc < 0)
			return rc;
		x->record[0] = x->record[n];
		records -= n;
	}
	return out == end ? 0 : -EBADMSG;
}

/* Finds the columns; their sizes must add up.  *coded moves to the layout's head.  0 or -EBADMSG. */
static int find_columns(const struct layout *l, const struct coded_head *head,
	const uint8_t **coded, const uint8_t *end, struct source *sources, size_t arguments)
{
	const uint8_t *sizes = *coded, *at;
	size_t count = (size_t)__builtin_popcount(head->columns);

	if (head->columns >> column_count(l) || (size_t)(end - sizes) < 4 * count + l->head)
		return -EBADMSG;
	*coded = sizes + 4 * count;
	at = *coded + l->head;
	for (unsigned k = 0; k < column_count(l); k++) {
		size_t values = k == l->count ? arguments : head->records;
		uint32_t bytes;

		sources[k] = (struct source){.count = values};
		if (!(head->columns >> k & 1))
			continue;
		memcpy(&bytes, sizes, sizeof(bytes));
		sizes += sizeof(bytes);
		if ((size_t)(end - at) < (values + 1) / 2 ||
			(size_t)(end - at) - (values + 1) / 2 < bytes)
			return -EBADMSG;
		sources[k].lengths = at;
		sources[k].bytes = at + (values + 1) / 2;
		at = sources[k].end = sources[k].bytes + bytes;
	}
	return at == end ? 0 : -EBADMSG;
}

int rec_columns_size(const uint8_t *coded, size_t size, uint32_t *ret_size)
{
	struct coded_head head;

	if (size < sizeof(head))
		return -EBADMSG;
	memcpy(&head, coded, sizeof(head));
	if (head.size > REC_MAX_PAYLOAD)
		return -EBADMSG;
	*ret_size = head.size;
	return 0;
}

int rec_columns_decode(
	enum rec_type type, const uint8_t *coded, size_t size, uint8_t *out, size_t out_size)
{
	const struct layout *l = layout_of(type);
	const uint8_t *end = coded + size;
	struct source sources[MAX_COLUMNS];
	struct coded_head head;
	struct context x;

	if (!l || size < sizeof(head))
		return -EBADMSG;
	memcpy(&head, coded, sizeof(head));
	coded += sizeof(head);
	if (head.size != out_size || out_size < l->head ||
		head.records > (out_size - l->head) / l->record)
		return -EBADMSG;
	size_t arguments = (out_size - l->head - head.records * l->record) / sizeof(uint64_t);
	int rc = find_columns(l, &head, &coded, end, sources, arguments);
	if (rc < 0)
		return rc;
	memcpy(out, coded, l->head);
	context_init(&x, l);
	out += l->head;
	const uint8_t *out_end = out + out_size - l->head;
	return type == REC_RUNTIME
		       ? decode_records(&x, &runtime_layout, sources, out, out_end, head.records)
		       : decode_records(&x, &kernel_layout, sources, out, out_end, head.records);
}
