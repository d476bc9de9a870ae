/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pfcheck_clock.c - the checker's rules about clocks.
 *
 * Clocks 1 to 63 and from 128 on belong to the trace and may be explained later than they are used; 64
 * to 127 belong to their sequence and, when they count from packet to packet, only mean something
 * behind their snapshot.
 */
#include <errno.h>
#include <stdlib.h>

#include "agent/output/pfcheck.h"

#define BOOTTIME 6u
#define OWN_FIRST 64u
#define OWN_LAST 127u
#define CLOCKS_MAX 64u /* of one snapshot */

struct reading {
	uint64_t id, value, unit, at;
	uint64_t ns; /* value in its unit */
	bool has_id, has_value, incremental;
};

static bool is_own(uint64_t id)
{
	return id >= OWN_FIRST && id <= OWN_LAST;
}

/* A clock of the trace in the maps, which have no key 0; no such clock has the number of an own one. */
static uint64_t key_of(uint64_t id)
{
	return id ? id : OWN_FIRST;
}

static uint64_t id_of(uint64_t key)
{
	return key == OWN_FIRST ? 0 : key;
}

static struct pfv_clock *own_clock(struct pfv_check *c, uint64_t id)
{
	struct pfv_sequence *s = c->seq;
	struct pfv_clock *more;

	for (uint32_t i = 0; i < s->own_count; i++)
		if (s->own[i].id == id)
			return &s->own[i];
	more = realloc(s->own, (s->own_count + 1) * sizeof(*more));
	if (!more) {
		c->error = -ENOMEM;
		return NULL;
	}
	s->own = more;
	more[s->own_count] = (struct pfv_clock){.id = id};
	return &more[s->own_count++];
}

/* What is known of a clock, made if need be; NULL: no memory, or a sequence's clock without one. */
static struct pfv_clock *clock_of(struct pfv_check *c, uint64_t id)
{
	uint64_t *place;
	struct pfv_clock *more;

	if (is_own(id))
		return c->seq ? own_clock(c, id) : NULL;
	place = map64_find(&c->clock_by_id, key_of(id));
	if (place)
		return &c->clocks[*place];
	more = realloc(c->clocks, (c->clock_count + 1) * sizeof(*more));
	if (!more || map64_put(&c->clock_by_id, key_of(id), c->clock_count) < 0) {
		c->clocks = more ? more : c->clocks;
		c->error = -ENOMEM;
		return NULL;
	}
	c->clocks = more;
	c->clocks[c->clock_count] = (struct pfv_clock){.id = id};
	return &c->clocks[c->clock_count++];
}

static void read_clock(struct pfv_check *c, struct pfv_bytes bytes, struct reading *r)
{
	struct pfv_walk w;
	struct pfv_field f;

	*r = (struct reading){.unit = 1, .at = bytes.at};
	pfv_walk(&w, c, PFV_CLOCK_MSG, bytes);
	while (pfv_next(&w, &f)) {
		if (f.number == 1) {
			r->id = f.value;
			r->has_id = true;
		} else if (f.number == 2) {
			r->value = f.value;
			r->has_value = true;
		} else if (f.number == 3) {
			r->incremental = f.value != 0;
		} else {
			r->unit = f.value ? f.value : 1;
		}
	}
	if (!w.damaged && (!r->has_id || !r->has_value))
		pfv_say(c, PFV_SNAPSHOT, bytes.at, "a clock without its %s",
			r->has_id ? "time" : "number");
	if (r->incremental && !is_own(r->id))
		pfv_say(c, PFV_SNAPSHOT, bytes.at,
			"clock %llu counts from packet to packet and is no sequence's own",
			(unsigned long long)r->id);
	if (__builtin_mul_overflow(r->value, r->unit, &r->ns) || r->ns > INT64_MAX) {
		pfv_say(c, PFV_TIME_RANGE, bytes.at, "clock %llu", (unsigned long long)r->id);
		r->ns = INT64_MAX;
	}
}

/* Boot time of a snapshot: read, or through another clock that is known; false: neither. */
static bool snapshot_boot(
	struct pfv_check *c, const struct reading *r, unsigned n, uint64_t *ret_boot)
{
	for (unsigned i = 0; i < n; i++)
		if (r[i].id == BOOTTIME) {
			*ret_boot = r[i].ns;
			return true;
		}
	for (unsigned i = 0; i < n; i++) {
		const struct pfv_clock *k = clock_of(c, r[i].id);

		if (!k || !k->known)
			continue;
		*ret_boot = k->boot + (r[i].ns - k->value);
		return true;
	}
	return false;
}

