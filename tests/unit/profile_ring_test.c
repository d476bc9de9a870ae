/* SPDX-License-Identifier: Apache-2.0 */
/* profile_ring_test.c - rings of profiles against a writer that knows what it wrote: order, wrap, phase, losses;
 * the table of the kinds of notifications. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "runtime/profile/notification_types.h"
#include "runtime/profile/profile_ring.h"
#include "runtime/vdev/memory.h"
#include "runtime/vdev/rings.h"
#include "tests/shim/shim.h"

/* ---- kinds -------------------------------------------------------------------------------- */

TEST("profile: kinds of notifications have their rings and their names in a profile", "[profile]")
{
	/* host number, trace_type, block_type, device type, ring type, engines; in the order of collection */
	static const unsigned want[NOTIFICATION_TYPES][7] = {
		{0, 0, 0, 0, 0, 0, 4},
		{3, 0, 0, 0, 1, 4, 4},
		{1, 1, 0, 0, 2, 0, 4},
		{2, 2, 0, 0, 3, 0, 0},
		{4, 4, 1, 0, 4, 0, 15},
		{5, 5, 0, 0, 5, 0, 0},
		{6, 0, 2, 1, 0, 0, 0},
		{8, 2, 2, 1, 3, 0, 0},
		{7, 1, 2, 1, 2, 0, 0},
		{11, 3, 2, 1, 1, 0, 0},
	};
	unsigned rings = 0;

	for (unsigned i = 0; i < NOTIFICATION_TYPES; i++) {
		const struct notification_type *t = notification_type(i);

		test_info("row %u", i);
		REQUIRE(t != NULL);
		CHECK_EQ(t->kind, want[i][0]);
		CHECK_EQ(t->trace, want[i][1]);
		CHECK_EQ(t->block, want[i][2]);
		CHECK_EQ(t->device, want[i][3]);
		CHECK_EQ(t->type, want[i][4]);
		CHECK_EQ(t->first_engine, want[i][5]);
		CHECK_EQ(t->last_engine, want[i][6]);
		CHECK(t->kind != NOTIFICATION_TOPSP_CC_STATUS && t->kind != NOTIFICATION_MAX);
		rings += t->last_engine - t->first_engine + 1;
	}
	CHECK_EQ(rings, NOTIFICATION_RINGS);
	CHECK(!notification_type(NOTIFICATION_TYPES));
}

/* ---- a writer that knows ------------------------------------------------------------------ */

/* The device's side of a ring, and the reader's.  The n-th record that it tried to write has the stamp n + 1, and
 * contents that follow from it. */
struct bench {
	struct vdev_memory memory;
	struct vdev_ring ring;
	struct vdev_ring_losses losses;
	enum vdev_ring_full full;
	bool no_head;
	pthread_mutex_t lock; /* the core's */
	uint64_t tried;
	struct profile_ring reader;
	uint64_t from; /* tried, when the reader came */
	uint64_t taken, last_ps, wrong;
};

static int answer(void *ctx, uint32_t *ret_written, uint32_t *ret_dropped)
{
	struct bench *b = ctx;

	pthread_mutex_lock(&b->lock);
	*ret_written = b->no_head ? 0 : (uint32_t)b->ring.written;
	*ret_dropped = b->no_head ? 0 : (uint32_t)b->ring.drops;
	pthread_mutex_unlock(&b->lock);
	return 0;
}

static int hear(void *ctx, uint32_t read)
{
	struct bench *b = ctx;

	pthread_mutex_lock(&b->lock);
	vdev_ring_read(&b->ring, read);
	pthread_mutex_unlock(&b->lock);
	return 0;
}

static struct notification record_of(uint64_t ps)
{
	return (struct notification){.id = (uint16_t)(ps * 40503u),
		.type_phase = NOTE_TYPE_INST_START(0),
		.custom = (uint16_t)(ps >> 16),
		.subtype = (uint16_t)ps,
		.timestamp_ps = ps};
}

static void put(struct bench *b)
{
	pthread_mutex_lock(&b->lock);
	(void)vdev_ring_write(&b->ring, record_of(++b->tried), b->full, &b->losses);
	pthread_mutex_unlock(&b->lock);
}

static void check(struct bench *b, const struct notification *got, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct notification want = record_of(got[i].timestamp_ps);

		want.type_phase |= got[i].type_phase & 0xe0;
		b->wrong += got[i].timestamp_ps <= b->last_ps ||
			    memcmp(&want, &got[i], sizeof(want)) != 0;
		b->last_ps = got[i].timestamp_ps;
	}
	b->taken += count;
}

