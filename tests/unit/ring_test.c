/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring_test.c - rings between writers and a reader: nothing torn, nothing uncounted.
 *
 * The writers are the runtime's own functions on a control file made here; the reader maps the same
 * file again, read-only, as an agent does.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/trace/control.h"
#include "runtime/trace/ring.h"
#include "tests/shim/shim.h"

/* A control file with one ring, for core 3, and its reader. */
struct rig {
	struct control c;
	struct ring_writer *w;
	struct ctl_reader *r;
	/* what the callbacks saw */
	uint64_t records, torn, unordered, last_id;
	struct trace_record last;
	char names[256];
};

static int rig_open(struct rig *rig, uint32_t capacity)
{
	int rc;

	memset(rig, 0, sizeof(*rig));
	rc = control_create(&rig->c);
	if (rc == 0)
		rc = control_add_ring(&rig->c, 3, capacity);
	rig->w = &rig->c.writers[3][0];
	if (rc == 0) {
		int fd = fcntl(rig->c.file.fd, F_DUPFD_CLOEXEC, 0);

		rc = ctl_reader_open(fd, CTL_SUB_AGENT, &rig->r);
		if (rc < 0)
			(void)close(fd);
	}
	return rc;
}

static void rig_close(struct rig *rig)
{
	ctl_reader_close(rig->r);
	control_destroy(&rig->c);
}

/* A record whose every word follows from one number. */
static struct trace_record make_record(uint64_t n)
{
	struct trace_record r = {
		.trace_type = 7, .thread_id = n, .timestamp_ns = n, .nrta_seq_id = n, .nc_idx = 3};

	for (size_t i = 0; i + 8 <= sizeof(r.data); i += 8)
		memcpy(r.data + i, &n, 8);
	return r;
}

static bool is_whole(const struct trace_record *r)
{
	struct trace_record want = make_record(r->timestamp_ns);

	want.id = want.nc_local_id = r->id;
	want.tracking_id = r->tracking_id;
	return memcmp(&want, r, sizeof(want)) == 0;
}

static int on_batch(
	void *ctx, uint32_t nc, uint32_t lane, const struct trace_record *records, size_t count)
{
	struct rig *rig = ctx;

	for (size_t i = 0; i < count; i++) {
		rig->torn += !is_whole(&records[i]) || nc != 3 || lane != 0;
		rig->records++;
		rig->last = records[i];
	}
	return 0;
}

static int on_name(void *ctx, uint64_t id, const char *text, uint32_t len)
{
	struct rig *rig = ctx;
	size_t used = strlen(rig->names);

	snprintf(rig->names + used, sizeof(rig->names) - used, "%llu=%.*s;", (unsigned long long)id,
		(int)len, text);
	return 0;
}

static long poll_at(struct rig *rig, bool dead, uint64_t now_ns)
{
	return ctl_reader_poll(rig->r, dead, now_ns, on_batch, on_name, rig);
}

static uint64_t emit_as(struct rig *rig, uint64_t n, uint64_t tracking)
{
	struct trace_record r = make_record(n);
	struct ring_event e = {.type = r.trace_type,
		.thread_id = n,
		.timestamp_ns = n,
		.tracking_id = tracking,
		.nc_idx = 3,
		.nrta_seq_id = n,
		.payload = r.data,
		.size = sizeof(r.data),
		.wanted = CTL_SUB_BIT(CTL_SUB_AGENT)};

	return ring_emit(rig->w, &e);
}

static void emit(struct rig *rig, uint64_t n)
{
	(void)emit_as(rig, n, 0);
}

static struct ring_counters counters(const struct rig *rig, uint32_t row)
{
	struct ring_counters c;
	uint32_t nc, lane;

	ctl_reader_counters(rig->r, row, &nc, &lane, &c);
	return c;
}

static bool balanced(const struct ring_counters *c)
{
	test_info(
		"emitted %llu delivered %llu unread %llu overwritten %llu busy %llu abandoned %llu",
		(unsigned long long)c->emitted, (unsigned long long)c->delivered,
		(unsigned long long)c->unread, (unsigned long long)c->overwritten,
		(unsigned long long)c->slot_busy, (unsigned long long)c->abandoned);
	return c->emitted == c->delivered + c->unread + c->overwritten + c->filtered +
				     c->slot_busy + c->no_ring + c->abandoned;
}

/* Position claimed, slot taken, record not there: where a killed or stalled writer stops. */
static uint64_t claim(struct rig *rig)
{
	uint64_t p = atomic_fetch_add(&rig->w->head->head, 1);

	atomic_fetch_add(&rig->w->head->emitted, 1);
	atomic_store(&rig->w->slots[0][p & (rig->w->capacity - 1)].stamp, 2 * p + 1);
	return p;
}

