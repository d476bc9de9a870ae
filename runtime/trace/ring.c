/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring.c - the writer's side of a ring: one function, and why it is right.
 *
 * Many writers, one of them possibly a signal handler that interrupted another, put records into
 * a ring without a lock; a reader in another process takes them out without writing a byte.
 *
 * Position.  fetch_add on head gives each writer a position p of its own; its slot is
 * p mod capacity.  Positions are never given back, so head counts attempts.
 *
 * Ownership of a slot.  The stamp says which position the slot holds: 2q+1 = position q is being
 * written, 2q+2 = position q is whole.  The writer of p takes the slot by compare-exchange from
 * the value that it saw to 2p+1.  It gives up (slot_busy) when
 *   - the stamp is odd: a writer of an earlier lap stalled in the middle.  Waiting for it would
 *     be a lock, and in a signal handler a deadlock; overwriting under it would tear a record;
 *   - the stamp is newer than p: this writer stalled between its two steps and was lapped;
 *   - the exchange fails: another writer of the same slot was quicker, which means the same.
 * So at most one writer stores into a slot at a time.
 *
 * Whole records.  The record is copied word by word with release stores behind the odd stamp, and
 * the even stamp is a release store behind the record.  The reader loads the stamp, copies
 * with acquire loads, loads the stamp again.  Had it seen any word of a later record, the acquire
 * of that word would make the odd stamp before it visible, and the second look differs.  Words
 * with acquire and release instead of a block copy between fences: on x86 these are plain moves, and the
 * thread sanitizer understands them.
 *
 * Counting.  `emitted` is incremented first and by its own instruction; nothing derives from
 * head.  A writer killed between the two steps leaves emitted one ahead, which the reader
 * books as abandoned.  Each count is released behind the one before it: a reader that loads them in
 * reverse never sees slot_busy > head or head > emitted, and believes no process that shows it so.
 */
#include "runtime/trace/ring.h"

#include <string.h>
#include <unistd.h>

#define RECORD_WORDS (sizeof(struct trace_record) / sizeof(uint64_t))
#define PREFETCH 4u /* slots; a ring is larger than the caches that are near */

uint64_t ring_bytes(uint32_t capacity)
{
	uint64_t bytes = sizeof(struct ring_head) + (uint64_t)capacity * sizeof(struct ring_slot);
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	return (bytes + page - 1) / page * page;
}

static void record_store(struct ring_slot *slot, const struct trace_record *r, uint64_t wanted)
{
	_Atomic uint64_t *to = (_Atomic uint64_t *)(void *)&slot->record;
	uint64_t words[RECORD_WORDS];

	memcpy(words, r, sizeof(words));
	atomic_store_explicit(&slot->wanted, wanted, memory_order_release);
	for (size_t i = 0; i < RECORD_WORDS; i++)
		atomic_store_explicit(&to[i], words[i], memory_order_release);
}

uint64_t ring_emit(struct ring_writer *w, struct trace_record *r, uint32_t wanted)
{
	struct ring_slot *slot, *ahead;
	uint64_t pos, seen;

	atomic_fetch_add_explicit(&w->head->emitted, 1, memory_order_relaxed);
	pos = atomic_fetch_add_explicit(&w->head->head, 1, memory_order_release);
	slot = &w->slots[pos & (w->capacity - 1)];
	ahead = &w->slots[(pos + PREFETCH) & (w->capacity - 1)];
	__builtin_prefetch(ahead, 1);
	__builtin_prefetch((const char *)ahead + 64, 1);
	r->id = r->nc_local_id = pos + 1;
	if (r->tracking_id == 0)
		r->tracking_id = r->id | w->track_bits;

	seen = atomic_load_explicit(&slot->stamp, memory_order_acquire);
	if ((seen & 1) != 0 || seen > 2 * pos ||
		!atomic_compare_exchange_strong_explicit(&slot->stamp, &seen, 2 * pos + 1,
			memory_order_acq_rel, memory_order_relaxed)) {
		atomic_fetch_add_explicit(&w->head->slot_busy, 1, memory_order_release);
		return 0;
	}
	record_store(slot, r, wanted);
	atomic_store_explicit(&slot->stamp, 2 * pos + 2, memory_order_release);
	return r->tracking_id;
}
