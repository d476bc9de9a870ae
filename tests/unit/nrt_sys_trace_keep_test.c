/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_sys_trace_keep_test.c - how much a capture keeps, where its events went, and what of the process it leaves
 * alone.
 */
#include <dirent.h>
#include <signal.h>
#include <sys/mman.h>

#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/trace/ring.h"
#include "tests/unit/fake_agent.h"
#include "tests/unit/sys_trace_capture.h"

#define PATIENCE_NS 120000000000ull

/* ---- how much ------------------------------------------------------------------------------ */

static void only_writes(nrt_sys_trace_config_t *config)
{
	lib.nrt_sys_trace_config_set_capture_enabled_for_event_type(config, "software", false);
	lib.nrt_sys_trace_config_set_capture_enabled_for_event_type(config, "hardware", false);
	lib.nrt_sys_trace_config_set_capture_enabled_for_event_type(
		config, "nrt_tensor_write", true);
}

static void keep_200000(nrt_sys_trace_config_t *config)
{
	only_writes(config);
	lib.nrt_sys_trace_config_set_max_events_per_nc(config, 200000);
}

static void keep_4000000(nrt_sys_trace_config_t *config)
{
	only_writes(config);
	lib.nrt_sys_trace_config_set_max_events_per_nc(config, 4000000);
}

/* Writes into memory of the host, which no driver sees: two events each, and quickly. */
static int write_many(nrt_tensor_t *t, uint64_t writes)
{
	char byte = 1;

	for (uint64_t i = 0; i < writes; i++)
		WANT_STATUS(lib.nrt_tensor_write(t, &byte, 0, 1), 0);
	return 0;
}

/* How many events one fetch gives, at most limit (0: all); -1: it failed. */
static int64_t fetch_count(uint64_t limit)
{
	nrt_sys_trace_fetch_options_t *options = NULL;
	static const char event[] = "{\"event_type\"";
	char *text = NULL;
	size_t length = 0;
	int64_t count = 0;

	if (lib.nrt_sys_trace_fetch_options_allocate(&options))
		return -1;
	lib.nrt_sys_trace_fetch_options_set_max_events_per_nc(options, limit);
	if (lib.nrt_sys_trace_fetch_events(&text, &length, options))
		count = -1;
	lib.nrt_sys_trace_fetch_options_free(options);
	/* Not strstr: the address sanitizer's looks at all of the text each time. */
	for (char *at = text, *end = text + length;
		count >= 0 && (at = memchr(at, '{', (size_t)(end - at))) != NULL; at++)
		count += !strncmp(at, event, sizeof(event) - 1);
	lib.nrt_sys_trace_buffer_free(text);
	return count;
}

/* All that is there, in portions; -1: a portion failed. */
static int64_t fetch_portions(uint64_t limit)
{
	int64_t n, sum = 0;

	while ((n = fetch_count(limit)) > 0)
		sum += n;
	return n < 0 ? n : sum;
}

/* A ring grows while events come, so the first attempts may lose some: what is kept in the end counts. */
static int keeps(nrt_tensor_t *t, uint64_t events, uint64_t portion)
{
	uint64_t end = clock_boot().ns + PATIENCE_NS;
	int64_t got;

	do {
		WANT(write_many(t, events / 2 + 1000) == 0);
		got = portion ? fetch_portions(portion) : fetch_count(0);
		WANT(got >= 0);
	} while ((uint64_t)got < events && clock_boot().ns < end);
	WANT((uint64_t)got >= events);
	return 0;
}

static int host_tensor(const struct place *p, nrt_tensor_t **ret)
{
	WANT(enter(p) == 0);
	WANT_STATUS(init(), 0);
	WANT_STATUS(lib.nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_HOST, 0, 64, "host", ret), 0);
	return 0;
}

static int two_hundred_thousand(void *arg)
{
	nrt_tensor_t *t = NULL;

	WANT(host_tensor(arg, &t) == 0);
	WANT_STATUS(start(keep_200000), 0);
	WANT(keeps(t, 200000, 0) == 0);
	/* And no more than that. */
	WANT(write_many(t, 150000) == 0);
	WANT(fetch_count(0) == 200000);
	WANT_STATUS(lib.nrt_sys_trace_stop(), 0);
	return 0;
}

DEVICE_TEST("sys_trace: a capture keeps as many events as it was told, not what others are content "
	    "with",
	two_hundred_thousand, two_cores)

/* ThreadSanitizer takes minutes and gigabytes for as many. */
#ifdef __SANITIZE_THREAD__
#define MILLION 100000u
#else
#define MILLION 1000000u
#endif

