/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event_codec.h - ntff.ntrace_event by hand, because this is the hot path of every writer.
 *
 * The encoder appends varint-delimited records to a growing buffer; fields stand in number order,
 * zero values are left out as proto3 does.  It is tested against protobuf-c and protoc.
 * The parser fills a view whose strings point into the input; it never reads past the given length,
 * and keeps unknown fields as a span to be written back.
 */
#ifndef NTRACE_PROTO_EVENT_CODEC_H
#define NTRACE_PROTO_EVENT_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NTRACE_EVENT_MAX_ATTRS 48

enum ntrace_event_phase { PHASE_INVALID = 0, PHASE_START = 1, PHASE_STOP = 2, PHASE_INSTANT = 3 };

struct pb_str {
	const char *s;
	uint32_t len;
};

struct pb_attr {
	struct pb_str key, value;
};

/* Field numbers in comments; all 16 are confirmed or by elimination, see proto/neuron_trace.proto.
 */
struct ntrace_event_view {
	uint64_t timestamp;   /* 1, epoch ns */
	uint64_t data;	      /* 2 */
	uint32_t nd_idx;      /* 3 */
	uint32_t nc_idx;      /* 4 */
	uint32_t event_type;  /* 5 */
	struct pb_str hint;   /* 6 */
	uint64_t duration;    /* 7, ns */
	uint32_t thread_id;   /* 8 */
	uint64_t id;	      /* 9 */
	uint64_t parent_id;   /* 10 */
	uint32_t status;      /* 11 */
	uint32_t phase;	      /* 13, enum ntrace_event_phase */
	uint64_t tracking_id; /* 14 */
	uint32_t type;	      /* 15 */
	bool has_nrta_seq_id; /* 16 */
	uint64_t nrta_seq_id;
	uint32_t attr_count; /* 12 */
	struct pb_attr attrs[NTRACE_EVENT_MAX_ATTRS];
	struct pb_str unknown; /* first run of unknown fields, raw, as it stood in the input */
	uint32_t unknown_runs; /* how many runs there were; > 1: only the first is kept in `unknown`
				*/
};

/* A growing byte buffer; zero-initialise, free with pb_buf_free. */
struct pb_buf {
	uint8_t *data;
	size_t len, cap;
};
void pb_buf_free(struct pb_buf *b);
/* Makes room for n more bytes; 0 or -ENOMEM. */
int pb_buf_reserve(struct pb_buf *b, size_t n);
int pb_buf_append(struct pb_buf *b, const void *data, size_t n);

/* Adds an attribute; false when the view is full. */
bool ntrace_event_attr(struct ntrace_event_view *e, struct pb_str key, struct pb_str value);

/* Appends length prefix and message: known fields, then `unknown` as it stands.  0, -ENOMEM, or
 * -EMSGSIZE when it could exceed protobuf's 2 GiB. */
int ntrace_event_append(struct pb_buf *b, const struct ntrace_event_view *e);

/*
 * Parses one message of len bytes (no prefix).  0; -EBADMSG with *ret_at = offset of the field at
 * fault. A known field with a wire type that is not its own is a fault.  Strings of the view are
 * never NULL. Attributes keep their order, equal keys included; those beyond NTRACE_EVENT_MAX_ATTRS
 * count as unknown fields.  A record that must be kept to the byte is copied from the input, not
 * encoded anew.
 */
int ntrace_event_parse(const uint8_t *buf, size_t len, struct ntrace_event_view *e, size_t *ret_at);

#endif
