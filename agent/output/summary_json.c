/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summary_json.c - the summary as one JSON object; its keys are described in docs/formats.md.
 */
#include <string.h>

#include "agent/output/json_out.h"
#include "agent/output/summary.h"

static void begin(struct json_out *j, const char *key, char bracket)
{
	jout_key(j, key);
	jout_begin(j, bracket);
}

static void print_events(struct json_out *j, const struct summary_events *e)
{
	begin(j, "events", '{');
	jout_key_unsigned(j, "total", e->total);
	jout_key_unsigned(j, "starts", e->starts);
	jout_key_unsigned(j, "stops", e->stops);
	jout_key_unsigned(j, "instants", e->instants);
	jout_key_unsigned(j, "start_lost", e->start_lost);
	jout_key_unsigned(j, "start_not_seen", e->stops - e->closed);
	jout_end(j, '}');
	jout_key_unsigned(j, "open", summary_open_count(e));
}

static void print_processes(struct json_out *j, const struct summary *s)
{
	begin(j, "processes", '[');
	for (size_t i = 0; i < s->process_count; i++) {
		const struct summary_process *p = &s->processes[i];

		jout_begin(j, '{');
		jout_key_text(j, "name", p->name);
		jout_key_unsigned(j, "pid", p->pid);
		print_events(j, &p->events);
		jout_key_unsigned(
			j, "from_ns", p->window.any ? p->window.first_ns - s->window.first_ns : 0);
		jout_key_unsigned(j, "duration_ns", summary_length(&p->window));
		jout_key_bool(j, "trace_info", p->has_info);
		jout_key_bool(j, "ended", p->ended);
		jout_key_bool(j, "driver_calls", !p->no_driver_calls);
		jout_end(j, '}');
	}
	jout_end(j, ']');
}

static void print_rows(
	struct json_out *j, const char *key, const struct summary_row *rows, size_t n)
{
	begin(j, key, '[');
	for (size_t i = 0; i < n; i++) {
		jout_begin(j, '{');
		jout_key_text(j, "stage", rows[i].stage);
		jout_key_text(j, "counter", rows[i].counter);
		jout_key_unsigned(j, "value", rows[i].value);
		jout_end(j, '}');
	}
	jout_end(j, ']');
}

static void print_damage(struct json_out *j, const struct summary *s)
{
	struct rec_damage d = summary_damage(s);

	begin(j, "damage", '{');
	jout_key_unsigned(j, "skipped_bytes", d.skipped_bytes);
	jout_key_unsigned(j, "cut_bytes", d.cut_bytes);
	jout_key_unsigned(j, "places", d.bad_frames);
	jout_end(j, '}');
}

static void print_cuts(struct json_out *j, const struct summary *s)
{
	begin(j, "cuts", '[');
	for (size_t i = 0; i < s->capture_count; i++) {
		if (!s->captures[i].cut)
			continue;
		jout_begin(j, '{');
		jout_key_unsigned(j, "left_out", s->captures[i].left_out);
		jout_key_unsigned(j, "records", s->captures[i].records);
		jout_end(j, '}');
	}
	jout_end(j, ']');
}

static void print_failures(struct json_out *j, const struct summary *s)
{
	begin(j, "failures", '[');
	for (size_t i = 0; i < s->failure_count; i++) {
		const struct summary_failure *f = &s->failures[i];

		jout_begin(j, '{');
		jout_key_text(j, "what", f->what);
		begin(j, "driver_errors", '[');
		for (size_t k = 0; k < f->error_count; k++)
			jout_string(j, f->errors[k], strlen(f->errors[k]));
		jout_end(j, ']');
		jout_end(j, '}');
	}
	jout_end(j, ']');
}

static void print_losses(struct json_out *j, const struct summary *s)
{
	jout_key_unsigned(j, "lost_total", s->lost_total);
	jout_key_bool(j, "lost_known", summary_losses_known(s));
	print_rows(j, "lost", s->lost, s->lost_count);
	print_rows(j, "noted", s->noted, s->noted_count);
	jout_key_unsigned(j, "overwritten", s->overwritten);
	print_damage(j, s);
	print_cuts(j, s);
	print_failures(j, s);
	begin(j, "blind", '[');
	for (size_t i = 0; i < s->blind_count; i++)
		jout_string(j, s->blind[i], strlen(s->blind[i]));
	jout_end(j, ']');
}

