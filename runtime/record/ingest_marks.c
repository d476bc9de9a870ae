/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ingest_marks.c - sources, how far each has come, and what waits until its source has come so far.
 *
 * An item waits when its place or its links depend on a record that may still come from the same source:
 * a stop whose start has not come, the start of a device's span, a device run whose wait has not
 * been told.  The source's mark ends the waiting.  So does the number: of a source's items no more than
 * MAX_WAITING wait; when one more comes the older half, in the order in which they came, is put with
 * what is known.  An orphan is an instant `start=lost` then, though its start may still come.  Real sources
 * have a few thousand at a time.
 */
#include "runtime/record/ingest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WAITING (1u << 17)
#define BLOCK 256u /* of what waits: about the root of that, so neither blocks nor items are many */

int ingest_join(struct ingest *in, uint16_t source)
{
	struct ingest_source *s;

	if (in->by_number[source])
		return 0;
	if (session_grow(&in->list, &in->source_cap, in->source_count + 1, sizeof(*in->list)) < 0)
		return -ENOMEM;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->number = source;
	s->threads.places.seed = in->session->seed;
	s->said = s->mark = in->released;
	s->waiting_min = UINT64_MAX;
	if (source >= REC_SOURCE_RUNTIME0) {
		s->newest = calloc(SUBMITS_CORES, sizeof(*s->newest));
		s->clocks = calloc(SUBMITS_CORES * CORE_CLOCKS, sizeof(*s->clocks));
		s->submits = submits_new(in->session->seed);
	}
	in->list[in->source_count++] = in->by_number[source] = s;
	return source < REC_SOURCE_RUNTIME0 || (s->newest && s->clocks && s->submits) ? 0 : -ENOMEM;
}

void ingest_place(struct ingest *in, struct ingest_source *s, struct item *item, uint64_t time)
{
	struct process *p = &in->processes->list[item->process];

	item->time = time;
	item->late_ns = 0;
	if (time >= s->mark)
		return;
	item->time = s->mark;
	item->late_ns = s->mark - time;
	p->late++;
	p->late_ns += item->late_ns;
}

/* ---- what waits --------------------------------------------------------------------------- */

/* What this one waits for has not come in time. */
static int give_up(struct ingest *in, struct ingest_source *s, const struct waiting *w)
{
	struct item *i = held_item(in->held);

	if (!i)
		return -ENOMEM;
	*i = w->item;
	if (w->what == WAIT_STOP)
		return ingest_device_start(in, s, i);
	if (w->what == WAIT_SUBMIT) {
		if (submits_exact(s->submits, &w->of, &i->other))
			i->flags |= ITEM_LINK | ITEM_EXACT;
	} else {
		ingest_give_span(in, w->span);
		map64_remove(&in->pairs, i->pair);
		i->kind = ITEM_LOST;
	}
	return held_put(in->held, i);
}

/* What came to wait at a place counts for its block. */
static void note_time(struct ingest_source *s, size_t place)
{
	uint64_t time = s->waiting[place].item.time, *min = &s->waiting_blocks[place / BLOCK];

	if (place % BLOCK == 0 || time < *min)
		*min = time;
	if (time < s->waiting_min)
		s->waiting_min = time;
}

static void leave(struct ingest_source *s, struct waiting *w)
{
	w->gone = true;
	s->waiting_gone++;
}

/* Moves what waits together, in its order. */
static void close_up(struct ingest *in, struct ingest_source *s)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->waiting_count; i++) {
		const struct waiting *w = &s->waiting[i];

		if (w->gone)
			continue;
		if (w->what != WAIT_SUBMIT)
			in->open_spans[w->span].waiting = kept;
		if (kept < i)
			s->waiting[kept] = *w;
		note_time(s, kept);
		kept++;
	}
	s->waiting_count = kept;
	s->waiting_gone = 0;
}

/* Puts what waits of a block and is older than a mark. */
static int settle_block(
	struct ingest *in, struct ingest_source *s, size_t block, uint64_t mark, size_t oldest)
{
	size_t from = block * BLOCK, to = from + BLOCK;
	uint64_t min = UINT64_MAX;
	int rc = 0;

	for (size_t i = from; rc == 0 && i < to && i < s->waiting_count; i++) {
		struct waiting *w = &s->waiting[i];

		if (w->gone)
			continue;
		if (w->item.time < mark || i < oldest) {
			leave(s, w);
			rc = give_up(in, s, w);
		} else if (w->item.time < min) {
			min = w->item.time;
		}
	}
	s->waiting_blocks[block] = min;
	return rc;
}

/* Puts what waits and is older than the mark that is to come, and the `oldest` of the list.  Looks only at
 * blocks in which there may be some, so that many marks that pass few cost little. */
static int settle(struct ingest *in, struct ingest_source *s, uint64_t mark, size_t oldest)
{
	uint64_t min = UINT64_MAX;
	int rc = 0;

	for (size_t b = 0; rc == 0 && b * BLOCK < s->waiting_count; b++) {
		if (s->waiting_blocks[b] < mark || b * BLOCK < oldest)
			rc = settle_block(in, s, b, mark, oldest);
		if (s->waiting_blocks[b] < min)
			min = s->waiting_blocks[b];
	}
	s->waiting_min = min;
	if (2 * s->waiting_gone >= s->waiting_count)
		close_up(in, s);
	return rc;
}

/* Room for one more.  Only the source's own records decide who must go, so neither memory nor other
 * sources change what is written. */
