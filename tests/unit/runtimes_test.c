/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtimes_test.c - the agent's side of announcements: whom it follows, whom it refuses, and that a broken
 * runtime harms nobody else.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/collect/runtimes.h"
#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/trace/announce.h"
#include "runtime/trace/attach.h"
#include "tests/shim/shim.h"

#define CAPACITY 64u
#define RING_OFFSET (CTL_PAGE_BYTES + CTL_NAMES_BYTES)

struct seen {
	unsigned processes, records;
	bool wanted;
	pid_t pid;    /* 0: this process */
	bool foreign; /* it was said to be in another pid namespace */
	unsigned thread_count;
	struct rec_thread threads[8]; /* the last ones */
	unsigned failures;
	struct rec_failure failure; /* the last one */
};

static bool wants(void *ctx, pid_t pid)
{
	const struct seen *seen = ctx;

	return seen->wanted && pid == (seen->pid ? seen->pid : getpid());
}

static int on_process(void *ctx, const struct runtime_source *s)
{
	((struct seen *)ctx)->processes += s->pid == getpid();
	return 0;
}

static int on_records(void *ctx, const struct runtime_source *s, uint32_t nc_idx, uint32_t lane,
	const struct trace_record *records, size_t count)
{
	(void)s;
	(void)nc_idx;
	(void)lane;
	(void)records;
	((struct seen *)ctx)->records += (unsigned)count;
	return 0;
}

static int on_name(
	void *ctx, const struct runtime_source *s, uint64_t id, const char *text, uint32_t len)
{
	(void)ctx;
	(void)s;
	(void)id;
	(void)text;
	(void)len;
	return 0;
}

static int on_threads(
	void *ctx, const struct runtime_source *s, const struct rec_thread *rows, size_t count)
{
	(void)s;
	for (size_t i = 0; i < count; i++)
		((struct seen *)ctx)->threads[((struct seen *)ctx)->thread_count++ % 8] = rows[i];
	((struct seen *)ctx)->foreign = true;
	return 0;
}

static int on_failure(void *ctx, const struct rec_failure *failure)
{
	((struct seen *)ctx)->failures++;
	((struct seen *)ctx)->failure = *failure;
	return 0;
}

static struct runtimes *open_runtimes(struct seen *seen)
{
	struct runtimes_sink sink = {.wants = wants,
		.on_process = on_process,
		.on_records = on_records,
		.on_name = on_name,
		.on_threads = on_threads,
		.on_failure = on_failure,
		.ctx = seen};
	struct runtimes *r = NULL;

	return runtimes_open(0, 2, &sink, &r) < 0 ? NULL : r;
}

/* A runtime made by hand: its memory, and its end of the connection. */
struct fake {
	int memfd, fd;
	struct ctl *ctl;
};

static bool fake_open(struct fake *f)
{
	size_t bytes = RING_OFFSET + ring_bytes(CAPACITY);

	f->fd = -1;
	f->memfd = memfd_create(CTL_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (f->memfd < 0 || ftruncate(f->memfd, (off_t)bytes) < 0 ||
		fcntl(f->memfd, F_ADD_SEALS, F_SEAL_SHRINK) < 0)
		return false;
	f->ctl = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, f->memfd, 0);
	if (f->ctl == MAP_FAILED)
		return false;
	f->ctl->magic = CTL_MAGIC;
	f->ctl->version = CTL_VERSION;
	f->ctl->names_offset = CTL_PAGE_BYTES;
	f->ctl->rings[0].capacity = CAPACITY;
	f->ctl->rings[0].offset = RING_OFFSET;
	f->ctl->ring_count = 1;
	return true;
}

static void fake_close(struct fake *f)
{
	munmap(f->ctl, RING_OFFSET + ring_bytes(CAPACITY));
	cleanup_close(&f->memfd);
	cleanup_close(&f->fd);
}

static void fake_emit(struct fake *f)
{
	struct ring_head *head = (struct ring_head *)((char *)f->ctl + RING_OFFSET);
	struct ring_writer w = {
		.head = head, .slots = {(struct ring_slot *)(head + 1)}, .capacity = CAPACITY};
	struct ring_event e = {
		.timestamp_ns = clock_boot().ns, .wanted = CTL_SUB_BIT(CTL_SUB_AGENT)};

	(void)ring_emit(&w, &e);
}

