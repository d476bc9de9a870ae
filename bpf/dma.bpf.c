// SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0)
/*
 * dma.bpf.c - the driver's DMA path: doorbells, completions, whole transfers, rings of user space, life of
 * queues; on each step of the ladder that shows them.
 *
 * fentry and fexit: functions of at most six arguments that keep their name.  kprobe and kretprobe: all,
 * arguments by register and, for one function, by stack.  Raw tracepoints: what there is of them,
 * arguments by position; those that the driver never fires, or fires for another reason, are not used.
 *
 * What a program does not find in its arguments it reads from the driver's structures, whose layout is
 * looked up in the module's BTF.  Where there is none hooks that need it are not used (hooks.def).
 */
#include "vmlinux/vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "bpf/dma_path.h"

char LICENSE[] SEC("license") = "GPL";

/* ---- what is read of the driver ------------------------------------------------------------ */

/* The bit of a device address that says host memory: 46, on the second generation 44. */
#define HOST_BITS (1ull << 46 | 1ull << 44)

static __always_inline __u8 flags_of(__u64 src, __u64 dst)
{
	return (src & HOST_BITS ? NEV_DMA_F_SRC_HOST : NEV_DMA_F_FROM_DEVICE) |
	       (dst & HOST_BITS ? NEV_DMA_F_DST_HOST : NEV_DMA_F_TO_DEVICE);
}

static __always_inline bool is_host(const struct mem_chunk *mc)
{
	return bpf_core_type_exists(struct mem_chunk) && mc &&
	       BPF_CORE_READ(mc, mem_location) == NEURON_MEM_HOST;
}

/* Of a copy to or from a chunk; nothing where its memory is not known. */
static __always_inline __u8 flags_of_chunk(const struct mem_chunk *mc, bool to_chunk)
{
	bool host = is_host(mc);

	if (!bpf_core_type_exists(struct mem_chunk))
		return 0;
	if (to_chunk)
		return host ? NEV_DMA_F_DST_HOST : NEV_DMA_F_TO_DEVICE;
	return host ? NEV_DMA_F_SRC_HOST : NEV_DMA_F_FROM_DEVICE;
}

static __always_inline struct dma_place place_of(
	const struct neuron_device *nd, __u32 engine, __u32 queue)
{
	return (struct dma_place){device_of(nd), engine, queue, 0};
}

/* Of an engine.  Without the module's BTF nobody comes here. */
static __always_inline struct dma_place place_at(const struct ndma_eng *eng, __u32 queue)
{
	if (!bpf_core_type_exists(struct ndma_eng))
		return NO_PLACE;
	return place_of(BPF_CORE_READ(eng, nd), BPF_CORE_READ(eng, eng_id), queue);
}

/* ---- doorbell: udma_m2m_copy_start(udma, qid, m2s_count, s2m_count) ------------------------- */

static __always_inline int doorbell(const void *udma, __u32 queue, __u32 tx, __u32 rx)
{
	struct dma_thread *t = thread_of(false);
	struct dma_place p;

	if (t && t->user_mark) {
		bool here = t->user_call == call_of_thread();

		if (!here || t->user_mark == USER_ONCE)
			t->user_mark = USER_NONE;
		if (here)
			return 0; /* it has a record of its own */
	}
	if (!bpf_core_type_exists(struct ndma_eng))
		return 0;
	p = place_at(udma - bpf_core_field_offset(struct ndma_eng, udma), queue);
	ring_doorbell(&p, tx, rx, t ? t->owner : 0);
	return 0;
}

SEC("fentry/udma_m2m_copy_start")
int BPF_PROG(doorbell_fentry, void *udma, unsigned int queue, unsigned int tx, unsigned int rx)
{
	if (!is_mine(NEV_VIA_FENTRY))
		return 0;
	return doorbell(udma, queue, tx, rx);
}

