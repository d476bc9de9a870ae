/* SPDX-License-Identifier: Apache-2.0 */
/* vdev_ring_test.c - notification rings of virtual cores: phase, overflow, what readers say;
 * without and with a device. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "nrt/nrt.h"
#include "nrt/nrt_status.h"
#include "runtime/base/file.h"
#include "runtime/vdev/memory.h"
#include "runtime/vdev/rings.h"
#include "tests/shim/shim.h"
#include "tests/unit/vdev_harness.h"
#include "vmlinux/ioctl_table.h"

#define _run_ _cleanup_(vdev_run_end)
#define _client_ _cleanup_(vdev_client_close)
#define _notes_ _cleanup_(vdev_notes_close)
#define SLOTS 4

/* ---- without a device -------------------------------------------------------------------- */

struct small_ring {
	_Alignas(8) uint8_t bytes[SLOTS * sizeof(struct notification)];
	struct vdev_memory memory;
	struct vdev_ring ring;
	struct vdev_ring_losses losses;
};

static void small_ring_init(struct small_ring *s)
{
	*s = (struct small_ring){.ring.slots = SLOTS};
	s->memory.map = s->bytes;
	s->memory.size = sizeof(s->bytes);
	s->ring.memory = &s->memory;
}

/* Writes one more record; what stands in its place then, and what the call said. */
static struct notification put(
	struct small_ring *s, uint16_t id, enum vdev_ring_full full, int want)
{
	struct notification got;
	uint64_t slot = s->ring.written % SLOTS;

	CHECK_EQ(vdev_ring_write(&s->ring,
			 (struct notification){.id = id,
				 .type_phase = NOTE_TYPE_EXPLICIT_SP,
				 .custom = 7,
				 .subtype = NOTE_END,
				 .timestamp_ps = 100u + id},
			 full, &s->losses),
		want);
	memcpy(&got, s->bytes + slot * sizeof(got), sizeof(got));
	return got;
}

TEST("vdev ring: it flips its phase each lap and keeps the newest", "[vdev]")
{
	struct small_ring s;

	small_ring_init(&s);
	for (uint16_t i = 0; i < 10; i++) {
		struct notification got = put(&s, i, VDEV_RING_OVERWRITE, 0);

		CHECK_EQ(got.id, i);
		CHECK_EQ(got.custom, 7);
		CHECK_EQ(got.subtype, NOTE_END);
		CHECK_EQ(got.timestamp_ps, 100 + i);
		CHECK_EQ(got.type_phase, NOTE_TYPE_EXPLICIT_SP | (i / 4 % 2 ? 0 : NOTE_PHASE));
	}
	CHECK_EQ(s.losses.overwritten, 0); /* nobody ever said that it reads */
}

TEST("vdev ring: a record over an unread one has the hardware bit", "[vdev]")
{
	struct small_ring s;

	small_ring_init(&s);
	vdev_ring_read(&s.ring, 0);
	for (uint16_t i = 0; i < 12; i++) {
		bool over = i >= 4 && i < 6;
		struct notification got;

		if (i == 6)
			vdev_ring_read(&s.ring, 4); /* room for two */
		if (i == 8)
			vdev_ring_read(&s.ring, 8);
		got = put(&s, i, VDEV_RING_OVERWRITE, 0);
		test_info("record %u", i);
		CHECK_EQ(got.id, i);
		CHECK_EQ(!!(got.type_phase & NOTE_HW_OVERFLOW), over);
		CHECK_EQ(got.type_phase & NOTE_SW_OVERFLOW, 0);
	}
	CHECK_EQ(s.losses.overwritten, 2);
}