static void complete(struct rig *rig, uint64_t p)
{
	struct ring_slot *slot = &rig->w->slots[0][p & (rig->w->capacity - 1)];

	slot->record = make_record(p);
	slot->wanted = CTL_SUB_BIT(CTL_SUB_AGENT);
	atomic_store(&slot->stamp, 2 * p + 2);
}

/* ---- one writer --------------------------------------------------------------------------- */

TEST("ring: records arrive in order, numbered, with ids of their core", "[ring]")
{
	struct rig rig = {0};
	struct ring_counters c;

	REQUIRE_EQ(rig_open(&rig, 64), 0);
	CHECK_EQ(emit_as(&rig, 1, 0), 1ull | 3ull << 50);
	CHECK_EQ(emit_as(&rig, 2, 77), 77);
	CHECK_EQ(poll_at(&rig, false, 1000), 2);
	CHECK_EQ(rig.torn, 0);
	CHECK_EQ(rig.last.id, 2);
	CHECK_EQ(rig.last.nc_local_id, 2);
	CHECK_EQ(rig.last.tracking_id, 77);
	CHECK_EQ(poll_at(&rig, false, 2000), 0);
	c = counters(&rig, 0);
	CHECK_EQ(c.delivered, 2);
	CHECK(balanced(&c));
	rig_close(&rig);
}

TEST("ring: a full ring overwrites the oldest and counts it", "[ring]")
{
	struct rig rig = {0};
	struct ring_counters c;

	REQUIRE_EQ(rig_open(&rig, 8), 0);
	for (uint64_t n = 0; n < 20; n++)
		emit(&rig, n);
	CHECK_EQ(poll_at(&rig, false, 1), 8);
	CHECK_EQ(rig.last.timestamp_ns, 19);
	c = counters(&rig, 0);
	CHECK_EQ(c.delivered, 8);
	CHECK_EQ(c.overwritten, 12);
	CHECK(balanced(&c));
	rig_close(&rig);
}

TEST("ring: a slot that is still being written drops the event, counted", "[ring]")
{
	struct rig rig = {0};
	struct ring_counters c;
	uint64_t stalled;

	REQUIRE_EQ(rig_open(&rig, 4), 0);
	stalled = claim(&rig);
	for (uint64_t n = 1; n < 6; n++)
		emit(&rig, n); /* the fourth of them meets the stalled slot */
	CHECK_EQ(atomic_load(&rig.w->head->slot_busy), 1);
	CHECK_EQ(poll_at(&rig, false, 1), 3); /* positions 2, 3 and 5 */
	CHECK_EQ(rig.torn, 0);
	c = counters(&rig, 0);
	CHECK_EQ(c.slot_busy, 1);
	CHECK_EQ(c.overwritten, 2); /* 0, never finished, and 1 */
	CHECK(balanced(&c));
	/* The writer wakes up a lap later: its record is out of date, but the ring goes on. */
	complete(&rig, stalled);
	emit(&rig, 6);
	emit(&rig, 7);
	emit(&rig, 8);
	CHECK_EQ(poll_at(&rig, false, 2), 3);
	c = counters(&rig, 0);
	CHECK(balanced(&c));
	rig_close(&rig);
}

TEST("ring: a drop excuses one position, not the writer behind it", "[ring]")
{
	struct rig rig = {0};
	struct ring_counters c;
	uint64_t slow;

	REQUIRE_EQ(rig_open(&rig, 4), 0);
	(void)claim(&rig);
	for (uint64_t n = 1; n < 5; n++)
		emit(&rig, n); /* position 4 is dropped */
	/* A position, but no slot yet: it looks as a dropped one does. */
	slow = atomic_fetch_add(&rig.w->head->head, 1);
	atomic_fetch_add(&rig.w->head->emitted, 1);
	emit(&rig, 6);
	CHECK_EQ(poll_at(&rig, false, 1), 1); /* position 3 */
	c = counters(&rig, 0);
	CHECK_EQ(c.unread, 2);
	CHECK(balanced(&c));
	complete(&rig, slow);
	CHECK_EQ(poll_at(&rig, false, 2), 2);
	c = counters(&rig, 0);
	CHECK_EQ(c.slot_busy, 1);
	CHECK_EQ(c.abandoned, 0);
	CHECK(balanced(&c));
	rig_close(&rig);
}

