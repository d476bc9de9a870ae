/* SPDX-License-Identifier: Apache-2.0 */
/* vdev_time_test.c - device time of virtual cores: what the options say, model switches, and that
 * the same seed gives the same timeline. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "nrt/nrt.h"
#include "runtime/base/file.h"
#include "tests/shim/shim.h"
#include "tests/unit/vdev_harness.h"
#include "vmlinux/ioctl_table.h"

#define _run_ _cleanup_(vdev_run_end)
#define _client_ _cleanup_(vdev_client_close)
#define NO_SEM VDEV_NO_SEMAPHORE

static uint64_t read_clock(int fd, unsigned core)
{
	uint64_t addresses[2] = {VDEV_BAR_CLOCK(core), VDEV_BAR_CLOCK(core) + 4}, clock = 0;
	struct neuron_bar_rw read = {
		.address = (uintptr_t)addresses, .data = (uintptr_t)&clock, .count = 2};

	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_BAR_READ, &read), 0);
	return clock;
}

static uint64_t boot_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

TEST("vdev time: clocks have their offset and drift, and runs are paced by them", "[vdev]")
{
	NEED_VDEV();
	static const struct vdev_instruction step = {UNORDERED, .duration_ps = 20000000000ull};
	_run_ struct vdev_run run = {0};
	_cleanup_close_ int fd = -1;
	_client_ struct vdev_client c = {0};
	struct notification start, end;
	uint64_t before, after, first, passed;

	REQUIRE(vdev_run_start(&run, (const char *[]){"--clock-offset", "3600000000000",
					     "--clock-drift", "-100000", NULL}));
	fd = vdev_open(&run, 0, O_RDWR);
	REQUIRE(fd >= 0);
	REQUIRE_EQ(vdev_client_open(&c, &run, fd, 0, 4096), 0);
	REQUIRE_EQ(vdev_client_load(&c, &step, 1, NULL, 0), 0);
	before = boot_ns();
	first = read_clock(fd, 0);
	CHECK(first >= 3600000000000000ull);
	CHECK(first <= 4500000000000000ull + 60000000000000ull);
	REQUIRE(vdev_client_run(&c, 1, &start, &end));
	after = boot_ns();
	CHECK_EQ(end.timestamp_ps - start.timestamp_ps, 20000000000ull);
	/* 20 ms of a clock that is 10 % to 12.5 % slow last 22.2 ms to the host. */
	CHECK(after - before >= 22222222);
	passed = read_clock(fd, 0) - first;
	CHECK(passed <= (boot_ns() - before) * 900);
	CHECK(passed >= 20000000000ull);
}

TEST("vdev time: a core that gets another model says when it switches", "[vdev]")
{
	NEED_VDEV();
	_run_ struct vdev_run run = {0};
	_cleanup_close_ int fd = -1;
	_client_ struct vdev_client c = {0};
	struct notification note[4], start, end;
	uint64_t first_program, second_program;

	REQUIRE(vdev_run_start(&run, (const char *[]){"--switch", "300", NULL}));
	fd = vdev_open(&run, 0, O_RDWR);
	REQUIRE(fd >= 0);
	REQUIRE_EQ(vdev_client_open(&c, &run, fd, 0, 4096), 0);
	first_program = c.program;
	REQUIRE_EQ(vdev_client_load(&c, NULL, 0, NULL, 0), 0);
	REQUIRE(vdev_client_run(&c, 1, &start, &end)); /* no switch: nothing ran before */
	REQUIRE_EQ(vdev_client_bind(&c), 0);
	REQUIRE(vdev_client_run(&c, 2, &start, &end)); /* nor the same one again */
	REQUIRE_EQ(vdev_alloc(fd, 4096, &c.program), 0);
	REQUIRE_EQ(vdev_client_load(&c, NULL, 0, NULL, 0), 0);
	REQUIRE_EQ(vdev_client_bind(&c), 0);
	REQUIRE_EQ(vdev_client_launch(&c, 3), 0);
	for (int i = 0; i < 4; i++)
		REQUIRE(vdev_client_next(&c, &note[i]));
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(note[i].id, 3);
		CHECK_EQ(note[i].subtype, NOTE_CUSTOM);
		CHECK_EQ(note[i].type_phase & 0x1f, NOTE_TYPE_EXPLICIT_SP);
		CHECK_EQ(note[i].hint, NOTE_HINT(i + 1));
		CHECK_EQ(note[i].custom, 0);
	}
	CHECK_EQ(note[1].timestamp_ps - note[0].timestamp_ps, 300000000);
	CHECK_EQ(note[2].subtype, NOTE_START);
	CHECK_EQ(note[2].timestamp_ps, note[1].timestamp_ps);
	CHECK_EQ(note[3].subtype, NOTE_END);
	REQUIRE(vdev_client_run(&c, 4, &start, &end)); /* once */
	/* Bound in between, and not run: still no switch. */
	second_program = c.program;
	c.program = first_program;
	REQUIRE_EQ(vdev_client_bind(&c), 0);
	c.program = second_program;
	REQUIRE_EQ(vdev_client_bind(&c), 0);
	REQUIRE(vdev_client_run(&c, 5, &start, &end));
	/* Released: nothing to switch from. */
	REQUIRE_EQ(vdev_client_release(&c), 0);
	c.program = first_program;
	REQUIRE_EQ(vdev_client_bind(&c), 0);
	REQUIRE(vdev_client_run(&c, 6, &start, &end));
}

