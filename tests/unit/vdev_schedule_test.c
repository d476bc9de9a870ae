/* SPDX-License-Identifier: Apache-2.0 */
/* vdev_schedule_test.c - the parts of a virtual core that need no device: schedules, clocks,
 * jitter, checks of instructions, faults by their names. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nrt/nrt.h"
#include "runtime/vdev/core_faults.h"
#include "runtime/vdev/device_clock.h"
#include "runtime/vdev/program.h"
#include "runtime/vdev/schedule.h"
#include "tests/shim/shim.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define NONE VDEV_NO_SEMAPHORE
#define SECOND 1000000000000ull

/* ---- schedules --------------------------------------------------------------------------- */

struct want {
	enum vdev_event_kind kind;
	uint32_t index;
	uint64_t time_ps;
};

static void check_events(struct vdev_schedule *s, const struct want *want, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct vdev_event event = vdev_schedule_next(s);

		test_info("event %zu", i);
		CHECK_EQ(event.kind, want[i].kind);
		CHECK_EQ(event.index, want[i].index);
		CHECK_EQ(event.time_ps, want[i].time_ps);
	}
}

#define UNIT(u, ps)                                                          \
	{                                                                    \
		.unit = (u), .wait = NONE, .post = NONE, .duration_ps = (ps) \
	}

TEST("vdev schedule: units run side by side, each its instructions in order", "[vdev]")
{
	static const struct vdev_instruction list[] = {
		UNIT(VDEV_PE, 10), UNIT(VDEV_PE, 5), UNIT(VDEV_ACT, 12), UNIT(VDEV_DMA + 15, 3)};
	static const struct want want[] = {{VDEV_EVENT_BEGIN, 0, 0}, {VDEV_EVENT_BEGIN, 2, 0},
		{VDEV_EVENT_BEGIN, 3, 0}, {VDEV_EVENT_END, 3, 3}, {VDEV_EVENT_END, 0, 10},
		{VDEV_EVENT_BEGIN, 1, 10}, {VDEV_EVENT_END, 2, 12}, {VDEV_EVENT_END, 1, 15},
		{VDEV_EVENT_DONE, 4, 15}, {VDEV_EVENT_DONE, 4, 15}};
	struct vdev_schedule s;

	vdev_schedule_init(&s, list, COUNT(list), false);
	check_events(&s, want, COUNT(want));
}

TEST("vdev schedule: a serial program runs its list one after another", "[vdev]")
{
	static const struct vdev_instruction list[] = {
		UNIT(VDEV_PE, 10), UNIT(VDEV_ACT, 5), UNIT(VDEV_PE, 0), UNIT(VDEV_DVE, 1)};
	static const struct want want[] = {{VDEV_EVENT_BEGIN, 0, 0}, {VDEV_EVENT_END, 0, 10},
		{VDEV_EVENT_BEGIN, 1, 10}, {VDEV_EVENT_END, 1, 15}, {VDEV_EVENT_BEGIN, 2, 15},
		{VDEV_EVENT_END, 2, 15}, {VDEV_EVENT_BEGIN, 3, 15}, {VDEV_EVENT_END, 3, 16},
		{VDEV_EVENT_DONE, 4, 16}};
	struct vdev_schedule s;

	vdev_schedule_init(&s, list, COUNT(list), true);
	check_events(&s, want, COUNT(want));
}