static int four_million(void *arg)
{
	nrt_tensor_t *t = NULL;

	WANT(host_tensor(arg, &t) == 0);
	WANT_STATUS(start(keep_4000000), 0);
	/* More than one look at the rings takes, in one fetch. */
	WANT(keeps(t, MILLION * 6 / 5, 0) == 0);
	WANT(keeps(t, 4 * MILLION, MILLION / 2) == 0);
	WANT_STATUS(lib.nrt_sys_trace_stop(), 0);
	return 0;
}

TEST("sys_trace: four million events are kept and fetched", "[nrt][sys_trace][vdev][slow]")
{
	if (device_lacks())
		SKIP(device_lacks());
	with_device(four_million, two_cores);
}

/* ---- where they went ----------------------------------------------------------------------- */

static void keep_least(nrt_sys_trace_config_t *config)
{
	only_writes(config);
	lib.nrt_sys_trace_config_set_max_events_per_nc(config, 1);
}

static int accounts(void *arg)
{
	const struct place *p = arg;
	nrt_tensor_t *t = NULL;
	unsigned n[5] = {0};
	char *all, *at;

	setenv("NEURON_RT_LOG_LEVEL", "INFO", 1);
	WANT(host_tensor(p, &t) == 0);
	WANT(dup2(2, 1) == 1); /* messages go there */
	WANT_STATUS(start(keep_least), 0);
	WANT(write_many(t, 500) == 0); /* 1000 events */
	WANT(fetch_count(300) == 300); /* 700 wait */
	WANT(write_many(t, 400) == 0);
	WANT(fetch_count(100) == 100); /* of 1500: 476 are beyond the limit, 924 wait */
	WANT(write_many(t, 10) == 0);  /* 20 in the ring */
	WANT_STATUS(lib.nrt_sys_trace_stop(), 0);
	WANT(said(p, "Capture ends: 400 events fetched, 944 not fetched, 476 beyond the limit, 0 "
		     "overwritten, 0 dropped"));
	/* The next one counts its own. */
	WANT_STATUS(start(keep_least), 0);
	WANT(write_many(t, 3000) == 0);
	WANT_STATUS(lib.nrt_sys_trace_stop(), 0);
	/* How many are kept depends on whether the thread was given a lane meanwhile. */
	all = program_text(p->log.s);
	WANT(all && (at = strstr(all, "Capture ends: ")) != NULL);
	WANT(sscanf(at,
		     "Capture ends: %u events fetched, %u not fetched, %u beyond the limit, %u "
		     "overwritten, %u dropped",
		     &n[0], &n[1], &n[2], &n[3], &n[4]) == 5);
	WANT(n[0] == 0 && n[1] >= 1024 && n[4] == 0);
	WANT(n[1] + n[2] + n[3] == 6000);
	free(all);
	return 0;
}

DEVICE_TEST(
	"sys_trace: the end of a capture says where all of its events went", accounts, two_cores)

/* ---- the process --------------------------------------------------------------------------- */

static int worker_of_another_life(void *arg)
{
	json_t *events;
	struct job j;

	WANT(begin(arg, NULL) == 0);
	WANT_STATUS(lib.nrt_build_global_comm(1, 0, 1), 0);
	lib.nrt_close();
	WANT_STATUS(init(), 0);
	WANT_STATUS(start(NULL), 0);
	WANT(job_open(&j, ADD_MODEL, 1) == 0);
	events = fetch();
	WANT(json_array_size(events) > 0);
	for (size_t i = 0; i < json_array_size(events); i++)
		WANT(number(json_array_get(events, i), "worker_gid") == -1);
	json_decref(events);
	return 0;
}

DEVICE_TEST("sys_trace: a worker's number does not outlive nrt_close", worker_of_another_life,
	two_cores)

/* The signals that a thread blocks, as the kernel shows them. */
static uint64_t blocked_in(const char *tid)
{
	char path[300], line[256];
	uint64_t mask = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%s/status", tid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "SigBlk:", 7))
			mask = strtoull(line + 7, NULL, 16);
	if (f)
		fclose(f);
	return mask;
}

static int threads_of_ours(void *arg)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGALRM, SIGPROF, SIGCHLD};
	char self[32];
	int others = 0;
	DIR *dir;

	WANT(begin(arg, NULL) == 0);
	snprintf(self, sizeof(self), "%d", getpid());
	dir = opendir("/proc/self/task");
	WANT(dir != NULL);
	for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
		if (e->d_name[0] == '.' || !strcmp(e->d_name, self))
			continue;
		others++;
		for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
			WANT(blocked_in(e->d_name) >> (signals[i] - 1) & 1);
	}
	closedir(dir);
	WANT(others > 0);
	return 0;
}

DEVICE_TEST("sys_trace: no handler of the program runs in a thread of the library", threads_of_ours,
	two_cores)

/* ---- the program's descriptors -------------------------------------------------------------- */

