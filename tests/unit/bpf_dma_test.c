/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bpf_dma_test.c - the programs on the driver's DMA path, driven on the host: doorbells and who completes them, and whole
 * transfers; by fentry and by kprobe.
 */
#include "tests/unit/bpf_dma_fixture.h"

/* ---- doorbells ---------------------------------------------------------------------------- */

TEST("bpf dma: a doorbell and its completion have one number, which counts per queue",
	"[bpf][bpf-host]")
{
	for (int probe = 0; probe < 2; probe++) {
		REQUIRE(open_dma());
		for (uint32_t n = 1; n <= 3; n++) {
			struct nev_dma start, stop;

			ring_by(probe, 10 + n, 20 + n);
			complete_by(probe, 10 + n, n == 3 ? -110 : 0);
			start = take();
			stop = take();
			test_info("doorbell %u, probe %d", n, probe);
			check_head(&start, NEV_DMA_START, NEV_DMA_DOORBELL);
			check_head(&stop, NEV_DMA_STOP, NEV_DMA_DOORBELL);
			check_place(&start, n);
			check_place(&stop, n);
			CHECK_EQ(start.tx, 10 + n);
			CHECK_EQ(start.rx, 20 + n);
			CHECK_EQ(stop.tx, 10 + n);
			CHECK_EQ(stop.result, n == 3 ? -110 : 0);
			CHECK_EQ(stop.flags, 0);
			CHECK(stop.hdr.time_ns > start.hdr.time_ns);
		}
		CHECK(nothing_more());
		CHECK(dma_balanced());
		bpf_test_close();
	}
}

TEST("bpf dma: a completion that a thread of the driver sees is its owner's", "[bpf][bpf-host]")
{
	struct nev_dma e;

	REQUIRE(open_dma());
	ring_by(false, 4, 5);
	take();
	ring_by(false, 4, 5);
	take();
	bpf_host.tgid = bpf_host.tid = 77;
	for (uint32_t sequence = 1; sequence <= 2; sequence++) {
		/* Another thread of a process may see it as well. */
		bpf_host_task_kthread(bpf_host.task, sequence == 1);
		complete_by(false, 4, 0);
		e = take();
		check_head(&e, NEV_DMA_STOP, NEV_DMA_DOORBELL);
		check_place(&e, sequence);
		CHECK_EQ(e.tid, TGID);
		CHECK_EQ(e.flags, sequence == 1 ? NEV_DMA_F_KTHREAD : 0);
		CHECK_EQ(e.call_ns, 0);
	}
	/* Of nobody's doorbell: whoever waits is not followed. */
	complete_by(false, 4, 0);
	CHECK(nothing_more());
	bpf_test_close();
}

/* The driver's thread, or the process's own, issues a context for the process. */
static void issue_by(bool by_probe, bool is_kthread)
{
	void *context = bpf_host_zc_context(TGID);

	bpf_host.tgid = bpf_host.tid = is_kthread ? 77 : TGID;
	bpf_host_task_kthread(bpf_host.task, is_kthread);
	if (by_probe)
		run_probe(owner_kprobe, address(context), 0, 0, 0, 0, 0);
	else
		run_trace(owner_fentry, address(context), 0, 0, 0, 0, 0, 0);
	ring_by(by_probe, 4, 4);
	if (by_probe)
		run_return(owner_kret, 0);
	else
		run_trace(owner_fexit, address(context), 0, 0, 0, 0, 0, 0);
}

TEST("bpf dma: what a thread of the driver rings is the owner's, and only while it works for him",
	"[bpf][bpf-host]")
{
	for (int by_probe = 0; by_probe < 2; by_probe++) {
		struct nev_dma e;

		REQUIRE(open_dma());
		issue_by(by_probe, true);
		e = take();
		check_head(&e, NEV_DMA_START, NEV_DMA_DOORBELL);
		check_place(&e, 1);
		CHECK_EQ(e.tid, 0);
		CHECK_EQ(e.flags, NEV_DMA_F_KTHREAD);
		ring_by(by_probe, 4, 4); /* for nobody: it is no process that is followed */
		CHECK(nothing_more());
		complete_by(by_probe, 4, 0);
		e = take();
		check_head(&e, NEV_DMA_STOP, NEV_DMA_DOORBELL);
		check_place(&e, 1);
		CHECK_EQ(e.flags, NEV_DMA_F_KTHREAD);
		complete_by(by_probe, 4, 0);
		CHECK(nothing_more());
		issue_by(by_probe, false);
		e = take();
		check_place(&e, 3);
		CHECK_EQ(e.tid, TGID);
		CHECK_EQ(e.flags, 0);
		CHECK(dma_balanced());
		bpf_test_close();
	}
}