TEST("ring: a slow writer holds the reader back, and the watermark with it", "[ring]")
{
	struct rig rig = {0};
	struct ring_counters c;
	uint64_t p;

	REQUIRE_EQ(rig_open(&rig, 64), 0);
	emit(&rig, 0);
	CHECK_EQ(poll_at(&rig, false, 1000), 1);
	p = claim(&rig);
	emit(&rig, 2);
	CHECK_EQ(poll_at(&rig, false, 5000), 0);
	CHECK_EQ(ctl_reader_watermark(rig.r, 9000), 1000);
	c = counters(&rig, 0);
	CHECK_EQ(c.unread, 2);
	CHECK(balanced(&c));
	complete(&rig, p);
	CHECK_EQ(poll_at(&rig, false, 9000), 2);
	CHECK_EQ(rig.last.timestamp_ns, 2);
	CHECK_EQ(ctl_reader_watermark(rig.r, 9500), 9000);
	rig_close(&rig);
}

TEST("ring: a writer that stalls for 200 ms, or died, is passed over as abandoned", "[ring]")
{
	for (int died = 0; died <= 1; died++) {
		struct rig rig = {0};
		struct ring_counters c;

		REQUIRE_EQ(rig_open(&rig, 64), 0);
		(void)claim(&rig);
		emit(&rig, 1);
		CHECK_EQ(poll_at(&rig, false, 1000), 0);
		CHECK_EQ(poll_at(&rig, false, 1000 + 200000000ull), 0);
		CHECK_EQ(poll_at(&rig, died, died ? 2000 : 1001 + 200000000ull), 1);
		c = counters(&rig, 0);
		CHECK_EQ(c.abandoned, 1);
		CHECK_EQ(c.delivered, 1);
		CHECK(balanced(&c));
		rig_close(&rig);
	}
}

TEST("ring: a writer killed before it has a position is abandoned", "[ring]")
{
	struct rig rig = {0};
	struct ring_counters c;

	REQUIRE_EQ(rig_open(&rig, 64), 0);
	atomic_fetch_add(&rig.w->head->emitted, 1);
	CHECK_EQ(poll_at(&rig, true, 1), 0);
	c = counters(&rig, 0);
	CHECK_EQ(c.abandoned, 1);
	CHECK(balanced(&c));
	rig_close(&rig);
}

static int stop_batch(
	void *ctx, uint32_t nc, uint32_t lane, const struct trace_record *records, size_t count)
{
	(void)ctx;
	(void)nc;
	(void)lane;
	(void)records;
	return count ? -ENOSPC : 0;
}

/* With a full batch before it, a slot that was dropped and one that others wanted: all of it comes again. */
TEST("ring: what a callback refuses ends the poll, counts as unread and comes again", "[ring]")
{
	struct ring_event of_others = {.wanted = CTL_SUB_BIT(CTL_SUB_API)};
	struct rig rig = {0};
	struct ring_counters c;
	uint64_t p;

	REQUIRE_EQ(rig_open(&rig, 64), 0);
	emit(&rig, 1);
	CHECK_EQ(control_add_name(&rig.c, 7, "seven", 5), 0);
	CHECK_EQ(poll_at(&rig, false, 1), 1);
	p = claim(&rig); /* a lap later it is still not done: the next writer there is refused */
	for (uint64_t n = 0; n < 63; n++)
		emit(&rig, n);
	emit(&rig, 0);
	(void)ring_emit(rig.w, &of_others);
	emit(&rig, 5);
	complete(&rig, p);
	CHECK_EQ(control_add_name(&rig.c, 8, "eight", 5), 0);
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(ctl_reader_poll(rig.r, false, 2, stop_batch, on_name, &rig), -ENOSPC);
		c = counters(&rig, 0);
		CHECK_EQ(c.delivered, 1);
		CHECK_EQ(c.filtered, 0);
		CHECK_EQ(c.slot_busy, 1);
		CHECK(balanced(&c));
		CHECK_EQ(ctl_reader_watermark(rig.r, 9), 1);
	}
	CHECK_EQ(poll_at(&rig, false, 3), 62);
	CHECK_EQ(rig.last.timestamp_ns, 5);
	CHECK_EQ(rig.torn, 0);
	c = counters(&rig, 0);
	CHECK_EQ(c.filtered, 1);
	CHECK_EQ(c.unread, 0);
	CHECK(balanced(&c));
	CHECK_STR(rig.names, "7=seven;8=eight;");
	rig_close(&rig);
}

static int refuse_name(void *ctx, uint64_t id, const char *text, uint32_t len)
{
	(void)ctx;
	(void)id;
	(void)text;
	(void)len;
	return -ENOMEM;
}

