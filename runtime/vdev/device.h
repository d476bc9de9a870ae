/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device.h - the state of the virtual machine: its devices, who is attached to them, what they
 * hold.
 *
 * A device belongs to processes (tgids) the way the driver sees it: open() of a working handle
 * attaches the opener, close() by the same process detaches it, and the last detach releases its
 * memory, queues and running work.  Notification rings belong to the device and stay.  Any thread
 * may call anything here. Locks: device->lock before core->lock; neither is held while the memory
 * of a caller is touched or a model computes.  What must outlive its owner meanwhile (device
 * memory) is reference-counted.
 */
#ifndef NTRACE_VDEV_DEVICE_H
#define NTRACE_VDEV_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "runtime/vdev/core_faults.h"
#include "runtime/vdev/core_marks.h"
#include "runtime/vdev/device_clock.h"
#include "runtime/vdev/meeting.h"
#include "runtime/vdev/rings.h"
#include "runtime/vdev/rules.h"
#include "runtime/vdev/shapes.h"

#define VDEV_MAX_DEVICES 64u
#define VDEV_MAX_CORES 8u
#define VDEV_MAX_PROCESSES 16u
#define VDEV_MAX_ENGINES 132u
#define VDEV_QUEUES_PER_ENGINE 16u
#define VDEV_MAX_TOP_SP 16u

struct vdev_memory; /* memory.h */
struct vdev_launch; /* program.h */
struct vdev;

struct vdev_config {
	const struct vdev_instance *instance; /* generation and product; its devices do not count */
	const struct vdev_driver *driver;
	unsigned devices;
	unsigned cores; /* per device */
	uint64_t memory_bytes;
	uint64_t latency_us; /* before each launch */
	uint64_t switch_us;  /* device time of a model switch */
	struct vdev_timing timing;
	enum vdev_ring_full ring_full;
	bool no_ring_head; /* registers of rings read 0 */
	struct vdev_core_faults core_faults;
	const char *driver_version, *instance_id;
	uint32_t compat_min, compat_max;
	bool reset_fails; /* what NC_RESET_READY says */
	struct vdev_rules rules;
};

struct vdev_process {
	pid_t tgid; /* 0: free slot */
	unsigned open_count;
	struct vdev_memory *datastore; /* datastore.h; may be NULL */
};

struct vdev_queue {
	bool ready;
	pid_t owner;
	uint32_t tx_count, rx_count;
	struct vdev_memory *tx, *rx, *rxc; /* may be NULL */
	struct vdev_memory *ran;	   /* program of the last launch; may be NULL */
};

struct vdev_core {
	struct vdev_device *device;
	unsigned index;

	pthread_mutex_t lock; /* all below */
	pthread_cond_t wake;  /* work, cancel, stop, cinit */
	pthread_t thread;
	bool started, stop;
	struct vdev_launch *first, **last; /* waiting */
	struct vdev_launch *running;
	bool cancelled; /* the running one */
	bool dead;	/* until the core is reset */
	unsigned pending;
	uint64_t submitted, completed, acknowledged; /* since the core was reset */
	uint64_t begun;				     /* launches since the device started */
	struct vdev_clock clock;
	struct vdev_rings rings;
	struct vdev_ring_losses losses;

	uint32_t cinit; /* enum neuron_cinit_state */
	pid_t cinit_tid, cinit_tgid;
};

struct vdev_device {
	struct vdev *vdev;
	unsigned index;
	struct vdev_core cores[VDEV_MAX_CORES];

	pthread_mutex_t lock; /* all below */
	struct vdev_process processes[VDEV_MAX_PROCESSES];
	struct vdev_memory **memories; /* handle - 1 -> memory */
	size_t memory_slots;
	uint64_t next_address[5]; /* next device address per HBM, and of host memory */
	uint64_t used_bytes;	  /* of config.memory_bytes */
	struct vdev_queue queues[VDEV_MAX_ENGINES][VDEV_QUEUES_PER_ENGINE];
	struct vdev_queue exec_queues[VDEV_MAX_CORES];
	/* Handles of notification rings, 0: none. */
	uint64_t core_nq[VDEV_MAX_CORES][VDEV_NQ_TYPES][VDEV_NQ_ENGINES];
	uint64_t top_sp_nq[VDEV_MAX_TOP_SP][VDEV_NQ_TYPES][VDEV_NQ_ENGINES];
	uint32_t resets;
	bool scrubbed[4]; /* per HBM: HBM_SCRUB_START without its _WAIT */
};

struct vdev_counters {
	atomic_uint_fast64_t ioctls, ioctl_errors, unknown_ioctls;
	atomic_uint_fast64_t by_request[VDEV_RULES];
	atomic_uint_fast64_t bytes_to_device, bytes_from_device;
	atomic_uint_fast64_t launches;
	atomic_uint_fast64_t core_faults[VDEV_CORE_FAULT_NUMBERS];
	atomic_int_fast64_t open_handles, allocations, allocated_bytes;
};

struct vdev {
	struct vdev_config config;
	struct vdev_device *devices;
	struct vdev_marks marks;
	struct vdev_counters counters;
	struct vdev_meetings meetings;
	atomic_bool stopping;
	atomic_int requests_running;
};

/* 0 or -ENOMEM.  config is copied; the strings stay the caller's. */
int vdev_create(struct vdev *vdev, const struct vdev_config *config);
/* Makes blocked requests return and cores stop; requests may still run. */
void vdev_stop(struct vdev *vdev);
/* No request may run any more. */
void vdev_destroy(struct vdev *vdev);

static inline const struct vdev_arch *vdev_arch_of(const struct vdev *vdev)
{
	return vdev->config.instance->family->arch;
}

/* Device time of a core now; takes core->lock. */
uint64_t vdev_core_clock_ps(struct vdev_core *core);
/* Number of a core on the machine. */
static inline unsigned vdev_core_number(const struct vdev_core *core)
{
	return core->device->index * core->device->vdev->config.cores + core->index;
}

/* Number of a working handle's opener in the table; -EBUSY when 16 others are in it. */
int vdev_attach(struct vdev_device *device, pid_t tgid);
/* Undoes one attach; the last one releases what the process holds.  Nothing for a stranger. */
void vdev_detach(struct vdev_device *device, pid_t tgid);
bool vdev_attached(struct vdev_device *device, pid_t tgid);
/* The same with device->lock held; and its row in the table, NULL when it has none. */
bool vdev_attached_locked(const struct vdev_device *device, pid_t tgid);
struct vdev_process *vdev_find_process_locked(struct vdev_device *device, pid_t tgid);

/* Removes the ring with a number of VDEV_RING_NUMBER, of that core or its TopSP, and frees its memory. */
void vdev_end_ring(struct vdev_device *device, unsigned core, uint64_t number);

/* NC_RESET: drops work, exec queue, rings and cinit state of the cores in the map; returns its
 * number. */
uint32_t vdev_reset_cores(struct vdev_device *device, uint32_t core_map);

/* Gives up a queue's memory and forgets it; device->lock held. */
void vdev_queue_clear(struct vdev_queue *queue);

/* The "name value" lines of the stats file; the caller frees. NULL: no memory. */
char *vdev_stats_text(struct vdev *vdev, size_t *ret_size);

#endif
