/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt.h - the Neuron runtime's C interface: lifecycle, topology, tensors, models, execution.
 *
 * Order of use: nrt_init; nrt_load; tensors and sets; nrt_execute; free and unload; nrt_close.
 *
 * Every call that returns a status gives NRT_UNINITIALIZED before nrt_init, NRT_CLOSED while nrt_close runs,
 * NRT_FAILURE in the child of a fork (which cannot use the library; exec first), unless it says that it
 * is legal at any time.  Calls that return something else give the value that means failure.  All calls may be
 * made from any thread.  A handle that is NULL gives NRT_INVALID, one that is not a live object
 * NRT_INVALID_HANDLE.  Output pointers are written on success only.
 *
 * This library traces; it has no network, no microcode and no collectives over several workers.  Calls that
 * would need them are here and say NRT_INVALID, with a warning in the log.  docs/abi.md has a
 * table of all calls and what they do.
 *
 * vnc is a logical NeuronCore, counted from 0 among those that this process has.
 */
#ifndef NRT_NRT_H
#define NRT_NRT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nrt/nrt_status.h>
#include <nrt/nrt_version.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NRT_MAJOR_VERSION 2
#define NRT_MINOR_VERSION 0

typedef struct nrt_model nrt_model_t;
typedef struct nrt_tensor nrt_tensor_t;
typedef struct nrt_cc_context nrt_cc_context_t;
typedef void nrt_tensor_set_t;

/* ---- lifecycle ---------------------------------------------------------------------------- */

typedef enum {
	NRT_FRAMEWORK_TYPE_INVALID = 0,
	NRT_FRAMEWORK_TYPE_NO_FW = 1,
	NRT_FRAMEWORK_TYPE_TENSORFLOW = 2,
	NRT_FRAMEWORK_TYPE_PYTORCH = 3,
	NRT_FRAMEWORK_TYPE_MXNET = 4,
	NRT_FRAMEWORK_TYPE_PRECHECK = 5,
} nrt_framework_type_t;

/*
 * Finds devices, reserves cores, resets them.  Both version texts may be NULL or empty; 63 bytes of
 * each are copied, for the log.  Calling it again after success does nothing and succeeds.  After a failure the
 * state is as before and it may be called again.  A second thread waits for the first one and shares its
 * success.  Not for signal handlers: one that has interrupted nrt_init or another call gets NRT_FAILURE.
 *
 * NRT_INVALID: no device, no permission, a driver that does not fit, a setting that is malformed.
 * NRT_FAILURE: the cores asked for are not free.
 */
NRT_API NRT_STATUS nrt_init(
	nrt_framework_type_t framework, const char *fw_version, const char *fal_version);

/* Unloads all models, frees all tensors and sets (their handles die), gives the cores back.  Waits for
 * calls in progress; new ones get NRT_CLOSED meanwhile.  nrt_init may follow.  Nothing happens when not
 * initialised, while another thread is in nrt_init or nrt_close, or inside of another call (from a signal
 * handler). */
NRT_API void nrt_close(void);

/* ---- topology ----------------------------------------------------------------------------- */

/* Logical cores of the machine, also those beyond its first 32 devices, which no process can have.  This and the
 * next three are legal at any time. */
NRT_API NRT_STATUS nrt_get_total_vnc_count(uint32_t *vnc_count);
/* The same under its old name. */
NRT_API NRT_STATUS nrt_get_total_nc_count(uint32_t *nc_count);
/* Logical cores of this process: those it has after nrt_init, those that the environment asks for before,
 * which may be more than the machine has: nrt_init then fails. */
NRT_API NRT_STATUS nrt_get_visible_vnc_count(uint32_t *vnc_count);
/* The same under its old name. */
NRT_API NRT_STATUS nrt_get_visible_nc_count(uint32_t *nc_count);