static int connect_to(const struct runtimes *r)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	const char *name = runtimes_socket_name(r);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	memcpy(addr.sun_path + 1, name + 1, strlen(name) - 1);
	if (connect(fd, (struct sockaddr *)&addr,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name))) < 0)
		cleanup_close(&fd);
	return fd;
}

static bool say_hello(struct fake *f, const struct runtimes *r)
{
	struct announce_msg m = {.magic = ANNOUNCE_MAGIC, .kind = ANNOUNCE_HELLO};
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int))];
	} control = {.align = {.cmsg_level = SOL_SOCKET,
			     .cmsg_type = SCM_RIGHTS,
			     .cmsg_len = CMSG_LEN(sizeof(int))}};
	struct iovec iov = {&m, sizeof(m)};
	struct msghdr mh = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.buf,
		.msg_controllen = sizeof(control.buf)};

	f->fd = connect_to(r);
	memcpy(CMSG_DATA(&control.align), &f->memfd, sizeof(int));
	return f->fd >= 0 && sendmsg(f->fd, &mh, 0) == (ssize_t)sizeof(m);
}

static uint32_t answer(const struct fake *f)
{
	struct announce_msg m = {0};

	return recv(f->fd, &m, sizeof(m), MSG_DONTWAIT) == (ssize_t)sizeof(m) ? m.kind : 0;
}

static void serve(struct runtimes *r)
{
	for (int i = 0; i < 4; i++) /* accept, then hello */
		CHECK_EQ(runtimes_serve(r), 0);
}

TEST("runtimes: a runtime is enabled, followed, and known again when it comes back", "[agent]")
{
	struct seen seen = {.wanted = true};
	struct runtimes *r = open_runtimes(&seen);
	struct fake f;

	REQUIRE(r);
	REQUIRE(fake_open(&f) && say_hello(&f, r));
	serve(r);
	CHECK_EQ(answer(&f), ANNOUNCE_ENABLE);
	fake_emit(&f);
	CHECK_EQ(runtimes_poll(r, false), 1);
	cleanup_close(&f.fd);
	serve(r);
	REQUIRE(say_hello(&f, r));
	serve(r);
	CHECK_EQ(answer(&f), ANNOUNCE_ENABLE);
	fake_emit(&f);
	CHECK_EQ(runtimes_poll(r, false), 1);
	CHECK_EQ(seen.records, 2);
	CHECK_EQ(seen.processes, 1);
	runtimes_close(r);
	fake_close(&f);
}

TEST("runtimes: a process that is not wanted, and a file that is none, are refused and counted",
	"[agent]")
{
	struct seen seen = {.wanted = false};
	struct runtimes *r = open_runtimes(&seen);
	struct fake f, broken;

	REQUIRE(r);
	REQUIRE(fake_open(&f) && say_hello(&f, r));
	serve(r);
	CHECK_EQ(answer(&f), ANNOUNCE_REFUSE);
	seen.wanted = true;
	REQUIRE(fake_open(&broken));
	broken.ctl->magic++;
	REQUIRE(say_hello(&broken, r));
	serve(r);
	CHECK_EQ(answer(&broken), ANNOUNCE_REFUSE);
	CHECK_EQ(runtimes_refused(r), 2);
	CHECK_EQ(seen.processes, 0);
	runtimes_close(r);
	fake_close(&f);
	fake_close(&broken);
}

/* A runtime says that its nrt_init failed; its end of the connection. */
static int say_failed(const struct runtimes *r, uint32_t status)
{
	const struct announce_msg m = {
		.magic = ANNOUNCE_MAGIC, .kind = ANNOUNCE_FAILED, .flags = status};
	int fd = connect_to(r);

	CHECK(fd >= 0 && send(fd, &m, sizeof(m), MSG_NOSIGNAL) == (ssize_t)sizeof(m));
	return fd;
}

