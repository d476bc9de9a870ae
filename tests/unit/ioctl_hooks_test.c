/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ioctl_hooks_test.c - the system-call hooks on real ioctls, without any device.
 *
 * The "neuron device" is an ordinary file below a private root: the hooks match it by inode, the
 * kernel answers ENOTTY, and that is all a test needs.  Calls come from a forked child that does what
 * its parent tells it through a pipe.  A call that stays open for as long as the test likes is
 * FIONREAD into a page that userfaultfd holds back.
 */
#include "agent/collect/ioctl_hooks.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "agent/collect/bpf_support.h"
#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "tests/shim/shim.h"
#include "tests/unit/scratch.h"
#include "vmlinux/ioctl_table.h"

#define MAX_RECORDS 4096

static const char *missing(void)
{
	if (geteuid() != 0)
		return "root (BPF programs)";
	if (access(BPF_KERNEL_BTF, R_OK) < 0)
		return "kernel BTF (" BPF_KERNEL_BTF ")";
	return NULL;
}

#define NEED_HOOKS()                                                                               \
	do {                                                                                       \
		if (missing())                                                                     \
			SKIP(missing());                                                           \
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

static int receive(void *ctx, const void *records, size_t size)
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

static void *open_call(void *arg)
{
	struct opener *o = arg;

	__atomic_store_n(&o->tid, (int)gettid(), __ATOMIC_RELEASE);
	ioctl(o->fd, FIONREAD, o->page);
	return NULL;
}

/* A thread that hangs in an ioctl until the process dies; 0 or the errno of what is missing. */
static int start_open_call(struct opener *o, int fd)
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

static void *make_calls(void *arg)
{
	struct caller *c = arg;
	void *p = c->order->bad_pointer ? (void *)8 : (void *)(uintptr_t)c->order->arg;

	c->tid = (int)gettid();
	for (uint64_t i = 0; i < c->order->count; i++)
		c->error = ioctl(c->fd, c->order->cmd, p) < 0 ? errno : 0;
	return NULL;
}

static bool spinning;

static void *spin(void *arg)
{
	struct caller *c = arg;

	while (__atomic_load_n(&spinning, __ATOMIC_RELAXED))
		ioctl(c->fd, c->order->cmd, c->order->arg);
	return NULL;
}

static void obey(const struct order *o, int fd, struct answer *a)
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
		c.tid = opener.tid;
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
static void serve(int in, int out, bool one_cpu)
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

static bool start_child(struct bench *b, bool one_cpu)
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

static struct answer tell(struct bench *b, struct order o)
{
	struct answer a = {.error = -1};

	snprintf(o.file, sizeof(o.file), "%s", b->file);
	if (write(b->to_child, &o, sizeof(o)) != sizeof(o) ||
		read(b->from_child, &a, sizeof(a)) != sizeof(a))
		a.error = -1;
	return a;
}

static bool make_file(const struct scratch *s, const char *name)
{
	int fd = open(scratch_path(s, name).s, O_CREAT | O_RDWR | O_CLOEXEC, 0600);

	return fd >= 0 && close(fd) == 0;
}

/* Below /dev/shm where possible: on tmpfs the file's device number is the same for everybody. */
static bool make_root(struct scratch *s)
{
	snprintf(s->dir, sizeof(s->dir), "/dev/shm/ntrace-test-XXXXXX");
	if (!mkdtemp(s->dir) && !scratch_make(s))
		return false;
	return mkdir(scratch_path(s, "dev").s, 0700) == 0;
}

static void bench_close(struct bench *b)
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
static struct bench *bench_open(struct ioctl_hooks_options options, bool one_cpu)
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

static void cleanup_bench(struct bench **b)
{
	if (*b)
		bench_close(*b);
}

/* Drains until `want` records have come in all or five seconds are over. */
static void drain_until(struct bench *b, unsigned want)
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

static struct sums sums(struct bench *b)
{
	struct sums s = {.open = UINT64_MAX};

	if (ioctl_hooks_counters(b->hooks, s.c, &s.open, &s.received) < 0)
		s.open = UINT64_MAX;
	return s;
}

static bool balanced(const struct sums *s)
{
	return s->c[NEV_C_ENTERED] == s->c[NEV_C_DONE] + s->c[NEV_C_LOST_RING_FULL] +
					      s->c[NEV_C_LOST_INFLIGHT_FULL] +
					      s->c[NEV_C_LOST_EXIT] + s->open;
}

static const struct order buf_copy = {
	.act = ACT_CALLS,
	.cmd = NEURON_IOCTL_MEM_BUF_COPY64,
	.count = 1,
	/* mem_handle 7, buffer, size 4096, offset 64, copy_to_mem_handle 1 */
	.arg = {[0] = 7, [8] = 0xff, [17] = 0x10, [24] = 64, [32] = 1},
};

/* ---- tests -------------------------------------------------------------------------------- */

TEST("hooks: a ring size that the kernel cannot take is refused with the nearest that it can",
	"[hooks]")
{
	static const struct {
		uint32_t bytes;
		const char *nearest;
	} cases[] = {
		{1, " 4096"},
		{5000, " 4096"},
		{7000, " 8192"},
		{4194305, " 4194304"},
		{6291456, " 4194304"},
		{6291457, " 8388608"},
		{0x80000000u, " 1073741824"},
	};

	if (sysconf(_SC_PAGESIZE) != 4096)
		SKIP("pages of 4096 bytes");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ioctl_hooks_options o = {.ring_bytes = cases[i].bytes};
		struct ioctl_hooks *h = NULL;
		char why[256] = "";
		size_t want = strlen(cases[i].nearest);

		test_info("ring of %u bytes: %s", cases[i].bytes, why);
		CHECK_EQ(ioctl_hooks_open(&o, &h, why, sizeof(why)), -EINVAL);
		CHECK(h == NULL);
		CHECK(strlen(why) > want &&
		      strcmp(why + strlen(why) - want, cases[i].nearest) == 0);
	}
}