/* Families of instances: nrt_instance_info_t.family. */
enum {
	NRT_INSTANCE_UNKNOWN = 0,
	NRT_INSTANCE_INF1 = 1,
	NRT_INSTANCE_TRN1 = 2,
	NRT_INSTANCE_TRN1N = 3,
	NRT_INSTANCE_INF2 = 4,
	NRT_INSTANCE_TRN2 = 5,
	NRT_INSTANCE_TRN2N = 6,
	NRT_INSTANCE_INF2E = 7,
	NRT_INSTANCE_TRN2P = 8,
	NRT_INSTANCE_TRN2U = 9,
	NRT_INSTANCE_TRN2E = 10,
	NRT_INSTANCE_TRN2EU = 11,
	NRT_INSTANCE_TRN2AC = 12,
	NRT_INSTANCE_TRN2UAC = 13,
	NRT_INSTANCE_TRN3 = 14,
	NRT_INSTANCE_TRN3PDS98 = 15,
};

/* Sizes of instances: nrt_instance_info_t.size. */
enum {
	NRT_INSTANCE_SIZE_1XL = 0,
	NRT_INSTANCE_SIZE_2XL = 1,
	NRT_INSTANCE_SIZE_4XL = 2,
	NRT_INSTANCE_SIZE_6XL = 3,
	NRT_INSTANCE_SIZE_8XL = 4,
	NRT_INSTANCE_SIZE_24XL = 5,
	NRT_INSTANCE_SIZE_32XL = 6,
	NRT_INSTANCE_SIZE_48XL = 7,
	NRT_INSTANCE_SIZE_3XL = 8,
	NRT_INSTANCE_SIZE_UNKNOWN = 9,
	NRT_INSTANCE_SIZE_NUM = NRT_INSTANCE_SIZE_UNKNOWN,
};

/* 32 bytes. */
typedef struct nrt_instance_info {
	uint32_t family; /* NRT_INSTANCE_... */
	uint32_t size;	 /* NRT_INSTANCE_SIZE_... */
	char arch_name[16];
	char device_revision[8];
} nrt_instance_info_t;

/* What machine this is.  instance_info_len: bytes that the caller's structure has; no more than these
 * are written. */
NRT_API NRT_STATUS nrt_get_instance_info(nrt_instance_info_t *info, size_t instance_info_len);

/* The number that the host has for what this process (perhaps in a container) calls neuron_dev. */
NRT_API NRT_STATUS nrt_host_device_id_get(int neuron_dev, uint32_t *host_device_id);

/* Routing ids, one per host device number.  *count: entries that the array has; set to those that
 * were written. */
NRT_API NRT_STATUS nrt_host_device_id_rid_map_get(uint32_t *count, uint32_t *host_did_to_rid_map);

/* ---- types of data ------------------------------------------------------------------------ */

typedef enum nrt_dtype {
	NRT_DTYPE_UNKNOWN = 0,
	NRT_DTYPE_INVALID = 0,
	NRT_DTYPE_UINT64 = 1,
	NRT_DTYPE_INT8 = 2,
	NRT_DTYPE_UINT8 = 3,
	NRT_DTYPE_INT16 = 4,
	NRT_DTYPE_UINT16 = 5,
	NRT_DTYPE_BFLOAT16 = 6,
	NRT_DTYPE_FLOAT16 = 7,
	NRT_DTYPE_INT32 = 8,
	NRT_DTYPE_UINT32 = 9,
	NRT_DTYPE_FLOAT32 = 10,
	NRT_DTYPE_FP32R = 11,
	NRT_DTYPE_INT64 = 12,
	NRT_DTYPE_FP8_E3 = 13,
	NRT_DTYPE_FP8_E4 = 14,
	NRT_DTYPE_FP8_E5 = 15,
} nrt_dtype_t;

/* What a collective does with the elements. */
typedef enum nrt_op_type {
	NRT_OP_ADD = 0,
	NRT_OP_FMA = 1,
	NRT_OP_MAX = 2,
	NRT_OP_MIN = 3,
	NRT_OP_INVALID = 15,
} nrt_op_type_t;