TEST("runtimes: an nrt_init that failed is heard, also when its process has closed the connection",
	"[agent]")
{
	struct seen seen = {.wanted = true};
	struct runtimes *r = open_runtimes(&seen);
	char comm[16] = "", byte;
	int fd;

	REQUIRE(r);
	fd = say_failed(r, 6);
	serve(r);
	CHECK_EQ(seen.failures, 1);
	CHECK_EQ(seen.failure.pid, (uint32_t)getpid());
	CHECK_EQ(seen.failure.status, 6);
	CHECK_EQ(file_read_line("/proc/self/comm", comm, sizeof(comm)), 0);
	CHECK(strncmp(seen.failure.comm, comm, sizeof(comm)) == 0);
	CHECK_EQ(recv(fd, &byte, 1, MSG_DONTWAIT), 0); /* it need not wait any longer */
	close(fd);
	close(say_failed(r, 2));
	serve(r);
	CHECK_EQ(seen.failures, 2);
	CHECK_EQ(seen.failure.status, 2);
	/* Nobody was refused, and of a process that is not wanted nothing is heard. */
	seen.wanted = false;
	close(say_failed(r, 2));
	serve(r);
	CHECK_EQ(seen.failures, 2);
	CHECK_EQ(runtimes_refused(r), 0);
	runtimes_close(r);
}

