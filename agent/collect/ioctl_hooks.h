/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ioctl_hooks.h - the hooks in the kernel: those inside of the driver (driver_hooks.h) and, where they are not to be
 * had or a device is virtual, those on the ioctl system call.  Yields raw batches of nev_ioctl and nev_dma, counters
 * and the calls still open.
 *
 * Owner: the recorder.  One thread.  Nothing is left in the kernel when the handle is closed or
 * the process dies.  Never prints; says why in `why`.
 */
#ifndef NTRACE_COLLECT_IOCTL_HOOKS_H
#define NTRACE_COLLECT_IOCTL_HOOKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/collect/driver_module.h"
#include "bpf/neuron_event.h"
#include "runtime/record/header.h"

struct bpf_cost;
struct ioctl_hooks;

struct ioctl_hooks_options {
	/* BPF ring buffer; power of two and page multiple; 0: 256 KiB per device, 4 MiB to 64 MiB */
	uint32_t ring_bytes;
	uint32_t inflight_limit; /* threads that make calls; 0 = 16384 */
	bool all_processes; /* false: only processes added with ioctl_hooks_track and their children
			     */
	uint32_t rate;	    /* calls of a process per second that are recorded; 0: all */
	bool cost;	    /* have the kernel measure the programs, which costs some ns per run */
	unsigned devices; /* how many there are to hold records of, for the default of ring_bytes */
	const char *off;  /* as driver_hooks_options.off */
	const char *level; /* NULL or "auto": the best; else as driver_hooks_options.force */
	const char *sys;   /* where the driver's module is looked for; NULL: /sys */
};

/* The possible size of the ring that is nearest to this one: itself, when it is one. */
uint64_t ioctl_hooks_ring_size(uint64_t bytes);

/* Loads and attaches.  0; -EPERM, -ENOENT (no BTF; level not to be had), -EINVAL (ring size, no such
 * level), other -errno.  why: a line for the user, at most why_size bytes. */
int ioctl_hooks_open(const struct ioctl_hooks_options *options, struct ioctl_hooks **ret, char *why,
	size_t why_size);
/* A handle without hooks, for who may not have them: knows devices, yields nothing, counts nothing, and its ladder
 * says the error.  0 or -ENOMEM. */
int ioctl_hooks_open_none(int error, struct ioctl_hooks **ret);
void ioctl_hooks_close(struct ioctl_hooks *h);

/* Registers neuron device files: dev/neuron* below root (NULL or "" = the real /dev).  May be
 * called again to follow new devices.  Returns how many are known, or -errno: -ENOENT when the first
 * scan finds no directory dev; one that goes away later takes no known device with it. */
int ioctl_hooks_scan_devices(struct ioctl_hooks *h, const char *root);
/* Has the driver come, gone or changed?  Then its files are to be scanned for before ioctl_hooks_follow, which takes
 * its time: until that is done its calls are seen at the system call. */
bool ioctl_hooks_driver_changed(struct ioctl_hooks *h);
/* To be called before each drain: has the driver come, gone or changed, so that hooks were put on or
 * taken off?  1: yes; 0: no; -errno. */
int ioctl_hooks_follow(struct ioctl_hooks *h);
/* How long a driver that came may have been there, at most, before its calls were seen, and before what it does inside
 * was.  0 for one that was there at the start. */
struct ioctl_hooks_unseen {
	uint64_t calls_ns, inside_ns;
};
struct ioctl_hooks_unseen ioctl_hooks_unseen(const struct ioctl_hooks *h);
/* How often hooks have been put on the driver; 0: never. */
uint32_t ioctl_hooks_generation(const struct ioctl_hooks *h);
/* The driver that is loaded; NULL: nobody knows. */
const struct driver_module *ioctl_hooks_module(const struct ioctl_hooks *h);

/* Index of the i-th known device. */
uint16_t ioctl_hooks_device(const struct ioctl_hooks *h, int i);
/* Whether the i-th known device was an ordinary file when it was found, not a character device. */
bool ioctl_hooks_device_is_virtual(const struct ioctl_hooks *h, int i);

