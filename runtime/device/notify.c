/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notify.c - notification rings.
 *
 * The device stores the second word of a record (its time), then the first (with the phase bit); an acquire
 * load of the first therefore makes the whole record visible.
 */
#include "runtime/device/notify.h"

#include <stdatomic.h>
#include <string.h>

#define PHASE_BIT ((uint64_t)NOTE_PHASE << 24) /* byte 3 of the first word */
#define OVER_BIT ((uint64_t)NOTE_HW_OVERFLOW << 24)
#define GAP_BIT ((uint64_t)NOTE_SW_OVERFLOW << 24)

static uint64_t load_word(const struct notify_ring *r, uint32_t record, unsigned word)
{
	const _Atomic uint64_t *words = r->memory;

	return atomic_load_explicit(&words[(uint64_t)record * 2 + word], memory_order_acquire);
}

static bool phase_of(const struct notify_ring *r, uint32_t record)
{
	return (load_word(r, record, 0) & PHASE_BIT) != 0;
}

static uint32_t before(const struct notify_ring *r)
{
	return (r->at ? r->at : r->count) - 1;
}

static void remember(struct notify_ring *r)
{
	r->last_head = load_word(r, before(r), 0);
	r->last_ps = load_word(r, before(r), 1);
}

static bool is_blank(const struct notify_ring *r, uint32_t record)
{
	return load_word(r, record, 0) == 0 && load_word(r, record, 1) == 0;
}

/* The current lap wrote the records that have the phase of the first one. */
static void find_place(struct notify_ring *r)
{
	bool first = phase_of(r, 0);

	while (r->at < r->count && phase_of(r, r->at) == first)
		r->at++;
	r->phase = first;
	if (r->at == r->count) { /* exactly at the end of a lap */
		r->at = 0;
		r->phase = !first;
	}
}

void notify_attach(struct notify_ring *r, void *memory, uint64_t bytes)
{
	r->memory = memory;
	r->bytes = bytes;
	r->count = (uint32_t)(bytes / sizeof(struct notification));
	r->at = 0;
	r->phase = true;
	r->read = r->told = 0;
	/* A ring is written from its first record on; one that is new is not looked through, for that would make memory
	 * of all its pages. */
	r->from_start = is_blank(r, 0) && is_blank(r, r->count - 1);
	if (!r->from_start)
		find_place(r);
	r->doubt = false;
	remember(r);
}

void notify_place(struct notify_ring *r, uint64_t written)
{
	r->read = written;
	r->at = (uint32_t)(written % r->count);
	r->phase = written / r->count % 2 == 0;
	r->doubt = false;
	remember(r);
	/* Of a later lap already? */
	if (((r->last_head & PHASE_BIT) != 0) != (written > 0 && (written - 1) / r->count % 2 == 0))
		r->last_head = ~r->last_head;
}

/* What stands in the next place should be a lap old, older than the last record. */
static bool is_newer(const struct notify_ring *r, uint64_t word)
{
	uint64_t ps = load_word(r, r->at, 1);

	return (word || ps) && ps >= r->last_ps;
}

bool notify_next(struct notify_ring *r, struct notification *ret)
{
	uint64_t words[2];

	words[0] = load_word(r, r->at, 0);
	if (((words[0] & PHASE_BIT) != 0) != r->phase) {
		r->doubt |= is_newer(r, words[0]);
		return false;
	}
	words[1] = load_word(r, r->at, 1);
	memcpy(ret, words, sizeof(*ret));
	r->doubt |= (ret->type_phase & NOTE_HW_OVERFLOW) != 0;
	r->last_head = words[0];
	r->last_ps = words[1];
	r->at++;
	r->read++;
	if (r->at == r->count) {
		r->at = 0;
		r->phase = !r->phase;
	}
	return true;
}

/* ---- many at once ------------------------------------------------------------------------- */

static bool overrun(const struct notify_ring *r)
{
	return load_word(r, before(r), 1) != r->last_ps ||
	       load_word(r, before(r), 0) != r->last_head;
}

bool notify_has(const struct notify_ring *r)
{
	return phase_of(r, r->at) == r->phase || overrun(r);
}

/* Records of one lap, from `at` on.  What is counted stays in registers: this is where the time goes. */
static uint32_t copy_lap(const struct notify_ring *r, uint32_t at, bool phase,
	struct notification *to, uint32_t max, struct notify_batch *b)
{
	const _Atomic uint64_t *from = (const _Atomic uint64_t *)r->memory + 2ull * at;
	uint64_t want = phase ? PHASE_BIT : 0, head = 0, words[2] = {0};
	uint32_t n = 0, gaps = 0, overs = 0;

	for (; n < max; n++) {
		head = atomic_load_explicit(&from[2ull * n], memory_order_acquire);
		if ((head & PHASE_BIT) != want)
			break;
		words[0] = head;
		words[1] = atomic_load_explicit(&from[2ull * n + 1], memory_order_acquire);
		gaps += (head & GAP_BIT) != 0;
		overs += (head & OVER_BIT) != 0;
		if (to)
			memcpy(to + n, words, sizeof(words));
	}
	if (n)
		memcpy(b->last, words, sizeof(words));
	b->gaps += gaps;
	b->overs += overs;
	return n;
}

void notify_copy(const struct notify_ring *r, struct notification *to, uint32_t max,
	struct notify_batch *ret)
{
	uint32_t end = r->count - r->at, first = max < end ? max : end;

	*ret = (struct notify_batch){0};
	ret->count = copy_lap(r, r->at, r->phase, to, first, ret);
	if (ret->count == end && max > end) {
		uint32_t more = max - end < r->at ? max - end : r->at;

		ret->count += copy_lap(r, 0, !r->phase, to ? to + end : NULL, more, ret);
	}
	ret->overrun = overrun(r);
}

void notify_accept(struct notify_ring *r, const struct notify_batch *b)
{
	if (!b->count)
		return;
	r->last_head = b->last[0];
	r->last_ps = b->last[1];
	r->read += b->count;
	r->at += b->count;
	if (r->at >= r->count) {
		r->at -= r->count;
		r->phase = !r->phase;
	}
}

uint64_t notify_guess(const struct notify_ring *r, uint64_t least)
{
	bool first = phase_of(r, 0);
	uint32_t same = 0, other = r->count;
	uint64_t laps = 2ull * r->count, place;

	while (other - same > 1) {
		uint32_t middle = same + (other - same) / 2;

		if (phase_of(r, middle) == first)
			same = middle;
		else
			other = middle;
	}
	place = (first ? 0 : r->count) + (uint64_t)other;
	return least + (place - least) % laps;
}