TEST("hooks: without the right to load programs the reason is given and nothing is printed",
	"[hooks]")
{
	int up[2];
	char why[256] = "";
	pid_t pid;

	NEED_HOOKS();
	REQUIRE(pipe2(up, O_CLOEXEC) == 0);
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		struct ioctl_hooks_options o = {0};
		struct ioctl_hooks *h = NULL;

		/* What a library prints would come out of the pipe before the reason. */
		dup2(up[1], STDOUT_FILENO);
		dup2(up[1], STDERR_FILENO);
		if (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0)
			_exit(99);
		if (ioctl_hooks_open(&o, &h, why, sizeof(why)) != -EPERM)
			_exit(98);
		_exit(write(up[1], why, strlen(why)) < 0);
	}
	close(up[1]);
	CHECK(read(up[0], why, sizeof(why) - 1) > 0);
	close(up[0]);
	test_info("%s", why);
	CHECK(strstr(why, " is not permitted: run as root") != NULL);
	CHECK(strstr(why, "libbpf") == NULL);
	CHECK(strncmp(why, "loading", 7) == 0 || strncmp(why, "opening", 7) == 0);
	REQUIRE(waitpid(pid, &up[0], 0) == pid);
	CHECK_EQ(WEXITSTATUS(up[0]), 0);
}

