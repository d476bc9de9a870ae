/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_status.h - what calls of the Neuron runtime return.
 *
 * Numbers are those of the public ABI (libnrt 2.x).  0 is success; anything else means that the call
 * did not do what it was asked for.  8 and 12 are not used.
 */
#ifndef NRT_STATUS_H
#define NRT_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

/* Stands before every call that the library exports. */
#ifndef NRT_API
#define NRT_API __attribute__((visibility("default")))
#endif

typedef enum {
	NRT_SUCCESS = 0,
	NRT_FAILURE = 1,	/* none of the following */
	NRT_INVALID = 2,	/* an argument or setting is not acceptable */
	NRT_INVALID_HANDLE = 3, /* not a live object of this library */
	NRT_RESOURCE = 4,	/* out of device or host memory, or another resource */
	NRT_TIMEOUT = 5,	/* an operation did not end in time */
	NRT_HW_ERROR = 6,	/* the device failed */
	NRT_QUEUE_FULL = 7,
	NRT_LOAD_NOT_ENOUGH_NC = 9, /* no core, or not enough, to load a model on */
	NRT_UNSUPPORTED_NEFF_VERSION = 10,
	NRT_FAIL_HOST_MEM_ALLOC = 11, /* old programs know it; not returned */
	NRT_UNINITIALIZED = 13,	      /* before nrt_init */
	NRT_CLOSED = 14,	      /* after nrt_close has begun */
	NRT_QUEUE_EMPTY = 15,
	NRT_EXEC_UNIT_UNRECOVERABLE = 101,

	NRT_EXEC_BAD_INPUT = 1002, /* a tensor is missing or has the wrong size */
	NRT_EXEC_COMPLETED_WITH_NUM_ERR = 1003,
	NRT_EXEC_COMPLETED_WITH_ERR = 1004,
	NRT_EXEC_NC_BUSY = 1005, /* the core is in use */
	NRT_EXEC_OOB = 1006,	 /* an access outside of a tensor */
	NRT_COLL_PENDING = 1100, /* not an error: try again */

	NRT_EXEC_HW_ERR_COLLECTIVES = 1200,
	NRT_EXEC_HW_ERR_HBM_UE = 1201,
	NRT_EXEC_HW_ERR_NC_UE = 1202,
	NRT_EXEC_HW_ERR_DMA_ABORT = 1203,
	NRT_EXEC_SW_NQ_OVERFLOW = 1204,
	NRT_EXEC_HW_ERR_REPAIRABLE_HBM_UE = 1205,
	NRT_NETWORK_PROXY_FAILURE = 1206,
} NRT_STATUS;

/* The name of a status, "UNKNOWN" for what is none.  Not in the library, nor in the vendor's: programs bring
 * their own under this name. */
const char *nrt_get_status_as_str(NRT_STATUS status);

#ifdef __cplusplus
}
#endif

#endif
