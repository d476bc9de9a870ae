/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * dma_path.h - what the programs of dma.bpf.c share: who rang which queue how often, what a thread is in
 * the middle of, and the one place that writes records of the DMA path.
 *
 * A queue's doorbells are counted here, whoever rings.  Those of the driver's own rings are kept until their
 * completion comes: copies that are in flight on a queue complete in order, and the number of descriptors
 * tells one that was given up.  So a completion knows its doorbell's number and owner, also when a
 * thread of the driver sees it.  The driver holds the ring's lock where it rings and where it waits, so what
 * is kept of a ring needs none.
 *
 * No map here drops an entry to make room for another: what finds no place, and what is forgotten before its
 * end came, is counted.
 *
 * The programs may be preempted, so counters of a CPU take an atomic operation.  A record's clock is read
 * when its place in the ring is taken: a reader that has seen the end of the ring after reading its own
 * clock has seen everything older.
 */
#ifndef NTRACE_BPF_DMA_PATH_H
#define NTRACE_BPF_DMA_PATH_H

#include "bpf/maps.h"
#include <bpf/bpf_core_read.h>
#include "vmlinux/neuron.h"

/* What a host of today has at the most: 16 devices of 8 cores, of 132 engines with 16 queues each.  Of these queues
 * the driver uses one for each core, and from 2.28 on as many more as are asked for. */
#define DMA_QUEUES (16u * 132u * 16u)
#define DMA_RINGS (16u * 8u * 2u)
/* From 2.28 on a ring has 1023 contexts, each with one doorbell at a time; before, two are in flight. */
#define DMA_PENDING 1024u
#define DMA_SEARCHED \
	64u /* so many of the oldest may have been given up and the next still be found */
/* Two handles for each core; 64 devices are all that the driver can have. */
#define DMA_ASYNCS (64u * 8u * 2u)

/* Set by the loader: do the kprobes stand in for fentry programs? */
const volatile bool is_standin = false;

struct dma_place {
	__u16 device, engine, queue, zero;
};

/* A doorbell that waits for its completion. */
struct dma_rung {
	__u32 sequence;	 /* its number */
	__u32 tx, rx;	 /* descriptors */
	__u32 tgid, tid; /* for whom it was rung; tid 0: a thread of the driver rang */
};

struct dma_ring {
	__u32 first, end; /* free running */
	struct dma_rung pending[DMA_PENDING];
};

/* A whole transfer of a thread. */
struct dma_whole {
	__u64 bytes;
	__u32 sequence; /* 0: none is open */
	__u16 device;
	__u8 flags, zero;
};
#define DMA_WHOLES NEV_DMA_ZEROCOPY

/* An asynchronous copy, by what is waited for. */
struct dma_async_key {
	__u16 device, nc;
	__s32 handle;
};
struct dma_async {
	__u64 bytes;
	__u32 sequence;
	__u16 device;
	__u8 flags, zero;
};

/* What a kprobe keeps for its kretprobe, and what else a thread is in the middle of. */
struct dma_thread {
	struct dma_whole whole[DMA_WHOLES]; /* by kind - 1 */
	struct dma_async async;		    /* being submitted; sequence 0: none */
	struct dma_async_key async_key; /* the same, without its handle; or what is waited for */
	__u64 async_handle;		/* where the handle will be written */
	__s32 async_earlier;		/* handle that the submit waits for */
	__u32 transfers;		/* whole ones so far */
	__u64 eng, ring;		/* that is waited for */
	__u32 count;
	__u64 user_call; /* start of the call that was open when user_mark was set: it is void in another */
	__u32 user_mark; /* its next doorbell is of a ring of user space: enum */
	__u32 owner;	 /* tgid; the thread is the driver's and works for it; 0: it does not */
	struct dma_place place; /* of a function of a queue */
	__u32 tx, rx;
};

enum {
	USER_NONE,
	USER_INSIDE, /* of the function that starts such a ring */
	USER_ONCE,   /* a tracepoint was met: one doorbell follows */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, DMA_QUEUES);
	__type(key, struct dma_place);
	__type(value, __u32); /* doorbells so far */
} dma_queues SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, DMA_RINGS);
	__type(key, struct dma_place);
	__type(value, struct dma_ring);
} dma_rings SEC(".maps");

