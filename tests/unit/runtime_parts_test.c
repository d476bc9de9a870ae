/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime_parts_test.c - small parts of the runtime that need no device: log lines, settings,
 * notification rings.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/device/notify.h"
#include "runtime/lifecycle/config.h"
#include "runtime/log/log.h"
#include "tests/shim/shim.h"

TEST("log: a line begins with date, process, thread, level, tag and function", "[log]")
{
	char text[256];
	size_t n = log_prefix(text, sizeof(text), 1729541703169020123ull, 7340, 7341,
		LOG_LEVEL_INFO, "NRT", "nrt_init");

	CHECK_EQ(n, strlen(text));
	CHECK_STR(text, "2024-Oct-21 20:15:03.169020  7340:7341   INFO   NRT:nrt_init"
			"                                 ");
	(void)log_prefix(
		text, sizeof(text), 951782400000000000ull, 1, 1, LOG_LEVEL_ERROR, "TDRV", "f");
	CHECK(!strncmp(text, "2000-Feb-29 00:00:00.000000 ", 28));
	(void)log_prefix(
		text, sizeof(text), 4102444799999999999ull, 1, 1, LOG_LEVEL_WARN, "T", "f");
	CHECK(!strncmp(text, "2099-Dec-31 23:59:59.999999 ", 28));
	CHECK_EQ(log_prefix(text, 5, 0, 1, 1, LOG_LEVEL_WARN, "T", "f"), 4);
	CHECK_STR(text, "1970");
}

TEST("log: levels are found anywhere in a setting, in any case", "[log]")
{
	static const struct {
		const char *text;
		int level;
	} rows[] = {{"ERROR", 1}, {"warn", 2}, {"WARNING", 2}, {" Info ", 3}, {"debug", 4},
		{"TRACE", 5}, {"quiet", 0}, {"disabled", 0}, {"loud", -1}, {"", -1}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		test_info("'%s'", rows[i].text);
		CHECK_EQ(log_parse_level(rows[i].text), rows[i].level);
	}
}

TEST("config: core lists", "[config]")
{
	static const struct {
		const char *text;
		int rc;
		uint32_t first, count;
	} rows[] = {
		{"0", 0, 0, 1},
		{"3-5", 0, 3, 3},
		{"0-3,4", 0, 0, 5},
		{"5,4,3,4", 0, 3, 3},
		{"510-511", 0, 510, 2},
		{"0,2", -ERANGE, 0, 0},
		{"512", -EINVAL, 0, 0},
		{"99999999999999999999", -EINVAL, 0, 0},
		{"", -EINVAL, 0, 0},
		{"a", -EINVAL, 0, 0},
		{"1,", -EINVAL, 0, 0},
		{",1", -EINVAL, 0, 0},
		{"1-", -EINVAL, 0, 0},
		{"3-1", -EINVAL, 0, 0},
		{"1 2", -EINVAL, 0, 0},
		{"-1", -EINVAL, 0, 0},
		{"0x1", -EINVAL, 0, 0},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t first = 0, count = 0;

		test_info("'%s'", rows[i].text);
		CHECK_EQ(config_parse_cores(rows[i].text, &first, &count), rows[i].rc);
		CHECK_EQ(first, rows[i].first);
		CHECK_EQ(count, rows[i].count);
	}
}

/* ---- notification rings ------------------------------------------------------------------- */

#define RECORDS 8u

struct ring_memory {
	_Alignas(8) struct vdev_notification slots[RECORDS];
	uint64_t written;
};

/* What the device does. */
static void write_note(struct ring_memory *m)
{
	struct vdev_notification *slot = &m->slots[m->written % RECORDS];
	bool phase = m->written / RECORDS % 2 == 0;

	*slot = (struct vdev_notification){.launch = (uint16_t)m->written,
		.type_phase = (uint8_t)(VDEV_NOTE_TYPE_EXPLICIT_SP | (phase ? VDEV_NOTE_PHASE : 0)),
		.timestamp_ps = m->written * 1000};
	m->written++;
}

TEST("notify: a reader starts behind what is there, at every fill of the ring", "[notify]")
{
	for (unsigned before = 0; before <= 3 * RECORDS; before++) {
		struct ring_memory m = {.written = 0};
		struct vdev_notification note;
		struct notify_ring r;

		for (unsigned i = 0; i < before; i++)
			write_note(&m);
		test_info("%u records before", before);
		notify_attach(&r, m.slots, sizeof(m.slots));
		CHECK(!notify_next(&r, &note));
		for (unsigned i = 0; i < 2 * RECORDS; i++) {
			write_note(&m);
			REQUIRE(notify_next(&r, &note));
			CHECK_EQ(note.launch, before + i);
			CHECK_EQ(note.timestamp_ps, (before + i) * 1000);
			CHECK(!notify_next(&r, &note));
		}
	}
}