TEST("bpf dma: copies in flight complete in order, and one that was given up is passed over",
	"[bpf][bpf-host]")
{
	struct nev_dma e;

	REQUIRE(open_dma());
	for (unsigned n = 1; n <= 3; n++) {
		ring_by(true, n, n);
		take();
	}
	complete_by(true, 2, 0); /* nobody waited for the first */
	e = take();
	check_place(&e, 2);
	CHECK_EQ(bpf_test_counter(NEV_C_DMA_UNENDED), 1);
	complete_by(true, 3, 0);
	e = take();
	check_place(&e, 3);
	complete_by(true, 9, -1); /* no such doorbell */
	e = take();
	check_head(&e, NEV_DMA_STOP, NEV_DMA_DOORBELL);
	check_place(&e, 0);
	CHECK_EQ(e.result, -1);
	bpf_test_close();
}

#define REMEMBERED 1024u /* doorbells of a ring */
#define SEARCHED 64u	 /* of these the oldest */

TEST("bpf dma: more doorbells than are remembered lose the oldest alone", "[bpf][bpf-host]")
{
	struct nev_dma e;

	REQUIRE(open_dma());
	for (unsigned n = 1; n <= REMEMBERED + 2; n++) {
		ring_by(true, n, n);
		e = take();
		check_place(&e, n);
	}
	CHECK_EQ(bpf_test_counter(NEV_C_DMA_UNENDED), 2);
	complete_by(true, 2, 0); /* forgotten */
	e = take();
	CHECK_EQ(e.sequence, 0);
	complete_by(true, 3, 0);
	e = take();
	check_place(&e, 3);
	complete_by(true, 4 + SEARCHED, 0); /* so many are not given up at once */
	e = take();
	CHECK_EQ(e.sequence, 0);
	CHECK_EQ(bpf_test_counter(NEV_C_DMA_UNENDED), 2);
	complete_by(true, 4 + SEARCHED - 1, 0);
	e = take();
	check_place(&e, 4 + SEARCHED - 1);
	CHECK_EQ(bpf_test_counter(NEV_C_DMA_UNENDED), 2 + SEARCHED - 1);
	bpf_test_close();
}

TEST("bpf dma: a return without an entry, and a queue that nobody met, make no doorbell",
	"[bpf][bpf-host]")
{
	struct nev_dma e;

	REQUIRE(open_dma());
	run_return(completion_kret, 0); /* no thread */
	CHECK(nothing_more());
	complete_by(true, 4, 0);
	e = take();
	CHECK_EQ(e.sequence, 0);
	run_return(completion_kret, 0); /* the thread has none open */
	CHECK(nothing_more());
	bpf_host_fail("dma_threads", BPF_HOST_LOOKUP, 0, 1, 2);
	run_probe(completion_kprobe, address(engine), address(queue), 1, 0, 0, 0);
	run_return(completion_kret, 0);
	CHECK(nothing_more());
	CHECK_EQ(bpf_test_counter(NEV_C_DMA_NO_PLACE), 1);
	bpf_test_close();
}

TEST("bpf dma: doorbells of a queue without room have no number or no end, and are counted",
	"[bpf][bpf-host]")
{
	struct nev_dma e;

	REQUIRE(open_dma());
	bpf_host_fail("dma_new_ring", BPF_HOST_LOOKUP, 0, 1, 1);
	ring_by(true, 1, 1);
	e = take();
	check_place(&e, 1);
	bpf_host_fail("dma_rings", BPF_HOST_LOOKUP, 0, 1, 2);
	ring_by(true, 1, 1);
	e = take();
	check_place(&e, 2);
	complete_by(true, 1, 0);
	CHECK_EQ(take().sequence, 0);
	CHECK_EQ(bpf_test_counter(NEV_C_DMA_NO_PLACE), 2);
	bpf_host_fail("dma_queues", BPF_HOST_LOOKUP, 0, 1, 2);
	ring_by(true, 1, 1);
	e = take();
	check_place(&e, 0);
	CHECK_EQ(bpf_test_counter(NEV_C_DMA_NO_PLACE), 3);
	ring_by(true, 1, 1);
	e = take();
	check_place(&e, 3);
	bpf_test_close();
}

