/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * ioctl_path.h - the way of a call through the BPF programs: entry, `inflight`, return, record.
 *
 * At entry a call that passes the process filter is put into `inflight` with its decoded argument
 * fields; at return it becomes one record of the ring buffer.  Nothing wakes the reader: it drains by
 * the clock.  Whatever cannot be recorded is counted.
 *
 * Programs at fentry and fexit stay on their CPU but may be preempted there by a task in which others run; those
 * of the system call and at kprobes hold preemption off.  What a CPU has is therefore counted with an atomic
 * operation by the former, while a plain one does for the latter: nothing comes between.  The kernel
 * runs no program twice at once on a CPU (it skips it), so a program at fentry has its entering_ns for itself.
 */
#ifndef NTRACE_BPF_IOCTL_PATH_H
#define NTRACE_BPF_IOCTL_PATH_H

#include "bpf/maps.h"

/* Does the table have the number (_IOC_NR) of the request, with the driver's letter? */
static __always_inline bool is_known_number(__u32 request)
{
	return (request >> 8 & 0xff) == 'N' &&
	       known_numbers[request >> 6 & 3] >> (request & 63) & 1;
}

/* Counts one more.  via is a constant. */
static __always_inline void count(struct nev_cpu *cpu, enum nev_counter c, enum nev_via via)
{
	if (via == NEV_VIA_FENTRY)
		__sync_fetch_and_add(&cpu->counters[c], 1);
	else
		store(cpu->counters[c], cpu->counters[c] + 1);
}

/* Where calls that enter so are timed on a CPU: at fentry each program has a place of its own.  Both are constants. */
static __always_inline enum nev_entering entering_of(__u32 own, enum nev_via via)
{
	return via == NEV_VIA_FENTRY ? (enum nev_entering)own : NEV_ENTERING_UNDISTURBED;
}

/* The head of an argument structure has been read: the value at an offset of it.  The scratch is 8
 * bytes longer than any offset says: 8 are loaded. */
static __always_inline __u64 arg_word(const __u8 *bytes, __u32 offset)
{
	barrier_var(offset);
	return *(const __u64 *)&bytes[offset & (NEV_ARG_BYTES - 1)];
}

/* Fills in->args by the row of the request; a structure that cannot be read leaves them 0.  Its head
 * is read at once, and the fields are cut out of the copy: a read of user memory costs more than all the
 * rest of this. */
static __always_inline void read_args(
	struct nev_cpu *cpu, struct nev_inflight *in, const void *arg, enum nev_via via)
{
	__u8 *bytes = cpu->arg[via == NEV_VIA_FENTRY];
	const struct nev_request *row = bpf_map_lookup_elem(&requests, &in->request);
	__u32 span;

	if (!row) {
		in->flags |= is_known_number(in->request) ? NEV_F_UNKNOWN | NEV_F_OTHER_SIZE
							  : NEV_F_UNKNOWN;
		return;
	}
	in->nargs = row->nargs;
	span = row->span;
	if (!span)
		return;
	if (span > NEV_ARG_BYTES || bpf_probe_read_user(bytes, span, arg)) {
		in->flags |= NEV_F_ARG_FAULT;
		count(cpu, NEV_C_ARG_FAULT, via);
		return;
	}
#pragma unroll
	for (int i = 0; i < NEV_MAX_ARGS; i++) {
		__u32 width = row->args[i].width;
		__u32 unused_bits = 64 - 8 * width;

		if (!width)
			break; /* the end of the list */
		in->args[i] = arg_word(bytes, row->args[i].offset) << unused_bits >> unused_bits;
	}
	if (row->out) {
		in->out = arg_word(bytes, row->out);
		in->out_index = row->out_index;
	}
}

/* The thread's entry in `inflight` if a call of it is open. */
static __always_inline struct nev_inflight *open_call(__u32 tid)
{
	struct nev_inflight *in = bpf_map_lookup_elem(&inflight, &tid);

	return in && in->start_ns ? in : NULL;
}

/* The thread's last call was never seen to return: the kernel skipped the program.  Counts it. */
static __always_inline void forget_stale(struct nev_inflight *in, struct nev_cpu *cpu)
{
	store(in->start_ns, 0);
	__sync_fetch_and_add(&cpu->counters[NEV_C_LOST_EXIT], 1);
}

/* Writes the thread's entry anew.  Who walks over the entries meanwhile sees the start change. */
static __always_inline void enter_again(
	struct nev_cpu *cpu, struct nev_inflight *entry, struct nev_inflight *in)
{
	__u64 start_ns = in->start_ns;

	if (entry->start_ns)
		forget_stale(entry, cpu);
	in->start_ns = 0;
	barrier();
	*entry = *in;
	barrier();
	store(entry->start_ns, start_ns);
}

static __always_inline void enter(
	struct nev_cpu *cpu, struct nev_inflight *in, const void *arg, enum nev_via via)
{
	struct nev_inflight *entry;
	long error;

	if (!NEV_IS_OP(in->request))
		read_args(cpu, in, arg, via);
	entry = bpf_map_lookup_elem(&inflight, &in->tid);
	if (entry) {
		enter_again(cpu, entry, in);
		return;
	}
	error = bpf_map_update_elem(&inflight, &in->tid, in, BPF_NOEXIST);
	if (error == -7 /* E2BIG */)
		count(cpu, NEV_C_LOST_INFLIGHT_FULL, via);
	else if (error)
		__sync_fetch_and_add(&cpu->counters[NEV_C_LOST_EXIT], 1);
}

