/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring.c - the writer's side of a ring, and why it is right.
 *
 * Many writers, one of them possibly a signal handler that interrupted another, put records into
 * a ring without a lock; a reader in another process takes them out without writing a byte.
 *
 * Position.  fetch_add on head gives each writer a position p of its own, and the epoch it belongs
 * to; its slot is p mod (capacity << epoch).  Positions are never given back, so head counts attempts.
 *
 * Lanes of one thread.  The same steps in the same order, each one instruction but not locked; only
 * the thread's own signal handlers can come between them, and for them nothing changes.  A second thread would
 * lose counts there: a lane changes its owner only when the thread is gone.
 *
 * Doubling.  The owner of the file maps the new segment, notes the position it begins at, and adds the epoch to the
 * head by compare-exchange from that very position: whoever gets a later one sees the segment, whoever
 * got an earlier one goes on in the old slots.  From then on positions whose index lies in the old
 * segments overwrite them in the order in which they would have, the others fill the new one.  In a lane of
 * one thread that thread must do it.
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
#include "runtime/trace/ring_write.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#define DOUBLE_TRIES 100000

uint64_t ring_bytes(uint32_t capacity)
{
	uint64_t bytes = sizeof(struct ring_head) + (uint64_t)capacity * sizeof(struct ring_slot);
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	return (bytes + page - 1) / page * page;
}

uint64_t ring_segment_bytes(uint32_t capacity, uint32_t epoch)
{
	uint64_t bytes = ((uint64_t)capacity << (epoch - 1)) * sizeof(struct ring_slot);
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	return (bytes + page - 1) / page * page;
}

/* ---- events ---------------------------------------------------------------------------------- */

uint64_t ring_emit(struct ring_writer *w, const struct ring_event *e)
{
	return ring_write(w, e, false);
}

#define CLAIMED \
	0x80000000u /* in next_epoch: is being begun, by this thread below a signal handler */

/* Adds an epoch to the head at the very position that is noted as its start. */
static bool add_epoch(struct ring_writer *w, uint64_t epoch, int tries, bool alone)
{
	struct ring_segment *segment = &w->head->segments[epoch];
	uint64_t head = atomic_load_explicit(&w->head->head, memory_order_relaxed);
	bool done = false;

	for (int i = 0; i < tries && !done; i++) {
		atomic_store_explicit(&segment->start, head & RING_POS_MASK, memory_order_relaxed);
		done = ring_step_exchange(
			&w->head->head, &head, head + (1ull << RING_POS_BITS), alone);
	}
	return done;
}

/* A signal handler that finds the claim goes on in the old epoch; one that comes before it does it all. */
void ring_begin_epoch(struct ring_writer *w, uint32_t epoch)
{
	if ((epoch & CLAIMED) ||
		!atomic_compare_exchange_strong(&w->next_epoch, &epoch, epoch | CLAIMED))
		return;
	while (!add_epoch(w, epoch, DOUBLE_TRIES, true))
		continue;
	atomic_store_explicit(&w->epoch, epoch, memory_order_relaxed);
	atomic_store_explicit(&w->next_epoch, 0, memory_order_release);
}

uint64_t ring_emit_alone(struct ring_writer *w, const struct ring_event *e)
{
	return ring_write_alone(w, e);
}

/* ---- the owner's side ------------------------------------------------------------------------ */

static uint32_t add_segment(struct ring_writer *w, struct ring_slot *slots, uint64_t offset)
{
	uint32_t epoch = atomic_load_explicit(&w->epoch, memory_order_relaxed) + 1;

	w->slots[epoch] = slots;
	atomic_store_explicit(&w->head->segments[epoch].offset, offset, memory_order_relaxed);
	/* A writer that gets a position of the epoch sees this: the head comes later. */
	atomic_store_explicit(&w->highest, epoch, memory_order_release);
	return epoch;
}

int ring_double(struct ring_writer *w, struct ring_slot *slots, uint64_t offset)
{
	uint32_t epoch = add_segment(w, slots, offset);

	if (!add_epoch(w, epoch, DOUBLE_TRIES, false))
		return -EBUSY;
	atomic_store_explicit(&w->epoch, epoch, memory_order_relaxed);
	return 0;
}

void ring_double_later(struct ring_writer *w, struct ring_slot *slots, uint64_t offset)
{
	uint32_t epoch = add_segment(w, slots, offset);

	atomic_store_explicit(&w->next_epoch, epoch, memory_order_release);
}

uint32_t ring_recent_thread(const struct ring_writer *w, uint64_t n)
{
	uint64_t head = atomic_load_explicit(&w->head->head, memory_order_acquire);
	const _Atomic uint64_t *words;

	if (n > (head & RING_POS_MASK) || n > w->capacity)
		return 0;
	words = (const _Atomic uint64_t *)(const void *)&ring_slot_of(
		w, (head & RING_POS_MASK) - n, head >> RING_POS_BITS)
			->record;
	return (uint32_t)atomic_load_explicit(&words[1], memory_order_relaxed);
}
