/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff.c - both traces at once, event by event.
 *
 * With times there is one order and the n-th event of A is compared with the n-th of B.  Without
 * times each lane has an order of its own, and which lane comes first is chance: what one side has read
 * of a lane and the other has not yet waits in the lane's queue as a digest and an index.  Only when
 * all is read is it known which difference comes first; the files are then read again up to it, to say
 * in words what differs.  Before it all, threads are paired (diff_threads.h).
 */
#include "agent/output/diff.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "agent/output/canon.h"
#include "agent/output/diff_threads.h"
#include "agent/output/event_kind.h"
#include "agent/output/trace_read.h"
#include "runtime/base/file.h"

#define MAX_NAMES 65536u /* the rest is counted as one */
#define OTHER_NAMES "(other names)"

struct waiting {
	uint64_t digest, index;
};

/* What one side has of a lane and the other not yet: queue[head..count). */
struct lane {
	unsigned side;
	bool differs; /* nothing behind the difference is compared */
	struct waiting *queue;
	size_t head, count, cap;
};

/* One trace being read. */
struct input {
	struct trace_read read;
	struct canon canon;
	struct map64 open; /* id of an open span -> the place of its name */
	bool ended;
	struct ntrace_event_view event;
};

struct compare {
	struct diff *d;
	bool structure, durations; /* see struct diff_options */
	struct input in[2];
	struct map64 threads; /* of B -> the numbers of their likes in A; empty with times */
	struct map64 names;   /* hash -> place in d->names */
	struct map64 lanes;   /* lane -> place in lane */
	struct lane *lane;
	size_t lane_count;
	bool present[2]; /* of the first difference so far */
	uint64_t index[2];
	struct canon_event canonical;
};

/* ---- counts -------------------------------------------------------------------------------- */

static int add_name(struct diff *d, struct pb_str name, bool driver)
{
	struct diff_name *n;

	if ((d->name_count & (d->name_count - 1)) == 0) {
		size_t cap = d->name_count ? d->name_count * 2 : 1;

		n = realloc(d->names, cap * sizeof(*n));
		if (!n)
			return -ENOMEM;
		d->names = n;
	}
	n = &d->names[d->name_count];
	*n = (struct diff_name){.name = strndup(name.s, name.len), .driver = driver};
	if (!n->name)
		return -ENOMEM;
	d->name_count++;
	return 0;
}

/* The place of an event's name in d->names. */
static int find_name(struct compare *c, const struct ntrace_event_view *e, size_t *ret)
{
	char buf[CANON_TEXT];
	struct pb_str name = event_name(e, buf);
	bool driver = event_kind(e) == EVENT_DRIVER || event_kind(e) == EVENT_DMA;
	uint64_t key = XXH3_64bits_withSeed(name.s, name.len, driver) | 1;
	const uint64_t *found = map64_find(&c->names, key);
	int rc = 0;

	if (!found && c->d->name_count >= MAX_NAMES) {
		name = (struct pb_str){OTHER_NAMES, sizeof(OTHER_NAMES) - 1};
		key = 2;
		found = map64_find(&c->names, key);
	}
	if (found) {
		*ret = *found;
		return 0;
	}
	*ret = c->d->name_count;
	rc = add_name(c->d, name, driver);
	return rc ? rc : map64_put(&c->names, key, *ret);
}

static int count_event(struct compare *c, unsigned side, const struct ntrace_event_view *e)
{
	uint64_t id = e->tracking_id ? e->tracking_id : e->id;
	const uint64_t *start;
	struct diff_name *n;
	size_t place;
	int rc = find_name(c, e, &place);

	if (rc < 0)
		return rc;
	n = &c->d->names[place];
	n->count[side][e->phase < DIFF_PHASES ? e->phase : PHASE_INVALID]++;
	c->d->events[side]++;
	if (e->phase == PHASE_START && id) {
		n->open[side]++;
		return map64_put(&c->in[side].open, id, place);
	}
	if (e->phase != PHASE_STOP)
		return 0;
	start = id ? map64_find(&c->in[side].open, id) : NULL;
	if (start) {
		c->d->names[*start].open[side]--;
		map64_remove(&c->in[side].open, id);
	}
	return c->durations ? durations_add(&n->durations[side], e->duration) : 0;
}

