/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt.h - the Neuron runtime's C interface, as far as this library implements it.
 *
 * Order of use: nrt_init; nrt_load; tensors and sets; nrt_execute; free and unload; nrt_close.
 *
 * Every call that returns a status gives NRT_UNINITIALIZED before nrt_init, NRT_CLOSED while nrt_close runs,
 * NRT_FAILURE in the child of a fork (which cannot use the library; exec first), unless it says
 * otherwise.  All calls may be made from any thread.  A handle that is NULL gives NRT_INVALID, one that is not
 * a live object NRT_INVALID_HANDLE.  Output pointers are written on success only.
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
 * Finds devices, reserves cores, resets them.  Both version texts may be NULL or empty; they are
 * not kept.  Calling it again after success does nothing and succeeds.  After a failure the state is as before
 * and it may be called again.
 *
 * NRT_INVALID: no device, no permission, a driver that does not fit, a setting that is malformed.
 * NRT_FAILURE: the cores asked for are not free.
 */
NRT_API NRT_STATUS nrt_init(
	nrt_framework_type_t framework, const char *fw_version, const char *fal_version);

/* Unloads all models, frees all tensors and sets (their handles die), gives the cores back.  Waits for
 * calls in progress.  nrt_init may follow.  Nothing happens when not initialised. */
NRT_API void nrt_close(void);

/* ---- topology; legal at any time ---------------------------------------------------------- */

/* Logical cores of the machine. */
NRT_API NRT_STATUS nrt_get_total_vnc_count(uint32_t *vnc_count);
/* The same under its old name. */
NRT_API NRT_STATUS nrt_get_total_nc_count(uint32_t *nc_count);
/* Logical cores of this process: those it has after nrt_init, those that the environment asks for before. */
NRT_API NRT_STATUS nrt_get_visible_vnc_count(uint32_t *vnc_count);
/* The same under its old name. */
NRT_API NRT_STATUS nrt_get_visible_nc_count(uint32_t *nc_count);

/* ---- tensors ------------------------------------------------------------------------------ */

typedef enum {
	NRT_TENSOR_PLACEMENT_DEVICE = 0,
	NRT_TENSOR_PLACEMENT_HOST = 1,
	NRT_TENSOR_PLACEMENT_VIRTUAL = 2, /* not supported: NRT_INVALID */
} nrt_tensor_placement_t;

typedef enum {
	NRT_DTYPE_UNKNOWN = 0,
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

#define NRT_TENSOR_NAME_MAX 256 /* with the terminator */

/*
 * Allocates size bytes (not 0) on the device of core vnc, or in host memory.  Contents are undefined.
 * name may be NULL; it is copied.  The caller frees *tensor with nrt_tensor_free.
 * NRT_RESOURCE: no memory left.
 */
NRT_API NRT_STATUS nrt_tensor_allocate(nrt_tensor_placement_t placement, int vnc, size_t size,
	const char *name, nrt_tensor_t **tensor);

/* Gives the handle up and sets *tensor to NULL.  The memory goes when no tensor set and no execution uses it
 * any more.  NULL, and NULL inside, are harmless. */
NRT_API void nrt_tensor_free(nrt_tensor_t **tensor);

/* Copies size bytes from offset of the tensor to buf.  NRT_INVALID: out of range. */
NRT_API NRT_STATUS nrt_tensor_read(
	const nrt_tensor_t *tensor, void *buf, size_t offset, size_t size);

/* Copies size bytes from buf to offset of the tensor.  NRT_INVALID: out of range. */
NRT_API NRT_STATUS nrt_tensor_write(
	nrt_tensor_t *tensor, const void *buf, size_t offset, size_t size);

/* Bytes of the tensor; 0 when it is not one. */
NRT_API size_t nrt_tensor_get_size(const nrt_tensor_t *tensor);

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

/* Cores that one instance of the model takes: 1. */
NRT_API NRT_STATUS nrt_get_model_vnc_count(const nrt_model_t *model, uint32_t *vnc_count);
/* The same under its old name. */
NRT_API NRT_STATUS nrt_get_model_nc_count(const nrt_model_t *model, uint32_t *nc_count);

typedef enum {
	NRT_TENSOR_USAGE_INPUT = 0,
	NRT_TENSOR_USAGE_OUTPUT = 1,
} nrt_tensor_usage_t;

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
	nrt_tensor_info_t tensor_array[];
} nrt_tensor_info_array_t;

/* Inputs and outputs in the order of the model.  The caller frees *tensor_info with the next call. */
NRT_API NRT_STATUS nrt_get_model_tensor_info(
	nrt_model_t *model, nrt_tensor_info_array_t **tensor_info);
/* NULL is harmless.  Legal at any time. */
NRT_API NRT_STATUS nrt_free_model_tensor_info(nrt_tensor_info_array_t *tensor_info);

#ifdef __cplusplus
}
#endif

#endif
