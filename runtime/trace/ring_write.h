/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring_write.h - the steps of a writer, inline: ring.c says why they are right.
 *
 * For ring.c and for trace.c, whose callers' arguments go into the slot without a stop in memory.
 */
#ifndef NTRACE_TRACE_RING_WRITE_H
#define NTRACE_TRACE_RING_WRITE_H

#include <string.h>

#include "runtime/trace/ring.h"

#define RING_TRACK_SEQUENCE ((1ull << TRACK_LANE_SHIFT) - 1)
#define RING_NEAR 4u /* slots ahead of the one that is written */
#define RING_FAR 16u /* ahead of these */
#define RING_INLINE static inline __attribute__((always_inline))

RING_INLINE struct ring_slot *ring_slot_of(
	const struct ring_writer *w, uint64_t pos, uint64_t epoch)
{
	uint64_t highest = atomic_load_explicit(&w->highest, memory_order_relaxed), index, first;
	uint32_t segment;

	/* It comes from memory that others have, and may have got writable: it decides on no address. */
	epoch = epoch < highest ? epoch : highest;
	index = pos & (((uint64_t)w->capacity << epoch) - 1);
	segment = ring_segment_of(index, w->capacity, &first);
	return &w->slots[segment][index - first];
}

RING_INLINE void ring_put(_Atomic uint64_t *word, uint64_t value)
{
	atomic_store_explicit(word, value, memory_order_release);
}

RING_INLINE void ring_payload_store(_Atomic uint64_t *to, const void *payload, size_t size)
{
	const char *from = payload;
	uint64_t word;

#pragma GCC unroll 5
	for (size_t i = 0; i < TRACE_PAYLOAD_BYTES / 8; i++) {
		word = 0;
		if (size >= 8 * i + 8)
			memcpy(&word, from + 8 * i, 8);
		else if (size > 8 * i)
			memcpy(&word, from + 8 * i, size - 8 * i);
		ring_put(&to[i], word);
	}
}

static_assert(offsetof(struct trace_record, status) == 4, "word 0");
static_assert(offsetof(struct trace_record, data) == 6 * 8, "word 6");
static_assert(offsetof(struct trace_record, has_nrta_seq_id) == 13 * 8, "word 13");
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "two fields in a word");

/* The words of a trace_record. */
RING_INLINE void ring_record_store(
	struct ring_slot *slot, const struct ring_event *e, uint64_t id, uint64_t tracking)
{
	_Atomic uint64_t *to = (_Atomic uint64_t *)(void *)&slot->record;

	ring_put(&slot->wanted, e->wanted | (uint64_t)e->subscription << RING_WANTED_SHIFT);
	ring_put(&to[0], e->type | (uint64_t)e->status << 32);
	ring_put(&to[1], e->thread_id);
	ring_put(&to[2], id);
	ring_put(&to[3], id);
	ring_put(&to[4], tracking);
	ring_put(&to[5], e->timestamp_ns);
	ring_payload_store(&to[6], e->payload, e->size);
	ring_put(&to[11], e->phase | (uint64_t)e->nc_idx << 32);
	ring_put(&to[12], e->nrta_seq_id);
	ring_put(&to[13], e->has_nrta_seq_id);
}

/*
 * The slots ahead, for a ring is larger than the caches that are near: into the second level early, and to be written
 * into the first.  Together they save 3 ns of an event's 30, the far one 2 of them.  Behind the end of a segment
 * they are of no use, and no harm.
 */
RING_INLINE void ring_prefetch(uintptr_t slot)
{
	uintptr_t near = slot + RING_NEAR * sizeof(struct ring_slot);
	uintptr_t far = near + RING_FAR * sizeof(struct ring_slot);

	for (size_t line = 0; line < sizeof(struct ring_slot); line += 64) {
#ifdef __x86_64__
		/* The builtin knows it only of newer processors; older ones take it for nothing. */
		__asm__ volatile("prefetchw %0" : : "m"(*(const char *)(near + line)));
#else
		__builtin_prefetch((const void *)(near + line), 1);
#endif
		__builtin_prefetch((const void *)(far + line), 0, 2);
	}
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

RING_INLINE uint64_t ring_step_add(_Atomic uint64_t *word, bool alone)
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

RING_INLINE bool ring_step_exchange(
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

RING_INLINE uint64_t ring_write(struct ring_writer *w, const struct ring_event *e, bool alone)
{
	uint64_t tracking = e->tracking_id, pos, seen, id;
	struct ring_slot *slot;

	(void)ring_step_add(&w->head->emitted, alone);
	pos = ring_step_add(&w->head->head, alone);
	slot = ring_slot_of(w, pos & RING_POS_MASK, pos >> RING_POS_BITS);
	pos &= RING_POS_MASK;
	ring_prefetch((uintptr_t)slot);
	id = w->lane_bits + (pos & RING_TRACK_SEQUENCE) + 1;
	if (tracking == 0)
		tracking = id + w->core_bits;

	seen = atomic_load_explicit(&slot->stamp, memory_order_acquire);
	if ((seen & 1) != 0 || seen > 2 * pos ||
		!ring_step_exchange(&slot->stamp, &seen, 2 * pos + 1, alone)) {
		(void)ring_step_add(&w->head->slot_busy, alone);
		return 0;
	}
	ring_record_store(slot, e, id, tracking);
	atomic_store_explicit(&slot->stamp, 2 * pos + 2, memory_order_release);
	return tracking;
}

/* Begins the epoch that ring_double_later left. */
void ring_begin_epoch(struct ring_writer *w, uint32_t epoch);

/* ring_emit_alone. */
RING_INLINE uint64_t ring_write_alone(struct ring_writer *w, const struct ring_event *e)
{
	uint32_t epoch = atomic_load_explicit(&w->next_epoch, memory_order_acquire);

	if (__builtin_expect(epoch != 0, 0))
		ring_begin_epoch(w, epoch);
	return ring_write(w, e, true);
}

#endif
