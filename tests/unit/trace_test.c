/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_test.c - emission inside the runtime: gate, ids, rings on demand, fork, and the agent's
 * connection.
 *
 * The state under test is one per process and cannot be undone, so each test runs in a child, which
 * returns 0 or the number of the line that was not satisfied (modulo 251, plus 1).
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/trace/announce.h"
#include "runtime/trace/intern.h"
#include "runtime/trace/payload.h"
#include "runtime/trace/trace.h"
#include "tests/shim/shim.h"
#include "tests/unit/fake_agent.h"
#include "tests/unit/scratch.h"

#define WANT(x)                                                                 \
	do {                                                                    \
		if (!(x)) {                                                     \
			fprintf(stderr, "trace_test.c:%d: %s\n", __LINE__, #x); \
			return __LINE__ % 251 + 1;                              \
		}                                                               \
	} while (0)

/* ---- what a reader gets ------------------------------------------------------------------- */

struct seen {
	struct ctl_reader *reader;
	bool of_api; /* the API reads, not the agent */
	struct trace_record records[64];
	size_t count;
	char names[256];
};

static int on_batch(
	void *ctx, uint32_t nc, uint32_t lane, const struct trace_record *records, size_t count)
{
	struct seen *s = ctx;

	(void)nc;
	(void)lane;
	for (size_t i = 0; i < count && s->count < 64; i++)
		s->records[s->count++] = records[i];
	return 0;
}

static int on_name(void *ctx, uint64_t id, const char *text, uint32_t len)
{
	struct seen *s = ctx;
	size_t used = strlen(s->names);

	snprintf(s->names + used, sizeof(s->names) - used, "%llu=%.*s;", (unsigned long long)id,
		(int)len, text);
	return 0;
}

/* Reads everything that is new into s. */
static long look(struct seen *s)
{
	s->count = 0;
	if (!s->reader) {
		int rc = ctl_reader_open(
			trace_control_fd(), s->of_api ? CTL_SUB_API : CTL_SUB_AGENT, &s->reader);

		if (rc < 0)
			return rc;
	}
	return ctl_reader_poll(s->reader, false, clock_boot().ns, on_batch, on_name, s);
}

static int counters_of(struct seen *s, uint32_t nc, struct ring_counters *ret)
{
	for (uint32_t i = 0; i < ctl_reader_rings(s->reader); i++) {
		uint32_t row_nc, lane;

		ctl_reader_counters(s->reader, i, &row_nc, &lane, ret);
		if (row_nc == nc)
			return 0;
	}
	return -ENOENT;
}

/* ---- emission ----------------------------------------------------------------------------- */

static int quiet_without_subscriber(void *arg)
{
	struct trace_model payload = {1};
	struct trace_span span;
	static struct seen s;

	(void)arg;
	WANT(!trace_on());
	span = trace_start(0, TRACE_EXECUTE_API, &payload, sizeof(payload));
	trace_stop(&span, 0, NULL, 0);
	WANT(trace_open() == 0 && trace_open() == 0);
	WANT(!trace_on());
	trace_core_touch(0);
	trace_instant(0, TRACE_GENERIC, NULL, 0);
	WANT(look(&s) == 0);
	WANT(ctl_reader_rings(s.reader) == 1); /* the row of no core: nothing was made */
	WANT(ctl_reader_pid(s.reader) == (uint32_t)getpid());
	return 0;
}

TEST("trace: without a subscriber nothing is emitted and no ring exists", "[trace]")
{
	CHECK_EQ(scratch_child(quiet_without_subscriber, NULL), 0);
}

static int spans(void *arg)
{
	struct trace_device_exec payload = {.exec_id = 9, .model_id = 5};
	struct trace_span span, other;
	uint64_t before, after;
	static struct seen s;

	(void)arg;
	trace_core_touch(2);
	WANT(trace_subscribe(CTL_SUB_AGENT, NULL, 0) == 0);
	WANT(trace_on());
	before = clock_boot().ns;
	span = trace_start(2, TRACE_EXECUTE_API, &payload, sizeof(payload));
	other = trace_start(TRACE_NC_UNKNOWN, TRACE_MODEL_LOAD, NULL, 0);
	trace_stop(&other, 2, NULL, 0);
	trace_stop(&span, 1005, NULL, 0);
	after = clock_boot().ns;
	WANT(look(&s) == 4);
	/* Rings come in the order of their making: no core, then core 2. */
	WANT(s.records[0].phase == TRACE_START && s.records[0].trace_type == TRACE_MODEL_LOAD);
	WANT(s.records[0].nc_idx == TRACE_NC_UNKNOWN);
	WANT(s.records[0].tracking_id == (1ull | 256ull << 50));
	WANT(s.records[1].phase == TRACE_STOP && s.records[1].status == 2);
	WANT(s.records[1].tracking_id == s.records[0].tracking_id);
	WANT(s.records[2].nc_idx == 2 && s.records[2].tracking_id == (1ull | 2ull << 50));
	WANT(s.records[3].tracking_id == s.records[2].tracking_id);
	WANT(s.records[3].status == 1005 && s.records[3].phase == TRACE_STOP);
	WANT(memcmp(s.records[2].data, &payload, sizeof(payload)) == 0);
	WANT(s.records[2].thread_id == (uint64_t)syscall(SYS_gettid));
	WANT(s.records[2].timestamp_ns >= before && s.records[3].timestamp_ns <= after);
	WANT(s.records[2].timestamp_ns <= s.records[3].timestamp_ns);
	return 0;
}

TEST("trace: start and stop share an id; cores have rings of their own", "[trace]")
{
	CHECK_EQ(scratch_child(spans, NULL), 0);
}

static int late_and_off(void *arg)
{
	struct trace_span early, late;
	struct ring_counters c;
	static struct seen s;

	(void)arg;
	WANT(trace_open() == 0);
	early = trace_start(0, TRACE_EXECUTE_API, NULL, 0);
	WANT(trace_subscribe(CTL_SUB_AGENT, NULL, 0) == 0);
	trace_stop(&early, 0, NULL, 0); /* its start was not wanted, so neither is its stop */
	trace_instant(7, TRACE_GENERIC, NULL, 0); /* a core nobody touched */
	WANT(look(&s) == 0);
	WANT(counters_of(&s, TRACE_NC_UNKNOWN, &c) == 0);
	WANT(c.no_ring == 1 && c.emitted == 1);
	trace_core_touch(7);
	trace_instant(7, TRACE_GENERIC, NULL, 0);
	WANT(look(&s) == 1);
	late = trace_start(7, TRACE_EXECUTE_API, NULL, 0);
	trace_unsubscribe(CTL_SUB_AGENT);
	WANT(!trace_on());
	trace_stop(&late, 0, NULL, 0);
	WANT(look(&s) == 1); /* the start; the stop is not wanted any more */
	WANT(trace_event_at(
		     (struct boot_ns){1}, 7, TRACE_DEVICE_EXEC, TRACE_START, 0, 0, NULL, 0) == 0);
	return 0;
}

TEST("trace: a core without a ring is counted; half-wanted spans stay silent", "[trace]")
{
	CHECK_EQ(scratch_child(late_and_off, NULL), 0);
}

/* Two subscribers: the API wants one type, of core 1; the agent all types of cores 1 and 70. */
static int two_filters(void *arg)
{
	struct trace_filter api = {1ull << TRACE_EXECUTE_API, {2}},
			    agent = {UINT64_MAX, {2, 1ull << (70 - 64)}};
	static struct seen of_api = {.of_api = true}, of_agent;
	struct ring_counters c;

	(void)arg;
	for (uint32_t nc = 0; nc < 100; nc++)
		trace_core_touch(nc);
	WANT(trace_subscribe(CTL_SUB_API, &api, 0) == 0);
	WANT(trace_on() && trace_wanted(1, TRACE_EXECUTE_API) == CTL_SUB_BIT(CTL_SUB_API));
	WANT(!trace_wanted(1, TRACE_GENERIC) && !trace_wanted(2, TRACE_EXECUTE_API));
	WANT(trace_wanted(TRACE_NC_UNKNOWN, TRACE_EXECUTE_API));
	trace_instant(1, TRACE_GENERIC, NULL, 0); /* nobody's: not emitted */
	trace_instant(1, TRACE_EXECUTE_API, NULL, 0);
	WANT(look(&of_api) == 1 && look(&of_agent) == 0);
	WANT(counters_of(&of_agent, 1, &c) == 0);
	WANT(c.emitted == 1 && c.filtered == 1 && c.delivered == 0);

	struct trace_span before = trace_start(1, TRACE_EXECUTE_API, NULL, 0);
	WANT(trace_subscribe(CTL_SUB_AGENT, &agent, 0) == 0);
	trace_stop(&before, 0, NULL, 0); /* not the agent's: it has no start of it */
	trace_instant(1, TRACE_GENERIC, NULL, 0);
	trace_instant(1, TRACE_EXECUTE_API, NULL, 0);
	trace_instant(70, TRACE_EXECUTE_API, NULL, 0);
	trace_instant(2, TRACE_GENERIC, NULL, 0); /* nobody's */
	WANT(look(&of_api) == 3 && of_api.records[1].phase == TRACE_STOP);
	WANT(look(&of_agent) == 3 && of_agent.records[0].trace_type == TRACE_GENERIC);
	WANT(counters_of(&of_api, 1, &c) == 0);
	WANT(c.emitted == 5 && c.delivered == 4 && c.filtered == 1);
	WANT(counters_of(&of_agent, 1, &c) == 0);
	WANT(c.emitted == 5 && c.delivered == 2 && c.filtered == 3);
	WANT(counters_of(&of_agent, 2, &c) == -ENOENT); /* no ring for what nobody wants */

	trace_unsubscribe(CTL_SUB_API);
	WANT(trace_wanted(1, TRACE_EXECUTE_API) == CTL_SUB_BIT(CTL_SUB_AGENT));
	trace_instant(1, TRACE_EXECUTE_API, NULL, 0);
	WANT(look(&of_api) == 0 && look(&of_agent) == 1);
	WANT(trace_subscribe(CTL_SUB_AGENT, &api, 0) == 0); /* the new filter replaces the old */
	WANT(!trace_wanted(70, TRACE_EXECUTE_API) && !trace_wanted(1, TRACE_GENERIC));
	trace_unsubscribe(CTL_SUB_AGENT);
	WANT(!trace_on() && !trace_wanted(1, TRACE_EXECUTE_API));
	return 0;
}

TEST("trace: each subscriber gets what its own filter wants, and counts what others wanted",
	"[trace]")
{
	CHECK_EQ(scratch_child(two_filters, NULL), 0);
}

static int at_a_time(void *arg)
{
	struct trace_device_stop stop = {{5, 6}};
	static struct seen s;
	uint64_t id;

	(void)arg;
	trace_core_touch(1);
	WANT(trace_subscribe(CTL_SUB_AGENT, NULL, 5000) == 0);
	id = trace_event_at(
		(struct boot_ns){1000}, 1, TRACE_DEVICE_EXEC, TRACE_START, 0, 0, NULL, 0);
	WANT(id != 0);
	WANT(trace_event_at((struct boot_ns){3000}, 1, TRACE_DEVICE_EXEC, TRACE_STOP, id, 7, &stop,
		     sizeof(stop)) == id);
	WANT(look(&s) == 2);
	WANT(s.records[0].timestamp_ns == 1000 && s.records[1].timestamp_ns == 3000);
	WANT(s.records[1].status == 7 && memcmp(s.records[1].data, &stop, sizeof(stop)) == 0);
	return 0;
}

TEST("trace: events of the device carry the time they are given", "[trace]")
{
	CHECK_EQ(scratch_child(at_a_time, NULL), 0);
}

static int names(void *arg)
{
	static struct seen s;
	char want[64];
	uint64_t id;

	(void)arg;
	WANT(trace_open() == 0);
	id = trace_intern("add_vectors");
	WANT(id == intern_id("add_vectors", 11));
	WANT(trace_intern("add_vectors") == id);
	WANT(look(&s) == 0);
	snprintf(want, sizeof(want), "%llu=add_vectors;", (unsigned long long)id);
	WANT(strcmp(s.names, want) == 0);
	return 0;
}

TEST("trace: a name is logged once", "[trace]")
{
	CHECK_EQ(scratch_child(names, NULL), 0);
}

/* ---- descriptors and fork ----------------------------------------------------------------- */

static int find_memfd(void)
{
	char path[64], target[128];

	for (int fd = 0; fd < 1100; fd++) {
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, target, sizeof(target) - 1);
		if (n > 0) {
			target[n] = '\0';
			if (strstr(target, CTL_NAME))
				return fd;
		}
	}
	return -1;
}

