/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensor.h - tensors and sets of them, as executions see them.
 */
#ifndef NTRACE_EXEC_TENSOR_H
#define NTRACE_EXEC_TENSOR_H

#include <nrt/nrt_experimental.h>

#include "runtime/exec/memory.h"
#include "runtime/exec/object.h"

struct nrt_tensor {
	struct object object;
	uint64_t id; /* from 1, in the process */
	uint32_t nc;
	nrt_tensor_placement_t placement;
	uint64_t size;
	struct device_memory memory; /* placement DEVICE */
	uint8_t *host;		     /* placement HOST */
	char name[NRT_TENSOR_NAME_MAX];
};

struct tensor_set;

/* The tensor with this name, with a reference for the caller; NULL when there is none. */
struct nrt_tensor *tensor_set_find(struct tensor_set *set, const char *name);

/* A set like this one as it is now, with references to the same tensors, and no handle: for one who
 * must not see later changes.  The caller's, to be given back with object_put; NULL when there is no memory. */
struct tensor_set *tensor_set_copy(struct tensor_set *set);

/* Gives a reference back; NULL is harmless. */
void tensor_put(struct nrt_tensor *t);

#endif