SEC("kprobe/udma_m2m_copy_start")
int doorbell_kprobe(struct pt_regs *ctx)
{
	if (!is_mine(NEV_VIA_KPROBE))
		return 0;
	return doorbell((const void *)ctx->di, ctx->si, ctx->dx, ctx->cx);
}

/* ---- owner: ndma_build_n_issue_zc_descs(context), driver 2.30 -------------------------------- */

/* A context of zero copy is issued by the thread that asked for it, or later by a thread of the driver's
 * for it. */
static __always_inline int begin_issue(const struct ndma_h2t_zcdma_context___v230 *context)
{
	struct dma_thread *t;

	if (!bpf_core_type_exists(struct ndma_h2t_zcdma_context___v230) || !is_kthread())
		return 0;
	t = thread_of(true);
	if (t)
		t->owner = BPF_CORE_READ(context, pid);
	return 0;
}

static __always_inline int end_issue(void)
{
	struct dma_thread *t = thread_of(false);

	if (t)
		t->owner = 0;
	return 0;
}

SEC("fentry/ndma_build_n_issue_zc_descs")
int BPF_PROG(owner_fentry, void *context)
{
	return begin_issue(context);
}

SEC("fexit/ndma_build_n_issue_zc_descs")
int BPF_PROG(owner_fexit, void *context, int result)
{
	return end_issue();
}

SEC("kprobe/ndma_build_n_issue_zc_descs")
int owner_kprobe(struct pt_regs *ctx)
{
	return begin_issue((const void *)ctx->di);
}

SEC("kretprobe/ndma_build_n_issue_zc_descs")
int owner_kret(struct pt_regs *ctx)
{
	return end_issue();
}

/* ---- completion: ndma_memcpy_wait_for_completion(eng, ring, count, ptr, async, intra) ------- */

static __always_inline int completion(
	const struct ndma_eng *eng, const struct ndma_ring *ring, __u32 count, __s32 result)
{
	struct dma_place p;

	if (!bpf_core_type_exists(struct ndma_ring))
		return 0;
	p = place_at(eng, BPF_CORE_READ(ring, qid));
	complete(&p, count, result);
	return 0;
}

SEC("fexit/ndma_memcpy_wait_for_completion")
int BPF_PROG(completion_fexit, struct ndma_eng *eng, struct ndma_ring *ring, unsigned int count,
	void *ptr, bool async, bool intra, int result)
{
	if (!is_mine(NEV_VIA_FENTRY))
		return 0;
	return completion(eng, ring, count, result);
}

SEC("kprobe/ndma_memcpy_wait_for_completion")
int completion_kprobe(struct pt_regs *ctx)
{
	struct dma_thread *t = thread_of(true);

	/* Whose it is the return asks: that may have changed by then. */
	if (!t)
		return 0;
	t->eng = ctx->di;
	t->ring = ctx->si;
	t->count = ctx->dx;
	return 0;
}

SEC("kretprobe/ndma_memcpy_wait_for_completion")
int completion_kret(struct pt_regs *ctx)
{
	struct dma_thread *t = thread_of(false);
	__u64 eng;

	if (!is_mine(NEV_VIA_KPROBE))
		return 0;
	if (!t || !t->eng)
		return 0;
	eng = t->eng;
	t->eng = 0;
	return completion((const void *)eng, (const void *)t->ring, t->count, ctx->ax);
}

/* ---- a whole copy: ndma_memcpy_offset_move(nd, nc, src, dst, size, ...), clones among them --- */

SEC("kprobe/ndma_memcpy_offset_move")
int transfer_kprobe(struct pt_regs *ctx)
{
	const struct dma_thread *t = thread_of(false);

	if (t && t->async.sequence)
		return 0; /* that has a record of its own */
	begin_whole(NEV_DMA_TRANSFER, device_of((const void *)ctx->di), ctx->r8,
		flags_of(ctx->dx, ctx->cx));
	return 0;
}

SEC("kretprobe/ndma_memcpy_offset_move")
int transfer_kret(struct pt_regs *ctx)
{
	end_whole(NEV_DMA_TRANSFER, ctx->ax);
	return 0;
}

