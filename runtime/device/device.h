/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device.h - the driver shim: finding devices, bringing them up, the requests that the runtime sends.
 *
 * A root directory selects the devices: `<root>/dev/neuronN` and `<root>/sys/...`.  A character
 * device is real silicon and is refused unless it was allowed.  Every ioctl of the library goes through
 * device_ioctl.  A device_system is made by device_new and given back by device_shut_down; in
 * between its members do not change, except what a core's lock protects.
 *
 * Requests return 0 or -errno.  Functions that return NRT_STATUS have said in the log what was wrong.
 */
#ifndef NTRACE_DEVICE_DEVICE_H
#define NTRACE_DEVICE_DEVICE_H

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <nrt/nrt_status.h>

#include "runtime/base/clock.h"
#include "runtime/base/kept_fd.h"
#include "runtime/device/cores.h"
#include "runtime/device/forms.h"
#include "runtime/device/marks.h"
#include "runtime/device/notify.h"
#include "runtime/log/log.h"

#define DEVICE_MAX 64u /* device nodes that are looked for; cores.h says how many are used */

/* Architectures, as DEVICE_BASIC_INFO numbers them. */
enum device_arch { DEVICE_ARCH_V1 = 1, DEVICE_ARCH_V2 = 2, DEVICE_ARCH_V3 = 3, DEVICE_ARCH_V4 = 4 };

/* Memory categories of the driver, for its accounting. */
enum device_mem_type { DEVICE_MEM_CODE = 8, DEVICE_MEM_TENSORS = 9 };

/* What can be known without opening a device.  Cores are counted from those of neuron<first_index> on,
 * as the driver counts them; so devices behind a gap in the numbers are seen but not used. */
struct device_topology {
	uint32_t device_count; /* from first_index on, without a gap */
	uint32_t first_index;  /* N of the first neuronN */
	uint32_t cores_per_device;
	uint32_t arch;	  /* enum device_arch, as sysfs says; negotiation knows for certain */
	uint64_t present; /* bit N: there is a neuronN */
	bool is_virtual;  /* no character devices */
	bool simulated;	  /* no devices at all, simulate.h */
};

/* Where devices are looked for. */
struct device_place {
	const char *root;
	bool allow_real;
	bool allow_reset;	   /* requests that change a real device, guards.h */
	const char *fake_instance; /* NULL or "" = none; simulate.h */
};

/* A device file that this process opened. */
struct device_file {
	struct kept_fd kept;
	uint32_t index;	  /* N of neuronN */
	bool is_real;	  /* a character device */
	bool simulated;	  /* there is no file, simulate.h */
	bool allow_reset; /* as in struct device_place */
	pid_t owner;	  /* who opened it; not the child of a fork */
};

/* The driver, as it answered. */
struct device_driver {
	uint32_t major, minor;
	bool has_features; /* it knows DRIVER_INFO_GET */
	uint64_t features; /* NEURON_FEATURE_... */
};

/* What the caller wants; logical cores, counted from 0 over all devices. */
struct device_wish {
	bool explicit_cores; /* first_core and core_count are given */
	uint32_t first_core;
	uint32_t core_count;	  /* 0 = all */
	uint32_t lnc_size;	  /* physical cores of a logical one; 0 = the default */
	const char *lnc_variable; /* that said so; NULL with the default */
};

struct device {
	uint32_t index;		    /* N of neuronN */
	struct device_file file;    /* working handle */
	struct device_forms *forms; /* of the system */
};

/* The notification rings that this process reads. */
enum device_ring {
	DEVICE_RING_RUNS,	 /* start and end of programs */
	DEVICE_RING_ERRORS,	 /* what went wrong in them */
	DEVICE_RING_COLLECTIVES, /* what the TopSP did in them */
	DEVICE_RING_COUNT
};

/* A physical NeuronCore of this process.  Those of a logical core stand one behind another.  Each has its rings
 * and its queue; number of models and lock are those of the first one, slot 0, for all. */
