/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_experimental.h - calls of the runtime that may change: questions about a model, traces of
 * executions, microcode, barriers.
 *
 * The rules of nrt.h hold here too.
 */
#ifndef NRT_EXPERIMENTAL_H
#define NRT_EXPERIMENTAL_H

#include <nrt/nrt.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- models ------------------------------------------------------------------------------- */

typedef enum nrt_tensor_usage {
	NRT_TENSOR_USAGE_INPUT = 0,
	NRT_TENSOR_USAGE_OUTPUT = 1,
} nrt_tensor_usage_t;

#define NRT_TENSOR_NAME_MAX 256 /* with the terminator */

/* 296 bytes. */
typedef struct nrt_tensor_info {
	char name[NRT_TENSOR_NAME_MAX];
	nrt_tensor_usage_t usage;
	size_t size; /* bytes */
	nrt_dtype_t dtype;
	uint32_t *shape; /* ndim elements per dimension */
	uint32_t ndim;
} nrt_tensor_info_t;

typedef struct nrt_tensor_info_array {
	uint64_t tensor_count;
	__extension__ nrt_tensor_info_t tensor_array[];
} nrt_tensor_info_array_t;

/* Inputs and outputs in the order of the model.  The caller frees *tensor_info with the next
 * call. */
NRT_API NRT_STATUS nrt_get_model_tensor_info(
	nrt_model_t *model, nrt_tensor_info_array_t **tensor_info);
/* NULL is harmless.  Legal at any time. */
NRT_API NRT_STATUS nrt_free_model_tensor_info(nrt_tensor_info_array_t *tensor_info);

/* How many threads may usefully execute the model at once: 1.  Deprecated. */
NRT_API NRT_STATUS nrt_get_model_instance_count(nrt_model_t *model, uint32_t *instance_count);

/* 4 bytes; later versions may add at the end. */
typedef struct nrt_model_info {
	uint32_t vnc; /* the core it is loaded on */
} nrt_model_info_t;

/* What is known of a loaded model.  info_size_in: bytes that the caller's structure has, at least 4;
 * *info_size_out: those that were written. */
NRT_API NRT_STATUS nrt_get_model_info(const nrt_model_t *model, nrt_model_info_t *info,
	size_t info_size_in, size_t *info_size_out);

/* ---- executions in the background --------------------------------------------------------- */

typedef void (*NRT_ASYNC_EXEC_STATUS_CALLBACK)(
	void *params, uint32_t model_id, uint32_t vnc, uint64_t job_id, NRT_STATUS status);

/*
 * Who is told of the end of each execution in the background
 * (NEURON_RT_ASYNC_EXEC_MAX_INFLIGHT_REQUESTS) and each scheduled one, instead of the last one told
 * so; NULL: nobody.  params is handed over as it is; it may be NULL. model_id counts loads from 1;
 * job_id is the sequence number (nrt_async.h).  Called by a thread of the library, which does no
 * further work of that core until it returns.  It may call the library, but for nrt_close and for
 * what waits for a queue: nrt_async_drain_queued_execs gives NRT_FAILURE there, and nrt_execute
 * NRT_QUEUE_FULL where it would have to wait.  A call that has begun may still run, with its params,
 * when another one or none is registered; it has returned when nrt_async_drain_queued_execs, for
 * each core in use, or nrt_close has.
 */
NRT_API NRT_STATUS nrt_register_async_exec_callback(
	NRT_ASYNC_EXEC_STATUS_CALLBACK callback, void *params);

/* Waits until the executions that are queued on core vnc are done and the callback has been
 * told. */
NRT_API NRT_STATUS nrt_async_drain_queued_execs(int32_t vnc_idx);

/* ---- traces ------------------------------------------------------------------------------- */

/*
 * Traces loads, executions and copies on all visible cores; trace_mem: device memory too.  The
 * newest NEURON_RT_TRACE_NUM_ENTRIES records are kept.  NRT_INVALID: a trace is on already, or
 * NEURON_RT_ASYNC_EXEC_MAX_INFLIGHT_REQUESTS is not 0.
 */
NRT_API NRT_STATUS nrt_trace_start(bool trace_mem);
/*
 * Ends that and writes it to filename, which must not exist; docs/formats.md has the format.  When
 * it cannot be written the trace goes on.  NRT_INVALID: there is none, or no such name can be had.
 */
NRT_API NRT_STATUS nrt_trace_stop(const char *filename);

/* ---- workers ------------------------------------------------------------------------------ */

/* Waits for all of g_device_count workers, of which core vnc is number g_device_id.  With one worker nobody
 * is waited for.  NRT_INVALID: more than one, or no such number or core. */
NRT_API NRT_STATUS nrt_barrier(int32_t vnc, uint32_t g_device_id, uint32_t g_device_count);

/*
 * Puts the inputs of all workers behind each other into everybody's output.  rank_input_size: bytes
 * of input; output has g_device_count times as many.  With one worker that is a copy; the two may
 * overlap.  NRT_INVALID as above.
 */
NRT_API NRT_STATUS nrt_all_gather(int32_t vnc, uint32_t g_device_id, uint32_t g_device_count,
	uint32_t rank_input_size, void *input, void *output);

/* ---- without a meaning here --------------------------------------------------------------- */

/* The network plug-in of the collectives.  Here NULL: there is none; *err is then NRT_INVALID and err_msg a
 * text of at most err_msg_size bytes, where they are not NULL. */
NRT_API void *nrt_get_libnccl_net(int *err, char *err_msg, size_t err_msg_size);

/* 16 bytes. */
typedef struct nrt_ucode_img {
	uint8_t *bin;
	size_t size;
} nrt_ucode_img;

/* 32 bytes. */
typedef struct nrt_ucode_info {
	nrt_ucode_img iram;
	nrt_ucode_img dram;
} nrt_ucode_info;

/* Microcode for the pooling engine.  Here NRT_INVALID: no engine runs any. */
NRT_API NRT_STATUS nrt_set_pool_eng_ucode(const nrt_ucode_info *ucode_info);

/* Copies to device memory that is mapped into the process.  Here NRT_INVALID: none is. */
NRT_API NRT_STATUS nrt_memcpy_to_device(void *dest, const void *src, size_t size);

#ifdef __cplusplus
}
#endif

#endif
