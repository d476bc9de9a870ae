/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summary_text.c - the summary for people.
 */
#include <inttypes.h>
#include <string.h>

#include "agent/output/printable.h"
#include "agent/output/summary.h"

#define TEXT 24

/* "1.234 ms": three places and the largest unit below which it is not less than 1. */
static const char *ns_text(uint64_t ns, char buf[TEXT])
{
	static const struct {
		uint64_t unit;
		const char *name;
	} units[] = {{1000000000u, "s"}, {1000000u, "ms"}, {1000u, "us"}};

	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		uint64_t unit = units[i].unit;

		if (ns < unit)
			continue;
		snprintf(buf, TEXT, "%" PRIu64 ".%03" PRIu64 " %s", ns / unit,
			ns % unit / (unit / 1000), units[i].name);
		return buf;
	}
	snprintf(buf, TEXT, "%" PRIu64 " ns", ns);
	return buf;
}

static void cell(FILE *f, uint64_t ns)
{
	char buf[TEXT];

	fprintf(f, " %11s", ns_text(ns, buf));
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

static const char *ending(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/* "3 EAGAIN, 1 EIO", "" for none. */
static void errors(FILE *f, const struct summary_name *n)
{
	for (size_t i = 0; i < n->error_count; i++)
		fprintf(f, "%s%" PRIu64 " %s%s", i ? ", " : "  failed: ", n->errors[i].n,
			n->kind == EVENT_DRIVER ? "" : "status ", PRINTABLE(n->errors[i].name));
}

/* ---- the whole ----------------------------------------------------------------------------- */

static void print_extent(FILE *f, const struct summary *s)
{
	const struct summary_events *e = &s->events;
	uint64_t open = summary_open_count(e);
	char buf[TEXT];

	if (s->is_virtual)
		fprintf(f, "device: VIRTUAL (ntrace-vdev), not a Neuron device\n");
	fprintf(f, "duration: %s%s\n", e->total ? ns_text(summary_length(&s->window), buf) : "none",
		e->total ? ", from the first event to the last" : "");
	fprintf(f,
		"events: %" PRIu64 " (%" PRIu64 " start%s, %" PRIu64 " stop%s, %" PRIu64
		" instant%s), %" PRIu64 " span%s open at the end\n",
		e->total, e->starts, ending(e->starts), e->stops, ending(e->stops), e->instants,
		ending(e->instants), open, ending(open));
	if (e->stops != e->closed)
		fprintf(f, "ends without their start: %" PRIu64 "\n", e->stops - e->closed);
	for (size_t i = 0; s->process_count > 1 && i < s->process_count; i++) {
		const struct summary_process *p = &s->processes[i];

		fprintf(f, "process %s: %" PRIu64 " event%s in %s, %" PRIu64 " open\n",
			PRINTABLE(p->name), p->events.total, ending(p->events.total),
			ns_text(summary_length(&p->window), buf), summary_open_count(&p->events));
	}
	if (s->process_count == 0)
		fprintf(f, "no process used a neuron device\n");
}

static void print_rows(FILE *f, const struct summary_row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		fprintf(f, "%s%" PRIu64 " %s %s", i ? ", " : "", rows[i].value,
			PRINTABLE(rows[i].stage), PRINTABLE(rows[i].counter));
}

static void print_losses(FILE *f, const struct summary *s)
{
	fprintf(f, "lost: ");
	if (s->damaged)
		fprintf(f, "not known of %" PRIu64 " damaged process%s; as far as is told ",
			s->damaged, s->damaged == 1 ? "" : "es");
	if (s->without_info)
		fprintf(f, "not known of %" PRIu64 " process%s without trace_info.pb%s",
			s->without_info, s->without_info == 1 ? "" : "es",
			s->without_info < s->process_count ? "; of the others " : "");
	if (s->not_ended)
		fprintf(f, "the last of it, at most 100 ms: the recorder was killed; before that ");
	if (s->lost_count)
		print_rows(f, s->lost, s->lost_count);
	else if (s->without_info < s->process_count || !s->process_count)
		fprintf(f, "nothing");
	fputc('\n', f);
	if (s->noted_count) {
		fprintf(f, "noted: ");
		print_rows(f, s->noted, s->noted_count);
		fputc('\n', f);
	}
	for (size_t i = 0; i < s->blind_count; i++) {
		fputs("blind: ", f);
		printable_put(f, s->blind[i], strlen(s->blind[i]));
		fputc('\n', f);
	}
}

#define CORE_NAME 128
#define PROCESS_NAME 100 /* of it; what is longer loses its middle, since the pid is at the end */

/* "nc0", with the process when there are several. */
static const char *core_name(
	const struct summary *s, const struct summary_core *c, char buf[CORE_NAME])
{
	const char *process = s->process_count > 1 ? PRINTABLE(s->processes[c->process].name) : "";
	int len = (int)strlen(process), begin = len, end = 0;
	char core[16] = "no core";

	if (c->nc != SUMMARY_NO_CORE)
		snprintf(core, sizeof(core), "nc%" PRIu32, c->nc);
	if (len > PROCESS_NAME)
		begin = end = PROCESS_NAME / 2 - 2;
	snprintf(buf, CORE_NAME, "%.*s%s%s%s%s", begin, process, end ? "..." : "",
		process + len - end, *process ? " " : "", core);
	return buf;
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
		s->overwritten, ending(s->overwritten));
	for (size_t i = 0; i < s->core_count; i++) {
		const struct summary_window *w = &s->cores[i].window;
		char name[CORE_NAME], from[TEXT], to[TEXT];

		fprintf(f, "  %-12s %11s to %s\n", core_name(s, &s->cores[i], name),
			ns_text(w->first_ns - s->window.first_ns, from),
			ns_text(w->last_ns - s->window.first_ns, to));
	}
}

/* ---- cores --------------------------------------------------------------------------------- */

static bool ran(const struct summary_core *c)
{
	return c->runs || c->open_runs || c->collectives || c->barriers;
}

static void print_bound(FILE *f, const struct summary_core *c)
{
	char buf[TEXT];

	if (c->bound_known)
		fprintf(f, "  +-%s%s", ns_text(c->bound_ns, buf),
			c->bound_unknown ? " or not known" : "");
	else
		fprintf(f, "  +- not known");
}

/* What the busy time was; nothing when there is nothing to tell apart. */
static void print_busy(FILE *f, const struct summary_core *c, uint64_t whole)
{
	char buf[TEXT], barrier[TEXT], rest[TEXT];

	if (c->logical_size > 1) {
		fprintf(f, "    its %" PRIu32 " physical cores at once", c->logical_size);
		fprintf(f, "%*s", c->logical_size < 10 ? 4 : 3, "");
		cell(f, c->all_busy_ns);
		percent_cell(f, c->all_busy_ns, whole);
		fputc('\n', f);
	}
	if (c->collectives || c->barriers)
		fprintf(f, "    of it collectives %s, barriers %s, neither %s\n",
			ns_text(c->collective_ns, buf), ns_text(c->barrier_ns, barrier),
			ns_text(c->rest_ns, rest));
	if (c->open_runs)
		fprintf(f, "    %" PRIu64 " run%s without an end, not counted\n", c->open_runs,
			ending(c->open_runs));
}

static void print_core(FILE *f, const struct summary *s, const struct summary_core *c)
{
	uint64_t whole = summary_length(&s->window);
	char name[CORE_NAME];

	fprintf(f, "  %-24s %6" PRIu64, core_name(s, c, name), c->runs);
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
			fprintf(f, "\n%-26s %6s %11s %5s %6s %11s %11s  %s\n", "cores", "runs",
				"busy", "%", "gaps", "total", "longest", "by the host's clock");
		begun = true;
		print_core(f, s, &s->cores[i]);
	}
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
			fprintf(f, "  %" PRIu64 " open", summary_open_count(&n->events));
		fputc('\n', f);
	}
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