/* A call on another file: an open one of this thread is an earlier one.  Left so it would become the
 * record of this call. */
static __always_inline void enter_other(__u32 tid)
{
	struct nev_inflight *in = open_call(tid);
	struct nev_cpu *cpu = in ? this_cpu() : NULL;

	if (cpu)
		forget_stale(in, cpu);
}

/* Two levels of hooks watch this call, and the other one has it already, or has counted it as beyond the ceiling.
 * A call that one level alone sees meets another's entry only when a return was missed: the request tells,
 * unless the thread makes the same one again. */
static __always_inline bool is_taken(const struct nev_inflight *in)
{
	const struct nev_inflight *open = bpf_map_lookup_elem(&inflight, &in->tid);

	return open && (open->start_ns || open->limited) && open->via != in->via &&
	       open->request == in->request && open->device == in->device;
}

/* Has the process made as many calls in this window as are recorded?  Counts this one.  Its threads count at once; one
 * that is late counts in the newer window. */
static __always_inline bool is_beyond_ceiling(const struct nev_inflight *in)
{
	__u64 window = in->start_ns / NEV_RATE_WINDOW_NS, state;
	struct nev_rate first = {.state = window << 32}, *rate;

	if (!rate_ceiling)
		return false;
	rate = bpf_map_lookup_elem(&rates, &in->tgid);
	if (!rate) {
		(void)bpf_map_update_elem(&rates, &in->tgid, &first, BPF_NOEXIST);
		rate = bpf_map_lookup_elem(&rates, &in->tgid);
	}
	if (!rate)
		return false;
	state = *(volatile __u64 *)&rate->state;
	if (state >> 32 < window) /* whoever is first begins it */
		(void)__sync_val_compare_and_swap(&rate->state, state, first.state);
	return (__u32)__sync_fetch_and_add(&rate->state, 1) >= rate_ceiling;
}

/* The other level must know that this call has been counted. */
static __always_inline void keep_limited(struct nev_inflight *in)
{
	struct nev_inflight *entry = bpf_map_lookup_elem(&inflight, &in->tid);

	in->start_ns = 0;
	in->limited = 1;
	if (entry)
		*entry = *in;
	else
		(void)bpf_map_update_elem(&inflight, &in->tid, in, BPF_NOEXIST);
}

/* Puts a call into `inflight`: times it, reads what it asks for.  `in` says who calls what, `entering` is a
 * constant: entering_of. */
static __always_inline void begin(
	struct nev_inflight *in, const void *arg, enum nev_entering entering, enum nev_via via)
{
	struct nev_cpu *cpu = this_cpu();

	if (!cpu)
		return; /* cannot be: there is one per possible CPU */
	if (cpu->overlap && is_taken(in))
		return;
	store(cpu->entering_ns[entering], 1);
	in->start_ns = bpf_ktime_get_boot_ns();
	store(cpu->entering_ns[entering], in->start_ns);
	count(cpu, NEV_C_ENTERED, via);
	if (is_beyond_ceiling(in)) {
		enter_other(in->tid);
		count(cpu, NEV_C_LOST_RATE, via);
		if (cpu->overlap)
			keep_limited(in);
	} else {
		enter(cpu, in, arg, via);
	}
	store(cpu->entering_ns[entering], 0);
}

/* The one place that writes records.  nargs is a constant: the kernel wants to know the size. */
static __always_inline void emit(struct nev_cpu *cpu, const struct nev_inflight *in, __s32 result,
	enum nev_via via, const __u32 nargs)
{
	__u64 seq = via == NEV_VIA_FENTRY ? __sync_fetch_and_add(&cpu->seq, 1) : cpu->seq++;
	struct nev_ioctl *e = bpf_ringbuf_reserve(&ring, sizeof(*e) + nargs * sizeof(__u64), 0);

	if (!e) {
		count(cpu, NEV_C_LOST_RING_FULL, via);
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
	count(cpu, NEV_C_DONE, via);
}

/* Reads what the driver has written behind a user pointer: 8 bytes, as each such field has
 * (tests/unit/ioctl_table_test.c).  The page was just written to, so that it is there but for rare cases; then
 * the field is left out of the event, and counted. */
static __always_inline void read_out(struct nev_cpu *cpu, struct nev_inflight *in, enum nev_via via)
{
	__u32 i = in->out_index;
	__u64 value;

	if (i >= NEV_MAX_ARGS)
		return;
	if (bpf_probe_read_user(&value, sizeof(value), (const void *)in->out)) {
		count(cpu, NEV_C_ARG_FAULT, via);
		return;
	}
	in->args[i] = value;
	in->flags |= NEV_F_HANDLE_OUT;
}

/* The call of this thread has returned, seen by a hook of this kind. */
static __always_inline void leave(__u32 tid, __s32 result, enum nev_via via)
{
	struct nev_inflight *in = bpf_map_lookup_elem(&inflight, &tid);
	struct nev_cpu *cpu;

	if (!in || in->via != via)
		return;
	if (in->limited)
		in->limited = 0;
	cpu = this_cpu();
	if (!in->start_ns || !cpu)
		return;
	if (in->out && result == 0)
		read_out(cpu, in, via);
	if (in->nargs == 0)
		emit(cpu, in, result, via, 0);
	else if (in->nargs == 2)
		emit(cpu, in, result, via, 2);
	else if (in->nargs == 4)
		emit(cpu, in, result, via, 4);
	else
		emit(cpu, in, result, via, 6);
	/* After the record: who finds the call in neither place would take it for lost. */
	store(in->start_ns, 0);
}

#endif
