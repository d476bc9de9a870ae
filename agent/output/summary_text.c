/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summary_text.c - the summary for people.
 */
#include <inttypes.h>
#include <string.h>

#include "agent/output/summary_text.h"
#include "runtime/base/printable.h"
#include "runtime/record/blind.h"
#include "vmlinux/dma_kinds.h"

static void cell(FILE *f, uint64_t ns)
{
	char buf[SUMMARY_TEXT];

	fprintf(f, " %11s", summary_ns_text(ns, buf));
}

/* Tenths of a percent, or "-" of nothing. */
static void percent_cell(FILE *f, uint64_t part, uint64_t whole)
{
	uint64_t tenths = whole ? (uint64_t)((unsigned __int128)part * 1000 / whole) : 0;

	if (whole)
		fprintf(f, " %3" PRIu64 ".%" PRIu64, tenths / 10, tenths % 10);
	else
		fprintf(f, "     -");
}

static void stat_cells(FILE *f, const struct durations *d)
{
	struct duration_stats st = duration_stats(d);

	for (int i = STAT_P50; i < STAT_COUNT; i++) {
		if (st.has[i])
			cell(f, st.ns[i]);
		else
			fprintf(f, " %11s", "-");
	}
}

/* "3 EAGAIN, 1 EIO", "" for none. */
static void errors(FILE *f, const struct summary_name *n)
{
	for (size_t i = 0; i < n->error_count; i++)
		fprintf(f, "%s%" PRIu64 " %s%s", i ? ", " : "  failed: ", n->errors[i].n,
			n->kind == EVENT_DRIVER || n->kind == EVENT_DMA ? "" : "status ",
			PRINTABLE(n->errors[i].name));
}

/* ---- cores --------------------------------------------------------------------------------- */

static bool ran(const struct summary_core *c)
{
	return c->runs || c->open_runs || c->collectives || c->barriers;
}

static void print_bound(FILE *f, const struct summary_core *c)
{
	char buf[SUMMARY_TEXT];

	if (c->bound_known)
		fprintf(f, "  +-%s%s", summary_ns_text(c->bound_ns, buf),
			c->bound_unknown ? " or not known" : "");
	else
		fprintf(f, "  +- not known");
}

/* What the busy time was; nothing when there is nothing to tell apart. */
static void print_busy(FILE *f, const struct summary_core *c, uint64_t whole)
{
	char buf[SUMMARY_TEXT], barrier[SUMMARY_TEXT], rest[SUMMARY_TEXT];

	if (c->logical_size > 1) {
		fprintf(f, "    its %" PRIu32 " physical cores at once", c->logical_size);
		fprintf(f, "%*s", c->logical_size < 10 ? 4 : 3, "");
		cell(f, c->all_busy_ns);
		percent_cell(f, c->all_busy_ns, whole);
		fputc('\n', f);
	}
	if (c->collectives || c->barriers)
		fprintf(f, "    of it collectives %s, barriers %s, neither %s\n",
			summary_ns_text(c->collective_ns, buf),
			summary_ns_text(c->barrier_ns, barrier), summary_ns_text(c->rest_ns, rest));
	if (c->open_runs)
		fprintf(f, "    %" PRIu64 " run%s without an end, not counted\n", c->open_runs,
			summary_ending(c->open_runs));
}

static void print_core(FILE *f, const struct summary *s, const struct summary_core *c)
{
	uint64_t whole = summary_length(&s->window);
	char name[SUMMARY_CORE_NAME];

	fprintf(f, "  %-24s %6" PRIu64, summary_core_name(s, c, name), c->runs);
	cell(f, c->busy_ns);
	percent_cell(f, c->busy_ns, whole);
	fprintf(f, " %6" PRIu64, c->gaps.n);
	cell(f, c->gaps.total_ns);
	cell(f, c->gaps.longest_ns);
	print_bound(f, c);
	fputc('\n', f);
	print_busy(f, c, whole);
}

static void print_cores(FILE *f, const struct summary *s)
{
	bool begun = false;

	for (size_t i = 0; i < s->core_count; i++) {
		if (!ran(&s->cores[i]))
			continue;
		if (!begun)
			fprintf(f, "\n%-26s %6s %11s %5s %6s %11s %11s  %s\n",
				"cores (% of the duration)", "runs", "busy", "%", "gaps", "total",
				"longest", "by the host's clock");
		if (!begun && s->process_count > 1)
			fprintf(f, "  each process counts its cores from 0: nc0 of two need not be "
				   "one core\n");
		begun = true;
		print_core(f, s, &s->cores[i]);
	}
}

