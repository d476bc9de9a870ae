/* SPDX-License-Identifier: Apache-2.0 */
/* vdev_core_test.c - ntrace-vdev's NeuronCores: marks, reset, rings, executions, clocks. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nrt/nrt.h"
#include "runtime/base/file.h"
#include "tests/shim/shim.h"
#include "tests/unit/vdev_harness.h"
#include "vmlinux/ioctl_table.h"
#include "vmlinux/neuron_args.h"

#define _run_ _cleanup_(vdev_run_end)
#define _client_ _cleanup_(vdev_client_close)
#define ELEMENTS 1000

/* ---- marks ------------------------------------------------------------------------------- */

static int mark(int fd, unsigned first, unsigned last, unsigned count, uint64_t *ret_map,
	unsigned *ret_free)
{
	struct neuron_crwl_nc_map_ext a = {
		.nc_count = count, .start_nc_index = first, .end_nc_index = last};
	int r = vdev_call(fd, NEURON_IOCTL_CRWL_NC_RANGE_MARK_EXT0, &a);

	*ret_map = a.bitmap[0];
	*ret_free = a.max_nc_available;
	return r;
}

static int mark_all_and_exit(void *arg)
{
	int fd = vdev_open(arg, 0, O_RDWR);
	uint64_t map;
	unsigned n;

	return fd < 0 || mark(fd, 0, 7, 8, &map, &n) != 0;
}

static int mark_the_rest(void *arg)
{
	int fd = vdev_open(arg, 0, O_WRONLY);
	struct neuron_crwl_nc_map_ext all = {.bitmap = {0xff}};
	uint64_t map;
	unsigned n = 99;

	if (mark(fd, 0, 5, 1, &map, &n) != -EBUSY || n != 0)
		return 1;
	if (mark(fd, 6, 7, 1, &map, &n) != 0 || map != 0x40)
		return 2;
	if (mark(fd, 6, 7, 2, &map, &n) != -EBUSY || n != 1)
		return 3;
	/* Unmarking what is not ours changes nothing. */
	return vdev_call(fd, NEURON_IOCTL_CRWL_NC_RANGE_UNMARK_EXT0, &all);
}

TEST("vdev: marks of two processes exclude each other and end with a query handle", "[vdev]")
{
	NEED_VDEV();
	_run_ struct vdev_run run = {0};
	int query, other, work;
	struct neuron_crwl_nc_map old = {.nc_count = 2, .start_nc_index = 0, .end_nc_index = 7};
	uint64_t map;
	unsigned n;

	REQUIRE(vdev_run_start(&run, NULL));
	query = vdev_open(&run, 0, O_WRONLY);
	other = vdev_open(&run, 0, O_WRONLY);
	work = vdev_open(&run, 0, O_RDWR);
	REQUIRE(query >= 0 && other >= 0 && work >= 0);
	CHECK_EQ(mark(query, 0, 7, 4, &map, &n), 0);
	CHECK_EQ(map, 0xf);
	CHECK_EQ(mark(query, 4, 4, 1, &map, &n), 0);
	CHECK_EQ(map, 0x10);
	CHECK_EQ(mark(query, 5, 5, 1, &map, &n), 0);
	CHECK_EQ(mark(query, 0, 8, 1, &map, &n), -EINVAL);
	/* 6 and 7 are free, but a search from 0 for one core lands on taken ones only: 0, 2, 4, 6
	 */
	CHECK_EQ(mark(query, 0, 5, 1, &map, &n), -EBUSY);
	CHECK_EQ(n, 0);
	/* the old form; the search from 0 for two ends at 6 */
	CHECK_EQ(vdev_call(query, NEURON_IOCTL_CRWL_NC_RANGE_MARK, &old), 0);
	CHECK_EQ(old.bitmap, 0xc0);
	CHECK_EQ(vdev_call(query, NEURON_IOCTL_CRWL_NC_RANGE_MARK, &old), -EBUSY);
	CHECK_EQ(old.max_nc_available, 0);
	old.bitmap = 0xc0;
	CHECK_EQ(vdev_call(query, NEURON_IOCTL_CRWL_NC_RANGE_UNMARK, &old), 0);
	close(work); /* a working handle releases nothing */
	CHECK_EQ(mark(query, 0, 5, 1, &map, &n), -EBUSY);
	close(other); /* any query handle releases all */
	CHECK_EQ(mark(query, 0, 7, 8, &map, &n), 0);
	close(query);
	/* A process that only had a working handle leaves its marks behind, as the driver does. */
	CHECK_EQ(vdev_in_child(mark_all_and_exit, &run), 0);
	query = vdev_open(&run, 0, O_WRONLY);
	CHECK_EQ(mark(query, 0, 7, 1, &map, &n), -EBUSY);
	CHECK_EQ(n, 0);
	close(query);
}

