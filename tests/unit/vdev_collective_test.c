/* SPDX-License-Identifier: Apache-2.0 */
/* vdev_collective_test.c - collectives of virtual cores on a device: results, times, members that are late, gone, or
 * of another opinion. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nrt/nrt.h"
#include "nrt/nrt_status.h"
#include "runtime/base/file.h"
#include "runtime/vdev/program.h"
#include "tests/shim/shim.h"
#include "tests/unit/vdev_harness.h"

#define _run_ _cleanup_(vdev_run_end)
#define _notes_ _cleanup_(vdev_notes_close)
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static struct vdev_program member_of(uint32_t rank, uint32_t ranks)
{
	return (struct vdev_program){
		.semaphore_count = 1, .rank = rank, .ranks = ranks, .group = 0xabcdef};
}

/* A sum of int32 over two ranks, and a byte that each gathers from both. */
static const struct vdev_instruction sum_and_gather[] = {
	{.unit = VDEV_TOP_SP,
		.op = VDEV_OP_ALL_REDUCE,
		.dtype = NRT_DTYPE_INT32,
		UNORDERED,
		.src0 = 0,
		.src1 = VDEV_NO_BINDING,
		.dst = 1,
		.count = 2,
		.duration_ps = 3000},
	{.unit = VDEV_TOP_SP,
		.op = VDEV_OP_ALL_GATHER,
		.dtype = NRT_DTYPE_UINT8,
		UNORDERED,
		.src0 = 2,
		.src1 = VDEV_NO_BINDING,
		.dst = 3,
		.count = 1,
		.whole = 1,
		.duration_ps = 4000},
	{.unit = VDEV_TOP_SP, .op = VDEV_OP_BARRIER, UNORDERED, .duration_ps = 5000},
};

/* One rank on a core; its memory: two int32, their sums, a byte, the bytes of both. */
struct rank_on_core {
	struct vdev_client c;
	struct vdev_binding bindings[4];
};

static int rank_open(struct rank_on_core *r, const struct vdev_run *run, int fd, unsigned device,
	unsigned core, uint32_t rank)
{
	const int32_t numbers[2] = {(int32_t)(10 + rank), -(int32_t)rank};
	const uint8_t byte = (uint8_t)('a' + rank);
	int error = vdev_client_open_on(&r->c, run, fd, device, core, 4096);

	for (int i = 0; i < 4 && error == 0; i++) {
		r->bindings[i].size = (const uint64_t[]){8, 8, 1, 2}[i];
		error = vdev_alloc(fd, r->bindings[i].size, &r->bindings[i].mem_handle);
	}
	if (error == 0)
		error = vdev_write(fd, r->bindings[0].mem_handle, 0, numbers, sizeof(numbers));
	if (error == 0)
		error = vdev_write(fd, r->bindings[2].mem_handle, 0, &byte, 1);
	if (error == 0)
		error = vdev_client_load_program(&r->c, member_of(rank, 2), sum_and_gather,
			COUNT(sum_and_gather), r->bindings, 4);
	return error;
}

static bool rank_is_right(const struct rank_on_core *r)
{
	int32_t sums[2];
	char both[2];

	return vdev_read(r->c.fd, r->bindings[1].mem_handle, 0, sums, sizeof(sums)) == 0 &&
	       vdev_read(r->c.fd, r->bindings[3].mem_handle, 0, both, sizeof(both)) == 0 &&
	       sums[0] == 21 && sums[1] == -1 && both[0] == 'a' && both[1] == 'b';
}

/* Rank 1 on device 1, in a process of its own. */
static int be_rank_one(void *arg)
{
	const struct vdev_run *run = arg;
	int fd = vdev_open(run, 1, O_RDWR);
	struct rank_on_core r = {0};
	struct notification start, end;

	if (rank_open(&r, run, fd, 1, 0, 1) != 0)
		return 1;
	if (!vdev_client_run(&r.c, 1, &start, &end) || end.custom != 0)
		return 2;
	return rank_is_right(&r) ? 0 : 3;
}

