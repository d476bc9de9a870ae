/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hooks_bench.h - what tests of the system-call hooks need: a device that is none, a child that makes
 * calls, and a place for what comes out.
 *
 * The "neuron device" is an ordinary file below a private root: the hooks match it by inode, the
 * kernel answers ENOTTY, and that is all a test needs.  Calls come from a forked child that does what
 * its parent tells it through a pipe.  A call that stays open for as long as the test likes is
 * FIONREAD into a page that userfaultfd holds back.  Header only.
 */
#ifndef NTRACE_TESTS_HOOKS_BENCH_H
#define NTRACE_TESTS_HOOKS_BENCH_H

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "agent/collect/bpf_support.h"
#include "agent/collect/ioctl_hooks.h"
#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "tests/shim/shim.h"
#include "tests/unit/scratch.h"
#include "vmlinux/ioctl_table.h"

#define MAX_RECORDS 4096

static inline const char *missing(void)
{
	if (geteuid() != 0)
		return "root (BPF programs)";
	if (access(BPF_KERNEL_BTF, R_OK) < 0)
		return "kernel BTF (" BPF_KERNEL_BTF ")";
	return NULL;
}

#define NEED_HOOKS()                     \
	do {                             \
		if (missing())           \
			SKIP(missing()); \
	} while (0)

/* ---- what was received -------------------------------------------------------------------- */

struct record {
	struct nev_ioctl head;
	uint64_t args[NEV_MAX_ARGS];
};

struct received {
	struct record rows[MAX_RECORDS];
	unsigned count;
	bool damaged; /* a record that is not whole */
};

static inline int receive(void *ctx, const void *records, size_t size)
{
	struct received *r = ctx;
	const uint8_t *p = records, *end = p + size;

	while (p < end) {
		struct record row = {0};

		if ((size_t)(end - p) < sizeof(row.head))
			return r->damaged = true, 0;
		memcpy(&row.head, p, sizeof(row.head));
		p += sizeof(row.head);
		if (row.head.hdr.nargs > NEV_MAX_ARGS ||
			(size_t)(end - p) < row.head.hdr.nargs * sizeof(uint64_t))
			return r->damaged = true, 0;
		memcpy(row.args, p, row.head.hdr.nargs * sizeof(uint64_t));
		p += row.head.hdr.nargs * sizeof(uint64_t);
		if (r->count < MAX_RECORDS)
			r->rows[r->count++] = row;
	}
	return 0;
}

/* ---- a private root, hooks and a child that makes calls ----------------------------------- */

struct bench {
	struct scratch dir;
	struct ioctl_hooks *hooks;
	struct received got;
	char file[PATH_MAX];
	char why[256];
	pid_t child;
	int to_child, from_child;
};

enum act { ACT_QUIT, ACT_CALLS, ACT_FORK, ACT_THREAD, ACT_OPEN_CALL, ACT_SPIN, ACT_STOP_SPIN };

struct order {
	enum act act;
	unsigned long cmd;
	uint64_t count; /* of calls */
	bool bad_pointer;
	uint8_t arg[64];
	char file[256];
};

struct answer {
	int tid;
	int fd;
	int error; /* errno of the last call */
};

struct opener {
	int fd;
	void *page;
	pthread_t thread;
	int tid;
};

static inline void *open_call(void *arg)
{
	struct opener *o = arg;

	__atomic_store_n(&o->tid, (int)gettid(), __ATOMIC_RELEASE);
	ioctl(o->fd, FIONREAD, o->page);
	return NULL;
}

/* A thread that hangs in an ioctl until the process dies; 0 or the errno of what is missing. */
static inline int start_open_call(struct opener *o, int fd)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register reg = {.mode = UFFDIO_REGISTER_MODE_MISSING};
	long uffd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (uffd < 0 || ioctl((int)uffd, UFFDIO_API, &api) < 0)
		return errno;
	o->fd = fd;
	o->page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	reg.range.start = (uintptr_t)o->page;
	reg.range.len = 4096;
	if (ioctl((int)uffd, UFFDIO_REGISTER, &reg) < 0 ||
		pthread_create(&o->thread, NULL, open_call, o) != 0)
		return errno;
	/* The fault is reported when the thread hangs in it. */
	return poll(&(struct pollfd){.fd = (int)uffd, .events = POLLIN}, 1, 5000) == 1 ? 0 : EIO;
}

