/* SPDX-License-Identifier: Apache-2.0 */
/* rings.c - notification rings; see rings.h. */
#include "runtime/vdev/rings.h"

#include <errno.h>
#include <string.h>

#include "runtime/vdev/memory.h"

#define TYPE_MASK 0x1fu

void vdev_ring_bind(struct vdev_ring *ring, struct vdev_memory *memory)
{
	vdev_memory_put(ring->memory);
	*ring = (struct vdev_ring){0};
	if (!memory)
		return;
	ring->memory = vdev_memory_ref(memory);
	ring->slots = memory->size / sizeof(struct notification);
}

void vdev_rings_clear(struct vdev_rings *rings)
{
	for (unsigned t = 0; t < VDEV_NQ_TYPES; t++) {
		for (unsigned e = 0; e < VDEV_NQ_ENGINES; e++) {
			vdev_ring_bind(&rings->core[t][e], NULL);
			vdev_ring_bind(&rings->top_sp[t][e], NULL);
		}
	}
}

static bool is_full(const struct vdev_ring *ring, enum vdev_ring_full full)
{
	return (ring->told || full != VDEV_RING_OVERWRITE) &&
	       ring->written - ring->read >= ring->slots;
}

static void store(struct vdev_ring *ring, struct notification record)
{
	uint64_t lap = ring->written / ring->slots, head;
	uint8_t *slot = ring->memory->map + ring->written % ring->slots * sizeof(record);

	ring->written++;
	record.type_phase |= lap & 1 ? 0 : NOTE_PHASE;
	/* The reader waits for the phase bit, so the word that holds it comes last; who sees the first word of a record
	 * must see the record before it. */
	memcpy(&head, &record.timestamp_ps, sizeof(head));
	__atomic_store_n((uint64_t *)(void *)(slot + 8), head, __ATOMIC_RELEASE);
	memcpy(&head, &record, sizeof(head));
	__atomic_store_n((uint64_t *)(void *)slot, head, __ATOMIC_RELEASE);
}

int vdev_ring_write(struct vdev_ring *ring, struct notification record, enum vdev_ring_full full,
	struct vdev_ring_losses *losses)
{
	if (!ring->memory)
		return 0;
	record.type_phase &= TYPE_MASK;
	if (is_full(ring, full)) {
		if (full == VDEV_RING_FAIL)
			return -ENOBUFS;
		if (full == VDEV_RING_DROP) {
			ring->dropped = true;
			ring->drops++;
			losses->dropped++;
			return 0;
		}
		record.type_phase |= NOTE_HW_OVERFLOW;
		losses->overwritten++;
	}
	if (ring->dropped)
		record.type_phase |= NOTE_SW_OVERFLOW;
	ring->dropped = false;
	store(ring, record);
	return 0;
}

static void read_up_to(struct vdev_ring *ring, uint64_t position)
{
	ring->told = true;
	if (position > ring->read && position <= ring->written)
		ring->read = position;
}

void vdev_ring_read(struct vdev_ring *ring, uint32_t records)
{
	uint64_t unread = (uint32_t)((uint32_t)ring->written - records);

	if (ring->memory && unread <= ring->written)
		read_up_to(ring, ring->written - unread);
}

struct vdev_ring *vdev_rings_find(struct vdev_rings *rings, uint64_t number)
{
	uint64_t type = number % 128 / 16, engine = number % 16;

	if (number >= 256 || type >= VDEV_NQ_TYPES)
		return NULL;
	return number >= 128 ? &rings->top_sp[type][engine] : &rings->core[type][engine];
}

void vdev_rings_run_ended(struct vdev_rings *rings, uint64_t n)
{
	rings->end_of_run[n % VDEV_MAX_UNACKNOWLEDGED] = vdev_run_ring(rings)->written;
}

void vdev_rings_acknowledge(struct vdev_rings *rings, uint64_t n, uint64_t completed)
{
	struct vdev_ring *ring = vdev_run_ring(rings);

	if (ring->memory && n && completed - n < VDEV_MAX_UNACKNOWLEDGED)
		read_up_to(ring, rings->end_of_run[n % VDEV_MAX_UNACKNOWLEDGED]);
}
