/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent_memory_test.c - how much memory `ntrace record` takes while it follows many processes.
 *
 * Ten processes with a ring for each of eight cores fill all rings at once, as fast as they can; what they emit
 * fits, so nothing may be lost, however busy the machine is.  Private memory and mapped files (RssAnon, RssFile)
 * have a limit of the project; the rings, which belong to the traced processes, are counted apart (RssShmem): the
 * reader gives pages back when it has read them.  The merge, which comes after, is not looked at here: it holds what
 * the rings held at once.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "runtime/trace/trace.h"
#include "tests/shim/shim.h"
#include "tests/unit/programs.h"
#include "tests/unit/scratch.h"

#define PROCESSES 10
#define CORES 8u
#define RING "65536"
#define EVENTS 8000u /* of each core: less than the smallest of its lanes holds at first */
#define LIMIT_KB (128 * 1024)
#define SHARED_LIMIT_KB (32 * 1024) /* ours; the rings are 700 MB, of which 82 are written */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

/* ---- the traced processes -------------------------------------------------------------------- */

/* A process with the runtime in it.  Says on `ready` that the agent has taken it and begins when `go` is closed. */
static int traced_process(int ready, int go)
{
	uint64_t payload[5] = {0};
	char byte;

	if (trace_open() < 0)
		return 2;
	for (uint32_t nc = 0; nc < CORES; nc++)
		trace_core_touch(nc);
	if (trace_service_start(0) != 1 || write(ready, "", 1) != 1 || read(go, &byte, 1) != 0)
		return 1;
	for (uint32_t i = 0; i < EVENTS; i++)
		for (uint32_t nc = 0; nc < CORES; nc++) {
			payload[0] = i;
			trace_instant(nc, TRACE_GENERIC, payload, sizeof(payload));
		}
	return 0;
}

TEST("agent memory: the traced processes, for the recorder", "[.agent_load]")
{
	int ready[2], go[2];
	pid_t pids[PROCESSES];
	char byte;

	REQUIRE(pipe2(ready, O_CLOEXEC) == 0 && pipe2(go, O_CLOEXEC) == 0);
	for (int i = 0; i < PROCESSES; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			close(go[1]);
			_exit(traced_process(ready[1], go[0]));
		}
		REQUIRE(pids[i] > 0);
	}
	close(ready[1]);
	for (int i = 0; i < PROCESSES; i++)
		CHECK_EQ(read(ready[0], &byte, 1), 1);
	close(go[1]);
	for (int i = 0; i < PROCESSES; i++)
		CHECK_EQ(program_wait(pids[i]), 0);
	close(ready[0]);
	close(go[0]);
}

/* ---- the recorder ---------------------------------------------------------------------------- */

struct memory {
	unsigned long own_kb, shared_kb; /* the most that was seen */
	unsigned looks;
};

/* Adds a look at /proc/PID/status, if it has anything mapped that is shared: the merge has not. */
static void look(struct memory *m, pid_t pid)
{
	unsigned long anon = 0, file = 0, shared = 0;
	char path[64], line[256];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f)) {
		(void)sscanf(line, "RssAnon: %lu", &anon);
		(void)sscanf(line, "RssFile: %lu", &file);
		(void)sscanf(line, "RssShmem: %lu", &shared);
	}
	if (f)
		fclose(f);
	if (shared == 0)
		return;
	if (anon + file > m->own_kb)
		m->own_kb = anon + file;
	if (shared > m->shared_kb)
		m->shared_kb = shared;
	m->looks++;
}

static bool has_ended(pid_t pid)
{
	siginfo_t info = {0};

	return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid;
}

/* Looks until it ends; its status. */
static int watch(pid_t pid, struct memory *m)
{
	struct timespec pause = {.tv_nsec = 1000000};

	while (!has_ended(pid)) {
		look(m, pid);
		nanosleep(&pause, NULL);
	}
	return program_wait(pid);
}

TEST("agent memory: ten processes with eight cores each take less than 128 MiB, and lose nothing",
	"[agent_memory][record]")
{
	struct program_path ntrace = program_path("bin/ntrace");
	struct memory memory = {0};
	char unit[PATH_MAX] = "", said[64];
	struct scratch dir;
	struct scratch_path out, log;
	char *argv[] = {ntrace.s, "record", "--strict", "--ring=" RING, "-o", out.s, "--", unit,
		"[.agent_load]", NULL};
	const char *lacks = recording_lacks();

	if (lacks)
		SKIP(lacks);
	if (SANITIZED)
		SKIP("a build without a sanitizer, whose memory it would count");
	REQUIRE(readlink("/proc/self/exe", unit, sizeof(unit) - 1) > 0);
	REQUIRE(scratch_make(&dir));
	out = scratch_path(&dir, "out");
	log = scratch_path(&dir, "log");
	CHECK_EQ(watch(program_start(argv, log.s, NULL), &memory), 0);
	test_info("private and file %lu kB, shared %lu kB, in %u looks", memory.own_kb,
		memory.shared_kb, memory.looks);
	_cleanup_free_ char *text = program_text(log.s);
	test_info("%s", text);
	snprintf(said, sizeof(said), "runtime %u of %u events recorded", PROCESSES * CORES * EVENTS,
		PROCESSES * CORES * EVENTS);
	CHECK(strstr(text, "lost: nothing"));
	CHECK(strstr(text, said));
	CHECK(memory.looks > 10);
	CHECK(memory.own_kb < LIMIT_KB);
	CHECK(memory.shared_kb < SHARED_LIMIT_KB);
	scratch_remove(&dir);
}
