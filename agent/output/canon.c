/* SPDX-License-Identifier: Apache-2.0 */
/*
 * canon.c - numbers threads, ids and lanes anew and takes times from the first event.
 *
 * Lanes are 64-bit numbers that do not depend on which lane of the trace came first: a thread is its
 * number in order of appearance, a core's side is its indices with bit 63 set.  Inside the maps a lane
 * is its place in lane_keys, so that lane and number fit one value.
 */
#include "agent/output/canon.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "agent/output/event_kind.h"
#include "runtime/trace/event_registry.h"

#define LANE_CORE ((uint64_t)1 << 63)
#define LANE_MARKS UINT64_MAX
#define LANE_ALL (UINT64_MAX - 1) /* in ids: one numbering for the whole trace */
#define PLACE_BITS 40
#define MAX_LANES (1u << 24)

void canon_init(struct canon *c, bool structure)
{
	*c = (struct canon){.structure = structure};
}

void canon_free(struct canon *c)
{
	map64_free(&c->clocks);
	map64_free(&c->threads);
	map64_free(&c->lanes);
	map64_free(&c->next);
	free(c->lane_keys);
	for (size_t i = 0; i < CANON_KINDS; i++) {
		map64_free(&c->ids[i].numbers);
		free(c->ids[i].recent);
	}
	*c = (struct canon){0};
}

/* A key for the maps from three numbers. */
static uint64_t hash3(uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t v[3] = {a, b, c};
	uint64_t h = XXH3_64bits(v, sizeof(v));

	return h ? h : 1;
}

/* ---- what an attribute's value is ---------------------------------------------------------- */

enum meaning { PLAIN, OBJECT, REAL_TIME, CLOCK_OF_CORE, CLOCK };

struct attr_row {
	const char *key;
	uint8_t meaning;
	uint8_t kind; /* OBJECT: enum canon_kind; a clock: which */
};

static const struct attr_row attr_rows[] = {
	{"address", OBJECT, CANON_ADDRESS},
	{"cpu_timestamp_ns", REAL_TIME, 0},
	{"device_ps", CLOCK_OF_CORE, 2},
	{"dst_handle", OBJECT, CANON_HANDLE},
	{"handle", OBJECT, CANON_HANDLE},
	{"link.id", OBJECT, CANON_SPAN},
	{"mem_handle", OBJECT, CANON_HANDLE},
	{"model_id", OBJECT, CANON_MODEL},
	{"nc_timestamp_ns", CLOCK_OF_CORE, 0},
	{"new_offset_ns", CLOCK, 1},
	{"old_offset_ns", CLOCK, 1},
	{"physical_address", OBJECT, CANON_ADDRESS},
	{"pid", OBJECT, CANON_PID},
	{"tensor_id", OBJECT, CANON_TENSOR},
	{"wait_handle", OBJECT, CANON_HANDLE},
};

static int compare_text(struct pb_str a, struct pb_str b)
{
	uint32_t len = a.len < b.len ? a.len : b.len;
	int order = len ? memcmp(a.s, b.s, len) : 0;

	return order ? order : (a.len > b.len) - (a.len < b.len);
}

static struct pb_str str(const char *s)
{
	return (struct pb_str){s, (uint32_t)strlen(s)};
}

