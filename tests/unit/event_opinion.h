/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event_opinion.h - what must hold for every answer of ntrace_event_parse, whatever the input: it
 * stays in bounds, and protobuf-c reads the same numbers.
 */
#ifndef NTRACE_TESTS_EVENT_OPINION_H
#define NTRACE_TESTS_EVENT_OPINION_H

#include <errno.h>

#include "proto/event_codec.h"
#include "proto/neuron_trace.pb-c.h"

static inline bool opinion_inside_(struct pb_str s, const uint8_t *buf, size_t len)
{
	const uint8_t *p = (const uint8_t *)s.s;

	return p &&
	       (s.len == 0 || (p >= buf && p <= buf + len && s.len <= (size_t)(buf + len - p)));
}

/* Everything that a result may say about an input of len bytes. */
static inline bool opinion_in_bounds(
	int err, const struct ntrace_event_view *e, size_t at, const uint8_t *buf, size_t len)
{
	bool ok = opinion_inside_(e->hint, buf, len) && opinion_inside_(e->unknown, buf, len) &&
		  e->attr_count <= NTRACE_EVENT_MAX_ATTRS;

	for (uint32_t i = 0; ok && i < e->attr_count; i++)
		ok = opinion_inside_(e->attrs[i].key, buf, len) &&
		     opinion_inside_(e->attrs[i].value, buf, len);
	return ok && (err == 0 || (err == -EBADMSG && at < len));
}

/* Does protobuf-c read the same numbers? */
static inline bool opinion_protobuf_c(
	const uint8_t *buf, size_t len, const struct ntrace_event_view *e)
{
	Ntff__NtraceEvent *pb = ntff__ntrace_event__unpack(NULL, len, buf);
	bool same;

	if (!pb)
		return false;
	same = pb->timestamp == e->timestamp && pb->data == e->data && pb->nd_idx == e->nd_idx &&
	       pb->nc_idx == e->nc_idx && pb->event_type == e->event_type &&
	       pb->duration == e->duration && pb->thread_id == e->thread_id && pb->id == e->id &&
	       pb->parent_id == e->parent_id && pb->status == e->status &&
	       (uint32_t)pb->phase == e->phase && pb->tracking_id == e->tracking_id &&
	       pb->type == e->type && pb->n_attributes >= e->attr_count &&
	       (pb->nrta_seq_id_presence_case == 16) == e->has_nrta_seq_id &&
	       (!e->has_nrta_seq_id || pb->nrta_seq_id == e->nrta_seq_id) &&
	       (e->unknown_runs > 0) ==
		       (pb->base.n_unknown_fields > 0 || pb->n_attributes > e->attr_count);
	ntff__ntrace_event__free_unpacked(pb, NULL);
	return same;
}

#endif
