/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ntff_cursor.c - from the records of a ring to what they say, and from a core's time to the host's.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "proto/notification.h"
#include "runtime/record/ntff_lists.h"

#define ENGINES 5u
#define NO_POINT UINT32_MAX

__extension__ typedef unsigned __int128 unsigned_wide;

const char *ntff_what_name(enum ntff_what what)
{
	static const char *const names[NTFF_WHATS] = {
		[NTFF_RUN] = "run",
		[NTFF_SWITCH] = "switch",
		[NTFF_INSTRUCTION] = "instruction",
		[NTFF_TRANSFER] = "dma",
		[NTFF_COLLECTIVE] = "collective",
		[NTFF_SEMAPHORE] = "semaphore",
		[NTFF_ERROR] = "error",
		[NTFF_THROTTLE] = "throttle",
		[NTFF_OTHER] = "other",
	};

	return (unsigned)what < NTFF_WHATS ? names[what] : NULL;
}

void ntff_unit_name(Ntff__BlockType block, uint32_t engine, char unit[NTFF_UNIT_BYTES])
{
	static const char *const engines[ENGINES] = {"pe", "act", "pool", "dve", "sp"};

	if (block == NTFF__BLOCK_TYPE__BLOCK_DMA)
		snprintf(unit, NTFF_UNIT_BYTES, "dma%u", engine);
	else if (block == NTFF__BLOCK_TYPE__BLOCK_TOPSP)
		snprintf(unit, NTFF_UNIT_BYTES, "topsp");
	else if (engine < ENGINES)
		snprintf(unit, NTFF_UNIT_BYTES, "%s", engines[engine]);
	else
		snprintf(unit, NTFF_UNIT_BYTES, "engine%u", engine);
}

const char *ntff_fault_name(uint32_t fault)
{
	static const struct {
		uint32_t number;
		const char *name;
	} faults[] = {
#define FAULT(id, number, name, ...) {(number), (name)},
#include "runtime/vdev/faults.def"
#undef FAULT
	};

	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		if (faults[i].number == fault)
			return faults[i].name;
	return NULL;
}

/* ---- records ------------------------------------------------------------------------------ */

enum side { MOMENT, BEGINS, ENDS };

static enum side side_of(uint16_t subtype)
{
	if (subtype == NOTE_START || subtype == NOTE_CC_START)
		return BEGINS;
	return subtype == NOTE_END || subtype == NOTE_CC_END ? ENDS : MOMENT;
}

/* A record of the engines' and of the executor's rings. */
static enum side of_core(const struct notification *n, struct ntff_item *item)
{
	uint32_t engine = (item->type - NOTE_TYPE_INST_START(0u)) / 4;

	if (item->type < NOTE_TYPE_INST_START(0u) || engine >= ENGINES)
		return MOMENT;
	item->engine = engine;
	if (item->type == NOTE_TYPE_INST_START(engine) ||
		item->type == NOTE_TYPE_INST_END(engine)) {
		item->what = NTFF_INSTRUCTION;
		return item->type == NOTE_TYPE_INST_START(engine) ? BEGINS : ENDS;
	}
	if (item->type != NOTE_TYPE_EXPLICIT(engine))
		return MOMENT;
	if (n->subtype == NOTE_CUSTOM &&
		(item->hint == NOTE_HINT_SWITCH_BEGINS || item->hint == NOTE_HINT_SWITCH_ENDS)) {
		item->what = NTFF_SWITCH;
		return item->hint == NOTE_HINT_SWITCH_BEGINS ? BEGINS : ENDS;
	}
	if (side_of(n->subtype) != MOMENT)
		item->what = NTFF_RUN;
	return side_of(n->subtype);
}

static enum side of_top_sp(const struct notification *n, struct ntff_item *item)
{
	if (side_of(n->subtype) != MOMENT)
		item->what = NTFF_COLLECTIVE;
	return side_of(n->subtype);
}