TEST("vdev: another process gets what is left, and gives it back at its end", "[vdev]")
{
	NEED_VDEV();
	_run_ struct vdev_run run = {0};
	_cleanup_close_ int query = -1;
	uint64_t map;
	unsigned n;

	REQUIRE(vdev_run_start(&run, NULL));
	query = vdev_open(&run, 0, O_WRONLY);
	REQUIRE(query >= 0);
	CHECK_EQ(mark(query, 0, 5, 6, &map, &n), 0);
	CHECK_EQ(vdev_in_child(mark_the_rest, &run), 0);
	CHECK_EQ(mark(query, 0, 5, 1, &map, &n), -EBUSY); /* still ours */
	CHECK_EQ(mark(query, 6, 7, 2, &map, &n), 0);
}

/* ---- core state -------------------------------------------------------------------------- */

static int start_cinit_and_die(void *arg)
{
	uint32_t state;

	if (vdev_set_cinit(vdev_open(arg, 0, O_RDWR), 1, NEURON_CINIT_STARTED, &state) != 0 ||
		state != NEURON_CINIT_STARTED)
		return 1;
	raise(SIGKILL);
	return 2;
}

TEST("vdev: initialisation of a core is awaited by the next, and by the heir of a dead one",
	"[vdev]")
{
	NEED_VDEV();
	_run_ struct vdev_run run = {0};
	_cleanup_close_ int fd = -1;
	struct vdev_cinit_waiter waiter;
	pthread_t thread;
	uint32_t state;

	REQUIRE(vdev_run_start(&run, NULL));
	fd = vdev_open(&run, 0, O_RDWR);
	REQUIRE(fd >= 0);
	REQUIRE_EQ(vdev_set_cinit(fd, 0, NEURON_CINIT_STARTED, &state), 0);
	CHECK_EQ(state, NEURON_CINIT_STARTED);
	waiter = (struct vdev_cinit_waiter){.fd = fd, .result = -1};
	REQUIRE(pthread_create(&thread, NULL, vdev_start_cinit, &waiter) == 0);
	/* It is in the request while others are answered. */
	CHECK(vdev_wait_stat(&run, "ioctl.CINIT_SET_STATE", 2));
	REQUIRE_EQ(vdev_set_cinit(fd, 0, NEURON_CINIT_COMPLETED, &state), 0);
	CHECK_EQ(state, NEURON_CINIT_COMPLETED);
	pthread_join(thread, NULL);
	CHECK_EQ(waiter.result, 0);
	CHECK_EQ(waiter.state, NEURON_CINIT_COMPLETED);
	CHECK_EQ(vdev_set_cinit(fd, 8, NEURON_CINIT_STARTED, &state), -EINVAL);
	CHECK_EQ(vdev_set_cinit(fd, 0, 9, &state), -EINVAL);

	CHECK_EQ(vdev_in_child(start_cinit_and_die, &run), 128 + SIGKILL);
	REQUIRE_EQ(vdev_set_cinit(fd, 1, NEURON_CINIT_STARTED, &state), 0);
	CHECK_EQ(state, NEURON_CINIT_STARTED);
}

