/* SPDX-License-Identifier: Apache-2.0 */
/*
 * init_cost.c - what nrt_init costs, and how much of that is the library's own.
 *
 * The runtime is linked into this program, and the program has the wrappers below in front of the C
 * library's: so the time inside of system calls is measured call by call, and the rest is the library's own
 * code.  The peer does the requests of the same bring-up, and nothing else, on the same device in the
 * same rounds: the least that anybody can take.  The target is at most 2 ms of own code.
 *
 * Usage: init_cost [ROUNDS]       exit status 77: this machine lacks what it takes
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <nrt/nrt.h>

#include "vmlinux/ioctl_table.h"
#include "vmlinux/neuron_args.h"

#define TARGET_NS 2000000u
#define MAX_ROUNDS 10000

/* ---- system calls, timed ------------------------------------------------------------------ */

static struct {
	uint64_t ns, calls, ioctl_ns, ioctls;
} in_system;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static long timed(long number, long a, long b, long c, long d, long e)
{
	uint64_t start = now_ns();
	long result = syscall(number, a, b, c, d, e);
	uint64_t ns = now_ns() - start;

	in_system.ns += ns;
	in_system.calls++;
	if (number == SYS_ioctl) {
		in_system.ioctl_ns += ns;
		in_system.ioctls++;
	}
	return result;
}

/* Those that bring-up makes through the C library's wrappers; any other counts as own code. */
#define EXPORT __attribute__((visibility("default")))

EXPORT int ioctl(int fd, unsigned long request, ...)
{
	va_list ap;
	long arg;

	va_start(ap, request);
	arg = (long)va_arg(ap, void *);
	va_end(ap);
	return (int)timed(SYS_ioctl, fd, (long)request, arg, 0, 0);
}

EXPORT int open(const char *path, int flags, ...)
{
	va_list ap;
	int mode;

	va_start(ap, flags);
	mode = flags & O_CREAT ? va_arg(ap, int) : 0;
	va_end(ap);
	return (int)timed(SYS_openat, AT_FDCWD, (long)path, flags, mode, 0);
}

EXPORT int close(int fd)
{
	return (int)timed(SYS_close, fd, 0, 0, 0, 0);
}

EXPORT ssize_t read(int fd, void *buf, size_t size)
{
	return timed(SYS_read, fd, (long)buf, (long)size, 0, 0);
}

EXPORT ssize_t write(int fd, const void *buf, size_t size)
{
	return timed(SYS_write, fd, (long)buf, (long)size, 0, 0);
}

EXPORT int stat(const char *restrict path, struct stat *restrict st)
{
	return (int)timed(SYS_newfstatat, AT_FDCWD, (long)path, (long)st, 0, 0);
}

EXPORT int fstat(int fd, struct stat *st)
{
	return (int)timed(SYS_fstat, fd, (long)st, 0, 0, 0);
}

EXPORT int access(const char *path, int mode)
{
	return (int)timed(SYS_faccessat, AT_FDCWD, (long)path, mode, 0, 0);
}

EXPORT int statx(
	int fd, const char *restrict path, int flags, unsigned mask, struct statx *restrict st)
{
	return (int)timed(SYS_statx, fd, (long)path, flags, mask, (long)st);
}

EXPORT int fcntl(int fd, int command, ...)
{
	va_list ap;
	long arg;

	va_start(ap, command);
	arg = va_arg(ap, long);
	va_end(ap);
	return (int)timed(SYS_fcntl, fd, command, arg, 0, 0);
}

EXPORT int socket(int domain, int type, int protocol)
{
	return (int)timed(SYS_socket, domain, type, protocol, 0, 0);
}

EXPORT int connect(int fd, __CONST_SOCKADDR_ARG addr, socklen_t len)
{
	return (int)timed(SYS_connect, fd, (long)addr.__sockaddr__, len, 0, 0);
}

/* ---- the peer ----------------------------------------------------------------------------- */

/* The requests of bring-up of one device with all its cores, by hand. */
static bool bare_requests(const char *node, uint32_t cores)
{
	struct neuron_compatible_version range = {0};
	struct neuron_device_basic_info basic = {0};
	struct neuron_device_driver_info driver = {.size = sizeof(driver)};
	struct neuron_device_info info = {0};
	struct neuron_device_reset reset = {.nc_map = (1u << cores) - 1};
	struct neuron_device_ready ready = {0};
	struct neuron_crwl_nc_map_ext map = {.nc_count = cores, .end_nc_index = cores - 1};
	int query = open(node, O_WRONLY | O_CLOEXEC), work = -1;
	bool ok = query >= 0 && ioctl(query, NEURON_IOCTL_COMPATIBLE_VERSION, &range) == 0 &&
		  ioctl(query, NEURON_IOCTL_DEVICE_BASIC_INFO, &basic) == 0;

	(void)ioctl(query, NEURON_IOCTL_DRIVER_INFO_GET, &driver);
	ok = ok && ioctl(query, NEURON_IOCTL_CRWL_NC_RANGE_MARK_EXT0, &map) == 0;
	if (ok)
		work = open(node, O_RDWR | O_CLOEXEC);
	ok = ok && work >= 0 && ioctl(work, NEURON_IOCTL_DEVICE_INFO, &info) == 0 &&
	     ioctl(work, NEURON_IOCTL_NC_RESET, &reset) == 0;
	ready.request_id = reset.request_id;
	ok = ok && ioctl(work, NEURON_IOCTL_NC_RESET_READY, &ready) == 0;
	if (ok)
		(void)ioctl(query, NEURON_IOCTL_CRWL_NC_RANGE_UNMARK_EXT0, &map);
	if (work >= 0)
		close(work);
	if (query >= 0)
		close(query);
	return ok;
}