static const struct attr_row *attr_find(struct pb_str key)
{
	size_t low = 0, high = sizeof(attr_rows) / sizeof(*attr_rows);

	while (low < high) {
		size_t mid = (low + high) / 2;
		int order = compare_text(key, str(attr_rows[mid].key));

		if (order == 0)
			return &attr_rows[mid];
		if (order < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return NULL;
}

#define KEY(literal) ((struct pb_str){literal, sizeof(literal) - 1})

/* Times, and the number of driver calls, as those that read clocks are among them. */
static bool is_chance(struct pb_str key)
{
	return (key.len > 3 && (!memcmp(key.s + key.len - 3, "_ns", 3) ||
				       !memcmp(key.s + key.len - 3, "_ps", 3))) ||
	       compare_text(key, KEY("driver.ioctls")) == 0;
}

/* A decimal number, perhaps negative, or 0x...; false for any other text. */
static bool number(struct pb_str text, uint64_t *ret)
{
	bool minus = text.len > 1 && text.s[0] == '-';
	bool ok = event_number((struct pb_str){text.s + minus, text.len - minus}, ret);

	*ret = minus ? -*ret : *ret;
	return ok;
}

/* ---- lanes and ids ------------------------------------------------------------------------- */

/* A thread's number in order of appearance, from 1 on; 0 for thread 0. */
static int thread_number(struct canon *c, uint32_t thread_id, uint64_t *ret)
{
	const uint64_t *found;

	*ret = 0;
	if (thread_id == 0)
		return 0;
	found = map64_find(&c->threads, thread_id);
	*ret = found ? *found : c->threads.count + 1;
	return found ? 0 : map64_put(&c->threads, thread_id, *ret);
}

bool canon_is_hardware(const struct ntrace_event_view *e)
{
	enum event_kind kind = event_kind(e);

	return kind == EVENT_DEVICE || kind == EVENT_UNIT;
}

int canon_name_threads(struct canon *c, const struct map64 *numbers)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && numbers->bits && i <= map64_mask(numbers); i++)
		if (numbers->entries[i].key)
			rc = map64_put(
				&c->threads, numbers->entries[i].key, numbers->entries[i].value);
	return rc;
}

static uint64_t lane_of(const struct ntrace_event_view *e, uint64_t thread)
{
	if (thread)
		return thread;
	if (event_kind(e) >= EVENT_DRIVER)
		return LANE_MARKS;
	return LANE_CORE | (uint64_t)e->nd_idx << 32 | e->nc_idx;
}

static int lane_place(struct canon *c, uint64_t lane, uint64_t *ret)
{
	const uint64_t *found = map64_find(&c->lanes, lane);

	if (found) {
		*ret = *found;
		return 0;
	}
	if (c->lane_count == MAX_LANES)
		return -ENOMEM;
	if (c->lane_count == c->lane_cap) {
		size_t cap = c->lane_cap ? c->lane_cap * 2 : 64;
		uint64_t *keys = realloc(c->lane_keys, cap * sizeof(*keys));

		if (!keys)
			return -ENOMEM;
		c->lane_keys = keys;
		c->lane_cap = cap;
	}
	c->lane_keys[c->lane_count] = lane;
	*ret = c->lane_count++;
	return map64_put(&c->lanes, lane, *ret);
}

static int count_up(struct map64 *m, uint64_t key, uint64_t *ret)
{
	uint64_t *found = map64_find(m, key);

	*ret = found ? *found + 1 : 1;
	if (!found)
		return map64_put(m, key, 1);
	*found = *ret;
	return 0;
}

/* Keeps a new number, and forgets the oldest when there are too many. */
static int remember(struct canon_ids *ids, uint64_t key, uint64_t value)
{
	uint64_t *slot;

	if (ids->seen == ids->cap && ids->cap < CANON_MEMORY) {
		size_t cap = ids->cap ? 2 * ids->cap : 1024;
		uint64_t *recent = realloc(ids->recent, cap * sizeof(*recent));

		if (!recent)
			return -ENOMEM;
		ids->recent = recent;
		ids->cap = cap;
	}
	slot = &ids->recent[ids->seen % CANON_MEMORY];
	if (ids->seen >= CANON_MEMORY)
		map64_remove(&ids->numbers, *slot);
	*slot = key;
	ids->seen++;
	return map64_put(&ids->numbers, key, value);
}

static int put_id(
	struct canon *c, struct canon_field *f, enum canon_kind kind, uint64_t id, uint64_t lane)
{
	/* Without times ids are numbered in their lanes, whose interleaving is chance; and an object is
	 * then numbered anew in each, as which of them met it first is chance too. */
	uint64_t scope = kind != CANON_SPAN && c->structure ? lane : 0, place, n;
	uint64_t key = hash3(kind, scope, id);
	const uint64_t *found = map64_find(&c->ids[kind].numbers, key);
	int rc;

	if (!c->structure)
		lane = LANE_ALL;
	f->form = CANON_ID;
	if (id == 0 && kind == CANON_SPAN)
		return 0;
	if (found) {
		f->hi = c->lane_keys[*found >> PLACE_BITS];
		f->lo = *found & ((1ull << PLACE_BITS) - 1);
		return 0;
	}
	rc = lane_place(c, lane, &place);
	if (rc == 0)
		rc = count_up(&c->next, hash3(kind, lane, UINT64_MAX), &n);
	if (rc == 0)
		rc = remember(&c->ids[kind], key, place << PLACE_BITS | n);
	if (rc == 0) {
		f->hi = lane;
		f->lo = n;
	}
	return rc;
}