TEST("ring: a name that a callback refuses comes again", "[ring]")
{
	struct rig rig = {0};

	REQUIRE_EQ(rig_open(&rig, 64), 0);
	CHECK_EQ(control_add_name(&rig.c, 7, "seven", 5), 0);
	emit(&rig, 1);
	CHECK_EQ(ctl_reader_poll(rig.r, false, 1, on_batch, refuse_name, &rig), -ENOMEM);
	CHECK_EQ(rig.records, 0);
	CHECK(!ctl_reader_failed(rig.r));
	CHECK_EQ(poll_at(&rig, false, 2), 1);
	CHECK_STR(rig.names, "7=seven;");
	rig_close(&rig);
}

static int seven(
	void *ctx, uint32_t nc, uint32_t lane, const struct trace_record *records, size_t count)
{
	return on_batch(ctx, nc, lane, records, count) + 7;
}

TEST("ring: a positive number from a callback is none of an error", "[ring]")
{
	struct rig rig = {0};

	REQUIRE_EQ(rig_open(&rig, 1024), 0);
	for (uint64_t n = 0; n < 1000; n++)
		emit(&rig, n);
	CHECK_EQ(ctl_reader_poll(rig.r, false, 1, seven, NULL, &rig), 1000);
	CHECK_EQ(rig.records, 1000);
	rig_close(&rig);
}

/* The writer is always ahead: the watermark follows the heads of earlier looks. */
TEST("ring: a reader that never catches up still says up to when it has all", "[ring]")
{
	struct rig rig = {0};

	REQUIRE_EQ(rig_open(&rig, 1024), 0);
	CHECK_EQ(poll_at(&rig, false, 100), 0);
	for (uint64_t now = 200; now < 1000; now += 100) {
		emit(&rig, now);
		(void)claim(&rig);
		CHECK(poll_at(&rig, false, now + 50) > 0);
		CHECK_EQ(ctl_reader_watermark(rig.r, now + 99), now == 200 ? 100 : now - 50);
		complete(&rig, atomic_load(&rig.w->head->head) - 1);
	}
	rig_close(&rig);
}

TEST("ring: names arrive once, and one too many is counted", "[ring]")
{
	char text[255];
	struct rig rig = {0};
	int rc = 0;

	REQUIRE_EQ(rig_open(&rig, 64), 0);
	CHECK_EQ(control_add_name(&rig.c, 7, "seven", 5), 0);
	CHECK_EQ(control_add_name(&rig.c, 1ull << 50, "12345678", 8), 0);
	CHECK_EQ(poll_at(&rig, false, 1), 0);
	CHECK_EQ(poll_at(&rig, false, 2), 0);
	CHECK_STR(rig.names, "7=seven;1125899906842624=12345678;");
	memset(text, 'x', sizeof(text));
	for (int i = 0; i < 5000 && rc == 0; i++)
		rc = control_add_name(&rig.c, 9, text, sizeof(text));
	CHECK_EQ(rc, -ENOSPC);
	CHECK_EQ(atomic_load(&rig.c.ctl->names_lost), 1);
	CHECK_EQ(ctl_reader_poll(rig.r, false, 3, on_batch, NULL, &rig), 0);
	rig_close(&rig);
}

TEST("ring: events without a ring have a row of their own", "[ring]")
{
	struct ring_counters c;
	uint32_t nc, lane;
	struct rig rig = {0};

	REQUIRE_EQ(rig_open(&rig, 64), 0);
	atomic_store(&rig.c.ctl->no_ring, 5);
	atomic_store(&rig.c.ctl->emitted_no_ring, 5);
	CHECK_EQ(poll_at(&rig, false, 1), 0);
	REQUIRE_EQ(ctl_reader_rings(rig.r), 2);
	ctl_reader_counters(rig.r, 1, &nc, &lane, &c);
	CHECK_EQ(nc, TRACE_NC_UNKNOWN);
	CHECK_EQ(c.no_ring, 5);
	CHECK(balanced(&c));
	/* The ring for events of no core takes the row over. */
	REQUIRE_EQ(control_add_ring(&rig.c, TRACE_MAX_NC, 64), 0);
	CHECK_EQ(poll_at(&rig, false, 2), 0);
	REQUIRE_EQ(ctl_reader_rings(rig.r), 2);
	c = counters(&rig, 1);
	CHECK_EQ(c.no_ring, 5);
	CHECK(balanced(&c));
	rig_close(&rig);
}

/* ---- many writers ------------------------------------------------------------------------- */

#define WRITERS 4
#define PER_WRITER 50000u