TEST("bpf dma: where the driver's layout is not known doorbells are not guessed", "[bpf][bpf-host]")
{
	REQUIRE(open_dma());
	bpf_host.absent = "ndma_";
	ring_by(false, 1, 1);
	ring_by(true, 1, 1);
	complete_by(false, 1, 0);
	complete_by(true, 1, 0);
	CHECK(nothing_more());
	bpf_host.absent = "ndma_eng)"; /* the ring is known, the engine is not */
	complete_by(false, 1, 0);
	CHECK_EQ(take().engine, NEV_DMA_UNKNOWN);
	bpf_test_close();
}

/* ---- whole transfers ---------------------------------------------------------------------- */

enum by { BY_TRACE, BY_PROBE };

static const struct whole {
	const char *name;
	enum nev_dma_kind kind;
	enum by by;
	int (*enter_trace)(trace_ctx), (*exit_trace)(trace_ctx);
	int (*enter_probe)(struct bpf_regs *), (*exit_probe)(struct bpf_regs *);
	unsigned nargs; /* of the function, for fexit */
} wholes[] = {
	{"transfer", NEV_DMA_TRANSFER, BY_PROBE, NULL, NULL, transfer_kprobe, transfer_kret, 0},
	{"memset", NEV_DMA_MEMSET, BY_TRACE, memset_fentry, memset_fexit, NULL, NULL, 5},
	{"memset", NEV_DMA_MEMSET, BY_PROBE, NULL, NULL, memset_kprobe, memset_kret, 0},
	{"zerocopy", NEV_DMA_ZEROCOPY, BY_TRACE, zerocopy_fentry, zerocopy_fexit, NULL, NULL, 6},
	{"zerocopy", NEV_DMA_ZEROCOPY, BY_PROBE, NULL, NULL, zerocopy_kprobe, zerocopy_kret, 0},
};

#define WHOLES (sizeof(wholes) / sizeof(wholes[0]))

/* Into the device, n bytes. */
static void enter_whole(const struct whole *w, uint64_t n)
{
	uint64_t nd = address(device), chunk = address(bpf_host_mem_chunk(0, 1));

	if (w->kind == NEV_DMA_TRANSFER)
		run_probe(w->enter_probe, nd, 0, HOST | 0x1000, 0x2000, n, 0);
	else if (w->kind == NEV_DMA_MEMSET && w->by == BY_TRACE)
		run_trace(w->enter_trace, nd, chunk, 64, 0, n, 0, 0);
	else if (w->kind == NEV_DMA_MEMSET)
		run_probe(w->enter_probe, nd, chunk, 64, 0, n, 0);
	else if (w->by == BY_TRACE)
		run_trace(w->enter_trace, nd, 0, chunk, 0, n, 1, 0);
	else
		run_probe(w->enter_probe, nd, 0, chunk, 0, n, 0xffffff01);
}

static void exit_whole(const struct whole *w, long result)
{
	trace_ctx ctx = {0};

	ctx[w->nargs] = (unsigned long long)result;
	if (w->by == BY_TRACE)
		CHECK_EQ(w->exit_trace(ctx), 0);
	else
		run_return(w->exit_probe, result);
}

TEST("bpf dma: a whole transfer has its bytes, its direction and the call that it is of",
	"[bpf][bpf-host]")
{
	for (size_t i = 0; i < WHOLES; i++) {
		const struct whole *w = &wholes[i];
		struct nev_dma start, stop;
		uint64_t call;

		REQUIRE(open_dma());
		call = bpf_host.boot_ns;
		bpf_test_enter(BPF_TEST_FD, NEURON_IOCTL_DEVICE_INFO, 0);
		enter_whole(w, 1ull << 33);
		exit_whole(w, -12);
		bpf_test_exit(0);
		start = take();
		stop = take();
		test_info("%s by %d", w->name, w->by);
		check_head(&start, NEV_DMA_START, w->kind);
		check_head(&stop, NEV_DMA_STOP, w->kind);
		for (const struct nev_dma *e = &start; e; e = e == &start ? &stop : NULL) {
			CHECK_EQ(e->bytes, 1ull << 33);
			CHECK_EQ(e->sequence, 1);
			CHECK_EQ(e->device, INDEX);
			CHECK_EQ(e->engine, NEV_DMA_UNKNOWN);
			CHECK_EQ(e->queue, NEV_DMA_UNKNOWN);
			CHECK_EQ(e->call_ns, call);
			CHECK_EQ(e->flags,
				NEV_DMA_F_TO_DEVICE |
					(w->kind == NEV_DMA_MEMSET ? 0 : NEV_DMA_F_SRC_HOST));
		}
		CHECK_EQ(stop.result, -12);
		bpf_test_close();
	}
}

