/* SPDX-License-Identifier: Apache-2.0 */
/* work_rings.h - the lists `user-ring`, `map` and `completions` of work.c: rings and queues that the program follows. */
#ifndef NTRACE_VM_WORK_RINGS_H
#define NTRACE_VM_WORK_RINGS_H

#include "tests/vm/programs/work_calls.h"

/* ---- user-ring ---------------------------------------------------------------------------- */

#define RING_ENGINE 5u
#define RING_QUEUE 3u
#define BATCH_ENGINE 6u /* queues 0 and 1 */
#define RING_DESCRIPTORS 64u

struct descriptor {
	uint32_t word0, word1;
	uint64_t address;
};

struct ring {
	struct chunk tx, rx, src, dst;
	uint64_t src_address, dst_address;
	volatile uint8_t *dst_map;
};

static struct event queue_event(
	const struct handle *h, const char *name, unsigned engine, unsigned queue)
{
	struct event e = request_event(h, name);

	e.engine = engine;
	e.queue = queue;
	return e;
}

static void write_descriptors(struct expect *x, const struct handle *h, const struct chunk *ring,
	uint32_t type, uint64_t address, unsigned first, unsigned count)
{
	struct descriptor d[RING_DESCRIPTORS] = {0};
	struct neuron_dma_copy_descriptors64 a = {
		.mem_handle = ring->handle,
		.buffer = (uintptr_t)d,
		.num_descs = count,
		.offset = first * sizeof(d[0]),
		.queue_type = type,
	};

	for (unsigned i = 0; i < count; i++)
		d[i] = (struct descriptor){
			.word0 = 4096, .address = address + 4096ull * (first + i)};
	expect_request(x, chunk_event(h, "DMA_COPY_DESCRIPTORS64", ring, NO), 0);
	must("DMA_COPY_DESCRIPTORS64", request(h, NEURON_IOCTL_DMA_COPY_DESCRIPTORS64, &a), 0);
}

/* Descriptors [first, first + count): writes, starts, waits for the bytes, acknowledges. */
static void run_ring(struct expect *x, const struct handle *h, struct ring *r, unsigned first,
	unsigned count, const uint8_t *wanted)
{
	struct neuron_dma_queue_copy_start start = {RING_ENGINE, RING_QUEUE, count, count};
	struct neuron_dma_ack_completed ack = {RING_ENGINE, RING_QUEUE, count};
	uint64_t last = 4096ull * (first + count) - 1;

	write_descriptors(x, h, &r->tx, 0, r->src_address, first, count);
	write_descriptors(x, h, &r->rx, 1, r->dst_address, first, count);
	expect_request(x, queue_event(h, "DMA_QUEUE_COPY_START", RING_ENGINE, RING_QUEUE), 0);
	expect_user_start(x, h->device, RING_ENGINE, RING_QUEUE, count, count);
	must("DMA_QUEUE_COPY_START", request(h, NEURON_IOCTL_DMA_QUEUE_COPY_START, &start), 0);
	while (r->dst_map[last] != wanted[last])
		usleep(100);
	expect_request(x, queue_event(h, "DMA_ACK_COMPLETED", RING_ENGINE, RING_QUEUE), 0);
	expect_ack(x, h->device, RING_ENGINE, RING_QUEUE, count, 0);
	must("DMA_ACK_COMPLETED", request(h, NEURON_IOCTL_DMA_ACK_COMPLETED, &ack), 0);
}

static void init_queue(struct expect *x, const struct handle *h, const struct ring *r)
{
	struct neuron_dma_queue_init a = {
		.eng_id = RING_ENGINE,
		.qid = RING_QUEUE,
		.tx_desc_count = RING_DESCRIPTORS,
		.rx_desc_count = RING_DESCRIPTORS,
		.tx_handle = r->tx.handle,
		.rx_handle = r->rx.handle,
	};
	struct event e = queue_event(h, "DMA_QUEUE_INIT", RING_ENGINE, RING_QUEUE);

	e.handle = (int64_t)r->tx.handle;
	expect_request(x, e, 0);
	expect_queue_init(
		x, h->device, RING_ENGINE, RING_QUEUE, RING_DESCRIPTORS, RING_DESCRIPTORS);
	must("DMA_QUEUE_INIT", request(h, NEURON_IOCTL_DMA_QUEUE_INIT, &a), 0);
}