/* ---- ndma_memset(nd, mc, offset, value, size) ---------------------------------------------- */

static __always_inline int begin_memset(
	const struct neuron_device *nd, const struct mem_chunk *mc, __u64 size)
{
	begin_whole(NEV_DMA_MEMSET, device_of(nd), size, flags_of_chunk(mc, true));
	return 0;
}

SEC("fentry/ndma_memset")
int BPF_PROG(memset_fentry, struct neuron_device *nd, struct mem_chunk *mc,
	unsigned long long offset, unsigned int value, unsigned long long size)
{
	if (!is_mine(NEV_VIA_FENTRY))
		return 0;
	return begin_memset(nd, mc, size);
}

SEC("fexit/ndma_memset")
int BPF_PROG(memset_fexit, struct neuron_device *nd, struct mem_chunk *mc,
	unsigned long long offset, unsigned int value, unsigned long long size, int result)
{
	if (!is_mine(NEV_VIA_FENTRY))
		return 0;
	end_whole(NEV_DMA_MEMSET, result);
	return 0;
}

SEC("kprobe/ndma_memset")
int memset_kprobe(struct pt_regs *ctx)
{
	if (!is_mine(NEV_VIA_KPROBE))
		return 0;
	return begin_memset((const void *)ctx->di, (const void *)ctx->si, ctx->r8);
}

SEC("kretprobe/ndma_memset")
int memset_kret(struct pt_regs *ctx)
{
	if (!is_mine(NEV_VIA_KPROBE))
		return 0;
	end_whole(NEV_DMA_MEMSET, ctx->ax);
	return 0;
}

/* ---- ndma_memcpy_zero_copy_mc(nd, host, mc, offset, size, to_device), driver 2.24 ------------ */

static __always_inline int begin_zerocopy(
	const struct neuron_device *nd, __u64 size, bool to_device)
{
	begin_whole(NEV_DMA_ZEROCOPY, device_of(nd), size,
		to_device ? NEV_DMA_F_TO_DEVICE | NEV_DMA_F_SRC_HOST
			  : NEV_DMA_F_FROM_DEVICE | NEV_DMA_F_DST_HOST);
	return 0;
}

SEC("fentry/ndma_memcpy_zero_copy_mc")
int BPF_PROG(zerocopy_fentry, struct neuron_device *nd, void *host, struct mem_chunk *mc,
	unsigned long long offset, unsigned long long size, bool to_device)
{
	if (!is_mine(NEV_VIA_FENTRY))
		return 0;
	return begin_zerocopy(nd, size, to_device);
}

SEC("fexit/ndma_memcpy_zero_copy_mc")
int BPF_PROG(zerocopy_fexit, struct neuron_device *nd, void *host, struct mem_chunk *mc,
	unsigned long long offset, unsigned long long size, bool to_device, int result)
{
	if (!is_mine(NEV_VIA_FENTRY))
		return 0;
	end_whole(NEV_DMA_ZEROCOPY, result);
	return 0;
}

SEC("kprobe/ndma_memcpy_zero_copy_mc")
int zerocopy_kprobe(struct pt_regs *ctx)
{
	if (!is_mine(NEV_VIA_KPROBE))
		return 0;
	return begin_zerocopy((const void *)ctx->di, ctx->r8, ctx->r9 & 0xff);
}

SEC("kretprobe/ndma_memcpy_zero_copy_mc")
int zerocopy_kret(struct pt_regs *ctx)
{
	if (!is_mine(NEV_VIA_KPROBE))
		return 0;
	end_whole(NEV_DMA_ZEROCOPY, ctx->ax);
	return 0;
}

/* ---- asynchronous copies ------------------------------------------------------------------- */

/* Which core's ring carries a copy: the device's side tells, as the driver reckons it. */
static __always_inline __u16 core_of(const struct mem_chunk *src, const struct mem_chunk *dst)
{
	if (!bpf_core_type_exists(struct mem_chunk))
		return 0;
	return is_host(src) && !is_host(dst) ? BPF_CORE_READ(dst, nc_id)
					     : BPF_CORE_READ(src, nc_id);
}