struct caller {
	const struct order *order;
	int fd;
	int tid, error;
};

static inline void *make_calls(void *arg)
{
	struct caller *c = arg;
	void *p = c->order->bad_pointer ? (void *)8 : (void *)(uintptr_t)c->order->arg;

	c->tid = (int)gettid();
	for (uint64_t i = 0; i < c->order->count; i++)
		c->error = ioctl(c->fd, c->order->cmd, p) < 0 ? errno : 0;
	return NULL;
}

static bool spinning;

static inline void *spin(void *arg)
{
	struct caller *c = arg;

	while (__atomic_load_n(&spinning, __ATOMIC_RELAXED))
		ioctl(c->fd, c->order->cmd, c->order->arg);
	return NULL;
}

static inline void obey(const struct order *o, int fd, struct answer *a)
{
	static struct caller spinners[3];
	static pthread_t threads[3];
	static struct order spin_order;
	static struct opener opener;
	struct caller c = {.order = o, .fd = fd};
	pthread_t t;
	pid_t pid;

	switch (o->act) {
	case ACT_THREAD:
		pthread_create(&t, NULL, make_calls, &c);
		pthread_join(t, NULL);
		break;
	case ACT_FORK:
		pid = fork();
		if (pid == 0) {
			make_calls(&c);
			_exit(c.error);
		}
		waitpid(pid, &c.error, 0);
		c.error = WEXITSTATUS(c.error);
		c.tid = pid;
		break;
	case ACT_OPEN_CALL:
		c.error = start_open_call(&opener, fd);
		c.tid = __atomic_load_n(&opener.tid, __ATOMIC_ACQUIRE);
		break;
	case ACT_SPIN:
		spin_order = *o;
		__atomic_store_n(&spinning, true, __ATOMIC_RELAXED);
		for (int i = 0; i < 3; i++) {
			spinners[i] = (struct caller){.order = &spin_order, .fd = fd};
			pthread_create(&threads[i], NULL, spin, &spinners[i]);
		}
		break;
	case ACT_STOP_SPIN:
		__atomic_store_n(&spinning, false, __ATOMIC_RELAXED);
		for (int i = 0; i < 3; i++)
			pthread_join(threads[i], NULL);
		break;
	default:
		make_calls(&c);
	}
	*a = (struct answer){.tid = c.tid, .fd = fd, .error = c.error};
}

/* The child: one CPU, so that its records have one sequence; ends with the parent's pipe. */
static inline void serve(int in, int out, bool one_cpu)
{
	struct order o;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	if (one_cpu)
		sched_setaffinity(0, sizeof(set), &set);
	while (read(in, &o, sizeof(o)) == sizeof(o) && o.act != ACT_QUIT) {
		int fd = open(o.file, O_RDWR | O_CLOEXEC);
		struct answer a;

		obey(&o, fd, &a);
		if (write(out, &a, sizeof(a)) != sizeof(a))
			break;
		/* The descriptors of calls that go on stay open. */
		if (o.act != ACT_OPEN_CALL && o.act != ACT_SPIN)
			close(fd);
	}
	_exit(0);
}

static inline bool start_child(struct bench *b, bool one_cpu)
{
	int down[2], up[2];

	if (pipe2(down, O_CLOEXEC) < 0 || pipe2(up, O_CLOEXEC) < 0)
		return false;
	fflush(NULL);
	b->child = fork();
	if (b->child == 0) {
		close(down[1]);
		close(up[0]);
		serve(down[0], up[1], one_cpu);
	}
	close(down[0]);
	close(up[1]);
	b->to_child = down[1];
	b->from_child = up[0];
	return b->child > 0;
}

