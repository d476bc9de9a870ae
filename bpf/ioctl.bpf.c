// SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0)
/*
 * ioctl.bpf.c - system-call level hooks: every ioctl on a neuron device file, entry and return.
 *
 * At entry a call that passes the process filter and goes to a file of `devices` is put into
 * `inflight` with its decoded argument fields; at return it becomes one record of the ring buffer.
 * Nothing wakes the reader: it drains by the clock.  Whatever cannot be recorded is counted.
 *
 * The entry and return programs run with preemption off, so the counters of a CPU need no atomic
 * operation there; the others use one.
 */
#include "vmlinux/vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "bpf/neuron_event.h"

char LICENSE[] SEC("license") = "GPL";

/* Set by the loader before the programs are verified. */
const volatile bool all_processes = false;

/* Sizes that stand as 1, and that of the ring, are set by the loader. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32); /* tid */
	__type(value, struct nev_inflight);
} inflight SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, NEV_MAX_DEVICES);
	__type(key, struct nev_file_key);
	__type(value, __u32); /* N of neuronN */
} devices SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32); /* the full command number */
	__type(value, struct nev_request);
} requests SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32); /* tgid */
	__type(value, __u32);
} tracked SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* possible CPUs */
	__type(key, __u32);
	__type(value, struct nev_cpu);
} cpus SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct nev_walk);
} walk SEC(".maps");

static __always_inline struct nev_cpu *this_cpu(void)
{
	__u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&cpus, &cpu);
}

/* Keeps the order of stores that the reader watches from another CPU.  x86 shows the stores of a CPU
 * in the order of its program, so only the compiler must be held; elsewhere this would have to be a
 * store with release semantics. */
#define store(where, value) (*(volatile typeof(where) *)&(where) = (value))

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

static __always_inline bool wanted(__u32 tgid)
{
	return all_processes || bpf_map_lookup_elem(&tracked, &tgid);
}

/* Fills in->args by the row of the request; a structure that cannot be read leaves them 0.  Its head
 * is read at once, and the fields are cut out of the copy: a read of user memory costs more than all the
 * rest of this. */
static __always_inline void read_args(struct nev_cpu *cpu, struct nev_inflight *in, const void *arg)
{
	const struct nev_request *row = bpf_map_lookup_elem(&requests, &in->request);
	__u32 span;

	if (!row) {
		in->flags = NEV_F_UNKNOWN;
		return;
	}
	in->nargs = row->nargs;
	span = row->span;
	if (!span)
		return;
	if (span > NEV_ARG_BYTES || bpf_probe_read_user(cpu->arg, span, arg)) {
		in->flags = NEV_F_ARG_FAULT;
		cpu->counters[NEV_C_ARG_FAULT]++;
		return;
	}
#pragma unroll
	for (int i = 0; i < NEV_MAX_ARGS; i++) {
		__u32 width = row->args[i].width, offset = row->args[i].offset;
		__u32 unused_bits = 64 - 8 * width;
		__u64 value;

		if (!width)
			break; /* the end of the list */
		/* The scratch is 8 bytes longer than any offset says: load 8, keep `width`. */
		barrier_var(offset);
		value = *(__u64 *)&cpu->arg[offset & (NEV_ARG_BYTES - 1)];
		in->args[i] = value << unused_bits >> unused_bits;
	}
}

/* The thread's last call was never seen to return: the kernel skipped the program.  Counts it. */
static __always_inline void forget_stale(__u32 tid, struct nev_cpu *cpu)
{
	if (!bpf_map_delete_elem(&inflight, &tid))
		__sync_fetch_and_add(&cpu->counters[NEV_C_LOST_EXIT], 1);
}

static __always_inline void enter(struct nev_cpu *cpu, struct nev_inflight *in, const void *arg)
{
	long error;

	read_args(cpu, in, arg);
	error = bpf_map_update_elem(&inflight, &in->tid, in, BPF_NOEXIST);
	if (error == -17 /* EEXIST */) {
		forget_stale(in->tid, cpu);
		error = bpf_map_update_elem(&inflight, &in->tid, in, BPF_ANY);
	}
	if (error == -7 /* E2BIG */)
		cpu->counters[NEV_C_LOST_INFLIGHT_FULL]++;
	else if (error)
		__sync_fetch_and_add(&cpu->counters[NEV_C_LOST_EXIT], 1);
}

/* A call on another file: an entry of this thread is of an earlier one.  Left there it would become
 * the record of this call.  Looking is cheap, deleting takes a lock. */
static __always_inline void enter_other(__u32 tid)
{
	struct nev_cpu *cpu;

	if (!bpf_map_lookup_elem(&inflight, &tid))
		return;
	cpu = this_cpu();
	if (cpu)
		forget_stale(tid, cpu);
}

