/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vdev_abi.h - what the runtime and the virtual device agree on beyond the driver's own ioctls.
 *
 * Everything here is ours; a real device knows none of it.  docs/virtual-device.md is the prose.
 *
 * Tree below $NTRACE_DEVICE_ROOT:
 *   dev/neuronN                       character-device stand-ins on which ioctl(2) works
 *   sys/module/neuron/version         driver version text
 *   sys/class/dmi/id/                 product_name: the instance type; board_asset_tag: its id
 *   sys/class/neuron_device/neuronN/  discovery attributes (core_count, connected_devices,
 *                                     info/architecture/{arch_type,instance_type,device_name})
 *   mem.sock                          hands out device memory as memfds
 *   stats                             text, "name value" lines: what the device itself counted
 * dev and sys lie on one FUSE file system and are reached through symbolic links.
 *
 * A model runs like this: the runtime allocates device memory, writes a program image into it, and
 * binds both to queue `core` of the reserved engine with DMA_QUEUE_INIT (tx_handle = program, rx_handle
 * = binding table).  Each execution rewrites the binding table and sends DMA_QUEUE_COPY_START on that
 * queue, with tx_desc_count = low 32 bits of a launch number.  The device answers through
 * the notification ring of the core (NOTIFICATIONS_INIT_V2, type NOTIFY, engine 4) with a START and an
 * END record, and is acknowledged with DMA_ACK_COMPLETED.
 */
#ifndef NTRACE_VDEV_ABI_H
#define NTRACE_VDEV_ABI_H

#include <assert.h>
#include <stdint.h>

#include "proto/notification.h"

#define VDEV_EXEC_ENGINE 200u /* eng_id; qid = core index within the device */
#define VDEV_NQ_DEV_TYPE_CORE 0u
#define VDEV_NQ_DEV_TYPE_TOP_SP 1u /* nq_dev_id = core index: each core has one */
#define VDEV_NQ_TYPE_TRACE 0u
#define VDEV_NQ_TYPE_NOTIFY 1u
#define VDEV_NQ_TYPE_EVENT 2u
#define VDEV_NQ_TYPE_ERROR 3u
#define VDEV_NQ_TYPE_TRACE_DMA 4u
#define VDEV_NQ_TYPE_THROTTLE 5u
#define VDEV_NQ_ENGINE_INDEX 4u

/* BAR 0, byte address of the core's 64-bit device clock in picoseconds: read two 32-bit words
 * with one BAR_READ of count 2 (low word first). */
#define VDEV_BAR_CLOCK(core) (0x10000ull + 0x1000ull * (core))

/* BAR 0, a 64-bit register read the same way: bytes of memory that the device has, for all cores
 * together. */
#define VDEV_BAR_MEMORY 0x8000ull

/* BAR 0, written by a reader of a ring: how many records it has read, low 32 bits; read by one: how many the device
 * has written.  DROPPED, read: how many it did not write because the ring was full, low 32 bits.  END, written with
 * anything: the ring goes, with its memory.  Rings are numbered by VDEV_RING_NUMBER. */
#define VDEV_BAR_RING_READ(core, ring) (0x40000ull + 0x1000ull * (core) + 4ull * (ring))
#define VDEV_BAR_RING_DROPPED(core, ring) (VDEV_BAR_RING_READ(core, ring) + 0x400u)
#define VDEV_BAR_RING_END(core, ring) (VDEV_BAR_RING_READ(core, ring) + 0x800u)
#define VDEV_RING_NUMBER(top_sp, type, engine) \
	((uint64_t)(top_sp)*128u + (uint64_t)(type)*16u + (uint64_t)(engine))

/* ---- program image ------------------------------------------------------------------------ */

/* A program is a list of instructions, each for one unit of a core.  Those of a unit run one after another in the
 * order of the list; units run side by side, and wait for each other at semaphores alone.  With
 * VDEV_PROGRAM_SERIAL an instruction waits for all that stand before it. */
#define VDEV_PROGRAM_MAGIC 0x3250564eu /* "NVP2" */
#define VDEV_PROGRAM_SERIAL 1u	       /* flags */
#define VDEV_PROGRAM_COUNTED 2u	       /* `run` stands behind the binding table, 64 bits */
#define VDEV_MAX_INSTRUCTIONS 4096u
#define VDEV_MAX_BINDINGS 256u
#define VDEV_MAX_SEMAPHORES 256u
#define VDEV_MAX_RANKS 64u
/* Of all instructions of a program together: more than an hour of device time is a mistake. */
#define VDEV_EXEC_MAX_PS (3600ull * 1000000000000ull)
#define VDEV_NO_BINDING 0xffffffffu
#define VDEV_NO_SEMAPHORE 0xffffu

/* Engines have their number in the records too.  DMA queue n is VDEV_DMA + n. */
enum vdev_unit {
	VDEV_PE = 0,
	VDEV_ACT = 1,
	VDEV_POOL = 2,
	VDEV_DVE = 3,
	VDEV_SP = 4,
	VDEV_TOP_SP = 5,
	VDEV_DMA = 8,
	VDEV_UNITS = 24
};
#define VDEV_DMA_QUEUES ((unsigned)VDEV_UNITS - (unsigned)VDEV_DMA)

