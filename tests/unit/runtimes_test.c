/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtimes_test.c - the agent's side of announcements: whom it follows, whom it refuses, and that a broken
 * runtime harms nobody else.
 */
#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/collect/runtimes.h"
#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/trace/announce.h"
#include "tests/shim/shim.h"

#define CAPACITY 64u
#define RING_OFFSET (CTL_PAGE_BYTES + CTL_NAMES_BYTES)

struct seen {
	unsigned processes, records;
	bool wanted;
};

static bool wants(void *ctx, pid_t pid)
{
	return ((struct seen *)ctx)->wanted && pid == getpid();
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

static struct runtimes *open_runtimes(struct seen *seen)
{
	struct runtimes_sink sink = {.wants = wants,
		.on_process = on_process,
		.on_records = on_records,
		.on_name = on_name,
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
	struct ring_writer w = {head, (struct ring_slot *)(head + 1), CAPACITY};
	struct trace_record rec = {.timestamp_ns = clock_boot().ns};

	ring_emit(&w, &rec, 0);
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
	runtimes_close(r);
	fake_close(&bad);
	fake_close(&good);
}

TEST("runtimes: callers that never say hello are bounded, and make room when they go", "[agent]")
{
	struct seen seen = {.wanted = true};
	struct runtimes *r = open_runtimes(&seen);
	int fds[100];
	struct fake f;

	REQUIRE(r);
	for (int i = 0; i < 100; i++) {
		fds[i] = connect_to(r);
		CHECK(fds[i] >= 0);
		CHECK_EQ(runtimes_serve(r), 0);
	}
	CHECK_EQ(runtimes_refused(r), 36); /* 100 less the 64 that may wait */
	for (int i = 0; i < 100; i++)
		cleanup_close(&fds[i]);
	serve(r);
	REQUIRE(fake_open(&f) && say_hello(&f, r));
	serve(r);
	CHECK_EQ(answer(&f), ANNOUNCE_ENABLE);
	runtimes_close(r);
	fake_close(&f);
}