TEST("vdev collective: two processes on two devices add, gather and meet", "[vdev]")
{
	NEED_VDEV();
	static const struct neuron_notifications_init_v2 top_sp = {
		.nq_dev_type = VDEV_NQ_DEV_TYPE_TOP_SP,
		.nq_type = VDEV_NQ_TYPE_NOTIFY,
		.nq_dev_id = 2,
		.size = 4096};
	static const uint16_t subtypes[] = {
		NOTE_CC_START, NOTE_CC_END, NOTE_CC_START, NOTE_CC_END, NOTE_START, NOTE_END};
	_run_ struct vdev_run run = {0};
	_cleanup_close_ int fd = -1;
	_notes_ struct vdev_notes notes = {0};
	struct rank_on_core r = {0};
	struct notification start, end, note;
	uint64_t last = 0;

	REQUIRE(vdev_run_start(&run, (const char *[]){"--devices", "2", NULL}));
	fd = vdev_open(&run, 0, O_RDWR);
	REQUIRE(fd >= 0);
	REQUIRE_EQ(rank_open(&r, &run, fd, 0, 2, 0), 0);
	REQUIRE_EQ(vdev_notes_open(&notes, &run, fd, 0, &top_sp), 0);
	REQUIRE_EQ(vdev_client_launch(&r.c, 1), 0);
	/* It waits for the other one, however late that is. */
	REQUIRE(vdev_client_next(&r.c, &start));
	REQUIRE(vdev_notes_next(&notes, &note));
	CHECK_EQ(note.subtype, NOTE_CC_START);
	CHECK(!vdev_client_has(&r.c));
	CHECK_EQ(vdev_in_child(be_rank_one, &run), 0);
	REQUIRE(vdev_client_next(&r.c, &end));
	CHECK_EQ(end.custom, 0);
	CHECK(end.timestamp_ps - start.timestamp_ps >= 12000);
	CHECK(rank_is_right(&r));
	for (size_t i = 0; i < COUNT(subtypes); i++) {
		if (i)
			REQUIRE(vdev_notes_next(&notes, &note));
		test_info("record %zu", i);
		CHECK_EQ(note.subtype, subtypes[i]);
		CHECK_EQ(note.id, i / 2);
		CHECK_EQ(note.custom, sum_and_gather[i / 2].op);
		CHECK_EQ(note.type_phase, NOTE_PHASE | NOTE_TYPE_EXPLICIT_SP);
		CHECK(note.timestamp_ps >= last);
		last = note.timestamp_ps;
	}
	CHECK_EQ(last, end.timestamp_ps);
	vdev_client_close(&r.c);
}

/* Comes, and dies waiting; on another core, whose ring it leaves behind. */
static int wait_as_rank_one(void *arg)
{
	const struct vdev_run *run = arg;
	int fd = vdev_open(run, 1, O_RDWR);
	struct rank_on_core r = {0};
	struct notification start;

	if (rank_open(&r, run, fd, 1, 1, 1) != 0 || vdev_client_launch(&r.c, 1) != 0 ||
		!vdev_client_next(&r.c, &start))
		return 1;
	kill(getpid(), SIGKILL);
	return 2;
}

TEST("vdev collective: a member that dies or is cancelled leaves, and may be replaced", "[vdev]")
{
	NEED_VDEV();
	_run_ struct vdev_run run = {0};
	_cleanup_close_ int fd = -1;
	struct rank_on_core r = {0};
	struct notification start, end;

	REQUIRE(vdev_run_start(&run, (const char *[]){"--devices", "2", NULL}));
	fd = vdev_open(&run, 0, O_RDWR);
	REQUIRE(fd >= 0);
	CHECK_EQ(vdev_in_child(wait_as_rank_one, &run), 128 + SIGKILL);
	/* Nobody is there any more: this one waits. */
	REQUIRE_EQ(rank_open(&r, &run, fd, 0, 0, 0), 0);
	REQUIRE_EQ(vdev_client_launch(&r.c, 1), 0);
	REQUIRE(vdev_client_next(&r.c, &start));
	CHECK(!vdev_client_has(&r.c));
	/* Given up and tried again, with a partner this time. */
	REQUIRE_EQ(vdev_client_bind(&r.c), 0);
	REQUIRE_EQ(vdev_client_launch(&r.c, 2), 0);
	REQUIRE(vdev_client_next(&r.c, &start));
	CHECK_EQ(start.id, 2);
	CHECK_EQ(vdev_in_child(be_rank_one, &run), 0);
	REQUIRE(vdev_client_next(&r.c, &end));
	CHECK_EQ(end.custom, 0);
	CHECK(rank_is_right(&r));
	vdev_client_close(&r.c);
}

