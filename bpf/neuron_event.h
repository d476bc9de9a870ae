/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * neuron_event.h - what the BPF programs hand to user space.
 *
 * The one header that BPF and user space share: record layouts of the ring buffer, map keys and
 * values, and the counters.  Fixed-width types only, no pointers, no implicit padding; every size
 * and offset that leaves the kernel is asserted below and compared with the BPF object's BTF by
 * tests/unit/layout_test.c.  All times are CLOCK_BOOTTIME nanoseconds.
 *
 * A record is exactly as long as its class: nev_ioctl carries `nargs` argument values behind its
 * fixed part, and nargs is one of 0, 2, 4, 6 (the classes).  The meaning of the values is the row
 * of vmlinux/ioctl_table.def with the same request number.  nev_dma has no arguments.
 */
#ifndef NTRACE_BPF_NEURON_EVENT_H
#define NTRACE_BPF_NEURON_EVENT_H

#ifndef __bpf__
#include <assert.h>
#include <linux/types.h>
#endif

#include "vmlinux/file_ops.h"

#define NEV_MAX_ARGS 6
#define NEV_MAX_DEVICES 256
#define NEV_CPU_READER 0xffffu /* nev_hdr.cpu of records that the reader made */

enum nev_type {
	NEV_IOCTL_DONE = 1,  /* written by BPF when the call returns */
	NEV_IOCTL_START = 2, /* written by the reader: the call has been open for long */
	/* struct nev_dma, all written by BPF: */
	NEV_DMA_START = 3,
	NEV_DMA_STOP = 4,
	NEV_DMA_POINT = 5,
};

/* What the driver does on its DMA path.  Those up to NEV_DMA_DOORBELL have a start and a stop where both
 * ends are hooked; the others, and any whose end the active hooks do not show, are points. */
enum nev_dma_kind {
	NEV_DMA_TRANSFER = 1, /* one whole copy */
	NEV_DMA_MEMSET,
	NEV_DMA_ZEROCOPY,
	NEV_DMA_ASYNC,	    /* from its submit to the return of the wait for it */
	NEV_DMA_DOORBELL,   /* of the driver's own rings; the stop is completion or timeout */
	NEV_DMA_USER,	    /* doorbell of a ring that user space fills: the driver sees no end */
	NEV_DMA_ACK,	    /* user space says how many descriptors (rx) are done */
	NEV_DMA_QUEUE_INIT, /* tx, rx: sizes */
	NEV_DMA_QUEUE_RELEASE,
	NEV_DMA_KIND_END,
};

enum nev_dma_flags {
	NEV_DMA_F_TO_DEVICE = 1,   /* the destination is memory of a device */
	NEV_DMA_F_FROM_DEVICE = 2, /* the source is */
	NEV_DMA_F_SRC_HOST = 4,
	NEV_DMA_F_DST_HOST = 8,
	NEV_DMA_F_KTHREAD = 16, /* a thread of the driver did it; tgid and tid are the owner's */
};

enum nev_flags {
	NEV_F_ARG_FAULT = 1,   /* the argument structure could not be read; args are 0 */
	NEV_F_UNKNOWN = 2,     /* the request has no row in the table; no args */
	NEV_F_QUERY = 4,       /* on a handle that was opened write-only */
	NEV_F_WORK = 8,	       /* on any other handle; neither: the level of hooks does not tell */
	NEV_F_OTHER_SIZE = 16, /* UNKNOWN, but the table has its number with another size */
	NEV_F_HANDLE_OUT = 32, /* the last field was read at the return: the allocated handle */
};

/* Head of every record.  seq counts records of one CPU from 0; a gap is a loss. */
struct nev_hdr {
	__u64 time_ns; /* when the record was made */
	__u32 seq;
	__u16 cpu;
	__u8 type; /* enum nev_type */
	__u8 nargs;
};

struct nev_ioctl {
	struct nev_hdr hdr;
	__u64 start_ns;	   /* entry of the system call */
	__u64 duration_ns; /* 0 in NEV_IOCTL_START */
	__u32 tgid;	   /* initial pid namespace */
	__u32 tid;
	__u32 request; /* the full ioctl command number */
	__s32 result;  /* what ioctl(2) returns in the kernel: -errno, 0, or positive */
	__u16 device;  /* N of neuronN */
	__u16 flags;   /* enum nev_flags */
	__u32 fd;
	__u64 args[]; /* nargs values, in the table's order */
};