/* ---- order --------------------------------------------------------------------------------- */

/* Notes a difference unless one before it is known. */
static void note(struct compare *c, struct lane *l, const uint64_t *a, const uint64_t *b)
{
	uint64_t before = c->present[0] ? c->index[0] : c->index[1];

	l->differs = true;
	free(l->queue);
	l->queue = NULL;
	l->head = l->count = l->cap = 0;
	if (c->d->differs && before <= (a ? *a : *b))
		return;
	c->d->differs = true;
	c->present[0] = a != NULL;
	c->present[1] = b != NULL;
	c->index[0] = a ? *a : 0;
	c->index[1] = b ? *b : 0;
}

static int enqueue(struct lane *l, struct waiting w)
{
	/* Moving up is worth it when it frees half the queue; else the queue grows. */
	if (l->count == l->cap && l->head > l->cap / 2) {
		l->count -= l->head;
		memmove(l->queue, l->queue + l->head, l->count * sizeof(*l->queue));
		l->head = 0;
	}
	if (l->count == l->cap) {
		size_t cap = l->cap ? l->cap * 2 : 16;
		struct waiting *queue = realloc(l->queue, cap * sizeof(*queue));

		if (!queue)
			return -ENOMEM;
		l->queue = queue;
		l->cap = cap;
	}
	l->queue[l->count++] = w;
	return 0;
}

static int find_lane(struct compare *c, uint64_t key, struct lane **ret)
{
	const uint64_t *found = map64_find(&c->lanes, key);

	if (found) {
		*ret = &c->lane[*found];
		return 0;
	}
	if ((c->lane_count & (c->lane_count - 1)) == 0) {
		size_t cap = c->lane_count ? c->lane_count * 2 : 1;
		struct lane *lane = realloc(c->lane, cap * sizeof(*lane));

		if (!lane)
			return -ENOMEM;
		c->lane = lane;
	}
	*ret = &c->lane[c->lane_count];
	**ret = (struct lane){0};
	return map64_put(&c->lanes, key, c->lane_count++);
}

/* The next event of a lane on one side. */
static int match(struct compare *c, unsigned side, uint64_t lane, struct waiting w)
{
	struct lane *l;
	int rc = find_lane(c, lane, &l);

	if (rc < 0 || l->differs)
		return rc;
	if (l->head < l->count && l->side != side) {
		const struct waiting *other = &l->queue[l->head++];

		if (other->digest != w.digest) {
			uint64_t i = other->index;
			note(c, l, side ? &i : &w.index, side ? &w.index : &i);
		}
		return 0;
	}
	if (c->in[!side].ended) {
		uint64_t i = l->head < l->count ? l->queue[l->head].index : w.index;
		note(c, l, side ? NULL : &i, side ? &i : NULL);
		return 0;
	}
	if (l->head == l->count)
		l->head = l->count = 0;
	l->side = side;
	return enqueue(l, w);
}

/* What is left in the queues has no partner. */
static void note_rest(struct compare *c)
{
	for (size_t i = 0; i < c->lane_count; i++) {
		struct lane *l = &c->lane[i];

		if (l->differs || l->head == l->count)
			continue;
		uint64_t index = l->queue[l->head].index;
		note(c, l, l->side ? NULL : &index, l->side ? &index : NULL);
	}
}

static int take_event(struct compare *c, unsigned side)
{
	struct input *in = &c->in[side];
	int rc;

	if (c->structure && canon_is_clock(&in->event))
		return 0;
	rc = count_event(c, side, &in->event);
	if (rc < 0 || (!c->structure && c->d->differs))
		return rc;
	rc = canon_make(&in->canon, &in->event, &c->canonical);
	if (rc < 0)
		return rc;
	return match(c, side, c->structure ? c->canonical.lane : 1,
		(struct waiting){canon_digest(&c->canonical), in->read.count});
}

