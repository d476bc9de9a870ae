/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summary_head.c - the first lines of the summary for people: how long, what is missing, what was done to
 * events, what could not be seen.
 */
#include <inttypes.h>
#include <string.h>

#include "agent/output/report.h"
#include "agent/output/summary_text.h"
#include "runtime/base/printable.h"
#include "runtime/record/ledger.h"

/* "1.234 ms": three places and the largest unit below which it is not less than 1. */
const char *summary_ns_text(uint64_t ns, char buf[SUMMARY_TEXT])
{
	static const struct {
		uint64_t unit;
		const char *name;
	} units[] = {{1000000000u, "s"}, {1000000u, "ms"}, {1000u, "us"}};

	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		uint64_t unit = units[i].unit;

		if (ns < unit)
			continue;
		snprintf(buf, SUMMARY_TEXT, "%" PRIu64 ".%03" PRIu64 " %s", ns / unit,
			ns % unit / (unit / 1000), units[i].name);
		return buf;
	}
	snprintf(buf, SUMMARY_TEXT, "%" PRIu64 " ns", ns);
	return buf;
}

const char *summary_ending(uint64_t n)
{
	return n == 1 ? "" : "s";
}

#define PROCESS_NAME 100 /* what is longer loses its middle, since the pid is at the end */

const char *summary_core_name(
	const struct summary *s, const struct summary_core *c, char buf[SUMMARY_CORE_NAME])
{
	const char *process = s->process_count > 1 ? PRINTABLE(s->processes[c->process].name) : "";
	int len = (int)strlen(process), begin = len, end = 0;
	char core[16] = "no core";

	if (c->nc != SUMMARY_NO_CORE)
		snprintf(core, sizeof(core), "nc%" PRIu32, c->nc);
	if (len > PROCESS_NAME)
		begin = end = PROCESS_NAME / 2 - 2;
	snprintf(buf, SUMMARY_CORE_NAME, "%.*s%s%s%s%s", begin, process, end ? "..." : "",
		process + len - end, *process ? " " : "", core);
	return buf;
}

static void print_extent(FILE *f, const struct summary *s)
{
	const struct summary_events *e = &s->events;
	uint64_t open = summary_open_count(e);
	char buf[SUMMARY_TEXT];

	report_device(f, s->is_virtual, s->is_simulated);
	fprintf(f, "duration: %s%s\n",
		e->total ? summary_ns_text(summary_length(&s->window), buf) : "none",
		e->total ? ", from the first event to the last" : "");
	fprintf(f,
		"events: %" PRIu64 " (%" PRIu64 " start%s, %" PRIu64 " stop%s, %" PRIu64
		" instant%s), %" PRIu64 " span%s open at the end\n",
		e->total, e->starts, summary_ending(e->starts), e->stops, summary_ending(e->stops),
		e->instants, summary_ending(e->instants), open, summary_ending(open));
	if (e->stops != e->closed)
		fprintf(f, "ends without their start: %" PRIu64 "\n", e->stops - e->closed);
	for (size_t i = 0; s->process_count > 1 && i < s->process_count; i++) {
		const struct summary_process *p = &s->processes[i];

		fprintf(f, "process %s: %" PRIu64 " event%s in %s, %" PRIu64 " open\n",
			PRINTABLE(p->name), p->events.total, summary_ending(p->events.total),
			summary_ns_text(summary_length(&p->window), buf),
			summary_open_count(&p->events));
	}
	if (s->process_count == 0)
		fprintf(f, "no process used a neuron device\n");
}

/* Are all of them sessions, which have no recorder? */
static bool sessions_alone(const struct summary *s)
{
	for (size_t i = 0; i < s->capture_count; i++)
		if (!s->captures[i].session)
			return false;
	return s->capture_count;
}

static void print_rows(FILE *f, const struct summary_row *rows, size_t n, bool session)
{
	for (size_t i = 0; i < n; i++) {
		uint32_t id = rec_counter_find(rows[i].stage, rows[i].counter);
		const char *remedy = id ? report_remedy(id, session) : NULL;

		fprintf(f, "%s%" PRIu64 " %s %s", i ? ", " : "", rows[i].value,
			PRINTABLE(rows[i].stage), PRINTABLE(rows[i].counter));
		if (remedy)
			fprintf(f, " (%s)", remedy);
	}
}