TEST("vdev: a reset ends rings, queues and initialisation of its cores", "[vdev]")
{
	NEED_VDEV();
	_run_ struct vdev_run run = {0};
	_cleanup_close_ int fd = -1;
	_client_ struct vdev_client c = {0};
	struct neuron_device_reset reset = {.nc_map = 1};
	struct neuron_device_ready ready = {.result = -1};
	long long before;
	uint32_t state;

	REQUIRE(vdev_run_start(&run, NULL));
	fd = vdev_open(&run, 0, O_RDWR);
	REQUIRE(fd >= 0);
	REQUIRE_EQ(vdev_set_cinit(fd, 0, NEURON_CINIT_STARTED, &state), 0);
	REQUIRE_EQ(vdev_client_open(&c, &run, fd, 0, 4096), 0);
	before = vdev_stat(&run, "allocations");
	REQUIRE_EQ(vdev_call(fd, NEURON_IOCTL_NC_RESET, &reset), 0);
	ready.request_id = reset.request_id;
	REQUIRE_EQ(vdev_call(fd, NEURON_IOCTL_NC_RESET_READY, &ready), 0);
	CHECK_EQ(ready.result, 0);
	ready.request_id++;
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_NC_RESET_READY, &ready), 0);
	CHECK_EQ(ready.result, 1);
	CHECK_EQ(vdev_stat(&run, "allocations"), before - 1);
	CHECK_EQ(vdev_client_launch(&c, 1), -EINVAL);
	REQUIRE_EQ(vdev_set_cinit(fd, 0, NEURON_CINIT_STARTED, &state), 0);
	CHECK_EQ(state, NEURON_CINIT_STARTED);
	reset.nc_map = 1u << 8;
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_NC_RESET, &reset), -EINVAL);
	reset.nc_map = NEURON_NC_MAP_DEVICE;
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_NC_RESET, &reset), 0);
}

/* ---- rings ------------------------------------------------------------------------------- */

TEST("vdev: a ring is made once per key, lives with the device, and may be forced anew", "[vdev]")
{
	NEED_VDEV();
	_run_ struct vdev_run run = {0};
	struct neuron_notifications_init_v2 a = {
		.nq_dev_id = 2, .nq_type = 1, .engine_index = 4, .size = 8192, .on_host_memory = 1};
	struct neuron_notifications_init_with_realloc_v2 b = {.nq_dev_id = 2,
		.nq_type = 1,
		.engine_index = 4,
		.size = 4096,
		.on_host_memory = 0,
		.force_alloc_mem = 1};
	struct neuron_notifications_init_v1 v1 = {.nc_id = 3, .nq_type = 0, .size = 4096};
	uint64_t first;
	int fd;

	REQUIRE(vdev_run_start(&run, NULL));
	fd = vdev_open(&run, 0, O_RDWR);
	REQUIRE(fd >= 0);
	REQUIRE_EQ(vdev_call(fd, NEURON_IOCTL_NOTIFICATIONS_INIT_V2, &a), 0);
	first = a.mem_handle;
	CHECK(a.mmap_offset & 0x400000000000ull);
	close(fd); /* the ring stays */
	CHECK(vdev_stat_settles(&run, "allocations", 1));
	fd = vdev_open(&run, 0, O_RDWR);
	a.size = 4096;
	REQUIRE_EQ(vdev_call(fd, NEURON_IOCTL_NOTIFICATIONS_INIT_V2, &a), 0);
	CHECK_EQ(a.mem_handle, first);
	CHECK_EQ(vdev_stat(&run, "allocated_bytes"), 8192);
	REQUIRE_EQ(vdev_call(fd, NEURON_IOCTL_NOTIFICATIONS_INIT_WITH_REALLOC_V2, &b), 0);
	CHECK_EQ(b.mmap_offset, UINT64_MAX); /* device memory */
	CHECK_EQ(vdev_stat(&run, "allocated_bytes"), 4096);
	REQUIRE_EQ(vdev_call(fd, NEURON_IOCTL_NOTIFICATIONS_INIT_V1, &v1), 0);
	CHECK_EQ(vdev_stat(&run, "allocations"), 2);
	static const struct {
		unsigned dev, dev_type, type, engine, size;
	} bad[] = {
		{8, 0, 1, 4, 4096},
		{0, 2, 1, 4, 4096},
		{16, 1, 1, 4, 4096},
		{0, 0, 6, 4, 4096},
		{0, 0, 1, 16, 4096},
		{0, 0, 1, 4, 0},
		{0, 0, 1, 4, 16},
		{0, 0, 1, 4, 4095},
		{0, 0, 1, 4, 6144},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		a = (struct neuron_notifications_init_v2){.nq_dev_id = bad[i].dev,
			.nq_dev_type = bad[i].dev_type,
			.nq_type = bad[i].type,
			.engine_index = bad[i].engine,
			.size = bad[i].size};
		test_info("row %zu", i);
		CHECK_EQ(vdev_call(fd, NEURON_IOCTL_NOTIFICATIONS_INIT_V2, &a), -EINVAL);
	}
	close(fd);
}

/* ---- executions -------------------------------------------------------------------------- */