/* The driver's other file operations; their requests are NEV_OP_REQUEST of these. */
enum nev_op {
#define FILE_OP(id, number, name, ...) NEV_OP_##id = (number),
#include "vmlinux/file_ops.def"
#undef FILE_OP
};

#define NEV_DMA_UNKNOWN 0xffffu /* device, engine, queue */

/* Every field is of the moment of hdr.time_ns; hdr.nargs is 0. */
struct nev_dma {
	struct nev_hdr hdr;
	__u64 call_ns; /* start_ns of the driver call that was open on this thread; 0: none */
	__u32 tgid;    /* initial pid namespace */
	__u32 tid;
	__u64 bytes; /* 0: unknown */
	/* Start and stop share it.  Counted from 1: of doorbells and user rings per (device, engine,
	 * queue), of asynchronous copies per device, of other whole transfers per thread.  0: unknown. */
	__u32 sequence;
	__s32 result; /* of a stop or a point: 0, -errno; -1 is a timeout before 2.30 */
	__u16 device; /* N of neuronN */
	__u16 engine;
	__u16 queue;
	__u8 kind;  /* enum nev_dma_kind */
	__u8 flags; /* enum nev_dma_flags */
	__u32 tx;   /* descriptors */
	__u32 rx;
};

/* Which hook saw a call enter; the same kind sees it return. */
enum nev_via {
	NEV_VIA_SYSCALL,
	NEV_VIA_KPROBE,
	NEV_VIA_FENTRY,
	NEV_VIA_MAX,
};

#define NEV_FD_UNKNOWN 0xffffffffu /* hooks inside of the driver do not know it */

/* Map `tracked`, key: tgid.  A process that has exited still closes its files. */
enum nev_tracked {
	NEV_TRACKED_LIVES = 1,
	NEV_TRACKED_ENDS = 2,
};

/* Map `inflight`, key: tid.  What is known of a call between entry and exit.  A thread keeps its entry until it
 * ends, because writing one again is much cheaper than putting it in and taking it out; the entry is written
 * with start_ns 0, which is set last. */
struct nev_inflight {
	__u64 start_ns;	    /* 0: no call is open */
	__u64 announced_ns; /* start of the call that a NEV_IOCTL_START was made of */
	__u32 tgid;
	__u32 tid;
	__u32 request;
	__u32 fd;
	__u16 device;
	__u16 flags;
	__u8 nargs;
	__u8 via;	/* enum nev_via */
	__u8 out_index; /* which of args lies at `out` */
	__u8 limited; /* start_ns is 0: the call is beyond the ceiling, and another level may meet it too */
	__u64 out; /* user address that is read at the return; 0: none */
	__u64 args[NEV_MAX_ARGS];
};

/* Map `devices`: which files are neuron devices.  Real: ino = 0, dev = kernel dev_t of the character
 * device.  Virtual: (superblock device, inode).  dev is the kernel's own encoding,
 * major << 20 | minor. */
struct nev_file_key {
	__u64 ino;
	__u32 dev;
	__u32 is_chr;
};

/* Map `requests`, key: the full command number.  Filled from vmlinux/ioctl_table.def. */
#define NEV_ARG_BYTES 64 /* all fields lie in so many first bytes of their structure */
struct nev_arg_field {
	__u16 offset; /* bytes into the argument structure */
	__u16 width;  /* 1, 2, 4 or 8 bytes, zero-extended */
};
struct nev_request {
	__u16 nargs; /* class: 0, 2, 4, 6; unused fields have width 0 and give 0 */
	__u16 span;  /* bytes up to the end of the last field; 0 if there is none */
	__u16 out;   /* where the user pointer to the value of args[out_index] lies; 0: nowhere */
	__u16 out_index;
	struct nev_arg_field args[NEV_MAX_ARGS];
};

/* Per-CPU counters.  Identity at any quiet moment:
 * entered = the sum of NEV_CALL_LEFT + still in `inflight`. */
#define NEV_CALL_LEFT \
	NEV_C_DONE, NEV_C_LOST_RING_FULL, NEV_C_LOST_INFLIGHT_FULL, NEV_C_LOST_EXIT, NEV_C_LOST_RATE
