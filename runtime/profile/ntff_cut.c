/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ntff_cut.c - which records of a ring belong to the runs of a model.
 *
 * A core does one run after another, and a ring has its records in the order of their times; so both lists are
 * gone through side by side.  The time alone does not say it where the clock was reset between two
 * runs: windows are taken in stretches whose clock goes on, and a ring whose time goes back has come to a later
 * stretch.  A ring that was silent in a stretch does not show the reset; then what lies in no window of this one
 * is looked for in the next.
 */
#include "runtime/profile/ntff_build.h"

struct place {
	const struct ntff_window *windows;
	uint32_t count;
	uint32_t at;   /* the window that the last record was in, or the first one after it */
	uint32_t stop; /* end of the stretch */
	uint64_t last_ps;
};

static uint32_t stretch_end(const struct place *p, uint32_t at)
{
	while (at + 1 < p->count && p->windows[at + 1].start_ps >= p->windows[at].end_ps)
		at++;
	return at + 1;
}

/* The first window of at to stop that ends at or behind ps. */
static uint32_t search(const struct place *p, uint32_t at, uint32_t stop, uint64_t ps)
{
	while (at < stop) {
		uint32_t middle = at + (stop - at) / 2;

		if (p->windows[middle].end_ps < ps)
			at = middle + 1;
		else
			stop = middle;
	}
	return at;
}

static bool is_in(const struct place *p, uint32_t at, uint64_t ps)
{
	return at < p->count && p->windows[at].start_ps <= ps && ps <= p->windows[at].end_ps;
}

/* Looks in the stretches behind this one.  must_move: the time went back. */
static void next_stretch(struct place *p, uint64_t ps, bool must_move)
{
	uint32_t begin = p->stop;

	while (begin < p->count) {
		uint32_t stop = stretch_end(p, begin), at = search(p, begin, stop, ps);

		if (at < stop && (must_move || is_in(p, at, ps))) {
			p->at = at;
			p->stop = stop;
			return;
		}
		begin = stop;
	}
}

/* Does the next record, of this time, belong to a wanted run? */
static bool belongs(struct place *p, uint64_t ps)
{
	bool back = ps < p->last_ps;

	p->last_ps = ps;
	if (!back && is_in(p, p->at, ps))
		return p->windows[p->at].wanted;
	if (p->at < p->stop && (back || ps > p->windows[p->at].end_ps)) {
		uint32_t at = search(p, p->at + 1, p->stop, ps);

		/* A reset by less than the pause between two runs begins no stretch. */
		if (!back || (at < p->stop && is_in(p, at, ps))) {
			p->at = at;
			back = false;
		}
	}
	if (back || p->at == p->stop)
		next_stretch(p, ps, back);
	return p->at < p->stop && is_in(p, p->at, ps) && p->windows[p->at].wanted;
}

uint32_t ntff_cut(const struct collector_row *row, const struct ntff_window *windows,
	uint32_t count, struct iovec *to, uint64_t *ret_records)
{
	struct place p = {.windows = windows, .count = count};
	uint32_t pieces = 0;

	*ret_records = 0;
	if (count)
		p.stop = stretch_end(&p, 0);
	for (uint32_t s = 0; s < row->span_count; s++) {
		const struct notification *records = row->spans[s].records;
		bool open = false;

		for (uint32_t i = 0; i < row->spans[s].count; i++) {
			if (!belongs(&p, records[i].timestamp_ps)) {
				open = false;
				continue;
			}
			if (!open && to)
				to[pieces] = (struct iovec){(void *)&records[i], 0};
			pieces += !open;
			open = true;
			if (to)
				to[pieces - 1].iov_len += sizeof(records[i]);
			(*ret_records)++;
		}
	}
	return pieces;
}