/* sum = a + b; out = sum.  Three bindings of float32. */
static int load_add(
	struct vdev_client *c, const uint64_t handles[4], uint64_t add_ps, uint64_t copy_ps)
{
	const struct vdev_instruction steps[] = {
		{.unit = VDEV_PE,
			.op = VDEV_OP_ADD,
			.dtype = NRT_DTYPE_FLOAT32,
			UNORDERED,
			.src0 = 0,
			.src1 = 1,
			.dst = 2,
			.count = ELEMENTS,
			.duration_ps = add_ps},
		{.unit = VDEV_ACT,
			.op = VDEV_OP_COPY,
			.dtype = NRT_DTYPE_FLOAT32,
			UNORDERED,
			.src0 = 2,
			.src1 = VDEV_NO_BINDING,
			.dst = 3,
			.count = ELEMENTS,
			.duration_ps = copy_ps},
	};
	struct vdev_binding bindings[4];

	for (int i = 0; i < 4; i++)
		bindings[i] = (struct vdev_binding){handles[i], 0, ELEMENTS * sizeof(float)};
	return vdev_client_load(c, steps, 2, bindings, 4);
}

TEST("vdev: a program computes, and its notes are exactly its duration apart", "[vdev]")
{
	NEED_VDEV();
	_run_ struct vdev_run run = {0};
	_cleanup_close_ int fd = -1;
	_client_ struct vdev_client c = {0};
	struct neuron_dma_ack_completed ack = {VDEV_EXEC_ENGINE, 3, 1};
	struct neuron_dma_queue_state tx, rx;
	struct neuron_dma_queue_get_state state = {
		VDEV_EXEC_ENGINE, 3, (uintptr_t)&tx, (uintptr_t)&rx};
	struct notification start, end;
	float a[ELEMENTS], b[ELEMENTS], out[ELEMENTS];
	uint64_t handles[4], previous_end = 0;
	unsigned wrong = 0;

	REQUIRE(vdev_run_start(&run, NULL));
	fd = vdev_open(&run, 0, O_RDWR);
	REQUIRE(fd >= 0);
	REQUIRE_EQ(vdev_client_open(&c, &run, fd, 3, 4096), 0);
	for (int i = 0; i < 4; i++)
		REQUIRE_EQ(vdev_alloc(fd, sizeof(a), &handles[i]), 0);
	for (int i = 0; i < ELEMENTS; i++) {
		a[i] = (float)i * 0.5f;
		b[i] = 1000.0f - (float)i;
	}
	REQUIRE(vdev_write(fd, handles[0], 0, a, sizeof(a)) == 0);
	REQUIRE(vdev_write(fd, handles[1], 0, b, sizeof(b)) == 0);
	REQUIRE_EQ(load_add(&c, handles, 1234567891, 98765432109), 0);
	for (uint32_t n = 0x1fffe; n < 0x20002; n++) {
		REQUIRE_EQ(vdev_client_launch(&c, n), 0);
		REQUIRE(vdev_client_next(&c, &start));
		REQUIRE(vdev_client_next(&c, &end));
		CHECK_EQ(start.id, n & 0xffff);
		CHECK_EQ(end.id, n & 0xffff);
		CHECK_EQ(start.subtype, NOTE_START);
		CHECK_EQ(end.subtype, NOTE_END);
		CHECK_EQ(start.custom, 0);
		CHECK_EQ(end.custom, 0);
		CHECK_EQ(start.type_phase, NOTE_PHASE | NOTE_TYPE_EXPLICIT_SP);
		CHECK_EQ(end.timestamp_ps - start.timestamp_ps, 1234567891 + 98765432109);
		CHECK(start.timestamp_ps >= previous_end);
		CHECK(start.timestamp_ps >= 3000000000000ull); /* core 3 starts at three seconds */
		previous_end = end.timestamp_ps;
	}
	REQUIRE_EQ(vdev_read(fd, handles[3], 0, out, sizeof(out)), 0);
	for (int i = 0; i < ELEMENTS; i++)
		wrong += out[i] != a[i] + b[i];
	CHECK_EQ(wrong, 0);
	CHECK_EQ(vdev_stat(&run, "launches"), 4);
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_DMA_ACK_COMPLETED, &ack), 0);
	REQUIRE_EQ(vdev_call(fd, NEURON_IOCTL_DMA_QUEUE_GET_STATE, &state), 0);
	CHECK_EQ(tx.tail_pointer, 4);
	CHECK_EQ(tx.head_pointer, 4);
	CHECK_EQ(rx.completion_head, 1);
	CHECK(tx.base_addr != 0);
}