/* The n-th reading of a snapshot beside those before it. */
static void check_reading(struct pfv_check *c, const struct reading *r, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (r[i].id == r[n].id)
			pfv_say(c, PFV_SNAPSHOT, r[n].at, "clock %llu twice",
				(unsigned long long)r[n].id);
	if (is_own(r[n].id) && !c->seq)
		pfv_say(c, PFV_NO_SEQUENCE, r[n].at, "a snapshot of clock %llu",
			(unsigned long long)r[n].id);
}

void pfv_snapshot(struct pfv_check *c, struct pfv_bytes bytes)
{
	struct reading r[CLOCKS_MAX];
	struct pfv_walk w;
	struct pfv_field f;
	uint64_t boot, primary = 0;
	unsigned n = 0;

	pfv_walk(&w, c, PFV_SNAPSHOT_MSG, bytes);
	while (pfv_next(&w, &f)) {
		if (f.number == 2)
			primary = f.value;
		if (f.number != 1 || n == CLOCKS_MAX)
			continue;
		read_clock(c, f.bytes, &r[n]);
		check_reading(c, r, n);
		n++;
	}
	for (unsigned i = 0; primary && i < n; i++)
		if (r[i].id == primary)
			primary = 0;
	if (primary)
		pfv_say(c, PFV_SNAPSHOT, bytes.at, "its primary clock %llu is not in it",
			(unsigned long long)primary);
	if (!snapshot_boot(c, r, n, &boot)) {
		pfv_say(c, PFV_SNAPSHOT, bytes.at, "nothing in it leads to boot time");
		return;
	}
	if (boot < c->snapshot_boot)
		pfv_say(c, PFV_SNAPSHOT, bytes.at, "boot time is %llu ns before the one before",
			(unsigned long long)(c->snapshot_boot - boot));
	c->snapshot_boot = boot;
	for (unsigned i = 0; i < n; i++) {
		struct pfv_clock *k = clock_of(c, r[i].id);

		if (k)
			*k = (struct pfv_clock){
				r[i].id, true, r[i].incremental, r[i].unit, r[i].ns, boot};
	}
}

/* Boot time of a timestamp by a clock that is known; false: it is out of range. */
static bool resolve(struct pfv_clock *k, uint64_t timestamp, uint64_t *ret_boot)
{
	__int128 ns = (__int128)timestamp * k->unit, boot;

	boot = k->incremental ? k->boot + ns : k->boot + (ns - k->value);
	if (boot < INT64_MIN || boot > INT64_MAX)
		return false;
	*ret_boot = boot < 0 ? 0 : (uint64_t)boot; /* before the machine began */
	if (k->incremental) {
		k->value += (uint64_t)ns;
		k->boot = *ret_boot;
	}
	return true;
}

bool pfv_time(struct pfv_check *c, uint64_t id, uint64_t timestamp, uint64_t *ret_boot)
{
	struct pfv_clock boottime = {.id = BOOTTIME, .known = true, .unit = 1};
	struct pfv_clock *k = id == BOOTTIME ? &boottime : clock_of(c, id);
	bool known = k && k->known;

	if (known && resolve(k, timestamp, ret_boot))
		return true;
	if (known || timestamp > INT64_MAX)
		pfv_say(c, PFV_TIME_RANGE, c->at, "timestamp %llu of clock %llu",
			(unsigned long long)timestamp, (unsigned long long)id);
	if (known)
		return false;
	if (is_own(id))
		pfv_say(c, PFV_CLOCK, c->at, "clock %llu has no snapshot in its sequence",
			(unsigned long long)id);
	else if (!map64_find(&c->late_clocks, key_of(id)))
		c->error = c->error ? c->error : map64_put(&c->late_clocks, key_of(id), c->at + 1);
	return false;
}

void pfv_clocks_end(struct pfv_check *c)
{
	c->seq = NULL;
	for (size_t i = 0; c->late_clocks.bits && i <= map64_mask(&c->late_clocks); i++) {
		const struct map64_entry *e = &c->late_clocks.entries[i];
		const struct pfv_clock *k = e->key ? clock_of(c, id_of(e->key)) : NULL;

		if (k && !k->known)
			pfv_say(c, PFV_CLOCK, e->value - 1,
				"clock %llu is in no snapshot with boot time",
				(unsigned long long)id_of(e->key));
	}
}