TEST("vdev collective: members that disagree all end with 1200 and a record", "[vdev]")
{
	NEED_VDEV();
	static const struct vdev_instruction barrier[] = {
		{UNORDERED, .unit = VDEV_TOP_SP, .op = VDEV_OP_BARRIER}};
	_run_ struct vdev_run run = {0};
	_cleanup_close_ int fd = -1;
	struct vdev_client c[3] = {0};
	struct vdev_notes errors[3] = {0};
	struct notification note;

	REQUIRE(vdev_run_start(&run, NULL));
	fd = vdev_open(&run, 0, O_RDWR);
	REQUIRE(fd >= 0);
	for (uint32_t i = 0; i < 3; i++) {
		const struct neuron_notifications_init_v2 which = {
			.nq_dev_id = i, .nq_type = VDEV_NQ_TYPE_ERROR, .size = 4096};

		REQUIRE_EQ(vdev_client_open(&c[i], &run, fd, i, 4096), 0);
		REQUIRE_EQ(vdev_notes_open(&errors[i], &run, fd, 0, &which), 0);
		REQUIRE_EQ(vdev_client_load_program(
				   &c[i], member_of(i, i == 1 ? 4 : 3), barrier, 1, NULL, 0),
			0);
	}
	for (uint32_t i = 0; i < 3; i++)
		REQUIRE_EQ(vdev_client_launch(&c[i], i), 0);
	for (uint32_t i = 0; i < 3; i++) {
		test_info("rank %u", i);
		REQUIRE(vdev_client_next(&c[i], &note));
		REQUIRE(vdev_client_next(&c[i], &note));
		CHECK_EQ(note.subtype, NOTE_END);
		CHECK_EQ(note.custom, NRT_EXEC_HW_ERR_COLLECTIVES);
		REQUIRE(vdev_notes_next(&errors[i], &note));
		CHECK_EQ(note.custom, VDEV_CORE_FAULT_COLLECTIVES);
		/* Agreed, it works. */
		REQUIRE_EQ(
			vdev_client_load_program(&c[i], member_of(i, 3), barrier, 1, NULL, 0), 0);
	}
	for (uint32_t i = 0; i < 3; i++)
		REQUIRE_EQ(vdev_client_launch(&c[i], i), 0);
	for (uint32_t i = 0; i < 3; i++) {
		REQUIRE(vdev_client_next(&c[i], &note));
		REQUIRE(vdev_client_next(&c[i], &note));
		CHECK_EQ(note.custom, 0);
		vdev_notes_close(&errors[i]);
		vdev_client_close(&c[i]);
	}
	CHECK_EQ(vdev_stat(&run, "fault.collectives"), 3);
}

/* Eight cores, each from its own thread, meet again and again. */
struct meeting_thread {
	struct vdev_client c;
	bool good;
};

static void *meet_often(void *arg)
{
	struct meeting_thread *t = arg;
	struct notification start, end;

	t->good = true;
	for (uint32_t n = 0; n < 40 && t->good; n++)
		t->good = vdev_client_run(&t->c, n, &start, &end) && end.custom == 0;
	return NULL;
}

TEST("vdev collective: eight cores meet in every run", "[vdev]")
{
	NEED_VDEV();
	static const struct vdev_instruction list[] = {
		{UNORDERED, .unit = VDEV_TOP_SP, .op = VDEV_OP_BARRIER, .duration_ps = 1000},
		{UNORDERED, .unit = VDEV_TOP_SP, .op = VDEV_OP_ALL_REDUCE, .dtype = NRT_DTYPE_UINT8,
			.src1 = VDEV_NO_BINDING, .dst = 1, .count = 1, .duration_ps = 1000}};
	_run_ struct vdev_run run = {0};
	_cleanup_close_ int fd = -1;
	struct meeting_thread t[8] = {0};
	struct vdev_binding bindings[8][2] = {0};
	pthread_t threads[8];

	REQUIRE(vdev_run_start(&run, NULL));
	fd = vdev_open(&run, 0, O_RDWR);
	REQUIRE(fd >= 0);
	for (uint32_t i = 0; i < 8; i++) {
		const uint8_t byte = (uint8_t)(1u << i);

		REQUIRE_EQ(vdev_client_open(&t[i].c, &run, fd, i, 4096), 0);
		for (int b = 0; b < 2; b++) {
			bindings[i][b].size = 1;
			REQUIRE_EQ(vdev_alloc(fd, 1, &bindings[i][b].mem_handle), 0);
		}
		REQUIRE_EQ(vdev_write(fd, bindings[i][0].mem_handle, 0, &byte, 1), 0);
		REQUIRE_EQ(
			vdev_client_load_program(&t[i].c, member_of(i, 8), list, 2, bindings[i], 2),
			0);
	}
	for (uint32_t i = 0; i < 8; i++)
		pthread_create(&threads[i], NULL, meet_often, &t[i]);
	for (uint32_t i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	for (uint32_t i = 0; i < 8; i++) {
		uint8_t byte = 0;

		CHECK(t[i].good);
		CHECK_EQ(vdev_read(fd, bindings[i][1].mem_handle, 0, &byte, 1), 0);
		CHECK_EQ(byte, 0xff);
		vdev_client_close(&t[i].c);
	}
}
