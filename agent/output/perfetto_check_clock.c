/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfetto_check_clock.c - the checker's rules about clocks.
 *
 * Clocks 1 to 63 and from 128 on belong to the trace and may be explained later than they are used; 64
 * to 127 belong to their sequence and, when they count from packet to packet, only mean something
 * behind their snapshot.
 */
#include <errno.h>
#include <stdlib.h>

#include "agent/output/perfetto_check.h"

#define BOOTTIME 6u
#define OWN_FIRST 64u
#define OWN_LAST 127u
#define CLOCKS_MAX 64u /* of one snapshot */

struct reading {
	uint64_t id, value, unit, at;
	bool incremental;
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

/* What is known of a clock, made if need be; NULL: no memory, or a sequence's clock without one. */
static struct pfv_clock *clock_of(struct pfv_check *c, uint64_t id)
{
	uint64_t *place;
	struct pfv_clock *more;

	if (is_own(id)) {
		if (c->seq && !c->seq->own &&
			!(c->seq->own = calloc(PFV_OWN_CLOCKS, sizeof(*c->seq->own))))
			c->error = -ENOMEM;
		return c->seq && c->seq->own ? &c->seq->own[id - OWN_FIRST] : NULL;
	}
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
	c->clocks[c->clock_count] = (struct pfv_clock){0};
	return &c->clocks[c->clock_count++];
}

static void read_clock(struct pfv_check *c, struct pfv_bytes bytes, struct reading *r)
{
	struct pfv_walk w;
	struct pfv_field f;

	*r = (struct reading){.unit = 1, .at = bytes.at};
	pfv_walk(&w, c, PFV_CLOCK_MSG, bytes);
	while (pfv_next(&w, &f)) {
		if (f.number == 1)
			r->id = f.value;
		else if (f.number == 2)
			r->value = f.value;
		else if (f.number == 3)
			r->incremental = f.value != 0;
		else
			r->unit = f.value ? f.value : 1;
	}
}

/* Boot time of a snapshot: read, or through another clock that is known; false: neither. */
static bool snapshot_boot(
	struct pfv_check *c, const struct reading *r, unsigned n, uint64_t *ret_boot)
{
	for (unsigned i = 0; i < n; i++)
		if (r[i].id == BOOTTIME) {
			*ret_boot = r[i].value * r[i].unit;
			return true;
		}
	for (unsigned i = 0; i < n; i++) {
		const struct pfv_clock *k = clock_of(c, r[i].id);

		if (!k || !k->known)
			continue;
		*ret_boot = k->boot + (r[i].value * r[i].unit - k->value);
		return true;
	}
	return false;
}

void pfv_snapshot(struct pfv_check *c, struct pfv_bytes bytes)
{
	struct reading r[CLOCKS_MAX];
	struct pfv_walk w;
	struct pfv_field f;
	uint64_t boot;
	unsigned n = 0;

	pfv_walk(&w, c, PFV_SNAPSHOT_MSG, bytes);
	while (pfv_next(&w, &f)) {
		if (f.number != 1 || n == CLOCKS_MAX)
			continue;
		read_clock(c, f.bytes, &r[n]);
		for (unsigned i = 0; i < n; i++)
			if (r[i].id == r[n].id)
				pfv_say(c, PFV_SNAPSHOT, f.bytes.at, "clock %llu twice",
					(unsigned long long)r[n].id);
		if (is_own(r[n].id) && !c->seq)
			pfv_say(c, PFV_NO_SEQUENCE, f.bytes.at, "a snapshot of clock %llu",
				(unsigned long long)r[n].id);
		n++;
	}
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
				true, r[i].incremental, r[i].unit, r[i].value * r[i].unit, boot};
	}
}

bool pfv_time(struct pfv_check *c, uint64_t id, uint64_t timestamp, uint64_t *ret_boot)
{
	struct pfv_clock *k;

	if (id == BOOTTIME) {
		*ret_boot = timestamp;
		return true;
	}
	k = clock_of(c, id);
	if (!k || !k->known) {
		if (is_own(id))
			pfv_say(c, PFV_CLOCK, c->at, "clock %llu has no snapshot in its sequence",
				(unsigned long long)id);
		else if (!map64_find(&c->late_clocks, key_of(id)))
			c->error = c->error ? c->error
					    : map64_put(&c->late_clocks, key_of(id), c->at + 1);
		return false;
	}
	if (!k->incremental) {
		*ret_boot = k->boot + (timestamp * k->unit - k->value);
		return true;
	}
	k->value += timestamp * k->unit;
	k->boot += timestamp * k->unit;
	*ret_boot = k->boot;
	return true;
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