/* A fresh ring; the reader comes when `old` records have been written. */
static void begin(struct bench *b, uint64_t slots, uint64_t old)
{
	const struct profile_ring_device device = {answer, hear, b};

	memset(b->memory.map, 0, slots * sizeof(struct notification));
	b->memory.size = slots * sizeof(struct notification);
	b->ring = (struct vdev_ring){.memory = &b->memory, .slots = slots};
	b->losses = (struct vdev_ring_losses){0};
	b->tried = b->taken = b->last_ps = b->wrong = 0;
	if (old > 2 * slots) { /* as if it had gone round that often */
		b->ring.written = b->tried = (old - 2 * slots) / (2 * slots) * 2 * slots;
		b->ring.read = b->ring.written;
	}
	while (b->tried < old) {
		put(b);
		b->ring.read = b->ring.written;
	}
	b->from = b->tried;
	profile_ring_open(&b->reader, b->memory.map, b->memory.size, &device);
}

static uint64_t random_u64(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	return *state ^= *state << 17;
}

static void take_all(struct bench *b)
{
	struct notification got[64];
	uint64_t before = b->reader.ring.read, end;
	uint32_t written, dropped, n;

	(void)answer(b, &written, &dropped);
	end = profile_ring_hear(&b->reader, before, written, dropped);
	while ((n = profile_ring_take(&b->reader, got, 64)))
		check(b, got, n);
	profile_ring_give_up(&b->reader, end);
}

/* Exactly what the device says; without its word, no more than there was. */
static bool account_holds(const struct bench *b)
{
	uint64_t sum = b->taken + b->reader.lost, all = b->tried - b->from;

	if (!b->no_head)
		return sum == all && b->reader.vague == 0 && b->reader.doubts == 0;
	return sum == all || (sum < all && (b->reader.vague > 0 || b->full == VDEV_RING_DROP));
}

static void random_life(struct bench *b, uint64_t *state, uint64_t steps)
{
	struct notification got[200];

	for (uint64_t s = 0; s < steps; s++) {
		uint64_t what = random_u64(state) % 100;
		uint32_t n = 1 + (uint32_t)(random_u64(state) % (b->ring.slots + 1));

		if (what < 2)
			n *= 1 + (uint32_t)(random_u64(state) % 5); /* laps */
		if (what < 50) {
			for (; n; n--)
				put(b);
		} else if (what < 52) {
			b->taken += profile_ring_take(&b->reader, NULL, n);
			b->last_ps = b->reader.ring.last_ps;
		} else if (what < 55) {
			take_all(b);
		} else {
			n = profile_ring_take(&b->reader, got, n < 200 ? n : 200);
			check(b, got, n);
		}
	}
	take_all(b);
}

static void bench_new(struct bench *b, size_t bytes)
{
	memset(b, 0, sizeof(*b));
	pthread_mutex_init(&b->lock, NULL);
	b->memory.map = aligned_alloc(64, bytes);
}

static void bench_end(struct bench *b)
{
	pthread_mutex_destroy(&b->lock);
	free(b->memory.map);
}

TEST("profile ring: random writing and reading lose exactly what the device says", "[profile]")
{
	static const enum vdev_ring_full full[] = {VDEV_RING_OVERWRITE, VDEV_RING_DROP};
	uint64_t state = 0x9e3779b97f4a7c15u, lives = 0;
	struct bench b;

	bench_new(&b, 128 * sizeof(struct notification));
	for (uint64_t steps = 0; steps < 1000000; steps += 250, lives++) {
		uint64_t slots = 2u << random_u64(&state) % 7, old = 0;

		if (random_u64(&state) % 2)
			old = random_u64(&state) % (3 * slots);
		if (random_u64(&state) % 8 == 0) /* the registers wrap */
			old = (1ull << 32) - 1 - random_u64(&state) % (20 * slots);
		b.full = full[random_u64(&state) % 2];
		b.no_head = random_u64(&state) % 3 == 0;
		begin(&b, slots, old);
		random_life(&b, &state, 250);
		if (b.wrong || b.reader.replaced || !account_holds(&b))
			test_info("life %llu: %llu slots, %llu before, mode %d, head %d: tried "
				  "%llu, taken %llu, lost %llu, wrong %llu",
				(unsigned long long)lives, (unsigned long long)slots,
				(unsigned long long)old, b.full, !b.no_head,
				(unsigned long long)b.tried, (unsigned long long)b.taken,
				(unsigned long long)b.reader.lost, (unsigned long long)b.wrong);
		REQUIRE_EQ(b.wrong, 0);
		REQUIRE(account_holds(&b));
		REQUIRE(!b.reader.replaced);
	}
	bench_end(&b);
}

TEST("profile ring: without overruns nothing is lost or vague, whatever the device says",
	"[profile]")
{
	struct notification got[16];
	struct bench b;

	bench_new(&b, 64 * sizeof(struct notification));
	for (unsigned head = 0; head < 2; head++) {
		b.no_head = !head;
		begin(&b, 16, 0);
		for (unsigned n = 0; n < 1000; n++) {
			for (unsigned i = 0; i < n % 17; i++)
				put(&b);
			check(&b, got, profile_ring_take(&b.reader, got, 16));
		}
		take_all(&b);
		CHECK_EQ(b.taken, b.tried);
		CHECK_EQ(b.reader.lost, 0);
		CHECK_EQ(b.reader.vague, 0);
		CHECK_EQ(b.losses.overwritten, 0);
		CHECK_EQ(b.wrong, 0);
	}
	bench_end(&b);
}

