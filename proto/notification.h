/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notification.h - the record that a NeuronCore writes about what it did: 16 bytes, in rings and in .ntff files.
 *
 * Byte 3 has the type in bits 0 to 4, bits 5 and 6 for records that were lost, and in bit 7 the phase: 1 in the
 * first lap of a ring, then it flips each lap; memory starts as 0.  The time is the core's own, in picoseconds.  Numbers
 * of types and subtypes are the hardware's, as public descriptions give them; what stands in id, hint
 * and custom is ours (runtime/vdev/vdev_abi.h).
 */
#ifndef NTRACE_PROTO_NOTIFICATION_H
#define NTRACE_PROTO_NOTIFICATION_H

#include <assert.h>
#include <stdint.h>

struct notification {
	uint16_t id;
	uint8_t hint; /* bits 4..7 of byte 2; 0..3 are 0 */
	uint8_t type_phase;
	uint16_t custom;
	uint16_t subtype; /* enum note_subtype */
	uint64_t timestamp_ps;
};

enum note_subtype {
	NOTE_START = 2,
	NOTE_END = 3,
	NOTE_CUSTOM = 6,
	NOTE_CC_START = 7,
	NOTE_CC_END = 8
};
#define NOTE_HINT(n) ((uint8_t)((n) << 4))
#define NOTE_HINT_SWITCH_BEGINS 1u
#define NOTE_HINT_SWITCH_ENDS 2u
#define NOTE_SW_OVERFLOW 0x20u /* records before this one were dropped */
#define NOTE_HW_OVERFLOW 0x40u /* this one was written over one that nobody had read */
#define NOTE_PHASE 0x80u
#define NOTE_TYPE(type_phase) ((unsigned)((type_phase)&0x1fu))
#define NOTE_TYPE_DMA 2u
#define NOTE_TYPE_ERROR 3u
#define NOTE_TYPE_INST_START(engine) (4u + 4u * (engine))
#define NOTE_TYPE_INST_END(engine) (5u + 4u * (engine))
#define NOTE_TYPE_EXPLICIT(engine) (6u + 4u * (engine))
#define NOTE_TYPE_SEMAPHORE(engine) (7u + 4u * (engine))
#define NOTE_TYPE_EXPLICIT_SP NOTE_TYPE_EXPLICIT(4u)
#define NOTE_TYPE_TPB_ERROR 0x1fu

static_assert(sizeof(struct notification) == 16, "notification");

#endif
