/* SPDX-License-Identifier: Apache-2.0 */
/*
 * skip.c - has a kernel skip hooks.
 *
 *	skip returns FILE REQUEST N	N threads are inside of an ioctl at once: more than the kernel keeps returns
 *					of a kretprobe for.  Each waits for its argument, a page that userfaultfd
 *					holds back until all are there.
 *	skip programs FILE REQUEST N	N ioctls, each as the CPU is taken from a process that is at a BPF map all the
 *					time, where programs on kprobes are skipped
 *
 * REQUEST (hexadecimal) writes to its argument.  Knows nothing of tracing and of drivers; static, for guests.
 * Exit status: 0, or 1 when something is not to be had.
 */
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096u
#define MAX_THREADS 256u
#define MAX_CPUS 64u
/* The most that the kernel takes for a CPU; it copies word by word, so that most interrupts come meanwhile. */
#define VALUE (32u << 10)

struct call {
	int fd;
	unsigned long request;
	char *page;
	pthread_t thread;
};

static void *make(void *arg)
{
	const struct call *c = arg;

	return ioctl(c->fd, c->request, c->page) < 0 ? arg : NULL;
}

static int no(const char *what)
{
	perror(what);
	return 1;
}

static int hold(char *pages, size_t size)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register r = {
		.range = {(uintptr_t)pages, size}, .mode = UFFDIO_REGISTER_MODE_MISSING};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) < 0 || ioctl(fd, UFFDIO_REGISTER, &r) < 0)
		return -1;
	return fd;
}

static int skip_returns(const char *file, unsigned long request, unsigned n)
{
	static struct call calls[MAX_THREADS];
	char *pages = mmap(
		NULL, (size_t)n * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = open(file, O_RDWR), held = hold(pages, (size_t)n * PAGE);
	struct uffdio_zeropage all = {.range = {(uintptr_t)pages, (size_t)n * PAGE}};
	unsigned failed = 0;

	if (fd < 0)
		return no(file);
	if (held < 0)
		return no("userfaultfd");
	for (unsigned i = 0; i < n; i++) {
		calls[i] = (struct call){
			.fd = fd, .request = request, .page = pages + (size_t)i * PAGE};
		if (pthread_create(&calls[i].thread, NULL, make, &calls[i]) != 0)
			return no("pthread_create");
	}
	for (unsigned i = 0; i < n; i++) {
		struct uffd_msg m;

		if (read(held, &m, sizeof(m)) != sizeof(m))
			return no("a page that is waited for");
	}
	if (ioctl(held, UFFDIO_ZEROPAGE, &all) < 0)
		return no("UFFDIO_ZEROPAGE");
	for (unsigned i = 0; i < n; i++) {
		void *result;

		pthread_join(calls[i].thread, &result);
		failed += result != NULL;
	}
	return failed ? no("ioctl") : 0;
}

static int stay_at_map(void)
{
	static char values[MAX_CPUS * VALUE];
	uint32_t key = 0;
	union bpf_attr attr;
	int map;

	memset(&attr, 0, sizeof(attr));
	attr.map_type = BPF_MAP_TYPE_PERCPU_ARRAY;
	attr.key_size = sizeof(key);
	attr.value_size = VALUE;
	attr.max_entries = 1;
	map = (int)syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr));
	if (map < 0)
		return no("a map");
	memset(&attr, 0, sizeof(attr));
	attr.map_fd = (uint32_t)map;
	attr.key = (uintptr_t)&key;
	attr.value = (uintptr_t)values;
	while (syscall(SYS_bpf, BPF_MAP_LOOKUP_ELEM, &attr, sizeof(attr)) == 0)
		;
	return no("the map");
}

/* Whoever wakes up takes the CPU at once, from whatever it is at. */
static int skip_programs(const char *file, unsigned long request, unsigned n)
{
	struct sched_param first = {.sched_priority = 1};
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	pid_t busy[MAX_CPUS];
	int fd = open(file, O_RDWR), failed = 0;
	static char arg[PAGE];

	if (fd < 0)
		return no(file);
	for (long i = 0; i < cpus && i < MAX_CPUS; i++) {
		busy[i] = fork();
		if (busy[i] == 0)
			_exit(stay_at_map());
	}
	if (sched_setscheduler(0, SCHED_FIFO, &first) < 0)
		failed = no("SCHED_FIFO");
	for (unsigned i = 0; i < n && !failed; i++) {
		usleep(200);
		failed = ioctl(fd, request, arg) < 0 ? no("ioctl") : 0;
	}
	for (long i = 0; i < cpus && i < MAX_CPUS; i++)
		kill(busy[i], SIGKILL);
	return failed;
}

int main(int argc, char **argv)
{
	unsigned n = argc == 5 ? (unsigned)strtoul(argv[4], NULL, 10) : 0;

	if (n && strcmp(argv[1], "programs") == 0)
		return skip_programs(argv[2], strtoul(argv[3], NULL, 16), n);
	if (n && n <= MAX_THREADS && strcmp(argv[1], "returns") == 0)
		return skip_returns(argv[2], strtoul(argv[3], NULL, 16), n);
	fprintf(stderr, "usage: skip returns|programs FILE REQUEST N\n");
	return 1;
}
