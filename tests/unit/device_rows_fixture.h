/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_rows_fixture.h - a recording with one run and its device profile, for tests of what a merge makes of
 * them.
 */
#ifndef NTRACE_TESTS_DEVICE_ROWS_FIXTURE_H
#define NTRACE_TESTS_DEVICE_ROWS_FIXTURE_H

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "runtime/trace/payload.h"
#include "tests/shim/shim.h"
#include "tests/unit/ntff_fixture.h"
#include "tests/unit/recording_fixture.h"

#define US 1000ull
#define MS 1000000ull
#define PS 1000ull /* per ns */

/* A recording with a run of exec_id 1 on physical core 1 of device 0 and, in its profile, what it did. */
struct rows {
	struct fixture fx;
	struct nx x;
};

/* The device's clock, when it is right, shows this at a relative time of the fixture. */
#define CORE_NS(at) (7000000000ull + (at))
#define CORE_PS(at) (CORE_NS(at) * PS)

static inline void put_file(struct fixture *fx, const char *name, const struct nx *x)
{
	int fd = open(fx_path(fx, name).s, O_WRONLY | O_CREAT | O_EXCL, 0644);

	if (fd < 0 || write(fd, x->bytes, x->size) != (ssize_t)x->size)
		abort();
	close(fd);
}

static inline void add_profile(struct fixture *fx, const struct nx *x, uint32_t index, uint32_t pid)
{
	struct rec_device_profile frame = {.index = index,
		.pid = pid,
		.bytes = x->size,
		.check = XXH3_64bits(x->bytes, x->size)};
	char name[64];

	snprintf(name, sizeof(name), REC_DIR "/" REC_DEVICE_PROFILE_FORMAT, index);
	put_file(fx, name, x);
	fx_frame(fx, REC_DEVICE_PROFILE, REC_SOURCE_RECORDER, &frame, sizeof(frame));
}

static inline void add_run(
	struct fixture *fx, uint64_t id, uint32_t exec_id, uint64_t from, uint64_t to)
{
	struct trace_device_exec start = {.device_core_idx = 1,
		.exec_id = exec_id,
		.sync = {.nc_timestamp_ns = CORE_NS(from), .cpu_timestamp_ns = FX_BOOT + from}};
	uint64_t end = CORE_NS(to);
	struct trace_record *r = fx_record(fx, TRACE_DEVICE_EXEC, TRACE_START, id, 100, from);

	r->nc_idx = 3;
	memcpy(r->data, &start, sizeof(start));
	r = fx_record(fx, TRACE_DEVICE_EXEC, TRACE_STOP, id, 100, to);
	r->nc_idx = 3;
	memcpy(r->data, &end, sizeof(end));
	fx_records(fx, FX_SOURCE);
}

/* Both clocks at two moments around all. */
static inline void add_points(struct nx *x)
{
	nx_sync(x, 0, 1, CORE_PS(0), FX_BOOT, 50);
	nx_sync(x, 0, 1, CORE_PS(MS), FX_BOOT + MS, 50);
}

/* One instruction, one transfer, a collective, a semaphore and an error in a run of 100 us. */
static inline void add_work(struct nx *x)
{
	struct nx_ring *pe = nx_ring(x, NX_INSTRUCTION, NX_ON_NC, 0, 0, 1);
	struct nx_ring *run = nx_ring(x, NX_INSTRUCTION, NX_ON_NC, 4, 0, 1);
	struct nx_ring *dma = nx_ring(x, NX_DMA, NX_ON_DMA, 3, 0, 1);
	struct nx_ring *event = nx_ring(x, NX_EVENT, NX_ON_NC, 0, 0, 1);
	struct nx_ring *error = nx_ring(x, NX_ERROR, NX_ON_NC, 0, 0, 1);
	struct nx_ring *top = nx_ring(x, NX_EXPLICIT, NX_ON_TOPSP, 0, 0, 1);
	struct nx_graph *g = nx_graph(x, 0, 1);

	nx_name(g, 0, NX_ON_DMA, 3, "copy", 2);
	nx_name(g, 1, NX_ON_NC, 0, "add", 5);
	nx_name(g, 2, NX_ON_TOPSP, 0, "all_reduce", 3);
	nx_run(x, 0, 1, 1, CORE_PS(100 * US), CORE_PS(200 * US));
	nx_did(run, NOTE_TYPE_EXPLICIT_SP, 1, NOTE_START, CORE_PS(100 * US), CORE_PS(200 * US));
	nx_did(dma, NOTE_TYPE_DMA, 0, NOTE_START, CORE_PS(110 * US), CORE_PS(120 * US) + 7);
	nx_ran(pe, 1, 2, CORE_PS(120 * US), CORE_PS(150 * US) + 123);
	nx_did(top, NOTE_TYPE_EXPLICIT_SP, 2, NOTE_CC_START, CORE_PS(150 * US), CORE_PS(190 * US));
	nx_note(event, (struct notification){.id = 1,
			       .type_phase = (uint8_t)NOTE_TYPE_SEMAPHORE(0u),
			       .custom = 4,
			       .subtype = 9,
			       .timestamp_ps = CORE_PS(150 * US)});
	nx_note(error, (struct notification){.id = 1,
			       .type_phase = NOTE_TYPE_TPB_ERROR,
			       .custom = 5,
			       .subtype = 1003,
			       .timestamp_ps = CORE_PS(151 * US)});
}

static inline bool open_rows(struct rows *r)
{
	nx_init(&r->x);
	return fx_open(&r->fx);
}

static inline void finish(struct rows *r)
{
	nx_build(&r->x);
	add_run(&r->fx, 21, 1, 100 * US, 200 * US);
	add_profile(&r->fx, &r->x, 0, FX_PID);
	fx_end(&r->fx);
	fx_close_writer(&r->fx);
}

static inline bool merge(struct rows *r, const char *out, bool device)
{
	struct merge_options o = {.device = device, .held_bytes = r->fx.held_bytes};
	size_t open = 0;

	merge_result_free(&r->fx.result);
	free(r->fx.error);
	trace_file_free(&r->fx.trace);
	if (merge_recording(fx_path(&r->fx, REC_DIR).s, fx_path(&r->fx, out).s, &o, &r->fx.result,
		    &r->fx.error) < 0 ||
		!trace_file_read(&r->fx.trace, fx_path(&r->fx, out).s))
		return false;
	const char *fault = trace_file_fault(&r->fx.trace, &open);
	test_info("fault: %s, open %zu", fault, open);
	return !*fault && open == 0;
}

static inline void free_rows(struct rows *r)
{
	nx_free(&r->x);
	fx_free(&r->fx);
}

static inline const struct ntrace_event_view *row(struct rows *r, const char *hint, uint32_t phase)
{
	return fx_by_hint(&r->fx, hint, phase, 0);
}

static inline bool is(const struct ntrace_event_view *e, const char *key, const char *value)
{
	test_info("%s is %.*s", key, (int)event_value(e, key).len, event_value(e, key).s);
	return event_text_is(event_value(e, key), value);
}

static inline uint64_t value(const struct ntrace_event_view *e, const char *key)
{
	uint64_t v;

	return event_value_number(e, key, &v) ? v : UINT64_MAX;
}

static inline bool blind_says(const struct rows *r, const char *text)
{
	for (uint32_t i = 0; i < r->fx.result.blind_count; i++)
		if (strstr(r->fx.result.blind[i], text))
			return true;
	return false;
}

#endif
