/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attach_test.c - an agent and a runtime that runs already: the mailbox, the lock, the file that is found, and the
 * rings of a process that is killed while it is followed.
 *
 * The agent's lock is one of processes, so agent and runtime are two here as well.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/collect/attach.h"
#include "agent/collect/runtimes.h"
#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/trace/announce.h"
#include "runtime/trace/attach.h"
#include "runtime/trace/trace.h"
#include "tests/shim/shim.h"
#include "tests/unit/records_sink.h"
#include "tests/unit/scratch.h"

#define WANT(x)                                                                  \
	do {                                                                     \
		if (!(x)) {                                                      \
			fprintf(stderr, "attach_test.c:%d: %s\n", __LINE__, #x); \
			return __LINE__ % 251 + 1;                               \
		}                                                                \
	} while (0)

#define PATIENCE_MS 20000
#define AGENT_BIT CTL_SUB_BIT(CTL_SUB_AGENT)

static bool agent_wants(void)
{
	return atomic_load(&trace_gate.any) & AGENT_BIT;
}

/* Waits until the runtime has the agent's word, or has it no more. */
static bool word_becomes(bool on)
{
	uint64_t end = clock_boot().ns + PATIENCE_MS * 1000000ull;

	while (agent_wants() != on && clock_boot().ns < end)
		(void)sched_yield();
	return agent_wants() == on;
}

/* Two processes take turns: each writes a byte when it is the other's. */
struct turns {
	int to_agent[2], to_runtime[2];
};

static bool give_turn(const int to[2])
{
	return write(to[1], "x", 1) == 1;
}

static bool take_turn(const int from[2])
{
	char byte;

	return read(from[0], &byte, 1) == 1;
}

/* Runs the agent in a child of its own; its status. */
static pid_t start_agent(int (*agent)(int fd, struct turns *), int fd, struct turns *t)
{
	fflush(NULL);
	pid_t pid = fork();

	if (pid == 0)
		_exit(agent(fd, t));
	return pid;
}

static int status_of(pid_t pid)
{
	int status = -1;

	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static bool open_turns(struct turns *t)
{
	return pipe(t->to_agent) == 0 && pipe(t->to_runtime) == 0;
}

/* As an agent finds it: what the runtime hands out is to be read only. */
static int control_fd_to_write(void)
{
	_cleanup_close_ int fd = trace_control_fd();
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_RDWR | O_CLOEXEC);
}

/* ---- the mailbox -------------------------------------------------------------------------- */

static bool balanced(const struct ctl_reader *r, struct ring_counters *sum)
{
	memset(sum, 0, sizeof(*sum));
	for (uint32_t i = 0; i < ctl_reader_rings(r); i++) {
		struct ring_counters c;
		uint32_t nc, lane;

		ctl_reader_counters(r, i, &nc, &lane, &c);
		if (c.emitted != c.delivered + c.unread + c.overwritten + c.filtered + c.slot_busy +
					 c.no_ring + c.abandoned)
			return false;
		sum->emitted += c.emitted;
		sum->delivered += c.delivered;
		sum->filtered += c.filtered;
		sum->overwritten += c.overwritten;
		sum->no_ring += c.no_ring;
	}
	return true;
}

static int agent_follows(int fd, struct turns *t)
{
	struct ctl_reader *reader;
	struct ring_counters sum;
	struct attach_page page;
	pid_t holder;

	WANT(attach_claim(fd, &holder) == 0);
	WANT(ctl_reader_open(fd, CTL_SUB_AGENT, &reader) == 0);
	WANT(ctl_reader_skip(reader) == 0);
	WANT(attach_subscribe(&page, fd, 2048, 0) == 0);
	WANT(attach_answer(&page, PATIENCE_MS) == 0);
	WANT(atomic_load(&page.ctl->mail.flags) == ANNOUNCE_F_VIRTUAL);
	WANT(give_turn(t->to_runtime) && take_turn(t->to_agent));
	attach_unsubscribe(&page);
	WANT(attach_answer(&page, PATIENCE_MS) == 0);
	WANT(give_turn(t->to_runtime) && take_turn(t->to_agent));
	WANT(ctl_reader_poll(reader, false, clock_boot().ns, NULL, NULL, NULL) == 5);
	WANT(balanced(reader, &sum));
	WANT(sum.emitted == 7 && sum.delivered == 5 && sum.filtered == 2);
	WANT(sum.no_ring == 0 && sum.overwritten == 0);
	attach_close(&page);
	ctl_reader_close(reader);
	return 0;
}

/* What others record before and meanwhile is not the agent's. */
static int is_followed(void *arg)
{
	struct turns t;
	pid_t agent;

	(void)arg;
	WANT(open_turns(&t) && trace_open() == 0);
	trace_core_touch(0);
	WANT(trace_service_start(ANNOUNCE_F_VIRTUAL) == 0);
	WANT(trace_subscribe(CTL_SUB_API, NULL, 1024) == 0);
	for (int i = 0; i < 3000; i++) /* more than a ring holds */
		trace_instant(i % 2 ? 0 : 1, TRACE_GENERIC, NULL, 0);
	agent = start_agent(agent_follows, control_fd_to_write(), &t);
	WANT(take_turn(t.to_runtime) && agent_wants());
	for (int i = 0; i < 5; i++)
		trace_instant(0, TRACE_GENERIC, NULL, 0);
	WANT(give_turn(t.to_agent) && take_turn(t.to_runtime) && !agent_wants());
	for (int i = 0; i < 2; i++)
		trace_instant(0, TRACE_GENERIC, NULL, 0);
	WANT(give_turn(t.to_agent));
	WANT(status_of(agent) == 0);
	trace_service_stop();
	return 0;
}

static int agent_dies(int fd, struct turns *t)
{
	struct attach_page page;
	pid_t holder;

	WANT(attach_claim(fd, &holder) == 0);
	WANT(attach_subscribe(&page, fd, 0, 0) == 0);
	WANT(attach_answer(&page, PATIENCE_MS) == 0);
	WANT(give_turn(t->to_runtime) && take_turn(t->to_agent));
	raise(SIGKILL);
	return 0;
}

static int agent_is_second(int fd, struct turns *t)
{
	struct attach_page page;
	pid_t holder;

	(void)t;
	WANT(attach_claim(fd, &holder) == -EBUSY && holder > 0);
	/* One who asks all the same is heard for as long as somebody has the lock: it keeps out mistakes, not malice. */
	WANT(attach_subscribe(&page, fd, 0, 0) == 0);
	attach_close(&page);
	return holder % 128;
}

static int agent_without_lock(int fd, struct turns *t)
{
	struct attach_page page;

	(void)t;
	WANT(attach_subscribe(&page, fd, 0, 0) == 0);
	WANT(attach_answer(&page, PATIENCE_MS) == -ECANCELED);
	attach_close(&page);
	return 0;
}

static int loses_its_agent(void *arg)
{
	pid_t first, second;
	struct turns t;
	int fd;

	(void)arg;
	WANT(open_turns(&t) && trace_open() == 0);
	WANT(trace_service_start(0) == 0);
	fd = control_fd_to_write();
	for (int i = 0; i < 3; i++) {
		first = start_agent(agent_dies, fd, &t);
		WANT(take_turn(t.to_runtime) && agent_wants());
		second = start_agent(agent_is_second, fd, &t);
		WANT(status_of(second) == first % 128);
		WANT(agent_wants());
		WANT(give_turn(t.to_agent) && status_of(first) == 128 + SIGKILL);
		WANT(word_becomes(false));
		WANT(status_of(start_agent(agent_without_lock, fd, &t)) == 0);
		WANT(!agent_wants());
	}
	trace_service_stop();
	return 0;
}

static int agent_finds_it_closed(int fd, struct turns *t)
{
	struct attach_page page;
	pid_t holder;

	(void)t;
	WANT(attach_claim(fd, &holder) == 0);
	WANT(attach_subscribe(&page, fd, 0, 1) == -ENOTCONN);
	attach_unsubscribe(&page);
	attach_close(&page);
	return 0;
}

static int is_closed(void *arg)
{
	struct turns t;

	(void)arg;
	WANT(open_turns(&t) && trace_open() == 0);
	WANT(trace_service_start(0) == 0);
	trace_service_stop();
	WANT(status_of(start_agent(agent_finds_it_closed, control_fd_to_write(), &t)) == 0);
	return 0;
}

TEST("attach: an agent gets what comes after it asked and before it leaves, and nothing of others",
	"[trace]")
{
	CHECK_EQ(scratch_child(is_followed, NULL), 0);
}

TEST("attach: an agent that dies or has no lock is not recorded for; the second hears who the "
     "first is",
	"[trace]")
{
	CHECK_EQ(scratch_child(loses_its_agent, NULL), 0);
}

TEST("attach: a runtime that was closed does not answer, and that is said at once", "[trace]")
{
	CHECK_EQ(scratch_child(is_closed, NULL), 0);
}

/* The page of a process that answers as it likes. */
TEST("attach: a page that never answers, or with nonsense, costs the agent its patience and no "
     "more",
	"[trace]")
{
	_cleanup_close_ int fd = memfd_create(CTL_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct attach_page page;
	struct ctl *ctl;

	REQUIRE(fd >= 0 && ftruncate(fd, CTL_PAGE_BYTES) == 0);
	ctl = mmap(NULL, CTL_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	REQUIRE(ctl != MAP_FAILED);
	atomic_store(&ctl->mail.serving, 77);
	atomic_store(&ctl->mail.request, UINT32_MAX);
	REQUIRE(attach_subscribe(&page, fd, 0, 0) == 0);
	CHECK_EQ(page.request, 1);
	CHECK_EQ(attach_answer(&page, 1), -ETIMEDOUT);
	atomic_store(&ctl->mail.answered, page.request);
	atomic_store(&ctl->mail.answer, 7);
	CHECK_EQ(attach_answer(&page, 1), -EPROTO);
	atomic_store(&ctl->mail.answer, INT32_MIN);
	CHECK_EQ(attach_answer(&page, 1), -EPROTO);
	atomic_store(&ctl->mail.answer, -ENOMEM);
	CHECK_EQ(attach_answer(&page, 1), -ENOMEM);
	attach_close(&page);
	/* One that nobody may write to. */
	munmap(ctl, CTL_PAGE_BYTES);
	REQUIRE(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) == 0);
	CHECK_EQ(attach_subscribe(&page, fd, 0, 0), -EPERM);
	attach_close(&page);
}

/* ---- finding ------------------------------------------------------------------------------ */

/* A process with a file of this name, and this head, in its memory; it ends when it is killed. */
static pid_t start_pretender(const char *name, const uint32_t head[3], bool keep)
{
	int ready[2];
	char byte = 0;

	if (pipe(ready) < 0)
		return -1;
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		int fd = memfd_create(name, MFD_CLOEXEC);
		uint32_t own[3] = {head[0], head[1], head[2] ? head[2] : (uint32_t)getpid()};

		if (fd < 0 || ftruncate(fd, CTL_PAGE_BYTES) < 0 ||
			pwrite(fd, own, sizeof(own), 0) != sizeof(own) ||
			mmap(NULL, CTL_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) ==
				MAP_FAILED)
			_exit(1);
		if (!keep)
			close(fd);
		byte = (char)write(ready[1], "x", 1);
		for (;;)
			pause();
	}
	if (read(ready[0], &byte, 1) != 1)
		pid = -1;
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static const struct pretender {
	const char *what, *name;
	uint32_t head[3];
	bool keep;
	int error; /* for one without privileges, too, if keep */
} pretenders[] = {
	{"a good one", CTL_NAME, {CTL_MAGIC, CTL_VERSION, 0}, true, 0},
	{"of another name", "ntrace-ctx", {CTL_MAGIC, CTL_VERSION, 0}, true, -ENODEV},
	{"without magic number", CTL_NAME, {0, CTL_VERSION, 0}, true, -EPROTO},
	{"of another magic number", CTL_NAME, {CTL_MAGIC + 1, CTL_VERSION, 0}, true, -EPROTO},
	{"of an older version", CTL_NAME, {CTL_MAGIC, CTL_VERSION - 1, 0}, true, -EPROTONOSUPPORT},
	{"of another process", CTL_NAME, {CTL_MAGIC, CTL_VERSION, 1}, true, -ECHILD},
};

TEST("attach: the control file of a process is found, and what only looks like one is named",
	"[agent]")
{
	for (size_t i = 0; i < sizeof(pretenders) / sizeof(*pretenders); i++) {
		const struct pretender *p = &pretenders[i];
		struct attach_target target;
		char why[512] = "", start[32];
		pid_t pid = start_pretender(p->name, p->head, p->keep);

		test_info("%s", p->what);
		REQUIRE(pid > 0);
		CHECK_EQ(attach_find(pid, &target, why, sizeof(why)), p->error);
		CHECK_EQ(target.memfd >= 0, p->error == 0);
		CHECK(target.pidfd >= 0);
		snprintf(start, sizeof(start), "process %d ", (int)pid);
		CHECK(p->error == 0 || !strncmp(why, start, strlen(start)));
		attach_target_close(&target);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		CHECK_EQ(attach_find(pid, &target, why, sizeof(why)), -ESRCH);
		attach_target_close(&target);
	}
}

TEST("attach: a descriptor that the program has closed is reached by root through the mapping",
	"[agent]")
{
	const uint32_t head[3] = {CTL_MAGIC, CTL_VERSION, 0};
	struct attach_target target;
	char why[512];
	pid_t pid;

	if (geteuid() != 0)
		SKIP("root");
	pid = start_pretender(CTL_NAME, head, false);
	REQUIRE(pid > 0);
	CHECK_EQ(attach_find(pid, &target, why, sizeof(why)), 0);
	CHECK(target.memfd >= 0);
	attach_target_close(&target);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* A process that has mapped the first page of the file. */
static pid_t start_mapper(const char *path)
{
	int ready[2];
	char byte;

	if (pipe(ready) < 0)
		return -1;
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		int fd = open(path, O_RDONLY | O_CLOEXEC);

		if (fd < 0 || mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED)
			_exit(1);
		byte = (char)write(ready[1], "x", 1);
		for (;;)
			pause();
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		pid = -1;
	close(ready[0]);
	return pid;
}

static const struct library {
	const char *what;
	off_t name_at, size;
	int error;
} libraries[] = {
	{"not ours", -1, 300000, 0},
	{"ours", 200000, 300000, -EAGAIN},
	{"ours, read in two pieces", 65536 + 10 - 5, 300000, -EAGAIN},
	{"ours, at the end", 300000 - sizeof(CTL_NAME), 300000, -EAGAIN},
	{"larger than any library", -1, (off_t)1 << 40, 0},
	{"empty by now", -1, 0, 0},
};

TEST("attach: the library of a process is looked at no further than a library reaches", "[agent]")
{
	struct scratch s;
	struct scratch_path path;

	REQUIRE(scratch_make(&s));
	path = scratch_path(&s, "libnrt.so.1");
	for (size_t i = 0; i < sizeof(libraries) / sizeof(*libraries); i++) {
		const struct library *l = &libraries[i];
		_cleanup_close_ int fd = open(path.s, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		struct attach_target target;
		char why[512] = "";
		pid_t pid;

		test_info("%s", l->what);
		REQUIRE(fd >= 0 && ftruncate(fd, 300000) == 0);
		pid = start_mapper(path.s);
		REQUIRE(pid > 0);
		REQUIRE(ftruncate(fd, l->size) == 0);
		if (l->name_at >= 0)
			REQUIRE(pwrite(fd, CTL_NAME, sizeof(CTL_NAME), l->name_at) ==
				sizeof(CTL_NAME));
		CHECK_EQ(attach_find(pid, &target, why, sizeof(why)), l->error);
		CHECK(target.memfd < 0);
		attach_target_close(&target);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		unlink(path.s);
	}
	scratch_remove(&s);
}

/* ---- killed while followed ---------------------------------------------------------------- */

#define THREADS 4u
#define CORES 3u
#define KILLS 100u

/* Written by the process after each call that returned; it outlives it. */
struct notes {
	_Atomic uint32_t ready;
	struct {
		_Atomic uint64_t returned;
		uint64_t pad[7];
	} thread[THREADS];
};

static struct notes *notes;

static uint64_t returned(void)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < THREADS; i++)
		sum += atomic_load(&notes->thread[i].returned);
	return sum;
}

/* Emits from the moment on at which somebody wants it. */
static void *emit_for_ever(void *arg)
{
	uint64_t me = (uint64_t)(uintptr_t)arg;

	while (!agent_wants())
		(void)sched_yield();
	for (uint64_t n = 0;; n++) {
		uint64_t words[5] = {n, n, n, n, n};

		trace_instant(
			(uint32_t)((n >> 8) + me) % CORES, TRACE_GENERIC, words, sizeof(words));
		atomic_fetch_add_explicit(&notes->thread[me].returned, 1, memory_order_relaxed);
	}
	return NULL;
}

static void run_until_killed(void)
{
	pthread_t thread;

	if (trace_open() < 0 || trace_service_start(0) < 0)
		_exit(1);
	for (uint32_t nc = 0; nc < CORES; nc++)
		trace_core_touch(nc);
	for (uintptr_t i = 0; i < THREADS; i++)
		if (pthread_create(&thread, NULL, emit_for_ever, (void *)i))
			_exit(2);
	atomic_store(&notes->ready, 1);
	for (;;)
		pause();
}

struct taken {
	uint64_t records, torn;
};

static int count_records(void *ctx, const struct runtime_source *s, uint32_t nc, uint32_t lane,
	const struct trace_record *records, size_t count)
{
	struct taken *t = ctx;

	(void)s;
	(void)lane;
	for (size_t i = 0; i < count; i++) {
		uint64_t words[5];

		memcpy(words, records[i].data, sizeof(words));
		for (int w = 1; w < 5; w++)
			t->torn += words[w] != words[0];
		t->torn += records[i].nc_idx != nc || records[i].trace_type != TRACE_GENERIC;
	}
	t->records += count;
	return 0;
}

/* Everything that the process emitted is delivered or counted. */
static void check_sums(const struct runtimes *r, const struct taken *t)
{
	struct ring_counters sum = {0}, c;
	uint32_t nc, lane;

	for (uint32_t i = 0; i < runtimes_ring_count(r, 0); i++) {
		runtimes_ring(r, 0, i, &nc, &lane, &c);
		CHECK_EQ(c.emitted, c.delivered + c.overwritten + c.slot_busy + c.abandoned);
		CHECK_EQ(c.unread + c.filtered + c.no_ring, 0);
		sum.emitted += c.emitted;
		sum.delivered += c.delivered;
		sum.abandoned += c.abandoned;
	}
	CHECK_EQ(sum.delivered, t->records);
	CHECK_EQ(t->torn, 0);
	/* Abandoned are those at the kill, and those whose writer had no CPU for 200 ms. */
	CHECK(sum.delivered + sum.abandoned > 0 || returned() <= THREADS);
	CHECK(sum.emitted >= returned());
	CHECK(sum.emitted <= returned() + THREADS);
}

/* Attaches, follows for about so many events, kills, takes out the rest. */
static bool follow_and_kill(uint64_t after)
{
	struct taken taken = {0};
	struct runtimes_sink sink = RECORDS_SINK(count_records, &taken);
	uint64_t end = clock_boot().ns + PATIENCE_MS * 1000000ull;
	struct attach_target target = ATTACH_NONE;
	struct runtimes *r = NULL;
	char why[512] = "";
	bool good;

	memset(notes, 0, sizeof(*notes));
	pid_t pid = fork();
	if (pid == 0)
		run_until_killed();
	while (!atomic_load(&notes->ready) && clock_boot().ns < end)
		(void)sched_yield();
	good = attach_find(pid, &target, why, sizeof(why)) == 0 &&
	       runtimes_open(RING_MIN_CAPACITY, 2, &sink, &r) == 0 &&
	       runtimes_attach(r, pid, target.memfd, target.maps, why, sizeof(why)) == 0;
	target.memfd = -1;
	test_info("%s", why);
	while (good && returned() < after && clock_boot().ns < end)
		good = runtimes_poll(r, false) >= 0;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	while (good && runtimes_reader(r, 0) && clock_boot().ns < end)
		good = runtimes_poll(r, false) >= 0;
	good = good && !runtimes_reader(r, 0) && runtimes_failed(r) == 0;
	if (good)
		check_sums(r, &taken);
	runtimes_close(r);
	attach_target_close(&target);
	return good;
}

TEST("attach: of a process that is killed while it is followed every event is delivered or counted",
	"[ring]")
{
	notes = mmap(
		NULL, sizeof(*notes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	REQUIRE(notes != MAP_FAILED);
	for (uint32_t n = 0; n < KILLS; n++) {
		test_info("kill %u", n);
		REQUIRE(follow_and_kill((n * 2654435761u >> 8) % 60000));
	}
	munmap(notes, sizeof(*notes));
}