/* What a record is, by the ring in which it was. */
static enum side classify(
	const Ntff__TraceInfo *t, const struct notification *n, struct ntff_item *item)
{
	switch (t->trace_type) {
	case NTFF__NOTIFICATION_TRACE_TYPE__NOTIFICATION_INSTRUCTION:
		return t->block_type == NTFF__BLOCK_TYPE__BLOCK_NC ? of_core(n, item)
								   : of_top_sp(n, item);
	case NTFF__NOTIFICATION_TRACE_TYPE__NOTIFICATION_EXPLICIT:
		return of_top_sp(n, item);
	case NTFF__NOTIFICATION_TRACE_TYPE__NOTIFICATION_DMA:
		if (item->type == NOTE_TYPE_DMA && side_of(n->subtype) != MOMENT)
			item->what = NTFF_TRANSFER;
		return item->what == NTFF_TRANSFER ? side_of(n->subtype) : MOMENT;
	case NTFF__NOTIFICATION_TRACE_TYPE__NOTIFICATION_ERROR:
		item->what = NTFF_ERROR;
		return MOMENT;
	case NTFF__NOTIFICATION_TRACE_TYPE__NOTIFICATION_THROTTLE:
		item->what = NTFF_THROTTLE;
		return MOMENT;
	default:
		of_core(n, item);
		item->what =
			item->engine < ENGINES && item->type == NOTE_TYPE_SEMAPHORE(item->engine)
				? NTFF_SEMAPHORE
				: NTFF_OTHER;
		return MOMENT;
	}
}

/* ---- spans -------------------------------------------------------------------------------- */

static uint64_t key_of(const struct ntff_item *item)
{
	return ((uint64_t)item->what << 32 | (uint64_t)item->engine << 16 | item->id) + 1;
}

static void forget_open(struct ntff_cursor *c)
{
	c->no_end += c->open.count;
	map64_free(&c->open);
}

static int begin(struct ntff_cursor *c, const struct ntff_item *item)
{
	if (map64_find(&c->open, key_of(item)))
		c->no_end++;
	return map64_put(&c->open, key_of(item), item->start_ps);
}

/* Is the item whole with this record? */
static bool end(struct ntff_cursor *c, struct ntff_item *item)
{
	const uint64_t *start = map64_find(&c->open, key_of(item));

	if (!start) {
		c->no_start++;
		return false;
	}
	item->start_ps = *start;
	item->span = true;
	map64_remove(&c->open, key_of(item));
	if (item->start_ps <= item->end_ps)
		return true;
	c->no_start++;
	c->no_end++;
	return false;
}

static void read_record(struct ntff_cursor *c, struct notification *n, struct ntff_item *item)
{
	uint32_t era;

	memcpy(n, c->stream->records + c->next * sizeof(*n), sizeof(*n));
	*item = (struct ntff_item){
		.what = NTFF_OTHER,
		.lost_before = n->type_phase & (NOTE_SW_OVERFLOW | NOTE_HW_OVERFLOW),
		.type = (uint8_t)NOTE_TYPE(n->type_phase),
		.hint = n->hint >> 4,
		.id = n->id,
		.custom = n->custom,
		.subtype = n->subtype,
		.engine = c->stream->info->engine_index,
		.start_ps = n->timestamp_ps,
		.end_ps = n->timestamp_ps,
		.record = c->next++,
	};
	era = ntff_era_after(c->core, c->era, c->last_ps, n->timestamp_ps);
	/* Behind a gap an end may belong to another start than the one before it. */
	if ((era != c->era && n->timestamp_ps < c->last_ps) || item->lost_before)
		forget_open(c);
	c->era = item->era = era;
	c->last_ps = n->timestamp_ps;
	c->lost_marks += item->lost_before;
}

void ntff_cursor_open(
	struct ntff_cursor *c, const struct ntff_profile *p, const struct ntff_stream *s)
{
	*c = (struct ntff_cursor){.profile = p, .stream = s, .core = &p->cores[s->core]};
}

int ntff_cursor_next(struct ntff_cursor *c, struct ntff_item *ret)
{
	while (c->next < c->stream->count) {
		struct notification n;
		enum side side;
		int rc = 0;

		read_record(c, &n, ret);
		side = classify(c->stream->info, &n, ret);
		if (side == MOMENT || (side == ENDS && end(c, ret)))
			return 1;
		if (side == BEGINS)
			rc = begin(c, ret);
		if (rc < 0)
			return rc;
	}
	forget_open(c);
	return 0;
}

void ntff_cursor_close(struct ntff_cursor *c)
{
	map64_free(&c->open);
}

/* ---- times -------------------------------------------------------------------------------- */

static struct device_point point_of(const Ntff__NtffSyncPoint *s)
{
	return (struct device_point){s->device_ps / 1000, s->boot_ns, s->bound_ns};
}

