/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_control_test.c - what trace.h leaves in the control file beside records: names, what subscribers want; and
 * what it does when something is missing: a start, memory, a descriptor.
 *
 * The state under test is one per process, so each test runs in a child, which returns 0 or the number of the
 * line that was not satisfied (modulo 251, plus 1).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/trace/control.h"
#include "runtime/trace/event_store.h"
#include "runtime/trace/intern.h"
#include "runtime/trace/trace.h"
#include "tests/shim/shim.h"
#include "tests/unit/scratch.h"

#define WANT(x)                                                                         \
	do {                                                                            \
		if (!(x)) {                                                             \
			fprintf(stderr, "trace_control_test.c:%d: %s\n", __LINE__, #x); \
			return __LINE__ % 251 + 1;                                      \
		}                                                                       \
	} while (0)

static struct ctl_reader *open_own(enum ctl_subscriber who)
{
	struct ctl_reader *r = NULL;

	return ctl_reader_open(trace_control_fd(), who, &r) == 0 ? r : NULL;
}

/* ---- names --------------------------------------------------------------------------------- */

struct names {
	uint32_t count, longest;
	uint64_t last;
	char text[1024]; /* of the last */
};

static int on_name(void *ctx, uint64_t id, const char *text, uint32_t len)
{
	struct names *n = ctx;

	n->count++;
	n->last = id;
	n->longest = len > n->longest ? len : n->longest;
	memcpy(n->text, text, len);
	n->text[len] = '\0';
	return 0;
}

static long read_names(struct ctl_reader *r, struct names *n)
{
	*n = (struct names){0};
	return ctl_reader_poll(r, false, clock_boot().ns, NULL, on_name, n);
}

static int long_names(void *arg)
{
	char text[2000];
	struct names n;
	struct ctl_reader *r;

	(void)arg;
	WANT(trace_open() == 0);
	r = open_own(CTL_SUB_AGENT);
	WANT(r != NULL);
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	WANT(trace_intern(text) == intern_id(text, strlen(text)));
	WANT(read_names(r, &n) == 0 && n.count == 1 && n.longest == 255);
	/* Not in the middle of a character: 85 of three bytes are 255, behind one byte there is room for 84. */
	for (size_t i = 0; i + 3 < sizeof(text); i += 3)
		memcpy(text + i, "\xe2\x82\xac", 3);
	text[600] = '\0';
	(void)trace_intern(text);
	WANT(read_names(r, &n) == 0 && n.count == 1 && n.longest == 255);
	memmove(text + 1, text, 601);
	text[0] = 'x';
	(void)trace_intern(text);
	WANT(read_names(r, &n) == 0 && n.count == 1 && n.longest == 253);
	WANT(!memcmp(n.text, text, 253));
	/* What was no UTF-8 before is cut at 255. */
	memset(text, 0x80, 600);
	(void)trace_intern(text);
	WANT(read_names(r, &n) == 0 && n.count == 1 && n.longest == 255);
	ctl_reader_close(r);
	return 0;
}

TEST("trace: a long name is cut for readers at a character's end", "[trace]")
{
	CHECK_EQ(scratch_child(long_names, NULL), 0);
}

#define MANY_NAMES 9000u

static int many_names(void *arg)
{
	char text[32];
	struct names n;
	struct ctl_reader *r;

	(void)arg;
	WANT(trace_open() == 0);
	r = open_own(CTL_SUB_AGENT);
	WANT(r != NULL);
	for (int round = 0; round < 3; round++)
		for (unsigned i = 0; i < MANY_NAMES; i++) {
			(void)snprintf(text, sizeof(text), "model-%u", i);
			WANT(trace_intern(text) == intern_id(text, strlen(text)));
		}
	WANT(read_names(r, &n) == 0);
	WANT(n.count == MANY_NAMES && ctl_reader_names_lost(r) == 0);
	WANT(!strcmp(n.text, "model-8999") && n.last == intern_id("model-8999", 10));
	ctl_reader_close(r);
	return 0;
}

TEST("trace: of thousands of names each is logged, and once", "[trace]")
{
	CHECK_EQ(scratch_child(many_names, NULL), 0);
}

/* ---- what subscribers want ----------------------------------------------------------------- */

static int shown(void *arg)
{
	struct trace_filter first = {1ull << TRACE_GENERIC, {2, 0, 0, 1}},
			    second = {1ull << TRACE_EXECUTE_API, {4}};
	const struct ctl *ctl;
	struct stat st;
	int fd;

	(void)arg;
	WANT(trace_open() == 0);
	fd = trace_control_fd();
	WANT(fd >= 0 && fstat(fd, &st) == 0);
	/* As an agent has it. */
	ctl = mmap(NULL, CTL_PAGE_BYTES, PROT_READ, MAP_SHARED, fd, 0);
	WANT(ctl != MAP_FAILED);
	for (int who = 0; who < CTL_SUB_MAX; who++)
		WANT(ctl->enable[who] == 0);
	WANT(trace_subscribe(CTL_SUB_API, &first, 0) == 0);
	WANT(trace_subscribe(CTL_SUB_AGENT, NULL, 0) == 0);
	WANT(ctl->enable[CTL_SUB_API] == 1 && ctl->enable[CTL_SUB_AGENT] == 1);
	WANT(ctl->enable[CTL_SUB_INSPECT] == 0);
	WANT(ctl->filters[CTL_SUB_API].types == first.types);
	WANT(ctl->filters[CTL_SUB_API].cores[0] == 2 && ctl->filters[CTL_SUB_API].cores[3] == 1);
	WANT(ctl->filters[CTL_SUB_AGENT].types == UINT64_MAX);
	WANT(trace_subscribe(CTL_SUB_API, &second, 0) == 0);
	WANT(ctl->filters[CTL_SUB_API].types == second.types);
	WANT(ctl->filters[CTL_SUB_API].cores[0] == 4 && ctl->filters[CTL_SUB_API].cores[3] == 0);
	trace_unsubscribe(CTL_SUB_API);
	WANT(ctl->enable[CTL_SUB_API] == 0 && ctl->enable[CTL_SUB_AGENT] == 1);
	return 0;
}

TEST("trace: the control page shows who wants what", "[trace]")
{
	CHECK_EQ(scratch_child(shown, NULL), 0);
}

static uint64_t file_bytes(int fd)
{
	struct stat st = {0};

	(void)fstat(fd, &st);
	return (uint64_t)st.st_size;
}

/* The number of the library's own descriptor of the file that fd is a duplicate of. */
static int number_of_kept(int fd)
{
	struct stat want, st;

	if (fstat(fd, &want) == 0)
		for (int i = 3; i < 1100; i++)
			if (i != fd && fstat(i, &st) == 0 && st.st_ino == want.st_ino &&
				st.st_dev == want.st_dev)
				return i;
	return -1;
}

/* The file cannot grow while somebody else's stands at its descriptor. */
static int failed_subscription(void *arg)
{
	struct trace_filter agent = {UINT64_MAX, {1}}, api = {UINT64_MAX, {3}};
	uint64_t before;
	int fd, kept, other;

	(void)arg;
	trace_core_touch(0);
	trace_core_touch(1);
	WANT(trace_subscribe(CTL_SUB_AGENT, &agent, RING_MIN_CAPACITY) == 0);
	trace_service_stop(); /* what grows is looked at here */
	fd = trace_control_fd();
	kept = number_of_kept(fd);
	other = open("/dev/null", O_RDONLY | O_CLOEXEC);
	WANT(fd >= 0 && kept >= 0 && other >= 0);
	WANT(dup3(other, kept, O_CLOEXEC) == kept);
	WANT(trace_subscribe(CTL_SUB_API, &api, RING_MAX_CAPACITY) == -EBADF);
	WANT(dup3(fd, kept, O_CLOEXEC) == kept);
	WANT(!trace_wanted(1, TRACE_GENERIC));
	WANT(trace_wanted(0, TRACE_GENERIC) == CTL_SUB_BIT(CTL_SUB_AGENT));
	/* Nobody wants core 1 or more than 1024 records of core 0. */
	before = file_bytes(fd);
	trace_core_touch(1);
	for (int i = 0; i < 10; i++) {
		for (int n = 0; n < 1024; n++)
			trace_instant(0, TRACE_GENERIC, NULL, 0);
		WANT(trace_tend() > 0);
	}
	WANT(file_bytes(fd) - before <= ring_bytes(RING_MIN_CAPACITY)); /* a lane */
	/* And one that had been there stays as it was. */
	WANT(trace_subscribe(CTL_SUB_API, &agent, RING_MIN_CAPACITY) == 0);
	WANT(dup3(other, kept, O_CLOEXEC) == kept);
	WANT(trace_subscribe(CTL_SUB_API, &api, RING_MAX_CAPACITY) == -EBADF);
	WANT(dup3(fd, kept, O_CLOEXEC) == kept);
	WANT(trace_wanted(0, TRACE_GENERIC) ==
		(CTL_SUB_BIT(CTL_SUB_API) | CTL_SUB_BIT(CTL_SUB_AGENT)));
	before = file_bytes(fd);
	trace_core_touch(1);
	WANT(file_bytes(fd) == before);
	return 0;
}

TEST("trace: a subscription that fails leaves everything as it was", "[trace]")
{
	CHECK_EQ(scratch_child(failed_subscription, NULL), 0);
}

/* ---- starts and stops ---------------------------------------------------------------------- */

static int dropped_start(void *arg)
{
	struct ctl_reader *r;
	struct trace_span span, whole;
	struct ring_counters c;
	uint32_t nc, lane;

	(void)arg;
	WANT(trace_subscribe(CTL_SUB_AGENT, NULL, 0) == 0);
	span = trace_start(7, TRACE_EXECUTE_API, NULL, 0); /* nothing is loaded there */
	WANT(span.tracking == 0);
	trace_core_touch(7);
	whole = trace_start(7, TRACE_EXECUTE_API, NULL, 0);
	trace_stop(&whole, 0, NULL, 0);
	trace_stop(&span, 0, NULL, 0);
	r = open_own(CTL_SUB_AGENT);
	WANT(r != NULL);
	WANT(ctl_reader_poll(r, false, clock_boot().ns, NULL, NULL, NULL) == 2);
	ctl_reader_counters(r, 0, &nc, &lane, &c); /* of no core: the start */
	WANT(nc == TRACE_NC_UNKNOWN && c.emitted == 1 && c.no_ring == 1);
	ctl_reader_close(r);
	return 0;
}

TEST("trace: a start that was dropped has no stop", "[trace]")
{
	CHECK_EQ(scratch_child(dropped_start, NULL), 0);
}

/* A span begins in the ring of all threads, behind one that has lost its CPU, and ends in the thread's own lane. */
TEST("trace: no stop is given away before its start", "[trace]")
{
	static const struct event_json_source nothing_known = {0};
	static struct control c;
	struct event_store *store = event_store_new(1000);
	struct ring_event e = {.type = TRACE_EXECUTE_API,
		.thread_id = 1,
		.wanted = CTL_SUB_BIT(CTL_SUB_API),
		.timestamp_ns = 1010};
	struct ring_writer *shared;
	struct ctl_reader *r;

	REQUIRE(store != NULL);
	REQUIRE_EQ(control_create(&c), 0);
	REQUIRE_EQ(control_add_ring(&c, 0, 1024), 0);
	shared = &c.writers[0][0];
	REQUIRE_EQ(ctl_reader_open(fcntl(c.file.fd, F_DUPFD_CLOEXEC, 0), CTL_SUB_API, &r), 0);
	REQUIRE_EQ(ctl_reader_poll(r, false, 1000, event_store_add, NULL, store), 0);
	atomic_fetch_add(&shared->head->emitted, 1);
	atomic_fetch_add(&shared->head->head, 1);
	atomic_store(&shared->slots[0][0].stamp, 1);
	e.tracking_id = ring_emit(shared, &e);
	REQUIRE_EQ(control_own_lane(&c, 0, 1), 0);
	e.phase = TRACE_STOP;
	e.timestamp_ns = 1020;
	(void)ring_emit_alone(&c.writers[0][control_lane(1)], &e);
	for (uint64_t now = 1100; now <= 1200; now += 100) {
		struct event_json j;
		char *text, *start, *stop;
		size_t len;

		REQUIRE(ctl_reader_poll(r, false, now, event_store_add, NULL, store) > 0);
		REQUIRE_EQ(event_json_begin(&j, &nothing_known), 0);
		REQUIRE_EQ(
			event_store_write(store, TRACE_ALL_NC, 0, ctl_reader_watermark(r, now), &j),
			0);
		event_json_end(&j, &text, &len);
		start = strstr(text, "\"start\"");
		stop = strstr(text, "\"stop\"");
		if (now == 1100)
			CHECK(!start && !stop);
		else
			CHECK(start && stop && start < stop);
		atomic_store(&shared->slots[0][0].stamp, 2);
		free(text);
	}
	ctl_reader_close(r);
	control_destroy(&c);
	event_store_free(store);
}
