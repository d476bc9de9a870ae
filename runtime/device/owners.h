/* SPDX-License-Identifier: Apache-2.0 */
/*
 * owners.h - who has the cores that this process did not get.
 *
 * The driver does not tell who owns a mark.  It tells who is attached to a device, which every owner is
 * that was made by this library, and it prints the owners to the kernel log.
 */
#ifndef NTRACE_DEVICE_OWNERS_H
#define NTRACE_DEVICE_OWNERS_H

#include <stdint.h>

struct device;
struct device_system;

/* Names in the log the other processes that are attached to neuron<first> to neuron<last>: pid as the
 * driver knows it, and what it runs where that can be seen.  Opens and closes working handles where
 * there are none. */
void owners_say(struct device_system *s, uint32_t first, uint32_t last);

/* Lets the driver print the owner of a physical core to the kernel log, and says so. */
void owners_print(const struct device_system *s, uint32_t core);

/* A process that is attached to a device, and the device memory that it has there. */
struct owners_user {
	int32_t pid; /* as the driver knows it */
	uint64_t bytes;
};
/* Those of `device`, as many as fit.  Their number, or -errno. */
int owners_memory(const struct device *device, struct owners_user *ret, uint32_t max);

#endif