typedef enum nrt_cc_op_type {
	NRT_CC_ALLGATHER = 0,
	NRT_CC_ALLREDUCE = 1,
	NRT_CC_REDUCESCATTER = 2,
} nrt_cc_op_type_t;

/* ---- tensors ------------------------------------------------------------------------------ */

typedef enum {
	NRT_TENSOR_PLACEMENT_DEVICE = 0,
	NRT_TENSOR_PLACEMENT_HOST = 1,
	NRT_TENSOR_PLACEMENT_VIRTUAL = 2, /* not supported: NRT_INVALID */
} nrt_tensor_placement_t;

/*
 * Allocates size bytes (not 0) on the device of core vnc, or in host memory.  Contents are undefined.
 * name may be NULL; it is copied.  The caller frees *tensor with nrt_tensor_free.
 * NRT_RESOURCE: no memory left.
 */
NRT_API NRT_STATUS nrt_tensor_allocate(nrt_tensor_placement_t placement, int vnc, size_t size,
	const char *name, nrt_tensor_t **tensor);

/* A tensor without memory, for nrt_tensor_attach_buffer.  name may be NULL.  The caller frees it. */
NRT_API NRT_STATUS nrt_tensor_allocate_empty(const char *name, nrt_tensor_t **tensor);

/* A tensor that shares size bytes from offset of source's memory, which stays as long as one of them
 * does.  name may be NULL.  The caller frees it.  NRT_INVALID: out of range. */
NRT_API NRT_STATUS nrt_tensor_allocate_slice(const nrt_tensor_t *tensor_source, size_t offset,
	size_t size, const char *name, nrt_tensor_t **tensor_slice);

/* Gives a tensor the caller's memory in place of what it had; that is freed if it was the
 * tensor's own.  The buffer stays the caller's and must outlive the tensor. */
NRT_API NRT_STATUS nrt_tensor_attach_buffer(nrt_tensor_t *tensor, void *buffer, size_t size);

/* Gives the handle up and sets *tensor to NULL.  The memory goes when no tensor set and no execution uses it
 * any more.  NULL, and NULL inside, are harmless. */
NRT_API void nrt_tensor_free(nrt_tensor_t **tensor);

/* Copies size bytes from offset of the tensor to buf.  NRT_INVALID: out of range. */
NRT_API NRT_STATUS nrt_tensor_read(
	const nrt_tensor_t *tensor, void *buf, size_t offset, size_t size);

/* Copies size bytes from buf to offset of the tensor.  NRT_INVALID: out of range. */
NRT_API NRT_STATUS nrt_tensor_write(
	nrt_tensor_t *tensor, const void *buf, size_t offset, size_t size);

/* One transfer of a batch.  24 bytes. */
typedef struct nrt_tensor_batch_op {
	uint64_t offset; /* bytes, within the tensor */
	uint64_t size;	 /* bytes */
	void *buffer;	 /* the host's side */
} nrt_tensor_batch_op_t;

/* Transfers of one tensor.  24 bytes. */
typedef struct nrt_tensor_batch {
	const nrt_tensor_t *tensor;
	const nrt_tensor_batch_op_t *ops;
	uint32_t num_ops;
} nrt_tensor_batch_t;

/* Many reads, or writes, in one call.  unsafe: do not wait for executions that use the tensors. */
NRT_API NRT_STATUS nrt_tensor_read_batch(
	const nrt_tensor_batch_t *batches, uint64_t num_batches, bool unsafe);
NRT_API NRT_STATUS nrt_tensor_write_batch(
	const nrt_tensor_batch_t *batches, uint64_t num_batches, bool unsafe);

/* Copies size bytes between tensors.  NRT_INVALID: out of range, or two device tensors of different
 * cores. */
NRT_API NRT_STATUS nrt_tensor_copy(const nrt_tensor_t *src, size_t src_offset, nrt_tensor_t *dst,
	size_t dst_offset, size_t size);