TEST("hooks: a call gives one record with who, what, arguments and result", "[hooks]")
{
	_cleanup_(cleanup_bench) struct bench *b = NULL;
	uint64_t before = clock_boot().ns, after;
	const struct record *r;
	struct answer a;
	struct sums s;

	NEED_HOOKS();
	b = bench_open((struct ioctl_hooks_options){0}, true);
	REQUIRE(b != NULL);
	a = tell(b, buf_copy);
	after = clock_boot().ns;
	drain_until(b, 1);
	REQUIRE_EQ(b->got.count, 1);
	CHECK(!b->got.damaged);
	r = &b->got.rows[0];
	CHECK_EQ(r->head.hdr.type, NEV_IOCTL_DONE);
	CHECK_EQ(r->head.hdr.cpu, 0);
	CHECK_EQ(r->head.hdr.seq, 0);
	CHECK_EQ(r->head.tgid, b->child);
	CHECK_EQ(r->head.tid, a.tid);
	CHECK_EQ(r->head.fd, a.fd);
	CHECK_EQ(r->head.request, NEURON_IOCTL_MEM_BUF_COPY64);
	CHECK_EQ(r->head.result, -ENOTTY);
	CHECK_EQ(a.error, ENOTTY);
	CHECK_EQ(r->head.device, 0);
	CHECK_EQ(r->head.flags, 0);
	CHECK(r->head.start_ns > before && r->head.hdr.time_ns < after);
	CHECK_EQ(r->head.start_ns + r->head.duration_ns, r->head.hdr.time_ns);
	REQUIRE_EQ(r->head.hdr.nargs, 4);
	CHECK_EQ(r->args[0], 7);
	CHECK_EQ(r->args[1], 4096);
	CHECK_EQ(r->args[2], 64);
	CHECK_EQ(r->args[3], 1);
	s = sums(b);
	CHECK(balanced(&s));
	CHECK_EQ(s.c[NEV_C_ENTERED], 1);
	CHECK_EQ(s.received, 1);
}

TEST("hooks: every request of the table is decoded by its own row", "[hooks]")
{
	_cleanup_(cleanup_bench) struct bench *b = NULL;
	struct order o = {.act = ACT_CALLS, .count = 1};

	NEED_HOOKS();
	b = bench_open((struct ioctl_hooks_options){0}, true);
	REQUIRE(b != NULL);
	for (size_t i = 0; i < sizeof(o.arg); i++)
		o.arg[i] = (uint8_t)(i + 1);
	for (size_t i = 0; i < ioctl_row_count; i++) {
		o.cmd = ioctl_rows[i].cmd;
		tell(b, o);
	}
	drain_until(b, (unsigned)ioctl_row_count);
	REQUIRE_EQ(b->got.count, ioctl_row_count);
	for (size_t i = 0; i < ioctl_row_count; i++) {
		const struct record *r = &b->got.rows[i];
		const struct ioctl_row *row = &ioctl_rows[i];
		unsigned n = ioctl_row_fields(row);

		test_info("row %s", row->name);
		CHECK_EQ(r->head.request, row->cmd);
		CHECK_EQ(r->head.hdr.nargs, ioctl_class(n));
		CHECK_EQ(r->head.flags, 0);
		for (unsigned f = 0; f < NEV_MAX_ARGS; f++) {
			uint64_t want = 0;

			if (f < n)
				memcpy(&want, o.arg + row->fields[f].offset, row->fields[f].width);
			CHECK_EQ(r->args[f], want);
		}
	}
}

TEST("hooks: threads and children of a tracked process are seen, others are not", "[hooks]")
{
	_cleanup_(cleanup_bench) struct bench *b = NULL;
	struct order o = buf_copy;
	struct answer thread, fork;
	int fd;

	NEED_HOOKS();
	b = bench_open((struct ioctl_hooks_options){0}, true);
	REQUIRE(b != NULL);
	fd = open(b->file, O_RDWR | O_CLOEXEC); /* this process is not tracked */
	CHECK(ioctl(fd, buf_copy.cmd, buf_copy.arg) < 0 && errno == ENOTTY);
	o.act = ACT_THREAD;
	thread = tell(b, o);
	o.act = ACT_FORK;
	fork = tell(b, o);
	CHECK(ioctl(fd, buf_copy.cmd, buf_copy.arg) < 0 && errno == ENOTTY);
	close(fd);
	drain_until(b, 2);
	REQUIRE_EQ(b->got.count, 2);
	CHECK(thread.tid != b->child);
	CHECK_EQ(b->got.rows[0].head.tgid, b->child);
	CHECK_EQ(b->got.rows[0].head.tid, thread.tid);
	CHECK_EQ(b->got.rows[1].head.tgid, fork.tid);
	CHECK_EQ(b->got.rows[1].head.tid, fork.tid);
	CHECK_EQ(sums(b).c[NEV_C_ENTERED], 2);
}

