/* SPDX-License-Identifier: Apache-2.0 */
/* profile_ring.c - one notification ring of a profile; see profile_ring.h. */
#include "runtime/profile/profile_ring.h"

#include <string.h>

#define TRIES 4u /* to be faster than the device */

/* ---- what the device says ----------------------------------------------------------------- */

static int ask(struct profile_ring *p, uint32_t *ret_written, uint32_t *ret_dropped)
{
	*ret_written = *ret_dropped = 0;
	return p->device.ask(p->device.ctx, ret_written, ret_dropped);
}

static void tell(struct profile_ring *p)
{
	if (!p->placeless)
		(void)p->device.tell(p->device.ctx, (uint32_t)p->ring.read);
	p->ring.told = p->ring.read; /* a device that does not hear is not told again at once */
}

/* Losses that records speak of count at once; what the device says replaces that. */
static void hear_drops(struct profile_ring *p, uint32_t dropped)
{
	uint64_t known = p->drops > p->gaps ? p->drops : p->gaps;

	p->drops += (uint32_t)(dropped - p->drops_low);
	p->drops_low = dropped;
	p->doubts = 0;
	if (p->drops > known)
		p->lost += p->drops - known;
}

/* A record that was written over another one may have followed records that nobody read, or those that the device had
 * not been told of. */
static void count_overs(struct profile_ring *p, uint32_t overs)
{
	p->doubts += overs && !p->heard;
}

static void count_gaps(struct profile_ring *p, uint32_t gaps)
{
	uint64_t known = p->drops > p->gaps ? p->drops : p->gaps;

	p->gaps += gaps;
	if (p->gaps <= known)
		return;
	p->lost += p->gaps - known;
	p->doubts += !p->heard;
}

void profile_ring_open(struct profile_ring *p, void *memory, uint64_t bytes,
	const struct profile_ring_device *device)
{
	struct notify_ring *r = &p->ring;
	uint32_t written, dropped;

	*p = (struct profile_ring){.device = *device};
	notify_attach(r, memory, bytes);
	if (!r->from_start && ask(p, &written, &dropped) == 0) {
		p->heard = written != 0;
		p->drops_low = dropped;
	}
	if (p->heard) {
		notify_place(r, written);
	} else if (!r->from_start) {
		/* Some place of the two laps that the phases tell apart. */
		p->placeless = true;
		r->read = (r->phase ? 0 : r->count) + (uint64_t)r->at;
	}
	if (!r->from_start)
		tell(p);
}

bool profile_ring_has(const struct profile_ring *p)
{
	return notify_has(&p->ring);
}

/* ---- overruns ----------------------------------------------------------------------------- */

/* How many records there are, by the device or by the ring. */
static uint64_t find_written(struct profile_ring *p, const struct notify_batch *b, bool *ret_sure)
{
	struct notify_ring *r = &p->ring;
	uint32_t written, dropped, behind;

	*ret_sure = true;
	if (!p->placeless && ask(p, &written, &dropped) == 0 && (written || p->heard)) {
		p->heard = true;
		hear_drops(p, dropped);
		behind = written - (uint32_t)r->read;
		p->replaced |= behind > INT32_MAX || behind < b->count;
		return r->read + behind;
	}
	*ret_sure = false;
	return notify_guess(r, r->read + r->count - 1);
}

static void move(struct profile_ring *p, uint64_t to, bool sure)
{
	p->lost += to - p->ring.read;
	p->vague += !sure;
	notify_place(&p->ring, to);
}

/* Leaves the first `bad` of the copied records out. */
static void keep_last(struct notification *to, struct notify_batch *b, uint32_t bad)
{
	b->count -= bad;
	b->gaps = 0;
	if (!to)
		return;
	memmove(to, to + bad, b->count * sizeof(*to));
	for (uint32_t i = 0; i < b->count; i++)
		b->gaps += (to[i].type_phase & NOTE_SW_OVERFLOW) != 0;
}

/* The device has gone round: keeps those of the copied records that it cannot have written over.  Are there perhaps
 * others now? */
static bool recover(struct profile_ring *p, struct notification *to, struct notify_batch *b)
{
	struct notify_ring *r = &p->ring;
	bool sure;
	uint64_t written = find_written(p, b, &sure);
	uint64_t oldest = written > r->count ? written - r->count : 0;
	uint64_t bad = oldest > r->read ? oldest - r->read : 0;

	if (p->replaced) {
		b->count = 0;
		return false;
	}
	if (bad > 0 && bad >= b->count) {
		move(p, written - r->count / 2, sure);
		b->count = 0;
		return true;
	}
	if (bad > 0) {
		move(p, oldest, sure);
		keep_last(to, b, (uint32_t)bad);
	} else if (b->count == 0) {
		/* Nothing new, and nothing lost: from now on this is the record before. */
		notify_place(r, r->read);
	}
	return false;
}

uint32_t profile_ring_take(struct profile_ring *p, struct notification *to, uint32_t max)
{
	struct notify_batch b;
	unsigned tries = 0;

	do
		notify_copy(&p->ring, to, max, &b);
	while (b.overrun && recover(p, to, &b) && ++tries < TRIES);
	notify_accept(&p->ring, &b);
	count_gaps(p, b.gaps);
	count_overs(p, b.overs);
	if (p->ring.read - p->ring.told >= p->ring.count / 4)
		tell(p);
	return b.count;
}

/* ---- the end ------------------------------------------------------------------------------ */

/* The device says where it is after all: a count of 0 may have been one that had gone round. */
static void find_place(struct profile_ring *p, uint32_t written)
{
	struct notify_ring *r = &p->ring;
	uint64_t laps = 2ull * r->count, all = (1ull << 32) + written;

	r->read = all - (all - r->read) % laps;
	p->placeless = false;
	tell(p);
}

uint64_t profile_ring_hear(
	struct profile_ring *p, uint64_t read_before, uint32_t written, uint32_t dropped)
{
	uint32_t behind;

	if (!written && !p->heard)
		return p->ring.read;
	if (p->placeless) {
		find_place(p, written);
		read_before = p->ring.read;
	}
	behind = written - (uint32_t)read_before;
	p->replaced |= behind > INT32_MAX;
	if (p->replaced)
		return p->ring.read;
	p->heard = true;
	hear_drops(p, dropped);
	return read_before + behind;
}

void profile_ring_give_up(struct profile_ring *p, uint64_t end)
{
	if (end <= p->ring.read)
		return;
	move(p, end, true);
	tell(p);
}
