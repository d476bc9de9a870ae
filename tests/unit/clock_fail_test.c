/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock_fail_test.c - a clock that cannot be read: nothing starts, and the clock is named.
 *
 * The runner's own clock_gettime stands before the C library's and refuses one clock when it is told to, or shows
 * another time of day.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/collect/capture.h"
#include "nrt/nrt.h"
#include "nrt/nrt_sys_trace.h"
#include "runtime/base/clock.h"
#include "tests/shim/shim.h"
#include "tests/unit/scratch.h"

static _Atomic int refused = -1;

static _Atomic int64_t shift_ns; /* of CLOCK_REALTIME */

/* The system call costs more than the C library's way, and works at any moment of the program's life. */
int clock_gettime(clockid_t id, struct timespec *ts)
{
	int64_t shift;
	int rc;

	if (id == atomic_load_explicit(&refused, memory_order_relaxed)) {
		errno = EINVAL;
		return -1;
	}
	rc = (int)syscall(SYS_clock_gettime, id, ts);
	shift = id == CLOCK_REALTIME ? atomic_load(&shift_ns) : 0;
	if (rc == 0 && shift) {
		shift += ts->tv_sec * 1000000000 + ts->tv_nsec;
		*ts = (struct timespec){shift / 1000000000, shift % 1000000000};
	}
	return rc;
}

static const struct {
	clockid_t id;
	const char *name;
} clocks[] = {
	{CLOCK_BOOTTIME, "CLOCK_BOOTTIME"},
	{CLOCK_REALTIME, "CLOCK_REALTIME"},
	{CLOCK_MONOTONIC, "CLOCK_MONOTONIC"},
	{CLOCK_MONOTONIC_RAW, "CLOCK_MONOTONIC_RAW"},
};

#define CLOCKS (sizeof(clocks) / sizeof(*clocks))

TEST("clock: the check passes when all can be read and names the one that cannot", "[base]")
{
	const char *name = NULL;

	CHECK_EQ(clock_check(&name), 0);
	CHECK(name == NULL);
	for (size_t i = 0; i < CLOCKS; i++) {
		refused = clocks[i].id;
		int rc = clock_check(&name);
		refused = -1;
		CHECK_EQ(rc, -EINVAL);
		CHECK_STR(name, clocks[i].name);
	}
}

TEST("clock: a recording does not begin without its clocks, nothing is run and nothing is left",
	"[record]")
{
	for (size_t i = 0; i < CLOCKS; i++) {
		struct scratch dir;
		REQUIRE(scratch_make(&dir));
		struct scratch_path out = scratch_path(&dir, "out"),
				    ran = scratch_path(&dir, "ran");
		struct capture_options o = {.out_dir = out.s};
		struct capture_result r = {0};
		char *const argv[] = {"/usr/bin/touch", ran.s, NULL};

		refused = clocks[i].id;
		int rc = capture_run(&o, argv, &r);
		refused = -1;
		test_info("%s: %s", clocks[i].name, r.why);
		CHECK_EQ(rc, -EINVAL);
		CHECK_EQ(r.stage, CAPTURE_CLOCKS);
		CHECK(strstr(r.why, clocks[i].name) != NULL);
		CHECK(access(out.s, F_OK) < 0);
		CHECK(access(ran.s, F_OK) < 0);
		capture_result_free(&r);
		scratch_remove(&dir);
	}
}

/* nrt_init in a child of its own; its status, and what it said. */
static int init_without(clockid_t id, char *said, size_t size)
{
	int fds[2], status = -1;
	ssize_t n, used = 0;
	pid_t pid;

	if (pipe(fds) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		dup2(fds[1], 1);
		dup2(fds[1], 2);
		close(fds[0]);
		close(fds[1]);
		unsetenv("NEURON_RT_LOG_LEVEL");
		refused = id;
		NRT_STATUS s = nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "");
		refused = -1;
		_exit((int)s);
	}
	close(fds[1]);
	while ((n = read(fds[0], said + used, size - 1 - (size_t)used)) > 0)
		used += n;
	said[used] = 0;
	close(fds[0]);
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST("clock: nrt_init fails without its clocks and names the one", "[nrt]")
{
	for (size_t i = 0; i < CLOCKS; i++) {
		char said[4096];

		CHECK_EQ(init_without(clocks[i].id, said, sizeof(said)), NRT_FAILURE);
		test_info("%s: %s", clocks[i].name, said);
		CHECK(strstr(said, clocks[i].name) != NULL);
		CHECK(strstr(said, "status 1 in nrt_init(), step 'clocks'\n") != NULL);
	}
}

/* ---- a clock that is set ------------------------------------------------------------------- */

#define HOUR_NS 3600000000000

/* Writes into a tensor and fetches: the first and the last time of what came.  False: something failed. */
static bool capture_some(nrt_tensor_t *t, int64_t *first, int64_t *last)
{
	char byte = 1, *text = NULL, *at;
	size_t len;
	bool any = false;

	if (nrt_tensor_write(t, &byte, 0, 1) || nrt_sys_trace_fetch_events(&text, &len, NULL))
		return false;
	for (at = text; (at = strstr(at, "\"timestamp_ns\":")) != NULL; any = true) {
		at += strlen("\"timestamp_ns\":");
		*last = strtoll(at, NULL, 10);
		if (!any)
			*first = *last;
	}
	nrt_sys_trace_buffer_free(text);
	return any;
}

static int set_back(void *arg)
{
	int64_t first, last, later, unused, now;
	nrt_sys_trace_config_t *config = NULL;
	nrt_tensor_t *t = NULL;
	struct timespec ts;

	(void)arg;
	setenv("NEURON_RT_FAKE_INSTANCE_TYPE", "trn2.3xlarge", 1);
	if (nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "") ||
		nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_HOST, 0, 64, "t", &t) ||
		nrt_sys_trace_config_allocate(&config) || nrt_sys_trace_start(config))
		return 1;
	if (!capture_some(t, &first, &last))
		return 2;
	atomic_store(&shift_ns, -HOUR_NS);
	if (!capture_some(t, &later, &unused))
		return 3;
	if (first > last || last > later || later - last > HOUR_NS / 2)
		return 4;
	/* The next capture goes by what the clock says at its start. */
	if (nrt_sys_trace_stop() || nrt_sys_trace_start(config) ||
		!capture_some(t, &first, &unused))
		return 5;
	clock_gettime(CLOCK_REALTIME, &ts);
	now = ts.tv_sec * (int64_t)1000000000 + ts.tv_nsec;
	return first <= now && now - first < HOUR_NS / 2 ? 0 : 6;
}

TEST("sys_trace: a clock that is set moves no event of a capture that runs", "[nrt][sys_trace]")
{
	CHECK_EQ(scratch_child(set_back, NULL), 0);
}
