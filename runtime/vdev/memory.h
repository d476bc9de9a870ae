/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.h - device memory: memfds under small-integer handles.
 *
 * Each allocation is one memfd, mapped here and handed out over mem.sock, sealed so that nobody
 * can shrink it under our mapping.  A handle is the lowest free number from 1, per device.  The
 * memory belongs to the process that allocated it, or to the device (owner 0: notification rings;
 * every attached process may use them).  A reference keeps memory usable after its handle is
 * gone: a copy or an execution in flight survives MEM_FREE and the end of its process.
 */
#ifndef NTRACE_VDEV_MEMORY_H
#define NTRACE_VDEV_MEMORY_H

#include <stdatomic.h>
#include <stdint.h>

#include "runtime/vdev/device.h"

#define VDEV_MEMORY_NAME "ntrace-vdev-mem"
#define VDEV_PAGE 4096ull

struct vdev_memory {
	struct vdev_device *device;
	atomic_uint refs;
	int fd;
	uint8_t *map;
	uint64_t size;	      /* as asked */
	uint64_t mapped_size; /* whole pages */
	uint64_t handle;
	uint64_t address;  /* device address; says nothing but where it is not */
	pid_t owner;	   /* 0: the device */
	atomic_bool freed; /* has no handle any more */
	bool host;
	unsigned hbm; /* meaningless in host memory */
};

struct vdev_memory_wish {
	uint64_t size, align;
	bool host;
	uint32_t hbm;
	pid_t owner; /* 0: the device's */
};

/* Allocates for `caller`, who must be attached (-EACCES).  -EINVAL for size 0 or an alignment
 * that is no power of two, -ENOMEM beyond the device's memory or ours.  *ret is a reference to be
 * put. */
int vdev_memory_alloc(struct vdev_device *device, pid_t caller, const struct vdev_memory_wish *wish,
	struct vdev_memory **ret);
/* Memory that is on no list: no handle, no address, not counted.  size: whole pages.  NULL: no
 * memory. */
struct vdev_memory *vdev_memory_new(uint64_t size);
/* Reference to what the handle names, or NULL when the caller may not use it. */
struct vdev_memory *vdev_memory_get(struct vdev_device *device, pid_t caller, uint64_t handle);
struct vdev_memory *vdev_memory_ref(struct vdev_memory *memory);
void vdev_memory_put(struct vdev_memory *memory); /* NULL is fine; device->lock may be held */
void vdev_memory_cleanup(struct vdev_memory **memory);
#define _cleanup_memory_ _cleanup_(vdev_memory_cleanup)

/* Frees the handle; -EINVAL when it is none of the caller's. */
int vdev_memory_free(struct vdev_device *device, pid_t caller, uint64_t handle);

/* With device->lock held. */
struct vdev_memory *vdev_memory_get_locked(
	struct vdev_device *device, pid_t caller, uint64_t handle);
void vdev_memory_free_locked(struct vdev_device *device, uint64_t handle);
void vdev_memory_free_owner_locked(struct vdev_device *device, pid_t owner);

/* Bytes that a process has allocated, as asked. */
void vdev_memory_used_locked(
	const struct vdev_device *device, pid_t owner, uint64_t *ret_host, uint64_t *ret_device);

/* Writes `word` all over what is allocated in one HBM, whoever it belongs to. */
void vdev_memory_scrub(struct vdev_device *device, unsigned hbm, uint32_t word);

/* The bytes [offset, offset + size), or NULL when some are outside. */
uint8_t *vdev_memory_at(const struct vdev_memory *memory, uint64_t offset, uint64_t size);

#endif
