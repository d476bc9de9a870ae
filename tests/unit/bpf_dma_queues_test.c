/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bpf_dma_queues_test.c - the programs on the driver's DMA path, driven on the host: asynchronous copies, rings of
 * user space, the life of queues, loss; by fentry, kprobe and tracepoint.
 */
#include "tests/unit/bpf_dma_fixture.h"

/* ---- asynchronous copies ------------------------------------------------------------------- */

struct async_stack {
	uint64_t return_address, unused, earlier, handle_pointer;
};

static void submit(
	int is_to_device, struct async_stack *stack, int earlier, int *handle, uint64_t n)
{
	void *host = bpf_host_mem_chunk(1, 0), *hbm = bpf_host_mem_chunk(0, 5);
	struct bpf_regs regs = {.di = address(device),
		.si = address(is_to_device ? host : hbm),
		.dx = address(is_to_device ? hbm : host),
		.r9 = n,
		.sp = address(stack)};

	stack->earlier = (uint32_t)earlier;
	stack->handle_pointer = address(handle);
	CHECK_EQ(async_kprobe(&regs), 0);
}

static void await_handle(int is_to_device, int handle, long result)
{
	void *host = bpf_host_mem_chunk(1, 0), *hbm = bpf_host_mem_chunk(0, 5);

	run_probe(await_kprobe, address(device), address(is_to_device ? host : hbm),
		address(is_to_device ? hbm : host), (uint32_t)handle, 0, 0);
	run_return(await_kret, result);
}

TEST("bpf dma: an asynchronous copy ends when its handle has been waited for", "[bpf][bpf-host]")
{
	for (int to_device = 0; to_device < 2; to_device++) {
		struct async_stack stack = {0};
		struct nev_dma start, stop;
		int handle = 9;

		REQUIRE(open_dma());
		submit(to_device, &stack, 0, &handle, 4096);
		run_probe(transfer_kprobe, address(device), 0, HOST, 0, 4096, 0); /* inside of it */
		run_return(transfer_kret, 0);
		run_return(async_kret, 0);
		start = take();
		check_head(&start, NEV_DMA_START, NEV_DMA_ASYNC);
		CHECK_EQ(start.bytes, 4096);
		CHECK_EQ(start.sequence, 1);
		CHECK_EQ(start.flags, to_device ? NEV_DMA_F_SRC_HOST | NEV_DMA_F_TO_DEVICE
						: NEV_DMA_F_FROM_DEVICE | NEV_DMA_F_DST_HOST);
		CHECK(nothing_more());
		await_handle(to_device, 8, 0); /* another's */
		await_handle(!to_device, 0, 0);
		CHECK(nothing_more());
		await_handle(to_device, 9, -110);
		stop = take();
		check_head(&stop, NEV_DMA_STOP, NEV_DMA_ASYNC);
		CHECK_EQ(stop.sequence, 1);
		CHECK_EQ(stop.bytes, 4096);
		CHECK_EQ(stop.device, INDEX);
		CHECK_EQ(stop.result, -110);
		await_handle(to_device, 9, 0); /* once */
		CHECK(nothing_more());
		/* Between two chunks of the host there is no core of a device to go by. */
		run_probe(async_kprobe, address(device), address(bpf_host_mem_chunk(1, 0)),
			address(bpf_host_mem_chunk(1, 0)), 0, 0, 64);
		CHECK_EQ(take().flags, NEV_DMA_F_SRC_HOST | NEV_DMA_F_DST_HOST);
		bpf_test_close();
	}
}

TEST("bpf dma: a submit that waits for an earlier copy ends that one first", "[bpf][bpf-host]")
{
	struct async_stack stack = {0};
	struct nev_dma e;
	int handle = 1;

	REQUIRE(open_dma());
	submit(1, &stack, 0, &handle, 100);
	run_return(async_kret, 0);
	submit(1, &stack, 1, &handle, 200);
	handle = 2;
	run_return(async_kret, 0);
	CHECK_EQ(take().sequence, 1);
	CHECK_EQ(take().sequence, 2);
	e = take();
	check_head(&e, NEV_DMA_STOP, NEV_DMA_ASYNC);
	CHECK_EQ(e.sequence, 1);
	await_handle(1, 2, 0);
	e = take();
	CHECK_EQ(e.sequence, 2);
	CHECK_EQ(e.bytes, 200);
	bpf_test_close();
}

