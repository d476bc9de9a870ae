/* SPDX-License-Identifier: Apache-2.0 */
/* profile_loss_test.c - the collector under load: what is lost is counted, exactly where the device counts; at full speed
 * nothing is. */
#include <dirent.h>

#include "tests/unit/collector_fixture.h"

/* ---- losses ------------------------------------------------------------------------------- */

#define STEPS 4000

/* A model of STEPS instructions of PE, 1 ns each: twice as many records. */
static char *many_steps(void)
{
	size_t size = 64 + STEPS * 32;
	char *text = malloc(size), *at = text;

	at += sprintf(at, "ntrace-model 2\nname many\n");
	for (int i = 0; i < STEPS; i++)
		at += sprintf(at, "step PE 1ns nop\n");
	return text;
}

static const struct loss_case {
	const char *what;
	const char *options[8];
	bool exact, drops;
} loss_cases[] = {
	{"dropped, counted",
		{"--cores=2", "--memory=4M", "--delay=BAR_WRITE:50", "--ring-full=drop"}, true,
		true},
	{"overwritten, counted", {"--cores=2", "--memory=4M", "--delay=BAR_WRITE:50"}, true, false},
	{"dropped, no count",
		{"--cores=2", "--memory=4M", "--delay=BAR_WRITE:50", "--ring-full=drop",
			"--ring-head=none"},
		false, true},
	{"overwritten, no count",
		{"--cores=2", "--memory=4M", "--delay=BAR_WRITE:50", "--ring-head=none"}, false,
		false},
};
static const struct loss_case *loss_now;

/* Of PE, in several readings. */
struct loss_sum {
	uint64_t count, lost, last_ps;
	bool at_least;
};

static int add_reading(struct collector_cursor *c, struct loss_sum *sum)
{
	const struct collector_row *row;
	struct notification *all;
	struct collector_data d;

	WANT_STATUS(get(c, &d), 0);
	row = row_of(&d, 0, NOTIFICATION_TRACE, 0);
	all = calloc(row->count + 1, sizeof(*all));
	collector_row_copy(row, all);
	for (uint64_t i = 0; i < row->count; i++) {
		WANT(all[i].timestamp_ps >= sum->last_ps);
		sum->last_ps = all[i].timestamp_ps;
	}
	free(all);
	WANT(row->dropped == 0);
	sum->count += row->count;
	sum->lost += row->lost;
	sum->at_least |= row->lost_at_least;
	collector_data_free(&d);
	return 0;
}

static int check_loss(const struct place *p, const struct loss_sum *sum, uint64_t written)
{
	WANT(sum->count && sum->lost);
	WANT(sum->at_least == !loss_now->exact);
	if (loss_now->exact)
		WANT(sum->count + sum->lost == written);
	else
		WANT(sum->count + sum->lost <= written);
	if (loss_now->exact && loss_now->drops)
		WANT((long long)sum->lost == virtual_device_stat(&p->device, "ring_drops"));
	return 0;
}

/* The thread stands in a request, and meanwhile the ring is full. */
static int too_slow(void *arg)
{
	struct collector_cursor *c = NULL;
	struct loss_sum sum = {0};
	char *text = many_steps();
	struct bare b;

	setenv("NEURON_LOGICAL_NC_CONFIG", "1", 1);
	WANT(enter_linked(arg, "WARN") == 0);
	WANT_STATUS(init(), 0);
	WANT_STATUS(subscribe(0, &c), 0);
	WANT(bare_load(&b, text, 0) == 0);
	free(text);
	for (int i = 0; i < 12; i++)
		WANT_STATUS(run(&b), 0); /* whatever is lost */
	WANT(add_reading(c, &sum) == 0);
	WANT_STATUS(run(&b), 0);
	WANT(add_reading(c, &sum) == 0); /* its first record tells of losses before */
	WANT(said(arg, "notifications are lost"));
	WANT(check_loss(arg, &sum, 13 * 2 * STEPS) == 0);
	unsubscribe(c);
	lib.nrt_close();
	return leaks();
}

TEST("collector: what a full ring loses is counted, and the execution succeeds",
	"[collector][vdev]")
{
	if (device_lacks())
		SKIP(device_lacks());
	for (size_t i = 0; i < sizeof(loss_cases) / sizeof(loss_cases[0]); i++) {
		test_info("%s", loss_cases[i].what);
		loss_now = &loss_cases[i];
		with_device(too_slow, loss_now->options);
	}
}

