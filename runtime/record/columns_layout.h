/* SPDX-License-Identifier: Apache-2.0 */
/*
 * columns_layout.h - what coding (columns.c) and decoding (columns_decode.c) share: the fields of
 * records, and the records that predictions come from.  The tables are here so that the loops over
 * them are specialised for each.
 */
#ifndef NTRACE_RECORD_COLUMNS_LAYOUT_H
#define NTRACE_RECORD_COLUMNS_LAYOUT_H

#include <stdbool.h>
#include <string.h>

#include "bpf/neuron_event.h"
#include "runtime/record/columns.h"
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

static inline const struct layout *layout_of(enum rec_type type)
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
	uint64_t s = (uint64_t)((int64_t)(v << shift) >> shift);

	return (s << 1) ^ (0 - (s >> 63));
}

static inline uint64_t unzigzag(uint64_t v)
{
	return (v >> 1) ^ (0 - (v & 1));
}

static inline unsigned argument_count(const uint8_t *record)
{
	return record[AT(nev_ioctl, hdr.nargs)];
}

static inline size_t record_size(const struct layout *l, const uint8_t *record)
{
	return l->record + (l->has_arguments ? argument_count(record) * sizeof(uint64_t) : 0);
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

static inline void context_init(struct context *x, const struct layout *l)
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

#endif
