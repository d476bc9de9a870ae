/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program.h - a launch: a program image and its bindings, read from device memory and checked.
 *
 * Everything is copied or referenced once, when the launch is submitted.  After that nothing that
 * the client does to its memory changes what runs, and nothing it wrote is trusted without a
 * check: an instruction that passed vdev_instruction_check() touches only the bytes of its
 * bindings.
 */
#ifndef NTRACE_VDEV_PROGRAM_H
#define NTRACE_VDEV_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/vdev/device.h"
#include "runtime/vdev/vdev_abi.h"

struct vdev_bound {
	struct vdev_memory *memory; /* a reference; NULL: unused binding */
	uint8_t *data;
	uint64_t size;
};

struct vdev_launch {
	struct vdev_launch *next;
	uint32_t number;
	pid_t owner;
	uint16_t status;	     /* 0, or why nothing is computed */
	bool switched;		     /* the core ran another program before */
	struct vdev_memory *program; /* a reference: where it was read from */
	struct vdev_program header;
	struct vdev_instruction *list; /* header.instruction_count of them */
	uint32_t bound_count;
	struct vdev_bound bounds[VDEV_MAX_BINDINGS];
};

/* Checks an instruction against header and bindings of its launch: 0 or -EINVAL. */
int vdev_instruction_check(
	const struct vdev_instruction *instruction, const struct vdev_launch *launch);
/* Computes the next piece of a checked COPY or ADD, of *done elements so far; nothing for the others.  Short, so
 * that a run can be ended between pieces.  False when nothing is left. */
bool vdev_instruction_run(const struct vdev_instruction *instruction,
	const struct vdev_bound *bounds, uint64_t *done);

/* Reads program and bindings; device->lock held.  A launch with a bad program is a launch with a
 * status. NULL: no memory. */
struct vdev_launch *vdev_launch_read(struct vdev_device *device, pid_t owner,
	struct vdev_memory *program, const struct vdev_memory *bindings);
void vdev_launch_free(struct vdev_launch *launch);

#endif
