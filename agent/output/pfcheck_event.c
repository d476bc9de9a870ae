/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pfcheck_event.c - the checker's rules about slices, instants, counters and annotations.
 *
 * A track's slices are judged in the order of the file as long as one sequence writes them.  When
 * several do, that order says nothing, and only the sums are judged.
 */
#include "agent/output/pfcheck.h"

#define DOUBLE_INFINITY 0x7ff0000000000000 /* beyond are those that are no number */

enum { TYPE_BEGIN = 1, TYPE_END = 2, TYPE_INSTANT = 3, TYPE_COUNTER = 4 };

struct event {
	uint64_t type, track;
	bool has_track, has_name, is_legacy, is_nan;
	unsigned values;
};

static void check_note(struct pfv_check *c, struct pfv_bytes bytes)
{
	struct pfv_walk w;
	struct pfv_field f;
	unsigned values = 0;
	bool named = false;

	pfv_walk(&w, c, PFV_NOTE, bytes);
	while (pfv_next(&w, &f)) {
		named |= f.number == 1 || f.number == 10;
		values += f.number != 1 && f.number != 10;
		if (f.number == 1 || f.number == 17)
			pfv_use(c, f.number == 1 ? PFV_KEYS : PFV_VALUES, f.value, f.bytes.at);
	}
	if (!named && !w.damaged && !w.refused)
		pfv_say(c, PFV_NO_NAME, bytes.at, "an annotation");
	if (values > 1)
		pfv_say(c, PFV_NOTE_VALUES, bytes.at, "an annotation of %u values", values);
}

/* One field of an event. */
static void take(struct pfv_check *c, struct event *e, const struct pfv_field *f)
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
		e->has_name = true;
		break;
	case 23:
		e->has_name = true;
		break;
	case 11:
		e->track = f->value;
		e->has_track = true;
		break;
	case 44:
		e->is_nan = (f->value & INT64_MAX) > DOUBLE_INFINITY;
		e->values++;
		break;
	case 30:
		e->values++;
		break;
	case 36:
	case 47:
		pfv_flow(c, f->value, false, f->bytes.at);
		break;
	case 42:
	case 48:
		pfv_flow(c, f->value, true, f->bytes.at);
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

static void check_counter(
	struct pfv_check *c, const struct event *e, const struct pfv_track *t, uint64_t at)
{
	if ((e->type == TYPE_COUNTER) != t->is_counter)
		pfv_say(c, PFV_COUNTER, at, "an event of type %llu on track %llu, which is %s",
			(unsigned long long)e->type, (unsigned long long)e->track,
			t->is_counter ? "a counter" : "none");
	else if (t->is_counter && (e->values != 1 || e->is_nan))
		pfv_say(c, PFV_COUNTER, at, "%s for track %llu",
			e->values == 0	? "no value"
			: e->values > 1 ? "more than one value"
					: "a value that is no number",
			(unsigned long long)e->track);
}

void pfv_event(struct pfv_check *c, struct pfv_bytes bytes, bool has_time, uint64_t time)
{
	struct event e = {0};
	struct pfv_track *t;
	struct pfv_walk w;
	struct pfv_field f;

	pfv_walk(&w, c, PFV_EVENT, bytes);
	while (pfv_next(&w, &f))
		take(c, &e, &f);
	pfv_flows_named(c, has_time, time);
	c->result->events++;
	if (!e.has_track && c->seq && c->seq->track) {
		e.track = c->seq->track;
		c->uses_state = true;
	}
	if (w.damaged || e.is_legacy)
		return;
	if (e.type < TYPE_BEGIN || e.type > TYPE_COUNTER)
		pfv_say(c, PFV_NO_TYPE, bytes.at, "type %llu", (unsigned long long)e.type);
	if ((e.type == TYPE_BEGIN || e.type == TYPE_INSTANT) && !e.has_name && !w.refused)
		pfv_say(c, PFV_NO_NAME, bytes.at, "%s",
			e.type == TYPE_BEGIN ? "a slice" : "an instant");
	t = pfv_track_find(c, e.track);
	if (!t) {
		pfv_say(c, PFV_TRACK_UNKNOWN, bytes.at, "track %llu", (unsigned long long)e.track);
		return;
	}
	check_counter(c, &e, t, bytes.at);
	if (e.type == TYPE_BEGIN || e.type == TYPE_END)
		check_slice(c, &e, t);
}
