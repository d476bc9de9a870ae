/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_async_sendrecv.h - tensors from machine to machine.
 *
 * This library has no network: every call gives NRT_INVALID once the runtime is initialised, with a
 * warning in the log, and writes nothing.  The rules of nrt.h hold here too.
 */
#ifndef NRT_ASYNC_SENDRECV_H
#define NRT_ASYNC_SENDRECV_H

#include <nrt/nrt.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One direction of a connection between two cores; a transfer over it. */
typedef struct nrt_async_sendrecv_comm nrt_async_sendrecv_comm_t;
typedef struct nrt_async_sendrecv_request nrt_async_sendrecv_request_t;

/* How many connections a core may have, and transfers a connection. */
NRT_API NRT_STATUS nrt_async_sendrecv_get_max_num_communicators_per_lnc(int *num);
NRT_API NRT_STATUS nrt_async_sendrecv_get_max_num_pending_request(int *num);

/* Begin and end of use on core lnc (counted over the machine). */
NRT_API NRT_STATUS nrt_async_sendrecv_init(int lnc);
NRT_API NRT_STATUS nrt_async_sendrecv_close(int lnc);

/* The two ends of a connection; it stands when nrt_async_sendrecv_test_comm says *done. */
NRT_API NRT_STATUS nrt_async_sendrecv_connect(
	const char *peer_ip, int peer_lnc, int lnc, nrt_async_sendrecv_comm_t **send_comm);
NRT_API NRT_STATUS nrt_async_sendrecv_accept(
	const char *peer_ip, int peer_lnc, int lnc, nrt_async_sendrecv_comm_t **recv_comm);
NRT_API NRT_STATUS nrt_async_sendrecv_test_comm(nrt_async_sendrecv_comm_t *comm, bool *done);

/* Begin a transfer of length bytes at offset of the tensor. */
NRT_API NRT_STATUS nrt_async_sendrecv_send_tensor(nrt_tensor_t *tensor, size_t offset,
	size_t length, nrt_async_sendrecv_comm_t *send_comm,
	nrt_async_sendrecv_request_t **request);
NRT_API NRT_STATUS nrt_async_sendrecv_recv_tensor(nrt_tensor_t *tensor, size_t offset,
	size_t length, nrt_async_sendrecv_comm_t *recv_comm,
	nrt_async_sendrecv_request_t **request);

/* Is it over, and how many bytes were it? */
NRT_API NRT_STATUS nrt_async_sendrecv_test_request(
	nrt_async_sendrecv_request_t *request, bool *done, size_t *size);

/* What was received is in the device's memory after this. */
NRT_API NRT_STATUS nrt_async_sendrecv_flush(int lnc);

#ifdef __cplusplus
}
#endif

#endif