/* ---- the same seed ----------------------------------------------------------------------- */

#define CORES 4u
#define LAUNCHES 25u
enum { RUNS_RING, PE_RING, POOL_RING, DMA_RING, EVENT_RING, TOP_SP_RING, CORE_RINGS };

static const struct neuron_notifications_init_v2 kept[CORE_RINGS] = {
	[RUNS_RING] = {.nq_type = VDEV_NQ_TYPE_NOTIFY, .engine_index = 4, .size = 4096},
	[PE_RING] = {.nq_type = VDEV_NQ_TYPE_TRACE, .engine_index = VDEV_PE, .size = 4096},
	[POOL_RING] = {.nq_type = VDEV_NQ_TYPE_TRACE, .engine_index = VDEV_POOL, .size = 4096},
	[DMA_RING] = {.nq_type = VDEV_NQ_TYPE_TRACE_DMA, .engine_index = 15, .size = 4096},
	[EVENT_RING] = {.nq_type = VDEV_NQ_TYPE_EVENT, .engine_index = VDEV_PE, .size = 4096},
	[TOP_SP_RING] = {.nq_dev_type = VDEV_NQ_DEV_TYPE_TOP_SP,
		.nq_type = VDEV_NQ_TYPE_NOTIFY,
		.size = 4096},
};

struct timeline {
	struct notification rings[CORES][CORE_RINGS][256];
};

struct core_work {
	struct vdev_client c;
	unsigned launches;
	bool good;
};

static const struct vdev_instruction busy[] = {
	{.unit = VDEV_PE, .wait = NO_SEM, .post = 0, .post_value = 1, .duration_ps = 70000000},
	{.unit = VDEV_PE,
		.wait = 1,
		.wait_value = 1,
		.post = 0,
		.post_value = 1,
		.duration_ps = 30000000},
	{.unit = VDEV_DMA + 15,
		.wait = NO_SEM,
		.post = 1,
		.post_value = 1,
		.duration_ps = 90000000},
	{.unit = VDEV_POOL, .wait = 0, .wait_value = 2, .post = NO_SEM, .duration_ps = 10000000},
	{.unit = VDEV_TOP_SP,
		.op = VDEV_OP_BARRIER,
		.wait = 0,
		.wait_value = 2,
		.post = NO_SEM,
		.duration_ps = 5000000},
};

static void *launch_all(void *arg)
{
	struct core_work *w = arg;
	struct notification start, end;

	w->good = true;
	for (uint32_t n = 0; n < w->launches && w->good; n++)
		w->good = vdev_client_run(&w->c, n, &start, &end) && end.custom == 0;
	return NULL;
}

/* Runs `busy` on four cores from four threads; they meet at a barrier in each run, or not. */
static bool record(struct timeline *t, const char *const *args, bool together)
{
	_run_ struct vdev_run run = {0};
	struct vdev_notes notes[CORES][CORE_RINGS] = {0};
	struct core_work work[CORES] = {0};
	pthread_t threads[CORES];
	bool good = vdev_run_start(&run, args);
	int fd = vdev_open(&run, 0, O_RDWR);

	for (unsigned c = 0; c < CORES; c++) {
		const struct vdev_program header = {
			.semaphore_count = 2, .rank = c, .ranks = CORES, .group = 5};

		good = good && vdev_client_open(&work[c].c, &run, fd, c, 4096) == 0;
		good = good && vdev_client_load_program(
				       &work[c].c, header, busy, together ? 5 : 4, NULL, 0) == 0;
		for (unsigned i = 0; i < CORE_RINGS; i++) {
			struct neuron_notifications_init_v2 which = kept[i];

			which.nq_dev_id = c;
			good = good && vdev_notes_open(&notes[c][i], &run, fd, 0, &which) == 0;
		}
		work[c].launches = LAUNCHES;
	}
	for (unsigned c = 0; c < CORES; c++)
		pthread_create(&threads[c], NULL, launch_all, &work[c]);
	for (unsigned c = 0; c < CORES; c++) {
		pthread_join(threads[c], NULL);
		good = good && work[c].good;
	}
	for (unsigned c = 0; c < CORES; c++) {
		for (unsigned i = 0; good && i < CORE_RINGS; i++)
			memcpy(t->rings[c][i], notes[c][i].ring, 4096);
		for (unsigned i = 0; i < CORE_RINGS; i++)
			vdev_notes_close(&notes[c][i]);
		vdev_client_close(&work[c].c);
	}
	close(fd);
	return good;
}