static int beyond_the_limit(void *arg)
{
	struct collector_cursor *c = NULL;
	struct collector_data d, kept;
	char *text = many_steps();
	const struct collector_row *row;
	struct bare b;

	setenv("NTRACE_PROFILE_MAX_MB", "1", 1);
	WANT(enter_linked(arg, "WARN") == 0);
	WANT_STATUS(init(), 0);
	WANT_STATUS(subscribe(0, &c), 0);
	WANT(bare_load(&b, text, 0) == 0);
	free(text);
	for (int i = 0; i < 12; i++) /* on two cores, 16 bytes each */
		WANT_STATUS(run(&b), 0);
	WANT_STATUS(get(c, &d), 0);
	row = row_of(&d, 0, NOTIFICATION_TRACE, 0);
	WANT(row->lost == 0 && !row->lost_at_least && row->dropped > 0);
	WANT(row->count + row->dropped == 12 * 2 * STEPS);
	WANT(row->count * sizeof(struct notification) <= 1u << 20);
	WANT(said(arg, "NTRACE_PROFILE_MAX_MB"));
	/* What a subscriber has got counts until it is given back. */
	WANT_STATUS(run(&b), 0);
	WANT_STATUS(get(c, &kept), 0);
	WANT(row_of(&kept, 0, NOTIFICATION_TRACE, 0)->dropped > 0);
	collector_data_free(&kept);
	collector_data_free(&d);
	WANT_STATUS(run(&b), 0);
	WANT_STATUS(get(c, &kept), 0);
	WANT(row_of(&kept, 0, NOTIFICATION_TRACE, 0)->count == 2 * STEPS);
	collector_data_free(&kept);
	unsubscribe(c);
	lib.nrt_close();
	return leaks();
}

TEST("collector: beyond the limit the newest are dropped and counted", "[collector][vdev]")
{
	if (device_lacks())
		SKIP(device_lacks());
	with_device(beyond_the_limit, two_cores);
}

/* ---- full speed --------------------------------------------------------------------------- */

/* Of all threads but the first: that of the collector, and one that sleeps. */
static uint64_t thread_cpu_ns(void)
{
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *e;
	uint64_t sum = 0;

	while (tasks && (e = readdir(tasks))) {
		unsigned long long ns = 0;
		char path[300];
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/task/%s/schedstat", e->d_name);
		f = *e->d_name == '.' || atoi(e->d_name) == getpid() ? NULL : fopen(path, "r");
		if (f && fscanf(f, "%llu", &ns) == 1)
			sum += ns;
		if (f)
			fclose(f);
	}
	if (tasks)
		closedir(tasks);
	return sum;
}

/* Several times what the ring holds, so that only somebody who reads beside the executions has it all. */
static int at_full_speed(void *arg)
{
	bool full = getenv("NTRACE_TEST_FULL") != NULL;
	uint64_t want = full ? 10000000 : 300000, written = 0, got = 0;
	const struct collector_row *row;
	struct collector_cursor *c = NULL;
	struct collector_data d;
	char *text = many_steps();
	uint64_t cpu, begun;
	struct bare b;

	setenv("NEURON_LOGICAL_NC_CONFIG", "1", 1);
	if (!full)
		setenv("NEURON_RT_PROFILE_BUF_INSTRUCTION_MB", "1", 1);
	WANT(enter_linked(arg, NULL) == 0);
	WANT_STATUS(init(), 0);
	WANT(bare_load(&b, text, 0) == 0);
	free(text);
	WANT_STATUS(subscribe(0, &c), 0);
	cpu = thread_cpu_ns();
	begun = clock_boot().ns;
	while (written < want) {
		WANT_STATUS(run(&b), 0);
		written += 2 * STEPS;
	}
	WANT_STATUS(get(c, &d), 0);
	row = row_of(&d, 0, NOTIFICATION_TRACE, 0);
	got = row->count;
	if (full)
		dprintf(complaint_fd, "%llu records in %.2f s, %.1f ns of the thread each\n",
			(unsigned long long)got, (double)(clock_boot().ns - begun) / 1e9,
			(double)(thread_cpu_ns() - cpu) / (double)got);
	WANT(row->ring_bytes == (full ? 8u : 1u) << 20);
	WANT(written > 4 * row->ring_bytes / sizeof(struct notification));
	WANT(got + row->lost == written && !row->lost_at_least && row->dropped == 0);
	/* A busy machine may lose some; at the end alone nobody gets more than a ring. */
	WANT(full ? row->lost == 0 : got > 2 * row->ring_bytes / sizeof(struct notification));
	WANT(d.run_count == written / (2 * STEPS));
	collector_data_free(&d);
	unsubscribe(c);
	lib.nrt_close();
	return leaks();
}

TEST("collector: of executions one after another, many rings full, no record is lost uncounted",
	"[collector][vdev]")
{
	static const char *const options[] = {"--cores=2", "--device-time=steps", NULL};

	if (device_lacks())
		SKIP(device_lacks());
	with_device(at_full_speed, options);
}