/* Sets size bytes from offset to the low byte of value. */
NRT_API NRT_STATUS nrt_tensor_memset(nrt_tensor_t *tensor, uint64_t offset, int value, size_t size);

/* Bytes of the tensor; 0 when it is not one. */
NRT_API size_t nrt_tensor_get_size(const nrt_tensor_t *tensor);

/* Where this process sees the tensor's memory: a host tensor's.  NULL for a device tensor, whose memory is not
 * mapped, and for what is no tensor. */
NRT_API void *nrt_tensor_get_va(const nrt_tensor_t *tensor);

/* 24 bytes. */
typedef struct nrt_tensor_device_allocation_info {
	uint64_t physical_address; /* in the device's address space */
	size_t size;		   /* bytes of the allocation; perhaps more than the tensor's */
	int hbm_index;		   /* memory bank of the device */
} nrt_tensor_device_allocation_info_t;

/* Where a device tensor lies.  NRT_INVALID: a host tensor.  NRT_FAILURE: the driver does not give addresses
 * away. */
NRT_API NRT_STATUS nrt_tensor_get_device_allocation_info(
	const nrt_tensor_t *tensor, nrt_tensor_device_allocation_info_t *alloc_info);

/*
 * Waits until the output tensor has been completed expected_completion_count times since its counter was
 * reset.  timeout: microseconds; negative waits without a limit and warns after 30 s.
 * NRT_TIMEOUT: not within that time.
 */
NRT_API NRT_STATUS nrt_tensor_check_output_completion(
	const nrt_tensor_t *output_tensor, int64_t timeout, uint64_t expected_completion_count);

/* Sets that counter to 0. */
NRT_API NRT_STATUS nrt_tensor_reset_output_completion(nrt_tensor_t *output_tensor);

/* ---- device memory ------------------------------------------------------------------------ */

/* Bank hbm_idx of a device in this process's address space.  Here NRT_INVALID: the memory is not
 * mapped. */
NRT_API NRT_STATUS nrt_get_hbm_mmap_va(int device_id, int hbm_idx, void **addr, size_t *size);

/* A dma-buf descriptor for device memory at va, size bytes.  Here NRT_INVALID: no peer can use it. */
NRT_API NRT_STATUS nrt_get_dmabuf_fd(uint64_t va, uint64_t size, int *fd);

/* PCI address of the network adapter next to the device that has va.  *len: bytes of efa_bdf with
 * the terminator; set to the text's length without it.  Here NRT_INVALID: no adapter. */
NRT_API NRT_STATUS nrt_get_attached_efa_bdf(const void *va, char *efa_bdf, size_t *len);

/* 16 bytes; later versions may add at the end. */
typedef struct nrt_vnc_memory_stats {
	size_t bytes_used;
	size_t bytes_limit;
} nrt_vnc_memory_stats_t;

/* Device memory of a core.  stats_size_in: bytes that the caller's structure has; *stats_size_out: those
 * that were written. */
NRT_API NRT_STATUS nrt_get_vnc_memory_stats(
	uint32_t vnc, nrt_vnc_memory_stats_t *stats, size_t stats_size_in, size_t *stats_size_out);

/* ---- tensor sets: names to tensors -------------------------------------------------------- */

NRT_API NRT_STATUS nrt_allocate_tensor_set(nrt_tensor_set_t **result);

/* Frees the set, not its tensors, and sets *tensor_set to NULL. */
NRT_API void nrt_destroy_tensor_set(nrt_tensor_set_t **tensor_set);

/* Adds a tensor under a name of 1..255 bytes, or puts it in the place of the one that has the name. */
NRT_API NRT_STATUS nrt_add_tensor_to_tensor_set(
	nrt_tensor_set_t *tensor_set, const char *tensor_name, nrt_tensor_t *tensor);

/* The tensor with this name; it stays whose it was.  NRT_INVALID: there is none. */
NRT_API NRT_STATUS nrt_get_tensor_from_tensor_set(
	nrt_tensor_set_t *tensor_set, const char *tensor_name, nrt_tensor_t **tensor);

