/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_async.h - work that is scheduled now and done later, in the form of libnrt 2.31 (NRT_3.0.0).
 *
 * Work goes to a queue of an execution unit of a core.  Scheduling gives a sequence number; it is
 * compared or asked about.  *exec_ret receives the status of the work when it is done, before
 * nrta_is_completed says so, and must live until then.  The work of a queue is done in order, queues side by side.
 * Handles may be given up meanwhile, and a set changed: what is queued keeps what it was given.  A queue that is
 * full gives NRT_QUEUE_FULL, and nothing was scheduled.  nrt_close waits for what is queued; when a piece of it
 * ends with NRT_TIMEOUT or NRT_HW_ERROR meanwhile, the rest of that queue gets NRT_CLOSED.  The rules of nrt.h
 * hold here too.
 *
 * Which queues there are is ours: queues 0 to 15 of NRTA_XU_TENSOR_OP, for 256 pieces of work each, and queue 0 of
 * NRTA_XU_COMPUTE, for NEURON_RT_XU_COMPUTE_MAX_QUEUED_REQUESTS executions; what is being done counts.
 *
 * The vendor's header of that name in its public repository is the form before 3.0; programs built with that
 * one do not fit libnrt 2.31, nor this library.
 */
#ifndef NRT_ASYNC_H
#define NRT_ASYNC_H

#include <nrt/nrt.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Execution units of a core.  The constants' spelling is inferred, the numbers are the ABI's. */
typedef enum {
	NRTA_XU_TENSOR_OP = 0,
	NRTA_XU_COMPUTE = 1,
	NRTA_XU_COLLECTIVES = 2,
	NRTA_XU_TYPE_NUM = 3,
} nrta_xu_t;

/* Bits 63..48: the execution unit's id; 47..0: a number that only grows within it. */
typedef uint64_t nrta_seq_t;
typedef uint16_t nrta_xu_id_t;

#define NRTA_SEQ_NUM_MAX ((1ull << 48) - 1)
#define NRTA_SEQ_NUM_MASK NRTA_SEQ_NUM_MAX
#define NRTA_SEQ_GET_SEQ_NUM(seq_id) ((seq_id)&NRTA_SEQ_NUM_MASK)
#define NRTA_SEQ_GET_XU_ID(seq_id) ((seq_id) >> 48)

/* nrt_tensor_write, later.  buf must live until then. */
NRT_API NRT_STATUS nrta_tensor_write(nrt_tensor_t *tensor, const void *buf, uint64_t offset,
	uint64_t size, int lnc_idx, int queue, NRT_STATUS *exec_ret, nrta_seq_t *req_sequence);

/* nrt_tensor_read, later.  buf must live until then. */
NRT_API NRT_STATUS nrta_tensor_read(void *buf, nrt_tensor_t *tensor, uint64_t offset, uint64_t size,
	int lnc_idx, int queue, NRT_STATUS *exec_ret, nrta_seq_t *req_sequence);

/* nrt_tensor_copy, later. */
NRT_API NRT_STATUS nrta_tensor_copy(nrt_tensor_t *src, uint64_t src_offset, nrt_tensor_t *dst,
	uint64_t dst_offset, uint64_t size, int lnc_idx, int queue, NRT_STATUS *exec_ret,
	nrta_seq_t *req_sequence);

/* nrt_execute, later.  queue: 0. */
NRT_API NRT_STATUS nrta_execute_schedule(nrt_model_t *model, const nrt_tensor_set_t *input,
	nrt_tensor_set_t *output, int queue, NRT_STATUS *exec_ret, nrta_seq_t *req_sequence);

/* Is it done?  NRT_INVALID: no such sequence number since nrt_init. */
NRT_API NRT_STATUS nrta_is_completed(nrta_seq_t seq, bool *is_completed);

/* The last one that is done on this queue; its number is 0 when there is none yet. */
NRT_API NRT_STATUS nrta_get_sequence(
	uint32_t lnc_idx, nrta_xu_t xu_type, int queue, nrta_seq_t *seq);

/* Prepares, and schedules, a collective.  Here NRT_INVALID: there is no network. */
NRT_API NRT_STATUS nrta_cc_prepare(nrt_cc_comm_t *comm, nrt_tensor_list_t *input,
	nrt_tensor_list_t *output, nrt_dtype_t dtype, nrt_op_type_t op, nrt_cc_op_type_t cc_op,
	nrt_cc_context_t **cc_ctx);
NRT_API NRT_STATUS nrta_cc_schedule(
	nrt_cc_context_t **cc_ctx, int queue, NRT_STATUS *exec_ret, nrta_seq_t *req_sequence);

#ifdef __cplusplus
}
#endif

#endif