TEST("hooks: with all_processes nobody needs to be tracked", "[hooks]")
{
	_cleanup_(cleanup_bench) struct bench *b = NULL;
	int fd;

	NEED_HOOKS();
	b = bench_open((struct ioctl_hooks_options){.all_processes = true}, true);
	REQUIRE(b != NULL);
	fd = open(b->file, O_RDWR | O_CLOEXEC);
	CHECK(ioctl(fd, buf_copy.cmd, buf_copy.arg) < 0);
	close(fd);
	tell(b, buf_copy);
	drain_until(b, 2);
	REQUIRE_EQ(b->got.count, 2);
	CHECK_EQ(b->got.rows[0].head.tgid, getpid());
	CHECK_EQ(b->got.rows[1].head.tgid, b->child);
}

TEST("hooks: only neuron files count; new devices and character devices are followed", "[hooks]")
{
	_cleanup_(cleanup_bench) struct bench *b = NULL;
	struct scratch_path other, chr;

	NEED_HOOKS();
	b = bench_open((struct ioctl_hooks_options){0}, true);
	REQUIRE(b != NULL);
	REQUIRE(make_file(&b->dir, "dev/neuron7") && make_file(&b->dir, "dev/neuron7x") &&
		make_file(&b->dir, "dev/neuro1") && make_file(&b->dir, "dev/neuron"));
	other = scratch_path(&b->dir, "dev/neuron7");
	snprintf(b->file, sizeof(b->file), "%s", other.s);
	tell(b, buf_copy); /* not yet known */
	CHECK_EQ(ioctl_hooks_scan_devices(b->hooks, b->dir.dir), 2);
	tell(b, buf_copy);
	chr = scratch_path(&b->dir, "dev/neuron12");
	REQUIRE(symlink("/dev/null", chr.s) == 0);
	CHECK_EQ(ioctl_hooks_scan_devices(b->hooks, b->dir.dir), 3);
	CHECK_EQ(ioctl_hooks_scan_devices(b->hooks, b->dir.dir), 3);
	CHECK_EQ(ioctl_hooks_device(b->hooks, 0), 0);
	CHECK_EQ(ioctl_hooks_device(b->hooks, 1), 7);
	CHECK_EQ(ioctl_hooks_device(b->hooks, 2), 12);
	snprintf(b->file, sizeof(b->file), "/dev/null");
	tell(b, buf_copy);
	drain_until(b, 2);
	REQUIRE_EQ(b->got.count, 2);
	CHECK_EQ(b->got.rows[0].head.device, 7);
	CHECK_EQ(b->got.rows[1].head.device, 12);
	CHECK_EQ(ioctl_hooks_scan_devices(b->hooks, "/nonexistent"), -ENOENT);
}

TEST("hooks: an argument that cannot be read and an unknown request are said so", "[hooks]")
{
	_cleanup_(cleanup_bench) struct bench *b = NULL;
	struct order bad = buf_copy, unknown = buf_copy;
	struct sums s;

	NEED_HOOKS();
	b = bench_open((struct ioctl_hooks_options){0}, true);
	REQUIRE(b != NULL);
	bad.bad_pointer = true;
	unknown.cmd = 0x4e00;
	tell(b, bad);
	tell(b, unknown);
	drain_until(b, 2);
	REQUIRE_EQ(b->got.count, 2);
	CHECK_EQ(b->got.rows[0].head.flags, NEV_F_ARG_FAULT);
	CHECK_EQ(b->got.rows[0].head.hdr.nargs, 4);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(b->got.rows[0].args[i], 0);
	CHECK_EQ(b->got.rows[1].head.flags, NEV_F_UNKNOWN);
	CHECK_EQ(b->got.rows[1].head.hdr.nargs, 0);
	s = sums(b);
	CHECK_EQ(s.c[NEV_C_ARG_FAULT], 1);
	CHECK(balanced(&s));
}