TEST("vdev schedule: an instruction waits until its semaphore has the value", "[vdev]")
{
	static const struct vdev_instruction list[] = {
		{.unit = VDEV_POOL, .wait = 1, .wait_value = 3, .post = NONE, .duration_ps = 1},
		{.unit = VDEV_PE, .wait = NONE, .post = 1, .post_value = 2, .duration_ps = 10},
		{.unit = VDEV_ACT, .wait = NONE, .post = 1, .post_value = 1, .duration_ps = 20}};
	static const struct want want[] = {{VDEV_EVENT_BEGIN, 1, 0}, {VDEV_EVENT_BEGIN, 2, 0},
		{VDEV_EVENT_END, 1, 10}, {VDEV_EVENT_END, 2, 20}, {VDEV_EVENT_BEGIN, 0, 20},
		{VDEV_EVENT_END, 0, 21}, {VDEV_EVENT_DONE, 3, 21}};
	struct vdev_schedule s;

	vdev_schedule_init(&s, list, COUNT(list), false);
	check_events(&s, want, COUNT(want));
	vdev_schedule_init(&s, list, COUNT(list), false);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(vdev_schedule_next(&s).semaphore, i == 2 ? 2 : 0);
	CHECK_EQ(vdev_schedule_next(&s).semaphore, 3);
}

TEST("vdev schedule: at one time ends come first, then what stands first in the list", "[vdev]")
{
	static const struct vdev_instruction list[] = {
		{.unit = VDEV_SP, .wait = 0, .wait_value = 1, .post = NONE}, UNIT(VDEV_DVE, 4),
		{.unit = VDEV_PE, .wait = NONE, .post = 0, .post_value = 1, .duration_ps = 4},
		UNIT(VDEV_PE, 0)};
	static const struct want want[] = {{VDEV_EVENT_BEGIN, 1, 0}, {VDEV_EVENT_BEGIN, 2, 0},
		{VDEV_EVENT_END, 1, 4}, {VDEV_EVENT_END, 2, 4}, {VDEV_EVENT_BEGIN, 0, 4},
		{VDEV_EVENT_END, 0, 4}, {VDEV_EVENT_BEGIN, 3, 4}, {VDEV_EVENT_END, 3, 4},
		{VDEV_EVENT_DONE, 4, 4}};
	struct vdev_schedule s;

	vdev_schedule_init(&s, list, COUNT(list), false);
	check_events(&s, want, COUNT(want));
}

TEST("vdev schedule: what waits for ever is stuck, also when the program itself is serial",
	"[vdev]")
{
	static const struct vdev_instruction list[] = {UNIT(VDEV_PE, 7),
		{.unit = VDEV_ACT, .wait = 0, .wait_value = 1, .post = NONE},
		{.unit = VDEV_PE, .wait = NONE, .post = 0, .post_value = 1}};
	static const struct want want[] = {{VDEV_EVENT_BEGIN, 0, 0}, {VDEV_EVENT_END, 0, 7},
		{VDEV_EVENT_STUCK, 3, 7}, {VDEV_EVENT_STUCK, 3, 7}};
	struct vdev_schedule s;

	vdev_schedule_init(&s, list, COUNT(list), true);
	check_events(&s, want, COUNT(want));
	vdev_schedule_init(&s, list, 2, false);
	check_events(&s, want, COUNT(want) - 2);
	CHECK_EQ(vdev_schedule_next(&s).kind, VDEV_EVENT_STUCK);
}

TEST("vdev schedule: a collective ends when it is released, the others go on", "[vdev]")
{
	static const struct vdev_instruction list[] = {
		{.unit = VDEV_TOP_SP, .op = VDEV_OP_BARRIER, .wait = NONE, .post = NONE},
		UNIT(VDEV_PE, 5), UNIT(VDEV_TOP_SP, 1)};
	static const struct want want[] = {{VDEV_EVENT_BEGIN, 1, 0}, {VDEV_EVENT_END, 1, 5},
		{VDEV_EVENT_END, 0, 30}, {VDEV_EVENT_BEGIN, 2, 30}, {VDEV_EVENT_END, 2, 31},
		{VDEV_EVENT_DONE, 3, 31}};
	struct vdev_schedule s;

	vdev_schedule_init(&s, list, COUNT(list), false);
	CHECK_EQ(vdev_schedule_next(&s).index, 0);
	vdev_schedule_release(&s, 30);
	check_events(&s, want, COUNT(want));
}

