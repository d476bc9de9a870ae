/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_stress_test.c - everything at once: writers, readers, subscribers and agents that come and go, forks, signals.
 *
 * For ThreadSanitizer as much as for the counts.  It runs in a child, for the state is one per process.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/collect/attach.h"
#include "agent/collect/runtimes.h"
#include "runtime/base/clock.h"
#include "runtime/trace/trace.h"
#include "tests/shim/shim.h"
#include "tests/unit/records_sink.h"
#include "tests/unit/scratch.h"

#define WANT(x)                                                                        \
	do {                                                                           \
		if (!(x)) {                                                            \
			fprintf(stderr, "trace_stress_test.c:%d: %s\n", __LINE__, #x); \
			return __LINE__ % 251 + 1;                                     \
		}                                                                      \
	} while (0)

#define WRITERS 8
#define CORES 2u
#define SPANS 4000u
#define CYCLES 60

static _Atomic uint64_t torn;
static _Atomic bool over;
static _Atomic uint32_t at_work;
static _Atomic uint64_t no_stops;

static int on_batch(
	void *ctx, uint32_t nc, uint32_t lane, const struct trace_record *records, size_t count)
{
	uint64_t *seen = ctx;

	(void)nc;
	(void)lane;
	for (size_t i = 0; i < count; i++) {
		uint64_t words[2];

		memcpy(words, records[i].data, sizeof(words));
		if (words[0] != words[1] || records[i].tracking_id == 0)
			atomic_fetch_add(&torn, 1);
	}
	*seen += count;
	return 0;
}

static bool balanced(const struct ctl_reader *r, uint64_t *ret_emitted, uint64_t *ret_delivered)
{
	*ret_emitted = *ret_delivered = 0;
	for (uint32_t i = 0; i < ctl_reader_rings(r); i++) {
		struct ring_counters c;
		uint32_t nc, lane;

		ctl_reader_counters(r, i, &nc, &lane, &c);
		if (c.emitted != c.delivered + c.unread + c.overwritten + c.filtered + c.slot_busy +
					 c.no_ring + c.abandoned)
			return false;
		*ret_emitted += c.emitted;
		*ret_delivered += c.delivered;
	}
	return true;
}

/* ---- who emits ------------------------------------------------------------------------------- */

static void on_signal(int sig)
{
	uint64_t words[2] = {(uint64_t)sig, (uint64_t)sig};

	trace_instant(1, TRACE_GENERIC, words, sizeof(words));
}

static void *write_spans(void *arg)
{
	uint32_t me = (uint32_t)(uintptr_t)arg;

	for (uint64_t n = 0; n < SPANS; n++) {
		uint64_t words[2] = {n, n};
		uint32_t nc = n % 16 == 0 ? TRACE_NC_UNKNOWN : (me + (uint32_t)(n >> 6)) % CORES;
		struct trace_span span = trace_start(nc, TRACE_EXECUTE_API, words, sizeof(words));

		trace_stop(&span, 0, words, sizeof(words));
		if (!span.tracking) /* the start was dropped, so there is no stop */
			atomic_fetch_add(&no_stops, 1);
		if (n % 512 == 0)
			pthread_kill(pthread_self(), SIGUSR1);
	}
	atomic_fetch_sub(&at_work, 1);
	return NULL;
}

/* ---- who reads, comes and goes --------------------------------------------------------------- */

static void *read_all(void *arg)
{
	enum ctl_subscriber who = (enum ctl_subscriber)(uintptr_t)arg;
	uint64_t emitted, delivered, seen = 0;
	bool good = true, last = false;

	while (!last) {
		struct ctl_reader *r = NULL;

		last = atomic_load(&over);
		if (ctl_reader_open(trace_control_fd(), who, &r) < 0)
			return (void *)1;
		seen = 0;
		for (int i = 0; i < 20; i++) {
			good = good && ctl_reader_poll(r, false, clock_boot().ns, on_batch, NULL,
					       &seen) >= 0;
			(void)sched_yield();
		}
		good = good && balanced(r, &emitted, &delivered) && delivered == seen;
		ctl_reader_close(r);
	}
	return (void *)(uintptr_t)!good;
}

static void *come_and_go(void *arg)
{
	struct trace_filter filter = {1ull << TRACE_EXECUTE_API, {1}};

	for (int i = 0; i < CYCLES && atomic_load(&at_work); i++) {
		(void)trace_subscribe(CTL_SUB_API, i % 2 ? NULL : &filter, 1u << (10 + i % 8));
		(void)trace_intern(i % 2 ? "one" : "two");
		(void)sched_yield();
		trace_unsubscribe(CTL_SUB_API);
		if (i % 8 == 0)
			trace_service_stop(); /* and the next subscription starts it again */
	}
	return arg;
}

static void *fork_often(void *arg)
{
	for (int i = 0; i < 6 && atomic_load(&at_work); i++) {
		pid_t pid = fork();

		if (pid == 0) {
			on_signal(1); /* writes nothing */
			_exit(trace_on());
		}
		int status = -1;
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
			return (void *)1;
	}
	return arg;
}

/* ---- who attaches ---------------------------------------------------------------------------- */

static int attach_batch(void *ctx, const struct runtime_source *s, uint32_t nc, uint32_t lane,
	const struct trace_record *records, size_t count)
{
	uint64_t seen = 0;

	(void)ctx;
	(void)s;
	return on_batch(&seen, nc, lane, records, count);
}

/* Once; 0, 1 when it was not possible (the service thread is stopped now and then), or 2. */
static int attach_once(pid_t pid)
{
	struct runtimes_sink sink = RECORDS_SINK(attach_batch, NULL);
	struct attach_target target;
	struct runtimes *r = NULL;
	char why[512] = "";
	int rc = attach_find(pid, &target, why, sizeof(why));

	if (rc == 0 && runtimes_open(1, 2, &sink, &r) < 0)
		rc = -ENOMEM;
	if (rc == 0) {
		rc = runtimes_attach(r, pid, target.memfd, target.maps, why, sizeof(why));
		target.memfd = -1;
	}
	for (int i = 0; i < 20 && rc == 0; i++)
		rc = runtimes_poll(r, false) < 0 ? -EIO : 0;
	if (rc == 0)
		runtimes_disable(r);
	if (rc == 0 && (runtimes_poll(r, true) < 0 || runtimes_failed(r)))
		rc = -EIO;
	runtimes_close(r);
	attach_target_close(&target);
	if (rc && rc != -ENOTCONN && rc != -ETIMEDOUT)
		fprintf(stderr, "trace_stress_test.c: %s (%d)\n", why, rc);
	return rc == 0 ? 0 : rc == -ENOTCONN || rc == -ETIMEDOUT ? 1 : 2;
}

/* A process of its own, until the other end of the pipe is closed and it was attached once.  Exits with 0 when all
 * that it read was whole. */
static pid_t start_attaching(int to[2])
{
	pid_t pid, parent = getpid();
	unsigned attached = 0;

	if (pipe(to) < 0)
		return -1;
	fflush(NULL);
	pid = fork();
	if (pid)
		return pid;
	close(to[1]);
	for (struct pollfd p = {.fd = to[0], .events = POLLIN}; poll(&p, 1, 0) == 0 || !attached;) {
		int rc = attach_once(parent);

		if (rc > 1)
			_exit(2);
		attached += rc == 0;
	}
	_exit(torn != 0);
}

static int everything(void *arg)
{
	struct sigaction action = {.sa_handler = on_signal};
	uint64_t emitted, delivered, seen = 0;
	pthread_t writers[WRITERS], others[4];
	struct ctl_reader *r = NULL;
	int to_agent[2], status = -1;
	void *result;
	pid_t agent;

	(void)arg;
	WANT(trace_open() == 0);
	agent = start_attaching(to_agent);
	WANT(agent > 0);
	sigaction(SIGUSR1, &action, NULL);
	for (uint32_t nc = 0; nc < CORES; nc++)
		trace_core_touch(nc);
	WANT(trace_subscribe(CTL_SUB_INSPECT, NULL, 1) == 0); /* the smallest ring */
	atomic_store(&at_work, WRITERS);
	for (uintptr_t i = 0; i < WRITERS; i++)
		WANT(pthread_create(&writers[i], NULL, write_spans, (void *)i) == 0);
	WANT(pthread_create(&others[0], NULL, read_all, (void *)(uintptr_t)CTL_SUB_AGENT) == 0);
	WANT(pthread_create(&others[1], NULL, read_all, (void *)(uintptr_t)CTL_SUB_API) == 0);
	WANT(pthread_create(&others[2], NULL, come_and_go, NULL) == 0);
	WANT(pthread_create(&others[3], NULL, fork_often, NULL) == 0);
	for (int i = 0; i < WRITERS; i++)
		pthread_join(writers[i], NULL);
	atomic_store(&over, true);
	for (int i = 0; i < 4; i++) {
		pthread_join(others[i], &result);
		WANT(result == NULL);
	}
	trace_service_need(); /* it may have been stopped before the agent's turn came */
	close(to_agent[1]);
	WANT(waitpid(agent, &status, 0) == agent && status == 0);
	trace_service_stop();
	WANT(torn == 0);
	/* A reader that comes when all is over: every event is one of the terms. */
	WANT(ctl_reader_open(trace_control_fd(), CTL_SUB_INSPECT, &r) == 0);
	while (ctl_reader_poll(r, false, clock_boot().ns, on_batch, NULL, &seen) > 0)
		continue;
	WANT(balanced(r, &emitted, &delivered));
	WANT(emitted + atomic_load(&no_stops) == WRITERS * (2 * SPANS + (SPANS + 511) / 512));
	WANT(delivered == seen && seen >= RING_MIN_CAPACITY && torn == 0);
	ctl_reader_close(r);
	return 0;
}

TEST("trace: writers, readers, subscribers, an agent that attaches, forks and signal handlers at "
     "once: the sums are "
     "right",
	"[trace]")
{
	CHECK_EQ(scratch_child(everything, NULL), 0);
}