/* Adds a process (tgid) to the filter; its later children follow by themselves. */
int ioctl_hooks_track(struct ioctl_hooks *h, pid_t tgid);
/* Is it one of them?  The kernel skips hooks on this CPU for the moment of the look-up. */
bool ioctl_hooks_tracks(const struct ioctl_hooks *h, pid_t tgid);
/* How many they are now. */
unsigned ioctl_hooks_tracked(const struct ioctl_hooks *h);

/* Called with whole records, back to back.  Non-zero stops and is returned. */
typedef int (*ioctl_hooks_fn)(void *ctx, const void *records, size_t size);

/*
 * Walks the open calls, then drains the ring buffer up to where it ended just then.  A call that is open
 * for longer than 100 ms gives one NEV_IOCTL_START record (cpu NEV_CPU_READER, its own seq); these come first.
 * Returns the number of records or -errno, or what on_batch returned.
 * *ret_watermark: nothing older will come, but for the start that the end of an announced call repeats.
 * It never goes back, and waits for open calls only until they are announced: 200 ms at the most.
 */
long ioctl_hooks_drain(
	struct ioctl_hooks *h, ioctl_hooks_fn on_batch, void *ctx, uint64_t *ret_watermark);

/* Who gets the records of the DMA path (struct nev_dma, back to back) when the ring is drained; until somebody
 * does, they are counted and dropped. */
void ioctl_hooks_take_dma(struct ioctl_hooks *h, ioctl_hooks_fn on_batch, void *ctx);
/* How many there were. */
uint64_t ioctl_hooks_dma_received(const struct ioctl_hooks *h);

/*
 * Detaches all hooks and drains what they wrote: the entry first, so that calls on their way can still
 * return, then the rest.  Afterwards no record is written and no counter moves: a call still open stays
 * so, and the counters' identities hold exactly.  Arguments and errors as for ioctl_hooks_drain; draining
 * again and stopping again are harmless.
 */
int ioctl_hooks_stop(
	struct ioctl_hooks *h, ioctl_hooks_fn on_batch, void *ctx, uint64_t *ret_watermark);

/* Records in the ring buffer that the reader has not taken; 0 after ioctl_hooks_stop. */
uint64_t ioctl_hooks_left(const struct ioctl_hooks *h);

/* Sums over CPUs; *ret_open: calls in flight now; *ret_received: records of calls that the reader took. */
int ioctl_hooks_counters(const struct ioctl_hooks *h, uint64_t ret[NEV_C_MAX], uint64_t *ret_open,
	uint64_t *ret_received);

/* How often the kernel skipped one of the hooks (for any file of any process) because the CPU was
 * inside another BPF program or map operation.  A skipped entry is an unseen call; a skipped return
 * is counted as NEV_C_LOST_EXIT.  Skips of kprobes and of the system call are among them from kernel 6.7
 * on only, those of other hooks always. */
uint64_t ioctl_hooks_missed(const struct ioctl_hooks *h);
/* Hooks put on so far of which this kernel does not count that; 0: it counts all. */
uint64_t ioctl_hooks_uncounted(const struct ioctl_hooks *h);
/* How long at most kprobes were switched off while nothing else saw what they are for. */
uint64_t ioctl_hooks_kprobes_off_ns(const struct ioctl_hooks *h);
/* How often the driver could not be let go although nobody used it, so that rmmod is refused meanwhile, or not
 * be taken back: see driver_idle.c. */
uint64_t ioctl_hooks_switches_failed(const struct ioctl_hooks *h);

/* What the hooks have cost and what their maps take; false: it was not asked for, or the kernel does not
 * measure. */
bool ioctl_hooks_cost(const struct ioctl_hooks *h, struct bpf_cost *ret);

/* Names of the attached hooks, e.g. "tracepoint:syscalls:sys_enter_ioctl", NULL-terminated. */
const char *const *ioctl_hooks_names(const struct ioctl_hooks *h);

/* The steps of the ladder that were tried, as the recording's header takes them. */
const struct rec_ladder_step *ioctl_hooks_ladder(const struct ioctl_hooks *h);

#endif