TEST("hooks: a full ring loses records, counts each and leaves gaps of that size", "[hooks]")
{
	_cleanup_(cleanup_bench) struct bench *b = NULL;
	struct order o = buf_copy;
	unsigned done;
	struct sums s;

	NEED_HOOKS();
	b = bench_open((struct ioctl_hooks_options){.ring_bytes = 4096}, true);
	REQUIRE(b != NULL);
	o.count = 1000;
	tell(b, o); /* nobody drains meanwhile */
	s = sums(b);
	CHECK_EQ(s.c[NEV_C_ENTERED], 1000);
	/* 96 bytes each with its head: as many as fit, and no fewer. */
	CHECK_EQ(s.c[NEV_C_DONE], 4096 / 96);
	CHECK_EQ(s.c[NEV_C_DONE] + s.c[NEV_C_LOST_RING_FULL], 1000);
	CHECK(balanced(&s));
	done = (unsigned)s.c[NEV_C_DONE];
	drain_until(b, done);
	CHECK_EQ(b->got.count, done);
	/* One more record shows the gap. */
	tell(b, buf_copy);
	drain_until(b, done + 1);
	REQUIRE_EQ(b->got.count, done + 1);
	for (unsigned i = 0; i < done; i++)
		CHECK_EQ(b->got.rows[i].head.hdr.seq, i);
	CHECK_EQ(b->got.rows[done].head.hdr.seq - b->got.rows[done - 1].head.hdr.seq - 1,
		s.c[NEV_C_LOST_RING_FULL]);
	CHECK_EQ(sums(b).received, done + 1);
}

TEST("hooks: a call open for long is announced once and its end still comes", "[hooks]")
{
	_cleanup_(cleanup_bench) struct bench *b = NULL;
	struct order o = {.act = ACT_OPEN_CALL};
	uint64_t watermark = 0;
	const struct record *r;
	struct answer a;
	struct sums s;

	NEED_HOOKS();
	b = bench_open((struct ioctl_hooks_options){0}, false);
	REQUIRE(b != NULL);
	a = tell(b, o);
	if (a.error == ENOSYS || a.error == EPERM)
		SKIP("userfaultfd");
	REQUIRE_EQ(a.error, 0);
	drain_until(b, 1);
	REQUIRE_EQ(b->got.count, 1);
	r = &b->got.rows[0];
	CHECK_EQ(r->head.hdr.type, NEV_IOCTL_START);
	CHECK_EQ(r->head.hdr.cpu, 0xffff);
	CHECK_EQ(r->head.hdr.seq, 0);
	CHECK_EQ(r->head.tgid, b->child);
	CHECK_EQ(r->head.tid, a.tid);
	CHECK_EQ(r->head.request, FIONREAD);
	CHECK_EQ(r->head.duration_ns, 0);
	CHECK(r->head.hdr.time_ns - r->head.start_ns >= 100000000ull);
	/* It is not announced again, and holds the watermark back. */
	for (int i = 0; i < 5; i++)
		CHECK_EQ(ioctl_hooks_drain(b->hooks, receive, &b->got, &watermark), 0);
	CHECK_EQ(watermark, r->head.start_ns);
	s = sums(b);
	CHECK_EQ(s.open, 1);
	CHECK(balanced(&s));
	/* Killed in the middle of the call: the kernel ends it, and that is seen. */
	kill(b->child, SIGKILL);
	drain_until(b, 2);
	REQUIRE_EQ(b->got.count, 2);
	CHECK_EQ(b->got.rows[1].head.hdr.type, NEV_IOCTL_DONE);
	CHECK_EQ(b->got.rows[1].head.start_ns, b->got.rows[0].head.start_ns);
	CHECK(b->got.rows[1].head.result < 0);
	s = sums(b);
	CHECK_EQ(s.open, 0);
	CHECK(balanced(&s));
	CHECK_EQ(ioctl_hooks_drain(b->hooks, receive, &b->got, &watermark), 0);
	CHECK(watermark > b->got.rows[1].head.hdr.time_ns);
}

