/* SPDX-License-Identifier: Apache-2.0 */
/*
 * abi_layout.c - sizes, offsets and numbers of the public types, as libnrt 2.31 has them.
 *
 * Compiled, never run: a change that would break programs does not build.
 */
#include <assert.h>
#include <stddef.h>

#include <nrt/ndebug_stream.h>
#include <nrt/nec.h>
#include <nrt/nrt.h>
#include <nrt/nrt_async.h>
#include <nrt/nrt_experimental.h>
#include <nrt/nrt_profile.h>

#define SIZE(type, bytes) static_assert(sizeof(type) == (bytes), #type)
#define AT(type, member, where) static_assert(offsetof(type, member) == (where), #type "." #member)
#define IS(constant, value) static_assert((constant) == (value), #constant)

/* ---- statuses and versions ---------------------------------------------------------------- */

SIZE(NRT_STATUS, 4);
IS(NRT_SUCCESS, 0);
IS(NRT_FAILURE, 1);
IS(NRT_INVALID, 2);
IS(NRT_INVALID_HANDLE, 3);
IS(NRT_RESOURCE, 4);
IS(NRT_TIMEOUT, 5);
IS(NRT_HW_ERROR, 6);
IS(NRT_QUEUE_FULL, 7);
IS(NRT_LOAD_NOT_ENOUGH_NC, 9);
IS(NRT_UNSUPPORTED_NEFF_VERSION, 10);
IS(NRT_FAIL_HOST_MEM_ALLOC, 11);
IS(NRT_UNINITIALIZED, 13);
IS(NRT_CLOSED, 14);
IS(NRT_QUEUE_EMPTY, 15);
IS(NRT_EXEC_UNIT_UNRECOVERABLE, 101);
IS(NRT_EXEC_BAD_INPUT, 1002);
IS(NRT_EXEC_COMPLETED_WITH_NUM_ERR, 1003);
IS(NRT_EXEC_COMPLETED_WITH_ERR, 1004);
IS(NRT_EXEC_NC_BUSY, 1005);
IS(NRT_EXEC_OOB, 1006);
IS(NRT_COLL_PENDING, 1100);
IS(NRT_EXEC_HW_ERR_COLLECTIVES, 1200);
IS(NRT_EXEC_HW_ERR_HBM_UE, 1201);
IS(NRT_EXEC_HW_ERR_NC_UE, 1202);
IS(NRT_EXEC_HW_ERR_DMA_ABORT, 1203);
IS(NRT_EXEC_SW_NQ_OVERFLOW, 1204);
IS(NRT_EXEC_HW_ERR_REPAIRABLE_HBM_UE, 1205);
IS(NRT_NETWORK_PROXY_FAILURE, 1206);
IS(NRT_MAJOR_VERSION, 2);
IS(NRT_MINOR_VERSION, 0);

SIZE(nrt_version_t, 224);
AT(nrt_version_t, rt_major, 0);
AT(nrt_version_t, rt_minor, 8);
AT(nrt_version_t, rt_patch, 16);
AT(nrt_version_t, rt_maintenance, 24);
AT(nrt_version_t, rt_detail, 32);
AT(nrt_version_t, git_hash, 160);
IS(RT_VERSION_DETAIL_LEN, 128);
IS(GIT_HASH_LEN, 64);

SIZE(nrt_framework_type_t, 4);
IS(NRT_FRAMEWORK_TYPE_INVALID, 0);
IS(NRT_FRAMEWORK_TYPE_NO_FW, 1);
IS(NRT_FRAMEWORK_TYPE_TENSORFLOW, 2);
IS(NRT_FRAMEWORK_TYPE_PYTORCH, 3);
IS(NRT_FRAMEWORK_TYPE_MXNET, 4);
IS(NRT_FRAMEWORK_TYPE_PRECHECK, 5);

/* ---- topology ----------------------------------------------------------------------------- */