static int stolen_descriptor(void *arg)
{
	static struct seen s;
	struct stat st;
	int fd, other;

	(void)arg;
	WANT(trace_subscribe(CTL_SUB_AGENT, NULL, 0) == 0);
	fd = find_memfd();
	WANT(fd >= 200);
	WANT(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	WANT(fcntl(fd, F_GET_SEALS) & F_SEAL_SHRINK);
	WANT(look(&s) == 0); /* the reader has its own descriptor */
	other = memfd_create("theirs", MFD_CLOEXEC);
	WANT(other >= 0 && dup2(other, fd) == fd);
	trace_core_touch(4); /* wants to grow the file */
	trace_instant(4, TRACE_GENERIC, NULL, 0);
	WANT(fstat(other, &st) == 0 && st.st_size == 0);
	WANT(trace_control_fd() == -EBADF);
	trace_instant(TRACE_NC_UNKNOWN, TRACE_GENERIC, NULL, 0);
	WANT(look(&s) == 1); /* what was there goes on */
	return 0;
}

TEST("trace: a descriptor that the program took away is never used again", "[trace]")
{
	CHECK_EQ(scratch_child(stolen_descriptor, NULL), 0);
}

static int in_grandchild(void *arg)
{
	(void)arg;
	WANT(!trace_on());
	trace_instant(0, TRACE_GENERIC, NULL, 0);
	trace_unsubscribe(CTL_SUB_AGENT); /* must not touch the parent's word */
	WANT(trace_subscribe(CTL_SUB_AGENT, NULL, 0) == -ECHILD);
	WANT(trace_open() == -ECHILD);
	trace_core_touch(0);
	WANT(trace_intern("x") == intern_id("x", 1));
	WANT(find_memfd() == -1);
	return 0;
}

static int forks(void *arg)
{
	static struct seen s;

	(void)arg;
	trace_core_touch(0);
	WANT(trace_subscribe(CTL_SUB_AGENT, NULL, 0) == 0);
	trace_instant(0, TRACE_GENERIC, NULL, 0);
	WANT(scratch_child(in_grandchild, NULL) == 0);
	WANT(trace_on());
	trace_instant(0, TRACE_GENERIC, NULL, 0);
	WANT(look(&s) == 2);
	WANT(s.records[1].thread_id == (uint64_t)getpid());
	return 0;
}

TEST("trace: the child of a fork writes nothing and leaves its parent alone", "[trace]")
{
	CHECK_EQ(scratch_child(forks, NULL), 0);
}

/* ---- an agent ----------------------------------------------------------------------------- */

/* Waits until the gate says `on`, at most 10 s. */
static bool gate_becomes(bool on)
{
	uint64_t end = clock_boot().ns + 10000000000ull;

	while (trace_on() != on && clock_boot().ns < end)
		(void)sched_yield();
	return trace_on() == on;
}

static int agent_listens(void *arg)
{
	struct announce_msg off = {.magic = ANNOUNCE_MAGIC, .kind = ANNOUNCE_DISABLE};
	struct announce_msg on = {.magic = ANNOUNCE_MAGIC, .kind = ANNOUNCE_ENABLE};
	struct ctl_reader *reader;
	struct agent a;

	(void)arg;
	WANT(trace_open() == 0);
	trace_core_touch(0);
	WANT(agent_listen(&a, ANNOUNCE_ENABLE) == 0);
	WANT(trace_service_start(true) == 1);
	WANT(pthread_join(a.thread, NULL) == 0);
	WANT(trace_on());
	WANT(a.hello.magic == ANNOUNCE_MAGIC && a.hello.kind == ANNOUNCE_HELLO);
	WANT(a.hello.flags == ANNOUNCE_F_VIRTUAL);
	WANT(ctl_reader_open(a.control_fd, CTL_SUB_AGENT, &reader) == 0);
	trace_instant(0, TRACE_GENERIC, NULL, 0);
	WANT(ctl_reader_poll(reader, false, 1, NULL, NULL, NULL) == 1);
	WANT(send(a.peer, &off, sizeof(off), 0) == sizeof(off));
	WANT(gate_becomes(false));
	WANT(send(a.peer, &on, sizeof(on), 0) == sizeof(on));
	WANT(gate_becomes(true));
	/* nrt_close and nrt_init: the connection stays, there is no second hello. */
	trace_service_stop();
	WANT(trace_on());
	WANT(trace_service_start(true) == 1);
	WANT(trace_on());
	/* The agent dies. */
	WANT(close(a.peer) == 0);
	WANT(gate_becomes(false));
	trace_service_stop();
	ctl_reader_close(reader);
	return 0;
}

TEST("trace: an agent is told of the process, enables, disables, and may die", "[trace]")
{
	CHECK_EQ(scratch_child(agent_listens, NULL), 0);
}

static int agent_refuses(void *arg)
{
	struct agent a;

	(void)arg;
	WANT(trace_open() == 0);
	WANT(agent_listen(&a, ANNOUNCE_REFUSE) == 0);
	WANT(trace_service_start(false) == 0);
	WANT(pthread_join(a.thread, NULL) == 0);
	WANT(a.hello.flags == 0);
	WANT(!trace_on());
	return 0;
}

static int agent_is_silent(void *arg)
{
	uint64_t begin, waited;
	struct agent a;

	(void)arg;
	WANT(trace_open() == 0);
	WANT(agent_listen(&a, 0) == 0);
	begin = clock_boot().ns;
	WANT(trace_service_start(false) == -ETIMEDOUT);
	waited = clock_boot().ns - begin;
	WANT(pthread_join(a.thread, NULL) == 0);
	WANT(waited >= ANNOUNCE_TIMEOUT_MS * 1000000ull && waited < 20000000000ull);
	WANT(!trace_on());
	return 0;
}

/* A stopped agent: nobody takes connections, and its queue is full. */
static int agent_is_stopped(void *arg)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	uint64_t begin, waited;
	socklen_t len = sizeof(addr);
	int listener, fd;

	(void)arg;
	(void)alarm(60); /* hanging is a failure too */
	WANT(trace_open() == 0);
	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	/* Bound to no name, it gets a free one of five digits. */
	WANT(bind(listener, (struct sockaddr *)&addr, sizeof(addr.sun_family)) == 0);
	WANT(listen(listener, 0) == 0);
	WANT(getsockname(listener, (struct sockaddr *)&addr, &len) == 0);
	do {
		fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		WANT(fd >= 0);
	} while (connect(fd, (struct sockaddr *)&addr, len) == 0);
	WANT(errno == EAGAIN);
	addr.sun_path[0] = '@';
	setenv(ANNOUNCE_ENV, addr.sun_path, 1);
	begin = clock_boot().ns;
	WANT(trace_service_start(false) == -ETIMEDOUT);
	waited = clock_boot().ns - begin;
	WANT(waited >= ANNOUNCE_TIMEOUT_MS * 1000000ull && waited < 20000000000ull);
	WANT(!trace_on());
	return 0;
}

