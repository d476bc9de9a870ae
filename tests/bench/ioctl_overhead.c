/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ioctl_overhead.c - what the system-call hooks add to one ioctl.
 *
 * The same calls on the same files with and without the hooks, in turns within one run, so that both
 * meet the same machine: an ordinary file that the hooks take for a neuron device, and one that they
 * do not know; from this process while it is tracked and while it is not.  A thread drains every
 * 10 ms, as the recorder does.  The kernel answers ENOTTY, so the call itself is as short as can be.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/collect/ioctl_hooks.h"
#include "runtime/base/clock.h"
#include "vmlinux/ioctl_table.h"

#define CALLS 100000
#define ROUNDS 9
#define CANNOT_RUN 77 /* exit code for tests/bench/run.sh: something is lacking here */

enum { FILE_DEVICE, FILE_OTHER, FILE_COUNT };

static char dir[] = "/dev/shm/ntrace-bench-XXXXXX";
static int fds[FILE_COUNT];
static bool stop;

static const struct {
	const char *name;
	unsigned long cmd;
} requests[] = {
	{"no fields", NEURON_IOCTL_DEVICE_INFO},
	{"2 fields", NEURON_IOCTL_DMA_ENG_SET_STATE},
	{"4 fields", NEURON_IOCTL_MEM_BUF_COPY64},
	{"6 fields", NEURON_IOCTL_MEM_COPY64},
};

#define REQUESTS (sizeof(requests) / sizeof(requests[0]))

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *v)
{
	qsort(v, ROUNDS, sizeof(*v), by_value);
	return v[ROUNDS / 2];
}

static double ns_per_call(int fd, unsigned long cmd)
{
	uint64_t arg[8] = {1, 2, 3, 4, 5, 6, 7, 8}, start = clock_boot().ns;

	for (int i = 0; i < CALLS; i++)
		if (ioctl(fd, cmd, arg) == 0)
			abort();
	return (double)(clock_boot().ns - start) / CALLS;
}

static int count_bytes(void *ctx, const void *records, size_t size)
{
	(void)records;
	*(uint64_t *)ctx += size;
	return 0;
}

static void *drain(void *arg)
{
	uint64_t bytes = 0, watermark;

	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		ioctl_hooks_drain(arg, count_bytes, &bytes, &watermark);
		usleep(10000);
	}
	return NULL;
}

/* Hooks that watch the device file; tracked: also the calls of this process. */
static struct ioctl_hooks *start(bool tracked)
{
	struct ioctl_hooks_options o = {.ring_bytes = 64u << 20};
	struct ioctl_hooks *h;
	char why[256];

	if (ioctl_hooks_open(&o, &h, why, sizeof(why)) < 0) {
		fprintf(stderr, "ioctl_overhead: %s\n", why);
		return NULL;
	}
	if (ioctl_hooks_scan_devices(h, dir) != 1 ||
		(tracked && ioctl_hooks_track(h, getpid()) < 0))
		abort();
	return h;
}

struct result {
	double plain[ROUNDS], hooked[ROUNDS];
};

static int measure(int file, unsigned long cmd, bool tracked, struct result *r)
{
	for (int i = 0; i < ROUNDS; i++) {
		struct ioctl_hooks *h;
		pthread_t thread;

		r->plain[i] = ns_per_call(fds[file], cmd);
		h = start(tracked);
		if (!h)
			return CANNOT_RUN;
		stop = false;
		pthread_create(&thread, NULL, drain, h);
		r->hooked[i] = ns_per_call(fds[file], cmd);
		__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
		pthread_join(thread, NULL);
		ioctl_hooks_close(h);
	}
	return 0;
}

static int report(const char *what, int file, unsigned long cmd, bool tracked)
{
	struct result r;
	int error = measure(file, cmd, tracked, &r);
	double plain, hooked;

	if (error)
		return error;
	plain = median(r.plain);
	hooked = median(r.hooked);
	printf("ioctl %-34s %7.0f ns without, %7.0f ns with: +%.0f ns, x%.2f\n", what, plain,
		hooked, hooked - plain, hooked / plain);
	return 0;
}

static int run(void)
{
	char what[64];
	int error = 0;

	for (size_t i = 0; i < REQUESTS && !error; i++) {
		snprintf(what, sizeof(what), "on a device, %s", requests[i].name);
		error = report(what, FILE_DEVICE, requests[i].cmd, true);
	}
	if (!error)
		error = report("on another file", FILE_OTHER, requests[2].cmd, true);
	return error ? error
		     : report("of an untraced process", FILE_DEVICE, requests[2].cmd, false);
}

int main(void)
{
	static const char *const names[FILE_COUNT] = {"dev/neuron0", "other"};
	char path[64];
	int error;

	if (!mkdtemp(dir)) {
		fprintf(stderr, "ioctl_overhead: %s: %s\n", dir, strerror(errno));
		return CANNOT_RUN;
	}
	snprintf(path, sizeof(path), "%s/dev", dir);
	mkdir(path, 0700);
	for (int i = 0; i < FILE_COUNT; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		fds[i] = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	}
	error = run();
	for (int i = 0; i < FILE_COUNT; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		unlink(path);
	}
	snprintf(path, sizeof(path), "%s/dev", dir);
	rmdir(path);
	rmdir(dir);
	return error;
}