static inline struct answer tell(struct bench *b, struct order o)
{
	struct answer a = {.error = -1};

	snprintf(o.file, sizeof(o.file), "%s", b->file);
	if (write(b->to_child, &o, sizeof(o)) != sizeof(o) ||
		read(b->from_child, &a, sizeof(a)) != sizeof(a))
		a.error = -1;
	return a;
}

static inline bool make_file(const struct scratch *s, const char *name)
{
	int fd = open(scratch_path(s, name).s, O_CREAT | O_RDWR | O_CLOEXEC, 0600);

	return fd >= 0 && close(fd) == 0;
}

/* Below /dev/shm where possible: on tmpfs the file's device number is the same for everybody. */
static inline bool make_root(struct scratch *s)
{
	snprintf(s->dir, sizeof(s->dir), "/dev/shm/ntrace-test-XXXXXX");
	if (!mkdtemp(s->dir) && !scratch_make(s))
		return false;
	return mkdir(scratch_path(s, "dev").s, 0700) == 0;
}

static inline void bench_close(struct bench *b)
{
	if (b->child > 0) {
		kill(b->child, SIGKILL);
		waitpid(b->child, NULL, 0);
		close(b->to_child);
		close(b->from_child);
	}
	ioctl_hooks_close(b->hooks);
	scratch_remove(&b->dir);
	free(b);
}

/* Hooks on root/dev/neuron0 and a child on one CPU that is tracked unless all are. */
static inline struct bench *bench_open(struct ioctl_hooks_options options, bool one_cpu)
{
	struct bench *b = calloc(1, sizeof(*b));
	bool ok = b && make_root(&b->dir) && make_file(&b->dir, "dev/neuron0") &&
		  start_child(b, one_cpu);

	if (!ok)
		return NULL;
	snprintf(b->file, sizeof(b->file), "%s", scratch_path(&b->dir, "dev/neuron0").s);
	ok = ioctl_hooks_open(&options, &b->hooks, b->why, sizeof(b->why)) == 0 &&
	     ioctl_hooks_scan_devices(b->hooks, b->dir.dir) == 1 &&
	     (options.all_processes || ioctl_hooks_track(b->hooks, b->child) == 0);
	test_info("hooks: %s", b->why);
	if (ok)
		return b;
	bench_close(b);
	return NULL;
}

static inline void cleanup_bench(struct bench **b)
{
	if (*b)
		bench_close(*b);
}

/* Drains until `want` records have come in all or five seconds are over. */
static inline void drain_until(struct bench *b, unsigned want)
{
	uint64_t end = clock_boot().ns + 5000000000ull, watermark;

	do {
		if (ioctl_hooks_drain(b->hooks, receive, &b->got, &watermark) < 0)
			return;
		if (b->got.count < want)
			poll(NULL, 0, 5);
	} while (b->got.count < want && clock_boot().ns < end);
}

struct sums {
	uint64_t c[NEV_C_MAX], open, received;
};

static inline struct sums sums(struct bench *b)
{
	struct sums s = {.open = UINT64_MAX};

	if (ioctl_hooks_counters(b->hooks, s.c, &s.open, &s.received) < 0)
		s.open = UINT64_MAX;
	return s;
}

static inline bool balanced(const struct sums *s)
{
	return s->c[NEV_C_ENTERED] ==
	       s->c[NEV_C_DONE] + s->c[NEV_C_LOST_RING_FULL] + s->c[NEV_C_LOST_INFLIGHT_FULL] +
		       s->c[NEV_C_LOST_EXIT] + s->c[NEV_C_LOST_RATE] + s->open;
}

static const struct order buf_copy = {
	.act = ACT_CALLS,
	.cmd = NEURON_IOCTL_MEM_BUF_COPY64,
	.count = 1,
	/* mem_handle 7, buffer, size 4096, offset 64, copy_to_mem_handle 1 */
	.arg = {[0] = 7, [8] = 0xff, [17] = 0x10, [24] = 64, [32] = 1},
};

#endif