/* ---- models ------------------------------------------------------------------------------- */

/*
 * Loads a model (bytes of the format in docs/virtual-device.md) onto core vnc, or onto the one with the fewest
 * models when vnc is -1.  vnc_count is deprecated: -1 or 1.  The bytes are not used after the call.
 * NRT_INVALID: not such a model, or no such core.  NRT_UNSUPPORTED_NEFF_VERSION: a model of the
 * vendor's compiler.  NRT_RESOURCE: no device memory left.
 */
NRT_API NRT_STATUS nrt_load(
	const void *neff_bytes, size_t size, int32_t vnc, int32_t vnc_count, nrt_model_t **model);

/*
 * The same for a model that works together with others: it is number ctx_device_id of ctx_device_count, at most
 * 64.  Those of one text and one NEURON_RT_ROOT_COMM_ID meet, in this process and others on the host.
 * NRT_INVALID also: no such number, several without that variable, or a gathering of the model has room for another number of members.
 */
NRT_API NRT_STATUS nrt_load_collectives(const void *neff_bytes, size_t size, int32_t vnc,
	int32_t vnc_count, uint32_t ctx_device_id, uint32_t ctx_device_count, nrt_model_t **model);

/* Unloads the model; the handle dies.  Waits for an execution of it. */
NRT_API NRT_STATUS nrt_unload(nrt_model_t *model);

/*
 * Runs the model once and waits for it.  The sets must have a device tensor of the right size for every input
 * and output of the model, by name; further tensors are ignored.
 * NRT_EXEC_BAD_INPUT: one is missing or does not fit.  NRT_TIMEOUT: no end within
 * NEURON_RT_EXEC_TIMEOUT seconds (30).  Otherwise what the device reports.
 */
NRT_API NRT_STATUS nrt_execute(
	nrt_model_t *model, const nrt_tensor_set_t *input_set, nrt_tensor_set_t *output_set);

/* The same repeat_count times, which is 1 at least; ends with the first that fails. */
NRT_API NRT_STATUS nrt_execute_repeat(nrt_model_t *model, const nrt_tensor_set_t *input_set,
	nrt_tensor_set_t *output_set, int repeat_count);

/* Cores that one instance of the model takes: 1. */
NRT_API NRT_STATUS nrt_get_model_vnc_count(const nrt_model_t *model, uint32_t *vnc_count);
/* The same under its old name. */
NRT_API NRT_STATUS nrt_get_model_nc_count(const nrt_model_t *model, uint32_t *nc_count);

/* ---- collectives -------------------------------------------------------------------------- */

/* Who takes part.  32 bytes. */
typedef struct nrt_cc_comm {
	uint32_t *replica_group; /* rank_n members */
	uint32_t rank;		 /* which of them this is */
	uint32_t rank_n;
	uint32_t ctx_device_id;
	uint32_t ctx_device_count;
	uint32_t vnc;
} nrt_cc_comm_t;

/* 16 bytes. */
typedef struct nrt_tensor_list {
	nrt_tensor_t **tensors;
	size_t num_tensors;
} nrt_tensor_list_t;

/*
 * Joins core vnc to the communicator of g_device_count workers, as number g_device_id.  One worker is
 * enough for itself.  NRT_INVALID: more than one (there is no network here), or no such number or core.
 */
NRT_API NRT_STATUS nrt_build_global_comm(
	int32_t vnc, uint32_t g_device_id, uint32_t g_device_count);
/* The same for collectives that the host drives. */
NRT_API NRT_STATUS nrt_cc_global_comm_init(
	uint32_t vnc, uint32_t g_device_id, uint32_t g_device_count);

/* A further stream of collectives.  Here NRT_INVALID: there is none. */
NRT_API NRT_STATUS nrt_cc_create_stream(uint32_t stream_id);

#ifdef __cplusplus
}
#endif

#endif
