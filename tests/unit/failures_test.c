/* SPDX-License-Identifier: Apache-2.0 */
/*
 * failures_test.c - what a recording says of an nrt_init or a command that failed, and of the driver's errors
 * before it.
 */
#include "runtime/record/failures.h"

#include <errno.h>
#include <stdio.h>

#include "proto/neuron_trace.pb-c.h"
#include "runtime/record/rec_cut.h"
#include "tests/shim/shim.h"
#include "tests/unit/recording_fixture.h"

#define US 1000ull
#define MS 1000000ull
#define EXIT_1 (1 << 8)

static void fx_fails(struct fixture *fx, uint32_t pid, uint32_t request, int result, uint64_t end)
{
	const struct fx_call c = {.tgid = pid,
		.tid = pid,
		.request = request,
		.from = end - 10 * US,
		.to = end,
		.result = result};

	fx_call(fx, &c);
}

static void fx_failure(
	struct fixture *fx, uint32_t pid, uint32_t status, const char *comm, uint64_t at)
{
	struct rec_failure f = {.pid = pid, .status = status};

	memcpy(f.comm, comm, strnlen(comm, sizeof(f.comm)));
	rec_writer_frame_at(
		fx->w, REC_FAILURE, REC_SOURCE_RECORDER, FX_BOOT + at, &f, sizeof(f), NULL, 0);
	rec_writer_flush(fx->w);
}

static void fx_ends(struct fixture *fx, int wait_status, uint64_t at)
{
	const struct rec_end end = {.wait_status = wait_status};

	rec_writer_frame_at(
		fx->w, REC_END, REC_SOURCE_RECORDER, FX_BOOT + at, &end, sizeof(end), NULL, 0);
	rec_writer_flush(fx->w);
}

static bool said_nothing(struct fixture *fx)
{
	return fx_merge(fx, "out", MERGE_KERNEL_HINT) == 0 && fx->result.failure_count == 0;
}

static const struct failures_text *only(struct fixture *fx)
{
	static const struct failures_text none;

	if (fx_merge(fx, "out", MERGE_KERNEL_HINT) != 0 || fx->result.failure_count != 1)
		return &none;
	return &fx->result.failures[0];
}

TEST("failures: an nrt_init that failed is told with the driver's last errors before it", "[merge]")
{
	struct fixture fx;
	const struct failures_text *t;

	REQUIRE(fx_open(&fx));
	fx_fails(&fx, FX_PID, NEURON_IOCTL_NC_RESET, -EINVAL, 1 * MS);
	fx_fails(&fx, FX_PID, NEURON_IOCTL_DEVICE_INFO, -EIO, 2 * MS);
	fx_fails(&fx, 99, NEURON_IOCTL_BAR_READ, -EPERM, 2 * MS); /* of somebody else */
	fx_fails(&fx, FX_PID, NEURON_IOCTL_DEVICE_INFO, 0, 3 * MS);
	fx_failure(&fx, FX_PID, 2, "work", 3 * MS + 500 * US);
	fx_fails(&fx, FX_PID, NEURON_IOCTL_BAR_READ, -EPERM, 4 * MS); /* later */
	fx_ends(&fx, 0, 5 * MS);
	t = only(&fx);
	CHECK_STR(t->what, "nrt_init of process 4711 (work): NRT_INVALID (2)");
	REQUIRE(t->error_count == 2);
	CHECK_STR(t->errors[0],
		"NC_RESET on neuron1: EINVAL, 2.500 ms before the recorder heard of it");
	CHECK_STR(t->errors[1],
		"DEVICE_INFO on neuron1: EIO, 1.500 ms before the recorder heard of it");
	fx_free(&fx);
}

TEST("failures: the last five errors are kept, the oldest first", "[merge]")
{
	struct fixture fx;
	const struct failures_text *t;
	char text[128];

	REQUIRE(fx_open(&fx));
	for (uint64_t i = 1; i <= 8; i++)
		fx_fails(&fx, FX_PID, NEURON_IOCTL_DEVICE_INFO, -EIO, i * MS);
	fx_failure(&fx, FX_PID, 4, "work", 10 * MS);
	t = only(&fx);
	REQUIRE(t->error_count == FAILURES_ERRORS);
	for (unsigned i = 0; i < FAILURES_ERRORS; i++) {
		snprintf(text, sizeof(text),
			"DEVICE_INFO on neuron1: EIO, %u.000 ms before the recorder heard of it",
			6 - i);
		CHECK_STR(t->errors[i], text);
	}
	fx_free(&fx);
}

