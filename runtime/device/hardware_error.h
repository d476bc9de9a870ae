/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hardware_error.h - errors of the hardware, told to the kernel log of the machine: tools that replace broken
 * machines look there for `NEURON_HW_ERR=`.
 */
#ifndef NTRACE_DEVICE_HARDWARE_ERROR_H
#define NTRACE_DEVICE_HARDWARE_ERROR_H

#include "runtime/device/device.h"

/* Any thread that keeps the devices.  Nothing for a status that is no such error.  A real device is not told without
 * NTRACE_ALLOW_RESET=1.  What cannot be told is a WARN. */
void device_tell_hardware_error(
	const struct device_system *s, const struct device_core *core, NRT_STATUS status);

#endif