TEST("bpf dma: transfers of a thread count on, and a return without an entry makes nothing",
	"[bpf][bpf-host]")
{
	for (size_t i = 0; i < WHOLES; i++) {
		REQUIRE(open_dma());
		exit_whole(&wholes[i], 0);
		enter_whole(&wholes[i], 1);
		exit_whole(&wholes[i], 0);
		exit_whole(&wholes[i], 0);
		enter_whole(&wholes[i], 2);
		test_info("%s", wholes[i].name);
		CHECK_EQ(take().sequence, 1);
		CHECK_EQ(take().sequence, 1);
		CHECK_EQ(take().sequence, 2);
		CHECK(nothing_more());
		bpf_host_fail("dma_threads", BPF_HOST_LOOKUP, 0, 1, 3);
		enter_whole(&wholes[i], 3);
		CHECK(nothing_more());
		bpf_test_close();
	}
}

TEST("bpf dma: what a process does that is not followed makes no record", "[bpf][bpf-host]")
{
	REQUIRE(open_dma());
	bpf_host.tgid = bpf_host.tid = 4000;
	for (size_t i = 0; i < WHOLES; i++) {
		enter_whole(&wholes[i], 1);
		exit_whole(&wholes[i], 0);
	}
	ring_by(true, 1, 1);
	complete_by(true, 1, 0);
	run_probe(async_kprobe, address(device), 0, 0, 0, 0, 0);
	run_probe(await_kprobe, address(device), 0, 0, 1, 0, 0);
	CHECK(nothing_more());
	CHECK_EQ(bpf_test_counter(NEV_C_DMA_MADE), 0);
	bpf_test_close();
}

TEST("bpf dma: directions of a copy follow from what lies at its ends", "[bpf][bpf-host]")
{
	static const struct {
		uint64_t src, dst;
		uint8_t flags;
	} addresses[] = {
		{HOST, 0, NEV_DMA_F_SRC_HOST | NEV_DMA_F_TO_DEVICE},
		{0, HOST, NEV_DMA_F_FROM_DEVICE | NEV_DMA_F_DST_HOST},
		{0, 4096, NEV_DMA_F_FROM_DEVICE | NEV_DMA_F_TO_DEVICE},
		{1ull << 44, HOST, NEV_DMA_F_SRC_HOST | NEV_DMA_F_DST_HOST},
	};

	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		uint64_t src, dst;

		REQUIRE(open_dma());
		run_probe(transfer_kprobe, address(device), 0, addresses[i].src, addresses[i].dst,
			8, 0);
		src = address(bpf_host_mem_chunk(addresses[i].src != 0, 0));
		dst = address(bpf_host_mem_chunk(addresses[i].dst == HOST, 0));
		run_trace(copy_tracepoint, address(device), src, dst, 0, 0, 0, 0);
		test_info("case %zu", i);
		CHECK_EQ(take().flags, addresses[i].flags);
		CHECK_EQ(take().flags, addresses[i].flags);
		bpf_test_close();
	}
}

/* ---- two kinds of hooks at once ------------------------------------------------------------ */

/* Everything that both kinds see, by one of them; how many records that makes. */
static unsigned all_by(enum nev_via via)
{
	static const struct whole two[2][2] = {
		{{"memset", NEV_DMA_MEMSET, BY_TRACE, memset_fentry, memset_fexit, NULL, NULL, 5},
			{"zerocopy", NEV_DMA_ZEROCOPY, BY_TRACE, zerocopy_fentry, zerocopy_fexit,
				NULL, NULL, 6}},
		{{"memset", NEV_DMA_MEMSET, BY_PROBE, NULL, NULL, memset_kprobe, memset_kret, 0},
			{"zerocopy", NEV_DMA_ZEROCOPY, BY_PROBE, NULL, NULL, zerocopy_kprobe,
				zerocopy_kret, 0}},
	};
	bool probe = via == NEV_VIA_KPROBE;
	unsigned n = 0;

	ring_by(probe, 4, 4);
	complete_by(probe, 4, 0);
	for (int i = 0; i < 2; i++) {
		enter_whole(&two[probe][i], 64);
		exit_whole(&two[probe][i], 0);
	}
	if (probe) {
		run_probe(user_kprobe, address(device), ENGINE, QUEUE, 6, 7, 0);
		run_return(user_kret, 0);
		run_probe(ack_kprobe, address(device), ENGINE, QUEUE, 6, 0, 0);
		run_return(ack_kret, 0);
	} else {
		run_trace(user_fentry, address(device), ENGINE, QUEUE, 6, 7, 0, 0);
		run_trace(user_fexit, address(device), ENGINE, QUEUE, 6, 7, 0, 0);
		run_trace(ack_fexit, address(device), ENGINE, QUEUE, 6, 0, 0, 0);
	}
	while (take().hdr.type)
		n++;
	return n;
}

