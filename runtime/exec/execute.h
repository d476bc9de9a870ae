/* SPDX-License-Identifier: Apache-2.0 */
/*
 * execute.h - one execution of a model, for who asks for it: nrt_execute at once, a queue later.
 */
#ifndef NTRACE_EXEC_EXECUTE_H
#define NTRACE_EXEC_EXECUTE_H

#include "runtime/exec/model.h"
#include "runtime/exec/tensor.h"

struct execution;

/*
 * An execution of the model that is to come.  It has the tensors that are in the sets now, holds
 * their bytes as they are now (tensor_use), and needs the sets no more.  When the tensors are not
 * right execution_run_once says so. The caller has references to all three, and keeps that to the
 * model.  NULL: no memory.
 */
struct execution *execution_new(
	struct nrt_model *m, struct tensor_set *input, struct tensor_set *output);

/*
 * Runs it and waits for its end, as nrt_execute does, with the events; its tensors are free then.
 * Once. call: whose name a core dump gets when it fails.  nrta_seq: sequence number that the events
 * carry, 0 = none.  Blocks; takes the core's lock.
 */
NRT_STATUS execution_run_once(struct execution *e, const char *call, uint64_t nrta_seq);

/* Whether or not it has run; NULL is harmless. */
void execution_free(struct execution *e);

#endif