/* A process that is the agent of this file until it is killed. */
static pid_t start_other_agent(int memfd)
{
	char byte = 0;
	pid_t holder;
	int ready[2];

	if (pipe(ready) < 0)
		return -1;
	pid_t pid = fork();
	if (pid == 0) {
		if (attach_claim(memfd, &holder) < 0 || write(ready[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		pid = -1;
	close(ready[0]);
	return pid;
}

TEST("runtimes: one that another agent records is refused, and taken when that one is gone",
	"[agent]")
{
	struct seen seen = {.wanted = true};
	struct runtimes *r = open_runtimes(&seen);
	char why[256] = "", names[32];
	struct fake f;
	pid_t other;

	REQUIRE(r);
	REQUIRE(fake_open(&f));
	other = start_other_agent(f.memfd);
	REQUIRE(other > 0 && say_hello(&f, r));
	serve(r);
	CHECK_EQ(answer(&f), ANNOUNCE_REFUSE);
	CHECK_EQ(runtimes_refused(r), 1);
	CHECK_EQ(runtimes_attach(
			 r, getpid(), fcntl(f.memfd, F_DUPFD_CLOEXEC, 0), -1, why, sizeof(why)),
		-EBUSY);
	snprintf(names, sizeof(names), "by process %d ", (int)other);
	CHECK(strstr(why, names));
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
	cleanup_close(&f.fd);
	REQUIRE(say_hello(&f, r));
	serve(r);
	CHECK_EQ(answer(&f), ANNOUNCE_ENABLE);
	/* A second hello for the same file must not cost the lock. */
	cleanup_close(&f.fd);
	serve(r);
	REQUIRE(say_hello(&f, r));
	serve(r);
	CHECK_EQ(answer(&f), ANNOUNCE_ENABLE);
	CHECK_EQ(start_other_agent(f.memfd), -1);
	CHECK_EQ(waitpid(-1, NULL, 0) > 0, true);
	runtimes_close(r);
	fake_close(&f);
}

TEST("runtimes: one whose memory breaks its rules is dropped, the others are followed on",
	"[agent]")
{
	struct seen seen = {.wanted = true};
	struct runtimes *r = open_runtimes(&seen);
	struct runtime_source s;
	struct fake bad, good;
	uint64_t mark;

	REQUIRE(r);
	REQUIRE(fake_open(&bad) && say_hello(&bad, r));
	serve(r);
	REQUIRE(fake_open(&good) && say_hello(&good, r));
	serve(r);
	bad.ctl->ring_count = CTL_MAX_RINGS + 1;
	fake_emit(&good);
	CHECK_EQ(runtimes_poll(r, false), 1);
	CHECK_EQ(runtimes_failed(r), 1);
	fake_emit(&good);
	CHECK_EQ(runtimes_poll(r, false), 1);
	CHECK_EQ(runtimes_failed(r), 1);
	CHECK(runtimes_get(r, 0, &s, &mark) && s.failed);
	CHECK(runtimes_get(r, 1, &s, &mark) && !s.failed);
	CHECK(!runtimes_reader(r, 0) && runtimes_reader(r, 1));
	cleanup_close(&bad.fd);
	REQUIRE(say_hello(&bad, r)); /* the same file again */
	serve(r);
	CHECK_EQ(answer(&bad), ANNOUNCE_REFUSE);
	runtimes_close(r);
	fake_close(&bad);
	fake_close(&good);
}

TEST("runtimes: callers that never say hello are bounded, and the oldest make room for the newest",
	"[agent]")
{
	struct seen seen = {.wanted = true};
	struct runtimes *r = open_runtimes(&seen);
	struct pollfd callers[100];
	struct fake f;

	REQUIRE(r);
	for (int i = 0; i < 100; i++) {
		callers[i] = (struct pollfd){.fd = connect_to(r), .events = POLLIN};
		CHECK(callers[i].fd >= 0);
		CHECK_EQ(runtimes_serve(r), 0);
	}
	CHECK_EQ(runtimes_refused(r), 36); /* 100 less the 64 that may wait */
	CHECK_EQ(poll(callers, 100, 0), 36);
	CHECK(callers[0].revents && callers[35].revents);
	REQUIRE(fake_open(&f) && say_hello(&f, r));
	serve(r);
	CHECK_EQ(answer(&f), ANNOUNCE_ENABLE);
	for (int i = 0; i < 100; i++)
		cleanup_close(&callers[i].fd);
	serve(r);
	CHECK_EQ(runtimes_refused(r), 37);
	runtimes_close(r);
	fake_close(&f);
}

TEST("runtimes: many that call and say hello at once are all let in", "[agent]")
{
	struct seen seen = {.wanted = true};
	struct runtimes *r = open_runtimes(&seen);
	struct fake f[100];

	REQUIRE(r);
	for (int i = 0; i < 100; i++)
		REQUIRE(fake_open(&f[i]) && say_hello(&f[i], r));
	serve(r);
	serve(r);
	for (int i = 0; i < 100; i++) {
		CHECK_EQ(answer(&f[i]), ANNOUNCE_ENABLE);
		fake_close(&f[i]);
	}
	CHECK_EQ(runtimes_refused(r), 0);
	runtimes_close(r);
}

TEST("runtimes: a caller that does not say hello within a second is sent away, by a poll too",
	"[agent]")
{
	for (int by_poll = 0; by_poll < 2; by_poll++) {
		struct seen seen = {.wanted = true};
		struct runtimes *r = open_runtimes(&seen);
		uint64_t begin = clock_boot().ns;

		REQUIRE(r);
		struct pollfd caller = {.fd = connect_to(r), .events = POLLIN};
		serve(r);
		while (poll(&caller, 1, 10) == 0 && clock_boot().ns - begin < 10000000000u)
			CHECK_EQ(by_poll ? runtimes_poll(r, false) : runtimes_serve(r), 0);
		CHECK(caller.revents);
		CHECK(clock_boot().ns - begin > 1000000000u);
		CHECK_EQ(runtimes_refused(r), 1);
		cleanup_close(&caller.fd);
		runtimes_close(r);
	}
}

/* Announces itself, leaves a record, closes its connection at the first byte, ends at the second. */
static void run_child(const struct runtimes *r, int step_fd)
{
	struct fake f;
	char step;

	if (!fake_open(&f))
		_exit(1);
	fake_emit(&f);
	f.ctl->names_lost = 3;
	if (!say_hello(&f, r) || read(step_fd, &step, 1) != 1)
		_exit(1);
	cleanup_close(&f.fd);
	_exit(read(step_fd, &step, 1) != 1);
}

static void await(const struct runtimes *r)
{
	struct pollfd news = {.fd = runtimes_fd(r), .events = POLLIN};

	REQUIRE_EQ(poll(&news, 1, 20000), 1);
}

TEST("runtimes: the memory of a process is let go when it is gone, not when it closed; the numbers "
     "stay",
	"[agent]")
{
	struct seen seen = {.wanted = true};
	struct runtimes *r = open_runtimes(&seen);
	struct runtime_source s;
	struct ring_counters n;
	uint64_t before, after;
	uint32_t nc, lane;
	siginfo_t si;
	int step[2];

	REQUIRE(r);
	REQUIRE_EQ(pipe2(step, O_CLOEXEC), 0);
	seen.pid = fork();
	if (seen.pid == 0)
		run_child(r, step[0]);
	while (!runtimes_get(r, 0, &s, &before)) {
		await(r);
		REQUIRE_EQ(runtimes_serve(r), 0);
	}
	CHECK_EQ(runtimes_poll(r, false), 1);
	REQUIRE_EQ(write(step[1], "x", 1), 1);
	await(r);
	serve(r);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(runtimes_poll(r, false), 0);
	CHECK(runtimes_reader(r, 0)); /* it may come back */
	runtimes_get(r, 0, &s, &before);
	REQUIRE_EQ(write(step[1], "x", 1), 1);
	/* Its parent has not taken notice yet. */
	REQUIRE_EQ(waitid(P_PID, (id_t)seen.pid, &si, WEXITED | WNOWAIT), 0);
	CHECK_EQ(si.si_status, 0);
	CHECK_EQ(runtimes_poll(r, false), 0);
	CHECK(!runtimes_reader(r, 0));
	waitpid(seen.pid, NULL, 0);
	CHECK_EQ(runtimes_poll(r, true), 0);
	CHECK(runtimes_get(r, 0, &s, &after) && s.pid == seen.pid && !s.failed);
	CHECK(after > before); /* it holds nothing back */
	REQUIRE_EQ(runtimes_ring_count(r, 0), 2);
	runtimes_ring(r, 0, 0, &nc, &lane, &n);
	CHECK_EQ(nc, 0);
	CHECK_EQ(n.emitted, 1);
	CHECK_EQ(n.delivered, 1);
	CHECK_EQ(runtimes_names_lost(r, 0), 3);
	CHECK(!runtimes_get(r, 1, &s, &after));
	runtimes_close(r);
	close(step[0]);
	close(step[1]);
}

/* From now on nothing can be mapped. */
static void no_memory(struct rlimit *old)
{
	struct rlimit none;

	REQUIRE_EQ(getrlimit(RLIMIT_AS, old), 0);
	none = *old;
	none.rlim_cur = 1u << 20;
	REQUIRE_EQ(setrlimit(RLIMIT_AS, &none), 0);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define NEED_OWN_MEMORY() SKIP("a build without a sanitizer, which maps memory of its own")
#else
#define NEED_OWN_MEMORY()
#endif

TEST("runtimes: one that ends while memory is short is read when there is some", "[agent]")
{
	struct seen seen = {.wanted = true};
	struct runtimes *r;
	struct runtime_source s;
	struct rlimit old;
	uint64_t mark;
	siginfo_t si;
	int step[2];

	NEED_OWN_MEMORY();
	r = open_runtimes(&seen);
	REQUIRE(r);
	REQUIRE_EQ(pipe2(step, O_CLOEXEC), 0);
	seen.pid = fork();
	if (seen.pid == 0)
		run_child(r, step[0]);
	while (!runtimes_get(r, 0, &s, &mark)) {
		await(r);
		REQUIRE_EQ(runtimes_serve(r), 0);
	}
	REQUIRE_EQ(write(step[1], "xx", 2), 2);
	await(r);
	serve(r);
	REQUIRE_EQ(waitid(P_PID, (id_t)seen.pid, &si, WEXITED), 0);
	no_memory(&old);
	CHECK_EQ(runtimes_poll(r, false), 0);
	REQUIRE_EQ(setrlimit(RLIMIT_AS, &old), 0);
	CHECK(runtimes_reader(r, 0));
	CHECK_EQ(runtimes_poll(r, true), 1);
	CHECK_EQ(runtimes_failed(r), 0);
	runtimes_close(r);
	close(step[0]);
	close(step[1]);
}

TEST("runtimes: one that cannot be read at the end for want of memory counts as failed", "[agent]")
{
	struct seen seen = {.wanted = true};
	struct runtimes *r;
	struct runtime_source s;
	struct rlimit old;
	struct fake f;
	uint64_t mark;

	NEED_OWN_MEMORY();
	r = open_runtimes(&seen);
	REQUIRE(r);
	REQUIRE(fake_open(&f) && say_hello(&f, r));
	serve(r);
	fake_emit(&f);
	no_memory(&old);
	CHECK_EQ(runtimes_poll(r, true), 0);
	REQUIRE_EQ(setrlimit(RLIMIT_AS, &old), 0);
	CHECK_EQ(runtimes_failed(r), 1);
	CHECK(runtimes_get(r, 0, &s, &mark) && s.failed);
	runtimes_close(r);
	fake_close(&f);
}

/* From now on no descriptor can be made. */
static void no_descriptors(struct rlimit *old)
{
	int next = dup(0);
	struct rlimit now;

	REQUIRE(next >= 0);
	close(next);
	REQUIRE_EQ(getrlimit(RLIMIT_NOFILE, old), 0);
	now = *old;
	now.rlim_cur = (rlim_t)next;
	REQUIRE_EQ(setrlimit(RLIMIT_NOFILE, &now), 0);
}

TEST("runtimes: at the limit of descriptors callers are refused and counted, and nothing spins",
	"[agent]")
{
	struct seen seen = {.wanted = true};
	struct runtimes *r = open_runtimes(&seen);
	struct fake early, late[3], after;
	struct rlimit old;

	REQUIRE(r);
	REQUIRE(fake_open(&early) && fake_open(&after));
	REQUIRE(say_hello(&early, r));
	CHECK_EQ(runtimes_serve(r), 0); /* accepted, its hello not yet read */
	for (int i = 0; i < 3; i++)
		REQUIRE(fake_open(&late[i]) && say_hello(&late[i], r));
	no_descriptors(&old);
	serve(r);
	struct pollfd news = {.fd = runtimes_fd(r), .events = POLLIN};
	CHECK_EQ(poll(&news, 1, 0), 0);
	setrlimit(RLIMIT_NOFILE, &old);
	CHECK_EQ(answer(&early), ANNOUNCE_REFUSE); /* its file found no place */
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(answer(&late[i]), ANNOUNCE_REFUSE);
		fake_close(&late[i]);
	}
	CHECK_EQ(runtimes_refused(r), 4);
	CHECK_EQ(seen.processes, 0);
	REQUIRE(say_hello(&after, r));
	serve(r);
	CHECK_EQ(answer(&after), ANNOUNCE_ENABLE);
	runtimes_close(r);
	fake_close(&early);
	fake_close(&after);
}

TEST("runtimes: a hello without its file is refused and counted", "[agent]")
{
	struct announce_msg m = {.magic = ANNOUNCE_MAGIC, .kind = ANNOUNCE_HELLO};
	struct seen seen = {.wanted = true};
	struct runtimes *r = open_runtimes(&seen);
	struct fake f;

	REQUIRE(r);
	f.fd = connect_to(r);
	REQUIRE_EQ(send(f.fd, &m, sizeof(m), 0), (ssize_t)sizeof(m));
	serve(r);
	CHECK_EQ(answer(&f), ANNOUNCE_REFUSE);
	CHECK_EQ(runtimes_refused(r), 1);
	cleanup_close(&f.fd);
	runtimes_close(r);
}

TEST("runtimes: the soft limit of descriptors is raised while open, and the old one is known",
	"[agent]")
{
	struct seen seen = {.wanted = true};
	struct rlimit first, low, now;

	REQUIRE_EQ(getrlimit(RLIMIT_NOFILE, &first), 0);
	low = (struct rlimit){first.rlim_max - 1, first.rlim_max};
	REQUIRE_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
	struct runtimes *r = open_runtimes(&seen);
	REQUIRE(r);
	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &now), 0);
	CHECK_EQ(now.rlim_cur, first.rlim_max);
	REQUIRE(runtimes_old_limit(r));
	CHECK_EQ(runtimes_old_limit(r)->rlim_cur, low.rlim_cur);
	runtimes_close(r);
	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &now), 0);
	CHECK_EQ(now.rlim_cur, low.rlim_cur);
	setrlimit(RLIMIT_NOFILE, &first);
}