TEST("bpf dma: while two kinds of hooks watch, work is of the kind that saw its call enter, else "
     "of the kind that is named",
	"[bpf][bpf-host]")
{
	enum { NONE, FENTRY = NEV_VIA_FENTRY, KPROBE = NEV_VIA_KPROBE, CALLS = NEV_VIA_MAX };
	static const struct {
		bool is_standin, open;
		uint64_t overlap;
		enum nev_via via;
		unsigned by_fentry, by_kprobe;
	} cases[] = {
		{true, true, NONE, NEV_VIA_KPROBE, 8, 8},
		{true, true, FENTRY, NEV_VIA_FENTRY, 8, 0},
		{true, true, FENTRY, NEV_VIA_KPROBE, 0, 8},
		{true, true, KPROBE, NEV_VIA_FENTRY, 8, 0},
		{true, true, KPROBE, NEV_VIA_KPROBE, 0, 8},
		/* Its last call has ended. */
		{true, false, FENTRY, NEV_VIA_KPROBE, 8, 0},
		{true, false, KPROBE, NEV_VIA_FENTRY, 0, 8},
		/* It has never made one. */
		{true, false, FENTRY, NEV_VIA_MAX, 8, 0},
		{true, false, KPROBE, NEV_VIA_MAX, 0, 8},
		/* A call that neither kind saw enter. */
		{true, true, FENTRY, NEV_VIA_SYSCALL, 8, 0},
		{true, true, KPROBE, NEV_VIA_SYSCALL, 0, 8},
		/* Kprobes that stand in for nothing: nobody else sees that. */
		{false, true, FENTRY, NEV_VIA_FENTRY, 8, 8},
		{false, false, FENTRY, NEV_VIA_MAX, 8, 8},
		/* One kind watches this path, and two levels the calls. */
		{true, true, CALLS, NEV_VIA_SYSCALL, 8, 8},
		{true, true, CALLS, NEV_VIA_KPROBE, 8, 8},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct nev_inflight in = {
			.start_ns = cases[i].open, .tid = TGID, .via = (uint8_t)cases[i].via};

		REQUIRE(open_dma());
		bpf_host_is_standin = cases[i].is_standin;
		for (uint32_t cpu = 0; cpu < BPF_TEST_CPUS; cpu++)
			((struct nev_cpu *)bpf_host_lookup("cpus", &cpu))->overlap =
				cases[i].overlap;
		if (cases[i].via != NEV_VIA_MAX)
			CHECK_EQ(bpf_host_update("inflight", &in.tid, &in, 0), 0);
		test_info("case %zu", i);
		CHECK_EQ(all_by(NEV_VIA_FENTRY), cases[i].by_fentry);
		CHECK_EQ(all_by(NEV_VIA_KPROBE), cases[i].by_kprobe);
		bpf_test_close();
	}
}

TEST("bpf dma: a thread of the driver without a place, or of a driver of another shape, rings for "
     "itself",
	"[bpf][bpf-host]")
{
	uint64_t context = 4096;

	REQUIRE(open_dma());
	bpf_host.absent = "zcdma_context";
	run_probe(owner_kprobe, context, 0, 0, 0, 0, 0);
	run_return(owner_kret, 0);
	bpf_host.absent = NULL;
	run_trace(owner_fentry, context, 0, 0, 0, 0, 0, 0); /* no thread of the driver */
	CHECK_EQ(bpf_host_count("dma_threads"), 0);
	bpf_host.tgid = bpf_host.tid = 4000; /* and nobody wants its doorbells */
	ring_by(true, 1, 1);
	bpf_host_fail("dma_queues", BPF_HOST_LOOKUP, 0, 1, 2);
	ring_by(true, 1, 1);
	CHECK(nothing_more());
	bpf_test_close();
}
