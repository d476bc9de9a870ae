/* SPDX-License-Identifier: Apache-2.0 */
/*
 * execute.h - one execution of a model, for who calls it: nrt_execute at once, a queue later.
 */
#ifndef NTRACE_EXEC_EXECUTE_H
#define NTRACE_EXEC_EXECUTE_H

#include "runtime/exec/model.h"
#include "runtime/exec/tensor.h"

/*
 * Runs the model once and waits for its end, as nrt_execute does: with the checks of the sets, and the
 * events.  The caller has references to all three.  nrta_seq: sequence number that the events carry, 0 = none.
 * Blocks; takes the core's lock.
 */
NRT_STATUS execute_model(struct nrt_model *m, struct tensor_set *input, struct tensor_set *output,
	uint64_t nrta_seq);

#endif
