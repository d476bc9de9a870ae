/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schedule.h - executions that are done later, for who else has to do with them; nrt_async.h has
 * the public calls.
 *
 * A core has these queues: 0 of COMPUTE, for executions, and 0 to 15 of TENSOR_OP (how many is
 * ours).  An execution unit's id is the core's number times 32, plus 16 for COMPUTE, plus the
 * queue's (ours, too). Work refers to its model and tensors: freeing their handles meanwhile is
 * safe.  Tensors are taken from their sets when the work is scheduled, so changing one does not
 * change what is queued; and they are in use from then on, so reading an output or writing an
 * input waits for the execution.
 */
#ifndef NTRACE_EXEC_SCHEDULE_H
#define NTRACE_EXEC_SCHEDULE_H

#include "runtime/exec/execute.h"

/*
 * nrt_execute where NEURON_RT_ASYNC_EXEC_MAX_INFLIGHT_REQUESTS is not 0: puts the execution into
 * the queue of the model's core, and waits only until one of that many slots is free.  The
 * callback of nrt_register_async_exec_callback gets the status.  NRT_QUEUE_FULL for a callback
 * that finds no slot, for it would wait for itself.
 */
NRT_STATUS schedule_posted(
	struct nrt_model *m, struct tensor_set *input, struct tensor_set *output);

/* For nrt_close, when no call is in any more: what is queued is done (work_queue.h), and the
 * callback forgotten. */
void schedule_close(void);

#endif
