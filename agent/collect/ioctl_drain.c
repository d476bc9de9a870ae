/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ioctl_drain.c - reads what the system-call level hooks write: records, open calls, counters.
 *
 * How far has everything been seen?  A call is on exactly one of these places, in this order: on
 * its CPU (nev_cpu.entering_ns: a place of its own for each program that can be preempted there), in the map of open calls, in the ring buffer.  It is put into the
 * next place before it leaves the last.  So a drain looks in the same order: it reads the clock,
 * then the CPUs, then walks the open calls, then notes the end of the ring buffer and reads up to
 * there.  A call that started before the clock was read and was met nowhere does not exist, and the
 * watermark is the older of the clock and the oldest call met on a CPU or open.  If a record that
 * is still being written bars the way to the noted end, the watermark stays where it was.
 *
 * A call that is open for long does not hold the watermark: after OPEN_LONG_NS it is announced, and
 * what is left to come of it is its end, which is not older than the clock that was read.  So the
 * watermark is never further back than that and one drain, 200 ms at the most.
 *
 * Counters and answers come through mapped memory and the walk runs as a program: the kernel skips
 * a hook whose CPU is inside a map operation of a system call, so a reader that looked values up by
 * system call would lose what it reads about.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

#include "agent/collect/ioctl_parts.h"
#include "bpf/ioctl.skel.h"
#include "runtime/base/clock.h"

/* The programs publish entering_ns with plain stores, in the order that x86 keeps. */
#ifndef __x86_64__
#error "the order of stores in bpf/ioctl.bpf.c is that of x86"
#endif

#define OPEN_LONG_NS 100000000ull
/* The clock may run ahead of a store that another CPU has made but not yet shown. */
#define GUARD_NS 10000ull
#define RECORD_MAX (sizeof(struct nev_ioctl) + NEV_MAX_ARGS * sizeof(uint64_t))

/* ---- draining ----------------------------------------------------------------------------- */

static int flush(struct ioctl_batch *b, ioctl_hooks_fn on_batch, void *ctx)
{
	size_t size = b->used;

	b->used = 0;
	return size && on_batch ? on_batch(ctx, b->data, size) : 0;
}

/* Appends to the batch, which always has room for the longest record; hands it on before it has
 * not. */
static int append(struct ioctl_hooks *h, struct ioctl_batch *b, const void *record, size_t size,
	ioctl_hooks_fn on_batch, void *ctx)
{
	if (size > RECORD_MAX)
		return -EPROTO;
	memcpy(b->data + b->used, record, size);
	b->used += size;
	if (b->used + RECORD_MAX <= sizeof(b->data))
		return 0;
	bpf_ring_release(&h->ring);
	return flush(b, on_batch, ctx);
}

/* A record of the ring: of a call, or of the DMA path, which goes elsewhere. */
static int take_record(
	struct ioctl_hooks *h, const void *record, size_t size, ioctl_hooks_fn on_batch, void *ctx)
{
	struct nev_hdr head;

	if (size < sizeof(head))
		return -EPROTO;
	memcpy(&head, record, sizeof(head));
	if (head.type < NEV_DMA_START) {
		h->received++;
		return append(h, &h->calls, record, size, on_batch, ctx);
	}
	h->dma_received++;
	return append(h, &h->dma, record, size, h->on_dma, h->dma_ctx);
}

void ioctl_hooks_take_dma(struct ioctl_hooks *h, ioctl_hooks_fn on_batch, void *ctx)
{
	h->on_dma = on_batch;
	h->dma_ctx = ctx;
}

uint64_t ioctl_hooks_dma_received(const struct ioctl_hooks *h)
{
	return h->dma_received;
}

static uint64_t load_relaxed(const void *p)
{
	return __atomic_load_n((const uint64_t *)p, __ATOMIC_RELAXED);
}

static uint64_t load_acquire(const void *p)
{
	return __atomic_load_n((const uint64_t *)p, __ATOMIC_ACQUIRE);
}