enum nev_counter {
	NEV_C_ENTERED,		  /* driver calls that entered and passed the process filter */
	NEV_C_DONE,		  /* records submitted */
	NEV_C_LOST_RING_FULL,	  /* bpf_ringbuf_reserve failed */
	NEV_C_LOST_INFLIGHT_FULL, /* `inflight` has no room for one more thread */
	NEV_C_ARG_FAULT, /* argument, or what it leads to, unreadable: not a loss, the record is there */
	/* Calls whose return was not seen, found when the thread went on, and those that the kernel
	 * kept out of `inflight` although it had room. */
	NEV_C_LOST_EXIT,
	NEV_C_UNTRACKED, /* children the process filter had no room for: they are not seen */
	/* The DMA path: made = done + lost. */
	NEV_C_DMA_MADE,		  /* records that were due */
	NEV_C_DMA_DONE,		  /* submitted */
	NEV_C_DMA_LOST_RING_FULL, /* bpf_ringbuf_reserve failed */
	NEV_C_LOST_RATE,	  /* calls beyond the ceiling of their process */
	NEV_C_DMA_NO_PLACE, /* starts of the DMA path that a map had no room for: no end, or no number */
	NEV_C_DMA_UNENDED, /* starts that were kept, and forgotten because their end did not come */
	NEV_C_MAX,
};

/* Map `rates`, key: tgid.  Calls of a process in the present window. */
#define NEV_RATE_WINDOW_NS 1000000000ull
struct nev_rate {
	__u64 state; /* window (boot time / NEV_RATE_WINDOW_NS) << 32 | calls in it */
};

/* Who puts a call into `inflight`: those that nothing disturbs meanwhile share a place, a program that can be
 * preempted has one for itself. */
enum nev_entering {
	NEV_ENTERING_UNDISTURBED, /* hooks at the system call and at kprobes */
	/* fentry: the other file operations by their numbers, NEV_OP_OPEN to NEV_OP_MMAP */
	NEV_ENTERING_IOCTL = NEV_OP_MMAP + 1,
	NEV_ENTERING_MAX,
};

/* Map `cpus`, one per possible CPU, mapped by the reader: reading it takes no system call and
 * so cannot keep a program from running (the kernel skips programs while one of its own map
 * operations is under way on the CPU). */
struct nev_cpu {
	__u64 counters[NEV_C_MAX];
	/* Start times of the calls that are being put into `inflight` here; 1 while the clock is being
	 * read; 0: none.  With them the reader knows how far everything older has been seen. */
	__u64 entering_ns[NEV_ENTERING_MAX];
	__u64 seq; /* records that were due, made or not; its low 32 bits go into nev_hdr */
	/* Scratch: the head of an argument structure; the second is of the program at fentry. */
	__u8 arg[2][NEV_ARG_BYTES + 8];
	/* Set by the reader while two levels of hooks watch the same calls: the second looks whether
	 * the first has it.  enum nev_via, of the kind of hooks to which work on the DMA path outside of any call
	 * belongs; NEV_VIA_MAX: one kind watches that path.  0: one level watches. */
	__u64 overlap;
	__u64 pad;
};

/* Map `walk`, mapped by the reader: the answer of the program that walks `inflight`. */
#define NEV_WALK_MAX 64
struct nev_walk {
	__u64 before_ns;   /* asked: entries that started before this and are not announced yet */
	__u64 oldest_ns;   /* start of the oldest entry that is not announced; all ones: none */
	__u32 open;	   /* entries seen */
	__u32 found_count; /* of found[]; when it is full the rest stays for the next walk */
	__u32 open_via[NEV_VIA_MAX];
	__u32 pad;
	struct nev_inflight found[NEV_WALK_MAX];
};

#ifndef __bpf__
static_assert(sizeof(struct nev_hdr) == 16, "nev_hdr");
static_assert(sizeof(struct nev_ioctl) == 56, "nev_ioctl");
static_assert(sizeof(struct nev_dma) == 64, "nev_dma");
static_assert(sizeof(struct nev_inflight) == 96, "nev_inflight");
static_assert(sizeof(struct nev_file_key) == 16, "nev_file_key");
static_assert(sizeof(struct nev_request) == 32, "nev_request");
static_assert(sizeof(struct nev_cpu) == 320, "nev_cpu");
static_assert(sizeof(struct nev_rate) == 8, "nev_rate");
static_assert(sizeof(struct nev_walk) == 40 + NEV_WALK_MAX * 96, "nev_walk");
#endif

#endif
