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

#define VDEV_EXEC_ENGINE 200u /* eng_id; qid = core index within the device */
#define VDEV_NQ_DEV_TYPE_CORE 0u
#define VDEV_NQ_TYPE_NOTIFY 1u
#define VDEV_NQ_ENGINE_INDEX 4u

/* BAR 0, byte address of the core's 64-bit device clock in picoseconds: read two 32-bit words
 * with one BAR_READ of count 2 (low word first). */
#define VDEV_BAR_CLOCK(core) (0x10000ull + 0x1000ull * (core))

/* ---- program image ------------------------------------------------------------------------ */

#define VDEV_PROGRAM_MAGIC 0x3150564eu /* "NVP1" */
#define VDEV_MAX_STEPS 4096u
#define VDEV_MAX_BINDINGS 256u
#define VDEV_NO_BINDING 0xffffffffu

enum vdev_engine { VDEV_PE = 0, VDEV_ACT = 1, VDEV_POOL = 2, VDEV_DVE = 3, VDEV_SP = 4 };
enum vdev_op { VDEV_OP_NOP = 0, VDEV_OP_COPY = 1, VDEV_OP_ADD = 2 };

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
	uint32_t step_count;
	uint32_t binding_count;
	uint32_t pad;
	/* struct vdev_step steps[step_count] */
};

/* Steps run one after another.  dst[i] = src0[i] (COPY) or src0[i] + src1[i] (ADD), `count`
 * elements of `dtype` (enum nrt_dtype, rows of dtypes.def).  The step takes duration_ps of device time, whatever the
 * host needs to compute it. */
struct vdev_step {
	uint32_t engine;
	uint32_t op;
	uint32_t dtype;
	uint32_t src0, src1, dst; /* index of a binding, or VDEV_NO_BINDING */
	uint64_t count;
	uint64_t duration_ps;
};

/* Binding table in device memory: binding_count of these.  size is checked against the memory. */
struct vdev_binding {
	uint64_t mem_handle;
	uint64_t offset;
	uint64_t size;
};

/* ---- notifications ------------------------------------------------------------------------ */

/* 16 bytes, the hardware's shape: type in bits 0..4 of byte 3, overflow bits 5 and 6, phase in bit 7.
 * The phase bit of the first lap is 1 and flips each lap; memory starts as 0. */
struct vdev_notification {
	uint16_t launch; /* low 16 bits of the launch number */
	uint8_t meta1;
	uint8_t type_phase;
	uint16_t custom;  /* low 16 bits: error of the execution, 0 = fine, else an NRT_STATUS */
	uint16_t subtype; /* enum vdev_subtype */
	uint64_t timestamp_ps;
};

enum vdev_subtype { VDEV_NOTE_START = 2, VDEV_NOTE_END = 3 };
#define VDEV_NOTE_PHASE 0x80u
#define VDEV_NOTE_TYPE_EXPLICIT_SP 22u /* "explicit" of engine SP */

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

static_assert(sizeof(struct vdev_program) == 16, "vdev_program");
static_assert(sizeof(struct vdev_step) == 40, "vdev_step");
static_assert(sizeof(struct vdev_binding) == 24, "vdev_binding");
static_assert(sizeof(struct vdev_notification) == 16, "vdev_notification");

#endif