/* Every program either ends or is stuck, whatever it says; ends never go back in time. */
TEST("vdev schedule: random programs come to an end, in the order of time", "[vdev]")
{
	struct vdev_instruction list[64];
	unsigned seed = 7, done = 0, stuck = 0;

	for (int round = 0; round < 2000; round++) {
		struct vdev_schedule s;
		struct vdev_event event;
		uint64_t last = 0;
		uint32_t ended = 0;

		for (size_t i = 0; i < COUNT(list); i++) {
			unsigned unit = (unsigned)rand_r(&seed) % 22;
			uint16_t waited = (uint16_t)(rand_r(&seed) % 3);

			list[i] = (struct vdev_instruction){
				.unit = (uint8_t)(unit < 6 ? unit : unit + 2),
				.wait = (uint16_t)(rand_r(&seed) % 4 ? NONE : waited),
				.wait_value = (uint32_t)rand_r(&seed) % 4,
				.post = (uint16_t)(rand_r(&seed) % 3),
				.post_value = (uint32_t)rand_r(&seed) % 2,
				.duration_ps = (uint64_t)rand_r(&seed) % 5,
			};
		}
		vdev_schedule_init(&s, list, COUNT(list), round % 2);
		do {
			event = vdev_schedule_next(&s);
			REQUIRE(event.time_ps >= last);
			last = event.time_ps;
			ended += event.kind == VDEV_EVENT_END;
			REQUIRE(ended <= COUNT(list));
		} while (event.kind == VDEV_EVENT_BEGIN || event.kind == VDEV_EVENT_END);
		CHECK_EQ(event.kind == VDEV_EVENT_DONE, ended == COUNT(list));
		done += event.kind == VDEV_EVENT_DONE;
		stuck += event.kind == VDEV_EVENT_STUCK;
	}
	CHECK(done > 100);
	CHECK(stuck > 100);
}

/* ---- clocks ------------------------------------------------------------------------------ */

TEST("vdev clock: it starts and drifts as told, each core a little differently", "[vdev]")
{
	const struct vdev_timing plain = {0};
	const struct vdev_timing timing = {.offset_ns = 4000, .drift_ppm = -400, .seed = 5};
	struct vdev_clock clock, same;
	unsigned different = 0;

	vdev_clock_init(&clock, &plain, 3, 1000);
	CHECK_EQ(vdev_clock_at(&clock, 1000), 3 * SECOND);
	CHECK_EQ(vdev_clock_at(&clock, 1000 + 7), 3 * SECOND + 7000);
	for (unsigned core = 0; core < 8; core++) {
		uint64_t at;

		vdev_clock_init(&clock, &timing, core, 1000);
		vdev_clock_init(&same, &timing, core, 1000);
		at = vdev_clock_at(&clock, 1000) - core * SECOND;
		CHECK(at >= 4000000 && at <= 5000000);
		CHECK_EQ(vdev_clock_at(&same, 123456789), vdev_clock_at(&clock, 123456789));
		/* A second later it has lost 400 to 500 microseconds. */
		at = vdev_clock_at(&clock, 1000 + 1000000000) - vdev_clock_at(&clock, 1000);
		CHECK(at <= SECOND - 400000000 && at >= SECOND - 500000000);
		different += at != SECOND - 400000000;
	}
	CHECK(different > 4);
}

TEST("vdev clock: device time and host time convert into each other", "[vdev]")
{
	static const int64_t drifts[] = {0, 1, -1, 100000, -100000, 37};

	for (size_t i = 0; i < COUNT(drifts); i++) {
		const struct vdev_timing timing = {.drift_ppm = drifts[i], .seed = i};
		struct vdev_clock clock;

		vdev_clock_init(&clock, &timing, 1, 5000);
		for (uint64_t ps = SECOND; ps < 100000 * SECOND; ps = ps * 3 + 1) {
			uint64_t boot_ps = vdev_clock_to_boot_ps(&clock, ps);
			uint64_t back = vdev_clock_from_boot_ps(&clock, boot_ps);

			test_info("drift %d, %llu", (int)drifts[i], (unsigned long long)ps);
			CHECK(back >= ps && back - ps <= 2);
			/* Who waits so long sees the time. */
			CHECK(vdev_clock_at(&clock, (boot_ps + 999) / 1000) >= ps);
		}
	}
}