struct device_core {
	struct device *device;
	uint32_t index;		 /* within the device */
	uint32_t hbm;		 /* memory bank next to it */
	_Atomic uint32_t models; /* loaded on it */
	pthread_mutex_t lock;
	/* under lock: */
	struct notify_ring rings[DEVICE_RING_COUNT];
	uint64_t bound; /* number of the model whose program the queue runs, 0 = none */
	/* Somebody makes a profile of the core (profile/collector_tap.h). */
	_Atomic bool profiled;
};

struct device_system {
	char root[PATH_MAX];
	bool allow_real, allow_reset;
	char fake_instance[64]; /* "" = none */
	bool is_virtual;	/* no character device among those that were opened */
	uint32_t arch;		/* enum device_arch */
	uint32_t revision;	/* of the board, as the driver gives it */
	struct device_driver driver;
	_Atomic unsigned simulation_said;
	struct device_forms forms; /* which sizes of requests the driver takes */
	struct device_topology topology;
	bool open_quietly;	  /* an open that fails is for whoever tries to report: */
	int open_error;		  /* errno of the last open, 0 when it went well */
	struct device_file query; /* the one query handle: the close of any drops all marks */
	struct kept_fd link;	  /* of a virtual device: hangs up when it goes */
	struct marks marks;
	uint32_t lnc_size;   /* physical cores of a logical one, 0 before device_reserve */
	uint32_t first_core; /* physical, of the machine */
	uint32_t core_count; /* physical, marked as this process's */
	struct device_core *cores;
	uint32_t device_count;
	struct device devices[CORES_MAX_DEVICES]; /* with working handles */
};

/* Logical cores of this process. */
static inline uint32_t device_logical_count(const struct device_system *s)
{
	return cores_logical(s->core_count, s->lnc_size);
}

/* The machine as cores.h counts it. */
static inline struct cores_machine device_machine(
	const struct device_topology *t, uint32_t arch, uint32_t lnc_size)
{
	return (struct cores_machine){.arch = arch,
		.devices = t->device_count,
		.per_device = t->cores_per_device,
		.size = lnc_size};
}

/* Logical cores of the machine. */
static inline uint32_t device_logical_total(const struct device_system *s)
{
	const struct cores_machine machine =
		device_machine(&s->topology, s->topology.arch, s->lnc_size);

	return cores_total_logical(&machine);
}

/* ---- discover.c --------------------------------------------------------------------------- */

/* Looks for devices at a place.  NRT_INVALID: none, or real ones that are not allowed, or nobody says
 * how many cores they have. */
NRT_STATUS device_discover(const struct device_place *place, struct device_topology *ret);

/* Opens neuron<index> below s->root.  Whether it is a character device is asked of the opened file:
 * it is closed again (NRT_INVALID) without s->allow_real, else s->is_virtual is cleared.  Needs
 * root, allow_real, is_virtual and the two of opening of s only.  Never at the numbers 0 to 2. */
NRT_STATUS device_open(struct device_system *s, uint32_t index, int flags, int *ret_fd);

/* Says why an open failed, and what to do. */
void device_say_not_opened(
	enum log_level level, const struct device_system *s, uint32_t index, int error);

/* The same for a descriptor that stays open and at its number: a driver takes the close of a duplicate
 * for the end of the process's use. */
NRT_STATUS device_open_kept(
	struct device_system *s, uint32_t index, int flags, struct device_file *ret_file);
void device_close(struct device_file *file);

/* Reads a small text file below root; NULL when there is none.  The caller frees it. */
char *device_read_text(const char *root, const char *path);

/* ---- bring-up, in this order; device_shut_down undoes what was done ----------------------- */

/* bringup.c: a system without devices yet. */
NRT_STATUS device_new(const struct device_place *place, struct device_system **ret);
/* discover.c: fills s->topology. */
NRT_STATUS device_find(struct device_system *s);
/* negotiate.c: opens the query handle, checks the driver's version text and its range of compatible
 * runtimes, asks what it can do. */
