/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring_fuzz.c - control files of processes that lie (runtime/trace/ring_reader.c, ring_map.c).
 *
 * The input is a list of changes to a file that honest writers made: two lanes of a core, one of which has
 * doubled twice, and a name.  A change is 11 bytes: what to change, which word of it, the new value; or,
 * with the high bit of the first byte, a poll in between.  Beyond not crashing: a reader that has not
 * failed has counters whose identity holds, one that has failed shows nothing but what it delivered, and the end of the
 * process ends the reading within as many polls as there can be positions.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "runtime/trace/control.h"
#include "tests/fuzz/fuzz.h"

#define CAPACITY 16u
#define CHANGE_BYTES 11u
#define MAX_CHANGES 64u
#define POLLS 8u

static struct control control;
static int file;

/* Where changes go: areas of words. */
static struct {
	uint64_t *words;
	uint32_t count;
} areas[8];

static void emit(struct ring_writer *w, uint64_t count)
{
	for (uint64_t n = 0; n < count; n++) {
		struct ring_event e = {.type = 1,
			.timestamp_ns = n,
			.payload = &n,
			.size = sizeof(n),
			.wanted = n % 3 ? CTL_SUB_BIT(CTL_SUB_AGENT) : CTL_SUB_BIT(CTL_SUB_API)};

		(void)ring_emit(w, &e);
	}
}

static void area(uint32_t at, void *words, uint64_t bytes)
{
	areas[at].words = words;
	areas[at].count = (uint32_t)(bytes / 8);
}

static void make_file(void)
{
	struct ring_writer *w = control.writers[0];

	FUZZ_REQUIRE(control_create(&control) == 0);
	FUZZ_REQUIRE(control_add_ring(&control, 0, CAPACITY) == 0);
	FUZZ_REQUIRE(control_own_lane(&control, 0, 7) == 0); /* lane 1 */
	emit(&w[0], 20);
	emit(&w[1], 5);
	FUZZ_REQUIRE(control_grow_ring(&control, 0, 0) == 0);
	emit(&w[0], 20);
	FUZZ_REQUIRE(control_grow_ring(&control, 0, 0) == 0);
	emit(&w[0], 30);
	FUZZ_REQUIRE(control_add_name(&control, 7, "seven", 5) == 0);
	file = control.file.fd;
	area(0, control.ctl, offsetof(struct ctl, rings));
	area(1, &control.ctl->rings[0], 3 * sizeof(struct ctl_ring));
	area(2, control.names, 64);
	area(3, w[0].head, sizeof(struct ring_head));
	area(4, w[1].head, sizeof(struct ring_head));
	area(5, w[0].slots[0], CAPACITY * sizeof(struct ring_slot));
	area(6, w[0].slots[2], 2 * CAPACITY * sizeof(struct ring_slot));
	area(7, w[1].slots[0], CAPACITY * sizeof(struct ring_slot));
}

static int on_batch(
	void *ctx, uint32_t nc, uint32_t lane, const struct trace_record *records, size_t count)
{
	uint64_t *seen = ctx;

	FUZZ_REQUIRE(nc < TRACE_MAX_NC || nc == TRACE_NC_UNKNOWN);
	FUZZ_REQUIRE(lane < CTL_MAX_LANES && records && count);
	*seen += count;
	return 0;
}

static int on_name(void *ctx, uint64_t id, const char *text, uint32_t len)
{
	uint64_t *seen = ctx, sum = id;

	for (uint32_t i = 0; i < len; i++)
		sum += (uint8_t)text[i];
	*seen += sum & 0;
	return 0;
}

static void check_rows(const struct ctl_reader *r, uint64_t seen)
{
	uint64_t delivered = 0;

	for (uint32_t i = 0; i < ctl_reader_rings(r); i++) {
		struct ring_counters c;
		uint32_t nc, lane;

		ctl_reader_counters(r, i, &nc, &lane, &c);
		FUZZ_REQUIRE(c.emitted == c.delivered + c.unread + c.overwritten + c.filtered +
						  c.slot_busy + c.no_ring + c.abandoned);
		FUZZ_REQUIRE(!ctl_reader_failed(r) || c.emitted == c.delivered);
		delivered += c.delivered;
	}
	FUZZ_REQUIRE(delivered == seen);
}

static void poll_once(struct ctl_reader *r, bool dead, uint64_t *seen)
{
	static uint64_t now_ns;

	(void)ctl_reader_poll(r, dead, now_ns += 1000000, on_batch, on_name, seen);
	FUZZ_REQUIRE(ctl_reader_watermark(r, now_ns) <= now_ns);
	if (!ctl_reader_failed(r))
		check_rows(r, *seen);
}

/* NULL: the file is refused. */
static struct ctl_reader *open_reader(enum ctl_subscriber who)
{
	int fd = fcntl(file, F_DUPFD_CLOEXEC, 0);
	struct ctl_reader *r = NULL;

	FUZZ_REQUIRE(fd >= 0);
	if (ctl_reader_open(fd, who, &r) < 0)
		close(fd);
	return r;
}

struct undo {
	uint64_t *word, value;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct undo undo[MAX_CHANGES];
	struct ctl_reader *r = NULL;
	uint64_t seen = 0, polls = 0;
	uint32_t changes = 0;

	if (!control.ctl)
		make_file();
	for (; size >= CHANGE_BYTES && changes < MAX_CHANGES;
		data += CHANGE_BYTES, size -= CHANGE_BYTES) {
		uint16_t index;
		struct undo *u = &undo[changes++];

		memcpy(&index, data + 1, sizeof(index));
		u->word = &areas[data[0] & 7].words[index % areas[data[0] & 7].count];
		u->value = *u->word;
		memcpy(u->word, data + 3, 8);
		if (!(data[0] & 0x80))
			continue;
		if (!r) {
			r = open_reader(data[0] & 0x40 ? CTL_SUB_API : CTL_SUB_AGENT);
			if (r && data[0] & 0x10)
				(void)ctl_reader_skip(r);
		}
		if (!r)
			break;
		if (polls++ < POLLS)
			poll_once(r, data[0] & 0x20, &seen);
	}
	if (!r)
		r = open_reader(CTL_SUB_AGENT);
	for (uint32_t i = 0; r && i < 3; i++)
		poll_once(r, i > 0, &seen);
	if (r)
		check_rows(r, seen);
	ctl_reader_close(r);
	while (changes--)
		*undo[changes].word = undo[changes].value;
	return 0;
}
