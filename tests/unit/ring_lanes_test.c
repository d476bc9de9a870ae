/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring_lanes_test.c - what happens to rings while they are in use: they double, and cores get more lanes.
 *
 * The state under test is one per process and cannot be undone, so tests of trace.h run in a child, which
 * returns 0 or the number of the line that was not satisfied (modulo 251, plus 1).
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/trace/control.h"
#include "runtime/trace/trace.h"
#include "tests/shim/shim.h"
#include "tests/unit/scratch.h"

#define WANT(x)                                                                      \
	do {                                                                         \
		if (!(x)) {                                                          \
			fprintf(stderr, "ring_lanes_test.c:%d: %s\n", __LINE__, #x); \
			return __LINE__ % 251 + 1;                                   \
		}                                                                    \
	} while (0)

#define WRITERS 4
#define PATIENCE_NS 20000000000ull

/* ---- what a reader gets ---------------------------------------------------------------------- */

struct seen {
	struct ctl_reader *reader;
	uint64_t records, torn, disordered;
	uint64_t last_id[CTL_MAX_LANES]; /* of each lane */
	uint32_t lanes;			 /* that delivered */
};

/* A record's payload is its writer and its number, five times over. */
static int on_batch(
	void *ctx, uint32_t nc, uint32_t lane, const struct trace_record *records, size_t count)
{
	struct seen *s = ctx;

	(void)nc;
	for (size_t i = 0; i < count; i++) {
		const struct trace_record *r = &records[i];
		uint64_t words[5];

		memcpy(words, r->data, sizeof(words));
		for (int w = 1; w < 5; w++)
			s->torn += words[w] != words[0];
		s->disordered += r->id <= s->last_id[lane] || r->id >> TRACK_LANE_SHIFT != lane ||
				 (r->tracking_id & ((1ull << TRACK_CORE_SHIFT) - 1)) != r->id;
		s->last_id[lane] = r->id;
		s->records++;
	}
	if (count && lane >= s->lanes)
		s->lanes = lane + 1;
	return 0;
}

static long look(struct seen *s, bool dead)
{
	return ctl_reader_poll(s->reader, dead, clock_boot().ns, on_batch, NULL, s);
}

/* The sum over all rings; false when the identity of one does not hold. */
static bool sum(const struct seen *s, struct ring_counters *ret)
{
	memset(ret, 0, sizeof(*ret));
	for (uint32_t i = 0; i < ctl_reader_rings(s->reader); i++) {
		struct ring_counters c;
		uint32_t nc, lane;

		ctl_reader_counters(s->reader, i, &nc, &lane, &c);
		if (c.emitted != c.delivered + c.unread + c.overwritten + c.filtered + c.slot_busy +
					 c.no_ring + c.abandoned)
			return false;
		ret->emitted += c.emitted;
		ret->delivered += c.delivered;
		ret->overwritten += c.overwritten;
		ret->slot_busy += c.slot_busy;
		ret->abandoned += c.abandoned;
		ret->unread += c.unread;
		ret->filtered += c.filtered;
	}
	return true;
}

/* ---- doubling, by hand ----------------------------------------------------------------------- */

struct writer {
	pthread_t thread;
	struct ring_writer *w;
	uint64_t number, events;
	_Atomic uint64_t *total;
};

static void emit_to(struct ring_writer *w, uint64_t number, bool alone)
{
	uint64_t words[5] = {number, number, number, number, number};
	struct ring_event e = {.thread_id = 1,
		.payload = words,
		.size = sizeof(words),
		.wanted = CTL_SUB_BIT(CTL_SUB_AGENT)};

	(void)(alone ? ring_emit_alone(w, &e) : ring_emit(w, &e));
}

static void emit_number(struct ring_writer *w, uint64_t number)
{
	emit_to(w, number, false);
}

static void emit_alone(struct ring_writer *w, uint64_t number)
{
	emit_to(w, number, true);
}

static void *write_many(void *arg)
{
	struct writer *w = arg;

	for (uint64_t n = 0; n < w->events; n++) {
		emit_number(w->w, w->number << 40 | n);
		atomic_fetch_add(w->total, 1);
	}
	return NULL;
}

static int open_pair(struct control *c, struct seen *s, uint32_t capacity)
{
	int fd, rc = control_create(c);

	if (rc == 0)
		rc = control_add_ring(c, 0, capacity);
	fd = rc == 0 ? fcntl(c->file.fd, F_DUPFD_CLOEXEC, 0) : -1;
	return rc == 0 ? ctl_reader_open(fd, CTL_SUB_AGENT, &s->reader) : rc;
}

static void close_pair(struct control *c, struct seen *s)
{
	ctl_reader_close(s->reader);
	control_destroy(c);
}

TEST("ring: one that doubles keeps what it had, and then holds twice as much", "[ring]")
{
	static struct control c;
	struct ring_counters n;
	struct seen s = {0};
	uint32_t holds = 8;

	REQUIRE_EQ(open_pair(&c, &s, 8), 0);
	for (uint64_t i = 0; i < 13; i++)
		emit_number(&c.writers[0][0], i); /* positions 5 to 12 are there */
	for (int doubled = 0; doubled < 6; doubled++) {
		CHECK_EQ(control_grow_ring(&c, 0, 0), 0);
		holds *= 2;
	}
	for (uint64_t i = 0; i < 3; i++)
		emit_number(&c.writers[0][0], i);
	CHECK(look(&s, false) >= 8);
	for (uint64_t i = 0; i < 3 * holds; i++)
		emit_number(&c.writers[0][0], i);
	CHECK_EQ(look(&s, false), holds);
	CHECK(sum(&s, &n));
	CHECK_EQ(n.emitted, 16 + 3 * holds);
	CHECK_EQ(n.unread, 0);
	CHECK_EQ(s.torn + s.disordered, 0);
	close_pair(&c, &s);
}

TEST("ring: what came after the doubling is lost to nobody until the new half is full", "[ring]")
{
	/* Wherever in the lap it doubles: the next 8 overwrite or not, the last 8 are always there. */
	for (uint64_t before = 0; before < 32; before++) {
		static struct control c;
		struct ring_counters n;
		struct seen s = {0};

		REQUIRE_EQ(open_pair(&c, &s, 8), 0);
		for (uint64_t i = 0; i < before; i++)
			emit_number(&c.writers[0][0], i);
		CHECK_EQ(control_grow_ring(&c, 0, 0), 0);
		for (uint64_t i = 0; i < 8; i++)
			emit_number(&c.writers[0][0], i);
		CHECK(look(&s, false) >= 8);
		CHECK_EQ(s.last_id[0], before + 8);
		CHECK(sum(&s, &n));
		CHECK_EQ(n.emitted, before + 8);
		CHECK_EQ(n.abandoned + n.slot_busy, 0);
		close_pair(&c, &s);
	}
}

TEST("ring: it doubles under four writers and a reader, and every event is accounted for", "[ring]")
{
	static struct control c;
	_Atomic uint64_t total = 0;
	struct writer w[WRITERS];
	struct ring_counters n;
	struct seen s = {0};
	uint64_t all = WRITERS * 60000ull;
	int rc;

	REQUIRE_EQ(open_pair(&c, &s, 16), 0);
	for (uint64_t i = 0; i < WRITERS; i++) {
		w[i] = (struct writer){
			.w = &c.writers[0][0], .number = i, .events = 60000, .total = &total};
		REQUIRE_EQ(pthread_create(&w[i].thread, NULL, write_many, &w[i]), 0);
	}
	for (uint64_t doubled = 0; atomic_load(&total) < all;) {
		if (doubled < RING_SEGMENTS - 1 && atomic_load(&total) > doubled * 15000 &&
			control_grow_ring(&c, 0, 0) == 0)
			doubled++;
		/* At one moment, so that no writer is given up, however long it does not run. */
		(void)ctl_reader_poll(s.reader, false, 1, on_batch, NULL, &s);
		(void)sched_yield();
	}
	for (int i = 0; i < WRITERS; i++)
		pthread_join(w[i].thread, NULL);
	CHECK(look(&s, true) >= 0);
	CHECK(sum(&s, &n));
	CHECK_EQ(n.emitted, all);
	CHECK_EQ(n.delivered, s.records);
	CHECK_EQ(n.unread + n.abandoned, 0);
	CHECK_EQ(s.torn + s.disordered, 0);
	do {
		rc = control_grow_ring(&c, 0, 0);
	} while (rc == 0);
	CHECK_EQ(rc, -ERANGE); /* as often as it may */
	close_pair(&c, &s);
}

TEST("ring: an epoch that no writer leaves ends the reading", "[ring]")
{
	for (int fault = 0; fault < 5; fault++) {
		static struct control c;
		struct ring_segment *segment;
		struct seen s = {0};

		REQUIRE_EQ(open_pair(&c, &s, 8), 0);
		emit_number(&c.writers[0][0], 1);
		CHECK_EQ(control_grow_ring(&c, 0, 0), 0);
		segment = &c.writers[0][0].head->segments[1];
		if (fault == 1)
			segment->offset = segment->offset + (1ull << 40);
		else if (fault == 2)
			segment->start = 99;
		else if (fault == 3)
			segment->offset = CTL_PAGE_BYTES + CTL_NAMES_BYTES; /* on the ring itself */
		else if (fault == 4)
			atomic_fetch_or(&c.writers[0][0].head->head, 15ull << RING_POS_BITS);
		CHECK_EQ(look(&s, false), fault ? -EPROTO : 1);
		CHECK_EQ(ctl_reader_failed(s.reader), fault != 0);
		close_pair(&c, &s);
	}
}

TEST("ring: a lane of one thread doubles when the thread emits next", "[ring]")
{
	static struct control c;
	struct ring_writer *w;
	struct ring_counters n;
	struct seen s = {0};
	uint32_t tid = (uint32_t)gettid(), lane = control_lane(tid);
	uint64_t holds = 8;

	REQUIRE_EQ(open_pair(&c, &s, 8), 0);
	REQUIRE_EQ(control_own_lane(&c, 0, tid), 0);
	CHECK_EQ(control_own_lane(&c, 0, tid), 0);
	CHECK_EQ(control_own_lane(&c, 0, tid + CTL_MAX_LANES - 1), -EBUSY); /* the same lane */
	CHECK_EQ(control_own_lane(&c, TRACE_MAX_NC, tid), -ERANGE);
	w = &c.writers[0][lane];
	emit_alone(w, 1);
	for (; holds < 1024; holds *= 2) {
		CHECK_EQ(control_grow_ring(&c, 0, lane), 0);
		CHECK_EQ(control_grow_ring(&c, 0, lane), -EBUSY); /* not yet */
		for (uint64_t i = 0; i < 3; i++)
			emit_alone(w, i);
	}
	CHECK_EQ(look(&s, false), 22);
	for (uint64_t i = 0; i < 2 * holds; i++)
		emit_alone(w, i);
	CHECK_EQ(look(&s, false), holds);
	CHECK(sum(&s, &n));
	CHECK_EQ(n.emitted, 22 + 2 * holds);
	CHECK_EQ(n.slot_busy + n.abandoned + n.unread, 0);
	CHECK_EQ(s.torn + s.disordered, 0);
	close_pair(&c, &s);
}

static void *be_gone(void *arg)
{
	*(uint32_t *)arg = (uint32_t)gettid();
	return NULL;
}

TEST("ring: a lane passes on when its thread is gone", "[ring]")
{
	static struct control c;
	struct seen s = {0};
	pthread_t thread;
	uint32_t tid = 0;

	REQUIRE_EQ(open_pair(&c, &s, 8), 0);
	REQUIRE_EQ(pthread_create(&thread, NULL, be_gone, &tid), 0);
	pthread_join(thread, NULL);
	/* The number is not taken again so soon; the kernel lets it go when the thread has ended. */
	REQUIRE_EQ(control_own_lane(&c, 0, tid), 0);
	uint64_t end = clock_boot().ns + PATIENCE_NS;
	while (control_own_lane(&c, 0, tid + CTL_MAX_LANES - 1) == -EBUSY && clock_boot().ns < end)
		(void)sched_yield();
	CHECK_EQ(c.owner[0][control_lane(tid)], tid + CTL_MAX_LANES - 1);
	close_pair(&c, &s);
}

/* ---- in a process ---------------------------------------------------------------------------- */

static void instant(uint32_t nc, uint64_t number)
{
	uint64_t words[5] = {number, number, number, number, number};

	trace_instant(nc, TRACE_GENERIC, words, sizeof(words));
}

/* Reads all from the start, by a reader of its own. */
static int read_anew(struct seen *s)
{
	int rc;

	*s = (struct seen){0};
	rc = ctl_reader_open(trace_control_fd(), CTL_SUB_AGENT, &s->reader);
	while (rc == 0 && look(s, false) > 0)
		continue;
	return rc;
}

static int to_the_wish(void *arg)
{
	uint64_t wish = 1u << 18, end = clock_boot().ns + PATIENCE_NS;
	struct ring_counters n;
	struct seen s = {0};

	(void)arg;
	trace_core_touch(0);
	WANT(trace_subscribe(CTL_SUB_AGENT, NULL, (uint32_t)wish) == 0);
	do {
		ctl_reader_close(s.reader);
		for (uint64_t i = 0; i < 2 * wish; i++)
			instant(0, i);
		WANT(read_anew(&s) == 0);
		WANT(s.torn == 0 && s.disordered == 0);
		WANT(sum(&s, &n) && n.unread == 0);
	} while (s.records < wish && clock_boot().ns < end);
	WANT(s.records >= wish && s.records <= 2 * wish); /* of two lanes, perhaps */
	ctl_reader_close(s.reader);
	return 0;
}

TEST("trace: a ring grows to the largest wish while events come, and keeps as many", "[trace]")
{
	CHECK_EQ(scratch_child(to_the_wish, NULL), 0);
}

static int four_million(void *arg)
{
	(void)arg;
	WANT(trace_subscribe(CTL_SUB_API, NULL, 4000000) == 0);
	WANT(trace_subscribe(CTL_SUB_AGENT, NULL, 1) == 0);
	trace_core_touch(0);
	for (int i = 0; i < 1000; i++)
		instant(0, 1);
	WANT(trace_tend() > 0);
	return 0;
}

TEST("trace: a wish of four million records is one that a ring can grow to", "[trace]")
{
	CHECK_EQ(scratch_child(four_million, NULL), 0);
}

struct busy {
	pthread_t thread;
	_Atomic bool *stop;
	uint64_t emitted;
};

static void *keep_busy(void *arg)
{
	struct busy *b = arg;

	while (!atomic_load(b->stop))
		instant(0, ++b->emitted);
	return NULL;
}

static int crowded(void *arg)
{
	uint64_t end = clock_boot().ns + PATIENCE_NS;
	_Atomic bool stop = false;
	struct busy b[WRITERS] = {0};
	struct ring_counters n;
	struct seen s = {0};
	uint64_t all = 0;

	(void)arg;
	trace_core_touch(0);
	WANT(trace_subscribe(CTL_SUB_AGENT, NULL, 0) == 0);
	WANT(ctl_reader_open(trace_control_fd(), CTL_SUB_AGENT, &s.reader) == 0);
	for (int i = 0; i < WRITERS; i++) {
		b[i].stop = &stop;
		WANT(pthread_create(&b[i].thread, NULL, keep_busy, &b[i]) == 0);
	}
	while (s.lanes < 2 && clock_boot().ns < end) {
		WANT(look(&s, false) >= 0);
		(void)sched_yield();
	}
	atomic_store(&stop, true);
	for (int i = 0; i < WRITERS; i++) {
		pthread_join(b[i].thread, NULL);
		all += b[i].emitted;
	}
	while (look(&s, false) > 0)
		continue;
	WANT(s.lanes >= 2); /* they came by themselves */
	WANT(sum(&s, &n) && n.emitted == all && n.delivered == s.records);
	WANT(s.torn == 0 && s.disordered == 0);
	ctl_reader_close(s.reader);
	return 0;
}

TEST("trace: threads that emit much get lanes, whose ids differ and whose sums are right",
	"[trace]")
{
	CHECK_EQ(scratch_child(crowded, NULL), 0);
}