/* The kernel frees a thread's when the thread ends. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct dma_thread);
} dma_threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, DMA_ASYNCS);
	__type(key, struct dma_async_key);
	__type(value, struct dma_async);
} dma_asyncs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, NEV_MAX_DEVICES);
	__type(key, __u32);
	__type(value, __u32); /* asynchronous copies of a device so far */
} dma_async_count SEC(".maps");

/* A ring that was never met, all zero: too large for the stack. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct dma_ring);
} dma_new_ring SEC(".maps");

/* ---- who and where ------------------------------------------------------------------------ */

static __always_inline __u32 this_tid(void)
{
	return (__u32)bpf_get_current_pid_tgid();
}

static __always_inline bool is_wanted(void)
{
	return wanted(bpf_get_current_pid_tgid() >> 32);
}

/* N of neuronN.  Where the driver's layout is not known it is that of the call that is open: what a
 * call does it does on its device. */
static __always_inline __u16 device_of(const struct neuron_device *nd)
{
	__u32 tid = this_tid();
	const struct nev_inflight *in;

	if (bpf_core_type_exists(struct neuron_device))
		return nd ? BPF_CORE_READ(nd, device_index) : NEV_DMA_UNKNOWN;
	in = bpf_map_lookup_elem(&inflight, &tid);
	return in && in->start_ns ? in->device : NEV_DMA_UNKNOWN;
}

/* Kprobes may stand in for fentry programs, and for a moment both are attached: then the work inside of a call
 * belongs to the kind that saw it enter, and what is inside of none to the kind that the reader names.  Kprobes that
 * stand in for nothing are alone. */
static __always_inline bool is_mine(enum nev_via via)
{
	const struct nev_cpu *cpu;
	const struct nev_inflight *in;
	__u32 tid;

	if (via == NEV_VIA_KPROBE && !is_standin)
		return true;
	cpu = this_cpu();
	if (!cpu || !cpu->overlap || cpu->overlap == NEV_VIA_MAX)
		return true;
	tid = this_tid();
	in = bpf_map_lookup_elem(&inflight, &tid);
	return (in && in->start_ns && in->via != NEV_VIA_SYSCALL ? in->via : cpu->overlap) == via;
}

static __always_inline void count_dma(enum nev_counter c, __u32 n)
{
	struct nev_cpu *cpu = this_cpu();

	if (cpu && n)
		__sync_fetch_and_add(&cpu->counters[c], n);
}

static __always_inline struct dma_thread *thread_of(const bool make)
{
	struct dma_thread *t = bpf_task_storage_get(&dma_threads, bpf_get_current_task_btf(), NULL,
		make ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0);

	if (!t && make)
		count_dma(NEV_C_DMA_NO_PLACE, 1);
	return t;
}

/* Start of the call that is open on this thread; 0: none. */
static __always_inline __u64 call_of_thread(void)
{
	__u32 tid = this_tid();
	const struct nev_inflight *in = bpf_map_lookup_elem(&inflight, &tid);

	return in ? in->start_ns : 0;
}

/* Number of the next doorbell of a queue; 0: there is no place for it. */
static __always_inline __u32 next_number(const struct dma_place *p)
{
	__u32 *n = bpf_map_lookup_elem(&dma_queues, p), none = 0;

	if (!n) {
		(void)bpf_map_update_elem(&dma_queues, p, &none, BPF_NOEXIST);
		n = bpf_map_lookup_elem(&dma_queues, p);
	}
	if (n)
		return __sync_fetch_and_add(n, 1) + 1;
	count_dma(NEV_C_DMA_NO_PLACE, 1);
	return 0;
}

static __always_inline struct dma_ring *ring_of(const struct dma_place *p)
{
	struct dma_ring *q = bpf_map_lookup_elem(&dma_rings, p);
	const void *none;
	__u32 zero = 0;

	if (q)
		return q;
	none = bpf_map_lookup_elem(&dma_new_ring, &zero);
	if (none) {
		(void)bpf_map_update_elem(&dma_rings, p, none, BPF_NOEXIST);
		q = bpf_map_lookup_elem(&dma_rings, p);
	}
	if (!q)
		count_dma(NEV_C_DMA_NO_PLACE, 1);
	return q;
}