NRT_STATUS device_negotiate(struct device_system *s);
/* reserve.c: chooses cores, opens their devices and marks the cores. */
NRT_STATUS device_reserve(struct device_system *s, const struct device_wish *wish);
void device_unreserve(struct device_system *s);
/* bringup.c: knows the reserved cores, resets them. */
NRT_STATUS device_start(struct device_system *s, bool reset);
/* Any state from device_new on; NULL is harmless. */
void device_shut_down(struct device_system *s);

/* bringup.c: the working handle of neuron<index>, opened when it is not yet; whether it is one of ours. */
NRT_STATUS device_attach(struct device_system *s, uint32_t index, struct device **ret_device);
struct device *device_attached(struct device_system *s, uint32_t index);
/* Closes the working handles of all devices but index first to last. */
void device_detach_others(struct device_system *s, uint32_t first, uint32_t last);

/* reserve.c: the size of a logical core that holds for a wish; NRT_INVALID, with a message, when it cannot
 * be. */
NRT_STATUS device_choose_size(const struct device_wish *wish, uint32_t arch,
	uint32_t cores_per_device, uint32_t *ret_size);

/* ---- request.c ---------------------------------------------------------------------------- */

/* The one ioctl(2) of the library.  0 or -errno; a positive result, which the driver has for bad user
 * pointers, is -EFAULT; a descriptor that the program took from us is -EBADF; what guards.h refuses is
 * -EPERM, and said. */
int device_ioctl(const struct device_file *file, uint32_t cmd, void *arg);
/* The same with another ioctl(2): for tests. */
typedef int (*device_ioctl_fn)(int fd, uint32_t cmd, void *arg); /* result, errno as ioctl(2) */
int device_ioctl_by(device_ioctl_fn call, const struct device_file *file, uint32_t cmd, void *arg);

/* request_info.c: sends what a query handle may not, on the working handle of neuron<index>, or on one for this
 * request alone where there is none.  As device_ioctl; -ENODEV when it cannot be opened, which has been said. */
int device_ask(struct device_system *s, uint32_t index, uint32_t cmd, void *arg);

/* Architecture and revision of the board.  Older drivers say it only to a working handle, which is
 * opened for that and closed again. */
int device_board_info(struct device_system *s, uint32_t *ret_arch, uint32_t *ret_revision);

/* Where a device sits.  Older drivers do not say the domain: 0. */
struct device_pci_place {
	uint32_t domain, bus;
	uint8_t slot, function;
};
int device_pci_place(struct device_system *s, uint32_t index, struct device_pci_place *ret);
/* The number that the host gives a device; a driver that does not know the request: its own number. */
int device_host_id(struct device_system *s, uint32_t index, uint32_t *ret_id);
/* Routing ids by host device number.  A driver that does not know the request: as machines of the family are
 * wired. */
struct device_routing {
	uint32_t count;
	uint32_t rid[DEVICE_MAX];
};
int device_routing(const struct device_system *s, struct device_routing *ret);

/* The text for an error of a request: as strerror, but says what it means when the device has gone. */
const char *device_strerror(int rc);

/* *ret_address: where it lies in the device's address space, 0 = the driver does not say. */
int device_mem_alloc(const struct device_core *core, uint64_t size, enum device_mem_type type,
	uint64_t *ret_handle, uint64_t *ret_address);
int device_mem_free(const struct device *device, uint64_t handle);
int device_copy_in(const struct device *device, uint64_t handle, uint64_t offset, const void *from,
	uint64_t size);
/* Bytes of the next request of a buffer copy in the form cmd, 0 = it cannot say that offset. */
uint64_t device_copy_piece(uint32_t cmd, uint64_t offset, uint64_t size);
int device_copy_out(
	const struct device *device, uint64_t handle, uint64_t offset, void *to, uint64_t size);

/* Copies between two memories of the device, or within one: then overlapping ranges come out right as far as
 * a request does that, which the virtual device's do. */
