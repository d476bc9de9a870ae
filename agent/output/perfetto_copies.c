/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfetto_copies.c - counters of copied bytes: how much so far, and how fast.
 *
 * A copy is known when it has ended.  Its bytes are spread evenly over the windows that it took, in
 * integers and without a remainder, so that the area below the rate is the bytes.  A window is written
 * when it is PFT_WINDOWS behind the newest; what of a copy lies before is put into the oldest that is
 * held.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/output/perfetto_process.h"

static const struct {
	const char *rate, *total;
} names[PFT_DIRECTIONS] = {
	[PFT_TO_DEVICE] = {"copies host_to_device B/s", "copies host_to_device bytes"},
	[PFT_TO_HOST] = {"copies device_to_host B/s", "copies device_to_host bytes"},
	[PFT_BETWEEN] = {"copies between buffers B/s", "copies between buffers bytes"},
};

/* Bytes come from a file: what a counter cannot hold is as much as it can. */
static uint64_t at_most(uint64_t v, uint64_t max)
{
	return v < max ? v : max;
}

/* Writes the counters of one direction for the window that ends at a time. */
static void put_window(struct pft_process *p, unsigned d, uint64_t from, uint64_t bytes)
{
	struct pft_copies *c = &p->copies;
	uint64_t rate = at_most(bytes, INT64_MAX / (1000000000u / PFT_WINDOW_NS)) *
			(1000000000u / PFT_WINDOW_NS);

	if (!c->total_track[d]) {
		if (!bytes)
			return;
		c->rate_track[d] = pft_counter(p->w, &c->seq, p->track, names[d].rate, "B/s");
		c->total_track[d] = pft_counter(p->w, &c->seq, p->track, names[d].total, NULL);
	}
	if (rate != c->rate[d])
		pft_count(p->w, &c->seq, c->rate_track[d], from, (int64_t)rate);
	c->total[d] += at_most(bytes, INT64_MAX - c->total[d]);
	if (bytes)
		pft_count(p->w, &c->seq, c->total_track[d], from, (int64_t)c->total[d]);
	c->rate[d] = rate;
}

/* Writes the windows before a number and gives them up. */
static void write_until(struct pft_process *p, uint64_t until)
{
	struct pft_copies *c = &p->copies;

	for (; c->first < until && c->first < c->end; c->first++)
		for (unsigned d = 0; d < PFT_DIRECTIONS; d++) {
			uint64_t *bytes = &c->bytes[d][c->first % PFT_WINDOWS];

			put_window(p, d, c->first * PFT_WINDOW_NS, *bytes);
			*bytes = 0;
		}
	if (c->first == until)
		return;
	for (unsigned d = 0; d < PFT_DIRECTIONS; d++) /* nothing was copied from here on */
		put_window(p, d, c->first * PFT_WINDOW_NS, 0);
	c->first = c->end = until;
}

static int copies_open(struct pft_process *p)
{
	struct pft_copies *c = &p->copies;

	c->bytes = calloc(PFT_DIRECTIONS, sizeof(*c->bytes));
	if (!c->bytes)
		return -ENOMEM;
	pft_seq_open(p->w, &c->seq, false);
	return 0;
}

int pft_copies_add(
	struct pft_process *p, enum pft_direction d, uint64_t from, uint64_t to, uint64_t bytes)
{
	struct pft_copies *c = &p->copies;
	uint64_t first = from / PFT_WINDOW_NS, last = to / PFT_WINDOW_NS, done = 0;
	int rc = c->bytes ? 0 : copies_open(p);

	if (rc < 0)
		return rc;
	if (last >= PFT_WINDOWS && last - PFT_WINDOWS + 1 > c->first)
		write_until(p, last - PFT_WINDOWS + 1);
	if (c->end == 0) /* the first of all */
		c->first = c->end = first > c->first ? first : c->first;
	if (last < c->first)
		last = c->first;
	if (first < c->first)
		first = c->first;
	if (c->end <= last)
		c->end = last + 1;
	for (uint64_t n = first; n <= last; n++) {
		uint64_t until = n == last ? to : (n + 1) * PFT_WINDOW_NS;
		uint64_t upto = n == last || to <= from ? bytes
							: (uint64_t)((unsigned __int128)bytes *
								     (until - from) / (to - from));

		uint64_t *window = &c->bytes[d][n % PFT_WINDOWS];

		*window += at_most(upto - done, UINT64_MAX - *window);
		done = upto;
	}
	return 0;
}

void pft_copies_end(struct pft_process *p)
{
	struct pft_copies *c = &p->copies;

	if (c->bytes)
		write_until(p, c->end + 1);
	free(c->bytes);
	c->bytes = NULL;
	pft_seq_free(&c->seq);
}