TEST("vdev clock: one that counts steps stands still between runs, and never goes back", "[vdev]")
{
	const struct vdev_timing timing = {.steps = true};
	struct vdev_clock clock;

	vdev_clock_init(&clock, &timing, 0, 1000);
	CHECK_EQ(vdev_clock_at(&clock, 999999), 0);
	CHECK_EQ(vdev_clock_go(&clock, 5000000), VDEV_STEP_GAP_PS);
	CHECK_EQ(vdev_clock_at(&clock, 5000003), VDEV_STEP_GAP_PS);
	vdev_clock_let(&clock, VDEV_STEP_GAP_PS + 777);
	CHECK_EQ(vdev_clock_at(&clock, 5000000), VDEV_STEP_GAP_PS);
	CHECK_EQ(vdev_clock_at(&clock, 5000003), VDEV_STEP_GAP_PS + 777); /* not 3000 */
	vdev_clock_stand(&clock, VDEV_STEP_GAP_PS + 777);
	CHECK_EQ(vdev_clock_at(&clock, 99999999), VDEV_STEP_GAP_PS + 777);
	CHECK_EQ(vdev_clock_go(&clock, 100000000), 2 * VDEV_STEP_GAP_PS + 777);
}

TEST("vdev clock: jitter stays in its bounds and depends on seed and place alone", "[vdev]")
{
	struct vdev_timing timing = {.seed = 9, .jitter_ppm = 100000};
	unsigned less = 0, more = 0;

	for (uint32_t i = 0; i < 1000; i++) {
		uint64_t ps = vdev_jitter(&timing, 1, 2, i, 1000000);

		CHECK(ps >= 900000 && ps <= 1100000);
		CHECK_EQ(vdev_jitter(&timing, 1, 2, i, 1000000), ps);
		less += ps < 1000000;
		more += ps > 1000000;
	}
	CHECK(less > 300);
	CHECK(more > 300);
	/* The same on every machine and build. */
	CHECK_EQ(vdev_jitter(&timing, 1, 2, 3, 1000000000), 1023926000);
	timing.jitter_ppm = 0;
	CHECK_EQ(vdev_jitter(&timing, 1, 2, 3, 77), 77);
}

/* ---- checks ------------------------------------------------------------------------------ */