static void init_batch(struct expect *x, const struct handle *h, const struct ring *r)
{
	static struct neuron_dma_queue_init_batch a = {.count = 2};

	for (unsigned q = 0; q < 2; q++)
		a.entries[q] = (struct neuron_dma_queue_init){
			.eng_id = BATCH_ENGINE,
			.qid = q,
			.tx_desc_count = 32,
			.rx_desc_count = 16,
			.tx_handle = r->tx.handle,
			.rx_handle = r->rx.handle,
		};
	expect_request(x, request_event(h, "DMA_QUEUE_INIT_BATCH"), 0);
	for (unsigned q = 0; q < 2; q++)
		expect_queue_init(x, h->device, BATCH_ENGINE, q, 32, 16);
	must("DMA_QUEUE_INIT_BATCH", request(h, NEURON_IOCTL_DMA_QUEUE_INIT_BATCH, &a), 0);
}

/* All queues of the process get a ring of the driver. */
static void queues_put_aside(struct expect *x)
{
	expect_queue_init(x, 0, RING_ENGINE, RING_QUEUE, 64, 64);
	for (unsigned q = 0; q < 2; q++)
		expect_queue_init(x, 0, BATCH_ENGINE, q, 64, 64);
}

static void prepare_ring(struct expect *x, const struct handle *h, struct ring *r)
{
	*r = (struct ring){
		.tx = allocate(x, h, 4096, 0, true),
		.rx = allocate(x, h, 4096, 0, true),
		.src = allocate(x, h, KIB(64), 0, false),
		.dst = allocate(x, h, KIB(64), 0, false),
	};
	r->src_address = address_of(x, h, &r->src);
	r->dst_address = address_of(x, h, &r->dst);
	expect_file(x, "mmap", h, KIB(64));
	r->dst_map = mmap(NULL, KIB(64), PROT_READ, MAP_SHARED, h->fd, (off_t)r->dst_address);
	if (r->dst_map == MAP_FAILED)
		fail("mmap of device memory", -errno, 0);
}

static void list_user_ring(struct expect *x)
{
	struct handle h = open_device(x, 0, false);
	struct neuron_dma_queue_release end = {RING_ENGINE, RING_QUEUE};
	struct neuron_dma_queue_state tx = {0}, rx = {0};
	struct neuron_dma_queue_get_state state = {
		RING_ENGINE, RING_QUEUE, (uintptr_t)&tx, (uintptr_t)&rx};
	uint8_t *out = pages(KIB(64));
	struct ring r;

	prepare_ring(x, &h, &r);
	put_pattern(out, KIB(64), 77);
	out[4 * 4096 - 1] = out[6 * 4096 - 1] = 0xee; /* what run_ring() waits for: not 0 */
	buffer_copy(x, &h, &r.src, out, KIB(64), true, 0);
	init_queue(x, &h, &r);
	init_batch(x, &h, &r);
	run_ring(x, &h, &r, 0, 4, out);
	run_ring(x, &h, &r, 4, 2, out);
	same("moved by a ring of the process", (const void *)r.dst_map, out, 6 * 4096);
	expect_request(x, queue_event(&h, "DMA_QUEUE_GET_STATE", RING_ENGINE, RING_QUEUE), 0);
	must("DMA_QUEUE_GET_STATE", request(&h, NEURON_IOCTL_DMA_QUEUE_GET_STATE, &state), 0);
	must("acknowledged", tx.completion_head, 6);
	expect_request(x, queue_event(&h, "DMA_QUEUE_RELEASE", RING_ENGINE, RING_QUEUE), 0);
	expect_queue_release(x, h.device, RING_ENGINE, RING_QUEUE);
	must("DMA_QUEUE_RELEASE", request(&h, NEURON_IOCTL_DMA_QUEUE_RELEASE, &end), 0);
	munmap((void *)r.dst_map, KIB(64));
	close_device(x, &h, queues_put_aside);
}

/* ---- map: a notification queue ------------------------------------------------------------ */

