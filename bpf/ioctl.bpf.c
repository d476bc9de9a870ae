// SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0)
/*
 * ioctl.bpf.c - system-call level hooks: every ioctl on a neuron device file, entry and return; and the
 * process filter.  Owns the maps that the other objects share.
 *
 * A call that goes to a file of `devices` takes the way of ioctl_path.h.
 */
#include "vmlinux/vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "bpf/ioctl_path.h"

char LICENSE[] SEC("license") = "GPL";

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	/* Files: a device may be made anew while an old file of it is still open. */
	__uint(max_entries, 4096);
	__type(key, struct nev_file_key);
	__type(value, __u32); /* N of neuronN */
} devices SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct nev_walk);
} walk SEC(".maps");

/* ---- which file --------------------------------------------------------------------------- */

/* The inode behind a descriptor of the current task, or NULL. */
static __always_inline struct inode *inode_of(__u32 fd)
{
	/* Typed pointers: the kernel lets these be followed without a helper call. */
	struct task_struct *task = bpf_get_current_task_btf();
	struct files_struct *files = task->files;
	struct fdtable *fdt = files ? files->fdt : NULL;
	struct file *file = NULL;

	if (!fdt || fd >= fdt->max_fds)
		return NULL;
	if (bpf_probe_read_kernel(&file, sizeof(file), fdt->fd + fd) || !file)
		return NULL;
	return BPF_CORE_READ(file, f_inode);
}

/* Number of the neuron device that a descriptor of the current task is open on, or -1. */
static __always_inline int device_of(__u32 fd)
{
	struct nev_file_key key = {};
	struct inode *inode = inode_of(fd);
	__u32 *device;

	if (!inode)
		return -1;
	if ((BPF_CORE_READ(inode, i_mode) & S_IFMT) == S_IFCHR) {
		key.dev = BPF_CORE_READ(inode, i_rdev);
		key.is_chr = 1;
	} else {
		key.ino = BPF_CORE_READ(inode, i_ino);
		key.dev = BPF_CORE_READ(inode, i_sb, s_dev);
	}
	device = bpf_map_lookup_elem(&devices, &key);
	return device ? (int)*device : -1;
}

/* ---- entry -------------------------------------------------------------------------------- */

SEC("tracepoint/syscalls/sys_enter_ioctl")
int enter_ioctl(struct trace_event_raw_sys_enter *ctx)
{
	__u64 id = bpf_get_current_pid_tgid();
	struct nev_inflight in = {.tgid = id >> 32, .tid = (__u32)id};
	int device;

	if (!wanted(in.tgid))
		return 0;
	in.fd = ctx->args[0];
	device = device_of(in.fd);
	if (device < 0) {
		enter_other(in.tid);
		return 0;
	}
	in.device = device;
	in.request = ctx->args[1];
	begin(&in, (const void *)ctx->args[2], NEV_ENTERING_UNDISTURBED, NEV_VIA_SYSCALL);
	return 0;
}

SEC("tracepoint/syscalls/sys_exit_ioctl")
int exit_ioctl(struct trace_event_raw_sys_exit *ctx)
{
	leave((__u32)bpf_get_current_pid_tgid(), ctx->ret, NEV_VIA_SYSCALL);
	return 0;
}

/* ---- process filter ----------------------------------------------------------------------- */

SEC("tp_btf/sched_process_fork")
int BPF_PROG(follow_fork, struct task_struct *parent, struct task_struct *child)
{
	__u32 tgid = parent->tgid, new_tgid = child->tgid, lives = NEV_TRACKED_LIVES;
	struct nev_cpu *cpu;

	if (tgid == new_tgid || !bpf_map_lookup_elem(&tracked, &tgid))
		return 0;
	if (!bpf_map_update_elem(&tracked, &new_tgid, &lives, BPF_ANY))
		return 0;
	cpu = this_cpu();
	if (cpu)
		__sync_fetch_and_add(&cpu->counters[NEV_C_UNTRACKED], 1);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(follow_exit, struct task_struct *task)
{
	__u32 tgid = task->tgid, tid = task->pid, ends = NEV_TRACKED_ENDS;
	struct nev_inflight *in = bpf_map_lookup_elem(&inflight, &tid);
	struct nev_cpu *cpu = this_cpu();

	if (in && in->start_ns && cpu)
		forget_stale(in, cpu);
	if (in)
		(void)bpf_map_delete_elem(&inflight, &tid);
	/* The last thread of the process: the others have all begun to exit and make no more calls.
	 * Their files are closed later. */
	if (task->signal->live.counter == 0 && bpf_map_lookup_elem(&tracked, &tgid))
		(void)bpf_map_update_elem(&tracked, &tgid, &ends, BPF_EXIST);
	return 0;
}

SEC("tp_btf/sched_process_free")
int BPF_PROG(follow_free, struct task_struct *task)
{
	__u32 tgid = task->tgid, tid = task->pid;
	const struct nev_inflight *in = bpf_map_lookup_elem(&inflight, &tid);
	const __u32 *state;

	/* It closed its files after it had exited.  One with an open call is another that has the number. */
	if (in && !in->start_ns)
		(void)bpf_map_delete_elem(&inflight, &tid);
	if (tgid != tid)
		return 0;
	state = bpf_map_lookup_elem(&tracked, &tgid);
	/* Not a process that has the number since. */
	if (state && *state == NEV_TRACKED_ENDS)
		(void)bpf_map_delete_elem(&tracked, &tgid);
	return 0;
}

/* ---- walk over the open calls ------------------------------------------------------------- */

static __always_inline struct nev_walk *walk_answer(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&walk, &zero);
}

static long visit(void *map, const __u32 *tid, struct nev_inflight *in, void *ctx)
{
	struct nev_walk *w = walk_answer();
	__u64 start = *(volatile __u64 *)&in->start_ns;
	__u32 n;

	if (!w)
		return 1;
	if (!start)
		return 0; /* the thread makes no call */
	w->open++;
	if (in->via < NEV_VIA_MAX)
		w->open_via[in->via]++;
	if (in->announced_ns == start)
		return 0;
	n = w->found_count;
	if (start < w->before_ns && n < NEV_WALK_MAX) {
		barrier();
		w->found[n] = *in;
		barrier();
		/* The entry may have been written anew meanwhile; then its first word has changed. */
		if (*(volatile __u64 *)&in->start_ns == start) {
			in->announced_ns = start;
			w->found_count = n + 1;
			return 0;
		}
	}
	if (start < w->oldest_ns)
		w->oldest_ns = start;
	return 0;
}

/* Run by the reader, once per drain. */
SEC("syscall")
int walk_inflight(void *ctx)
{
	struct nev_walk *w = walk_answer();

	if (!w)
		return -1;
	w->oldest_ns = ~0ull;
	w->open = 0;
	for (int i = 0; i < NEV_VIA_MAX; i++)
		w->open_via[i] = 0;
	w->found_count = 0;
	return bpf_for_each_map_elem(&inflight, visit, NULL, 0) < 0 ? -1 : 0;
}