TEST("failures: calls that signals interrupted are no errors; what has no name has its number",
	"[merge]")
{
	struct fixture fx;
	const struct failures_text *t;

	REQUIRE(fx_open(&fx));
	fx_fails(&fx, FX_PID, NEURON_IOCTL_DEVICE_INFO, -EINTR, 1 * MS);
	fx_fails(&fx, FX_PID, NEURON_IOCTL_DEVICE_INFO, -512, 1 * MS);
	fx_fails(&fx, FX_PID, NEURON_IOCTL_DEVICE_INFO, 7, 1 * MS);
	fx_fails(&fx, FX_PID, 0xdeadbeef, -499, 2 * MS);
	fx_failure(&fx, FX_PID, 77, "\033[31m\xff", 2 * MS);
	t = only(&fx);
	CHECK_STR(t->what, "nrt_init of process 4711 (\\x1b[31m\\xff): UNKNOWN (77)");
	REQUIRE(t->error_count == 1);
	CHECK_STR(t->errors[0], "request 0xdeadbeef on neuron1: error 499, 0.000 ms before the "
				"recorder heard of it");
	fx_free(&fx);
}

TEST("failures: one of nobody, with no failure, or told by a source that is none is invalid",
	"[merge]")
{
	const struct rec_failure told = {.pid = FX_PID, .status = 2};
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	fx_failure(&fx, 0, 2, "work", 1 * MS);
	fx_failure(&fx, FX_PID, 0, "work", 1 * MS);
	fx_frame(&fx, REC_FAILURE, FX_SOURCE, &told, sizeof(told));
	CHECK(said_nothing(&fx));
	CHECK_EQ(fx_ledger(&fx, REC_C_MERGE_INVALID), 3);
	fx_free(&fx);
}

TEST("failures: of several nrt_init of a process the last is told, and how many they were",
	"[merge]")
{
	struct fixture fx;
	const struct failures_text *t;

	REQUIRE(fx_open(&fx));
	fx_fails(&fx, FX_PID, NEURON_IOCTL_DEVICE_INFO, -EIO, 1 * MS);
	fx_failure(&fx, FX_PID, 1, "work", 2 * MS);
	fx_failure(&fx, FX_PID, 6, "work", 3 * MS);
	t = only(&fx);
	CHECK_STR(t->what, "nrt_init of process 4711 (work), 2 times, the last: NRT_HW_ERROR (6)");
	fx_free(&fx);
}

TEST("failures: when an nrt_init came further than one that failed, that is said", "[merge]")
{
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	fx_failure(&fx, FX_PID, 2, "work", 2 * MS);
	fx_process(&fx, FX_SOURCE + 1, 99); /* somebody else */
	fx_process(&fx, FX_SOURCE + 2, FX_PID);
	CHECK_STR(only(&fx)->what,
		"nrt_init of process 4711 (work): NRT_INVALID (2); a later one succeeded");
	fx_free(&fx);
	REQUIRE(fx_open(&fx));
	fx_failure(&fx, FX_PID, 2, "work", 2 * MS);
	fx_process(&fx, FX_SOURCE + 1, 99);
	fx_process(&fx, FX_SOURCE + 2, FX_PID);
	fx_failure(&fx, FX_PID, 2, "work", 3 * MS);
	CHECK_STR(only(&fx)->what,
		"nrt_init of process 4711 (work), 2 times, the last: NRT_INVALID (2)");
	fx_free(&fx);
}

static const struct {
	int wait_status;
	const char *what; /* NULL: nothing is said */
} ends[] = {
	{0, NULL},
	{-1, NULL},
	{EXIT_1, "the command (exit status 1); process 4711 had these errors of the driver last"},
	{9, "the command (signal 9); process 4711 had these errors of the driver last"},
};

TEST("failures: a command that failed is told with the errors of its processes", "[merge]")
{
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		struct fixture fx;

		test_info("wait status %d", ends[i].wait_status);
		REQUIRE(fx_open(&fx));
		fx_fails(&fx, FX_PID, NEURON_IOCTL_DEVICE_INFO, -EIO, 1 * MS);
		fx_fails(&fx, 99, NEURON_IOCTL_DEVICE_INFO, 0, 1 * MS); /* it had none */
		fx_ends(&fx, ends[i].wait_status, 3 * MS);
		if (ends[i].what) {
			const struct failures_text *t = only(&fx);

			CHECK_STR(t->what, ends[i].what);
			CHECK_STR(t->errors[0], "DEVICE_INFO on neuron1: EIO, 2.000 ms before the "
						"end of the recording");
		} else {
			CHECK(said_nothing(&fx));
		}
		fx_free(&fx);
	}
}