TEST("vdev: launches of a core run in order; at most 64 wait; the ring keeps the newest", "[vdev]")
{
	NEED_VDEV();
	_run_ struct vdev_run run = {0};
	_cleanup_close_ int fd = -1;
	_client_ struct vdev_client c = {0};
	struct notification note;
	const struct vdev_instruction long_step = {
		.op = VDEV_OP_NOP, UNORDERED, .duration_ps = 500000000000};
	uint64_t last = 0;
	int accepted = 0, r = 0;

	REQUIRE(vdev_run_start(&run, NULL));
	fd = vdev_open(&run, 0, O_RDWR);
	REQUIRE(fd >= 0);
	REQUIRE_EQ(vdev_client_open(&c, &run, fd, 0, 256 * sizeof(note)), 0);
	/* A program is read when it is launched: one that holds the core, then short ones. */
	REQUIRE_EQ(vdev_client_load(&c, &long_step, 1, NULL, 0), 0);
	REQUIRE_EQ(vdev_client_launch(&c, 1), 0);
	REQUIRE_EQ(vdev_client_load(&c, NULL, 0, NULL, 0), 0);
	for (accepted = 1; accepted < 100; accepted++) {
		r = vdev_client_launch(&c, (uint32_t)accepted + 1);
		if (r < 0)
			break;
	}
	CHECK_EQ(r, -EBUSY);
	CHECK_EQ(accepted, 64);
	for (int i = 0; i < 2 * accepted; i++) {
		REQUIRE(vdev_client_next(&c, &note));
		CHECK_EQ(note.id, i / 2 + 1);
		CHECK_EQ(note.subtype, i % 2 ? NOTE_END : NOTE_START);
		CHECK(note.timestamp_ps >= last);
		last = note.timestamp_ps;
	}
	CHECK_EQ(vdev_client_launch(&c, 1), 0); /* room again */
	REQUIRE(vdev_client_next(&c, &note));
}

TEST("vdev: notes go round a small ring with the phase of each lap", "[vdev]")
{
	NEED_VDEV();
	_run_ struct vdev_run run = {0};
	_cleanup_close_ int fd = -1;
	_client_ struct vdev_client c = {0};
	struct notification note;

	REQUIRE(vdev_run_start(&run, NULL));
	fd = vdev_open(&run, 0, O_RDWR);
	REQUIRE(fd >= 0);
	REQUIRE_EQ(vdev_client_open(&c, &run, fd, 0, 4 * sizeof(note)), 0);
	REQUIRE_EQ(vdev_client_load(&c, NULL, 0, NULL, 0), 0);
	for (unsigned n = 0; n < 7; n++) {
		unsigned phase = n / 2 % 2 ? 0 : NOTE_PHASE;

		CHECK(!vdev_client_has(&c));
		REQUIRE_EQ(vdev_client_launch(&c, n), 0);
		for (int i = 0; i < 2; i++) {
			REQUIRE(vdev_client_next(&c, &note));
			CHECK_EQ(note.id, n);
			CHECK_EQ(note.type_phase & NOTE_PHASE, phase);
		}
	}
}