static int agent_is_absent(void *arg)
{
	(void)arg;
	WANT(trace_open() == 0);
	unsetenv(ANNOUNCE_ENV);
	WANT(trace_service_start(false) == 0);
	setenv(ANNOUNCE_ENV, "@ntrace-nobody-listens-here", 1);
	WANT(trace_service_start(false) == -ECONNREFUSED);
	setenv(ANNOUNCE_ENV, "/nonexistent/socket", 1);
	WANT(trace_service_start(false) == -ENOENT);
	WANT(!trace_on());
	trace_service_stop();
	return 0;
}

TEST("trace: an agent that refuses, is silent, stopped or absent leaves the runtime untraced",
	"[trace]")
{
	CHECK_EQ(scratch_child(agent_refuses, NULL), 0);
	CHECK_EQ(scratch_child(agent_is_silent, NULL), 0);
	CHECK_EQ(scratch_child(agent_is_stopped, NULL), 0);
	CHECK_EQ(scratch_child(agent_is_absent, NULL), 0);
}

static int lives_on(void *arg)
{
	(void)arg;
	WANT(!trace_on());
	WANT(find_memfd() == -1);
	trace_service_stop(); /* there is no thread here */
	return 0;
}

static int agent_and_fork(void *arg)
{
	struct agent a;
	char byte;

	(void)arg;
	WANT(trace_open() == 0);
	WANT(agent_listen(&a, ANNOUNCE_ENABLE) == 0);
	WANT(trace_service_start(false) == 1);
	WANT(pthread_join(a.thread, NULL) == 0);
	WANT(close(a.control_fd) == 0); /* the agent's own, in this process */
	WANT(scratch_child(lives_on, NULL) == 0);
	WANT(trace_on());
	WANT(recv(a.peer, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
	trace_service_stop();
	return 0;
}

TEST("trace: a fork does not disturb the agent's connection", "[trace]")
{
	CHECK_EQ(scratch_child(agent_and_fork, NULL), 0);
}
