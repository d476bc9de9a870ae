/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_sum.h - size and checksum of the device profiles that lie beside the segments of a
 * recording.
 */
#ifndef NTRACE_RECORD_DEVICE_SUM_H
#define NTRACE_RECORD_DEVICE_SUM_H

#include <errno.h>
#include <stdbool.h>

#include "runtime/record/recording.h"

/* Opens a regular file without waiting for anybody; -EINVAL for what is none; -errno. */
int device_sum_open(int dir_fd, const char *name);

/* Reads all of a file from its begin.  0 or -errno. */
int device_sum(int fd, uint64_t *ret_bytes, uint64_t *ret_check);

/* Is the file that the frame names as it was?  0; -ENOENT and other errors of opening and reading; -EMSGSIZE: another
 * size; -EBADMSG: another checksum. */
int device_sum_verify(int dir_fd, const struct rec_device_profile *p);

/* Copies the file from one recording's directory to another's, where it gets this number and must not be.  0, -EBADMSG and so on as above: it
 * is not copied when it is not as it was; -errno. */
int device_sum_copy(int from_fd, const struct rec_device_profile *p, int to_fd, uint32_t to_index);

/* Is this error of the file's own: is it missing, or not as it was? */
static inline bool device_sum_damaged(int rc)
{
	return rc == -ENOENT || rc == -EMSGSIZE || rc == -EBADMSG || rc == -EINVAL;
}

#endif
