/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfetto_check_event.c - the checker's rules about tracks, slices, counters and flows.
 *
 * A track's slices are judged in the order of the file as long as one sequence writes them.  When
 * several do, that order says nothing, and only the sums are judged.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/output/perfetto_check.h"

enum { TYPE_BEGIN = 1, TYPE_END = 2, TYPE_INSTANT = 3, TYPE_COUNTER = 4 };

/* ---- tracks ------------------------------------------------------------------------------------ */

/* The track of a uuid; NULL: it was not described. */
static struct pfv_track *track_find(struct pfv_check *c, uint64_t uuid)
{
	const uint64_t *place = uuid ? map64_find(&c->track_by_uuid, uuid) : NULL;

	if (uuid == 0 && c->track_count)
		return &c->tracks[0];
	return place ? &c->tracks[*place] : NULL;
}

static int track_add(struct pfv_check *c, const struct pfv_track *t)
{
	struct pfv_track *more = c->tracks;

	if ((c->track_count & (c->track_count - 1)) == 0) /* full: its room is a power of two */
		more = realloc(
			c->tracks, (c->track_count ? 2 * c->track_count : 1) * sizeof(*c->tracks));
	if (!more)
		return -ENOMEM;
	c->tracks = more;
	if (t->uuid && map64_put(&c->track_by_uuid, t->uuid, c->track_count) < 0)
		return -ENOMEM;
	c->tracks[c->track_count++] = *t;
	return 0;
}

void pfv_tracks_begin(struct pfv_check *c)
{
	c->error = c->error ? c->error : track_add(c, &(struct pfv_track){0});
}

/* Checks the types of fields that nothing else is asked of. */
static void check_types(struct pfv_check *c, enum pfv_message message, struct pfv_bytes bytes)
{
	struct pfv_walk w;
	struct pfv_field f;

	pfv_walk(&w, c, message, bytes);
	while (pfv_next(&w, &f))
		;
}

void pfv_descriptor(struct pfv_check *c, struct pfv_bytes bytes)
{
	struct pfv_track t = {.at = bytes.at}, *old;
	struct pfv_walk w;
	struct pfv_field f;

	pfv_walk(&w, c, PFV_TRACK, bytes);
	while (pfv_next(&w, &f))
		switch (f.number) {
		case 1:
			t.uuid = f.value;
			break;
		case 3:
			t.is_process = true;
			check_types(c, PFV_PROCESS, f.bytes);
			break;
		case 4:
			t.is_thread = true;
			check_types(c, PFV_THREAD, f.bytes);
			break;
		case 5:
			t.parent = f.value;
			break;
		case 8:
			t.is_counter = true;
			check_types(c, PFV_COUNTER_MSG, f.bytes);
			break;
		default:
			break;
		}
	if (t.uuid == 0)
		return; /* the implicit track is there anyway */
	old = track_find(c, t.uuid);
	if (!old)
		c->error = c->error ? c->error : track_add(c, &t);
	else if (old->parent != t.parent || old->is_counter != t.is_counter ||
		 old->is_process != t.is_process || old->is_thread != t.is_thread)
		pfv_say(c, PFV_TRACK_CHANGED, bytes.at, "track %llu was another at byte %llu",
			(unsigned long long)t.uuid, (unsigned long long)old->at);
}

/* Follows parents from a track that was not looked at yet. */
static void check_parents(struct pfv_check *c, struct pfv_track *t)
{
	struct pfv_track *at = t;

	while (at && at->seen == 0) {
		at->seen = 1;
		if (at->parent && !track_find(c, at->parent))
			pfv_say(c, PFV_TRACK_PARENT, at->at,
				"parent %llu of track %llu is not described",
				(unsigned long long)at->parent, (unsigned long long)at->uuid);
		at = at->parent ? track_find(c, at->parent) : NULL;
	}
	if (at && at->seen == 1)
		pfv_say(c, PFV_TRACK_PARENT, at->at, "track %llu is its own ancestor",
			(unsigned long long)at->uuid);
	for (at = t; at && at->seen == 1; at = at->parent ? track_find(c, at->parent) : NULL)
		at->seen = 2;
}

static void end_slices(struct pfv_check *c, const struct pfv_track *t)
{
	uint64_t ends = t->mixed ? (t->ended > t->begun ? t->ended - t->begun : 0) : t->bad_ends;
	uint64_t closed = t->ended - ends;

	if (ends)
		pfv_say(c, PFV_UNBALANCED, t->bad_at, "%llu end%s without a begin on track %llu",
			(unsigned long long)ends, ends == 1 ? "" : "s",
			(unsigned long long)t->uuid);
	c->result->slices += t->begun;
	c->result->open += t->begun - (closed < t->begun ? closed : t->begun);
}

void pfv_tracks_end(struct pfv_check *c)
{
	for (size_t i = 0; i < c->track_count; i++) {
		check_parents(c, &c->tracks[i]);
		end_slices(c, &c->tracks[i]);
	}
	c->result->tracks = c->track_count ? c->track_count - 1 : 0;
}

