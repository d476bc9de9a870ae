/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_format.h - the text format of models for the virtual device.
 *
 * docs/virtual-device.md describes it for people.  The parser is strict: what it does not know is an
 * error with its line number.  It never reads beyond the given size.  Pure functions.
 */
#ifndef NTRACE_EXEC_MODEL_FORMAT_H
#define NTRACE_EXEC_MODEL_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nrt/nrt_experimental.h>

#include "runtime/vdev/vdev_abi.h"

#define MODEL_MAX_DIMS 8u

enum model_role { MODEL_INPUT, MODEL_OUTPUT, MODEL_TEMP };

struct model_tensor {
	char name[NRT_TENSOR_NAME_MAX];
	enum model_role role;
	nrt_dtype_t dtype;
	uint32_t ndim;
	uint32_t shape[MODEL_MAX_DIMS];
	uint64_t count; /* elements */
	uint64_t bytes;
};

/* Tensors in the order of the file; their index is the index of their binding.  Semaphores likewise. */
struct model_desc {
	char name[NRT_TENSOR_NAME_MAX];
	uint32_t version; /* 1: steps run one after another; 2: units run side by side */
	uint32_t tensor_count;
	uint32_t step_count;
	uint32_t semaphore_count;
	uint32_t collectives; /* steps that need other ranks */
	struct model_tensor *tensors;
	struct vdev_instruction *steps;
	uint32_t *lines; /* of the steps, in the text */
};

struct model_error {
	uint32_t line; /* from 1; 0 = the whole text */
	char text[400];
};

/* Parses size bytes.  0; -EPROTONOSUPPORT when it is no text at all; -EINVAL; -ENOMEM.  *error is filled on
 * failure.  model_desc_free after success. */
int model_parse(const char *text, size_t size, struct model_desc *ret, struct model_error *error);

/* Can the model run as one of so many ranks?  0, or -EINVAL with *error filled. */
int model_check_ranks(const struct model_desc *m, uint32_t ranks, struct model_error *error);

void model_desc_free(struct model_desc *m);

/* Where a program image is for: physical core `part` of the `parts` of a logical one, which is `rank` of the `ranks`
 * of a group. */
struct model_place {
	uint32_t part, parts;
	uint32_t rank, ranks;
	uint64_t group;
};
/* model_program.c: the image, the caller's to free, and its size; NULL when there is no memory. */
struct vdev_program *model_program(
	const struct model_desc *m, const struct model_place *place, size_t *ret_bytes);

/* A fault's name in model texts, by its number (enum vdev_core_fault); NULL for an unknown one. */
const char *model_fault_name(uint32_t fault);

/* Bytes of an element; 0 for an unknown type. */
uint32_t model_dtype_bytes(nrt_dtype_t dtype);

#endif