TEST("vdev ring: a record that is dropped leaves the software bit on the next one", "[vdev]")
{
	struct small_ring s;
	struct notification got;

	small_ring_init(&s);
	for (uint16_t i = 0; i < 4; i++)
		put(&s, i, VDEV_RING_DROP, 0);
	got = put(&s, 4, VDEV_RING_DROP, 0);
	CHECK_EQ(got.id, 0); /* still there */
	put(&s, 5, VDEV_RING_DROP, 0);
	CHECK_EQ(s.losses.dropped, 2);
	vdev_ring_read(&s.ring, 2);
	got = put(&s, 6, VDEV_RING_DROP, 0);
	CHECK_EQ(got.id, 6);
	CHECK_EQ(got.type_phase, NOTE_TYPE_EXPLICIT_SP | NOTE_SW_OVERFLOW); /* lap 2 */
	got = put(&s, 7, VDEV_RING_DROP, 0);
	CHECK_EQ(got.type_phase, NOTE_TYPE_EXPLICIT_SP);
	CHECK_EQ(s.ring.written, 6);
}

TEST("vdev ring: where a full ring is a failure the record is not written", "[vdev]")
{
	struct small_ring s;
	struct notification got;

	small_ring_init(&s);
	for (uint16_t i = 0; i < 4; i++)
		put(&s, i, VDEV_RING_FAIL, 0);
	got = put(&s, 4, VDEV_RING_FAIL, -ENOBUFS);
	CHECK_EQ(got.id, 0);
	got = put(&s, 5, VDEV_RING_FORCE, 0);
	CHECK_EQ(got.id, 5);
	CHECK(got.type_phase & NOTE_HW_OVERFLOW);
}

TEST("vdev ring: what a reader says counts 32 bits, and never goes back or ahead", "[vdev]")
{
	struct small_ring s;

	small_ring_init(&s);
	s.ring.written = (1ull << 32) + 3;
	vdev_ring_read(&s.ring, UINT32_MAX);
	CHECK_EQ(s.ring.read, UINT32_MAX);
	vdev_ring_read(&s.ring, 2);
	CHECK_EQ(s.ring.read, (1ull << 32) + 2);
	vdev_ring_read(&s.ring, 1);
	CHECK_EQ(s.ring.read, (1ull << 32) + 2);
	vdev_ring_read(&s.ring, 4);
	CHECK_EQ(s.ring.read, (1ull << 32) + 2);
	s.ring = (struct vdev_ring){.memory = &s.memory, .slots = SLOTS, .written = 2};
	vdev_ring_read(&s.ring, 3);
	CHECK_EQ(s.ring.read, 0);
	CHECK(!s.ring.told);
}

TEST("vdev ring: numbers of rings are those of the registers", "[vdev]")
{
	static struct vdev_rings rings;

	CHECK(vdev_rings_find(&rings, VDEV_RING_NUMBER(0, VDEV_NQ_TYPE_NOTIFY, 4)) ==
		vdev_run_ring(&rings));
	CHECK(vdev_rings_find(&rings, VDEV_RING_NUMBER(1, VDEV_NQ_TYPE_NOTIFY, 0)) ==
		&rings.top_sp[VDEV_NQ_TYPE_NOTIFY][0]);
	CHECK(vdev_rings_find(&rings, VDEV_RING_NUMBER(0, VDEV_NQ_TYPE_TRACE_DMA, 15)) ==
		&rings.core[VDEV_NQ_TYPE_TRACE_DMA][15]);
	CHECK(!vdev_rings_find(&rings, VDEV_RING_NUMBER(0, VDEV_NQ_TYPES, 0)));
	CHECK(!vdev_rings_find(&rings, VDEV_RING_NUMBER(2, 0, 0)));
}

/* ---- on a device ------------------------------------------------------------------------- */

static int write_position(int fd, unsigned core, uint64_t ring, uint32_t position)
{
	uint64_t address = VDEV_BAR_RING_READ(core, ring);
	struct neuron_bar_rw write = {
		.address = (uintptr_t)&address, .data = (uintptr_t)&position, .count = 1};

	return vdev_call(fd, NEURON_IOCTL_BAR_WRITE, &write);
}

