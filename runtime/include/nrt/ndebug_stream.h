/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ndebug_stream.h - what kernels on a core print, as a stream of events.
 *
 * No model of this library prints: there is no stream, and the calls give NRT_INVALID once the runtime is
 * initialised, with a warning in the log.  The rules of nrt.h hold here too.
 */
#ifndef NRT_NDEBUG_STREAM_H
#define NRT_NDEBUG_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nrt/nrt_status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ndebug_stream_event_type {
	NDEBUG_STREAM_EVENT_TYPE_INVALID = 0,
	NDEBUG_STREAM_EVENT_TYPE_DEBUG_TENSOR_READ = 1,
} ndebug_stream_event_type_t;

/* 64 bytes, before each payload. */
typedef struct ndebug_stream_event_header {
	uint64_t data_size; /* bytes of the payload */
	uint32_t type;	    /* ndebug_stream_event_type_t */
	char reserved[52];
} ndebug_stream_event_header_t;

/* Payload of DEBUG_TENSOR_READ: 1024 bytes, then the data. */
typedef struct ndebug_stream_payload_debug_tensor_read {
	char prefix[512];
	uint32_t logical_nc_id;
	uint32_t pipe;
	char tensor_dtype[16];
	uint64_t tensor_shape[8];
	uint64_t tensor_data_size; /* bytes */
	char reserved0[416];	   /* 2.31 keeps two more numbers in it; where, is not published */
	__extension__ char tensor_data[];
} ndebug_stream_payload_debug_tensor_read_t;

/* The stream of a core, as a descriptor to poll.  One client per core. */
NRT_API NRT_STATUS nrt_debug_client_connect(int logical_nc_idx, int *stream_fd);
/* Ends that. */
NRT_API void nrt_debug_client_connect_close(int stream_fd);
/* The next event.  The caller frees *payload with free. */
NRT_API NRT_STATUS nrt_debug_client_read_one_event(
	int stream_fd, ndebug_stream_event_header_t *header, void **payload);

#ifdef __cplusplus
}
#endif

#endif