static void print_part(struct json_out *j, const char *key, uint64_t n, uint64_t ns)
{
	begin(j, key, '{');
	jout_key_unsigned(j, "n", n);
	jout_key_unsigned(j, "busy_ns", ns);
	jout_end(j, '}');
}

static void print_units(struct json_out *j, const struct summary *s, const struct summary_core *c)
{
	begin(j, "units", '[');
	for (size_t i = 0; i < c->unit_count; i++) {
		const struct summary_unit *u = &c->units[i];

		jout_begin(j, '{');
		jout_key_text(j, "name", u->name);
		if (u->physical != SUMMARY_OTHER_PHYSICAL)
			jout_key_unsigned(j, "device_core_idx", u->physical);
		jout_key_unsigned(j, "n", u->n);
		jout_key_unsigned(j, "busy_ns", u->busy_ns);
		jout_key_unsigned(j, "in_runs_ns", u->in_runs_ns);
		jout_key_unsigned(j, "runs_ns", u->runs_ns);
		jout_end(j, '}');
	}
	jout_end(j, ']');
	jout_key_unsigned(j, "unit_bound_ns", c->unit_bound_ns);
	jout_key_bool(j, "units_at_least", s->processes[c->process].units_at_least);
}

static void print_core(struct json_out *j, const struct summary *s, const struct summary_core *c)
{
	jout_begin(j, '{');
	jout_key_unsigned(j, "process", c->process);
	if (c->nc != SUMMARY_NO_CORE)
		jout_key_unsigned(j, "nc", c->nc);
	jout_key_unsigned(j, "from_ns", c->window.first_ns - s->window.first_ns);
	jout_key_unsigned(j, "to_ns", c->window.last_ns - s->window.first_ns);
	jout_key_unsigned(j, "logical_nc_size", c->logical_size);
	jout_key_unsigned(j, "runs", c->runs);
	jout_key_unsigned(j, "open_runs", c->open_runs);
	jout_key_unsigned(j, "sum_ns", c->sum_ns);
	jout_key_unsigned(j, "busy_ns", c->busy_ns);
	jout_key_unsigned(j, "all_busy_ns", c->all_busy_ns);
	print_part(j, "collectives", c->collectives, c->collective_ns);
	print_part(j, "barriers", c->barriers, c->barrier_ns);
	jout_key_unsigned(j, "rest_ns", c->rest_ns);
	begin(j, "gaps", '{');
	jout_key_unsigned(j, "n", c->gaps.n);
	jout_key_unsigned(j, "total_ns", c->gaps.total_ns);
	jout_key_unsigned(j, "longest_ns", c->gaps.longest_ns);
	jout_end(j, '}');
	if (c->bound_known)
		jout_key_unsigned(j, "clock_bound_ns", c->bound_ns);
	jout_key_unsigned(j, "clock_bound_unknown", c->bound_unknown);
	if (c->unit_count)
		print_units(j, s, c);
	jout_end(j, '}');
}

static void print_cores(struct json_out *j, const struct summary *s)
{
	begin(j, "cores", '[');
	for (size_t i = 0; i < s->core_count; i++)
		print_core(j, s, &s->cores[i]);
	jout_end(j, ']');
}

static void print_name(struct json_out *j, const struct summary_name *n)
{
	jout_begin(j, '{');
	jout_key(j, "name");
	jout_string(j, n->name, n->len);
	durations_json(j, &n->durations);
	jout_key_unsigned(j, "total_ns", n->total_ns);
	jout_key_unsigned(j, "open", summary_open_count(&n->events));
	jout_key_unsigned(j, "instants", n->events.instants);
	jout_key_unsigned(j, "start_lost", n->events.start_lost);
	jout_key_unsigned(j, "failed", n->failed);
	begin(j, "errors", '{');
	for (size_t i = 0; i < n->error_count; i++)
		jout_key_unsigned(j, n->errors[i].name, n->errors[i].n);
	jout_end(j, '}');
	jout_end(j, '}');
}

