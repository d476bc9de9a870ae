/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watchers.h - those who watch this process's ioctls while ioctl_overhead.c measures what that costs: our hooks, a
 * bare BPF program, empty programs, bpftrace, perf trace.
 *
 * A watcher is started, watches, and is stopped again; between two of them nothing is attached.  One at a time,
 * one thread.  Header only.
 */
#ifndef NTRACE_BENCH_WATCHERS_H
#define NTRACE_BENCH_WATCHERS_H

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/collect/bpf_support.h"
#include "agent/collect/ioctl_hooks.h"
#include "tests/bench/bpf/bare.skel.h"
#include "runtime/base/clock.h"

/* What is watched, and where a tool may write. */
struct target {
	int fd; /* what the ioctls go to */
	unsigned long cmd;
	const char *root;   /* dev/neuron0 lies below it */
	const char *output; /* file for the output of tools */
};

static const struct target *watched;
static bool watch_over;
static pthread_t watch_thread;
static uint64_t watch_records;

static inline bool in_path(const char *tool)
{
	const char *path = getenv("PATH");
	char file[256];

	while (path && *path) {
		size_t n = strcspn(path, ":");

		snprintf(file, sizeof(file), "%.*s/%s", (int)n, path, tool);
		if (access(file, X_OK) == 0)
			return true;
		path += n + (path[n] == ':');
	}
	return false;
}

/* ---- our hooks ---------------------------------------------------------------------------- */

static struct ioctl_hooks *watch_hooks;

static inline int count_bytes(void *ctx, const void *records, size_t size)
{
	(void)records;
	*(uint64_t *)ctx += size;
	return 0;
}

/* As the recorder does it. */
static inline void *drain_hooks(void *arg)
{
	uint64_t bytes = 0, watermark;

	while (!__atomic_load_n(&watch_over, __ATOMIC_ACQUIRE)) {
		long n = ioctl_hooks_drain(arg, count_bytes, &bytes, &watermark);

		watch_records += n > 0 ? (uint64_t)n : 0;
		usleep(10000);
	}
	return NULL;
}

static inline int hooks_watch(bool tracked)
{
	struct ioctl_hooks_options o = {.ring_bytes = 64u << 20};
	char why[256];

	if (ioctl_hooks_open(&o, &watch_hooks, why, sizeof(why)) < 0) {
		fprintf(stderr, "ioctl_overhead: %s\n", why);
		return -1;
	}
	if (ioctl_hooks_scan_devices(watch_hooks, watched->root) < 1 ||
		(tracked && ioctl_hooks_track(watch_hooks, getpid()) < 0))
		abort();
	watch_over = false;
	return pthread_create(&watch_thread, NULL, drain_hooks, watch_hooks) ? -1 : 0;
}

static inline int hooks_start(void)
{
	return hooks_watch(true);
}

static inline int hooks_start_elsewhere(void)
{
	return hooks_watch(false);
}

static inline void hooks_stop(void)
{
	__atomic_store_n(&watch_over, true, __ATOMIC_RELEASE);
	pthread_join(watch_thread, NULL);
	ioctl_hooks_close(watch_hooks);
}

/* ---- bare and empty programs -------------------------------------------------------------- */

static struct bare_bpf *bare;
static struct bpf_link *bare_links[2];
static struct bpf_ring bare_ring;

static inline void *drain_bare(void *arg)
{
	const void *record;
	size_t size;

	(void)arg;
	while (!__atomic_load_n(&watch_over, __ATOMIC_ACQUIRE)) {
		uint64_t end = bpf_ring_end(&bare_ring);

		while (bpf_ring_next(&bare_ring, end, &record, &size))
			watch_records++;
		bpf_ring_release(&bare_ring);
		usleep(10000);
	}
	return NULL;
}

static inline int attach_pair(struct bpf_program *enter, struct bpf_program *exit)
{
	int tracefs = tracefs_open(NULL), r = tracefs;

	if (r >= 0)
		r = tracepoint_attach(tracefs, "syscalls", "sys_exit_ioctl", exit, &bare_links[0]);
	if (r >= 0)
		r = tracepoint_attach(
			tracefs, "syscalls", "sys_enter_ioctl", enter, &bare_links[1]);
	if (tracefs >= 0)
		close(tracefs);
	return r;
}