TEST("hooks: calls that find no room among the open ones are counted", "[hooks]")
{
	_cleanup_(cleanup_bench) struct bench *b = NULL;
	struct order o = {.act = ACT_OPEN_CALL}, more = buf_copy;
	struct answer a;
	struct sums s;

	NEED_HOOKS();
	b = bench_open((struct ioctl_hooks_options){.inflight_limit = 1}, false);
	REQUIRE(b != NULL);
	a = tell(b, o);
	if (a.error == ENOSYS || a.error == EPERM)
		SKIP("userfaultfd");
	REQUIRE_EQ(a.error, 0);
	more.count = 10;
	tell(b, more);
	s = sums(b);
	CHECK_EQ(s.c[NEV_C_ENTERED], 11);
	CHECK_EQ(s.c[NEV_C_LOST_INFLIGHT_FULL], 10);
	CHECK_EQ(s.open, 1);
	CHECK(balanced(&s));
}

/* File descriptor of this process's BPF map with that name; -1 if there is none. */
static int map_named(const char *name)
{
	for (int fd = 0; fd < 1024; fd++) {
		struct bpf_map_info info = {0};
		uint32_t size = sizeof(info);
		char link[32], target[64];
		ssize_t n;

		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		n = readlink(link, target, sizeof(target) - 1);
		if (n <= 0 || strncmp(target, "anon_inode:bpf-map", 18) != 0)
			continue;
		if (bpf_obj_get_info_by_fd(fd, &info, &size) == 0 && strcmp(info.name, name) == 0)
			return fd;
	}
	return -1;
}

TEST("hooks: a return that was never seen is found when the thread calls again or ends", "[hooks]")
{
	_cleanup_(cleanup_bench) struct bench *b = NULL;
	struct nev_inflight stale = {.start_ns = 1};
	uint32_t tid;
	struct sums s;
	int map;

	NEED_HOOKS();
	b = bench_open((struct ioctl_hooks_options){0}, true);
	REQUIRE(b != NULL);
	map = map_named("inflight");
	REQUIRE(map >= 0);
	tid = (uint32_t)b->child;
	REQUIRE(bpf_map_update_elem(map, &tid, &stale, BPF_ANY) == 0);
	CHECK_EQ(sums(b).open, 1);
	tell(b, buf_copy);
	drain_until(b, 1);
	REQUIRE_EQ(b->got.count, 1);
	CHECK(b->got.rows[0].head.start_ns > 1);
	s = sums(b);
	CHECK_EQ(s.c[NEV_C_LOST_EXIT], 1);
	CHECK_EQ(s.open, 0);
	REQUIRE(bpf_map_update_elem(map, &tid, &stale, BPF_ANY) == 0);
	tell(b, (struct order){.act = ACT_QUIT});
	waitpid(b->child, NULL, 0);
	b->child = 0;
	s = sums(b);
	CHECK_EQ(s.c[NEV_C_LOST_EXIT], 2);
	CHECK_EQ(s.open, 0);
}

