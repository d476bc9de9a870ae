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
 * of vmlinux/ioctl_table.def with the same request number.
 */
#ifndef NTRACE_BPF_NEURON_EVENT_H
#define NTRACE_BPF_NEURON_EVENT_H

#ifndef __bpf__
#include <assert.h>
#include <linux/types.h>
#endif

#define NEV_MAX_ARGS 6
#define NEV_MAX_DEVICES 256
#define NEV_CPU_READER 0xffffu /* nev_hdr.cpu of records that the reader made */

enum nev_type {
	NEV_IOCTL_DONE = 1,  /* written by BPF when the call returns */
	NEV_IOCTL_START = 2, /* written by the reader: the call has been open for long */
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

/* Map `inflight`, key: tid.  What is known of a call between entry and exit. */
struct nev_inflight {
	__u64 start_ns;
	__u32 tgid;
	__u32 tid;
	__u32 request;
	__u32 fd;
	__u16 device;
	__u16 flags;
	__u8 nargs;
	__u8 announced; /* a NEV_IOCTL_START was made of it */
	__u8 pad[2];
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
	struct nev_arg_field args[NEV_MAX_ARGS];
};

/* Per-CPU counters.  Identity at any quiet moment:
 * entered = done + lost_ring_full + lost_inflight_full + lost_exit + still in `inflight`. */
enum nev_counter {
	NEV_C_ENTERED,		  /* ioctl entries on neuron files that passed the process filter */
	NEV_C_DONE,		  /* records submitted */
	NEV_C_LOST_RING_FULL,	  /* bpf_ringbuf_reserve failed */
	NEV_C_LOST_INFLIGHT_FULL, /* `inflight` could not take the entry */
	NEV_C_ARG_FAULT,	  /* argument unreadable: not a loss, the record is there */
	/* Calls whose return was not seen, found when the thread went on, and those that the kernel
	 * kept out of `inflight` although it had room. */
	NEV_C_LOST_EXIT,
	NEV_C_UNTRACKED, /* children the process filter had no room for: they are not seen */
	NEV_C_MAX,
};

/* Map `cpus`, one per possible CPU, mapped by the reader: reading it takes no system call and
 * so cannot keep a program from running (the kernel skips programs while one of its own map
 * operations is under way on the CPU). */
struct nev_cpu {
	__u64 counters[NEV_C_MAX];
	/* Start time of the call that is being put into `inflight` here; 1 while the clock is being
	 * read; 0 otherwise.  With it the reader knows how far everything older has been seen. */
	__u64 entering_ns;
	__u64 seq; /* records that were due, made or not; its low 32 bits go into nev_hdr */
	__u8 arg[NEV_ARG_BYTES + 8]; /* scratch: the head of an argument structure */
	__u64 pad[6];
};

/* Map `walk`, mapped by the reader: the answer of the program that walks `inflight`. */
#define NEV_WALK_MAX 64
struct nev_walk {
	__u64 before_ns;   /* asked: entries that started before this and are not announced yet */
	__u64 oldest_ns;   /* start of the oldest entry that is not announced; all ones: none */
	__u32 open;	   /* entries seen */
	__u32 found_count; /* of found[]; when it is full the rest stays for the next walk */
	struct nev_inflight found[NEV_WALK_MAX];
};

#ifndef __bpf__
static_assert(sizeof(struct nev_hdr) == 16, "nev_hdr");
static_assert(sizeof(struct nev_ioctl) == 56, "nev_ioctl");
static_assert(sizeof(struct nev_inflight) == 80, "nev_inflight");
static_assert(sizeof(struct nev_file_key) == 16, "nev_file_key");
static_assert(sizeof(struct nev_request) == 28, "nev_request");
static_assert(sizeof(struct nev_cpu) == 192, "nev_cpu");
static_assert(sizeof(struct nev_walk) == 24 + NEV_WALK_MAX * 80, "nev_walk");
#endif

#endif
