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

static uint64_t load_word(const struct notify_ring *r, uint32_t record, unsigned word)
{
	const _Atomic uint64_t *words = r->memory;

	return atomic_load_explicit(&words[(uint64_t)record * 2 + word], memory_order_acquire);
}

static bool phase_of(const struct notify_ring *r, uint32_t record)
{
	return (load_word(r, record, 0) & PHASE_BIT) != 0;
}

void notify_attach(struct notify_ring *r, void *memory, uint64_t bytes)
{
	bool first;

	r->memory = memory;
	r->bytes = bytes;
	r->count = (uint32_t)(bytes / sizeof(struct notification));
	/* The current lap wrote the records that have the phase of the first one. */
	first = phase_of(r, 0);
	r->at = 0;
	while (r->at < r->count && phase_of(r, r->at) == first)
		r->at++;
	r->phase = first;
	r->from_start = load_word(r, 0, 0) == 0 && load_word(r, 0, 1) == 0;
	r->read = r->told = 0;
	if (r->at == r->count) { /* no lap yet, or exactly at the end of one */
		r->at = 0;
		r->phase = !first;
	}
	r->doubt = false;
	r->last_ps = load_word(r, (r->at + r->count - 1) % r->count, 1);
}

void notify_place(struct notify_ring *r, uint64_t written)
{
	r->read = written;
	r->at = (uint32_t)(written % r->count);
	r->phase = written / r->count % 2 == 0;
	r->doubt = false;
	r->last_ps = load_word(r, (r->at + r->count - 1) % r->count, 1);
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
	r->last_ps = words[1];
	r->at++;
	r->read++;
	if (r->at == r->count) {
		r->at = 0;
		r->phase = !r->phase;
	}
	return true;
}