TEST("vdev: an instruction is refused when any operand could leave its binding", "[vdev]")
{
	static uint8_t data[64];
	static struct vdev_launch launch = {
		.header = {.semaphore_count = 2, .ranks = 4},
		.bound_count = 3,
		.bounds = {{.data = data, .size = 64}, {.data = data, .size = 32}, {.size = 0}},
	};
#define ROW(...)                                        \
	{                                               \
		.wait = NONE, .post = NONE, __VA_ARGS__ \
	}
	static const struct {
		struct vdev_instruction instruction;
		int result;
	} rows[] = {
		{ROW(.op = VDEV_OP_NOP, .dtype = 99, .src0 = 77), 0},
		{ROW(.op = VDEV_OP_COPY, .dtype = NRT_DTYPE_FLOAT32, .dst = 1, .count = 8), 0},
		{ROW(.op = VDEV_OP_COPY, .dtype = NRT_DTYPE_FLOAT32, .dst = 1, .count = 9),
			-EINVAL},
		{ROW(.op = VDEV_OP_COPY, .dtype = NRT_DTYPE_FLOAT32, .src0 = 1, .count = 9),
			-EINVAL},
		{ROW(.op = VDEV_OP_COPY, .dtype = NRT_DTYPE_FLOAT32, .dst = 1, .first = 3,
			 .count = 5),
			0},
		{ROW(.op = VDEV_OP_COPY, .dtype = NRT_DTYPE_FLOAT32, .dst = 1, .first = 4,
			 .count = 5),
			-EINVAL},
		{ROW(.op = VDEV_OP_COPY, .dtype = NRT_DTYPE_INT8, .first = UINT64_MAX, .count = 1),
			-EINVAL},
		{ROW(.op = VDEV_OP_COPY, .dtype = NRT_DTYPE_INT8, .first = UINT64_MAX - 3,
			 .count = 7),
			-EINVAL},
		{ROW(.op = VDEV_OP_COPY, .dtype = NRT_DTYPE_FP8_E4, .dst = 1, .count = 32), 0},
		{ROW(.op = VDEV_OP_ADD, .dtype = NRT_DTYPE_FP8_E4, .dst = 1, .count = 1), -EINVAL},
		{ROW(.op = VDEV_OP_ADD, .dtype = NRT_DTYPE_INT8, .src1 = 1, .dst = 1, .count = 32),
			0},
		{ROW(.op = VDEV_OP_ADD, .dtype = NRT_DTYPE_INT8, .src1 = 1, .count = 33), -EINVAL},
		{ROW(.op = VDEV_OP_ADD, .dtype = NRT_DTYPE_INT8, .src1 = VDEV_NO_BINDING,
			 .count = 1),
			-EINVAL},
		{ROW(.op = VDEV_OP_COPY, .dtype = NRT_DTYPE_INT8, .src0 = 3), -EINVAL},
		{ROW(.op = VDEV_OP_COPY, .dtype = NRT_DTYPE_INT8, .src0 = 2), -EINVAL},
		{ROW(.op = VDEV_OP_COPY, .dtype = NRT_DTYPE_UINT64, .count = 1ull << 61), -EINVAL},
		{ROW(.op = VDEV_OP_COPY, .dtype = 0, .count = 1), -EINVAL},
		{ROW(.op = 7, .dtype = NRT_DTYPE_INT8, .count = 1), -EINVAL},
		/* What stands where. */
		{ROW(.unit = VDEV_TOP_SP), 0},
		{ROW(.unit = 6), -EINVAL},
		{ROW(.unit = 7), -EINVAL},
		{ROW(.unit = VDEV_DMA + 15), 0},
		{ROW(.unit = VDEV_UNITS), -EINVAL},
		{ROW(.unit = VDEV_DMA, .op = VDEV_OP_COPY, .dtype = NRT_DTYPE_INT8, .count = 1), 0},
		{ROW(.unit = VDEV_DMA, .op = VDEV_OP_ADD, .dtype = NRT_DTYPE_INT8, .count = 1),
			-EINVAL},
		{ROW(.unit = VDEV_PE, .op = VDEV_OP_BARRIER), -EINVAL},
		{ROW(.unit = VDEV_TOP_SP, .op = VDEV_OP_BARRIER), 0},
		{ROW(.op = VDEV_OP_FAULT, .fault = VDEV_CORE_FAULT_UNRECOVERABLE), 0},
		{ROW(.op = VDEV_OP_FAULT, .fault = VDEV_CORE_FAULT_UNRECOVERABLE + 1), -EINVAL},
		{ROW(.op = VDEV_OP_FAULT), -EINVAL},
		{ROW(.op = VDEV_OP_NOP, .fault = VDEV_CORE_FAULT_ERROR), -EINVAL},
		{ROW(.unit = VDEV_DMA, .op = VDEV_OP_FAULT, .fault = VDEV_CORE_FAULT_ERROR),
			-EINVAL},
		/* Semaphores: two. */
		{{.wait = 1, .post = NONE}, 0},
		{{.wait = 2, .post = NONE}, -EINVAL},
		{{.wait = NONE, .post = 0}, 0},
		{{.wait = NONE, .post = 2}, -EINVAL},
		/* Pieces of four ranks in 64 bytes. */
		{ROW(.unit = VDEV_TOP_SP, .op = VDEV_OP_ALL_GATHER, .dtype = NRT_DTYPE_INT8,
			 .src0 = 1, .dst = 0, .whole = 16, .count = 16),
			0},
		{ROW(.unit = VDEV_TOP_SP, .op = VDEV_OP_ALL_GATHER, .dtype = NRT_DTYPE_INT8,
			 .src0 = 1, .dst = 0, .whole = 16, .first = 8, .count = 8),
			0},
		{ROW(.unit = VDEV_TOP_SP, .op = VDEV_OP_ALL_GATHER, .dtype = NRT_DTYPE_INT8,
			 .src0 = 1, .dst = 0, .whole = 16, .count = 17),
			-EINVAL},
		{ROW(.unit = VDEV_TOP_SP, .op = VDEV_OP_ALL_GATHER, .dtype = NRT_DTYPE_INT8,
			 .src0 = 1, .dst = 0, .whole = 17, .count = 16),
			-EINVAL},
		{ROW(.unit = VDEV_TOP_SP, .op = VDEV_OP_ALL_GATHER, .dtype = NRT_DTYPE_INT8,
			 .src0 = 1, .dst = 0, .whole = UINT64_MAX / 3 + 1, .count = 1),
			-EINVAL},
		{ROW(.unit = VDEV_TOP_SP, .op = VDEV_OP_ALL_REDUCE, .dtype = NRT_DTYPE_FP8_E3,
			 .count = 1),
			-EINVAL},
		{ROW(.unit = VDEV_TOP_SP, .op = VDEV_OP_ALL_REDUCE, .dtype = NRT_DTYPE_BFLOAT16,
			 .dst = 1, .count = 16),
			0},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		test_info("row %zu", i);
		CHECK_EQ(vdev_instruction_check(&rows[i].instruction, &launch), rows[i].result);
	}
	launch.header.ranks = 0;
	CHECK_EQ(vdev_instruction_check(
			 &(struct vdev_instruction)ROW(.unit = VDEV_TOP_SP, .op = VDEV_OP_BARRIER),
			 &launch),
		-EINVAL);
}