static int read_both(struct compare *c, const struct diff_side side[2], struct diff_fault *fault)
{
	while (!c->in[0].ended || !c->in[1].ended) {
		for (unsigned s = 0; s < 2; s++) {
			int rc;

			if (c->in[s].ended)
				continue;
			rc = trace_read_next(&c->in[s].read, &c->in[s].event);
			c->in[s].ended = rc == 0;
			c->d->in_file[s] = c->in[s].read.count;
			if (rc > 0)
				rc = take_event(c, s);
			if (rc < 0) {
				fault->path = strdup(side[s].file);
				fault->offset = trace_read_offset(&c->in[s].read);
				return rc;
			}
		}
	}
	note_rest(c);
	return 0;
}

/* ---- the first difference ------------------------------------------------------------------ */

static char *copy(struct pb_str s)
{
	return strndup(s.s, s.len);
}

/* Puts the canonical event into words. */
static int describe(
	const struct ntrace_event_view *e, const struct canon_event *from, struct diff_event *ret)
{
	char buf[CANON_TEXT];

	ret->name = copy(event_name(e, buf));
	ret->phase = canon_phase(e->phase);
	ret->values = calloc(from->count, sizeof(*ret->values));
	if (!ret->name || !ret->values)
		return -ENOMEM;
	for (uint32_t i = 0; i < from->count; i++) {
		const struct canon_field *f = &from->fields[i];
		struct diff_value *v = &ret->values[ret->count++];

		v->key = copy(f->key);
		v->value = copy(canon_text(f, buf));
		v->shown = f->hi || f->lo || f->text.len;
		if (!v->key || !v->value)
			return -ENOMEM;
	}
	return 0;
}

static int init_canon(struct compare *c, unsigned side)
{
	canon_init(&c->in[side].canon, c->structure);
	return side ? canon_name_threads(&c->in[side].canon, &c->threads) : 0;
}

/* Reads a side again, up to the event with this index (from 1). */
static int describe_side(struct compare *c, unsigned side, const char *file)
{
	struct input *in = &c->in[side];
	int rc;

	trace_read_close(&in->read);
	canon_free(&in->canon);
	rc = init_canon(c, side);
	if (rc == 0)
		rc = trace_read_open(&in->read, file);
	while (rc >= 0 && in->read.count < c->index[side]) {
		rc = trace_read_next(&in->read, &in->event);
		if (rc == 0)
			return -ESTALE; /* it was longer a moment ago */
		if (rc > 0 && !(c->structure && canon_is_clock(&in->event)))
			rc = canon_make(&in->canon, &in->event, &c->canonical);
	}
	c->d->first[side].present = true;
	c->d->first[side].index = c->index[side];
	return rc < 0 ? rc : describe(&in->event, &c->canonical, &c->d->first[side]);
}

static int describe_first(
	struct compare *c, const struct diff_side side[2], struct diff_fault *fault)
{
	int rc = 0;

	for (unsigned s = 0; s < 2 && rc == 0; s++) {
		if (c->d->differs && c->present[s])
			rc = describe_side(c, s, side[s].file);
		if (rc < 0)
			fault->path = strdup(side[s].file);
	}
	return rc;
}

/* ---- durations ----------------------------------------------------------------------------- */

static void sort_durations(struct diff *d)
{
	for (size_t i = 0; i < d->name_count; i++)
		for (unsigned s = 0; s < 2; s++)
			durations_sort(&d->names[i].durations[s]);
}

/* ---- all of it ------------------------------------------------------------------------------ */

static int open_both(struct compare *c, const struct diff_side side[2], struct diff_fault *fault)
{
	int rc = 0;

	for (unsigned s = 0; s < 2 && rc == 0; s++) {
		rc = trace_read_open(&c->in[s].read, side[s].file);
		if (rc < 0)
			fault->path = strdup(side[s].file);
		else
			rc = init_canon(c, s);
	}
	return rc;
}