TEST("bpf dma: a submit that fails, or whose handle cannot be read, ends at once",
	"[bpf][bpf-host]")
{
	static const struct {
		long result;
		unsigned stack_faults; /* the word of it */
		bool handle_faults;
	} cases[] = {{-12, 0, false}, {0, 2, false}, {0, 3, false}, {0, 0, true}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct async_stack stack = {0};
		struct nev_dma e;
		int handle = 3;

		REQUIRE(open_dma());
		run_return(async_kret, 0); /* no thread */
		if (cases[i].stack_faults)
			bpf_host_kernel_fault((uint64_t *)&stack + cases[i].stack_faults, 8);
		if (cases[i].handle_faults)
			bpf_host_kernel_fault(&handle, 4);
		submit(1, &stack, 0, &handle, 100);
		run_return(async_kret, cases[i].result);
		run_return(async_kret, 0); /* it has no submit open */
		test_info("case %zu", i);
		CHECK_EQ(take().hdr.type, NEV_DMA_START);
		e = take();
		check_head(&e, NEV_DMA_STOP, NEV_DMA_ASYNC);
		CHECK_EQ(e.result, cases[i].result);
		CHECK(nothing_more());
		CHECK_EQ(bpf_host_count("dma_asyncs"), 0);
		bpf_test_close();
	}
}

TEST("bpf dma: asynchronous copies without room for their thread or their count", "[bpf][bpf-host]")
{
	struct async_stack stack = {0};
	int handle = 3;

	REQUIRE(open_dma());
	bpf_host_fail("dma_threads", BPF_HOST_LOOKUP, 0, 1, 6);
	submit(1, &stack, 0, &handle, 100);
	await_handle(1, 3, 0);
	CHECK(nothing_more());
	bpf_host_fail("dma_async_count", BPF_HOST_LOOKUP, 0, 1, 1);
	submit(1, &stack, 0, &handle, 100);
	run_return(async_kret, 0);
	CHECK_EQ(take().sequence, 0);
	bpf_test_close();
}

TEST("bpf dma: chunks whose layout is not known have no direction and no core", "[bpf][bpf-host]")
{
	struct async_stack stack = {0};
	int handle = 3;

	REQUIRE(open_dma());
	run_trace(zerocopy_fentry, address(device), 0, 0, 0, 64, 0, 0);
	CHECK_EQ(take().flags, NEV_DMA_F_FROM_DEVICE | NEV_DMA_F_DST_HOST);
	bpf_host.absent = "mem_chunk";
	submit(1, &stack, 0, &handle, 100);
	run_return(async_kret, 0);
	CHECK_EQ(take().flags, 0);
	await_handle(0, 3, 0);
	CHECK_EQ(take().hdr.type, NEV_DMA_STOP);
	run_trace(copyin_tracepoint, address(device), 0, 0, 0, 64, 0, 0);
	CHECK_EQ(take().flags, NEV_DMA_F_SRC_HOST);
	bpf_host.absent = NULL;
	/* A chunk that is not there is not host memory. */
	run_trace(copyout_tracepoint, address(device), 0, 0, 0, 64, 0, 0);
	CHECK_EQ(take().flags, NEV_DMA_F_FROM_DEVICE | NEV_DMA_F_DST_HOST);
	bpf_test_close();
}

/* ---- rings of user space and queues -------------------------------------------------------- */

TEST("bpf dma: starting a ring of user space is one point, not a doorbell that never completes",
	"[bpf][bpf-host]")
{
	for (int by = 0; by < 3; by++) {
		struct nev_dma e;

		REQUIRE(open_dma());
		if (by == 0)
			run_trace(user_fentry, address(device), ENGINE, QUEUE, 6, 7, 0, 0);
		else if (by == 1)
			run_probe(user_kprobe, address(device), ENGINE, QUEUE, 6, 7, 0);
		else
			run_trace(user_tracepoint, address(device), ENGINE, QUEUE, 6, 7, 0, 0);
		ring_by(by != 0, 6, 7);
		if (by == 0)
			run_trace(user_fexit, address(device), ENGINE, QUEUE, 6, 7, 0, 0);
		else if (by == 1)
			run_return(user_kret, 0);
		e = take();
		test_info("by %d", by);
		check_head(&e, NEV_DMA_POINT, NEV_DMA_USER);
		check_place(&e, 1);
		CHECK_EQ(e.tx, 6);
		CHECK_EQ(e.rx, 7);
		CHECK(nothing_more());
		ring_by(true, 8, 8); /* the next one is a doorbell again */
		e = take();
		check_head(&e, NEV_DMA_START, NEV_DMA_DOORBELL);
		check_place(&e, 2);
		bpf_test_close();
	}
}

