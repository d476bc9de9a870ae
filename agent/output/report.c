/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.c - the lines after a merge.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/wait.h>

#include "agent/output/report.h"
#include "agent/output/state.h"
#include "runtime/base/printable.h"
#include "runtime/record/ledger.h"

/* The ending of a counted noun. */
static const char *s(uint64_t n)
{
	return n == 1 ? "" : "s";
}

static void print_output(FILE *f, const struct merge_output *o)
{
	const char *dir = PRINTABLE(o->dir);

	fprintf(f,
		"%s/ntrace.pb      %" PRIu64 " event%s: %" PRIu64 " runtime span%s, %" PRIu64
		" kernel span%s, %" PRIu64 " open\n",
		dir, o->events, s(o->events), o->spans, s(o->spans), o->kernel_spans,
		s(o->kernel_spans), o->open_spans);
	if (o->device_spans)
		fprintf(f, "%s/ntrace.pb      besides %" PRIu64 " span%s from device profiles\n",
			dir, o->device_spans, s(o->device_spans));
	fprintf(f, "%s/trace_info.pb  1 message\n", dir);
	fprintf(f, "%s/cpu_util.pb    %" PRIu64 " sample%s\n", dir, o->cpu_samples,
		s(o->cpu_samples));
	fprintf(f, "%s/host_mem.pb    %" PRIu64 " sample%s\n", dir, o->mem_samples,
		s(o->mem_samples));
}

/* Not part of any stage's identity, but missing all the same. */
static const uint32_t missing[] = {REC_C_NAMES_LOST, REC_C_AGENT_REFUSED, REC_C_AGENT_FAILED,
	REC_C_KERNEL_UNTRACKED, REC_C_DMA_NO_PLACE};

bool report_is_loss(uint32_t id)
{
	for (size_t i = 0; i < sizeof(missing) / sizeof(*missing); i++)
		if (missing[i] == id)
			return true;
	return rec_counter_info(id)->kind == REC_KIND_LOST;
}

uint64_t report_missing(const struct merge_result *m)
{
	uint64_t sum = m->seq_gaps + m->profiles_missing + m->runs_missing;

	for (uint32_t id = 1; id < REC_COUNTER_MAX; id++)
		if (report_is_loss(id))
			sum += m->ledger[id].value;
	return sum;
}

const char *report_end(const struct rec_end *end, bool session)
{
	switch (end->reason) {
	case REC_END_COMMAND:
	case REC_END_ASKED:
		return session ? "the program ended without ending its session, or the recording "
				 "is cut off"
			       : "the recorder was killed, or the recording is cut off";
	case REC_END_NO_SPACE:
		return session ? "there was no more space before the session ended"
			       : "the recorder had no more space and stopped before the command";
	default:
		return session ? "the session failed before its end"
			       : "the recorder failed and stopped before the command";
	}
}

/* A session is not made by a recorder, which has options. */
static const struct {
	uint32_t id;
	const char *text, *in_session;
} remedies[] = {
	{REC_C_KERNEL_RING_FULL, "--kernel-ring=BYTES makes it larger", NULL},
	{REC_C_KERNEL_RATE, "--rate=CALLS allows more", NULL},
	{REC_C_RUNTIME_OVERWRITTEN, "--ring=RECORDS makes it larger",
		"NEURON_RT_INSPECT_SYS_TRACE_MAX_EVENTS_PER_NC makes it larger"},
};

const char *report_remedy(uint32_t id, bool session)
{
	for (size_t i = 0; i < sizeof(remedies) / sizeof(*remedies); i++)
		if (remedies[i].id == id)
			return session ? remedies[i].in_session : remedies[i].text;
	return NULL;
}

static uint64_t row(const struct merge_result *m, enum rec_counter_id id)
{
	return m->ledger[id].value;
}

/* How much of what there was is recorded.  What another subscriber of a runtime asked for, this one did not. */
static void print_coverage(FILE *f, const struct merge_result *m)
{
	uint64_t entered = row(m, REC_C_KERNEL_ENTERED), open = row(m, REC_C_KERNEL_OPEN);

	if (!entered && !row(m, REC_C_RUNTIME_EMITTED)) {
		fprintf(f, m->counted ? " (there were no driver calls and no runtime events)\n"
				      : " (calls and events were not counted)\n");
		return;
	}
	fprintf(f, " (%skernel %" PRIu64 " of %" PRIu64 " calls",
		m->is_cut ? "of the whole recording: " : "", row(m, REC_C_KERNEL_DONE), entered);
	if (open)
		fprintf(f, " and %" PRIu64 " still open", open);
	fprintf(f, ", runtime %" PRIu64 " of %" PRIu64 " events recorded)\n",
		row(m, REC_C_RUNTIME_DELIVERED),
		row(m, REC_C_RUNTIME_EMITTED) - row(m, REC_C_RUNTIME_FILTERED));
}

