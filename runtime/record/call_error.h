/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call_error.h - why a driver call failed: what its result says, or what the DMA path inside of it said.
 *
 * The driver's waiting functions tell that they failed with a -1, which is no errno, and the requests that copy or wait
 * hand it on: a number that looks like EPERM and has nothing to do with permissions.  Whoever names the error of a call
 * asks here.
 */
#ifndef NTRACE_RECORD_CALL_ERROR_H
#define NTRACE_RECORD_CALL_ERROR_H

#include <stdint.h>

/* Failed, and nothing tells of what; any other error is a positive errno. */
#define CALL_ERROR_UNTOLD (-1)

/* 0: the call did not fail.  dma_error: the errno of the last work on the DMA path that failed inside of the call, 0: none did,
 * or it is not known. */
int64_t call_error(uint32_t request, int32_t result, int32_t dma_error);

/* "EINVAL"; NULL: the number has no name. */
const char *call_error_name(int64_t error);

#endif