static __always_inline __u32 next_async(__u16 device)
{
	__u32 key = device, *count = bpf_map_lookup_elem(&dma_async_count, &key);

	return count ? __sync_fetch_and_add(count, 1) + 1 : 0;
}

static __always_inline void put_async(enum nev_type type, const struct dma_async *a, __s32 result)
{
	struct dma_fact f = {.kind = NEV_DMA_ASYNC,
		.bytes = a->bytes,
		.sequence = a->sequence,
		.flags = a->flags,
		.result = result,
		.place = NO_PLACE};

	f.place.device = a->device;
	put_own(type, &f);
}

/* The copy that has this handle has been waited for. */
static __always_inline void end_async(const struct dma_async_key *k, __s32 result)
{
	const struct dma_async *open = bpf_map_lookup_elem(&dma_asyncs, k);
	struct dma_async a;

	if (!open)
		return;
	a = *open;
	bpf_map_delete_elem(&dma_asyncs, k);
	put_async(NEV_DMA_STOP, &a, result);
}

static __always_inline void keep_async(const struct dma_async_key *k, const struct dma_async *a)
{
	if (bpf_map_lookup_elem(&dma_asyncs, k)) /* nobody waited for the one before */
		count_dma(NEV_C_DMA_UNENDED, 1);
	if (bpf_map_update_elem(&dma_asyncs, k, a, BPF_ANY))
		count_dma(NEV_C_DMA_NO_PLACE, 1);
}

/* ndma_memcpy_mc_async(nd, src_mc, dst_mc, src_off, dst_off, size | prefetch, earlier, *handle) */
SEC("kprobe/ndma_memcpy_mc_async")
int async_kprobe(struct pt_regs *ctx)
{
	const struct mem_chunk *src = (const void *)ctx->si, *dst = (const void *)ctx->dx;
	struct dma_thread *t;

	if (!is_wanted() || !(t = thread_of(true)))
		return 0;
	t->async_key = (struct dma_async_key){
		.device = device_of((const void *)ctx->di), .nc = core_of(src, dst)};
	t->async = (struct dma_async){.bytes = ctx->r9,
		.sequence = next_async(t->async_key.device),
		.device = t->async_key.device,
		.flags = flags_of_chunk(src, false) | flags_of_chunk(dst, true)};
	if (bpf_probe_read_kernel(&t->async_earlier, 4, (const void *)(ctx->sp + 16)) ||
		bpf_probe_read_kernel(&t->async_handle, 8, (const void *)(ctx->sp + 24)))
		t->async_handle = 0;
	put_async(NEV_DMA_START, &t->async, 0);
	return 0;
}

SEC("kretprobe/ndma_memcpy_mc_async")
int async_kret(struct pt_regs *ctx)
{
	struct dma_thread *t = thread_of(false);
	struct dma_async_key k;
	__s32 result = ctx->ax;
	struct dma_async a;

	if (!t || !t->async.sequence)
		return 0;
	a = t->async;
	k = t->async_key;
	t->async.sequence = 0;
	k.handle = t->async_earlier;
	if (k.handle > 0)
		end_async(&k, result);
	if (result == 0 && t->async_handle &&
		!bpf_probe_read_kernel(&k.handle, 4, (const void *)t->async_handle))
		keep_async(&k, &a);
	else
		put_async(NEV_DMA_STOP, &a, result);
	return 0;
}

/* ndma_memcpy_mc_wait(nd, src_mc, dst_mc, handle) */
SEC("kprobe/ndma_memcpy_mc_wait")
int await_kprobe(struct pt_regs *ctx)
{
	struct dma_thread *t;

	if (!is_wanted() || !(t = thread_of(true)))
		return 0;
	t->async_key = (struct dma_async_key){.device = device_of((const void *)ctx->di),
		.nc = core_of((const void *)ctx->si, (const void *)ctx->dx),
		.handle = ctx->cx};
	return 0;
}