struct writer {
	pthread_t thread;
	struct rig *rig;
	uint64_t number;
};

static void *write_many(void *arg)
{
	struct writer *w = arg;

	for (uint64_t n = 0; n < PER_WRITER; n++)
		emit(w->rig, w->number << 32 | n);
	return NULL;
}

static void run_writers(struct rig *rig, bool read)
{
	struct writer writers[WRITERS];
	uint64_t all = (uint64_t)WRITERS * PER_WRITER;

	for (uint64_t i = 0; i < WRITERS; i++) {
		writers[i] = (struct writer){.rig = rig, .number = i};
		(void)pthread_create(&writers[i].thread, NULL, write_many, &writers[i]);
	}
	while (read && atomic_load(&rig->w->head->head) < all) {
		(void)poll_at(rig, false, clock_boot().ns);
		(void)sched_yield();
	}
	for (int i = 0; i < WRITERS; i++)
		pthread_join(writers[i].thread, NULL);
}

TEST("ring: four writers and a reader: no record is torn, the sum is right", "[ring]")
{
	static const uint32_t capacities[] = {4, 256, 65536};

	for (int i = 0; i < 3; i++) {
		struct rig rig = {0};
		struct ring_counters c;

		REQUIRE_EQ(rig_open(&rig, capacities[i]), 0);
		run_writers(&rig, true);
		CHECK(poll_at(&rig, true, clock_boot().ns) >= 0);
		c = counters(&rig, 0);
		CHECK_EQ(c.emitted, (uint64_t)WRITERS * PER_WRITER);
		CHECK_EQ(c.unread, 0);
		CHECK_EQ(c.delivered, rig.records);
		CHECK(c.delivered >= capacities[i] / 2);
		CHECK_EQ(rig.torn, 0);
		CHECK(balanced(&c));
		rig_close(&rig);
	}
}

TEST("ring: a reader that slept through it all still gets the sum right", "[ring]")
{
	struct rig rig = {0};
	struct ring_counters c;

	REQUIRE_EQ(rig_open(&rig, 1024), 0);
	run_writers(&rig, false);
	CHECK(poll_at(&rig, false, 1) > 0);
	c = counters(&rig, 0);
	CHECK_EQ(c.emitted, (uint64_t)WRITERS * PER_WRITER);
	CHECK(c.delivered <= 1024);
	CHECK_EQ(rig.torn, 0);
	CHECK(balanced(&c));
	rig_close(&rig);
}

TEST("ring: killed writers leave whole records and a balanced count", "[ring]")
{
	for (int round = 0; round < 5; round++) {
		struct rig rig = {0};
		struct ring_counters c;
		pid_t pid;

		REQUIRE_EQ(rig_open(&rig, 4096), 0);
		pid = fork();
		if (pid == 0) {
			struct writer w[2] = {{.rig = &rig}, {.rig = &rig, .number = 1}};

			(void)pthread_create(&w[0].thread, NULL, write_many, &w[0]);
			for (;;)
				(void)write_many(&w[1]);
		}
		REQUIRE(pid > 0);
		while (atomic_load(&rig.w->head->head) < 2000)
			(void)sched_yield();
		CHECK_EQ(kill(pid, SIGKILL), 0);
		CHECK_EQ(waitpid(pid, NULL, 0), pid);
		CHECK(poll_at(&rig, true, clock_boot().ns) > 0);
		c = counters(&rig, 0);
		CHECK_EQ(rig.torn, 0);
		CHECK_EQ(c.unread, 0);
		CHECK(c.delivered >= 1000);
		CHECK(c.abandoned <= 2); /* one per thread */
		CHECK(balanced(&c));
		rig_close(&rig);
	}
}

TEST("ring: a head that lies, forwards or back, ends the reading", "[ring]")
{
	struct rig rig = {0};
	struct ring_counters c;

	for (uint64_t lie = 0; lie <= 1ull << 60; lie += 1ull << 60) {
		REQUIRE_EQ(rig_open(&rig, 64), 0);
		emit(&rig, 0);
		CHECK_EQ(poll_at(&rig, false, 1), 1);
		CHECK(!ctl_reader_failed(rig.r));
		atomic_store(&rig.w->head->head, lie);
		CHECK_EQ(poll_at(&rig, true, 2), -EPROTO);
		CHECK(ctl_reader_failed(rig.r));
		atomic_store(&rig.w->head->head, 1);
		CHECK_EQ(poll_at(&rig, true, 3), -EPROTO);
		c = counters(&rig, 0);
		CHECK_EQ(c.delivered, 1);
		CHECK(balanced(&c));
		rig_close(&rig);
	}
}
