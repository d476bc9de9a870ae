/* SPDX-License-Identifier: Apache-2.0 */
/* vdev_fault_test.c - what goes wrong on virtual cores on demand; the next launch works. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "nrt/nrt.h"
#include "nrt/nrt_status.h"
#include "runtime/base/file.h"
#include "runtime/vdev/core_faults.h"
#include "tests/shim/shim.h"
#include "tests/unit/vdev_harness.h"
#include "vmlinux/ioctl_table.h"

#define _run_ _cleanup_(vdev_run_end)
#define _client_ _cleanup_(vdev_client_close)

static const struct neuron_notifications_init_v2 error_ring = {
	.nq_type = VDEV_NQ_TYPE_ERROR, .size = 4096};

/* What each fault does, by its number. */
static const struct {
	const char *name;
	uint16_t status;
	enum vdev_fault_course course;
	uint8_t record;
} faults[] = {
	[VDEV_CORE_FAULT_NUMERICAL] = {"numerical", 1003, VDEV_FAULT_GOES_ON, 0x1f},
	[VDEV_CORE_FAULT_HARDWARE] = {"hardware", 1202, VDEV_FAULT_ENDS, 0x1f},
	[VDEV_CORE_FAULT_DMA_ABORT] = {"dma-abort", 1203, VDEV_FAULT_ENDS, 2},
	[VDEV_CORE_FAULT_TIMEOUT] = {"timeout", 5, VDEV_FAULT_HANGS, 3},
	[VDEV_CORE_FAULT_OVERFLOW] = {"queue-overflow", 1204, VDEV_FAULT_ENDS, 3},
	[VDEV_CORE_FAULT_MEMORY] = {"memory", 1201, VDEV_FAULT_ENDS, 3},
	[VDEV_CORE_FAULT_MEMORY_REPAIRABLE] = {"memory-repairable", 1205, VDEV_FAULT_ENDS, 3},
	[VDEV_CORE_FAULT_COLLECTIVES] = {"collectives", 1200, VDEV_FAULT_ENDS, 3},
	[VDEV_CORE_FAULT_OUT_OF_BOUNDS] = {"out-of-bounds", 1006, VDEV_FAULT_ENDS, 0x1f},
	[VDEV_CORE_FAULT_ERROR] = {"error", 1004, VDEV_FAULT_GOES_ON, 3},
	[VDEV_CORE_FAULT_UNRECOVERABLE] = {"unrecoverable", 101, VDEV_FAULT_ENDS, 3},
};
#define FAULTS (sizeof(faults) / sizeof(faults[0]))

/* A step before and a step after the fault, which copies one byte. */
struct faulty {
	struct vdev_client c;
	struct vdev_notes errors;
	struct vdev_binding bindings[2];
};

static int faulty_open(struct faulty *f, const struct vdev_run *run, int fd)
{
	int r = vdev_client_open(&f->c, run, fd, 0, 4096);

	for (int i = 0; i < 2 && r == 0; i++) {
		f->bindings[i].size = 1;
		r = vdev_alloc(fd, 1, &f->bindings[i].mem_handle);
	}
	return r < 0 ? r : vdev_notes_open(&f->errors, run, fd, 0, &error_ring);
}

static int faulty_load(struct faulty *f, uint8_t fault, uint8_t data)
{
	const struct vdev_instruction list[] = {
		{UNORDERED, .duration_ps = 1000},
		{UNORDERED, .op = fault ? VDEV_OP_FAULT : VDEV_OP_NOP, .fault = fault,
			.duration_ps = 2000},
		{UNORDERED, .op = VDEV_OP_COPY, .dtype = NRT_DTYPE_UINT8, .src0 = 0,
			.src1 = VDEV_NO_BINDING, .dst = 1, .count = 1, .duration_ps = 4000},
	};
	int r = vdev_write(f->c.fd, f->bindings[0].mem_handle, 0, &data, 1);

	return r < 0 ? r : vdev_client_load(&f->c, list, 3, f->bindings, 2);
}

static uint8_t copied(const struct faulty *f)
{
	uint8_t data = 0;

	CHECK_EQ(vdev_read(f->c.fd, f->bindings[1].mem_handle, 0, &data, 1), 0);
	return data;
}

static void check_good_run(struct faulty *f, uint32_t number, uint8_t data)
{
	struct notification start, end;

	REQUIRE_EQ(faulty_load(f, 0, data), 0);
	REQUIRE(vdev_client_run(&f->c, number, &start, &end));
	CHECK_EQ(end.id, number);
	CHECK_EQ(end.custom, 0);
	CHECK_EQ(end.timestamp_ps - start.timestamp_ps, 7000);
	CHECK_EQ(copied(f), data);
}