TEST("vdev: a bad program is answered by two notes with the error, and takes no time", "[vdev]")
{
	NEED_VDEV();
#define PROGRAM(magic_, instructions, bindings_)                                  \
	{                                                                         \
		.magic = (magic_), .flags = VDEV_PROGRAM_SERIAL,                  \
		.instruction_count = (instructions), .binding_count = (bindings_) \
	}
	static const struct bad {
		const char *what;
		struct vdev_program header;
		struct vdev_instruction step;
		uint64_t handle, offset, size; /* of binding 0; handle 0: the good one */
	} rows[] = {
		{"magic", PROGRAM(1, 1, 1), {UNORDERED}, 0, 0, 64},
		{"too many steps", PROGRAM(VDEV_PROGRAM_MAGIC, VDEV_MAX_INSTRUCTIONS + 1, 1),
			{UNORDERED}, 0, 0, 64},
		{"too many bindings", PROGRAM(VDEV_PROGRAM_MAGIC, 1, VDEV_MAX_BINDINGS + 1),
			{UNORDERED}, 0, 0, 64},
		{"image too short", PROGRAM(VDEV_PROGRAM_MAGIC, VDEV_MAX_INSTRUCTIONS, 1),
			{UNORDERED}, 0, 0, 64},
		{"unknown handle", PROGRAM(VDEV_PROGRAM_MAGIC, 1, 1), {UNORDERED}, 99, 0, 64},
		{"binding too long", PROGRAM(VDEV_PROGRAM_MAGIC, 1, 1), {UNORDERED}, 0, 0, 65},
		{"binding wraps", PROGRAM(VDEV_PROGRAM_MAGIC, 1, 1), {UNORDERED}, 0, UINT64_MAX, 2},
		{"step beyond binding", PROGRAM(VDEV_PROGRAM_MAGIC, 1, 1),
			{UNORDERED, .op = VDEV_OP_COPY, .dtype = NRT_DTYPE_INT8, .count = 65}, 0, 0,
			64},
		{"operand missing", PROGRAM(VDEV_PROGRAM_MAGIC, 1, 1),
			{UNORDERED, .op = VDEV_OP_COPY, .dtype = NRT_DTYPE_INT8, .src0 = 1,
				.count = 1},
			0, 0, 64},
		{"hours", PROGRAM(VDEV_PROGRAM_MAGIC, 1, 1), {UNORDERED, .duration_ps = UINT64_MAX},
			0, 0, 64},
	};
	_run_ struct vdev_run run = {0};
	_cleanup_close_ int fd = -1;
	_client_ struct vdev_client c = {0};
	uint64_t good;
	struct neuron_dma_queue_init queue = {.eng_id = VDEV_EXEC_ENGINE};

	REQUIRE(vdev_run_start(&run, NULL));
	fd = vdev_open(&run, 0, O_RDWR);
	REQUIRE(fd >= 0);
	REQUIRE_EQ(vdev_client_open(&c, &run, fd, 0, 4096), 0);
	REQUIRE_EQ(vdev_alloc(fd, 64, &good), 0);
	/* A program memory of one page, so that a long image does not fit. */
	REQUIRE_EQ(vdev_alloc(fd, 4096, &c.program), 0);
	queue.tx_handle = c.program;
	queue.rx_handle = c.table;
	REQUIRE_EQ(vdev_call(fd, NEURON_IOCTL_DMA_QUEUE_INIT, &queue), 0);
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct bad *bad = &rows[i];
		struct vdev_binding binding = {
			bad->handle ? bad->handle : good, bad->offset, bad->size};
		struct notification start, end;

		test_info("%s", bad->what);
		REQUIRE_EQ(vdev_write(fd, c.program, 0, &bad->header, sizeof(bad->header)), 0);
		REQUIRE_EQ(vdev_write(fd, c.program, sizeof(bad->header), &bad->step,
				   sizeof(bad->step)),
			0);
		REQUIRE_EQ(vdev_write(fd, c.table, 0, &binding, sizeof(binding)), 0);
		REQUIRE_EQ(vdev_client_launch(&c, i), 0);
		REQUIRE(vdev_client_next(&c, &start));
		REQUIRE(vdev_client_next(&c, &end));
		CHECK_EQ(start.custom, 1002);
		CHECK_EQ(end.custom, 1002);
		CHECK_EQ(end.id, i);
		CHECK_EQ(end.timestamp_ps, start.timestamp_ps);
	}
}

static int use_foreign_queue(void *arg)
{
	int fd = vdev_open(arg, 0, O_RDWR);
	struct vdev_client c = {.fd = fd};
	struct neuron_dma_queue_init queue = {.eng_id = VDEV_EXEC_ENGINE};

	if (vdev_client_launch(&c, 1) != -EINVAL)
		return 1;
	if (vdev_alloc(fd, 4096, &queue.tx_handle) != 0)
		return 2;
	queue.rx_handle = queue.tx_handle;
	return vdev_call(fd, NEURON_IOCTL_DMA_QUEUE_INIT, &queue) != -EBUSY;
}

