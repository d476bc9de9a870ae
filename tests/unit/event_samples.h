/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event_samples.h - pseudo-random ntrace_events with a fixed seed, and the same events as
 * protobuf-c structures, for the tests of the codec.
 *
 * Texts are NUL-terminated in the sample's own storage, so that both forms can point at them.
 */
#ifndef NTRACE_TESTS_EVENT_SAMPLES_H
#define NTRACE_TESTS_EVENT_SAMPLES_H

#include <stdio.h>
#include <string.h>

#include "proto/event_codec.h"
#include "proto/neuron_trace.pb-c.h"

#define SAMPLE_TEXT (256u << 10)

struct sample {
	struct ntrace_event_view view;
	Ntff__NtraceEvent pb;
	Ntff__NtraceEvent__AttributesEntry entries[NTRACE_EVENT_MAX_ATTRS];
	Ntff__NtraceEvent__AttributesEntry *entry_list[NTRACE_EVENT_MAX_ATTRS];
	char text[SAMPLE_TEXT];
	size_t used;
};

static inline uint64_t sample_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state * 0x2545f4914f6cdd1dull;
}

/* A number of 0..64 bits, each length equally likely: borders of varints are met often. */
static inline uint64_t sample_number(uint64_t *state)
{
	uint64_t bits = sample_random(state) % 65;

	return bits ? sample_random(state) >> (64 - bits) : 0;
}

/* A text of printable ASCII that begins with `prefix`. */
static inline struct pb_str sample_text(
	struct sample *s, uint64_t *state, const char *prefix, size_t len)
{
	size_t head = strlen(prefix);
	char *at = s->text + s->used;

	if (len < head)
		len = head;
	if (len + 1 > sizeof(s->text) - s->used)
		len = head;
	memcpy(at, prefix, head);
	for (size_t i = head; i < len; i++)
		at[i] = (char)(' ' + sample_random(state) % 95);
	at[len] = '\0';
	s->used += len + 1;
	return (struct pb_str){at, (uint32_t)len};
}

/* Mostly short, sometimes around the borders of one and two bytes of length. */
static inline size_t sample_length(uint64_t *state)
{
	uint64_t kind = sample_random(state) % 64;

	if (kind == 0)
		return 16380 + sample_random(state) % 8;
	if (kind < 8)
		return 120 + sample_random(state) % 16;
	return sample_random(state) % 24;
}

/* The protobuf-c form of the view; attributes included. */
static inline void sample_to_pb(struct sample *s)
{
	const struct ntrace_event_view *e = &s->view;

	ntff__ntrace_event__init(&s->pb);
	s->pb.timestamp = e->timestamp;
	s->pb.data = e->data;
	s->pb.nd_idx = e->nd_idx;
	s->pb.nc_idx = e->nc_idx;
	s->pb.event_type = e->event_type;
	s->pb.hint = e->hint.len ? (char *)e->hint.s : (char *)protobuf_c_empty_string;
	s->pb.duration = e->duration;
	s->pb.thread_id = e->thread_id;
	s->pb.id = e->id;
	s->pb.parent_id = e->parent_id;
	s->pb.status = e->status;
	s->pb.phase = (Ntff__NtraceEventPhaseType)e->phase;
	s->pb.tracking_id = e->tracking_id;
	s->pb.type = e->type;
	if (e->has_nrta_seq_id) {
		s->pb.nrta_seq_id_presence_case =
			NTFF__NTRACE_EVENT__NRTA_SEQ_ID_PRESENCE_NRTA_SEQ_ID;
		s->pb.nrta_seq_id = e->nrta_seq_id;
	}
	s->pb.n_attributes = e->attr_count;
	s->pb.attributes = s->entry_list;
	for (uint32_t i = 0; i < e->attr_count; i++) {
		ntff__ntrace_event__attributes_entry__init(&s->entries[i]);
		s->entries[i].key = (char *)e->attrs[i].key.s;
		s->entries[i].value = (char *)e->attrs[i].value.s;
		s->entry_list[i] = &s->entries[i];
	}
}

/* Keys are unique and sorted, keys and values not empty: then there is one way to write the event.
 */
static inline void sample_make(struct sample *s, uint64_t *state)
{
	struct ntrace_event_view *e = &s->view;
	uint32_t attrs = (uint32_t)(sample_random(state) % 8);

	if (sample_random(state) % 16 == 0)
		attrs = NTRACE_EVENT_MAX_ATTRS;
	*e = (struct ntrace_event_view){0};
	s->used = 0;
	e->timestamp = sample_number(state);
	e->data = sample_number(state);
	e->nd_idx = (uint32_t)sample_number(state);
	e->nc_idx = (uint32_t)sample_number(state);
	e->event_type = (uint32_t)sample_number(state);
	e->hint = sample_text(s, state, "", sample_random(state) % 2 ? sample_length(state) : 0);
	e->duration = sample_number(state);
	e->thread_id = (uint32_t)sample_number(state);
	e->id = sample_number(state);
	e->parent_id = sample_number(state);
	e->status = (uint32_t)sample_number(state);
	e->phase = (uint32_t)(sample_random(state) % 4);
	e->tracking_id = sample_number(state);
	e->type = (uint32_t)sample_number(state);
	e->has_nrta_seq_id = sample_random(state) % 2;
	e->nrta_seq_id = e->has_nrta_seq_id ? sample_number(state) : 0;
	for (uint32_t i = 0; i < attrs; i++) {
		char prefix[16];

		snprintf(prefix, sizeof(prefix), "k%02u", i);
		ntrace_event_attr(e, sample_text(s, state, prefix, sample_length(state)),
			sample_text(s, state, "v", sample_length(state)));
	}
	sample_to_pb(s);
}

static inline bool sample_same_text(struct pb_str a, struct pb_str b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.s, b.s, a.len) == 0);
}

static inline bool sample_same_scalars(
	const struct ntrace_event_view *a, const struct ntrace_event_view *b)
{
	return a->timestamp == b->timestamp && a->data == b->data && a->nd_idx == b->nd_idx &&
	       a->nc_idx == b->nc_idx && a->event_type == b->event_type &&
	       a->duration == b->duration && a->thread_id == b->thread_id && a->id == b->id &&
	       a->parent_id == b->parent_id && a->status == b->status && a->phase == b->phase &&
	       a->tracking_id == b->tracking_id && a->type == b->type &&
	       a->has_nrta_seq_id == b->has_nrta_seq_id && a->nrta_seq_id == b->nrta_seq_id;
}

/* Equal in everything known; attributes in the same order. */
static inline bool sample_same_view(
	const struct ntrace_event_view *a, const struct ntrace_event_view *b)
{
	bool same = sample_same_scalars(a, b) && sample_same_text(a->hint, b->hint) &&
		    a->attr_count == b->attr_count;

	for (uint32_t i = 0; same && i < a->attr_count; i++)
		same = sample_same_text(a->attrs[i].key, b->attrs[i].key) &&
		       sample_same_text(a->attrs[i].value, b->attrs[i].value);
	return same;
}

#endif