static void check_error_record(struct faulty *f, uint8_t number, uint32_t index, uint64_t at_ps)
{
	struct notification note;

	REQUIRE(vdev_notes_next(&f->errors, &note));
	CHECK_EQ(note.id, index);
	CHECK_EQ(note.type_phase & 0x1f, faults[number].record);
	CHECK_EQ(note.custom, number);
	CHECK_EQ(note.subtype, faults[number].status);
	CHECK_EQ(note.timestamp_ps, at_ps);
	CHECK(!vdev_notes_has(&f->errors));
}

TEST("vdev fault: a program's fault has its status, its record and its course", "[vdev]")
{
	NEED_VDEV();
	_run_ struct vdev_run run = {0};
	_cleanup_close_ int fd = -1;
	struct faulty f = {0};

	REQUIRE(vdev_run_start(&run, NULL));
	fd = vdev_open(&run, 0, O_RDWR);
	REQUIRE(fd >= 0);
	REQUIRE_EQ(faulty_open(&f, &run, fd), 0);
	for (uint8_t n = 1; n < FAULTS; n++) {
		bool goes_on = faults[n].course == VDEV_FAULT_GOES_ON;
		struct notification start, end;
		char name[64];

		if (faults[n].course == VDEV_FAULT_HANGS || n == VDEV_CORE_FAULT_UNRECOVERABLE)
			continue;
		test_info("%s", faults[n].name);
		REQUIRE_EQ(faulty_load(&f, n, (uint8_t)(n + 100)), 0);
		REQUIRE(vdev_client_run(&f.c, n, &start, &end));
		CHECK_EQ(start.custom, 0);
		CHECK_EQ(end.custom, faults[n].status);
		CHECK_EQ(end.timestamp_ps - start.timestamp_ps, goes_on ? 7000 : 3000);
		CHECK_EQ(copied(&f) == n + 100, goes_on);
		check_error_record(&f, n, 1, start.timestamp_ps + 3000);
		snprintf(name, sizeof(name), "fault.%s", faults[n].name);
		CHECK_EQ(vdev_stat(&run, name), 1);
		check_good_run(&f, 50u + n, n);
	}
	vdev_notes_close(&f.errors);
	vdev_client_close(&f.c);
}

TEST("vdev fault: what hangs has no END; released or bound anew the core goes on", "[vdev]")
{
	NEED_VDEV();
	_run_ struct vdev_run run = {0};
	_cleanup_close_ int fd = -1;
	struct faulty f = {0};

	REQUIRE(vdev_run_start(&run, NULL));
	fd = vdev_open(&run, 0, O_RDWR);
	REQUIRE(fd >= 0);
	REQUIRE_EQ(faulty_open(&f, &run, fd), 0);
	for (int way = 0; way < 2; way++) {
		struct notification start;

		test_info("way %d", way);
		REQUIRE_EQ(faulty_load(&f, VDEV_CORE_FAULT_TIMEOUT, 1), 0);
		REQUIRE_EQ(vdev_client_launch(&f.c, 7), 0);
		REQUIRE_EQ(vdev_client_launch(&f.c, 8), 0); /* waits, and goes too */
		REQUIRE(vdev_client_next(&f.c, &start));
		check_error_record(&f, VDEV_CORE_FAULT_TIMEOUT, 1, start.timestamp_ps + 3000);
		CHECK(!vdev_client_has(&f.c));
		if (way == 0)
			REQUIRE_EQ(vdev_client_release(&f.c), 0);
		REQUIRE_EQ(vdev_client_bind(&f.c), 0);
		check_good_run(&f, 20u + (uint32_t)way, (uint8_t)(60 + way));
	}
	CHECK_EQ(vdev_stat(&run, "fault.timeout"), 2);
	vdev_notes_close(&f.errors);
	vdev_client_close(&f.c);
}