TEST("vdev: queues that are not ready, not there or not ours are refused", "[vdev]")
{
	NEED_VDEV();
	_run_ struct vdev_run run = {0};
	_cleanup_close_ int fd = -1;
	_client_ struct vdev_client c = {0};
	struct neuron_dma_queue_init queue = {.eng_id = VDEV_EXEC_ENGINE, .qid = 1};
	struct neuron_dma_queue_release release = {VDEV_EXEC_ENGINE, 1};
	struct neuron_dma_eng_init engine = {131};
	uint64_t memory;

	REQUIRE(vdev_run_start(&run, NULL));
	fd = vdev_open(&run, 0, O_RDWR);
	REQUIRE(fd >= 0);
	REQUIRE_EQ(vdev_alloc(fd, 4096, &memory), 0);
	c.fd = fd;
	c.core = 1;
	CHECK_EQ(vdev_client_launch(&c, 1), -EINVAL);			       /* no queue */
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_DMA_QUEUE_INIT, &queue), -EINVAL); /* no program */
	queue.tx_handle = queue.rx_handle = memory;
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_DMA_QUEUE_INIT, &queue), 0);
	CHECK_EQ(vdev_client_launch(&c, 1), -EINVAL); /* no ring */
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_DMA_QUEUE_RELEASE, &release), 0);
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_DMA_QUEUE_RELEASE, &release), -EINVAL);
	queue.rx_handle = 77;
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_DMA_QUEUE_INIT, &queue), -EINVAL);
	queue.qid = 8;
	queue.rx_handle = memory;
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_DMA_QUEUE_INIT, &queue), -EINVAL);
	queue.eng_id = 132;
	queue.qid = 0;
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_DMA_QUEUE_INIT, &queue), -EINVAL);
	queue.eng_id = 131;
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_DMA_QUEUE_INIT, &queue), 0);
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_DMA_ENG_INIT, &engine), 0);
	engine.eng_id = 132;
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_DMA_ENG_INIT, &engine), -EINVAL);
	REQUIRE_EQ(vdev_client_open(&c, &run, fd, 0, 4096), 0);
	CHECK_EQ(vdev_in_child(use_foreign_queue, &run), 0);
}

TEST("vdev: memory freed and client gone in mid-run leave the device whole", "[vdev]")
{
	NEED_VDEV();
	_run_ struct vdev_run run = {0};
	_client_ struct vdev_client c = {0}, next = {0};
	const struct vdev_instruction step = {.op = VDEV_OP_COPY,
		UNORDERED,
		.dtype = NRT_DTYPE_UINT8,
		.dst = 1,
		.count = 64,
		.duration_ps = 1800ull * 1000000000000ull};
	struct vdev_binding bindings[2] = {{.size = 64}, {.size = 64}};
	struct notification note;
	struct neuron_mem_free free_arg;
	int fd;

	REQUIRE(vdev_run_start(&run, NULL));
	fd = vdev_open(&run, 0, O_RDWR);
	REQUIRE(fd >= 0);
	REQUIRE_EQ(vdev_client_open(&c, &run, fd, 0, 4096), 0);
	REQUIRE_EQ(vdev_alloc(fd, 64, &bindings[0].mem_handle), 0);
	REQUIRE_EQ(vdev_alloc(fd, 64, &bindings[1].mem_handle), 0);
	REQUIRE_EQ(vdev_client_load(&c, &step, 1, bindings, 2), 0);
	REQUIRE_EQ(vdev_client_launch(&c, 1), 0);
	REQUIRE_EQ(vdev_client_launch(&c, 2), 0);
	for (int i = 0; i < 2; i++) {
		free_arg.mem_handle = bindings[i].mem_handle;
		CHECK_EQ(vdev_call(fd, NEURON_IOCTL_MEM_FREE, &free_arg), 0);
	}
	REQUIRE(vdev_client_next(&c, &note));
	close(fd);					  /* half an hour of work goes with it */
	CHECK(vdev_stat_settles(&run, "allocations", 1)); /* the ring */
	fd = vdev_open(&run, 0, O_RDWR);
	REQUIRE_EQ(vdev_client_open(&next, &run, fd, 0, 4096), 0);
	REQUIRE_EQ(vdev_client_load(&next, NULL, 0, NULL, 0), 0);
	next.notes.seen = 1; /* the ring went on living */
	REQUIRE_EQ(vdev_client_launch(&next, 7), 0);
	REQUIRE(vdev_client_next(&next, &note));
	CHECK_EQ(note.id, 7);
	REQUIRE(vdev_client_next(&next, &note));
	CHECK_EQ(note.subtype, NOTE_END);
	close(fd);
}

#define BIG (128ull << 20)

