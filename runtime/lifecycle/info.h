/* SPDX-License-Identifier: Apache-2.0 */
/*
 * info.h - tells the counting calls what nrt_init found.
 */
#ifndef NTRACE_LIFECYCLE_INFO_H
#define NTRACE_LIFECYCLE_INFO_H

#include <stdint.h>

/* Logical cores of the process and of the machine; 0, 0 after nrt_close. */
void info_set_cores(uint32_t visible, uint32_t total);

#endif
