/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.h - device memory with its sys_trace events.
 *
 * Allocating, freeing and copying from and to the host are one event span each, which contains exactly one
 * ioctl per GiB.  The other calls make no event: either the caller's event stands for them, or the
 * registry has none.  Any thread; nobody may
 * use a memory while it is freed.
 */
#ifndef NTRACE_EXEC_MEMORY_H
#define NTRACE_EXEC_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include <nrt/nrt_status.h>

#include "runtime/device/device.h"

/* Where a memory is, in events. */
#define MEMORY_LOCATION_DEVICE 2u

/* dma_mem_usage_type, as event_registry.c names them */
enum memory_usage {
	MEMORY_GENERIC = 0,
	MEMORY_INSTR_PE = 1,
	MEMORY_NOTIFICATION = 7,
	MEMORY_DMA_RING_IO = 20,
	MEMORY_TENSOR = 12,
	MEMORY_SCRATCHPAD = 11,
	MEMORY_USAGE_COUNT = 22
};

struct device_memory {
	const struct device_core *core; /* NULL = none */
	uint32_t nc;			/* logical core, for the events */
	enum memory_usage usage;
	uint64_t handle;
	uint64_t size;
	uint64_t address;	    /* of the device, 0 = not known */
	struct memory_entry *entry; /* in the table of who holds what, memory_table.h */
};

/* NRT_RESOURCE when the device is full. */
NRT_STATUS memory_alloc(const struct device_core *core, uint32_t nc, enum memory_usage usage,
	uint64_t size, struct device_memory *ret);
/* What the memory is for, in reports of who holds what; NULL is no name.  Copied. */
void memory_name(struct device_memory *m, const char *name);
/* Harmless on one that was never allocated. */
void memory_free(struct device_memory *m);

NRT_STATUS memory_copy_in(
	const struct device_memory *m, uint64_t offset, const void *from, uint64_t size);
NRT_STATUS memory_copy_out(const struct device_memory *m, uint64_t offset, void *to, uint64_t size);

/* One of the copies of a batch. */
NRT_STATUS memory_copy_of_batch(
	const struct device_memory *m, bool to_device, uint64_t offset, void *host, uint64_t size);
/* Between two memories of a device; ranges may overlap. */
NRT_STATUS memory_copy(const struct device_memory *from, uint64_t from_offset,
	const struct device_memory *to, uint64_t to_offset, uint64_t size);
NRT_STATUS memory_fill(const struct device_memory *m, uint64_t offset, uint64_t size, uint8_t byte);

/* The status for a failed request: -ENOMEM is NRT_RESOURCE, a device that is gone NRT_HW_ERROR, and so
 * on. */
NRT_STATUS status_from_errno(int rc);

#endif
