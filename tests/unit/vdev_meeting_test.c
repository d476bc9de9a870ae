/* SPDX-License-Identifier: Apache-2.0 */
/* vdev_meeting_test.c - meetings of ranks without a device: who is released when, who disagrees, what is
 * computed. */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "nrt/nrt.h"
#include "nrt/nrt_status.h"
#include "runtime/vdev/arithmetic.h"
#include "runtime/vdev/meeting.h"
#include "runtime/vdev/memory.h"
#include "runtime/vdev/program.h"
#include "tests/shim/shim.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define NO_SEM VDEV_NO_SEMAPHORE

struct rank {
	struct vdev_member m;
	struct vdev_program header;
	struct vdev_instruction instruction;
	struct vdev_bound bounds[2];
	int woken;
};

static void count_wake(void *context)
{
	((struct rank *)context)->woken++;
}

static void rank_init(struct rank *r, uint32_t rank, uint32_t ranks, uint8_t op)
{
	*r = (struct rank){
		.header = {.rank = rank, .ranks = ranks, .group = 7, .part = 1},
		.instruction =
			{.unit = VDEV_TOP_SP, .op = op, .wait = NO_SEM, .post = NO_SEM, .dst = 1},
		.m = {.arrival_ps = 100 + rank, .wake = count_wake},
	};
	r->m.header = &r->header;
	r->m.instruction = &r->instruction;
	r->m.bounds = r->bounds;
	r->m.context = r;
}

static void check_rank(const struct rank *r, bool released, uint16_t status)
{
	CHECK_EQ(atomic_load(&r->m.released), released);
	CHECK_EQ(r->woken, released);
	CHECK_EQ(r->m.status, status);
}

TEST("vdev meeting: ranks are released together, at the time of the last arrival", "[vdev]")
{
	struct vdev_meetings meetings;
	struct rank r[VDEV_MAX_RANKS];

	vdev_meetings_init(&meetings);
	for (uint32_t ranks = 1; ranks <= VDEV_MAX_RANKS; ranks++) {
		test_info("ranks %u", ranks);
		for (uint32_t i = ranks; i-- > 0;) {
			rank_init(&r[i], i, ranks, VDEV_OP_BARRIER);
			vdev_meeting_arrive(&meetings, &r[i].m);
			if (i)
				check_rank(&r[i], false, 0);
		}
		for (uint32_t i = 0; i < ranks; i++) {
			check_rank(&r[i], true, 0);
			CHECK_EQ(r[i].m.release_ps, 100 + ranks - 1);
		}
		CHECK(!meetings.first);
	}
	vdev_meetings_destroy(&meetings);
}

TEST("vdev meeting: groups, parts and occasions do not mix", "[vdev]")
{
	struct vdev_meetings meetings;
	struct rank a[4], b[4];

	vdev_meetings_init(&meetings);
	for (uint32_t i = 0; i < 4; i++) {
		rank_init(&a[i], 0, 2, VDEV_OP_BARRIER);
		rank_init(&b[i], 1, 2, VDEV_OP_BARRIER);
	}
	a[1].header.group = b[1].header.group = 8;
	a[2].header.part = b[2].header.part = 0;
	a[3].m.ordinal = b[3].m.ordinal = 1;
	for (uint32_t i = 0; i < 4; i++)
		vdev_meeting_arrive(&meetings, &a[i].m);
	for (uint32_t i = 4; i-- > 0;) {
		check_rank(&a[i], false, 0);
		vdev_meeting_arrive(&meetings, &b[i].m);
		check_rank(&a[i], true, 0);
		check_rank(&b[i], true, 0);
	}
	vdev_meetings_destroy(&meetings);
}

TEST("vdev meeting: a member that leaves is waited for again", "[vdev]")
{
	struct vdev_meetings meetings;
	struct rank r[3];

	vdev_meetings_init(&meetings);
	for (uint32_t i = 0; i < 3; i++)
		rank_init(&r[i], i, 3, VDEV_OP_BARRIER);
	vdev_meeting_arrive(&meetings, &r[0].m);
	vdev_meeting_leave(&meetings, &r[0].m);
	CHECK(!meetings.first);
	vdev_meeting_arrive(&meetings, &r[1].m);
	vdev_meeting_arrive(&meetings, &r[2].m);
	check_rank(&r[1], false, 0);
	vdev_meeting_leave(&meetings, &r[2].m);
	vdev_meeting_arrive(&meetings, &r[0].m);
	check_rank(&r[0], false, 0);
	vdev_meeting_arrive(&meetings, &r[2].m);
	for (uint32_t i = 0; i < 3; i++)
		check_rank(&r[i], true, 0);
	vdev_meeting_leave(&meetings, &r[0].m); /* nothing any more */
	vdev_meetings_destroy(&meetings);
}