/* The copy takes long; its last byte, which it writes last, says whether it went on. */
TEST("vdev: when a queue's release returns, what it ended does not write any more", "[vdev]")
{
	NEED_VDEV();
	_run_ struct vdev_run run = {0};
	_cleanup_close_ int fd = -1;
	_client_ struct vdev_client c = {0};
	const struct vdev_instruction step = {
		.op = VDEV_OP_COPY, UNORDERED, .dtype = NRT_DTYPE_UINT8, .dst = 1, .count = BIG};
	struct vdev_binding bindings[2] = {{.size = BIG}, {.size = BIG}};
	struct notification note;
	uint8_t mark = 0x77, got = 0;

	REQUIRE(vdev_run_start(&run, NULL));
	fd = vdev_open(&run, 0, O_RDWR);
	REQUIRE(fd >= 0);
	REQUIRE_EQ(vdev_client_open(&c, &run, fd, 0, 4096), 0);
	for (int i = 0; i < 2; i++)
		REQUIRE_EQ(vdev_alloc(fd, BIG, &bindings[i].mem_handle), 0);
	REQUIRE_EQ(vdev_client_load(&c, &step, 1, bindings, 2), 0);
	REQUIRE_EQ(vdev_client_launch(&c, 1), 0);
	REQUIRE(vdev_client_next(&c, &note));
	REQUIRE_EQ(vdev_client_release(&c), 0);
	REQUIRE_EQ(vdev_write(fd, bindings[1].mem_handle, BIG - 1, &mark, 1), 0);
	/* The core does one thing after another: when this one has ended, so has the copy. */
	REQUIRE_EQ(vdev_client_load(&c, NULL, 0, NULL, 0), 0);
	REQUIRE_EQ(vdev_client_bind(&c), 0);
	REQUIRE_EQ(vdev_client_launch(&c, 2), 0);
	do
		REQUIRE(vdev_client_next(&c, &note));
	while (note.id != 2 || note.subtype != NOTE_END);
	REQUIRE_EQ(vdev_read(fd, bindings[1].mem_handle, BIG - 1, &got, 1), 0);
	CHECK_EQ(got, mark);
}

TEST("vdev: the clock registers run as the notes do", "[vdev]")
{
	NEED_VDEV();
	_run_ struct vdev_run run = {0};
	_cleanup_close_ int fd = -1;
	_client_ struct vdev_client c = {0};
	struct neuron_device_info info;
	struct notification start;
	uint64_t addresses[2] = {VDEV_BAR_CLOCK(1), VDEV_BAR_CLOCK(1) + 4}, clock[3] = {0};
	struct neuron_bar_rw read = {.address = (uintptr_t)addresses, .count = 2};

	REQUIRE(vdev_run_start(&run, (const char *[]){"--latency", "2000", NULL}));
	fd = vdev_open(&run, 0, O_RDWR);
	REQUIRE(fd >= 0);
	REQUIRE_EQ(vdev_client_open(&c, &run, fd, 1, 4096), 0);
	REQUIRE_EQ(vdev_client_load(&c, NULL, 0, NULL, 0), 0);
	read.data = (uintptr_t)&clock[0];
	REQUIRE_EQ(vdev_call(fd, NEURON_IOCTL_BAR_READ, &read), 0);
	REQUIRE_EQ(vdev_client_launch(&c, 1), 0);
	REQUIRE(vdev_client_next(&c, &start));
	/* Through the address that DEVICE_INFO gives, and the second word left out. */
	REQUIRE_EQ(vdev_call(fd, NEURON_IOCTL_DEVICE_INFO, &info), 0);
	addresses[0] += info.bar_address[0];
	addresses[1] = 0;
	read.data = (uintptr_t)&clock[1];
	REQUIRE_EQ(vdev_call(fd, NEURON_IOCTL_BAR_READ, &read), 0);
	CHECK(clock[0] >= 1000000000000ull);		       /* core 1 starts at one second */
	CHECK(start.timestamp_ps >= clock[0] + 2000000000ull); /* the latency */
	CHECK(clock[1] >= start.timestamp_ps);
	CHECK(clock[1] < clock[0] + 60000000000000ull);
	/* Any other register reads 0. */
	addresses[0] = 0x500;
	clock[2] = UINT64_MAX;
	read.data = (uintptr_t)&clock[2];
	REQUIRE_EQ(vdev_call(fd, NEURON_IOCTL_BAR_READ, &read), 0);
	CHECK_EQ(clock[2], 0);
}
