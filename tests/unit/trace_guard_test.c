/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_guard_test.c - the traced program is safe from whoever reads its events, and from limits, forks and
 * subscriptions that change at any moment.
 *
 * The state under test is one per process and cannot be undone, so each test runs in a child, which
 * returns 0 or the number of the line that was not satisfied (modulo 251, plus 1).
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/trace/control.h"
#include "runtime/trace/trace.h"
#include "tests/shim/shim.h"
#include "tests/unit/fake_agent.h"
#include "tests/unit/scratch.h"

#define WANT(x)                                                                       \
	do {                                                                          \
		if (!(x)) {                                                           \
			fprintf(stderr, "trace_guard_test.c:%d: %s\n", __LINE__, #x); \
			return __LINE__ % 251 + 1;                                    \
		}                                                                     \
	} while (0)

/* ---- memory that others have ----------------------------------------------------------------- */

static void emit_some(struct control *c, unsigned count)
{
	struct ring_event e = {.thread_id = 1, .wanted = CTL_SUB_BIT(CTL_SUB_AGENT)};

	while (count--)
		(void)ring_emit(&c->writers[0][0], &e);
}

/* What an agent with write access can do to the counters that a writer looks at. */
static int hostile(void *arg)
{
	static struct control c;

	(void)arg;
	WANT(control_create(&c) == 0);
	WANT(control_add_ring(&c, 0, 16) == 0);
	WANT(control_grow_ring(&c, 0, 0) == 0);
	emit_some(&c, 100);
	for (uint64_t epoch = 2; epoch < 256; epoch++) {
		atomic_store(&c.writers[0][0].head->head, epoch << RING_POS_BITS | 0xffffffffffull);
		emit_some(&c, 100);
		WANT(ring_recent_thread(&c.writers[0][0], 1) <= 1);
	}
	WANT(control_grow_ring(&c, 0, 0) == 0);
	WANT(c.writers[0][0].epoch == 2);
	emit_some(&c, 100);

	atomic_store(&c.ctl->ring_count, UINT32_MAX);
	WANT(control_add_ring(&c, 1, 16) == 0);
	WANT(c.ctl->rings[1].nc_idx == 1);
	atomic_store(&c.ctl->names_used, CTL_NAMES_BYTES * 64ull);
	WANT(control_add_name(&c, 1, "name", 4) == 0);
	WANT(atomic_load(&c.ctl->names_used) == sizeof(struct ctl_name) + 8);
	atomic_store(&c.ctl->names_used, 0);
	WANT(control_add_name(&c, 2, "name", 4) == 0);
	WANT(atomic_load(&c.ctl->names_used) == 2 * (sizeof(struct ctl_name) + 8));
	control_destroy(&c);
	return 0;
}

TEST("trace: nothing that stands in shared memory leads a writer astray", "[trace][guard]")
{
	CHECK_EQ(scratch_child(hostile, NULL), 0);
}

static int reading_only(void *arg)
{
	static struct agent agent;
	char path[32], byte = 1;
	struct stat st;
	int other, rc;

	(void)arg;
	WANT(trace_open() == 0);
	WANT(agent_listen(&agent, ANNOUNCE_ENABLE) == 0);
	WANT(trace_service_start(0) == 1);
	pthread_join(agent.thread, NULL);
	WANT((fcntl(agent.control_fd, F_GETFL) & O_ACCMODE) == O_RDONLY);
	WANT(pwrite(agent.control_fd, &byte, 1, 0) < 0);
	WANT(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, agent.control_fd, 0) ==
		MAP_FAILED);
	WANT(fcntl(agent.control_fd, F_ADD_SEALS, F_SEAL_GROW) < 0);
	WANT(fstat(agent.control_fd, &st) == 0 && (st.st_mode & 0777) == 0600);

	/* Of the same user it may be opened to write; its growth cannot be ended even so. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", agent.control_fd);
	other = open(path, O_RDWR | O_CLOEXEC);
	WANT(other >= 0);
	WANT(fcntl(other, F_ADD_SEALS, F_SEAL_GROW) < 0 && errno == EPERM);
	trace_core_touch(3);
	trace_instant(3, TRACE_GENERIC, NULL, 0);
	close(other);

	if (geteuid() == 0) {
		WANT(syscall(SYS_setresuid, -1, 65533, -1) == 0);
		rc = open(path, O_RDWR | O_CLOEXEC);
		WANT(syscall(SYS_setresuid, -1, 0, -1) == 0);
		WANT(rc < 0);
	}
	trace_service_stop();
	return 0;
}

TEST("trace: an agent gets the events to read, and cannot end the growth of rings",
	"[trace][guard]")
{
	CHECK_EQ(scratch_child(reading_only, NULL), 0);
}

static int foreign_agent(void *arg)
{
	static struct agent agent;

	(void)arg;
	WANT(trace_open() == 0);
	/* Who listens is the peer; the runtime is root again when it connects. */
	WANT(syscall(SYS_setresuid, -1, 65533, -1) == 0);
	WANT(agent_listen(&agent, ANNOUNCE_ENABLE) == 0);
	WANT(syscall(SYS_setresuid, -1, 0, -1) == 0);
	WANT(trace_service_start(0) == -EPERM);
	pthread_join(agent.thread, NULL);
	WANT(agent.control_fd == -1);
	WANT(!trace_on());
	trace_service_stop();
	return 0;
}

