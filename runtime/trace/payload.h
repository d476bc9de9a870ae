/* SPDX-License-Identifier: Apache-2.0 */
/*
 * payload.h - payloads of the sys_trace types that this runtime emits, as C structures.
 *
 * The layouts are those of event_registry.def (a test compares each member with its row).  A payload
 * is copied into a record's 40 bytes and zero-filled.
 */
#ifndef NTRACE_TRACE_PAYLOAD_H
#define NTRACE_TRACE_PAYLOAD_H

#include <assert.h>
#include <stdint.h>

#include "runtime/trace/record.h"

/* MODEL_LOAD stop; EXECUTE_API and MODEL_SUBMIT start */
struct trace_model {
	uint64_t model_id;
};

/* CC_LOAD start; its stop is a trace_model */
struct trace_load_collectives {
	uint32_t g_device_id;
	uint32_t g_device_count;
};

/* POST_REQUEST start */
struct trace_post_request {
	uint64_t model_id;
	uint32_t request_id;
	uint32_t pad;
};

/* ASYNC_SEMA_WAIT start */
struct trace_sema_wait {
	uint64_t available_request_slots;
	uint8_t has_work;
	uint8_t pad[7];
};

/* EXEC_PRE, EXEC_CORE, EXEC_WAIT, EXEC_POST, CONSUME_* start; the model is not shown of
 * CONSUME_TPB_STATUS_NOTIFICATIONS */
struct trace_exec {
	uint64_t exec_id;
	uint64_t model_id;
};

/* DEVICE_EXEC start; NUM_ERR instant */
struct trace_device_exec {
	uint32_t device_core_idx; /* core within its device */
	uint32_t exec_id;
	struct trace_sync_info sync;
	uint64_t pad;
	uint64_t model_id;
};

/* DEVICE_EXEC, CC_EXEC, CC_EXEC_BARRIER, NC_MODEL_SWITCH stop */
struct trace_device_stop {
	struct trace_sync_info sync;
};

/* CC_EXEC start */
struct trace_cc_exec {
	uint32_t gid;
	uint32_t op_id;
	uint32_t exec_id;
	uint32_t pad;
	struct trace_sync_info sync;
	uint32_t algorithm;
	uint32_t device_core_idx;
};

/* CC_EXEC_BARRIER start */
struct trace_cc_barrier {
	uint64_t model_id;
	uint32_t exec_id;
	uint32_t device_core_idx;
	struct trace_sync_info sync;
};

/* NC_MODEL_SWITCH start */
struct trace_nc_model_switch {
	uint32_t device_core_idx;
	uint32_t pad;
	uint64_t model_id;
	uint64_t exec_id;
	struct trace_sync_info sync;
};

/* HW_NOTIFY instant */
struct trace_hw_notify {
	uint32_t device_core_idx;
	uint16_t hint;
	uint16_t pad;
	uint32_t custom_data;
	uint32_t pad1;
	uint64_t exec_id;
	struct trace_sync_info sync;
};

/* ENC_BARRIER start */
struct trace_enc_barrier {
	int32_t peer_id;
	uint32_t pad;
	uint64_t exec_id;
	int32_t nec_dev_id;
	uint32_t pad1;
};

/* MODEL_SWITCH start */
struct trace_model_switch {
	uint32_t device_core_idx;
	uint32_t pad;
	uint64_t model_id;
	uint8_t is_neuron_core_work;
	uint8_t pad1[7];
};

/* TIMESTAMP_SYNC instant */
struct trace_timestamp_sync {
	uint64_t exec_id;
	struct trace_sync_info sync;
	uint64_t sync_bound_ns;
	uint32_t device_core_idx;
	uint32_t core_clocks; /* clocks that the logical core has: one per physical core */
};

/* TENSOR_READ, TENSOR_WRITE, TENSOR_ALLOC, TENSOR_FREE start; ref_count for TENSOR_FREE alone */
struct trace_tensor {
	uint64_t tensor_id;
	uint64_t size;
	uint64_t ref_count;
};

/* TENSOR_READ_BATCH, TENSOR_WRITE_BATCH start */
struct trace_tensor_batch {
	uint32_t num_batches;
};

/* TENSOR_BLOCK_WHILE_EXEC start: executions that use the tensor */
struct trace_tensor_block {
	uint64_t tensor_id;
	uint64_t pending_reader_count;
	uint64_t pending_writer_count;
};

/* DMEM_BUF_COPYIN, DMEM_BUF_COPYOUT start.  offset and size are 32 bits wide; larger ones are
 * shown as 0xffffffff. */
struct trace_dmem_copy {
	uint8_t mem_type; /* 1 host memory, 2 device memory */
	uint8_t pad[7];
	uint64_t mem_handle;
	uint32_t offset;
	uint32_t size;
};

/* DMEM_BUF_BATCH_COPYIN, DMEM_BUF_BATCH_COPYOUT start */
struct trace_dmem_batch {
	uint8_t mem_type; /* as in trace_dmem_copy */
	uint8_t pad[3];
	uint32_t num_batches;
	uint32_t total_num_ops;
	uint32_t pad1;
	uint64_t total_size;
};

/* DMA_MEM_ALLOC start */
struct trace_mem_alloc {
	uint32_t hbm_idx;
	uint32_t usage_type; /* dma_mem_usage_type */
	uint8_t is_nc_hbm;
	uint8_t is_aligned;
	uint16_t pad;
	uint32_t mla_idx; /* device */
};

/* DMA_MEM_ALLOC stop */
struct trace_mem_alloc_stop {
	uint64_t allocated_bytes;
	uint64_t physical_address;
	uint64_t return_code;
	uint64_t usage_type_total_bytes;
	uint64_t total_bytes;
};

/* DMA_MEM_DEALLOC start */
struct trace_mem_free {
	uint32_t hbm_idx;
	uint8_t is_nc_hbm;
	uint8_t pad[3];
	uint32_t mla_idx;
	uint32_t usage_type;
	uint64_t physical_address;
};

/* DMA_MEM_DEALLOC stop */
struct trace_mem_free_stop {
	uint64_t freed_bytes;
	uint64_t usage_type_total_bytes;
	uint64_t total_bytes;
};

static_assert(sizeof(struct trace_device_exec) == 40, "trace_device_exec");
static_assert(sizeof(struct trace_timestamp_sync) == 40, "trace_timestamp_sync");
static_assert(sizeof(struct trace_cc_exec) == 40, "trace_cc_exec");
static_assert(sizeof(struct trace_cc_barrier) == 32, "trace_cc_barrier");
static_assert(sizeof(struct trace_nc_model_switch) == 40, "trace_nc_model_switch");
static_assert(sizeof(struct trace_hw_notify) == 40, "trace_hw_notify");
static_assert(sizeof(struct trace_enc_barrier) == 24, "trace_enc_barrier");
static_assert(sizeof(struct trace_dmem_copy) == 24, "trace_dmem_copy");
static_assert(sizeof(struct trace_dmem_batch) == 24, "trace_dmem_batch");
static_assert(sizeof(struct trace_mem_alloc) == 16, "trace_mem_alloc");
static_assert(sizeof(struct trace_mem_alloc_stop) == 40, "trace_mem_alloc_stop");
static_assert(sizeof(struct trace_mem_free) == 24, "trace_mem_free");

#endif
