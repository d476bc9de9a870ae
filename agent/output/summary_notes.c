/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summary_notes.c - the ledger's notes as sentences.
 */
#include <inttypes.h>
#include <string.h>

#include "agent/output/summary_text.h"
#include "runtime/record/ledger.h"

/* Behind the number; by how much, in sum and at most, stands in rows of its own. */
static const struct note {
	enum rec_counter_id id, sum, most;
	const char *one, *many;
} notes[] = {
	{REC_C_KERNEL_ARG_FAULT, 0, 0, "argument structure of a driver call could not be read",
		"argument structures of driver calls could not be read"},
	{REC_C_KERNEL_UNTRACKED, 0, 0, "child could not be followed",
		"children could not be followed"},
	{REC_C_KERNEL_MISSED, 0, 0, "time the kernel skipped a hook",
		"times the kernel skipped a hook"},
	{REC_C_HOOK_RUNS, 0, 0, "run of a hook", "runs of hooks"},
	{REC_C_HOOK_RUN_NS, 0, 0, "ns in them", "ns in them"},
	{REC_C_HOOK_MAP_BYTES, 0, 0, "byte of the hooks' maps", "bytes of the hooks' maps"},
	{REC_C_THREADS_GONE, 0, 0,
		"thread of another pid namespace ended before it was seen which it was",
		"threads of another pid namespace ended before it was seen which they were"},
	{REC_C_MERGE_START_LOST, 0, 0, "end whose start was lost is an instant",
		"ends whose start was lost are instants"},
	{REC_C_MERGE_CLAMPED, REC_C_MERGE_CLAMPED_NS, 0, "end before its start was moved to it",
		"ends before their start were moved to it"},
	{REC_C_MERGE_LATE, REC_C_MERGE_LATE_NS, 0,
		"record came late and was moved to where the trace was",
		"records came late and were moved to where the trace was"},
	{REC_C_MERGE_EXIT_MISSED, 0, 0, "call had no return while its thread went on",
		"calls had no return while their thread went on"},
	{REC_C_MERGE_FOREIGN_THREAD, 0, 0,
		"record has the thread id of its own pid namespace, for no other is known",
		"records have the thread id of their own pid namespace, for no other is known"},
	{REC_C_MERGE_DEVICE_CLAMPED, REC_C_MERGE_DEVICE_CLAMPED_NS, REC_C_MERGE_DEVICE_CLAMPED_MAX,
		"device run was moved to its submit's start",
		"device runs were moved to their submits' starts"},
	{REC_C_MERGE_DEVICE_ZERO, 0, 0, "device event at time 0 is an instant",
		"device events at time 0 are instants"},
	{REC_C_MERGE_DEVICE_BACKWARD, 0, 0, "device event that ends before it starts is an instant",
		"device events that end before they start are instants"},
	{REC_C_MERGE_DEVICE_BEFORE_SUBMIT, 0, 0, "device run before its submit is an instant",
		"device runs before their submit are instants"},
	{REC_C_MERGE_DEVICE_AFTER_COLLECTION, 0, 0,
		"device run that ends after it was collected is an instant",
		"device runs that end after they were collected are instants"},
	{REC_C_MERGE_DEVICE_CORRECTED, 0, 0,
		"time of a device that its sync points contradict was reckoned anew",
		"times of devices that their sync points contradict were reckoned anew"},
};

/* The note of a counter, also of one that only says by how much. */
static const struct note *find(uint32_t id)
{
	for (size_t i = 0; id && i < sizeof(notes) / sizeof(*notes); i++)
		if (notes[i].id == id || notes[i].sum == id || notes[i].most == id)
			return &notes[i];
	return NULL;
}

static uint64_t value(const struct summary *s, uint32_t id)
{
	for (size_t i = 0; id && i < s->noted_count; i++)
		if (rec_counter_find(s->noted[i].stage, s->noted[i].counter) == id)
			return s->noted[i].value;
	return 0;
}

static void print_note(FILE *f, const struct summary *s, const struct note *n)
{
	uint64_t times = value(s, n->id), sum = value(s, n->sum), most = value(s, n->most);
	char text[SUMMARY_TEXT];

	fprintf(f, "%" PRIu64 " %s", times, times == 1 ? n->one : n->many);
	if (sum)
		fprintf(f, ", by %s%s", summary_ns_text(sum, text), times == 1 ? "" : " in sum");
	if (most && times > 1)
		fprintf(f, ", %s at most", summary_ns_text(most, text));
}

void summary_print_notes(FILE *f, const struct summary *s)
{
	const char *sep = "noted: ";

	for (size_t i = 0; i < s->noted_count; i++) {
		uint32_t id = rec_counter_find(s->noted[i].stage, s->noted[i].counter);
		const struct note *n = find(id);

		if (n && n->id != id && value(s, n->id))
			continue;
		fputs(sep, f);
		sep = "; ";
		if (n && n->id == id)
			print_note(f, s, n);
		else
			fprintf(f, "%" PRIu64 " %s %s", s->noted[i].value, s->noted[i].stage,
				s->noted[i].counter);
	}
	if (*sep == ';')
		fputc('\n', f);
}