static void print_unit(FILE *f, const struct summary *s, const struct summary_core *c,
	const struct summary_unit *u)
{
	char core[SUMMARY_CORE_NAME], name[96], bound[SUMMARY_TEXT];

	if (u->physical == SUMMARY_OTHER_PHYSICAL)
		snprintf(name, sizeof(name), "%s %s", summary_core_name(s, c, core),
			PRINTABLE(u->name));
	else
		snprintf(name, sizeof(name), "%s physical %" PRIu32 " %s",
			summary_core_name(s, c, core), u->physical, PRINTABLE(u->name));
	fprintf(f, "  %-34s %8" PRIu64, name, u->n);
	cell(f, u->busy_ns);
	percent_cell(f, u->in_runs_ns, u->runs_ns);
	fprintf(f, "  %s+-%s\n", s->processes[c->process].units_at_least ? "at least; " : "",
		summary_ns_text(c->unit_bound_ns, bound));
}

static bool any_at_least(const struct summary *s)
{
	for (size_t i = 0; i < s->process_count; i++)
		if (s->processes[i].units_at_least)
			return true;
	return false;
}

/* What the units of the cores did; bytes stand in none of their records. */
static void print_units(FILE *f, const struct summary *s)
{
	bool begun = false;

	for (size_t i = 0; i < s->core_count; i++)
		for (size_t k = 0; k < s->cores[i].unit_count; k++) {
			if (!begun)
				fprintf(f, "\n%-36s %8s %11s %5s  %s\n",
					"units of cores (% of its runs)", "n", "busy", "%",
					"by the host's clock");
			begun = true;
			print_unit(f, s, &s->cores[i], &s->cores[i].units[k]);
		}
	if (begun && any_at_least(s))
		fprintf(f, "  at least: device records are missing, of which runs is not known; n, "
			   "busy "
			   "and %% are of those that are there\n");
	if (begun)
		fprintf(f, "  how many bytes DMA queues moved is not known: their records do not "
			   "tell\n");
}

/* ---- tables -------------------------------------------------------------------------------- */

static void head(FILE *f, const char *title, bool *begun)
{
	if (*begun)
		return;
	*begun = true;
	fprintf(f, "\n%-36s %8s %11s %11s %11s %11s %11s\n", title, "n", "total", "p50", "p90",
		"p99", "max");
}

/* Spans that have no end because nobody could see it. */
static const char *why_open(const struct summary *s, const struct summary_name *n)
{
	const char *doorbell = dma_kind_row(NEV_DMA_DOORBELL)->hint;
	size_t i = 0;

	if (n->kind == EVENT_DMA && n->len == strlen(doorbell) &&
		!memcmp(n->name, doorbell, n->len))
		while (i < s->blind_count && !strstr(s->blind[i], BLIND_NO_COMPLETIONS))
			i++;
	else
		i = s->blind_count;
	return i < s->blind_count ? " (completions were not hooked, see blind)" : "";
}

static void print_names(FILE *f, const struct summary *s, enum event_kind kind, const char *title)
{
	bool begun = false;

	for (size_t i = 0; i < s->name_count; i++) {
		const struct summary_name *n = &s->names[i];

		if (n->kind != kind || !(n->events.starts + n->events.stops))
			continue;
		head(f, title, &begun);
		fprintf(f, "  %-34s %8" PRIu64,
			printable(n->name, n->len, (char[PRINTABLE_BYTES]){0}), n->events.stops);
		cell(f, n->total_ns);
		stat_cells(f, &n->durations);
		errors(f, n);
		if (summary_open_count(&n->events))
			fprintf(f, "  %" PRIu64 " open%s", summary_open_count(&n->events),
				why_open(s, n));
		fputc('\n', f);
	}
}

/* A table that is missing because it was not wanted. */
static void print_not_written(FILE *f, const struct summary *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->process_count; i++)
		n += s->processes[i].no_driver_calls;
	if (n == 0)
		return;
	fprintf(f, "\ndriver calls: not written");
	if (n < s->process_count)
		fprintf(f, " of %zu processes", n);
	fprintf(f,
		" (--kernel-events=off); the driver.* attributes of the calls have their sums\n");
}

