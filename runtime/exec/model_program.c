/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_program.c - the program image of one physical core of a logical one.
 *
 * The cores of a logical core run the same steps with the same durations; each does its part of the elements:
 * core p of n those from count * p / n to count * (p + 1) / n, which may be none.  A step reads and writes the same
 * elements of tensors of one size, so that no core needs what another one made.  The result of a gathering is the
 * exception: it has another size than what it was made of, so where a step reads it the first core does
 * everything, and the others have their durations alone.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/exec/model_format.h"

static bool reads(const struct vdev_instruction *step, uint32_t tensor)
{
	return step->src0 == tensor || step->src1 == tensor;
}

static bool can_be_split(const struct model_desc *m)
{
	for (uint32_t i = 0; i < m->step_count; i++)
		for (uint32_t k = 0; m->steps[i].op == VDEV_OP_ALL_GATHER && k < m->step_count; k++)
			if (reads(&m->steps[k], m->steps[i].dst))
				return false;
	return true;
}

static void take_part(struct vdev_instruction *step, uint32_t part, uint32_t parts, bool split)
{
	uint64_t count = step->count;

	if (!split) {
		step->count = part == 0 ? count : 0;
		return;
	}
	step->first = count * part / parts;
	step->count = count * (part + 1) / parts - step->first;
}

struct vdev_program *model_program(
	const struct model_desc *m, const struct model_place *place, size_t *ret_bytes)
{
	size_t steps_bytes = m->step_count * sizeof(struct vdev_instruction);
	struct vdev_program *image = calloc(1, sizeof(*image) + steps_bytes);
	struct vdev_instruction *steps;
	bool split = can_be_split(m);

	if (!image)
		return NULL;
	*image = (struct vdev_program){
		.magic = VDEV_PROGRAM_MAGIC,
		.flags = (m->version == 1 ? VDEV_PROGRAM_SERIAL : 0) |
			 (m->collectives && place->ranks > 1 ? VDEV_PROGRAM_COUNTED : 0),
		.instruction_count = m->step_count,
		.binding_count = m->tensor_count,
		.semaphore_count = m->semaphore_count,
		.rank = m->collectives ? place->rank : 0,
		.ranks = m->collectives ? place->ranks : 0,
		.part = place->part,
		.group = m->collectives ? place->group : 0,
	};
	steps = (struct vdev_instruction *)(void *)(image + 1);
	memcpy(steps, m->steps, steps_bytes);
	for (uint32_t i = 0; i < m->step_count; i++)
		take_part(&steps[i], place->part, place->parts, split);
	*ret_bytes = sizeof(*image) + steps_bytes;
	return image;
}