static void list_map(struct expect *x)
{
	struct handle h = open_device(x, 0, false);
	struct neuron_notifications_init_v2 a = {.nq_dev_id = 1,
		.nq_type = 2,
		.engine_index = 3,
		.size = KIB(16),
		.on_host_memory = 1};
	struct event e = request_event(&h, "NOTIFICATIONS_INIT_V2");
	void *queue;

	e.bytes = KIB(16);
	e.engine = 3;
	expect_request(x, e, 0);
	must("NOTIFICATIONS_INIT_V2", request(&h, NEURON_IOCTL_NOTIFICATIONS_INIT_V2, &a), 0);
	expect_file(x, "mmap", &h, KIB(16));
	queue = mmap(NULL, KIB(16), PROT_READ | PROT_WRITE, MAP_SHARED, h.fd, (off_t)a.mmap_offset);
	if (queue == MAP_FAILED)
		fail("mmap of a notification queue", -errno, 0);
	memset(queue, 1, KIB(16));
	munmap(queue, KIB(16));
	close_device(x, &h, NULL);
}

/* ---- completions: asynchronous requests of driver 2.30 ------------------------------------ */

#define CQ_CORE 5u /* engine 130, queue 1 */
#define CQ_BYTES 28672u

struct completion_queue {
	uint32_t capacity, head, tail, pad;
	struct {
		uint64_t sequence_num;
		int64_t compl_ret;
		uint64_t context;
	} entries[1024];
};

static volatile struct completion_queue *map_completions(struct expect *x, const struct handle *h)
{
	struct neuron_h2t_compl_queues a = {.nc_id = CQ_CORE, .qid_bitmap = 1u << CQ_CORE % 2};
	void *p;

	SIMPLE(x, h, GET_ASYNC_H2T_DMA_COMPL_QUEUES, &a, 0);
	must("size of the queue", a.queues[1].mmap_size, sizeof(struct completion_queue));
	expect_file(x, "mmap", h, CQ_BYTES);
	p = mmap(NULL, CQ_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, h->fd,
		(off_t)a.queues[1].mmap_offset);
	if (p == MAP_FAILED)
		fail("mmap of a completion queue", -errno, 0);
	return p;
}

/* Until the next entry is there, which says this. */
static void wait_completion(volatile struct completion_queue *q, uint64_t sequence, int64_t result)
{
	uint32_t at = q->head % q->capacity;

	while (q->tail == q->head)
		usleep(100);
	__sync_synchronize();
	must("sequence number", (int64_t)q->entries[at].sequence_num, (int64_t)sequence);
	must("result of the request", q->entries[at].compl_ret, result);
	q->head++;
}

static void copy_sequence(struct expect *x, const struct handle *h, const struct chunk *src,
	const struct chunk *dst, uint64_t size, uint64_t sequence)
{
	struct neuron_mem_copy64 a = {.src_mem_handle = src->handle,
		.dst_mem_handle = dst->handle,
		.size = size,
		.sequence_num = sequence};

	expect_request(x, chunk_event(h, "MEM_COPY64", src, size), 0);
	expect_transfer(x, h->device, src->nc, size, 0);
	must("MEM_COPY64", request(h, NEURON_IOCTL_MEM_COPY64, &a), 0);
}

static void list_completions(struct expect *x)
{
	struct handle h = open_device(x, 0, false);
	struct chunk c[2] = {
		allocate(x, &h, MIB(1), CQ_CORE, false), allocate(x, &h, MIB(1), CQ_CORE, false)};
	volatile struct completion_queue *q = map_completions(x, &h);
	uint8_t *out = pages(MIB(1)), *back = pages(MIB(1));

	put_pattern(out, MIB(1), 5);
	zero_copy_230(x, &h, &c[0], out, MIB(1), true, 71, 0);
	wait_completion(q, 71, 0);
	copy_sequence(x, &h, &c[0], &c[1], MIB(1), 72);
	wait_completion(q, 72, 0);
	zero_copy_230(x, &h, &c[1], back, MIB(1), false, 73, 0);
	wait_completion(q, 73, 0);
	same("copied by the driver's thread", back, out, MIB(1));
	set_parameter("timeout_ms", "50");
	set_parameter("never", "1");
	zero_copy_230(x, &h, &c[0], out, KIB(64), true, 74, -ETIMEDOUT);
	wait_completion(q, 74, -ETIMEDOUT);
	set_parameter("never", "0");
	set_parameter("timeout_ms", "10000");
	munmap((void *)q, CQ_BYTES);
	release(x, &h, &c[0]);
	release(x, &h, &c[1]);
	close_device(x, &h, NULL);
}

#endif
