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

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "bpf/neuron_event.h"
#include "runtime/trace/record.h"

#define CHUNK 64u
#define SLOTS 256u
#define MAX_COLUMNS 20u
#define MAX_RECORD (sizeof(struct nev_ioctl) + NEV_MAX_ARGS * sizeof(uint64_t))
#define NO_BASE 0xff

enum reference {
	BEFORE, /* the record before */
	SAME,	/* the last with this key */
	SAME_CPU,
	FORETOLD, /* what followed the previous record's key last time */
	REFERENCES,
};

struct column {
	uint8_t offset, width;
	uint8_t reference;
	uint8_t step; /* expected difference */
	uint8_t base[2];
};

struct layout {
	size_t head;	    /* bytes before the first record, stored as they are */
	size_t record;	    /* bytes of the fixed part */
	uint8_t key_count;  /* the first columns make the key and are FORETOLD or BEFORE */
	uint8_t count;	    /* of columns, without the arguments */
	bool has_arguments; /* a further column: the values behind the fixed part */
	struct column column[MAX_COLUMNS];
};

#define AT(type, field) offsetof(struct type, field)
#define PLAIN                    \
	{                        \
		NO_BASE, NO_BASE \
	}

static const struct layout runtime_layout = {
	.head = sizeof(struct rec_runtime),
	.record = sizeof(struct trace_record),
	.key_count = 2,
	.count = 14,
	.column =
		{
			{AT(trace_record, trace_type), 8, FORETOLD, 0, PLAIN}, /* and status */
			{AT(trace_record, phase), 8, FORETOLD, 0, PLAIN},      /* and nc_idx */
			{AT(trace_record, thread_id), 8, BEFORE, 0, PLAIN},
			{AT(trace_record, id), 8, BEFORE, 1, PLAIN},
			{AT(trace_record, nc_local_id), 8, SAME, 0, PLAIN},
			{AT(trace_record, tracking_id), 8, SAME, 0,
				{AT(trace_record, id), NO_BASE}},
			{AT(trace_record, timestamp_ns), 8, BEFORE, 0, PLAIN},
			{AT(trace_record, data), 8, SAME, 0, PLAIN},
			{AT(trace_record, data) + 8, 8, SAME, 0, PLAIN},
			{AT(trace_record, data) + 16, 8, SAME, 0, PLAIN},
			{AT(trace_record, data) + 24, 8, SAME, 0, PLAIN},
			{AT(trace_record, data) + 32, 8, SAME, 0, PLAIN},
			{AT(trace_record, nrta_seq_id), 8, SAME, 0, PLAIN},
			{AT(trace_record, has_nrta_seq_id), 8, SAME, 0, PLAIN}, /* and padding */
		},
};

static const struct layout kernel_layout = {
	.record = sizeof(struct nev_ioctl),
	.key_count = 3,
	.count = 13,
	.has_arguments = true,
	.column =
		{
			{AT(nev_ioctl, request), 4, FORETOLD, 0, PLAIN},
			{AT(nev_ioctl, hdr.cpu), 2, BEFORE, 0, PLAIN},
			{AT(nev_ioctl, hdr.nargs), 1, FORETOLD, 0, PLAIN},
			{AT(nev_ioctl, hdr.type), 1, BEFORE, 0, PLAIN},
			{AT(nev_ioctl, hdr.seq), 4, SAME_CPU, 1, PLAIN},
			{AT(nev_ioctl, start_ns), 8, BEFORE, 0, PLAIN},
			{AT(nev_ioctl, duration_ns), 8, SAME, 0, PLAIN},
			{AT(nev_ioctl, hdr.time_ns), 8, BEFORE, 0,
				{AT(nev_ioctl, start_ns), AT(nev_ioctl, duration_ns)}},
			{AT(nev_ioctl, tgid), 4, BEFORE, 0, PLAIN},
			{AT(nev_ioctl, tid), 4, BEFORE, 0, PLAIN},
			{AT(nev_ioctl, result), 4, SAME, 0, PLAIN},
			{AT(nev_ioctl, device), 4, SAME, 0, PLAIN}, /* and flags */
			{AT(nev_ioctl, fd), 4, BEFORE, 0, PLAIN},
		},
};

/* What the coded payload begins with; then the sizes of the columns that are there (4 bytes each,
 * the half bytes not counted), the layout's head, and the columns. */
struct coded_head {
	uint32_t size; /* of the payload */
	uint32_t records;
	uint32_t columns; /* bit i: column i has something other than zeros */
};

static const struct layout *layout_of(enum rec_type type)
{
	return type == REC_RUNTIME ? &runtime_layout : type == REC_KERNEL ? &kernel_layout : NULL;
}