void report_nothing_lost(FILE *f, uint64_t uncounted)
{
	fprintf(f, "nothing");
	if (uncounted)
		fprintf(f,
			" that is counted (how often this kernel skipped %" PRIu64
			" of the hooks is not)",
			uncounted);
}

static void print_losses(FILE *f, const struct merge_result *m)
{
	const struct trace_state state = state_of_merge(m);
	char damage[STATE_TEXT];
	const char *sep = "";

	fprintf(f, "lost: %s", state_unknown(&state));
	for (uint32_t id = 1; id < REC_COUNTER_MAX; id++) {
		const struct rec_counter_info *info = rec_counter_info(id);
		const char *remedy = report_remedy(id, m->is_session);

		if (!report_is_loss(id) || m->ledger[id].value == 0)
			continue;
		fprintf(f, "%s%" PRIu64 " %s %s", sep, m->ledger[id].value, info->stage,
			info->name);
		if (remedy)
			fprintf(f, " (%s)", remedy);
		sep = ", ";
	}
	state_damage(&m->damage, damage);
	fprintf(f, "%s%s", *damage ? sep : "", damage);
	if (!*sep && !*damage)
		report_nothing_lost(f, row(m, REC_C_KERNEL_UNCOUNTED));
	print_coverage(f, m);
	if (m->is_cut)
		fprintf(f, "cut: %" PRIu64 " of %" PRIu64 " records left out\n",
			row(m, REC_C_CUT_OUT),
			row(m, REC_C_CUT_OUT) + row(m, REC_C_RECORDING_READ));
}

void report_device(FILE *f, bool is_virtual, bool is_simulated)
{
	if (is_simulated)
		fprintf(f, "device: SIMULATED (NEURON_RT_FAKE_INSTANCE_TYPE), not a Neuron "
			   "device\n");
	else if (is_virtual)
		fprintf(f, "device: VIRTUAL (ntrace-vdev), not a Neuron device\n");
}

static void print_failure(FILE *f, const struct failures_text *t)
{
	report_failed(f, t->what);
	for (uint32_t i = 0; i < t->error_count; i++)
		report_driver_error(f, t->errors[i]);
	if (!t->error_count)
		report_driver_error(f, NULL);
}

void report_failed(FILE *f, const char *what)
{
	fprintf(f, "failed: %s\n", PRINTABLE(what));
}

void report_driver_error(FILE *f, const char *error)
{
	fprintf(f, "  driver: %s\n",
		error ? PRINTABLE(error) : "no request of it that failed was seen");
}

void report_print(FILE *f, const struct merge_result *m, const char *rec_path)
{
	report_device(f, m->is_virtual, m->is_simulated);
	for (uint32_t i = 0; i < m->output_count; i++)
		print_output(f, &m->outputs[i]);
	if (m->output_count == 0 && (!m->ended || rec_damaged(&m->damage)))
		fprintf(f, "no process that used a neuron device is in what there is, so no .pb "
			   "file was "
			   "written\n");
	else if (m->output_count == 0)
		fprintf(f, "no process used a neuron device, so no .pb file was written%s\n",
			m->is_virtual ? "" : " (`ntrace-vdev -- CMD` gives CMD a virtual one)");
	if (rec_path)
		fprintf(f, "%s  the raw recording\n", PRINTABLE(rec_path));
	for (uint32_t i = 0; i < m->failure_count; i++)
		print_failure(f, &m->failures[i]);
	print_losses(f, m);
	fprintf(f, "blind: ");
	for (uint32_t i = 0; i < m->blind_count; i++)
		fprintf(f, "%s%s", i ? "; " : "", PRINTABLE(m->blind[i]));
	fprintf(f, "%s\n", m->blind_count ? "" : "nothing known");
	if (!m->ended)
		fprintf(f, "incomplete: %s; what there is of it is here\n",
			report_end(&m->end, m->is_session));
	else if (m->end.wait_status >= 0 && WIFSIGNALED(m->end.wait_status))
		fprintf(f, "the command was killed by signal %d\n", WTERMSIG(m->end.wait_status));
}

int report_kernel_events(const char *text, enum merge_kernel_events *ret)
{
	for (unsigned i = 0; merge_kernel_events_name(i); i++) {
		if (!strcmp(text, merge_kernel_events_name(i))) {
			*ret = (enum merge_kernel_events)i;
			return 0;
		}
	}
	return -EINVAL;
}

static const struct {
	int error;
	const char *text;
} reasons[] = {
	{-ENOENT, "there is no recording here; expected a directory `recording` with "
		  "segment-*.ntrec"},
	{-EPROTO, "not a recording of ntrace"},
	{-EPROTONOSUPPORT, "the recording was made by a newer ntrace; use that version"},
	{-EBUSY, "it is still being written; salvage it when its recorder has ended, or `ntrace "
		 "replay` what there is so far"},
};

const char *report_reason(int error)
{
	for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++)
		if (reasons[i].error == error)
			return reasons[i].text;
	return strerror(-error);
}