TEST("hooks: a process that has ended is forgotten, with its last thread and no earlier", "[hooks]")
{
	_cleanup_(cleanup_bench) struct bench *b = NULL;
	struct order o = buf_copy;
	uint32_t tgid, value;
	int map;

	NEED_HOOKS();
	b = bench_open((struct ioctl_hooks_options){0}, true);
	REQUIRE(b != NULL);
	map = map_named("tracked");
	REQUIRE(map >= 0);
	o.act = ACT_THREAD;
	tell(b, o); /* a thread has come and gone */
	tell(b, buf_copy);
	drain_until(b, 2);
	CHECK_EQ(b->got.count, 2);
	tgid = (uint32_t)b->child;
	CHECK(bpf_map_lookup_elem(map, &tgid, &value) == 0);
	o.act = ACT_FORK;
	tgid = (uint32_t)tell(b, o).tid;
	CHECK(bpf_map_lookup_elem(map, &tgid, &value) == -ENOENT);
	tgid = (uint32_t)b->child;
	tell(b, (struct order){.act = ACT_QUIT});
	waitpid(b->child, NULL, 0);
	b->child = 0;
	CHECK(bpf_map_lookup_elem(map, &tgid, &value) == -ENOENT);
}

TEST("hooks: no record comes that is older than a watermark given before", "[hooks]")
{
	_cleanup_(cleanup_bench) struct bench *b = NULL;
	struct order o = buf_copy;
	uint64_t watermark = 0, before, total = 0, first;
	unsigned late = 0, moved = 0;
	struct sums s;

	NEED_HOOKS();
	b = bench_open((struct ioctl_hooks_options){0}, false);
	REQUIRE(b != NULL);
	o.act = ACT_SPIN;
	first = clock_boot().ns;
	tell(b, o);
	for (int drains = 0; drains < 300 || total < 20000; drains++) {
		b->got.count = 0;
		before = watermark;
		REQUIRE(ioctl_hooks_drain(b->hooks, receive, &b->got, &watermark) >= 0);
		for (unsigned i = 0; i < b->got.count; i++)
			late += b->got.rows[i].head.start_ns < before;
		moved += watermark > before;
		total += b->got.count;
		REQUIRE(clock_boot().ns - first < 30000000000ull);
	}
	CHECK_EQ(late, 0);
	CHECK(moved > 100);
	o.act = ACT_STOP_SPIN;
	tell(b, o);
	REQUIRE(ioctl_hooks_drain(b->hooks, receive, &b->got, &watermark) >= 0);
	CHECK(watermark > first);
	s = sums(b);
	CHECK(balanced(&s));
	CHECK_EQ(s.open, 0);
	CHECK_EQ(s.received, s.c[NEV_C_DONE]);
}

static int refuse(void *ctx, const void *records, size_t size)
{
	(void)records;
	*(size_t *)ctx += size;
	return -ENOSPC;
}

TEST("hooks: a callback that fails stops the drain with its own answer", "[hooks]")
{
	_cleanup_(cleanup_bench) struct bench *b = NULL;
	size_t seen = 0;
	uint64_t watermark;

	NEED_HOOKS();
	b = bench_open((struct ioctl_hooks_options){0}, true);
	REQUIRE(b != NULL);
	tell(b, buf_copy);
	CHECK_EQ(ioctl_hooks_drain(b->hooks, refuse, &seen, &watermark), -ENOSPC);
	CHECK_EQ(seen, sizeof(struct nev_ioctl) + 4 * sizeof(uint64_t));
}

TEST("hooks: the names of what is attached", "[hooks]")
{
	_cleanup_(cleanup_bench) struct bench *b = NULL;
	unsigned n = 0, calls = 0;

	NEED_HOOKS();
	b = bench_open((struct ioctl_hooks_options){0}, true);
	REQUIRE(b != NULL);
	for (const char *const *name = ioctl_hooks_names(b->hooks); *name; name++, n++)
		calls += strncmp(*name, "tracepoint:syscalls:sys_e", 25) == 0;
	CHECK_EQ(n, 4);
	CHECK_EQ(calls, 2);
}