/* The last point of an era at or before a time, or truly before it; the time is between the first and the last. */
static uint32_t point_before(
	const struct ntff_core *core, const struct ntff_era *e, uint64_t ps, bool ends)
{
	uint32_t low = 0, high = e->count;

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (core->points[e->first + middle]->device_ps + ends <= ps)
			low = middle;
		else
			high = middle;
	}
	return e->first + low;
}

static bool is_inside(const struct ntff_era *e, uint64_t ps, bool ends)
{
	return ends ? ps > e->low_ps && ps <= e->high_ps : ps >= e->low_ps && ps < e->high_ps;
}

/* Is it between the two points that were asked last? */
static bool is_in_part(const struct ntff_cursor *c, uint32_t era, uint64_t ps, bool ends)
{
	const Ntff__NtffSyncPoint *const *p = c->core->points + c->part_point;

	if (!c->part_known || c->part_era != era || c->part_point == NO_POINT ||
		!is_inside(&c->core->eras[era], ps, ends))
		return false;
	return p[0]->device_ps + ends <= ps && ps < p[1]->device_ps + ends;
}

/* Between two points these two say when it was, before and behind all the first and the last of those between which the
 * clock was steady. */
static void choose_part(struct ntff_cursor *c, uint32_t era, uint64_t ps, bool ends)
{
	const struct ntff_core *core = c->core;
	const struct ntff_era *e = &core->eras[era];
	bool behind = ends ? ps > e->high_ps : ps >= e->high_ps;
	uint32_t first = e->first + (behind ? e->last : 0);
	uint32_t last = e->first + (behind ? e->count : e->steady) - 1, point = NO_POINT;

	if (is_in_part(c, era, ps, ends))
		return;
	if (is_inside(e, ps, ends)) {
		point = point_before(core, e, ps, ends);
		first = point;
		last = point + 1;
	}
	c->part[0] = point_of(core->points[first]);
	c->part[1] = point_of(core->points[last]);
	c->part_era = era;
	c->part_point = point;
	c->part_known = true;
	c->part_broken = point != NO_POINT && device_clock_breaks(&c->part[0], &c->part[1]);
}

/* Where the clock stood still, or leapt: back from the later point, but not before the earlier one. */
static uint64_t host_in_break(const struct device_point p[2], uint64_t nc, uint64_t *ret_bound_ns)
{
	uint64_t hosts = p[1].host > p[0].host ? p[1].host - p[0].host : 0;
	uint64_t back = p[1].nc > nc ? p[1].nc - nc : 0;
	uint64_t most = back < hosts ? back : hosts, most_off;
	uint64_t bound = p[0].bound > p[1].bound ? p[0].bound : p[1].bound;

	/* The clock was the faster one: all of it fits in between. */
	if (p[1].nc - p[0].nc > hosts)
		most = (uint64_t)((unsigned_wide)hosts * back / (p[1].nc - p[0].nc));
	most_off = hosts - most > most ? hosts - most : most;
	*ret_bound_ns = bound > UINT64_MAX - most_off ? UINT64_MAX : bound + most_off;
	return p[1].host - most;
}

static bool host_ns(struct ntff_cursor *c, uint32_t era, uint64_t device_ps, bool ends,
	uint64_t *ret_boot_ns, uint64_t *ret_bound_ns)
{
	struct device_clock clock;
	uint64_t nc = device_ps / 1000;

	if (era >= c->core->era_count || c->core->eras[era].count == 0)
		return false;
	choose_part(c, era, device_ps, ends);
	if (c->part_broken) {
		*ret_boot_ns = host_in_break(c->part, nc, ret_bound_ns);
		return true;
	}
	clock.points[0] = c->part[0];
	clock.points[1] = c->part[1];
	clock.count = c->part[1].nc > c->part[0].nc ? 2 : 1;
	clock.drift_limit = c->core->eras[era].drift_limit;
	*ret_boot_ns = device_clock_host(&clock, nc);
	*ret_bound_ns = device_clock_bound(&clock, nc, *ret_boot_ns);
	return true;
}

bool ntff_host_ns(struct ntff_cursor *c, uint32_t era, uint64_t device_ps, uint64_t *ret_boot_ns,
	uint64_t *ret_bound_ns)
{
	return host_ns(c, era, device_ps, false, ret_boot_ns, ret_bound_ns);
}

bool ntff_host_ns_end(struct ntff_cursor *c, uint32_t era, uint64_t device_ps,
	uint64_t *ret_boot_ns, uint64_t *ret_bound_ns)
{
	return host_ns(c, era, device_ps, true, ret_boot_ns, ret_bound_ns);
}