/* ---- flows ------------------------------------------------------------------------------------- */

#define FLOWS 64u

/* Flows of the event at hand: those passed on, to be compared with those that it terminates. */
struct flows {
	uint64_t ids[FLOWS];
	unsigned count;
};

static void check_flow(struct pfv_check *c, struct flows *passed, const struct pfv_field *f,
	bool terminates, uint64_t time)
{
	uint64_t id = f->value ? f->value : UINT64_MAX, *end = map64_find(&c->flows, id);

	for (unsigned i = 0; terminates && i < passed->count; i++)
		if (passed->ids[i] == f->value)
			pfv_say(c, PFV_FLOW_TWICE, f->bytes.at, "flow %llu",
				(unsigned long long)f->value);
	if (!terminates && passed->count < FLOWS)
		passed->ids[passed->count++] = f->value;
	if (end && *end && (terminates || *end < time))
		pfv_say(c, PFV_FLOW_REUSED, f->bytes.at, "flow %llu was terminated",
			(unsigned long long)f->value);
	else if (!end || terminates)
		c->error = c->error ? c->error : map64_put(&c->flows, id, terminates ? time : 0);
}

/* ---- events ------------------------------------------------------------------------------------ */

struct event {
	uint64_t type, track;
	bool has_track, has_value, is_legacy;
	struct flows flows;
};

static void check_note(struct pfv_check *c, struct pfv_bytes bytes)
{
	struct pfv_walk w;
	struct pfv_field f;
	bool named = false;

	pfv_walk(&w, c, PFV_NOTE, bytes);
	while (pfv_next(&w, &f)) {
		named |= f.number == 1 || f.number == 10;
		if (f.number == 1 || f.number == 17)
			pfv_use(c, f.number == 1 ? PFV_KEYS : PFV_VALUES, f.value, f.bytes.at);
	}
	if (!named && !w.damaged)
		pfv_say(c, PFV_NO_NAME, bytes.at, "an annotation");
}

/* One field of an event. */
static void take(struct pfv_check *c, struct event *e, const struct pfv_field *f, uint64_t time)
{
	switch (f->number) {
	case 3:
		pfv_use(c, PFV_CATEGORIES, f->value, f->bytes.at);
		break;
	case 4:
		check_note(c, f->bytes);
		break;
	case 6:
		e->is_legacy = true;
		break;
	case 9:
		e->type = f->value;
		break;
	case 10:
		pfv_use(c, PFV_NAMES, f->value, f->bytes.at);
		break;
	case 11:
		e->track = f->value;
		e->has_track = true;
		break;
	case 30:
	case 44:
		e->has_value = true;
		break;
	case 36:
	case 47:
		check_flow(c, &e->flows, f, false, time);
		break;
	case 42:
	case 48:
		check_flow(c, &e->flows, f, true, time);
		break;
	default:
		break;
	}
}

static void check_slice(struct pfv_check *c, const struct event *e, struct pfv_track *t)
{
	uint32_t writer = c->seq ? c->seq->id : 0;

	t->mixed |= t->begun + t->ended && t->writer != writer;
	t->writer = writer;
	if (e->type == TYPE_BEGIN) {
		t->begun++;
		return;
	}
	t->ended++;
	if (t->ended - t->bad_ends <= t->begun)
		return;
	if (!t->bad_ends++)
		t->bad_at = c->at;
}

void pfv_event(struct pfv_check *c, struct pfv_bytes bytes, bool has_time, uint64_t time)
{
	struct event e = {0};
	struct pfv_track *t;
	struct pfv_walk w;
	struct pfv_field f;

	pfv_walk(&w, c, PFV_EVENT, bytes);
	while (pfv_next(&w, &f))
		take(c, &e, &f, has_time ? time : 0);
	c->result->events++;
	if (!e.has_track && c->seq && c->seq->track) {
		e.track = c->seq->track;
		c->uses_state = true;
	}
	if (w.damaged || e.is_legacy)
		return;
	if (e.type < TYPE_BEGIN || e.type > TYPE_COUNTER)
		pfv_say(c, PFV_NO_TYPE, bytes.at, "type %llu", (unsigned long long)e.type);
	t = track_find(c, e.track);
	if (!t) {
		pfv_say(c, PFV_TRACK_UNKNOWN, bytes.at, "track %llu", (unsigned long long)e.track);
		return;
	}
	if ((e.type == TYPE_COUNTER) != t->is_counter)
		pfv_say(c, PFV_COUNTER, bytes.at,
			"an event of type %llu on track %llu, which is %s",
			(unsigned long long)e.type, (unsigned long long)e.track,
			t->is_counter ? "a counter" : "none");
	else if (t->is_counter && !e.has_value)
		pfv_say(c, PFV_COUNTER, bytes.at, "no value for track %llu",
			(unsigned long long)e.track);
	if (e.type == TYPE_BEGIN || e.type == TYPE_END)
		check_slice(c, &e, t);
}