/* ---- faults ------------------------------------------------------------------------------ */

TEST("vdev: faults are given by name, core and launch", "[vdev]")
{
	static const char *const bad[] = {"", "hardwar", "hardware:", "hardware:x",
		"hardware:1:", "hardware:1:0", "hardware:*2", "hardware:1:2:3", "hardware:-1",
		"hardware:1:x", "hardware,memory"};
	struct vdev_core_faults faults = {0};

	for (size_t i = 0; i < COUNT(bad); i++) {
		test_info("%s", bad[i]);
		CHECK(!vdev_core_faults_add(&faults, bad[i]));
	}
	CHECK_EQ(vdev_core_faults_of(&faults, 0, 1), VDEV_CORE_FAULT_NONE);
	CHECK(vdev_core_faults_add(&faults, "numerical:*:3"));
	CHECK(vdev_core_faults_add(&faults, "hardware:5"));
	CHECK(vdev_core_faults_add(&faults, "memory:5:2"));
	CHECK_EQ(vdev_core_faults_of(&faults, 4, 3), VDEV_CORE_FAULT_NUMERICAL);
	CHECK_EQ(vdev_core_faults_of(&faults, 4, 2), VDEV_CORE_FAULT_NONE);
	CHECK_EQ(vdev_core_faults_of(&faults, 5, 1), VDEV_CORE_FAULT_HARDWARE);
	CHECK_EQ(vdev_core_faults_of(&faults, 5, 2), VDEV_CORE_FAULT_MEMORY);
	CHECK_EQ(vdev_core_faults_of(&faults, 5, 3), VDEV_CORE_FAULT_HARDWARE);
	CHECK(vdev_core_faults_add(&faults, "timeout"));
	CHECK_EQ(vdev_core_faults_of(&faults, 511, 1), VDEV_CORE_FAULT_TIMEOUT);
	for (unsigned i = 4; i < VDEV_CORE_FAULT_RULES; i++)
		CHECK(vdev_core_faults_add(&faults, "error"));
	CHECK(!vdev_core_faults_add(&faults, "error"));
}