/* Start of the oldest call that is just being entered; a CPU that is reading its clock gives 1. */
static uint64_t oldest_entering(const struct ioctl_hooks *h)
{
	uint64_t oldest = UINT64_MAX;

	for (unsigned i = 0; i < h->cpu_count; i++)
		for (unsigned e = 0; e < NEV_ENTERING_MAX; e++) {
			uint64_t t = load_acquire(&h->cpus[i].entering_ns[e]);

			if (t && t < oldest)
				oldest = t;
		}
	return oldest;
}

/* True if no call can be open.  `entered` is read last: what it misses entered after this function.
 */
static bool none_open(const struct ioctl_hooks *h)
{
	static const uint8_t left[] = {NEV_CALL_LEFT};
	uint64_t out = 0, in = 0;

	for (unsigned i = 0; i < h->cpu_count; i++)
		for (size_t c = 0; c < sizeof(left); c++)
			out += load_acquire(&h->cpus[i].counters[left[c]]);
	for (unsigned i = 0; i < h->cpu_count; i++)
		in += load_acquire(&h->cpus[i].counters[NEV_C_ENTERED]);
	return in == out;
}

int ioctl_hooks_walk(const struct ioctl_hooks *h, uint64_t before_ns)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts);
	int r;

	h->walk->before_ns = before_ns;
	r = bpf_prog_test_run_opts(bpf_program__fd(h->skel->progs.walk_inflight), &opts);
	if (r)
		return r < 0 ? r : -EIO;
	return opts.retval ? -EIO : 0;
}

static int announce(struct ioctl_hooks *h, const struct nev_inflight *in, uint64_t now,
	ioctl_hooks_fn on_batch, void *ctx)
{
	size_t args =
		in->nargs <= NEV_MAX_ARGS ? in->nargs * sizeof(in->args[0]) : sizeof(in->args);
	uint8_t record[RECORD_MAX];
	struct nev_ioctl head = {
		.hdr = {.time_ns = now,
			.seq = h->start_seq++,
			.cpu = NEV_CPU_READER,
			.type = NEV_IOCTL_START,
			.nargs = (uint8_t)(args / sizeof(in->args[0]))},
		.start_ns = in->start_ns,
		.tgid = in->tgid,
		.tid = in->tid,
		.request = in->request,
		.device = in->device,
		.flags = in->flags,
		.fd = in->fd,
	};

	memcpy(record, &head, sizeof(head));
	memcpy(record + sizeof(head), in->args, args);
	return append(h, &h->calls, record, sizeof(head) + args, on_batch, ctx);
}

/* Announces the calls that have been open for long; returns how many.  *oldest_ns is lowered to the
 * start of the oldest open call that is not announced. */
static long drain_open(struct ioctl_hooks *h, uint64_t now, uint64_t *oldest_ns,
	ioctl_hooks_fn on_batch, void *ctx)
{
	uint32_t n;
	int r;

	if (none_open(h))
		return 0;
	r = ioctl_hooks_walk(h, now - OPEN_LONG_NS);
	if (r)
		return r;
	if (h->walk->oldest_ns < *oldest_ns)
		*oldest_ns = h->walk->oldest_ns;
	n = h->walk->found_count;
	for (uint32_t i = 0; i < n && i < NEV_WALK_MAX; i++) {
		r = announce(h, &h->walk->found[i], now, on_batch, ctx);
		if (r)
			return r;
	}
	return (long)n;
}

static long drain_ring(struct ioctl_hooks *h, uint64_t end, ioctl_hooks_fn on_batch, void *ctx)
{
	const void *record;
	size_t size;
	long n = 0;
	int r = 0;

	while (!r && bpf_ring_next(&h->ring, end, &record, &size)) {
		r = take_record(h, record, size, on_batch, ctx);
		n++;
	}
	bpf_ring_release(&h->ring);
	return r ? r : n;
}

