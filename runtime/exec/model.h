/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model.h - a loaded model, shared by model.c (load, unload, questions) and execute.c.
 */
#ifndef NTRACE_EXEC_MODEL_H
#define NTRACE_EXEC_MODEL_H

#include "runtime/exec/memory.h"
#include "runtime/exec/model_format.h"
#include "runtime/exec/object.h"

struct model_text;
struct profile_node;

struct nrt_model {
	struct object object;
	uint64_t id;	    /* of its name (trace_intern): in events */
	uint64_t number;    /* of this load, from 1: which program a queue runs */
	uint64_t digest[2]; /* of its text */
	struct model_text *text;
	struct profile_node
		*node; /* what profiles say of it; NULL = not asked for yet.  profile.h */
	uint32_t nc;
	struct device_core *core; /* the first of the logical core's */
	struct model_place place; /* parts: physical cores; part is not used */
	struct model_desc desc;
	uint64_t runs;	      /* how many were submitted; under the core's lock */
	uint64_t duration_ns; /* of all steps together: no run without collectives takes longer */
	struct device_memory programs[CORES_MAX_SIZE]; /* one per physical core */
	struct device_memory bindings;		       /* the same for all */
	struct device_memory *temps; /* desc.tensor_count; only those of role TEMP are used */
};

/* Of the binding table, and the run's number behind it; may be 0. */
static inline size_t model_bindings_bytes(const struct nrt_model *m)
{
	return m->desc.tensor_count * sizeof(struct vdev_binding) +
	       (m->desc.collectives && m->place.ranks > 1 ? sizeof(m->runs) : 0);
}

/* Makes the queues of all its cores run this model.  Needs the core's lock. */
NRT_STATUS model_bind(struct nrt_model *m);

/* Ends what the physical core `part` runs of the model, and binds its queue anew.  Needs the core's lock. */
NRT_STATUS model_cancel(struct nrt_model *m, uint32_t part);

#endif
