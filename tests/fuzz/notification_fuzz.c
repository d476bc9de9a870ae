/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notification_fuzz.c - rings in memory of a device that lies (runtime/device/notify.c, runtime/profile/profile_ring.c).
 *
 * The input is the size of a ring, what it holds when the reader comes, and steps: changes of its memory, one or many
 * records that an honest device would write next, reading in all its ways, answers of the device.  Memory also changes
 * while the reader waits for an answer.  Whatever comes: no call takes more than it may, places only go forward and
 * fit to each other, every call ends.
 */
#include <string.h>

#include "runtime/profile/profile_ring.h"
#include "tests/fuzz/fuzz.h"

#define MAX_SLOTS 64u
#define MAX_STEPS 512u

struct input {
	const uint8_t *data;
	size_t size;
};

static struct {
	_Alignas(16) uint64_t words[2 * MAX_SLOTS];
	uint32_t slots;
	uint64_t written; /* by the honest half of it */
	struct input *input;
	unsigned asked;
} device;

static uint8_t next_byte(struct input *in)
{
	if (!in->size)
		return 0;
	in->size--;
	return *in->data++;
}

static uint64_t next_word(struct input *in)
{
	uint64_t word = 0;

	for (int i = 0; i < 8; i++)
		word = word << 8 | next_byte(in);
	return word;
}

static void change(struct input *in)
{
	uint32_t at = next_byte(in) % (2 * device.slots);

	device.words[at] = next_word(in);
}

/* What a device does that tells the truth. */
static void write_next(uint32_t count)
{
	for (; count; count--, device.written++) {
		uint64_t at = device.written % device.slots;
		uint64_t phase = device.written / device.slots % 2 ? 0 : NOTE_PHASE;

		device.words[2 * at + 1] = device.written + 1;
		device.words[2 * at] =
			(phase | NOTE_TYPE_INST_START(0)) << 24 | (device.written & 0xffff);
	}
}

/* The truth, something else, or an error; and the memory changes meanwhile. */
static int ask(void *ctx, uint32_t *ret_written, uint32_t *ret_dropped)
{
	struct input *in = device.input;
	uint8_t how = next_byte(in);

	(void)ctx;
	device.asked++;
	if (how & 4)
		change(in);
	if (how & 8)
		write_next(how >> 4);
	*ret_written = how & 1 ? (uint32_t)device.written : (uint32_t)next_word(in);
	*ret_dropped = how & 2 ? 0 : next_byte(in);
	return how == 0xff ? -5 : 0;
}

static int tell(void *ctx, uint32_t read)
{
	(void)ctx;
	(void)read;
	return 0;
}

static void check(const struct profile_ring *p)
{
	const struct notify_ring *r = &p->ring;

	FUZZ_REQUIRE(r->at < r->count && r->at == r->read % r->count);
	FUZZ_REQUIRE(r->phase == (r->read / r->count % 2 == 0));
	FUZZ_REQUIRE(r->told <= r->read);
}

static void step(struct profile_ring *p, struct input *in)
{
	struct notification got[MAX_SLOTS + 2], *to = got;
	uint8_t what = next_byte(in);
	uint32_t n = what >> 3, written, dropped;
	const uint64_t read = p->ring.read, lost = p->lost, asked = device.asked;

	switch (what & 7) {
	case 0:
		change(in);
		break;
	case 1:
		write_next(n + 1);
		break;
	case 2:
		to = NULL;
		/* fall through */
	case 3:
	case 4:
		n = n % (MAX_SLOTS + 1) + 1;
		memset(got, 0x5a, sizeof(got));
		FUZZ_REQUIRE(profile_ring_take(p, to, n) <= n);
		FUZZ_REQUIRE(((uint8_t *)&got[n])[0] == 0x5a);
		FUZZ_REQUIRE(device.asked - asked <= 4);
		break;
	case 5:
		(void)profile_ring_has(p);
		(void)ask(NULL, &written, &dropped);
		profile_ring_give_up(p, profile_ring_hear(p, read, written, dropped));
		break;
	case 6:
		(void)notify_next(&p->ring, &got[0]);
		break;
	default:
		FUZZ_REQUIRE(notify_guess(&p->ring, read) - read < 2ull * p->ring.count);
	}
	FUZZ_REQUIRE(p->ring.read >= read || p->placeless || device.asked != asked);
	FUZZ_REQUIRE(p->lost >= lost);
	check(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct profile_ring_device d = {ask, tell, NULL};
	struct input in = {data, size};
	struct profile_ring p;

	memset(&device, 0, sizeof(device));
	device.input = &in;
	device.slots = 2u << next_byte(&in) % 6;
	write_next(next_byte(&in));
	for (uint8_t n = next_byte(&in) % 8; n; n--)
		change(&in);
	profile_ring_open(&p, device.words, device.slots * sizeof(struct notification), &d);
	check(&p);
	for (unsigned i = 0; i < MAX_STEPS && in.size; i++)
		step(&p, &in);
	return 0;
}
