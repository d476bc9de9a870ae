/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * vmlinux.h - what our BPF programs know of the kernel, and no more.
 *
 * Written by hand: each kernel structure names only the members that a program of ours reads.
 * preserve_access_index makes the loader look up the true offsets in the BTF of the running kernel,
 * so order and size here mean nothing; a member that the kernel lacks is refused at load.  The types
 * of the BPF user interface (map types, flags) stand here too, since the system's own header pulls in
 * files that the BPF target does not have; their values are ABI.
 */
#ifndef NTRACE_VMLINUX_H
#define NTRACE_VMLINUX_H

typedef unsigned char __u8;
typedef signed char __s8;
typedef unsigned short __u16;
typedef short __s16;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;

enum { false = 0, true = 1 };

#define NULL ((void *)0)

/* ---- BPF user interface ------------------------------------------------------------------- */

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};

enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
	BPF_EXIST = 2,
};

enum {
	BPF_F_NO_PREALLOC = 1,
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1, /* of bpf_task_storage_get */
	BPF_F_MMAPABLE = 1024, /* map flag: user space may map the values */
};

enum {
	BPF_RB_NO_WAKEUP = 1,
};

/* ---- kernel ------------------------------------------------------------------------------- */

#define O_WRONLY 1
#define PF_KTHREAD 0x00200000 /* of a task's flags: a thread of the kernel's */
#define PAGE_SHIFT 12	    /* x86-64 */
#define MINOR_MASK 0xfffffu /* of a dev_t as the kernel has it */

#define S_IFMT 0170000
#define S_IFCHR 0020000

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
	int counter;
} atomic_t;

struct super_block {
	__u32 s_dev; /* major << 20 | minor */
};

struct inode {
	unsigned short i_mode;
	__u32 i_rdev; /* of a device file; the same encoding */
	struct super_block *i_sb;
	unsigned long i_ino;
};

/* f_inode is there from 3.9 to 6.18 at least; where it sits has changed often. */
struct file {
	struct inode *f_inode;
	unsigned int f_flags;
	void *private_data;
};

struct vm_area_struct {
	unsigned long vm_start, vm_end;
	unsigned long vm_pgoff; /* pages into the file */
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct signal_struct {
	atomic_t live; /* threads that have not begun to exit */
};

struct task_struct {
	int pid;  /* user space says tid */
	int tgid; /* user space says pid */
	unsigned int flags; /* PF_... */
	struct files_struct *files;
	struct signal_struct *signal;
};

/* Registers at a kprobe. */
struct pt_regs {
	unsigned long di, si, dx, cx, r8, r9; /* arguments */
	unsigned long ax;		      /* of a kretprobe: the result */
	unsigned long sp; /* of a kprobe: the return address, then more arguments */
};

/* Arguments of the per-call tracepoints syscalls/sys_enter_* and sys_exit_*. */
struct trace_event_raw_sys_enter {
	long id;
	unsigned long args[6];
};

struct trace_event_raw_sys_exit {
	long id;
	long ret;
};

#pragma clang attribute pop

#endif
