/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model.h - a loaded model, shared by model.c (load, unload, questions) and execute.c.
 */
#ifndef NTRACE_EXEC_MODEL_H
#define NTRACE_EXEC_MODEL_H

#include "runtime/exec/memory.h"
#include "runtime/exec/model_format.h"
#include "runtime/exec/object.h"

struct nrt_model {
	struct object object;
	uint64_t id;	 /* of its name (trace_intern): in events */
	uint64_t number; /* of this load, from 1: which program a queue runs */
	uint32_t nc;
	struct device_core *core;
	struct model_desc desc;
	struct device_memory program, bindings;
	struct device_memory *temps; /* desc.tensor_count; only those of role TEMP are used */
};

/* Makes the core's queue run this model.  Needs the core's lock. */
NRT_STATUS model_bind(struct nrt_model *m);

#endif