/* Ids of the BPF programs that process `pid` holds; returns how many. */
static int programs_of(pid_t pid, uint32_t *ids, int max)
{
	char pattern[64], line[128];
	int n = 0;
	glob_t g;

	snprintf(pattern, sizeof(pattern), "/proc/%d/fdinfo/*", pid);
	if (glob(pattern, 0, NULL, &g) != 0)
		return 0;
	for (size_t i = 0; i < g.gl_pathc; i++) {
		FILE *f = fopen(g.gl_pathv[i], "re");

		while (f && n < max && fgets(line, sizeof(line), f))
			if (sscanf(line, "prog_id: %u", &ids[n]) == 1)
				n++;
		if (f)
			fclose(f);
	}
	globfree(&g);
	return n;
}

TEST("hooks: nothing stays in the kernel when the process is killed", "[hooks]")
{
	uint32_t ids[64];
	int up[2], count, left;
	uint64_t end;
	pid_t pid;
	char c;

	NEED_HOOKS();
	REQUIRE(pipe2(up, O_CLOEXEC) == 0);
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		struct ioctl_hooks_options o = {0};
		struct ioctl_hooks *h;
		char why[64];

		if (ioctl_hooks_open(&o, &h, why, sizeof(why)) < 0 || write(up[1], "!", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(up[1]);
	CHECK(read(up[0], &c, 1) == 1);
	close(up[0]);
	count = programs_of(pid, ids, 64);
	CHECK(count >= 5);
	kill(pid, SIGKILL);
	REQUIRE(waitpid(pid, NULL, 0) == pid);
	/* Programs go when the kernel has waited for their last user. */
	end = clock_boot().ns + 10000000000ull;
	do {
		left = 0;
		for (int i = 0; i < count; i++) {
			int fd = bpf_prog_get_fd_by_id(ids[i]);

			left += fd >= 0;
			if (fd >= 0)
				close(fd);
		}
		if (left)
			poll(NULL, 0, 10);
	} while (left && clock_boot().ns < end);
	CHECK_EQ(left, 0);
}

TEST("hooks: no mount is left behind", "[hooks]")
{
	_cleanup_(cleanup_bench) struct bench *b = NULL;
	char *before, *after;
	size_t size;

	NEED_HOOKS();
	REQUIRE(file_read("/proc/self/mountinfo", 1u << 20, &before, &size) == 0);
	b = bench_open((struct ioctl_hooks_options){0}, true);
	REQUIRE(b != NULL);
	REQUIRE(file_read("/proc/self/mountinfo", 1u << 20, &after, &size) == 0);
	CHECK(strstr(after, "tracefs") == NULL || strstr(before, "tracefs") != NULL);
	CHECK(strstr(after, " bpf ") == NULL || strstr(before, " bpf ") != NULL);
	free(before);
	free(after);
}

static unsigned occurrences(const char *text, const char *what)
{
	unsigned n = 0;

	for (; (text = strstr(text, what)); text++)
		n++;
	return n;
}

TEST("hooks: BPF sources reserve ring space in one place only and check it", "[bpf]")
{
	glob_t g;

	if (glob("bpf/*.bpf.c", 0, NULL, &g) != 0)
		SKIP("the source tree (run from its top)");
	for (size_t i = 0; i < g.gl_pathc; i++) {
		char *text = NULL;
		const char *at;
		size_t size;

		test_info("%s", g.gl_pathv[i]);
		REQUIRE(file_read(g.gl_pathv[i], 1u << 20, &text, &size) == 0);
		at = strstr(text, "bpf_ringbuf_reserve(");
		CHECK(occurrences(text, "bpf_ringbuf_reserve(") <= 1);
		CHECK_EQ(occurrences(text, "bpf_ringbuf_output("), 0);
		CHECK_EQ(occurrences(text, "bpf_ringbuf_submit("), at != NULL);
		/* What reserves also counts its failure. */
		CHECK(!at || (strstr(at, "if (!e)") && strstr(at, "NEV_C_LOST_RING_FULL")));
		free(text);
	}
	globfree(&g);
}