/* ---- rounds ------------------------------------------------------------------------------- */

struct series {
	uint64_t ns[MAX_ROUNDS];
	int count;
};
static struct series init_all, init_own, init_ioctl, init_other, close_all, peer_all;
static uint64_t calls_per_init, ioctls_per_init;

static void add(struct series *s, uint64_t ns)
{
	s->ns[s->count++] = ns;
}

static int by_size(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double part_us(struct series *s, double part)
{
	qsort(s->ns, (size_t)s->count, sizeof(s->ns[0]), by_size);
	return (double)s->ns[(size_t)((double)(s->count - 1) * part)] / 1000;
}

static void show(const char *what, struct series *s)
{
	double half = part_us(s, 0.5);

	printf("%-34s %9.1f us median  %9.1f us p99\n", what, half, part_us(s, 0.99));
}

static bool one_round(const char *node, uint32_t cores)
{
	uint64_t start;

	memset(&in_system, 0, sizeof(in_system));
	start = now_ns();
	if (nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "") != NRT_SUCCESS)
		return false;
	start = now_ns() - start;
	add(&init_all, start);
	add(&init_own, start - in_system.ns);
	add(&init_ioctl, in_system.ioctl_ns);
	add(&init_other, in_system.ns - in_system.ioctl_ns);
	calls_per_init = in_system.calls;
	ioctls_per_init = in_system.ioctls;
	start = now_ns();
	nrt_close();
	add(&close_all, now_ns() - start);
	start = now_ns();
	if (!bare_requests(node, cores))
		return false;
	add(&peer_all, now_ns() - start);
	return true;
}

static int measure(const char *root, int rounds)
{
	char node[512];
	uint32_t cores = 2;

	snprintf(node, sizeof(node), "%s/dev/neuron0", root);
	for (int i = 0; i < rounds; i++)
		if (!one_round(node, cores)) {
			fprintf(stderr, "init_cost: round %d failed\n", i);
			return 1;
		}
	printf("%d rounds, 1 device of %u cores; nrt_init makes %" PRIu64 " system calls, %" PRIu64
	       " of them requests\n",
		rounds, cores, calls_per_init, ioctls_per_init);
	show("nrt_init", &init_all);
	show("  own code", &init_own);
	show("  requests to the device", &init_ioctl);
	show("  other system calls, of discovery", &init_other);
	show("nrt_close", &close_all);
	show("peer: the same requests, bare", &peer_all);
	printf("nrt_init and nrt_close take %.2f times the bare requests\n",
		(part_us(&init_all, 0.5) + part_us(&close_all, 0.5)) / part_us(&peer_all, 0.5));
	printf("own code: %.1f us at p99, target %u us: %s\n", part_us(&init_own, 0.99),
		TARGET_NS / 1000, part_us(&init_own, 0.99) * 1000 < TARGET_NS ? "met" : "MISSED");
	return 0;
}

int main(int argc, char **argv)
{
	const char *build = getenv("BUILD"), *root = getenv("NTRACE_DEVICE_ROOT");
	const char *inside = getenv("NTRACE_BENCH_INSIDE");
	char vdev[512], rounds[16];
	int n = argc > 1 ? atoi(argv[1]) : 1000;

	n = n < 1 ? 1 : n > MAX_ROUNDS ? MAX_ROUNDS : n;
	if (root && inside)
		return measure(root, n);
	if (geteuid() != 0 || access("/dev/fuse", R_OK | W_OK) < 0) {
		printf("skipped: root and /dev/fuse, for a virtual device\n");
		return 77;
	}
	snprintf(vdev, sizeof(vdev), "%s/bin/ntrace-vdev", build ? build : "build");
	snprintf(rounds, sizeof(rounds), "%d", n);
	setenv("NTRACE_BENCH_INSIDE", "1", 1);
	execl(vdev, vdev, "-q", "--arch=v2", "--", argv[0], rounds, (char *)NULL);
	perror(vdev);
	return 1;
}
