/* SPDX-License-Identifier: Apache-2.0 */
/* program.c - reading and checking of program images; see program.h. */
#include "runtime/vdev/program.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <nrt/nrt_status.h>

#include "runtime/vdev/arithmetic.h"
#include "runtime/vdev/core_faults.h"
#include "runtime/vdev/memory.h"

#define PIECE_ELEMENTS 262144u

/* ---- checks ------------------------------------------------------------------------------ */

static const struct op {
	bool known;
	uint8_t operands, units, kind;
} ops[] = {
#define OP(id, name, words, where, kind) [VDEV_OP_##id] = {true, words, where, kind},
#include "runtime/vdev/ops.def"
#undef OP
};

static bool semaphore_exists(uint16_t semaphore, const struct vdev_launch *launch)
{
	return semaphore == VDEV_NO_SEMAPHORE || semaphore < launch->header.semaphore_count;
}

/* Elements [first, first + count) of `bytes` each, and `more` of them before that. */
static bool operand_holds(const struct vdev_launch *launch, uint32_t index,
	const struct vdev_instruction *i, uint64_t more)
{
	uint64_t end;

	return index < launch->bound_count && launch->bounds[index].data &&
	       !__builtin_add_overflow(i->first, i->count, &end) &&
	       !__builtin_add_overflow(end, more, &end) &&
	       !__builtin_mul_overflow(end, vdev_dtype_bytes(i->dtype), &end) &&
	       end <= launch->bounds[index].size;
}

static bool operands_hold(
	const struct vdev_launch *launch, const struct vdev_instruction *i, const struct op *op)
{
	uint64_t more = 0;

	if (op->operands < 2)
		return true;
	if (!vdev_dtype_bytes(i->dtype) || (op->kind & VDEV_OP_SUMS && !vdev_can_add(i->dtype)))
		return false;
	if (op->kind & VDEV_OP_GATHERS &&
		__builtin_mul_overflow(i->whole, launch->header.ranks - 1u, &more))
		return false;
	return operand_holds(launch, i->src0, i, 0) &&
	       (op->operands < 3 || operand_holds(launch, i->src1, i, 0)) &&
	       operand_holds(launch, i->dst, i, more);
}

int vdev_instruction_check(const struct vdev_instruction *i, const struct vdev_launch *launch)
{
	const struct op *op = i->op < sizeof(ops) / sizeof(ops[0]) ? &ops[i->op] : NULL;

	if (!op || !op->known || !(op->units & vdev_unit_kind(i->unit)))
		return -EINVAL;
	if (!semaphore_exists(i->wait, launch) || !semaphore_exists(i->post, launch))
		return -EINVAL;
	if (i->op == VDEV_OP_FAULT ? !vdev_core_fault_find(i->fault) : i->fault)
		return -EINVAL;
	if (op->kind & VDEV_OP_MEETS && !launch->header.ranks)
		return -EINVAL;
	return operands_hold(launch, i, op) ? 0 : -EINVAL;
}

static int check_header(const struct vdev_program *header)
{
	if (header->magic != VDEV_PROGRAM_MAGIC ||
		header->flags & ~(VDEV_PROGRAM_SERIAL | VDEV_PROGRAM_COUNTED) ||
		header->instruction_count > VDEV_MAX_INSTRUCTIONS ||
		header->binding_count > VDEV_MAX_BINDINGS ||
		header->semaphore_count > VDEV_MAX_SEMAPHORES || header->ranks > VDEV_MAX_RANKS ||
		(header->ranks && header->rank >= header->ranks))
		return -EINVAL;
	return 0;
}

static int check_list(const struct vdev_launch *launch)
{
	uint64_t left_ps = VDEV_EXEC_MAX_PS;

	for (uint32_t n = 0; n < launch->header.instruction_count; n++) {
		const struct vdev_instruction *i = &launch->list[n];

		if (vdev_instruction_check(i, launch) < 0 || i->duration_ps > left_ps)
			return -EINVAL;
		left_ps -= i->duration_ps;
	}
	return 0;
}

/* Copied from its end on where the target lies behind the source, for it may begin in it. */
static void copy_piece(const struct vdev_instruction *i, const struct vdev_bound *bounds,
	uint64_t done, uint64_t count)
{
	size_t bytes = vdev_dtype_bytes(i->dtype);
	bool backwards = bounds[i->dst].data > bounds[i->src0].data;
	uint64_t at = (i->first + (backwards ? i->count - done - count : done)) * bytes;

	memmove(bounds[i->dst].data + at, bounds[i->src0].data + at, count * bytes);
}

