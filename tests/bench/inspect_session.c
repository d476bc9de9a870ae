/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_session.c - what an inspect session costs the program: per event, and while nothing happens.
 *
 * Spans are emitted as fast as one thread can, in turns without a subscriber and with a session (events, CPUs, memory).
 * CPU times are those of the process, so that the session's own thread is counted; its share comes from trace_info.pb's ledger,
 * which is the same number.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/profile/inspect_config.h"
#include "runtime/profile/inspect_dir.h"
#include "runtime/profile/inspect_spool.h"
#include "runtime/trace/trace.h"

#define SPANS 1000000u
#define PACED_SPANS 20000u /* in a second, as a program that executes models all the time */
#define IDLE_S 3u

static struct nrt_sys_trace_config events;
static struct inspect_dir dir = {.fd = {.fd = -1}, .leaf = {.fd = -1}};
static const struct inspect_info info = {
	.session_id = 1, .activities = INSPECT_ALL, .logical_cores = 1};

static uint64_t clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void emit(unsigned spans)
{
	for (unsigned i = 0; i < spans; i++) {
		struct trace_span s = trace_start(0, TRACE_EXECUTE_API, NULL, 0);

		trace_stop(&s, 0, NULL, 0);
	}
}

static void emit_fast(void)
{
	emit(SPANS);
}

static void emit_paced(void)
{
	const struct timespec nap = {.tv_nsec = 1000000};

	for (unsigned ms = 0; ms < 1000; ms++) {
		emit(PACED_SPANS / 1000);
		clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
	}
}

static void idle(void)
{
	sleep(IDLE_S);
}

static const struct {
	const char *name;
	void (*run)(void);
	unsigned spans;
} rows[] = {
	{"as fast as it can", emit_fast, SPANS},
	{"20,000 spans a second", emit_paced, PACED_SPANS},
	{"nothing happens", idle, 0},
};

/* One row; CPU and real time of the process. */
static int measure(size_t row, bool session)
{
	const struct inspect_spool_wish wish = {.dir = &dir,
		.events = &events,
		.cpu_util = true,
		.host_memory = true,
		.info = &info};
	struct inspect_outcome o = {.error = 0};
	struct inspect_spool *s = NULL;
	uint64_t cpu, real;

	if (session && inspect_spool_open(&wish, &s) < 0)
		return -1;
	cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	real = clock_boot().ns;
	rows[row].run();
	cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	real = clock_boot().ns - real;
	if (s && inspect_spool_finish(s, REC_END_ASKED, &o) < 0)
		return -1;
	printf("%-24s %-8s %8.3f s real, %8.3f s CPU", rows[row].name,
		session ? "session" : "without", (double)real / 1e9, (double)cpu / 1e9);
	if (rows[row].spans)
		printf(", %7.1f ns CPU per event", (double)cpu / (2.0 * rows[row].spans));
	else
		printf(", %7.3f %% of a CPU", 100.0 * (double)cpu / (double)real);
	if (session)
		printf("; %llu events in the file, %llu lost, made in %.2f s",
			(unsigned long long)o.events, (unsigned long long)o.lost, o.seconds);
	printf("\n");
	return 0;
}

static void remove_files(void)
{
	static const char *const names[] = {
		"ntrace.pb", "trace_info.pb", "cpu_util.pb", "host_mem.pb"};
	char path[4200];

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir.path, names[i]);
		unlink(path);
	}
}

int main(void)
{
	char path[] = "/tmp/ntrace-bench-XXXXXX";

	dir.path = dir.work = mkdtemp(path);
	if (!dir.path)
		return 1;
	sys_trace_config_defaults(&events);
	trace_core_touch(0);
	for (size_t row = 0; row < sizeof(rows) / sizeof(*rows); row++) {
		for (unsigned session = 0; session < 2; session++) {
			if (measure(row, session) < 0)
				fprintf(stderr, "inspect_session: no session in %s\n", path);
			remove_files();
		}
	}
	rmdir(path);
	return 0;
}