TEST("trace: another user who has the agent's name gets nothing", "[trace][guard]")
{
	if (geteuid() != 0)
		SKIP("root, to be another user");
	CHECK_EQ(scratch_child(foreign_agent, NULL), 0);
}

/* ---- limits ---------------------------------------------------------------------------------- */

static int said; /* error of the hook, and how often */
static unsigned said_count;

static void note_error(int error)
{
	said = error;
	said_count++;
}

static int file_limit(void *arg)
{
	static const struct trace_hooks hooks = {.cannot_grow = note_error};
	struct rlimit limit = {12u << 20, 12u << 20};
	sigset_t pending;

	(void)arg;
	trace_set_hooks(&hooks);
	trace_core_touch(0);
	WANT(setrlimit(RLIMIT_FSIZE, &limit) == 0);
	/* Of no core and of core 0: the second does not fit. */
	WANT(trace_set_subscriber(CTL_SUB_AGENT, NULL, 0) == -EFBIG);
	WANT(!trace_on());
	WANT(trace_set_subscriber(CTL_SUB_AGENT, NULL, 16384) == 0);
	/* Grows until it cannot. */
	WANT(trace_set_subscriber(CTL_SUB_AGENT, NULL, RING_MAX_CAPACITY) == 0);
	for (unsigned i = 0; i < 20; i++) {
		for (unsigned n = 0; n < 50000; n++)
			trace_instant(0, TRACE_GENERIC, NULL, 0);
		WANT(trace_tend() > 0);
	}
	WANT(said == -EFBIG && said_count == 1);
	WANT(*trace_hint(-EFBIG));
	/* With what was there before it does not hurry any more. */
	trace_instant(0, TRACE_GENERIC, NULL, 0);
	WANT(trace_tend() == 10);
	sigpending(&pending);
	WANT(sigismember(&pending, SIGXFSZ) == 0);
	return 0;
}

TEST("trace: a limit of file sizes does not end the program, and is said once", "[trace][guard]")
{
	CHECK_EQ(scratch_child(file_limit, NULL), 0);
}

static int own_signal(void *arg)
{
	struct rlimit limit = {1u << 20, 1u << 20};
	static struct control c;
	sigset_t set, pending;

	(void)arg;
	sigemptyset(&set);
	sigaddset(&set, SIGXFSZ);
	sigprocmask(SIG_BLOCK, &set, NULL);
	raise(SIGXFSZ); /* of somebody else, and not to be taken */
	WANT(setrlimit(RLIMIT_FSIZE, &limit) == 0);
	WANT(control_create(&c) == -EFBIG);
	sigpending(&pending);
	WANT(sigismember(&pending, SIGXFSZ) == 1);
	return 0;
}

TEST("trace: a signal that waits for the program stays", "[trace][guard]")
{
	CHECK_EQ(scratch_child(own_signal, NULL), 0);
}

/* ---- forks ----------------------------------------------------------------------------------- */

struct seen {
	struct ctl_reader *reader;
	uint64_t starts, stops, instants;
};

static int on_batch(
	void *ctx, uint32_t nc, uint32_t lane, const struct trace_record *records, size_t count)
{
	struct seen *s = ctx;

	(void)nc;
	(void)lane;
	for (size_t i = 0; i < count; i++) {
		s->starts += records[i].phase == TRACE_START;
		s->stops += records[i].phase == TRACE_STOP;
		s->instants += records[i].phase == TRACE_INSTANT;
	}
	return 0;
}

static long look(struct seen *s, enum ctl_subscriber who)
{
	s->starts = s->stops = s->instants = 0;
	if (!s->reader && ctl_reader_open(trace_control_fd(), who, &s->reader) < 0)
		return -1;
	return ctl_reader_poll(s->reader, false, clock_boot().ns, on_batch, NULL, s);
}

static int bare_fork(void *arg)
{
	static struct seen s;
	struct trace_span span;
	int status;
	pid_t pid;

	(void)arg;
	trace_core_touch(0);
	WANT(trace_subscribe(CTL_SUB_AGENT, NULL, 0) == 0);
	span = trace_start(0, TRACE_EXECUTE_API, NULL, 0);
	/* No handler runs in this child. */
	pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (pid == 0) {
		int wrong = trace_on();

		for (unsigned i = 0; i < 1000; i++)
			trace_instant(0, TRACE_GENERIC, NULL, 0);
		trace_stop(&span, 0, NULL, 0);
		wrong |= trace_subscribe(CTL_SUB_API, NULL, 0) != -ECHILD;
		trace_unsubscribe(CTL_SUB_AGENT);
		wrong |= trace_open() != -ECHILD;
		_exit(wrong);
	}
	WANT(pid > 0 && waitpid(pid, &status, 0) == pid);
	WANT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	trace_stop(&span, 0, NULL, 0);
	WANT(look(&s, CTL_SUB_AGENT) == 2);
	WANT(s.starts == 1 && s.stops == 1);
	trace_service_stop();
	return 0;
}