bool vdev_instruction_run(
	const struct vdev_instruction *i, const struct vdev_bound *bounds, uint64_t *done)
{
	uint64_t count, bytes = vdev_dtype_bytes(i->dtype), at;

	if ((i->op != VDEV_OP_COPY && i->op != VDEV_OP_ADD) || *done >= i->count)
		return false;
	count = i->count - *done < PIECE_ELEMENTS ? i->count - *done : PIECE_ELEMENTS;
	at = (i->first + *done) * bytes;
	if (i->op == VDEV_OP_COPY)
		copy_piece(i, bounds, *done, count);
	else
		vdev_add(i->dtype, bounds[i->dst].data + at, bounds[i->src0].data + at,
			bounds[i->src1].data + at, count);
	*done += count;
	return *done < i->count;
}

/* ---- reading ----------------------------------------------------------------------------- */

/* A binding of zeros is an unused one. */
static int bind_one(struct vdev_device *device, pid_t owner, const struct vdev_binding *binding,
	struct vdev_bound *bound)
{
	if (!binding->mem_handle && !binding->size)
		return 0;
	bound->memory = vdev_memory_get_locked(device, owner, binding->mem_handle);
	if (!bound->memory)
		return -EINVAL;
	bound->data = vdev_memory_at(bound->memory, binding->offset, binding->size);
	bound->size = binding->size;
	return bound->data ? 0 : -EINVAL;
}

static int read_bindings(
	struct vdev_launch *launch, struct vdev_device *device, const struct vdev_memory *table)
{
	uint32_t count = launch->header.binding_count;
	const uint8_t *at = vdev_memory_at(table, 0, count * sizeof(struct vdev_binding));
	const uint8_t *run = vdev_memory_at(table, count * sizeof(struct vdev_binding), 8);
	bool counted = launch->header.flags & VDEV_PROGRAM_COUNTED;

	if (!at || (counted && !run))
		return -EINVAL;
	if (counted)
		memcpy(&launch->header.run, run, sizeof(launch->header.run));
	launch->bound_count = count;
	for (uint32_t i = 0; i < count; i++) {
		struct vdev_binding binding;

		memcpy(&binding, at + i * sizeof(binding), sizeof(binding));
		if (bind_one(device, launch->owner, &binding, &launch->bounds[i]) < 0)
			return -EINVAL;
	}
	return 0;
}

static int read_list(struct vdev_launch *launch, const struct vdev_memory *program)
{
	uint32_t count = launch->header.instruction_count;
	const uint8_t *at = vdev_memory_at(
		program, sizeof(struct vdev_program), count * sizeof(struct vdev_instruction));

	if (!at)
		return -EINVAL;
	launch->list = calloc(count ? count : 1, sizeof(struct vdev_instruction));
	if (!launch->list)
		return -ENOMEM;
	memcpy(launch->list, at, count * sizeof(struct vdev_instruction));
	return check_list(launch);
}

static int read_program(struct vdev_launch *launch, struct vdev_device *device,
	const struct vdev_memory *program, const struct vdev_memory *bindings)
{
	const uint8_t *at = vdev_memory_at(program, 0, sizeof(struct vdev_program));
	int r;

	if (!at)
		return -EINVAL;
	memcpy(&launch->header, at, sizeof(launch->header));
	r = check_header(&launch->header);
	if (r == 0)
		r = read_bindings(launch, device, bindings);
	return r < 0 ? r : read_list(launch, program);
}

struct vdev_launch *vdev_launch_read(struct vdev_device *device, pid_t owner,
	struct vdev_memory *program, const struct vdev_memory *bindings)
{
	struct vdev_launch *launch = calloc(1, sizeof(*launch));
	int r;

	if (!launch)
		return NULL;
	launch->owner = owner;
	launch->program = vdev_memory_ref(program);
	r = read_program(launch, device, program, bindings);
	if (r == -ENOMEM) {
		vdev_launch_free(launch);
		return NULL;
	}
	if (r < 0)
		launch->status = NRT_EXEC_BAD_INPUT;
	return launch;
}

void vdev_launch_free(struct vdev_launch *launch)
{
	if (!launch)
		return;
	for (uint32_t i = 0; i < launch->bound_count; i++)
		vdev_memory_put(launch->bounds[i].memory);
	vdev_memory_put(launch->program);
	free(launch->list);
	free(launch);
}