int device_mem_copy(const struct device *device, uint64_t from, uint64_t from_offset, uint64_t to,
	uint64_t to_offset, uint64_t size);
int device_mem_fill(
	const struct device *device, uint64_t handle, uint64_t offset, uint64_t size, uint8_t byte);

/* Bytes of memory that a core can have: of a virtual device, all of it, which its cores share; of a real one,
 * the bank next to the core, as public documents have it for the architecture. */
int device_memory_bytes(const struct device_core *core, uint32_t arch, uint64_t *ret);

/* One moment in both clocks: the device clock was `clock` between host - bound_ns and host + bound_ns. */
struct device_sync {
	struct device_ps clock;
	struct boot_ns host;
	uint64_t bound_ns;
};
int device_read_clock(const struct device_core *core, struct device_sync *ret);
/* The same once more, twice at most, when the reading was interrupted. */
int device_read_clock_well(const struct device_core *core, struct device_sync *ret);

/* ---- queue.c ------------------------------------------------------------------------------ */

/* Binds program and binding table to the core's queue. */
int device_queue_init(const struct device_core *core, uint64_t program, uint64_t bindings);
/* Starts the bound program. */
int device_queue_start(const struct device_core *core, uint32_t launch);
/* Acknowledges count notifications of the queue. */
int device_queue_ack(const struct device_core *core, uint32_t count);
/* Ends what runs from the queue, and takes program and binding table from it. */
int device_queue_release(const struct device_core *core);

/* Makes the core's notification rings that there are not yet.  The next three need the logical core's lock. */
int device_rings_open(const struct device_system *s, struct device_core *core);
void device_rings_close(struct device_core *core);
/* Tells the device how far the ring has been read; for those that device_queue_ack is not for.  No request
 * when it knows already. */
int device_ring_read(struct device_core *core, enum device_ring which);
/* When it looks as if the device has gone round while nobody read: asks it, and goes on from where it is.  *ret_lost:
 * records that nobody can read any more. */
int device_ring_check(struct device_core *core, enum device_ring which, uint32_t *ret_lost);

/* ---- profile_rings.c ---------------------------------------------------------------------- */

/* Which ring of a core: VDEV_NQ_DEV_TYPE_..., VDEV_NQ_TYPE_..., engine or DMA queue. */
struct device_ring_key {
	uint32_t device, type, engine;
};

#define DEVICE_ASK_MAX 64u

/* Opens a ring of `bytes`, a power of two, whose contents nobody else reads; maps it.  0 or -errno, -ENOMEM when the
 * device has no room. */
int device_profile_ring_open(const struct device_system *s, const struct device_core *core,
	const struct device_ring_key *key, uint32_t bytes, void **ret_memory);
/* Ends up to DEVICE_ASK_MAX rings in one request; their memory stays mapped, for munmap. */
void device_profile_rings_end(
	const struct device_core *core, const struct device_ring_key *keys, uint32_t count);
/* Tells the device how many records have been read. */
int device_profile_ring_tell(
	const struct device_core *core, const struct device_ring_key *key, uint32_t read);

/* How many records the device has written to a ring, and how many dropped; low 32 bits.  A device that counts
 * neither: 0. */
struct device_ring_count {
	uint32_t written, dropped;
};
/* One request for up to DEVICE_ASK_MAX rings of a core. */
int device_profile_rings_ask(const struct device_core *core, const struct device_ring_key *keys,
	uint32_t count, struct device_ring_count *ret);

/* ---- map.c -------------------------------------------------------------------------------- */

/* Maps memory shared with the device.  Unmap with munmap.  0 or -errno. */
int device_map(const struct device_system *s, const struct device *device, uint64_t handle,
	uint64_t mmap_offset, uint64_t size, void **ret_addr);

/* Connects s->link when the device is a virtual one. */
void device_link(struct device_system *s);

/* Has the virtual device ended?  Asks nothing of it, so it can neither block nor be traced.  A real device
 * does not go away like that: false. */
bool device_is_gone(const struct device_system *s);

#endif