TEST("trace: the child of a fork without handlers writes nothing", "[trace][guard]")
{
	CHECK_EQ(scratch_child(bare_fork, NULL), 0);
}

/* ---- subscriptions --------------------------------------------------------------------------- */

static int stale_span(void *arg)
{
	static struct seen of_api = {0}, of_agent = {0};
	struct trace_span old, newer;

	(void)arg;
	trace_core_touch(0);
	WANT(trace_subscribe(CTL_SUB_AGENT, NULL, 0) == 0);
	WANT(trace_subscribe(CTL_SUB_API, NULL, 0) == 0);
	old = trace_start(0, TRACE_EXECUTE_API, NULL, 0);
	trace_unsubscribe(CTL_SUB_API);
	WANT(look(&of_api, CTL_SUB_API) == 1);
	WANT(trace_subscribe(CTL_SUB_API, NULL, 0) == 0);
	newer = trace_start(0, TRACE_EXEC_CORE, NULL, 0);
	trace_stop(&newer, 0, NULL, 0);
	trace_stop(&old, 0, NULL, 0);
	WANT(look(&of_api, CTL_SUB_API) == 2);
	WANT(of_api.starts == 1 && of_api.stops == 1);
	/* Who was there all the time has both. */
	WANT(look(&of_agent, CTL_SUB_AGENT) == 4);
	WANT(of_agent.starts == 2 && of_agent.stops == 2);
	/* A run of the device is told when it is over. */
	old = trace_start_at((struct boot_ns){1000}, 0, TRACE_DEVICE_EXEC, NULL, 0);
	trace_unsubscribe(CTL_SUB_API);
	WANT(trace_subscribe(CTL_SUB_API, NULL, 0) == 0);
	trace_stop_at((struct boot_ns){2000}, &old, 0, NULL, 0);
	WANT(look(&of_api, CTL_SUB_API) == 0);
	WANT(look(&of_agent, CTL_SUB_AGENT) == 2);
	trace_service_stop();
	return 0;
}

TEST("trace: a span of an earlier subscription does not end in a new one", "[trace][guard]")
{
	CHECK_EQ(scratch_child(stale_span, NULL), 0);
}

static _Atomic bool over;

/* Counts how often an event that both filters want was wanted by nobody. */
static void *watch_gate(void *arg)
{
	uint64_t *missed = arg;

	while (!atomic_load(&over))
		*missed += !trace_wanted(0, TRACE_EXECUTE_API);
	return NULL;
}

static int filter_change(void *arg)
{
	const struct trace_filter one = {1ull << TRACE_EXECUTE_API | 1ull << TRACE_GENERIC, {3}},
				  two = {1ull << TRACE_EXECUTE_API | 1ull << TRACE_EXEC_CORE, {5}};
	uint64_t missed = 0;
	pthread_t thread;

	(void)arg;
	WANT(trace_set_subscriber(CTL_SUB_API, &one, 0) == 0);
	WANT(pthread_create(&thread, NULL, watch_gate, &missed) == 0);
	for (unsigned i = 0; i < 20000; i++)
		WANT(trace_set_subscriber(CTL_SUB_API, i % 2 ? &one : &two, 0) == 0);
	WANT(trace_wanted(1, TRACE_GENERIC) && !trace_wanted(2, TRACE_GENERIC));
	WANT(!trace_wanted(0, TRACE_EXEC_CORE));
	atomic_store(&over, true);
	pthread_join(thread, NULL);
	WANT(missed == 0);
	return 0;
}

TEST("trace: a filter that takes another's place loses nothing of what both want", "[trace][guard]")
{
	CHECK_EQ(scratch_child(filter_change, NULL), 0);
}

/* ---- lanes ----------------------------------------------------------------------------------- */

static int used_again(void *arg)
{
	static struct control c;
	pid_t pid = fork();
	uint32_t dead = (uint32_t)pid, other = dead + 7 * (CTL_MAX_LANES - 1);
	uint64_t first = control_self(dead, 1), second = control_self(dead, 2);

	(void)arg;
	if (pid == 0)
		_exit(0);
	WANT(waitpid(pid, NULL, 0) == pid);
	WANT(control_create(&c) == 0 && control_add_ring(&c, 0, 16) == 0);
	WANT(!control_take_lane(&c, 0, first)); /* nobody has offered it */
	WANT(control_own_lane(&c, 0, dead) == 0);
	WANT(control_take_lane(&c, 0, first));
	WANT(!control_take_lane(&c, 0, second));
	WANT(atomic_load(&c.owner[0][control_lane(dead)]) == first);
	/* The kernel knows the first no more; the second, with its number, does not become the owner. */
	WANT(control_own_lane(&c, 0, other) == 0);
	WANT(!control_take_lane(&c, 0, second));
	WANT(control_take_lane(&c, 0, control_self(other, 3)));
	control_destroy(&c);
	return 0;
}

TEST("trace: a thread that gets another's number does not get its lane", "[trace][guard]")
{
	CHECK_EQ(scratch_child(used_again, NULL), 0);
}