TEST("vdev ring: each ring of a core gets its own records, with their stamps", "[vdev]")
{
	NEED_VDEV();
	enum { PE_TRACE, ACT_TRACE, DMA_TRACE, ACT_EVENT, RINGS };
	static const struct neuron_notifications_init_v2 which[RINGS] = {
		[PE_TRACE] = {.nq_type = VDEV_NQ_TYPE_TRACE, .engine_index = VDEV_PE, .size = 4096},
		[ACT_TRACE] = {.nq_type = VDEV_NQ_TYPE_TRACE,
			.engine_index = VDEV_ACT,
			.size = 4096},
		[DMA_TRACE] = {.nq_type = VDEV_NQ_TYPE_TRACE_DMA, .engine_index = 3, .size = 4096},
		[ACT_EVENT] = {.nq_type = VDEV_NQ_TYPE_EVENT,
			.engine_index = VDEV_ACT,
			.size = 4096},
	};
	/* DMA and ACT side by side, then PE. */
	static const struct vdev_instruction list[] = {
		{.unit = VDEV_PE,
			.wait = 1,
			.wait_value = 7,
			.post = VDEV_NO_SEMAPHORE,
			.duration_ps = 30000},
		{.unit = VDEV_ACT,
			.wait = VDEV_NO_SEMAPHORE,
			.post = 1,
			.post_value = 4,
			.duration_ps = 10000},
		{.unit = VDEV_DMA + 3,
			.wait = VDEV_NO_SEMAPHORE,
			.post = 1,
			.post_value = 3,
			.duration_ps = 20000},
	};
	static const struct {
		unsigned ring;
		struct notification note; /* stamp: since START */
	} want[] = {
		{PE_TRACE, {0, 0, 4, VDEV_OP_NOP, NOTE_START, 20000}},
		{PE_TRACE, {0, 0, 5, VDEV_OP_NOP, NOTE_END, 50000}},
		{ACT_TRACE, {1, 0, 8, VDEV_OP_NOP, NOTE_START, 0}},
		{ACT_TRACE, {1, 0, 9, VDEV_OP_NOP, NOTE_END, 10000}},
		{DMA_TRACE, {2, 0, 2, VDEV_OP_NOP, NOTE_START, 0}},
		{DMA_TRACE, {2, 0, 2, VDEV_OP_NOP, NOTE_END, 20000}},
		{ACT_EVENT, {1, 0, 11, 1, 4, 10000}},
	};
	_run_ struct vdev_run run = {0};
	_cleanup_close_ int fd = -1;
	_client_ struct vdev_client c = {0};
	struct vdev_notes notes[RINGS] = {0};
	struct notification start, end, got;

	REQUIRE(vdev_run_start(&run, NULL));
	fd = vdev_open(&run, 0, O_RDWR);
	REQUIRE(fd >= 0);
	REQUIRE_EQ(vdev_client_open(&c, &run, fd, 0, 4096), 0);
	for (unsigned i = 0; i < RINGS; i++)
		REQUIRE_EQ(vdev_notes_open(&notes[i], &run, fd, 0, &which[i]), 0);
	REQUIRE_EQ(vdev_client_load_program(
			   &c, (struct vdev_program){.semaphore_count = 2}, list, 3, NULL, 0),
		0);
	REQUIRE(vdev_client_run(&c, 1, &start, &end));
	CHECK_EQ(end.timestamp_ps - start.timestamp_ps, 50000);
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		const struct notification *w = &want[i].note;

		test_info("record %zu", i);
		REQUIRE(vdev_notes_next(&notes[want[i].ring], &got));
		CHECK_EQ(got.id, w->id);
		CHECK_EQ(got.type_phase, w->type_phase | NOTE_PHASE);
		CHECK_EQ(got.custom, w->custom);
		CHECK_EQ(got.subtype, w->subtype);
		CHECK_EQ(got.timestamp_ps - start.timestamp_ps, w->timestamp_ps);
	}
	for (unsigned i = 0; i < RINGS; i++) {
		CHECK(!vdev_notes_has(&notes[i]));
		vdev_notes_close(&notes[i]);
	}
}