/* What of the losses cannot be known: once for all recordings of which the same is true. */
static void print_unknown(FILE *f, const struct summary *s)
{
	for (size_t i = 0; i < s->capture_count; i++) {
		const char *text = state_unknown(&s->captures[i].state);
		size_t k = 0;

		while (k < i && strcmp(text, state_unknown(&s->captures[k].state)) != 0)
			k++;
		if (k == i)
			fprintf(f, "%s", text);
	}
}

/* Hooks of which the kernel does not count what it skipped. */
static uint64_t uncounted(const struct summary *s)
{
	for (size_t i = 0; i < s->noted_count; i++)
		if (rec_counter_find(s->noted[i].stage, s->noted[i].counter) ==
			REC_C_KERNEL_UNCOUNTED)
			return s->noted[i].value;
	return 0;
}

static void print_losses(FILE *f, const struct summary *s)
{
	struct rec_damage d = summary_damage(s);
	char damage[STATE_TEXT];

	state_damage(&d, damage);
	fprintf(f, "lost: ");
	if (s->damaged)
		fprintf(f, "not known of %" PRIu64 " damaged process%s; as far as is told ",
			s->damaged, s->damaged == 1 ? "" : "es");
	if (s->left_out)
		fprintf(f, "not known of %" PRIu64 " session%s left out; of the others ",
			s->left_out, summary_ending(s->left_out));
	if (s->without_info)
		fprintf(f, "not known of %" PRIu64 " process%s without trace_info.pb%s",
			s->without_info, s->without_info == 1 ? "" : "es",
			s->without_info < s->process_count ? "; of the others " : "");
	print_unknown(f, s);
	print_rows(f, s->lost, s->lost_count, sessions_alone(s));
	fprintf(f, "%s%s", s->lost_count && *damage ? ", " : "", damage);
	if (!s->lost_count && !*damage && (s->without_info < s->process_count || !s->process_count))
		report_nothing_lost(f, uncounted(s));
	fputc('\n', f);
}

static void print_cuts(FILE *f, const struct summary *s)
{
	for (size_t i = 0; i < s->capture_count; i++)
		if (s->captures[i].cut)
			fprintf(f,
				"cut: %" PRIu64 " of %" PRIu64
				" records of the recording left out\n",
				s->captures[i].left_out, s->captures[i].records);
}

/* What of the time the runtime's events still cover when the ring dropped some. */
static void print_window(FILE *f, const struct summary *s)
{
	if (!s->overwritten)
		return;
	fprintf(f,
		"window: cut, %" PRIu64
		" event%s of the runtime overwritten before being read; what "
		"is left is between these times from the first event on, perhaps with holes:\n",
		s->overwritten, summary_ending(s->overwritten));
	for (size_t i = 0; i < s->core_count; i++) {
		const struct summary_window *w = &s->cores[i].window;
		char name[SUMMARY_CORE_NAME], from[SUMMARY_TEXT], to[SUMMARY_TEXT];

		fprintf(f, "  %-12s %11s to %s\n", summary_core_name(s, &s->cores[i], name),
			summary_ns_text(w->first_ns - s->window.first_ns, from),
			summary_ns_text(w->last_ns - s->window.first_ns, to));
	}
}

static void print_failures(FILE *f, const struct summary *s)
{
	for (size_t i = 0; i < s->failure_count; i++) {
		const struct summary_failure *of = &s->failures[i];

		report_failed(f, of->what);
		for (size_t k = 0; k < of->error_count; k++)
			report_driver_error(f, of->errors[k]);
		if (!of->error_count)
			report_driver_error(f, NULL);
	}
}

void summary_print_head(FILE *f, const struct summary *s)
{
	print_extent(f, s);
	print_failures(f, s);
	print_cuts(f, s);
	print_losses(f, s);
	summary_print_notes(f, s);
	for (size_t i = 0; i < s->blind_count; i++) {
		fputs("blind: ", f);
		printable_put(f, s->blind[i], strlen(s->blind[i]));
		fputc('\n', f);
	}
	print_window(f, s);
}