/* The next descriptor from `from` on that means this file, -1 = none. */
static int descriptor_of(const char *name, int from)
{
	char path[64], target[128];

	for (int fd = from; fd < 1100; fd++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		ssize_t n = readlink(path, target, sizeof(target) - 1);

		target[n > 0 ? n : 0] = '\0';
		if (strstr(target, name))
			return fd;
	}
	return -1;
}

/* The program takes all numbers of the trace's file for a large one of its own; a ring appears after that. */
static int taken_descriptors(void *arg)
{
	char *text = NULL;
	size_t length;
	int theirs, numbers[8], count = 0;
	json_t *events;
	struct job j, k;

	WANT(begin(arg, NULL) == 0);
	WANT(job_open(&j, ADD_MODEL, 0) == 0);
	events = fetch();
	WANT(strict(events) == 0);
	json_decref(events);
	WANT(job_open(&k, ADD_MODEL, 1) == 0); /* a ring that no fetch has seen */
	theirs = memfd_create("theirs", MFD_CLOEXEC);
	WANT(theirs >= 0 && ftruncate(theirs, 1 << 30) == 0);
	for (int fd = descriptor_of(CTL_NAME, 3); fd >= 0; fd = descriptor_of(CTL_NAME, fd + 1)) {
		WANT(count < 8 && fd >= 200); /* the low ones are the program's */
		WANT(dup2(theirs, fd) == fd);
		numbers[count++] = fd;
	}
	WANT(count == 2);
	WANT_STATUS(lib.nrt_sys_trace_fetch_events(&text, &length, NULL), NRT_FAILURE);
	WANT(text == NULL && said(arg, "the program has closed the descriptor"));
	WANT_STATUS(lib.nrt_sys_trace_stop(), 0);
	for (int i = 0; i < count; i++)
		WANT(descriptor_of("theirs", numbers[i]) == numbers[i]);
	lib.nrt_close();
	for (int i = 0; i < count; i++)
		WANT(descriptor_of("theirs", numbers[i]) == numbers[i]);
	return 0;
}

DEVICE_TEST("sys_trace: descriptors that the program takes for its own are neither read nor closed",
	taken_descriptors, two_cores)

/* ---- beside others ------------------------------------------------------------------------- */

static void only_allocations(nrt_sys_trace_config_t *config)
{
	only_writes(config);
	lib.nrt_sys_trace_config_set_capture_enabled_for_event_type(
		config, "nrt_tensor_write", false);
	lib.nrt_sys_trace_config_set_capture_enabled_for_event_type(
		config, "nrt_tensor_allocate", true);
	lib.nrt_sys_trace_config_set_max_events_per_nc(config, 1024);
}

/* How often the library's own threads have gone to sleep: each time they have done what there was. */
static unsigned long sleeps_of_others(void)
{
	DIR *dir = opendir("/proc/self/task");
	unsigned long sum = 0;

	for (struct dirent *e; dir && (e = readdir(dir));) {
		_cleanup_free_ char *text = NULL;
		char path[300], *at;
		size_t size;

		snprintf(path, sizeof(path), "/proc/self/task/%s/status", e->d_name);
		if (atoi(e->d_name) > 0 && atoi(e->d_name) != getpid() &&
			file_read(path, 65536, &text, &size) == 0 &&
			(at = strstr(text, "\nvoluntary_ctxt_switches:")))
			sum += strtoul(strchr(at, ':') + 1, NULL, 10);
	}
	if (dir)
		closedir(dir);
	return sum;
}

static int others_flood(void *arg)
{
	nrt_tensor_t *tensor = NULL, *more[10] = {0};
	unsigned long sleeps;
	struct agent a;

	WANT(enter(arg) == 0);
	WANT(agent_listen(&a, ANNOUNCE_ENABLE) == 0);
	WANT_STATUS(init(), 0);
	WANT(pthread_join(a.thread, NULL) == 0);
	WANT_STATUS(lib.nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_HOST, 0, 64, "t", &tensor), 0);
	WANT_STATUS(start(only_allocations), 0);
	for (int i = 0; i < 10; i++)
		WANT_STATUS(
			lib.nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_HOST, 0, 64, "more", &more[i]),
			0);
	/* A thread may sleep for a lock too, but not so often without a look in between. */
	sleeps = sleeps_of_others();
	while (sleeps_of_others() < sleeps + 30)
		WANT(write_many(tensor, 1) == 0);
	/* The agent's ring holds 2048. */
	WANT(write_many(tensor, 20000) == 0);
	WANT(fetch_count(0) == 20);
	WANT_STATUS(lib.nrt_sys_trace_stop(), 0);
	return 0;
}

DEVICE_TEST("sys_trace: what an agent records pushes out nothing of what was not fetched",
	others_flood, two_cores)
