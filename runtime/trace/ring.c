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
#include "runtime/trace/ring.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#define TRACK_SEQUENCE ((1ull << TRACK_LANE_SHIFT) - 1)
#define DOUBLE_TRIES 100000
#define PREFETCH 4u /* slots; a ring is larger than the caches that are near */

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

static struct ring_slot *slot_of(const struct ring_writer *w, uint64_t pos, uint64_t epoch)
{
	uint64_t index = pos & (((uint64_t)w->capacity << epoch) - 1), first;
	uint32_t segment = ring_segment_of(index, w->capacity, &first);

	return &w->slots[segment][index - first];
}

static void put(_Atomic uint64_t *word, uint64_t value)
{
	atomic_store_explicit(word, value, memory_order_release);
}

static void payload_store(_Atomic uint64_t *to, const void *payload, size_t size)
{
	const char *from = payload;
	uint64_t word;

	for (size_t i = 0; i < TRACE_PAYLOAD_BYTES / 8; i++) {
		word = 0;
		if (size >= 8 * i + 8)
			memcpy(&word, from + 8 * i, 8);
		else if (size > 8 * i)
			memcpy(&word, from + 8 * i, size - 8 * i);
		put(&to[i], word);
	}
}

static_assert(offsetof(struct trace_record, status) == 4, "word 0");
static_assert(offsetof(struct trace_record, data) == 6 * 8, "word 6");
static_assert(offsetof(struct trace_record, has_nrta_seq_id) == 13 * 8, "word 13");
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "two fields in a word");

/* The words of a trace_record. */
static void record_store(
	struct ring_slot *slot, const struct ring_event *e, uint64_t id, uint64_t tracking)
{
	_Atomic uint64_t *to = (_Atomic uint64_t *)(void *)&slot->record;

	atomic_store_explicit(&slot->wanted, e->wanted, memory_order_release);
	put(&to[0], e->type | (uint64_t)e->status << 32);
	put(&to[1], e->thread_id);
	put(&to[2], id);
	put(&to[3], id);
	put(&to[4], tracking);
	put(&to[5], e->timestamp_ns);
	payload_store(&to[6], e->payload, e->size);
	put(&to[11], e->phase | (uint64_t)e->nc_idx << 32);
	put(&to[12], e->nrta_seq_id);
	put(&to[13], e->has_nrta_seq_id);
}

/* Behind the end of a segment this is of no use, and no harm. */
static void prefetch(uintptr_t at)
{
	__builtin_prefetch((const void *)at, 1);
	__builtin_prefetch((const void *)(at + 64), 1);
}

/* ---- steps that nobody may come between ------------------------------------------------------- */

/*
 * `alone`: only this thread and its signal handlers write.  One instruction is then enough, without the
 * lock that makes it six times dearer, for a signal comes between instructions.  ThreadSanitizer does not see
 * such instructions.
 */
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#define ONE_INSTRUCTION 1
#else
#define ONE_INSTRUCTION 0
#endif

static inline uint64_t step_add(_Atomic uint64_t *word, bool alone)
{
#if ONE_INSTRUCTION
	if (alone) {
		uint64_t n = 1;

		__asm__ volatile("xaddq %0, %1"
				 : "+r"(n), "+m"(*(uint64_t *)word)
				 :
				 : "memory", "cc");
		return n;
	}
#endif
	(void)alone;
	return atomic_fetch_add_explicit(word, 1, memory_order_acq_rel);
}

static inline bool step_exchange(
	_Atomic uint64_t *word, uint64_t *expected, uint64_t desired, bool alone)
{
#if ONE_INSTRUCTION
	if (alone) {
		bool done;

		__asm__ volatile("cmpxchgq %3, %1"
				 : "+a"(*expected), "+m"(*(uint64_t *)word), "=@ccz"(done)
				 : "r"(desired)
				 : "memory");
		return done;
	}
#endif
	(void)alone;
	return atomic_compare_exchange_strong_explicit(
		word, expected, desired, memory_order_acq_rel, memory_order_acquire);
}

/* ---- events ---------------------------------------------------------------------------------- */

static inline __attribute__((always_inline)) uint64_t emit(
	struct ring_writer *w, const struct ring_event *e, bool alone)
{
	uint64_t tracking = e->tracking_id, pos, seen, id;
	struct ring_slot *slot;

	(void)step_add(&w->head->emitted, alone);
	pos = step_add(&w->head->head, alone);
	slot = slot_of(w, pos & RING_POS_MASK, pos >> RING_POS_BITS);
	pos &= RING_POS_MASK;
	prefetch((uintptr_t)(slot + PREFETCH));
	id = w->lane_bits + (pos & TRACK_SEQUENCE) + 1;
	if (tracking == 0)
		tracking = id + w->core_bits;

	seen = atomic_load_explicit(&slot->stamp, memory_order_acquire);
	if ((seen & 1) != 0 || seen > 2 * pos ||
		!step_exchange(&slot->stamp, &seen, 2 * pos + 1, alone)) {
		(void)step_add(&w->head->slot_busy, alone);
		return 0;
	}
	record_store(slot, e, id, tracking);
	atomic_store_explicit(&slot->stamp, 2 * pos + 2, memory_order_release);
	return tracking;
}

uint64_t ring_emit(struct ring_writer *w, const struct ring_event *e)
{
	return emit(w, e, false);
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
		done = step_exchange(&w->head->head, &head, head + (1ull << RING_POS_BITS), alone);
	}
	return done;
}

/* A signal handler that finds the claim goes on in the old epoch; one that comes before it does it all. */
static void begin_epoch(struct ring_writer *w, uint32_t epoch)
{
	if ((epoch & CLAIMED) ||
		!atomic_compare_exchange_strong(&w->next_epoch, &epoch, epoch | CLAIMED))
		return;
	while (!add_epoch(w, epoch, DOUBLE_TRIES, true))
		continue;
	atomic_store_explicit(&w->next_epoch, 0, memory_order_release);
}

uint64_t ring_emit_alone(struct ring_writer *w, const struct ring_event *e)
{
	uint32_t epoch = atomic_load_explicit(&w->next_epoch, memory_order_acquire);

	if (__builtin_expect(epoch != 0, 0))
		begin_epoch(w, epoch);
	return emit(w, e, true);
}

/* ---- the owner's side ------------------------------------------------------------------------ */

static uint32_t add_segment(struct ring_writer *w, struct ring_slot *slots, uint64_t offset)
{
	uint64_t head = atomic_load_explicit(&w->head->head, memory_order_relaxed);
	uint32_t epoch = (uint32_t)(head >> RING_POS_BITS) + 1;

	w->slots[epoch] = slots;
	atomic_store_explicit(&w->head->segments[epoch].offset, offset, memory_order_relaxed);
	return epoch;
}

int ring_double(struct ring_writer *w, struct ring_slot *slots, uint64_t offset)
{
	return add_epoch(w, add_segment(w, slots, offset), DOUBLE_TRIES, false) ? 0 : -EBUSY;
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
	words = (const _Atomic uint64_t *)(const void *)&slot_of(
		w, (head & RING_POS_MASK) - n, head >> RING_POS_BITS)
			->record;
	return (uint32_t)atomic_load_explicit(&words[1], memory_order_relaxed);
}