TEST("failures: errors that an nrt_init told are not told again for the command", "[merge]")
{
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	fx_fails(&fx, FX_PID, NEURON_IOCTL_DEVICE_INFO, -EIO, 1 * MS);
	fx_failure(&fx, FX_PID, 2, "work", 2 * MS);
	fx_ends(&fx, EXIT_1, 3 * MS);
	CHECK(strncmp(only(&fx)->what, "nrt_init", 8) == 0);
	fx_free(&fx);

	REQUIRE(fx_open(&fx));
	fx_fails(&fx, FX_PID, NEURON_IOCTL_NC_RESET, -EINVAL, 1 * MS);
	fx_failure(&fx, FX_PID, 2, "work", 2 * MS);
	fx_fails(&fx, FX_PID, NEURON_IOCTL_DEVICE_INFO, -EIO, 3 * MS);
	fx_ends(&fx, EXIT_1, 4 * MS);
	REQUIRE(fx_merge(&fx, "out", MERGE_KERNEL_HINT) == 0);
	REQUIRE(fx.result.failure_count == 2);
	CHECK_EQ(fx.result.failures[0].error_count, 1);
	REQUIRE(fx.result.failures[1].error_count == 1);
	CHECK(strstr(fx.result.failures[1].errors[0], "DEVICE_INFO on neuron1: EIO") != NULL);
	fx_free(&fx);
}

/* ---- files -------------------------------------------------------------------------------- */

static Ntff__NtraceInfo *info_of(const struct fixture *fx, const char *pid)
{
	_cleanup_free_ char *data = NULL;
	char path[64];
	size_t size;

	snprintf(path, sizeof(path), "out/i-0123_pid_%s/trace_info.pb", pid);
	return file_read(fx_path(fx, path).s, 1u << 20, &data, &size) < 0
		       ? NULL
		       : ntff__ntrace_info__unpack(NULL, size, (const uint8_t *)data);
}

TEST("failures: each process's trace_info.pb has its own, also of one that did nothing else",
	"[merge]")
{
	struct fixture fx;
	Ntff__NtraceInfo *info;

	REQUIRE(fx_open(&fx));
	fx_fails(&fx, FX_PID, NEURON_IOCTL_DEVICE_INFO, -EIO, 1 * MS);
	fx_failure(&fx, FX_PID, 2, "work", 2 * MS);
	fx_failure(&fx, 99, 13, "other", 2 * MS);
	fx_ends(&fx, 0, 3 * MS);
	REQUIRE(fx_merge(&fx, "out", MERGE_KERNEL_HINT) == 0);
	CHECK_EQ(fx.result.output_count, 2);
	CHECK_EQ(fx.result.failure_count, 2);
	info = info_of(&fx, "4711");
	REQUIRE(info && info->n_failures == 1);
	CHECK_STR(info->failures[0]->what, "nrt_init of process 4711 (work): NRT_INVALID (2)");
	REQUIRE(info->failures[0]->n_driver_errors == 1);
	CHECK_STR(info->failures[0]->driver_errors[0],
		"DEVICE_INFO on neuron1: EIO, 1.000 ms before the recorder heard of it");
	ntff__ntrace_info__free_unpacked(info, NULL);
	info = info_of(&fx, "99");
	REQUIRE(info && info->n_failures == 1);
	CHECK_STR(
		info->failures[0]->what, "nrt_init of process 99 (other): NRT_UNINITIALIZED (13)");
	CHECK_EQ(info->failures[0]->n_driver_errors, 0);
	ntff__ntrace_info__free_unpacked(info, NULL);
	fx_free(&fx);
}

TEST("failures: a frame that is too short is invalid, one that is longer is read", "[merge]")
{
	const char longer[sizeof(struct rec_failure) + 8] = {[0] = 7, [4] = 2, [8] = 'x'};
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	fx_frame(&fx, REC_FAILURE, REC_SOURCE_RECORDER, "short", 5);
	fx_frame(&fx, REC_FAILURE, REC_SOURCE_RECORDER, longer, sizeof(longer));
	CHECK_STR(only(&fx)->what, "nrt_init of process 7 (x): NRT_INVALID (2)");
	CHECK_EQ(fx_ledger(&fx, REC_C_MERGE_INVALID), 1);
	fx_free(&fx);
}

TEST("failures: a cut keeps those of the processes that it keeps", "[merge]")
{
	const struct rec_cut_options options = {.pids = {99}, .pid_count = 1};
	struct rec_cut_result result;
	struct fixture fx;
	struct merge_options o = {0};

	REQUIRE(fx_open(&fx));
	fx_failure(&fx, FX_PID, 2, "work", 2 * MS);
	fx_failure(&fx, 99, 13, "other", 2 * MS);
	fx_ends(&fx, 0, 3 * MS);
	REQUIRE(fx_close_writer(&fx) == 0);
	CHECK_EQ(rec_cut(fx_path(&fx, REC_DIR).s, fx_path(&fx, "cut").s, &options, &result), 0);
	CHECK_EQ(merge_recording(
			 fx_path(&fx, "cut").s, fx_path(&fx, "out").s, &o, &fx.result, &fx.error),
		0);
	REQUIRE(fx.result.failure_count == 1);
	CHECK_STR(fx.result.failures[0].what,
		"nrt_init of process 99 (other): NRT_UNINITIALIZED (13)");
	fx_free(&fx);
}