SEC("kretprobe/ndma_memcpy_mc_wait")
int await_kret(struct pt_regs *ctx)
{
	struct dma_thread *t = thread_of(false);
	struct dma_async_key k;

	if (!t)
		return 0;
	k = t->async_key;
	if (k.handle > 0)
		end_async(&k, ctx->ax);
	t->async_key.handle = 0;
	return 0;
}

/* ---- rings of user space: ndmar_queue_copy_start(nd, eng, qid, tx, rx) and
 * ndmar_ack_completed(nd, eng, qid, count) --------------------------------------------------- */

static __always_inline int begin_user(__u32 mark)
{
	struct dma_thread *t = thread_of(true);

	if (t) {
		t->user_mark = mark;
		t->user_call = call_of_thread();
	}
	return 0;
}

static __always_inline int end_user(const struct dma_place *p, __u32 tx, __u32 rx, __s32 result)
{
	struct dma_thread *t = thread_of(false);

	if (t)
		t->user_mark = USER_NONE;
	put_user(p, tx, rx, result);
	return 0;
}

SEC("fentry/ndmar_queue_copy_start")
int BPF_PROG(user_fentry, struct neuron_device *nd, unsigned int engine, unsigned int queue,
	unsigned int tx, unsigned int rx)
{
	if (!is_mine(NEV_VIA_FENTRY))
		return 0;
	return begin_user(USER_INSIDE);
}

SEC("fexit/ndmar_queue_copy_start")
int BPF_PROG(user_fexit, struct neuron_device *nd, unsigned int engine, unsigned int queue,
	unsigned int tx, unsigned int rx, int result)
{
	struct dma_place p = place_of(nd, engine, queue);

	if (!is_mine(NEV_VIA_FENTRY))
		return 0;
	return end_user(&p, tx, rx, result);
}

SEC("fexit/ndmar_ack_completed")
int BPF_PROG(ack_fexit, struct neuron_device *nd, unsigned int engine, unsigned int queue,
	unsigned int count, int result)
{
	struct dma_place p = place_of(nd, engine, queue);

	if (!is_mine(NEV_VIA_FENTRY))
		return 0;
	put_queue(NEV_DMA_ACK, &p, 0, count, result);
	return 0;
}

/* For the return of one of these functions, none of which is called by another. */
static __always_inline int keep_place(struct pt_regs *ctx, __u32 tx, __u32 rx)
{
	struct dma_thread *t = thread_of(true);

	if (!t)
		return 0;
	t->place = place_of((const void *)ctx->di, ctx->si, ctx->dx);
	t->tx = tx;
	t->rx = rx;
	return 0;
}

static __always_inline int put_kept(enum nev_dma_kind kind, __s32 result)
{
	struct dma_thread *t = thread_of(false);
	struct dma_place p;

	if (!t)
		return 0;
	p = t->place;
	if (kind == NEV_DMA_USER)
		return end_user(&p, t->tx, t->rx, result);
	put_queue(kind, &p, t->tx, t->rx, result);
	return 0;
}

SEC("kprobe/ndmar_queue_copy_start")
int user_kprobe(struct pt_regs *ctx)
{
	if (!is_mine(NEV_VIA_KPROBE))
		return 0;
	begin_user(USER_INSIDE);
	return keep_place(ctx, ctx->cx, ctx->r8);
}

SEC("kretprobe/ndmar_queue_copy_start")
int user_kret(struct pt_regs *ctx)
{
	if (!is_mine(NEV_VIA_KPROBE))
		return 0;
	return put_kept(NEV_DMA_USER, ctx->ax);
}

SEC("kprobe/ndmar_ack_completed")
int ack_kprobe(struct pt_regs *ctx)
{
	if (!is_mine(NEV_VIA_KPROBE))
		return 0;
	return keep_place(ctx, 0, ctx->cx);
}