TEST("vdev fault: a program whose units wait for each other hangs until it is cancelled", "[vdev]")
{
	NEED_VDEV();
	static const struct vdev_instruction list[] = {
		{.unit = VDEV_PE, .wait = 0, .wait_value = 1, .post = 1, .post_value = 1},
		{.unit = VDEV_ACT, .wait = 1, .wait_value = 1, .post = 0, .post_value = 1}};
	_run_ struct vdev_run run = {0};
	_cleanup_close_ int fd = -1;
	struct faulty f = {0};
	struct notification start;

	REQUIRE(vdev_run_start(&run, NULL));
	fd = vdev_open(&run, 0, O_RDWR);
	REQUIRE(fd >= 0);
	REQUIRE_EQ(faulty_open(&f, &run, fd), 0);
	REQUIRE_EQ(vdev_client_load_program(&f.c, (struct vdev_program){.semaphore_count = 2}, list,
			   2, f.bindings, 2),
		0);
	REQUIRE_EQ(vdev_client_launch(&f.c, 1), 0);
	REQUIRE(vdev_client_next(&f.c, &start));
	REQUIRE_EQ(vdev_client_bind(&f.c), 0);
	check_good_run(&f, 2, 33);
	vdev_notes_close(&f.errors);
	vdev_client_close(&f.c);
}

TEST("vdev fault: an unrecoverable core refuses launches until it is reset", "[vdev]")
{
	NEED_VDEV();
	_run_ struct vdev_run run = {0};
	_cleanup_close_ int fd = -1;
	struct faulty f = {0};
	struct neuron_device_reset reset = {.nc_map = 1};
	struct notification start, end;

	REQUIRE(vdev_run_start(&run, NULL));
	fd = vdev_open(&run, 0, O_RDWR);
	REQUIRE(fd >= 0);
	REQUIRE_EQ(faulty_open(&f, &run, fd), 0);
	REQUIRE_EQ(faulty_load(&f, VDEV_CORE_FAULT_UNRECOVERABLE, 1), 0);
	REQUIRE(vdev_client_run(&f.c, 1, &start, &end));
	CHECK_EQ(end.custom, 101);
	check_error_record(&f, VDEV_CORE_FAULT_UNRECOVERABLE, 1, start.timestamp_ps + 3000);
	REQUIRE_EQ(faulty_load(&f, 0, 9), 0);
	REQUIRE_EQ(vdev_client_bind(&f.c), 0); /* no help */
	for (uint32_t n = 2; n < 4; n++) {
		REQUIRE(vdev_client_run(&f.c, n, &start, &end));
		CHECK_EQ(end.custom, 101);
		CHECK_EQ(end.timestamp_ps, start.timestamp_ps);
		CHECK(copied(&f) != 9);
	}
	CHECK_EQ(vdev_stat(&run, "fault.unrecoverable"), 1);
	REQUIRE_EQ(vdev_call(fd, NEURON_IOCTL_NC_RESET, &reset), 0);
	vdev_notes_close(&f.errors);
	vdev_client_close(&f.c);
	REQUIRE_EQ(faulty_open(&f, &run, fd), 0);
	check_good_run(&f, 5, 44);
	vdev_notes_close(&f.errors);
	vdev_client_close(&f.c);
}

TEST("vdev fault: --fault hits the launches of a core that it names", "[vdev]")
{
	NEED_VDEV();
	_run_ struct vdev_run run = {0};
	_cleanup_close_ int fd = -1, other = -1;
	struct faulty f = {0};
	_client_ struct vdev_client c = {0};
	struct notification start, end;

	REQUIRE(vdev_run_start(&run, (const char *[]){"--devices", "2", "--fault", "hardware:0:2",
					     "--fault", "numerical:9", NULL}));
	fd = vdev_open(&run, 0, O_RDWR);
	other = vdev_open(&run, 1, O_RDWR);
	REQUIRE(fd >= 0);
	REQUIRE(other >= 0);
	REQUIRE_EQ(faulty_open(&f, &run, fd), 0);
	check_good_run(&f, 1, 1);
	REQUIRE_EQ(faulty_load(&f, 0, 2), 0);
	REQUIRE(vdev_client_run(&f.c, 2, &start, &end));
	CHECK_EQ(end.custom, 1202);
	CHECK_EQ(end.timestamp_ps - start.timestamp_ps, 1000); /* with its first instruction */
	check_error_record(&f, VDEV_CORE_FAULT_HARDWARE, 0, end.timestamp_ps);
	check_good_run(&f, 3, 3);
	/* Core 1 of device 1, also where the program is empty. */
	REQUIRE_EQ(vdev_client_open_on(&c, &run, other, 1, 1, 4096), 0);
	REQUIRE_EQ(vdev_client_load(&c, NULL, 0, NULL, 0), 0);
	for (uint32_t n = 0; n < 3; n++) {
		REQUIRE(vdev_client_run(&c, n, &start, &end));
		CHECK_EQ(end.custom, 1003);
	}
	CHECK_EQ(vdev_stat(&run, "fault.numerical"), 3);
	CHECK_EQ(vdev_stat(&run, "fault.hardware"), 1);
	vdev_notes_close(&f.errors);
	vdev_client_close(&f.c);
}