SIZE(nrt_instance_info_t, 32);
AT(nrt_instance_info_t, family, 0);
AT(nrt_instance_info_t, size, 4);
AT(nrt_instance_info_t, arch_name, 8);
AT(nrt_instance_info_t, device_revision, 24);
IS(NRT_INSTANCE_UNKNOWN, 0);
IS(NRT_INSTANCE_INF1, 1);
IS(NRT_INSTANCE_TRN1, 2);
IS(NRT_INSTANCE_TRN1N, 3);
IS(NRT_INSTANCE_INF2, 4);
IS(NRT_INSTANCE_TRN2, 5);
IS(NRT_INSTANCE_TRN2N, 6);
IS(NRT_INSTANCE_INF2E, 7);
IS(NRT_INSTANCE_TRN2P, 8);
IS(NRT_INSTANCE_TRN2U, 9);
IS(NRT_INSTANCE_TRN2E, 10);
IS(NRT_INSTANCE_TRN2EU, 11);
IS(NRT_INSTANCE_TRN2AC, 12);
IS(NRT_INSTANCE_TRN2UAC, 13);
IS(NRT_INSTANCE_TRN3, 14);
IS(NRT_INSTANCE_TRN3PDS98, 15);
IS(NRT_INSTANCE_SIZE_1XL, 0);
IS(NRT_INSTANCE_SIZE_2XL, 1);
IS(NRT_INSTANCE_SIZE_4XL, 2);
IS(NRT_INSTANCE_SIZE_6XL, 3);
IS(NRT_INSTANCE_SIZE_8XL, 4);
IS(NRT_INSTANCE_SIZE_24XL, 5);
IS(NRT_INSTANCE_SIZE_32XL, 6);
IS(NRT_INSTANCE_SIZE_48XL, 7);
IS(NRT_INSTANCE_SIZE_3XL, 8);
IS(NRT_INSTANCE_SIZE_UNKNOWN, 9);
IS(NRT_INSTANCE_SIZE_NUM, 9);

/* ---- tensors ------------------------------------------------------------------------------ */

SIZE(nrt_tensor_batch_op_t, 24);
AT(nrt_tensor_batch_op_t, offset, 0);
AT(nrt_tensor_batch_op_t, size, 8);
AT(nrt_tensor_batch_op_t, buffer, 16);

SIZE(nrt_tensor_batch_t, 24);
AT(nrt_tensor_batch_t, tensor, 0);
AT(nrt_tensor_batch_t, ops, 8);
AT(nrt_tensor_batch_t, num_ops, 16);

SIZE(nrt_tensor_device_allocation_info_t, 24);
AT(nrt_tensor_device_allocation_info_t, physical_address, 0);
AT(nrt_tensor_device_allocation_info_t, size, 8);
AT(nrt_tensor_device_allocation_info_t, hbm_index, 16);

SIZE(nrt_vnc_memory_stats_t, 16);
AT(nrt_vnc_memory_stats_t, bytes_used, 0);
AT(nrt_vnc_memory_stats_t, bytes_limit, 8);

SIZE(nrt_tensor_info_t, 296);
AT(nrt_tensor_info_t, name, 0);
AT(nrt_tensor_info_t, usage, 256);
AT(nrt_tensor_info_t, size, 264);
AT(nrt_tensor_info_t, dtype, 272);
AT(nrt_tensor_info_t, shape, 280);
AT(nrt_tensor_info_t, ndim, 288);
SIZE(nrt_tensor_info_array_t, 8);
AT(nrt_tensor_info_array_t, tensor_count, 0);
AT(nrt_tensor_info_array_t, tensor_array, 8);
IS(NRT_TENSOR_NAME_MAX, 256);
IS(NRT_TENSOR_USAGE_INPUT, 0);
IS(NRT_TENSOR_USAGE_OUTPUT, 1);
IS(NRT_TENSOR_PLACEMENT_DEVICE, 0);
IS(NRT_TENSOR_PLACEMENT_HOST, 1);
IS(NRT_TENSOR_PLACEMENT_VIRTUAL, 2);
IS(NRT_DTYPE_UNKNOWN, 0);
IS(NRT_DTYPE_INVALID, 0);
IS(NRT_DTYPE_UINT64, 1);
IS(NRT_DTYPE_INT8, 2);
IS(NRT_DTYPE_UINT8, 3);
IS(NRT_DTYPE_INT16, 4);
IS(NRT_DTYPE_UINT16, 5);
IS(NRT_DTYPE_BFLOAT16, 6);
IS(NRT_DTYPE_FLOAT16, 7);
IS(NRT_DTYPE_INT32, 8);
IS(NRT_DTYPE_UINT32, 9);
IS(NRT_DTYPE_FLOAT32, 10);
IS(NRT_DTYPE_FP32R, 11);
IS(NRT_DTYPE_INT64, 12);
IS(NRT_DTYPE_FP8_E3, 13);
IS(NRT_DTYPE_FP8_E4, 14);
IS(NRT_DTYPE_FP8_E5, 15);