static void compare_free(struct compare *c)
{
	for (unsigned s = 0; s < 2; s++) {
		trace_read_close(&c->in[s].read);
		canon_free(&c->in[s].canon);
		map64_free(&c->in[s].open);
	}
	for (size_t i = 0; i < c->lane_count; i++)
		free(c->lane[i].queue);
	free(c->lane);
	map64_free(&c->threads);
	map64_free(&c->lanes);
	map64_free(&c->names);
	free(c);
}

int diff_traces(const struct diff_side side[2], const struct diff_options *options,
	struct diff *ret, struct diff_fault *fault)
{
	struct compare *c = calloc(1, sizeof(*c));
	int rc;

	*ret = (struct diff){.ended = {true, true}};
	*fault = (struct diff_fault){0};
	if (!c)
		return -ENOMEM;
	c->d = ret;
	c->structure = options->ignore_times || options->tolerance > 0;
	c->durations = !options->ignore_times;
	c->in[0].read.fd = c->in[1].read.fd = -1;
	rc = c->structure ? diff_threads_pair(side, &c->threads, fault) : 0;
	if (rc == 0)
		rc = open_both(c, side, fault);
	if (rc == 0)
		rc = read_both(c, side, fault);
	if (rc == 0)
		rc = describe_first(c, side, fault);
	compare_free(c);
	if (rc == 0)
		sort_durations(ret);
	return rc ? rc : diff_read_info(side, options, ret, fault);
}

void diff_free(struct diff *d)
{
	for (size_t i = 0; i < d->name_count; i++) {
		free(d->names[i].name);
		durations_free(&d->names[i].durations[0]);
		durations_free(&d->names[i].durations[1]);
	}
	free(d->names);
	for (unsigned s = 0; s < 2; s++) {
		for (size_t i = 0; i < d->first[s].count; i++) {
			free(d->first[s].values[i].key);
			free(d->first[s].values[i].value);
		}
		free(d->first[s].values);
		free(d->first[s].name);
	}
	for (size_t i = 0; i < d->loss_count; i++) {
		free(d->losses[i].stage);
		free(d->losses[i].counter);
	}
	free(d->losses);
	for (size_t i = 0; i < d->setting_count; i++) {
		free(d->settings[i].value[0]);
		free(d->settings[i].value[1]);
	}
	free(d->settings);
	*d = (struct diff){0};
}

/* ---- what differs --------------------------------------------------------------------------- */

bool diff_counts_differ(const struct diff_name *n, unsigned phase)
{
	return n->count[0][phase] != n->count[1][phase];
}

static bool within(uint64_t a, uint64_t b, double tolerance)
{
	uint64_t apart = a > b ? a - b : b - a;

	return apart == 0 || (long double)apart <= (long double)tolerance * (long double)a;
}

bool diff_durations_differ(const struct diff_name *n, const struct diff_options *options)
{
	struct duration_stats a, b;

	if (options->ignore_times)
		return false;
	a = duration_stats(&n->durations[0]);
	b = duration_stats(&n->durations[1]);
	for (int i = 0; i < STAT_COUNT; i++)
		if (a.has[i] && b.has[i] && !within(a.ns[i], b.ns[i], options->tolerance))
			return true;
	return false;
}

bool diff_open_differ(const struct diff_name *n)
{
	return n->open[0] != n->open[1];
}

bool diff_same(const struct diff *d, const struct diff_options *options)
{
	if (d->differs || d->loss_count || d->setting_count || d->info_missing ||
		d->ended[0] != d->ended[1])
		return false;
	for (size_t i = 0; i < d->name_count; i++) {
		const struct diff_name *n = &d->names[i];

		for (unsigned p = 0; p < DIFF_PHASES; p++)
			if (diff_counts_differ(n, p))
				return false;
		if (diff_durations_differ(n, options) || diff_open_differ(n))
			return false;
	}
	return true;
}