/* ---- records ------------------------------------------------------------------------------ */

/* What a record says beside who and when. */
struct dma_fact {
	__u64 bytes;
	__u32 sequence, tx, rx;
	__s32 result;
	struct dma_place place;
	__u8 kind, flags;
};

#define NO_PLACE                                                     \
	(struct dma_place)                                           \
	{                                                            \
		NEV_DMA_UNKNOWN, NEV_DMA_UNKNOWN, NEV_DMA_UNKNOWN, 0 \
	}

static __always_inline void put_dma(
	enum nev_type type, const struct dma_fact *f, __u32 tgid, __u32 tid)
{
	const struct nev_inflight *in = NULL;
	struct nev_cpu *cpu = this_cpu();
	struct nev_dma *e;
	__u64 seq;

	if (!cpu)
		return;	       /* cannot be: there is one per possible CPU */
	if (tid == this_tid()) /* else another thread than this one saw it */
		in = bpf_map_lookup_elem(&inflight, &tid);
	__sync_fetch_and_add(&cpu->counters[NEV_C_DMA_MADE], 1);
	seq = __sync_fetch_and_add(&cpu->seq, 1);
	e = bpf_ringbuf_reserve(&ring, sizeof(*e), 0);
	if (!e) {
		__sync_fetch_and_add(&cpu->counters[NEV_C_DMA_LOST_RING_FULL], 1);
		return;
	}
	e->hdr.time_ns = bpf_ktime_get_boot_ns();
	e->hdr.seq = seq;
	e->hdr.cpu = bpf_get_smp_processor_id();
	e->hdr.type = type;
	e->hdr.nargs = 0;
	e->call_ns = in ? in->start_ns : 0;
	e->tgid = tgid;
	e->tid = tid;
	e->bytes = f->bytes;
	e->sequence = f->sequence;
	e->result = f->result;
	e->device = f->place.device;
	e->engine = f->place.engine;
	e->queue = f->place.queue;
	e->kind = f->kind;
	e->flags = f->flags;
	e->tx = f->tx;
	e->rx = f->rx;
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
	__sync_fetch_and_add(&cpu->counters[NEV_C_DMA_DONE], 1);
}

/* Of the current thread, if anybody wants it. */
static __always_inline void put_own(enum nev_type type, const struct dma_fact *f)
{
	__u64 id = bpf_get_current_pid_tgid();

	if (wanted(id >> 32))
		put_dma(type, f, id >> 32, (__u32)id);
}

/* ---- doorbells ---------------------------------------------------------------------------- */

static __always_inline bool is_kthread(void)
{
	struct task_struct *task = bpf_get_current_task_btf();

	return task->flags & PF_KTHREAD;
}

/* Somebody rings, for himself or (owner) for another: counts it, remembers who waits. */
static __always_inline void ring_doorbell(
	const struct dma_place *p, __u32 tx, __u32 rx, __u32 owner)
{
	__u64 id = bpf_get_current_pid_tgid();
	struct dma_fact f = {.place = *p, .kind = NEV_DMA_DOORBELL, .tx = tx, .rx = rx};
	struct dma_ring *q = ring_of(p);
	__u32 tgid = owner ? owner : id >> 32, tid = owner ? 0 : (__u32)id;

	if (owner)
		f.flags = NEV_DMA_F_KTHREAD;
	f.sequence = next_number(p);
	if (q) {					/* else nobody will know its end */
		if (q->end - q->first >= DMA_PENDING) { /* the oldest was given up */
			q->first = q->end - DMA_PENDING + 1;
			count_dma(NEV_C_DMA_UNENDED, 1);
		}
		q->pending[q->end & (DMA_PENDING - 1)] = (struct dma_rung){
			.sequence = f.sequence, .tx = tx, .rx = rx, .tgid = tgid, .tid = tid};
		q->end++;
	}
	if (wanted(tgid))
		put_dma(NEV_DMA_START, &f, tgid, tid);
}