static inline int bare_watch(bool empty)
{
	bpf_log_capture();
	bare = bare_bpf__open();
	if (!bare)
		return -1;
	bare->rodata->traced_tgid = (uint32_t)getpid();
	if (bare_bpf__load(bare) ||
		bpf_ring_open(&bare_ring, bpf_map__fd(bare->maps.bare_ring), 64u << 20) ||
		attach_pair(empty ? bare->progs.empty_enter : bare->progs.bare_enter,
			empty ? bare->progs.empty_exit : bare->progs.bare_exit)) {
		fprintf(stderr, "ioctl_overhead: %s\n", bpf_log_last());
		return -1;
	}
	watch_over = false;
	return pthread_create(&watch_thread, NULL, drain_bare, NULL) ? -1 : 0;
}

static inline int bare_start(void)
{
	return bare_watch(false);
}

static inline int empty_start(void)
{
	return bare_watch(true);
}

static inline void bare_stop(void)
{
	__atomic_store_n(&watch_over, true, __ATOMIC_RELEASE);
	pthread_join(watch_thread, NULL);
	for (int i = 0; i < 2; i++)
		bpf_link__destroy(bare_links[i]);
	bpf_ring_close(&bare_ring);
	bare_bpf__destroy(bare);
}

/* ---- tools -------------------------------------------------------------------------------- */

static pid_t tool;

/* Starts it, and makes calls until its output grows: then it watches. */
static inline int tool_start(char *const argv[])
{
	uint64_t until = clock_boot().ns + 20000000000ull, arg[8] = {0};
	struct stat st = {0};

	unlink(watched->output);
	fflush(NULL);
	tool = fork();
	if (tool == 0) {
		int null = open("/dev/null", O_RDWR);

		dup2(null, 1);
		dup2(null, 2);
		execvp(argv[0], argv);
		_exit(127);
	}
	while (clock_boot().ns < until) {
		for (int i = 0; i < 1000; i++)
			ioctl(watched->fd, watched->cmd, arg);
		if (stat(watched->output, &st) == 0 && st.st_size > 1000)
			return 0;
		if (waitpid(tool, NULL, WNOHANG) == tool)
			break;
		usleep(20000);
	}
	fprintf(stderr, "ioctl_overhead: %s wrote nothing\n", argv[0]);
	return -1;
}

static inline void tool_stop(void)
{
	kill(tool, SIGINT);
	waitpid(tool, NULL, 0);
	unlink(watched->output);
}

static inline int bpftrace_start(void)
{
	static const char program[] =
		"tracepoint:syscalls:sys_enter_ioctl /pid == %d/ { @s[tid] = nsecs; "
		"@f[tid] = args->fd; @c[tid] = args->cmd; @a[tid] = args->arg; } "
		"tracepoint:syscalls:sys_exit_ioctl /@s[tid]/ { "
		"printf(\"%%llu %%llu %%d %%d %%d 0x%%x %%d %%llu %%llu %%llu %%llu\\n\", nsecs, "
		"nsecs - @s[tid], pid, tid, @f[tid], @c[tid], args->ret, "
		"*(uint64*)uptr(@a[tid]), *(uint64*)uptr(@a[tid] + 16), "
		"*(uint64*)uptr(@a[tid] + 24), *(uint64*)uptr(@a[tid] + 32)); "
		"delete(@s[tid]); delete(@f[tid]); delete(@c[tid]); delete(@a[tid]); }";
	char text[1024];

	snprintf(text, sizeof(text), program, getpid());
	return tool_start((char *[]){"bpftrace", "-o", (char *)watched->output, "-e", text, NULL});
}

static inline int perf_start(void)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", getpid());
	return tool_start((char *[]){
		"perf", "trace", "-e", "ioctl", "-o", (char *)watched->output, "-p", pid, NULL});
}

#endif
