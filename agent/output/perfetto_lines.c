/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfetto_lines.c - lines, lanes and open spans of a process.
 */
#include "agent/output/perfetto_lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Ids are never 0, but files from elsewhere may have it. */
static uint64_t span_key(uint64_t id)
{
	return id ? id : UINT64_MAX;
}

void pft_lines_free(struct pft_lines *l)
{
	for (uint32_t i = 0; i < l->count; i++) {
		for (uint32_t k = 0; k < l->lines[i]->lane_count; k++)
			free(l->lines[i]->lanes[k].stack);
		free(l->lines[i]->lanes);
		free(l->lines[i]);
	}
	free(l->lines);
	free(l->cuts);
	map64_free(&l->by_key);
	map64_free(&l->by_span);
	map64_free(&l->by_cut);
	*l = (struct pft_lines){0};
}

static struct pft_line *line_new(struct pft_lines *l, uint64_t key)
{
	struct pft_line **lines = l->lines, *line;

	if ((l->count & (l->count - 1)) == 0) { /* full: its room is a power of two */
		lines = realloc(lines, (l->count ? 2 * (size_t)l->count : 1) * sizeof(*lines));
		if (!lines)
			return NULL;
		l->lines = lines;
	}
	line = calloc(1, sizeof(*line));
	if (!line || map64_put(&l->by_key, key, l->count + 1) < 0) {
		free(line);
		return NULL;
	}
	line->place = l->count;
	lines[l->count++] = line;
	return line;
}

struct pft_line *pft_line_get(
	struct pft_lines *l, enum pft_line_kind kind, uint32_t number, uint32_t physical)
{
	uint64_t key = (uint64_t)kind << 56 | (uint64_t)(physical & 0xffffff) << 32 | number;
	uint64_t *found;
	struct pft_line *line;

	if (l->newest && l->newest_key == key)
		return l->newest;
	found = map64_find(&l->by_key, key);
	line = found ? l->lines[*found - 1] : line_new(l, key);
	if (!line)
		return NULL;
	if (!found) {
		line->kind = kind;
		line->number = number;
		line->physical = physical;
	}
	l->newest = line;
	l->newest_key = key;
	return line;
}

struct pft_lane *pft_lane_get(struct pft_line *line, uint32_t lane)
{
	if (lane >= PFT_LANES)
		return NULL;
	if (line->lane_count <= lane) {
		struct pft_lane *more = realloc(line->lanes, (lane + 1) * sizeof(*more));

		if (!more)
			return NULL;
		line->lanes = more;
		while (line->lane_count <= lane)
			more[line->lane_count++] = (struct pft_lane){0};
	}
	return &line->lanes[lane];
}

/* The outermost place on a lane with a span of this type; its depth when there is none. */
static uint32_t same_type(const struct pft_lane *lane, uint16_t type, bool is_call)
{
	for (uint32_t i = 0; i < lane->depth; i++)
		if (lane->stack[i].type == type && lane->stack[i].is_call == is_call)
			return i;
	return lane->depth;
}

/* A thread is within one call at a time and never twice in the same: what contradicts has ended.  What a
 * call does lies within it. */
static uint32_t keep_on_thread(const struct pft_lane *lane, uint16_t type, bool is_call)
{
	uint32_t keep = is_call ? lane->depth : same_type(lane, type, false);

	if (type >= PFT_WORK)
		return keep;
	while (keep && (lane->stack[keep - 1].is_call || lane->stack[keep - 1].type >= PFT_WORK))
		keep--;
	return keep;
}

uint32_t pft_lines_place(
	const struct pft_line *line, uint16_t type, bool is_call, uint32_t *ret_keep)
{
	uint32_t n = 0;

	*ret_keep = 0;
	if (line->kind == PFT_LINE_THREAD) {
		if (line->lane_count)
			*ret_keep = keep_on_thread(&line->lanes[0], type, is_call);
	} else {
		while (n < line->lane_count &&
			same_type(&line->lanes[n], type, is_call) < line->lanes[n].depth)
			n++;
		if (n == PFT_LANES)
			n = 0; /* every lane waits for an end: the oldest has waited longest */
		else if (n < line->lane_count)
			*ret_keep = line->lanes[n].depth;
	}
	if (*ret_keep == PFT_DEPTH)
		*ret_keep = 0;
	return n;
}

/* Room for one span more. */
static int stack_grow(struct pft_lane *lane)
{
	uint32_t room = lane->room ? 2 * lane->room : 2;
	struct pft_span *more;

	if (lane->depth < lane->room)
		return 0;
	more = realloc(lane->stack, room * sizeof(*more));
	if (!more)
		return -ENOMEM;
	lane->stack = more;
	lane->room = room;
	return 0;
}

int pft_lines_open(
	struct pft_lines *l, struct pft_line *line, uint32_t lane, const struct pft_span *s)
{
	struct pft_lane *to = &line->lanes[lane];
	uint64_t key = span_key(s->id);
	int rc = map64_find(&l->by_span, key) ? -EEXIST : stack_grow(to);

	if (rc == 0)
		rc = map64_put(&l->by_span, key, (uint64_t)line->place << 8 | lane);

	if (rc == 0)
		to->stack[to->depth++] = *s;
	return rc;
}

struct pft_lane *pft_lines_find(
	const struct pft_lines *l, uint64_t id, struct pft_line **ret_line, uint32_t *ret_place)
{
	const uint64_t *found = map64_find(&l->by_span, span_key(id));
	struct pft_lane *lane;

	if (!found)
		return NULL;
	*ret_line = l->lines[*found >> 8];
	lane = &(*ret_line)->lanes[*found & 0xff];
	*ret_place = lane->depth;
	while (*ret_place && lane->stack[--*ret_place].id != id)
		;
	return lane;
}

struct pft_span pft_lines_close(struct pft_lines *l, struct pft_lane *lane)
{
	struct pft_span s = lane->stack[--lane->depth];

	map64_remove(&l->by_span, span_key(s.id));
	return s;
}

int pft_lines_cut(struct pft_lines *l, const struct pft_span *s, uint64_t time)
{
	struct pft_cut *c;

	if (!l->cuts)
		l->cuts = calloc(PFT_CUTS, sizeof(*l->cuts));
	if (!l->cuts)
		return -ENOMEM;
	c = &l->cuts[l->cut_next];
	uint64_t *old = c->time ? map64_find(&l->by_cut, span_key(c->span.id)) : NULL;
	if (old && *old == l->cut_next) {
		map64_remove(&l->by_cut, span_key(c->span.id));
		l->cuts_forgotten++;
	}
	*c = (struct pft_cut){*s, time};
	int rc = map64_put(&l->by_cut, span_key(s->id), l->cut_next);
	l->cut_next = (l->cut_next + 1) % PFT_CUTS;
	return rc;
}

bool pft_lines_cut_take(struct pft_lines *l, uint64_t id, struct pft_cut *ret)
{
	const uint64_t *found = map64_find(&l->by_cut, span_key(id));

	if (!found)
		return false;
	*ret = l->cuts[*found];
	l->cuts[*found].time = 0;
	map64_remove(&l->by_cut, span_key(id));
	return true;
}

bool pft_lines_cut_forgotten(struct pft_lines *l)
{
	if (!l->cuts_forgotten)
		return false;
	l->cuts_forgotten--;
	return true;
}