static bool has_names(const struct summary *s, enum event_kind kind)
{
	for (size_t i = 0; i < s->name_count; i++)
		if (s->names[i].kind == kind)
			return true;
	return false;
}

static void print_names(struct json_out *j, const struct summary *s)
{
	static const char *const keys[] = {[EVENT_HOST] = "calls",
		[EVENT_DEVICE] = "device",
		[EVENT_UNIT] = "unit_work",
		[EVENT_DRIVER] = "ioctls",
		[EVENT_DMA] = "dma"};

	for (unsigned k = 0; k < sizeof(keys) / sizeof(*keys); k++) {
		if ((k == EVENT_UNIT || k == EVENT_DMA) && !has_names(s, (enum event_kind)k))
			continue;
		begin(j, keys[k], '[');
		for (size_t i = 0; i < s->name_count; i++)
			if (s->names[i].kind == (enum event_kind)k)
				print_name(j, &s->names[i]);
		jout_end(j, ']');
	}
}

static void print_copies(struct json_out *j, const struct summary *s)
{
	begin(j, "copies", '[');
	for (unsigned i = 0; i < SUMMARY_SOURCES * EVENT_DIRECTIONS; i++) {
		const struct summary_copies *c = &s->copies[0][0] + i;

		if (!c->n)
			continue;
		jout_begin(j, '{');
		jout_key_text(j, "source",
			summary_source_name((enum summary_source)(i / EVENT_DIRECTIONS)));
		jout_key_text(j, "direction",
			event_direction_name((enum event_direction)(i % EVENT_DIRECTIONS)));
		jout_key_unsigned(j, "n", c->n);
		jout_key_unsigned(j, "bytes", c->bytes);
		jout_key_unsigned(j, "without_size", c->unsized);
		jout_key_unsigned(j, "wall_ns", c->wall_ns);
		jout_key_unsigned(j, "bytes_per_s", summary_goodput(c));
		jout_end(j, '}');
	}
	jout_end(j, ']');
}

static void print_executions(struct json_out *j, const char *key, const struct durations *d)
{
	begin(j, key, '{');
	durations_json(j, d);
	jout_key_unsigned(j, "total_ns", durations_total(d));
	jout_end(j, '}');
}

static void print_models(struct json_out *j, const struct summary *s)
{
	begin(j, "models", '[');
	for (size_t i = 0; i < s->model_count; i++) {
		const struct summary_model *m = &s->models[i];

		jout_begin(j, '{');
		jout_key_unsigned(j, "process", m->process);
		jout_key_unsigned(j, "model_id", m->id);
		jout_key_text(j, "model_name", m->name);
		jout_key_text(j, "event", m->on_device ? "nc_exec_running" : "nrt_execute");
		if (!s->processes[m->process].first_unknown)
			print_executions(j, "first", &m->first);
		print_executions(j, "rest", &m->rest);
		begin(j, "failed", '{');
		jout_key_unsigned(j, "n", m->failed);
		jout_key_unsigned(j, "total_ns", m->failed_ns);
		jout_end(j, '}');
		jout_end(j, '}');
	}
	jout_end(j, ']');
}

static void print_cost(struct json_out *j, const struct summary *s)
{
	begin(j, "cost", '[');
	for (size_t i = 0; i < s->capture_count; i++) {
		const struct summary_capture *c = &s->captures[i];

		jout_begin(j, '{');
		jout_key_unsigned(j, "agent_cpu_ns", c->cpu_ns);
		jout_key_unsigned(j, "recorded_bytes", c->bytes);
		jout_key_unsigned(j, "events", c->events);
		jout_end(j, '}');
	}
	jout_end(j, ']');
}

void summary_print_json(FILE *f, const struct summary *s)
{
	struct json_out j = {.f = f};

	jout_begin(&j, '{');
	jout_key_bool(&j, "virtual", s->is_virtual);
	jout_key_bool(&j, "simulated", s->is_simulated);
	jout_key_unsigned(&j, "duration_ns", summary_length(&s->window));
	print_events(&j, &s->events);
	print_processes(&j, s);
	print_losses(&j, s);
	print_cores(&j, s);
	print_names(&j, s);
	print_copies(&j, s);
	print_models(&j, s);
	print_cost(&j, s);
	jout_end(&j, '}');
	fputc('\n', f);
}