enum vdev_op {
	VDEV_OP_NOP = 0,
	VDEV_OP_COPY = 1,	/* dst[i] = src0[i] */
	VDEV_OP_ADD = 2,	/* dst[i] = src0[i] + src1[i] */
	VDEV_OP_BARRIER = 3,	/* TOP_SP: until each rank of the group is here */
	VDEV_OP_ALL_GATHER = 4, /* TOP_SP: dst[r * whole + i] = src0[i] of rank r */
	VDEV_OP_ALL_REDUCE =
		5, /* TOP_SP: dst[i] = sum of src0[i] over the ranks, in the order of ranks */
	VDEV_OP_FAULT = 6 /* what `fault` says happens here */
};

/* Rows of ops.def say what each of them is, by these. */
#define VDEV_ON_ENGINE 1u
#define VDEV_ON_TOP_SP 2u
#define VDEV_ON_DMA 4u
#define VDEV_OP_PLAIN 0u
#define VDEV_OP_SUMS 1u
#define VDEV_OP_GATHERS 2u /* dst has the elements of each rank */
#define VDEV_OP_MEETS 4u

/* The bit of a unit's kind; 0 for a number that no unit has. */
static inline unsigned vdev_unit_kind(unsigned unit)
{
	return unit < VDEV_TOP_SP				 ? VDEV_ON_ENGINE
	       : unit == VDEV_TOP_SP				 ? VDEV_ON_TOP_SP
	       : unit >= (unsigned)VDEV_DMA && unit < VDEV_UNITS ? VDEV_ON_DMA
								 : 0;
}

/* What can go wrong on demand; rows of faults.def say with which status and record. */
enum vdev_core_fault {
	VDEV_CORE_FAULT_NONE = 0,
#define FAULT(id, number, name, status, ends, record) VDEV_CORE_FAULT_##id = (number),
#include "runtime/vdev/faults.def"
#undef FAULT
};

/* How elements of a type (dtypes.def) are added; no part of a program. */
enum vdev_sum {
	VDEV_SUM_NONE, /* not at all */
	VDEV_SUM_WORD8,
	VDEV_SUM_WORD16,
	VDEV_SUM_WORD32,
	VDEV_SUM_WORD64,
	VDEV_SUM_FLOAT32,
	VDEV_SUM_BFLOAT16,
	VDEV_SUM_FLOAT16,
};

struct vdev_program {
	uint32_t magic;
	uint32_t flags;
	uint32_t instruction_count;
	uint32_t binding_count;
	uint32_t semaphore_count;
	/* Who takes part in collectives: programs of the same group and part.  ranks 0: no collectives. */
	uint32_t rank, ranks;
	uint32_t part; /* of a logical core: its n-th physical core */
	uint64_t group;
	/* Which of its launches this is, from 1: those of one number meet, and who comes to one that
	 * another rank has given up fails.  0: not counted. */
	uint64_t run;
	/* struct vdev_instruction instructions[instruction_count] */
};

/* Elements first to first + count of dtype (enum nrt_dtype, rows of dtypes.def) at each operand; for ALL_GATHER
 * `whole` elements are between the pieces of two ranks in dst.  Begins when its unit is free and semaphore wait
 * has reached wait_value, and takes duration_ps of device time, whatever the host needs to compute it; at
 * its end it adds post_value to semaphore post.  Semaphores are 0 at the start of each run. */
struct vdev_instruction {
	uint8_t unit, op, dtype, fault;
	uint16_t wait, post; /* VDEV_NO_SEMAPHORE */
	uint32_t wait_value, post_value;
	uint32_t src0, src1, dst; /* index of a binding, or VDEV_NO_BINDING */
	uint32_t pad;
	uint64_t first, count, whole;
	uint64_t duration_ps;
};

/* Binding table in device memory: binding_count of these.  size is checked against the memory. */
struct vdev_binding {
	uint64_t mem_handle;
	uint64_t offset;
	uint64_t size;
};

/* ---- notifications ------------------------------------------------------------------------ */

/* A core writes to the rings that exist (NOTIFICATIONS_INIT): type and engine index say which records
 * (proto/notification.h) come there.  What stands in id, hint and custom is ours.
 *
 *	ring		records			id		custom		subtype
 *	NOTIFY, 4	of a run: explicit, SP	launch		status at END	START, END
 *			model switch before it	launch		0		CUSTOM; hint 1 begins, 2 ends
 *	TRACE, 0..4	of the engine's		index of the	op		START, END
 *			instructions		instruction
 *	TRACE_DMA, n	of DMA queue n		index		op		START, END
 *	EVENT, 0..4	semaphore of the engine	index		semaphore	its new value
 *	ERROR, 0	faults			index		enum vdev_core_fault	the NRT_STATUS
 *	TopSP NOTIFY, 0	collectives: explicit	index		op		CC_START, CC_END;
 *						of the instruction		barrier: START, END
 */

/* ---- mem.sock ----------------------------------------------------------------------------- */

/* SOCK_SEQPACKET.  One request, one answer; the answer carries the memfd when status is 0.
 * The caller must be attached to the device (SO_PEERCRED) and own the handle.  The datastore of
 * another process comes as a descriptor that cannot be written through. */
struct vdev_mem_request {
	uint32_t device;
	uint32_t pad;
	uint64_t mem_handle; /* or the mmap_offset of a datastore */
};
struct vdev_mem_answer {
	int32_t status; /* 0 or -errno */
	uint32_t pad;
	uint64_t size; /* bytes of the memory; the memfd is at least as long */
};

static_assert(sizeof(struct vdev_program) == 48, "vdev_program");
static_assert(sizeof(struct vdev_instruction) == 64, "vdev_instruction");
static_assert(sizeof(struct vdev_binding) == 24, "vdev_binding");

#endif