static void print_models(FILE *f, const struct summary *s)
{
	bool begun = false;

	for (size_t i = 0; i < s->model_count; i++) {
		const struct summary_model *m = &s->models[i];
		char number[32];

		head(f, "executions of models", &begun);
		snprintf(number, sizeof(number), "model %" PRIu64, m->id);
		fprintf(f, "  %s%s%s, %s\n",
			s->process_count > 1 ? PRINTABLE(s->processes[m->process].name) : "",
			s->process_count > 1 ? " " : "", PRINTABLE(*m->name ? m->name : number),
			m->on_device ? "nc_exec_running" : "nrt_execute");
		fprintf(f, "    %-32s %8" PRIu64, "the first on each core", m->first_n);
		cell(f, m->first_ns);
		fprintf(f, " %11s %11s %11s", "", "", "");
		cell(f, m->first_max_ns);
		fprintf(f, "\n    %-32s %8zu", "the rest", m->rest.n);
		cell(f, durations_total(&m->rest));
		stat_cells(f, &m->rest);
		fputc('\n', f);
	}
}

static void print_cost(FILE *f, const struct summary *s)
{
	char cpu[TEXT], each[TEXT];

	for (size_t i = 0; i < s->capture_count; i++) {
		const struct summary_capture *c = &s->captures[i];

		fprintf(f, "%scost of recording: ", i ? "" : "\n");
		if (!c->cpu_ns && !c->bytes) {
			fprintf(f, "not known\n");
			continue;
		}
		fprintf(f, "%s of CPU, at least %" PRIu64 " bytes", ns_text(c->cpu_ns, cpu),
			c->bytes);
		if (c->events)
			fprintf(f, "; of CPU per event %s", ns_text(c->cpu_ns / c->events, each));
		fputc('\n', f);
	}
}

void summary_print_text(FILE *f, const struct summary *s)
{
	print_extent(f, s);
	print_losses(f, s);
	print_window(f, s);
	print_cores(f, s);
	print_names(f, s, EVENT_DEVICE, "on the device");
	print_names(f, s, EVENT_HOST, "calls");
	print_names(f, s, EVENT_DRIVER, "ioctls");
	print_copies(f, s);
	print_models(f, s);
	print_instants(f, s);
	print_cost(f, s);
}