TEST("vdev meeting: a counted run that one has left is over for all, and the next is not", "[vdev]")
{
	struct vdev_memory program = {.freed = false};
	struct vdev_meetings meetings;
	struct rank r[3];

	vdev_meetings_init(&meetings);
	for (int freed = 0; freed < 2; freed++) {
		for (uint32_t i = 0; i < 3; i++) {
			rank_init(&r[i], i, 3, VDEV_OP_BARRIER);
			r[i].header.run = 1;
			r[i].m.program = &program;
		}
		vdev_meeting_arrive(&meetings, &r[0].m);
		vdev_meeting_arrive(&meetings, &r[1].m);
		vdev_meeting_leave(&meetings, &r[0].m);
		check_rank(&r[1], true, NRT_TIMEOUT);
		if (freed) { /* and with the program it is forgotten */
			vdev_meetings_forget(&meetings, &program);
			vdev_meetings_forget(&meetings, &program);
			CHECK(!meetings.first);
			break;
		}
		rank_init(&r[1], 1, 3, VDEV_OP_BARRIER);
		r[1].header.run = 2;
		vdev_meeting_arrive(&meetings, &r[1].m);
		check_rank(&r[1], false, 0);
		vdev_meeting_arrive(&meetings, &r[2].m);
		check_rank(&r[2], true, NRT_TIMEOUT);
		for (uint32_t i = 0; i < 3; i += 2) {
			rank_init(&r[i], i, 3, VDEV_OP_BARRIER);
			r[i].header.run = 2;
			vdev_meeting_arrive(&meetings, &r[i].m);
		}
		for (uint32_t i = 0; i < 3; i++)
			check_rank(&r[i], true, 0);
		CHECK(!meetings.first);
	}
	vdev_meetings_destroy(&meetings);
}

TEST("vdev meeting: who disagrees makes it fail for all, a second self only for itself", "[vdev]")
{
	struct vdev_meetings meetings;
	struct rank r[4], twin;

	vdev_meetings_init(&meetings);
	for (int way = 0; way < 4; way++) {
		test_info("way %d", way);
		for (uint32_t i = 0; i < 4; i++) {
			rank_init(&r[i], i, 4, VDEV_OP_ALL_REDUCE);
			r[i].instruction.dtype = NRT_DTYPE_INT8;
		}
		rank_init(&twin, 0, 4, VDEV_OP_ALL_REDUCE);
		if (way == 0)
			r[2].instruction.op = VDEV_OP_BARRIER;
		else if (way == 1)
			r[2].instruction.dtype = NRT_DTYPE_UINT8;
		else if (way == 2)
			r[2].instruction.count = 1;
		else
			r[2].header.ranks = 3;
		vdev_meeting_arrive(&meetings, &r[0].m);
		vdev_meeting_arrive(&meetings, &r[1].m);
		vdev_meeting_arrive(&meetings, &twin.m);
		check_rank(&twin, true, NRT_EXEC_HW_ERR_COLLECTIVES);
		check_rank(&r[0], false, 0);
		vdev_meeting_arrive(&meetings, &r[2].m);
		for (uint32_t i = 0; i < 3; i++)
			check_rank(&r[i], true, NRT_EXEC_HW_ERR_COLLECTIVES);
		/* And for the one that is late. */
		vdev_meeting_arrive(&meetings, &r[3].m);
		check_rank(&r[3], true, NRT_EXEC_HW_ERR_COLLECTIVES);
		CHECK(!meetings.first);
	}
	vdev_meetings_destroy(&meetings);
}

TEST("vdev meeting: after a failure ranks that come again begin anew", "[vdev]")
{
	struct vdev_meetings meetings;
	struct rank r[3];

	vdev_meetings_init(&meetings);
	for (unsigned group = 0; group < 100; group++) { /* failed ones do not pile up */
		for (uint32_t i = 0; i < 2; i++) {
			rank_init(&r[i], i, 3, i ? VDEV_OP_BARRIER : VDEV_OP_ALL_GATHER);
			r[i].header.group = group;
			vdev_meeting_arrive(&meetings, &r[i].m);
		}
		check_rank(&r[1], true, NRT_EXEC_HW_ERR_COLLECTIVES);
	}
	CHECK(meetings.failed <= 64);
	for (uint32_t i = 0; i < 3; i++) {
		rank_init(&r[i], i, 3, VDEV_OP_BARRIER);
		r[i].header.group = 99;
		vdev_meeting_arrive(&meetings, &r[i].m);
	}
	for (uint32_t i = 0; i < 3; i++)
		check_rank(&r[i], true, 0);
	vdev_meetings_destroy(&meetings);
}