TEST("vdev ring: positions written to registers, and acknowledged runs, count as read", "[vdev]")
{
	NEED_VDEV();
	_run_ struct vdev_run run = {0};
	_cleanup_close_ int fd = -1;
	_client_ struct vdev_client c = {0};
	struct neuron_dma_ack_completed ack = {.eng_id = VDEV_EXEC_ENGINE, .count = 1};
	struct notification start, end;

	REQUIRE(vdev_run_start(&run, NULL));
	fd = vdev_open(&run, 0, O_RDWR);
	REQUIRE(fd >= 0);
	REQUIRE_EQ(vdev_client_open(&c, &run, fd, 0, 4 * sizeof(start)), 0);
	REQUIRE_EQ(vdev_client_load(&c, NULL, 0, NULL, 0), 0);
	/* Runs 0 to 3 are read in time, the next two are not. */
	for (uint32_t n = 0; n < 6; n++) {
		bool over = n >= 5;

		REQUIRE(vdev_client_run(&c, n, &start, &end));
		test_info("run %u", n);
		CHECK_EQ(!!(start.type_phase & NOTE_HW_OVERFLOW), over);
		CHECK_EQ(!!(end.type_phase & NOTE_HW_OVERFLOW), over);
		if (n < 2)
			CHECK_EQ(vdev_call(fd, NEURON_IOCTL_DMA_ACK_COMPLETED, &ack), 0);
		else if (n < 4)
			CHECK_EQ(write_position(fd, 0, VDEV_RING_NUMBER(0, VDEV_NQ_TYPE_NOTIFY, 4),
					 2 * (n + 1) - (n == 3 ? 2 : 0)),
				0);
	}
	CHECK_EQ(vdev_stat(&run, "ring_overwrites"), 2);
	CHECK_EQ(vdev_stat(&run, "ring_drops"), 0);
	CHECK_EQ(write_position(fd, 9, 0, 0), 0); /* no such register: forgotten */
}

/* The word of a register. */
static uint32_t read_word(int fd, uint64_t address)
{
	uint32_t word = 4711;
	struct neuron_bar_rw read = {
		.address = (uintptr_t)&address, .data = (uintptr_t)&word, .count = 1};

	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_BAR_READ, &read), 0);
	return word;
}

static void check_registers(const char *head, uint32_t want_written, uint32_t want_dropped)
{
	const uint64_t runs = VDEV_RING_NUMBER(0, VDEV_NQ_TYPE_NOTIFY, 4);
	_run_ struct vdev_run run = {0};
	_cleanup_close_ int fd = -1;
	_client_ struct vdev_client c = {0};

	REQUIRE(vdev_run_start(
		&run, (const char *[]){"--ring-full", "drop", "--ring-head", head, NULL}));
	fd = vdev_open(&run, 0, O_RDWR);
	REQUIRE(fd >= 0);
	REQUIRE_EQ(vdev_client_open(&c, &run, fd, 0, 4 * sizeof(struct notification)), 0);
	REQUIRE_EQ(vdev_client_load(&c, NULL, 0, NULL, 0), 0);
	for (uint32_t n = 0; n < 5; n++)
		REQUIRE_EQ(vdev_client_launch(&c, n), 0);
	REQUIRE(vdev_wait_stat(&run, "ring_drops", 6));
	CHECK_EQ(read_word(fd, VDEV_BAR_RING_READ(0, runs)), want_written);
	CHECK_EQ(read_word(fd, VDEV_BAR_RING_DROPPED(0, runs)), want_dropped);
	CHECK_EQ(read_word(fd, VDEV_BAR_RING_END(0, runs)), 0);
}

TEST("vdev ring: registers say what was written and dropped, or nothing", "[vdev]")
{
	NEED_VDEV();
	check_registers("count", 4, 6);
	check_registers("none", 0, 0);
}