/* A clock's value since its first one in this trace. */
static int put_clock(struct canon *c, struct canon_field *f, uint64_t key, uint64_t value)
{
	const uint64_t *first = map64_find(&c->clocks, key);

	f->form = CANON_SIGNED;
	f->lo = first ? value - *first : 0;
	return first ? 0 : map64_put(&c->clocks, key, value);
}

/* ---- the event ----------------------------------------------------------------------------- */

static struct canon_field *add(struct canon_event *ret, struct pb_str key, uint8_t form)
{
	struct canon_field *f = &ret->fields[ret->count++];

	*f = (struct canon_field){.key = key, .form = form, .text = {"", 0}};
	return f;
}

static int add_attr(struct canon *c, const struct ntrace_event_view *e, const struct pb_attr *a,
	struct canon_event *ret)
{
	const struct attr_row *row = attr_find(a->key);
	struct canon_field *f;
	uint64_t value;

	if (c->structure && is_chance(a->key))
		return 0;
	f = add(ret, a->key, CANON_STRING);
	if (!row || !number(a->value, &value)) {
		f->text = a->value;
		return 0;
	}
	switch ((enum meaning)row->meaning) {
	case OBJECT:
		return put_id(c, f, (enum canon_kind)row->kind, value, ret->lane);
	case CLOCK_OF_CORE:
		return put_clock(c, f, hash3(row->kind, e->nd_idx, e->nc_idx), value);
	case CLOCK:
		return put_clock(c, f, hash3(row->kind, UINT64_MAX, 0), value);
	case REAL_TIME:
		f->form = CANON_SIGNED;
		f->lo = value - c->first_ns;
		return 0;
	case PLAIN:
		break;
	}
	return 0;
}

/* The attributes are a map: their order in the file means nothing. */
static void sort_attrs(const struct ntrace_event_view *e, const struct pb_attr **order)
{
	for (uint32_t i = 0; i < e->attr_count; i++) {
		uint32_t k = i;

		for (; k && compare_text(order[k - 1]->key, e->attrs[i].key) > 0; k--)
			order[k] = order[k - 1];
		order[k] = &e->attrs[i];
	}
}

static void add_times(struct canon *c, const struct ntrace_event_view *e, struct canon_event *ret)
{
	if (c->structure)
		return;
	add(ret, KEY("timestamp"), CANON_SIGNED)->lo = e->timestamp - c->first_ns;
	add(ret, KEY("duration"), CANON_NUMBER)->lo = e->duration;
}

static void add_scalars(const struct ntrace_event_view *e, uint64_t thread, struct canon_event *ret)
{
	add(ret, KEY("thread"), CANON_NUMBER)->lo = thread;
	if (e->phase <= PHASE_INSTANT)
		add(ret, KEY("phase"), CANON_STRING)->text = str(canon_phase(e->phase));
	else
		add(ret, KEY("phase"), CANON_NUMBER)->lo = e->phase;
	add(ret, KEY("event_type"), CANON_NUMBER)->lo = e->event_type;
	add(ret, KEY("hint"), CANON_STRING)->text = e->hint;
	add(ret, KEY("nd_idx"), CANON_NUMBER)->lo = e->nd_idx;
	add(ret, KEY("nc_idx"), CANON_NUMBER)->lo = e->nc_idx;
	add(ret, KEY("status"), CANON_NUMBER)->lo = e->status;
	add(ret, KEY("data"), CANON_NUMBER)->lo = e->data;
	add(ret, KEY("type"), CANON_NUMBER)->lo = e->type;
	if (e->has_nrta_seq_id)
		add(ret, KEY("nrta_seq_id"), CANON_NUMBER)->lo = e->nrta_seq_id;
}

static int add_ids(struct canon *c, const struct ntrace_event_view *e, struct canon_event *ret)
{
	const struct {
		struct pb_str key;
		uint64_t id;
	} ids[] = {{KEY("id"), e->id}, {KEY("tracking_id"), e->tracking_id},
		{KEY("parent_id"), e->parent_id}};
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < sizeof(ids) / sizeof(*ids); i++)
		rc = put_id(c, add(ret, ids[i].key, CANON_ID), CANON_SPAN, ids[i].id, ret->lane);
	return rc;
}