static inline unsigned column_count(const struct layout *l)
{
	return l->count + l->has_arguments;
}

/* ---- fields ------------------------------------------------------------------------------- */

static inline uint64_t get(const uint8_t *p, unsigned width)
{
	uint64_t v = 0;

	switch (width) {
	case 1:
		return *p;
	case 2:
		memcpy(&v, p, 2);
		return v;
	case 4:
		memcpy(&v, p, 4);
		return v;
	default:
		memcpy(&v, p, 8);
		return v;
	}
}

static inline void set(uint8_t *p, unsigned width, uint64_t v)
{
	switch (width) {
	case 1:
		*p = (uint8_t)v;
		break;
	case 2:
		memcpy(p, &v, 2);
		break;
	case 4:
		memcpy(p, &v, 4);
		break;
	default:
		memcpy(p, &v, 8);
	}
}

static inline uint64_t zigzag(uint64_t v, unsigned width)
{
	unsigned shift = 64 - 8 * width;
	int64_t s = (int64_t)(v << shift) >> shift;

	return ((uint64_t)s << 1) ^ (uint64_t)(s >> 63);
}

static inline uint64_t unzigzag(uint64_t v)
{
	return (v >> 1) ^ (0 - (v & 1));
}

static inline unsigned argument_count(const uint8_t *record)
{
	return record[AT(nev_ioctl, hdr.nargs)];
}

static inline uint64_t base_of(const struct column *c, const uint8_t *record)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < 2; i++)
		if (c->base[i] != NO_BASE)
			v += get(record + c->base[i], 8);
	return v;
}

/* ---- references --------------------------------------------------------------------------- */

static const uint8_t zeros[MAX_RECORD + 8];

_Static_assert(sizeof(zeros) >= sizeof(struct trace_record), "a record of zeros");

struct context {
	const struct layout *l;
	const uint8_t *last[SLOTS];   /* by key */
	const uint8_t *cpu[SLOTS];    /* by CPU */
	const uint8_t *follow[SLOTS]; /* by the key of the record before */
	unsigned key;		      /* of the record before */
	/* Of this chunk.  record[0] is the last of the chunk before. */
	const uint8_t *record[CHUNK + 1];
	const uint8_t *same[CHUNK], *same_cpu[CHUNK];
};

static void context_init(struct context *x, const struct layout *l)
{
	x->l = l;
	x->key = 0;
	for (unsigned i = 0; i < SLOTS; i++)
		x->last[i] = x->cpu[i] = x->follow[i] = zeros;
	x->record[0] = zeros;
}

static inline unsigned key_of(bool runtime, const uint8_t *record)
{
	if (runtime)
		return (record[AT(trace_record, trace_type)] << 2 |
			       (record[AT(trace_record, phase)] & 3)) &
		       (SLOTS - 1);
	return (uint32_t)get(record + AT(nev_ioctl, request), 4) * 2654435761u >> 24;
}

/* Notes the record at place i of the chunk, whose key fields are known. */
static inline void note(struct context *x, bool runtime, unsigned i, const uint8_t *record)
{
	unsigned key = key_of(runtime, record);

	x->record[i + 1] = record;
	x->same[i] = x->last[key];
	x->last[key] = record;
	x->follow[x->key] = record;
	x->key = key;
	if (!runtime) {
		const uint8_t **slot = &x->cpu[get(record + AT(nev_ioctl, hdr.cpu), 2) % SLOTS];
		x->same_cpu[i] = *slot;
		*slot = record;
	}
}

static inline const uint8_t *key_reference(
	const struct context *x, const struct column *c, unsigned i)
{
	return c->reference == FORETOLD ? x->follow[x->key] : x->record[i];
}

static inline const uint8_t *const *references(const struct context *x, const struct column *c)
{
	return c->reference == BEFORE ? x->record : c->reference == SAME ? x->same : x->same_cpu;
}

/* ---- coding ------------------------------------------------------------------------------- */

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

static inline size_t record_size(const struct layout *l, const uint8_t *record)
{
	return l->record + (l->has_arguments ? argument_count(record) * sizeof(uint64_t) : 0);
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

/* ---- decoding ----------------------------------------------------------------------------- */

static const uint64_t masks[16] = {0, 0xff, 0xffff, 0xffffff, 0xffffffff, 0xffffffffff,
	0xffffffffffff, 0xffffffffffffff, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX,
	UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};

/* A column being read. */
struct source {
	const uint8_t *lengths, *bytes, *end; /* NULL: zeros */
	size_t values;
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

		if (s->bytes > s->end)
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

		sources[k] = (struct source){NULL, NULL, NULL, 0};
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