/* Element k of a rank, small enough that every sum is exact in every type: 1, 2 or 3. */
static unsigned number_of(uint32_t rank, uint64_t k)
{
	return (unsigned)((k * 7 + rank * 5) % 3) + 1;
}

/* The element's bytes for a number from 0 to 192; how floats are laid out is written down here once more. */
static void put_number(uint32_t dtype, uint8_t *at, unsigned number)
{
	static const struct {
		uint32_t dtype;
		unsigned mantissa_bits, bias;
	} floats[] = {{NRT_DTYPE_BFLOAT16, 7, 127}, {NRT_DTYPE_FLOAT16, 10, 15},
		{NRT_DTYPE_FLOAT32, 23, 127}};
	uint64_t bits = number;

	for (size_t i = 0; i < COUNT(floats); i++)
		if (floats[i].dtype == dtype && number) {
			unsigned exponent = 31 - (unsigned)__builtin_clz(number);
			uint64_t rest = number - (1u << exponent);

			bits = (uint64_t)(exponent + floats[i].bias) << floats[i].mantissa_bits |
			       rest << floats[i].mantissa_bits >> exponent;
		}
	memcpy(at, &bits, vdev_dtype_bytes(dtype)); /* little endian, as the device is */
}

enum { FIRST = 3 };

/* One collective of `n` ranks on `count` elements, the last rank in place when it sums. */
struct gathering {
	uint32_t dtype, n;
	uint8_t op;
	uint64_t count, whole;
	struct rank ranks[VDEV_MAX_RANKS];
};

static void gathering_make(struct gathering *g)
{
	size_t bytes = vdev_dtype_bytes(g->dtype);
	uint64_t room = FIRST + g->count;

	g->whole = g->count + 5;
	for (uint32_t i = 0; i < g->n; i++) {
		struct rank *r = &g->ranks[i];

		rank_init(r, i, g->n, g->op);
		r->instruction.dtype = (uint8_t)g->dtype;
		r->instruction.first = FIRST;
		r->instruction.count = g->count;
		r->instruction.whole = g->whole;
		r->bounds[0].data = malloc(room * bytes);
		for (uint64_t k = 0; k < room; k++)
			put_number(g->dtype, r->bounds[0].data + k * bytes, number_of(i, k));
		if (g->op == VDEV_OP_ALL_REDUCE && i == g->n - 1)
			r->bounds[1] = r->bounds[0];
		else
			r->bounds[1].data = calloc(
				g->op == VDEV_OP_ALL_GATHER ? room + g->whole * (g->n - 1) : room,
				bytes);
	}
}

static void gathering_free(struct gathering *g)
{
	for (uint32_t i = 0; i < g->n; i++) {
		if (g->ranks[i].bounds[0].data != g->ranks[i].bounds[1].data)
			free(g->ranks[i].bounds[1].data);
		free(g->ranks[i].bounds[0].data);
	}
}

/* What rank `to` should have from FIRST on, of rank `from` when it gathers. */
static bool is_right(const struct gathering *g, uint32_t to, uint32_t from)
{
	size_t bytes = vdev_dtype_bytes(g->dtype);
	const uint8_t *got = g->ranks[to].bounds[1].data +
			     (FIRST + (g->op == VDEV_OP_ALL_GATHER ? g->whole * from : 0)) * bytes;

	for (uint64_t k = 0; k < g->count; k++) {
		unsigned number = 0;
		uint8_t want[8];

		for (uint32_t i = 0; i < g->n; i++)
			if (g->op == VDEV_OP_ALL_REDUCE || i == from)
				number += number_of(i, FIRST + k);
		if (number > 127 && bytes == 1)
			number &= 0xff; /* wraps, signed or not */
		put_number(g->dtype, want, number);
		if (memcmp(got + k * bytes, want, bytes) != 0)
			return false;
	}
	return true;
}