int canon_make(struct canon *c, const struct ntrace_event_view *e, struct canon_event *ret)
{
	const struct pb_attr *order[NTRACE_EVENT_MAX_ATTRS];
	bool of_core = c->structure && canon_is_hardware(e);
	uint64_t thread;
	int rc = thread_number(c, of_core ? 0 : e->thread_id, &thread);

	if (!c->any)
		c->first_ns = e->timestamp;
	c->any = true;
	ret->count = 0;
	ret->lane = lane_of(e, thread);
	add_times(c, e, ret);
	add_scalars(e, thread, ret);
	if (rc == 0)
		rc = add_ids(c, e, ret);
	sort_attrs(e, order);
	for (uint32_t i = 0; rc == 0 && i < e->attr_count; i++)
		rc = add_attr(c, e, order[i], ret);
	if (e->unknown_runs)
		add(ret, KEY("unknown_fields"), CANON_BYTES)->text = e->unknown;
	return rc;
}

/* A register is read for the device's clock, and again when the reading was interrupted: how often is
 * chance. */
bool canon_is_clock(const struct ntrace_event_view *e)
{
	char buf[EVENT_NAME];

	if (event_kind(e) == EVENT_DRIVER)
		return event_text_is(event_name(e, buf), "BAR_READ");
	if (event_kind(e) == EVENT_MARK)
		return event_text_is(e->hint, "clock_step");
	return e->event_type == TRACE_TIMESTAMP_SYNC;
}

uint64_t canon_digest(const struct canon_event *e)
{
	uint64_t v[CANON_FIELDS * 5];
	size_t n = 0;

	for (uint32_t i = 0; i < e->count; i++) {
		const struct canon_field *f = &e->fields[i];

		v[n++] = XXH3_64bits(f->key.s, f->key.len);
		v[n++] = f->form;
		v[n++] = f->hi;
		v[n++] = f->lo;
		v[n++] = f->text.len ? XXH3_64bits(f->text.s, f->text.len) : 0;
	}
	return XXH3_64bits(v, n * sizeof(*v));
}

bool canon_same_field(const struct canon_field *a, const struct canon_field *b)
{
	return compare_text(a->key, b->key) == 0 && a->form == b->form && a->hi == b->hi &&
	       a->lo == b->lo && compare_text(a->text, b->text) == 0;
}

/* ---- texts --------------------------------------------------------------------------------- */

const char *canon_phase(uint32_t phase)
{
	static const char *const names[] = {"invalid", "start", "stop", "instant"};

	return phase < sizeof(names) / sizeof(*names) ? names[phase] : names[0];
}

void canon_lane_text(uint64_t lane, char buf[CANON_TEXT])
{
	if (lane == LANE_MARKS)
		snprintf(buf, CANON_TEXT, "marks");
	else if (lane & LANE_CORE)
		snprintf(buf, CANON_TEXT, "nd%" PRIu64 ".nc%" PRIu64, (lane & ~LANE_CORE) >> 32,
			lane & UINT32_MAX);
	else
		snprintf(buf, CANON_TEXT, "%" PRIu64, lane);
}

struct pb_str canon_text(const struct canon_field *f, char buf[CANON_TEXT])
{
	char lane[CANON_TEXT];

	switch ((enum canon_form)f->form) {
	case CANON_STRING:
		return f->text;
	case CANON_BYTES:
		snprintf(buf, CANON_TEXT, "%" PRIu32 " bytes, hash %016" PRIx64, f->text.len,
			(uint64_t)XXH3_64bits(f->text.s, f->text.len));
		break;
	case CANON_ID:
		canon_lane_text(f->hi, lane);
		if (f->hi == LANE_ALL)
			snprintf(buf, CANON_TEXT, "#%" PRIu64, f->lo);
		else if (f->hi)
			snprintf(buf, CANON_TEXT, "#%.25s:%" PRIu64, lane, f->lo);
		else
			snprintf(buf, CANON_TEXT, "none");
		break;
	case CANON_SIGNED:
		snprintf(buf, CANON_TEXT, "%+" PRId64, (int64_t)f->lo);
		break;
	case CANON_NUMBER:
		snprintf(buf, CANON_TEXT, "%" PRIu64, f->lo);
		break;
	}
	return str(buf);
}