/* ---- models, microcode -------------------------------------------------------------------- */

SIZE(nrt_model_info_t, 4);
AT(nrt_model_info_t, vnc, 0);

SIZE(nrt_ucode_img, 16);
AT(nrt_ucode_img, bin, 0);
AT(nrt_ucode_img, size, 8);
SIZE(nrt_ucode_info, 32);
AT(nrt_ucode_info, iram, 0);
AT(nrt_ucode_info, dram, 16);

/* ---- collectives, work for later ---------------------------------------------------------- */

SIZE(nrt_cc_comm_t, 32);
AT(nrt_cc_comm_t, replica_group, 0);
AT(nrt_cc_comm_t, rank, 8);
AT(nrt_cc_comm_t, rank_n, 12);
AT(nrt_cc_comm_t, ctx_device_id, 16);
AT(nrt_cc_comm_t, ctx_device_count, 20);
AT(nrt_cc_comm_t, vnc, 24);

SIZE(nrt_tensor_list_t, 16);
AT(nrt_tensor_list_t, tensors, 0);
AT(nrt_tensor_list_t, num_tensors, 8);
IS(NRT_OP_ADD, 0);
IS(NRT_OP_FMA, 1);
IS(NRT_OP_MAX, 2);
IS(NRT_OP_MIN, 3);
IS(NRT_OP_INVALID, 15);
IS(NRT_CC_ALLGATHER, 0);
IS(NRT_CC_ALLREDUCE, 1);
IS(NRT_CC_REDUCESCATTER, 2);

SIZE(nrta_seq_t, 8);
IS(NRTA_SEQ_NUM_MAX, 0xffffffffffffull);
IS(NRTA_SEQ_GET_XU_ID(0x1234000000000005ull), 0x1234);
IS(NRTA_SEQ_GET_SEQ_NUM(0x1234000000000005ull), 5);
IS(NRTA_XU_TENSOR_OP, 0);
IS(NRTA_XU_COMPUTE, 1);
IS(NRTA_XU_COLLECTIVES, 2);
IS(NRTA_XU_TYPE_NUM, 3);

IS(NEC_POD_TYPE_NONE, 0);
IS(NEC_POD_TYPE_P2P, 1);
IS(NEC_POD_TYPE_SWITCH, 2);
IS(NEC_POD_TYPE_INVALID, 3);
SIZE(enc_host_mem_t, 32);

/* ---- debug stream, profiles --------------------------------------------------------------- */

SIZE(ndebug_stream_event_header_t, 64);
AT(ndebug_stream_event_header_t, data_size, 0);
AT(ndebug_stream_event_header_t, type, 8);
AT(ndebug_stream_event_header_t, reserved, 12);

SIZE(ndebug_stream_payload_debug_tensor_read_t, 1024);
AT(ndebug_stream_payload_debug_tensor_read_t, prefix, 0);
AT(ndebug_stream_payload_debug_tensor_read_t, logical_nc_id, 512);
AT(ndebug_stream_payload_debug_tensor_read_t, pipe, 516);
AT(ndebug_stream_payload_debug_tensor_read_t, tensor_dtype, 520);
AT(ndebug_stream_payload_debug_tensor_read_t, tensor_shape, 536);
AT(ndebug_stream_payload_debug_tensor_read_t, tensor_data_size, 600);
AT(ndebug_stream_payload_debug_tensor_read_t, reserved0, 608);
AT(ndebug_stream_payload_debug_tensor_read_t, tensor_data, 1024);
IS(NDEBUG_STREAM_EVENT_TYPE_INVALID, 0);
IS(NDEBUG_STREAM_EVENT_TYPE_DEBUG_TENSOR_READ, 1);

IS(NRT_INSPECT_DEVICE_PROFILE_MODE_DISABLED, 0);
IS(NRT_INSPECT_DEVICE_PROFILE_MODE_MODEL, 1);
IS(NRT_INSPECT_DEVICE_PROFILE_MODE_SESSION, 2);
