/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * ioctl_path.h - the way of a call through the BPF programs: entry, `inflight`, return, record.
 *
 * At entry a call that passes the process filter is put into `inflight` with its decoded argument
 * fields; at return it becomes one record of the ring buffer.  Nothing wakes the reader: it drains by
 * the clock.  Whatever cannot be recorded is counted.
 *
 * The programs that call this run with preemption off, so the counters of a CPU need no atomic
 * operation; those that do not hold it off use one.
 */
#ifndef NTRACE_BPF_IOCTL_PATH_H
#define NTRACE_BPF_IOCTL_PATH_H

#include "bpf/maps.h"

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
		/* One whose return was never seen gives its place. */
		error = bpf_map_update_elem(&inflight, &in->tid, in, BPF_ANY);
		if (!error)
			__sync_fetch_and_add(&cpu->counters[NEV_C_LOST_EXIT], 1);
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

/* Puts a call into `inflight`: times it, reads what it asks for.  `in` says who calls what. */
static __always_inline void begin(struct nev_inflight *in, const void *arg)
{
	struct nev_cpu *cpu = this_cpu();

	if (!cpu)
		return; /* cannot be: there is one per possible CPU */
	store(cpu->entering_ns, 1);
	in->start_ns = bpf_ktime_get_boot_ns();
	store(cpu->entering_ns, in->start_ns);
	store(cpu->counters[NEV_C_ENTERED], cpu->counters[NEV_C_ENTERED] + 1);
	enter(cpu, in, arg);
	store(cpu->entering_ns, 0);
}

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

/* The call of this thread has returned. */
static __always_inline void leave(__u32 tid, __s32 result)
{
	const struct nev_inflight *in = bpf_map_lookup_elem(&inflight, &tid);
	struct nev_cpu *cpu;

	if (!in)
		return;
	cpu = this_cpu();
	if (!cpu)
		return;
	if (in->nargs == 0)
		emit(cpu, in, result, 0);
	else if (in->nargs == 2)
		emit(cpu, in, result, 2);
	else if (in->nargs == 4)
		emit(cpu, in, result, 4);
	else
		emit(cpu, in, result, 6);
	/* After the record: who finds the call in neither place would take it for lost. */
	if (bpf_map_delete_elem(&inflight, &tid))
		cpu->counters
			[NEV_C_LOST_EXIT]++; /* only if this CPU held the bucket's lock: never */
}

#endif
