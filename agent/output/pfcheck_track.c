/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pfcheck_track.c - the checker's rules about tracks: how they are described, and what is under what.
 */
#include <errno.h>
#include <stdlib.h>
#include <xxhash.h>

#include "agent/output/pfcheck.h"

struct pfv_track *pfv_track_find(struct pfv_check *c, uint64_t uuid)
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

/* What a descriptor says. */
struct described {
	uint64_t sum; /* of all fields, in whatever order */
	uint64_t pid, tid;
	unsigned kinds; /* process, thread, counter */
	bool has_pid, has_tid;
};

static void sum_field(struct described *d, enum pfv_message message, const struct pfv_field *f)
{
	uint64_t seed = (uint64_t)message << 32 | f->number;

	d->sum += f->bytes.data ? XXH3_64bits_withSeed(f->bytes.data, f->bytes.len, seed)
				: XXH3_64bits_withSeed(&f->value, sizeof(f->value), seed);
}

/* The message that says of which kind a track is. */
static void read_kind(
	struct pfv_check *c, enum pfv_message message, struct pfv_bytes bytes, struct described *d)
{
	struct pfv_walk w;
	struct pfv_field f;

	d->kinds++;
	d->sum += message;
	pfv_walk(&w, c, message, bytes);
	while (pfv_next(&w, &f)) {
		sum_field(d, message, &f);
		if (f.number == 1) {
			d->pid = f.value;
			d->has_pid = true;
		} else if (f.number == 2) {
			d->tid = f.value;
			d->has_tid = true;
		}
	}
}

static const struct {
	uint32_t field;
	enum pfv_message message;
} kinds[] = {{3, PFV_PROCESS}, {4, PFV_THREAD}, {8, PFV_COUNTER_MSG}};

static void read_descriptor(
	struct pfv_check *c, struct pfv_bytes bytes, struct pfv_track *t, struct described *d)
{
	struct pfv_walk w;
	struct pfv_field f;

	pfv_walk(&w, c, PFV_TRACK, bytes);
	while (pfv_next(&w, &f)) {
		if (f.number == 1)
			t->uuid = f.value;
		else if (f.number == 5)
			t->parent = f.value;
		else if (f.number == 2 || f.number == 10)
			sum_field(d, PFV_TRACK, &f);
		t->is_counter |= f.number == 8;
		for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
			if (kinds[i].field == f.number) {
				read_kind(c, kinds[i].message, f.bytes, d);
				t->kind = d->kinds == 1 ? kinds[i].message : PFV_TRACK;
			}
	}
	t->sum = d->sum;
}

/* A process or thread that another track stands for is there twice. */
static void check_owner(struct pfv_check *c, const struct pfv_track *t, const struct described *d)
{
	bool is_process = t->kind == PFV_PROCESS;
	uint64_t key = is_process ? 1ull << 63 | (uint32_t)d->pid
				  : ((d->pid & INT32_MAX) + 1) << 32 | (uint32_t)d->tid;
	const uint64_t *place;

	if (!is_process && t->kind != PFV_THREAD)
		return;
	if (!d->has_pid || (!is_process && !d->has_tid)) {
		pfv_say(c, PFV_TRACK_KIND, t->at, "track %llu: a %s without %s",
			(unsigned long long)t->uuid, is_process ? "process" : "thread",
			d->has_pid ? "tid" : "pid");
		return;
	}
	place = map64_find(&c->owner_by_task, key);
	if (!place)
		c->error = c->error ? c->error : map64_put(&c->owner_by_task, key, c->track_count);
	else if (c->tracks[*place].uuid != t->uuid)
		pfv_say(c, PFV_TRACK_TWICE, t->at, "tracks %llu and %llu",
			(unsigned long long)c->tracks[*place].uuid, (unsigned long long)t->uuid);
}

void pfv_descriptor(struct pfv_check *c, struct pfv_bytes bytes)
{
	struct pfv_track t = {.at = bytes.at, .kind = PFV_TRACK}, *old;
	struct described d = {0};

	read_descriptor(c, bytes, &t, &d);
	if (t.uuid == 0) {
		pfv_say(c, PFV_TRACK_KIND, bytes.at, "a descriptor without uuid");
		return;
	}
	if (d.kinds > 1)
		pfv_say(c, PFV_TRACK_KIND, bytes.at, "track %llu is of %u kinds",
			(unsigned long long)t.uuid, d.kinds);
	old = pfv_track_find(c, t.uuid);
	if (!old) {
		check_owner(c, &t, &d);
		c->error = c->error ? c->error : track_add(c, &t);
	} else if (old->parent != t.parent || old->sum != t.sum) {
		pfv_say(c, PFV_TRACK_CHANGED, bytes.at, "track %llu was another at byte %llu",
			(unsigned long long)t.uuid, (unsigned long long)old->at);
	}
}

/* Follows parents from a track that was not looked at yet. */
static void check_parents(struct pfv_check *c, struct pfv_track *t)
{
	struct pfv_track *at = t;

	while (at && at->seen == 0) {
		at->seen = 1;
		if (at->parent && !pfv_track_find(c, at->parent))
			pfv_say(c, PFV_TRACK_PARENT, at->at,
				"parent %llu of track %llu is not described",
				(unsigned long long)at->parent, (unsigned long long)at->uuid);
		at = at->parent ? pfv_track_find(c, at->parent) : NULL;
	}
	if (at && at->seen == 1)
		pfv_say(c, PFV_TRACK_PARENT, at->at, "track %llu is its own ancestor",
			(unsigned long long)at->uuid);
	for (at = t; at && at->seen == 1; at = at->parent ? pfv_track_find(c, at->parent) : NULL)
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