static void print_instants(FILE *f, const struct summary *s)
{
	const char *sep = "\ninstants: ";

	for (size_t i = 0; i < s->name_count; i++) {
		const struct summary_name *n = &s->names[i];

		if (!n->events.instants)
			continue;
		fprintf(f, "%s%" PRIu64 " %s", sep, n->events.instants,
			printable(n->name, n->len, (char[PRINTABLE_BYTES]){0}));
		if (n->events.start_lost)
			fprintf(f, " (%" PRIu64 " an end without its start)", n->events.start_lost);
		sep = ", ";
	}
	if (*sep == ',')
		fputc('\n', f);
}

static void print_copies(FILE *f, const struct summary *s)
{
	bool begun = false;

	for (unsigned i = 0; i < SUMMARY_SOURCES * EVENT_DIRECTIONS; i++) {
		const struct summary_copies *c = &s->copies[0][0] + i;
		uint64_t rate = summary_goodput(c);

		if (!c->n)
			continue;
		if (!begun)
			fprintf(f, "\n%-36s %8s %14s %11s %14s\n", "copies", "n", "bytes", "wall",
				"goodput");
		begun = true;
		fprintf(f, "  %-7s %-26s %8" PRIu64 " %14" PRIu64,
			summary_source_name((enum summary_source)(i / EVENT_DIRECTIONS)),
			event_direction_name((enum event_direction)(i % EVENT_DIRECTIONS)), c->n,
			c->bytes);
		cell(f, c->wall_ns);
		fprintf(f, " %9" PRIu64 ".%" PRIu64 " MB/s", rate / 1000000, rate / 100000 % 10);
		if (c->unsized)
			fprintf(f, ", %" PRIu64 " without size", c->unsized);
		fputc('\n', f);
	}
}

static void print_executions(FILE *f, const char *what, const struct durations *d)
{
	fprintf(f, "    %-32s %8zu", what, d->n);
	cell(f, durations_total(d));
	stat_cells(f, d);
	fputc('\n', f);
}

static void print_model(FILE *f, const struct summary *s, const struct summary_model *m)
{
	const struct summary_process *p = &s->processes[m->process];
	char number[32];

	snprintf(number, sizeof(number), "model %" PRIu64, m->id);
	fprintf(f, "  %s%s%s, %s", s->process_count > 1 ? PRINTABLE(p->name) : "",
		s->process_count > 1 ? " " : "", PRINTABLE(*m->name ? m->name : number),
		m->on_device ? "nc_exec_running" : "nrt_execute");
	fprintf(f, p->first_unknown ? "; which were first on a core is not known: %s\n" : "%s\n",
		p->first_unknown ? p->first_unknown : "");
	if (m->first.n)
		print_executions(f, "the first on each core", &m->first);
	if (m->rest.n)
		print_executions(f, p->first_unknown ? "all" : "the rest", &m->rest);
	if (m->failed) {
		fprintf(f, "    %-32s %8" PRIu64, "failed, in neither", m->failed);
		cell(f, m->failed_ns);
		fputc('\n', f);
	}
}

static void print_models(FILE *f, const struct summary *s)
{
	bool begun = false;

	for (size_t i = 0; i < s->model_count; i++) {
		head(f, "executions of models", &begun);
		print_model(f, s, &s->models[i]);
	}
}

static void print_cost(FILE *f, const struct summary *s)
{
	char cpu[SUMMARY_TEXT], each[SUMMARY_TEXT];

	for (size_t i = 0; i < s->capture_count; i++) {
		const struct summary_capture *c = &s->captures[i];

		fprintf(f, "%scost of recording: ", i ? "" : "\n");
		if (!c->cpu_ns && !c->bytes) {
			fprintf(f, "not known\n");
			continue;
		}
		fprintf(f, "%s%s of CPU, at least %" PRIu64 " bytes",
			c->cut ? "of the whole before it was cut: " : "",
			summary_ns_text(c->cpu_ns, cpu), c->bytes);
		if (c->events && !c->cut)
			fprintf(f, "; of CPU per event %s",
				summary_ns_text(c->cpu_ns / c->events, each));
		fputc('\n', f);
	}
}

void summary_print_text(FILE *f, const struct summary *s)
{
	summary_print_head(f, s);
	print_cores(f, s);
	print_names(f, s, EVENT_DEVICE, "on the device");
	print_units(f, s);
	print_names(f, s, EVENT_UNIT, "in the units (by the core's clock)");
	print_names(f, s, EVENT_HOST, "calls (nested: totals overlap)");
	print_names(f, s, EVENT_DRIVER, "driver calls");
	print_names(f, s, EVENT_DMA, "DMA by the driver");
	print_not_written(f, s);
	print_copies(f, s);
	print_models(f, s);
	print_instants(f, s);
	print_cost(f, s);
}