/* k-th record of the TopSP's ring in run n, since the start of that run. */
static uint64_t since_start(const struct timeline *t, unsigned core, unsigned n, unsigned k)
{
	return t->rings[core][TOP_SP_RING][2 * n + k].timestamp_ps -
	       t->rings[core][RUNS_RING][2 * n].timestamp_ps;
}

/* All leave the barrier of a run its own duration, 5 us with jitter, after the last one came. */
static void check_barriers(const struct timeline *t)
{
	for (unsigned n = 0; n < LAUNCHES; n++) {
		uint64_t last = 0;

		for (unsigned c = 0; c < CORES; c++)
			if (since_start(t, c, n, 0) > last)
				last = since_start(t, c, n, 0);
		for (unsigned c = 0; c < CORES; c++) {
			uint64_t duration = since_start(t, c, n, 1) - last;

			test_info("run %u, core %u", n, c);
			CHECK(duration >= 4000000 && duration <= 6000000);
		}
	}
}

/* FNV-1a. */
static uint64_t fingerprint(const struct timeline *t)
{
	const uint8_t *bytes = (const void *)t;
	uint64_t hash = 0xcbf29ce484222325u;

	for (size_t i = 0; i < sizeof(*t); i++)
		hash = (hash ^ bytes[i]) * 0x100000001b3u;
	return hash;
}

TEST("vdev time: where time counts steps the same seed gives the same rings, byte for byte",
	"[vdev]")
{
	NEED_VDEV();
	static const char *const args[] = {
		"--device-time", "steps", "--seed", "42", "--jitter", "200000", NULL};
	static const char *const other[] = {
		"--device-time", "steps", "--seed", "43", "--jitter", "200000", NULL};
	struct timeline *t = calloc(3, sizeof(*t));

	REQUIRE(t);
	CHECK(record(&t[0], args, true));
	CHECK(record(&t[1], args, true));
	CHECK(record(&t[2], other, true));
	for (unsigned c = 0; c < CORES; c++) {
		for (unsigned i = 0; i < CORE_RINGS; i++) {
			test_info("core %u, ring %u", c, i);
			CHECK(t[0].rings[c][i][0].timestamp_ps != 0);
			CHECK(memcmp(t[0].rings[c][i], t[1].rings[c][i], 4096) == 0);
			CHECK(memcmp(t[0].rings[c][i], t[2].rings[c][i], 4096) != 0);
		}
		/* A run begins one gap after the last one. */
		for (unsigned n = 1; n < LAUNCHES; n++)
			CHECK_EQ(t[0].rings[c][RUNS_RING][2 * n].timestamp_ps -
					 t[0].rings[c][RUNS_RING][2 * n - 1].timestamp_ps,
				1000000);
	}
	/* Of any build, on any machine. */
	CHECK_EQ(fingerprint(&t[0]), 3097154285040883208u);
	check_barriers(&t[0]);
	free(t);
}

TEST("vdev time: in real time the same seed gives the same stamps since START", "[vdev]")
{
	NEED_VDEV();
	static const char *const args[] = {"--seed", "7", "--jitter", "300000", NULL};
	/* Records of a run in each ring. */
	static const unsigned per_run[CORE_RINGS] = {2, 4, 2, 2, 2, 0};
	struct timeline *t = calloc(2, sizeof(*t));
	unsigned compared = 0, varied = 0;

	REQUIRE(t);
	CHECK(record(&t[0], args, false));
	CHECK(record(&t[1], args, false));
	for (unsigned c = 0; c < CORES; c++) {
		for (unsigned i = 0; i < CORE_RINGS; i++) {
			for (unsigned k = 0; k < per_run[i] * LAUNCHES; k++) {
				unsigned n = k / per_run[i];
				uint64_t since[2];

				for (int r = 0; r < 2; r++)
					since[r] = t[r].rings[c][i][k].timestamp_ps -
						   t[r].rings[c][RUNS_RING][2 * n].timestamp_ps;
				compared++;
				CHECK_EQ(since[0], since[1]);
				varied += i == PE_RING && k % 4 == 1 && since[0] != 70000000;
			}
		}
	}
	CHECK_EQ(compared, CORES * LAUNCHES * 12);
	CHECK(varied > CORES * LAUNCHES / 2);
	free(t);
}