static unsigned count_wrong(const struct gathering *g)
{
	unsigned wrong = 0;

	for (uint32_t to = 0; to < g->n; to++)
		for (uint32_t from = 0; from < (g->op == VDEV_OP_ALL_GATHER ? g->n : 1); from++)
			wrong += !is_right(g, to, from);
	return wrong;
}

static void check_collective(struct vdev_meetings *meetings, struct gathering *g)
{
	test_info(
		"op %u, type %u, %u ranks, %zu elements", g->op, g->dtype, g->n, (size_t)g->count);
	gathering_make(g);
	for (uint32_t i = 0; i < g->n; i++)
		vdev_meeting_arrive(meetings, &g->ranks[i].m);
	for (uint32_t i = 0; i < g->n; i++)
		check_rank(&g->ranks[i], true, 0);
	CHECK_EQ(count_wrong(g), 0);
	gathering_free(g);
}

/* All of them with each other; sizes around the pieces in which sums are made.  Many ranks gather few elements:
 * each has room for all. */
TEST("vdev meeting: results are right for all types, sizes and ranks", "[vdev]")
{
	static const uint32_t ranks[] = {1, 2, 3, 8, 64};
	static const uint64_t counts[] = {0, 1, 7, 16383, 16384, 16385};
	static struct gathering g;
	struct vdev_meetings meetings;

	vdev_meetings_init(&meetings);
	for (g.dtype = NRT_DTYPE_UINT64; g.dtype <= NRT_DTYPE_FP8_E5; g.dtype++)
		for (size_t n = 0; n < COUNT(ranks); n++)
			for (size_t c = 0; c < COUNT(counts); c++) {
				g.n = ranks[n];
				g.count = counts[c];
				g.op = VDEV_OP_ALL_GATHER;
				if (g.n <= 3 || g.count <= 7)
					check_collective(&meetings, &g);
				g.op = VDEV_OP_ALL_REDUCE;
				if (vdev_can_add(g.dtype) && (g.n <= 8 || g.count <= 7))
					check_collective(&meetings, &g);
			}
	/* 64 KiB and one byte less and more, of bytes. */
	g.dtype = NRT_DTYPE_UINT8;
	g.op = VDEV_OP_ALL_REDUCE;
	g.n = 2;
	for (g.count = 65535; g.count <= 65537; g.count++)
		check_collective(&meetings, &g);
	vdev_meetings_destroy(&meetings);
}

/* A rank that comes again and again, and gives up when the others are not quick enough. */
struct restless {
	struct vdev_meetings *meetings;
	uint32_t rank;
	unsigned met, failed;
	uint8_t from[4096], to[4096];
};

static void no_wake(void *context)
{
	(void)context;
}

static void *come_and_go(void *arg)
{
	struct restless *me = arg;

	for (unsigned n = 0; n < 3000; n++) {
		struct rank r;

		rank_init(&r, me->rank, 3, VDEV_OP_ALL_REDUCE);
		r.m.wake = no_wake;
		r.instruction.dtype = NRT_DTYPE_UINT8;
		r.instruction.count = sizeof(me->from);
		r.bounds[0].data = me->from;
		r.bounds[1].data = me->to;
		memset(me->to, 0, sizeof(me->to));
		vdev_meeting_arrive(me->meetings, &r.m);
		for (unsigned k = 0; k < 20 && !atomic_load(&r.m.released); k++)
			sched_yield();
		vdev_meeting_leave(me->meetings, &r.m);
		if (!atomic_load(&r.m.released))
			continue;
		me->met++;
		me->failed += r.m.status != 0 || me->to[0] != 3 || me->to[4095] != 3;
	}
	return NULL;
}

TEST("vdev meeting: members that come and go leave nothing behind, and right sums", "[vdev]")
{
	static struct restless ranks[3];
	struct vdev_meetings meetings;
	pthread_t threads[3];

	vdev_meetings_init(&meetings);
	for (uint32_t i = 0; i < 3; i++) {
		ranks[i] = (struct restless){.meetings = &meetings, .rank = i};
		memset(ranks[i].from, 1, sizeof(ranks[i].from));
		REQUIRE(pthread_create(&threads[i], NULL, come_and_go, &ranks[i]) == 0);
	}
	for (uint32_t i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	CHECK_EQ(ranks[0].met, ranks[1].met);
	CHECK_EQ(ranks[0].met, ranks[2].met);
	for (uint32_t i = 0; i < 3; i++)
		CHECK_EQ(ranks[i].failed, 0);
	CHECK(!meetings.first);
	vdev_meetings_destroy(&meetings);
}