/* The next one has been waited for.  False: it is not known. */
static __always_inline bool take_completed(
	const struct dma_place *p, __u32 count, struct dma_rung *ret)
{
	struct dma_ring *q = bpf_map_lookup_elem(&dma_rings, p);
	__u32 at;

	if (!q)
		return false;
	at = q->first;
	for (__u32 i = 0; i < DMA_SEARCHED; i++, at++) {
		const struct dma_rung *r = &q->pending[at & (DMA_PENDING - 1)];

		if (at == q->end)
			return false;
		if (r->tx != count)
			continue;
		*ret = *r;
		q->first = at + 1;
		count_dma(NEV_C_DMA_UNENDED, i);
		return true;
	}
	return false;
}

static __always_inline void complete(const struct dma_place *p, __u32 count, __s32 result)
{
	struct dma_fact f = {.place = *p, .kind = NEV_DMA_DOORBELL, .result = result};
	__u64 id = bpf_get_current_pid_tgid();
	struct dma_rung rung = {.tgid = id >> 32, .tid = (__u32)id};

	if (take_completed(p, count, &rung)) {
		f.sequence = rung.sequence;
		f.tx = rung.tx;
		f.rx = rung.rx;
		if (rung.tid != (__u32)id && is_kthread())
			f.flags = NEV_DMA_F_KTHREAD;
	}
	if (wanted(rung.tgid))
		put_dma(NEV_DMA_STOP, &f, rung.tgid, rung.tid);
}

/* ---- rings of user space ------------------------------------------------------------------ */

static __always_inline void put_user(const struct dma_place *p, __u32 tx, __u32 rx, __s32 result)
{
	struct dma_fact f = {.place = *p,
		.kind = NEV_DMA_USER,
		.sequence = next_number(p),
		.tx = tx,
		.rx = rx,
		.result = result};

	put_own(NEV_DMA_POINT, &f);
}

/* A queue begins anew: whoever waits there waits in vain. */
static __always_inline void put_queue(
	enum nev_dma_kind kind, const struct dma_place *p, __u32 tx, __u32 rx, __s32 result)
{
	struct dma_fact f = {.place = *p, .kind = kind, .tx = tx, .rx = rx, .result = result};
	struct dma_ring *q;

	if (kind == NEV_DMA_QUEUE_INIT && (q = bpf_map_lookup_elem(&dma_rings, p))) {
		count_dma(NEV_C_DMA_UNENDED, q->end - q->first);
		q->first = q->end;
	}
	put_own(NEV_DMA_POINT, &f);
}

/* ---- whole transfers ---------------------------------------------------------------------- */

/* The thread is inside of a function that makes one. */
static __always_inline void begin_whole(
	const enum nev_dma_kind kind, __u16 device, __u64 bytes, __u8 flags)
{
	struct dma_fact f = {.kind = kind, .bytes = bytes, .flags = flags, .place = NO_PLACE};
	struct dma_thread *t;

	if (!is_wanted() || !(t = thread_of(true)))
		return;
	f.sequence = ++t->transfers;
	f.place.device = device;
	if (t->whole[kind - 1].sequence) /* the kernel skipped the program at its return */
		count_dma(NEV_C_DMA_UNENDED, 1);
	t->whole[kind - 1] = (struct dma_whole){
		.bytes = bytes, .sequence = f.sequence, .device = device, .flags = flags};
	put_own(NEV_DMA_START, &f);
}

static __always_inline void end_whole(const enum nev_dma_kind kind, __s32 result)
{
	struct dma_thread *t = thread_of(false);
	struct dma_fact f = {.kind = kind, .result = result, .place = NO_PLACE};
	struct dma_whole *w;

	if (!t)
		return;
	w = &t->whole[kind - 1];
	if (!w->sequence)
		return;
	f.sequence = w->sequence;
	f.bytes = w->bytes;
	f.flags = w->flags;
	f.place.device = w->device;
	w->sequence = 0;
	put_own(NEV_DMA_STOP, &f);
}

#endif
