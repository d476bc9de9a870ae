/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frames_fuzz.c - a recording of any bytes, read, merged, summarised and cut.
 *
 * Beyond not crashing: little memory for the merge changes nothing, and a cut is a whole recording
 * of the same events.
 */
#include <errno.h>

#include "agent/output/rec_print.h"
#include "agent/output/report.h"
#include "runtime/record/merge.h"
#include "runtime/record/rec_cut.h"
#include "runtime/record/rec_summary.h"
#include "tests/fuzz/frames_input.h"
#include "tests/fuzz/fuzz.h"

static void write_recording(const struct frames_made *m)
{
	for (unsigned i = 0; i < FRAMES_MAX_SEGMENTS; i++) {
		char name[64];

		snprintf(name, sizeof(name), REC_SEGMENT_FORMAT, i);
		if (i < m->count)
			fuzz_file(name, m->segments[i].data, m->segments[i].len);
		else
			unlink(scratch_path(fuzz_scratch(), name).s);
	}
}

/* The frames are readable whatever they are; what can be missing is the segment's head and clocks. */
static int merge(const char *path, size_t held_bytes, bool extended, struct merge_result *ret)
{
	struct merge_options o = {.held_bytes = held_bytes,
		.kernel_events = extended ? MERGE_KERNEL_EXTENDED : MERGE_KERNEL_HINT};
	char *error = NULL;
	int rc = merge_recording(path, NULL, &o, ret, &error);

	FUZZ_REQUIRE(rc == 0 || (rc == -ENODATA && error));
	for (uint32_t i = 0; i < ret->output_count;
		i++) /* they went nowhere; a report names places */
		if (!ret->outputs[i].dir)
			ret->outputs[i].dir = strdup("nowhere");
	if (rc == 0)
		report_print(fuzz_sink(), ret, NULL);
	free(error);
	return rc;
}

/* Are the same events in both? */
static void compare(const struct merge_result *a, const struct merge_result *b)
{
	FUZZ_REQUIRE(a->output_count == b->output_count);
	for (uint32_t i = 0; i < a->output_count; i++) {
		FUZZ_REQUIRE(a->outputs[i].pid == b->outputs[i].pid);
		FUZZ_REQUIRE(a->outputs[i].events == b->outputs[i].events);
		FUZZ_REQUIRE(a->outputs[i].bytes == b->outputs[i].bytes);
		FUZZ_REQUIRE(a->outputs[i].spans == b->outputs[i].spans);
	}
}

static void summarise(const char *path, bool whole)
{
	struct rec_summary s;
	int rc = rec_summary_make(path, &s);

	FUZZ_REQUIRE(rc == 0);
	if (whole)
		FUZZ_REQUIRE(!rec_damaged(&s.damage) && s.has_footer && !s.footer_fault);
	rec_print_text(fuzz_sink(), &s);
	rec_print_json(fuzz_sink(), &s);
	rec_summary_free(&s);
}

static void cut(const struct frames_head *h, bool extended, const struct merge_result *all)
{
	struct scratch_path out = scratch_path(fuzz_scratch(), "cut");
	struct rec_cut_options o = {.pids = {h->pid},
		.pid_count = h->pid != 0,
		.cores = {h->core - 1u},
		.core_count = h->core != 0};
	struct rec_cut_result result;
	struct merge_result merged;

	if (h->from_ms)
		o.from = (struct cut_time){CUT_RELATIVE, h->from_ms * 1000000ull};
	if (h->to_ms)
		o.to = (struct cut_time){CUT_RELATIVE, h->to_ms * 1000000ull};
	int rc = rec_cut(fuzz_scratch()->dir, out.s, &o, &result);
	FUZZ_REQUIRE(rc == 0 || rc == -ENODATA || rc == -ERANGE || rc == -ENOMSG || rc == -EFBIG);
	if (rc == 0) {
		summarise(out.s, true);
		rc = merge(out.s, 0, extended, &merged);
		if (rc == 0 && all && !o.pid_count && !o.core_count && !h->from_ms && !h->to_ms)
			compare(all, &merged);
		merge_result_free(&merged);
	}
	scratch_remove_tree(out.s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct frames_head h = frames_head(data, size);
	bool extended = h.flags & FRAMES_EXTENDED;
	struct merge_result merged, spilled;
	struct frames_made made;

	frames_make(data, size, &made);
	write_recording(&made);
	frames_free(&made);
	int rc = merge(fuzz_scratch()->dir, 0, extended, &merged);
	if (rc == 0 && (h.flags & FRAMES_SPILL)) {
		merge(fuzz_scratch()->dir, 1, extended, &spilled);
		compare(&merged, &spilled);
		merge_result_free(&spilled);
	}
	if (h.flags & FRAMES_SUMMARY)
		summarise(fuzz_scratch()->dir, false);
	if (h.flags & FRAMES_CUT)
		cut(&h, extended, rc == 0 ? &merged : NULL);
	merge_result_free(&merged);
	return 0;
}