TEST("vdev ring: one that is ended gets no more records and gives its memory back", "[vdev]")
{
	NEED_VDEV();
	static const struct neuron_notifications_init_v2 trace = {
		.nq_type = VDEV_NQ_TYPE_TRACE, .size = 4096};
	static const struct vdev_instruction list[] = {{UNORDERED, .duration_ps = 1000}};
	const uint64_t number = VDEV_RING_NUMBER(0, VDEV_NQ_TYPE_TRACE, 0);
	uint64_t address = VDEV_BAR_RING_END(0, number);
	uint32_t word = 0;
	struct neuron_bar_rw end_it = {
		.address = (uintptr_t)&address, .data = (uintptr_t)&word, .count = 1};
	_run_ struct vdev_run run = {0};
	_cleanup_close_ int fd = -1;
	_client_ struct vdev_client c = {0};
	_notes_ struct vdev_notes first = {0}, second = {0};
	struct notification start, end;
	long long allocated;

	REQUIRE(vdev_run_start(&run, NULL));
	fd = vdev_open(&run, 0, O_RDWR);
	REQUIRE(fd >= 0);
	REQUIRE_EQ(vdev_client_open(&c, &run, fd, 0, 4096), 0);
	REQUIRE_EQ(vdev_client_load(&c, list, 1, NULL, 0), 0);
	allocated = vdev_stat(&run, "allocated_bytes");
	REQUIRE_EQ(vdev_notes_open(&first, &run, fd, 0, &trace), 0);
	REQUIRE(vdev_client_run(&c, 1, &start, &end));
	CHECK_EQ(read_word(fd, VDEV_BAR_RING_READ(0, number)), 2);
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_BAR_WRITE, &end_it), 0);
	CHECK_EQ(vdev_stat(&run, "allocated_bytes"), allocated);
	REQUIRE(vdev_client_run(&c, 2, &start, &end));
	CHECK_EQ(read_word(fd, VDEV_BAR_RING_READ(0, number)), 0);
	CHECK_EQ(first.ring[2].timestamp_ps, 0);
	REQUIRE_EQ(vdev_notes_open(&second, &run, fd, 0, &trace), 0); /* a fresh one */
	REQUIRE(vdev_client_run(&c, 3, &start, &end));
	CHECK_EQ(read_word(fd, VDEV_BAR_RING_READ(0, number)), 2);
}

TEST("vdev ring: a run fails with 1204 where a record must not be lost", "[vdev]")
{
	NEED_VDEV();
	static const struct neuron_notifications_init_v2 trace = {
		.nq_type = VDEV_NQ_TYPE_TRACE, .size = 4 * sizeof(struct notification)};
	static const struct neuron_notifications_init_v2 errors = {
		.nq_type = VDEV_NQ_TYPE_ERROR, .size = 4096};
	static const struct vdev_instruction list[] = {{UNORDERED, .duration_ps = 1000},
		{UNORDERED, .duration_ps = 1000}, {UNORDERED, .duration_ps = 1000}};
	_run_ struct vdev_run run = {0};
	_cleanup_close_ int fd = -1;
	_client_ struct vdev_client c = {0};
	_notes_ struct vdev_notes traced = {0}, failed = {0};
	struct notification start, end, note;

	REQUIRE(vdev_run_start(&run, (const char *[]){"--ring-full", "fail", NULL}));
	fd = vdev_open(&run, 0, O_RDWR);
	REQUIRE(fd >= 0);
	REQUIRE_EQ(vdev_client_open(&c, &run, fd, 0, 4096), 0);
	REQUIRE_EQ(vdev_notes_open(&traced, &run, fd, 0, &trace), 0);
	REQUIRE_EQ(vdev_notes_open(&failed, &run, fd, 0, &errors), 0);
	REQUIRE_EQ(vdev_client_load(&c, list, 3, NULL, 0), 0);
	REQUIRE(vdev_client_run(&c, 1, &start, &end));
	CHECK_EQ(end.custom, NRT_EXEC_SW_NQ_OVERFLOW);
	CHECK_EQ(end.timestamp_ps - start.timestamp_ps, 2000); /* the third one cannot begin */
	REQUIRE(vdev_notes_next(&failed, &note));
	CHECK_EQ(note.id, 2);
	CHECK_EQ(note.custom, VDEV_CORE_FAULT_OVERFLOW);
	CHECK_EQ(note.subtype, NRT_EXEC_SW_NQ_OVERFLOW);
	CHECK_EQ(note.type_phase, NOTE_PHASE | NOTE_TYPE_ERROR);
	CHECK_EQ(vdev_stat(&run, "fault.queue-overflow"), 1);
	/* Read, the ring takes two more. */
	CHECK_EQ(write_position(fd, 0, VDEV_RING_NUMBER(0, VDEV_NQ_TYPE_TRACE, 0), 4), 0);
	REQUIRE_EQ(vdev_client_load(&c, list, 2, NULL, 0), 0);
	REQUIRE(vdev_client_run(&c, 2, &start, &end));
	CHECK_EQ(end.custom, 0);
}