TEST("profile ring: what is in a ring when the reader comes is not its own", "[profile]")
{
	struct notification got[16];
	struct bench b;

	bench_new(&b, 64 * sizeof(struct notification));
	for (unsigned old = 0; old < 70; old++) {
		b.no_head = old % 2;
		test_info("%u records before", old);
		begin(&b, 16, old);
		CHECK_EQ(profile_ring_take(&b.reader, got, 16), 0);
		put(&b);
		REQUIRE_EQ(profile_ring_take(&b.reader, got, 16), 1);
		CHECK_EQ(got[0].timestamp_ps, old + 1);
		CHECK_EQ(b.reader.lost, 0);
	}
	bench_end(&b);
}

TEST("profile ring: a count that is just 0 again is not that of a device that says none",
	"[profile]")
{
	struct bench b;

	bench_new(&b, 16 * sizeof(struct notification));
	b.full = VDEV_RING_DROP;
	begin(&b, 16, 1ull << 32);
	CHECK(b.reader.placeless);
	for (unsigned i = 0; i < 5; i++) {
		put(&b);
		take_all(&b);
	}
	for (unsigned i = 0; i < 20; i++)
		put(&b);
	take_all(&b);
	CHECK_EQ(b.wrong, 0);
	CHECK(account_holds(&b));
	bench_end(&b);
}

TEST("profile ring: the last records that were dropped are counted too", "[profile]")
{
	struct bench b;

	bench_new(&b, 16 * sizeof(struct notification));
	b.full = VDEV_RING_DROP;
	begin(&b, 16, 0);
	for (unsigned i = 0; i < 21; i++)
		put(&b);
	take_all(&b);
	CHECK_EQ(b.taken, 16);
	CHECK_EQ(b.reader.lost, 5); /* no record has come since */
	put(&b);
	take_all(&b);
	CHECK_EQ(b.taken, 17);
	CHECK_EQ(b.reader.lost, 5);
	CHECK_EQ(b.reader.gaps, 1);
	bench_end(&b);
}

TEST("profile ring: a ring that the device has replaced is told from one that was overrun",
	"[profile]")
{
	struct bench b;

	bench_new(&b, 16 * sizeof(struct notification));
	begin(&b, 16, 0);
	for (unsigned i = 0; i < 10; i++)
		put(&b);
	take_all(&b);
	CHECK(!b.reader.replaced);
	b.ring.written = 3; /* of the new one */
	take_all(&b);
	CHECK(b.reader.replaced);
	CHECK_EQ(b.taken, 10);
	CHECK_EQ(b.reader.lost, 0);
	bench_end(&b);
}

/* ---- full speed --------------------------------------------------------------------------- */

#ifdef __SANITIZE_THREAD__
#define FULL_SPEED_RECORDS 1000000u
#else
#define FULL_SPEED_RECORDS 10000000u
#endif
#define RING_BYTES (8u << 20)

struct full_speed {
	struct bench b;
	_Atomic bool done;
};

static void *write_all(void *arg)
{
	struct full_speed *f = arg;

	for (unsigned i = 0; i < FULL_SPEED_RECORDS; i++)
		put(&f->b);
	atomic_store(&f->done, true);
	return NULL;
}

/* 10 M records through 8 MiB while another thread writes as fast as it can. */
static void full_speed(enum vdev_ring_full full, bool no_head)
{
	static struct notification got[4096];
	struct full_speed *f = calloc(1, sizeof(*f));
	pthread_t writer;
	uint32_t n;

	REQUIRE(f != NULL);
	bench_new(&f->b, RING_BYTES);
	f->b.full = full;
	f->b.no_head = no_head;
	begin(&f->b, RING_BYTES / sizeof(struct notification), 0);
	REQUIRE_EQ(pthread_create(&writer, NULL, write_all, f), 0);
	while (!atomic_load(&f->done)) {
		n = profile_ring_take(&f->b.reader, got, 4096);
		check(&f->b, got, n);
	}
	pthread_join(writer, NULL);
	take_all(&f->b);
	test_info("taken %llu, lost %llu, the device lost %llu", (unsigned long long)f->b.taken,
		(unsigned long long)f->b.reader.lost,
		(unsigned long long)(f->b.losses.overwritten + f->b.losses.dropped));
	CHECK_EQ(f->b.wrong, 0);
	CHECK(account_holds(&f->b));
	if (full == VDEV_RING_DROP && !no_head)
		CHECK_EQ(f->b.reader.lost, f->b.losses.dropped);
	bench_end(&f->b);
	free(f);
}

TEST("profile ring: of 10 M records at full speed none is lost, or those that the device says",
	"[profile]")
{
	full_speed(VDEV_RING_OVERWRITE, false);
	full_speed(VDEV_RING_DROP, false);
	full_speed(VDEV_RING_OVERWRITE, true);
}