long ioctl_hooks_drain(
	struct ioctl_hooks *h, ioctl_hooks_fn on_batch, void *ctx, uint64_t *ret_watermark)
{
	uint64_t now = clock_boot().ns, oldest = oldest_entering(h), end;
	long started, done;
	int r;

	if (!h->skel) {
		*ret_watermark = now;
		return 0;
	}
	started = drain_open(h, now, &oldest, on_batch, ctx);
	if (started < 0)
		return started;
	end = bpf_ring_end(&h->ring);
	done = drain_ring(h, end, on_batch, ctx);
	if (done < 0)
		return done;
	r = flush(&h->calls, on_batch, ctx);
	if (r == 0)
		r = flush(&h->dma, h->on_dma, h->dma_ctx);
	if (r)
		return r;
	if (now - GUARD_NS < oldest)
		oldest = now - GUARD_NS;
	if (h->ring.pos >= end && oldest > h->watermark_ns)
		h->watermark_ns = oldest;
	*ret_watermark = h->watermark_ns;
	return started + done;
}

/* Detaches hooks, waits until they run nowhere any more, drains. */
static int stop(struct ioctl_hooks *h, bool all, ioctl_hooks_fn on_batch, void *ctx,
	uint64_t *ret_watermark)
{
	bool on = h->filter_count;
	long n;

	ioctl_hooks_detach(h, all);
	n = on ? bpf_programs_wait() : 0;
	n = n ? n : ioctl_hooks_drain(h, on_batch, ctx, ret_watermark);
	return n < 0 ? (int)n : 0;
}

int ioctl_hooks_stop(
	struct ioctl_hooks *h, ioctl_hooks_fn on_batch, void *ctx, uint64_t *ret_watermark)
{
	int r = stop(h, false, on_batch, ctx, ret_watermark);

	return r ? r : stop(h, true, on_batch, ctx, ret_watermark);
}

uint64_t ioctl_hooks_left(const struct ioctl_hooks *h)
{
	return h->skel ? bpf_ring_unread(&h->ring) : 0;
}

/* ---- counters ----------------------------------------------------------------------------- */

int ioctl_hooks_counters(const struct ioctl_hooks *h, uint64_t ret[NEV_C_MAX], uint64_t *ret_open,
	uint64_t *ret_received)
{
	int r = h->skel ? ioctl_hooks_walk(h, 0) : 0;

	if (r)
		return r;
	for (int c = 0; c < NEV_C_MAX; c++) {
		ret[c] = 0;
		for (unsigned i = 0; i < h->cpu_count; i++)
			ret[c] += load_relaxed(&h->cpus[i].counters[c]);
	}
	*ret_open = h->skel ? h->walk->open : 0;
	*ret_received = h->received;
	return 0;
}

uint64_t ioctl_hooks_missed(const struct ioctl_hooks *h)
{
	uint64_t missed = 0;

	if (!h->skel)
		return 0;
	const struct bpf_program *progs[] = {h->skel->progs.enter_ioctl, h->skel->progs.exit_ioctl};
	for (size_t i = 0; i < sizeof(progs) / sizeof(progs[0]); i++) {
		struct bpf_prog_info info = {0};
		uint32_t size = sizeof(info);

		if (bpf_obj_get_info_by_fd(bpf_program__fd(progs[i]), &info, &size) == 0)
			missed += info.recursion_misses;
	}
	return missed + (h->driver ? driver_hooks_missed(h->driver) : 0);
}

bool ioctl_hooks_cost(const struct ioctl_hooks *h, struct bpf_cost *ret)
{
	struct bpf_map *map;

	if (!h->skel || h->stats_fd < 0)
		return false;
	*ret = (struct bpf_cost){0};
	bpf_cost_of_programs(h->skel->obj, ret);
	bpf_object__for_each_map(map, h->skel->obj)
	{
		bpf_cost_of_map(bpf_map__fd(map), ret);
	}
	if (h->driver)
		driver_hooks_cost(h->driver, ret);
	return true;
}