static int make_room(struct ingest *in, struct ingest_source *s)
{
	bool full = s->waiting_count - s->waiting_gone == MAX_WAITING;
	size_t blocks = s->waiting_count / BLOCK + 1;
	int rc = 0;

	if (full || (s->waiting_count == s->waiting_cap && 2 * s->waiting_gone >= s->waiting_count))
		close_up(in, s);
	if (full)
		rc = settle(in, s, 0, MAX_WAITING / 2);
	if (rc == 0)
		rc = session_grow(
			&s->waiting, &s->waiting_cap, s->waiting_count + 1, sizeof(*s->waiting));
	if (rc == 0)
		rc = session_grow(&s->waiting_blocks, &s->waiting_blocks_cap, blocks,
			sizeof(*s->waiting_blocks));
	return rc;
}

static int add_waiting(
	struct ingest *in, struct ingest_source *s, struct item *i, const struct waiting *how)
{
	struct waiting *w;
	int rc = make_room(in, s);

	if (rc < 0)
		return rc;
	w = &s->waiting[s->waiting_count];
	*w = *how;
	w->item = *i;
	held_release_item(in->held, i);
	note_time(s, s->waiting_count++);
	return 0;
}

int ingest_wait_span(struct ingest *in, struct ingest_source *s, struct item *i,
	enum waiting_for what, const struct open_span *o)
{
	uint64_t index = ingest_take_span(in), pair = i->pair;
	int rc = index == UINT64_MAX ? -ENOMEM : 0;

	if (rc == 0)
		rc = add_waiting(in, s, i,
			&(struct waiting){.span = (uint32_t)index, .what = (uint8_t)what});
	if (rc < 0)
		return rc;
	in->open_spans[index] = *o;
	in->open_spans[index].waiting = s->waiting_count - 1;
	return map64_put(&in->pairs, pair, index);
}

int ingest_wait_submit(
	struct ingest *in, struct ingest_source *s, struct item *i, const struct submits_run *run)
{
	return add_waiting(in, s, i, &(struct waiting){.what = WAIT_SUBMIT, .of = *run});
}

struct item *ingest_wake(struct ingest *in, struct ingest_source *s, uint64_t span)
{
	size_t place = in->open_spans[span].waiting;
	struct item *i = held_item(in->held);

	if (!i)
		return NULL;
	*i = s->waiting[place].item;
	if (place == s->waiting_count - 1)
		s->waiting_count--;
	else
		leave(s, &s->waiting[place]);
	return i;
}

/* ---- marks -------------------------------------------------------------------------------- */

static int advance(struct ingest *in, struct ingest_source *s)
{
	uint64_t mark = s->said, hold = s->submits ? ingest_device_hold(in, s) : UINT64_MAX;
	int rc = 0;

	if (hold < mark)
		mark = hold;
	if (mark <= s->mark)
		return 0;
	if (s->waiting_min < mark)
		rc = settle(in, s, mark, 0);
	s->mark = mark;
	if (s->submits)
		submits_passed(s->submits, mark);
	return rc;
}

void ingest_free_source(struct ingest_source *s)
{
	submits_free(s->submits);
	thread_map_free(&s->threads);
	free(s->newest);
	free(s->clocks);
	free(s->waiting);
	free(s->waiting_blocks);
	s->submits = NULL;
	s->newest = NULL;
	s->clocks = NULL;
	s->waiting = NULL;
	s->waiting_blocks = NULL;
	s->waiting_count = s->waiting_gone = s->waiting_cap = s->waiting_blocks_cap = 0;
}

int ingest_end_source(struct ingest *in, struct ingest_source *s)
{
	int rc = settle(in, s, UINT64_MAX, 0);
	size_t place = 0;

	while (in->list[place] != s)
		place++;
	in->list[place] = in->list[--in->source_count];
	if (s->mark > in->ended_mark)
		in->ended_mark = s->mark;
	s->ended = true;
	ingest_free_source(s);
	return rc;
}

/* A mark is a time, or 0 (nothing is known yet), or all ones. */
int ingest_watermark(struct ingest *in, const struct rec_frame *f, const uint8_t *payload)
{
	struct ingest_source *s;
	uint64_t mark = 0;
	int rc;

	if (f->size >= sizeof(mark))
		memcpy(&mark, payload, sizeof(mark));
	if (f->size < sizeof(mark) || (mark + 1 > 1 && !clock_map_valid(&in->session->clock, mark)))
		return session_invalid(in->session);
	rc = ingest_join(in, f->source);
	if (rc < 0)
		return rc;
	s = in->by_number[f->source];
	if (s->ended)
		return 0;
	if (mark == UINT64_MAX)
		return ingest_end_source(in, s);
	if (mark > s->said)
		s->said = mark;
	return advance(in, s);
}

/* When all sources have ended the next one may join where the newest of them had come to: what they
 * gave beyond that must wait for it. */
uint64_t ingest_safe(const struct ingest *in)
{
	uint64_t safe = UINT64_MAX, newest = in->ended_mark;

	for (size_t i = 0; i < in->source_count; i++) {
		const struct ingest_source *s = in->list[i];

		if (s->mark < safe)
			safe = s->mark;
		if (s->mark > newest)
			newest = s->mark;
	}
	return safe < UINT64_MAX ? safe : newest;
}

uint64_t ingest_reach(const struct ingest *in, uint16_t source)
{
	const struct ingest_source *s = in->by_number[source];

	return !s ? 0 : s->ended ? UINT64_MAX : s->mark;
}
