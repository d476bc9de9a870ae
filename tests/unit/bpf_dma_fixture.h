/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bpf_dma_fixture.h - what tests of the programs on the driver's DMA path need: the programs, a device with an engine
 * and a queue, and the records.  Header only.
 */
#ifndef NTRACE_TESTS_BPF_DMA_FIXTURE_H
#define NTRACE_TESTS_BPF_DMA_FIXTURE_H

#include "bpf/dma.skel.h"
#include "tests/unit/bpf_fixture.h"

typedef unsigned long long trace_ctx[8];

#define TRACE(name) int name(trace_ctx ctx)
#define PROBE(name) int name(struct bpf_regs *ctx)

TRACE(doorbell_fentry);
TRACE(completion_fexit);
TRACE(owner_fentry);
TRACE(owner_fexit);
TRACE(memset_fentry);
TRACE(memset_fexit);
TRACE(zerocopy_fentry);
TRACE(zerocopy_fexit);
TRACE(user_fentry);
TRACE(user_fexit);
TRACE(ack_fexit);
TRACE(user_tracepoint);
TRACE(ack_tracepoint);
TRACE(queue_tracepoint);
TRACE(retire_tracepoint);
TRACE(copy_tracepoint);
TRACE(copyin_tracepoint);
TRACE(copyout_tracepoint);
PROBE(doorbell_kprobe);
PROBE(completion_kprobe);
PROBE(completion_kret);
PROBE(owner_kprobe);
PROBE(owner_kret);
PROBE(transfer_kprobe);
PROBE(transfer_kret);
PROBE(memset_kprobe);
PROBE(memset_kret);
PROBE(zerocopy_kprobe);
PROBE(zerocopy_kret);
PROBE(async_kprobe);
PROBE(async_kret);
PROBE(await_kprobe);
PROBE(await_kret);
PROBE(user_kprobe);
PROBE(user_kret);
PROBE(ack_kprobe);
PROBE(ack_kret);
PROBE(queue_kprobe);
PROBE(queue_kret);
PROBE(retire_kprobe);
PROBE(retire_kret);

#define TGID BPF_TEST_TGID
#define INDEX 12u
#define ENGINE 33u
#define QUEUE 15u
#define HOST (1ull << 46)

extern volatile bool bpf_host_is_standin;

static void *device, *engine, *queue;

static inline bool open_dma(void)
{
	size_t size;
	const void *elf = dma_bpf__elf_bytes(&size);

	bpf_host_is_standin = false;
	if (!bpf_test_open(65536, 16) || bpf_host_add(elf, size))
		return false;
	device = bpf_host_neuron_device(INDEX);
	engine = bpf_host_ndma_eng(device, ENGINE);
	queue = bpf_host_ndma_ring(QUEUE);
	return true;
}

static inline uint64_t address(const void *p)
{
	return (uintptr_t)p;
}

static inline void run_trace(int (*fn)(trace_ctx), uint64_t a, uint64_t b, uint64_t c, uint64_t d,
	uint64_t e, uint64_t f, uint64_t g)
{
	CHECK_EQ(fn((trace_ctx){a, b, c, d, e, f, g}), 0);
}

static inline void run_probe(int (*fn)(struct bpf_regs *), uint64_t a, uint64_t b, uint64_t c,
	uint64_t d, uint64_t e, uint64_t f)
{
	struct bpf_regs regs = {.di = a, .si = b, .dx = c, .cx = d, .r8 = e, .r9 = f};

	CHECK_EQ(fn(&regs), 0);
}

static inline void run_return(int (*fn)(struct bpf_regs *), long result)
{
	CHECK_EQ(fn(&(struct bpf_regs){.ax = (unsigned long)result}), 0);
}

/* The next record, which must be one of the DMA path; all zero if there is none. */
static inline struct nev_dma take(void)
{
	unsigned long size = 0;
	const void *record = bpf_host_ring_take("ring", &size);
	struct nev_dma e = {.bytes = 0};

	if (record && size == sizeof(e))
		memcpy(&e, record, sizeof(e));
	else
		CHECK(!record);
	return e;
}

static inline bool nothing_more(void)
{
	return take().hdr.type == 0;
}

/* What is the same in all records of this process's threads. */
static inline void check_head(const struct nev_dma *e, enum nev_type type, enum nev_dma_kind kind)
{
	CHECK_EQ(e->hdr.type, type);
	CHECK_EQ(e->kind, kind);
	CHECK_EQ(e->hdr.nargs, 0);
	CHECK_EQ(e->hdr.cpu, bpf_host.cpu);
	CHECK_EQ(e->tgid, TGID);
}

static inline void check_place(const struct nev_dma *e, uint32_t sequence)
{
	CHECK_EQ(e->device, INDEX);
	CHECK_EQ(e->engine, ENGINE);
	CHECK_EQ(e->queue, QUEUE);
	CHECK_EQ(e->sequence, sequence);
}

static inline bool dma_balanced(void)
{
	return bpf_test_counter(NEV_C_DMA_MADE) ==
	       bpf_test_counter(NEV_C_DMA_DONE) + bpf_test_counter(NEV_C_DMA_LOST_RING_FULL);
}

static inline void ring_by(bool probe, unsigned tx, unsigned rx)
{
	uint64_t udma = address(bpf_host_udma(engine));

	if (probe)
		run_probe(doorbell_kprobe, udma, QUEUE, tx, rx, 0, 0);
	else
		run_trace(doorbell_fentry, udma, QUEUE, tx, rx, 0, 0, 0);
}

static inline void complete_by(bool probe, unsigned count, long result)
{
	if (probe) {
		run_probe(completion_kprobe, address(engine), address(queue), count, 0, 0, 0);
		run_return(completion_kret, result);
	} else {
		run_trace(completion_fexit, address(engine), address(queue), count, 0, 0, 0,
			(uint64_t)result);
	}
}

#endif