SEC("kretprobe/ndmar_ack_completed")
int ack_kret(struct pt_regs *ctx)
{
	if (!is_mine(NEV_VIA_KPROBE))
		return 0;
	return put_kept(NEV_DMA_ACK, ctx->ax);
}

/* ---- life of queues: ndmar_queue_init(nd, eng, qid, tx, rx, ...), ndmar_queue_release ------- */

SEC("kprobe/ndmar_queue_init")
int queue_kprobe(struct pt_regs *ctx)
{
	return keep_place(ctx, ctx->cx, ctx->r8);
}

SEC("kretprobe/ndmar_queue_init")
int queue_kret(struct pt_regs *ctx)
{
	return put_kept(NEV_DMA_QUEUE_INIT, ctx->ax);
}

SEC("kprobe/ndmar_queue_release")
int retire_kprobe(struct pt_regs *ctx)
{
	return keep_place(ctx, 0, 0);
}

SEC("kretprobe/ndmar_queue_release")
int retire_kret(struct pt_regs *ctx)
{
	return put_kept(NEV_DMA_QUEUE_RELEASE, ctx->ax);
}

/* ---- raw tracepoints ------------------------------------------------------------------------ */

struct raw_args {
	__u64 args[5];
};

static __always_inline struct dma_place place_in(const struct raw_args *ctx)
{
	return place_of((const void *)ctx->args[0], ctx->args[1], ctx->args[2]);
}

SEC("raw_tp/dma_queue_copy_start")
int user_tracepoint(struct raw_args *ctx)
{
	struct dma_place p = place_in(ctx);

	begin_user(USER_ONCE);
	put_user(&p, ctx->args[3], ctx->args[4], 0);
	return 0;
}

SEC("raw_tp/dma_ack_completed")
int ack_tracepoint(struct raw_args *ctx)
{
	struct dma_place p = place_in(ctx);

	put_queue(NEV_DMA_ACK, &p, 0, ctx->args[3], 0);
	return 0;
}

SEC("raw_tp/dma_queue_init")
int queue_tracepoint(struct raw_args *ctx)
{
	struct dma_place p = place_in(ctx);

	put_queue(NEV_DMA_QUEUE_INIT, &p, ctx->args[3], ctx->args[4], 0);
	return 0;
}

SEC("raw_tp/dma_queue_release")
int retire_tracepoint(struct raw_args *ctx)
{
	struct dma_place p = place_in(ctx);

	put_queue(NEV_DMA_QUEUE_RELEASE, &p, 0, 0, 0);
	return 0;
}

/* A copy that has been made: how long it took is not told. */
static __always_inline int put_copied(__u16 device, __u64 bytes, __u8 flags)
{
	struct dma_fact f = {
		.kind = NEV_DMA_TRANSFER, .bytes = bytes, .flags = flags, .place = NO_PLACE};

	f.place.device = device;
	put_own(NEV_DMA_POINT, &f);
	return 0;
}

/* nd, src_mc, dst_mc */
SEC("raw_tp/ioctl_mem_copy")
int copy_tracepoint(struct raw_args *ctx)
{
	return put_copied(device_of((const void *)ctx->args[0]), 0,
		flags_of_chunk((const void *)ctx->args[1], false) |
			flags_of_chunk((const void *)ctx->args[2], true));
}

/* nd, mc, buffer, offset, size */
SEC("raw_tp/ioctl_mem_copyin")
int copyin_tracepoint(struct raw_args *ctx)
{
	return put_copied(device_of((const void *)ctx->args[0]), ctx->args[4],
		NEV_DMA_F_SRC_HOST | flags_of_chunk((const void *)ctx->args[1], true));
}

SEC("raw_tp/ioctl_mem_copyout")
int copyout_tracepoint(struct raw_args *ctx)
{
	return put_copied(device_of((const void *)ctx->args[0]), ctx->args[4],
		flags_of_chunk((const void *)ctx->args[1], false) | NEV_DMA_F_DST_HOST);
}
