/* SPDX-License-Identifier: Apache-2.0 */
/*
 * negotiate.h - whether a driver and this runtime fit: the parts that need no device.
 *
 * device_negotiate (device.h) is what asks the driver.
 */
#ifndef NTRACE_DEVICE_NEGOTIATE_H
#define NTRACE_DEVICE_NEGOTIATE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/device/device.h"

enum negotiate_verdict {
	NEGOTIATE_OK,
	NEGOTIATE_RUNTIME_OLD, /* the driver's range begins above the runtime's lower id */
	NEGOTIATE_DRIVER_OLD,  /* it ends below the higher one */
	NEGOTIATE_ARCH,	       /* no ids for this architecture */
};

/* arch: enum device_arch; min and max as COMPATIBLE_VERSION gives them.  *ret_id: the id that decided. */
enum negotiate_verdict negotiate_range(uint32_t arch, uint32_t min, uint32_t max, uint32_t *ret_id);

/* Major and minor of the text "2.24.7.0"; false when it does not begin with two numbers. */
bool negotiate_parse_version(const char *text, uint32_t *ret_major, uint32_t *ret_minor);

#endif