SEC("tracepoint/syscalls/sys_enter_ioctl")
int enter_ioctl(struct trace_event_raw_sys_enter *ctx)
{
	__u64 id = bpf_get_current_pid_tgid();
	struct nev_inflight in = {.tgid = id >> 32, .tid = (__u32)id};
	struct nev_cpu *cpu;
	int device;

	if (!wanted(in.tgid))
		return 0;
	in.fd = ctx->args[0];
	device = device_of(in.fd);
	if (device < 0) {
		enter_other(in.tid);
		return 0;
	}
	cpu = this_cpu();
	if (!cpu)
		return 0; /* cannot be: there is one per possible CPU */
	in.device = device;
	in.request = ctx->args[1];
	store(cpu->entering_ns, 1);
	in.start_ns = bpf_ktime_get_boot_ns();
	store(cpu->entering_ns, in.start_ns);
	store(cpu->counters[NEV_C_ENTERED], cpu->counters[NEV_C_ENTERED] + 1);
	enter(cpu, &in, (const void *)ctx->args[2]);
	store(cpu->entering_ns, 0);
	return 0;
}

/* ---- return ------------------------------------------------------------------------------- */

/* The one place that writes records.  nargs is a constant: the kernel wants to know the size. */
static __always_inline void emit(
	struct nev_cpu *cpu, const struct nev_inflight *in, __s32 result, const __u32 nargs)
{
	__u64 seq = cpu->seq++;
	struct nev_ioctl *e = bpf_ringbuf_reserve(&ring, sizeof(*e) + nargs * sizeof(__u64), 0);

	if (!e) {
		cpu->counters[NEV_C_LOST_RING_FULL]++;
		return;
	}
	e->hdr.time_ns = bpf_ktime_get_boot_ns();
	e->hdr.seq = seq;
	e->hdr.cpu = bpf_get_smp_processor_id();
	e->hdr.type = NEV_IOCTL_DONE;
	e->hdr.nargs = nargs;
	e->start_ns = in->start_ns;
	e->duration_ns = e->hdr.time_ns - in->start_ns;
	e->tgid = in->tgid;
	e->tid = in->tid;
	e->request = in->request;
	e->result = result;
	e->device = in->device;
	e->flags = in->flags;
	e->fd = in->fd;
#pragma unroll
	for (__u32 i = 0; i < nargs; i++)
		e->args[i] = in->args[i];
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
	store(cpu->counters[NEV_C_DONE], cpu->counters[NEV_C_DONE] + 1);
}

SEC("tracepoint/syscalls/sys_exit_ioctl")
int exit_ioctl(struct trace_event_raw_sys_exit *ctx)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	const struct nev_inflight *in = bpf_map_lookup_elem(&inflight, &tid);
	struct nev_cpu *cpu;

	if (!in)
		return 0;
	cpu = this_cpu();
	if (!cpu)
		return 0;
	if (in->nargs == 0)
		emit(cpu, in, ctx->ret, 0);
	else if (in->nargs == 2)
		emit(cpu, in, ctx->ret, 2);
	else if (in->nargs == 4)
		emit(cpu, in, ctx->ret, 4);
	else
		emit(cpu, in, ctx->ret, 6);
	/* After the record: who finds the call in neither place would take it for lost. */
	if (bpf_map_delete_elem(&inflight, &tid))
		cpu->counters
			[NEV_C_LOST_EXIT]++; /* only if this CPU held the bucket's lock: never */
	return 0;
}

/* ---- process filter ----------------------------------------------------------------------- */

SEC("tp_btf/sched_process_fork")
int BPF_PROG(follow_fork, struct task_struct *parent, struct task_struct *child)
{
	__u32 tgid = parent->tgid, new_tgid = child->tgid, one = 1;
	struct nev_cpu *cpu;

	if (tgid == new_tgid || !bpf_map_lookup_elem(&tracked, &tgid))
		return 0;
	if (!bpf_map_update_elem(&tracked, &new_tgid, &one, BPF_ANY))
		return 0;
	cpu = this_cpu();
	if (cpu)
		__sync_fetch_and_add(&cpu->counters[NEV_C_UNTRACKED], 1);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(follow_exit, struct task_struct *task)
{
	__u32 tgid = task->tgid, tid = task->pid;
	struct nev_cpu *cpu = this_cpu();

	if (cpu)
		forget_stale(tid, cpu);
	/* The last thread of the process: the others have all begun to exit and make no more calls.
	 * When two find themselves last, the second finds nothing to delete. */
	if (task->signal->live.counter == 0 && bpf_map_lookup_elem(&tracked, &tgid))
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
	w->open++;
	if (in->announced)
		return 0;
	n = w->found_count;
	if (start < w->before_ns && n < NEV_WALK_MAX) {
		w->found[n] = *in;
		/* The entry may have been given to another call meanwhile; then its first word has
		 * changed. */
		if (*(volatile __u64 *)&in->start_ns == start) {
			in->announced = 1;
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
	w->found_count = 0;
	return bpf_for_each_map_elem(&inflight, visit, NULL, 0) < 0 ? -1 : 0;
}
