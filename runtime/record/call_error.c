/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call_error.c - see the header.
 */
#include "runtime/record/call_error.h"

#include <errno.h>
#include <stdbool.h>

#include "runtime/base/errno_name.h"
#include "vmlinux/ioctl_table.h"

static bool hands_on(uint32_t request)
{
	const struct ioctl_row *row = ioctl_row_find(request);

	return row && row->flags & (IOCTL_F_COPY | IOCTL_F_HANDS_ON);
}

int64_t call_error(uint32_t request, int32_t result, int32_t dma_error)
{
	/* What a failed copy from or to user memory left over; no request has a positive success. */
	if (result > 0)
		return EFAULT;
	if (result == -1 && hands_on(request))
		return dma_error ? dma_error : CALL_ERROR_UNTOLD;
	return -(int64_t)result;
}

const char *call_error_name(int64_t error)
{
	return error == CALL_ERROR_UNTOLD ? "-1 (the driver tells no reason)" : errno_name(error);
}