TEST("vdev ring: a fault whose ring is full overwrites, and that is counted", "[vdev]")
{
	NEED_VDEV();
	static const struct neuron_notifications_init_v2 errors = {
		.nq_type = VDEV_NQ_TYPE_ERROR, .size = 4 * sizeof(struct notification)};
	static const struct vdev_instruction fault = {
		UNORDERED, .op = VDEV_OP_FAULT, .fault = VDEV_CORE_FAULT_ERROR};
	const struct vdev_instruction list[] = {fault, fault, fault, fault, fault};
	_run_ struct vdev_run run = {0};
	_cleanup_close_ int fd = -1;
	_client_ struct vdev_client c = {0};
	_notes_ struct vdev_notes failed = {0};
	struct notification start, end, note;

	REQUIRE(vdev_run_start(&run, (const char *[]){"--ring-full", "fail", NULL}));
	fd = vdev_open(&run, 0, O_RDWR);
	REQUIRE(fd >= 0);
	REQUIRE_EQ(vdev_client_open(&c, &run, fd, 0, 4096), 0);
	REQUIRE_EQ(vdev_notes_open(&failed, &run, fd, 0, &errors), 0);
	REQUIRE_EQ(vdev_client_load(&c, list, 5, NULL, 0), 0);
	REQUIRE(vdev_client_run(&c, 1, &start, &end));
	CHECK_EQ(end.custom, NRT_EXEC_COMPLETED_WITH_ERR);
	CHECK_EQ(vdev_stat(&run, "fault.error"), 5);
	CHECK_EQ(vdev_stat(&run, "ring_overwrites"), 1);
	note = failed.ring[0]; /* the last has gone round */
	CHECK_EQ(note.id, 4);
	CHECK(note.type_phase & NOTE_HW_OVERFLOW);
}

TEST("vdev ring: where records are dropped the next one that fits says so", "[vdev]")
{
	NEED_VDEV();
	static const struct neuron_notifications_init_v2 trace = {
		.nq_type = VDEV_NQ_TYPE_TRACE, .size = 4 * sizeof(struct notification)};
	static const struct vdev_instruction list[] = {{UNORDERED}, {UNORDERED}, {UNORDERED}};
	_run_ struct vdev_run run = {0};
	_cleanup_close_ int fd = -1;
	_client_ struct vdev_client c = {0};
	_notes_ struct vdev_notes traced = {0};
	struct notification start, end, note;

	REQUIRE(vdev_run_start(&run, (const char *[]){"--ring-full", "drop", NULL}));
	fd = vdev_open(&run, 0, O_RDWR);
	REQUIRE(fd >= 0);
	REQUIRE_EQ(vdev_client_open(&c, &run, fd, 0, 4096), 0);
	REQUIRE_EQ(vdev_notes_open(&traced, &run, fd, 0, &trace), 0);
	REQUIRE_EQ(vdev_client_load(&c, list, 3, NULL, 0), 0);
	REQUIRE(vdev_client_run(&c, 1, &start, &end));
	CHECK_EQ(end.custom, 0);
	CHECK_EQ(vdev_stat(&run, "ring_drops"), 2);
	for (unsigned i = 0; i < 4; i++)
		REQUIRE(vdev_notes_next(&traced, &note));
	CHECK(!vdev_notes_has(&traced));
	CHECK_EQ(write_position(fd, 0, VDEV_RING_NUMBER(0, VDEV_NQ_TYPE_TRACE, 0), 4), 0);
	REQUIRE(vdev_client_run(&c, 2, &start, &end));
	for (unsigned i = 0; i < 4; i++) {
		REQUIRE(vdev_notes_next(&traced, &note));
		CHECK_EQ(!!(note.type_phase & NOTE_SW_OVERFLOW), i == 0);
	}
}
