/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event_kind_test.c - what an event is, by type, hint and the bits of its id.
 */
#include <inttypes.h>
#include <string.h>

#include "agent/output/event_kind.h"
#include "runtime/record/item.h"
#include "runtime/trace/event_registry.h"
#include "tests/shim/shim.h"

static struct pb_str text(const char *s)
{
	return (struct pb_str){s, (uint32_t)strlen(s)};
}

TEST("event kind: by type, hint and id bits", "[summary]")
{
	static const struct {
		uint32_t type, phase, thread;
		uint64_t id;
		const char *hint, *name;
		enum event_kind kind;
	} rows[] = {
		{TRACE_EXECUTE_API, PHASE_START, 5, 1, "", "nrt_execute", EVENT_HOST},
		{TRACE_DEVICE_EXEC, PHASE_START, 5, 1, "", "nc_exec_running", EVENT_DEVICE},
		{TRACE_DEVICE_EXEC, PHASE_START, 5, 1, "layer", "nc_exec_running", EVENT_DEVICE},
		{0, PHASE_START, 5, 1, "", "generic", EVENT_HOST},
		{0, PHASE_START, 5, ID_KERNEL | 1, "MEM_COPY", "MEM_COPY", EVENT_DRIVER},
		{0, PHASE_INSTANT, 0, ID_KERNEL | 1, "MEM_COPY", "MEM_COPY", EVENT_DRIVER},
		{0, PHASE_START, 5, 1, "MEM_COPY", "MEM_COPY", EVENT_DRIVER},
		{1017, PHASE_START, 5, ID_KERNEL | 1, "MEM_COPY", "MEM_COPY", EVENT_DRIVER},
		{1017, PHASE_START, 5, ID_KERNEL | 1, "", "type 1017", EVENT_DRIVER},
		{0, PHASE_START, 5, ID_KERNEL | 1, "dma_doorbell", "dma_doorbell", EVENT_DMA},
		{1308, PHASE_INSTANT, 5, ID_KERNEL | 1, "dma_queue_init", "dma_queue_init",
			EVENT_DMA},
		{0, PHASE_START, 5, ID_KERNEL | 1, "dma_other", "dma_other", EVENT_DRIVER},
		{0, PHASE_START, 5, ID_KERNEL | 1, "DMA_QUEUE_INIT", "DMA_QUEUE_INIT",
			EVENT_DRIVER},
		{0, PHASE_INSTANT, 0, ID_MARKER | 1, "clock_step", "clock_step", EVENT_MARK},
		{0, PHASE_INSTANT, 0, 0, "clock_step", "clock_step", EVENT_MARK},
		{0, PHASE_STOP, 9, ID_MARKER | 1, "seen", "seen", EVENT_HOST},
		{0, PHASE_START, 0, ID_DEVICE | 1, "pe.add", "pe.add", EVENT_UNIT},
		{0, PHASE_INSTANT, 0, ID_DEVICE | 2, "error", "error", EVENT_UNIT},
		{0, PHASE_START, 5, ID_DEVICE | 1, "pe.add", "pe.add", EVENT_DRIVER},
		{0, PHASE_START, 0, ID_RENEWED | ID_DEVICE | 1, "x", "x", EVENT_DRIVER},
		{200, PHASE_START, 5, 1, "", "type 200", EVENT_HOST},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct ntrace_event_view e = {.event_type = rows[i].type,
			.phase = rows[i].phase,
			.thread_id = rows[i].thread,
			.id = rows[i].id,
			.hint = text(rows[i].hint)};
		char buf[EVENT_NAME];

		test_info("row %zu", i);
		CHECK_EQ(event_kind(&e), rows[i].kind);
		CHECK(event_text_is(event_name(&e, buf), rows[i].name));
	}
}

TEST("event kind: only a copy that was made counts, by request or by name", "[summary]")
{
	static const struct {
		const char *hint, *request, *key, *value;
		bool copy, sized;
	} rows[] = {
		{"MEM_BUF_COPY64", "", "bytes", "300", true, true},
		{"MEM_BUF_COPY64", "", "size", "300", true, false},
		{"MEM_BUF_COPY64", "", "bytes", "30x", true, false},
		{"renamed", "0xc0284e18", "bytes", "300", true, true},
		{"MEM_FREE", "", "bytes", "300", false, false},
		{"MEM_BUF_COPY64", "0x1", "bytes", "300", false, false},
		{"MEM_BUF_COPY64", "", "errno", "EIO", false, false},
		{"MEM_BUF_COPY64", "", "args", "fault", false, false},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct ntrace_event_view e = {
			.phase = PHASE_STOP, .id = ID_KERNEL | 1, .hint = text(rows[i].hint)};
		struct event_copy copy;

		if (*rows[i].request)
			ntrace_event_attr(&e, text("request"), text(rows[i].request));
		ntrace_event_attr(&e, text("direction"), text("device_to_host"));
		ntrace_event_attr(&e, text(rows[i].key), text(rows[i].value));
		test_info("row %zu", i);
		CHECK_EQ(event_driver_copy(&e, &copy), rows[i].copy);
		CHECK_EQ(copy.sized, rows[i].sized);
		CHECK_EQ(copy.bytes, rows[i].sized ? 300 : 0);
		CHECK(!rows[i].copy || copy.direction == EVENT_TO_HOST);
		e.phase = PHASE_START;
		CHECK(!event_driver_copy(&e, &copy));
	}
}

TEST("event kind: numbers are whole, and of 64 bits", "[summary]")
{
	static const struct {
		const char *text;
		bool ok;
		uint64_t value;
	} rows[] = {
		{"0", true, 0},
		{"18446744073709551615", true, UINT64_MAX},
		{"18446744073709551616", false, 0},
		{"0xffffffffffffffff", true, UINT64_MAX},
		{"0x10000000000000000", false, 0},
		{"0x", false, 0},
		{"", false, 0},
		{"12 ", false, 0},
		{"-1", false, 0},
		{"unknown", false, 0},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		uint64_t v = 1;

		test_info("\"%s\"", rows[i].text);
		CHECK_EQ(event_number(text(rows[i].text), &v), rows[i].ok);
		CHECK(v == rows[i].value);
	}
}