TEST("bpf dma: acknowledgements and the life of a queue are points with what they did",
	"[bpf][bpf-host]")
{
	static const struct {
		enum nev_dma_kind kind;
		int (*trace)(trace_ctx);
		int (*enter)(struct bpf_regs *), (*leave)(struct bpf_regs *);
		uint32_t tx, rx;
	} cases[] = {
		{NEV_DMA_ACK, ack_fexit, NULL, NULL, 0, 6},
		{NEV_DMA_ACK, ack_tracepoint, NULL, NULL, 0, 6},
		{NEV_DMA_ACK, NULL, ack_kprobe, ack_kret, 0, 6},
		{NEV_DMA_QUEUE_INIT, queue_tracepoint, NULL, NULL, 6, 7},
		{NEV_DMA_QUEUE_INIT, NULL, queue_kprobe, queue_kret, 6, 7},
		{NEV_DMA_QUEUE_RELEASE, retire_tracepoint, NULL, NULL, 0, 0},
		{NEV_DMA_QUEUE_RELEASE, NULL, retire_kprobe, retire_kret, 0, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct nev_dma e;

		REQUIRE(open_dma());
		test_info("case %zu", i);
		if (cases[i].leave)
			run_return(cases[i].leave, 0); /* entered before the hooks were there */
		CHECK(nothing_more());
		if (cases[i].trace) {
			bool exits = cases[i].trace == ack_fexit;

			run_trace(cases[i].trace, address(device), ENGINE, QUEUE, 6, exits ? 0 : 7,
				0, 0);
		} else {
			run_probe(cases[i].enter, address(device), ENGINE, QUEUE, 6, 7, 0);
			run_return(cases[i].leave, -22);
		}
		e = take();
		check_head(&e, NEV_DMA_POINT, cases[i].kind);
		check_place(&e, 0);
		CHECK_EQ(e.tx, cases[i].tx);
		CHECK_EQ(e.rx, cases[i].rx);
		CHECK_EQ(e.result, cases[i].trace ? 0 : -22);
		bpf_host_fail("dma_threads", BPF_HOST_LOOKUP, 0, 1, 2);
		if (cases[i].enter)
			run_probe(cases[i].enter, address(device), ENGINE, QUEUE, 6, 7, 0);
		CHECK(nothing_more());
		bpf_test_close();
	}
}

TEST("bpf dma: a queue that begins anew has nobody waiting", "[bpf][bpf-host]")
{
	struct nev_dma e;

	REQUIRE(open_dma());
	ring_by(true, 1, 1);
	take();
	run_trace(queue_tracepoint, address(device), ENGINE, QUEUE, 64, 64, 0, 0);
	take();
	CHECK_EQ(bpf_test_counter(NEV_C_DMA_UNENDED), 1);
	complete_by(true, 1, 0);
	e = take();
	CHECK_EQ(e.sequence, 0);
	ring_by(true, 1, 1);
	e = take();
	CHECK_EQ(e.sequence, 2);
	bpf_test_close();
}

TEST("bpf dma: a mark that a ring of user space left behind is not for the doorbells of a later "
     "call",
	"[bpf][bpf-host]")
{
	for (int by = 0; by < 2;
		by++) { /* its return was skipped; or its start failed behind the tracepoint */
		struct nev_dma e;

		REQUIRE(open_dma());
		bpf_test_enter(BPF_TEST_FD, NEURON_IOCTL_DEVICE_INFO, 0);
		if (by)
			run_trace(user_tracepoint, address(device), ENGINE, QUEUE, 6, 7, 0, 0);
		else
			run_trace(user_fentry, address(device), ENGINE, QUEUE, 6, 7, 0, 0);
		bpf_test_exit(0);
		while (bpf_host_ring_used("ring"))
			(void)bpf_host_ring_take("ring", &(unsigned long){0});
		bpf_test_enter(BPF_TEST_FD, NEURON_IOCTL_DEVICE_INFO, 0);
		for (unsigned n = 0; n < 2; n++) {
			ring_by(true, 8, 8);
			e = take();
			test_info("by %d, doorbell %u", by, n);
			check_head(&e, NEV_DMA_START, NEV_DMA_DOORBELL);
		}
		bpf_test_close();
	}
}

TEST("bpf dma: what is kept until its end, and is forgotten, is counted", "[bpf][bpf-host]")
{
	struct async_stack stack = {0};
	int handle = 3;

	REQUIRE(open_dma());
	for (unsigned n = 0; n < 2; n++) /* the return of the first is skipped */
		run_trace(memset_fentry, address(device), 0, 0, 0, 64, 0, 0);
	CHECK_EQ(bpf_test_counter(NEV_C_DMA_UNENDED), 1);
	for (unsigned n = 0; n < 2; n++) { /* nobody waits for the first */
		submit(1, &stack, 0, &handle, 100);
		run_return(async_kret, 0);
	}
	CHECK_EQ(bpf_test_counter(NEV_C_DMA_UNENDED), 2);
	CHECK_EQ(bpf_test_counter(NEV_C_DMA_NO_PLACE), 0);
	bpf_host_fail("dma_asyncs", BPF_HOST_UPDATE, -E2BIG, 1, 1);
	handle = 4;
	submit(1, &stack, 0, &handle, 100);
	run_return(async_kret, 0);
	CHECK_EQ(bpf_test_counter(NEV_C_DMA_NO_PLACE), 1);
	bpf_test_close();
}

TEST("bpf dma: points of user rings without room for thread or queue", "[bpf][bpf-host]")
{
	REQUIRE(open_dma());
	bpf_host_fail("dma_threads", BPF_HOST_LOOKUP, 0, 1, 3);
	run_trace(user_fentry, address(device), ENGINE, QUEUE, 6, 7, 0, 0);
	run_trace(user_fexit, address(device), ENGINE, QUEUE, 6, 7, 0, 0);
	CHECK_EQ(take().sequence, 1);
	bpf_host_fail("dma_threads", BPF_HOST_LOOKUP, 0, 1, 2);
	run_trace(user_tracepoint, address(device), ENGINE, QUEUE, 6, 7, 0, 0);
	CHECK_EQ(take().sequence, 2);
	bpf_host_fail("dma_queues", BPF_HOST_LOOKUP, 0, 1, 2);
	run_trace(user_tracepoint, address(device), ENGINE, QUEUE, 6, 7, 0, 0);
	CHECK_EQ(take().sequence, 0);
	CHECK(bpf_test_counter(NEV_C_DMA_NO_PLACE) > 0);
	bpf_test_close();
}

/* ---- device, loss -------------------------------------------------------------------------- */

TEST("bpf dma: without the driver's layout the device is that of the call that is open",
	"[bpf][bpf-host]")
{
	REQUIRE(open_dma());
	bpf_host.absent = "neuron_device";
	run_trace(ack_tracepoint, address(device), ENGINE, QUEUE, 1, 0, 0, 0);
	CHECK_EQ(take().device, NEV_DMA_UNKNOWN);
	bpf_test_enter(BPF_TEST_FD, NEURON_IOCTL_DEVICE_INFO, 0);
	run_trace(ack_tracepoint, address(device), ENGINE, QUEUE, 1, 0, 0, 0);
	CHECK_EQ(take().device, BPF_TEST_DEVICE);
	bpf_test_exit(0);
	bpf_test_take();
	/* The call is over. */
	run_trace(ack_tracepoint, address(device), ENGINE, QUEUE, 1, 0, 0, 0);
	CHECK_EQ(take().device, NEV_DMA_UNKNOWN);
	bpf_host.absent = NULL;
	run_trace(ack_tracepoint, 0, ENGINE, QUEUE, 1, 0, 0, 0);
	CHECK_EQ(take().device, NEV_DMA_UNKNOWN);
	bpf_test_close();
}

TEST("bpf dma: a full ring takes as many records as fit and counts the rest", "[bpf][bpf-host]")
{
	REQUIRE(open_dma());
	CHECK_EQ(bpf_host_size("ring", 4096), 0);
	for (unsigned n = 0; n < 100; n++)
		run_trace(ack_tracepoint, address(device), ENGINE, QUEUE, n, 0, 0, 0);
	CHECK_EQ(bpf_test_counter(NEV_C_DMA_DONE), (4096 - 1) / (64 + 8));
	CHECK_EQ(bpf_test_counter(NEV_C_DMA_MADE), 100);
	CHECK(dma_balanced());
	for (unsigned n = 0; n < (4096 - 1) / (64 + 8); n++)
		CHECK_EQ(take().hdr.seq, n);
	CHECK(nothing_more());
	bpf_host.cpu = BPF_TEST_CPUS; /* more than there are */
	run_trace(ack_tracepoint, address(device), ENGINE, QUEUE, 1, 0, 0, 0);
	CHECK(nothing_more());
	bpf_test_close();
}
